"""Ensembles as they predict: what their members do one by one, each row by itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from clml._support.threads import started_pool
from clml._training.predictor import Predictor, wide_part
from clml.encoding import (
    Bins,
    GaussianKernel,
    LaplaceKernel,
    Quantiles,
    Robust,
)
from clml.network import WideNetwork

ENCODINGS = (
    Robust(),
    Bins(),
    Bins(numbers=False),
    GaussianKernel(Quantiles(), n_landmarks=40),
    LaplaceKernel(n_landmarks=30),
)
NETWORKS = (
    {"hidden": ()},
    {"hidden": (), "linear_path": True},
    {"hidden": (7,)},
    {"hidden": (40,), "activation": "tanh"},
    {"hidden": (9, 5, 6), "activation": "tanh", "linear_path": True},
    {"hidden": (8, 3)},
)


def rows(n, kind="dense", seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 6)) ** 3
    X[:, 1] = generator.integers(0, 2, n)
    X[:, 2] = generator.integers(0, 5, n)
    X[generator.random(n) < 0.2, 3] = np.nan
    X[generator.random((n, 6)) < (0.0 if kind == "dense" else 0.6)] = 0
    return X if kind == "dense" else sp.csr_array(X)


def members(layout, n, seed=3):
    generator = np.random.default_rng(seed)
    return [
        generator.normal(scale=0.3, size=layout.size).astype(np.float32)
        for _ in range(n)
    ]


def built(encoding, settings, kind, n_labels=4, n_members=3):
    """Return a predictor, and its twin that goes through members one by one."""
    fitted = encoding.fit(rows(80, kind))
    layout = WideNetwork(**settings).build(fitted.n_columns, n_labels)
    networks = members(layout, n_members)
    scale = np.linspace(0.2, 1.1, n_members)
    part = wide_part(fitted, layout, networks, scale)

    def twin(X):
        encoded = fitted.apply(X)
        each = [layout.logits(network, encoded) for network in networks]
        return np.tensordot(scale, each, axes=1)

    return Predictor([part], n_labels, fitted.centred), twin


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize("settings", NETWORKS, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_equals_the_members_one_by_one(encoding, settings, kind):
    predictor, twin = built(encoding, settings, kind)
    X = rows(50, kind, seed=1)
    found, expected = predictor.logits(X), twin(X)
    assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    for some in ([3], [11, 0, 4], list(range(7)), [5] * 40):
        assert_array_equal(predictor.logits(X[some]), found[some])
    assert predictor.logits(X[:0]).shape == (0, 4)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_one_label_one_member(encoding):
    predictor, twin = built(encoding, {"hidden": ()}, "dense", 1, 1)
    X = rows(9, seed=1)
    expected = twin(X)
    assert_allclose(predictor.logits(X), expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize("fitted_to", ["dense", "sparse"])
def test_forms_of_rows(encoding, fitted_to):
    """Zeros that are stored, or not, are the same zeros."""
    predictor, _ = built(encoding, {"hidden": (7,)}, fitted_to)
    sparse = rows(30, "sparse", seed=1)
    expected = predictor.logits(sparse)
    forms = (sp.csr_matrix, sp.csc_array, lambda X: X.toarray(), np.asfortranarray)
    for form in forms:
        X = sparse.toarray() if form is np.asfortranarray else sparse
        assert_array_equal(predictor.logits(form(X)), expected)


def test_parts_and_threads():
    """Parts that read the same columns share them; threads take blocks of rows."""
    X = rows(80)
    parts, twins = [], []
    for encoding in ENCODINGS:
        fitted = encoding.fit(X)
        hidden = () if hasattr(fitted, "projection") else (16,)
        layout = WideNetwork(hidden=hidden).build(fitted.n_columns, 3)
        networks, scale = members(layout, 2), np.array([0.5, 0.7])
        parts.append(wide_part(fitted, layout, networks, scale))
        twins.append((fitted, layout, networks, scale))
    predictor = Predictor(parts, 3, centred=True)
    many = rows(1000, seed=2)
    expected = sum(
        s * layout.logits(network, fitted.apply(many))
        for fitted, layout, networks, scale in twins
        for network, s in zip(networks, scale, strict=True)
    )
    found = predictor.logits(many)
    assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    with started_pool(2) as executor:
        assert_array_equal(predictor.logits(many, executor), found)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_infinity_is_refused(encoding, kind):
    predictor, _ = built(encoding, {"hidden": (7,)}, kind)
    X = rows(4).copy()
    X[2, 4] = np.inf
    with pytest.raises(ValueError, match="infinity in column 4"):
        predictor.logits(X if kind == "dense" else sp.csr_array(X))

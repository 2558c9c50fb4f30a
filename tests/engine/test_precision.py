"""Single precision against double, and candidates that overflow beside healthy ones."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
)

from clml.engine import NumpyEngine, TorchEngine
from clml.losses import RowTargets, list_losses
from clml.network import Layout, Scaling

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FORMS = [np.asarray, sp.csr_matrix]
# Error of a logit in float32 where no layer amplifies it, generously.
ERROR = 1e-5
BUILDERS = {
    "numpy": NumpyEngine,
    "torch": lambda *a, **k: TorchEngine(*a, device=DEVICE, fused=False, **k),
}


def make(seed, n, d, k, c, layers, population):
    """Layout, features, labels and weights of a population."""
    rng = np.random.default_rng(seed)
    layout = Layout(d, k, c, layers)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3)
    X *= rng.random((n, d)) < 0.7
    thetas = rng.normal(size=(population, layout.size)).astype(np.float32)
    return layout, X, rng.integers(0, 2, (n, k)), thetas


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(2, 40),
        "d": st.integers(1, 6),
        "k": st.integers(2, 5),  # one column is no label matrix to scikit-learn
        "c": st.integers(2, 5),
        "layers": st.integers(1, 3),
        "population": st.integers(1, 20),
    }
)


def slow_logits(theta, X, layout, scaling):
    """One network in float64, and what its logits (rows, K) may err by in float32.

    Each layer divides by the deviation of its entries, and so does their error.
    """
    first, *later = layout.matrices(theta.astype(np.float64))
    values = scaling.apply(X) @ first[:-1] + first[-1]
    error = np.full((len(X), 1), ERROR)
    for matrix in later:
        spread = values.std(axis=1, keepdims=True) + 1e-10
        error = error * (1 + np.abs(values).max(axis=1, keepdims=True) / spread)
        z = (values - values.mean(axis=1, keepdims=True)) / spread
        values = (1 / (1 + np.exp(-z))) @ matrix[:-1] + matrix[-1]
    return values, error


def near_decisions(logits, error):
    """How many logits rounding may carry over 0, and rows whose order it may change."""
    gaps = np.diff(np.sort(logits, axis=-1), axis=-1)
    near_rows = (gaps < 2 * error).any(axis=1)
    return int((np.abs(logits) < error).sum()), int(near_rows.sum())


@pytest.mark.parametrize("engine", BUILDERS)
@settings(max_examples=15)
@given(problem=problems, form=st.sampled_from(FORMS), scaled=st.booleans())
def test_decisions_are_those_of_double_precision(engine, problem, form, scaled):
    layout, X, Y, thetas = make(**problem)
    scaling = Scaling.fit(X) if scaled else Scaling.identity(X.shape[1])
    engine = BUILDERS[engine](
        layout, form(X), RowTargets.from_indicator(Y), scaling=scaling
    )
    found = engine.losses(thetas)
    for theta, losses in zip(thetas, found, strict=True):
        logits, error = slow_logits(theta, X, layout, scaling)
        near, near_rows = near_decisions(logits, error)
        decided = logits > 0
        expected = [
            hamming_loss(Y, decided),
            1 - label_ranking_average_precision_score(Y, logits),
            1 - f1_score(Y, decided, average="micro", zero_division=0.0),
        ]
        # A decision moves hits and predictions by one each, a row its precision by 1.
        size = max(decided.sum() + Y.sum() - near, 1)
        allowed = [near / Y.size, near_rows / len(Y), 3 * near / size]
        assert (np.abs(losses - expected) <= np.array(allowed) + 1e-12).all()


WRONG = [np.nan, np.inf, -np.inf, 1e300, 1e38, -1e38, 1e20]


@pytest.mark.parametrize(
    ("engine", "dtype"),
    [("numpy", np.float32), ("numpy", np.float64), ("torch", np.float32)],
)
@settings(max_examples=25)
@given(
    problem=problems,
    form=st.sampled_from(FORMS),
    all_losses=st.booleans(),
    data=st.data(),
)
def test_a_sick_candidate_is_alone(engine, dtype, problem, form, all_losses, data):
    layout, X, Y, thetas = make(**problem)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sick = rng.random(len(thetas)) < 0.4
    spoiled = thetas.astype(np.float64)
    for i in np.flatnonzero(sick):
        where = rng.random(layout.size) < rng.choice([0.02, 0.3, 1])
        spoiled[i, where] = rng.choice(WRONG)
    losses = ("hamming", "lrap", "micro_f1")
    if all_losses:
        losses = tuple(x for x in list_losses() if "precision_at" not in x)
    engine = BUILDERS[engine](
        layout,
        form(X),
        RowTargets.from_indicator(Y),
        losses,
        scaling=Scaling.fit(X),
        dtype=dtype,
    )
    well = ~sick
    found = engine.losses(spoiled)
    assert_array_equal(found[well], engine.losses(thetas)[well])
    scores = engine.scores(spoiled)
    assert_array_equal(scores[well], engine.scores(thetas)[well])
    undefined = np.isnan(scores).any(axis=(1, 2))
    assert np.isnan(found[undefined]).all()


@pytest.mark.parametrize("layer", ["first", "hidden"])
@pytest.mark.parametrize(
    ("engine", "dtype", "weight"),
    [
        ("numpy", np.float32, 1e25),
        ("numpy", np.float64, 1e200),
        ("torch", np.float32, 1e25),
        ("torch", np.float64, 1e200),
    ],
)
def test_a_candidate_whose_squares_overflow_is_undefined(engine, dtype, weight, layer):
    # Its entries are numbers, but not what they are divided by.
    layout, X, Y, thetas = make(0, n=6, d=3, k=2, c=4, layers=1, population=3)
    thetas = thetas.astype(np.float64)
    layout.matrices(thetas)[layer == "hidden"][1] *= weight
    engine = BUILDERS[engine](layout, X, RowTargets.from_indicator(Y), dtype=dtype)
    for population in (thetas, thetas[1:2]):
        losses = engine.losses(population)
        sick = (np.abs(population) > 1e10).any(axis=1)
        assert_array_equal(np.isnan(losses), sick[:, None].repeat(3, axis=1))


# Triton's interpreter takes seconds for a second block.
@pytest.mark.parametrize("n_candidates", [3, 17][: 1 + (DEVICE == "cuda")])
def test_a_sick_candidate_is_alone_in_fused_kernels(n_candidates):
    rng = np.random.default_rng(0)
    layout = Layout(3, 2, 3)
    X, Y = rng.normal(size=(5, 3)), rng.integers(0, 2, (5, 2))
    thetas = rng.normal(size=(n_candidates, layout.size))
    spoiled = thetas.copy()
    spoiled[1, 0], spoiled[-1, 0] = np.inf, 1e38
    targets = RowTargets.from_indicator(Y)
    engine = TorchEngine(layout, X, targets, device=DEVICE, fused=True)
    with np.errstate(invalid="ignore", over="ignore"):  # of Triton's interpreter
        found = engine.losses(spoiled)
    well = np.arange(n_candidates) != 1
    well[-1] = False
    assert np.isnan(found[[1, -1]]).all()
    assert_array_equal(found[well], engine.losses(thetas)[well])

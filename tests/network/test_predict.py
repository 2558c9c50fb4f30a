import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from clml.network import Layout, Predictor, Scaling, _predict, forward, predictor_of

FORMS = [np.asarray, sp.csr_matrix, sp.csr_array]


def make(members, n_layers=1, n=30, d=9, k=5, c=6, seed=0):
    generator = np.random.default_rng(seed)
    layout = Layout(d, k, c, n_layers)
    X = generator.normal(3, 2, size=(n, d)) * (generator.random((n, d)) < 0.5)
    X[4] = 0
    return layout, X, generator.normal(size=(members, layout.size)), Scaling.fit(X)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [1, 2, 16, 17, 33])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_average_of_the_networks(form, members, n_layers):
    layout, X, thetas, scaling = make(members, n_layers)
    expected = forward(thetas, X, layout, scaling).mean(axis=0)
    found = Predictor(thetas, layout, scaling).logits(form(X))
    np.testing.assert_allclose(found, expected, 0, 1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("rows", [1, 2, 4, 5, 15, 16])
def test_rows_do_not_depend_on_those_beside_them(form, members, rows):
    layout, X, thetas, scaling = make(members)
    predictor = Predictor(thetas, layout, scaling)
    whole = predictor.logits(form(X))
    np.testing.assert_allclose(predictor.logits(form(X[:rows])), whole[:rows], 0, 1e-12)


def test_one_network_as_a_vector_and_in_single_precision():
    layout, X, thetas, scaling = make(1)
    single = thetas[0].astype(np.float32)
    expected = forward(single.astype(float), X[:3], layout, scaling)
    found = Predictor(single, layout, scaling).logits(X[:3].astype(np.float32))
    np.testing.assert_allclose(found, expected, 0, 1e-5)


def test_no_rows():
    layout, X, thetas, scaling = make(2)
    assert Predictor(thetas, layout, scaling).logits(X[:0]).shape == (0, 5)


def test_many_rows_in_parts(monkeypatch):
    layout, X, thetas, scaling = make(2)
    expected = Predictor(thetas, layout, scaling).logits(X)
    monkeypatch.setattr(_predict, "_ROWS_AT_A_TIME", 7)
    for form in FORMS:
        found = Predictor(thetas, layout, scaling).logits(form(X))
        np.testing.assert_allclose(found, expected, 0, 1e-12)


def test_large_means_cancel_in_dense_rows():
    layout, X, thetas, _ = make(2)
    scaling = Scaling(np.full(9, 1e15), np.ones(9))
    found = Predictor(thetas, layout, scaling).logits(X + 1e15)
    expected = forward(thetas, np.round(X * 8) / 8, layout).mean(axis=0)
    np.testing.assert_allclose(found, expected, 0, 1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("n", [5, 30])
def test_what_overflows_is_said(form, members, n):
    layout, X, thetas, _ = make(members, n=n)
    scaling = Scaling(np.zeros(9), np.full(9, 1e-300))
    predictor = Predictor(thetas, layout, scaling)
    with pytest.raises(ValueError, match=r"X must stay finite .* float64, got"):
        predictor.logits(form((X + 1) * 1e100))
    # Far from anything trained on, and finite.
    assert np.isfinite(predictor.logits(form(X * 1e-201))).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("most", [1, 3, 5, 16])
def test_fewer_rows_at_once_where_memory_runs_out(monkeypatch, form, members, most):
    layout, X, thetas, scaling = make(members)
    predictor = Predictor(thetas, layout, scaling)
    expected = predictor.logits(form(X))
    inner, sizes = Predictor._fill, []

    def fill(self, X, out):
        sizes.append(X.shape[0])
        out[:] = 7  # half of what a failed attempt did
        if X.shape[0] > most:
            raise MemoryError("no room")
        inner(self, X, out)

    monkeypatch.setattr(Predictor, "_fill", fill)
    monkeypatch.setattr(Predictor, "_fill_by_product", fill)
    with pytest.warns(UserWarning, match=r"rows instead of 30 are .* from now on"):
        found = predictor.logits(form(X))
    if members > 1:  # to the last bit
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, expected, 0, 1e-12)
    sizes.clear()
    predictor.logits(form(X))  # kept, and not said again
    assert max(sizes) <= most


def test_a_row_that_does_not_fit_is_an_error(monkeypatch):
    layout, X, thetas, scaling = make(2)

    def fill(self, X, out):
        raise MemoryError("no room")

    monkeypatch.setattr(Predictor, "_fill", fill)
    with pytest.raises(MemoryError, match=r"with 1 rows at once, .* no room"):
        Predictor(thetas, layout, scaling).logits(X)


def test_laid_out_once_and_let_go_with_its_weights():
    layout, _, thetas, scaling = make(2)
    first = predictor_of(thetas, layout, scaling)
    assert predictor_of(thetas, layout, scaling) is first
    copied = thetas.copy()
    other = predictor_of(copied, layout, scaling)
    assert other is not first
    assert predictor_of(thetas, layout, scaling) is first
    gone = weakref.ref(other)
    del copied, other
    gc.collect()
    assert gone() is None


def test_the_same_weights_with_another_scaling():
    layout, X, thetas, scaling = make(2)
    plain = Scaling.identity(layout.n_features)
    expected = Predictor(thetas, layout, plain).logits(X)
    predictor_of(thetas, layout, scaling)
    found = predictor_of(thetas, layout, plain).logits(X)
    np.testing.assert_array_equal(found, expected)

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from clml.network import Layout, Scaling, backward_pass, forward, forward_pass


def make(n=9, d=5, k=3, c=4, layers=1, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    layout = Layout(d, k, c, layers)
    theta = rng.normal(size=layout.size).astype(dtype)
    X = rng.normal(size=(n, d)).astype(dtype)
    return layout, theta, X, rng.normal(size=(n, k)).astype(dtype)


def masks_for(X, layout, seed=1, kept=0.6):
    rng = np.random.default_rng(seed)
    shape = (layout.n_layers + 1, X.shape[0], layout.embedding_dim)
    return list((rng.random(shape) < kept) / kept)


def by_differences(theta, value, step=1e-6):
    """The derivative one weight at a time."""
    slopes = []
    for i in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[i] += step
        down[i] -= step
        slopes.append((value(up) - value(down)) / (2 * step))
    return np.array(slopes)


def by_torch(theta, X, layout, credit, masks=None):
    """The derivative by automatic differentiation."""
    flat = torch.tensor(theta, requires_grad=True)
    h, start, matrices = torch.tensor(X), 0, []
    for rows, columns in layout.shapes:
        matrices.append(flat[start : start + rows * columns].reshape(rows, columns))
        start += rows * columns
    for i, matrix in enumerate(matrices[:-1]):
        z = h @ matrix[:-1] + matrix[-1]
        deviation = z.std(dim=1, keepdim=True, correction=0)
        h = torch.sigmoid((z - z.mean(dim=1, keepdim=True)) / (deviation + 1e-10))
        if masks is not None:
            h = h * torch.tensor(masks[i])
    logits = h @ matrices[-1][:-1] + matrices[-1][-1]
    (logits * torch.tensor(credit)).sum().backward()
    return flat.grad.numpy()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("dropout", [False, True])
def test_equals_finite_differences(layers, dropout):
    layout, theta, X, credit = make(layers=layers)
    masks = masks_for(X, layout) if dropout else None

    def value(weights):
        return (forward_pass(weights, X, layout, None, masks)[0] * credit).sum()

    _, cache = forward_pass(theta, X, layout, None, masks)
    found = backward_pass(credit, cache)
    assert_allclose(found, by_differences(theta, value), 1e-6, 1e-7)
    # Every matrix and bias has a part in it.
    assert all(view.any() for view in layout.views(found).values())


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), ("f", 1e-4)])
def test_equals_automatic_differentiation(layers, dropout, dtype, tolerance):
    layout, theta, X, credit = make(30, 8, 5, 6, layers, dtype=dtype)
    masks = masks_for(X, layout) if dropout else None
    masks = masks and [mask.astype(dtype) for mask in masks]
    logits, cache = forward_pass(theta, X, layout, None, masks)
    found = backward_pass(credit, cache)
    assert logits.dtype == found.dtype == np.dtype(dtype)
    expected = by_torch(theta, X, layout, credit, masks)
    assert_allclose(found, expected, tolerance, tolerance)


@pytest.mark.parametrize("layers", [1, 2])
def test_logits_are_those_of_the_population_pass(layers):
    layout, theta, X, _ = make(layers=layers)
    logits, _ = forward_pass(theta, X, layout)
    assert_allclose(logits, forward(theta, X, layout), 0, 1e-12)
    masks = [np.ones((9, 4))] * (layers + 1)
    assert_array_equal(forward_pass(theta, X, layout, None, masks)[0], logits)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), ("f", 2e-4)])
def test_sparse_equals_dense(form, scaled, dtype, tolerance):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 12)) * 10.0 ** np.arange(-6, 6)
    X[:, 6] += 1e3
    X[:, 4] = 0.7
    X[:, 5] = 0
    X[:, 7:] *= rng.random((40, 5)) < 0.3
    X[::11] = 0
    if not scaled:
        X = np.sign(X)
    layout, theta, _, _ = make(d=12, c=6, layers=2, dtype=dtype)
    credit = rng.normal(size=(40, 3)).astype(dtype)
    scaling = Scaling.fit(X) if scaled else None
    ready = (scaling.apply(X) if scaled else X).astype(dtype)
    expected, dense_cache = forward_pass(theta, ready, layout)
    logits, cache = forward_pass(theta, form(X), layout, scaling)
    assert logits.dtype == np.dtype(dtype)
    assert_allclose(logits, expected, 0, tolerance)
    found = backward_pass(credit, cache)
    assert found.dtype == np.dtype(dtype)
    assert_allclose(found, backward_pass(credit, dense_cache), tolerance, tolerance)


def refuse(*args, **kwargs):
    raise AssertionError("X was made dense")


def test_sparse_rows_are_never_made_dense(monkeypatch):
    n, d = 500, 100_000  # 400 MB as a dense matrix
    rng = np.random.default_rng(2)
    columns = rng.integers(0, d, 3 * n)
    X = sp.csr_matrix((rng.random(3 * n), columns, np.arange(0, 3 * n + 1, 3)), (n, d))
    scaling = Scaling.fit(X)
    for kind in (sp.csr_matrix, sp.csc_matrix):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    layout = Layout(d, 2, 3)
    theta = rng.normal(size=layout.size).astype(np.float32)
    logits, cache = forward_pass(theta, X, layout, scaling)
    gradient = backward_pass(np.ones_like(logits), cache)
    assert np.isfinite(gradient).all()
    # A column without entries is a constant and learns nothing.
    unused = np.setdiff1d(np.arange(d), columns)
    assert_array_equal(layout.views(gradient)["E"][unused], 0)
    assert layout.views(gradient)["E"][columns].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("names", [("E", "b_E"), ("L1", "b_L1")])
def test_constant_pre_activations_pass_nothing_on(names, dtype):
    layout, theta, X, credit = make(c=7, dtype=dtype)
    for name in names:
        view = layout.views(theta)[name]
        view[:] = view[..., :1]  # the same in every embedding dimension
    _, cache = forward_pass(theta, X, layout)
    gradient = backward_pass(credit, cache)
    assert np.isfinite(gradient).all()
    views = layout.views(gradient)
    # Each unit of the constant layer is ½ and has no slope; those above still have.
    assert not views["E"].any()
    assert not views["b_E"].any()
    assert views["Dec"].any()
    if names[0] == "L1":
        expected = np.repeat(credit.sum(axis=0)[None] / 2, 7, axis=0)
        assert_allclose(views["Dec"], expected, 1e-5, 1e-6)
    else:
        assert views["L1"].any()


def test_one_constant_row_leaves_the_others():
    # The bias is constant, so that a row of zeros has equal pre-activations.
    layout, theta, X, credit = make()
    layout.views(theta)["b_E"][:] = 0.3
    X[4] = 0
    _, cache = forward_pass(theta, X, layout)
    E = layout.views(backward_pass(credit, cache))["E"]
    others = np.arange(9) != 4
    _, without = forward_pass(theta, X[others], layout)
    alone = layout.views(backward_pass(credit[others], without))["E"]
    assert_allclose(E, alone, 1e-12, 1e-14)


def test_one_row_and_one_label():
    layout, theta, X, credit = make(1, 1, 1, 2)
    _, cache = forward_pass(theta, X, layout)
    expected = by_torch(theta, X, layout, credit)
    assert_allclose(backward_pass(credit, cache), expected, 1e-6, 1e-9)


def test_inputs_are_not_changed():
    layout, theta, X, credit = make(layers=2)
    held = theta, X, credit
    before = [array.copy() for array in held]
    _, cache = forward_pass(theta, X, layout, None, masks_for(X, layout))
    backward_pass(credit, cache)
    for array, copy in zip(held, before, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((9, 4))}, "X must have 5 features, got 4"),
        ({"scaling": Scaling.identity(5)}, "Dense X must be scaled already"),
        ({"dropout_masks": [np.ones((9, 4))]}, "dropout_masks must have shapes"),
        ({"dropout_masks": [np.ones((8, 4))] * 2}, "dropout_masks must have shapes"),
    ],
)
def test_bad_batches(change, message):
    layout, theta, X, _ = make()
    with pytest.raises(ValueError, match=message):
        forward_pass(**({"theta": theta, "X": X, "layout": layout} | change))


def test_bad_credit():
    layout, theta, X, credit = make()
    _, cache = forward_pass(theta, X, layout)
    with pytest.raises(ValueError, match=r"credit must have the logits' shape \(9, 3"):
        backward_pass(credit[:8], cache)

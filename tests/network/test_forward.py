import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from clml.network import Layout, Rows, Scaling, Weights, block_logits, forward


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def plain(theta, X, layout, scaling=None):
    """One network, one row at a time, in float64."""
    views = layout.views(np.asarray(theta, dtype=np.float64))
    logits = []
    for x in np.asarray(X, dtype=np.float64):
        h = x if scaling is None else (x - scaling.mean) / scaling.scale
        for name in ["E", *(f"L{i + 1}" for i in range(layout.n_layers))]:
            z = h @ views[name] + views[f"b_{name}"]
            h = sigmoid((z - z.mean()) / (z.std() + 1e-10))
        logits.append(h @ views["Dec"] + views["b_D"])
    return np.array(logits)


def make(n=9, d=5, k=3, c=4, layers=1, population=3, seed=0):
    rng = np.random.default_rng(seed)
    layout = Layout(d, k, c, layers)
    return layout, rng.normal(size=(population, layout.size)), rng.normal(size=(n, d))


def test_by_hand():
    # D = 1, C = 2, K = 1, x = 1. The first layer sees (3, 1): standardised (1, −1),
    # h = (σ(1), σ(−1)). The second sees h itself: standardised (1, −1) again.
    # Logit: 2·σ(1) + 4·σ(−1) − 1.
    layout = Layout(1, 1, 2)
    theta = np.array([2, 0, 1, 1, 1, 0, 0, 1, 0, 0, 2, 4, -1.0])
    expected = 2 * sigmoid(1) + 4 * sigmoid(-1) - 1
    assert_allclose(forward(theta, np.ones((1, 1)), layout), [[expected]], 1e-9)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_array]
)
def test_equals_the_plain_twin(layers, scaled, form):
    layout, thetas, X = make(layers=layers)
    scaling = Scaling.fit(X) if scaled else None
    expected = np.array([plain(theta, X, layout, scaling) for theta in thetas])
    assert_allclose(forward(thetas, form(X), layout, scaling), expected, 0, 1e-12)
    single = forward(thetas[1], form(X), layout, scaling)
    assert single.shape == (9, 3)
    assert_allclose(single, expected[1], 0, 1e-12)
    low = forward(thetas, form(X), layout, scaling, dtype=np.float32)
    assert low.dtype == np.float32
    assert_allclose(low, expected, 0, 2e-5)


def wide_scales(n=60):
    """Shifted columns, scales from 1e-6 to 1e6, a constant, sparse, empty rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 12)) * 10.0 ** np.arange(-6, 6)
    X[:, 3] += 1.0  # a thousand deviations from 0
    X[:, 6] += 1e3
    X[:, 4] = 0.7
    X[:, 5] = 0
    X[:, 7:] *= rng.random((n, 5)) < 0.3
    X[::11] = 0
    return X


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (float, 1e-10)])
@pytest.mark.parametrize("layers", [1, 2])
def test_sparse_equals_dense(dtype, tolerance, layers):
    X = wide_scales()
    layout, thetas, _ = make(d=12, layers=layers)
    scaling = Scaling.fit(X)
    dense = forward(thetas, X, layout, scaling, dtype=dtype)
    sparse = forward(thetas, sp.csr_matrix(X), layout, scaling, dtype=dtype)
    assert sparse.dtype == dense.dtype == dtype
    assert np.ptp(dense) > 1
    assert_allclose(sparse, dense, 0, tolerance)


def test_scaling_fitted_on_sparse_rows_equals_dense():
    X = wide_scales()
    layout, thetas, _ = make(d=12)
    scaling = Scaling.fit(sp.csr_matrix(X))
    dense = forward(thetas, X, layout, Scaling.fit(X))
    assert_allclose(forward(thetas, sp.csr_matrix(X), layout, scaling), dense, 0, 1e-9)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_with_duplicates_and_unsorted_indices(index):
    # Row 0 is (4, 1 + 2, 0), row 1 empty, row 2 has 5 and a stored zero.
    data = np.array([1.0, 4.0, 2.0, 5.0, 0.0])
    indices = np.array([1, 0, 1, 2, 0], dtype=index)
    indptr = np.array([0, 3, 3, 5], dtype=index)
    X = sp.csr_array((data, indices, indptr), shape=(3, 3))
    before = [a.copy() for a in (X.data, X.indices, X.indptr)]
    layout, thetas, _ = make(d=3)
    dense = np.array([[4.0, 3, 0], [0, 0, 0], [0, 0, 5]])
    expected = forward(thetas, dense, layout)
    assert_allclose(forward(thetas, X, layout), expected, 0, 1e-12)
    for array, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert_array_equal(array, copy)


def refuse(*args, **kwargs):
    raise AssertionError("X was made dense")


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows_are_never_made_dense(monkeypatch, form):
    # 8 GB as a dense matrix.
    n, d = 5000, 200_000
    rng = np.random.default_rng(2)
    columns = rng.integers(0, d, 3 * n)
    X = form((rng.random(3 * n), columns, np.arange(0, 3 * n + 1, 3)), shape=(n, d))
    few = X[:2]
    used = np.unique(few.indices)
    small = few[:, used].toarray()
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    scaling = Scaling.fit(X)
    layout = Layout(d, 2, 2)
    theta = rng.normal(size=layout.size)
    logits = forward(theta, X, layout, scaling)
    assert logits.shape == (n, 2)
    # The first rows by hand: the columns they use, the rest as a shift.
    views = layout.views(theta)
    shift = -(scaling.mean / scaling.scale) @ views["E"] + views["b_E"]
    z = small @ (views["E"] / scaling.scale[:, None])[used] + shift
    h = sigmoid((z - z.mean(1, keepdims=True)) / (z.std(1, keepdims=True) + 1e-10))
    z = h @ views["L1"] + views["b_L1"]
    h = sigmoid((z - z.mean(1, keepdims=True)) / (z.std(1, keepdims=True) + 1e-10))
    assert_allclose(logits[:2], h @ views["Dec"] + views["b_D"], 0, 1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_constant_pre_activations_are_finite(form, dtype):
    layout, thetas, X = make()
    for name in ("E", "b_E", "L1", "b_L1"):
        view = layout.views(thetas)[name]
        view[:] = view[..., :1]  # the same in every embedding dimension
    logits = forward(thetas, form(X), layout, dtype=dtype)
    views = layout.views(thetas)
    assert np.isfinite(logits).all()
    # Standardised to 0, so that each unit is ½.
    expected = views["Dec"].sum(axis=1) / 2 + views["b_D"]
    assert_allclose(logits, np.repeat(expected[:, None], 9, axis=1), 1e-4)


def test_zero_weights_give_the_last_bias():
    layout, thetas, X = make()
    thetas[:] = 0
    layout.views(thetas)["b_D"][:] = [1, -2, 3]
    expected = np.broadcast_to([1.0, -2, 3], (3, 9, 3))
    assert_array_equal(forward(thetas, X, layout), expected)


@pytest.mark.parametrize("block_rows", [1, 4, 9, 1024])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_blocks_of_rows(form, block_rows):
    layout, thetas, X = make()
    found = forward(thetas, form(X), layout, block_rows=block_rows)
    assert_allclose(found, forward(thetas, form(X), layout), 0, 1e-13)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_no_rows_and_no_candidates(form):
    layout, thetas, X = make()
    assert forward(thetas, form(X[:0]), layout).shape == (3, 0, 3)
    assert forward(thetas[:0], form(X), layout).shape == (0, 9, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_inputs_are_left_alone(form, dtype):
    layout, thetas, X = make()
    X, thetas = form(X.astype(dtype)), thetas.astype(dtype)
    scaling = Scaling.fit(X)
    data = X.data if sp.issparse(X) else X
    arrays = [data, thetas, scaling.mean, scaling.scale]
    before = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    logits = forward(thetas, X, layout, scaling, dtype=dtype)
    assert np.isfinite(logits).all()
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("d", [4, 6])
def test_wrong_number_of_features(form, d):
    layout, thetas, _ = make(d=5)
    with pytest.raises(ValueError, match=f"X must have 5 features, got {d}"):
        forward(thetas, form(np.ones((2, d))), layout)


def test_wrong_length_of_theta():
    layout, thetas, X = make()
    with pytest.raises(ValueError, match="theta must have"):
        forward(thetas[:, 1:], X, layout)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_nan_weight_stays_in_its_candidate(form):
    layout, thetas, X = make()
    expected = forward(thetas, form(X), layout)
    layout.views(thetas)["E"][1, 2, 2] = np.nan
    found = forward(thetas, form(X), layout)
    assert np.isnan(found[1]).all()
    assert_allclose(found[[0, 2]], expected[[0, 2]], 0, 1e-13)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_blocks_are_cut_from_the_same_rows(form):
    layout, thetas, X = make()
    rows = Rows.from_features(form(X), None, np.float64)
    weights = Weights.from_thetas(thetas, layout, rows)
    assert (rows.n_rows, weights.n_candidates) == (9, 3)
    expected = forward(thetas, form(X), layout)
    assert_allclose(block_logits(weights, rows, 2, 7), expected[:, 2:7], 0, 1e-13)
    assert block_logits(weights, rows, 4, 4).shape == (3, 0, 3)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("rows", [[], [4], [8, 0, 3, 3]], ids=str)
def test_some_rows_alone(form, rows):
    _, _, X = make()
    X = np.where(X > 0, X, 0)
    rows = np.array(rows, dtype=np.int64)
    scaling = Scaling.fit(X)
    taken = Rows.from_features(form(X), scaling).take(rows)
    expected = Rows.from_features(form(X[rows]), scaling)
    assert taken.n_rows == expected.n_rows == len(rows)
    assert taken.scaling is scaling
    if taken.csr is None:
        assert_array_equal(taken.dense, expected.dense)
    else:
        for found, wanted in zip(taken.csr, expected.csr, strict=True):
            assert_array_equal(found, wanted)

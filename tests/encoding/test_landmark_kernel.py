"""Features of kernels: what they are, and whatever rows may hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import laplacian_kernel

from clml.encoding import (
    FittedKernel,
    GaussianKernel,
    LaplaceKernel,
    Quantiles,
    Robust,
    Standardized,
)


def rows(n=60, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_products_are_those_of_the_kernel():
    """With every row a landmark nothing is approximated."""
    X = rows()
    fitted = GaussianKernel(Standardized(), width=0.7).fit(X)
    Z = Standardized().fit(X).apply(X).astype(np.float64)
    distances = ((Z[:, None] - Z) ** 2).sum(axis=2)
    median = np.median(distances[distances > 0])
    assert fitted.gamma == pytest.approx(0.7 / median, rel=1e-5)
    features = fitted.apply(X).astype(np.float64) / 16
    assert_allclose(features @ features.T, np.exp(-fitted.gamma * distances), atol=2e-3)


def test_few_landmarks_are_those_of_scikit_learn():
    X = rows()
    fitted = GaussianKernel(Standardized(), n_landmarks=15).fit(X)
    assert fitted.landmarks.shape == (15, 4)
    Z = Standardized().fit(X).apply(X).astype(np.float64)
    oracle = Nystroem(gamma=fitted.gamma, n_components=15).fit(fitted.landmarks)
    expected = oracle.transform(Z)
    features = fitted.apply(X).astype(np.float64) / 16
    # Features of the two are turned against each other.
    assert_allclose(features @ features.T, expected @ expected.T, atol=2e-3)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_rows_are_as_dense_ones(form):
    X = (rows(80, 12) > 0.8).astype(float)
    sparse = GaussianKernel(n_landmarks=30).fit(form(X))
    dense = GaussianKernel(n_landmarks=30).fit(X)
    assert_allclose(sparse.apply(form(X)), dense.apply(X), atol=1e-3)
    assert isinstance(sparse.apply(form(X)), np.ndarray)


def test_rows_do_not_depend_on_each_other():
    X = rows(300)
    fitted = GaussianKernel().fit(X)
    assert_allclose(fitted.apply(X)[7:9], fitted.apply(X[7:9]), atol=1e-4)
    assert fitted.apply(X[:0]).shape == (0, fitted.n_columns)


def test_rows_that_repeat_and_constant_columns():
    X = np.repeat(rows(10), 6, axis=0)
    X[:, 2] = 5.0
    fitted = GaussianKernel().fit(X)
    assert fitted.n_columns <= 10
    assert np.isfinite(fitted.apply(X)).all()
    nothing = GaussianKernel().fit(np.ones((9, 3)))
    assert nothing.n_columns == 0
    assert nothing.apply(np.ones((9, 3))).shape == (9, 0)
    one = GaussianKernel().fit(rows(1))
    assert one.apply(rows(3)).shape == (3, one.n_columns)


def test_missing_and_huge_values_stay_numbers():
    X = rows()
    X[::7, 1] = np.nan
    X[3, 0] = 1e30
    fitted = GaussianKernel().fit(X)
    assert np.isfinite(fitted.apply(X)).all()


def test_rows_of_weight_0_are_no_landmarks():
    X = rows()
    weight = np.ones(60)
    weight[40:] = 0
    one, other = GaussianKernel().fit(X, weight), GaussianKernel().fit(X[:40])
    assert len(one.landmarks) == 40
    assert_allclose(one.apply(X), other.apply(X), atol=1e-3)


def test_state():
    X = rows()
    fitted = GaussianKernel(Quantiles(), n_landmarks=20).fit(X)
    state = fitted.state()
    assert_array_equal(FittedKernel.from_state(state).apply(X), fitted.apply(X))
    for name, value in (
        ("kind", "encoding"),
        ("version", 1),
        ("gamma", np.inf),
        ("gamma", "1"),
        ("norm", 3),
        ("norm", 1.0),
        ("norm", True),
        ("landmarks", state["landmarks"][:, :-1].copy()),
        ("landmarks", state["landmarks"].ravel()),
        ("projection", state["projection"][:-1].copy()),
        ("projection", state["projection"] * np.nan),
        ("columns", {}),
        ("more", 1),
        ("landmarks", np.full_like(state["landmarks"], 1e30)),
        ("projection", np.full_like(state["projection"], 1e30)),
    ):
        with pytest.raises(ValueError, match="state"):
            FittedKernel.from_state(state | {name: value})
    del state["columns"]
    with pytest.raises(ValueError, match="state"):
        FittedKernel.from_state(state)


def test_sparse_landmarks_are_kept_sparse():
    X = sp.csr_matrix((rows(60, 12) > 0.8).astype(float))
    fitted = GaussianKernel(n_landmarks=20).fit(X)
    assert isinstance(fitted.landmarks, sp.csr_array)
    state = fitted.state()
    loaded = FittedKernel.from_state(state)
    assert_array_equal(loaded.apply(X), fitted.apply(X))
    dense = FittedKernel.from_state(state | {"landmarks": fitted.landmarks.toarray()})
    assert_allclose(dense.apply(X), fitted.apply(X), atol=1e-5)
    beyond, huge = fitted.landmarks.copy(), fitted.landmarks.copy()
    beyond.indices[0] = 12
    huge.data[0] = 1e30
    for landmarks in (
        beyond,
        huge,
        fitted.landmarks.tocsc(),
        fitted.landmarks.astype(np.float64),
        fitted.landmarks[:, :-1],
        fitted.landmarks[:-1],
    ):
        with pytest.raises(ValueError, match="state"):
            FittedKernel.from_state(state | {"landmarks": landmarks})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_landmarks": 0}, "n_landmarks must be a whole number of at least 1, got 0"),
        ({"width": -1.0}, "width must be a number from 1e-06 to 1e.06, got -1.0"),
        ({"columns": "robust"}, "columns must be an encoding .* got 'robust'"),
        ({"columns": GaussianKernel()}, "columns must be an encoding of single"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        GaussianKernel(**settings).fit(rows())


def test_a_summary_has_no_rows():
    with pytest.raises(ValueError, match="must be fitted to rows"):
        GaussianKernel().fit_summary(None)


def test_it_is_a_value():
    one = GaussianKernel(Robust(), width=2.0)
    assert one == GaussianKernel(Robust(), width=2.0)
    assert one != GaussianKernel(Robust())
    assert one.get_params()["width"] == 2.0


def test_lists_frames_and_read_only_rows():
    pd = pytest.importorskip("pandas")
    X = rows()
    expected = GaussianKernel(n_landmarks=20).fit(X, np.ones(60)).apply(X)
    X.flags.writeable = False
    for form in (np.asarray, np.ndarray.tolist, pd.DataFrame):
        found = GaussianKernel(n_landmarks=20).fit(form(X), [1.0] * 60)
        assert_allclose(found.apply(form(X)), expected, atol=1e-6)
    GaussianKernel(n_landmarks=20).fit(sp.coo_array(X))


def test_sparse_rows_far_from_zero_are_as_dense_ones():
    X = rows() + 1000
    fitted = GaussianKernel(Standardized()).fit(sp.csr_array(X))
    assert_allclose(fitted.apply(sp.csr_array(X)), fitted.apply(X), atol=1e-3)


def test_width_is_not_that_of_rounding():
    """Most rows are one and the same: how far the others are is what counts."""
    for seed in range(5):
        X = np.repeat(rows(1, 6, seed), 200, axis=0)
        X[:10] = rows(10, 6, seed + 100)
        fitted = GaussianKernel(Quantiles()).fit(X)
        assert 1e-3 < fitted.gamma < 1e3


def of_strangers(fitted, X):
    return fitted.of_strangers(X, fitted.apply(X))


def test_a_landmark_as_if_it_were_none_by_hand():
    """What others explain of it, and nothing else: one after the other."""
    X = rows(40)
    fitted = GaussianKernel(Standardized(), n_landmarks=25, width=2.0).fit(X)
    found, features = of_strangers(fitted, X)
    assert_array_equal(np.unique(found), found)
    Z = fitted.landmarks.astype(np.float64)
    kernel = np.exp(-fitted.gamma * ((Z[:, None] - Z) ** 2).sum(axis=2))
    others = fitted.apply(X)[found].astype(np.float64) / 16
    for i, own in enumerate(features.astype(np.float64) / 16):
        rest = np.delete(np.arange(25), i)
        ridge = kernel[np.ix_(rest, rest)] + 0.01 * np.eye(24)
        explained = kernel[i, rest] @ np.linalg.solve(ridge, kernel[rest, i])
        assert own @ others[i] == pytest.approx(explained, abs=3e-3)
        # It is to all others as it was.
        assert_allclose(own @ others[rest].T, kernel[i, rest], atol=3e-3)


def test_rows_that_have_twins_are_explained_by_them():
    X = np.repeat(rows(15), 2, axis=0)
    fitted = GaussianKernel(Standardized()).fit(X)
    assert (fitted.origin.novelty < 0.02).all()
    alone = GaussianKernel(Standardized(), width=1e3).fit(rows(15))
    assert (alone.origin.novelty > 0.98).all()


def test_only_rows_that_it_was_fitted_to_are_landmarks():
    X = rows(40)
    fitted = GaussianKernel(n_landmarks=25).fit(X)
    for others in (X[::-1].copy(), X[:10], rows(40, seed=1)):
        assert of_strangers(fitted, others) is None
    loaded = FittedKernel.from_state(fitted.state())
    assert of_strangers(loaded, X) is None
    assert_array_equal(loaded.apply(X), fitted.apply(X))
    sparse = sp.csr_array((X > 1).astype(float))
    found = of_strangers(GaussianKernel(n_landmarks=25).fit(sparse), sparse)
    assert found[1].shape[0] == 25


def test_laplace_products_are_those_of_scikit_learn():
    """With every row a landmark nothing is approximated."""
    X = rows(70, 19)
    fitted = LaplaceKernel(Standardized(), width=0.7).fit(X)
    Z = Standardized().fit(X).apply(X).astype(np.float64)
    distances = cdist(Z, Z, "cityblock")
    median = np.median(distances[distances > 0])
    assert fitted.gamma == pytest.approx(0.7 / median, rel=1e-5)
    features = fitted.apply(X).astype(np.float64) / 16
    expected = laplacian_kernel(Z, gamma=fitted.gamma)
    assert_allclose(features @ features.T, expected, atol=1e-5)


def test_laplace_rows_are_the_same_bits_in_any_company():
    X = rows(300, 9)
    fitted = LaplaceKernel(n_landmarks=40).fit(X)
    assert_array_equal(fitted.apply(X)[7:9], fitted.apply(X[7:9]))
    assert fitted.apply(X[:0]).shape == (0, 40)


def test_between_rows_of_0_and_1_both_kernels_are_the_same():
    X = (rows(80, 12) > 0.8).astype(float)
    one, other = GaussianKernel().fit(X), LaplaceKernel().fit(X)
    assert one.gamma == other.gamma
    assert_allclose(other.apply(X), one.apply(X), atol=1e-4)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_laplace_kernel_of_sparse_rows(form):
    X = np.where(rows(80, 12) > 0.8, rows(80, 12), 0)
    dense, sparse = (
        LaplaceKernel(n_landmarks=30).fit(f(X)) for f in (np.asarray, form)
    )
    assert_allclose(sparse.apply(form(X)), dense.apply(X), atol=1e-3)


def test_laplace_kernel_of_repeated_missing_and_huge_rows():
    X = np.repeat(rows(10), 6, axis=0)
    X[:, 2] = 5.0
    fitted = LaplaceKernel().fit(X)
    assert fitted.n_columns <= 10
    assert LaplaceKernel().fit(np.ones((9, 3))).n_columns == 0
    X = rows()
    X[::7, 1] = np.nan
    X[3, 0] = 1e30
    assert np.isfinite(LaplaceKernel().fit(X).apply(X)).all()
    assert LaplaceKernel().fit(rows(1)).apply(rows(3)).shape[0] == 3


def test_state_of_a_laplace_kernel():
    X = rows()
    fitted = LaplaceKernel(Quantiles(), n_landmarks=20).fit(X)
    assert_array_equal(
        FittedKernel.from_state(fitted.state()).apply(X), fitted.apply(X)
    )
    with pytest.raises(ValueError, match="LaplaceKernel must be fitted to rows"):
        LaplaceKernel().fit_summary(None)
    with pytest.raises(ValueError, match="columns must be an encoding of single"):
        LaplaceKernel(GaussianKernel()).fit(X)
    assert LaplaceKernel() != GaussianKernel()

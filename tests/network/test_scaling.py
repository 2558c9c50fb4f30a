import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from clml.network import Scaling

FORMS = [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_array]


def table(seed=0, n=40):
    """Columns of all scales; shifted, mostly zero, binary, constant ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)) * [1, 1e-6, 1e6, 1, 1, 1, 0, 0]
    X += [0, 0, 0, 1e4, 0, 0, 0, 0.1]
    X[:, 4] *= rng.random(n) < 0.2
    X[:, 5] = rng.random(n) < 0.5
    return X


def of_sklearn(X, weight):
    scaler = StandardScaler(with_mean=not sp.issparse(X))
    scaler.fit(X, sample_weight=weight)
    return scaler


def test_by_hand():
    # Mean 2, deviation 1; a constant; weights as repetitions: 1, 3, 3, 3.
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    scaling = Scaling.fit(X)
    assert_array_equal(scaling.mean, [2, 5])
    assert_array_equal(scaling.scale, [1, 1])
    assert_array_equal(scaling.apply(X), [[-1, 0], [1, 0]])
    weighted = Scaling.fit(X, np.array([1.0, 3.0]))
    assert_allclose(weighted.mean, [2.5, 5])
    assert_allclose(weighted.scale, [np.sqrt(3) / 2, 1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_equals_standard_scaler(form, weighted):
    X = form(table())
    weight = np.random.default_rng(1).integers(0, 4, 40) / 2 if weighted else None
    expected = of_sklearn(X, weight)
    scaling = Scaling.fit(X, weight)
    assert_allclose(scaling.mean, expected.mean_, 1e-9, 1e-15)
    assert_allclose(scaling.scale, expected.scale_, 1e-9)
    assert scaling.mean.dtype == scaling.scale.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
@pytest.mark.parametrize("form", FORMS)
def test_other_numbers(form, dtype):
    X = np.random.default_rng(2).integers(0, 2, (30, 4)).astype(dtype)
    scaling = Scaling.fit(form(X))
    assert_allclose(scaling.mean, X.mean(axis=0, dtype=float), 1e-12)
    assert_allclose(scaling.scale, X.astype(float).std(axis=0), 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [0.1, 1.0, -12345.678])
@pytest.mark.parametrize("n", [3, 1000, 20000])
def test_constant_columns_keep_scale_1(n, value, form, weighted):
    # Whatever rounding leaves of the deviation is no scale, at any number of rows:
    # a new row that differs would be blown up by its inverse.
    X = form(np.full((n, 2), value))
    weight = np.random.default_rng(3).uniform(0.1, 2, n) if weighted else None
    assert_array_equal(Scaling.fit(X, weight).scale, 1)


@pytest.mark.parametrize("form", FORMS)
def test_small_deviations_are_kept(form):
    X = 1.0 + 1e-9 * np.random.default_rng(4).normal(size=(50, 3))
    assert_allclose(Scaling.fit(form(X)).scale, X.std(axis=0), 1e-6)


def unsorted_with_duplicates():
    """A CSR matrix that holds 3 as 1 + 2, and columns out of order."""
    data = np.array([1.0, 4.0, 2.0, 5.0])
    indices = np.array([1, 0, 1, 2])
    return sp.csr_matrix((data, indices, [0, 3, 4, 4]), shape=(3, 3))


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 0.5])])
def test_duplicate_entries_are_one_entry(weight):
    X = unsorted_with_duplicates()
    expected = Scaling.fit(np.array([[4, 3, 0], [0, 0, 5], [0, 0, 0]]), weight)
    found = Scaling.fit(X, weight)
    assert_allclose(found.mean, expected.mean)
    assert_allclose(found.scale, expected.scale)
    assert X.nnz == 4  # and X keeps its own form


def test_identity():
    X = table()
    assert_array_equal(Scaling.identity(8).apply(X), X)
    first = np.random.default_rng(5).normal(size=(2, 9, 3))
    assert_array_equal(Scaling.identity(8).fold(first), first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("population", [(), (3,)])
def test_folding_is_scaling(dtype, population):
    X = table()
    scaling = Scaling.fit(X)
    first = np.random.default_rng(6).normal(size=(*population, 9, 4)).astype(dtype)
    before = first.copy()
    folded = scaling.fold(first)
    assert folded.dtype == np.float64
    scaled = scaling.apply(X) @ first[..., :-1, :] + first[..., -1:, :]
    assert_allclose(X @ folded[..., :-1, :] + folded[..., -1:, :], scaled, 0, 1e-10)
    assert_array_equal(first, before)


@pytest.mark.parametrize("form", FORMS)
def test_fitting_leaves_the_features_alone(form):
    X = form(table())
    data = X.data if sp.issparse(X) else X
    before = data.copy()
    data.flags.writeable = False
    Scaling.fit(X, np.ones(40))
    assert_array_equal(data, before)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("exponent", [-265, -200, -101, 99, 150, 250, 306])
def test_columns_of_any_size(form, exponent, weighted):
    # A power of two as the unit changes no digit.
    X = table()[:, :6]
    X[:, 1:3] = X[:, [1, 2]] * [1e6, 1e-6]
    unit = 2.0 ** round(exponent * np.log2(10)) / 2.0**14
    weight = np.random.default_rng(1).random(40) if weighted else None
    expected, found = Scaling.fit(form(X), weight), Scaling.fit(form(X * unit), weight)
    assert_allclose(found.mean / unit, expected.mean, 1e-12, 1e-16)
    assert_allclose(found.scale / unit, expected.scale, 1e-12)
    assert_allclose(found.apply(X * unit), expected.apply(X), 1e-9, 1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_ends_of_float64(form):
    # ±1.7e308: neither the difference nor the sum of two of them is a number.
    X = np.array([[1.7e308, 5e-324, 1e-271], [-1.7e308, 0.0, 3e-271]])
    scaling = Scaling.fit(form(X))
    assert_allclose(scaling.scale, [1.7e308, 1.0, 1.0])
    assert_array_equal(scaling.mean[1:], [0.0, 1e-271])
    assert_allclose(scaling.apply(X)[:, 0], [1, -1])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_of_all_sizes_side_by_side(form):
    X = np.random.default_rng(0).normal(size=(30, 5))
    sizes = np.array([1e-200, 1e-30, 1.0, 1e30, 1e300])
    scaled = Scaling.fit(form(X * sizes)).apply(X * sizes)
    assert_allclose(scaled, Scaling.fit(X).apply(X), 1e-9)

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from clml._learners.scale_columns import ScaleNonIndicators


@parametrize_with_checks([ScaleNonIndicators()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_columns(seed):
    generator = np.random.default_rng(seed)
    return np.column_stack(
        [
            generator.integers(0, 2, 20),
            generator.normal(3, 5, 20),
            np.zeros(20),
            generator.poisson(1.0, 20),
            np.full(20, 7.0),
        ]
    )


@given(st.integers(0, 1_000))
def test_numbers_are_standardised_and_indicators_are_not(seed):
    X = make_columns(seed)
    scaled = ScaleNonIndicators().fit_transform(X)
    numbers = [k for k in range(5) if not set(X[:, k]) <= {0, 1}]
    others = [k for k in range(5) if k not in numbers]
    np.testing.assert_array_equal(scaled[:, others], X[:, others])
    np.testing.assert_allclose(
        scaled[:, numbers], StandardScaler().fit_transform(X[:, numbers]), atol=1e-12
    )


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_columns_are_scaled_alone(kind):
    X = make_columns(0)
    given = kind(X)
    scaled = ScaleNonIndicators().fit(given).transform(given)
    assert sp.issparse(scaled)
    np.testing.assert_array_equal(given.toarray(), X)
    expected = StandardScaler(with_mean=False).fit_transform(X)
    expected[:, [0, 2]] = X[:, [0, 2]]
    np.testing.assert_allclose(scaled.toarray(), expected)


def test_names_of_a_frame_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_columns(0), columns=list("abcde"))
    fitted = ScaleNonIndicators().fit(frame)
    assert fitted.get_feature_names_out().tolist() == list("abcde")


def test_nothing_to_scale():
    X = np.eye(3)
    np.testing.assert_array_equal(ScaleNonIndicators().fit_transform(X), X)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_of_any_size(kind):
    # The squares of most of these are no numbers of float64, or 0.
    sizes = np.array([1e-250, 1e-160, 1.0, 1e160, 1e300])
    X = np.random.default_rng(0).normal(2, 1, size=(20, 5))
    plain, found = (ScaleNonIndicators().fit(kind(Z)) for Z in (X, X * sizes))
    np.testing.assert_allclose(found.scale_ / sizes, plain.scale_)
    np.testing.assert_allclose(found.mean_ / sizes, plain.mean_)
    assert found.scale_[2] == plain.scale_[2]

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from clml._kernel_features import GaussianKernelFeatures


@parametrize_with_checks([GaussianKernelFeatures(n_components=20)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_rows(n=40):
    generator = np.random.default_rng(0)
    return generator.poisson(0.3, size=(n, 7)).astype(float)


def test_all_rows_as_landmarks_give_the_kernel_itself():
    X = make_rows()
    features = GaussianKernelFeatures(random_state=0).fit_transform(X)
    expected = rbf_kernel(X, gamma=1 / (X.shape[1] * X.var()))
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-6)


def test_width_is_that_of_support_vector_machines():
    X = make_rows()
    machine = SVC().fit(X, X[:, 0] > 0)
    features = GaussianKernelFeatures().fit(X)
    assert features.kernel_.gamma == pytest.approx(machine._gamma)


def test_sparse_rows_give_the_same():
    X = make_rows()
    dense, sparse = (
        GaussianKernelFeatures(10, random_state=0).fit_transform(rows)
        for rows in (X, sp.csr_array(X))
    )
    # Rounding is multiplied where landmarks hardly differ.
    np.testing.assert_allclose(sparse, dense, rtol=1e-6, atol=1e-9)


def test_fewer_landmarks_than_rows():
    features = GaussianKernelFeatures(10, random_state=0).fit(make_rows())
    assert features.transform(make_rows(3)).shape == (3, 10)
    assert len(features.get_feature_names_out()) == 10


@pytest.mark.parametrize("rows", [np.ones((5, 2)), sp.csr_array((5, 2))])
def test_constant_columns(rows):
    features = GaussianKernelFeatures(random_state=0).fit_transform(rows)
    assert np.isfinite(features).all()

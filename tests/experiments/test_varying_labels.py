import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from clml._learner_tags import takes_indicator
from clml._scores import label_scores
from clml.experiments._varying_labels import VaryingLabels

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 2.0]])
VARYING = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])


def test_labels_that_never_varied_are_certain():
    Y = np.insert(VARYING, [0, 1], [0, 1], axis=1)
    clf = VaryingLabels(KNeighborsClassifier(2)).fit(X, Y)
    own = KNeighborsClassifier(2).fit(X, VARYING).predict_proba(X)
    expected = np.column_stack([np.zeros(4), own[0][:, 1], np.ones(4), own[1][:, 1]])
    np.testing.assert_array_equal(clf.predict_proba(X), expected)
    np.testing.assert_array_equal(clf.predict(X), expected > 0.5)
    np.testing.assert_array_equal(label_scores(clf, X, 4), expected - 0.5)
    assert clf.varies_.tolist() == [False, True, False, True]


@pytest.mark.parametrize("Y", [VARYING[:, :1], np.insert(VARYING[:, :1], 0, 1, axis=1)])
def test_one_label_that_varies(Y):
    clf = VaryingLabels(DecisionTreeClassifier(random_state=0)).fit(X, Y)
    np.testing.assert_array_equal(clf.predict(X), Y)
    np.testing.assert_array_equal(label_scores(clf, X, Y.shape[1]), Y - 0.5)


def test_no_label_that_varies():
    Y = np.tile([0, 1], (4, 1))
    clf = VaryingLabels(KNeighborsClassifier()).fit(X, Y)
    np.testing.assert_array_equal(clf.predict_proba(X[:2]), Y[:2])
    assert clf.estimator_ is None


class TakesOldMatricesAlone(DecisionTreeClassifier):
    def fit(self, X, y):
        assert isinstance(X, sp.csr_matrix)
        return super().fit(X, y)

    def predict_proba(self, X):
        assert isinstance(X, sp.csr_matrix)
        return super().predict_proba(X)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_matrix])
def test_sparse_rows_are_handed_on_as_a_matrix(kind):
    clf = VaryingLabels(TakesOldMatricesAlone(random_state=0)).fit(kind(X), VARYING)
    np.testing.assert_array_equal(clf.predict(kind(X)), VARYING)


def test_the_seed_reaches_the_estimator():
    clf = VaryingLabels(DecisionTreeClassifier(), random_state=7)
    assert clone(clf).fit(X, VARYING).estimator_.random_state == 7
    assert clf.estimator.random_state is None
    assert takes_indicator(clf)


def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match=r"an indicator \(n, K\), got shape \(4,\)"):
        VaryingLabels(RidgeClassifier()).fit(X, VARYING[:, 0])

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from clml._learners.learner_tags import takes_indicator
from clml._learners.scores import label_scores
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


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_matrix, np.ndarray.tolist])
def test_an_indicator_may_be_sparse_or_a_list(kind):
    Y = np.insert(VARYING, 0, 1, axis=1)
    clf = VaryingLabels(DecisionTreeClassifier(random_state=0)).fit(X, kind(Y))
    np.testing.assert_array_equal(clf.predict(X), Y)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (VARYING[:, 0], r"an indicator of shape .*, got shape \(4,\)"),
        (VARYING[:, :0], r"at least one label, got shape \(4, 0\)"),
        (VARYING + 1, r"0 and 1 only, got the values \[1, 2\]"),
        (sp.csr_array(2 * VARYING), r"0 and 1 only, got the values \[0, 2\]"),
        (VARYING - 0.5, r"0 and 1 only, got the values \[-0.5, 0.5\]"),
        (VARYING.astype(str), r"0 and 1 only, got the values \['0', '1'\]"),
        (np.where(VARYING, np.nan, 0.0), r"0 and 1 only, got the values \[0.0, nan\]"),
        (VARYING[:3], "a row for each of the 4 rows of X, got 3 rows"),
    ],
)
def test_what_is_no_indicator_is_refused(y, told):
    clf = VaryingLabels(DecisionTreeClassifier())
    with pytest.raises(ValueError, match=f"^y must .*{told}"):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


class Fails(DecisionTreeClassifier):
    def fit(self, X, y):
        raise RuntimeError("no luck")


def test_a_failed_fit_changes_nothing():
    clf = VaryingLabels(Fails())
    with pytest.raises(RuntimeError, match="no luck"):
        clf.fit(X, VARYING)
    assert vars(clf).keys() == {"estimator", "random_state"}
    with pytest.raises(NotFittedError):
        clf.predict(X)
    clf.set_params(estimator=DecisionTreeClassifier(random_state=0)).fit(X, VARYING)
    clf.set_params(estimator=Fails())
    with pytest.raises(RuntimeError, match="no luck"):
        clf.fit(X[:, :1], 1 - VARYING)
    np.testing.assert_array_equal(clf.predict(X), VARYING)

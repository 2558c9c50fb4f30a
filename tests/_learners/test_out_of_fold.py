import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from clml import CLMLClassifier
from clml._learners.out_of_fold import (
    check_takes_weight,
    fit_learner,
    fold_logits,
    folds,
)
from clml.datasets import IterativeStratifiedKFold


def test_folds_are_those_of_the_public_splitter(small_data):
    X, Y = small_data
    expected = IterativeStratifiedKFold(5, random_state=3).split(X, Y)
    for cv in (5, None, IterativeStratifiedKFold(5, random_state=3)):
        for fold, pair in zip(folds(cv, X, Y, 3), expected, strict=False):
            np.testing.assert_array_equal(fold[0], pair[0])
            np.testing.assert_array_equal(fold[1], pair[1])
    assert len(folds(5, X, Y[:, :1], 0)) == 5


def test_folds_may_be_given_as_masks_or_pairs(small_data):
    X, Y = small_data
    test = np.arange(120) < 50
    (train, rows), _ = folds([(~test, test), (test, ~test)], X, Y)
    np.testing.assert_array_equal(rows, np.arange(50))
    np.testing.assert_array_equal(train, np.arange(50, 120))


@pytest.mark.parametrize(
    "cv, message",
    [
        (200, "cv=200 needs at least 200 rows .* got n_samples=120"),
        (ShuffleSplit(2, random_state=0), "every row into exactly one test part"),
        (list(KFold(3).split(np.zeros(120)))[:2], "got row 80 in 0 of 2"),
        ([], "got row 0 in 0 of 0"),
        ([([], np.arange(120))] * 2, "got row 0 in 2 of 2"),
        (
            [(np.arange(50, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))],
            "must not train on rows that it tests.*row 50 in .* fold 0, and 9 more",
        ),
        (
            [(np.r_[60:120, 5, 5], np.arange(60)), (np.arange(60), np.arange(60, 120))],
            "row 5 in both parts of fold 0, and 0 more",
        ),
        ([(np.arange(60), np.arange(-60, 0))], "rows from 0 to 119, got row -60"),
        ([(np.arange(60), np.arange(61, 121))], "rows from 0 to 119, got row 120"),
        ([(np.arange(60), np.ones(60, dtype=bool))], r"a mask of 120; got .*\(60,\)"),
        ([(np.ones((120, 1), dtype=bool), [0])], r"got .* the shape \(120, 1\)"),
        ([(np.arange(60.0), np.arange(60))], "got .* the type float64"),
        ([(["a"], ["b"])], "got .* the type <U1"),
    ],
)
def test_folds_that_are_not_honest(cv, message, small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match=message):
        folds(cv, X, Y, 0)


def test_weights_reach_the_last_step_of_a_pipeline(small_data):
    X, Y = small_data
    weight = np.r_[np.zeros(60), np.ones(60)]
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
    weighted = fit_learner(pipeline, X, Y, weight)
    plain = fit_learner(pipeline, X, Y)
    assert (weighted.predict(X) != plain.predict(X)).any()


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())],
    ids=lambda e: type(e).__name__,
)
def test_weights_that_no_fit_takes_are_refused(estimator):
    check_takes_weight(estimator, None)
    with pytest.raises(ValueError, match="KNeighborsClassifier takes none"):
        check_takes_weight(estimator, np.ones(3))


@pytest.mark.parametrize(
    "estimator",
    [
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2, 3]}, cv=2),
        make_pipeline(
            make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2))
        ),
    ],
    ids=lambda e: type(e).__name__,
)
def test_weights_reach_fits_within_fits(estimator, small_data):
    X, Y = small_data
    weight = np.where(np.arange(len(Y)) % 2, 1.0, 1e-9)
    plain, weighted = (fit_learner(estimator, X, Y, w) for w in (None, weight))
    assert (plain.predict(X) != weighted.predict(X)).any()


class Choosing(ClassifierMixin, BaseEstimator):
    """Takes a model of a front in its own fit."""

    def fit(self, X, y):
        self.model_ = CLMLClassifier(n_members=2, max_epochs=2, random_state=0)
        self.n_models_ = len(self.model_.fit(X, y).front_)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X):
        return self.model_.select(self.n_models_ - 1).decision_function(X)


def test_learners_that_choose_from_a_front_have_one_on_folds(small_data):
    X, Y = small_data
    fold = (np.arange(80), np.arange(80, len(X)))
    scores = fold_logits(Choosing(), X, Y, fold, None, Y.shape[1])
    alone = Choosing().fit(X[:80], Y[:80])
    assert alone.n_models_ > 1
    np.testing.assert_array_equal(scores, alone.decision_function(X[80:]))

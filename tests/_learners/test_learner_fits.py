import threading

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from clml._learners.learner_fits import Job, LearnerRows, fit_learners
from clml._learners.out_of_fold import FoldScores, fit_learner, folds
from clml._learners.scores import label_logits


def out_of_fold_logits(estimator, X, y, parts, weight=None, n_jobs=None):
    rows = LearnerRows(X, y, parts, weight)
    return fit_learners([estimator], rows, n_jobs).scores[0]


def slow_twin(estimator, X, y, parts, weight=None):
    logits = np.full(y.shape if y.ndim == 2 else (len(y), 1), np.nan)
    for train, test in parts:
        arguments = {} if weight is None else {"sample_weight": weight[train]}
        fitted = estimator.fit(X[train], y[train], **arguments)
        logits[test] = label_logits(fitted, X[test], logits.shape[1])
    return logits


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_row_is_scored_by_a_model_that_did_not_see_it(
    weighted, n_jobs, small_data
):
    X, Y = small_data
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    weight = np.linspace(0.5, 2, len(X)) if weighted else None
    parts = folds(3, X, Y, 0)
    with parallel_config(backend="threading"):  # processes take seconds to start
        found = out_of_fold_logits(tree, X, Y, parts, weight, n_jobs)
    np.testing.assert_array_equal(found, slow_twin(tree, X, Y, parts, weight))


def test_one_label(small_data):
    X, y = small_data[0], small_data[1][:, 0]
    parts = folds(StratifiedKFold(3), X, y[:, None])
    model = LogisticRegression()
    np.testing.assert_array_equal(
        out_of_fold_logits(model, X, y, parts), slow_twin(model, X, y, parts)
    )


def test_a_label_that_is_constant_in_a_fold(small_data):
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 1] = 0
    Y[7, 1] = 1
    parts = folds(4, X, Y, 0)
    logits = out_of_fold_logits(KNeighborsClassifier(3), X, Y, parts)
    assert np.isfinite(logits).all()
    assert logits[7, 1] < -6


@pytest.mark.parametrize("kind", ["sparse", "frame", "list"])
def test_features_of_any_kind(kind, small_data):
    pandas = pytest.importorskip("pandas")
    X, Y = small_data
    given = {
        "sparse": sp.csr_array(X),
        "frame": pandas.DataFrame(X),
        "list": X.tolist(),
    }[kind]
    parts = folds(3, given, Y, 0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    np.testing.assert_array_equal(
        out_of_fold_logits(tree, given, Y, parts), slow_twin(tree, X, Y, parts)
    )


def test_kernels_between_rows(small_data):
    X, y = small_data[0], small_data[1][:, 0]
    parts = folds(3, X, y[:, None], 0)
    np.testing.assert_allclose(
        out_of_fold_logits(SVC(kernel="precomputed"), X @ X.T, y, parts),
        out_of_fold_logits(SVC(kernel="linear"), X, y, parts),
        atol=1e-3,
    )


def test_a_frozen_estimator_scores_all_rows(small_data):
    X, Y = small_data
    fitted = KNeighborsClassifier(3).fit(X[:60], Y[:60])
    frozen = FrozenEstimator(fitted)
    np.testing.assert_array_equal(
        out_of_fold_logits(frozen, X, Y, [], weight=np.ones(len(X))),
        label_logits(fitted, X, 4),
    )
    assert fit_learner(frozen, X, Y) is frozen


class Undefined(KNeighborsClassifier):
    def predict_proba(self, X):
        return [np.full((len(X), 2), np.nan) for _ in range(4)]


def test_scores_that_are_not_finite_are_refused(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match=r"scores of Undefined .* got nan for row \d+"):
        out_of_fold_logits(Undefined(), X, Y, folds(2, X, Y, 0))


class Locked(KNeighborsClassifier):
    """Cannot be pickled, and be cloned all the same."""

    def __init__(self, lock=None):
        super().__init__(3)
        self.lock = lock


class Lock:
    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return self


def test_estimators_that_cannot_travel(small_data):
    X, Y = small_data
    made = folds(2, X, Y, 0)
    here = out_of_fold_logits(Locked(Lock()), X, Y, made)
    with pytest.raises(
        TypeError, match=r"^The estimator Locked cannot be sent"
    ) as told:
        out_of_fold_logits(Locked(Lock()), X, Y, made, n_jobs=2)
    assert told.value.__context__ is None
    with parallel_config("threading"):  # where nothing is sent
        there = out_of_fold_logits(Locked(Lock()), X, Y, made, n_jobs=2)
    np.testing.assert_array_equal(here, there)


def test_estimators_that_cannot_travel_to_a_cluster(small_data):
    """Of joblib's tasks nobody would hear, and the fit would wait for ever."""
    distributed = pytest.importorskip("distributed")
    X, Y = small_data
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        parallel_config("dask"),
        pytest.raises(TypeError, match="The estimator Locked cannot be sent"),
    ):
        out_of_fold_logits(Locked(Lock()), X, Y, folds(2, X, Y, 0), n_jobs=2)


def make_learners():
    linear = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    return [
        RandomForestClassifier(20, n_jobs=2, random_state=0),
        linear,
        KNeighborsClassifier(5),
    ]


def test_the_number_of_jobs_changes_no_bit(small_data):
    X, Y = small_data
    rows = LearnerRows(X, Y, folds(3, X, Y, 0))
    alone, beside = (fit_learners(make_learners(), rows, n) for n in (None, 2))
    np.testing.assert_array_equal(alone.scores, beside.scores)
    for a, b in zip(alone.fitted, beside.fitted, strict=True):
        np.testing.assert_array_equal(label_logits(a, X, 4), label_logits(b, X, 4))
    assert beside.fitted[0].n_jobs == 2


def test_jobs_of_all_learners_are_shared_out_together(small_data):
    """No learner waits for another: a slow one runs beside the next."""
    X, Y = small_data
    meeting = threading.Barrier(2, timeout=30)
    rows = LearnerRows(X, Y, [(np.arange(60), np.arange(60, 120))])

    class Waits(KNeighborsClassifier):
        def fit(self, X, y):
            if len(X) == self.n_neighbors * 60:
                meeting.wait()
            return super().fit(X, y)

    # All rows of the first, and the fold of the second, are fitted at the same time.
    with parallel_config("threading"):
        fit_learners([Waits(2), Waits(1)], rows, n_jobs=2)
    assert not meeting.broken


def test_each_job_is_told_when_it_is_done(small_data):
    X, Y = small_data
    rows = LearnerRows(X, Y, folds(2, X, Y, 0))
    heard, kept = [], {}
    known = [
        FoldScores(
            {1: np.zeros((len(rows.folds[1][1]), 4))},
            lambda fold, scores, seconds: kept.update({fold: scores}),
            {1: 5.0},
        ),
        FoldScores(),
    ]
    learners = [KNeighborsClassifier(3), KNeighborsClassifier(5)]
    found = fit_learners(learners, rows, known=known, told=heard.append)
    assert [done.job for done in heard] == [
        Job(0, 0),
        Job(0),
        Job(1, 0),
        Job(1, 1),
        Job(1),
    ]
    assert all(done.seconds > 0 for done in heard)
    assert (found.scores[0][rows.folds[1][1]] == 0).all()
    np.testing.assert_array_equal(kept[0], found.scores[0][rows.folds[0][1]])
    assert found.seconds[0] == pytest.approx(5 + sum(d.seconds for d in heard[:2]))


def passing(*seconds):
    """Return what tells that so many seconds are left, call by call."""
    left = iter(seconds)
    return lambda: next(left)


def test_learners_that_come_too_late_are_left_out(small_data):
    X, Y = small_data
    rows = LearnerRows(X, Y, folds(2, X, Y, 0))
    heard = []
    learners = [KNeighborsClassifier(k) for k in (3, 5, 7, 9)]
    # The first is asked for nothing; the second's second fold comes too late, the third
    # can be done, the last one not.
    left = passing(9.0, 0.0, 9.0, 9.0, -1.0)
    found = fit_learners(learners, rows, told=heard.append, seconds_left=left)
    assert [(d.job.learner, d.job.fold) for d in heard] == [
        (0, 0),
        (0, 1),
        (0, None),
        (1, 0),
        (2, 0),
        (2, 1),
        (2, None),
    ]
    assert found.numbers == [0, 2]
    assert [learner.n_neighbors for learner in found.fitted] == [3, 7]
    np.testing.assert_array_equal(
        found.scores[1], fit_learners(learners[2:3], rows).scores[0]
    )


def test_a_learner_that_would_take_too_long_is_not_begun_again(small_data):
    X, Y = small_data
    rows = LearnerRows(X, Y, folds(3, X, Y, 0))
    nearest = KNeighborsClassifier(3)
    frozen = FrozenEstimator(clone(nearest).fit(X, Y))
    scores = fit_learners([nearest], rows).scores[0]
    kept = {i: scores[rows.folds[i][1]] for i in range(2)}
    slow = FoldScores(kept, seconds={0: 30.0, 1: 10.0})
    for left, numbers in ((19.0, [0]), (21.0, [0, 1])):
        # A fold and all rows are to come, of ten seconds each: the first fit may have
        # waited for an import.
        found = fit_learners(
            [frozen, nearest],
            rows,
            known=[FoldScores(), slow],
            seconds_left=passing(left),
        )
        assert found.numbers == numbers


def test_the_first_learner_is_done_whatever_it_takes(small_data):
    X, Y = small_data
    rows = LearnerRows(X, Y, folds(2, X, Y, 0))
    learners = [KNeighborsClassifier(3), KNeighborsClassifier(5)]
    assert fit_learners(learners, rows, seconds_left=lambda: -1.0).numbers == [0]
    whole = fit_learners(learners[1:], rows).scores[0]
    done = FoldScores({i: whole[test] for i, (_, test) in enumerate(rows.folds)})
    known = [FoldScores(), done]
    found = fit_learners(learners, rows, known=known, seconds_left=lambda: -1.0)
    assert found.numbers == [1]


def test_what_cannot_come_back_is_fitted_here(small_data):
    class LocksItself(KNeighborsClassifier):
        def fit(self, X, y):
            self.lock_ = threading.Lock()
            return super().fit(X, y)

    X, Y = small_data
    rows = LearnerRows(X, Y, folds(2, X, Y, 0))
    (fitted,) = fit_learners([LocksItself()], rows, n_jobs=2).fitted
    assert fitted.lock_.acquire()

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from clml._out_of_fold import (
    check_takes_weight,
    fit_learner,
    folds,
    out_of_fold_logits,
)
from clml._scores import label_logits
from clml.datasets import IterativeStratifiedKFold


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

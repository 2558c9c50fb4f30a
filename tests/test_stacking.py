import pickle
import re
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from clml import LebesgueStackingClassifier, _stacking
from clml._learners.learner_fits import LearnerRows, fit_learners
from clml._learners.out_of_fold import folds
from clml._learners.scores import label_logits
from clml._maps.platt import fit_platt
from clml._maps.score_map import apply_map
from clml._maps.shares import fit_shares
from clml._stacking import default_learners
from clml.losses import RowTargets, loss_values

QUICK = {"cv": 3, "max_epochs": 4, "population_size": 8, "random_state": 0}


def make_learners():
    return [
        ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
        ("near", KNeighborsClassifier(5)),
    ]


def make_stacking(estimators=None, **changes):
    return LebesgueStackingClassifier(
        make_learners() if estimators is None else estimators, **(QUICK | changes)
    )


@pytest.fixture(scope="module")
def out_of_fold(small_data):
    X, Y = small_data
    rows = LearnerRows(X, Y, folds(3, X, Y, 0))
    found = fit_learners([learner for _, learner in make_learners()], rows)
    return np.stack(found.scores, axis=1)


def test_average_is_that_of_commensurate_logits(small_data, out_of_fold):
    X, Y = small_data
    clf = make_stacking(mapping="average").fit(X, Y)
    targets = RowTargets.from_indicator(Y)
    mean = np.zeros(Y.shape)
    for m, (_, learner) in enumerate(make_learners()):
        scale, bias = fit_platt(out_of_fold[:, m], targets)
        mean += (scale * label_logits(learner.fit(X, Y), X, 4) + bias) / 2
    np.testing.assert_allclose(clf.decision_function(X) * clf.temperature_, mean)
    assert len(clf.front_) == 1
    assert clf.n_epochs_ == 0
    assert clf.incumbent_ == 0


@pytest.mark.parametrize("mapping", ["weights", "affine"])
@pytest.mark.parametrize("shrinkage", ["auto", 1.0])
def test_front_states_what_is_near_the_losses_of_out_of_fold_scores(
    mapping, shrinkage, small_data, out_of_fold
):
    X, Y = small_data
    clf = make_stacking(mapping=mapping, shrinkage=shrinkage).fit(X, Y)
    logits = np.stack([apply_map(t, out_of_fold) for t in clf.front_.theta])
    front = clf.front_
    off = np.abs(front.losses - loss_values(Y, logits))
    assert (off <= 4 * front.standard_error).all()
    np.testing.assert_array_equal(front.theta[front.default], clf.theta_)
    assert clf.theta_.shape == (2 * 4 + 4,)


def test_strength_0_is_the_shifted_average(small_data):
    X, Y = small_data
    shifted = make_stacking(mapping="affine", shrinkage=0, calibrate=False).fit(X, Y)
    average = make_stacking(mapping="average", calibrate=False).fit(X, Y)
    np.testing.assert_allclose(
        shifted.decision_function(X), average.decision_function(X) + shifted.shift_
    )


def test_strength_0_of_weights_are_shares_that_all_labels_have(small_data, out_of_fold):
    X, Y = small_data
    clf = make_stacking(shrinkage=0).fit(X, Y)
    targets = RowTargets.from_indicator(Y)
    scale, bias = np.transpose(
        [fit_platt(out_of_fold[:, m], targets) for m in range(2)]
    )
    shares = fit_shares(out_of_fold * scale[:, None] + bias[:, None], targets)
    weights = clf.theta_[: 2 * 4].reshape(2, 4)
    np.testing.assert_allclose(weights, np.repeat((shares * scale)[:, None], 4, 1))
    np.testing.assert_allclose(clf.theta_[2 * 4 :], shares @ bias + clf.shift_)


def test_the_learner_that_knows_a_label_gets_it():
    """Two learners, each sees the feature of one label: weights tell them apart."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 2))
    Y = (X + 0.3 * generator.normal(size=X.shape) > 0).astype(int)
    learners = [(f"only{k}", FrozenEstimator(Seer(k).fit(X, Y))) for k in (0, 1)]
    clf = LebesgueStackingClassifier(
        learners, max_epochs=60, shrinkage=1.0, random_state=0
    ).fit(X, Y)
    weights = clf.theta_[:4].reshape(2, 2)
    assert weights[0, 0] > 2 * weights[1, 0]
    assert weights[1, 1] > 2 * weights[0, 1]


class Seer(DecisionTreeClassifier):
    """Knows the feature of one label and guesses the others."""

    def __init__(self, known=0):
        super().__init__()
        self.known = known

    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        self.tree_ = None
        return self

    def predict_proba(self, X):
        noise = np.random.default_rng(self.known + 10).normal(size=X.shape)
        noise[:, self.known] = X[:, self.known]
        p = 1 / (1 + np.exp(-2 * noise))
        return [np.column_stack([1 - c, c]) for c in p.T]


def test_fitted_learners_have_names(small_data):
    X, Y = small_data
    clf = make_stacking().fit(X, Y)
    assert list(clf.named_estimators_) == ["tree", "near"]
    assert clf.named_estimators_.tree is clf.estimators_[0]
    np.testing.assert_array_equal(
        clf.named_estimators_.near.predict(X),
        KNeighborsClassifier(5).fit(X, Y).predict(X),
    )
    # Those given are left as they were.
    assert not hasattr(clf.estimators[0][1], "tree_")


def test_parameters_of_named_learners(small_data):
    clf = make_stacking()
    assert clf.get_params()["tree__max_depth"] == 4
    assert "tree__max_depth" not in clf.get_params(deep=False)
    clf.set_params(tree__max_depth=2, near=GaussianNB())
    assert dict(clf.estimators)["tree"].max_depth == 2
    assert isinstance(dict(clf.estimators)["near"], GaussianNB)
    assert LebesgueStackingClassifier().get_params()["estimators"] is None
    copy = clone(make_stacking())
    assert copy.estimators[0][1] is not clf.estimators[0][1]
    grid = GridSearchCV(
        make_stacking(shrinkage=0.5), {"near__n_neighbors": [1, 9]}, cv=2
    ).fit(*small_data)
    assert grid.best_params_["near__n_neighbors"] in (1, 9)


def test_one_label(small_data):
    X, y = small_data[0], np.array(["no", "yes"])[small_data[1][:, 0]]
    clf = make_stacking().fit(X, y)
    assert clf.predict_proba(X).shape == (120, 2)
    assert clf.score(X, y) > 0.7


def test_prefit_and_frozen_learners(small_data, out_of_fold):
    X, Y = small_data
    learners = [(name, e.fit(X[:60], Y[:60])) for name, e in make_learners()]
    prefit = make_stacking(learners, prefit=True).fit(X[60:], Y[60:])
    frozen = make_stacking([(n, FrozenEstimator(e)) for n, e in learners])
    frozen.fit(X[60:], Y[60:])
    assert prefit.estimators_[0] is learners[0][1]
    np.testing.assert_array_equal(prefit.theta_, frozen.theta_)
    mixed = make_stacking([learners[0], ("near", FrozenEstimator(learners[1][1]))])
    assert mixed.fit(X, Y).predict(X).shape == Y.shape


def test_tags_are_what_all_learners_take():
    tree = ("tree", DecisionTreeClassifier())
    near = ("near", KNeighborsClassifier())
    bayes = ("bayes", OneVsRestClassifier(GaussianNB()))
    assert get_tags(make_stacking([tree])).input_tags.allow_nan
    assert not get_tags(make_stacking([tree, near])).input_tags.allow_nan
    assert get_tags(make_stacking([tree, near])).input_tags.sparse
    assert not get_tags(make_stacking([tree, bayes])).input_tags.sparse
    assert get_tags(LebesgueStackingClassifier()).input_tags.sparse
    assert get_tags(LebesgueStackingClassifier()).input_tags.allow_nan


def test_pickle(small_data):
    X, Y = small_data
    clf = make_stacking().fit(X, Y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.predict_proba(X), clf.predict_proba(X))


def test_default_learners_work(small_data, monkeypatch):
    """The stated set, smaller."""
    X, Y = small_data
    learners = default_learners(3)
    assert [learner.random_state for _, learner in learners] == [3] * 3
    assert [e.n_estimators for _, e in learners[:2]] == [300, 300]
    for _, learner in learners[:2]:
        learner.set_params(n_estimators=5)
    learners[2][1].set_params(max_epochs=3, n_members=2)
    monkeypatch.setattr(
        _stacking, "default_learners", lambda random_state=None: learners
    )
    clf = LebesgueStackingClassifier(**QUICK).fit(X, Y)
    assert clf.theta_.shape == (3 * 4 + 4,)
    assert next(iter(clf.named_estimators_)) == "forest"


def test_default_learners_of_a_generator_share_its_draw():
    learners = default_learners(np.random.RandomState(0))
    assert learners[0][1].random_state == learners[1][1].random_state
    assert isinstance(learners[0][1].random_state, int)


def test_default_learners_need_no_extra():
    """Neither PyTorch nor a boosting package is imported for them."""
    code = (
        "import sys; from clml._stacking import default_learners; default_learners();"
        "print([n for n in ('torch', 'lightgbm', 'xgboost') if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stderr


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"estimators": []}, ValueError, r"list of pairs .* got \[\]"),
        ({"estimators": [GaussianNB()]}, ValueError, "list of pairs"),
        ({"estimators": [("a", "drop")]}, TypeError, "got 'drop' for 'a'"),
        ({"estimators": make_learners()[:1] * 2}, ValueError, "not unique"),
        ({"estimators": [("cv", GaussianNB())]}, ValueError, "conflict"),
        ({"estimators": [("a__b", GaussianNB())]}, ValueError, "must not contain __"),
        ({"estimators": None, "prefit": True}, ValueError, "prefit=True needs"),
        ({"mapping": "mixing"}, ValueError, "'mapping' parameter"),
    ],
)
def test_bad_parameters(changes, error, message, small_data):
    clf = LebesgueStackingClassifier(**({"estimators": make_learners()} | changes))
    with pytest.raises(error, match=message):
        clf.fit(*small_data)


def test_weights_need_learners_that_take_them(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match="fit of KNeighborsClassifier takes none"):
        make_stacking().fit(X, Y, sample_weight=np.ones(120))
    learners = [
        ("tree", DecisionTreeClassifier(random_state=0)),
        ("near", FrozenEstimator(KNeighborsClassifier().fit(X, Y))),
    ]
    make_stacking(learners).fit(X, Y, sample_weight=np.ones(120))


def test_one_learner_is_tuned(small_data):
    """Alone, a learner keeps its decisions where nothing is better."""
    X, Y = small_data
    learner = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    clf = make_stacking([("one", learner)], mapping="average").fit(X, Y)
    np.testing.assert_array_equal(clf.predict(X), learner.fit(X, Y).predict(X))


def test_a_line_for_each_fit(small_data, capsys):
    make_stacking(shrinkage=0.5, verbose=1).fit(*small_data)
    lines = capsys.readouterr().out.splitlines()
    told = ["fold 1 of 3", "fold 2 of 3", "fold 3 of 3", "all rows"]
    expected = [f"{name}  {what}" for name in ("tree", "near") for what in told]
    for line, start in zip(lines, expected, strict=False):
        assert line.startswith(start)
    assert all(re.search(r" \d+\.\d\d s$", line) for line in lines)
    assert lines[8].startswith("shrinkage 0.5 chosen")
    make_stacking(shrinkage=0.5).fit(*small_data)
    assert capsys.readouterr().out == ""


def test_the_number_of_jobs_changes_no_bit(small_data):
    X, Y = small_data
    learners = [
        *make_learners(),
        ("forest", RandomForestClassifier(10, n_jobs=2, random_state=0)),
        ("linear", OneVsRestClassifier(LogisticRegression())),
    ]
    alone, beside = (make_stacking(learners, n_jobs=n).fit(X, Y) for n in (None, 2))
    np.testing.assert_array_equal(alone.theta_, beside.theta_)
    np.testing.assert_array_equal(alone.front_.losses, beside.front_.losses)
    np.testing.assert_array_equal(
        alone.decision_function(X), beside.decision_function(X)
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_among_learners_leaves_what_was(n_jobs, small_data):
    X, Y = small_data

    class Stopped(KNeighborsClassifier):
        def fit(self, X, y):
            raise KeyboardInterrupt

    learners = [*make_learners(), ("stopped", Stopped())]
    for keep in (False, True):
        clf = make_stacking(learners, n_jobs=n_jobs, keep_on_interrupt=keep)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, Y)
        with pytest.raises(NotFittedError):
            clf.predict(X)
    clf = make_stacking(n_jobs=n_jobs).fit(X, Y)
    before = clf.decision_function(X)
    clf.set_params(estimators=learners)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X[:, :5], Y)
    np.testing.assert_array_equal(clf.decision_function(X), before)
    assert not clf.interrupted_


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, "frame", "objects"])
def test_missing_values_are_refused_before_any_fit(make, small_data, monkeypatch):
    X, Y = small_data[0].copy(), small_data[1]
    X[3, 2] = np.nan
    if make == "frame":
        make = pytest.importorskip("pandas").DataFrame
    elif make == "objects":
        make = partial(np.array, dtype=object)
    message = (
        r"^X contains NaN, and these learners take no missing values: 'near' "
        r"\(KNeighborsClassifier\).* Those that take them: 'tree'\.$"
    )
    with monkeypatch.context() as patch:
        patch.setattr(DecisionTreeClassifier, "fit", None)
        with pytest.raises(ValueError, match=message):
            make_stacking().fit(make(X), Y)


def test_learners_that_take_missing_values(small_data):
    X, Y = small_data[0].copy(), small_data[1]
    X[::7, 2] = np.nan
    learners = [
        ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
        ("filled", make_pipeline(SimpleImputer(), KNeighborsClassifier())),
    ]
    assert make_stacking(learners).fit(X, Y).predict(X).shape == Y.shape


def test_learners_of_one_label_are_copied_for_each(small_data):
    X, Y = small_data
    linear = LogisticRegression(max_iter=1000)
    learners = [
        ("linear", linear),
        ("scaled", make_pipeline(StandardScaler(), linear)),
        ("near", KNeighborsClassifier()),
    ]
    several = [
        ("linear", OneVsRestClassifier(linear)),
        ("scaled", make_pipeline(StandardScaler(), OneVsRestClassifier(linear))),
        ("near", KNeighborsClassifier()),
    ]
    clf, same = (make_stacking(given).fit(X, Y) for given in (learners, several))
    np.testing.assert_array_equal(clf.decision_function(X), same.decision_function(X))
    assert clf.estimators[0][1] is linear
    assert isinstance(clf.named_estimators_.linear, OneVsRestClassifier)
    # One label is an ordinary target.
    one = make_stacking(learners).fit(X, Y[:, 0])
    assert isinstance(one.named_estimators_.linear, LogisticRegression)
    with pytest.raises(ValueError, match="copies LogisticRegression for each label"):
        make_stacking(learners[:1]).fit(X, Y, sample_weight=np.ones(len(Y)))


class Slow(KNeighborsClassifier):
    """Takes longer than there is time."""

    def fit(self, X, y):
        time.sleep(0.3)
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_learners_that_time_does_not_suffice_for_are_left_out(n_jobs, small_data):
    X, Y = small_data
    tree, near = make_learners()
    learners = [tree, ("slow", Slow()), ("slower", Slow(3)), near]
    clf = make_stacking(learners, max_seconds=0.5, n_jobs=n_jobs, shrinkage=0.5)
    message = r"max_seconds=0.5 is too short for . of 4 learners, .* 'slower'"
    # Threads: processes take longer to start than there is time.
    with parallel_config("threading"), pytest.warns(UserWarning, match=message):
        clf.fit(X, Y)
    assert "slower" not in clf.named_estimators_
    assert next(iter(clf.named_estimators_)) == "tree"
    assert len(clf.estimators_) == len(clf.named_estimators_)
    assert clf.predict(X).shape == Y.shape
    assert len(clf.estimators) == 4


def test_what_learners_are_worth(small_data, out_of_fold):
    X, Y = small_data
    board = make_stacking(shrinkage=0.5).fit(X, Y).leaderboard_
    own = {"tree": out_of_fold[:, 0], "near": out_of_fold[:, 1]}
    for name, losses in zip(board.names, board.losses, strict=True):
        np.testing.assert_allclose(losses, loss_values(Y, own[name]))
    assert (board.seconds > 0).all()
    assert np.isfinite(board.cost_without).all()


def test_one_learner_is_fitted_whatever_it_takes(small_data):
    X, Y = small_data
    clf = make_stacking(max_seconds=1e-9, shrinkage=0.5)
    with pytest.warns(UserWarning, match=r"for 1 of 2 learners.* out: 'near'\.$"):
        clf.fit(X, Y)
    assert list(clf.named_estimators_) == ["tree"]
    assert clf.predict(X).shape == Y.shape


def test_a_run_goes_on_with_the_learners_that_it_had(small_data, tmp_path, monkeypatch):
    X, Y = small_data

    def wrong(Y, scores):  # without a gradient: epochs follow
        return float(((scores > 0) != Y).mean())

    clf = make_stacking(
        [("tree", DecisionTreeClassifier(max_depth=4, random_state=0)), *two_more()],
        losses=("hamming", wrong),
        max_seconds=1e-9,
        checkpoint=tmp_path,
        checkpoint_every=0,
    )
    message = "2 of 3 learners"
    with pytest.warns(UserWarning, match=message):
        theta = clf.fit(X, Y).theta_
    # Now there is time enough for all, but the map is one of one learner.
    monkeypatch.setattr("clml._training.run_checkpoint.Clock.left", lambda clock: 100.0)
    with pytest.warns(UserWarning, match=message):
        np.testing.assert_array_equal(clf.fit(X, Y).theta_, theta)
    assert list(clf.named_estimators_) == ["tree"]
    assert clf.theta_.shape == (2 * 4,)


def two_more():
    return [("near", KNeighborsClassifier(5)), ("nearer", KNeighborsClassifier(1))]

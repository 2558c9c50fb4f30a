import pickle
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from clml import LebesgueTunedClassifier
from clml._learners.learner_fits import LearnerRows, fit_learners
from clml._learners.out_of_fold import folds
from clml._learners.scores import label_logits
from clml._maps.map_search import MapSearch
from clml._maps.score_map import apply_map
from clml.lebesgue import nondominated
from clml.losses import loss_values

QUICK = {"cv": 3, "max_epochs": 4, "population_size": 8, "random_state": 0}
LOSSES = ("hamming", "lrap", "micro_f1")


class Cautious(ClassifierMixin, BaseEstimator):
    """The true labels are the signs of the columns; it asks for a margin of 1."""

    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        return self

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)

    def decision_function(self, X):
        return X - 1.0


@pytest.fixture(scope="module")
def signs():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 3))
    noisy = X + 0.3 * generator.normal(size=X.shape)
    return X, (noisy > 0).astype(int)


def make_tuned(estimator=None, **changes):
    if estimator is None:
        estimator = DecisionTreeClassifier(max_depth=4, random_state=0)
    return LebesgueTunedClassifier(estimator, **(QUICK | changes))


@pytest.fixture(scope="module")
def fitted(small_data):
    return make_tuned(shrinkage=1.0, max_epochs=10).fit(*small_data)


@pytest.mark.parametrize("mapping", ["affine", "bias", "mixing", "thresholds"])
def test_it_mends_decisions(mapping, signs):
    X, Y = signs
    clf = LebesgueTunedClassifier(
        Cautious(), mapping=mapping, max_epochs=15, random_state=0
    ).fit(X, Y)
    before = loss_values(Y, Cautious().decision_function(X))
    after = loss_values(Y, clf.decision_function(X))
    assert (after[[0, 2]] < 0.6 * before[[0, 2]]).all()
    assert clf.shift_ > 0.5 * np.abs(clf.theta_[0])  # the margin, in logits
    assert min(clf.shrinkage_path_, key=clf.shrinkage_path_.get) != "identity"


def test_what_is_well_stays(signs):
    """Decisions that cannot be bettered: the identity wins and keeps them."""
    X, _ = signs
    Y = (X > 1.0).astype(int)
    clf = LebesgueTunedClassifier(Cautious(), max_epochs=5, random_state=0).fit(X, Y)
    assert (clf.shrinkage_, clf.shift_) == (0.0, 0.0)
    np.testing.assert_array_equal(clf.predict(X), Cautious().predict(X))


def test_front_states_what_is_near_the_losses_of_out_of_fold_scores(fitted, small_data):
    X, Y = small_data
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    rows = LearnerRows(X, Y, folds(3, X, Y, 0))
    scores = fit_learners([tree], rows).scores[0][:, None]
    logits = np.stack([apply_map(theta, scores) for theta in fitted.front_.theta])
    front = fitted.front_
    off = np.abs(front.losses - loss_values(Y, logits, LOSSES))
    assert (off <= 4 * front.standard_error).all()
    assert nondominated(np.delete(front.losses, front.default, axis=0)).all()
    np.testing.assert_array_equal(front.theta[front.default], fitted.theta_)
    assert front.loss_names == LOSSES


def test_it_predicts_through_the_map_of_the_refitted_estimator(fitted, small_data):
    X, Y = small_data
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y)
    expected = apply_map(fitted.theta_, label_logits(tree, X, 4)[:, None])
    np.testing.assert_allclose(
        fitted.decision_function(X), expected / fitted.temperature_
    )
    assert fitted.incumbent_ == "mean"


def wrong(Y, scores):
    return ((scores > 0) != Y).mean()


#: Losses of which one has no gradient: maps are evolved then.
EVOLVED = ("lrap", wrong)


def test_attributes(fitted, small_data):
    assert fitted.n_epochs_ == 0  # maps ascend where losses have a gradient
    assert fitted.shrinkage_ == 1.0
    assert fitted.shrinkage_path_ == {}
    assert fitted.n_labels_ == 4
    assert fitted.n_features_in_ == 8
    assert not fitted.interrupted_
    evolved = make_tuned(losses=EVOLVED, shrinkage=1.0, max_epochs=10).fit(*small_data)
    assert evolved.n_epochs_ == 10
    assert evolved.population_size_ == 8
    assert evolved.archive_losses_.shape == (80, 2)
    assert evolved.history_["mean_train"].shape == (10, 2)


def test_history_without_epochs_has_the_same_quantities(fitted, small_data):
    evolved = make_tuned(losses=("hamming", "lrap", wrong)).fit(*small_data)
    for empty in (fitted, make_tuned(mapping="thresholds").fit(*small_data)):
        assert set(empty.history_) == set(evolved.history_)
        for name, values in evolved.history_.items():
            assert empty.history_[name].shape == (0, *values.shape[1:])


def test_select(fitted, small_data):
    X, _ = small_data
    for name in LOSSES:
        member, in_doubt = fitted.front_.choice(name)
        with (
            pytest.warns(UserWarning, match="clearly better")
            if in_doubt
            else (nullcontext())
        ):
            chosen = fitted.select(name)
        assert chosen.incumbent_ == member
        np.testing.assert_array_equal(chosen.theta_, fitted.front_.theta[member])
        assert chosen.predict(X).shape == (120, 4)
    assert fitted.select("final").incumbent_ == "final"
    assert fitted.incumbent_ == "mean"


def test_thresholds_have_no_mean(small_data):
    clf = make_tuned(mapping="thresholds", shrinkage=1.0).fit(*small_data)
    assert clf.incumbent_ == clf.front_.select("geometric_mean")
    assert clf.n_epochs_ == 0
    with pytest.raises(ValueError, match="'mean'"):
        clf.select("mean")


def test_calibration_changes_no_decision(small_data):
    X, Y = small_data
    plain = make_tuned(calibrate=False).fit(X, Y)
    warm = make_tuned().fit(X, Y)
    assert plain.temperature_ == 1.0
    assert warm.temperature_ != 1.0
    np.testing.assert_array_equal(plain.predict(X), warm.predict(X))
    assert (warm.front_.temperature != 1.0).all()


def test_threads_change_nothing(fitted, small_data, monkeypatch):
    X, Y = small_data
    threaded = clone(fitted).set_params(n_jobs=2, cv=folds(3, X, Y, 0))
    monkeypatch.setattr("clml._maps.score_engine._SMALL_WORK", 0)
    with parallel_config(backend="threading"):
        threaded.fit(X, Y)
    np.testing.assert_array_equal(threaded.theta_, fitted.theta_)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0), 7], ids=str)
def test_random_states(random_state, small_data):
    clf = make_tuned(random_state=random_state).fit(*small_data)
    assert clf.predict(small_data[0]).shape == (120, 4)


def test_one_label(small_data):
    X, y = small_data[0], np.array(["no", "yes"])[small_data[1][:, 0]]
    for estimator in (LogisticRegression(max_iter=500), KNeighborsClassifier()):
        clf = make_tuned(estimator).fit(X, y)
        assert set(clf.predict(X)) == {"no", "yes"}
        assert clf.decision_function(X).shape == (120,)
        assert clf.predict_proba(X).shape == (120, 2)
        assert clf.score(X, y) > 0.7
        assert clf.estimator_.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("prefit", [False, True])
def test_an_estimator_that_was_fitted_before(prefit, small_data):
    X, Y = small_data
    inner = KNeighborsClassifier().fit(X[:60], Y[:60])
    given = inner if prefit else FrozenEstimator(inner)
    clf = make_tuned(given, prefit=prefit, cv=50, shrinkage=0.5).fit(X[60:90], Y[60:90])
    assert clf.estimator_ is given
    scores = label_logits(inner, X[60:90], 4)[:, None]
    expected = loss_values(Y[60:90], apply_map(clf.theta_, scores))
    front, own = clf.front_, clf.front_.default
    off = np.abs(front.losses[own] - expected)
    assert (off <= 3 * front.standard_error[own]).all()


def test_a_fitted_binary_estimator_keeps_its_classes(small_data):
    X, y = small_data[0], np.array(["no", "yes"])[small_data[1][:, 0]]
    inner = KNeighborsClassifier().fit(X[:60], y[:60])
    clf = make_tuned(inner, prefit=True).fit(X[60:], y[60:])
    assert clf.score(X[60:], y[60:]) > 0.7


def test_prefit_needs_a_fitted_estimator(small_data):
    with pytest.raises(NotFittedError):
        make_tuned(prefit=True).fit(*small_data)


def test_weights(small_data):
    X, Y = small_data
    weight = np.r_[np.zeros(40), np.ones(80)]
    weighted = make_tuned().fit(X, Y, sample_weight=weight)
    without = make_tuned().fit(X[40:], Y[40:])
    np.testing.assert_array_equal(weighted.theta_, without.theta_)
    np.testing.assert_array_equal(weighted.predict(X), without.predict(X))
    doubled = make_tuned(shrinkage=1.0).fit(
        X, Y, sample_weight=np.linspace(0.1, 3, 120)
    )
    plain = make_tuned(shrinkage=1.0).fit(X, Y)
    assert (doubled.theta_ != plain.theta_).any()


def test_weights_need_an_estimator_that_takes_them(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match="fit of KNeighborsClassifier takes none"):
        make_tuned(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(120))


def test_text(small_data):
    _, Y = small_data
    words = np.array(["oak", "elm", "fir", "yew"])
    X = [" ".join(["tree", *words[row == 1]]) for row in Y]
    model = make_pipeline(CountVectorizer(), DecisionTreeClassifier(random_state=0))
    clf = make_tuned(model).fit(X, Y)
    np.testing.assert_array_equal(clf.predict(X), Y)
    assert not hasattr(clf, "n_features_in_")


def test_frames(small_data):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(small_data[0], columns=list("abcdefgh"))
    Y = pandas.DataFrame(small_data[1], columns=["w", "x", "y", "z"])
    clf = make_tuned().fit(X, Y)
    assert clf.feature_names_in_.tolist() == list("abcdefgh")
    assert clf.estimator_.feature_names_in_.tolist() == list("abcdefgh")
    assert clf.label_names_.tolist() == ["w", "x", "y", "z"]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(X[list("hgfedcba")])


def test_kernels_between_rows(small_data):
    X, Y = small_data
    kernel = make_tuned(OneVsRestClassifier(SVC(kernel="precomputed")))
    assert get_tags(kernel).input_tags.pairwise
    linear = make_tuned(OneVsRestClassifier(SVC(kernel="linear")))
    a, b = kernel.fit(X @ X.T, Y), linear.fit(X, Y)
    np.testing.assert_allclose(a.predict(X @ X.T), b.predict(X))
    with pytest.raises(ValueError, match=r"for every row .* got 1 weights"):
        make_tuned(
            SVC(kernel="precomputed"),
        ).fit(X @ X.T, Y[:, 0], sample_weight=np.arange(120))


def test_tags_are_those_of_the_estimator():
    assert get_tags(make_tuned(DecisionTreeClassifier())).input_tags.allow_nan
    assert not get_tags(make_tuned(KNeighborsClassifier())).input_tags.allow_nan
    assert get_tags(make_tuned(KNeighborsClassifier())).input_tags.sparse


def test_within_scikit_learn(small_data):
    X, Y = small_data
    pipeline = make_pipeline(StandardScaler(), make_tuned(shrinkage=0.5))
    scores = cross_validate(pipeline, X, Y, cv=2, error_score="raise")
    assert scores["test_score"].shape == (2,)
    grid = GridSearchCV(
        make_tuned(shrinkage=0.5),
        {"estimator__max_depth": [1, 4], "mapping": ["bias", "affine"]},
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert grid.best_params_["estimator__max_depth"] == 4


def test_pickle_and_sparse(fitted, small_data):
    X, _ = small_data
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(sp.csr_array(X)), fitted.predict(X))


def test_more_labels_than_a_fold_knows(small_data):
    """A label with a single positive row is constant in one fold."""
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 2] = 0
    Y[11, 2] = 1
    clf = make_tuned(RandomForestClassifier(5, random_state=0)).fit(X, Y)
    assert clf.predict(X).shape == Y.shape


class Recorder:
    def __init__(self):
        self.tasks, self.models = [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.tasks.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.models.append(fitted_estimator)


@pytest.mark.parametrize(
    "losses, shrinkage, n_epochs",
    [(EVOLVED, 1.0, 3), (EVOLVED, 0.0, 3), (LOSSES, 1, 0)],
)
def test_callbacks_see_a_fitted_estimator_each_epoch(
    losses, shrinkage, n_epochs, small_data
):
    pytest.importorskip("sklearn.callback", reason="from scikit-learn 1.9 on")
    X, Y = small_data
    recorder = Recorder()
    settings = {"losses": losses, "shrinkage": shrinkage, "max_epochs": 3}
    clf = make_tuned(**settings).set_callbacks(recorder)
    clf.fit(X, Y)
    assert recorder.tasks == ["fit", *["epoch"] * n_epochs, "teardown"]
    assert [m.n_epochs_ for m in recorder.models] == [*range(1, n_epochs + 1), n_epochs]
    for model in recorder.models:
        assert model.predict(X).shape == Y.shape
    np.testing.assert_array_equal(recorder.models[-1].theta_, clf.theta_)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("when", ["choosing", "evolving", "judging"])
def test_interrupts_leave_a_model(when, keep, small_data, monkeypatch):
    X, Y = small_data

    def stop(*arguments, **settings):
        raise KeyboardInterrupt

    if when == "choosing":
        monkeypatch.setattr(MapSearch, "_learnt", stop)
        clf = make_tuned(keep_on_interrupt=keep)
    elif when == "judging":
        monkeypatch.setattr("clml._maps.map_search.cross_fitted", stop)
        clf = make_tuned(keep_on_interrupt=keep, shrinkage=1.0)
    else:
        monkeypatch.setattr("clml._training.search.Search.epoch", stop)
        clf = make_tuned(losses=EVOLVED, keep_on_interrupt=keep, shrinkage=1.0)
    if keep:
        assert clf.fit(X, Y) is clf
    else:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, Y)
    assert clf.interrupted_
    assert clf.n_epochs_ == 0
    assert clf.predict(X).shape == Y.shape
    if when == "choosing":
        np.testing.assert_array_equal(clf.predict(X), clf.estimator_.predict(X))


def test_patience_and_time_stop(small_data):
    clf = make_tuned(losses=EVOLVED, shrinkage=1.0, max_epochs=500, patience=3)
    clf.fit(*small_data)
    assert clf.n_epochs_ < 500
    clf.set_params(patience=None, max_seconds=1e-9).fit(*small_data)
    assert clf.n_epochs_ == 1


def test_without_time_no_strength_is_searched_for(small_data):
    clf = make_tuned(losses=EVOLVED, max_seconds=1e-9).fit(*small_data)
    assert (clf.shrinkage_, clf.n_epochs_) == (0.0, 1)
    assert clf.shrinkage_path_ == {}


def test_a_run_that_stops_early_judges_its_front_by_runs_as_short(small_data):
    n_calls = []

    def errors(Y, scores):
        n_calls[-1] += 1
        return float(((scores > 0) != Y).mean())

    for limits in ({"max_seconds": 1e-9}, {"max_epochs": 1}):
        n_calls.append(0)
        clf = make_tuned(losses=(errors, "lrap"), shrinkage=1.0, **limits)
        clf.fit(*small_data)
        assert clf.n_epochs_ == 1
    assert n_calls[0] == n_calls[1]


def test_callbacks_are_given_the_whole_front_at_the_end(small_data):
    callback = pytest.importorskip("sklearn.callback", reason="from 1.9 on")
    fronts = []

    class Recorder(callback.ProgressBar):
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, *arguments, **named):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            fronts.append(fitted_estimator.front_)

    clf = make_tuned().set_callbacks(Recorder()).fit(*small_data)
    np.testing.assert_array_equal(fronts[-1].losses, clf.front_.losses)
    assert np.isfinite(fronts[-1].standard_error).all()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"mapping": "weights"}, "'mapping' parameter .* must be a str among"),
        ({"shrinkage": 1.5}, "'shrinkage' parameter"),
        ({"shrinkage": "some"}, "'shrinkage' parameter"),
        ({"incumbent": "best"}, "incumbent must be one of"),
        ({"losses": ("row_log_loss",)}, "cannot be optimised"),
        ({"max_front": 3}, "max_front must be greater"),
        ({"cv": 121}, "cv=121 needs at least 121 rows"),
        ({"estimator": "forest"}, "'estimator' parameter"),
    ],
)
def test_bad_parameters(changes, message, small_data):
    with pytest.raises(ValueError, match=message):
        make_tuned().set_params(**changes).fit(*small_data)


def test_bad_rows(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make_tuned().fit(X[:5], Y[:6])
    with pytest.raises(ValueError, match="at least one label"):
        make_tuned().fit(X, Y[:, :0])
    with pytest.raises(ValueError, match="X has 7 features"):
        make_tuned().fit(X, Y).predict(X[:, :7])
    with pytest.raises(ValueError, match="Reshape your data"):
        make_tuned().fit(X, Y).predict(X[0])


def test_a_parameter_set_after_the_fit_changes_no_prediction(small_data):
    X, Y = small_data
    clf = make_tuned(max_epochs=2, shrinkage=0.5).fit(X, Y)
    before = clf.decision_function(X)
    clf.set_params(mapping="mixing")
    np.testing.assert_array_equal(clf.decision_function(X), before)


def test_folds_given_as_rows_and_weights_of_0_do_not_go_together(small_data):
    X, Y = small_data
    weight = np.r_[np.zeros(3), np.ones(len(Y) - 3)]
    cv = [
        (np.arange(40, len(Y)), np.arange(40)),
        (np.arange(40), np.arange(40, len(Y))),
    ]
    clf = make_tuned(cv=cv)
    with pytest.raises(ValueError, match=r"cv must be a number .* 3 weights"):
        clf.fit(X, Y, sample_weight=weight)


def test_text_after_numbers():
    texts = ["a b", "b c", "c d", "a d"] * 10
    Y = np.array([[1, 0], [0, 1], [0, 1], [1, 0]] * 10)
    numbers = np.random.default_rng(0).normal(size=(40, 3))
    clf = make_tuned(max_epochs=2, shrinkage=0.5).fit(numbers, Y)
    words = make_pipeline(CountVectorizer(), DecisionTreeClassifier(random_state=0))
    words.set_params(countvectorizer__token_pattern=r"\w")
    clf.set_params(estimator=words).fit(texts, Y)
    assert clf.predict(texts).shape == Y.shape

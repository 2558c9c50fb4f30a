"""A call that fails changes nothing, whenever it fails."""

import pickle
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import clml
from clml import (
    CMA,
    PAPER_SETTINGS,
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
)
from clml._learners.scale_columns import ScaleNonIndicators
from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    GaussianNBChain,
    GaussianNBRelevance,
    LIFTClassifier,
    LLSFClassifier,
    MLkNNClassifier,
    MLPRelevanceClassifier,
    MPVAEClassifier,
)
from clml.evolution import FullCMA, RankGradient, RankOneCMA, SeparableCMA
from clml.losses import Loss, list_losses, register_loss
from clml.network import PaperNetwork
from clml.persistence import load

pd = pytest.importorskip("pandas")

EVOLVED = {"n_members": 1, "search": CMA(population_size=4)}
EVOLVED |= {"network": PaperNetwork(embedding_dim=2)}
ESTIMATORS = {
    "members": CLMLClassifier(n_members=2, max_epochs=2, shrinkage=0.5, random_state=0),
    "paper": CLMLClassifier(**PAPER_SETTINGS | {"max_epochs": 2}, random_state=0),
    "evolved members": CLMLClassifier(
        **EVOLVED | {"n_members": 2, "search": clml.RankGradient(population_size=4)},
        max_epochs=2,
        shrinkage=0.5,
        random_state=0,
    ),
    "tuned": LebesgueTunedClassifier(
        KNeighborsClassifier(2), cv=2, max_epochs=2, shrinkage=0.5, random_state=0
    ),
    "stacked": LebesgueStackingClassifier(
        [
            ("tree", DecisionTreeClassifier(random_state=0)),
            ("bayes", GaussianNBRelevance()),
        ],
        cv=2,
        max_epochs=2,
        shrinkage=0.5,
        random_state=0,
    ),
    "C2AE": C2AEClassifier(n_units=4, max_epochs=1, random_state=0),
    "CLIF": CLIFClassifier(embedding_dim=4, max_epochs=1, random_state=0),
    "DELA": DELAClassifier(latent_dim=4, max_epochs=1, random_state=0),
    "MLP": MLPRelevanceClassifier(n_units=4, max_epochs=1, random_state=0),
    "MPVAE": MPVAEClassifier(n_samples=2, max_epochs=1, random_state=0),
    "chain": GaussianNBChain(),
    "relevance": GaussianNBRelevance(),
    "LIFT": LIFTClassifier(random_state=0),
    "LLSF": LLSFClassifier(),
    "neighbours": MLkNNClassifier(n_neighbors=2),
    "scaling": ScaleNonIndicators(),
}
# Moments of a fit, as shares of the calls that it makes.
MOMENTS = (0.0, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.995)


def make_rows(n_features, names, seed):
    """Rows whose every column says something of every label."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(24, n_features))
    Y = (X @ generator.normal(size=(n_features, len(names))) > 0).astype(int)
    Y[:2], Y[2:4] = 0, 1
    return X, pd.DataFrame(Y, columns=list(names))


FIRST = make_rows(3, "abc", 0)
# Of another shape and other names: no part of one model fits the other.
SECOND = make_rows(4, ("ant", "bee"), 1)


class Planned(Exception):
    pass


def traced(work, at=None, error=Planned):
    """Do work and count the library's calls; raise an error instead of one of them."""
    home = clml.__path__[0]
    count = 0

    def on_call(frame, event, argument):
        nonlocal count
        code = frame.f_code
        # What an error in a generator expression comes to depends on who closes it.
        if code.co_filename.startswith(home) and code.co_name[0] != "<":
            count += 1
            if count == at:
                sys.settrace(None)
                raise error

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request):
    """An estimator, the bytes of it fitted, and how many calls another fit makes."""
    estimator = ESTIMATORS[request.param]
    model = clone(estimator).fit(*FIRST)
    # The first time some more calls fill caches.
    for _ in range(2):
        n_calls = traced(lambda: pickle.loads(pickle.dumps(model)).fit(*SECOND))
    return pickle.dumps(model), n_calls


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_leaves_the_model_as_it_was(fitted, moment):
    before, n_calls = fitted
    model = pickle.loads(before)
    before = pickle.dumps(model)
    at = 1 + int(moment * n_calls)
    with pytest.raises(Planned):
        traced(lambda: model.fit(*SECOND), at)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_leaves_one_of_the_two_models(fitted, moment, tmp_path):
    before, n_calls = fitted
    model = pickle.loads(before)
    before = pickle.dumps(model)
    at = 1 + int(moment * n_calls)
    with pytest.raises(KeyboardInterrupt):
        traced(lambda: model.fit(*SECOND), at, KeyboardInterrupt)
    if pickle.dumps(model) == before:
        return
    X, Y = SECOND
    assert model.n_features_in_ == 4
    assert list(model.label_names_) == list(Y)
    model.save(tmp_path / "model.clml")  # which checks that everything fits together
    loaded = load(tmp_path / "model.clml")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_first_fit_that_fails_leaves_no_model(fitted):
    model = clone(pickle.loads(fitted[0]))
    with pytest.raises(Planned):
        traced(lambda: model.fit(*SECOND), fitted[1] // 2)
    assert not [name for name in vars(model) if name.endswith("_")]


def failing_loss(n_calls):
    """A loss that raises when it has been called so often."""
    calls = []

    def loss(Y, scores):
        calls.append(None)
        if len(calls) == n_calls:
            raise Planned
        return float((Y != (scores > 0)).mean())

    return loss


def test_a_checkpoint_that_is_refused_renames_nothing(tmp_path):
    X, Y = FIRST
    labels = np.where(Y["a"] == 1, "yes", "no")
    clf = CLMLClassifier(max_epochs=1, n_members=2, shrinkage=0.5, random_state=0)
    clf.set_params(checkpoint=tmp_path / "states").fit(X, labels)
    clf.save(tmp_path / "before.clml")
    with pytest.raises(ValueError, match="belongs to another fit"):
        clf.fit(X, np.where(Y["b"] == 1, "bee", "ant"))
    assert set(clf.predict(X)) <= {"no", "yes"}
    clf.save(tmp_path / "after.clml")
    files = [(tmp_path / f"{name}.clml").read_bytes() for name in ("before", "after")]
    assert files[0] == files[1]


def test_a_fit_is_not_seen_before_its_end():
    """Losses are called in the middle of a fit, as other threads may."""
    X, Y = FIRST
    seen = []

    def watching(Y, scores):
        seen.append((clf.predict_proba(X).tobytes(), list(clf.label_names_)))
        return float((Y != (scores > 0)).mean())

    clf = CLMLClassifier(max_epochs=2, random_state=0, **EVOLVED).fit(X, Y)
    before = clf.predict_proba(X).tobytes()
    clf.set_params(losses=("hamming", watching))
    clf.fit(*SECOND)
    assert seen
    assert set(map(str, seen)) == {str((before, ["a", "b", "c"]))}
    assert clf.predict(SECOND[0]).shape == (24, 2)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("name", ["members", "paper", "tuned", "chain", "neighbours"])
def test_a_fit_that_ends_during_a_prediction(name, method, monkeypatch):
    """Rows are checked by the old model: it must answer, too."""
    model = clone(ESTIMATORS[name]).fit(*FIRST)
    other = clone(ESTIMATORS[name]).fit(*SECOND)
    X = FIRST[0]
    expected = getattr(model, method)(X)
    check_rows = type(model)._check_rows

    def fit_meanwhile(self, X):
        rows = check_rows(self, X)
        model.__dict__ = vars(other).copy()
        return rows

    monkeypatch.setattr(type(model), "_check_rows", fit_meanwhile)
    np.testing.assert_array_equal(getattr(model, method)(X), expected)


def test_threads_that_predict_while_another_fits():
    X, Y = FIRST
    models = [
        clone(ESTIMATORS["members"]).set_params(random_state=seed).fit(X, Y)
        for seed in (0, 1)
    ]
    known = {model.predict_proba(X).tobytes() for model in models}
    assert len(known) == 2
    clf, wrong, done = models[0], [], threading.Event()

    def predict():
        while not done.is_set():
            found = clf.predict_proba(X).tobytes()
            if found not in known:
                wrong.append(found)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for seed in (1, 0):
        clf.set_params(random_state=seed).fit(X, Y)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_parameters_that_are_set_during_a_fit_stay():
    def loss(Y, scores):
        clf.set_params(verbose=0, max_seconds=1e6)
        return float((Y != (scores > 0)).mean())

    clf = CLMLClassifier(("hamming", loss), max_epochs=1, random_state=0, **EVOLVED)
    clf.fit(*FIRST)
    assert clf.max_seconds == 1e6


@pytest.mark.parametrize(
    "settings",
    [
        EVOLVED,
        EVOLVED | {"search": clml.RankGradient(population_size=4)},
        EVOLVED | {"n_members": 2, "shrinkage": 0.5},
    ],
    ids=["cma", "rank_gradient", "members"],
)
def test_a_warm_start_that_fails_goes_on_where_it_was(settings):
    X, Y = FIRST

    def fresh():
        clf = CLMLClassifier(
            ("hamming", failing_loss(None)), max_epochs=2, warm_start=True
        )
        return clf.set_params(random_state=0, **settings).fit(X, Y)

    untroubled = fresh().fit(X, Y)
    clf = fresh()
    good = clf.losses
    clf.set_params(losses=("hamming", failing_loss(9)))
    with pytest.raises(Planned):
        clf.fit(X, Y)
    clf.set_params(losses=good).fit(X, Y)
    np.testing.assert_array_equal(clf.theta_, untroubled.theta_)


def test_a_warm_start_of_an_ascent_that_fails_goes_on_where_it_was():
    X, Y = FIRST
    clf = clone(ESTIMATORS["members"]).set_params(warm_start=True)
    untroubled = clone(clf).fit(X, Y).fit(X, Y)
    n_calls = traced(lambda: clone(clf).fit(X, Y))
    clf.fit(X, Y)
    with pytest.raises(Planned):
        traced(lambda: clf.fit(X, Y), n_calls // 2)
    clf.fit(X, Y)
    np.testing.assert_array_equal(clf.theta_, untroubled.theta_)


@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        (CLMLClassifier(), {"max_epochs": 3, "bogus": 1}),
        (GaussianNBChain(), {"var_smoothing": 3.0, "bogus": 1}),
        (
            LebesgueTunedClassifier(ExtraTreesClassifier()),
            {"cv": 3, "estimator__max_depth": 3, "estimator__bogus": 1},
        ),
        (
            LebesgueTunedClassifier(
                make_pipeline(StandardScaler(), LogisticRegression())
            ),
            {
                "cv": 3,
                "estimator__logisticregression__C": 3.0,
                "estimator__steps": [("a", StandardScaler())],
                "estimator__standardscaler__bogus": 1,
            },
        ),
        (
            LebesgueStackingClassifier(
                [("tree", DecisionTreeClassifier()), ("bayes", GaussianNBChain())]
            ),
            {
                "tree": ExtraTreesClassifier(),
                "bayes__var_smoothing": 3.0,
                "bayes__bogus": 1,
            },
        ),
    ],
)
def test_parameters_are_set_all_or_none(estimator, params):
    before = str(estimator.get_params())
    objects = {k: id(v) for k, v in estimator.get_params().items() if "__" not in k}
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(**params)
    assert str(estimator.get_params()) == before
    for name, value in estimator.get_params().items():
        assert objects.get(name, id(value)) == id(value)


@pytest.mark.parametrize("kind", [RankOneCMA, SeparableCMA, FullCMA, RankGradient])
@pytest.mark.parametrize("order", [[0, 0, 1, 2], [0, 1], "best", [0.5, 1, 2, 3], None])
def test_a_strategy_that_is_told_nonsense_is_as_it_was(kind, order):
    twins = [kind(np.zeros(3), 0.5, population_size=4, seed=0) for _ in range(2)]
    for strategy in twins:
        strategy.ask()
    with pytest.raises((TypeError, ValueError)):
        twins[0].tell(order)
    for strategy in twins:
        strategy.ask()
        strategy.tell([3, 1, 0, 2])
    np.testing.assert_array_equal(twins[0].ask(), twins[1].ask())


def test_a_loss_that_cannot_be_registered_leaves_the_registry():
    class Nameless(Loss):
        name = ""

    before = list_losses()
    for bad in (Nameless(), "hamming", None, object()):
        with pytest.raises((TypeError, ValueError)):
            register_loss(bad)
    assert list_losses() == before

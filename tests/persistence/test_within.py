"""What files hold, however deep: no places, no threads without number, no disguises."""

import copy
import inspect
from functools import cached_property
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.cluster import OPTICS, FeatureAgglomeration, KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Bunch, all_estimators

import clml
from clml import CLMLClassifier, LebesgueStackingClassifier, LebesgueTunedClassifier
from clml._learners.scale_columns import ScaleNonIndicators
from clml._support.machine import PLACES
from clml.baselines import (
    GaussianNBRelevance,
    MLkNNClassifier,
    MLPRelevanceClassifier,
)
from clml.network import PaperNetwork
from clml.persistence import _within, load, save
from clml.persistence._within import check_estimator, check_within, settle
from clml.persistence.skops import dump_foreign, load_foreign

pytest.importorskip("skops.io", reason="other learners are kept by skops")

CLUSTER = "tcp://127.0.0.1:1"
MANY = 20_000


def clml_there():
    return CLMLClassifier(client=CLUSTER, checkpoint="/somewhere", n_jobs=MANY)


WRAPPED = {
    "plain": lambda: clml_there(),
    "pipeline": lambda: make_pipeline(StandardScaler(), clml_there(), memory="/cache"),
    "frozen": lambda: FrozenEstimator(clml_there()),
    "one vs rest": lambda: OneVsRestClassifier(clml_there(), n_jobs=MANY),
    "multi-output": lambda: MultiOutputClassifier(clml_there(), n_jobs=MANY),
    "bagging": lambda: BaggingClassifier(clml_there(), n_jobs=MANY),
    "voting": lambda: VotingClassifier([("a", clml_there())], n_jobs=MANY),
    "union": lambda: Pipeline(
        [
            ("u", FeatureUnion([("p", make_pipeline("passthrough", memory="/c"))])),
            ("c", clml_there()),
        ]
    ),
    "columns": lambda: make_pipeline(
        ColumnTransformer([("s", make_pipeline(StandardScaler(), memory="/c"), [0])]),
        clml_there(),
    ),
    "tuned": lambda: LebesgueTunedClassifier(clml_there(), checkpoint="/somewhere"),
    "stacked": lambda: LebesgueStackingClassifier(
        [("a", make_pipeline(clml_there(), memory="/cache"))], n_jobs=MANY
    ),
    "grid": lambda: GridSearchCV(
        make_pipeline(clml_there(), memory="/cache"),
        {"clmlclassifier": [clml_there()]},
        pre_dispatch="print('harm')",
        n_jobs=MANY,
    ),
}


def assert_of_this_machine(value):
    found = 0
    for node in _within.objects_within(value):
        attributes = getattr(node, "__dict__", {})
        for name in PLACES:
            found += name in attributes
            assert attributes.get(name) is None
        for name in ("n_jobs", "n_threads", "_n_threads"):
            assert (attributes.get(name) or 1) <= joblib.cpu_count()
        assert "harm" not in str(attributes.get("pre_dispatch"))
    assert found


@pytest.mark.parametrize("name", WRAPPED)
def test_no_place_and_no_crowd_comes_out_of_a_file(name, tmp_path):
    learner = WRAPPED[name]()
    assert_of_this_machine(load_foreign(dump_foreign(learner)))
    model = LebesgueTunedClassifier(learner)
    save(model, tmp_path / "model")
    assert_of_this_machine(load(tmp_path / "model"))


def test_places_in_fitted_attributes(small_data, tmp_path):
    X, Y = small_data
    small = {"network": PaperNetwork(embedding_dim=2), "max_epochs": 2}
    small |= {"n_members": 1, "search": "cma"}
    learner = make_pipeline(StandardScaler(), CLMLClassifier(**small), memory=None)
    model = LebesgueTunedClassifier(learner, max_epochs=2, cv=2, shrinkage=1.0)
    model.fit(X, Y)
    model.estimator_.memory = str(tmp_path)
    model.estimator_[-1].set_params(client=CLUSTER, checkpoint=str(tmp_path))
    model.estimator_[-1].hidden_ = [{"deep": (clml_there(),)}]
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert_of_this_machine(found)
    assert np.array_equal(found.predict(X), model.predict(X))


def test_a_refit_neither_connects_nor_caches(small_data, tmp_path):
    X, Y = small_data
    small = {"network": PaperNetwork(embedding_dim=2), "max_epochs": 2}
    small |= {"n_members": 1, "search": "cma"}
    inner = CLMLClassifier(client=CLUSTER, **small)
    learner = make_pipeline(StandardScaler(), inner, memory=str(tmp_path / "cache"))
    model = LebesgueTunedClassifier(learner, max_epochs=2, cv=2, shrinkage=1.0)
    save(model, tmp_path / "model")
    load(tmp_path / "model").fit(X, Y).predict(X)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("place", ["/cache", Path("/cache"), b"/cache", object()])
def test_places_of_any_type(place):
    for kind in (FeatureAgglomeration, OPTICS):
        estimator = kind(memory=place)
        settle(estimator)
        assert estimator.memory is None


def test_what_an_honest_user_chose_stays():
    chosen = make_pipeline(
        TfidfVectorizer(token_pattern=r"\w", encoding="latin-1"),
        RandomForestClassifier(n_jobs=-1, criterion="entropy", class_weight="balanced"),
        verbose=True,
    )
    found = load_foreign(dump_foreign(chosen))
    assert str(found.get_params()) == str(chosen.get_params())


@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [
        (None, None),
        (1, 1),
        (-1, -1),
        (-5, -5),
        (MANY, joblib.cpu_count()),
        (2**70, joblib.cpu_count()),
        ("many", None),
        (2.5, None),
    ],
)
def test_threads(n_jobs, expected):
    forest = RandomForestClassifier(n_jobs=n_jobs)
    settle(forest)
    assert forest.n_jobs == expected


@pytest.mark.parametrize("kind", [MLPRelevanceClassifier, MLkNNClassifier])
def test_threads_of_our_own_models(kind, small_data, tmp_path):
    X, Y = small_data
    settings = {"max_epochs": 1} if kind is MLPRelevanceClassifier else {}
    model = kind(**settings).fit(X, Y).set_params(n_jobs=MANY)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert found.n_jobs == joblib.cpu_count()
    assert np.array_equal(found.predict(X), model.set_params(n_jobs=1).predict(X))


def test_threads_that_are_no_parameter(small_data):
    model = KMeans(2, n_init=1).fit(small_data[0])
    for value in (MANY, -3, 0):
        model._n_threads = value
        found = load_foreign(dump_foreign(model))
        assert 1 <= found._n_threads <= joblib.cpu_count()
        assert len(found.predict(small_data[0])) == len(small_data[0])


# --- refused ---------------------------------------------------------------------


@pytest.mark.parametrize("value", ["file", "filename"])
def test_rows_that_name_files(value):
    """Neither written nor read."""
    learner = make_pipeline(CountVectorizer(input=value), LogisticRegression())
    with pytest.raises(ValueError, match=f"CountVectorizer has input='{value}'"):
        dump_foreign(learner)
    with pytest.raises(ValueError, match=f"CountVectorizer has input='{value}'"):
        check_within(learner)


@pytest.mark.parametrize(
    "grid",
    [
        {"client": [CLUSTER]},
        [{"max_epochs": [1]}, {"max_epochs": [2], "checkpoint": ["/somewhere"]}],
        {"pipeline__memory": ["/somewhere"]},
    ],
)
def test_places_that_a_search_would_set(grid):
    with pytest.raises(ValueError, match="GridSearchCV would set"):
        check_within(GridSearchCV(CLMLClassifier(), grid))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LogisticRegression, "predict"),
        (LogisticRegression, "_parameter_constraints"),
        (LogisticRegression, "__sklearn_tags__"),
        (CLMLClassifier, "_logits"),
        (CLMLClassifier, "fit"),
        (TfidfVectorizer, "idf_"),
    ],
)
def test_attributes_that_hide_what_a_class_does(kind, name):
    estimator = kind()
    vars(estimator)[name] = np.exp
    for check in (check_within, check_estimator):
        with pytest.raises(ValueError, match=f"cannot have the attribute '{name}'"):
            check(estimator)


def nested(depth, wrap):
    estimator = CLMLClassifier()
    for _ in range(depth):
        estimator = wrap(estimator)
    return estimator


@pytest.mark.parametrize(
    "wrap",
    [
        make_pipeline,
        BaggingClassifier,
        LebesgueTunedClassifier,
        lambda inner: LebesgueStackingClassifier([("a", inner), ("b", inner)]),
    ],
)
def test_estimators_that_are_nested_too_deep(wrap, tmp_path):
    """To show one would not end, nor to say what is wrong with it."""
    learner = nested(3, wrap)
    save(LebesgueTunedClassifier(learner), tmp_path / "model")
    repr(load(tmp_path / "model"))
    with pytest.raises(ValueError, match="nested too deep"):
        check_within(nested(40, wrap))
    with pytest.raises(ValueError, match="nested too deep"):
        save(LebesgueTunedClassifier(nested(12, wrap)), tmp_path / "model")


def test_a_tower_of_fitted_stacks(small_data, tmp_path):
    """Each predicts with eight times the one below it."""
    X, Y = small_data
    learners = [(f"n{i}", GaussianNBRelevance()) for i in range(8)]
    model = LebesgueStackingClassifier(learners, max_epochs=2, cv=2, shrinkage=1.0)
    model.fit(X, Y)
    save(model, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(X), model.predict(X))
    for _ in range(20):
        held, model = [model] * 8, copy.copy(model)
        model.estimators_ = held
        model.named_estimators_ = Bunch(
            **{f"n{i}": each for i, each in enumerate(held)}
        )
    save(model, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 2**20
    with pytest.raises(ValueError, match=r"its \d+ objects are held [\d,]+ times"):
        load(tmp_path / "model")


def test_an_estimator_that_holds_itself():
    pipeline = make_pipeline(StandardScaler())
    pipeline.steps.append(("again", pipeline))
    with pytest.raises(ValueError, match="nested too deep"):
        check_within(pipeline)


def test_objects_of_ours_that_are_no_part_of_models(tmp_path):
    from clml.persistence.checkpoint import Checkpoint

    estimator = LogisticRegression()
    estimator.more_ = [Checkpoint(tmp_path, 0, {})]
    with pytest.raises(ValueError, match="Checkpoint is no part of a model"):
        check_within(estimator)


def test_what_is_not_saved_is_taken_away():
    estimator = CLMLClassifier()
    estimator._search = object()
    estimator._skl_callbacks = [print]
    check_within(make_pipeline(estimator))
    assert not hasattr(estimator, "_search")
    assert not hasattr(estimator, "_skl_callbacks")


def test_what_is_computed_once_is_computed_here(fitted):
    """A file could say where weights stand, and have others read."""
    model = copy.deepcopy(fitted)
    names = [
        name
        for name, value in vars(type(model.layout_)).items()
        if isinstance(value, cached_property)
    ]
    assert "shapes" in names
    for name in names:
        vars(model.layout_)[name] = ((10**9, 10**9),)
    check_within(make_pipeline(model))
    assert model.layout_.shapes == fitted.layout_.shapes


@pytest.mark.parametrize("name", ["mean_", "scale_"])
def test_scales_are_numbers(name, small_data):
    scale = ScaleNonIndicators().fit(small_data[0])
    check_within(scale)
    getattr(scale, name)[0] = np.nan
    with pytest.raises(ValueError, match=f"{name} is not finite"):
        check_within(scale)


def test_random_states_beyond_their_key():
    random = np.random.RandomState(0)
    state = random.get_state(legacy=False)
    check_within(RandomForestClassifier(random_state=random))
    state["state"]["pos"] = 10**6
    random.set_state(state)
    with pytest.raises(ValueError, match="not one of its states"):
        check_within(RandomForestClassifier(random_state=random))
    generator = np.random.Generator(np.random.MT19937(0))
    check_within([generator, generator.bit_generator, np.random.default_rng(0)])


# --- estimators of scikit-learn --------------------------------------------------


def made(kind):
    """Return an estimator of a class, with estimators where it must be given some."""
    required = {
        name: LogisticRegression()
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind != parameter.VAR_POSITIONAL
    }
    return kind(**required)


@pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")
def test_defaults_of_scikit_learn_stay():
    kinds = [kind for _, kind in all_estimators()]
    assert len(kinds) > 150
    for kind in kinds:
        estimator = made(kind)
        before = dict(vars(estimator))
        settle(estimator)
        check_estimator(estimator)
        assert vars(estimator) == before, kind


def test_every_text_that_scikit_learn_takes_is_known():
    """One that a new version brings is either free or reset: somebody has to say."""
    free = {
        name
        for _, kind in all_estimators()
        for name, allowed in getattr(kind, "_parameter_constraints", {}).items()
        if name in kind._get_param_names() and str in list(allowed)
    }
    reset = {"memory", "pre_dispatch"}
    assert reset <= free
    assert free - reset <= _within._FREE_TEXTS


def test_functions_of_numpy_may_be_there(small_data):
    learner = make_pipeline(FunctionTransformer(np.abs), LogisticRegression())
    learner.fit(small_data[0], small_data[1][:, 0])
    found = load_foreign(dump_foreign(learner))
    assert np.array_equal(found.predict(small_data[0]), learner.predict(small_data[0]))


def test_public_estimators_keep_their_defaults():
    for name in clml.__all__:
        kind = getattr(clml, name)
        if hasattr(kind, "fit"):
            estimator = made(kind)
            before = dict(vars(estimator))
            settle(estimator)
            assert vars(estimator) == before

import json
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from clml._learners.scores import label_scores
from clml._stacking import default_learners
from clml.baselines import CLIFClassifier
from clml.experiments._methods import (
    MethodSpec,
    as_json,
    build_estimator,
    canonical,
    check_packages,
    find_class,
    list_methods,
)
from clml.experiments._schedule import cells_of

# Registered methods of packages that the library does without.
BOOSTERS = {
    "XGBoost": "xgboost",
    "XGBoost-multi": "xgboost",
    "LightGBM": "lightgbm",
    "CatBoost": "catboost",
}
# A few trees: as many as it takes to see that the settings arrive.
FEW_TREES = {
    name: {"estimator__iterations" if name == "CatBoost" else "n_estimators": 3}
    for name in BOOSTERS
}


@pytest.mark.parametrize("name", list_methods())
def test_every_registered_method_is_built_from_json(name):
    if name in BOOSTERS:
        pytest.importorskip(BOOSTERS[name])
    method = MethodSpec.of(name)
    order = json.loads(json.dumps(method.order()))
    model = build_estimator(order, random_state=3)
    assert hasattr(model, "fit")
    clone(model)
    seeds = [
        value
        for key, value in model.get_params().items()
        if key.rpartition("__")[2] == "random_state" and value is not None
    ]
    assert set(seeds) <= {3}
    json.dumps(method.description(), allow_nan=False)


def test_wrapping_and_settings():
    method = MethodSpec.of("LogisticRegression", {"settings": {"C": 0.5}})
    model = build_estimator(method.order(), 0)
    assert [type(step).__name__ for _, step in model.steps] == [
        "ScaleNonIndicators",
        "OneVsRestClassifier",
    ]
    inner = model[-1].estimator
    assert (inner.C, inner.max_iter) == (0.5, 2000)


def test_an_estimator_inside_an_estimator():
    model = build_estimator(MethodSpec.of("Tuned-forest").order(), 5)
    assert isinstance(model.estimator, RandomForestClassifier)
    assert model.estimator.random_state == 5


def test_an_object_goes_through_a_pipe():
    given = LogisticRegression(C=2.0)
    method = MethodSpec.of("mine", {"estimator": given, "one_vs_rest": True})
    model = build_estimator(json.loads(json.dumps(method.order())), 4)
    inner = model[-1].estimator
    assert (inner.C, inner.random_state) == (2.0, 4)
    assert given.random_state is None
    assert method.description()["estimator"].endswith("LogisticRegression")


def test_a_class_of_a_plan_must_be_an_estimator():
    with pytest.raises(TypeError, match="a class with fit"):
        find_class("os:system")
    with pytest.raises(TypeError, match="a class with fit"):
        find_class("pathlib:Path")
    with pytest.raises(ModuleNotFoundError):
        find_class("no_such_module:Thing")


def test_descriptions_are_the_same_at_every_run():
    class Odd:
        pass

    value = {
        "a": np.float64(0.5),
        "b": (1, None, True),
        "c": np.arange(2),
        "d": Odd(),
        "e": sys.exit,
        "f": RandomForestClassifier(7),
    }
    found = as_json(value)
    assert found["a"] == 0.5
    assert found["b"] == [1, None, True]
    assert found["c"] == [0, 1]
    assert "0x" not in str(found["d"])
    assert found["f"]["settings"]["n_estimators"] == 7
    assert canonical(found) == canonical(as_json({**value, "d": Odd()}))


def test_registered_settings_are_those_of_the_library():
    forest = dict(default_learners())["forest"]
    registered = MethodSpec.of("RandomForest").settings
    assert forest.n_estimators == registered["n_estimators"]


@pytest.mark.parametrize(
    "settings",
    [
        {"C": np.float64(0.5), "max_iter": np.int64(7)},
        {"C": 0.5, "class_weight": {0: 1.0, 1: 2.0}},
        {"C": 0.5, "tol": float("inf")},
    ],
)
def test_settings_that_json_would_change_go_through_a_pipe(settings):
    path = "sklearn.linear_model:LogisticRegression"
    method = MethodSpec.of("m", {"estimator": path, "settings": settings})
    order = json.loads(json.dumps(method.order(), allow_nan=False))
    (model,) = (step for _, step in build_estimator(order, 0).steps[1:])
    assert {name: getattr(model, name) for name in settings} == settings
    canonical(method.description())


def test_an_estimator_among_the_settings_of_a_path():
    settings = {"estimator": RandomForestClassifier(7)}
    method = MethodSpec.of("Tuned-forest", {"settings": settings})
    order = json.loads(json.dumps(method.order(), allow_nan=False))
    assert build_estimator(order, 0).estimator.n_estimators == 7
    assert "RandomForest" in canonical(method.description())


def test_an_object_that_no_pipe_takes(monkeypatch):
    method = MethodSpec.of("mine", LogisticRegression())
    monkeypatch.setattr(method.estimator, "lock", threading.Lock(), raising=False)
    with pytest.raises(TypeError, match=r"^methods\.mine cannot be sent.*lock'"):
        method.order()


# Boosters


# scikit-learn's copies a label tell of constant ones, LightGBM of its conversions.
@pytest.mark.filterwarnings("ignore:Label")
@pytest.mark.filterwarnings("ignore:Converting data to scipy sparse")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", BOOSTERS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_boosters_cope_with_labels_that_never_vary(name, kind):
    pytest.importorskip(BOOSTERS[name])
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (60, 4)).astype(float)
    never, always = np.zeros(60, int), np.ones(60, int)
    Y = np.column_stack([never, X[:, 0] > 0, X[:, 1] > 1, always]).astype(int)
    method = MethodSpec.of(name, {"settings": FEW_TREES[name]})
    model = build_estimator(method.order(), random_state=0).fit(kind(X), Y)
    scores = label_scores(model, kind(X), 4)
    assert scores.shape == (60, 4)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(model.predict(kind(X))[:, [0, 3]], Y[:, [0, 3]])
    # What can be learnt is: positive rows score higher.
    for k in (1, 2):
        positive = Y[:, k] == 1
        assert scores[positive, k].mean() > scores[~positive, k].mean()


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_package_that_is_absent_is_named_before_anything_runs(name, monkeypatch):
    package = BOOSTERS[name]
    monkeypatch.setitem(sys.modules, package, None)
    method = MethodSpec.of(name)  # a plan may be read without
    command = "'clml[boosting]'" if package == "lightgbm" else package
    told = f"^methods.{name} needs the package {package}: pip install {command}"
    with pytest.raises(ImportError, match=told.replace("[", r"\[")):
        check_packages([MethodSpec.of("GNB-BR"), method])
    with pytest.raises(ImportError, match=f"needs the package {package}: pip install"):
        build_estimator(method.order(), 0)


def test_classes_of_other_packages_are_left_to_their_jobs():
    check_packages([MethodSpec.of("mine", "no_such_module:Thing")])


def test_presets_are_those_of_the_dataset():
    method = MethodSpec.of("CLIF", {"presets": True, "settings": {"threshold": 0.5}})
    order = json.loads(json.dumps(method.order()))
    found = build_estimator(order, 0, "cal500")[-1]
    published = CLIFClassifier.PRESETS["cal500"]
    assert published["threshold"] != 0.5
    for name, value in (published | {"threshold": 0.5}).items():
        assert getattr(found, name) == value
    plain = build_estimator(MethodSpec.of("CLIF").order(), 0, "cal500")[-1]
    assert plain.embedding_dim == CLIFClassifier().embedding_dim
    assert published["embedding_dim"] != plain.embedding_dim
    elsewhere = build_estimator(order, 0, "emotions")[-1]
    assert elsewhere.get_params() == plain.get_params()


def test_presets_make_other_jobs():
    plain, preset = MethodSpec.of("CLIF"), MethodSpec.of("CLIF", {"presets": True})
    assert "presets" not in plain.description()
    assert preset.description() == plain.description() | {"presets": True}
    described = {"datasets": None, "group": "main"}
    plan = {"test_size": 0.3, "losses": ["hamming"], "seeds": [0], "splits": 1}
    plan["datasets"] = [{"name": "cal500", "data_hash": "h"}]
    keys = [
        cells_of(plan | {"methods": [m.description() | described]})[0].key
        for m in (plain, preset)
    ]
    assert len(set(keys)) == 2


def test_presets_of_an_estimator_that_is_there_already():
    with pytest.raises(ValueError, match="presets is for classes by name"):
        MethodSpec.of("m", {"estimator": CLIFClassifier(), "presets": True})

"""Fitted attributes of tuned and stacked learners that do not fit together."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch

from clml import (
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
    ParetoFront,
)
from clml._base.multilabel import LabelClasses
from clml.baselines import GaussianNBRelevance
from clml.persistence import _objects, load
from clml.persistence._fitted import check_fitted
from clml.persistence._objects import build_dataclass

MAPPED = {"max_epochs": 2, "random_state": 0, "cv": 2, "shrinkage": 0.5}
NEAREST = KNeighborsClassifier(3)
KINDS = ("Tuned", "mixing", "thresholds", "Stacking")
NAMES = (
    "theta_ front_ temperature_ incumbent_ history_ archive_losses_ _alternatives "
    "n_epochs_ _mixing shrinkage_ shift_ shrinkage_path_ n_labels_ classes_ "
    "label_names_"
).split()


@pytest.fixture(scope="module")
def models(small_data):
    """One fitted model of each kind, by name; 4 labels and 8 features."""
    learners = [("near", NEAREST), ("bayes", GaussianNBRelevance())]
    found = {
        "Tuned": LebesgueTunedClassifier(NEAREST, **MAPPED),
        "mixing": LebesgueTunedClassifier(NEAREST, mapping="mixing", **MAPPED),
        "thresholds": LebesgueTunedClassifier(NEAREST, mapping="thresholds", **MAPPED),
        "Stacking": LebesgueStackingClassifier(learners, **MAPPED),
    }
    return {name: model.fit(*small_data) for name, model in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_what_fit_leaves_is_accepted(kind, models):
    model = models[kind]
    check_fitted(model)
    check_fitted(model.select("hamming"))
    # Thresholds are not evolved, so there is no last epoch.
    assert (set(model._alternatives) == set()) is (kind == "thresholds")


@pytest.mark.parametrize("kind", ["Tuned", "Stacking"])
@pytest.mark.parametrize("name", NAMES)
def test_missing_attributes(kind, name, models):
    model = copy.copy(models[kind])
    delattr(model, name)
    with pytest.raises(ValueError, match=rf"{name}.* is missing"):
        check_fitted(model)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, "x", [], 1j, np.zeros((0, 0))], ids=repr)
def test_values_of_other_kinds(name, value, models):
    model = copy.copy(models["Tuned"])
    setattr(model, name, value)
    with pytest.raises(ValueError, match=r"\w"):
        check_fitted(model)


def changed(**values):
    return lambda model: vars(model).update(values)


def front_of(width):
    return ParetoFront(np.ones((1, 3)), ("a", "b", "c"), np.zeros((1, width)))


def fitted_on(n_features):
    rng = np.random.default_rng(0)
    Y = np.tile([[0, 1, 0, 1], [1, 0, 1, 0]], (5, 1))
    return KNeighborsClassifier(3).fit(rng.normal(size=(10, n_features)), Y)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        # A factor and a bias for each label; K + 1 of them where labels mix.
        ("Tuned", changed(theta_=np.zeros(9)), "theta_ has shape"),
        ("Tuned", changed(theta_=np.zeros(20)), "theta_ has shape"),
        ("mixing", changed(theta_=np.zeros(8)), "theta_ has shape"),
        ("Stacking", changed(theta_=np.zeros(8)), "theta_ has shape"),
        ("Tuned", changed(_mixing=True), "theta_ has shape"),
        ("mixing", changed(_mixing=False), "theta_ has shape"),
        ("Tuned", changed(_mixing=1), "_mixing cannot be of int"),
        ("Stacking", changed(_mixing=True), "several learners are mixed"),
        ("Tuned", changed(front_=front_of(9)), "front_.theta has shape"),
        ("Tuned", changed(shift_="0"), "shift_ cannot be of str"),
        ("Tuned", changed(shrinkage_path_={0.5: "x"}), "other values than numbers"),
        ("Tuned", changed(incumbent_="knee"), "incumbent_ is 'knee'"),
        ("Tuned", changed(incumbent_=10**6), "incumbent_ is 1000000"),
        ("thresholds", changed(incumbent_="mean"), "incumbent_ is 'mean'"),
        ("Tuned", changed(_alternatives={"mean": (np.ones(8), 1.0)}), "not complete"),
        ("Tuned", changed(n_epochs_=7), "does not hold 7 epochs"),
        ("Tuned", changed(n_features_in_=9), "was fitted on 8 features"),
        ("Tuned", changed(n_features_in_=0), "there must be features"),
        ("Tuned", changed(n_features_in_="8"), "n_features_in_ cannot be of str"),
        ("Tuned", changed(estimator_=fitted_on(3)), "was fitted on 3 features"),
        ("Tuned", changed(estimator_=KNeighborsClassifier), "no fitted learner"),
        ("Tuned", changed(estimator_=None), "estimator_ is no fitted learner"),
        ("Stacking", changed(estimators_=[]), "estimators_ holds no learners"),
        ("Stacking", changed(estimators_=(1, 2)), "estimators_ cannot be of tuple"),
        ("Stacking", changed(estimators_=[1]), r"estimators_\[0\] is no fitted"),
        ("Stacking", changed(named_estimators_=Bunch()), "others than estimators_"),
        ("Stacking", changed(named_estimators_={}), "cannot be of dict"),
    ],
    ids=range(27),
)
def test_attributes_that_do_not_fit_together(kind, change, message, models):
    model = copy.copy(models[kind])
    change(model)
    with pytest.raises(ValueError, match=message):
        check_fitted(model)


def test_one_learner_less(models):
    model = copy.copy(models["Stacking"])
    model.estimators_ = model.estimators_[:1]
    model.named_estimators_ = Bunch(near=model.estimators_[0])
    with pytest.raises(ValueError, match="theta_ has shape"):
        check_fitted(model)


def test_text_has_no_features_to_count(tmp_path):
    pytest.importorskip("skops.io", reason="the pipeline is kept by skops")
    X = np.array(["red sun", "blue sea", "red sea", "blue sun"] * 5, dtype=object)
    Y = np.array([[1, 1], [0, 0], [1, 0], [0, 1]] * 5)
    words = make_pipeline(CountVectorizer(), OneVsRestClassifier(MultinomialNB()))
    model = LebesgueTunedClassifier(words, **MAPPED).fit(X, Y)
    assert not hasattr(model, "n_features_in_")
    model.save(tmp_path / "model")
    found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


def board_of(model, **changes):
    return {"leaderboard_": replace(model.leaderboard_, **changes)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {"leaderboard_": {}}, "leaderboard_ cannot be of dict"),
        (lambda m: board_of(m, names=("near", "other")), "names are not those"),
        (lambda m: board_of(m, names=["near", "bayes"]), "names are not those"),
        (lambda m: board_of(m, names=("near", 1)), "names are not those"),
        (lambda m: board_of(m, loss_names=("a", "b", "c")), "loss_names are not"),
        (lambda m: board_of(m, losses=np.ones((2, 3), int)), "losses is not an array"),
        (lambda m: board_of(m, together=np.array(["a"] * 3)), "together is not an"),
        (lambda m: board_of(m, seconds=np.array([1, np.nan])), "is not finite"),
        (lambda m: board_of(m, seconds=np.array([1, -1.0])), "is negative"),
    ],
    ids=range(9),
)
def test_leaderboards_that_are_none(change, message, models):
    model = copy.copy(models["Stacking"])
    vars(model).update(change(model))
    with pytest.raises(ValueError, match=message):
        check_fitted(model)


def test_a_leaderboard_comes_back(models, tmp_path):
    pytest.importorskip("skops")
    model = models["Stacking"]
    model.save(tmp_path / "model.clml")
    found = load(tmp_path / "model.clml")
    assert repr(found.leaderboard_) == repr(model.leaderboard_)
    assert repr(found.select("hamming").leaderboard_) == repr(model.leaderboard_)
    # Models of before have none.
    old = copy.copy(model)
    del old.leaderboard_
    check_fitted(old)


@pytest.mark.parametrize("kind", ["Tuned", "mixing", "thresholds"])
def test_only_a_stack_has_a_student(kind, models):
    model = copy.copy(models[kind])
    model.distilled_ = CLMLClassifier()
    with pytest.raises(ValueError, match="LebesgueTunedClassifier has no distilled_"):
        check_fitted(model)


def test_files_that_give_one_learner_a_student_are_refused(
    models, tmp_path, monkeypatch
):
    pytest.importorskip("skops.io", reason="the learner is kept by skops")
    model = copy.copy(models["Tuned"])
    model.distilled_ = CLMLClassifier()
    with monkeypatch.context() as patch:
        patch.setattr(_objects, "check_fitted", lambda estimator: None)
        model.save(tmp_path / "model.clml")
    with pytest.raises(ValueError, match="LebesgueTunedClassifier has no distilled_"):
        load(tmp_path / "model.clml")


@pytest.mark.parametrize("shape", ["indicator", "column", "classes"])
def test_a_student_has_the_classes_of_its_stack(shape, small_data):
    X, Y = small_data
    words = np.array(["no", "yes"])[Y[:, 0]]
    y = {"indicator": Y, "column": Y[:, :1], "classes": words}[shape]
    learners = [("tree", DecisionTreeClassifier(max_depth=2))]
    stack = LebesgueStackingClassifier(learners, distil=True, **MAPPED).fit(X, y)
    check_fitted(stack)
    own = stack.distilled_.classes_
    others = [np.array(["no", "perhaps"]), np.array([0, 1]), LabelClasses(own[:0])]
    if shape == "indicator":
        others += [LabelClasses(own[:3]), LabelClasses([*own[:3], np.array([1, 2])])]
    for classes in others:
        stack.distilled_.classes_ = classes
        with pytest.raises(ValueError, match="classes_ of distilled_ is another"):
            check_fitted(stack)
    del stack.distilled_.classes_
    with pytest.raises(ValueError, match="classes_ is missing"):
        check_fitted(stack)


def ruled(model, *rules):
    rules = (*rules, *[None] * (len(model.front_) - len(rules)))
    return changed(front_=replace(model.front_, rules=rules))


@pytest.mark.parametrize("kind", KINDS)
def test_rules_of_a_front(kind, models):
    for rule in ("at_least_one", "top_1", "top_3", "best_prefix"):
        model = copy.copy(models[kind])
        ruled(model, rule)(model)
        check_fitted(model)
    for rule in ("top_4", "top_999999999"):  # of 4 labels
        ruled(model, rule)(model)
        with pytest.raises(ValueError, match=f"front_.rules holds '{rule}'"):
            check_fitted(model)


@pytest.mark.parametrize("rules", [("top_0",), ["top_1"], (1,), (None, None), "x", 3])
def test_files_hold_rules_that_there_are(rules):
    fields = {"losses": np.ones((1, 1)), "loss_names": ("a",), "theta": np.ones((1, 8))}
    with pytest.raises(ValueError, match="rules must be"):
        build_dataclass("ParetoFront", {**fields, "rules": rules})


def test_fronts_of_files_before_rules_have_none():
    fields = {"losses": np.ones((1, 1)), "loss_names": ("a",), "theta": np.ones((1, 8))}
    assert build_dataclass("ParetoFront", fields).rules == (None,)

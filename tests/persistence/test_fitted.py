"""Fitted attributes that are missing or do not fit together."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from clml import LebesgueTunedClassifier, ParetoFront
from clml._base.multilabel import LabelClasses
from clml.baselines import (
    CLIFClassifier,
    LIFTClassifier,
    LLSFClassifier,
    MLPRelevanceClassifier,
)
from clml.baselines._mlknn import MLkNNClassifier
from clml.baselines._mlp import MLPNetwork
from clml.baselines._naive_bayes import GaussianNBChain, GaussianNBRelevance
from clml.network import Layout, Scaling
from clml.persistence._fitted import check_fitted


@pytest.fixture(scope="module")
def models(fitted, small_data):
    """One fitted model of each kind, by name."""
    found = [
        fitted,
        GaussianNBRelevance().fit(*small_data),
        GaussianNBChain().fit(*small_data),
        MLkNNClassifier(n_neighbors=3).fit(*small_data),
        LIFTClassifier(random_state=0).fit(*small_data),
        LLSFClassifier().fit(*small_data),
        MLPRelevanceClassifier(max_epochs=1, random_state=0).fit(*small_data),
    ]
    return {type(model).__name__: model for model in found}


@pytest.fixture
def members(fitted_members):
    """A copy of the model of three members."""
    return copy.copy(fitted_members)


NAMES = {
    "CLMLClassifier": (
        "theta_ front_ scaling_ layout_ temperature_ incumbent_ history_ "
        "archive_losses_ _alternatives n_epochs_"
    ),
    "GaussianNBRelevance": "estimators_ constant_",
    "GaussianNBChain": "estimators_ constant_ order_",
    "MLkNNClassifier": "training_rows_ training_labels_ log_odds_ joint_",
    "LIFTClassifier": (
        "centres_ first_centre_ coef_ intercept_ slope_ offset_ constant_"
    ),
    "LLSFClassifier": "coef_ intercept_ objective_",
    "MLPRelevanceClassifier": "network_ weights_ history_ n_epochs_",
}
ATTRIBUTES = [
    (kind, name)
    for kind, names in NAMES.items()
    for name in f"{names} n_labels_ n_features_in_ classes_ label_names_".split()
]


@pytest.mark.parametrize("kind", NAMES)
def test_what_fit_leaves_is_accepted(kind, models):
    check_fitted(models[kind])


@pytest.mark.parametrize(("kind", "name"), ATTRIBUTES)
def test_missing_attributes(kind, name, models):
    model = copy.copy(models[kind])
    delattr(model, name)
    with pytest.raises(ValueError, match=rf"{name}.* is missing"):
        check_fitted(model)


# What stands in dicts of arrays is not looked at.
NOT_DICTS = [pair for pair in ATTRIBUTES if pair[1] not in ("history_", "weights_")]


@pytest.mark.parametrize(("kind", "name"), NOT_DICTS)
@pytest.mark.parametrize(
    "value",
    [None, "x", [], {}, 1j, np.zeros((0, 0)), np.zeros(9, "U1"), sp.csr_array((0, 0))],
    ids=lambda value: type(value).__name__,
)
def test_values_of_other_kinds(kind, name, value, models):
    model = copy.copy(models[kind])
    setattr(model, name, value)
    with pytest.raises(ValueError, match=r"\w"):
        check_fitted(model)


@pytest.mark.parametrize("value", [None, "x", [], np.zeros(3)], ids=range(4))
def test_dicts_of_other_kinds(value, models):
    for kind, name in set(ATTRIBUTES) - set(NOT_DICTS):
        model = copy.copy(models[kind])
        setattr(model, name, value)
        with pytest.raises(ValueError, match=f"{name} cannot be of"):
            check_fitted(model)


def changed(**values):
    return lambda model: vars(model).update(values)


def with_model(k, **values):
    """Change attributes of the model of label k."""

    def change(model):
        model.estimators_ = list(model.estimators_)
        model.estimators_[k] = copy.copy(model.estimators_[k])
        for name, value in values.items():
            setattr(model.estimators_[k], name, value)

    return change


def with_bias(value):
    """Change a bias of a network."""

    def change(model):
        model.weights_ = {**model.weights_, "hidden0.bias": value}

    return change


def without_model(k):
    def change(model):
        model.estimators_ = [
            m if i != k else None for i, m in enumerate(model.estimators_)
        ]

    return change


N = Layout(8, 4, 2, 1).size
PAIR = (np.zeros(N, np.float32), 1.0)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("CLMLClassifier", changed(n_labels_=3), "label_names_ has shape"),
        ("CLMLClassifier", changed(n_labels_=0), "there must be"),
        ("CLMLClassifier", changed(n_features_in_=9), "scaling_.mean has shape"),
        ("CLMLClassifier", changed(n_features_in_=-1), "there must be"),
        ("CLMLClassifier", changed(classes_=LabelClasses()), "classes_ has shape"),
        ("CLMLClassifier", changed(classes_=np.arange(2)), "one label"),
        ("CLMLClassifier", changed(classes_=np.arange(3)), "classes_ has shape"),
        ("CLMLClassifier", changed(feature_names_in_=["a"]), "feature_names_in_"),
        (
            "CLMLClassifier",
            changed(feature_names_in_=np.array(["a"], object)),
            "feature_names_in_ has shape",
        ),
        ("CLMLClassifier", changed(theta_=np.zeros(N + 1)), "front_.theta has shape"),
        ("CLMLClassifier", changed(theta_=np.zeros(N, int)), "kind 'f'"),
        (
            "CLMLClassifier",
            changed(scaling_=Scaling(np.zeros(1), np.ones(1))),
            "scaling_.mean has shape",
        ),
        ("CLMLClassifier", changed(layout_=Layout(8, 4, 3, 1)), "does not fit theta_"),
        ("CLMLClassifier", changed(layout_=Layout(4, 8, 2, 1)), "does not fit theta_"),
        ("CLMLClassifier", changed(layout_=Layout(8, 4, 2, 10**15)), "does not fit"),
        ("CLMLClassifier", changed(layout_=Layout(8, True, 2, 1)), "does not fit"),
        (
            "CLMLClassifier",
            changed(front_=ParetoFront(np.ones((1, 3)), (1, 2, 3), np.zeros((1, N)))),
            "loss_names are not names",
        ),
        ("CLMLClassifier", changed(n_epochs_=7), "does not hold 7 epochs"),
        ("CLMLClassifier", changed(history_={"a": 1}), "does not hold 2 epochs"),
        ("CLMLClassifier", changed(incumbent_="knee"), "incumbent_ is 'knee'"),
        ("CLMLClassifier", changed(incumbent_=10**6), "incumbent_ is 1000000"),
        ("CLMLClassifier", changed(incumbent_=-1), "incumbent_ is -1"),
        ("CLMLClassifier", changed(_alternatives={"mean": PAIR}), "not complete"),
        (
            "CLMLClassifier",
            changed(_alternatives={"mean": PAIR, "final": PAIR[:1]}),
            "_alternatives has no weights and temperature of final",
        ),
        (
            "CLMLClassifier",
            changed(_alternatives={"mean": (PAIR[0][1:], 1.0), "final": PAIR}),
            "weights of mean has shape",
        ),
        ("GaussianNBRelevance", changed(estimators_=[None]), "must hold 4 models"),
        ("GaussianNBRelevance", changed(estimators_=[1] * 4), "label 0 is another"),
        ("GaussianNBRelevance", without_model(1), "label 1 has no model"),
        ("GaussianNBRelevance", with_model(2, theta_=np.zeros((2, 1))), "theta_"),
        ("GaussianNBRelevance", with_model(2, var_=np.zeros((1, 8))), "var_"),
        ("GaussianNBRelevance", with_model(2, class_prior_=np.ones(3)), "class_prior_"),
        ("GaussianNBRelevance", with_model(2, classes_=np.arange(3)), "classes_"),
        ("GaussianNBRelevance", with_model(2, n_features_in_=-1), "of 8 features"),
        ("GaussianNBChain", changed(order_=np.array([0, 1, 2, 2])), "permutation"),
        ("GaussianNBChain", changed(order_=np.array([0, 1, 2, 4])), "permutation"),
        ("GaussianNBChain", changed(order_=np.array([3, 2, 1, 0])), "of 11 features"),
        (
            "MLkNNClassifier",
            changed(training_labels_=np.zeros((2, 4), np.uint8)),
            "training_labels_ has shape",
        ),
        ("MLkNNClassifier", changed(log_odds_=np.zeros((4, 5))), "joint_ has shape"),
        (
            "MLkNNClassifier",
            changed(log_odds_=np.zeros((4, 500)), joint_=np.zeros((2, 4, 500))),
            "as many training rows",
        ),
        (
            "MLkNNClassifier",
            changed(log_odds_=np.zeros((4, 1)), joint_=np.zeros((2, 4, 1))),
            "as many training rows",
        ),
        ("LLSFClassifier", changed(coef_=np.zeros((4, 8))), "coef_ has shape"),
        ("LIFTClassifier", changed(coef_=np.zeros(3)), "coef_ has shape"),
        (
            "LIFTClassifier",
            changed(first_centre_=np.arange(5)),
            "first_centre_ does not share out the centres",
        ),
        (
            "LIFTClassifier",
            changed(first_centre_=np.arange(3)),
            "first_centre_ does not share out the centres",
        ),
        (
            "LIFTClassifier",
            changed(constant_=np.array([-1, 0, -1, -1], np.int8)),
            "constant_ does not say which labels have no centres",
        ),
        (
            "MLPRelevanceClassifier",
            changed(network_=MLPNetwork(7, 4, 1, 1, 0.0)),
            "network_ has n_features=7",
        ),
        (
            "MLPRelevanceClassifier",
            changed(network_=MLPNetwork(8, 5, 1, 1, 0.0)),
            "network_ has n_labels=5",
        ),
        (
            "MLPRelevanceClassifier",
            changed(weights_={"a": np.zeros(1, int)}),
            "weights_ are not those of MLPNetwork",
        ),
        (
            "MLPRelevanceClassifier",
            with_bias(np.zeros(1, np.float32)),
            r"weights_\['hidden0.bias'\] is not a float32 array of shape \(512,\)",
        ),
        (
            "MLPRelevanceClassifier",
            with_bias(np.zeros(512)),
            r"weights_\['hidden0.bias'\] is not a float32 array",
        ),
        (
            "MLPRelevanceClassifier",
            changed(network_=MLPNetwork(8, 4, "512", 2, 0.5)),
            "network_ has n_units='512'",
        ),
        (
            "MLPRelevanceClassifier",
            changed(network_=MLPNetwork(8, 4, 512, 10**15, 0.5)),
            "weights_ are not those of MLPNetwork",
        ),
        (
            "MLkNNClassifier",
            changed(training_labels_=np.full((120, 4), 255, np.uint8)),
            "training_labels_ is no indicator",
        ),
        (
            "GaussianNBRelevance",
            changed(classes_=LabelClasses([np.array(["a"])] * 4)),
            "classes_ are not 0 and 1 for each label",
        ),
    ],
    ids=range(54),
)
def test_attributes_that_do_not_fit_together(kind, change, message, models):
    model = copy.copy(models[kind])
    change(model)
    with pytest.raises(ValueError, match=message):
        check_fitted(model)


# With members the front holds maps: a scale and a bias for each of four labels.

MAP = (np.ones(8, np.float32), 1.0)


def members_of(n):
    return np.zeros((n, N), np.float32)


def front_of(width):
    return ParetoFront(
        np.ones((1, 3)), ("a", "b", "c"), np.zeros((1, width), np.float32)
    )


def test_members_are_accepted(members):
    check_fitted(members)
    for which in ("hamming", "final", 0):
        check_fitted(members.select(which))
    # One alone is not averaged, so that its weights have one axis.
    changed(networks_=members_of(1), theta_=members_of(1)[0])(members)
    check_fitted(members)


@pytest.mark.parametrize(
    "name", "theta_ front_ shrinkage_ shift_ scaling_ layout_ _alternatives".split()
)
def test_missing_attributes_of_members(name, members):
    delattr(members, name)
    with pytest.raises(ValueError, match=rf"{name}.* is missing"):
        check_fitted(members)


@pytest.mark.parametrize("name", "networks_ theta_ front_ shrinkage_ shift_".split())
@pytest.mark.parametrize(
    "value",
    [None, "x", [], {}, 1j, np.zeros((0, 0)), np.zeros(9, "U1"), sp.csr_array((0, 0))],
    ids=lambda value: type(value).__name__,
)
def test_values_of_other_kinds_of_members(name, value, members):
    setattr(members, name, value)
    with pytest.raises(ValueError, match=r"\w"):
        check_fitted(members)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: delattr(model, "networks_"), r"theta_ is not an array \('n',\)"),
        (changed(networks_=members_of(2)), "theta_ has shape"),
        (changed(networks_=members_of(1)), r"theta_ is not an array \('n',\)"),
        (
            changed(networks_=members_of(0), theta_=members_of(0)),
            "networks_ holds no members",
        ),
        (changed(networks_=members_of(3)[0]), "networks_ is not an array"),
        (changed(networks_=members_of(3).astype(int)), "kind 'f'"),
        (changed(networks_=members_of(3)[:, 1:]), "theta_ has shape"),
        (changed(theta_=members_of(3)[:, 1:]), "theta_ has shape"),
        (changed(theta_=members_of(3)[0]), "theta_ is not an array"),
        (
            changed(networks_=members_of(3)[:, 1:], theta_=members_of(3)[:, 1:]),
            "does not fit theta_",
        ),
        (changed(front_=front_of(N)), "front_.theta has shape"),
        (changed(front_=front_of(4)), "front_.theta has shape"),
        (changed(shift_="0"), "shift_ cannot be of str"),
        (
            changed(_alternatives={"mean": MAP, "final": PAIR}),
            "weights of final has shape",
        ),
        (changed(layout_=Layout(8, 4, 3, 1)), "does not fit theta_"),
    ],
    ids=range(15),
)
def test_members_that_do_not_fit_together(change, message, members):
    change(members)
    with pytest.raises(ValueError, match=message):
        check_fitted(members)


def test_maps_do_not_pass_for_networks(fitted):
    model = copy.copy(fitted)
    changed(front_=front_of(8))(model)
    with pytest.raises(ValueError, match=r"front_\.theta has shape"):
        check_fitted(model)


# --- numbers that would predict nonsense -----------------------------------------


def first_of(array):
    """Set the first number of an array that an estimator holds."""

    def change(model, value):
        found = array(model)
        (found.data if sp.issparse(found) else found).flat[0] = value

    return change


def number(name):
    return lambda model, value: setattr(model, name, value)


def temperature_of(name):
    def change(model, value):
        weights, _ = model._alternatives[name]
        model._alternatives[name] = (weights, value)

    return change


NUMBERS = {
    "CLMLClassifier": {
        "theta_": first_of(lambda m: m.theta_),
        "front_.theta": first_of(lambda m: m.front_.theta),
        "scaling_.mean": first_of(lambda m: m.scaling_.mean),
        "scaling_.scale": first_of(lambda m: m.scaling_.scale),
        "weights of final": first_of(lambda m: m._alternatives["final"][0]),
        "temperature of mean": temperature_of("mean"),
        "temperature_": number("temperature_"),
        "front_.temperature": first_of(lambda m: m.front_.temperature),
    },
    "members": {
        "networks_": first_of(lambda m: m.networks_),
        "theta_": first_of(lambda m: m.theta_),
        "front_.theta": first_of(lambda m: m.front_.theta),
        "shift_": number("shift_"),
        "shrinkage_": number("shrinkage_"),
        "temperature_": number("temperature_"),
    },
    "LebesgueTunedClassifier": {
        "theta_": first_of(lambda m: m.theta_),
        "front_.theta": first_of(lambda m: m.front_.theta),
        "shift_": number("shift_"),
        "temperature_": number("temperature_"),
    },
    "GaussianNBRelevance": {
        "theta_": first_of(lambda m: m.estimators_[0].theta_),
        "var_": first_of(lambda m: m.estimators_[0].var_),
        "class_prior_": first_of(lambda m: m.estimators_[0].class_prior_),
    },
    "MLkNNClassifier": {
        "training_rows_": first_of(lambda m: m.training_rows_),
        "log_odds_": first_of(lambda m: m.log_odds_),
        "joint_": first_of(lambda m: m.joint_),
    },
    "LIFTClassifier": {
        "centres_": first_of(lambda m: m.centres_),
        "coef_": first_of(lambda m: m.coef_),
        "intercept_": first_of(lambda m: m.intercept_),
        "slope_": first_of(lambda m: m.slope_),
        "offset_": first_of(lambda m: m.offset_),
    },
    "LLSFClassifier": {
        "coef_": first_of(lambda m: m.coef_),
        "intercept_": first_of(lambda m: m.intercept_),
    },
    "MLPRelevanceClassifier": {
        "hidden0.bias": first_of(lambda m: m.weights_["hidden0.bias"]),
    },
}
POSITIVE = {
    "scaling_.scale",
    "temperature of mean",
    "temperature_",
    "front_.temperature",
    "var_",
    "class_prior_",
}
PLACES = [(kind, name) for kind, names in NUMBERS.items() for name in names]


@pytest.fixture(scope="module")
def all_models(models, fitted_members, small_data):
    tuned = LebesgueTunedClassifier(
        MLkNNClassifier(n_neighbors=3), max_epochs=2, cv=2, shrinkage=1.0
    ).fit(*small_data)
    return {
        **models,
        "members": fitted_members,
        "LebesgueTunedClassifier": tuned,
    }


@pytest.mark.parametrize(("kind", "name"), PLACES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -1.0])
def test_numbers_that_are_none(kind, name, value, all_models):
    model = copy.deepcopy(all_models[kind])
    NUMBERS[kind][name](model, value)
    if np.isfinite(value) and name not in POSITIVE:
        check_fitted(model)
        return
    with pytest.raises(ValueError, match=f"{name}.* is not (finite|positive)"):
        check_fitted(model)


def test_sparse_rows_are_finite_too(small_data):
    model = MLkNNClassifier(n_neighbors=3).fit(
        sp.csr_array(small_data[0]), small_data[1]
    )
    check_fitted(model)
    model.training_rows_.data[0] = np.nan
    with pytest.raises(ValueError, match="training_rows_ is not finite"):
        check_fitted(model)


def test_an_integer_beyond_all_floats(fitted):
    model = copy.copy(fitted)
    model.temperature_ = 10**400
    with pytest.raises(ValueError, match="temperature_ is not finite"):
        check_fitted(model)


def test_losses_of_candidates_may_be_undefined(fitted):
    model = copy.deepcopy(fitted)
    model.archive_losses_[0] = np.nan
    check_fitted(model)
    model.front_.losses[0] = np.nan
    with pytest.raises(ValueError, match=r"front_\.losses holds NaN"):
        check_fitted(model)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("standard_error", -0.1, "front_.standard_error is negative"),
        ("difference_error", -0.1, "front_.difference_error is negative"),
        ("standard_error", np.zeros((1, 1)), "front_.standard_error"),
        ("default", 10_000, "front_.default is 10000"),
        ("default", True, "front_.default is True"),
        ("default", 0.0, "front_.default is 0.0"),
    ],
)
def test_errors_and_default_of_a_front_are_checked(fitted, name, value, message):
    model = copy.deepcopy(fitted)
    if isinstance(value, float) and name != "default":
        value = np.full(model.front_.losses.shape, value)
    object.__setattr__(model.front_, name, value)
    with pytest.raises(ValueError, match=message):
        check_fitted(model)


def test_variances_of_a_network_are_not_negative(small_data):
    model = CLIFClassifier(max_epochs=1, random_state=0).fit(*small_data)
    check_fitted(model)
    model.weights_["gin0.norm0.variance"][0] = -1
    with pytest.raises(ValueError, match=r"variance'\] is negative"):
        check_fitted(model)

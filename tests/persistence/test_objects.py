"""Estimators and dataclasses from named values."""

import numpy as np
import pytest

from clml import CMA, CLMLClassifier
from clml.network import Layout, PaperNetwork
from clml.persistence._objects import (
    build_dataclass,
    build_estimator,
    dataclass_parts,
    estimator_parts,
)


def test_worked_example():
    parts = estimator_parts(CLMLClassifier(max_epochs=3))
    assert parts["attributes"] == {}
    assert parts["parameters"]["max_epochs"] == 3
    # Parameters that a file does not name are those of the constructor.
    found = build_estimator("CLMLClassifier", {"max_epochs": 3}, {})
    assert found.get_params() == CLMLClassifier(max_epochs=3).get_params()


def test_dataclass():
    parts = dataclass_parts(Layout(3, 2, 4, 1))
    expected = {"n_features": 3, "n_labels": 2, "embedding_dim": 4, "n_layers": 1}
    assert parts == {"fields": expected}
    assert build_dataclass("Layout", parts["fields"]) == Layout(3, 2, 4, 1)


@pytest.mark.parametrize(
    ("name", "parameters", "attributes", "message"),
    [
        ("LogisticRegression", {}, {}, "not one that a file may hold"),
        (None, {}, {}, "not one that a file may hold"),
        ("CLMLClassifier", {"depth": 3}, {}, "no parameter 'depth'"),
        ("CLMLClassifier", {"sigma0": -1}, {}, "no parameter 'sigma0'"),
        ("CLMLClassifier", {"search": CMA(sigma0=-1)}, {}, "'sigma0' parameter of CMA"),
        (
            "CLMLClassifier",
            {"network": PaperNetwork(n_layers=10**12, embedding_dim=1)},
            {},
            "embedding_dim of PaperNetwork",
        ),
        ("CLMLClassifier", {"losses": None}, {}, "'losses' parameter"),
        ("CLMLClassifier", {}, {"search": "cma"}, "'search' is a parameter"),
        ("CLMLClassifier", {}, {"n_labels_": 1}, "n_features_in_ is missing"),
        ("GaussianNB", {"priors": "x"}, {}, "'priors' parameter"),
    ],
)
def test_bad_estimators(name, parameters, attributes, message):
    with pytest.raises(ValueError, match=message):
        build_estimator(name, parameters, attributes)


@pytest.mark.parametrize(
    "name",
    [
        "predict",
        "_logits",
        "_restore",
        "_validate_params",
        "_parameter_constraints",
        "_not_saved",
        "_search",
        "_skl_callbacks",
        "__class__",
        "__dict__",
        "not a name",
        "",
    ],
)
def test_attributes_that_no_fit_leaves(name):
    # MLkNN is the one with a method `_restore`.
    kind = "MLkNNClassifier" if name == "_restore" else "CLMLClassifier"
    with pytest.raises(ValueError, match=f"no fitted attribute {name!r}"):
        build_estimator(kind, {}, {name: 1})


def test_attribute_that_hides_a_method_is_not_saved():
    clf = CLMLClassifier()
    clf.predict = 3
    with pytest.raises(ValueError, match="no fitted attribute 'predict'"):
        estimator_parts(clf)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("Popen", {}, "not one that a file may hold"),
        ("Layout", {"n_features": 1, "n_labels": 1, "size": 3}, "no field 'size'"),
        ("Layout", {"n_features": 1}, "TypeError.*n_labels"),
        ("Layout", {"n_features": 1, "n_labels": 0}, "n_labels must be an integer"),
        ("ParetoFront", {"losses": 1, "loss_names": (), "theta": 2}, "cannot be made"),
        ("Scaling", {"mean": np.zeros(1)}, "TypeError.*scale"),
    ],
)
def test_bad_dataclasses(name, fields, message):
    with pytest.raises(ValueError, match=message):
        build_dataclass(name, fields)


def test_the_folder_of_checkpoints_stays_on_its_machine():
    estimator = CLMLClassifier(checkpoint="folder", checkpoint_every=5)
    parts = estimator_parts(estimator)
    assert "checkpoint" not in parts["parameters"]
    assert build_estimator("CLMLClassifier", **parts).checkpoint is None
    parts["parameters"]["checkpoint"] = "elsewhere"
    with pytest.raises(ValueError, match="has no parameter 'checkpoint'"):
        build_estimator("CLMLClassifier", **parts)

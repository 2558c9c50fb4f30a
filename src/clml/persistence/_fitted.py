"""What fitted estimators hold: checked before an estimator is written or given out.

Kernels and sparse products trust their arrays. One that is too short for the others
would have them read memory that is not theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

from .._base.multilabel import LabelClasses
from ._checks import (
    check_array,
    check_finite,
    check_history,
    check_positive,
    find,
    find_a,
    require,
)
from ._fitted_search import check_clml, check_stacking, check_tuned

_FOUND: Mapping[str, tuple[str, tuple[str | int, ...]]] = {
    "front_.losses": ("f", ("m", "o")),
    "front_.standard_error": ("f", ("m", "o")),
    "front_.difference_error": ("f", ("m", "o")),
    "front_.temperature": ("f", ("m",)),
    "archive_losses_": ("f", ("candidates", "o")),
}

#: Arrays by class: kinds of numbers and lengths of the axes. K is the number of labels,
#: D that of features; other letters have one value throughout an estimator.
_ARRAYS: Mapping[str, Mapping[str, tuple[str, tuple[str | int, ...]]]] = {
    "CLMLClassifier": _FOUND,
    "GaussianNBRelevance": {"constant_": ("i", ("K",))},
    "GaussianNBChain": {"constant_": ("i", ("K",)), "order_": ("i", ("K",))},
    "LIFTClassifier": {
        "constant_": ("i", ("K",)),
        "first_centre_": ("i", ("K + 1",)),
        "centres_": ("f", ("M", "D")),
        "coef_": ("f", ("M",)),
        "intercept_": ("f", ("K",)),
        "slope_": ("f", ("K",)),
        "offset_": ("f", ("K",)),
    },
    "LLSFClassifier": {
        "coef_": ("f", ("D", "K")),
        "intercept_": ("f", ("K",)),
        "objective_": ("f", ("objectives",)),
    },
    "LebesgueStackingClassifier": _FOUND,
    "LebesgueTunedClassifier": _FOUND,
    "MLkNNClassifier": {
        "training_rows_": ("f", ("N", "D")),
        "training_labels_": ("u", ("N", "K")),
        "log_odds_": ("f", ("K", "k + 1")),
        "joint_": ("f", (2, "K", "k + 1")),
    },
}
# What is divided by.
_POSITIVE = ("front_.temperature",)
# Losses of single candidates may be undefined, and errors unknown.
_OF_ANY_VALUE = (
    "archive_losses_",
    "front_.difference_error",
    "front_.losses",
    "front_.standard_error",
)
# Their learners may take text, which has no features to count.
_OF_ANY_ROWS = ("LebesgueStackingClassifier", "LebesgueTunedClassifier")


def check_fitted(estimator: Any) -> None:
    """Refuse an estimator whose fitted attributes are missing or do not fit together.

    Parameters
    ----------
    estimator : estimator of a class in ``ESTIMATORS``, with attributes

    Raises
    ------
    ValueError
    """
    lengths = _check_labels(estimator)
    name = type(estimator).__name__
    for path, (kinds, shape) in _ARRAYS.get(name, {}).items():
        array = find(estimator, path)
        check_array(path, array, kinds, shape, lengths)
        if path in _POSITIVE:
            check_positive(path, array)
        elif path not in _OF_ANY_VALUE:
            check_finite(path, array)
    require(
        name == "LebesgueStackingClassifier" or not hasattr(estimator, "distilled_"),
        f"{name} has no distilled_",
    )
    if name in _FURTHER:
        _FURTHER[name](estimator, lengths)


def _check_labels(estimator: Any) -> dict[str, int]:
    """Check what every estimator has; return its numbers of labels and features."""
    n_labels = int(find_a(Integral, estimator, "n_labels_"))
    lengths = {"K": n_labels}
    uncounted = type(estimator).__name__ in _OF_ANY_ROWS
    if not uncounted or hasattr(estimator, "n_features_in_"):
        lengths["D"] = int(find_a(Integral, estimator, "n_features_in_"))
    require(min(lengths.values()) > 0, "there must be features and labels")
    names = find(estimator, "label_names_")
    check_array("label_names_", names, "OU", ("K",), lengths)
    classes = find_a((LabelClasses, np.ndarray), estimator, "classes_")
    expected = (n_labels,) if isinstance(classes, LabelClasses) else (2,)
    require(classes.shape == expected, f"classes_ has shape {classes.shape}")
    if isinstance(classes, LabelClasses):
        require(
            all(isinstance(c, np.ndarray) and c.tolist() == [0, 1] for c in classes),
            "classes_ are not 0 and 1 for each label",
        )
    else:
        require(n_labels == 1, "classes_ is that of one label")
    if hasattr(estimator, "feature_names_in_"):
        names = estimator.feature_names_in_
        check_array("feature_names_in_", names, "OU", ("D",), lengths)
    return lengths


def _check_naive_bayes(estimator: Any, lengths: Mapping[str, int]) -> None:
    models = find_a(list, estimator, "estimators_")
    n_labels = lengths["K"]
    require(len(models) == n_labels, f"estimators_ must hold {n_labels} models")
    order = getattr(estimator, "order_", None)
    position = np.zeros(n_labels, dtype=np.int64)
    if order is not None:
        require(
            bool((np.sort(order) == np.arange(n_labels)).all()),
            "order_ is not a permutation of the labels",
        )
        position[order] = np.arange(n_labels)
    for k, model in enumerate(models):
        if model is None:
            require(estimator.constant_[k] in (0, 1), f"label {k} has no model")
            continue
        require(isinstance(model, GaussianNB), f"the model of label {k} is another")
        n_columns = lengths["D"] + int(position[k])
        require(
            find(model, "n_features_in_") == n_columns,
            f"the model of label {k} is not one of {n_columns} features",
        )
        columns = {"columns": n_columns}
        for name in ("theta_", "var_"):
            check_array(name, find(model, name), "f", (2, "columns"), columns)
            check_finite(f"{name} of label {k}", find(model, name))
        check_positive(f"var_ of label {k}", model.var_)
        check_array("class_prior_", find(model, "class_prior_"), "f", (2,), columns)
        check_positive(f"class_prior_ of label {k}", model.class_prior_)
        check_array("classes_", find(model, "classes_"), "iu", (2,), columns)


def _check_lift(estimator: Any, lengths: Mapping[str, int]) -> None:
    first = estimator.first_centre_
    counts = np.diff(first)
    require(
        lengths["K + 1"] == lengths["K"] + 1
        and first[0] == 0
        and first[-1] == lengths["M"]
        and bool((counts >= 0).all()),
        "first_centre_ does not share out the centres",
    )
    constant = estimator.constant_
    require(
        bool(np.isin(constant, (-1, 0, 1)).all())
        and bool(((counts == 0) == (constant >= 0)).all()),
        "constant_ does not say which labels have no centres",
    )


def _check_mlknn(estimator: Any, lengths: Mapping[str, int]) -> None:
    require(
        lengths["N"] >= lengths["k + 1"] - 1 >= 1,
        "there must be as many training rows as neighbours",
    )
    labels = estimator.training_labels_
    require(
        labels.dtype == np.uint8 and bool((labels <= 1).all()),
        "training_labels_ is no indicator",
    )


def _check_deep(estimator: Any, lengths: Mapping[str, int]) -> None:
    network = find(estimator, "network_")
    require(is_dataclass(network), "network_ must be a network")
    for field in fields(network):
        value = getattr(network, field.name)
        require(
            type(value).__name__ == field.type and 0 <= value < np.inf,
            f"network_ has {field.name}={value!r}",
        )
    for name, expected in (("n_features", "D"), ("n_labels", "K")):
        found = find(network, name)
        require(found == lengths[expected], f"network_ has {name}={found!r}")
    check_history(estimator)
    weights = find_a(dict, estimator, "weights_")
    # Names of as many layers as a file says would take any amount of memory.
    layers = max(getattr(network, n, 0) for n in ("n_layers", "n_feature_layers"))
    require(
        layers <= len(weights) and set(weights) == set(network.shapes),
        f"weights_ are not those of {network}",
    )
    for name, shape in network.shapes.items():
        found = weights[name]
        require(
            isinstance(found, np.ndarray)
            and found.dtype == np.float32
            and found.shape == shape,
            f"weights_[{name!r}] is not a float32 array of shape {shape}",
        )
        check_finite(f"weights_[{name!r}]", found)
        # Of nodes that are standardised: its root is taken.
        is_variance = name.endswith(".variance")
        require(
            not is_variance or bool((found >= 0).all()),
            f"weights_[{name!r}] is negative",
        )


_FURTHER: Mapping[str, Callable[[Any, dict[str, int]], None]] = {
    "C2AEClassifier": _check_deep,
    "CLIFClassifier": _check_deep,
    "CLMLClassifier": check_clml,
    "DELAClassifier": _check_deep,
    "GaussianNBChain": _check_naive_bayes,
    "GaussianNBRelevance": _check_naive_bayes,
    "LIFTClassifier": _check_lift,
    "LebesgueStackingClassifier": check_stacking,
    "LebesgueTunedClassifier": check_tuned,
    "MLPRelevanceClassifier": _check_deep,
    "MLkNNClassifier": _check_mlknn,
    "MPVAEClassifier": _check_deep,
}

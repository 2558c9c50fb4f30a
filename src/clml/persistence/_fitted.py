"""What fitted estimators hold: checked before an estimator is written or given out.

Kernels and sparse products trust their arrays. One that is too short for the others
would have them read memory that is not theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

from .._front import ParetoFront
from .._multilabel import LabelClasses
from ..network import Layout, Scaling

#: Arrays by class: kinds of numbers and lengths of the axes. K is the number of labels,
#: D that of features; other letters have one value throughout an estimator.
_ARRAYS: Mapping[str, Mapping[str, tuple[str, tuple[str | int, ...]]]] = {
    "CLMLClassifier": {
        "front_.losses": ("f", ("m", "o")),
        "front_.temperature": ("f", ("m",)),
        "archive_losses_": ("f", ("candidates", "o")),
        "scaling_.mean": ("f", ("D",)),
        "scaling_.scale": ("f", ("D",)),
    },
    "GaussianNBRelevance": {"constant_": ("i", ("K",))},
    "GaussianNBChain": {"constant_": ("i", ("K",)), "order_": ("i", ("K",))},
    "MLkNNClassifier": {
        "training_rows_": ("f", ("N", "D")),
        "training_labels_": ("u", ("N", "K")),
        "log_odds_": ("f", ("K", "k + 1")),
        "joint_": ("f", (2, "K", "k + 1")),
    },
}


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
        _check_array(path, _find(estimator, path), kinds, shape, lengths)
    if name in _FURTHER:
        _FURTHER[name](estimator, lengths)


def _find(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not hasattr(value, name):
            raise ValueError(f"the fitted attribute {path} is missing")
        value = getattr(value, name)
    return value


def _find_a(kind: Any, value: Any, path: str) -> Any:
    found = _find(value, path)
    if not isinstance(found, kind):
        raise ValueError(f"{path} cannot be of {type(found).__name__}")
    return found


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _check_array(
    path: str,
    array: Any,
    kinds: str,
    shape: tuple[str | int, ...],
    lengths: dict[str, int],
) -> None:
    _require(
        (isinstance(array, np.ndarray) or sp.issparse(array))
        and array.dtype.kind in kinds
        and array.ndim == len(shape),
        f"{path} is not an array {shape} of kind {kinds!r}",
    )
    for length, expected in zip(array.shape, shape, strict=True):
        if isinstance(expected, str):
            expected = lengths.setdefault(expected, length)
        _require(length == expected, f"{path} has shape {array.shape}, not {shape}")


def _check_labels(estimator: Any) -> dict[str, int]:
    """Check what every estimator has; return its numbers of labels and features."""
    n_labels = int(_find_a(Integral, estimator, "n_labels_"))
    n_features = int(_find_a(Integral, estimator, "n_features_in_"))
    lengths = {"K": n_labels, "D": n_features}
    _require(n_labels > 0 and n_features > 0, "there must be features and labels")
    names = _find(estimator, "label_names_")
    _check_array("label_names_", names, "OU", ("K",), lengths)
    classes = _find_a((LabelClasses, np.ndarray), estimator, "classes_")
    expected = (n_labels,) if isinstance(classes, LabelClasses) else (2,)
    _require(classes.shape == expected, f"classes_ has shape {classes.shape}")
    if isinstance(classes, LabelClasses):
        _require(
            all(isinstance(c, np.ndarray) and c.tolist() == [0, 1] for c in classes),
            "classes_ are not 0 and 1 for each label",
        )
    else:
        _require(n_labels == 1, "classes_ is that of one label")
    if hasattr(estimator, "feature_names_in_"):
        names = estimator.feature_names_in_
        _check_array("feature_names_in_", names, "OU", ("D",), lengths)
    return lengths


def _check_history(estimator: Any) -> None:
    n_epochs = _find_a(Integral, estimator, "n_epochs_")
    for name, values in _find_a(dict, estimator, "history_").items():
        _require(
            isinstance(values, np.ndarray) and values.shape[:1] == (n_epochs,),
            f"history_[{name!r}] does not hold {n_epochs} epochs",
        )


def _check_weights(estimator: Any, lengths: dict[str, int]) -> int:
    """Check what networks are made of; return the size of a candidate of the front.

    Candidates are networks, or, with members, maps: scales and biases of the labels.
    """
    network: tuple[str | int, ...] = ("n",)
    candidate: str | int = "n"
    if hasattr(estimator, "networks_"):
        networks = estimator.networks_
        _check_array("networks_", networks, "f", ("members", "n"), lengths)
        _require(lengths["members"] > 0, "networks_ holds no members")
        network = ("n",) if lengths["members"] == 1 else ("members", "n")
        candidate = 2 * lengths["K"]
        for name in ("shrinkage_", "shift_"):
            _find_a(Real, estimator, name)
    theta = _find(estimator, "theta_")
    _check_array("theta_", theta, "f", network, lengths)
    maps = _find(estimator, "front_.theta")
    _check_array("front_.theta", maps, "f", ("m", candidate), lengths)
    return int(maps.shape[1])


def _check_clml(estimator: Any, lengths: dict[str, int]) -> None:
    candidate = _check_weights(estimator, lengths)
    layout = _find_a(Layout, estimator, "layout_")
    _find_a(Scaling, estimator, "scaling_")
    front = _find_a(ParetoFront, estimator, "front_")
    _require(
        isinstance(front.loss_names, tuple)
        and all(type(name) is str for name in front.loss_names),
        "front_.loss_names are not names",
    )
    _find_a(Real, estimator, "temperature_")
    _check_history(estimator)
    chosen = _find_a((str, Integral), estimator, "incumbent_")
    # Sizes of as many layers as a file says would take any amount of memory.
    _require(
        bool not in map(type, vars(layout).values())
        and layout.n_layers < lengths["n"]
        and layout.size == lengths["n"]
        and (layout.n_features, layout.n_labels) == (lengths["D"], lengths["K"]),
        f"{layout} does not fit theta_, the features and labels",
    )
    alternatives = _find_a(dict, estimator, "_alternatives")
    _require(set(alternatives) == {"final", "mean"}, "_alternatives is not complete")
    for name, pair in alternatives.items():
        _require(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Real),
            f"_alternatives has no weights and temperature of {name}",
        )
        _check_array(f"weights of {name}", pair[0], "f", (candidate,), lengths)
    _require(
        chosen in alternatives
        if isinstance(chosen, str)
        else 0 <= chosen < len(front.losses),
        f"incumbent_ is {chosen!r}, which is no model of the run",
    )


def _check_naive_bayes(estimator: Any, lengths: Mapping[str, int]) -> None:
    models = _find_a(list, estimator, "estimators_")
    n_labels = lengths["K"]
    _require(len(models) == n_labels, f"estimators_ must hold {n_labels} models")
    order = getattr(estimator, "order_", None)
    position = np.zeros(n_labels, dtype=np.int64)
    if order is not None:
        _require(
            bool((np.sort(order) == np.arange(n_labels)).all()),
            "order_ is not a permutation of the labels",
        )
        position[order] = np.arange(n_labels)
    for k, model in enumerate(models):
        if model is None:
            _require(estimator.constant_[k] in (0, 1), f"label {k} has no model")
            continue
        _require(isinstance(model, GaussianNB), f"the model of label {k} is another")
        n_columns = lengths["D"] + int(position[k])
        _require(
            _find(model, "n_features_in_") == n_columns,
            f"the model of label {k} is not one of {n_columns} features",
        )
        columns = {"columns": n_columns}
        for name in ("theta_", "var_"):
            _check_array(name, _find(model, name), "f", (2, "columns"), columns)
        _check_array("class_prior_", _find(model, "class_prior_"), "f", (2,), columns)
        _check_array("classes_", _find(model, "classes_"), "iu", (2,), columns)


def _check_mlknn(estimator: Any, lengths: Mapping[str, int]) -> None:
    _require(
        lengths["N"] >= lengths["k + 1"] - 1 >= 1,
        "there must be as many training rows as neighbours",
    )
    labels = estimator.training_labels_
    _require(
        labels.dtype == np.uint8 and bool((labels <= 1).all()),
        "training_labels_ is no indicator",
    )


def _check_deep(estimator: Any, lengths: Mapping[str, int]) -> None:
    network = _find(estimator, "network_")
    _require(is_dataclass(network), "network_ is none")
    for field in fields(network):
        value = getattr(network, field.name)
        _require(
            type(value).__name__ == field.type and value >= 0,
            f"network_ has {field.name}={value!r}",
        )
    for name, expected in (("n_features", "D"), ("n_labels", "K")):
        found = _find(network, name)
        _require(found == lengths[expected], f"network_ has {name}={found!r}")
    _check_history(estimator)
    weights = _find_a(dict, estimator, "weights_")
    # Names of as many layers as a file says would take any amount of memory.
    layers = max(getattr(network, n, 0) for n in ("n_layers", "n_feature_layers"))
    _require(
        layers <= len(weights) and set(weights) == set(network.shapes),
        f"weights_ are not those of {network}",
    )
    for name, shape in network.shapes.items():
        found = weights[name]
        _require(
            isinstance(found, np.ndarray)
            and found.dtype == np.float32
            and found.shape == shape,
            f"weights_[{name!r}] is not a float32 array of shape {shape}",
        )


_FURTHER: Mapping[str, Callable[[Any, dict[str, int]], None]] = {
    "C2AEClassifier": _check_deep,
    "CLIFClassifier": _check_deep,
    "CLMLClassifier": _check_clml,
    "DELAClassifier": _check_deep,
    "GaussianNBChain": _check_naive_bayes,
    "GaussianNBRelevance": _check_naive_bayes,
    "MLPRelevanceClassifier": _check_deep,
    "MLkNNClassifier": _check_mlknn,
}

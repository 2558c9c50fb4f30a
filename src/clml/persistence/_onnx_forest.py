"""Trees, forests and boosted trees of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags

from ._onnx_parts import NotExportableError, PartsGraph
from ._onnx_trees import Trees, add_trees


def add_forest(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the probabilities (N, K) of class 1 that a fitted tree or forest has.

    Parameters
    ----------
    graph : PartsGraph
    model : DecisionTreeClassifier, ExtraTreeClassifier, or a forest of these
        The classes of each label are two, or one of 0 and 1.
    rows : str
        float64 (N, D).
    """
    models = list(getattr(model, "estimators_", [model]))
    missing = bool(get_tags(models[0]).input_tags.allow_nan)
    given = graph.finite(rows, model.n_features_in_, np.float32, missing=missing)
    several = isinstance(model.classes_, list)
    classes = list(model.classes_) if several else [model.classes_]
    found = [each.tree_ for each in models]
    values = [_of_class_one(tree.value, classes) for tree in found]
    total = add_trees(graph, _trees_of(found, values), given, np.float32)
    if len(models) == 1:
        return total
    return graph.node("Div", total, graph.number(len(models), np.float64))


def _of_class_one(
    shares: NDArray[np.float64], classes: Sequence[NDArray]
) -> NDArray[np.float64]:
    """Return shares of class 1 (n, K) of those of all classes (n, K, C)."""
    found = np.zeros(shares.shape[:2])
    for k, known in enumerate(classes):
        if len(known) == 2:
            found[:, k] = shares[:, k, 1]
        elif known[0] == 1:
            found[:, k] = shares[:, k, 0]
    return found


def _trees_of(found: Sequence[Any], values: Sequence[NDArray[np.float64]]) -> Trees:
    """Return trees of scikit-learn with what their nodes add (nodes, K)."""

    def joined(name: str) -> NDArray:
        return np.concatenate([getattr(tree, name) for tree in found])

    return Trees(
        n_nodes=np.array([tree.node_count for tree in found]),
        feature=joined("feature"),
        left=joined("children_left"),
        right=joined("children_right"),
        threshold=joined("threshold"),
        missing_left=joined("missing_go_to_left").astype(bool),
        is_leaf=joined("children_left") < 0,
        values=np.concatenate(values),
    )


def check_boosted(model: Any) -> None:
    """Refuse boosted trees that begin with a model, or read categories.

    And those of another loss, whose probabilities are another function of decisions.
    """
    init = getattr(model, "init_", "zero")
    if init != "zero" and type(init) is not DummyClassifier:
        raise NotExportableError(
            f"its init must be None or 'zero', got {type(init).__name__}"
        )
    if model.loss != "log_loss":
        raise NotExportableError(f"its loss must be 'log_loss', got {model.loss!r}")
    if getattr(model, "is_categorical_", None) is not None:
        raise NotExportableError(
            f"{type(model).__name__} reads some columns as categories"
        )


def add_boosted(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the decisions (N, 1) of a fitted GradientBoostingClassifier.

    It has two classes.
    """
    n_columns = model.n_features_in_
    given = graph.finite(rows, n_columns, np.float32)
    start = model._raw_predict_init(np.zeros((1, n_columns), dtype=np.float32))
    found = [each.tree_ for each in model.estimators_[:, 0]]
    values = [model.learning_rate * tree.value[:, 0] for tree in found]
    total = add_trees(graph, _trees_of(found, values), given, np.float32)
    return graph.node("Add", total, graph.table(start))


def add_histogram_boosted(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the decisions (N, 1) of a fitted HistGradientBoostingClassifier.

    It has two classes. Any rows are read, infinite and missing values included.
    """
    nodes = [stage[0].nodes for stage in model._predictors]
    joined = np.concatenate(nodes)
    trees = Trees(
        n_nodes=np.array([len(each) for each in nodes]),
        feature=joined["feature_idx"].astype(np.int64),
        left=joined["left"].astype(np.int64),
        right=joined["right"].astype(np.int64),
        threshold=joined["num_threshold"],
        missing_left=joined["missing_go_to_left"].astype(bool),
        is_leaf=joined["is_leaf"].astype(bool),
        values=joined["value"][:, None],
    )
    total = add_trees(graph, trees, rows, np.float64)
    start = np.reshape(model._baseline_prediction, (1, 1))
    return graph.node("Add", total, graph.table(start))

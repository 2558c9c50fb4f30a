"""Trees and forests of scikit-learn, whose probabilities a graph adds up exactly.

ONNX's operator for trees adds leaves in single precision. Here a leaf's probability is
written as a few whole numbers, digits of a large base, each so small that all trees'
sum of it is exact. A fully grown tree has leaves of 0 and 1, and needs one digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._onnx_model import LEARNERS_DOMAIN
from ._onnx_parts import PartsGraph

# Single precision holds whole numbers of so many bits; probabilities are exact to so
# many behind the point.
_BITS_OF_SINGLE, _BITS = 24, 60


class _Leaves(NamedTuple):
    """Of all trees: which tree, which of its nodes, and the probabilities (n, K)."""

    tree: NDArray[np.int64]
    node: NDArray[np.int64]
    values: NDArray[np.float64]


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
    trees = [each.tree_ for each in getattr(model, "estimators_", [model])]
    first = model.estimators_[0] if hasattr(model, "estimators_") else model
    missing = bool(first.__sklearn_tags__().input_tags.allow_nan)
    given = graph.finite(rows, model.n_features_in_, np.float32, missing=missing)
    leaves = _leaves_of(trees, _classes_of(model))
    n_bits = _BITS_OF_SINGLE - int(np.ceil(np.log2(len(trees))))
    digits = _digits_of(leaves.values, n_bits)
    n_labels = leaves.values.shape[1]
    sums = graph.node(
        "TreeEnsembleRegressor",
        given,
        domain=LEARNERS_DOMAIN,
        n_targets=n_labels * len(digits),
        post_transform="NONE",
        **_branches(trees),
        **_targets(leaves, digits),
    )
    units = 2.0 ** (-n_bits * np.arange(len(digits)))
    weights = np.kron(units[:, None], np.eye(n_labels)) / 2.0**n_bits
    exact = graph.cast(sums, np.float64)
    total = graph.node("MatMul", exact, graph.table(weights))
    if len(trees) == 1:
        return total
    return graph.node("Div", total, graph.number(len(trees), np.float64))


def _classes_of(model: Any) -> list[NDArray]:
    several = isinstance(model.classes_, list)
    return list(model.classes_) if several else [model.classes_]


def _leaves_of(trees: Sequence[Any], classes: Sequence[NDArray]) -> _Leaves:
    leaves = [np.flatnonzero(tree.children_left < 0) for tree in trees]
    values = [
        np.column_stack(
            [_of_class_one(tree.value[own, k], of) for k, of in enumerate(classes)]
        )
        for tree, own in zip(trees, leaves, strict=True)
    ]
    number = np.repeat(np.arange(len(trees)), [len(own) for own in leaves])
    return _Leaves(number, np.concatenate(leaves), np.concatenate(values))


def _of_class_one(shares: NDArray, classes: NDArray) -> NDArray[np.float64]:
    """Return the column of class 1 of (n, classes); zeros if the label never was."""
    if len(classes) == 2:
        return shares[:, 1]
    return shares[:, 0] if classes[0] == 1 else np.zeros(len(shares))


def _digits_of(values: NDArray[np.float64], n_bits: int) -> list[NDArray[np.float64]]:
    """Return whole numbers whose sum, each over 2ᵇ more than the last, is the values.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.persistence._onnx_forest import _digits_of
    >>> [digit.tolist() for digit in _digits_of(np.array([1.0, 0.75]), 1)]
    [[2.0, 1.0], [0.0, 1.0]]
    """
    digits: list[NDArray[np.float64]] = []
    rest = values
    while not digits or (rest.any() and len(digits) * n_bits < _BITS):
        rest = rest * 2.0**n_bits
        digits.append(np.floor(rest))
        rest = rest - digits[-1]
    return digits


def _branches(trees: Sequence[Any]) -> dict[str, Any]:
    """Return the attributes that say which leaf a row comes to."""
    counts = [tree.node_count for tree in trees]
    left = np.concatenate([tree.children_left for tree in trees])
    is_leaf = left < 0

    def of_branches(name: str) -> NDArray:
        values = np.concatenate([getattr(tree, name) for tree in trees])
        return np.where(is_leaf, 0, values)

    return {
        "nodes_treeids": np.repeat(np.arange(len(trees)), counts).tolist(),
        "nodes_nodeids": np.concatenate([np.arange(n) for n in counts]).tolist(),
        "nodes_featureids": of_branches("feature").tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values": _single_below(of_branches("threshold")).tolist(),
        "nodes_truenodeids": of_branches("children_left").tolist(),
        "nodes_falsenodeids": of_branches("children_right").tolist(),
        "nodes_missing_value_tracks_true": of_branches("missing_go_to_left").tolist(),
    }


def _single_below(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest floats that are not above: the same rows are below them."""
    single = thresholds.astype(np.float32)
    return np.where(
        single > thresholds, np.nextafter(single, np.float32(-np.inf)), single
    )


def _targets(leaves: _Leaves, digits: Sequence[NDArray[np.float64]]) -> dict[str, Any]:
    """Return the attributes that say what leaves add, which most zeros do not."""
    weights = np.hstack(digits)
    written = weights != 0
    # A leaf without any is not one to every runtime.
    written[~written.any(axis=1), 0] = True
    leaf, target = np.nonzero(written)
    return {
        "target_treeids": leaves.tree[leaf].tolist(),
        "target_nodeids": leaves.node[leaf].tolist(),
        "target_ids": target.tolist(),
        "target_weights": weights[leaf, target].tolist(),
    }

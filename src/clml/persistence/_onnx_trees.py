"""Sums over trees, which a graph adds up exactly.

ONNX's operator for trees adds leaves in single precision. Here what a leaf adds is
written as a few whole numbers, digits of a large base, each so small that all trees'
sum of it is exact. A fully grown tree, whose leaves are 0 and 1, needs one digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._onnx_model import LEARNERS_DOMAIN, import_onnx
from ._onnx_parts import PartsGraph

# Single precision holds whole numbers of so many bits. Leaves are exact to so many
# below the largest.
_BITS_OF_SINGLE, _BITS = 24, 60


@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of some trees, one after another.

    Attributes
    ----------
    n_nodes : int array (trees,)
    feature, left, right : int arrays (nodes,)
        A row goes to the node ``left`` of its tree if its feature is not above the
        threshold.
    threshold : float64 array (nodes,)
    missing_left : bool array (nodes,)
        Whether it does so, too, if its feature is NaN.
    is_leaf : bool array (nodes,)
    values : float64 array (nodes, K)
        What a leaf adds; other nodes add nothing.
    """

    n_nodes: NDArray[np.int64]
    feature: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    is_leaf: NDArray[np.bool_]
    values: NDArray[np.float64]

    @property
    def tree(self) -> NDArray[np.int64]:
        """The tree of each node."""
        return np.repeat(np.arange(len(self.n_nodes)), self.n_nodes)

    @property
    def node(self) -> NDArray[np.int64]:
        """The number of each node in its tree."""
        return np.concatenate([np.arange(n) for n in self.n_nodes])


def add_trees(graph: PartsGraph, trees: Trees, rows: str, dtype: Any) -> str:
    """Add the sums (N, K) of what trees add to rows, as float64.

    Parameters
    ----------
    graph : PartsGraph
    trees : Trees
    rows : str
        (N, D).
    dtype : type
        Of the rows: float32 or float64.
    """
    n_bits = _BITS_OF_SINGLE - int(np.ceil(np.log2(len(trees.n_nodes))))
    values = trees.values[trees.is_leaf]
    unit = 2.0 ** np.ceil(np.log2(np.abs(values).max(initial=0.0) or 1.0))
    digits = _digits_of(values / unit, n_bits)
    n_labels = values.shape[1]
    sums = graph.node(
        "TreeEnsembleRegressor",
        rows,
        domain=LEARNERS_DOMAIN,
        n_targets=n_labels * len(digits),
        post_transform="NONE",
        **_branches(trees, dtype),
        **_targets(trees, np.hstack(digits), dtype),
    )
    units = unit * 2.0 ** (-n_bits * np.arange(1, len(digits) + 1))
    weights = graph.table(np.kron(units[:, None], np.eye(n_labels)))
    total = graph.node("MatMul", graph.cast(sums, np.float64), weights)
    # onnxruntime would make one operation of a product and a division right after it,
    # whose factor is of single precision. It does not see through this node.
    least = graph.number(float(np.finfo(np.float64).min), np.float64)
    return graph.node("Max", total, least)


def _digits_of(values: NDArray[np.float64], n_bits: int) -> list[NDArray[np.float64]]:
    """Return whole numbers whose sum, the first over 2ᵇ and so on, is the values.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.persistence._onnx_trees import _digits_of
    >>> [digit.tolist() for digit in _digits_of(np.array([1.0, -0.75]), 1)]
    [[2.0, -1.0], [0.0, -1.0]]
    """
    digits: list[NDArray[np.float64]] = []
    rest = values
    while not digits or (rest.any() and len(digits) * n_bits < _BITS):
        rest = rest * 2.0**n_bits
        digits.append(np.trunc(rest))
        rest = rest - digits[-1]
    return digits


def _branches(trees: Trees, dtype: Any) -> dict[str, Any]:
    """Return the attributes that say which leaf a row comes to."""

    def of_branches(values: NDArray) -> NDArray:
        return np.where(trees.is_leaf, 0, values)

    thresholds = of_branches(trees.threshold)
    if dtype is np.float32:
        thresholds = _single_below(thresholds)
    return {
        "nodes_treeids": trees.tree.tolist(),
        "nodes_nodeids": trees.node.tolist(),
        "nodes_featureids": of_branches(trees.feature).tolist(),
        "nodes_modes": np.where(trees.is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": of_branches(trees.left).tolist(),
        "nodes_falsenodeids": of_branches(trees.right).tolist(),
        "nodes_missing_value_tracks_true": of_branches(trees.missing_left).tolist(),
        **_numbers("nodes_values", thresholds, dtype),
    }


def _single_below(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest floats that are not above: the same rows are below them."""
    single = thresholds.astype(np.float32)
    below = np.nextafter(single, np.float32(-np.inf))
    return np.where(single > thresholds, below, single)


def _targets(trees: Trees, weights: NDArray[np.float64], dtype: Any) -> dict[str, Any]:
    """Return the attributes that say what leaves add, which most zeros do not."""
    written = weights != 0
    # A leaf without any is not one to every runtime.
    written[~written.any(axis=1), 0] = True
    leaf, target = np.nonzero(written)
    return {
        "target_treeids": trees.tree[trees.is_leaf][leaf].tolist(),
        "target_nodeids": trees.node[trees.is_leaf][leaf].tolist(),
        "target_ids": target.tolist(),
        **_numbers("target_weights", weights[leaf, target], dtype),
    }


def _numbers(name: str, values: NDArray, dtype: Any) -> dict[str, Any]:
    """Return an attribute of numbers, whose name says their type."""
    if dtype is np.float32:
        return {name: values.tolist()}
    tensor = import_onnx().numpy_helper.from_array(values.astype(dtype), name)
    return {f"{name}_as_tensor": tensor}

"""The nodes of an ONNX graph that computes what an ensemble of wide networks predicts.

Features are encoded, once for all members that share an encoding. The first layers of
these lie side by side in one matrix, the last ones below each other; the product with
them is the members' sum. Scales, map, mean and temperature are in the last weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._training.ensemble import Ensemble
from ..encoding import FittedEncoding, FittedKernel
from ..network import WideLayout
from ._onnx_encoding import EncodingNodes
from ._onnx_model import DTYPES, Graph, finished_model, networks_text
from ._onnx_rules import rule_logits

_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}
_Weights = dict[str, NDArray[np.float64]]


def model_of_ensemble(
    ensemble: Ensemble,
    networks: Sequence[NDArray[np.float32]],
    scale: NDArray[np.float64],
    mapping: NDArray[np.floating],
    temperature: float,
    *,
    rule: str | None = None,
    two_classes: bool,
    dtype: str,
    opset: int,
    metadata: Mapping[str, str],
) -> Any:
    """Return the ModelProto of an ensemble of wide networks.

    Parameters
    ----------
    ensemble, networks, scale, mapping, temperature, rule
        See :func:`add_ensemble`.
    two_classes : bool
        Whether the one label is the second of two classes, of a 1-D y.
    dtype : {"float32", "float64"}
        Of features, networks and scores.
    opset : int
    metadata : dict of str
    """
    graph = Graph()
    add_ensemble(
        graph,
        ensemble,
        networks,
        scale,
        mapping,
        temperature,
        DTYPES[dtype],
        rule,
    )
    return finished_model(
        graph,
        n_features=ensemble.encodings[0].n_inputs,
        n_labels=ensemble.n_labels,
        text=networks_text(len(networks), ensemble.n_labels),
        two_classes=two_classes,
        dtype=dtype,
        opset=opset,
        metadata=metadata,
    )


def bytes_of_ensemble(ensemble: Ensemble, dtype: str) -> int:
    """Return what weights and tables take in a file, at most."""
    n_weights = sum(ensemble.layouts[i].size for i in ensemble.chosen)
    tables = sum(_bytes_of_encoding(encoding) for encoding in ensemble.encodings)
    return n_weights * np.dtype(dtype).itemsize + tables


def _bytes_of_encoding(encoding: FittedEncoding | FittedKernel) -> int:
    if isinstance(encoding, FittedKernel):
        # Both are float64 in a graph, and dense.
        numbers = math.prod(encoding.landmarks.shape) + encoding.projection.size
        own = np.dtype(np.float64).itemsize * numbers
        return own + _bytes_of_encoding(encoding.columns)
    # Each number is used twice at most: as an end of a ramp, and of the next one.
    return sum(2 * a.nbytes for a in encoding.tables if isinstance(a, np.ndarray))


def add_ensemble(
    graph: Graph,
    ensemble: Ensemble,
    networks: Sequence[NDArray[np.float32]],
    scale: NDArray[np.float64],
    mapping: NDArray[np.floating],
    temperature: float,
    kind: type[np.floating],
    rule: str | None = None,
) -> str:
    """Add everything from the features to the logits; return the name of these.

    The logits are a · (mean over members of scale · z) + b, over the temperature, where
    z is what a member computes of its encoded rows. Rows with an infinite value have
    none: they are NaN.

    Parameters
    ----------
    graph : Graph
        Its input is ``features`` (N, D).
    ensemble : Ensemble
    networks : sequence of float32 arrays
        Weights of each member.
    scale : float64 array (members,)
        What each member's logits are multiplied by.
    mapping : float array (2·K,)
        a of all labels, then b.
    temperature : float
    kind : type
        float32 or float64: of features, networks and logits.
    rule : str or None, default=None
        What decides the rows of these logits.
    """
    k = ensemble.n_labels
    a, b = np.split(np.asarray(mapping, dtype=np.float64) / temperature, 2)
    factors = np.asarray(scale, dtype=np.float64)[:, None] * a / len(networks)
    nodes = EncodingNodes(graph, ensemble.encodings[0].n_inputs)
    bias = b.copy()
    sums: list[str] = []
    pairs = zip(ensemble.encodings, ensemble.layouts, strict=True)
    for i, (encoding, layout) in enumerate(pairs):
        members = [m for m, chosen in enumerate(ensemble.chosen) if chosen == i]
        if not members:
            continue
        assert isinstance(layout, WideLayout)  # others have no graph
        rows, order = nodes.add(encoding)
        rows = graph.cast(rows, kind)
        weights = _scaled(layout, [networks[m] for m in members], factors[members])
        bias += weights[f"b{len(layout.hidden) + 1}"].sum(axis=(0, 1))
        sums += _add_members(graph, rows, order, layout, weights, f"of_{i}", kind)
    logits = graph.constant("bias", bias.reshape(1, k), kind)
    for one in sums:
        logits = graph.node("Add", one, logits)
    nan = graph.number(np.nan, kind)
    found = graph.node("Where", nodes.refused(), nan, logits, output="logits")
    rule_logits(graph, rule, temperature, k, kind)
    return found


def _scaled(
    layout: WideLayout,
    networks: Sequence[NDArray[np.float32]],
    factors: NDArray[np.float64],
) -> _Weights:
    """Return the weights of members by name, outputs (.., K) times factors.

    Matrices are (members, rows, columns), biases (members, 1, columns).
    """
    views = [layout.views(np.asarray(network)) for network in networks]
    last = len(layout.hidden) + 1
    stacked = {}
    for name in views[0]:
        several = np.stack([np.atleast_2d(one[name]) for one in views])
        if name in (f"W{last}", f"b{last}", "linear"):
            several = several * factors[:, None, :]
        stacked[name] = several
    return stacked


def _add_members(
    graph: Graph,
    rows: str,
    order: NDArray[np.int64],
    layout: WideLayout,
    weights: _Weights,
    suffix: str,
    kind: type[np.floating],
) -> list[str]:
    """Add the members of one encoding; return what is to be summed, biases apart."""

    def constant(name: str, value: NDArray) -> str:
        return graph.constant(f"{name}_{suffix}", value, kind)

    def shape(name: str, *sizes: int) -> str:
        # 0 stands for the number of rows.
        return graph.constant(f"{name}_{suffix}", [0, *sizes], np.int64)

    if not layout.hidden:  # a sum of linear networks is one
        matrix = weights["W1"][:, order].sum(axis=0)
        if layout.linear_path:
            matrix = matrix + weights["linear"][:, order].sum(axis=0)
        return [graph.node("MatMul", rows, constant("W1", matrix))]
    activation = _ACTIVATIONS[layout.activation]
    first, n_hidden = weights["W1"][:, order], len(layout.hidden)
    m, d, width = first.shape
    side_by_side = first.transpose(1, 0, 2).reshape(d, m * width)
    entries = graph.node("MatMul", rows, constant("W1", side_by_side))
    bias = constant("b1", weights["b1"].reshape(1, m * width))
    entries = graph.node("Add", entries, bias)
    if n_hidden > 1:
        entries = graph.node("Reshape", entries, shape("by_member", m, width))
        # Products of many matrices are taken over the first axis. Not right before such
        # a product: onnxruntime would make one operation of both, which ends the
        # process when there are no rows.
        entries = graph.node("Transpose", entries, perm=[1, 0, 2])
    entries = graph.node(activation, entries)
    for i in range(2, n_hidden + 1):
        product = graph.node("MatMul", entries, constant(f"W{i}", weights[f"W{i}"]))
        biased = graph.node("Add", product, constant(f"b{i}", weights[f"b{i}"]))
        entries = graph.node(activation, biased)
    width, k = layout.hidden[-1], layout.n_labels
    if n_hidden > 1:
        entries = graph.node("Transpose", entries, perm=[1, 0, 2])
        entries = graph.node("Reshape", entries, shape("beside", m * width))
    last = weights[f"W{n_hidden + 1}"].reshape(m * width, k)
    sums = [graph.node("MatMul", entries, constant("outputs", last))]
    if layout.linear_path:
        linear = weights["linear"][:, order].sum(axis=0)
        sums.append(graph.node("MatMul", rows, constant("linear", linear)))
    return sums

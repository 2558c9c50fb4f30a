"""The nodes of an ONNX graph that computes what a classifier predicts.

Features are standardised, every member's network reads them, and the members' logits
are averaged and divided by the temperature. Members lie side by side in one tensor, so
that a layer of all of them is one node.

Features that are very large once they are standardised are predicted with or refused as
`Predictor` does it, whatever the precision of the graph. The first layer's activation
does not depend on the size of a row, so a row that would leave float32 is made smaller
as a whole. One that `Predictor` refuses becomes NaN: a graph cannot raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Layout, Scaling
from ..network.kernels import TINY
from ..network.range import LARGEST
from ._onnx_model import DTYPES, Graph, finished_model, networks_text
from ._onnx_rules import rule_logits


def model_of(
    classifier: Any, dtype: str, opset: int, metadata: Mapping[str, str]
) -> Any:
    """Return the ModelProto of a fitted classifier."""
    layout = classifier.layout_
    graph = Graph()
    add_classifier(graph, classifier, DTYPES[dtype])
    return finished_model(
        graph,
        n_features=layout.n_features,
        n_labels=layout.n_labels,
        text=networks_text(len(np.atleast_2d(classifier.theta_)), layout.n_labels),
        two_classes=not isinstance(classifier.classes_, list),
        dtype=dtype,
        opset=opset,
        metadata=metadata,
    )


def add_classifier(graph: Graph, classifier: Any, kind: type[np.floating]) -> str:
    """Add everything from the features to the logits; return the name of these."""
    rows, size = _add_scaling(graph, classifier.scaling_, kind)
    layout, temperature = classifier.layout_, float(classifier.temperature_)
    thetas = np.atleast_2d(classifier.theta_)
    logits = _add_networks(graph, rows, size, thetas, layout, temperature, kind)
    rule_logits(graph, classifier.rule_, temperature, layout.n_labels, kind)
    return logits


def _add_scaling(graph: Graph, scaling: Scaling, kind: Any) -> tuple[str, str]:
    """Add (x − mean) / scale, times a factor for each row; return both names.

    The factor is 1 unless a row is too large for the precision, and NaN if it is too
    large for `Predictor`. In single precision a large mean would take the digits of
    what is left, so all of it is float64.
    """

    def constant(name: str, value: Any) -> str:
        return graph.constant(name, value, np.float64)

    scaled = graph.cast("features", np.float64)
    if scaling.mean.any() or (scaling.scale != 1).any():
        centred = graph.node("Sub", scaled, constant("mean", scaling.mean))
        scaled = graph.node("Div", centred, constant("scale", scaling.scale))
    # Sums are products with ones: reductions of no rows have another shape at times.
    ones = constant("ones", np.ones((len(scaling.mean), 1)))
    sizes = graph.node("Abs", scaled)
    held = constant("largest_held", LARGEST[np.dtype(kind)])
    reach = graph.node("Div", graph.node("MatMul", sizes, ones), held)
    one = constant("one", 1)
    factor = graph.node("Div", one, graph.node("Max", reach, one))
    largest = constant("largest", LARGEST[np.dtype(np.float64)])
    beyond = graph.cast(graph.node("Greater", sizes, largest), np.float64)
    refused = graph.node(
        "Greater", graph.node("MatMul", beyond, ones), constant("no", 0)
    )
    factor = graph.node("Where", refused, constant("nan", np.nan), factor)
    rows = graph.cast(graph.node("Mul", scaled, factor), kind)
    return rows, graph.cast(factor, kind)


def _add_networks(
    graph: Graph,
    rows: str,
    size: str,
    thetas: NDArray[np.float32],
    layout: Layout,
    temperature: float,
    kind: Any,
) -> str:
    """Add the members' networks and their average; return its name.

    The first layers lie side by side in one matrix, the last ones below each other:
    the product with these is the members' sum.
    """
    m, c, k = len(thetas), layout.embedding_dim, layout.n_labels
    first, *hidden, last = layout.matrices(thetas)
    first = _centred(first).astype(kind).transpose(1, 0, 2).reshape(-1, m * c)
    # The bias shrinks with its row.
    entries = graph.node(
        "Add",
        graph.node("MatMul", rows, graph.constant("E", first[:-1], kind)),
        graph.node("Mul", size, graph.constant("b_E", first[-1:], kind)),
    )
    # 0 stands for the number of rows.
    by_member = graph.constant("by_member", [0, m, c], np.int64)
    side_by_side = graph.constant("side_by_side", [0, m * c], np.int64)
    activate = _activation(graph, kind)
    entries = graph.node("Reshape", entries, by_member)
    # Products of many matrices are taken over the first axis. Not right before such a
    # product: onnxruntime would make one operation of both, which ends the process
    # when there are no rows.
    entries = activate(graph.node("Transpose", entries, perm=[1, 0, 2]))
    for i, matrix in enumerate(map(_centred, hidden), start=1):
        weights = graph.constant(f"L{i}", matrix[:, :-1], kind)
        bias = graph.constant(f"b_L{i}", matrix[:, -1:], kind)
        product = graph.node("MatMul", entries, weights)
        entries = activate(graph.node("Add", product, bias))
    entries = graph.node("Transpose", entries, perm=[1, 0, 2])
    # Mean and temperature are in the weights: logits before them may be very large.
    last = last.astype(np.float64) / (m * temperature)
    return graph.node(
        "Gemm",
        graph.node("Reshape", entries, side_by_side),
        graph.constant("Dec", last[:, :-1].reshape(m * c, k), kind),
        graph.constant("b_D", last[:, -1].sum(axis=0), kind),
        output="logits",
    )


def _centred(matrices: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return weights (..., C) whose products have a mean of 0 over C.

    A row's mean is taken from it anyway; taken from the weights it costs no digits.
    Sums of single numbers are exact in double: equal weights become 0, not nearly 0,
    which divided by their deviation would be 1.
    """
    centred = matrices.astype(np.float64)
    centred -= centred.mean(axis=-1, keepdims=True)
    return centred


def _activation(graph: Graph, kind: Any) -> Callable[[str], str]:
    """Return what adds the sigmoid of rows over their deviation.

    The deviation is computed from values within [-1, 1], whose squares do not
    overflow: a row of very large features would else look like one of zeros.
    """
    axis = graph.constant("last_axis", [-1], np.int64)
    tiny = graph.constant("tiny", TINY, kind)

    def add(values: str) -> str:
        sizes = graph.node("Abs", values)
        reach = graph.node("Max", graph.node("ReduceMax", sizes, axis), tiny)
        within = graph.node("Div", values, reach)
        square = graph.node("ReduceMean", graph.node("Mul", within, within), axis)
        deviation = graph.node("Mul", reach, graph.node("Sqrt", square))
        divisor = graph.node("Add", deviation, tiny)
        return graph.node("Sigmoid", graph.node("Div", values, divisor))

    return add

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
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..network import Layout, Scaling
from ..network._kernels import TINY
from ..network._range import LARGEST

DTYPES: Mapping[str, type[np.floating]] = {"float32": np.float32, "float64": np.float64}


def import_onnx() -> ModuleType:
    """Return the package onnx, or say how to install it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "Export needs the package onnx. Install it with: pip install 'clml[onnx]'"
        ) from error
    return onnx


class _Graph:
    """Nodes and constants, each known by the name of what it gives."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        array = np.array(value, dtype=dtype, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def node(
        self, kind: str, *inputs: str, output: str | None = None, **options: Any
    ) -> str:
        output = output or f"{kind}_{len(self.nodes)}"
        made = self._onnx.helper.make_node(kind, inputs, [output], output, **options)
        self.nodes.append(made)
        return output


def model_of(
    classifier: Any, dtype: str, opset: int, metadata: Mapping[str, str]
) -> Any:
    """Return the ModelProto of a fitted classifier."""
    onnx = import_onnx()
    layout, kind = classifier.layout_, DTYPES[dtype]
    scores = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = _Graph()
    rows, size = _add_scaling(graph, classifier.scaling_, kind)
    thetas = np.atleast_2d(classifier.theta_)
    logits = _add_networks(
        graph, rows, size, thetas, layout, float(classifier.temperature_), kind
    )
    graph.node("Sigmoid", logits, output="probabilities")
    positive = graph.node("Greater", logits, graph.constant("zero", 0, kind))
    integer = onnx.TensorProto.INT64
    graph.node("Cast", positive, output="labels", to=integer)

    def described(name: str, element: int, width: int, text: str) -> Any:
        # A dimension with a name has any size.
        return onnx.helper.make_tensor_value_info(name, element, ["N", width], text)

    k = layout.n_labels
    what = "each label" if isinstance(classifier.classes_, list) else "classes[1]"
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "clml",
            [described("features", scores, layout.n_features, "Not standardised.")],
            [
                described("logits", scores, k, f"Positive where {what} is predicted."),
                described("probabilities", scores, k, f"Of {what}."),
                described("labels", integer, k, f"1 where {what} is predicted."),
            ],
            graph.constants,
        ),
        producer_name="clml",
        producer_version=__version__,
        doc_string=f"CLMLClassifier: {len(thetas)} network(s), {k} label(s).",
        opset_imports=[onnx.helper.make_opsetid("", opset)],
    )
    # The newest that the package knows may be too new for the runtime.
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import)
    onnx.helper.set_model_props(model, dict(metadata))
    return model


def _add_scaling(graph: _Graph, scaling: Scaling, kind: Any) -> tuple[str, str]:
    """Add (x − mean) / scale, times a factor for each row; return both names.

    The factor is 1 unless a row is too large for the precision, and NaN if it is too
    large for `Predictor`. In single precision a large mean would take the digits of
    what is left, so all of it is float64.
    """
    double, own = (
        import_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(t))
        for t in (np.float64, kind)
    )

    def constant(name: str, value: Any) -> str:
        return graph.constant(name, value, np.float64)

    scaled = graph.node("Cast", "features", to=double)
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
    beyond = graph.node("Cast", graph.node("Greater", sizes, largest), to=double)
    refused = graph.node(
        "Greater", graph.node("MatMul", beyond, ones), constant("no", 0)
    )
    factor = graph.node("Where", refused, constant("nan", np.nan), factor)
    rows = graph.node("Cast", graph.node("Mul", scaled, factor), to=own)
    return rows, graph.node("Cast", factor, to=own)


def _add_networks(
    graph: _Graph,
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


def _activation(graph: _Graph, kind: Any) -> Callable[[str], str]:
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

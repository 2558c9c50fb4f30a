"""What graphs of all networks have in common: nodes, constants, and the file around."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .._version import __version__

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


class Graph:
    """Nodes and constants, each known by the name of what it gives."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._numbers: dict[tuple[float, Any], str] = {}

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        """Add an array under a name of its own."""
        array = np.array(value, dtype=dtype, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float, dtype: Any) -> str:
        """Return the name of a number, which is added once."""
        key = (value, np.dtype(dtype))
        if key not in self._numbers:
            name = f"number_{len(self._numbers)}"
            self._numbers[key] = self.constant(name, value, dtype)
        return self._numbers[key]

    def node(
        self, kind: str, *inputs: str, output: str | None = None, **options: Any
    ) -> str:
        """Add an operator; return the name of its output."""
        output = output or f"{kind}_{len(self.nodes)}"
        made = self._onnx.helper.make_node(kind, inputs, [output], output, **options)
        self.nodes.append(made)
        return output

    def cast(self, name: str, dtype: Any, output: str | None = None) -> str:
        """Add the same values as another type."""
        to = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", name, output=output, to=to)


def finished_model(
    graph: Graph,
    *,
    n_features: int,
    n_labels: int,
    n_networks: int,
    two_classes: bool,
    dtype: str,
    opset: int,
    metadata: Mapping[str, str],
) -> Any:
    """Return the ModelProto of a graph that ends with logits.

    Parameters
    ----------
    graph : Graph
        From ``features`` to ``logits``; what follows from these is added.
    n_features, n_labels, n_networks : int
    two_classes : bool
        Whether the one label is the second of two classes, of a 1-D y.
    dtype : {"float32", "float64"}
        Of features and scores.
    opset : int
    metadata : dict of str
    """
    onnx = import_onnx()
    kind = DTYPES[dtype]
    graph.node("Sigmoid", "logits", output="probabilities")
    positive = graph.node("Greater", "logits", graph.number(0, kind))
    graph.cast(positive, np.int64, output="labels")
    scores, integer = (
        onnx.helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in (kind, np.int64)
    )

    def described(name: str, element: int, width: int, text: str) -> Any:
        # A dimension with a name has any size.
        return onnx.helper.make_tensor_value_info(name, element, ["N", width], text)

    k = n_labels
    what = "classes[1]" if two_classes else "each label"
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "clml",
            [described("features", scores, n_features, "Not standardised.")],
            [
                described("logits", scores, k, f"Positive where {what} is predicted."),
                described("probabilities", scores, k, f"Of {what}."),
                described("labels", integer, k, f"1 where {what} is predicted."),
            ],
            graph.constants,
        ),
        producer_name="clml",
        producer_version=__version__,
        doc_string=f"CLMLClassifier: {n_networks} network(s), {k} label(s).",
        opset_imports=[onnx.helper.make_opsetid("", opset)],
    )
    # The newest that the package knows may be too new for the runtime.
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import)
    onnx.helper.set_model_props(model, dict(metadata))
    return model

"""What graphs of all networks have in common: nodes, constants, and the file around."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .._version import __version__

DTYPES: Mapping[str, type[np.floating]] = {"float32": np.float32, "float64": np.float64}
# Reductions take their axes as an input from the first on; the last is the newest that
# the oldest supported runtime reads.
OPSETS = range(18, 22)
#: What one protobuf message may hold, less room for the nodes.
LARGEST_FILE = 2**31 - 2**20
#: Where trees and some other models have operators of their own, and of which version.
LEARNERS_DOMAIN, LEARNERS_OPSET = "ai.onnx.ml", 3


def check_options(dtype: Any, opset: Any) -> None:
    """Refuse an unknown precision or version of the operators."""
    if dtype not in tuple(DTYPES):
        raise ValueError(f"dtype must be one of {tuple(DTYPES)}, got {dtype!r}.")
    if type(opset) is not int or opset not in OPSETS:
        raise ValueError(
            f"opset must be an integer from {OPSETS[0]} to {OPSETS[-1]}, got {opset!r}."
        )


def metadata_of(classifier: Any) -> dict[str, str]:
    """Return what the file says about the model, as JSON, whose text is ASCII."""
    found = {
        "label_names": list(classifier.label_names_),
        "loss_names": list(classifier.front_.loss_names),
        "incumbent": classifier.incumbent_,
    }
    if classifier.rule_ is not None:
        found["rule"] = classifier.rule_
    if hasattr(classifier, "feature_names_in_"):
        found["feature_names"] = classifier.feature_names_in_.tolist()
    if not isinstance(classifier.classes_, list):
        found["classes"] = classifier.classes_.tolist()
    # Classes may be objects of any kind.
    return {name: json.dumps(value, default=str) for name, value in found.items()}


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
        self._n_named = 0

    def new_name(self, kind: str) -> str:
        """Return a name that nothing else has, nor had before it was dropped."""
        self._n_named += 1
        return f"{kind}_{self._n_named}"

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        """Add an array under a name of its own."""
        array = np.array(value, dtype=dtype, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float, dtype: Any) -> str:
        """Return the name of a number, which is added once."""
        key = (value, np.dtype(dtype))
        if key not in self._numbers:
            self._numbers[key] = self.constant(self.new_name("number"), value, dtype)
        return self._numbers[key]

    def node(
        self, kind: str, *inputs: str, output: str | None = None, **options: Any
    ) -> str:
        """Add an operator; return the name of its output."""
        output = output or self.new_name(kind)
        made = self._onnx.helper.make_node(kind, inputs, [output], output, **options)
        self.nodes.append(made)
        return output

    def several(
        self, kind: str, *inputs: str, outputs: list[str], **options: Any
    ) -> None:
        """Add an operator that gives several things, by their names."""
        made = self._onnx.helper.make_node(kind, inputs, outputs, outputs[0], **options)
        self.nodes.append(made)

    def cast(self, name: str, dtype: Any, output: str | None = None) -> str:
        """Add the same values as another type."""
        to = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", name, output=output, to=to)


def networks_text(n_networks: int, n_labels: int) -> str:
    """Return what a graph of a CLMLClassifier says that it is."""
    return f"CLMLClassifier: {n_networks} network(s), {n_labels} label(s)."


def finished_model(
    graph: Graph,
    *,
    n_features: int,
    n_labels: int,
    text: str,
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
    n_features, n_labels : int
    text : str
        What the graph is, for whoever opens it.
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

    operators = [("", opset)]
    if any(node.domain == LEARNERS_DOMAIN for node in graph.nodes):
        operators.append((LEARNERS_DOMAIN, LEARNERS_OPSET))

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
        doc_string=text,
        opset_imports=[onnx.helper.make_opsetid(*each) for each in operators],
    )
    # The newest that the package knows may be too new for the runtime.
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import)
    onnx.helper.set_model_props(model, dict(metadata))
    return model

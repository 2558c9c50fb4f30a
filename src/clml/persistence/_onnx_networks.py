"""Learners that are networks: of this library, and scikit-learn's perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._onnx_graph import add_classifier
from ._onnx_model import Graph
from ._onnx_parts import PartsGraph
from ._onnx_wide import add_ensemble

_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid"}


def add_clml(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the logits (N, K) of a fitted CLMLClassifier.

    Rows that it refuses have none: they are NaN.
    """
    part = Graph()
    if hasattr(model, "ensemble_"):
        add_ensemble(
            part,
            model.ensemble_,
            model.networks_,
            model.member_scale_,
            model.theta_,
            float(model.temperature_),
            graph.kind,
            model.rule_,
        )
    else:
        add_classifier(part, model, graph.kind)
    names = graph.embed(part.nodes, part.constants, {"features": rows})
    return graph.cast(names["logits"], np.float64)


def add_relevance_network(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the logits (N, K) of a fitted MLPRelevanceClassifier."""
    hidden = [f"hidden{layer}" for layer in range(model.network_.n_layers)]
    weights = [
        (model.weights_[f"{name}.weight"].T, model.weights_[f"{name}.bias"])
        for name in (*hidden, "output")
    ]
    return _add_layers(graph, model, rows, weights, "relu")


def add_perceptron(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the probabilities (N, K) of a fitted MLPClassifier."""
    weights = list(zip(model.coefs_, model.intercepts_, strict=True))
    logits = _add_layers(graph, model, rows, weights, model.activation)
    return graph.node("Sigmoid", logits)


def _add_layers(
    graph: PartsGraph,
    model: Any,
    rows: str,
    weights: Sequence[tuple[NDArray, NDArray]],
    activation: str,
) -> str:
    entries = graph.cast(graph.finite(rows, model.n_features_in_), graph.kind)
    for layer, (matrix, bias) in enumerate(weights):
        if layer and activation != "identity":
            entries = graph.node(_ACTIVATIONS[activation], entries)
        product = graph.node("MatMul", entries, graph.table(matrix, graph.kind))
        entries = graph.node("Add", product, graph.table(bias[None], graph.kind))
    return graph.cast(entries, np.float64)

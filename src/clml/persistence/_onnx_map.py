"""The map of learners' logits to one matrix of logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._maps.score_map import split_maps
from ._onnx_labels import Adder
from ._onnx_parts import NotExportableError, PartsGraph
from ._onnx_rules import add_rule


def map_of(model: Any, logits_of: Callable[[Any, int], Adder]) -> Adder:
    """Return what adds the logits (N, K) of a tuned or stacked classifier.

    Parameters
    ----------
    model : LebesgueTunedClassifier or LebesgueStackingClassifier
        Fitted.
    logits_of : callable
        Finds the adder of a learner with so many labels.

    Raises
    ------
    NotExportableError
        If a learner has no graph; it says which one.
    """
    adders = []
    for name, learner in _named(model):
        try:
            adders.append(logits_of(learner, model.n_labels_))
        except NotExportableError as error:
            raise NotExportableError(_told(name, learner, error)) from error

    def add(graph: PartsGraph, rows: str) -> str:
        scores = []
        for adder, (name, learner) in zip(adders, _named(model), strict=True):
            try:
                scores.append(adder(graph, rows))
            except NotExportableError as error:
                raise NotExportableError(_told(name, learner, error)) from error
        return _mapped(graph, model, scores)

    return add


def _named(model: Any) -> list[tuple[str, Any]]:
    if hasattr(model, "estimators_"):
        return list(zip(model.named_estimators_, model.estimators_, strict=True))
    return [("estimator", model.estimator_)]


def _told(name: str, learner: Any, error: NotExportableError) -> str:
    return (
        f"the learner {name!r}, {type(learner).__name__}, cannot be written as an ONNX "
        f"graph: {error}"
    )


def _mapped(graph: PartsGraph, model: Any, scores: list[str]) -> str:
    """Add the map, bias first as in the library: what equals a threshold is 0."""
    theta = np.asarray(model.theta_, dtype=np.float64)[None]
    (weights,), (bias,) = split_maps(theta, model.n_labels_)
    logits = graph.table(bias[None])
    if model._mixing:
        weighted = [graph.node("MatMul", scores[0], graph.table(weights))]
    else:
        weighted = [
            graph.node("Mul", score, graph.table(row[None]))
            for score, row in zip(scores, weights, strict=True)
        ]
    for one in weighted:
        logits = graph.node("Add", logits, one)
    temperature = float(model.temperature_)
    logits = graph.node("Div", logits, graph.number(temperature, np.float64))
    n_labels = model.n_labels_
    return add_rule(graph, model.rule_, logits, temperature, n_labels, np.float64)

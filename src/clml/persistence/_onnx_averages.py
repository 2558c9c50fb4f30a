"""Learners whose answer is the average of others', for one label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._onnx_labels import Adder, Finder, constant_of
from ._onnx_parts import NotExportableError, PartsGraph


def bagging_of(bagging: Any, method: str, find: Finder) -> Adder:
    """Return what adds the answers (N, 1) of a fitted BaggingClassifier.

    Parameters
    ----------
    bagging : BaggingClassifier
        Of two classes.
    method : {"decision_function", "predict_proba"}
    find : callable
    """
    adders: list[Adder] = []
    pairs = zip(bagging.estimators_, bagging.estimators_features_, strict=True)
    for model, columns in pairs:
        if not hasattr(model, method):
            raise NotExportableError(
                f"{type(model).__name__}, of which it holds several, has no {method}"
            )
        constant = constant_of(model)
        if constant is None:
            adders.append(_of_columns(find(model, 1, method), columns))
        else:
            adders.append(_same_for_all(constant))
    return _mean_of(adders)


def _of_columns(add: Adder, columns: Any) -> Adder:
    def gathered(graph: PartsGraph, rows: str) -> str:
        places = graph.table(columns, np.int64)
        return add(graph, graph.node("Gather", rows, places, axis=1))

    return gathered


def _same_for_all(value: float) -> Adder:
    return lambda graph, rows: graph.column(rows, value)


def calibrated_of(calibrated: Any, find: Finder) -> Adder:
    """Return what adds the probabilities (N, 1) of a fitted CalibratedClassifierCV.

    Parameters
    ----------
    calibrated : CalibratedClassifierCV
        Of two classes, with sigmoids.
    find : callable
    """
    if calibrated.method != "sigmoid":
        raise NotExportableError(
            f"its method must be 'sigmoid', got {calibrated.method!r}"
        )
    adders = []
    for each in calibrated.calibrated_classifiers_:
        model, (sigmoid,) = each.estimator, each.calibrators
        decides = hasattr(model, "decision_function")
        method = "decision_function" if decides else "predict_proba"
        adders.append(
            _through_sigmoid(find(model, 1, method), -sigmoid.a_, -sigmoid.b_)
        )
    return _mean_of(adders)


def _through_sigmoid(add: Adder, slope: float, height: float) -> Adder:
    def probabilities(graph: PartsGraph, rows: str) -> str:
        steep = graph.node("Mul", add(graph, rows), graph.number(slope, np.float64))
        shifted = graph.node("Add", steep, graph.number(height, np.float64))
        return graph.node("Sigmoid", shifted)

    return probabilities


def _mean_of(adders: Sequence[Adder]) -> Adder:
    def mean(graph: PartsGraph, rows: str) -> str:
        answers = [add(graph, rows) for add in adders]
        total = graph.node("Sum", *answers)
        return graph.node("Div", total, graph.number(len(adders), np.float64))

    return mean

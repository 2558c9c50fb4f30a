"""Learners that hold a model for each label: side by side, or as a chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.multiclass import OneVsRestClassifier

from .._learners.scores import LEAST_PROBABILITY, that_decides
from ._onnx_linear import add_linear, is_linear, weights_of
from ._onnx_parts import PartsGraph

#: Adds a learner's answer (N, K) to rows (N, D).
Adder = Callable[[PartsGraph, str], str]
#: Finds the adder of a learner with so many labels that is asked for one method.
Finder = Callable[[Any, int, str], Adder]
# Where the logistic function is 0 or 1.
_CERTAIN = 1000.0


def labels_of(models: Sequence[Any], method: str, find: Finder) -> Adder:
    """Return what adds the answers of a model for each label.

    Parameters
    ----------
    models : sequence of fitted binary classifiers
        Those of labels that never varied answer the same to all rows.
    method : {"decision_function", "predict_proba"}
    find : callable
    """
    constants = [constant_of(model) for model in models]
    varying = [m for m, c in zip(models, constants, strict=True) if c is None]
    if varying and all(is_linear(model, method) for model in varying):
        return _linear_labels(models, constants, method)
    adders = [
        find(model, 1, _method_of(model, method)) if constant is None else None
        for model, constant in zip(models, constants, strict=True)
    ]

    def add(graph: PartsGraph, rows: str) -> str:
        columns = [
            graph.column(rows, float(c or 0)) if adder is None else adder(graph, rows)
            for adder, c in zip(adders, constants, strict=True)
        ]
        return graph.node("Concat", *columns, axis=1)

    return add


def _method_of(model: Any, method: str) -> str:
    """Return what a model is asked for: probabilities where it has no decisions."""
    return method if hasattr(model, method) else "predict_proba"


def constant_of(model: Any) -> float | None:
    """Return what a model of one class answers, None if there are two."""
    known = getattr(model, "y_", None)
    if not hasattr(model, "classes_") and known is not None:
        return float(np.ravel(known)[0])
    classes = getattr(model, "classes_", (0, 1))
    return None if len(classes) == 2 else float(classes[0] == 1)


def _linear_labels(
    models: Sequence[Any], constants: Sequence[float | None], method: str
) -> Adder:
    """Return what adds linear models as one product."""
    pairs = [
        weights_of(m) if c is None else None
        for m, c in zip(models, constants, strict=True)
    ]
    n_columns = next(len(pair[0]) for pair in pairs if pair is not None)
    matrix, bias = np.zeros((n_columns, len(models))), np.zeros(len(models))
    for k, (pair, constant) in enumerate(zip(pairs, constants, strict=True)):
        if pair is not None:
            matrix[:, k : k + 1], bias[k] = pair[0], pair[1][0]
        elif method == "decision_function":
            bias[k] = constant
        else:
            bias[k] = _CERTAIN if constant else -_CERTAIN
    return lambda graph, rows: add_linear(graph, rows, matrix, bias, method)


def chain_of(chain: Any, method: str, find: Finder) -> Adder:
    """Return what adds the answers of a fitted ClassifierChain.

    Parameters
    ----------
    chain : ClassifierChain
    method : {"decision_function", "predict_proba"}
    find : callable
    """
    fed = getattr(chain, "chain_method_", "predict")
    models = chain.estimators_
    asked = [_method_of(m, "decision_function") if fed == "predict" else fed
             for m in models]  # fmt: skip
    feeders = [find(m, 1, how) for m, how in zip(models, asked, strict=True)]
    answers = [find(m, 1, method) for m in models]

    def add(graph: PartsGraph, rows: str) -> str:
        seen = graph.finite(rows, chain.n_features_in_)
        columns: list[str] = []
        for feeder, answer, how in zip(feeders, answers, asked, strict=True):
            columns.append(answer(graph, seen))
            if len(columns) < len(models):
                told = columns[-1] if how == method else feeder(graph, seen)
                if fed == "predict":
                    least = 0.0 if how == "decision_function" else 0.5
                    limit = graph.number(least, np.float64)
                    told = graph.cast(graph.node("Greater", told, limit), np.float64)
                seen = graph.node("Concat", seen, told, axis=1)
        places = graph.table(np.argsort(chain.order_), np.int64)
        together = graph.node("Concat", *columns, axis=1)
        return graph.node("Gather", together, places, axis=1)

    return add


def with_certain_labels(learner: Any, add: Adder) -> Adder:
    """Return decisions in which labels that never varied are certain.

    As the library makes them: as far from 0 as the row's other decisions.
    """
    learner = that_decides(learner)
    if not isinstance(learner, OneVsRestClassifier):
        return add
    constants = [constant_of(model) for model in learner.estimators_]
    signs = [0.0 if c is None else 2.0 * c - 1.0 for c in constants]
    if not any(signs):
        return add

    def certain(graph: PartsGraph, rows: str) -> str:
        scores = add(graph, rows)
        axis = graph.table([1], np.int64)
        least = graph.table([logit(1.0 - LEAST_PROBABILITY)])
        sizes = graph.node("ReduceMax", graph.node("Abs", scores), axis, keepdims=1)
        largest = graph.node("Max", sizes, least)
        given = graph.node("Mul", graph.table([signs]), largest)
        is_constant = graph.table([np.array(signs) != 0], np.bool_)
        return graph.node("Where", is_constant, given, scores)

    return certain

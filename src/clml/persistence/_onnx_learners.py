"""Which nodes write which learner, decided before any is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.validation import check_is_fitted

from .._learners.scores import LEAST_PROBABILITY, has_decisions
from ._onnx_averages import bagging_of, calibrated_of
from ._onnx_columns import steps_of
from ._onnx_forest import (
    add_boosted,
    add_forest,
    add_histogram_boosted,
    check_boosted,
)
from ._onnx_kernels import add_machine, check_machine
from ._onnx_labels import Adder, chain_of, labels_of, with_certain_labels
from ._onnx_linear import add_linear, is_linear, weights_of
from ._onnx_map import map_of
from ._onnx_networks import add_clml, add_perceptron, add_relevance_network
from ._onnx_parts import NotExportableError, PartsGraph
from ._onnx_sklearn import add_classifier_scores, is_known_classifier
from ._registry import ESTIMATORS, is_registered
from .onnx import check_classifier

_TREES = (
    DecisionTreeClassifier,
    ExtraTreeClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
)
# Decisions of two classes, as their module adds them, and what it refuses.
_DECIDING: dict[type, tuple[Callable[..., str], Callable[[Any], None]]] = {
    GradientBoostingClassifier: (add_boosted, check_boosted),
    HistGradientBoostingClassifier: (add_histogram_boosted, check_boosted),
    NuSVC: (add_machine, check_machine),
    SVC: (add_machine, check_machine),
}
# Their probabilities are the logistic function of decisions.
_BOOSTED = (GradientBoostingClassifier, HistGradientBoostingClassifier)
_MAPPED = ("LebesgueStackingClassifier", "LebesgueTunedClassifier")


def logits_of(learner: Any, n_labels: int) -> Adder:
    """Return what adds the logits (N, K) of a learner to float64 rows (N, D).

    They are those of ``clml._learners.scores.label_logits``.

    Raises
    ------
    NotExportableError
        If the learner, or one inside it, has no graph.
    """
    check_is_fitted(learner)
    method = _asked_of(learner)
    add = _answers_of(learner, n_labels, method)
    if method == "decision_function":
        return with_certain_labels(learner, add)
    return lambda graph, rows: _logits(graph, add(graph, rows))


def _asked_of(learner: Any) -> str:
    """Return which answer counts: decisions, if there are such of all labels."""
    if has_decisions(learner) or not hasattr(learner, "predict_proba"):
        return "decision_function"
    return "predict_proba"


def _logits(graph: PartsGraph, probabilities: str) -> str:
    ends = (LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    numbers = [graph.number(end, np.float64) for end in ends]
    p = graph.node("Clip", probabilities, *numbers)
    others = graph.node("Sub", graph.number(1, np.float64), p)
    return graph.node("Log", graph.node("Div", p, others))


def _answers_of(learner: Any, n_labels: int, method: str) -> Adder:
    """Return what adds the decisions or probabilities (N, K) of a learner."""
    if isinstance(learner, FrozenEstimator):
        return _answers_of(learner.estimator, n_labels, method)
    if isinstance(learner, BaseSearchCV) and _is_of_sklearn(learner):
        return _answers_of(learner.best_estimator_, n_labels, method)
    if type(learner) is Pipeline:
        return _pipeline(learner, n_labels, method)
    if type(learner) in (OneVsRestClassifier, MultiOutputClassifier):
        return labels_of(learner.estimators_, method, _answers_of)
    if type(learner) is ClassifierChain:
        return chain_of(learner, method, _answers_of)
    if type(learner) is BaggingClassifier:
        return bagging_of(learner, method, _answers_of)
    if type(learner) is CalibratedClassifierCV and method == "predict_proba":
        return calibrated_of(learner, _answers_of)
    if type(learner).__module__.startswith("clml."):
        return _own(learner, method)
    return _simple(learner, n_labels, method)


def _is_of_sklearn(learner: Any) -> bool:
    return type(learner).__module__.startswith("sklearn.")


def _pipeline(pipeline: Pipeline, n_labels: int, method: str) -> Adder:
    steps = steps_of([step for _, step in pipeline.steps[:-1]])
    last = _answers_of(pipeline.steps[-1][1], n_labels, method)
    if steps is None:
        return last
    return lambda graph, rows: last(graph, steps(graph, rows))


def _own(learner: Any, method: str) -> Adder:
    """Return what adds a learner of this library, which has logits."""
    add = _own_logits(learner)
    if method == "decision_function":
        return add
    return lambda graph, rows: graph.node("Sigmoid", add(graph, rows))


def _own_logits(learner: Any) -> Adder:
    if not is_registered(ESTIMATORS, type(learner)):
        raise _unknown(learner)
    name = type(learner).__name__
    if name in _MAPPED:
        return map_of(learner, logits_of)
    if name == "MLPRelevanceClassifier":
        return lambda graph, rows: add_relevance_network(graph, learner, rows)
    if name != "CLMLClassifier":
        raise _unknown(learner)
    try:
        check_classifier(learner)
    except ValueError as error:
        raise NotExportableError(str(error)) from error
    return lambda graph, rows: add_clml(graph, learner, rows)


def _simple(learner: Any, n_labels: int, method: str) -> Adder:
    """Return what adds a classifier of scikit-learn that holds no other."""
    decides = method == "decision_function"
    if type(learner) in _TREES and method == "predict_proba":
        return lambda graph, rows: add_forest(graph, learner, rows)
    if is_linear(learner, method):
        matrix, bias = weights_of(learner)
        return lambda graph, rows: add_linear(graph, rows, matrix, bias, method)
    if type(learner) in _DECIDING and (decides or type(learner) in _BOOSTED):
        return _decider(learner, method)
    if type(learner) is MLPClassifier and method == "predict_proba":
        return lambda graph, rows: add_perceptron(graph, learner, rows)
    if is_known_classifier(learner, decides):
        _refuse_constant_labels(learner)
        return lambda graph, rows: add_classifier_scores(graph, learner, rows, decides)
    raise _unknown(learner)


def _decider(learner: Any, method: str) -> Adder:
    add_decisions, check = _DECIDING[type(learner)]
    check(learner)
    if method == "decision_function":
        return lambda graph, rows: add_decisions(graph, learner, rows)
    return lambda graph, rows: graph.node(
        "Sigmoid", add_decisions(graph, learner, rows)
    )


def _refuse_constant_labels(learner: Any) -> None:
    """Refuse labels of one class, of which skl2onnx writes what cannot be read."""
    classes = learner.classes_
    of_labels = classes if isinstance(classes, list) else [classes]
    if constant := sum(len(each) < 2 for each in of_labels):
        raise NotExportableError(
            f"{constant} of its labels never varied in training, which only trees, "
            "linear models and networks can be written with"
        )


def _unknown(learner: Any) -> NotExportableError:
    return NotExportableError(f"{type(learner).__name__} has no ONNX graph here")

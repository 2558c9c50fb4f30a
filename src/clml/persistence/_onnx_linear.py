"""Linear classifiers of scikit-learn, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.linear_model._base import LinearClassifierMixin

from ._onnx_parts import PartsGraph

_LOGISTIC = (LinearDiscriminantAnalysis, LogisticRegression, LogisticRegressionCV)


def is_linear(model: Any, method: str) -> bool:
    """Return whether a fitted classifier's answer is that of its ``coef_``.

    Parameters
    ----------
    model : fitted estimator
    method : {"decision_function", "predict_proba"}
        Probabilities are those of classes where they are the logistic function of
        decisions.
    """
    kind = type(model)
    if method == "predict_proba":
        # Before scikit-learn 1.8 it was asked for otherwise, and computed otherwise.
        plain = getattr(model, "multi_class", None) != "multinomial"
        return kind in _LOGISTIC and plain
    if not kind.__module__.startswith("sklearn."):
        return False
    decide = getattr(kind, "decision_function", None)
    own = LinearClassifierMixin.decision_function
    return decide is own or kind is LinearDiscriminantAnalysis


def weights_of(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matrix (D, K) and the bias (K,) of a linear classifier."""
    found = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    matrix = np.atleast_2d(np.asarray(found, dtype=np.float64)).T
    bias = np.asarray(model.intercept_, dtype=np.float64)
    return matrix, np.broadcast_to(bias, matrix.shape[1]).copy()


def add_linear(
    graph: PartsGraph,
    rows: str,
    matrix: NDArray[np.float64],
    bias: NDArray[np.float64],
    method: str,
) -> str:
    """Add decisions or probabilities (N, K).

    Parameters
    ----------
    graph : PartsGraph
    rows : str
    matrix : float64 array (D, K)
    bias : float64 array (K,)
    method : {"decision_function", "predict_proba"}
    """
    given = graph.finite(rows, len(matrix))
    product = graph.node("MatMul", given, graph.table(matrix))
    decisions = graph.node("Add", product, graph.table(bias[None]))
    if method == "decision_function":
        return decisions
    return graph.node("Sigmoid", decisions)

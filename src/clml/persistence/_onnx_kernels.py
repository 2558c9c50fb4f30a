"""Features of kernels, and support vector machines, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._onnx_parts import NotExportableError, PartsGraph


def add_nystroem(graph: PartsGraph, nystroem: Any, rows: str) -> str:
    """Add the features of a fitted Nystroem(kernel="rbf")."""
    n_columns = nystroem.n_features_in_
    gamma = 1 / n_columns if nystroem.gamma is None else float(nystroem.gamma)
    landmarks = _dense(nystroem.components_)
    near = _gaussian(graph, graph.finite(rows, n_columns), landmarks, gamma)
    return graph.node("MatMul", near, graph.table(nystroem.normalization_.T))


def check_machine(model: Any) -> None:
    """Refuse support vector machines with a kernel of the user's own."""
    known = ("linear", "poly", "rbf", "sigmoid")
    if model.kernel not in known:
        raise NotExportableError(f"its kernel must be one of {known}")


def add_machine(graph: PartsGraph, model: Any, rows: str) -> str:
    """Add the decisions (N, 1) of a fitted SVC or NuSVC of two classes."""
    rows, vectors = (
        graph.finite(rows, model.n_features_in_),
        _dense(model.support_vectors_),
    )
    gamma = float(model._gamma)
    if model.kernel == "rbf":
        near = _gaussian(graph, rows, vectors, gamma)
    else:
        factor = 1.0 if model.kernel == "linear" else gamma
        near = graph.node("MatMul", rows, graph.table(factor * vectors.T))
        if model.kernel != "linear":
            near = graph.node("Add", near, graph.number(model.coef0, np.float64))
        if model.kernel == "poly":
            near = graph.node("Pow", near, graph.number(model.degree, np.float64))
        elif model.kernel == "sigmoid":
            near = graph.node("Tanh", near)
    total = graph.node("MatMul", near, graph.table(_dense(model.dual_coef_).T))
    return graph.node("Add", total, graph.table(model.intercept_[None]))


def _dense(array: Any) -> NDArray[np.float64]:
    return np.asarray(array.toarray() if sp.issparse(array) else array, np.float64)


def _gaussian(
    graph: PartsGraph, rows: str, landmarks: NDArray[np.float64], gamma: float
) -> str:
    """Add exp(−γ‖x − x'‖²), from the products of rows with landmarks."""
    ones = graph.table(np.ones((landmarks.shape[1], 1)))
    own = graph.node("MatMul", graph.node("Mul", rows, rows), ones)
    others = graph.table(np.square(landmarks).sum(axis=1)[None])
    products = graph.node("MatMul", rows, graph.table(-2 * landmarks.T))
    distances = graph.node("Add", graph.node("Add", own, others), products)
    distances = graph.node("Relu", distances)
    near = graph.node("Mul", distances, graph.number(-gamma, np.float64))
    return graph.node("Exp", near)

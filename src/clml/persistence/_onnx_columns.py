"""Transformers of columns, in float64: what a Pipeline does before its last step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import get_tags

from .._learners.scale_columns import ScaleNonIndicators
from ._onnx_kernels import add_nystroem
from ._onnx_parts import NotExportableError, PartsGraph
from ._onnx_sklearn import add_transformer, is_known_transformer

#: Adds what a transformer makes of rows.
Adder = Callable[[PartsGraph, str], str]


def columns_of(transformer: Any) -> Adder | None:
    """Return what adds a fitted transformer, None for one that changes nothing.

    Raises
    ------
    NotExportableError
        If it has no graph.
    """
    kind = type(transformer)
    if transformer is None or transformer == "passthrough":
        return None
    if kind is FrozenEstimator:
        return columns_of(transformer.estimator)
    if kind is Pipeline:
        return steps_of([step for _, step in transformer.steps])
    if kind is ColumnTransformer:
        return _beside_each_other(transformer)
    if kind is FunctionTransformer and transformer.func is None:
        return None
    if kind in _SCALERS:
        shift, scale, missing = _SCALERS[kind](transformer)
        return lambda graph, rows: _scaled(
            graph, transformer, rows, shift, scale, missing
        )
    if kind in (MaxAbsScaler, MinMaxScaler):
        return lambda graph, rows: _ranged(graph, transformer, rows)
    if isinstance(transformer, SelectorMixin) and kind.__module__.startswith("sklearn"):
        return lambda graph, rows: _selected(graph, transformer, rows)
    if kind is Nystroem and transformer.kernel == "rbf":
        return lambda graph, rows: add_nystroem(graph, transformer, rows)
    if kind is SimpleImputer and _fills_plainly(transformer):
        return lambda graph, rows: _filled(graph, transformer, rows)
    if is_known_transformer(transformer):
        return lambda graph, rows: add_transformer(graph, transformer, rows)
    raise NotExportableError(f"its step {transformer!r} has no ONNX graph here")


def steps_of(transformers: Sequence[Any]) -> Adder | None:
    """Return what adds fitted transformers, one after another; None if that is nothing.

    Raises
    ------
    NotExportableError
        If one of them has no graph.
    """
    found = [columns_of(transformer) for transformer in transformers]
    steps = [step for step in found if step is not None]
    if not steps:
        return None

    def add(graph: PartsGraph, rows: str) -> str:
        for step in steps:
            rows = step(graph, rows)
        return rows

    return add


def _beside_each_other(union: Any) -> Adder:
    """Return what adds the parts of a fitted ColumnTransformer."""
    places = union._transformer_to_input_indices
    weights = union.transformer_weights or {}
    parts = [
        (columns_of(transformer), places[name], float(weights.get(name, 1.0)))
        for name, transformer, _ in union.transformers_
        if transformer != "drop" and len(places[name])
    ]

    def add(graph: PartsGraph, rows: str) -> str:
        found = []
        for step, columns, weight in parts:
            own = graph.table(columns, np.int64)
            part = graph.node("Gather", rows, own, axis=1)
            part = part if step is None else step(graph, part)
            if weight != 1.0:
                part = graph.node("Mul", part, graph.number(weight, np.float64))
            found.append(part)
        return graph.node("Concat", *found, axis=1)

    return add


_Scaling = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None, bool]
_SCALERS: dict[type, Callable[[Any], _Scaling]] = {
    # What is subtracted, what the rest is divided by, and whether NaN may be there.
    ScaleNonIndicators: lambda own: (own.mean_, own.scale_, False),
    StandardScaler: lambda own: (
        own.mean_ if own.with_mean else None,
        own.scale_ if own.with_std else None,
        True,
    ),
    RobustScaler: lambda own: (
        own.center_ if own.with_centering else None,
        own.scale_ if own.with_scaling else None,
        True,
    ),
}


def _scaled(
    graph: PartsGraph,
    transformer: Any,
    rows: str,
    shift: NDArray[np.float64] | None,
    scale: NDArray[np.float64] | None,
    missing: bool,
) -> str:
    rows = graph.finite(rows, transformer.n_features_in_, missing=missing)
    if shift is not None:
        rows = graph.node("Sub", rows, graph.table(shift[None]))
    if scale is not None:
        rows = graph.node("Div", rows, graph.table(scale[None]))
    return rows


def _ranged(graph: PartsGraph, scaler: Any, rows: str) -> str:
    """Add columns that are scaled to a range, and clipped to it if that is asked."""
    rows = graph.finite(rows, scaler.n_features_in_, missing=True)
    ends = (-1.0, 1.0)
    if type(scaler) is MaxAbsScaler:
        rows = graph.node("Div", rows, graph.table(scaler.scale_[None]))
    else:
        ends = scaler.feature_range
        rows = graph.node("Mul", rows, graph.table(scaler.scale_[None]))
        rows = graph.node("Add", rows, graph.table(scaler.min_[None]))
    if getattr(scaler, "clip", False):
        limits = (graph.number(float(end), np.float64) for end in ends)
        rows = graph.node("Clip", rows, *limits)
    return rows


def _selected(graph: PartsGraph, selector: Any, rows: str) -> str:
    missing = bool(get_tags(selector).input_tags.allow_nan)
    rows = graph.finite(rows, selector.n_features_in_, missing=missing)
    kept = graph.table(selector.get_support(indices=True), np.int64)
    return graph.node("Gather", rows, kept, axis=1)


def _fills_plainly(imputer: Any) -> bool:
    """Whether NaN alone are replaced, and every column stays where it is."""
    statistics = np.asarray(imputer.statistics_)
    return (
        isinstance(imputer.missing_values, float)
        and np.isnan(imputer.missing_values)
        and not imputer.add_indicator
        and statistics.dtype.kind == "f"
        and bool(np.isfinite(statistics).all())
    )


def _filled(graph: PartsGraph, imputer: Any, rows: str) -> str:
    rows = graph.finite(rows, imputer.n_features_in_, missing=True)
    values = graph.table(imputer.statistics_[None])
    return graph.node("Where", graph.node("IsNaN", rows), values, rows)

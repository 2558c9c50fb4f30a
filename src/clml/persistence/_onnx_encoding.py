"""The nodes of an ONNX graph that encode columns as a fitted encoding does.

Every number is computed in float64 by the steps of ``encoding._kernels`` and rounded to
float32, so networks in a graph see the bits that they see in the library. Only levels
within rounding of a knot may differ by the last bit of a float64 before that.

Columns of one code are encoded together, and so come in another order than in the
library: whoever multiplies them orders the weights alike. Indicators of missing values
come last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..encoding import FittedEncoding, FittedKernel
from ..encoding.kernels import LARGEST, Tables
from ..encoding.kinds import Code
from ._onnx_model import Graph

_STANDARD = (Code.STANDARD, Code.STANDARD_AND_RAMPS)
_RAMPS = (Code.RAMPS, Code.STANDARD_AND_RAMPS)


class EncodingNodes:
    """Adds encodings of the features to a graph.

    Parameters
    ----------
    graph : Graph
    n_features : int
    """

    def __init__(self, graph: Graph, n_features: int):
        self._graph, self._n_features = graph, n_features
        self._given = graph.cast("features", np.float64)
        self._is_missing = graph.node("IsNaN", self._given)
        # Of the encoding that is being added.
        self._x = self._half = ""
        self._n_encodings = 0

    def refused(self) -> str:
        """Add which rows (N, 1) hold a value that is infinite."""
        graph = self._graph
        largest = graph.number(float(np.finfo(np.float64).max), np.float64)
        beyond = graph.node("Greater", graph.node("Abs", self._given), largest)
        unread = graph.cast(beyond, np.float64)
        # A product with ones: reductions of no rows have another shape at times.
        ones = graph.constant("ones", np.ones((self._n_features, 1)), np.float64)
        count = graph.node("MatMul", unread, ones)
        return graph.node("Greater", count, graph.number(0, np.float64))

    def add(
        self, encoding: FittedEncoding | FittedKernel
    ) -> tuple[str, NDArray[np.int64]]:
        """Add float32 rows; return their name, and which encoded column each one is."""
        if isinstance(encoding, FittedKernel):
            return self._kernel(encoding), np.arange(encoding.n_columns)
        return self._columns(encoding)

    def _kernel(self, encoding: FittedKernel) -> str:
        """Add features of a kernel: of distances in float64, as Python has them."""
        graph = self._graph
        rows, order = self._columns(encoding.columns)
        rows = graph.cast(rows, np.float64)
        found = encoding.landmarks
        dense = found.toarray() if sp.issparse(found) else found
        landmarks = dense[:, order].astype(np.float64)
        suffix = f"of_encoding_{self._n_encodings}"

        def constant(name: str, value: NDArray) -> str:
            return graph.constant(f"{name}_{suffix}", value, np.float64)

        if encoding.norm == 1:
            distances = self._absolute_distances(rows, landmarks)
        else:
            ones = constant("entries", np.ones((len(order), 1)))
            own = graph.node("MatMul", graph.node("Mul", rows, rows), ones)
            others = constant("lengths", np.square(landmarks).sum(axis=1)[None])
            twice = constant("landmarks", -2 * landmarks.T)
            products = graph.node("MatMul", rows, twice)
            distances = graph.node("Add", graph.node("Add", own, others), products)
            distances = graph.node("Relu", distances)
        gamma = graph.number(-encoding.gamma, np.float64)
        near = graph.node("Mul", distances, gamma)
        projection = constant("projection", encoding.projection)
        features = graph.node("MatMul", graph.node("Exp", near), projection)
        return graph.cast(features, np.float32)

    def _absolute_distances(self, rows: str, landmarks: NDArray[np.float64]) -> str:
        """Add sums of absolute differences (n, m), column after column.

        All differences at once would take as much memory as rows times landmarks times
        columns.
        """
        graph = self._graph
        m, n_columns = landmarks.shape
        nothing = graph.node("MatMul", rows, self._table(np.zeros((n_columns, 1))))
        return graph.node(
            "Scan",
            graph.node("Add", nothing, self._table(np.zeros((1, m)))),
            graph.node("Transpose", rows, perm=[1, 0]),
            self._table(np.ascontiguousarray(landmarks.T)),
            body=_added_differences(),
            num_scan_inputs=2,
        )

    def _columns(self, encoding: FittedEncoding) -> tuple[str, NDArray[np.int64]]:
        graph, tables = self._graph, encoding.tables
        self._n_encodings += 1
        self._fill(encoding)
        parts, order = [], []
        adders: tuple[tuple[tuple[Code, ...], Callable[..., str]], ...] = (
            ((Code.PLAIN,), self._plain),
            (_STANDARD, self._standard),
            ((Code.CLIPPED,), self._clipped),
            ((Code.LEVELS,), self._levels),
        )
        for codes, adder in adders:
            columns = np.flatnonzero(np.isin(tables.code, codes))
            if columns.size:
                places = tables.place[columns]
                numbers = self._rounded(adder(tables, columns), tables.zero[places])
                parts.append(self._without_missing(numbers, tables, columns))
                order.append(places)
        columns, low, places = _ramps_of(tables)
        if columns.size:
            ramps = self._ramps(tables, columns, low)
            ramps = self._rounded(ramps, tables.zero[places])
            parts.append(self._without_missing(ramps, tables, columns))
            order.append(places)
        columns = np.flatnonzero(tables.missing)
        if columns.size:
            is_missing = self._gathered(self._is_missing, columns)
            parts.append(graph.cast(is_missing, np.float32))
            order.append(tables.place[columns + 1] - 1)
        rows = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
        return rows, np.concatenate(order)

    def _fill(self, encoding: FittedEncoding) -> None:
        """Add what missing values stand for, if they have no indicator."""
        graph = self._graph
        neutral = self._table(encoding.neutral[None])
        self._x = graph.node("Where", self._is_missing, neutral, self._given)
        # Differences of halves cannot overflow.
        self._half = graph.node("Mul", self._x, graph.number(0.5, np.float64))

    def _without_missing(
        self, part: str, tables: Tables, columns: NDArray[np.int64]
    ) -> str:
        """Set to 0 what indicators tell of; ``columns`` are the inputs of a part."""
        if not tables.missing[columns].any():
            return part
        graph = self._graph
        told = self._table(tables.missing[columns][None], np.bool_)
        absent = graph.node("And", self._gathered(self._is_missing, columns), told)
        return graph.node("Where", absent, graph.number(0, np.float32), part)

    def _plain(self, tables: Tables, columns: NDArray[np.int64]) -> str:
        return self._bounded(self._gathered(self._x, columns))

    def _standard(self, tables: Tables, columns: NDArray[np.int64]) -> str:
        graph, half = self._graph, self._gathered(self._half, columns)
        centred = graph.node("Sub", half, self._table(tables.shift[columns] * 0.5))
        scale = self._table(tables.scale[columns] * 0.5)
        return self._bounded(graph.node("Div", centred, scale))

    def _clipped(self, tables: Tables, columns: NDArray[np.int64]) -> str:
        graph, u = self._graph, self._standard(tables, columns)
        part = graph.node("Div", u, graph.number(tables.limit, np.float64))
        square = graph.node("Mul", part, part)
        more = graph.node("Add", graph.number(1, np.float64), square)
        return graph.node("Div", u, graph.node("Sqrt", more))

    def _levels(self, tables: Tables, columns: NDArray[np.int64]) -> str:
        """Interpolate in tables: bisection, in all columns at once.

        Memory does not depend on the size of tables, and time on its logarithm.
        """
        graph = self._graph
        half = self._gathered(self._half, columns)
        knots = self._table(tables.knots * 0.5)
        levels = self._table(tables.levels)
        # The knot before each value, that is the last one but one at most.
        first, last = tables.offsets[columns], tables.offsets[columns + 1] - 2
        low = self._table(first[None], np.int32)
        n_steps = int((last - first).max()).bit_length()
        most = self._table(last[None], np.int32) if n_steps else ""
        for power in reversed(range(n_steps)):
            step = graph.number(1 << power, np.int32)
            further = graph.node("Min", graph.node("Add", low, step), most)
            beyond = graph.node("Gather", knots, further)
            is_beyond = graph.node("GreaterOrEqual", half, beyond)
            low = graph.node("Where", is_beyond, further, low)
        high = graph.node("Add", low, graph.number(1, np.int32))
        begin = graph.node("Gather", knots, low)
        width = graph.node("Sub", graph.node("Gather", knots, high), begin)
        way = graph.node("Div", graph.node("Sub", half, begin), width)
        way = self._within(way, 0, 1)
        a, b = graph.node("Gather", levels, low), graph.node("Gather", levels, high)
        rise = graph.node("Mul", graph.node("Sub", b, a), way)
        between = graph.node("Min", graph.node("Add", a, rise), b)
        # a + (b − a) need not be b.
        at_end = graph.node("GreaterOrEqual", way, graph.number(1, np.float64))
        return graph.node("Where", at_end, b, between)

    def _ramps(
        self, tables: Tables, columns: NDArray[np.int64], low: NDArray[np.int64]
    ) -> str:
        graph, half = self._graph, self._gathered(self._half, columns)
        knots = tables.knots * 0.5
        above = graph.node("Sub", half, self._table(knots[low]))
        width = self._table(knots[low + 1] - knots[low])
        return self._within(graph.node("Div", above, width), 0, 1)

    def _gathered(self, rows: str, columns: NDArray[np.int64]) -> str:
        if np.array_equal(columns, np.arange(self._n_features)):
            return rows
        return self._graph.node("Gather", rows, self._table(columns, np.int64), axis=1)

    def _table(self, values: NDArray, dtype: type = np.float64) -> str:
        name = f"table_{len(self._graph.constants)}_of_encoding_{self._n_encodings}"
        return self._graph.constant(name, values, dtype)

    def _bounded(self, values: str) -> str:
        return self._within(values, -LARGEST, LARGEST)

    def _within(self, values: str, low: float, high: float) -> str:
        ends = (self._graph.number(end, np.float64) for end in (low, high))
        return self._graph.node("Clip", values, *ends)

    def _rounded(self, values: str, zero: NDArray[np.float64] | None = None) -> str:
        """Subtract what 0 becomes; round as the library does."""
        if zero is not None and zero.any():
            values = self._graph.node("Sub", values, self._table(zero))
        return self._graph.cast(values, np.float32)


def _ramps_of(
    tables: Tables,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return of each ramp the input column, the knot it begins at, and its place."""
    with_ramps = np.flatnonzero(np.isin(tables.code, _RAMPS))
    counts = np.diff(tables.offsets)[with_ramps] - 1
    columns = np.repeat(with_ramps, counts)
    within = np.arange(columns.size) - np.repeat(np.cumsum(counts) - counts, counts)
    after_number = tables.code[columns] == Code.STANDARD_AND_RAMPS
    places = tables.place[columns] + after_number + within
    return columns, tables.offsets[columns] + within, places


def _added_differences() -> Any:
    """Return the graph that adds a column's differences from landmarks to a sum."""
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, *shape: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)

    nodes = [
        helper.make_node("Unsqueeze", ["column", "last"], ["upright"]),
        helper.make_node("Sub", ["upright", "landmarks"], ["apart"]),
        helper.make_node("Abs", ["apart"], ["absolute"]),
        helper.make_node("Add", ["sum", "absolute"], ["larger_sum"]),
    ]
    return helper.make_graph(
        nodes,
        "add_differences",
        [value("sum", "n", "m"), value("column", "n"), value("landmarks", "m")],
        [value("larger_sum", "n", "m")],
        [numpy_helper.from_array(np.array([1], dtype=np.int64), "last")],
    )

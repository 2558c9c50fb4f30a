"""What the learners of one graph have in common: rows in double, parts of other graphs.

All learners read float64 rows, whatever the type of the features. Rows that a learner
refuses are remembered, and are zeros to it: nothing else in the graph sees what they
hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._onnx_model import Graph


class NotExportableError(TypeError):
    """A learner that has no graph, and why."""


class PartsGraph(Graph):
    """A graph that is put together from learners.

    Parameters
    ----------
    kind : type
        float32 or float64: of features and networks.
    opset : int
        Version of the operators.
    """

    def __init__(self, kind: type[np.floating], opset: int) -> None:
        super().__init__()
        self.kind, self.opset = kind, opset
        self._finite: dict[tuple[str, Any, bool], str] = {}
        self._refused: list[str] = []
        self._n_parts = 0

    def table(self, values: Any, dtype: Any = np.float64) -> str:
        """Add an array under a name that nothing else has."""
        return self.constant(f"table_{len(self.constants)}", values, dtype)

    def finite(
        self,
        rows: str,
        n_columns: int,
        dtype: Any = np.float64,
        *,
        missing: bool = False,
    ) -> str:
        """Add rows of a type, zeros for those that a learner would refuse.

        Parameters
        ----------
        rows : str
            float64.
        n_columns : int
        dtype : type, default=float64
            Values beyond it are infinite.
        missing : bool, default=False
            Whether the learner takes NaN, which then stay.
        """
        key = (rows, dtype, missing)
        if key not in self._finite:
            self._finite[key] = self._without_refused(rows, n_columns, dtype, missing)
        return self._finite[key]

    def _without_refused(
        self, rows: str, n_columns: int, dtype: Any, missing: bool
    ) -> str:
        if dtype is not np.float64:
            rows = self.cast(rows, dtype)
        largest = self.number(float(np.finfo(dtype).max), dtype)
        unread = self.node("Greater", self.node("Abs", rows), largest)
        if not missing:
            unread = self.node("Or", unread, self.node("IsNaN", rows))
        # A product with ones: reductions of no rows have another shape at times.
        ones = self.table(np.ones((n_columns, 1)))
        count = self.node("MatMul", self.cast(unread, np.float64), ones)
        refused = self.node("Greater", count, self.number(0, np.float64))
        self._refused.append(refused)
        return self.node("Where", unread, self.number(0, dtype), rows)

    def nan_where_refused(self, scores: str) -> str:
        """Add scores (N, K), NaN in rows that any learner refuses."""
        for refused in self._refused:
            nan = self.number(np.nan, np.float64)
            scores = self.node("Where", refused, nan, scores)
        return scores

    def column(self, rows: str, value: float) -> str:
        """Add a column (N, 1) of one number, for as many rows."""
        n = self.node("Shape", rows, start=0, end=1)
        shape = self.node("Concat", n, self.table([1], np.int64), axis=0)
        return self.node("Expand", self.number(value, np.float64), shape)

    def embed(
        self,
        nodes: Iterable[Any],
        constants: Iterable[Any],
        inputs: Mapping[str, str],
    ) -> dict[str, str]:
        """Add the nodes of another graph; return its names as they are called here.

        Parameters
        ----------
        nodes, constants : NodeProto and TensorProto
            They are changed.
        inputs : mapping of str to str
            What the inputs of that graph are in this one.
        """
        self._n_parts += 1
        prefix = f"part_{self._n_parts}_"
        nodes, constants = list(nodes), list(constants)
        names = {"": "", **inputs}
        for constant in constants:
            names[constant.name] = prefix + constant.name
            constant.name = names[constant.name]
        for node in nodes:
            names |= {output: prefix + output for output in node.output if output}
        for node in nodes:
            node.name = prefix + node.name
            _rename(node, names)
        self.nodes += nodes
        self.constants += constants
        return names


def _rename(node: Any, names: Mapping[str, str]) -> None:
    """Give a node's inputs and outputs their new names, in what it repeats, too."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in node.attribute:
        for body in (*attribute.graphs, *([attribute.g] if attribute.g.node else [])):
            own = {value.name for value in (*body.input, *body.initializer)}
            own |= {name for inner in body.node for name in inner.output}
            outer = {old: new for old, new in names.items() if old not in own}
            for inner in body.node:
                _rename(inner, outer)

"""What the learners of one graph have in common: rows in double, parts of other graphs.

All learners read float64 rows, whatever the type of the features. Rows that a learner
refuses are remembered, and are zeros to it: nothing else in the graph sees what they
hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
        return self.constant(self.new_name("table"), values, dtype)

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
        parts = _Renamed(f"part_{self._n_parts}", {"": "", **inputs})
        nodes, constants = list(nodes), list(constants)
        for constant in constants:
            constant.name = parts.new(constant.name)
        parts.rename(nodes)
        self.nodes += nodes
        self.constants += constants
        return parts.names

    def keep_what_gives(self, output: str) -> None:
        """Drop nodes and constants that an output does not depend on.

        Parts have outputs, such as decisions, that nobody here asks for.
        """
        needed, kept = {output}, []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed |= set(_read_by(node))
                kept.append(node)
        self.nodes[:] = reversed(kept)
        self.constants[:] = [one for one in self.constants if one.name in needed]
        # Who asks for one that was dropped gets it anew.
        self._numbers = {k: name for k, name in self._numbers.items() if name in needed}


def _read_by(node: Any) -> Iterator[str]:
    """Yield what a node reads, and what is read by what it repeats."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read_by(inner)


class _Renamed:
    """The names of a part, by number: what others made of them may change each time.

    Parameters
    ----------
    prefix : str
    names : dict of str to str
        Those that are known before.
    """

    def __init__(self, prefix: str, names: dict[str, str]) -> None:
        self.prefix, self.names = prefix, names

    def new(self, name: str) -> str:
        """Return what something is called from now on."""
        if name not in self.names:
            self.names[name] = f"{self.prefix}_{len(self.names)}"
        return self.names[name]

    def rename(self, nodes: Iterable[Any]) -> None:
        """Give nodes, and what they give, their new names; they come in order."""
        for node in nodes:
            node.input[:] = [self.names[name] for name in node.input]
            node.output[:] = [self.new(name) for name in node.output]
            node.name = node.output[0]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._rename_body(attribute.g, node.name)

    def _rename_body(self, body: Any, prefix: str) -> None:
        """Rename what a node repeats, which also sees the names around it."""
        # Its own names may be those of something outside.
        own = {value.name for value in (*body.input, *body.initializer)}
        own |= {name for node in body.node for name in node.output if name}
        seen = {old: new for old, new in self.names.items() if old not in own}
        inner = _Renamed(f"{prefix}_body", seen)
        for value in (*body.input, *body.initializer):
            value.name = inner.new(value.name)
        inner.rename(body.node)
        for value in body.output:
            value.name = inner.names[value.name]
        body.name = f"{prefix}_body"

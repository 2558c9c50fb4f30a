"""Rows of a text file as numbers: scanned by kernels, completed in Python.

Numbers are themselves, a nominal value is its place in the declaration, text and
dates are places in the list of different texts of their column; NaN is a missing
value. What the numbers mean for a learner is decided later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _scan as scan
from ._attributes import NOMINAL, NUMERIC, Attribute
from .arff_header import unescape
from .files import PathLike, fail

_MOST_NOTES = 65536


@dataclass
class Table:
    """The rows of a file.

    Attributes
    ----------
    path : str or path
        Where they come from, for errors.
    attributes : sequence of Attribute
    cells : float64 array (n_rows, n_attributes) or None
        The values of a dense file.
    indptr, columns, entries : arrays or None
        The values of a sparse file by rows: those of row r are ``entries[b:e]`` of
        the attributes ``columns[b:e]``, b and e being ``indptr[r]`` and
        ``indptr[r + 1]``. What is not listed is 0: the number zero, or the first
        declared value.
    weights : float64 array (n_rows,)
    texts : dict of int to list of str
        For each text or date column the different texts, by code; in a sparse file
        code 0, which is also what is not listed, is the empty text.
    n_bytes : int
        Size of the text they were read from.
    line_of : callable
        Row number to line number.
    reserved : int
        Bytes that are going to be taken in memory.
    """

    path: PathLike
    attributes: Sequence[Attribute]
    weights: NDArray[np.float64]
    n_bytes: int
    line_of: Callable[[int], int | None]
    cells: NDArray[np.float64] | None = None
    indptr: NDArray[np.int64] | None = None
    columns: NDArray[np.int32] | None = None
    entries: NDArray[np.float64] | None = None
    texts: dict[int, list[str]] = field(default_factory=dict)
    reserved: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weights)

    def entries_by_row(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return columns, entries and indptr of a sparse table."""
        assert self.columns is not None and self.entries is not None
        assert self.indptr is not None
        return self.columns, self.entries, self.indptr

    @cached_property
    def _by_column(self) -> tuple[NDArray, NDArray]:
        columns, _, _ = self.entries_by_row()
        order = np.argsort(columns, kind="stable")
        bounds = np.searchsorted(columns[order], np.arange(len(self.attributes) + 1))
        return order, bounds

    def entries_of(self, column: int) -> NDArray[np.int64]:
        """Return which entries of a sparse table are of a column, by rows."""
        order, bounds = self._by_column
        return order[bounds[column] : bounds[column + 1]]

    def column(self, column: int) -> NDArray[np.float64]:
        """Return one column as it is in a dense table; of a dense one, a view."""
        if self.cells is not None:
            return self.cells[:, column]
        _, entries, indptr = self.entries_by_row()
        values = np.zeros(self.n_rows)
        where = self.entries_of(column)
        values[np.searchsorted(indptr, where, side="right") - 1] = entries[where]
        return values


def _kinds(attributes: Sequence[Attribute]) -> NDArray[np.int8]:
    codes = {NUMERIC: scan.NUMBER, NOMINAL: scan.NOMINAL}
    kinds = (codes.get(attribute.kind, scan.TEXT) for attribute in attributes)
    return np.fromiter(kinds, dtype=np.int8, count=len(attributes))


def _encoded(values: Sequence[str], encoding: str) -> Iterator[tuple[bytes, int]]:
    for code, value in enumerate(values):
        # What the encoding lacks stands in the file escaped, if at all.
        with suppress(UnicodeEncodeError):
            yield value.encode(encoding), code


def _sorted_values(attributes: Sequence[Attribute], encoding: str) -> tuple:
    """Return the declared values as the kernels search them: sorted, as bytes."""
    letters: list[bytes] = []
    codes: list[int] = []
    of_column = np.zeros(len(attributes) + 1, dtype=np.int64)
    for number, attribute in enumerate(attributes):
        for value, code in sorted(_encoded(attribute.values, encoding)):
            letters.append(value)
            codes.append(code)
        of_column[number + 1] = len(letters)
    bounds = np.zeros(len(letters) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in letters], out=bounds[1:])
    joined = np.frombuffer(b"".join(letters) + b"\0", dtype=np.uint8)
    return joined, bounds, np.array(codes, dtype=np.int64), of_column


def decoded(token: bytes, encoding: str = "utf-8") -> str:
    """Return bytes as text, taken as Latin-1, which has them all, if they must be."""
    try:
        return token.decode(encoding)
    except UnicodeDecodeError:
        return token.decode("latin-1")


@dataclass
class _Reader:
    """One reading of the rows of a text: what the kernels share and Python keeps."""

    path: PathLike
    text: bytes
    attributes: Sequence[Attribute]
    kinds: NDArray[np.int8]
    encoding: str
    unescaped: Callable[[str], str]
    sparse: bool = False
    codes: dict[int, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bytes = np.frombuffer(self.text, dtype=np.uint8)
        self.values = _sorted_values(self.attributes, self.encoding)
        self.todo = np.empty((max(_MOST_NOTES, len(self.kinds) + 1), 5), dtype=np.int64)

    def line(self, place: int) -> int:
        return self.text.count(b"\n", 0, place) + 1

    def settle(
        self, n_todo: int, store: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> None:
        """Put the values of the noted tokens into ``store`` (cells or entries)."""
        for where, column, begin, end, form in self.todo[:n_todo].tolist():
            token = self.text[begin:end]
            if column == len(self.kinds):
                weights[where] = float(token)
                continue
            kind = self.kinds[column]
            if kind == scan.NUMBER or kind == scan.INFER:
                value = float(token)  # a number, the kernel has seen to that
            else:
                word = decoded(token, self.encoding)
                if form == scan.ESCAPED:
                    word = self.unescaped(word)
                codes = self.codes.get(column)
                if codes is None:
                    codes = self._first_codes(column)
                if kind == scan.TEXT:
                    value = codes.setdefault(word, len(codes))
                elif word in codes:
                    value = codes[word]
                else:
                    raise self.error(scan.UNDECLARED, column, begin)
            if store.ndim == 2:
                store[where, column] = value
            else:
                store[where] = value

    def _first_codes(self, column: int) -> dict[str, int]:
        values = self.attributes[column].values
        if self.sparse and self.kinds[column] == scan.TEXT:
            values = ("",)
        self.codes[column] = {value: code for code, value in enumerate(values)}
        return self.codes[column]

    def _shown(self, place: int) -> str:
        line = self.text[place : place + 40].split(b"\n")[0]
        return repr(decoded(line.strip(), self.encoding))

    def error(self, code: int, column: int, place: int) -> ValueError:
        """Return the error of a kernel's code, with its line."""
        n = len(self.kinds)
        name = repr(self.attributes[column].name) if column < n else ""
        shown = self._shown(place)
        message = {
            scan.TOO_FEW: f"expected {n} values, got {column}.",
            scan.TOO_MANY: f"expected {n} values, but {shown} follows them.",
            scan.EMPTY: f"the value of attribute {name} is empty.",
            scan.NOT_A_NUMBER: f"attribute {name} is numeric, got {shown}.",
            scan.UNDECLARED: f"attribute {name} does not declare the value at {shown}.",
            scan.OPEN_QUOTE: f"the quote at {shown} is not closed.",
            scan.TEXT_AFTER_QUOTE: f"a separator must follow the value at {shown}.",
            scan.SPARSE_ROW: "a sparse row stands among dense ones.",
            scan.DENSE_ROW: f"expected a sparse row in braces, got {shown}.",
            scan.NO_INDEX: f"expected an index and a value, got {shown}.",
            scan.LARGE_INDEX: f"the index at {shown} is not below {n}, the number of "
            "attributes.",
            scan.REPEATED_INDEX: f"the index {column} stands twice in the row.",
            scan.OPEN_ROW: "the brace of the row is not closed.",
            scan.AFTER_ROW: f"{shown} follows the row.",
            scan.BAD_WEIGHT: f"expected the weight of the row in braces, got {shown}.",
        }[code]
        return fail(self.path, message, self.line(place))

    def table(self, weights: Any, row_starts: Any, n_rows: int, **found: Any) -> Table:
        # Lines are rarely asked for: one count each is better than keeping them all.
        starts = row_starts[:n_rows]
        return Table(
            path=self.path,
            attributes=self.attributes,
            weights=weights[:n_rows],
            n_bytes=len(self.text),
            line_of=lambda row: self.line(starts[row]),
            texts={
                column: list(codes)
                for column, codes in self.codes.items()
                if self.kinds[column] == scan.TEXT
            },
            **found,
        )


def _dense(reader: _Reader, position: int, delimiter: str, arff: bool) -> Any:
    """Return a dense table and which columns inferred as numbers hold text."""
    n_columns = len(reader.kinds)
    # The shortest row: in ARFF files every field has a character.
    shortest = 2 * n_columns if arff else n_columns
    most_rows = (len(reader.text) - position) // shortest + 2
    cells = np.empty((most_rows, n_columns))
    weights = np.empty(most_rows)
    row_starts = np.empty(most_rows, dtype=np.int64)
    textual = np.zeros(n_columns, dtype=bool)
    row = 0
    while True:
        code, position, row, n_todo, column, place = scan.scan_dense(
            reader.bytes,
            position,
            reader.kinds,
            reader.values,
            ord(delimiter),
            arff,
            cells,
            weights,
            row_starts,
            row,
            reader.todo,
            textual,
        )
        reader.settle(n_todo, cells, weights)
        if code == scan.DONE:
            break
        if code != scan.FULL:
            raise reader.error(code, column, place)
    table = reader.table(weights, row_starts, row, cells=cells[:row])
    return table, textual


def _sparse(reader: _Reader, position: int) -> Table:
    size = len(reader.text) - position
    most_rows, most_entries = size // 3 + 2, size // 4 + 2
    columns = np.empty(most_entries, dtype=np.int32)
    entries = np.empty(most_entries)
    weights = np.empty(most_rows)
    row_starts = np.empty(most_rows, dtype=np.int64)
    indptr = np.zeros(most_rows + 1, dtype=np.int64)
    last_row = np.full(len(reader.kinds), -1, dtype=np.int64)
    row = 0
    while True:
        code, position, row, n_todo, column, place = scan.scan_sparse(
            reader.bytes,
            position,
            reader.kinds,
            reader.values,
            columns,
            entries,
            weights,
            row_starts,
            indptr[1:],
            row,
            last_row,
            reader.todo,
        )
        reader.settle(n_todo, entries, weights)
        if code == scan.DONE:
            break
        if code != scan.FULL:
            raise reader.error(code, column, place)
    n_entries = indptr[row]
    return reader.table(
        weights,
        row_starts,
        row,
        indptr=indptr[: row + 1],
        columns=columns[:n_entries],
        entries=entries[:n_entries],
    )


def _starts_sparse(text: bytes, position: int) -> bool:
    while position < len(text):
        end = text.find(b"\n", position)
        end = len(text) if end < 0 else end
        first = text[position:end].lstrip()[:1]
        if first and first != b"%":
            return first == b"{"
        position = end + 1
    return False


def arff_table(
    path: PathLike,
    text: bytes,
    position: int,
    attributes: Sequence[Attribute],
    encoding: str,
) -> Table:
    """Return the rows of an ARFF file that begin at a position of its text."""
    is_sparse = _starts_sparse(text, position)
    reader = _Reader(
        path, text, attributes, _kinds(attributes), encoding, unescape, is_sparse
    )
    if is_sparse:
        table = _sparse(reader, position)
    else:
        table, _ = _dense(reader, position, ",", arff=True)
    if not table.n_rows:
        raise fail(path, "no rows follow @data.")
    return table


def csv_table(
    path: PathLike, text: bytes, position: int, names: Sequence[str], delimiter: str
) -> Table:
    """Return the rows of a CSV file; columns that hold anything but numbers are text.

    The first pass takes every column for numbers and learns which are not; the second
    is needed only where some are not.
    """
    attributes = [Attribute(name) for name in names]
    kinds = np.full(len(names), scan.INFER, dtype=np.int8)

    def unquoted(word: str) -> str:
        return word.replace('""', '"')

    reader = _Reader(path, text, attributes, kinds, "utf-8", unquoted)
    table, textual = _dense(reader, position, delimiter, arff=False)
    if textual.any():
        kinds = np.where(textual, scan.TEXT, scan.NUMBER).astype(np.int8)
        reader = _Reader(path, text, attributes, kinds, "utf-8", unquoted)
        table, _ = _dense(reader, position, delimiter, arff=False)
    if not table.n_rows:
        raise fail(path, "no rows follow the names of the columns.")
    return table

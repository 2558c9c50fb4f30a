"""Rows of labels and features read from text, as CSR arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from . import _scan_pairs as scan
from ._csr import LARGEST_INDEX, csr_of
from ._limits import LABEL_BYTES, NAME_BYTES, check_size
from .files import PathLike, fail

_MOST_NOTES = 4096
# Every column has a name in memory, so a short file may not claim very many.
_FREE_COLUMNS = 10**6


@dataclass
class Rows:
    """The rows of a text: labels and features by row, as CSR arrays hold them."""

    path: PathLike
    text: bytes
    labels: NDArray[np.int64]
    label_ends: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    value_ends: NDArray[np.int64]
    row_starts: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.row_starts) - 1

    def fail(self, message: str, row: int) -> ValueError:
        """Return the error of a row, with its line."""
        line = self.text.count(b"\n", 0, int(self.row_starts[row])) + 1
        return fail(self.path, message, line)


def most_columns(n_bytes: int) -> int:
    """Return how many features or labels a text of this size may have."""
    return min(LARGEST_INDEX, max(_FREE_COLUMNS, n_bytes))


def check_names_fit(path: PathLike, text: bytes, n_columns: int) -> None:
    """Refuse so many features and labels that their names would take too much."""
    check_size(
        path,
        len(text),
        NAME_BYTES * n_columns,
        f"The names of {n_columns:,} features and labels",
        "Pass n_features to read svmlight files with so many.",
    )


def _error(
    path: PathLike, text: bytes, code: int, place: int, largest_index: int
) -> ValueError:
    shown = repr(text[place : place + 40].split(b"\n")[0].decode("utf-8", "replace"))
    message = {
        scan.BAD_LABEL: f"expected labels, integers parted by commas, got {shown}.",
        scan.BAD_PAIR: f"expected a feature as index:value, got {shown}.",
        scan.BAD_INDEX: f"the index at {shown} is no number.",
        scan.LARGE_INDEX: f"the index at {shown} is above {largest_index:,}, the "
        "largest that n_features or the size of the file allows.",
        scan.BAD_VALUE: f"the value at {shown} is no number.",
    }[code]
    return fail(path, message, text.count(b"\n", 0, place) + 1)


def scan_rows(
    path: PathLike, text: bytes, position: int, svmlight: bool, largest_index: int
) -> Rows:
    """Return the rows from a position on; the arrays are as long as separators say."""
    most_rows = text.count(b"\n", position) + 1
    most_values = text.count(b":", position)
    labels = np.empty(most_rows + text.count(b",", position), dtype=np.int64)
    columns = np.empty(most_values, dtype=np.int32)
    values = np.empty(most_values)
    label_ends = np.zeros(most_rows + 1, dtype=np.int64)
    value_ends = np.zeros(most_rows + 1, dtype=np.int64)
    row_starts = np.zeros(most_rows + 1, dtype=np.int64)
    todo = np.empty((_MOST_NOTES, 3), dtype=np.int64)
    row = 0
    while True:
        code, position, row, n_todo, place = scan.scan_pairs(
            np.frombuffer(text, dtype=np.uint8),
            position,
            svmlight,
            largest_index,
            labels,
            label_ends[1:],
            columns,
            values,
            value_ends[1:],
            row_starts,
            row,
            todo,
        )
        for number, begin, end in todo[:n_todo].tolist():
            values[number] = float(text[begin:end])
        if code == scan.DONE:
            break
        if code != scan.FULL:
            raise _error(path, text, code, place, largest_index)
        if not n_todo:
            todo = np.empty((2 * len(todo), 3), dtype=np.int64)
    return Rows(
        path=path,
        text=text,
        labels=labels[: label_ends[row]],
        label_ends=label_ends[: row + 1],
        columns=columns[: value_ends[row]],
        values=values[: value_ends[row]],
        value_ends=value_ends[: row + 1],
        row_starts=row_starts[: row + 1],
    )


def row_of(ends: NDArray[np.int64], entry: int) -> int:
    """Return the row of an entry; ``ends`` begins with 0."""
    return int(np.searchsorted(ends, entry, side="right")) - 1


def _first_repeated(matrix: sparse.csr_array) -> tuple[int, int] | None:
    """Return row and column of the first entry that stands twice in a sorted array."""
    starts = np.zeros(matrix.nnz + 1, dtype=bool)
    starts[matrix.indptr] = True
    equal = matrix.indices[1:] == matrix.indices[:-1]
    # Equal neighbours in different rows do not count.
    same = np.flatnonzero(equal & ~starts[1 : matrix.nnz]) + 1
    if not len(same):
        return None
    return row_of(matrix.indptr, same[0]), int(matrix.indices[same[0]])


def features_of(rows: Rows, n_features: int, shift: int) -> sparse.csr_array:
    """Return X, its columns counted from ``shift`` in the text."""
    X = csr_of(rows.values, rows.columns - np.int32(shift), rows.value_ends, n_features)
    repeated = _first_repeated(X)
    if repeated is not None:
        row, column = repeated
        raise rows.fail(f"the index {column + shift} stands twice in the row.", row)
    X.eliminate_zeros()
    return X


def indicator_of(
    rows: Rows,
    numbers: NDArray[np.int64],
    label_of: NDArray[np.int64],
    sparse_labels: bool,
) -> Any:
    """Return Y of label numbers by row, dense if that is wanted and small enough."""
    n_labels = len(label_of)
    if not n_labels:
        raise fail(rows.path, "no row has a label, and n_labels is not given.")
    ones = np.ones(len(numbers), dtype=np.int64)
    Y = csr_of(ones, numbers, rows.label_ends, n_labels)
    repeated = _first_repeated(Y)
    if repeated is not None:
        row, number = repeated
        raise rows.fail(f"the label {label_of[number]} stands twice in the row.", row)
    if sparse_labels:
        return Y
    check_size(
        rows.path,
        len(rows.text),
        LABEL_BYTES * rows.n_rows * n_labels,
        f"The dense indicator of {rows.n_rows:,} rows and {n_labels:,} labels",
        "Pass sparse_labels=True.",
    )
    return Y.toarray()


def check_labels_below(rows: Rows, n_labels: int) -> None:
    """Refuse labels that are no numbers of columns."""
    outside = np.flatnonzero((rows.labels < 0) | (rows.labels >= n_labels))
    if len(outside):
        raise rows.fail(
            f"expected labels from 0 to {n_labels - 1}, got {rows.labels[outside[0]]}.",
            row_of(rows.label_ends, outside[0]),
        )

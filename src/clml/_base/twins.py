"""Rows that are identical to others: parts of the same rows then know each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.sklearn_compat import warn_user

# Fewer are not worth a word: of so few rows any figure is rough.
_LEAST_ROWS = 40
_LEAST_SHARE = 0.1
# Rows that are looked at together: some of all of them need no copy of all.
_TOGETHER = 1024

_told: ContextVar[bool] = ContextVar("_told", default=False)


@contextmanager
def told_of_twins() -> Iterator[None]:
    """Warn of nothing inside: of the rows of learners their caller has spoken."""
    token = _told.set(True)
    try:
        yield
    finally:
        _told.reset(token)


def warn_of_twins(X: Any, advice: str, parts: NDArray[np.int64] | None = None) -> None:
    """Warn where many rows have an identical twin, far more than by chance.

    Parameters
    ----------
    X : features of n rows: array, sparse matrix, frame, text, nested lists
    advice : str
        How rows that judge can be kept apart, for the end of the warning.
    parts : int array (n,), default=None
        Which rows stay together: their twins are those in other parts. None if it is
        not known, and any row counts.
    """
    if _told.get():
        return
    table = _table(X)
    found = _twins(table, parts)
    n, count = len(found), int(found.sum())
    if count < _LEAST_ROWS or count < _LEAST_SHARE * n:
        return
    # Of a few columns with a few values each, rows are alike by chance, and those to
    # come will be so too: then that says nothing.
    by_chance = _twins(_shuffled(table), parts)
    if by_chance.sum() > count / 2:
        return
    warn_user(
        f"{count} of {n} rows have the same features as another row. If these are "
        "copies of one thing, rows that judge were trained on: the losses of front_ "
        "are too good, and so is what was chosen by them. Leave copies out, or "
        f"{advice}."
    )


def _table(X: Any) -> Any:
    """Return a CSR matrix, an array of numbers (n, D), or a list of texts."""
    if hasattr(X, "sparse"):  # a frame of pandas whose columns all are
        X = X.sparse.to_coo()
    if sp.issparse(X):
        rows = sp.csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        _unify_missing(rows.data)
        return rows
    if hasattr(X, "columns"):
        get = X.iloc if hasattr(X, "iloc") else X
        columns = [np.asarray(get[:, j]) for j in range(X.shape[1])]
        if all(column.dtype.kind in "buif" for column in columns):
            return np.column_stack(columns)
        return np.column_stack([_codes(column) for column in columns])
    try:
        rows = np.asarray(X)
    except ValueError:  # lists of several lengths, of which learners make something
        return list(map(str, X))
    if rows.ndim < 2:
        # What is no text may be anything: it counts as a row of its own.
        texts = enumerate(rows.tolist())
        return [row if isinstance(row, str) else str(i) for i, row in texts]
    rows = rows.reshape(len(rows), -1)
    if rows.dtype.kind in "buif":
        return rows
    return np.column_stack([_codes(column) for column in rows.T])


def _codes(column: NDArray) -> NDArray:
    """Return a number for each value of a column, the same for the same values."""
    if column.dtype.kind in "buif":
        return column
    known: dict[str, int] = {}
    return np.array([known.setdefault(str(v), len(known)) for v in column.tolist()])


def _twins(table: Any, parts: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Return which rows are identical to another, of another part."""
    hashes = np.array(list(_hashes(table)), dtype=np.int64)
    _, same = np.unique(hashes, return_inverse=True)
    if parts is None:
        parts = np.arange(len(same))
    apart = np.unique(np.stack([same, parts]), axis=1)
    return np.bincount(apart[0])[same] > 1


def _hashes(table: Any) -> Iterator[int]:
    """Return a number for each row, the same for identical rows."""
    if isinstance(table, list):
        yield from map(hash, table)
    elif sp.issparse(table):
        ends = table.indptr[1:].tolist()
        for a, b in pairwise([0, *ends]):
            yield hash((table.indices[a:b].tobytes(), table.data[a:b].tobytes()))
    else:
        for start in range(0, len(table), _TOGETHER):
            # Zeros have two signs, which makes no difference to anything.
            some = np.ascontiguousarray(table[start : start + _TOGETHER]) + 0
            _unify_missing(some)
            for row in some:
                yield hash(row.tobytes())


def _unify_missing(values: NDArray) -> None:
    """Give missing values the same bits, in place."""
    if values.dtype.kind == "f":
        values[np.isnan(values)] = np.nan


def _shuffled(table: Any) -> Any:
    """Return a table with each column, or word of texts, in an order of its own."""
    if isinstance(table, list):
        # Imported here: the library itself needs it nowhere else.
        from sklearn.feature_extraction.text import HashingVectorizer

        words = HashingVectorizer(token_pattern=r"\S+", norm=None, binary=True)
        table = words.transform(table)
    generator = np.random.default_rng(0)
    if not sp.issparse(table):
        return generator.permuted(table, axis=0)
    columns = table.tocsc()
    n = columns.shape[0]
    sizes = np.diff(columns.indptr)
    rows = [generator.choice(n, size, replace=False) for size in sizes[sizes > 0]]
    indices = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    parts = (columns.data, indices, columns.indptr)
    return sp.csr_array(sp.csc_array(parts, shape=columns.shape))

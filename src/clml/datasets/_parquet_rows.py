"""Row groups of Parquet files, each a partition that is read when it is wanted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.indicator import check_indicator
from .._support.names import shown
from .._support.paths import open_regular
from .columns import check_names, choose_labels
from .files import LARGEST_RATIO, SMALLEST_LIMIT, fail
from .parquet import _pyarrow
from .plain_rows import Rows, float_type

# Columns become rows block by block: one that stays in the processor's cache.
_BLOCK_ROWS, _BLOCK_COLUMNS = 4096, 256
# Footers of files with many row groups take longer to read than a row group.
_KEPT_FOOTERS = 4


@dataclass(frozen=True)
class ParquetLayout:
    """What the columns of files are, by their numbers; all others are features.

    Attributes
    ----------
    labels : tuple of int
    weight : int or None
    left_out : tuple of int
        Row names.
    dtype : str
        Of X.
    names : str
        A digest of the names of all columns: these may be many.
    """

    labels: tuple[int, ...]
    weight: int | None
    left_out: tuple[int, ...]
    dtype: str
    names: str

    def features(self, n_columns: int) -> list[int]:
        """Return the numbers of the columns that are features."""
        others = {*self.labels, self.weight, *self.left_out}
        return [number for number in range(n_columns) if number not in others]


@dataclass(frozen=True)
class ParquetRows:
    """One row group; called, it reads it."""

    path: str
    group: int
    n_rows: int
    layout: ParquetLayout

    def __call__(self) -> Rows:
        """Return features, labels and weights."""
        pa = _pyarrow()
        with _opened(pa, self.path) as file:
            names = self._checked_names(pa, file)
            try:
                table = file.read_row_group(self.group)
                table.validate()
            except Exception as error:  # pyarrow has no common class for damage
                raise _damaged(self.path, error) from None
        if table.num_rows != self.n_rows:
            raise _damaged(self.path, f"{table.num_rows} of {self.n_rows} rows")
        columns = [_numbers(pa, column) for column in table.columns]
        X = _side_by_side(
            [columns[number] for number in self.layout.features(len(names))],
            self.n_rows,
            np.dtype(self.layout.dtype),
        )
        labels = [
            _bytes(self.path, names[number], columns[number])
            for number in self.layout.labels
        ]
        Y = _side_by_side(labels, self.n_rows, np.dtype(np.uint8))
        if self.layout.weight is None:
            return X, Y, None
        return X, Y, columns[self.layout.weight].astype(np.float64)

    def _checked_names(self, pa: Any, file: Any) -> list[str]:
        names: list[str] = file.schema_arrow.names
        if (
            _digest(names) != self.layout.names
            or self.group >= file.metadata.num_row_groups
            or _group_rows(self.path, file, self.group) != self.n_rows
        ):
            raise fail(self.path, "the file has changed since it was opened.")
        _check_types(pa, self.path, file.schema_arrow, self.layout.left_out)
        return names


def open_parquet(
    paths: Sequence[str], labels: Any, weight: str | None
) -> tuple[list[ParquetRows], list[str], list[str]]:
    """Return the row groups of files, the names of features and those of labels.

    Parameters
    ----------
    paths : sequence of str
        Files with the same columns.
    labels : str or sequence of str
        The columns that are labels.
    weight : str or None
        The column of weights, if there is one.
    """
    pa = _pyarrow()
    if labels is None:
        raise ValueError(
            "labels must name the columns of .parquet files that are labels, got None."
        )
    first = paths[0]
    with _opened(pa, first) as file:
        names, row_names = file.schema_arrow.names, _row_names(file.schema_arrow)
    check_names(first, names)
    chosen = choose_labels(first, names, labels, None)
    number = _weight_number(first, names, weight, chosen)
    used = {*chosen, number}
    left_out = tuple(n for n in row_names if n not in used)
    layout = ParquetLayout(tuple(chosen), number, left_out, "", _digest(names))
    features = layout.features(len(names))
    if not features:
        raise fail(first, "there is no column left for the features.")
    heads = [_head(pa, path, layout, first, names) for path in paths]
    dtype = float_type(*(head.dtype for head in heads))
    layout = replace(layout, dtype=dtype.__name__)
    loaders = [
        ParquetRows(path, group, n_rows, layout)
        for path, head in zip(paths, heads, strict=True)
        for group, n_rows in enumerate(head.rows)
    ]
    if not loaders:
        raise fail(first, "there are no rows in it.")
    return loaders, [names[n] for n in features], [names[n] for n in chosen]


@dataclass(frozen=True)
class _Head:
    """What the footer of a file tells: rows of its groups, and the type of X."""

    rows: tuple[int, ...]
    dtype: type[np.floating]


def _head(
    pa: Any, path: str, layout: ParquetLayout, first: str, names: Sequence[str]
) -> _Head:
    """Return what a file tells, if it has the columns of the first one."""
    with _opened(pa, path) as file:
        schema = file.schema_arrow
        if schema.names != names:
            raise _other_columns(path, schema.names, first, names)
        _check_types(pa, path, schema, layout.left_out)
        single = all(
            pa.types.is_float32(schema.types[number])
            for number in layout.features(len(names))
        )
        rows = tuple(
            _group_rows(path, file, group)
            for group in range(file.metadata.num_row_groups)
        )
    return _Head(rows, np.float32 if single else np.float64)


def _opened(pa: Any, path: str) -> Any:
    with open_regular(path) as file:  # pyarrow would wait for a pipe
        found = os.fstat(file.fileno())
    footer = _footer(path, found.st_mtime_ns, found.st_size)
    try:
        # Pages that were written without a checksum are read all the same.
        return pa.parquet.ParquetFile(
            path, metadata=footer, page_checksum_verification=True
        )
    except Exception as error:
        raise fail(path, f"this is no Parquet file ({error}).") from None


@lru_cache(maxsize=_KEPT_FOOTERS)
def _footer(path: str, changed: int, size: int) -> Any:
    """Return the metadata of a file as it was then, with this size."""
    try:
        return _pyarrow().parquet.read_metadata(path)
    except Exception as error:
        raise fail(path, f"this is no Parquet file ({error}).") from None


def _damaged(path: str, why: Any) -> ValueError:
    return fail(path, f"the Parquet data are damaged ({why}).")


def _digest(names: Sequence[str]) -> str:
    return hashlib.sha256(repr(list(names)).encode("utf-8", "replace")).hexdigest()


def _group_rows(path: str, file: Any, number: int) -> int:
    """Return how many rows a group has, if a file of this size may hold them."""
    # Of the group alone: asked for the columns of a damaged footer, pyarrow has ended
    # the process.
    group = file.metadata.row_group(number)
    limit = max(SMALLEST_LIMIT, LARGEST_RATIO * os.path.getsize(path))
    needed = max(8 * group.num_rows * len(file.schema_arrow), group.total_byte_size)
    if needed > limit or group.num_rows < 0:
        raise fail(
            path,
            f"the row group {number} would take {needed:,} bytes, more than the "
            f"{limit:,} that are accepted from a file of this size; write smaller row "
            "groups.",
        )
    return int(group.num_rows)


def _weight_number(
    path: str, names: Sequence[str], weight: Any, labels: Sequence[int]
) -> int | None:
    if weight is None:
        return None
    if weight not in names:
        raise fail(
            path,
            f"there is no column for weight={weight!r}; the columns are "
            f"{shown(names)}.",
        )
    number = names.index(weight)
    if number in labels:
        raise ValueError(f"weight={weight!r} is among the labels, too.")
    return number


def _row_names(schema: Any) -> list[int]:
    """Return the columns in which frames keep their row names: no features."""
    try:
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        named = {name for name in stored if isinstance(name, str)}
    except (ValueError, TypeError, AttributeError):  # notes of whoever wrote the file
        named = set()
    return [number for number, name in enumerate(schema.names) if name in named]


def _check_types(pa: Any, path: str, schema: Any, left_out: Sequence[int]) -> None:
    types = pa.types
    for number, field in enumerate(schema):
        kind = field.type
        fits = types.is_integer(kind) or types.is_floating(kind)
        fits = fits or types.is_boolean(kind) or types.is_decimal(kind)
        if not fits and number not in left_out:
            raise fail(
                path,
                f"the column {field.name!r} is of the type {kind}; expected numbers or "
                "booleans.",
            )


def _other_columns(
    path: str, names: Sequence[str], first: str, wanted: Sequence[str]
) -> ValueError:
    there, expected = set(names), set(wanted)
    missing = [name for name in wanted if name not in there]
    new = [name for name in names if name not in expected]
    if missing:
        return fail(path, f"the columns {shown(missing)} of {first} are missing.")
    if new:
        return fail(path, f"the columns {shown(new)} are not in {first}.")
    return fail(
        path,
        f"its columns are in another order than in {first}: {shown(names)} instead of "
        f"{shown(wanted)}.",
    )


def _numbers(pa: Any, column: Any) -> NDArray[Any]:
    """Return a column as numbers, its missing values as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    one = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return one.to_numpy(zero_copy_only=False)


def _bytes(path: str, name: str, values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a label as bytes, unless it is something else as a byte."""
    with np.errstate(invalid="ignore"):  # of NaN
        label = values.astype(np.uint8, copy=False)
    if label is not values and (label != values).any():
        return check_indicator(values[:, None], f"{path}: the column {name!r}")[:, 0]
    return label


def _side_by_side(
    columns: Sequence[NDArray[Any]], n_rows: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return columns as an array (n_rows, columns) whose rows lie together."""
    table = np.empty((n_rows, len(columns)), dtype=dtype)
    for left in range(0, len(columns), _BLOCK_COLUMNS):
        some = list(enumerate(columns[left : left + _BLOCK_COLUMNS], start=left))
        for top in range(0, n_rows, _BLOCK_ROWS):
            block = table[top : top + _BLOCK_ROWS]
            for number, column in some:
                block[:, number] = column[top : top + _BLOCK_ROWS]
    return table

"""Parquet files, read by pyarrow: types of columns to numbers and nominals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._attributes import NOMINAL, Attribute
from ._options import check_options
from .assembly import bunch_of_table
from .columns import (
    Column,
    boolean_column,
    check_names,
    choose_labels,
    nominal_column,
    table_of_columns,
)
from .files import LARGEST_RATIO, SMALLEST_LIMIT, PathLike, fail, read_raw
from .schema import check_like

# How many times the same data would be larger as plain text, generously.
_TEXT_PER_BYTE = 16
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _pyarrow() -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise ImportError(
            "Parquet files are read by pyarrow, which is not installed: "
            "pip install clml[datasets]"
        ) from None


def _is_text(types: Any, kind: Any) -> bool:
    return (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )


def _kind(pa: Any, kind: Any) -> str | None:
    """Return how a column of an Arrow type is read, None if it is not."""
    types = pa.types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "seconds"
    if types.is_time(kind) or types.is_duration(kind):
        return "seconds"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_null(kind):
        return "number"
    if _is_text(types, kind):
        return "nominal"
    if types.is_dictionary(kind):
        return "nominal" if _kind(pa, kind.value_type) is not None else None
    return None


def _check_schema(pa: Any, path: PathLike, schema: Any) -> None:
    for field in schema:
        if _kind(pa, field.type) is None:
            raise fail(
                path,
                f"the column {field.name!r} is of the type {field.type}; expected "
                "numbers, text, booleans or times.",
            )


def _check_limit(path: PathLike, file: Any, n_stored: int, limit: int | None) -> None:
    if limit is None:
        limit = max(SMALLEST_LIMIT, LARGEST_RATIO * n_stored)
    metadata = file.metadata
    # Of the groups alone: asked for the columns of a damaged footer, pyarrow has ended
    # the process.
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    stored = sum(max(group.total_byte_size, 0) for group in groups)
    needed = max(8 * metadata.num_rows * len(file.schema_arrow), stored)
    if needed > limit:
        raise fail(
            path,
            f"its content would take {needed:,} bytes, more than the {limit:,} that "
            "are accepted from a file of this size; pass max_bytes if it is genuine.",
        )


def _floats(pa: Any, array: Any) -> NDArray[np.float64]:
    # Large integers are rounded to the nearest number, as everywhere in X.
    numbers = array.cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _seconds(pa: Any, array: Any) -> NDArray[np.float64]:
    kind = array.type
    if pa.types.is_date32(kind):
        return _floats(pa, array.cast(pa.int32())) * 86400.0
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    return _floats(pa, array.cast(whole)) / _PER_SECOND[unit]


def _column(pa: Any, name: str, array: Any, is_text: bool) -> Column:
    """Return one column of an Arrow table; text comes as a dictionary, too."""
    kind = _kind(pa, array.type)
    if kind == "boolean":
        return boolean_column(name, _floats(pa, array.cast(pa.uint8())))
    if kind == "seconds":
        return Column(Attribute(name), _seconds(pa, array))
    if kind == "number":
        return Column(Attribute(name), _floats(pa, array))
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = _floats(pa, array.indices)
    values = array.dictionary.to_pylist()
    if array.type.ordered and None not in values:
        words = tuple(str(value) for value in values)
        return Column(Attribute(name, NOMINAL, words), codes)
    observed = np.unique(codes[~np.isnan(codes)]).astype(np.int64)
    present = [code for code in observed.tolist() if values[code] is not None]
    places = np.full(len(values) + 1, np.nan)
    places[present] = np.arange(len(present))
    codes = places[np.where(np.isnan(codes), len(values), codes).astype(np.int64)]
    return nominal_column(name, [values[code] for code in present], codes, is_text)


def _read(
    pa: Any, path: PathLike, data: bytes, max_bytes: int | None
) -> tuple[Any, set[str]]:
    """Return the file as an Arrow table, and the names of its columns of text.

    These are kept as codes and different words.
    """
    buffer = pa.py_buffer(data)
    try:
        file = pa.parquet.ParquetFile(buffer)
        schema = file.schema_arrow
    except Exception as error:  # pyarrow has no common class for what is damaged
        raise fail(path, f"this is no Parquet file ({error}).") from None
    _check_schema(pa, path, schema)
    _check_limit(path, file, len(data), max_bytes)
    words = {field.name for field in schema if _is_text(pa.types, field.type)}
    try:
        table = pa.parquet.ParquetFile(buffer, read_dictionary=list(words)).read()
        table.validate(full=True)
        return table.unify_dictionaries().combine_chunks(), words
    except Exception as error:
        raise fail(path, f"the Parquet data are damaged ({error}).") from None


def read_parquet(
    path: PathLike,
    labels: str | Sequence[str] | None = None,
    *,
    label_prefix: str | None = None,
    nominals: str = "onehot",
    drop_identifiers: bool = True,
    missing_labels: str = "error",
    like: Mapping[str, Any] | None = None,
    unknown: str = "error",
    max_bytes: int | None = None,
) -> Bunch:
    """Read a Parquet file; needs pyarrow (``pip install clml[datasets]``).

    Integers, floats and decimals are numbers. Times are seconds: dates and time
    stamps since 1970 (UTC where they have no zone), times of day since midnight.
    Booleans are 0 and 1. Text and dictionaries are nominal, their values sorted; an
    ordered dictionary keeps its order. Nested types are refused. A column of text in
    which nine of ten values are numbers, but not all, draws a warning; it is never left
    out as an identifier.

    Parameters
    ----------
    path : str or path
    labels : str, sequence of str, or None
        The name of the column that is the label, or several. Columns of Y are in
        this order. None: those of ``like``, or by ``label_prefix``.
    label_prefix : str or None, default=None
        Instead of ``labels``: every column whose name begins with it is a label.
    nominals, drop_identifiers, missing_labels, like, unknown
        As in :func:`read_csv`.
    max_bytes : int or None, default=None
        The most that the content may take in memory. None: 500 times the size of
        the file, and 64 MiB for small ones.

    Returns
    -------
    Bunch
        As :func:`read_arff` returns it, without ``relation``; ``X`` is dense. Its
        ``schema`` is what ``like`` needs.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        For a file that is damaged, or has columns that are no features. The coded
        features may take 256 MiB and 1,024 times the size of the file. How large the
        content is says the file itself: one that is not trusted should not be read.

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow as pa, pyarrow.parquet as pq
    >>> from clml.datasets import read_parquet
    >>> table = pa.table({"size": [1.5, None], "sky": ["grey", "blue"],
    ...                   "rain": [True, False]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.parquet")
    ...     pq.write_table(table, path)
    ...     data = read_parquet(path, "rain")
    >>> data.feature_names, data.Y.tolist()
    (['size', 'sky=grey'], [[1], [0]])
    >>> data.X
    array([[1.5, 1. ],
           [nan, 0. ]])
    """
    check_options(nominals, drop_identifiers, missing_labels)
    schema = check_like(like, nominals, unknown)
    if schema is not None and labels is None and label_prefix is None:
        labels = schema["labels"]
    pa = _pyarrow()
    data = read_raw(path)
    table, words = _read(pa, path, data, max_bytes)
    names = list(table.column_names)
    check_names(path, names)
    chosen = choose_labels(path, names, labels, label_prefix)
    if not table.num_rows:
        raise fail(path, "there are no rows in it.")
    try:
        columns = [
            _column(pa, name, chunked.combine_chunks(), name in words)
            for name, chunked in zip(names, table.columns, strict=True)
        ]
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise fail(path, f"the Parquet data are damaged ({error}).") from None
    # What may be made of the columns goes by the size of the file, not by that of what
    # it unfolds to: there, one value repeated a million times takes a few bytes.
    n_bytes = min(8 * table.num_rows * len(columns), _TEXT_PER_BYTE * len(data))
    return bunch_of_table(
        table_of_columns(path, columns, table.num_rows, n_bytes),
        chosen,
        nominals=nominals,
        drop_identifiers=drop_identifiers,
        missing_labels=missing_labels,
        like=schema,
        unknown=unknown,
        texts=[number for number, column in enumerate(columns) if column.is_text],
        source=str(path),
    )

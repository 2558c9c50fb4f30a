"""Files with names in them, read without labels: what prediction starts from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..datasets import csv as _csv
from ..datasets import parquet as _parquet
from ..datasets.arff_header import Header, parse_header
from ..datasets.assembly import code_columns
from ..datasets.coding import code_table
from ..datasets.columns import check_names, table_of_columns
from ..datasets.files import fail, read_file, read_raw
from ..datasets.schema import check_like
from ..datasets.table import Table, arff_table, csv_table

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _csv_head(path: Path, delimiter: str) -> tuple[bytes, list[str], int, str]:
    """Return the text of a CSV file, its names, where rows begin, and its tab."""
    text = read_file(path, ".csv").removeprefix(_BYTE_ORDER_MARK)
    if b"\0" in text[:4096]:
        raise fail(path, "this is no UTF-8 text: there are zero bytes in it.")
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    tab, parts = "\t", delimiter
    if delimiter == "\t":
        text, tab = _csv._without_tabs(path, text)
        parts = tab
    names, position = _csv._names(path, text, parts)
    return text, [name.replace(tab, "\t") for name in names], position, tab


def _arff_head(path: Path) -> tuple[bytes, Header]:
    text = read_file(path, ".arff")
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    return text, parse_header(path, text)


def column_names_of(path: Path, kind: str, delimiter: str) -> list[str]:
    """Return the names of the columns of an ARFF, CSV or Parquet file."""
    if kind == "csv":
        return _csv_head(path, delimiter)[1]
    if kind == "arff":
        return [attribute.name for attribute in _arff_head(path)[1].attributes]
    pa = _parquet._pyarrow()
    try:
        return list(
            pa.parquet.ParquetFile(pa.py_buffer(read_raw(path))).schema_arrow.names
        )
    except Exception as error:  # pyarrow has no common class for what is damaged
        raise fail(path, f"this is no Parquet file ({error}).") from None


def _csv_rows(
    path: Path, delimiter: str, missing_values: list[str]
) -> tuple[Table, list[int]]:
    text, names, position, tab = _csv_head(path, delimiter)
    parts = tab if delimiter == "\t" else delimiter
    table = csv_table(path, text, position, names, parts)
    return table, _csv._settle_text(table, tab, ".", missing_values)


def _parquet_rows(path: Path) -> tuple[Table, list[int]]:
    pa = _parquet._pyarrow()
    arrow, words = _parquet._read(pa, path, read_raw(path), None)
    names = list(arrow.column_names)
    check_names(path, names)
    columns = [
        _parquet._column(pa, name, chunked.combine_chunks(), name in words)
        for name, chunked in zip(names, arrow.columns, strict=True)
    ]
    texts = [number for number, column in enumerate(columns) if column.is_text]
    return table_of_columns(path, columns, arrow.num_rows), texts


def read_columns(
    path: Path,
    kind: str,
    delimiter: str,
    like: Mapping[str, Any] | None,
    unknown: str = "error",
) -> tuple[Any, list[str]]:
    """Return the features of a file, coded, and their names.

    Parameters
    ----------
    path : Path
    kind : {"arff", "csv", "parquet"}
    delimiter : str
        Of a CSV file.
    like : schema or None
        How the columns of a CSV or Parquet file were coded before; those that it does
        not have are left out. An ARFF file declares its values itself.
    unknown : {"error", "ignore"}
        Whether values that ``like`` does not have are refused or taken as missing.

    Returns
    -------
    X : array or csr_array
    names : list of str
    """
    if kind == "arff":
        text, header = _arff_head(path)
        table = arff_table(
            path, text, header.data_start, header.attributes, header.encoding
        )
        coded = code_table(table, [])
        return coded.X, coded.feature_names
    schema = check_like(like, "onehot", unknown)
    if kind == "csv":
        missing = [] if schema is None else list(schema["missing_values"])
        table, texts = _csv_rows(path, delimiter, missing)
    else:
        table, texts = _parquet_rows(path)
    if not table.n_rows:
        raise fail(path, "there are no rows in it.")
    coded, _ = code_columns(
        table,
        [],
        nominals="onehot",
        drop_identifiers=True,
        missing_labels="error",
        like=schema,
        unknown=unknown,
        texts=texts,
        decimal="." if kind == "csv" else None,
    )
    return coded.X, coded.feature_names

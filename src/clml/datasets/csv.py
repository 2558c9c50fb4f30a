"""CSV files: names in the first line, labels by name or by prefix."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._attributes import NUMERIC, Attribute, meaning, meanings
from ._numerals import MISSING_WORDS
from ._options import check_options
from .assembly import bunch_of_table
from .columns import (
    Column,
    boolean_column,
    check_names,
    choose_labels,
    lookup_codes,
    nominal_column,
    number_of_text,
)
from .files import PathLike, fail, read_file
from .schema import check_like, clear_missing_numbers
from .table import Table, csv_table, decoded

DELIMITERS = (",", ";", "\t", "|", ":")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_BLANK_LINES = re.compile(rb"(?:[ \t\r]*+\n)*+")
# A doubled quote stands for one; nothing is taken back, so an open quote costs one
# pass over the text and no memory.
_QUOTED = re.compile(rb'[ \t]*+"([^"]*+(?:""[^"]*+)*+)"[ \t\r]*+')
_OPEN_QUOTE = re.compile(rb'[ \t]*+"')
_DECIMALS = (".", ",")
_MISSING = frozenset(MISSING_WORDS)
# Control characters that no text needs, to stand for a tab between fields.
_STAND_INS = range(0x1F, 0x1B, -1)


def check_delimiter(delimiter: Any) -> None:
    """Refuse what cannot part the fields of a CSV file."""
    if delimiter not in DELIMITERS:
        raise ValueError(
            f"delimiter must be one of {list(DELIMITERS)}, got {delimiter!r}."
        )


def _lines_before(text: bytes, position: int) -> int:
    return text.count(b"\n", 0, position) + 1


def _names(path: PathLike, text: bytes, delimiter: str) -> tuple[list[str], int]:
    """Return the names in the first line and where the next line begins."""
    plain = re.compile(rb"[^\n" + re.escape(delimiter.encode()) + rb"]*+")
    blank = _BLANK_LINES.match(text)
    position = blank.end() if blank is not None else 0
    if not text[position:].strip():
        raise fail(path, "the file is empty.")
    first_line = _lines_before(text, position)
    names: list[str] = []
    while True:
        match = _QUOTED.match(text, position)
        if match is not None:
            names.append(decoded(match[1].replace(b'""', b'"')))
        elif _OPEN_QUOTE.match(text, position):
            raise fail(path, "a quote in the line of names is not closed.", first_line)
        else:
            match = plain.match(text, position)
            assert match is not None  # it matches nothing at all, too
            names.append(decoded(match[0].strip()))
        position = match.end()
        if position >= len(text) or text[position] == ord("\n"):
            break
        if text[position] != ord(delimiter):
            raise fail(
                path, f"a separator must follow the name {names[-1]!r}.", first_line
            )
        position += 1
    check_names(path, names, first_line)
    for number, name in enumerate(names, start=1):
        # The first column has none where a frame wrote its row names.
        if not name and number > 1:
            raise fail(path, f"column {number} has no name.", first_line)
    return names, position + 1


def _checked_words(missing_values: Any) -> list[str]:
    """Return further words that stand for no value, as text."""
    if isinstance(missing_values, str):
        return [missing_values.strip()]
    if not isinstance(missing_values, Iterable):
        raise TypeError(
            "missing_values must be a sequence of words, got "
            f"{type(missing_values).__name__}."
        )
    words = list(missing_values)
    for word in words:
        if isinstance(word, bool) or not isinstance(word, (str, Real)):
            raise TypeError(
                "missing_values must hold words as they stand in the file, got "
                f"{word!r}."
            )
    return [str(word).strip() for word in words]


def _text_column(
    name: str,
    texts: list[str],
    codes: NDArray[np.float64],
    decimal: str,
    missing_values: Collection[str],
) -> Column:
    """Return numbers that stood in quotes as numbers, other text as a nominal."""
    missing = [
        (word := text.strip()).lower() in _MISSING or word in missing_values
        for text in texts
    ]
    numbers = [number_of_text(text, decimal) for text in texts]
    if all(gone or n is not None for gone, n in zip(missing, numbers, strict=True)):
        values = [
            np.nan if gone or n is None else n
            for gone, n in zip(missing, numbers, strict=True)
        ]
        return Column(Attribute(name), lookup_codes(codes, values))
    kept = [text for text, gone in zip(texts, missing, strict=True) if not gone]
    # One yes and one no, in several spellings: Yes, YES, no.
    if len(kept) > 2 and meanings(tuple({text.strip().lower() for text in kept})):
        said = [np.nan if (m := meaning(text)) is None else m for text in texts]
        return boolean_column(name, lookup_codes(codes, said))
    places = np.where(missing, np.nan, np.cumsum(~np.array(missing)) - 1.0)
    return nominal_column(name, kept, lookup_codes(codes, places), is_text=True)


def _settle_text(
    table: Table, tab: str, decimal: str, missing_values: Sequence[str]
) -> list[int]:
    """Give the columns of text their kinds and their codes, in place.

    Returns those that are text still.
    """
    assert table.cells is not None
    attributes = list(table.attributes)
    still_text = []
    for number, texts in table.texts.items():
        column = _text_column(
            attributes[number].name,
            [text.replace(tab, "\t") for text in texts],
            table.cells[:, number],
            decimal,
            missing_values,
        )
        attributes[number], table.cells[:, number] = column.attribute, column.values
        if column.is_text:
            still_text.append(number)
    table.attributes = attributes
    table.texts = {}
    for number, attribute in enumerate(attributes):
        if attribute.kind == NUMERIC:
            clear_missing_numbers(table.cells[:, number], missing_values)
    return still_text


def _without_tabs(path: PathLike, text: bytes) -> tuple[bytes, str]:
    """Return the text with another character for its tabs, and that character.

    To the scanner a tab is white space around a field, not the end of one.
    """
    for code in _STAND_INS:
        if bytes([code]) not in text:
            return text.replace(b"\t", bytes([code])), chr(code)
    raise fail(path, "there are control characters in it: this is no text.")


def read_csv(
    path: PathLike,
    labels: str | Sequence[str] | None = None,
    *,
    label_prefix: str | None = None,
    delimiter: str = ",",
    nominals: str = "onehot",
    drop_identifiers: bool = True,
    missing_labels: str = "error",
    missing_values: str | Sequence[str | float] = (),
    decimal: str = ".",
    like: Mapping[str, Any] | None = None,
    unknown: str = "error",
    max_bytes: int | None = None,
) -> Bunch:
    r"""Read a CSV file whose first line names the columns.

    Fields may stand in quotes, with a quote doubled and line ends inside (RFC 4180).
    Columns of numbers are numeric, others nominal. A field that is empty or one of
    ``?``, ``NA``, ``N/A``, ``#N/A``, ``<NA>``, ``NaN``, ``null``, ``none`` and what
    else pandas takes for missing (in any case) has no value. A column of text in which
    nine of ten values are numbers draws a warning that shows the others; it is never
    left out as an identifier.

    Parameters
    ----------
    path : str or path
        Plain, or compressed with xz, bzip2, gzip or zip; UTF-8, else Latin-1.
    labels : str, sequence of str, or None
        The name of the column that is the label, or several. Columns of Y are in
        this order. None: those of ``like``, or by ``label_prefix``.
    label_prefix : str or None, default=None
        Instead of ``labels``: every column whose name begins with it is a label.
    delimiter : {",", ";", "\\t", "|", ":"}, default=","
        What parts the fields.
    nominals : {"onehot", "codes"}, default="onehot"
        With "onehot" a nominal feature of two values is one column of 0 and 1: by
        their meaning (YES, true, 1 against NO, false, 0), else 1 for the second of
        the sorted values. One of more values has a column for each. With "codes"
        every nominal is one column, the place of the value among the sorted ones.
    drop_identifiers : bool, default=True
        Leave out nominal features with another value in every row (of 11 or more),
        and a first column without a name (the row names of a frame). They are in
        ``dropped``, and ``notes`` names them. With False they are coded as other
        columns are.
    missing_labels : {"error", "negative"}, default="error"
        Whether a label without a value is refused or taken as absent.
    missing_values : sequence of str, default=()
        Further words that stand for no value, as they are written in the file, in
        every column. A number stands for itself however it is written: "-999" is
        also -999.0.
    decimal : {".", ","}, default="."
        The decimal sign. With "," a column of text whose values are all numbers with
        a decimal comma is numeric (in quotes where ``delimiter`` is "," too); a column
        without commas is read as ever, 1.5 being one and a half.
    like : Bunch, dict or None, default=None
        What an earlier reading returned (of this function, :func:`read_parquet` or
        :func:`as_dataset`), or its ``schema``, which JSON can hold. The new data are
        coded as those were: ``X`` has the same columns in the same order, wherever
        they stand in the file; nominals have the same values; what was left out is
        left out; ``nominals`` and ``missing_values`` hold on. A feature that the file
        lacks is an error; columns it has beyond those are left out, and ``notes``
        names them.
    unknown : {"error", "ignore"}, default="error"
        With ``like``: whether values of a nominal that it does not have are refused
        or taken as missing: none of the columns of such a nominal is 1.
    max_bytes : int or None, default=None
        The most that a compressed file may hold. None: 500 times its size, and
        64 MiB for small ones.

    Returns
    -------
    Bunch
        As :func:`read_arff` returns it, without ``relation``; ``X`` is dense. Its
        ``schema`` is what ``like`` needs.

    Raises
    ------
    ValueError
        For a file that is damaged or not in the format, with its line. A file may
        take 256 MiB and 64 times its uncompressed size in memory, not more.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.datasets import read_csv
    >>> text = '''pressure,sky,label_rain,label_wind
    ... 1020.5,clear,no,yes
    ... 987,"black, with lightning",yes,yes
    ... ,grey,no,no
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.csv")
    ...     _ = path.write_text(text)
    ...     data = read_csv(path, label_prefix="label_")
    ...     alone = read_csv(path, "label_rain")
    >>> data.feature_names
    ['pressure', 'sky=black, with lightning', 'sky=clear', 'sky=grey']
    >>> data.X
    array([[1.0205e+03, 0.0000e+00, 1.0000e+00, 0.0000e+00],
           [9.8700e+02, 1.0000e+00, 0.0000e+00, 0.0000e+00],
           [       nan, 0.0000e+00, 0.0000e+00, 1.0000e+00]])
    >>> data.Y.tolist(), data.label_names
    ([[0, 1], [1, 1], [0, 0]], ['label_rain', 'label_wind'])

    The other label is then a feature:

    >>> alone.label_names, alone.feature_names[-1]
    (['label_rain'], 'label_wind')

    Another file of the same kind, its columns in another order, is coded alike:

    >>> text = '''label_wind,label_rain,sky,pressure
    ... no,yes,grey,1001
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tomorrow.csv")
    ...     _ = path.write_text(text)
    ...     tomorrow = read_csv(path, like=data)
    >>> tomorrow.X.tolist(), tomorrow.Y.tolist()
    ([[1001.0, 0.0, 0.0, 1.0]], [[1, 0]])
    """
    check_options(nominals, drop_identifiers, missing_labels)
    check_delimiter(delimiter)
    if decimal not in _DECIMALS:
        raise ValueError(f"decimal must be one of {list(_DECIMALS)}, got {decimal!r}.")
    words = _checked_words(missing_values)
    schema = check_like(like, nominals, unknown)
    if schema is not None:
        words = list(dict.fromkeys([*schema["missing_values"], *words]))
        schema = {**schema, "missing_values": words}
        if labels is None and label_prefix is None:
            labels = schema["labels"]
    text = read_file(path, ".csv", max_bytes).removeprefix(_BYTE_ORDER_MARK)
    if text.startswith(_WIDE) or b"\0" in text[:4096]:
        raise fail(path, "this is no UTF-8 text: there are zero bytes in it.")
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    tab, parts = "\t", delimiter
    if delimiter == "\t":
        text, tab = _without_tabs(path, text)
        parts = tab
    names, position = _names(path, text, parts)
    names = [name.replace(tab, "\t") for name in names]
    columns = choose_labels(path, names, labels, label_prefix, delimiter)
    table = csv_table(path, text, position, names, parts)
    texts = _settle_text(table, tab, decimal, words)
    return bunch_of_table(
        table,
        columns,
        nominals=nominals,
        drop_identifiers=drop_identifiers,
        missing_labels=missing_labels,
        like=schema,
        unknown=unknown,
        texts=texts,
        decimal=decimal,
        missing_values=words,
        source=str(path),
    )

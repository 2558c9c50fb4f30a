"""The header of an ARFF file: relation, attributes, where the rows begin."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ._attributes import DATE, NOMINAL, NUMERIC, STRING, Attribute
from .files import PathLike, fail

_KINDS = {
    "numeric": NUMERIC,
    "real": NUMERIC,
    "integer": NUMERIC,
    "string": STRING,
    "date": DATE,
}
# The white space of the format; a name may hold other spaces.
_SPACES = " \t\r\f\v"
_WORD = re.compile(r"[^ \t\r\f\v]++")
# Nothing is taken back in these expressions: time grows with the length of the line.
_QUOTED = re.compile(
    r"""'([^'\\]*+(?:\\.[^'\\]*+)*+)'|"([^"\\]*+(?:\\.[^"\\]*+)*+)\""""
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
# A range, a weight of the attribute or a comment may follow the type.
_AFTER_TYPE = re.compile(
    r"[ \t\r\f\v]*+(?:\[[^\]]*+\][ \t\r\f\v]*+)?"
    r"(?:\{[0-9.eE+ -]++\}[ \t\r\f\v]*+)?(?:%.*+)?",
    re.DOTALL,
)
# Options of MEKA; a filter of Weka may have added its own name.
_MEKA = re.compile(r"(?:^|[\s:])-[Cc]\s++(-?\d{1,9})(?![\w.])")
DEFAULT_DATE_FORMAT = "yyyy-MM-dd'T'HH:mm:ss"


@dataclass(frozen=True)
class Header:
    """What stands before the rows.

    Attributes
    ----------
    relation : str
    attributes : list of Attribute
    encoding : str
        "utf-8", or "latin-1" where the header is no UTF-8.
    data_start : int
        Offset of the first byte after the line ``@data``.
    """

    relation: str
    attributes: list[Attribute]
    encoding: str
    data_start: int


def unescape(text: str) -> str:
    r"""Return quoted text without its backslashes.

    Examples
    --------
    >>> from clml.datasets.arff_header import unescape
    >>> unescape(r"it\'s 5\% \u00e9")
    "it's 5% é"
    """
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPED.get(code, code)

    plain = _ESCAPE.sub(character, text)
    # Letters beyond 16 bits are escaped as two halves.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quoted(text: str, position: int) -> tuple[str, int]:
    """Return a quoted word and where it ends; the position is at its quote."""
    match = _QUOTED.match(text, position)
    if match is None:
        raise ValueError(
            f"the quote in {text[position : position + 40]!r} is not closed"
        )
    return unescape(match[1] if match[1] is not None else match[2]), match.end()


def _word(text: str) -> tuple[str, str]:
    """Return the first word, quoted or not, and the rest."""
    if text[:1] in ("'", '"'):
        word, end = _quoted(text, 0)
    else:
        match = _WORD.match(text)
        word, end = (match[0], match.end()) if match else ("", 0)
        brace = word.find("{")
        if brace > 0 and "}" in text[brace:]:
            # A list of values right after the name, without a space.
            word, end = word[:brace], brace
    return word, text[end:].strip(_SPACES)


def _relation(text: str) -> str:
    """Return the name of a relation without its quotes or a comment."""
    if text[:1] in ("'", '"'):
        match = _QUOTED.match(text)
        if match:
            return unescape(match[1] if match[1] is not None else match[2])
    return text.partition(" %")[0].strip(_SPACES)


def _nominal_values(text: str) -> tuple[str, ...]:
    """Return the values of ``{a, 'b c', d}``, in order."""
    values: list[str] = []
    position = 1
    size = len(text)
    while True:
        while position < size and text[position] in _SPACES:
            position += 1
        if position < size and text[position] in "'\"":
            value, position = _quoted(text, position)
            while position < size and text[position] in _SPACES:
                position += 1
        else:
            begin = position
            while position < size and text[position] not in ",}":
                position += 1
            value = text[begin:position].strip(_SPACES)
            if not value and position < size:
                if text[position] == "}" and not values:
                    break
                raise ValueError("a value in the braces is empty")
        if position >= size:
            raise ValueError("the brace of the values is not closed")
        values.append(value)
        if text[position] == "}":
            break
        if text[position] != ",":
            raise ValueError(f"a comma must follow the value {value!r}")
        position += 1
    if not _AFTER_TYPE.fullmatch(text, position + 1):
        raise ValueError(f"{text[position + 1 :][:40]!r} follows the values")
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"the value {value!r} is declared twice")
        seen.add(value)
    return tuple(values)


def _attribute(text: str) -> Attribute:
    """Return the attribute that ``name type`` declares."""
    if not text:
        raise ValueError("expected a name and a type after @attribute")
    name, rest = _word(text)
    if not rest:
        raise ValueError(f"attribute {name!r} has no type")
    if rest.startswith("{"):
        return Attribute(name, NOMINAL, _nominal_values(rest))
    word, after = _word(rest)
    kind = _KINDS.get(word.lower())
    if kind is None:
        raise ValueError(
            f"attribute {name!r} has the type {word[:40]!r}; expected numeric, real, "
            "integer, string, date or a list of values in braces"
        )
    date_format = ""
    if kind == DATE:
        date_format = DEFAULT_DATE_FORMAT
        if after and not after.startswith("%"):
            quoted = after[0] in "'\""
            date_format, after = _word(after) if quoted else (after, "")
    if not _AFTER_TYPE.fullmatch(after):
        raise ValueError(f"{after[:40]!r} follows the type of attribute {name!r}")
    return Attribute(name, kind, date_format=date_format)


def _encoding(text: bytes, end: int) -> str:
    try:
        text[:end].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"  # decodes anything
    return "utf-8"


_DATA = re.compile(rb"^[ \t]*@data[ \t\r]*(?:%[^\n]*)?$", re.IGNORECASE | re.MULTILINE)


def parse_header(path: PathLike, text: bytes) -> Header:
    """Return the header of an ARFF file.

    Parameters
    ----------
    path : str or path
        Named in errors.
    text : bytes
        The whole file, its lines ended by a newline, with or without a carriage return.
    """
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise fail(path, "the file is encoded in UTF-16; expected UTF-8 or Latin-1.")
    match = _DATA.search(text)
    if match is None:
        raise fail(path, "there is no line @data: this is no complete ARFF file.")
    if b"\0" in text[: match.start()]:
        raise fail(path, "there are zero bytes in the header: this is no ARFF file.")
    encoding = _encoding(text, match.start())
    relation = ""
    attributes: list[Attribute] = []
    lines: dict[str, int] = {}
    header = text[: match.start()].decode(encoding).removeprefix("\ufeff")
    for number, raw in enumerate(header.split("\n"), start=1):
        line = raw.strip(_SPACES)
        if not line or line.startswith("%"):
            continue
        keyword = _WORD.match(line)[0]  # type: ignore[index]
        rest = line[len(keyword) :].strip(_SPACES)
        if keyword.lower() == "@relation":
            relation = _relation(rest)
        elif keyword.lower() == "@attribute":
            try:
                attribute = _attribute(rest)
            except ValueError as error:
                raise fail(path, f"{error}.", number) from None
            if attribute.name in lines:
                raise fail(
                    path,
                    f"attribute {attribute.name!r} is declared a second time, after "
                    f"line {lines[attribute.name]}.",
                    number,
                )
            lines[attribute.name] = number
            attributes.append(attribute)
        else:
            raise fail(
                path,
                f"expected @relation, @attribute or @data, got {line[:40]!r}.",
                number,
            )
    if not attributes:
        raise fail(path, "no @attribute stands before @data.")
    return Header(relation, attributes, encoding, match.end())


def meka_label_count(relation: str) -> int | None:
    """Return the k of MEKA's ``-C k`` in a relation's name, None without one.

    Options stand after the first colon; 0 stands for data without labels. A name
    without a colon is searched whole.

    Examples
    --------
    >>> from clml.datasets.arff_header import meka_label_count
    >>> meka_label_count("Music: -C 6 -split-number 400")
    6
    >>> meka_label_count("Example-dataset: -C -3")
    -3
    >>> meka_label_count("emotions") is None
    True
    """
    name, colon, options = relation.partition(":")
    match = _MEKA.search(options if colon else name)
    count = int(match[1]) if match else 0
    return count or None

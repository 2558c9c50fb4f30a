"""How names, numbers and label hierarchies are spelt in the files we write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_SAFE = re.compile(r"[\w.+-]+")
_ESCAPED = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
# Characters that some reader takes for the end of a line, or for none at all.
_CONTROL = re.compile(r"[\\'\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Readers refuse what is nested deeper.
_DEEPEST = 99


def arff_word(word: str) -> str:
    r"""Return a name as an ARFF file has it: quoted and escaped if it must be.

    Examples
    --------
    >>> from clml.datasets._spelling import arff_word
    >>> print(arff_word("Class-1"), arff_word("5%"), arff_word("it's"))
    Class-1 '5%' "it's"
    """
    if _SAFE.fullmatch(word):
        return word
    # Some readers do not know escaped quotes.
    quote = '"' if "'" in word and '"' not in word else "'"

    def escaped(match: re.Match[str]) -> str:
        character = match[0]
        if character == "'" != quote:
            return character
        return _ESCAPED.get(character, f"\\u{ord(character):04x}")

    return quote + _CONTROL.sub(escaped, word) + quote


def csv_word(word: str) -> str:
    """Return a name as a CSV file has it: in quotes if it must be.

    Examples
    --------
    >>> from clml.datasets._spelling import csv_word
    >>> print(csv_word("Class-1"), csv_word('a "b", c'))
    Class-1 "a ""b"", c"
    """
    if _SAFE.fullmatch(word):
        return word
    return '"' + word.replace('"', '""') + '"'


def dense_lines(
    rows: NDArray[np.float64], delimiter: str, missing: str
) -> Iterator[str]:
    """Yield rows of numbers, each as short as it can be and still come back exactly."""
    for row in rows.tolist():
        # A delimiter behind the last one as well, so that all end alike.
        line = delimiter.join(map(repr, row)) + delimiter
        line = line.replace(f".0{delimiter}", delimiter).replace("nan", missing)
        yield line[: -len(delimiter)]


def sparse_lines(rows: sparse.csr_array) -> Iterator[str]:
    """Yield rows ``{column value,...}`` of the entries of a CSR array."""
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        pairs = zip(
            rows.indices[begin:end].tolist(), rows.data[begin:end].tolist(), strict=True
        )
        body = "".join(f"{column} {value!r}," for column, value in pairs)
        yield "{" + body.replace(".0,", ",").replace("nan", "?")[:-1] + "}"


def _check_parents(labels: Sequence[str], parents: Mapping[str, str | None]) -> None:
    known = set(labels)
    for label, parent in parents.items():
        for name in (label, parent):
            if name is not None and name not in known:
                raise ValueError(
                    f"label_parents must hold names of labels, got {name!r}."
                )


def _check_xml(labels: Iterable[str]) -> None:
    for label in labels:
        bad = _NOT_IN_XML.search(label)
        if bad is not None:
            raise ValueError(
                f"label_names must hold characters that XML knows, got {label!r}; "
                'format="meka" needs no XML.'
            )


def labels_xml(labels: Sequence[str], parents: Mapping[str, str | None]) -> str:
    """Return MULAN's XML of the labels, nested as their parents say.

    Examples
    --------
    >>> from clml.datasets._spelling import labels_xml
    >>> print(labels_xml(["a", "b", "c"], {"c": "a"}))
    <?xml version="1.0" encoding="utf-8"?>
    <labels xmlns="http://mulan.sourceforge.net/labels">
      <label name="a">
        <label name="c"/>
      </label>
      <label name="b"/>
    </labels>
    """
    _check_parents(labels, parents)
    _check_xml(labels)
    children: dict[str | None, list[str]] = {}
    for label in labels:
        children.setdefault(parents.get(label), []).append(label)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<labels xmlns="http://mulan.sourceforge.net/labels">',
    ]
    n_written = 0

    def write(parent: str | None, depth: int) -> None:
        nonlocal n_written
        if depth > _DEEPEST:
            raise ValueError(f"label_parents must not nest deeper than {_DEEPEST}.")
        for label in children.get(parent, []):
            n_written += 1
            start = f"{'  ' * depth}<label name={quoteattr(label)}"
            if label in children:
                lines.append(f"{start}>")
                write(label, depth + 1)
                lines.append(f"{'  ' * depth}</label>")
            else:
                lines.append(f"{start}/>")

    write(None, 1)
    if n_written < len(labels):
        raise ValueError("label_parents must end at labels without one, got a circle.")
    return "\n".join([*lines, "</labels>"])

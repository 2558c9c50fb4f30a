"""MULAN's XML file: the names of the labels, and their hierarchy where there is one."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from .files import PathLike, fail

_DEEPEST = 100


def parse_labels_xml(path: PathLike, text: bytes) -> dict[str, str | None]:
    """Return the labels of a MULAN XML file, each with its parent or None.

    Document types are refused before anything is expanded, so there are no entities
    but the five of XML itself, and nothing is ever fetched.

    Parameters
    ----------
    path : str or path
        Named in errors.
    text : bytes
        The whole file.

    Examples
    --------
    >>> from clml.datasets.labels_xml import parse_labels_xml
    >>> parse_labels_xml("l.xml", b'<labels><label name="a"><label name="b"/>'
    ...     b'</label></labels>')
    {'a': None, 'b': 'a'}
    """
    parents: dict[str, str | None] = {}
    open_labels: list[str | None] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def refuse(message: str) -> ValueError:
        return fail(path, message, parser.CurrentLineNumber)

    def start(tag: str, given: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if len(open_labels) >= _DEEPEST:
            raise refuse(f"elements are nested deeper than {_DEEPEST}.")
        if not open_labels:
            if tag != "labels":
                raise refuse(f"expected the root element <labels>, got <{tag[:40]}>.")
            open_labels.append(None)
            return
        if tag != "label":
            raise refuse(f"expected <label> elements only, got <{tag[:40]}>.")
        if "name" not in given:
            raise refuse("a <label> has no name.")
        name = given["name"]
        if name in parents:
            raise refuse(f"the label {name!r} is named twice.")
        parents[name] = open_labels[-1]
        open_labels.append(name)

    def end(tag: str) -> None:
        open_labels.pop()

    def doctype(*_: Any) -> None:
        raise refuse("a document type is not accepted in a file of labels.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise fail(path, f"this is no valid XML ({reason}).", error.lineno) from None
    except (LookupError, UnicodeError) as error:
        raise fail(path, f"the encoding cannot be read ({error}).") from None
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise fail(path, f"this XML cannot be read ({error}).") from None
    if not parents:
        raise fail(path, "there is no <label> in it.")
    return parents

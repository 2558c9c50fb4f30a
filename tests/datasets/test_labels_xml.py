from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml.datasets.labels_xml import parse_labels_xml

MULAN = 'xmlns="http://mulan.sourceforge.net/labels"'


def parse(text):
    return parse_labels_xml("labels.xml", text.encode())


def test_worked_example():
    text = f'<?xml version="1.0"?>\r\n<labels {MULAN}>\r\n<label name="b"></label>\r\n'
    text += '<label name="a &amp; c"/>\r\n</labels>'
    assert parse(text) == {"b": None, "a & c": None}
    assert list(parse(text)) == ["b", "a & c"]


def test_hierarchy():
    text = """<labels><label name="sport"><label name="ball"><label name="golf"/>
    </label><label name="run"/></label><label name="art"/></labels>"""
    parents = {"sport": None, "ball": "sport", "golf": "ball", "run": "sport"}
    assert parse(text) == {**parents, "art": None}


@given(
    st.lists(
        st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"])),
        min_size=1,
        unique=True,
    )
)
def test_names_survive(names):
    names = [name.replace("\ufffe", "").replace("\uffff", "") for name in names]
    names = list(dict.fromkeys(names))
    body = "".join(f"<label name={quoteattr(name)}/>" for name in names)
    assert list(parse(f"<labels>{body}</labels>")) == names


BOMB = """<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>
<labels><label name="&b;"/></labels>"""
EXTERNAL = (
    """<!DOCTYPE l SYSTEM "file:///etc/passwd"><labels><label name="a"/></labels>"""
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"labels\.xml, line 1: a document type is not accepted"),
        (EXTERNAL, "document type"),
        ('<labels><label name="&e;"/></labels>', "undefined entity"),
        ("<labels>\n<label/></labels>", "line 2: a <label> has no name"),
        ('<labels><label name="a"/><label name="a"/></labels>', "'a' is named twice"),
        ('<label name="a"/>', "expected the root element <labels>, got <label>"),
        ("<labels><tag/></labels>", "expected <label> elements only, got <tag>"),
        ("<labels></labels>", "no <label>"),
        ('<labels><label name="a">', "no valid XML"),
        ("", "no valid XML"),
        ("<labels>" + "<label name='a'>" * 2, "named twice"),
        ('<?xml version="1.0" encoding="no-such"?><labels/>', "encoding"),
        ('<?xml version="1.0" encoding="utf-32"?><labels/>', "labels.xml"),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_deep_nesting_is_refused():
    text = "<labels>" + "".join(f"<label name='{n}'>" for n in range(10_000))
    with pytest.raises(ValueError, match="nested deeper than 100"):
        parse(text)

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml.datasets._attributes import Attribute
from clml.datasets.arff_header import (
    DEFAULT_DATE_FORMAT,
    meka_label_count,
    parse_header,
    unescape,
)


def parse(text):
    return parse_header("f.arff", text.encode() if isinstance(text, str) else text)


def attribute(declaration):
    (found,) = parse(f"@relation r\n@attribute {declaration}\n@data\n").attributes
    return found


def test_worked_example():
    text = "% a comment\n@RELATION  weather\n\n@Attribute temp\tREAL\n"
    text += "@attribute 'the sky' {clear, grey}\n@DATA\n1,clear\n"
    header = parse(text)
    assert header.relation == "weather"
    assert header.attributes == [
        Attribute("temp"),
        Attribute("the sky", "nominal", ("clear", "grey")),
    ]
    assert text[header.data_start :] == "\n1,clear\n"
    assert header.encoding == "utf-8"


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("a numeric", Attribute("a")),
        ("a INTEGER", Attribute("a")),
        ("a real % of no use", Attribute("a")),
        ("a numeric {0.5}", Attribute("a")),
        ("- numeric", Attribute("-")),
        ("-- numeric", Attribute("--")),
        ("00 numeric", Attribute("00")),
        ("don't numeric", Attribute("don't")),
        ("50% numeric", Attribute("50%")),
        (r"'it\'s \\ 5\%' real", Attribute("it's \\ 5%")),
        ('"two words" real', Attribute("two words")),
        ("'a' string", Attribute("a", "string")),
        ("a {0,1}", Attribute("a", "nominal", ("0", "1"))),
        ("a {0,1}  % note", Attribute("a", "nominal", ("0", "1"))),
        ("a{0,1}", Attribute("a", "nominal", ("0", "1"))),
        ("a{0, 1}", Attribute("a", "nominal", ("0", "1"))),
        ("legs INTEGER [0,9]", Attribute("legs")),
        ("x\u00a0y numeric", Attribute("x\u00a0y")),
        ("a {x\u00a0,y}", Attribute("a", "nominal", ("x\u00a0", "y"))),
        ("wait\x85 numeric", Attribute("wait\x85")),
        ("a\t{ x ,\ty z, 'p, q' }", Attribute("a", "nominal", ("x", "y z", "p, q"))),
        ("a {'}', \"{\"}", Attribute("a", "nominal", ("}", "{"))),
        ("a {}", Attribute("a", "nominal", ())),
        ("a {?, ''}", Attribute("a", "nominal", ("?", ""))),
        ("a date", Attribute("a", "date", (), DEFAULT_DATE_FORMAT)),
        ("a DATE 'dd.MM.yy'", Attribute("a", "date", (), "dd.MM.yy")),
        ('a date "yyyy-MM-dd HH:mm"', Attribute("a", "date", (), "yyyy-MM-dd HH:mm")),
        ("a date yyyy", Attribute("a", "date", (), "yyyy")),
    ],
)
def test_declarations(declaration, expected):
    assert attribute(declaration) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line @data"),
        ("@relation r\n@attribute a numeric\n", "no line @data"),
        ("@data\n1\n", "no @attribute"),
        ("\x00@relation\n@data\n", "zero bytes"),
        ("hello\n@data\n", "line 1: expected @relation, @attribute or @data"),
        ("@relation r\n@attribute\n@data\n", "line 2: expected a name and a type"),
        ("@attribute a\n@data\n", "'a' has no type"),
        ("@attribute a float\n@data\n", "'a' has the type 'float'"),
        ("@attribute a relational\n@data\n", "the type 'relational'"),
        ("@attribute 'a numeric\n@data\n", "is not closed"),
        ("@attribute a {x,y\n@data\n", "the brace of the values is not closed"),
        ("@attribute a {x,,y}\n@data\n", "is empty"),
        ("@attribute a {'x' y}\n@data\n", "a comma must follow the value 'x'"),
        ("@attribute a {x,y,x}\n@data\n", "'x' is declared twice"),
        ("@attribute a {x} y\n@data\n", "follows the values"),
        ("@attribute a real y\n@data\n", "follows the type of attribute 'a'"),
        (
            "@attribute a real\n@attribute 'a' {x}\n@data\n",
            "line 2: attribute 'a' is declared a second time, after line 1",
        ),
    ],
)
def test_bad_headers(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse(text)
    assert str(caught.value).startswith("f.arff")


def test_line_ends_of_windows_and_a_byte_order_mark():
    header = parse(b"\xef\xbb\xbf@relation r\r\n@attribute a {x,y}\r\n@data\r\nx\r\n")
    assert header.relation == "r"
    assert header.attributes == [Attribute("a", "nominal", ("x", "y"))]


def test_wide_encodings_are_named():
    with pytest.raises(ValueError, match="encoded in UTF-16"):
        parse("@attribute a real\n@data\n".encode("utf-16"))


def test_other_encodings_are_taken_as_latin_1():
    header = parse("@attribute Größe real\n@data\n".encode("latin-1"))
    assert header.encoding == "latin-1"
    assert header.attributes[0].name == "Größe"


def test_a_comment_or_a_name_may_hold_the_word_data():
    header = parse("% @data\n@attribute @data real\n@data % now\n1\n")
    assert [a.name for a in header.attributes] == ["@data"]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1))
def test_any_quoted_name_survives(name):
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    assert attribute(f"'{quoted}' numeric").name == name


def test_escapes():
    assert unescape(r"a\tb\nc\\d\"e") == 'a\tb\nc\\d"e'
    assert unescape(r"\ud83d\ude00 \ud800") == "\U0001f600 \ufffd"


@pytest.mark.parametrize(
    ("relation", "count"),
    [
        ("IMDB: -C 28", 28),
        ("Mix -C 1 of: -C 2", 2),
        ("r: -c 1", 1),
        ("r: -C 0", None),
        ("Music: -C 6-weka.filters.unsupervised.attribute.Standardize", 6),
        ("name: nothing", None),
        ("x: -C -3", -3),
        ("x: -split-percentage 60 -C 7 -R", 7),
        ("-C 5", 5),
        ("x", None),
        ("x-C 5", None),
        ("x: -C five", None),
        ("x: -C 99999999999", None),
    ],
)
def test_label_count_of_meka(relation, count):
    assert meka_label_count(relation) == count


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("'Music: -C 6'  % a comment -C 2", "Music: -C 6"),
        ("plain name % a comment", "plain name"),
        ('"it\\"s"', 'it"s'),
        ("'open", "'open"),
        ("", ""),
    ],
)
def test_relations_are_unquoted(text, relation):
    header = parse(f"@relation {text}\n@attribute a real\n@data\n")
    assert header.relation == relation


@pytest.mark.parametrize(
    "line",
    [
        "@attribute l {0,1}" + " " * 200_000 + "x",
        "@attribute l real" + " " * 200_000 + "x",
        "@attribute l {" + "'a', " * 50_000,
        "@attribute 'l" + "\\'" * 200_000,
        "@attribute " + "l" * 1_000_000,
    ],
    ids=["values", "type", "list", "quote", "name"],
)
def test_long_lines_take_no_long_time_and_no_long_message(line):
    began = time.perf_counter()
    with pytest.raises(ValueError, match="line 1") as caught:
        parse(f"{line}\n@data\n")
    assert time.perf_counter() - began < 5
    assert len(str(caught.value)) < 1000

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clml.datasets._numerals import EXACT, LONG, NO_NUMBER, is_missing, parse_number


def parse(text):
    data = np.frombuffer(text.encode() + b"\0", dtype=np.uint8)
    return parse_number(data, 0, len(text.encode()))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("-0.0", -0.0),
        ("1", 1.0),
        ("+12.50", 12.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-2.5E-3", -0.0025),
        ("0.1", 0.1),
        ("9007199254740992", 2.0**53),
        ("1e22", 1e22),
        ("0e999999999999", 0.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
    ],
)
def test_worked_examples(text, value):
    outcome, number = parse(text)
    assert outcome == EXACT
    assert number == value
    assert math.copysign(1, number) == math.copysign(1, value)


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan"])
def test_not_a_number_is_a_missing_number(text):
    outcome, number = parse(text)
    assert outcome == EXACT
    assert math.isnan(number)


@pytest.mark.parametrize("text", ["9007199254740993", "1e23", "1e-30", "0." + "1" * 30])
def test_what_one_operation_does_not_round_is_left_to_python(text):
    assert parse(text)[0] == LONG


@pytest.mark.parametrize(
    "text", ["", "-", ".", "e5", "1e", "1e+", "1.2.3", "1 2", "0x1", "1_0", "1f", "٣"]
)
def test_no_numbers(text):
    assert parse(text)[0] == NO_NUMBER


@settings(max_examples=500)
@example("1e400")
@example("123456789012345678901234567890e-20")
@given(st.text(alphabet="0123456789.eE+-", max_size=30))
def test_any_text_is_judged_as_python_does(text):
    outcome, number = parse(text)
    try:
        expected = float(text)
    except ValueError:
        assert outcome == NO_NUMBER
        return
    assert outcome in (EXACT, LONG)
    if outcome == EXACT:
        assert number == expected
        assert math.copysign(1, number) == math.copysign(1, expected)


@settings(max_examples=500)
@given(st.floats(allow_nan=False))
def test_floats_are_exact_or_left_to_python(value):
    outcome, number = parse(repr(value))
    assert outcome in (EXACT, LONG)
    assert outcome == LONG or number == value


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        *((word, True) for word in ("", "?", "NA", "null", "None", "NaN")),
        *((word, False) for word in ("n", "0", "nah", "??")),
    ],
)
def test_words_for_no_value(text, missing):
    data = np.frombuffer(text.encode() + b"\0", dtype=np.uint8)
    assert is_missing(data, 0, len(text)) == missing

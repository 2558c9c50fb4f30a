import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml._support.csv_cells import original_text, spreadsheet_text, write_cells

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\tx",
    "\rx",
    " =1",
    "\ufeff=1",
    "\N{FULLWIDTH EQUALS SIGN}1",
    "-",
    "-1\n",
    "'=1",
    "''@x",
]
HARMLESS = ["", "a", "a=b", "-1", "+1", "-0.5", ".5", "-1e-05", "-inf", "'a'", "x-1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_begin_with_an_apostrophe(text):
    assert spreadsheet_text(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_and_numbers_are_as_they_were(text):
    assert spreadsheet_text(text) == text
    assert original_text(text) == text


@given(
    st.text() | st.text(alphabet=list("'=+-@\t\r\n 1a,\"")) | st.sampled_from(FORMULAS)
)
def test_text_comes_back(text):
    assert original_text(spreadsheet_text(text)) == text


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=2))
def test_cells_come_back(row):
    file = io.StringIO(newline="")
    write_cells(file, [row, row])
    read = csv.reader(io.StringIO(file.getvalue(), newline=""), strict=True)
    assert [list(map(original_text, cells)) for cells in read] == [row, row]


def test_line_ends_within_a_cell_are_in_quotes():
    file = io.StringIO(newline="")
    write_cells(file, [["a\rb", "c\nd"]])
    assert file.getvalue() == '"a\rb","c\nd"\n'


def test_numbers_are_no_text():
    file = io.StringIO()
    write_cells(file, [[-0.5, -1, True, None, float("-inf")]])
    assert file.getvalue() == "-0.5,-1,True,,-inf\n"


def test_classes_of_any_kind_are_guarded():
    class Kind:
        def __str__(self):
            return "=1+1"

    file = io.StringIO()
    write_cells(file, [[Kind()]])
    assert file.getvalue() == "'=1+1\n"

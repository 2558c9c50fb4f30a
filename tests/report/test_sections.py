"""Tables of a page as values."""

import numpy as np
import pytest

from clml.report._sections import (
    best_of_rows,
    loss_title,
    matrix_table,
    number_cell,
    winners_table,
)

NAN = float("nan")


def test_best_of_rows_by_hand():
    values = np.array([[0.3, 0.1, 0.1], [NAN, 0.5, 0.6], [NAN, NAN, NAN]])
    assert best_of_rows(values).tolist() == [
        [False, True, True],
        [False, True, False],
        [False, False, False],
    ]
    assert best_of_rows(values, larger=True)[:2].tolist() == [
        [True, False, False],
        [False, False, True],
    ]


@pytest.mark.parametrize(
    ("arguments", "text", "spread"),
    [
        ((0.25,), "0.2500", ""),
        ((0.25, 0.125), "0.2500", "±0.1250"),
        ((-0.5,), "\u22120.5000", ""),
        ((None,), "\u2013", ""),
        ((NAN, 0.1), "\u2013", ""),
        ((0.25, NAN), "0.2500", ""),
    ],
)
def test_number_cell(arguments, text, spread):
    cell = number_cell(*arguments)
    assert (cell["text"], cell["spread"]) == (text, spread)


def test_matrix_table_by_hand():
    shown = matrix_table(
        "id",
        "Title",
        ["d"],
        ["a", "b"],
        np.array([[0.2, 0.1]]),
        np.array([[0.01, NAN]]),
    )
    assert [column["name"] for column in shown["columns"]] == ["dataset", "a", "b"]
    ((dataset, a, b),) = shown["rows"]
    assert dataset["text"] == "d"
    assert (a["text"], a["spread"], a["best"]) == ("0.2000", "±0.0100", False)
    assert (b["text"], b["spread"], b["best"]) == ("0.1000", "", True)


def test_winners_table_by_hand():
    mean = np.array([[0.2, 0.1], [NAN, NAN]])
    shown = winners_table(["d", "e"], ["a", "b"], {"hamming": (mean, mean / 10)})
    texts = [[cell["text"] for cell in row] for row in shown["rows"]]
    assert texts == [["d", "b 0.1000"], ["e", "\u2013"]]
    assert shown["rows"][0][1]["spread"] == "±0.0100"


def test_unknown_losses_go_by_their_name():
    assert loss_title("lrap") == "1 \u2212 LRAP"
    assert loss_title("my_own") == "my own"

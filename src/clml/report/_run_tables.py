"""The tables of one run as the page first shows them, for readers without JavaScript.

The page's script fills the same cells again when another member is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._sections import NOTHING, number_cell, table, text_cell


def label_scores(hits: int, predicted: int, relevant: int) -> tuple[float, ...]:
    """Return precision, recall and F1 of a label; 0/0 is NaN.

    Examples
    --------
    >>> from clml.report._run_tables import label_scores
    >>> label_scores(3, 4, 6)
    (0.75, 0.5, 0.6)
    >>> label_scores(0, 0, 2)
    (nan, 0.0, 0.0)
    """

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole else float("nan")

    both = ratio(2 * hits, predicted + relevant)
    return ratio(hits, predicted), ratio(hits, relevant), both


def of_default(front: Mapping[str, Any], key: str) -> Sequence[Any] | None:
    """Return numbers of the model that predicts: a member's, or its own."""
    index = front["default"]["index"]
    own = front["default"][key]
    if index is None or own is not None:
        return own
    values = front.get(key)
    return None if values is None else values[index]


def comparison_table(name: str, front: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen member's losses beside those of the default."""
    member = front["start"]
    parts = [("validation", front["rows"])]
    if front["test"] is not None:
        parts.append(("test", "test"))
    rows = []
    for part, words in parts:
        default = of_default(front, part)
        for i, title in enumerate(front["loss_titles"]):
            mine = front[part][member][i]
            theirs = None if default is None else default[i]
            numbers = [number_cell(mine), number_cell(theirs), _change(mine, theirs)]
            rows.append([text_cell(f"{title}, {words}"), *numbers])
    columns = ["loss", "chosen", "default", "change"]
    return table(name, "Losses of the chosen member", columns, rows)


def _change(
    mine: float | None, theirs: float | None, digits: int = 4
) -> dict[str, Any]:
    if mine is None or theirs is None or mine != mine or theirs != theirs:
        return text_cell(NOTHING)
    return number_cell(mine - theirs, digits=digits, signed=True)


def labels_table(name: str, front: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return precision, recall and F1 of every label for the chosen member."""
    if front["labels"] is None:
        return None
    member = front["start"]
    hits, predicted = of_default(front, "hits"), of_default(front, "predicted")
    rows = []
    for k, label in enumerate(front["labels"]):
        relevant = front["relevant"][k]
        counted = front["predicted"][member][k]
        precision, recall, f1 = label_scores(
            front["hits"][member][k], counted, relevant
        )
        before = None
        if hits is not None and predicted is not None:
            before = label_scores(hits[k], predicted[k], relevant)[2]
        rows.append(
            [
                text_cell(label),
                number_cell(relevant, digits=0),
                number_cell(counted, digits=0),
                *(number_cell(value, digits=3) for value in (precision, recall, f1)),
                _change(f1, before, digits=3),
            ]
        )
    columns = ["label", "relevant", "predicted", "precision", "recall", "F1"]
    return table(name, "Labels on the test rows", [*columns, "change"], rows)


def members_table(name: str, front: Mapping[str, Any]) -> dict[str, Any]:
    """Return the losses of every member of a front."""
    parts = ["validation"] + (["test"] if front["test"] is not None else [])
    words = {"validation": front["rows"], "test": "test"}
    columns = [
        "member",
        *(
            f"{title}, {words[part]}"
            for part in parts
            for title in front["loss_titles"]
        ),
    ]
    m, o = len(front["validation"]), len(front["loss_titles"])
    unknown = [[None] * o] * m
    spreads = {"validation": front["standard_error"] or unknown}
    rows = [
        [
            number_cell(i, digits=0),
            *(
                number_cell(value, spread)
                for part in parts
                for value, spread in zip(
                    front[part][i], spreads.get(part, unknown)[i], strict=True
                )
            ),
        ]
        for i in range(m)
    ]
    if front["row_rules"] is None:
        return table(name, "All members", columns, rows, words=0)
    for row, rule in zip(rows, front["row_rules"], strict=True):
        row.append(text_cell(rule or NOTHING))
    found = table(name, "All members", [*columns, "rule"], rows, words=0)
    found["columns"][-1]["numeric"] = False
    return found


def with_tables(run: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Return a run with the tables that the template shows."""
    front = run["front"]
    if front is None:
        return {**run, "tables": None}
    return {
        **run,
        "tables": {
            "comparison": comparison_table(f"run{place}-comparison", front),
            "labels": labels_table(f"run{place}-labels", front),
            "members": members_table(f"run{place}-members", front),
        },
    }

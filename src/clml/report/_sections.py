"""The words and tables of a page as plain values, before any HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: What readers call the losses of the paper; others go by their name.
LOSS_TITLES = {
    "hamming": "Hamming loss",
    "lrap": "1 \u2212 LRAP",
    "micro_f1": "1 \u2212 micro-F1",
    "macro_f1": "1 \u2212 macro-F1",
    "binary_cross_entropy": "cross-entropy",
    "geometric_mean": "geometric mean",
    "contribution": "contribution",
}

NOTHING = "\u2013"
PARTIAL = "*: some splits are missing, so that it is not compared."


def loss_title(name: str) -> str:
    """Return what readers call a loss.

    Examples
    --------
    >>> from clml.report._sections import loss_title
    >>> loss_title("hamming"), loss_title("one_error")
    ('Hamming loss', 'one error')
    """
    return LOSS_TITLES.get(name, name.replace("_", " "))


def text_cell(text: object) -> dict[str, Any]:
    """Return a cell of words; it sorts by them."""
    return {"text": str(text), "value": None, "spread": "", "best": False}


def number_cell(
    value: float | None,
    spread: float | None = None,
    *,
    digits: int = 4,
    best: bool = False,
    signed: bool = False,
) -> dict[str, Any]:
    """Return a cell of a number and, smaller beside it, its spread.

    Examples
    --------
    >>> from clml.report._sections import number_cell
    >>> number_cell(0.25, 0.01, best=True)
    {'text': '0.2500', 'value': 0.25, 'spread': '±0.0100', 'best': True}
    >>> number_cell(float("nan"))["text"]
    '–'
    """
    if value is None or not math.isfinite(value):
        return text_cell(NOTHING)
    # Cross-entropies of hopeless models are millions: they need no more room.
    form = f".{digits}f" if abs(value) < 1e4 else ".3g"
    number = f"{value:+{form}}" if signed else f"{value:{form}}"
    beside = ""
    if spread is not None and math.isfinite(spread):
        beside = f"±{spread:{form}}"
    return {
        "text": number.replace("-", "\u2212"),
        "value": float(value),
        "spread": beside,
        "best": bool(best),
    }


def table(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[dict[str, Any]]],
    *,
    note: str = "",
    words: int = 1,
) -> dict[str, Any]:
    """Return a table; its first ``words`` columns hold words, the others numbers."""
    return {
        "id": name,
        "title": title,
        "note": note,
        "columns": [
            {"name": column, "numeric": place >= words}
            for place, column in enumerate(columns)
        ],
        "rows": [list(row) for row in rows],
    }


def group(
    name: str,
    title: str,
    *,
    text: Sequence[str] = (),
    tables: Sequence[dict[str, Any]] = (),
    diagrams: Sequence[dict[str, Any]] = (),
    facts: Mapping[str, str] | None = None,
    late: bool = False,
) -> dict[str, Any]:
    """Return a section of the page, one that comes after the runs if it is late."""
    return {
        "id": name,
        "title": title,
        "text": list(text),
        "tables": list(tables),
        "diagrams": list(diagrams),
        "late": late,
        "facts": [[key, str(value)] for key, value in (facts or {}).items()],
    }


def best_of_rows(values: Floats, larger: bool = False) -> NDArray[np.bool_]:
    """Return which cells hold the best number of their row; NaN never does."""
    signed = -values if larger else values
    filled = np.where(np.isnan(signed), np.inf, signed)
    return np.isfinite(filled) & (filled == filled.min(axis=1, keepdims=True))


def matrix_table(
    name: str,
    title: str,
    datasets: Sequence[str],
    methods: Sequence[str],
    values: Floats,
    spread: Floats | None = None,
    *,
    whole: NDArray[np.bool_] | None = None,
    note: str = "",
    larger: bool = False,
    mark: bool = True,
    digits: int = 4,
) -> dict[str, Any]:
    """Return a table of datasets by methods, the best of each row marked.

    Where ``whole`` is False some splits are missing: such a mean has a star, and is
    not compared with others.
    """
    whole = np.ones(values.shape, dtype=bool) if whole is None else whole
    best = best_of_rows(np.where(whole, values, np.nan), larger) & mark
    partial = ~whole & ~np.isnan(values)
    if partial.any():
        note = f"{note} {PARTIAL}".strip()
    rows = [
        [
            text_cell(dataset),
            *(
                _starred(
                    number_cell(
                        values[i, j],
                        None if spread is None else spread[i, j],
                        digits=digits,
                        best=best[i, j],
                    ),
                    partial[i, j],
                )
                for j in range(len(methods))
            ),
        ]
        for i, dataset in enumerate(datasets)
    ]
    return table(name, title, ["dataset", *methods], rows, note=note)


def _starred(cell: dict[str, Any], partial: bool) -> dict[str, Any]:
    return cell | {"text": f"{cell['text']}*"} if partial else cell


def winners_table(
    datasets: Sequence[str],
    methods: Sequence[str],
    measures: Mapping[str, tuple[Floats, Floats | None]],
) -> dict[str, Any]:
    """Return who is best on each dataset by each measure, with mean and spread."""
    rows = []
    for i, dataset in enumerate(datasets):
        cells = [text_cell(dataset)]
        for values, spread in measures.values():
            if np.isnan(values[i]).all():
                cells.append(text_cell(NOTHING))
                continue
            j = int(np.nanargmin(values[i]))
            won = number_cell(values[i, j], None if spread is None else spread[i, j])
            label = f"{methods[j]} {won['text']}"
            cells.append(text_cell(label) | {"spread": won["spread"]})
        rows.append(cells)
    return table(
        "winners",
        "Best method of each dataset",
        ["dataset", *(loss_title(name) for name in measures)],
        rows,
        note="Mean and standard deviation over splits and seeds, on test rows.",
        words=1 + len(measures),
    )

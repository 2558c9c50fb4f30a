"""Which of our datasets and methods the paper has too, to show both side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._paper import PAPER_RESULTS, PaperResults
from ._ranks import FloatArray
from .measures import MAIN_LOSSES, AnyResults, ranked_table

# Our name of a run with the paper's settings. The library's defaults, "CLML", stand
# beside the printed numbers only if there is no such run.
PAPER_RUN = "CLML-paper"
# Copies of a dataset differ by a few rows that some have left out.
_ROWS_APART = 0.05


def plan_entry(results: AnyResults, dataset: str) -> dict[str, Any]:
    """Return what the plan says of a dataset; nothing if it says nothing."""
    if isinstance(results, PaperResults):
        return {}
    entries = (results.plan or {}).get("datasets")
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, dict) and entry.get("name") == dataset:
            return entry
    return {}


def printed_row(results: AnyResults, dataset: str) -> int | None:
    """Return the paper's row of a dataset: of its name, and of its size if known.

    Data of one's own may have the name of a public dataset.
    """
    row = PAPER_RESULTS.find_dataset(dataset)
    entry = plan_entry(results, dataset)
    if row is None or not entry:
        return row
    n_rows, n_labels = entry.get("n_instances"), entry.get("n_labels")
    if not isinstance(n_rows, int) or not isinstance(n_labels, int):
        is_own = entry.get("arrays") or entry.get("synthetic")
        return None if is_own else row
    figures = PAPER_RESULTS.dataset_figures[PAPER_RESULTS.datasets[row]]
    apart = abs(n_rows - figures[0])
    is_same = n_labels == figures[2] and apart <= _ROWS_APART * figures[0]
    return row if is_same else None


def printed_name(method: str, methods: list[str]) -> str | None:
    """Return the name under which the paper has a method; None if it has not.

    Examples
    --------
    >>> from clml.experiments._paper_comparison import printed_name
    >>> ours = ["CLML-paper", "CLML", "DELA", "MLP"]
    >>> [printed_name(method, ours) for method in ours]
    ['CLML', None, 'DELA', None]
    """
    if method == PAPER_RUN:
        return "CLML"
    if method == "CLML" and PAPER_RUN in methods:
        return None
    return method if method in PAPER_RESULTS.methods else None


@dataclass(frozen=True)
class Common:
    """What results and the paper have in common.

    Attributes
    ----------
    methods : list of str
        Our names of the methods.
    printed : list of str
        The paper's names of the same methods.
    rows : list of int
        Our datasets that the paper has.
    printed_rows : list of int
        The rows of the same datasets in the paper's tables.
    """

    methods: list[str]
    printed: list[str]
    rows: list[int]
    printed_rows: list[int]


def common_part(results: AnyResults) -> Common:
    """Return which methods and datasets of results the paper has."""
    names = list(results.methods)
    pairs = [(name, printed_name(name, names)) for name in names]
    kept = [(name, printed) for name, printed in pairs if printed is not None]
    places = [printed_row(results, dataset) for dataset in results.datasets]
    found = [(row, place) for row, place in enumerate(places) if place is not None]
    return Common(
        methods=[name for name, _ in kept],
        printed=[printed for _, printed in kept],
        rows=[row for row, _ in found],
        printed_rows=[place for _, place in found],
    )


def complete_common_part(results: AnyResults) -> Common:
    """Return the part in common without gaps in our losses."""
    common = common_part(results)
    table = ranked_table(results, "geometric_mean", common.methods)[common.rows]
    rows, columns = complete_part(table)
    return Common(
        methods=[common.methods[column] for column in columns],
        printed=[common.printed[column] for column in columns],
        rows=[common.rows[row] for row in rows],
        printed_rows=[common.printed_rows[row] for row in rows],
    )


def printed_beside(
    results: AnyResults, measure: str, methods: list[str]
) -> FloatArray | None:
    """Return the paper's numbers in the places of ours; NaN where it has none.

    None if the results are the paper's, or if the paper has no such measure, or if it
    depends on which other methods there are.
    """
    comparable = (*MAIN_LOSSES, "geometric_mean")
    if isinstance(results, PaperResults) or measure not in comparable:
        return None
    names = [printed_name(method, methods) or "" for method in methods]
    return np.array(
        [
            [
                PAPER_RESULTS.value(dataset, name, measure)
                if printed_row(results, dataset) is not None
                else np.nan
                for name in names
            ]
            for dataset in results.datasets
        ]
    )


def plan_notes(results: AnyResults) -> tuple[str, ...]:
    """Return what the plan wants every reader to know."""
    if isinstance(results, PaperResults):
        return ()
    notes = (results.plan or {}).get("notes")
    return tuple(str(note) for note in notes) if isinstance(notes, list) else ()


def slip_notes(datasets: Sequence[str], methods: Sequence[str]) -> tuple[str, ...]:
    """Return what is wrong with those of the paper's numbers that a table shows."""
    shown = {dataset.lower() for dataset in datasets}
    notes = []
    if "imdb-f" in shown:
        notes.append(
            "The paper's numbers on IMDB-F are no target: five of its seven rows are "
            "impossible at the dataset's cardinality."
        )
    if "flags" in shown and "C2AE" in methods:
        notes.append("The paper's 1.000 of C2AE on flags marks a failed run.")
    return tuple(notes)


def complete_part(table: FloatArray) -> tuple[list[int], list[int]]:
    """Return the datasets and methods of a table to compare without gaps.

    Methods that have nothing at all are left out first, then datasets that one of
    the other methods lacks.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.experiments._paper_comparison import complete_part
    >>> complete_part(np.array([[1.0, np.nan, 2.0], [1.0, np.nan, np.nan]]))
    ([0], [0, 2])
    """
    columns = np.flatnonzero(~np.isnan(table).all(axis=0))
    rows = np.flatnonzero(~np.isnan(table[:, columns]).any(axis=1))
    return rows.tolist(), columns.tolist()

"""The paper's tables, from our results and from what it printed, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._support.atomic import atomic_texts
from .._support.paths import PathLike
from ._ablation_table import ablation_table
from ._dataset_table import dataset_table
from ._paper import PAPER_RESULTS, PaperResults
from ._paper_comparison import (
    common_part,
    complete_common_part,
    complete_part,
    plan_notes,
    printed_beside,
    slip_notes,
)
from ._ranks import FloatArray, mean_ranks
from ._run_tables import cost_table, failed_table
from ._significance_tables import (
    complete_scope,
    control_of,
    friedman_table,
    pairwise_table,
    ranks_table,
)
from ._table import PRINTED_NOTE, SPREAD_NOTE, Cell, Table, marked_best
from ._table_formats import FORMATS, to_markdown
from .measures import (
    LARGER_IS_BETTER,
    MAIN_LOSSES,
    AnyResults,
    collect,
    geometric_mean_of,
    mean_and_spread,
    measure_table,
    ranked_table,
    whole_cells,
)

TITLES = {
    "hamming": "Hamming loss",
    "lrap": "1 - LRAP",
    "micro_f1": "1 - micro-F1",
    "contribution": "Lebesgue contributions",
    "normalised_contribution": "Normalised Lebesgue contributions",
    "geometric_mean": "Geometric means of the three losses",
}
PARTIAL = "‡"
_PARTIAL_NOTE = (
    "‡ not all splits finished: a mean over other rows, left out of ranks and tests."
)
_SPECS = {"contribution": ".6f", "normalised_contribution": ".3f"}


def _spread(results: AnyResults, measure: str) -> FloatArray | None:
    """Return deviations, where a measure has one value for each split and seed."""
    if isinstance(results, PaperResults) or measure in LARGER_IS_BETTER:
        return None
    if measure == "geometric_mean":
        return mean_and_spread(results, collect(results, geometric_mean_of))[1]
    return results.spread(measure, "test")


def _rank_row(table: FloatArray) -> tuple[Cell, ...] | None:
    """Return the mean ranks over the datasets that all methods have."""
    rows, columns = complete_part(table)
    if not rows or len(columns) < 2:
        return None
    ranks = np.full(table.shape[1], np.nan)
    ranks[columns] = mean_ranks(table[np.ix_(rows, columns)])
    cells = marked_best([Cell(float(rank), spec=".2f") for rank in ranks])
    word = "dataset" if len(rows) == 1 else "datasets"
    return (Cell(f"mean rank ({len(rows)} {word})"), *cells)


def measure_by_method(
    results: AnyResults, measure: str, methods: Sequence[str] | None = None
) -> Table:
    """Return one measure of every dataset (rows) and method (columns).

    Parameters
    ----------
    results : Results or PaperResults
    measure : str
        A loss, "contribution", "normalised_contribution" or "geometric_mean", as in
        :func:`measure_table`.
    methods : sequence of str or None, default=None
        None: all but the variants of an ablation.

    Returns
    -------
    Table
        Mean ± standard deviation over splits and seeds, the paper's number in
        parentheses, the best of each row marked; mean ranks in the last row.

    Examples
    --------
    >>> from clml.experiments import PAPER_RESULTS, measure_by_method, to_markdown
    >>> table = measure_by_method(PAPER_RESULTS, "hamming", ["DELA", "CLML"])
    >>> [cell.text for cell in table.rows[0]]
    ['CAL500', '0.171', '0.168']
    """
    names = list(results.methods) if methods is None else list(methods)
    columns = [list(results.methods).index(name) for name in names]
    values = measure_table(results, measure, names)
    spread = _spread(results, measure)
    printed = printed_beside(results, measure, names)
    nothing = np.full(values.shape, np.nan)
    deviations = nothing if spread is None else spread[:, columns]
    beside = nothing if printed is None else printed
    larger = measure in LARGER_IS_BETTER
    whole = whole_cells(results)[:, columns]
    rows = []
    for i, dataset in enumerate(results.datasets):
        cells = [
            Cell(
                float(values[i, j]),
                spread=float(deviations[i, j]),
                printed=float(beside[i, j]),
                spec=_SPECS.get(measure, ".3f"),
                mark="" if whole[i, j] or np.isnan(values[i, j]) else PARTIAL,
            )
            for j in range(len(names))
        ]
        rows.append((Cell(dataset), *marked_best(cells, larger, whole[i].tolist())))
    ranks = _rank_row(ranked_table(results, measure, names))
    if ranks is not None:
        rows.append(ranks)
    notes = [] if np.isnan(deviations).all() else [SPREAD_NOTE]
    if any(cell.mark == PARTIAL for row in rows for cell in row):
        notes.append(_PARTIAL_NOTE)
    if not np.isnan(beside).all():
        notes.append(PRINTED_NOTE)
    if isinstance(results, PaperResults) or not np.isnan(beside).all():
        notes.extend(slip_notes(results.datasets, names))
    return Table(
        name=_stem(measure),
        title=TITLES.get(measure, measure),
        columns=("dataset", *names),
        rows=tuple(rows),
        notes=(*notes, *plan_notes(results)),
    )


def _stem(measure: str) -> str:
    """Return the stem of a file for a measure, whose name a plan may have made up."""
    if measure in TITLES:
        return measure
    return "loss_" + re.sub(r"[^a-z0-9_]+", "_", measure.lower())[:60]


def contribution_table(results: AnyResults, normalised: bool = False) -> Table:
    """Return the Lebesgue contributions of the methods that the paper has too.

    What a method covers alone depends on the others, so that ours and the printed
    ones compare among the same methods only. Where the results lack some of the
    paper's methods, the numbers in parentheses are computed anew from the printed
    losses of those that are there.
    """
    measure = "normalised_contribution" if normalised else "contribution"
    common = common_part(results)
    if isinstance(results, PaperResults) or len(common.methods) < 2:
        return measure_by_method(results, measure)
    table = measure_by_method(results, measure, common.methods)
    printed = measure_table(PAPER_RESULTS, measure, common.printed)
    place = dict(zip(common.rows, common.printed_rows, strict=True))
    rows = [
        (
            row[0],
            *(_with_printed(c, printed[place[i], j]) for j, c in enumerate(row[1:])),
        )
        if i in place
        else row
        for i, row in enumerate(table.rows)
    ]
    anew = set(common.printed) != set(PAPER_RESULTS.methods)
    return Table(
        name=f"{measure}_paper_methods",
        title=f"{table.title} among the paper's methods",
        columns=table.columns,
        rows=tuple(rows),
        notes=(
            "In parentheses: computed anew from the losses that the paper printed, "
            "among these methods."
            if anew
            else PRINTED_NOTE,
            "A method without losses on a dataset takes no part in it.",
            *slip_notes(results.datasets, common.methods),
            *plan_notes(results),
        ),
    )


def _with_printed(cell: Cell, printed: float) -> Cell:
    return Cell(cell.value, printed=float(printed), spec=cell.spec, best=cell.best)


def _medians(table: FloatArray, methods: Sequence[str]) -> dict[str, float]:
    """Return the median of each method's column, none where there are no rows."""
    if not len(table):
        return {}
    return dict(zip(methods, np.median(table, axis=0).tolist(), strict=True))


def medians_table(results: AnyResults) -> Table:
    """Return the median over datasets of each method's geometric mean of losses.

    Beside ours stand ours and the paper's over the datasets in common, and what the
    paper printed, over all of its own.
    """
    ours = complete_scope("ours", results, "geometric_mean")
    medians = _medians(ours.table("geometric_mean"), ours.methods)
    cells = marked_best([Cell(medians.get(name)) for name in ours.methods])
    common = complete_common_part(results)
    name_of = dict(zip(common.methods, common.printed, strict=True))
    printed = dict(
        zip(PAPER_RESULTS.methods, PAPER_RESULTS.geometric_mean_medians, strict=True)
    )
    columns: dict[str, list[Cell]] = {}
    if not isinstance(results, PaperResults):
        mine = measure_table(results, "geometric_mean", common.methods)[common.rows]
        theirs = PAPER_RESULTS.geometric_mean[common.printed_rows]
        columns = {
            "ours, common datasets": _cells(
                _medians(mine, common.methods), ours.methods
            ),
            "paper, common datasets": _cells(
                _medians(theirs, PAPER_RESULTS.methods),
                [name_of.get(name, "") for name in ours.methods],
            ),
        }
    columns["printed"] = _cells(printed, [name_of.get(n, "") for n in ours.methods])
    return Table(
        "geometric_mean_medians",
        "Medians of the geometric means",
        ("method", "median", *columns),
        tuple(
            (Cell(name), cell, *rest)
            for name, cell, *rest in zip(
                ours.methods, cells, *columns.values(), strict=True
            )
        ),
        (
            f"Median over the {len(ours.rows)} datasets that every method has, of "
            f"which the paper has {len(common.rows)}; printed over the paper's nine.",
        ),
    )


def _cells(values: Mapping[str, float], names: Sequence[str]) -> list[Cell]:
    return [Cell(float(values[n]) if n in values else None) for n in names]


def all_tables(
    results: AnyResults, load: Callable[[str], Any] | None = None
) -> list[Table]:
    """Return every table that the results have numbers for.

    Parameters
    ----------
    results : Results or PaperResults
    load : callable or None, default=None
        Takes a dataset's name and returns its Bunch, or None where it is not at
        hand: for the figures of the datasets. None: public datasets whose files are
        present; nothing is downloaded.

    Returns
    -------
    list of Table
    """
    if isinstance(results, PaperResults):
        return [
            dataset_table(results, load),
            *(measure_by_method(results, loss) for loss in MAIN_LOSSES),
            *_derived(results),
            ablation_table(results),
        ]
    tables = [dataset_table(results, load)]
    tables += [measure_by_method(results, loss) for loss in results.losses]
    if set(MAIN_LOSSES) <= set(results.losses):
        tables += _derived(results)
        if len(common_part(results).methods) > 1:
            tables += [contribution_table(results, flag) for flag in (False, True)]
    if (results.plan or {}).get("ablation"):
        tables.append(ablation_table(results))
    tables += [cost_table(results, what) for what in ("fit", "predict", "memory")]
    return [*tables, failed_table(results)]


def _derived(results: AnyResults) -> list[Table]:
    """Return the tables that need all three main losses."""
    return [
        measure_by_method(results, "contribution"),
        measure_by_method(results, "normalised_contribution"),
        measure_by_method(results, "geometric_mean"),
        medians_table(results),
        ranks_table(results),
        friedman_table(results),
        *_pairwise(results),
    ]


def _pairwise(results: AnyResults) -> list[Table]:
    """Return the comparisons of pairs, if any methods share enough datasets."""
    scope = complete_scope("ours", results, "geometric_mean")
    if not scope.is_enough or len(scope.rows) < 2:
        return []
    control = control_of(scope.methods)
    tables = [pairwise_table(results)]
    if control is not None:
        tables.append(pairwise_table(results, control=scope.methods[control]))
    return tables


def write_tables(
    results: AnyResults,
    folder: PathLike,
    formats: Sequence[str] = ("md", "tex", "csv", "html"),
    load: Callable[[str], Any] | None = None,
) -> list[Path]:
    """Write every table to a folder, and all of them to ``tables.md``.

    Parameters
    ----------
    results : Results or PaperResults
    folder : str or path
        Made if it is absent. Files of the same names are replaced.
    formats : sequence of {"md", "tex", "csv", "html"}
    load : callable or None, default=None
        As in :func:`all_tables`.

    Returns
    -------
    list of paths
        What was written.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if isinstance(formats, str) or unknown:
        raise ValueError(f"formats must be among {list(FORMATS)}, got {formats!r}.")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tables = all_tables(results, load)
    texts = {
        place / f"{table.name}.{name}": FORMATS[name](table)
        for table in tables
        for name in formats
    }
    texts[place / "tables.md"] = "\n".join(to_markdown(table) for table in tables)
    for path, text in texts.items():
        with atomic_texts(path) as [file]:
            file.write(text)
    return list(texts)

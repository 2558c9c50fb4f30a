"""The summary of the datasets: their sizes and how their labels are spread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..datasets import list_datasets, load_dataset, make_bayes_multilabel
from ._label_dispersion import RARE, label_dispersion
from ._paper import PAPER_RESULTS, PaperResults, PrintedFigures
from ._paper_comparison import plan_entry, printed_row
from ._table import Cell, Table
from .measures import AnyResults

_MOST_SYNTHETIC = 100_000
_COLUMNS: tuple[str, ...] = (
    "dataset",
    "N",
    "D",
    "K",
    "cardinality",
    "density",
    "DK / cardinality",
    "D · cardinality",
    "label sets",
    f"labels with < {RARE} positives",
    "mean IRLbl",
    "max IRLbl",
    "SCUMBLE",
    "TCS",
)
_NOTES = (
    "N rows, D features, K labels; cardinality: labels of a row on average; density: "
    "cardinality / K.",
    "IRLbl of a label: how many times the most frequent label is as frequent. SCUMBLE: "
    "mean over rows of 1 - geometric / arithmetic mean of the IRLbl of the row's "
    "labels. TCS: ln(D · K · label sets).",
    "In parentheses: what the paper printed, where it differs.",
)


def _synthetic(results: AnyResults, name: str) -> dict[str, Any] | None:
    """Return the arguments of synthetic data in a plan, if they are harmless.

    Plans are read from files: only the plain size and seed are used.
    """
    found = plan_entry(results, name).get("synthetic")
    if isinstance(found, dict) and set(found) == {"n_samples", "random_state"}:
        n_samples, seed = found["n_samples"], found["random_state"]
        if isinstance(n_samples, int) and isinstance(seed, int):
            return found if 0 < n_samples <= _MOST_SYNTHETIC else None
    return None


class _Figures(NamedTuple):
    """What a plan tells of a dataset that it was run on."""

    n: int
    d: int
    k: int
    cardinality: float
    counts: list[int]


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and 0 < value < 2**53


def _told(results: AnyResults, name: str) -> _Figures | None:
    """Return the figures in the plan's entry, None where they are not all there."""
    entry = plan_entry(results, name)
    n, d, k = (entry.get(key) for key in ("n_instances", "n_features", "n_labels"))
    cardinality, counts = entry.get("cardinality"), entry.get("label_counts")
    if not (_is_size(n) and _is_size(d) and _is_size(k)):
        return None
    if not isinstance(cardinality, int | float) or not isinstance(counts, list):
        return None
    if len(counts) != k or not all(c == 0 or (_is_size(c) and c <= n) for c in counts):
        return None
    return _Figures(n, d, k, float(cardinality), counts)


def _is_that(data: Any, told: _Figures | None) -> bool:
    """Whether data of the right name are those that a plan was run on."""
    if told is None:
        return True
    sizes = (data.n_instances, data.n_features, data.n_labels)
    counts = np.asarray(data.Y.sum(axis=0)).reshape(-1)
    return sizes == told[:3] and counts.tolist() == told.counts


def _at_hand(results: AnyResults, name: str) -> Any:
    """Return synthetic data, or a public dataset whose files are present, or None."""
    synthetic = _synthetic(results, name)
    if synthetic is not None:
        return make_bayes_multilabel(**synthetic)
    entry = plan_entry(results, name)
    if any(key in entry for key in ("arrays", "path", "synthetic")):
        return None  # its name is its user's, not that of public data
    if isinstance(results, PaperResults) or name.lower() not in list_datasets():
        return None
    try:
        data = load_dataset(name, download=False)
    except FileNotFoundError:
        return None
    return data if _is_that(data, _told(results, name)) else None


def _printed(results: AnyResults, dataset: str) -> PrintedFigures | None:
    row = printed_row(results, dataset)
    return (
        None
        if row is None
        else PAPER_RESULTS.dataset_figures[PAPER_RESULTS.datasets[row]]
    )


def _sizes(n: int, d: int, k: int, cardinality: float) -> list[Cell]:
    """Return the cells that need no label matrix, in the order of the columns."""
    return [
        Cell(n, spec=",d"),
        Cell(d, spec=",d"),
        Cell(k, spec=",d"),
        Cell(cardinality),
        Cell(cardinality / k),
        # The paper's dispersion of feature-to-label interactions, and their number.
        Cell(d * k / cardinality if cardinality else None, spec=",d"),
        Cell(d * cardinality, spec=",d"),
    ]


def _with_printed(cell: Cell, printed: float) -> Cell:
    shown = Cell(printed, spec=cell.spec)
    return (
        cell if shown.text == cell.text else Cell(cell.value, None, printed, cell.spec)
    )


def _beside_printed(
    cells: list[Cell], printed: PrintedFigures | None
) -> tuple[Cell, ...]:
    if printed is None:
        return tuple(cells)
    return (
        *(_with_printed(c, p) for c, p in zip(cells[:4], printed, strict=True)),
        *cells[4:],
    )


def _row_told(
    dataset: str, told: _Figures, printed: PrintedFigures | None
) -> tuple[Cell, ...]:
    """Return the row of a dataset of which there are the counts of labels only."""
    counts = np.array(told.counts)
    ratios = counts.max() / counts[counts > 0]
    has_labels = len(ratios) > 0
    return (
        Cell(dataset),
        *_beside_printed(_sizes(*told[:4]), printed),
        Cell(None),
        Cell(float((counts < RARE).mean()), spec=".0%"),
        Cell(float(ratios.mean()) if has_labels else None, spec=".1f"),
        Cell(float(ratios.max()) if has_labels else None, spec=".1f"),
        Cell(None),
        Cell(None),
    )


def _row(results: AnyResults, dataset: str, data: Any) -> tuple[Cell, ...]:
    printed = _printed(results, dataset)
    if data is None:
        told = _told(results, dataset)
        if told is not None:
            return _row_told(dataset, told, printed)
        known = _sizes(*printed) if printed else [Cell(None)] * 7
        return (Cell(dataset), *known, *[Cell(None)] * 6)
    n, d, k = data.n_instances, data.n_features, data.n_labels
    cells = _beside_printed(_sizes(n, d, k, data.cardinality), printed)
    spread = label_dispersion(data.Y)
    return (
        Cell(dataset),
        *cells,
        Cell(data.n_label_sets, spec=",d"),
        Cell(spread.rare_share, spec=".0%"),
        Cell(spread.mean_imbalance, spec=".1f"),
        Cell(spread.max_imbalance, spec=".1f"),
        Cell(spread.concurrence),
        Cell(float(np.log(float(d) * k * data.n_label_sets)), spec=".2f"),
    )


def dataset_table(
    results: AnyResults, load: Callable[[str], Any] | None = None
) -> Table:
    """Return sizes and label figures of the datasets.

    Parameters
    ----------
    results : Results or PaperResults
        Whose datasets. Those of the paper are described by what it printed.
    load : callable or None, default=None
        Takes a name and returns a Bunch as from :func:`clml.datasets.load_dataset`,
        or None where the data are not at hand. None: public datasets whose files are
        present; nothing is downloaded.

    Returns
    -------
    Table
        N rows, D features, K labels, cardinality, density; the paper's DK /
        cardinality and D · cardinality; the number of different label sets; the share
        of labels with fewer than 10 positive rows; mean and maximum of the imbalance
        ratios and their concurrence SCUMBLE (:func:`label_dispersion`); and the
        theoretical complexity score TCS, ln(D · K · label sets).

    Examples
    --------
    >>> from clml.experiments import PAPER_RESULTS, dataset_table
    >>> [cell.text for cell in dataset_table(PAPER_RESULTS).rows[0][:6]]
    ['CAL500', '502', '68', '174', '26.044', '0.150']
    """
    paper = isinstance(results, PaperResults)
    look = load or partial(_at_hand, results)
    rows = tuple(_row(results, name, look(name)) for name in results.datasets)
    columns = _COLUMNS
    if paper and load is None:
        columns, rows = columns[:8], tuple(row[:8] for row in rows)
    notes = _NOTES[:1] if paper and load is None else _NOTES
    return Table("datasets", "Datasets", columns, rows, notes)

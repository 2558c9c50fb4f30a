"""Measures computed from losses: geometric means and Lebesgue contributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..lebesgue import lebesgue_contributions
from ._paper import PaperResults
from ._ranks import BoolArray, FloatArray

MAIN_LOSSES = ("hamming", "lrap", "micro_f1")

# The five measures that the paper ranks methods by.
PAPER_MEASURES = ("hamming", "lrap", "micro_f1", "contribution", "geometric_mean")
LARGER_IS_BETTER = ("contribution", "normalised_contribution")
# Means of equal losses may differ in their last bits, which must not decide a rank.
_RANKED_DIGITS = 12


class ResultsLike(Protocol):
    """What the tables read of results: see :class:`clml.experiments.Results`.

    Its ``methods`` are those to compare; the variants of an ablation have records too.
    """

    @property
    def plan(self) -> Any:
        """The plan that they are of."""

    @property
    def records(self) -> Any:
        """One of each job."""

    @property
    def datasets(self) -> Any:
        """Their names."""

    @property
    def methods(self) -> Any:
        """Those to compare."""

    @property
    def losses(self) -> Any:
        """Their names."""

    @property
    def failed(self) -> Any:
        """Jobs that failed."""

    def table(self, loss: str, part: str = ...) -> FloatArray:
        """Return means (datasets, methods)."""

    def spread(self, loss: str, part: str = ...) -> FloatArray:
        """Return standard deviations."""


AnyResults = ResultsLike | PaperResults


def loss_geometric_mean(losses: Any) -> FloatArray:
    """Return the geometric mean over the last axis; 0 where any loss is 0.

    Examples
    --------
    >>> from clml.experiments.measures import loss_geometric_mean
    >>> loss_geometric_mean([[0.1, 0.2, 0.4], [0.0, 0.5, 0.5]]).round(6)
    array([0.2, 0. ])
    """
    values = np.asarray(losses, dtype=np.float64)
    mean: FloatArray = values.prod(axis=-1) ** (1 / values.shape[-1])
    return mean


def contributions_of(losses: Any) -> FloatArray:
    """Return what each method alone covers on each dataset.

    Parameters
    ----------
    losses : array-like of shape (n_datasets, n_methods, n_losses)
        Mean loss vectors; a method that lacks a loss on a dataset has NaN there.

    Returns
    -------
    float64 array of shape (n_datasets, n_methods)
        Lebesgue contributions with reference 1, among the methods that have losses
        on the dataset; NaN for the others.

    Examples
    --------
    The first covers 0.8 × 0.5, the second 0.5 × 0.6, both together 0.5 × 0.5:

    >>> from clml.experiments.measures import contributions_of
    >>> contributions_of([[[0.2, 0.5], [0.5, 0.4], [float("nan"), 0.1]]]).round(6)
    array([[0.15, 0.05,  nan]])
    """
    values = np.asarray(losses, dtype=np.float64)
    shares = np.full(values.shape[:2], np.nan)
    for row, vectors in zip(shares, values, strict=True):
        present = ~np.isnan(vectors).any(axis=1)
        if present.any():
            row[present] = lebesgue_contributions(vectors[present], reference=1.0)
    return shares


def normalise(contributions: Any) -> FloatArray:
    """Return contributions over their sum on each dataset; 0 where the sum is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.experiments.measures import normalise
    >>> normalise(np.array([[0.3, 0.1], [0.0, 0.0]]))
    array([[0.75, 0.25],
           [0.  , 0.  ]])
    """
    shares = np.asarray(contributions, dtype=np.float64)
    total = np.nansum(shares, axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), shares * 0)


def _columns(results: AnyResults, methods: Sequence[str] | None) -> list[int]:
    known = list(results.methods)
    if methods is None:
        return list(range(len(known)))
    unknown = [method for method in methods if method not in known]
    if unknown:
        raise ValueError(f"methods must be among {known}, got {unknown} as well.")
    return [known.index(method) for method in methods]


def part_losses(record: Any, part: str) -> dict[str, float]:
    """Return the losses of a record on one part; none of a cell that is not done."""
    if record.get("status") != "done":
        return {}
    return (record.get("losses") or {}).get(part) or {}


def geometric_mean_of(record: Any, part: str = "test") -> float | None:
    """Return the geometric mean of a record's three main losses, if it has all."""
    losses = part_losses(record, part)
    if any(losses.get(name) is None for name in MAIN_LOSSES):
        return None
    return float(loss_geometric_mean([losses[name] for name in MAIN_LOSSES]))


def collect(
    results: ResultsLike, number_of: Callable[[Any], float | None]
) -> dict[tuple[str, str], list[float]]:
    """Return one number of each record, by dataset and method; None is left out.

    They are in the order of seeds and splits, not in that in which jobs happened to
    finish: sums of floats depend on it.
    """
    cells: dict[tuple[str, str], list[float]] = {}
    for record in sorted(results.records, key=lambda r: (r["seed"], r["split"])):
        number = number_of(record)
        if number is not None:
            place = (record["dataset"], record["method"])
            cells.setdefault(place, []).append(float(number))
    return cells


def mean_and_spread(
    results: ResultsLike, cells: dict[tuple[str, str], list[float]]
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of each dataset's and method's numbers.

    Two arrays (datasets, methods): the mean is NaN where there is no number, the
    deviation (ddof 1) where there are fewer than two.
    """
    shape = (len(results.datasets), len(results.methods))
    mean, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, dataset in enumerate(results.datasets):
        for j, method in enumerate(results.methods):
            values = cells.get((dataset, method), [])
            if values:
                mean[i, j] = np.mean(values)
            if len(values) > 1:
                spread[i, j] = np.std(values, ddof=1)
    return mean, spread


def whole_cells(results: AnyResults) -> BoolArray:
    """Return which methods finished every job of a dataset, (datasets, methods).

    A mean over some of the splits must not be compared with one over all of them: the
    rows are not the same. Jobs of a dataset are those that any method has a record of.
    """
    shape = (len(results.datasets), len(results.methods))
    if isinstance(results, PaperResults):
        return np.ones(shape, dtype=bool)
    jobs: dict[str, set[Any]] = {}
    done: dict[tuple[str, str], set[Any]] = {}
    for record in results.records:
        job = (record["split"], record["seed"])
        jobs.setdefault(record["dataset"], set()).add(job)
        if record["status"] == "done":
            done.setdefault((record["dataset"], record["method"]), set()).add(job)
    whole = [
        [done.get((dataset, method)) == jobs.get(dataset) for method in results.methods]
        for dataset in results.datasets
    ]
    return np.array(whole, dtype=bool).reshape(shape)


def _are_all(results: AnyResults, columns: list[int]) -> bool:
    """Whether the columns are those of all methods, in whatever order."""
    return sorted(columns) == list(range(len(results.methods)))


def _rounded(values: FloatArray, digits: int) -> FloatArray:
    """Return numbers with so many significant digits, NaN as it is."""
    texts = [f"{value:.{digits - 1}e}" for value in values.ravel().tolist()]
    return np.array([float(text) for text in texts]).reshape(values.shape)


def _contributions(results: AnyResults, columns: list[int]) -> FloatArray:
    if isinstance(results, PaperResults):
        if _are_all(results, columns):
            return results.contribution[:, columns]
        # Printed among all seven: among fewer, a method covers more alone.
        tables = [results.table(name) for name in MAIN_LOSSES]
    else:
        whole = whole_cells(results)
        tables = [
            np.where(whole, results.table(name, "test"), np.nan) for name in MAIN_LOSSES
        ]
    return contributions_of(np.stack(tables, axis=-1)[:, columns])


def measure_table(
    results: AnyResults, measure: str, methods: Sequence[str] | None = None
) -> FloatArray:
    """Return one measure on the test rows of every dataset and method.

    Parameters
    ----------
    results : Results or PaperResults
    measure : str
        A loss; "geometric_mean" of the three main losses of a cell, then the mean
        over cells; "contribution", of the methods' mean loss vectors among each
        other, of those that finished all splits; "normalised_contribution", the same
        over their sum.
    methods : sequence of str or None, default=None
        The columns wanted. Contributions are those among these methods.

    Returns
    -------
    float64 array of shape (n_datasets, n_methods)
        NaN where no cell is done.

    Examples
    --------
    >>> from clml.experiments import PAPER_RESULTS, measure_table
    >>> table = measure_table(PAPER_RESULTS, "contribution", ["DELA", "CLML"])
    >>> table.shape, bool((table >= measure_table(
    ...     PAPER_RESULTS, "contribution")[:, 5:] - 0.002).all())
    ((9, 2), True)
    """
    columns = _columns(results, methods)
    if measure == "contribution":
        return _contributions(results, columns)
    if measure == "normalised_contribution":
        if isinstance(results, PaperResults) and _are_all(results, columns):
            return results.normalised_contribution[:, columns]
        return normalise(_contributions(results, columns))
    if isinstance(results, PaperResults):
        return results.table(measure)[:, columns]
    if measure == "geometric_mean":
        mean, _ = mean_and_spread(results, collect(results, geometric_mean_of))
        return mean[:, columns]
    return results.table(measure, "test")[:, columns]


def ranked_table(
    results: AnyResults, measure: str, methods: Sequence[str] | None = None
) -> FloatArray:
    """Return a measure as the tests take it.

    Its sign is such that smaller is better; NaN stands for a method that did not
    finish all splits of a dataset. Twelve digits are kept, so that equal means tie.
    """
    table = measure_table(results, measure, methods)
    whole = whole_cells(results)[:, _columns(results, methods)]
    signed = -table if measure in LARGER_IS_BETTER else table
    return _rounded(np.where(whole, signed, np.nan), _RANKED_DIGITS)

"""Tables of tests: mean ranks, Friedman's test, pairs of methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._friedman import FriedmanTest, friedman_test
from ._pairwise import bonferroni_dunn, wilcoxon_holm
from ._paper import PAPER_RESULTS, PaperResults
from ._paper_comparison import PAPER_RUN, complete_common_part, complete_part
from ._ranks import (
    BoolArray,
    FloatArray,
    bonferroni_dunn_difference,
    mean_ranks,
    nemenyi_difference,
)
from ._table import Cell, Table, marked_best
from .measures import PAPER_MEASURES, AnyResults, ranked_table

PAPER = "paper"


@dataclass(frozen=True)
class Scope:
    """Whose numbers a test compares.

    Attributes
    ----------
    name : str
    results : Results or PaperResults
    methods : list of str
    rows : list of int
        Datasets.
    """

    name: str
    results: AnyResults
    methods: list[str]
    rows: list[int]

    @property
    def is_enough(self) -> bool:
        """Whether there is anything to compare."""
        return len(self.rows) > 0 and len(self.methods) > 1

    def table(self, measure: str) -> FloatArray:
        """Return a measure, smaller-better, shape (datasets, methods)."""
        return ranked_table(self.results, measure, self.methods)[self.rows]


def complete_scope(name: str, results: AnyResults, measure: str) -> Scope:
    """Return all of the results that have no gaps in a measure."""
    rows, columns = complete_part(ranked_table(results, measure))
    return Scope(name, results, [results.methods[column] for column in columns], rows)


def scopes(results: AnyResults) -> list[Scope]:
    """Return ours, ours in common with the paper, its numbers there, all of its own.

    Ranks depend on which methods compete: like is compared with like only where the
    methods and the datasets are the same.
    """
    paper = complete_scope(PAPER, PAPER_RESULTS, "geometric_mean")
    if isinstance(results, PaperResults):
        return [paper]
    common = complete_common_part(results)
    return [
        complete_scope("ours", results, "geometric_mean"),
        Scope("ours, common part", results, common.methods, common.rows),
        Scope("paper, common part", PAPER_RESULTS, common.printed, common.printed_rows),
        paper,
    ]


def control_of(methods: list[str]) -> int | None:
    """Return the column of CLML: with the paper's settings, else with the defaults."""
    for name in (PAPER_RUN, "CLML"):
        if name in methods:
            return methods.index(name)
    return None


def _far_from_control(table: FloatArray, methods: list[str], alpha: float) -> BoolArray:
    """Return which methods differ from the control; none without a control."""
    control = control_of(methods)
    if control is None:
        return np.zeros(len(methods), dtype=bool)
    return bonferroni_dunn(table, control, alpha).significant


def _rank_rows(scope: Scope, alpha: float) -> list[tuple[Cell, ...]]:
    """Return a row for each method: its mean ranks by each measure and by all."""
    tables = [scope.table(measure) for measure in PAPER_MEASURES]
    ranks = np.array([mean_ranks(table) for table in tables])
    far = [_far_from_control(table, scope.methods, alpha) for table in tables]
    columns = [
        [
            Cell(float(rank), spec=".2f", mark="†" if differs else "")
            for rank, differs in zip(*pair, strict=True)
        ]
        for pair in zip(ranks, far, strict=True)
    ]
    columns.append([Cell(float(rank), spec=".2f") for rank in ranks.mean(axis=0)])
    marked = [marked_best(column) for column in columns]
    return [
        (Cell(method), Cell(scope.name), *cells, _printed_rank(scope, method))
        for method, *cells in zip(scope.methods, *marked, strict=True)
    ]


def ranks_table(results: AnyResults, alpha: float = 0.05) -> Table:
    """Return the mean ranks of the methods by five measures, and their mean.

    Methods that differ from CLML by the Bonferroni-Dunn test are marked. For the
    paper's numbers the last column is what it printed.
    """
    body: list[tuple[Cell, ...]] = []
    notes = [f"† differs from CLML by the Bonferroni-Dunn test at the level {alpha:g}."]
    for scope in scopes(results):
        if scope.is_enough:
            body += _rank_rows(scope, alpha)
            notes.append(_distances(scope, alpha))
        else:
            notes.append(f"{scope.name}: no dataset that two methods have.")
    return Table(
        "mean_ranks",
        "Mean ranks",
        ("method", "numbers", *PAPER_MEASURES, "all five", "printed"),
        tuple(body),
        tuple(notes),
    )


def _printed_rank(scope: Scope, method: str) -> Cell:
    if scope.name != PAPER:
        return Cell(None, spec=".2f")
    place = PAPER_RESULTS.methods.index(method)
    return Cell(float(PAPER_RESULTS.aggregate_ranks[place]), spec=".2f")


def _distances(scope: Scope, alpha: float) -> str:
    """Return the sentence on how far mean ranks must be apart."""
    n_datasets, n_methods = len(scope.rows), len(scope.methods)
    dunn = bonferroni_dunn_difference(n_methods, n_datasets, alpha)
    nemenyi = nemenyi_difference(n_methods, n_datasets, alpha)
    return (
        f"{scope.name}: {n_methods} methods, {n_datasets} datasets; critical "
        f"differences: Bonferroni-Dunn {dunn:.3f}, Nemenyi {nemenyi:.3f}."
    )


def _test_cells(test: FriedmanTest) -> list[Cell]:
    return [
        Cell(test.statistic, spec=".2f", mark="†" if test.significant else ""),
        Cell(test.critical_value, spec=".2f"),
        Cell(test.pvalue, spec=".2g"),
    ]


def friedman_table(results: AnyResults, alpha: float = 0.05) -> Table:
    """Return Friedman's test by five measures, in both readings.

    The test of methods, and the one that takes datasets as treatments, which gives
    the values that the paper printed (last column).
    """
    body: list[tuple[Cell, ...]] = []
    for scope in scopes(results):
        for measure in PAPER_MEASURES:
            cells = [Cell(None)] * 6
            if scope.is_enough and len(scope.rows) > 1:
                table = scope.table(measure)
                cells = [
                    *_test_cells(friedman_test(table, alpha=alpha)),
                    *_test_cells(friedman_test(table, transposed=True, alpha=alpha)),
                ]
            printed = (
                PAPER_RESULTS.friedman[measure].statistic
                if scope.name == PAPER
                else None
            )
            body.append(
                (
                    Cell(measure),
                    Cell(scope.name),
                    Cell(len(scope.rows), spec="d"),
                    Cell(len(scope.methods), spec="d"),
                    *cells,
                    Cell(printed, spec=".2f"),
                )
            )
    return Table(
        "friedman",
        "Friedman's test",
        (
            "measure",
            "numbers",
            "datasets",
            "methods",
            "F",
            "critical",
            "p",
            "F, datasets as treatments",
            "critical (datasets)",
            "p (datasets)",
            "printed",
        ),
        tuple(body),
        (
            f"† significant at the level {alpha:g}. F asks whether methods differ; "
            "with datasets as treatments it asks whether datasets do, and that is what "
            "the paper printed.",
            "Only datasets that all methods of the row have.",
        ),
    )


def pairwise_table(
    results: AnyResults,
    measure: str = "geometric_mean",
    control: str | None = None,
    alpha: float = 0.05,
) -> Table:
    """Return signed-rank tests of pairs of methods, corrected by Holm's method.

    Parameters
    ----------
    results : Results or PaperResults
    measure : str, default="geometric_mean"
        As in :func:`measure_table`.
    control : str or None, default=None
        The method to compare all others with; None compares all pairs.
    alpha : float, default=0.05

    Returns
    -------
    Table

    Examples
    --------
    >>> from clml.experiments import PAPER_RESULTS, pairwise_table
    >>> table = pairwise_table(PAPER_RESULTS, control="CLML")
    >>> table.columns[:5]
    ('first', 'second', 'better', 'equal', 'worse')
    >>> [cell.text for cell in table.rows[0]]
    ['CLML', 'GNB-BR', '9', '0', '0', '0.0', '0.0039', '0.023†', '-1.00']
    """
    scope = complete_scope("all", results, measure)
    table, methods = scope.table(measure), scope.methods
    if len(table) < 2 or len(methods) < 2:
        raise ValueError(
            "results must have at least 2 datasets that at least 2 methods finished, "
            f"got {len(table)} dataset(s) and {len(methods)} method(s)."
        )
    if control is not None and control not in methods:
        raise ValueError(f"control must be one of {methods}, got {control!r}.")
    column = None if control is None else methods.index(control)
    tests = wilcoxon_holm(table, column, alpha)
    rows = tuple(
        (
            Cell(methods[first]),
            Cell(methods[second]),
            *(Cell(int(count), spec="d") for count in tests.wins[i]),
            Cell(float(tests.statistic[i]), spec=".1f"),
            Cell(float(tests.pvalues[i]), spec=".2g"),
            Cell(
                float(tests.corrected[i]),
                spec=".2g",
                mark="†" if tests.significant[i] else "",
            ),
            Cell(float(tests.effect[i]), spec=".2f"),
        )
        for i, (first, second) in enumerate(tests.pairs)
    )
    least = 2 / 2 ** len(table) * len(rows)
    notes = [
        f"Over {len(table)} datasets. † significant at the level {alpha:g}. Effect: "
        "matched-pairs rank-biserial correlation; below 0 the first is better.",
    ]
    if least >= alpha:
        notes.append(
            f"So many pairs on so few datasets: no corrected p-value can be below "
            f"{min(least, 1):.2g}."
        )
    return Table(
        "pairwise" if control is None else "pairwise_control",
        f"{'Pairs of methods' if control is None else f'Methods against {control}'} "
        f"by {measure}: signed-rank tests, Holm's correction",
        (
            "first",
            "second",
            "better",
            "equal",
            "worse",
            "W",
            "p",
            "p, corrected",
            "effect",
        ),
        rows,
        tuple(notes),
    )

"""Mean ranks and critical differences of results, as values for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._sections import Floats, group, loss_title, number_cell, table, text_cell

# The method that others are compared with: the first of these that takes part.
CONTROLS = ("CLML-paper", "CLML")


def complete_part(
    values: Sequence[Floats],
) -> tuple[list[int], list[int]]:
    """Return the datasets and methods that ranks can be taken of.

    Methods that have nothing at all are left out, then datasets that one of the others
    lacks.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.report._significance import complete_part
    >>> nan = float("nan")
    >>> complete_part([np.array([[1, 2, nan], [1, nan, nan], [3, 4, nan]])])
    ([0, 2], [0, 1])
    """
    if not values:
        return [], []
    missing = np.isnan(np.stack(list(values)).sum(axis=0))
    methods = np.flatnonzero(~missing.all(axis=0))
    datasets = np.flatnonzero(~missing[:, methods].any(axis=1))
    return datasets.tolist(), methods.tolist()


def ranks_table(
    measures: dict[str, Floats], methods: Sequence[str]
) -> dict[str, Any] | None:
    """Return the mean rank of every method by every measure; None without any.

    Parameters
    ----------
    measures : dict of str to float64 array (datasets, methods)
        Smaller is better.
    methods : sequence of str
    """
    from ..experiments import mean_ranks

    datasets, columns = complete_part(list(measures.values()))
    if len(columns) < 2 or not datasets:
        return None
    part = np.ix_(datasets, columns)
    ranks = np.stack([mean_ranks(values[part]) for values in measures.values()], 1)
    best = ranks == ranks.min(axis=0)
    rows = [
        [
            text_cell(methods[j]),
            *(
                number_cell(rank, digits=2, best=first)
                for rank, first in zip(ranks[i], best[i], strict=True)
            ),
        ]
        for i, j in enumerate(columns)
    ]
    many = "dataset that has" if len(datasets) == 1 else "datasets that have"
    return table(
        "mean-ranks",
        "Mean ranks",
        ["method", *(loss_title(name) for name in measures)],
        rows,
        note=f"Over the {len(datasets)} {many} results of all these methods. "
        "Smaller is better.",
    )


def significance_group(
    measures: dict[str, Floats],
    methods: Sequence[str],
    datasets: Sequence[str],
    alpha: float = 0.05,
) -> dict[str, Any]:
    """Return the section of critical-difference diagrams, or why there are none."""
    from ..experiments import bonferroni_dunn, nemenyi

    rows, columns = complete_part(list(measures.values()))
    if len(rows) < 2 or len(columns) < 2:
        reason = (
            "Ranks can be compared where at least two methods have results on at "
            f"least two datasets; here {len(columns)} methods have them on "
            f"{len(rows)} datasets together."
        )
        return group("significance", "Critical differences", text=[reason])
    names = [methods[j] for j in columns]
    left_out = [name for i, name in enumerate(datasets) if i not in rows]
    without = [name for j, name in enumerate(methods) if j not in columns]
    text = [
        f"Mean ranks of {len(names)} methods over {len(rows)} datasets, best on the "
        "left. Methods on one bar, or in the band around the control, are not told "
        f"apart at the level {alpha:g}."
    ]
    if left_out:
        text.append(f"Left out, for want of some results: {', '.join(left_out)}.")
    if without:
        text.append(f"Without any results: {', '.join(without)}.")
    diagrams = []
    for name, values in measures.items():
        part = values[np.ix_(rows, columns)]
        title = loss_title(name)
        title = title[:1].upper() + title[1:]
        every = nemenyi(part, alpha=alpha)
        shared: dict[str, Any] = {"names": names}
        diagrams.append(
            shared
            | {
                "title": f"{title}, all pairs",
                "note": "Nemenyi",
                "mean_ranks": every.mean_ranks.tolist(),
                "critical_difference": every.critical_difference,
                "groups": every.groups,
            }
        )
        against_whom = next((name for name in CONTROLS if name in names), None)
        if against_whom is not None:
            control = names.index(against_whom)
            against = bonferroni_dunn(part, control=control, alpha=alpha)
            diagrams.append(
                shared
                | {
                    "title": f"{title}, against {against_whom}",
                    "note": "Bonferroni-Dunn",
                    "mean_ranks": against.mean_ranks.tolist(),
                    "critical_difference": against.critical_difference,
                    "control": control,
                }
            )
    return group("significance", "Critical differences", text=text, diagrams=diagrams)

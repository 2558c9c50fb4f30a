"""What each kind of member has in the average of all, as held-out rows choose."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses import LossSet, RowTargets, Totals, get_losses, loss_values

# Shares are tried in these parts.
_PARTS = 4
# Rows are dealt into so many groups, and so many halves of the groups choose.
_GROUPS, _HALVES = 20, 50


def simplex_grid(n: int, parts: int) -> NDArray[np.float64]:
    """Return all shares of n in whole parts, that of all the same first.

    Examples
    --------
    >>> from clml._training.kind_shares import simplex_grid
    >>> simplex_grid(2, 2)
    array([[0.5, 0.5],
           [0. , 1. ],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    bars = combinations(range(parts + n - 1), n - 1)
    ends = np.array([(-1, *some, parts + n - 1) for some in bars])
    shares = (np.diff(ends, axis=1) - 1) / parts
    return np.concatenate([np.full((1, n), 1.0 / n), shares])


def kind_shares(
    by_kind: NDArray[np.float64], targets: RowTargets, losses: Any
) -> NDArray[np.float64]:
    """Return the shares (kinds,) with which kinds of members are averaged.

    Halves of the rows each choose the best of a grid, and the shares are the mean of
    their choices: where the rows say clearly which kind is better, it has all; where
    they do not, halves choose this and that, and all have something.

    Parameters
    ----------
    by_kind : float64 array (kinds, n, K)
        Average logits of each kind, on rows that its members left out.
    targets : RowTargets
    losses : sequence of losses

    Examples
    --------
    One kind knows, the other guesses:

    >>> import numpy as np
    >>> from clml._training.kind_shares import kind_shares
    >>> from clml.losses import RowTargets
    >>> generator = np.random.default_rng(0)
    >>> truth = generator.normal(size=(200, 3))
    >>> by_kind = np.stack([truth, generator.normal(size=(200, 3))])
    >>> kind_shares(by_kind, RowTargets.from_indicator(truth > 0), ("hamming",))
    array([1., 0.])
    """
    grid = simplex_grid(len(by_kind), _PARTS)
    loss_set = LossSet(get_losses(losses), targets.n_labels)
    if loss_set.matrix_losses:
        return _best_of_all(grid, by_kind, targets, losses)
    generator = np.random.default_rng(0)  # the same rows have the same shares
    n_groups = min(_GROUPS, targets.n_rows)
    groups = np.array_split(generator.permutation(targets.n_rows), n_groups)
    found, weights = [], np.empty(n_groups)
    for i, rows in enumerate(groups):
        own, totals = targets.take(rows), loss_set.new_totals(len(grid))
        logits = np.tensordot(grid, by_kind[:, rows], axes=1)
        loss_set.accumulate(totals, logits, own)
        found.append(totals)
        weights[i] = own.weight.sum()
    chosen = []
    for _ in range(_HALVES):
        half = generator.permutation(n_groups)[: max(1, n_groups // 2)]
        totals = _sum(loss_set, [found[i] for i in half])
        weight = float(weights[half].sum())
        values = loss_set.close(loss_set.statistics(totals, weight))
        least = 0.5 / (weight * targets.n_labels)
        chosen.append(grid[_best(values, least)])
    return np.asarray(np.mean(chosen, axis=0))


def _best(losses: NDArray[np.float64], least: float) -> int:
    """Return the smallest geometric mean; a loss counts as half an error at least."""
    values = np.log(np.maximum(losses, least)).mean(axis=1)
    return int(np.argmin(np.where(np.isnan(values), np.inf, values)))


def _sum(loss_set: LossSet, some: list[Totals]) -> Totals:
    total = loss_set.new_totals(len(some[0].columns))
    for one in some:
        total.add(one)
    return total


def _best_of_all(
    grid: NDArray[np.float64],
    by_kind: NDArray[np.float64],
    targets: RowTargets,
    losses: Any,
) -> NDArray[np.float64]:
    """Return the best shares on all rows, held halfway to the same for all.

    For losses that are functions: these would have to be called for every half.
    """
    weight = targets.weight if targets.weighted else None
    values = [
        loss_values(
            targets.dense,
            np.tensordot(shares, by_kind, axes=1),
            losses,
            sample_weight=weight,
        )
        for shares in grid
    ]
    chosen = grid[_best(np.array(values), 0.5 / targets.dense.size)]
    return 0.5 * (1.0 / len(by_kind) + chosen)

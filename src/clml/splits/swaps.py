"""After dealing: rows change places where that brings labels nearer to their shares."""

import numpy as np
import numpy.typing as npt

from .._support.compiled import compiled
from .first_order import Integers

Floats = npt.NDArray[np.float64]

Generator = np.random.RandomState | np.random.Generator

# How many other rows each row is compared with in a round: fewer where there is much
# to compare, since many rows offer enough good swaps. How many rounds, and the share of
# rows that must have found a partner for another one.
_FEWEST_PARTNERS, _MOST_PARTNERS = 8, 64
_COMPARISONS = 4_000_000
_N_ROUNDS = 10
_FEWEST_SWAPS = 1 / 500
# Rows whose partners are drawn at a time.
_CHUNK = 2**17


@compiled
def _change(
    row_pointers: Integers,
    row_labels: Integers,
    row: int,
    other: int,
    source: int,
    target: int,
    n: int,
    weights: Floats,
    sizes: Floats,
    excess: Integers,
    apply: bool,
) -> float:
    """Return how the unevenness changes if two rows swap parts; perhaps do it.

    Labels that both rows carry stay where they are; the lists are ascending.
    """
    a, a_end = row_pointers[row], row_pointers[row + 1]
    b, b_end = row_pointers[other], row_pointers[other + 1]
    change = 0.0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and row_labels[a] < row_labels[b]):
            label, leaves, arrives = row_labels[a], source, target
            a += 1
        elif a >= a_end or row_labels[b] < row_labels[a]:
            label, leaves, arrives = row_labels[b], target, source
            b += 1
        else:
            a += 1
            b += 1
            continue
        less = (2.0 * excess[label, leaves] - n) / sizes[leaves]
        more = (2.0 * excess[label, arrives] + n) / sizes[arrives]
        change += weights[label] * (more - less)
        if apply:
            excess[label, leaves] -= n
            excess[label, arrives] += n
    return change


@compiled
def _exchange_once(
    row_pointers: Integers,
    row_labels: Integers,
    weights: Floats,
    sizes: Floats,
    n: int,
    order: Integers,
    partners: Integers,
    parts: Integers,
    excess: Integers,
) -> int:
    """Let each row swap with the best of its partners; return how many did.

    ``order`` holds the rows to look at, ``partners`` (rows, n_partners) the rows that
    each is compared with, ``n`` is the number of all rows. ``parts`` and ``excess``, n
    times (what a part has of a label, less its share), change in place.
    """
    n_swaps = 0
    for position in range(order.size):
        row = order[position]
        best = -1
        best_change = -1e-9
        for number in range(partners.shape[1]):
            other = partners[position, number]
            if parts[other] == parts[row]:
                continue
            change = _change(
                row_pointers,
                row_labels,
                row,
                other,
                parts[row],
                parts[other],
                n,
                weights,
                sizes,
                excess,
                False,
            )
            if change < best_change:
                best, best_change = other, change
        if best >= 0:
            _change(
                row_pointers,
                row_labels,
                row,
                best,
                parts[row],
                parts[best],
                n,
                weights,
                sizes,
                excess,
                True,
            )
            parts[row], parts[best] = parts[best], parts[row]
            n_swaps += 1
    return n_swaps


def exchange(
    row_pointers: Integers,
    row_labels: Integers,
    n_labels: int,
    n_columns: int,
    capacities: Integers,
    generator: Generator | None,
    parts: Integers,
) -> None:
    """Swap rows between parts, in place, as long as that is found to be more even.

    Unevenness is the sum, over columns (labels, or labels and pairs of them) and parts,
    of the squared difference between what a part has of a column and its share, over
    that share (as in the chi-squared statistic): each swap makes it smaller. Sizes of
    parts stay.

    Parameters
    ----------
    row_pointers, row_labels : int64 arrays
        The columns of each row, ascending.
    n_labels, n_columns : int
        Columns from ``n_labels`` on are pairs.
    capacities : int64 array (n_parts,)
    generator : RandomState, Generator or None
        Chooses the rows that are compared. None: always the same.
    parts : int64 array (n_rows,)
    """
    n_rows, n_parts = len(parts), len(capacities)
    if n_rows == 0:
        return
    generator = np.random.default_rng(0) if generator is None else generator
    cells = row_labels * n_parts
    cells += np.repeat(parts, np.diff(row_pointers))
    counts = np.bincount(cells, minlength=n_columns * n_parts)
    counts = counts.reshape(n_columns, n_parts)
    totals = counts.sum(axis=1)
    weights = 1.0 / np.maximum(totals, 1)
    # The smallest part's share of such a pair is nearer to none than to one row.
    # Counted, these pairs, often most of all, would keep their rows out of it.
    rare = totals * capacities.min() < n_rows / 2
    weights[n_labels:][rare[n_labels:]] = 0.0
    excess = n_rows * counts - np.multiply.outer(totals, capacities)
    sizes = capacities.astype(np.float64)
    affordable = _COMPARISONS // (n_rows + len(row_labels))
    n_partners = max(_FEWEST_PARTNERS, min(_MOST_PARTNERS, n_rows, affordable))
    for _ in range(_N_ROUNDS):
        order = generator.permutation(n_rows).astype(np.int64)
        n_swaps = 0
        for begin in range(0, n_rows, _CHUNK):
            chunk = order[begin : begin + _CHUNK]
            partners = generator.random((len(chunk), n_partners)) * n_rows
            n_swaps += _exchange_once(
                row_pointers,
                row_labels,
                weights,
                sizes,
                n_rows,
                chunk,
                partners.astype(np.int64),
                parts,
                excess,
            )
        if n_swaps <= _FEWEST_SWAPS * n_rows:
            break

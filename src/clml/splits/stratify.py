"""Iterative stratification: dealing rows to parts so that labels keep their shares."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._support.indicator import check_indicator, check_sparse_indicator
from .first_order import Integers, deal_by_label, deal_the_rest
from .pairs import deal_by_pair, label_pairs, labels_and_pairs
from .swaps import exchange

RandomSource = None | int | np.random.RandomState | np.random.Generator
Generator = np.random.RandomState | np.random.Generator

# Some twenty seconds, or 800 MB.
_MOST_UPDATES = 10**8


def random_source(random_state: RandomSource) -> Generator:
    """Return a generator that is not numpy's global one."""
    if random_state is None:
        # check_random_state(None) would read, and advance, numpy's global state.
        return np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def check_order(order: Any) -> int:
    """Return the order of the stratification, 1 or 2."""
    if isinstance(order, bool) or order not in (1, 2):
        raise ValueError(
            f"order must be 1 (labels) or 2 (pairs of labels); got {order!r}."
        )
    return int(order)


def check_refine(refine: Any) -> bool:
    """Return whether dealt rows may be exchanged."""
    if not isinstance(refine, bool):
        raise TypeError(f"refine must be True or False; got {refine!r}.")
    return refine


def positive_entries(Y: Any, argument: str = "Y") -> sparse.csr_array:
    """Return the positive entries of a label indicator, checked, in row order."""
    if sparse.issparse(Y):
        return check_sparse_indicator(Y, argument)
    return sparse.csr_array(check_indicator(Y, argument).astype(bool))


def _check_pairs(by_row: sparse.csr_array, n_pairs: int, n_parts: int) -> None:
    """Refuse what would take minutes or many gigabytes."""
    lengths = np.diff(by_row.indptr).astype(np.int64)
    n_updates = int((lengths * (lengths - 1) // 2).sum())
    if n_updates > _MOST_UPDATES or n_pairs * n_parts > _MOST_UPDATES:
        raise ValueError(
            f"order=2 would go through {n_updates:,} pairs of labels in the rows, "
            f"{n_pairs:,} different ones in {n_parts:,} parts; use order=1 for so "
            "many labels or parts."
        )


def dealt_parts(
    positives: sparse.csr_array,
    capacities: Integers,
    generator: Generator | None,
    order: int = 1,
) -> Integers:
    """Return the part that each row is dealt to, shape (n_samples,).

    Parameters
    ----------
    positives : csr_array of shape (n_samples, n_labels)
        The positive entries of the indicator and nothing else.
    capacities : int64 array of shape (n_parts,)
        Sizes of the parts; they sum to the number of rows.
    generator : RandomState, Generator or None
        Decides the order of rows and all ties. None takes rows and labels as they
        stand and the first of tied parts.
    order : {1, 2}
        2 deals by pairs of labels before it deals by single labels.
    """
    n_samples, n_labels = positives.shape
    if generator is None:
        shuffled_rows, label_priority = np.arange(n_samples), np.arange(n_labels)
        tie_breaks = np.zeros(n_samples)
    else:
        # Rows of one label are interchangeable to the method; taking them in random
        # order keeps the file's order out of the split.
        shuffled_rows = generator.permutation(n_samples)
        label_priority = generator.permutation(n_labels)
        tie_breaks = generator.random(n_samples)
    by_row = positives[shuffled_rows]
    by_label = by_row.tocsc()
    indicator = [
        numbers.astype(np.int64)
        for matrix in (by_row, by_label)
        for numbers in (matrix.indptr, matrix.indices)
    ]

    remaining = np.diff(by_label.indptr).astype(np.int64)
    # A part's desire for a label is (capacity / n_samples) * positives - received.
    # Kept times n_samples it is an integer, and rounding decides no tie.
    desire = np.multiply.outer(remaining, capacities)
    shuffled_parts = np.full(n_samples, -1, dtype=np.int64)
    state = shuffled_parts, capacities.copy(), desire, remaining
    if order == 2:
        pairs = label_pairs(by_row)
        n_pairs = len(pairs[1])
        _check_pairs(by_row, n_pairs, len(capacities))
        pair_priority = (
            np.arange(n_pairs) if generator is None else generator.permutation(n_pairs)
        )
        deal_by_pair(
            *indicator,
            *pairs,
            pair_priority.astype(np.int64),
            capacities,
            tie_breaks,
            *state,
        )
    deal_by_label(*indicator, label_priority.astype(np.int64), tie_breaks, *state)
    deal_the_rest(tie_breaks, *state[:2])
    parts = np.empty(n_samples, dtype=np.int64)
    parts[shuffled_rows] = shuffled_parts
    return parts


def stratified_parts(
    positives: sparse.csr_array,
    capacities: Integers,
    generator: Generator | None,
    order: int = 1,
    refine: bool = True,
) -> Integers:
    """Return the part of each row: dealt, then exchanged where that is more even.

    Parameters and result are those of :func:`dealt_parts`; without ``refine`` what is
    dealt stays.
    """
    parts = dealt_parts(positives, capacities, generator, order)
    if not refine:
        return parts
    positives = positives.sorted_indices()
    by_row: tuple[Integers, Integers] | None
    by_row = positives.indptr.astype(np.int64), positives.indices.astype(np.int64)
    n_labels = n_columns = positives.shape[1]
    if order == 2:
        pairs = label_pairs(positives)
        by_row = labels_and_pairs(*by_row, pairs)
        n_columns += len(pairs[1])
    if by_row is not None:
        exchange(*by_row, n_labels, n_columns, capacities, generator, parts)
    return parts

"""Second-order stratification: rows dealt by the pairs of labels they carry."""

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._support.compiled import compiled
from .first_order import Integers, choose_part

# Labels and pairs of all rows that may be listed: 160 MB.
_MOST_ENTRIES = 20_000_000


def label_pairs(by_row: sparse.csr_array) -> tuple[Integers, Integers, Integers]:
    """Return the pairs of labels that occur together, and in how many rows.

    Pairs are numbered. Those whose first label is ``a`` are the numbers from
    ``pointers[a]`` to ``pointers[a + 1]``; ``seconds`` holds their second labels,
    ascending and larger than ``a``, and ``counts`` their rows.
    """
    ones = sparse.csr_array(
        (np.ones(by_row.nnz, dtype=np.int64), by_row.indices, by_row.indptr),
        shape=by_row.shape,
    )
    together = sparse.csr_array(sparse.triu(ones.T @ ones, k=1))
    together.sort_indices()
    return (
        together.indptr.astype(np.int64),
        together.indices.astype(np.int64),
        together.data,
    )


@compiled
def _settle(heap: Integers, places: Integers, keys: Integers, place: int) -> None:
    """Move the pair at a place of the heap up to where its smaller key belongs."""
    pair = heap[place]
    while place > 0:
        parent = (place - 1) // 2
        if keys[heap[parent]] <= keys[pair]:
            break
        heap[place] = heap[parent]
        places[heap[place]] = place
        place = parent
    heap[place] = pair
    places[pair] = place


@compiled
def _remove_first(heap: Integers, places: Integers, keys: Integers, size: int) -> int:
    """Take the pair with the smallest key off a heap of this size; return it."""
    first = heap[0]
    last = heap[size - 1]
    size -= 1
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[last] <= keys[heap[child]]:
            break
        heap[place] = heap[child]
        places[heap[place]] = place
        place = child
    heap[place] = last
    places[last] = place
    places[first] = -1
    return first


@compiled
def _find(values: Integers, value: int, start: int, stop: int) -> int:
    """Return where a value is among ascending ones, or where it would be."""
    while start < stop:
        middle = (start + stop) // 2
        if values[middle] < value:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _list_labels_and_pairs(
    row_pointers: Integers,
    row_labels: Integers,
    pair_pointers: Integers,
    pair_seconds: Integers,
    columns: Integers,
) -> None:
    n_labels = pair_pointers.shape[0] - 1
    position = 0
    for row in range(row_pointers.shape[0] - 1):
        start, stop = row_pointers[row], row_pointers[row + 1]
        for entry in range(start, stop):
            columns[position] = row_labels[entry]
            position += 1
        for entry in range(start, stop):
            label = row_labels[entry]
            pair = pair_pointers[label]
            for other in range(entry + 1, stop):
                pair = _find(
                    pair_seconds, row_labels[other], pair, pair_pointers[label + 1]
                )
                columns[position] = n_labels + pair
                position += 1


def labels_and_pairs(
    row_pointers: Integers,
    row_labels: Integers,
    pairs: tuple[Integers, Integers, Integers],
) -> tuple[Integers, Integers] | None:
    """Return labels and pairs of each row as one indicator, by rows, ascending.

    Pairs come after labels, numbered as in ``label_pairs``. None where rows have so
    many labels that the list of their pairs would be too long to keep.
    """
    lengths = np.diff(row_pointers)
    pointers = np.concatenate([[0], np.cumsum(lengths * (lengths + 1) // 2)])
    if pointers[-1] > _MOST_ENTRIES:
        return None
    columns = np.empty(pointers[-1], dtype=np.int64)
    _list_labels_and_pairs(row_pointers, row_labels, *pairs[:2], columns)
    return pointers, columns


@compiled
def deal_by_pair(
    row_pointers: Integers,
    row_labels: Integers,
    label_pointers: Integers,
    label_rows: Integers,
    pair_pointers: Integers,
    pair_seconds: Integers,
    pair_counts: Integers,
    pair_priority: Integers,
    capacities: Integers,
    tie_breaks: npt.NDArray[np.float64],
    parts: Integers,
    room: Integers,
    label_desire: Integers,
    label_remaining: Integers,
) -> None:
    """Deal the rows with two labels or more, those of the rarest pair first.

    Indicator, tie breaks and the state, which is updated in place, are those of
    ``deal_by_label``; pairs come from ``label_pairs``. Which rows carry which pair
    is not stored: it follows from the indicator, and would need memory quadratic in
    the labels of a row.
    """
    n_rows = row_pointers.shape[0] - 1
    n_labels = label_pointers.shape[0] - 1
    n_parts = capacities.shape[0]
    n_pairs = pair_counts.shape[0]

    firsts = np.empty(n_pairs, dtype=np.int64)
    for label in range(n_labels):
        firsts[pair_pointers[label] : pair_pointers[label + 1]] = label
    desire = np.empty((n_pairs, n_parts), dtype=np.int64)
    for pair in range(n_pairs):
        for part in range(n_parts):
            desire[pair, part] = capacities[part] * pair_counts[pair]

    # Ordered by the rows left, then by priority, in one number. It only shrinks.
    keys = pair_counts * n_pairs + pair_priority
    heap = np.argsort(keys)
    places = np.empty(n_pairs, dtype=np.int64)
    places[heap] = np.arange(n_pairs)

    for size in range(n_pairs, 0, -1):
        rarest = _remove_first(heap, places, keys, size)
        first, second = firsts[rarest], pair_seconds[rarest]
        if (
            label_pointers[first + 1] - label_pointers[first]
            > label_pointers[second + 1] - label_pointers[second]
        ):
            first, second = second, first
        for position in range(label_pointers[first], label_pointers[first + 1]):
            if keys[rarest] < n_pairs:  # no rows left
                break
            row = label_rows[position]
            if parts[row] >= 0:
                continue
            start, stop = row_pointers[row], row_pointers[row + 1]
            found = _find(row_labels, second, start, stop)
            if found == stop or row_labels[found] != second:
                continue
            part = choose_part(desire[rarest], room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
            for entry in range(start, stop):
                label = row_labels[entry]
                label_remaining[label] -= 1
                label_desire[label, part] -= n_rows
                pair = pair_pointers[label]
                for other in range(entry + 1, stop):
                    pair = _find(
                        pair_seconds, row_labels[other], pair, pair_pointers[label + 1]
                    )
                    desire[pair, part] -= n_rows
                    keys[pair] -= n_pairs
                    if places[pair] >= 0:
                        _settle(heap, places, keys, places[pair])

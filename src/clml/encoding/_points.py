"""Distinct values of columns with their weights, sorted: what quantiles are read from.

The points of all columns lie behind one another in flat arrays; ``offsets`` says where
each column's begin. Kernels go over columns, so that a thousand of them cost no loop in
Python.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled

# Columns of smaller numbers count as constant: their differences may not be divisible.
_LEAST_SIZE = 1e-270
_ROUNDING = 10 * np.finfo(np.float64).eps
# A cumulative weight this near to a share of the whole (relatively) is that share:
# weights of 0.1 add up to other digits than weights of 1.
_HITS = 1e-12


class Points(NamedTuple):
    """Distinct values and their weights, ascending within each column."""

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Return how many points each column has."""
        return np.diff(self.offsets)


def offsets_of(counts: NDArray) -> NDArray[np.int64]:
    """Return where each of some consecutive stretches begins, and the end.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding._points import offsets_of
    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def distinct(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
) -> Points:
    """Return the points of values that are sorted within their columns.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding._points import distinct
    >>> values = np.array([1.0, 1.0, 2.0, 2.0])
    >>> points = distinct(values, np.ones(4), np.array([0, 3, 4]))
    >>> points.values, points.weights, points.offsets
    (array([1., 2., 2.]), array([2., 1., 1.]), array([0, 2, 3]))
    """
    new = np.empty(values.size, dtype=bool)
    new[1:] = values[1:] != values[:-1]
    new[offsets[:-1][np.diff(offsets) > 0]] = True
    first = np.flatnonzero(new)
    before = np.zeros(values.size + 1, dtype=np.int64)
    np.cumsum(new, out=before[1:])
    if first.size:
        weights = np.add.reduceat(weights, first)
    # Adding 0 makes -0.0 the 0.0 that it equals.
    return Points(values[first] + 0.0, weights, before[offsets])


def merged(a: Points, b: Points) -> Points:
    """Return the points of the rows of both."""
    place = np.arange(a.offsets.size - 1)
    column = np.concatenate([np.repeat(place, part.counts) for part in (a, b)])
    values = np.concatenate([a.values, b.values])
    weights = np.concatenate([a.weights, b.weights])
    order = np.lexsort((values, column))
    return distinct(values[order], weights[order], a.offsets + b.offsets)


def compressed(points: Points, most: int) -> Points:
    """Return at most ``most`` points a column, which say nearly the same.

    The weight is cut into ``most − 2`` equal stretches, and the points whose middles
    lie in one become one: a value that occurred, in their middle, with their weight.
    The smallest and the largest value stay points of their own, and so do values that
    weigh more than two stretches. No share of the rows below a value changes by more
    than 1 / (most − 2). Nothing is drawn at random.
    """
    if (points.counts <= most).all():
        return points
    values, weights = np.empty_like(points.values), np.empty_like(points.weights)
    counts = _compress(*points, most, values, weights)
    offsets = offsets_of(counts)
    # Copies: a view would keep all that was there before.
    end = offsets[-1]
    return Points(values[:end].copy(), weights[:end].copy(), offsets)


@compiled(inline=True)
def _stretch(middle, total, most):  # type: ignore[no-untyped-def]
    return min(int(middle / total * (most - 2)), most - 3)


@compiled
def _compress(values, weights, offsets, most, new_values, new_weights):  # type: ignore[no-untyped-def]
    counts = np.zeros(offsets.size - 1, dtype=np.int64)
    end = 0
    for j in range(offsets.size - 1):
        start, stop, begin = offsets[j], offsets[j + 1], end
        if stop - start <= most:
            for i in range(start, stop):
                new_values[end], new_weights[end] = values[i], weights[i]
                end += 1
            counts[j] = end - begin
            continue
        total = 0.0
        for i in range(start, stop):
            total += weights[i]
        below = 0.0
        i = start
        while i < stop:
            alone = i == start or i == stop - 1
            stretch = _stretch(below + weights[i] / 2, total, most)
            group = weights[i]
            last = i + 1
            while not alone and last < stop - 1:
                middle = below + group + weights[last] / 2
                if _stretch(middle, total, most) != stretch:
                    break
                group += weights[last]
                last += 1
            middle, k = weights[i], i
            while middle < group / 2 and k < last - 1:
                k += 1
                middle += weights[k]
            new_values[end], new_weights[end] = values[k], group
            end += 1
            below += group
            i = last
        counts[j] = end - begin
    return counts


@compiled
def moments(values, weights, offsets):  # type: ignore[no-untyped-def]
    """Return weight, mean and deviation (the population's) of each column.

    Sums go along the sorted values, so they do not depend on the order of rows. They
    are taken in a unit near the largest value: no square overflows or vanishes. What
    has no points has weight, mean and deviation 0.
    """
    n_columns = offsets.size - 1
    total = np.zeros(n_columns)
    mean = np.zeros(n_columns)
    deviation = np.zeros(n_columns)
    for j in range(n_columns):
        start, stop = offsets[j], offsets[j + 1]
        if start == stop:
            continue
        weight = 0.0
        for i in range(start, stop):
            weight += weights[i]
        size = max(abs(values[start]), abs(values[stop - 1]))
        # A power of two: dividing by it changes no digit.
        unit = math.ldexp(1.0, math.frexp(size)[1] - 1) if size > 0 else 1.0
        m = 0.0
        for i in range(start, stop):
            m += weights[i] * (values[i] / unit)
        m = min(max(m / weight, values[start] / unit), values[stop - 1] / unit)
        square, rest = 0.0, 0.0
        for i in range(start, stop):
            off = values[i] / unit - m
            square += weights[i] * off * off
            rest += weights[i] * off
        total[j] = weight
        mean[j] = m * unit
        # The second term takes back what rounding of the mean added.
        variance = square / weight - (rest / weight) ** 2
        deviation[j] = math.sqrt(max(variance, 0.0)) * unit
    return total, mean, deviation


def quantiles(
    points: Points, columns: NDArray[np.int64], parts: NDArray[np.int64], of: int
) -> NDArray[np.float64]:
    """Return the quantiles ``parts / of`` of some columns, one row each.

    The quantile of share q is the first value that q of the weight does not exceed; if
    the weight up to a value is q exactly, the middle between it and the next (Hyndman
    and Fan's second definition, NumPy's "averaged_inverted_cdf"). A row of weight 2
    then counts as two rows, and the unit of weights does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding._points import Points, quantiles
    >>> points = Points(np.array([1.0, 3.0]), np.array([2.0, 2.0]), np.array([0, 2]))
    >>> quantiles(points, np.array([0]), np.array([0, 1, 2, 3, 4]), of=4)
    array([[1., 1., 2., 3., 3.]])
    """
    found = np.empty((columns.size, parts.size))
    _quantiles(*points, columns, parts, of, found)
    return found


@compiled
def _quantiles(values, weights, offsets, columns, parts, of, found):  # type: ignore[no-untyped-def]
    for row in range(columns.size):
        start, stop = offsets[columns[row]], offsets[columns[row] + 1]
        total = 0.0
        for i in range(start, stop):
            total += weights[i]
        i, up_to = start, weights[start]
        for k in range(parts.size):
            # Multiplied out, so that whole numbers are compared exactly.
            wanted = parts[k] * total
            while i < stop - 1 and up_to * of < wanted * (1 - _HITS):
                i += 1
                up_to += weights[i]
            value = values[i]
            hits = parts[k] > 0 and abs(up_to * of - wanted) <= _HITS * wanted
            if hits and i < stop - 1:
                value = value / 2 + values[i + 1] / 2
            found[row, k] = value


def ranked(
    points: Points, columns: NDArray[np.int64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return values of some columns with their mid-ranks, at most ``most`` a column.

    The mid-rank of a value is the share of the weight below it and half of its own.
    Of more values those are taken at shares 0, 1/(most − 1), …, 1 of the weight.

    Returns
    -------
    values, ranks : float64 arrays
        Ascending within each column; ranks lie between 0 and 1.
    offsets : int64 array (n_columns + 1,)

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding._points import Points, ranked
    >>> points = Points(np.array([1.0, 3.0]), np.array([3.0, 1.0]), np.array([0, 2]))
    >>> ranked(points, np.array([0]), most=10)
    (array([1., 3.]), array([0.375, 0.875]), array([0, 2]))
    """
    size = int(np.minimum(points.counts[columns], most).sum())
    values, ranks = np.empty(size), np.empty(size)
    counts = _ranked(*points, columns, most, values, ranks)
    offsets = offsets_of(counts)
    return values[: offsets[-1]], ranks[: offsets[-1]], offsets


@compiled
def _ranked(values, weights, offsets, columns, most, new_values, ranks):  # type: ignore[no-untyped-def]
    counts = np.zeros(columns.size, dtype=np.int64)
    end = 0
    for row in range(columns.size):
        start, stop = offsets[columns[row]], offsets[columns[row] + 1]
        total = 0.0
        for i in range(start, stop):
            total += weights[i]
        below, part, begin = 0.0, 0, end
        for i in range(start, stop):
            up_to = below + weights[i]
            take = stop - start <= most or i == stop - 1
            # Shares that this value is the first to reach.
            while part < most - 1 and up_to * (most - 1) >= part * total:
                part += 1
                take = True
            if take:
                new_values[end] = values[i]
                ranks[end] = (below + weights[i] / 2) / total
                end += 1
            below = up_to
        counts[row] = end - begin
    return counts


@compiled(inline=True)
def _are_apart(low, high):  # type: ignore[no-untyped-def]
    size = max(abs(low), abs(high))
    # Halves: the difference of the largest numbers overflows.
    return high / 2 - low / 2 > _ROUNDING / 2 * size and size >= _LEAST_SIZE


@compiled
def apart(low, high):  # type: ignore[no-untyped-def]
    """Tell which numbers differ from larger ones by more than rounding."""
    result = np.empty(low.size, dtype=np.bool_)
    for i in range(low.size):
        result[i] = _are_apart(low[i], high[i])
    return result


@compiled
def kept_apart(values, offsets):  # type: ignore[no-untyped-def]
    """Tell which of ascending values differ from the last one that is kept."""
    keep = np.zeros(values.size, dtype=np.bool_)
    for j in range(offsets.size - 1):
        last = offsets[j]
        for i in range(offsets[j], offsets[j + 1]):
            if i == offsets[j] or _are_apart(values[last], values[i]):
                keep[i] = True
                last = i
    return keep

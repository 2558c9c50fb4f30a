"""Encodings in plain Python, one value at a time: what the fast ones must equal."""

import math
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

from clml.encoding import Bins, Quantiles, Robust, Standardized

#: What tests of all encodings go over.
ENCODINGS = [
    Standardized(),
    Standardized(indicators="scaled"),
    Robust(),
    Robust(0.5, indicators="scaled"),
    Quantiles(),
    Quantiles(3),
    Bins(),
    Bins(3, numbers=False),
]


def sorted_points(column, weight):
    """Return distinct values and their exact weights, ascending, of what counts."""
    points = {}
    for x, w in zip(column, weight, strict=True):
        if w > 0 and not math.isnan(x):
            points[float(x)] = points.get(float(x), Fraction(0)) + Fraction(float(w))
    return sorted(points.items())


def exact_mean(points):
    total = sum(w for _, w in points)
    return sum(Fraction(x) * w for x, w in points) / total


def exact_deviation(points):
    total, mean = sum(w for _, w in points), exact_mean(points)
    variance = sum(w * (Fraction(x) - mean) ** 2 for x, w in points) / total
    unit = Fraction(2) ** (math.frexp(max(abs(x) for x, _ in points))[1])
    return math.sqrt(variance / unit**2) * float(unit)


def exact_quantile(points, share):
    """Return the value that a share of the weight lies below, as rows repeated say."""
    wanted = share * sum(w for _, w in points)
    below = Fraction(0)
    for place, (x, w) in enumerate(points):
        below += w
        if below == wanted and wanted > 0 and place + 1 < len(points):
            return x / 2 + points[place + 1][0] / 2
        if below >= wanted:
            return x
    raise AssertionError


def mid_rank(points, x):
    total = sum(w for _, w in points)
    same = sum(w for v, w in points if v == x)
    return float((sum(w for v, w in points if v < x) + same / 2) / total)


def interpolated(x, knots, levels):
    if x <= knots[0]:
        return levels[0]
    for a, b, p, q in zip(knots, knots[1:], levels, levels[1:], strict=False):
        if a <= x < b:
            return p + (q - p) * (x - a) / (b - a)
    return levels[-1]


def fitted_column(encoding, column, weight):
    """Return a function from a value to what it becomes, or None for no columns."""
    points = sorted_points(column, weight)
    if len(points) < 2:
        return None
    mean, deviation = float(exact_mean(points)), exact_deviation(points)

    def standard(x):
        return max(-1e6, min(1e6, (x - mean) / deviation))

    if len(points) == 2:
        if [x for x, _ in points] == [0, 1] and encoding.indicators == "plain":
            return lambda x: [x]
        return lambda x: [standard(x)]
    if isinstance(encoding, Standardized):
        return lambda x: [standard(x)]
    if isinstance(encoding, Robust):
        low, median, high = (exact_quantile(points, Fraction(k, 4)) for k in (1, 2, 3))
        scale = (high - low) / 1.3489795003921634 if high > low else deviation

        def clipped(x):
            u = max(-1e6, min(1e6, (x - median) / scale))
            return [u / math.sqrt(1 + (u / encoding.limit) ** 2)]

        return clipped
    if isinstance(encoding, Quantiles):
        knots = [x for x, _ in points]
        if len(knots) > encoding.n_quantiles:
            parts = encoding.n_quantiles - 1
            total = sum(w for _, w in points)
            knots = sorted(
                {
                    next(
                        x
                        for i, (x, _) in enumerate(points)
                        if sum(w for _, w in points[: i + 1]) * parts >= t * total
                    )
                    for t in range(parts)
                }
                | {knots[-1]}
            )
        levels = [
            NormalDist().inv_cdf(min(max(mid_rank(points, x), 1e-7), 1 - 1e-7))
            for x in knots
        ]
        return lambda x: [interpolated(x, knots, levels)]
    n = encoding.n_bins
    edges = sorted({exact_quantile(points, Fraction(t, n)) for t in range(n + 1)})

    def ramps(x):
        return [max(0.0, min(1.0, (x - a) / (b - a))) for a, b in pairwise(edges)]

    if not encoding.numbers:
        return ramps
    if len(edges) == 2:
        return lambda x: [standard(x)]
    return lambda x: [standard(x), *ramps(x)]


def twin_apply(encoding, train, weight, X, centred=True):
    """Return encoded rows as lists, from rows as lists."""
    encoded = [[] for _ in X]
    for j in range(len(train[0])):
        column = [row[j] for row in train]
        function = fitted_column(encoding, column, weight)
        gone = [math.isnan(x) for x, w in zip(column, weight, strict=True) if w > 0]
        zero = [0.0] if function is None else function(0.0)
        for row, out in zip(X, encoded, strict=True):
            if function is not None:
                x = row[j]
                if math.isnan(x) and not any(gone):
                    x = exact_quantile(sorted_points(column, weight), Fraction(1, 2))
                if math.isnan(x):
                    out.extend(0.0 for _ in zero)
                elif centred:
                    out.extend(function(x))
                else:
                    out.extend(a - b for a, b in zip(function(x), zero, strict=True))
            if any(gone) and not all(gone):
                out.append(float(math.isnan(row[j])))
    return encoded

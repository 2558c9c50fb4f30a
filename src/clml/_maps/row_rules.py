"""Rules that decide a whole row: how many of its highest labels it has.

A map of scores cuts every label by itself, at 0. Some losses are of whole rows: a row
without a label is wrong where every row has one, and exact matches ask for as many
labels as rows have. A rule says how many of its highest labels a row has, from its
logits alone, and the row is shifted so that these are positive and the others are not.
Rankings stay as they are.

The prefix of a row's ranking with the largest expected F1 needs the expectation of
2·hits / (predicted + relevant), for independent labels [1]_. With 1 / n written as the
integral of tⁿ⁻¹ over [0, 1] it is that of a polynomial in t, whose terms are products
over labels. Gauss's rule has such integrals from a few values of t.

References
----------
.. [1] K. Dembczyński, W. Waegeman, W. Cheng, E. Hüllermeier, "An exact algorithm for
   F-measure maximization", NIPS 2011.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .._support.compiled import compiled
from ..losses import Loss, RowTargets
from .expected_losses import decides_rows

AT_LEAST_ONE, BEST_PREFIX = "at_least_one", "best_prefix"
_TOP = re.compile(r"top_([1-9][0-9]{0,8})")
# With more labels to a row than that their number varies too much for one number.
_MOST_TOP = 10
#: Where no number lies between two labels, the higher one is left this far above 0. It
#: is one of single precision, too, which graphs may have.
LEAST_ABOVE = 1e-30
#: Expected F1s this near to each other, as shares of the best, are equal.
NEAR = 1e-9
# Scores that are shifted at a time.
_AT_ONCE = 1_000_000


def is_row_rule(rule: object) -> bool:
    """Tell whether something names a rule: "at_least_one", "top_k" or "best_prefix".

    Examples
    --------
    >>> from clml._maps.row_rules import is_row_rule
    >>> [is_row_rule(name) for name in ("best_prefix", "top_2", "top_0", 2)]
    [True, True, False, False]
    """
    if not isinstance(rule, str):
        return False
    return rule in (AT_LEAST_ONE, BEST_PREFIX) or _TOP.fullmatch(rule) is not None


def top_of(rule: str) -> int | None:
    """Return the k of "top_k", None for other rules."""
    found = _TOP.fullmatch(rule)
    return None if found is None else int(found[1])


def fits_labels(rule: str, n_labels: int) -> bool:
    """Tell whether a rule says anything of rows of so many labels."""
    k = top_of(rule)
    return n_labels > 1 and (k is None or k < n_labels)


#: A rule, and the loss by its place whose own cuts it goes with; None for the logits of
#: probabilities as they are.
Offer = tuple[str, int | None]


def offered_rules(losses: Sequence[Loss], targets: RowTargets) -> tuple[Offer, ...]:
    """Return the rules that are worth trying; none where no loss can gain from one.

    The number of labels is tried that rows have on average, one less and one more, if
    it is small, and less than that of all labels. Where labels are cut for a loss of
    rows alone, at least one of them is.

    Examples
    --------
    >>> from clml._maps.row_rules import offered_rules
    >>> from clml.losses import RowTargets, get_losses
    >>> targets = RowTargets.from_indicator([[1, 1, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0]])
    >>> found = offered_rules(get_losses(("lrap", "jaccard")), targets)
    >>> [rule for rule, place in found if place is None]
    ['at_least_one', 'top_1', 'top_2', 'top_3', 'best_prefix']
    >>> found[-1]
    ('at_least_one', 1)
    >>> offered_rules(get_losses(("hamming", "lrap", "micro_f1")), targets)
    ()
    """
    total = float(targets.weight.sum())
    n_labels = targets.n_labels
    of_rows = [place for place, loss in enumerate(losses) if decides_rows(loss)]
    if n_labels < 2 or not total > 0 or not of_rows:
        return ()
    near = round(float(targets.weight @ targets.dense.sum(axis=1)) / total)
    most = min(_MOST_TOP, n_labels - 1)
    tops = [f"top_{k}" for k in (near - 1, near, near + 1) if 1 <= k <= most]
    alone = [(rule, None) for rule in (AT_LEAST_ONE, *tops, BEST_PREFIX)]
    return (*alone, *((AT_LEAST_ONE, place) for place in of_rows))


def shifted_rows(
    rule: str | None, logits: NDArray[np.float64], temperature: float = 1.0
) -> NDArray[np.float64]:
    """Return logits that are positive for the labels that a rule gives to a row.

    Each row has one number added to all its labels, and none if it is right as it is;
    where that would make different numbers equal, they stay different by as little as
    there is, unless they are as large as floats can be.

    - "at_least_one": a row without a positive logit has its highest label.
    - "top_k": each row has its k highest labels, all if there are less.
    - "best_prefix": of the labels from the highest down, as many as make the expected
      F1 of the row largest, the labels being independent; the fewest of those that are
      as good, and one at least.

    Of equal logits the one of the first column is the highest.

    Parameters
    ----------
    rule : str or None
        None leaves the logits as they are.
    logits : float64 array (n, K)
        A row with NaN is left as it is.
    temperature : float, default=1.0
        What the logits of probabilities were divided by. It matters to "best_prefix"
        alone.

    Returns
    -------
    float64 array (n, K)

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.row_rules import shifted_rows
    >>> logits = np.array([[-3.0, -1.0, -2.0], [1.0, -1.0, 0.5]])
    >>> shifted_rows("at_least_one", logits)
    array([[-1.5,  0.5, -0.5],
           [ 1. , -1. ,  0.5]])
    >>> shifted_rows("top_1", logits)
    array([[-1.5 ,  0.5 , -0.5 ],
           [ 0.25, -1.75, -0.25]])
    >>> shifted_rows("best_prefix", logits) > 0
    array([[False,  True, False],
           [ True, False,  True]])
    """
    if rule is None:
        return logits
    out = np.array(logits)
    which = np.arange(len(logits))
    if rule == AT_LEAST_ONE:  # most rows are right as they are, and need no order
        which = np.flatnonzero(~(logits > 0).any(axis=1))
    step = max(1, _AT_ONCE // max(1, logits.shape[1]))
    for start in range(0, len(which), step):
        some = which[start : start + step]
        rows = logits[some]
        # A stable order: of equal logits that of the columns.
        order = np.argsort(-rows, axis=1, kind="stable")
        falling = np.take_along_axis(rows, order, axis=1)
        shifted = np.empty(falling.shape)
        _cut_rows(falling, _numbers_of_labels(rule, falling, temperature), shifted)
        np.put_along_axis(rows, order, shifted, axis=1)
        out[some] = rows
    return out


def _numbers_of_labels(
    rule: str, falling: NDArray[np.float64], temperature: float
) -> NDArray[np.int64]:
    """Return how many labels rows have that are not right, from their falling logits.

    That is one at least.
    """
    n, n_labels = falling.shape
    if rule == AT_LEAST_ONE:
        return np.ones(n, dtype=np.int64)
    if rule == BEST_PREFIX:
        return best_prefixes(expit(falling * temperature))
    k = top_of(rule)
    if k is None:
        raise ValueError(
            f"A rule must be {AT_LEAST_ONE!r}, 'top_k' with a number as k, or "
            f"{BEST_PREFIX!r}, got {rule!r}."
        )
    return np.full(n, min(k, n_labels))


def best_prefixes(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many labels have the largest expected F1, for each row.

    Parameters
    ----------
    probability : float64 array (n, K)
        Of independent labels, falling in each row.

    Examples
    --------
    A second label of probability 0.3 makes the F1 of 0.9 smaller:

    >>> import numpy as np
    >>> from clml._maps.row_rules import best_prefixes
    >>> best_prefixes(np.array([[0.9, 0.3, 0.1], [0.9, 0.6, 0.1]]))
    array([1, 2])
    """
    sizes = np.ones(len(probability), dtype=np.int64)
    given = np.ascontiguousarray(probability)
    _best_prefixes(given, *expectation_nodes(given.shape[1]), sizes)
    return sizes


@cache
def expectation_nodes(
    n_labels: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where in [0, 1] to take what is integrated, and twice the weights.

    Polynomials of degree 2·K − 1 need K of them. Of many labels fewer have all the
    digits: as many as the root of the degree tells.
    """
    n_nodes = max(1, min(n_labels, math.ceil(4 * math.sqrt(n_labels))))
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (1 + nodes) / 2, weights


@compiled
def _best_prefixes(probability, nodes, weights, sizes):  # type: ignore[no-untyped-def]
    # With j labels predicted and S relevant, the F1 is Σ_{i<=j} 2·y_i / (j + S), and
    # its expectation the integral of 2·tʲ · Π_l (1 − p_l·(1 − t)) · Σ_{i<=j} of
    # p_i / (1 − p_i·(1 − t)): nothing is negative, and nothing cancels.
    n_labels, n_nodes = probability.shape[1], len(nodes)
    rest = 1.0 - nodes
    product, terms = np.empty(n_nodes), np.empty(n_nodes)
    value = np.empty(n_labels)
    for i in range(len(probability)):
        p = probability[i]
        product[:] = weights
        terms[:] = 0.0
        for k in range(n_labels):
            for g in range(n_nodes):
                product[g] *= 1.0 - p[k] * rest[g]
        best, expected, tried = 0.0, 0.0, 0
        for k in range(n_labels):
            for g in range(n_nodes):
                terms[g] += p[k] / (1.0 - p[k] * rest[g])
                product[g] *= nodes[g]
            total = 0.0
            for g in range(n_nodes):
                total += product[g] * terms[g]
            value[k] = total
            best = max(best, total)
            tried = k + 1
            # A prefix of j labels has at most 2·(their probabilities) / (j + 1), which
            # only falls from where the next label has less than half of that.
            expected += p[k]
            bound = 2.0 * expected / (k + 2)
            if bound <= best and k + 1 < n_labels and p[k + 1] <= 0.5 * bound:
                break
        for k in range(tried):
            if value[k] >= (1.0 - NEAR) * best:
                sizes[i] = k + 1
                break


@compiled
def _cut_rows(falling, sizes, out):  # type: ignore[no-untyped-def]
    """Shift rows (n, K) of falling logits so that ``sizes`` of each are positive."""
    n_labels = falling.shape[1]
    for i in range(len(falling)):
        z, shifted, last = falling[i], out[i], sizes[i] - 1
        # NaN stand at the end.
        if np.isnan(z[n_labels - 1]):
            shifted[:] = z
            continue
        if z[last] > 0.0 and (last + 1 == n_labels or z[last + 1] <= 0.0):
            shifted[:] = z  # right as it is
            continue
        cut = _cut_below(z, last)
        # Labels of equal logits, one of which is to be positive and the other not,
        # have no number between them: the last that is positive is made so. Others
        # that are equal stay so.
        shifted[last] = max(z[last] - cut, LEAST_ABOVE)
        for k in range(last - 1, -1, -1):
            shifted[k] = shifted[k + 1]
            if z[k] > z[k + 1]:
                shifted[k] = max(z[k] - cut, np.nextafter(shifted[k + 1], np.inf))
        for k in range(last + 1, n_labels):
            if k > last + 1 and z[k] == z[k - 1]:
                shifted[k] = shifted[k - 1]
                continue
            above = 0.0
            if k > last + 1:
                above = np.nextafter(shifted[k - 1], -np.inf)
            shifted[k] = min(z[k] - cut, above)


@compiled
def _cut_below(z, last):  # type: ignore[no-untyped-def]
    """Return the middle of the last label that is to be positive and the next.

    After the last label of all that is half a unit of logits below it. Where floats
    have no number between the two it is the lower one.
    """
    high = z[last]
    low = z[last + 1] if last + 1 < len(z) else high - 1.0
    cut = 0.5 * high + 0.5 * low
    if not low <= cut < high:
        cut = low
    largest = 1.7976931348623157e308  # what is infinite would make NaN of others
    return min(max(cut, -largest), largest)

"""Conditional risks of the three losses of the paper, given p(y|x).

Everything here is exact for the rows it is given: expectations over the labels, no
sampling. What is needed of p(y|x) is little. Hamming loss and micro-F1 depend on the
marginals alone. LRAP depends on a K × K matrix a row,

    A_jk = E[y_j·y_k / |y|],

because a row's LRAP is (1/|y|) Σ_j y_j Σ_{k not below j} y_k / rank_j, linear in those
products; and on the chance of no label at all, which counts as a perfect ranking. (All
labels at once count as one too, and the formula says so by itself.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled

Floats = NDArray[np.float64]

#: The losses with a known Bayes value, in the order of every result here.
LOSS_NAMES = ("hamming", "lrap", "micro_f1")


def all_label_sets(n_labels: int) -> NDArray[np.uint8]:
    """Every label set, shape (2^K, K): row i holds the binary digits of i.

    Label 0 is the lowest digit, so row 0 is the empty set and the last row the full
    one.

    Examples
    --------
    >>> from clml.datasets._bayes_risk import all_label_sets
    >>> all_label_sets(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    numbers = np.arange(2**n_labels)
    return (numbers[:, None] >> np.arange(n_labels) & 1).astype(np.uint8)


def pair_expectations(joint: Floats) -> Floats:
    """Return A, shape (n, K, K), of joint probabilities (n, 2^K)."""
    n_labels = joint.shape[1].bit_length() - 1
    sets = all_label_sets(n_labels).astype(np.float64)
    size = np.maximum(sets.sum(axis=1), 1.0)  # the empty set has no products at all
    products = sets[:, :, None] * sets[:, None, :] / size[:, None, None]
    pairs = joint @ products.reshape(len(sets), -1)
    return pairs.reshape(len(joint), n_labels, n_labels)


@compiled
def expected_lrap(pairs, empty, scores):  # type: ignore[no-untyped-def]
    """Compute the expected LRAP of each row; tied labels share their worst rank.

    Parameters
    ----------
    pairs : float64 array (n, K, K)
    empty : float64 array (n,)
        Probability of no label.
    scores : float64 array (n, K)

    Returns
    -------
    float64 array (n,)
    """
    n, n_labels = scores.shape
    expected = np.empty(n)
    for i in range(n):
        total = empty[i]
        for j in range(n_labels):
            rank = 0
            hits = 0.0
            for k in range(n_labels):
                if scores[i, k] >= scores[i, j]:
                    rank += 1
                    hits += pairs[i, j, k]
            total += hits / rank
        expected[i] = total
    return expected


@compiled
def best_orders(pairs):  # type: ignore[no-untyped-def]
    """Order of labels, best first, with the largest expected LRAP, row by row.

    The order is built from the top. A label j that comes right after the set S earns
    (A_jj + Σ_{k in S} A_jk) / (|S| + 1), however S itself is ordered: the best order
    of a set is the best choice of its last label, found for all 2^K sets in turn.

    Parameters
    ----------
    pairs : float64 array (n, K, K)

    Returns
    -------
    int64 array (n, K)
    """
    n, n_labels, _ = pairs.shape
    n_sets = 1 << n_labels
    size = np.zeros(n_sets, np.int64)
    hits = np.zeros((n_sets, n_labels))  # Σ_{k in S} A_jk, for every S and j
    value = np.zeros(n_sets)
    last = np.zeros(n_sets, np.int64)
    orders = np.empty((n, n_labels), np.int64)
    for i in range(n):
        for members in range(1, n_sets):
            k = 0  # one of the members; the rest is a set seen before
            while not (members >> k) & 1:
                k += 1
            rest = members ^ (1 << k)
            size[members] = size[rest] + 1
            best = -1.0
            for j in range(n_labels):
                hits[members, j] = hits[rest, j] + pairs[i, j, k]
                if (members >> j) & 1:
                    without = value[members ^ (1 << j)]
                    total = without + hits[members, j] / size[members]
                    if total > best:
                        best = total
                        last[members] = j
            value[members] = best
        members = n_sets - 1
        for place in range(n_labels - 1, -1, -1):
            orders[i, place] = last[members]
            members ^= 1 << last[members]
    return orders


def order_scores(orders: NDArray[np.int64]) -> Floats:
    """Scores without ties that rank labels in the given orders, positive above half.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets._bayes_risk import order_scores
    >>> order_scores(np.array([[2, 0, 1]]))
    array([[ 0., -1.,  1.]])
    """
    n_labels = orders.shape[1]
    scores = np.empty(orders.shape)
    places = np.broadcast_to((n_labels - 1) / 2 - np.arange(n_labels), orders.shape)
    np.put_along_axis(scores, orders, places, axis=1)
    return scores


def best_micro_f1(marginals: Floats) -> float:
    """Largest 2·E[hits] / (predicted + E[relevant]) that decisions at these rows reach.

    Any decisions with the ratio F are beaten by those that predict where a marginal
    exceeds F/2, unless they are best already: iterating that (Dinkelbach's method)
    ends after a few steps at F*, and labels above F*/2 are what to predict. Without
    any chance of a relevant label the value is 0.

    Examples
    --------
    With F* = 2·(0.9 + 0.4) / (2 + 1.4) the label at 0.4 is worth predicting, the one
    at 0.1 is not:

    >>> import numpy as np
    >>> from clml.datasets._bayes_risk import best_micro_f1
    >>> round(best_micro_f1(np.array([[0.9, 0.4, 0.1]])), 4)
    0.7647
    """
    relevant = marginals.sum()
    best = 0.0
    while True:
        chosen = marginals > best / 2
        size = chosen.sum() + relevant
        ratio = float(2 * marginals[chosen].sum() / size) if size > 0 else 0.0
        if ratio <= best:
            return best
        best = ratio


def hamming_risks(marginals: Floats, decided: NDArray[np.bool_]) -> Floats:
    """Return the expected share of wrong decisions of each row."""
    return np.where(decided, 1 - marginals, marginals).mean(axis=1)


def micro_f1_parts(
    marginals: Floats, decided: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Twice the expected hits of each row, and its predicted + expected relevant."""
    hits = np.where(decided, marginals, 0.0).sum(axis=1)
    return 2 * hits, decided.sum(axis=1) + marginals.sum(axis=1)

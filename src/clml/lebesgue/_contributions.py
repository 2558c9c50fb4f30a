"""What each member of a population covers alone."""

import logging
from collections.abc import Callable
from typing import Literal

import moocore
import numpy as np
import numpy.typing as npt

from .._support.compiled import compiled
from ._dominance import maximal
from ._inputs import (
    BoolArray,
    FloatArray,
    IntArray,
    RandomSource,
    check_choice,
    check_losses,
    check_n_samples,
    check_random_state,
    check_reference,
    pad_single_loss,
)
from ._measure import check_span, covering_rows, region_volume
from ._monte_carlo import SampledBox

Method = Literal["exact", "monte_carlo", "auto"]

METHODS = ("exact", "monte_carlo", "auto")

# Members up to which "auto" is exact, by the number of losses: what some dozen
# milliseconds are enough for. More losses than these are always sampled.
_MOST_EXACT = {1: 4096, 2: 4096, 3: 4096, 4: 256, 5: 256}

_log = logging.getLogger(__name__)


def chosen_method(method: Method, n_members: int, n_losses: int) -> Method:
    """Return what "auto" stands for, and say so where that is an estimate."""
    if method != "auto":
        return method
    if n_members <= _MOST_EXACT.get(n_losses, 0):
        return "exact"
    _log.info(
        "Contributions of %d members to %d losses are estimated by Monte Carlo.",
        n_members,
        n_losses,
    )
    return "monte_carlo"


@compiled
def _classify(points: FloatArray) -> tuple[BoolArray, BoolArray, IntArray]:
    """Sort out who can contribute, and who shadows whom.

    Parameters
    ----------
    points : ndarray of shape (n, o)
        Loss vectors in lexicographic order: copies are neighbours, and whatever
        dominates a row comes before it.

    Returns
    -------
    front : ndarray of bool of shape (n,)
        The first copy of each non-dominated vector.
    repeated : ndarray of bool of shape (n,)
        Members of `front` that have further copies.
    owner : ndarray of int64 of shape (n,)
        For a row dominated by one vector of the front only, that member's index;
        -1 for all others. These rows alone shadow their dominator: the rest lies
        within what another member of the front covers anyway.
    """
    n, n_columns = points.shape
    front = np.zeros(n, dtype=np.bool_)
    repeated = np.zeros(n, dtype=np.bool_)
    owner = np.full(n, -1, dtype=np.int64)
    members = np.empty(n, dtype=np.int64)
    n_members = 0
    for i in range(n):
        n_dominators = 0
        for member in members[:n_members]:
            weakly = equal = True
            for c in range(n_columns):
                if points[member, c] > points[i, c]:
                    weakly = False
                    break
                equal = equal and points[member, c] == points[i, c]
            if not weakly:
                continue
            if equal:
                # No other member of the front dominates a copy of this one.
                repeated[member] = True
                n_dominators = 2
                break
            n_dominators += 1
            owner[i] = member
            if n_dominators == 2:
                break
        if n_dominators == 0:
            front[i] = True
            members[n_members] = i
            n_members += 1
        elif n_dominators == 2:
            owner[i] = -1
    return front, repeated, owner


def _alone(point: FloatArray, others: FloatArray, references: FloatArray) -> float:
    """Return the volume that `point` (o,) covers and none of `others` does."""
    # Within the box above `point`, moving the others into it changes nothing.
    others = np.maximum(others, point)
    if len(references) == 1:
        box = float(np.prod(references[0] - point))
        return box - float(moocore.hypervolume(others, ref=references[0]))
    if len(others):
        others = others[moocore.is_nondominated(others)]
    references = references[(references > point).all(axis=1)]
    return float(region_volume(point[np.newaxis], others, references, len(point)))


def exact_contributions(losses: FloatArray, references: FloatArray) -> FloatArray:
    """Return the contributions of `losses` (m, o) for maximal references (r, o)."""
    contributions = np.zeros(len(losses))
    losses, references = pad_single_loss(losses, references)
    rows = covering_rows(losses, references)
    if len(rows) == 0:
        return contributions
    points = losses[rows]
    check_span(points, references)
    front, repeated, owner = _classify(points)

    values = np.zeros(len(points))
    if len(references) == 1:
        # One sweep serves the whole front. It cannot know of dominated members, so
        # that only those that shadow somebody call for a second look.
        values[front] = moocore.hv_contributions(
            points[front], ref=references[0], ignore_dominated=True
        )
        unsettled = np.unique(owner[owner >= 0])
    else:
        references = references[np.argsort(references[:, 0])]
        unsettled = np.flatnonzero(front)
    for i in unsettled:
        if not repeated[i]:
            others = front | (owner == i)
            others[i] = False
            values[i] = _alone(points[i], points[others], references)
    values[repeated] = 0.0
    # Differences of volumes may round to just below zero.
    contributions[rows] = np.maximum(values, 0.0)
    return contributions


def layer_contributions(
    losses: FloatArray, depth: IntArray, references: FloatArray
) -> FloatArray:
    """Return contributions among the members of the same layer alone.

    As `exact_contributions` of each layer, for one reference: no member of a layer
    dominates another, so that one sweep a layer settles everything.
    """
    values = np.zeros(len(losses))
    padded, references = pad_single_loss(losses, references)
    rows = covering_rows(padded, references)
    if len(rows) == 0:
        return values
    check_span(padded[rows], references)
    # By layer, and within one in the order of the rows.
    rows = rows[np.argsort(depth[rows], kind="stable")]
    points, layers = padded[rows], depth[rows]
    same_layer = layers[1:] == layers[:-1]
    copied = same_layer & (points[1:] == points[:-1]).all(axis=1)
    first = np.r_[True, ~copied]
    found = np.zeros(len(rows))
    starts = np.flatnonzero(np.r_[True, ~same_layer])
    for start, stop in zip(starts, np.r_[starts[1:], len(rows)], strict=True):
        kept = first[start:stop]
        if stop - start == 1:
            found[start] = np.prod(references[0] - points[start])
        else:
            found[start:stop][kept] = moocore.hv_contributions(
                points[start:stop][kept], ref=references[0], ignore_dominated=True
            )
    found[~first | np.r_[copied, False]] = 0.0  # copies cover nothing alone
    values[rows] = np.maximum(found, 0.0)
    return values


def contribution_function(
    losses: FloatArray,
    reference: npt.ArrayLike,
    method: Method,
    n_samples: int,
    random_state: int | RandomSource | None,
) -> Callable[[FloatArray], FloatArray]:
    """Return what computes the contributions of `losses` (m, o) or of some rows.

    The arguments are checked whether or not the method needs them.
    """
    references = maximal(check_reference(reference, losses.shape[1]))
    check_choice(method, "method", METHODS)
    n_samples = check_n_samples(n_samples)
    check_random_state(random_state)
    if chosen_method(method, *losses.shape) == "monte_carlo":
        return SampledBox(losses, references, n_samples, random_state).contributions
    return lambda part: exact_contributions(part, references)


def lebesgue_contributions(
    L: npt.ArrayLike,
    reference: npt.ArrayLike = 1.0,
    method: Method = "exact",
    n_samples: int = 10_000,
    random_state: int | RandomSource | None = None,
) -> FloatArray:
    """Measure what each member covers that no other member covers.

    The contribution of a member f of F is the volume of
    P(f) = H({f}, R) minus H(F without f, R), with H as in `lebesgue_measure`.

    Parameters
    ----------
    L : array-like of shape (m, o)
        Loss vectors, one row per member.
    reference : float or array-like of shape (o,) or (r, o), default=1.0
        The reference: one number for all losses, one vector, or a set of vectors.
    method : {"exact", "monte_carlo", "auto"}, default="exact"
        "monte_carlo" is the paper's estimate: the share of random points that only
        this member dominates, times the volume V of the box they are drawn from. The
        box reaches from 0 (or from the smallest losses, where these are negative)
        to the reference. The standard error of an estimate c is
        √(c·(V − c)/n_samples). "auto" is exact up to 4,096 members with two or three
        losses and up to 256 with four or five, and estimates beyond, which it logs.
    n_samples : int, default=10_000
        Number of random points; unused by the exact method.
    random_state : int, Generator, RandomState or None, default=None
        Seed or source of the random points; unused by the exact method.

    Returns
    -------
    ndarray of float64 of shape (m,)
        The contributions, never negative.

    See Also
    --------
    lebesgue_measure : What all members cover together.
    fitness_order : Members ranked by their contribution.

    Notes
    -----
    - A dominated member contributes exactly 0.0. It still covers what it covers:
      it takes that much from the member that dominates it, if there is only one.
      (``moocore.hv_contributions`` ignores this unless told otherwise.)
    - Every copy of a repeated vector contributes exactly 0.0.
    - Members on or outside the box below the reference, such as those with an
      infinite loss, and rows with NaN contribute exactly 0.0 and cover nothing.
    - Contributions do not add up to the measure when members overlap.

    Examples
    --------
    >>> from clml.lebesgue import lebesgue_contributions
    >>> lebesgue_contributions([[0.5, 0.25], [0.25, 0.5]])
    array([0.125, 0.125])

    A dominated member has nothing of its own, yet it shadows:

    >>> lebesgue_contributions([[0.0, 0.0], [0.5, 0.5]])
    array([0.75, 0.  ])

    Of two copies neither covers anything alone:

    >>> lebesgue_contributions([[0.5, 0.25], [0.5, 0.25]])
    array([0., 0.])

    Points drawn at random give an estimate:

    >>> lebesgue_contributions(
    ...     [[0.0, 0.0], [0.5, 0.5]], method="monte_carlo", random_state=0
    ... ).round(1)
    array([0.8, 0. ])
    """
    losses = check_losses(L)
    compute = contribution_function(losses, reference, method, n_samples, random_state)
    return compute(losses)

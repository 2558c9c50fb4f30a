"""The Lebesgue measure of what a set of loss vectors covers."""

import moocore
import numpy as np
import numpy.typing as npt

from .._support.compiled import compiled
from ._dominance import maximal
from ._inputs import (
    BoolArray,
    FloatArray,
    IntArray,
    box_volume,
    check_losses,
    check_reference,
    pad_single_loss,
)


@compiled
def _below_some(losses: FloatArray, references: FloatArray) -> BoolArray:
    """Return which rows (m, o) lie strictly below some reference (r, o)."""
    below = np.zeros(len(losses), dtype=np.bool_)
    for i in range(len(losses)):
        for k in range(len(references)):
            below[i] = True
            for c in range(losses.shape[1]):
                # NaN is not below anything, hence not the shorter `>=`.
                if not losses[i, c] < references[k, c]:
                    below[i] = False
                    break
            if below[i]:
                break
    return below


def covering_rows(losses: FloatArray, references: FloatArray) -> IntArray:
    """Return the rows that cover a volume, in lexicographic order of their losses.

    Only a row strictly below some reference does. The fixed order makes every sum
    of volumes the same to the last bit however the members were arranged.
    """
    rows = np.flatnonzero(_below_some(losses, references))
    return rows[np.lexsort(losses[rows].T[::-1])]


def check_span(points: FloatArray, references: FloatArray) -> None:
    """Refuse points (n >= 1, o) whose volume below the references overflows."""
    box_volume(points.min(axis=0), references.max(axis=0))


@compiled
def _area(above: FloatArray, not_above: FloatArray, below: FloatArray) -> float:
    """Area of a region (see `region_volume`) in the first two columns."""
    if len(above) == 0 or len(below) == 0:
        return 0.0
    ceiling = np.empty(len(below))  # highest reference from here to the right
    highest = -np.inf
    for k in range(len(below) - 1, -1, -1):
        highest = max(highest, below[k, 1])
        ceiling[k] = highest

    area = 0.0
    floor = lid = np.inf
    i = j = k = 0
    x = above[0, 0]
    while True:
        while i < len(above) and above[i, 0] <= x:
            floor = min(floor, above[i, 1])
            i += 1
        while j < len(not_above) and not_above[j, 0] <= x:
            lid = min(lid, not_above[j, 1])
            j += 1
        while k < len(below) and below[k, 0] <= x:
            k += 1
        if k == len(below):
            return area
        x_next = below[k, 0]
        if i < len(above):
            x_next = min(x_next, above[i, 0])
        if j < len(not_above):
            x_next = min(x_next, not_above[j, 0])
        area += max(min(ceiling[k], lid) - floor, 0.0) * (x_next - x)
        x = x_next


@compiled
def region_volume(
    above: FloatArray, not_above: FloatArray, below: FloatArray, n_columns: int
) -> float:
    """Volume of the points above some row, above no other row, below some third.

    A sweep along the last column cuts the region into slabs within which nothing
    changes; each slab is the same problem with one column less. All terms are
    positive, so that small volumes do not drown in cancellation.

    Parameters
    ----------
    above, not_above, below : ndarray of shape (·, o), each sorted by its column 0
        The region holds the points that weakly exceed some row of `above`, weakly
        exceed no row of `not_above` and lie below some row of `below`.
    n_columns : int
        How many leading columns count, at least 2.
    """
    if n_columns == 2:
        return _area(above, not_above, below)
    c = n_columns - 1
    cuts = np.sort(np.concatenate((above[:, c], not_above[:, c], below[:, c])))
    volume = 0.0
    for s in range(len(cuts) - 1):
        z, thickness = cuts[s], cuts[s + 1] - cuts[s]
        if thickness == 0.0:
            continue
        slab_above = above[above[:, c] <= z]
        slab_below = below[below[:, c] > z]
        if len(slab_above) == 0 or len(slab_below) == 0:
            continue
        slab_not_above = not_above[not_above[:, c] <= z]
        volume += thickness * region_volume(
            slab_above, slab_not_above, slab_below, n_columns - 1
        )
    return volume


def lebesgue_measure(L: npt.ArrayLike, reference: npt.ArrayLike = 1.0) -> float:
    """Measure what the members cover between themselves and the reference.

    That is the volume of H(F, R): all points that some member of F weakly
    dominates and that weakly dominate some reference of R.

    Parameters
    ----------
    L : array-like of shape (m, o)
        Loss vectors, one row per member. Members on or outside the box below the
        reference, such as those with an infinite loss, and rows with NaN cover
        nothing.
    reference : float or array-like of shape (o,) or (r, o), default=1.0
        The reference: one number for all losses, one vector, or a set of vectors.

    Returns
    -------
    float
        The volume, 0.0 for an empty population. It is exact (up to rounding) for
        any number of losses.

    See Also
    --------
    lebesgue_contributions : What each member alone adds.

    Notes
    -----
    One reference is an ordinary hypervolume and left to ``moocore``. For a set, the
    union of the boxes between members and references is swept slab by slab:
    O((m + r)²) time for three losses, one more factor m + r for each further loss.

    Examples
    --------
    >>> from clml.lebesgue import lebesgue_measure
    >>> lebesgue_measure([[0.5, 0.25], [0.25, 0.5]])
    0.5

    A set of references counts the overlap of its boxes once:

    >>> lebesgue_measure([[0.0, 0.0]], reference=[[1.0, 0.5], [0.5, 1.0]])
    0.75

    A member that is nowhere better than the reference covers nothing:

    >>> lebesgue_measure([[1.0, 0.0]])
    0.0
    """
    losses = check_losses(L)
    references = maximal(check_reference(reference, losses.shape[1]))
    losses, references = pad_single_loss(losses, references)
    points = losses[covering_rows(losses, references)]
    if len(points) == 0:
        return 0.0
    check_span(points, references)
    if len(references) == 1:
        return float(moocore.hypervolume(points, ref=references[0]))
    points = points[moocore.is_nondominated(points)]
    references = references[np.argsort(references[:, 0])]
    nothing = np.empty((0, losses.shape[1]))
    return float(region_volume(points, nothing, references, losses.shape[1]))

"""The fitness order: members ranked by what they contribute."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from ._contributions import (
    METHODS,
    Method,
    chosen_method,
    contribution_function,
    layer_contributions,
)
from ._dominance import dominance_depth, has_nan, maximal
from ._inputs import (
    FloatArray,
    IntArray,
    RandomSource,
    as_numbers,
    check_choice,
    check_losses,
    check_reference,
)

Ties = Literal["depth", "layer"] | None

TIES = ("depth", "layer", None)


def _check_contributions(contributions: npt.ArrayLike, m: int) -> FloatArray:
    values = as_numbers(contributions, "contributions")
    if values.shape != (m,):
        raise ValueError(
            f"contributions must have shape ({m},), one for each row of L. "
            f"Got shape {values.shape}."
        )
    if np.isnan(values).any():
        raise ValueError("contributions must not hold NaN. Got NaN among them.")
    return values


def _within_layers(
    losses: FloatArray,
    depth: IntArray,
    compute: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Return each member's contribution among the members of its own layer."""
    values = np.zeros(len(losses))
    for layer in range(depth.max(initial=-1) + 1):
        members = np.flatnonzero(depth == layer)
        values[members] = compute(losses[members])
    return values


def _sorted_with_nan_last(losses: FloatArray, *keys: npt.NDArray) -> IntArray:
    """Return the rows by `keys`, first key first, ascending, then by index.

    Rows with NaN come last, by index alone: the one place where that is decided.
    """
    nan = has_nan(losses)
    ranked = [np.where(nan, 0, key) for key in keys]
    # lexsort is stable and takes its first key last.
    return np.lexsort((*reversed(ranked), nan)).astype(np.int64, copy=False)


def fitness_order(
    L: npt.ArrayLike,
    ties: Ties = "depth",
    reference: npt.ArrayLike = 1.0,
    method: Method = "exact",
    n_samples: int = 10_000,
    random_state: int | RandomSource | None = None,
    contributions: npt.ArrayLike | None = None,
) -> IntArray:
    """Rank the members of a population, best first.

    Parameters
    ----------
    L : array-like of shape (m, o)
        Loss vectors, one row per member.
    ties : {"depth", "layer"} or None, default="depth"
        What comes after, or before, the contribution:

        - None, the paper's order: by contribution alone.
        - "depth": by contribution; equal contributions, above all the many zeros
          of a population near convergence, by dominance depth and then by
          contribution among the members of their own layer alone. Two members of
          different contribution are ordered as with None.
        - "layer": by dominance depth first, then by contribution among the members
          of the layer alone.

        The index decides what is still equal.
    reference, method, n_samples, random_state
        As in `lebesgue_contributions`. With ``method="monte_carlo"`` one set of
        random points serves all contributions.
    contributions : array-like of shape (m,), default=None
        The contributions of the members, where they are known already.

    Returns
    -------
    ndarray of int64 of shape (m,)
        The indices of the members, best first. Rows with NaN come last.

    See Also
    --------
    lebesgue_contributions : The contributions ranked here.
    dominance_depth : The layers that decide between equal contributions.

    Examples
    --------
    The second member has the largest contribution. The first and the third are
    dominated and contribute nothing; the third lies in the shallower layer:

    >>> from clml.lebesgue import fitness_order
    >>> L = [[0.6, 0.7], [0.2, 0.4], [0.5, 0.4], [0.5, 0.2]]
    >>> fitness_order(L)
    array([1, 3, 2, 0])
    >>> fitness_order(L, ties=None)
    array([1, 3, 0, 2])
    """
    losses = check_losses(L)
    check_choice(ties, "ties", TIES)
    check_choice(method, "method", METHODS)
    method = chosen_method(method, *losses.shape)
    compute = contribution_function(losses, reference, method, n_samples, random_state)
    if contributions is not None:
        total = _check_contributions(contributions, len(losses))
    elif ties != "layer":
        total = compute(losses)

    if ties is None:
        return _sorted_with_nan_last(losses, -total)
    depth = dominance_depth(losses)
    references = maximal(check_reference(reference, losses.shape[1]))
    if method == "exact" and len(references) == 1:
        within = layer_contributions(losses, depth, references)
    else:
        within = _within_layers(losses, depth, compute)
    if ties == "layer":
        return _sorted_with_nan_last(losses, depth, -within)
    return _sorted_with_nan_last(losses, -total, depth, -within)

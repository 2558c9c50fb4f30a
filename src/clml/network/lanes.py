"""The forward pass of sixteen candidates at a time, candidates side by side in memory.

The last axis of every array holds LANES candidates. A weight of all of them is one
vector, so that each instruction serves sixteen networks, whatever their shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from .._support.simd import (
    LANES,
    MOST_EXPONENT,
    ROWS,
    activate_lanes,
    address,
    multiply_lanes,
    side_by_side,
)
from ._forward import Rows
from ._layout import Layout


@dataclass(frozen=True, eq=False)
class LaneWeights:
    """The weights of up to LANES candidates; lanes without one are 0.

    Attributes
    ----------
    first : array (D + 1, C, LANES)
        Its last row is the bias. For sparse rows the scaling is folded in.
    hidden : array (n_layers, C + 1, C, LANES)
    last : array (C + 1, K, LANES)
    n_candidates : int
    """

    first: NDArray
    hidden: NDArray
    last: NDArray
    n_candidates: int

    @classmethod
    def from_thetas(cls, thetas: NDArray, layout: Layout, rows: Rows) -> LaneWeights:
        """Lay out the weights of at most LANES candidates (p, n) for these rows."""
        if layout.embedding_dim > MOST_EXPONENT**2:
            raise ValueError(
                f"embedding_dim must be at most {MOST_EXPONENT**2:.0f}, "
                f"got {layout.embedding_dim}."
            )
        own_first = layout.matrices(thetas)[0]
        # A candidate in each lane: the weights transposed, and cut into layers.
        lanes = side_by_side(thetas, thetas.dtype)
        c, n_layers = layout.embedding_dim, layout.n_layers
        n_first = (layout.n_features + 1) * c
        n_hidden = n_layers * (c + 1) * c
        first = lanes[:n_first].reshape(-1, c, LANES)
        if rows.csr is not None:
            first = side_by_side(rows.scaling.fold(own_first), rows.csr[0].dtype)
        return cls(
            first,
            lanes[n_first : n_first + n_hidden].reshape(n_layers, c + 1, c, LANES),
            lanes[n_first + n_hidden :].reshape(c + 1, layout.n_labels, LANES),
            len(thetas),
        )


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """The weights of one network, the same in every lane: lanes hold rows instead.

    Attributes
    ----------
    first : array (D + 1, C)
        Its last row is the bias. For sparse rows the scaling is folded in.
    hidden, last : arrays of ``LaneWeights``
    """

    first: NDArray
    hidden: NDArray
    last: NDArray
    n_candidates = 1

    @classmethod
    def from_theta(cls, theta: NDArray, layout: Layout, rows: Rows) -> SharedWeights:
        """Lay out the weights (n,) of a network for these rows."""
        first, *later = layout.matrices(theta)
        if rows.csr is not None:
            first = rows.scaling.fold(first)
        hidden, last = (
            np.repeat(part[..., None], LANES, axis=-1)
            for part in (np.stack(later[:-1]), later[-1])
        )
        return cls(np.ascontiguousarray(first), hidden, last)


@compiled
def room_for_rows(c, k, like):  # type: ignore[no-untyped-def]
    """Return what ``logits_of_rows`` overwrites, of the precision of an array."""
    return (
        np.empty((ROWS, c + 1, LANES), like.dtype),
        np.empty((ROWS, c, LANES), like.dtype),
        np.empty((ROWS, k, LANES), like.dtype),
    )


@compiled(inline=True)
def logits_of_rows(product, i, hidden, last, entries, sums, logits):  # type: ignore[no-untyped-def]
    """Fill the logits (ROWS, K, LANES) of rows i and after, from the first product.

    Parameters
    ----------
    product : float array (rows, C, LANES)
    i : int
    hidden, last : the arrays of ``LaneWeights``
    entries, sums, logits : arrays of ``room_for_rows``, overwritten
    """
    c, k = product.shape[1], last.shape[1]
    inputs = address(entries, 0)
    activate_lanes(address(product, i * c * LANES), inputs, c)
    for layer in range(hidden.shape[0]):
        weights = address(hidden, layer * (c + 1) * c * LANES)
        multiply_lanes(inputs, weights, address(sums, 0), c + 1, c)
        activate_lanes(address(sums, 0), inputs, c)
    multiply_lanes(inputs, address(last, 0), address(logits, 0), c + 1, k)


@compiled
def fill_logits_of_one(product, hidden, last, out):  # type: ignore[no-untyped-def]
    """Fill the logits (1, rows, K) of one network, from its first product.

    That is (at least rows, C); ``hidden`` and ``last`` are those of ``SharedWeights``.
    Sixteen rows at a time are what candidates are elsewhere.
    """
    c, k, n_rows = product.shape[1], last.shape[1], out.shape[1]
    lanes = np.zeros((ROWS, c, LANES), product.dtype)
    entries, sums, logits = room_for_rows(c, k, product)
    for i in range(0, n_rows, ROWS * LANES):
        here = min(ROWS * LANES, n_rows - i)
        for row in range(here):
            for j in range(c):
                lanes[row // LANES, j, row % LANES] = product[i + row, j]
        logits_of_rows(lanes, 0, hidden, last, entries, sums, logits)
        for row in range(here):
            for j in range(k):
                out[0, i + row, j] = logits[row // LANES, j, row % LANES]


def padded(n_rows: int) -> int:
    """Return the number of rows, made a multiple of those worked on together."""
    return -(-n_rows // ROWS) * ROWS

"""Numbers by their ranks, as a normal distribution has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ._base import Encoding, NumberCodes, apart_only, check_count
from ._points import ranked
from ._summary import ColumnSummary
from .kinds import Code

# Ranks stay this far from 0 and 1, which bounds what they become by 5.2.
_LEAST_RANK = 1e-7


class Quantiles(Encoding):
    """Numbers are used as the normal quantiles of their ranks.

    The rank of a value is the share of training rows below it and half of those that
    have it, so ties share one; Φ⁻¹ of it is what the value becomes, interpolated
    between the values that occurred and constant beyond them. Only the order of the
    training rows counts. See :class:`Encoding` for columns that are constant, missing,
    sparse or hold two values.

    Parameters
    ----------
    n_quantiles : int, default=1000
        Values that are kept of each column, at least 2. Columns with more are
        interpolated between so many, evenly spaced in the rows.
    indicators : {"plain", "scaled"}, default="plain"
        What becomes of columns of 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import Quantiles
    >>> X = np.array([[1.0], [2.0], [2.0], [1000.0]])
    >>> Quantiles().fit(X).apply(X).ravel()
    array([-1.1503494,  0.       ,  0.       ,  1.1503494], dtype=float32)
    """

    def __init__(self, n_quantiles: int = 1000, *, indicators: str = "plain") -> None:
        self.n_quantiles = n_quantiles
        self.indicators = indicators

    def _number_codes(
        self, summary: ColumnSummary, columns: NDArray[np.int64]
    ) -> NumberCodes:
        knots, ranks, offsets = ranked(summary.points, columns, int(self.n_quantiles))
        keep, counts = apart_only(knots, offsets)
        levels = ndtri(np.clip(ranks[keep], _LEAST_RANK, 1 - _LEAST_RANK))
        return NumberCodes(
            np.full(columns.size, Code.LEVELS, dtype=np.uint8),
            np.zeros(columns.size),
            np.ones(columns.size),
            counts,
            knots[keep],
            levels,
        )

    def _check(self) -> None:
        super()._check()
        check_count("n_quantiles", self.n_quantiles, 2)

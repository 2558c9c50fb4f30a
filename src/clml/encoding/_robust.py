"""Numbers by median and quartiles, smoothly clipped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._base import Encoding, NumberCodes, check_range, positive, without_tables
from ._fitted import LIMITS
from ._points import apart, quantiles
from ._summary import ColumnSummary
from .kinds import Code

# Between the quartiles of a normal distribution lie this many deviations.
_NORMAL_QUARTILES = 1.3489795003921634


class Robust(Encoding):
    """Numbers are used as u / √(1 + (u/limit)²), u = (x − median) / scale.

    The scale is the interquartile range divided by that of a normal distribution,
    1.349, so that it is the deviation of a normal column; where the quartiles coincide
    it is the deviation itself. A few large values thus neither squeeze the others
    together nor reach beyond ±limit. Quartiles are defined as NumPy's
    "averaged_inverted_cdf", with weights. See :class:`Encoding` for columns that are
    constant, missing, sparse or hold two values.

    Parameters
    ----------
    limit : float, default=3.0
        What u tends to for large numbers, from 0.001 to 1e6.
    indicators : {"plain", "scaled"}, default="plain"
        What becomes of columns of 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import Robust
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [1000.0]])
    >>> Robust().fit(X).apply(X).ravel().round(2)
    array([-1.23, -0.66,  0.  ,  0.66,  3.  ], dtype=float32)
    """

    def __init__(self, limit: float = 3.0, *, indicators: str = "plain") -> None:
        self.limit = limit
        self.indicators = indicators

    def _number_codes(
        self, summary: ColumnSummary, columns: NDArray[np.int64]
    ) -> NumberCodes:
        quarters = quantiles(summary.points, columns, np.array([1, 2, 3]), of=4)
        low, median, high = np.ascontiguousarray(quarters.T)
        # Both divided first: the range of the largest numbers overflows.
        spread = high / _NORMAL_QUARTILES - low / _NORMAL_QUARTILES
        scale = np.where(apart(low, high), spread, summary.deviation[columns])
        return without_tables(Code.CLIPPED, median, positive(scale))

    def _check(self) -> None:
        super()._check()
        check_range("limit", self.limit, *LIMITS)

    def _limit(self) -> float:
        return float(self.limit)

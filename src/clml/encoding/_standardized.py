"""Numbers by mean and deviation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._base import Encoding, NumberCodes, positive, without_tables
from ._summary import ColumnSummary
from .kinds import Code


class Standardized(Encoding):
    """Numbers are used as (x − mean) / deviation.

    The deviation is the population's. See :class:`Encoding` for columns that are
    constant, missing, sparse or hold two values.

    Parameters
    ----------
    indicators : {"plain", "scaled"}, default="plain"
        What becomes of columns of 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import Standardized
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0]])
    >>> Standardized().fit(X).apply(X)
    array([[-1.2247449,  0.       ],
           [ 0.       ,  0.       ],
           [ 1.2247449,  1.       ]], dtype=float32)

    With weights, and a column of 0 and 1 that is standardised:

    >>> Standardized(indicators="scaled").fit(X, weight=[1, 0, 1]).apply(X)
    array([[-1., -1.],
           [ 0., -1.],
           [ 1.,  1.]], dtype=float32)
    """

    def __init__(self, *, indicators: str = "plain") -> None:
        self.indicators = indicators

    def _number_codes(
        self, summary: ColumnSummary, columns: NDArray[np.int64]
    ) -> NumberCodes:
        scale = positive(summary.deviation[columns])
        return without_tables(Code.STANDARD, summary.mean[columns], scale)

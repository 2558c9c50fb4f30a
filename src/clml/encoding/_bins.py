"""Numbers and piecewise-linear bins between their quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._base import Encoding, NumberCodes, apart_only, check_count, positive
from ._points import quantiles
from ._summary import ColumnSummary
from .kinds import Code


class Bins(Encoding):
    """Numbers are used standardised, and as one ramp for each bin between quantiles.

    With edges e₀ < e₁ < … the ramp of bin t is (x − eₜ) / (eₜ₊₁ − eₜ), clipped to
    [0, 1]: a network that is linear in the ramps is piecewise linear in x. Edges are
    the quantiles of shares 0, 1/n_bins, …, 1 (NumPy's "averaged_inverted_cdf", with
    weights); those that coincide are one edge, so a column in which values recur has
    fewer bins. One bin over the whole range says what the number says, and is left out
    beside it. See :class:`Encoding` for columns that are constant, missing, sparse or
    hold two values.

    Encoding n rows of D columns takes memory for n · D · (n_bins + 1) numbers of four
    bytes, and some 4 ns for each.

    Parameters
    ----------
    n_bins : int, default=8
        Bins of a column without ties, at least 2.
    numbers : bool, default=True
        Whether the standardised number comes with the ramps.
    indicators : {"plain", "scaled"}, default="plain"
        What becomes of columns of 0 and 1.

    References
    ----------
    Y. Gorishniy, I. Rubachev, A. Babenko, On Embeddings for Numerical Features in
    Tabular Deep Learning, NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import Bins
    >>> X = np.array([[0.0], [2.0], [4.0], [10.0]])
    >>> fitted = Bins(n_bins=2, numbers=False).fit(X)
    >>> fitted.names(["age"])
    ['age from 0 to 3', 'age from 3 to 10']
    >>> fitted.apply([[1.5], [3.0], [6.5], [99.0]])
    array([[0.5, 0. ],
           [1. , 0. ],
           [1. , 0.5],
           [1. , 1. ]], dtype=float32)
    """

    #: There are some eight times as many inputs: with half the units such a network
    #: learns as much in half the time.
    hidden_units = 256

    def __init__(
        self, n_bins: int = 8, *, numbers: bool = True, indicators: str = "plain"
    ) -> None:
        self.n_bins = n_bins
        self.numbers = numbers
        self.indicators = indicators

    def _number_codes(
        self, summary: ColumnSummary, columns: NDArray[np.int64]
    ) -> NumberCodes:
        n_edges = int(self.n_bins) + 1
        edges = quantiles(summary.points, columns, np.arange(n_edges), of=n_edges - 1)
        edges = edges.ravel()
        offsets = np.arange(columns.size + 1) * n_edges
        keep, counts = apart_only(edges, offsets)
        code = np.full(columns.size, Code.RAMPS, dtype=np.uint8)
        if self.numbers:
            with_ramps = counts > 2
            code[:] = np.where(with_ramps, Code.STANDARD_AND_RAMPS, Code.STANDARD)
            keep &= np.repeat(with_ramps, n_edges)
            counts = np.where(with_ramps, counts, 0)
        return NumberCodes(
            code,
            summary.mean[columns],
            positive(summary.deviation[columns]),
            counts,
            edges[keep],
            np.zeros(int(counts.sum())),
        )

    def _check(self) -> None:
        super()._check()
        check_count("n_bins", self.n_bins, 2)
        if not isinstance(self.numbers, bool | np.bool_):
            raise ValueError(f"numbers must be True or False, got {self.numbers!r}.")

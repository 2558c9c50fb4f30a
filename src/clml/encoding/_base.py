"""What every encoding does with columns that are no ordinary numbers."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.value import Value
from ._fitted import LIMITS, FittedEncoding
from ._points import kept_apart, offsets_of, quantiles
from ._summary import ColumnSummary
from .kinds import Code, ColumnKind


class NumberCodes(NamedTuple):
    """What an encoding makes of the columns of numbers, in their order.

    Attributes
    ----------
    code : array of Code
    shift, scale : float64 arrays
    counts : int64 array
        Knots of each.
    knots, levels : float64 arrays
        Of all behind one another.
    """

    code: NDArray[np.uint8]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    counts: NDArray[np.int64]
    knots: NDArray[np.float64]
    levels: NDArray[np.float64]


class Encoding(Value, ABC):
    """How columns enter a network: a value with parameters, to be fitted to rows.

    A subclass says what becomes of columns of numbers. The rest is common to all:

    - a column that is constant in the training rows, or has no values there, takes no
      column: it told nothing while weights were learnt, so whatever it holds later
      would be multiplied by weights that mean nothing;
    - a column of 0 and 1 stays as it is (``indicators="plain"``) or is standardised
      (``"scaled"``);
    - a column with two other values is standardised;
    - a column that is missing (NaN) in some training rows takes one more column, 1
      where it is missing; all its other encoded columns are 0 there. NaN in a column
      that was never missing stands for the median of the training rows;
    - sparse X is encoded without centring, see ``FittedEncoding``.
    """

    indicators: str
    #: Hidden units of a network that reads what is encoded, where nobody gives a
    #: number; None for the network's own default, 0 for a linear one whatever is given.
    hidden_units: int | None = None

    def fit(self, X: Any, weight: Any = None) -> FittedEncoding:
        """Learn from training rows how to encode.

        Parameters
        ----------
        X : array-like or sparse matrix (n, D)
            Numbers; NaN is a missing value.
        weight : array-like (n,), default=None
            Row weights of at least 0: weight 2 is the row twice. None counts every row
            once.

        Returns
        -------
        FittedEncoding
        """
        self._check()
        return self.fit_summary(ColumnSummary.of(X, weight))

    def fit_summary(self, summary: ColumnSummary) -> FittedEncoding:
        """Learn how to encode from what rows say about the columns.

        Parameters
        ----------
        summary : ColumnSummary
            Of the training rows, possibly merged from parts of them.

        Returns
        -------
        FittedEncoding
        """
        self._check()
        if summary.total == 0:
            raise ValueError("X must have a row of positive weight to fit, got none.")
        kinds = np.array(summary.kinds, dtype=np.int64)
        is_number = kinds == ColumnKind.NUMBER
        numbers = self._number_codes(summary, np.flatnonzero(is_number))
        code = np.full(summary.n_inputs, Code.NONE, dtype=np.uint8)
        plain = self.indicators == "plain"
        code[kinds == ColumnKind.INDICATOR] = Code.PLAIN if plain else Code.STANDARD
        code[kinds == ColumnKind.TWO_VALUED] = Code.STANDARD
        code[is_number] = numbers.code
        standard = np.isin(code, (Code.STANDARD, Code.STANDARD_AND_RAMPS))
        shift = np.where(standard, summary.mean, 0.0)
        scale = np.where(standard, positive(summary.deviation), 1.0)
        shift[is_number], scale[is_number] = numbers.shift, numbers.scale
        if summary.sparse:
            shift[standard] = 0.0  # the same as taking off what 0 becomes
        counts = np.zeros(summary.n_inputs, dtype=np.int64)
        counts[is_number] = numbers.counts
        missing = (summary.missing > 0) & (kinds != ColumnKind.EMPTY)
        return FittedEncoding(
            centred=not summary.sparse,
            limit=self._limit(),
            code=code,
            missing=missing,
            shift=shift,
            scale=scale,
            offsets=offsets_of(counts),
            knots=numbers.knots,
            levels=numbers.levels,
            neutral=_medians(summary, (code != Code.NONE) & ~missing),
        )

    @abstractmethod
    def _number_codes(
        self, summary: ColumnSummary, columns: NDArray[np.int64]
    ) -> NumberCodes:
        """Return what becomes of columns of numbers."""

    def _check(self) -> None:
        """Refuse parameters that mean nothing."""
        if self.indicators not in ("plain", "scaled"):
            raise ValueError(
                f"indicators must be 'plain' or 'scaled', got {self.indicators!r}."
            )

    def _limit(self) -> float:
        """Return what clipped numbers tend to, of an encoding that clips."""
        return LIMITS[1]


def _medians(summary: ColumnSummary, of: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the medians of some columns, 0 for the others."""
    found = np.zeros(summary.n_inputs)
    columns = np.flatnonzero(of)
    found[columns] = quantiles(summary.points, columns, np.array([1]), of=2)[:, 0]
    return found


def positive(deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what can be divided by.

    Weights of 1e-300 make the deviation of columns that vary vanish.
    """
    return np.maximum(deviation, np.finfo(np.float64).tiny)


def without_tables(code: Code, shift: NDArray, scale: NDArray) -> NumberCodes:
    """Return one code for all columns of numbers, which needs no knots."""
    return NumberCodes(
        np.full(shift.size, code, dtype=np.uint8),
        shift,
        scale,
        np.zeros(shift.size, dtype=np.int64),
        np.empty(0),
        np.empty(0),
    )


def apart_only(
    knots: NDArray[np.float64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Tell which knots differ from those before by more than rounding; count them."""
    keep = kept_apart(knots, offsets)
    before = np.concatenate([[0], np.cumsum(keep)])
    return keep, np.diff(before[offsets])


def check_count(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number, or too small a one."""
    if (
        not isinstance(value, numbers.Integral)
        or isinstance(value, bool)
        or value < least
    ):
        raise ValueError(
            f"{name} must be a whole number of at least {least}, got {value!r}."
        )


def check_range(name: str, value: Any, least: float, most: float) -> None:
    """Refuse what is no number in a range."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise ValueError(
            f"{name} must be a number from {least:g} to {most:g}, got {value!r}."
        )

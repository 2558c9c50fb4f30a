"""Whether probabilities can be taken at their word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.names import column_names, in_order, label_names_of
from ._probabilities import (
    check_bins,
    check_probabilities,
    has_temperature,
    uncalibrated_probabilities,
)
from ._style import (
    COLOURS,
    GREY,
    MARKERS,
    Floats,
    check_numbers,
    new_figure,
    styled,
    take,
)


def calibration_curve(Y: ArrayLike, probabilities: ArrayLike, n_bins: int) -> Floats:
    """Return the mean probability and the observed share in bins of equal width.

    Parameters
    ----------
    Y : array-like of 0 and 1
    probabilities : array-like of the same shape
    n_bins : int

    Returns
    -------
    float64 array (2, n_bins)
        NaN where a bin is empty.

    Examples
    --------
    >>> from clml.plots._calibration import calibration_curve
    >>> calibration_curve([0, 1, 1, 1], [0.1, 0.3, 0.6, 1.0], 2)
    array([[0.2, 0.8],
           [0.5, 1. ]])
    """
    probabilities = in_order(probabilities, column_names(Y), "probabilities", "Y")
    p = check_probabilities("probabilities", probabilities)
    relevant = np.asarray(Y, dtype=np.float64)
    if relevant.shape != p.shape:
        raise ValueError(
            f"Y must have the shape of the probabilities, {p.shape}, "
            f"got {relevant.shape}."
        )
    n_bins = check_bins(n_bins)
    place = np.minimum((p.ravel() * n_bins).astype(int), n_bins - 1)
    counts, *sums = (
        np.bincount(place, weights, minlength=n_bins)
        for weights in (None, p.ravel(), relevant.ravel())
    )
    with np.errstate(invalid="ignore"):
        return np.array(sums) / counts


class CalibrationCurvesDisplay:
    """Observed share of a label against its predicted probability.

    Before and after training, as in the paper, and after it with the temperature by
    which an estimator divides its logits.

    Parameters
    ----------
    after : array-like of shape (2, b)
        Mean predicted probability and observed share in each bin; NaN where empty.
    before : array-like of shape (2, b), default=None
        The same before training, or after its first epoch.
    calibrated : array-like of shape (2, b), default=None
        The same after training, the logits divided by a temperature.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import CalibrationCurvesDisplay
    >>> display = CalibrationCurvesDisplay.from_probabilities(
    ...     [[0, 1], [0, 1]], [[0.2, 0.7], [0.4, 0.9]], n_bins=2
    ... )
    >>> display.after
    array([[0.3, 0.8],
           [0. , 1. ]])
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        after: ArrayLike,
        before: ArrayLike | None = None,
        *,
        calibrated: ArrayLike | None = None,
    ) -> None:
        self.after: Floats = check_numbers("after", after, 2, None)
        self.before: Floats | None = (
            None if before is None else check_numbers("before", before, 2, None)
        )
        self.calibrated: Floats | None = (
            None
            if calibrated is None
            else check_numbers("calibrated", calibrated, 2, None)
        )

    @classmethod
    def from_probabilities(
        cls,
        Y: ArrayLike,
        after: ArrayLike,
        before: ArrayLike | None = None,
        *,
        calibrated: ArrayLike | None = None,
        n_bins: int = 10,
    ) -> CalibrationCurvesDisplay:
        """Compute the curves, all labels together.

        Parameters
        ----------
        Y : array-like of shape (rows, K)
        after, before, calibrated : array-like of shape (rows, K)
            Probabilities, such as ``predict_proba`` returns them.
        n_bins : int, default=10
        """
        curves = [
            None if values is None else calibration_curve(Y, values, n_bins)
            for values in (after, before, calibrated)
        ]
        assert curves[0] is not None
        return cls(curves[0], curves[1], calibrated=curves[2])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: ArrayLike,
        *,
        before: Any = None,
        n_bins: int = 10,
    ) -> CalibrationCurvesDisplay:
        """Compute the curve of a fitted estimator.

        If it divides its logits by a ``temperature_``, the curves before and after
        training are without that, and a third one is with it.

        Parameters
        ----------
        estimator : classifier whose ``predict_proba`` is one array
        X, Y : array-likes of shape (rows, D) and (rows, K)
            Rows that it was not fitted on.
        before : the same estimator fitted for one epoch, default=None
        n_bins : int, default=10
        """

        def curve(model: Any, probability: Floats) -> Floats:
            # Each may have been fitted on the labels in an order of its own.
            own = in_order(Y, label_names_of(model), "Y", "what was fitted")
            return calibration_curve(own, probability, n_bins)

        earlier = calibrated = None
        after = curve(estimator, uncalibrated_probabilities(estimator, X))
        if before is not None:
            earlier = curve(before, uncalibrated_probabilities(before, X))
        if has_temperature(estimator):
            calibrated = curve(estimator, estimator.predict_proba(X))
        return cls(after, earlier, calibrated=calibrated)

    @classmethod
    def from_artifact(cls, artifact: Mapping[str, NDArray]) -> CalibrationCurvesDisplay:
        """Take the curves that a run of an experiment left.

        Parameters
        ----------
        artifact : mapping of str to arrays
            As :meth:`clml.experiments.Results.artifact` returns it.
        """
        (after,) = take(artifact, "calibration/after")
        return cls(
            after,
            artifact.get("calibration/before"),
            calibrated=artifact.get("calibration/calibrated"),
        )

    @styled
    def plot(
        self, ax: Any = None, *, title: str | None = None
    ) -> CalibrationCurvesDisplay:
        """Draw the curves and the line of perfect calibration.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        CalibrationCurvesDisplay
        """
        if ax is None:
            ax = new_figure(3.8, 3.8).subplots()
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="perfect")
        curves = (
            (self.before, "before training", 1),
            (self.after, "after training", 0),
            (self.calibrated, "after training, calibrated", 2),
        )
        for curve, label, series in curves:
            if curve is not None:
                # A line across an empty bin would claim what nobody observed.
                ax.plot(
                    *curve,
                    color=COLOURS[series],
                    marker=MARKERS[series],
                    markersize=4.5,
                    label=label,
                )
        ax.set(
            xlabel="mean predicted probability",
            ylabel="observed share",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        ax.legend(loc="upper left")
        if title:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

"""How sure a model is: its label probabilities before and after training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from .._support.names import in_order, label_names_of
from ._style import (
    COLOURS,
    Floats,
    check_numbers,
    new_figure,
    panel_array,
    styled,
    take,
)

# Correct labels and the others: their words, colours and lines.
_KINDS = (("correct", COLOURS[0], "-"), ("incorrect", COLOURS[1], "--"))


def check_probabilities(name: str, values: ArrayLike) -> Floats:
    """Return probabilities as an array, or say what is wrong with them."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name} must be probabilities in [0, 1], at least one.")
    return array


def check_bins(n_bins: int) -> int:
    """Return a number of bins, or say what is wrong with it."""
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins!r}.")
    return int(n_bins)


def has_temperature(estimator: Any) -> bool:
    """Tell whether an estimator divides its logits by a temperature."""
    return float(getattr(estimator, "temperature_", 1.0)) != 1.0


def uncalibrated_probabilities(estimator: Any, X: Any) -> Floats:
    """Return the probabilities (n, K) of an estimator, without its temperature."""
    probability = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if not has_temperature(estimator):
        return probability
    logits = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return np.asarray(expit(logits * estimator.temperature_)).reshape(probability.shape)


class LabelProbabilityDisplay:
    """Histograms of label probabilities, correct labels and others apart.

    A label is correct where its probability is on its side of 0.5. With a temperature
    between training and what an estimator says, the paper's figure is of the
    probabilities without it; those with it are a panel of their own.

    Parameters
    ----------
    bins : array-like of shape (b + 1,)
        Edges, increasing.
    after : array-like of shape (b,) or (2, b)
        How many probabilities lie in each bin after training, of all labels or of the
        correct ones and of the others.
    before : array-like of shape (b,) or (2, b), default=None
        The same before training, or after its first epoch.
    calibrated : array-like of shape (b,) or (2, b), default=None
        The same after training, the logits divided by a temperature.

    Attributes
    ----------
    ax_ : array of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import LabelProbabilityDisplay
    >>> display = LabelProbabilityDisplay.from_probabilities(
    ...     [[0.1, 0.9], [0.2, 0.9]], [[0, 1], [1, 1]], n_bins=2
    ... )
    >>> display.after
    array([[1., 2.],
           [1., 0.]])
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        bins: ArrayLike,
        after: ArrayLike,
        before: ArrayLike | None = None,
        *,
        calibrated: ArrayLike | None = None,
    ) -> None:
        self.bins: Floats = check_numbers("bins", bins, None)
        if len(self.bins) < 2 or not (np.diff(self.bins) > 0).all():
            raise ValueError(f"bins must be increasing edges, got {self.bins}.")
        n_bins = len(self.bins) - 1
        self.after: Floats = _check_counts("after", after, n_bins)
        self.before: Floats | None = (
            None if before is None else _check_counts("before", before, n_bins)
        )
        self.calibrated: Floats | None = (
            None
            if calibrated is None
            else _check_counts("calibrated", calibrated, n_bins)
        )

    @classmethod
    def from_probabilities(
        cls,
        after: ArrayLike,
        Y: ArrayLike | None = None,
        *,
        before: ArrayLike | None = None,
        calibrated: ArrayLike | None = None,
        n_bins: int = 50,
    ) -> LabelProbabilityDisplay:
        """Count probabilities in bins of equal width.

        Parameters
        ----------
        after : array-like of any shape
            Probabilities, such as ``predict_proba`` returns them.
        Y : array-like of the same shape, default=None
            0 and 1: what is correct. None counts all labels together.
        before, calibrated : array-like of the same shape, default=None
        n_bins : int, default=50
        """
        bins = np.linspace(0, 1, check_bins(n_bins) + 1)
        after_counts, *others = (
            None if values is None else _counts(name, values, Y, bins)
            for name, values in (
                ("after", after),
                ("before", before),
                ("calibrated", calibrated),
            )
        )
        assert after_counts is not None
        return cls(bins, after_counts, others[0], calibrated=others[1])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: ArrayLike | None = None,
        *,
        before: Any = None,
        n_bins: int = 50,
    ) -> LabelProbabilityDisplay:
        """Count what a fitted estimator predicts.

        If it divides its logits by a ``temperature_``, the panels before and after
        training are without that, and a third one is with it.

        Parameters
        ----------
        estimator : classifier whose ``predict_proba`` is one array
        X : array-like of shape (rows, D)
        Y : array-like of shape (rows, K), default=None
            What is correct. None counts all labels together.
        before : the same estimator fitted for one epoch, default=None
        n_bins : int, default=50
        """
        bins = np.linspace(0, 1, check_bins(n_bins) + 1)

        def counts(name: str, model: Any, probability: Floats) -> Floats:
            # Each may have been fitted on the labels in an order of its own.
            correct = None
            if Y is not None:
                own = in_order(Y, label_names_of(model), "Y", "what was fitted")
                correct = np.asarray(own)
            return _counts(name, probability, correct, bins)

        earlier = calibrated = None
        after = counts("after", estimator, uncalibrated_probabilities(estimator, X))
        if before is not None:
            earlier = counts("before", before, uncalibrated_probabilities(before, X))
        if has_temperature(estimator):
            probability = estimator.predict_proba(X)
            calibrated = counts("calibrated", estimator, probability)
        return cls(bins, after, earlier, calibrated=calibrated)

    @classmethod
    def from_artifact(cls, artifact: Mapping[str, NDArray]) -> LabelProbabilityDisplay:
        """Take the counts that a run of an experiment left.

        Parameters
        ----------
        artifact : mapping of str to arrays
            As :meth:`clml.experiments.Results.artifact` returns it.
        """
        bins, after = take(artifact, "probability/bins", "probability/after")
        return cls(
            bins,
            after,
            artifact.get("probability/before"),
            calibrated=artifact.get("probability/calibrated"),
        )

    @styled
    def plot(
        self, ax: Any = None, *, title: str | None = None
    ) -> LabelProbabilityDisplay:
        """Draw a histogram in each panel: before training, after it, and calibrated.

        Parameters
        ----------
        ax : one matplotlib Axes for each histogram, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        LabelProbabilityDisplay
        """
        parts = [
            (counts, words)
            for counts, words in (
                (self.before, "before training"),
                (self.after, "after training"),
                (self.calibrated, "after training, calibrated"),
            )
            if counts is not None
        ]
        # Before training all are near one value: on one scale nothing else is seen.
        panels = (
            new_figure(3.3 * len(parts), 3.0).subplots(1, len(parts), squeeze=False)[0]
            if ax is None
            else panel_array(ax, len(parts))
        )
        for panel, (counts, words) in zip(panels, parts, strict=True):
            # Shares of all predictions, so that the two heights can be compared.
            shares = counts / max(counts.sum(), 1)
            kinds = _KINDS if shares.ndim == 2 else (("label", COLOURS[0], "-"),)
            for values, (kind, colour, line) in zip(
                np.atleast_2d(shares), kinds, strict=True
            ):
                panel.stairs(values, self.bins, fill=True, color=colour, alpha=0.3)
                panel.stairs(
                    values,
                    self.bins,
                    color=colour,
                    linewidth=1,
                    linestyle=line,
                    label=kind,
                )
            panel.set(
                xlabel="predicted probability of a label",
                xlim=(self.bins[0], self.bins[-1]),
                title=words,
            )
        if parts[0][0].ndim == 2:
            panels[0].legend()
        panels[0].set_ylabel("share of predictions")
        figure = panels[0].figure
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = panels, figure
        return self


def _counts(name: str, values: ArrayLike, Y: ArrayLike | None, bins: Floats) -> Floats:
    probability = check_probabilities(name, values)
    if Y is None:
        return np.histogram(probability, bins)[0].astype(np.float64)
    relevant = np.asarray(Y)
    if relevant.shape != probability.shape:
        raise ValueError(
            f"Y must have the shape of {name}, {probability.shape}, "
            f"got {relevant.shape}."
        )
    correct = (probability > 0.5) == (relevant == 1)
    parts = [np.histogram(probability[part], bins)[0] for part in (correct, ~correct)]
    return np.stack(parts).astype(np.float64)


def _check_counts(name: str, counts: ArrayLike, n_bins: int) -> Floats:
    shape = (n_bins,) if np.ndim(counts) < 2 else (2, n_bins)
    array = check_numbers(name, counts, *shape)
    if not (array >= 0).all():
        raise ValueError(f"{name} must be counts, got a negative or undefined one.")
    return array

"""How sure a model is: its label probabilities before and after training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._style import (
    COLOURS,
    Floats,
    check_numbers,
    new_figure,
    panel_array,
    styled,
    take,
)


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


class LabelProbabilityDisplay:
    """Histograms of label probabilities, before and after training.

    Parameters
    ----------
    bins : array-like of shape (b + 1,)
        Edges, increasing.
    after : array-like of shape (b,)
        How many probabilities lie in each bin.
    before : array-like of shape (b,), default=None
        The same before training, or after its first epoch.

    Attributes
    ----------
    ax_ : array of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import LabelProbabilityDisplay
    >>> display = LabelProbabilityDisplay.from_probabilities(
    ...     [[0.1, 0.9], [0.2, 0.9]], before=[[0.5, 0.5], [0.4, 0.6]], n_bins=2
    ... )
    >>> display.before, display.after
    (array([1., 3.]), array([2., 2.]))
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, bins: ArrayLike, after: ArrayLike, before: ArrayLike | None = None
    ) -> None:
        self.bins: Floats = check_numbers("bins", bins, None)
        if len(self.bins) < 2 or not (np.diff(self.bins) > 0).all():
            raise ValueError(f"bins must be increasing edges, got {self.bins}.")
        n_bins = len(self.bins) - 1
        self.after: Floats = _check_counts("after", after, n_bins)
        self.before: Floats | None = (
            None if before is None else _check_counts("before", before, n_bins)
        )

    @classmethod
    def from_probabilities(
        cls, after: ArrayLike, before: ArrayLike | None = None, *, n_bins: int = 50
    ) -> LabelProbabilityDisplay:
        """Count probabilities in bins of equal width.

        Parameters
        ----------
        after, before : array-like of any shape
            Probabilities, such as ``predict_proba`` returns them.
        n_bins : int, default=50
        """
        bins = np.linspace(0, 1, check_bins(n_bins) + 1)
        counts = [
            None
            if values is None
            else np.histogram(check_probabilities(name, values), bins)[0]
            for name, values in (("after", after), ("before", before))
        ]
        assert counts[0] is not None
        return cls(bins, counts[0], counts[1])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, before: Any = None, n_bins: int = 50
    ) -> LabelProbabilityDisplay:
        """Count what a fitted estimator predicts.

        Parameters
        ----------
        estimator : classifier whose ``predict_proba`` is one array
        X : array-like of shape (rows, D)
        before : the same estimator fitted for one epoch, default=None
        n_bins : int, default=50
        """
        return cls.from_probabilities(
            estimator.predict_proba(X),
            None if before is None else before.predict_proba(X),
            n_bins=n_bins,
        )

    @classmethod
    def from_artifact(cls, artifact: Mapping[str, NDArray]) -> LabelProbabilityDisplay:
        """Take the counts that a run of an experiment left.

        Parameters
        ----------
        artifact : mapping of str to arrays
            As :meth:`clml.experiments.Results.artifact` returns it.
        """
        bins, after = take(artifact, "probability/bins", "probability/after")
        return cls(bins, after, artifact.get("probability/before"))

    @styled
    def plot(
        self, ax: Any = None, *, title: str | None = None
    ) -> LabelProbabilityDisplay:
        """Draw a histogram in each panel, before training on the left.

        Parameters
        ----------
        ax : one matplotlib Axes for each histogram, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        LabelProbabilityDisplay
        """
        parts = [(self.after, "after training", COLOURS[0])]
        if self.before is not None:
            parts.insert(0, (self.before, "before training", COLOURS[1]))
        # Before training all are near one value: on one scale nothing else is seen.
        panels = (
            new_figure(3.6 * len(parts), 3.0).subplots(1, len(parts), squeeze=False)[0]
            if ax is None
            else panel_array(ax, len(parts))
        )
        for panel, (counts, words, colour) in zip(panels, parts, strict=True):
            shares = counts / max(counts.sum(), 1)
            panel.stairs(shares, self.bins, fill=True, color=colour, alpha=0.4)
            panel.stairs(shares, self.bins, color=colour, linewidth=1)
            panel.set(
                xlabel="predicted probability of a label",
                xlim=(self.bins[0], self.bins[-1]),
                title=words,
            )
        panels[0].set_ylabel("share of predictions")
        figure = panels[0].figure
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = panels, figure
        return self


def _check_counts(name: str, counts: ArrayLike, n_bins: int) -> Floats:
    array = check_numbers(name, counts, n_bins)
    if not (array >= 0).all():
        raise ValueError(f"{name} must be counts, got a negative or undefined one.")
    return array

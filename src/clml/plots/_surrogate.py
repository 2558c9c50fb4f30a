"""A surrogate beside the losses that are wanted, along training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr

from ._history import HistoryDisplay
from ._style import (
    COLOURS,
    MARKERS,
    Floats,
    check_numbers,
    loss_label,
    new_figure,
    panel_array,
    styled,
    take,
)
from ._trajectory import moving_average


class SurrogateDisplay(HistoryDisplay):
    """A surrogate and the desired losses of the incumbent, epoch after epoch.

    The left panel has all of them against the epoch, the right one each desired loss
    against the surrogate. If the surrogate stood for the losses, the right panel would
    show rising curves.

    Parameters
    ----------
    surrogate : array-like of shape (epochs,)
    losses : array-like of shape (epochs, o)
    loss_names : sequence of o str
    surrogate_name : str, default="binary_cross_entropy"
    rows : str, default="train"
        Which rows these are, for the labels.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import SurrogateDisplay
    >>> display = SurrogateDisplay([3, 2, 1], [[0.5, 0.1], [0.4, 0.2], [0.3, 0.3]],
    ...                            ["hamming", "lrap"])
    >>> display.correlations
    array([ 1., -1.])
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        surrogate: ArrayLike,
        losses: ArrayLike,
        loss_names: Sequence[str],
        *,
        surrogate_name: str = "binary_cross_entropy",
        rows: str = "train",
    ) -> None:
        self.surrogate: Floats = check_numbers("surrogate", surrogate, None)
        self.loss_names = [str(name) for name in loss_names]
        n_epochs = len(self.surrogate)
        self.losses: Floats = check_numbers(
            "losses", losses, n_epochs, len(self.loss_names)
        )
        if n_epochs < 2:
            raise ValueError(f"surrogate must have at least 2 epochs, got {n_epochs}.")
        self.surrogate_name = surrogate_name
        self.rows = rows

    @property
    def correlations(self) -> Floats:
        """Rank correlation of each loss with the surrogate, (o,).

        1 where the loss falls whenever the surrogate does; NaN where one is constant.
        """
        return np.array([_rank_correlation(self.surrogate, y) for y in self.losses.T])

    @classmethod
    def from_history(
        cls,
        history: Mapping[str, NDArray],
        loss_names: Sequence[str],
        *,
        rows: str = "train",
        surrogate: str = "binary_cross_entropy",
    ) -> SurrogateDisplay:
        """Take the incumbents of a history.

        Parameters
        ----------
        history : mapping of str to arrays
            As ``history_`` of an estimator.
        loss_names : sequence of str
            The losses that were optimised.
        rows : {"train", "validation"}, default="train"
        surrogate : {"binary_cross_entropy", "row_log_loss"}
        """
        names = f"incumbent_{surrogate}_{rows}", f"incumbent_{rows}"
        values, losses = take(history, *names)
        return cls(values, losses, loss_names, surrogate_name=surrogate, rows=rows)

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> SurrogateDisplay:
        """Draw both panels.

        Parameters
        ----------
        ax : two matplotlib Axes, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        SurrogateDisplay
        """
        panels = (
            new_figure(8.2, 3.4).subplots(1, 2) if ax is None else panel_array(ax, 2)
        )
        name = loss_label(self.surrogate_name)
        where = {"train": "training rows"}.get(self.rows, f"{self.rows} rows")
        left, right = panels
        other = left.twinx()
        other.spines["right"].set_visible(True)
        lines = [self._draw_epochs(other, self.surrogate, "black", "--")]
        for i, values in enumerate(self.losses.T):
            colour = COLOURS[i % len(COLOURS)]
            lines.append(self._draw_epochs(left, values, colour, "-"))
            self._draw_against(right, i, colour)
        left.set(xlabel="epoch", ylabel=f"loss on {where}")
        other.set_ylabel(f"{name} (dashed)")
        right.set(xlabel=name, ylabel=f"loss on {where}")
        low, high = right.get_ylim()
        # The points may fill the panel: room above them for the legend.
        right.set_ylim(low, high + 0.09 * (1 + len(self.loss_names)) * (high - low))
        right.legend(
            loc="upper left",
            title="rank correlation; large: last epoch",
            title_fontsize=8,
        )
        left.legend(
            lines,
            [name, *map(loss_label, self.loss_names)],
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=2,
        )
        if title:
            left.figure.suptitle(title)
        self.ax_, self.figure_ = np.asarray(panels), left.figure
        return self

    def _draw_epochs(self, ax: Any, values: Floats, colour: str, style: str) -> Any:
        """Draw values against the epoch, faint, and their moving average."""
        epochs = np.arange(1, len(values) + 1)
        smooth = moving_average(values[:, None], 1 + len(values) // 40)
        ax.plot(epochs, values, color=colour, linewidth=0.6, alpha=0.3)
        return ax.plot(epochs, smooth[:, 0], color=colour, linestyle=style)[0]

    def _draw_against(self, ax: Any, i: int, colour: str) -> None:
        """Draw a loss against the surrogate; a large mark is the last epoch."""
        values = self.losses[:, i]
        ax.plot(self.surrogate, values, ".", color=colour, markersize=2.5, alpha=0.5)
        ax.plot(
            self.surrogate[-1],
            values[-1],
            MARKERS[i % len(MARKERS)],
            color=colour,
            markeredgecolor="black",
            markersize=7,
            label=f"{loss_label(self.loss_names[i])}: {self.correlations[i]:+.2f}",
        )


def _rank_correlation(a: Floats, b: Floats) -> float:
    seen = np.isfinite(a) & np.isfinite(b)
    a, b = a[seen], b[seen]
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)

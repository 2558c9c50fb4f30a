"""A run on its way through the space of three losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._history import HistoryDisplay
from ._style import (
    COLOUR_MAP,
    COLOURS,
    GREY,
    Floats,
    check_numbers,
    loss_label,
    new_figure,
    panel_array,
    styled,
    take,
)


def moving_average(values: Floats, window: int) -> Floats:
    """Return means over neighbouring rows, over fewer of them at both ends.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.plots._trajectory import moving_average
    >>> moving_average(np.array([[0.0], [3.0], [6.0], [3.0]]), 3).ravel()
    array([1.5, 3. , 4. , 4.5])
    """
    half = window // 2
    sums = np.vstack([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    place = np.arange(len(values))
    first = np.maximum(place - half, 0)
    last = np.minimum(place + half + 1, len(values))
    return (sums[last] - sums[first]) / (last - first)[:, None]


class TrajectoryDisplay(HistoryDisplay):
    """The incumbents of a run in the space of three losses, epoch after epoch.

    Every epoch is a point, coloured by a cross-entropy that the run did not optimise. A
    line is the moving average. A second panel shows the last epochs, in the box that
    the first one marks.

    Parameters
    ----------
    losses : array-like of shape (epochs, 3)
    loss_names : sequence of str
        Three of them.
    cross_entropy : array-like of shape (epochs,)
        What colours the points.
    cross_entropy_name : str, default="row_log_loss"
    window : int, default=None
        Epochs of the moving average; None: a tenth of them, 25 at most.
    zoom : float, default=0.25
        The share of the epochs, the last ones, that the second panel shows.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes3D
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from clml.plots import TrajectoryDisplay
    >>> epochs = np.arange(50)[:, None]
    >>> losses = 0.2 + 0.5 * np.exp(-epochs / [10, 15, 20])
    >>> names = ["hamming", "lrap", "micro_f1"]
    >>> display = TrajectoryDisplay(losses, names, losses.sum(axis=1), window=5)
    >>> display.average.shape
    (50, 3)
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        losses: ArrayLike,
        loss_names: Sequence[str],
        cross_entropy: ArrayLike,
        *,
        cross_entropy_name: str = "row_log_loss",
        window: int | None = None,
        zoom: float = 0.25,
    ) -> None:
        self.losses: Floats = check_numbers("losses", losses, None, 3)
        self.loss_names = [str(name) for name in loss_names]
        n_epochs = len(self.losses)
        self.cross_entropy: Floats = check_numbers(
            "cross_entropy", cross_entropy, n_epochs
        )
        self.cross_entropy_name = cross_entropy_name
        if len(self.loss_names) != 3:
            raise ValueError(
                f"loss_names must be three names, got {len(self.loss_names)}."
            )
        if n_epochs < 2:
            raise ValueError(f"losses must have at least 2 epochs, got {n_epochs}.")
        if not np.isfinite(self.losses).all():
            raise ValueError("losses must be finite.")
        if window is None:
            window = min(max(n_epochs // 10, 1), 25)
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window!r}.")
        if not 0 < zoom <= 1:
            raise ValueError(f"zoom must be above 0 and at most 1, got {zoom!r}.")
        self.window = int(window)
        self.zoom = float(zoom)

    @property
    def average(self) -> Floats:
        """The moving average of the losses, (epochs, 3)."""
        return moving_average(self.losses, self.window)

    @classmethod
    def from_history(
        cls,
        history: Mapping[str, NDArray],
        loss_names: Sequence[str],
        *,
        rows: str = "train",
        cross_entropy: str = "row_log_loss",
        **options: Any,
    ) -> TrajectoryDisplay:
        """Take the incumbents of a history.

        Parameters
        ----------
        history : mapping of str to arrays
            As ``history_`` of an estimator.
        loss_names : sequence of str
            The losses that were optimised.
        rows : {"train", "validation"}, default="train"
        cross_entropy : {"row_log_loss", "binary_cross_entropy"}
            What colours the points; the first one is the paper's.
        **options
            ``window`` and ``zoom``.
        """
        names = f"incumbent_{rows}", f"incumbent_{cross_entropy}_{rows}"
        losses, colour = take(history, *names)
        return cls(
            losses, loss_names, colour, cross_entropy_name=cross_entropy, **options
        )

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> TrajectoryDisplay:
        """Draw both panels and the bar of colours.

        Parameters
        ----------
        ax : two matplotlib Axes3D, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        TrajectoryDisplay
        """
        if ax is None:
            figure = new_figure(9.2, 4.2)
            # Axes in space ask for no room for their labels: they are given it.
            figure.set_layout_engine("none")
            panels = np.empty(2, dtype=object)
            for i, left in enumerate((0.0, 0.44)):
                place = (left, 0.04, 0.43, 0.88)
                panels[i] = figure.add_axes(place, projection="3d")
            bar = figure.add_axes((0.925, 0.22, 0.013, 0.56))
        else:
            panels, bar = panel_array(ax, 2), None
        figure = panels[0].figure
        n_last = max(2, round(self.zoom * len(self.losses)))
        low, high = _box(self.losses[-n_last:])
        points = self._draw(panels[0], slice(None))
        _draw_box(panels[0], low, high)
        last = slice(-n_last, None)
        self._draw(panels[1], last)
        for side, limits in zip("xyz", zip(low, high, strict=True), strict=True):
            getattr(panels[1], f"set_{side}lim")(*limits)
        panels[0].set_title(f"All {len(self.losses)} epochs", y=0.98)
        panels[1].set_title(f"The last {n_last} epochs (the box)", y=0.98)
        panels[0].legend(loc="lower left", bbox_to_anchor=(0.02, -0.02))
        name = loss_label(self.cross_entropy_name)
        beside: dict[str, Any] = (
            {"ax": list(panels), "shrink": 0.6} if bar is None else {"cax": bar}
        )
        figure.colorbar(points, label=name, extend="both", **beside)
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = panels, figure
        return self

    def _draw(self, ax: Any, epochs: slice) -> Any:
        x, y, z = self.losses[epochs].T
        # A few epochs far out would leave one colour to all the others.
        dark, light = np.nanpercentile(self.cross_entropy, (2, 98))
        points = ax.scatter(
            x,
            y,
            z,
            c=self.cross_entropy[epochs],
            cmap=COLOUR_MAP,
            vmin=dark,
            vmax=light,
            s=9,
            alpha=0.75,
            linewidths=0,
            depthshade=False,
        )
        ax.plot(
            *self.average[epochs].T,
            color=COLOURS[1],
            linewidth=1.6,
            label=f"mean of {self.window} epochs",
        )
        ax.locator_params(nbins=5)
        ax.tick_params(pad=0, labelsize=7)
        for side, name in zip("xyz", self.loss_names, strict=True):
            getattr(ax, f"set_{side}label")(loss_label(name), labelpad=2)
        ax.view_init(elev=22, azim=-58)
        # Its label stands outside its axes, under the neighbour's background.
        ax.patch.set_alpha(0)
        ax.set_box_aspect(None, zoom=0.92)
        return points


def _box(losses: Floats) -> tuple[Floats, Floats]:
    """Return two corners around most of the points, with a margin."""
    # A single epoch far out would make the box as large as the whole.
    low, high = np.percentile(losses, (2, 98), axis=0)
    margin = np.maximum(0.08 * (high - low), 1e-4)
    return low - margin, high + margin


def _draw_box(ax: Any, low: Floats, high: Floats) -> None:
    """Draw the twelve edges between corners that differ in one coordinate."""
    corners = np.array(list(product((0, 1), repeat=3)))
    for i, first in enumerate(corners):
        for second in corners[i + 1 :]:
            if (first != second).sum() == 1:
                ends = np.where([first, second], high, low)
                ax.plot(*ends.T, color=GREY, linewidth=0.8)

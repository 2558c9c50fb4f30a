"""The front of models between which the losses disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.names import in_order
from ._style import (
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

_COLUMNS = 3


def lower_staircase(points: Floats) -> Floats:
    """Return the points (m, 2) that no other is better than in both, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.plots._front import lower_staircase
    >>> lower_staircase(np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 5.0]]))
    array([[1., 2.],
           [3., 1.]])
    """
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    lowest = np.minimum.accumulate(ordered[:, 1])
    better = np.concatenate([[True], ordered[1:, 1] < lowest[:-1]])
    return ordered[better]


class FrontDisplay:
    """The members of a Pareto front, two losses in each panel.

    A staircase joins the members that are best when those two losses alone count.

    Parameters
    ----------
    losses : array-like of shape (m, o)
        Of each member, o at least 2.
    loss_names : sequence of o str
    chosen : int or array-like of shape (o,), default=None
        The member that predicts, or its losses where it is none of them.
    rows : str, default="validation"
        Which rows the losses are from, for the labels.
    errors : array-like of shape (m, o), default=None
        Standard errors of the losses, drawn as bars; NaN where one is not known.

    Attributes
    ----------
    ax_ : array of matplotlib Axes
        One for each pair of losses.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import FrontDisplay
    >>> losses = [[0.1, 0.9, 0.4], [0.2, 0.3, 0.5], [0.8, 0.25, 0.3]]
    >>> display = FrontDisplay(losses, ["hamming", "lrap", "micro_f1"], chosen=1)
    >>> display.chosen, display.pairs
    (array([0.2, 0.3, 0.5]), [(0, 1), (0, 2), (1, 2)])
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        losses: ArrayLike,
        loss_names: Sequence[str],
        *,
        chosen: int | ArrayLike | None = None,
        rows: str = "validation",
        errors: ArrayLike | None = None,
    ) -> None:
        self.loss_names = [str(name) for name in loss_names]
        n_losses = len(self.loss_names)
        if n_losses < 2:
            raise ValueError(f"loss_names must be at least 2, got {n_losses}.")
        losses = in_order(losses, self.loss_names, "losses", "loss_names")
        self.losses: Floats = check_numbers("losses", losses, None, n_losses)
        if len(self.losses) == 0:
            raise ValueError("losses must have at least one member.")
        self.chosen: Floats | None = None
        if isinstance(chosen, int | np.integer):
            if not 0 <= chosen < len(self.losses):
                raise ValueError(
                    f"chosen must be a member from 0 to {len(self.losses) - 1}, "
                    f"got {chosen}."
                )
            self.chosen = self.losses[chosen]
        elif chosen is not None:
            self.chosen = check_numbers("chosen", chosen, n_losses)
        self.rows = rows
        self.errors: Floats | None = None
        if errors is not None:
            array = np.asarray(errors, dtype=np.float64)
            if array.shape != self.losses.shape or (array < 0).any():
                raise ValueError(
                    "errors must not be negative and have the shape of losses, "
                    f"{self.losses.shape}, got shape {array.shape}."
                )
            self.errors = array

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Which losses each panel shows, across and upwards."""
        return list(combinations(range(len(self.loss_names)), 2))

    @classmethod
    def from_estimator(cls, estimator: Any) -> FrontDisplay:
        """Take the front of a fitted estimator, and the member that it predicts with.

        Parameters
        ----------
        estimator : CLMLClassifier or another with ``front_``
        """
        front = estimator.front_
        chosen = getattr(estimator, "incumbent_", None)
        history = getattr(estimator, "history_", {})
        last = history.get("incumbent_validation", ())
        if isinstance(chosen, str):
            # The incumbent of the last epoch need not be in the front; of other
            # models outside it, such as a mean, no losses are recorded.
            is_known = chosen == "final" and len(last) > 0
            has_members = hasattr(estimator, "networks_")
            chosen = last[-1] if is_known and not has_members else None
        if chosen is None and getattr(estimator, "incumbent_", None) == "mean":
            chosen = front.default
        known = np.isfinite(front.standard_error).any()
        errors = front.standard_error if known else None
        return cls(front.losses, front.loss_names, chosen=chosen, errors=errors)

    @classmethod
    def from_artifact(
        cls, artifact: Mapping[str, NDArray], *, rows: str = "validation"
    ) -> FrontDisplay:
        """Take the front that a run of an experiment left.

        Parameters
        ----------
        artifact : mapping of str to arrays
            As :meth:`clml.experiments.Results.artifact` returns it.
        rows : {"validation", "test"}, default="validation"
        """
        losses, names = take(artifact, f"front/{rows}", "front/loss_names")
        chosen = int(artifact.get("front/chosen", -1))
        return cls(
            losses, names.tolist(), chosen=chosen if chosen >= 0 else None, rows=rows
        )

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> FrontDisplay:
        """Draw a panel for each pair of losses.

        Parameters
        ----------
        ax : as many matplotlib Axes as there are pairs, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        FrontDisplay
        """
        n_panels = len(self.pairs)
        panels = _grid(n_panels) if ax is None else panel_array(ax, n_panels)
        for panel, (i, j) in zip(panels, self.pairs, strict=True):
            self._draw(panel, i, j)
        figure = panels[0].figure
        handles, labels = panels[0].get_legend_handles_labels()
        # One legend for all panels, below them where the figure is ours.
        if ax is None:
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
        else:
            panels[0].legend()
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = panels, figure
        return self

    def _draw(self, ax: Any, i: int, j: int) -> None:
        points = self.losses[:, [i, j]]
        ax.step(
            *lower_staircase(points).T,
            where="post",
            color=GREY,
            linewidth=1,
            label="best by these two losses",
        )
        if self.errors is not None:
            ax.errorbar(
                *points.T,
                xerr=self.errors[:, i],
                yerr=self.errors[:, j],
                fmt="none",
                ecolor=GREY,
                elinewidth=0.5,
                label="standard error",
            )
        ax.plot(*points.T, "o", color=COLOURS[0], markersize=4, label="member")
        if self.chosen is not None:
            ax.plot(
                self.chosen[i],
                self.chosen[j],
                "*",
                color=COLOURS[1],
                markeredgecolor="black",
                markersize=12,
                label="predicts",
            )
        ax.locator_params(nbins=5)
        ax.margins(0.08)
        ax.set(
            xlabel=f"{loss_label(self.loss_names[i])} ({self.rows})",
            ylabel=loss_label(self.loss_names[j]),
        )


def _grid(n_panels: int) -> NDArray[np.object_]:
    columns = min(n_panels, _COLUMNS)
    rows = -(-n_panels // columns)
    figure = new_figure(3.0 * columns + 0.5, 2.8 * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in axes[n_panels:]:
        unused.remove()
    return axes[:n_panels]

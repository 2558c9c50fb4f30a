"""Critical-difference diagrams: mean ranks, and which of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.names import in_order
from ._style import (
    COLOURS,
    Floats,
    check_numbers,
    new_figure,
    plain_label,
    styled,
)

if TYPE_CHECKING:
    from ..experiments.results import Results

# Heights below the axis of ranks, in lines of text.
_FIRST_BAR, _BAR_STEP = 0.7, 0.5
# Between the axis and the names, as a share of the axis.
_ELBOW = 0.06


class CriticalDifferenceDisplay:
    """Mean ranks of methods on a line, and what cannot be told apart.

    The diagram of Demšar. With a control (Bonferroni-Dunn) a bar covers the ranks that
    do not differ significantly from the control's, and stars mark the methods that do;
    without one (Nemenyi) each bar joins methods of which no two differ.

    Parameters
    ----------
    mean_ranks : array-like of shape (methods,)
        1 is best.
    names : sequence of str
        Of the methods.
    critical_difference : float
        Methods differ significantly when their mean ranks are further apart.
    groups : sequence of sequences of int, default=None
        Indices of methods that a bar joins; None for those that the critical
        difference makes. Not with a control.
    control : int or str, default=None
        The method that all others are compared with, by its place or name.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    References
    ----------
    J. Demšar, Statistical comparisons of classifiers over multiple data sets, Journal
    of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from clml.plots import CriticalDifferenceDisplay
    >>> display = CriticalDifferenceDisplay([1.5, 2.0, 2.5], ["A", "B", "C"], 0.8)
    >>> display.groups
    [[0, 1], [1, 2]]
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        mean_ranks: ArrayLike,
        names: Sequence[str],
        critical_difference: float,
        *,
        groups: Sequence[Sequence[int]] | None = None,
        control: int | str | None = None,
    ) -> None:
        self.mean_ranks: Floats = check_numbers("mean_ranks", mean_ranks, None)
        self.names = [str(name) for name in names]
        if len(self.mean_ranks) < 2 or len(self.names) != len(self.mean_ranks):
            raise ValueError(
                "names and mean_ranks must have the same length, at least 2, got "
                f"{len(self.names)} and {len(self.mean_ranks)}."
            )
        if not np.isfinite(self.mean_ranks).all():
            raise ValueError(f"mean_ranks must be finite, got {self.mean_ranks}.")
        if not critical_difference > 0:
            raise ValueError(
                "critical_difference must be a positive number, "
                f"got {critical_difference!r}."
            )
        if groups is not None and control is not None:
            raise ValueError("groups must be None where there is a control.")
        self.critical_difference = float(critical_difference)
        self.control = None if control is None else _place(control, self.names)
        if groups is not None:
            self.groups = [[_place(int(i), self.names) for i in g] for g in groups]
        elif control is None:
            from ..experiments import rank_groups

            found = rank_groups(self.mean_ranks, self.critical_difference)
            self.groups = [list(group) for group in found]
        else:
            self.groups = []

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Which methods differ significantly from the control, if there is one."""
        if self.control is None:
            return np.zeros(len(self.names), dtype=np.bool_)
        distance = np.abs(self.mean_ranks - self.mean_ranks[self.control])
        return distance >= self.critical_difference

    @classmethod
    def from_table(
        cls,
        table: ArrayLike,
        names: Sequence[str],
        *,
        control: int | str | None = None,
        alpha: float = 0.05,
    ) -> CriticalDifferenceDisplay:
        """Rank the methods of a table and compute the critical difference.

        Parameters
        ----------
        table : array-like of shape (datasets, methods)
            Smaller is better; every method on every dataset.
        names : sequence of str
            Of the methods.
        control : int or str, default=None
            With one the test is that of Bonferroni and Dunn, without that of Nemenyi.
        alpha : float, default=0.05
            Level of significance.

        Examples
        --------
        >>> from clml.plots import CriticalDifferenceDisplay
        >>> table = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.1, 0.4, 0.3]]
        >>> display = CriticalDifferenceDisplay.from_table(table, ["A", "B", "C"])
        >>> display.mean_ranks.round(2), round(display.critical_difference, 2)
        (array([1.  , 2.33, 2.67]), 1.91)
        """
        from ..experiments import bonferroni_dunn, nemenyi

        table = in_order(table, [str(name) for name in names], "table", "names")
        values = check_numbers("table", table, None, len(names))
        if control is None:
            found: Any = nemenyi(values, alpha=alpha)
        else:
            place = _place(control, [str(name) for name in names])
            found = bonferroni_dunn(values, control=place, alpha=alpha)
        return cls(found.mean_ranks, names, found.critical_difference, control=control)

    @classmethod
    def from_results(
        cls,
        results: Results,
        loss: str = "hamming",
        *,
        control: int | str | None = None,
        alpha: float = 0.05,
    ) -> CriticalDifferenceDisplay:
        """Rank the methods of an experiment by a loss on the test rows.

        Datasets on which a method has no result are left out.

        Parameters
        ----------
        results : clml.experiments.Results
        loss : str, default="hamming"
        control : int or str, default=None
        alpha : float, default=0.05
        """
        table = results.table(loss)
        complete = table[np.isfinite(table).all(axis=1)]
        if len(complete) < 2:
            raise ValueError(
                "results must have at least 2 datasets on which every method has "
                f"{loss!r}, got {len(complete)}."
            )
        return cls.from_table(complete, results.methods, control=control, alpha=alpha)

    @styled
    def plot(
        self, ax: Any = None, *, title: str | None = None
    ) -> CriticalDifferenceDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        CriticalDifferenceDisplay
        """
        n_methods = len(self.names)
        order = np.argsort(self.mean_ranks, kind="stable")
        n_left = (n_methods + 1) // 2
        n_bars = 1 if self.control is not None else len(self.groups)
        top = _FIRST_BAR + _BAR_STEP * n_bars + 0.4
        bottom = top + n_left - 0.4
        if ax is None:
            height = 0.22 * (bottom + 2.8) + (0.25 if title else 0)
            ax = new_figure(6.5, height).subplots()
        ax.axis("off")
        # The names stand beside the ranks, each side with room for the longest.
        reach = (n_methods - 1) * (0.06 + 0.026 * (7 + max(map(len, self.names))))
        ax.set(xlim=(1 - reach, n_methods + reach), ylim=(bottom, -2.8))
        self._draw_axis(ax, n_methods)
        for place, method in enumerate(order):
            is_left = place < n_left
            y = top + (place if is_left else n_methods - 1 - place)
            self._draw_name(ax, int(method), y, is_left)
        if self.control is not None:
            self._draw_control(ax, n_methods)
        for i, group in enumerate(self.groups):
            ranks = self.mean_ranks[group]
            margin = 0.012 * (n_methods - 1)
            ends = [float(ranks.min()) - margin, float(ranks.max()) + margin]
            _thick(ax, ends, _FIRST_BAR + _BAR_STEP * i, "black")
        if title:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_axis(self, ax: Any, n_methods: int) -> None:
        ax.plot([1, n_methods], [0, 0], color="black", linewidth=1)
        # Numbers of two digits would touch.
        step = 1 if n_methods <= 10 else 2
        for tick in range(1, n_methods + 1):
            ax.plot([tick, tick], [0, -0.3], color="black", linewidth=1)
            if (tick - 1) % step == 0:
                ax.text(tick, -0.45, str(tick), ha="center", va="bottom", fontsize=8)
        ends = [1, 1 + self.critical_difference]
        ax.plot(ends, [-2, -2], color="black", linewidth=1, marker="|")
        words = f"  CD = {self.critical_difference:.2f}"
        if self.control is not None and self.differs.any():
            words += f"     * differs from {plain_label(self.names[self.control])}"
        ax.text(ends[1], -2, words, va="center", fontsize=8)

    def _draw_name(self, ax: Any, method: int, y: float, is_left: bool) -> None:
        rank = self.mean_ranks[method]
        n_methods = len(self.names)
        elbow = _ELBOW * (n_methods - 1)
        x = 1 - elbow if is_left else n_methods + elbow
        ax.plot([rank, rank, x], [0, y, y], color="black", linewidth=0.8)
        ax.plot([rank], [0], "o", color="black", markersize=3)
        name = plain_label(self.names[method]) + ("*" if self.differs[method] else "")
        is_control = method == self.control
        ax.text(
            x,
            y,
            f"{name}  {rank:.2f} " if is_left else f" {rank:.2f}  {name}",
            ha="right" if is_left else "left",
            va="center",
            weight="bold" if is_control else "normal",
            color=COLOURS[0] if is_control else "black",
        )

    def _draw_control(self, ax: Any, n_methods: int) -> None:
        """Cover what does not differ from the control, as far as ranks go."""
        rank = self.mean_ranks[self.control]
        low = max(1.0, float(rank) - self.critical_difference)
        high = min(float(n_methods), float(rank) + self.critical_difference)
        _thick(ax, [low, high], _FIRST_BAR, COLOURS[0])
        ax.plot([rank], [_FIRST_BAR], "D", color=COLOURS[0], markersize=5)


def _thick(ax: Any, ends: Sequence[float], height: float, colour: str) -> None:
    ax.plot(
        ends,
        [height, height],
        color=colour,
        linewidth=3.5,
        solid_capstyle="butt",
        zorder=3,
    )


def _place(method: int | str, names: Sequence[str]) -> int:
    if isinstance(method, str):
        if method not in names:
            raise ValueError(f"control must be one of {list(names)}, got {method!r}.")
        return list(names).index(method)
    if not 0 <= method < len(names):
        raise ValueError(
            f"A method is numbered from 0 to {len(names) - 1}, got {method!r}."
        )
    return int(method)

"""The Lebesgue measure of a set as a volume, and what each member adds to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.names import in_order
from ..lebesgue import lebesgue_contributions, lebesgue_measure
from ._style import (
    COLOUR_MAP,
    COLOURS,
    Floats,
    check_numbers,
    import_matplotlib,
    loss_label,
    new_figure,
    panel_array,
    plain_label,
    styled,
    take,
)

if TYPE_CHECKING:
    from ..experiments.results import Results

_LOSSES = ("hamming", "lrap", "micro_f1")
#: What `covering` says of a cell that no member covers, or more than one.
NOBODY, SEVERAL = -1, -2
# Three losses of m members cut the space into about m³ cells.
_MOST_MEMBERS = 200
# What is drawn of them; more cells would take minutes and look the same.
_MOST_CUTS = 25
# What distinguishes members of a longer list than there are colours.
_MOST_NAMES = 12


def covering(losses: Floats, reference: Floats) -> tuple[list[Floats], NDArray]:
    """Return the cells that the members cut the space into, and who covers each.

    Parameters
    ----------
    losses : float64 array (m, o)
    reference : float64 array (o,)
        Members that are not below it cover nothing.

    Returns
    -------
    edges : list of o arrays
        Increasing, the last one the reference's.
    owner : int array of o axes
        The member that covers a cell alone, ``NOBODY`` or ``SEVERAL``.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.plots._volume import covering
    >>> edges, owner = covering(np.array([[0.2, 0.5], [0.4, 0.1]]), np.ones(2))
    >>> edges
    [array([0.2, 0.4, 1. ]), array([0.1, 0.5, 1. ])]
    >>> owner
    array([[-1,  0],
           [ 1, -2]])
    """
    inside = np.flatnonzero((losses < reference).all(axis=1))
    edges = [
        np.unique(np.append(losses[inside, j], reference[j]))
        for j in range(len(reference))
    ]
    shape = tuple(len(cuts) - 1 for cuts in edges)
    times, last = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=np.intp)
    for member in inside:
        first = [
            np.searchsorted(cuts, z)
            for cuts, z in zip(edges, losses[member], strict=True)
        ]
        covered = tuple(slice(start, None) for start in first)
        times[covered] += 1
        last[covered] = member
    owner = np.where(times == 1, last, np.where(times == 0, NOBODY, SEVERAL))
    return edges, owner


def drawn_cells(
    edges: list[Floats], owner: NDArray, most: int
) -> tuple[list[Floats], NDArray]:
    """Return a grid of at most as many cuts, each cell with the owner at its centre.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.plots._volume import covering, drawn_cells
    >>> cells = covering(np.array([[0.2, 0.5], [0.4, 0.1]]), np.ones(2))
    >>> drawn_cells(*cells, 2)
    ([array([0.2, 1. ]), array([0.1, 1. ])], array([[-2]]))
    """
    if all(len(cuts) <= most for cuts in edges):
        return edges, owner
    kept = [
        cuts[np.unique(np.linspace(0, len(cuts) - 1, most).round().astype(int))]
        for cuts in edges
    ]
    places = [
        np.searchsorted(cuts, (fewer[:-1] + fewer[1:]) / 2, side="right") - 1
        for cuts, fewer in zip(edges, kept, strict=True)
    ]
    return kept, owner[np.ix_(*places)]


class _VolumeDisplay(ABC):
    """What displays of the space that candidates cover share."""

    ax_: Any
    figure_: Any

    def __init__(
        self,
        losses: ArrayLike,
        loss_names: Sequence[str],
        *,
        names: Sequence[str] | None = None,
        reference: float | ArrayLike = 1.0,
    ) -> None:
        self.loss_names = [str(name) for name in loss_names]
        o = len(self.loss_names)
        if o not in (2, 3):
            raise ValueError(f"loss_names must be two or three names, got {o}.")
        losses = in_order(losses, self.loss_names, "losses", "loss_names")
        self.losses: Floats = check_numbers("losses", losses, None, o)
        if not 1 <= len(self.losses) <= _MOST_MEMBERS:
            raise ValueError(
                f"losses must have 1 to {_MOST_MEMBERS} members to be drawn, "
                f"got {len(self.losses)}."
            )
        if not np.isfinite(self.losses).all():
            raise ValueError("losses must be finite.")
        self.reference: Floats = check_numbers(
            "reference", np.broadcast_to(np.asarray(reference, dtype=float), (o,)), o
        )
        self.names = [str(i) for i in range(len(self.losses))]
        if names is not None:
            self.names = [str(name) for name in names]
            if len(self.names) != len(self.losses):
                raise ValueError(
                    f"names must be {len(self.losses)}, one for each row of losses, "
                    f"got {len(self.names)}."
                )

    @property
    def contributions(self) -> Floats:
        """What each member covers that no other one does, (m,)."""
        return lebesgue_contributions(self.losses, self.reference)

    @property
    def measure(self) -> float:
        """The volume of what all members cover together."""
        return lebesgue_measure(self.losses, self.reference)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Take the members of a fitted estimator's front.

        Parameters
        ----------
        estimator : CLMLClassifier or another with ``front_``
        **options
            ``names`` and ``reference``.
        """
        front = estimator.front_
        return cls(front.losses, front.loss_names, **options)

    @classmethod
    def from_artifact(
        cls,
        artifact: Mapping[str, NDArray],
        *,
        rows: str = "validation",
        **options: Any,
    ) -> Self:
        """Take the members of the front that a run of an experiment left.

        Parameters
        ----------
        artifact : mapping of str to arrays
            As :meth:`clml.experiments.Results.artifact` returns it.
        rows : {"validation", "test"}, default="validation"
        **options
            ``names`` and ``reference``.
        """
        losses, names = take(artifact, f"front/{rows}", "front/loss_names")
        return cls(losses, names.tolist(), **options)

    @classmethod
    def from_results(
        cls,
        results: Results,
        dataset: str,
        *,
        loss_names: Sequence[str] = _LOSSES,
        **options: Any,
    ) -> Self:
        """Take the methods of an experiment, by their mean test losses on a dataset.

        Parameters
        ----------
        results : clml.experiments.Results or PAPER_RESULTS
        dataset : str
        loss_names : sequence of str, default=("hamming", "lrap", "micro_f1")
        **options
            ``reference``.
        """
        if dataset not in results.datasets:
            raise ValueError(
                f"dataset must be one of {list(results.datasets)}, got {dataset!r}."
            )
        row = list(results.datasets).index(dataset)
        losses = np.stack([results.table(name)[row] for name in loss_names], axis=1)
        known = np.isfinite(losses).all(axis=1)
        names = [
            name
            for name, is_known in zip(results.methods, known, strict=True)
            if is_known
        ]
        return cls(losses[known], loss_names, names=names, **options)

    @abstractmethod
    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw it: a subclass says how."""

    def _colours(self) -> list[Any]:
        """Return a colour of each member; a scale of colours where they are many."""
        m = len(self.losses)
        if m <= len(COLOURS):
            return list(COLOURS[:m])
        shades = import_matplotlib().colormaps[COLOUR_MAP]
        return [shades(i / (m - 1)) for i in range(m)]

    def _new_space(self, figure: Any, place: Any) -> Any:
        return figure.add_subplot(
            place, **({"projection": "3d"} if len(self.loss_names) == 3 else {})
        )

    def _draw_space(self, ax: Any, colour_of: Mapping[int, Any], alpha: float) -> None:
        """Fill the cells of owners that have a colour, and mark the members."""
        edges, owner = drawn_cells(*covering(self.losses, self.reference), _MOST_CUTS)
        owners = [i for i in np.unique(owner).tolist() if i in colour_of]
        if len(self.loss_names) == 2:
            for i in owners:
                self._fill_plane(ax, edges, owner == i, colour_of[i], alpha)
        else:
            # All at once: faces between cells of two owners would be drawn twice.
            filled = np.isin(owner, owners)
            colours = np.zeros((*owner.shape, 4))
            to_rgba = import_matplotlib().colors.to_rgba
            for i in owners:
                colours[owner == i] = to_rgba(colour_of[i], alpha)
            if filled.any():
                grid = np.meshgrid(*edges, indexing="ij")
                ax.voxels(*grid, filled, facecolors=colours, shade=True)
        for point, colour in zip(self.losses, self._colours(), strict=True):
            ax.plot(
                *point[:, None],
                "o",
                color=colour,
                markeredgecolor="black",
                markeredgewidth=0.5,
                markersize=5,
                zorder=5,
            )
        self._label(ax)

    @staticmethod
    def _fill_plane(
        ax: Any,
        edges: list[Floats],
        cells: NDArray[np.bool_],
        colour: Any,
        alpha: float,
    ) -> None:
        from matplotlib.patches import Rectangle

        for i, j in np.argwhere(cells):
            corner = edges[0][i], edges[1][j]
            size = edges[0][i + 1] - corner[0], edges[1][j + 1] - corner[1]
            patch = Rectangle(corner, *size, color=colour, alpha=alpha, linewidth=0)
            ax.add_patch(patch)

    def _label(self, ax: Any) -> None:
        low = self.losses.min(axis=0)
        low -= 0.05 * np.maximum(self.reference - low, 1e-9)
        for side, name, least, most in zip(
            "xyz", self.loss_names, low, self.reference, strict=False
        ):
            getattr(ax, f"set_{side}lim")(least, most)
            getattr(ax, f"set_{side}label")(loss_label(name))
        ax.locator_params(nbins=4)
        if len(self.loss_names) == 3:
            # Seen from where losses are small: there the members are.
            ax.invert_zaxis()
            ax.view_init(elev=24, azim=-125)
            ax.tick_params(labelsize=7, pad=0)


class ContributionsDisplay(_VolumeDisplay):
    """What each candidate alone covers of the space of two or three losses.

    Its volume is the candidate's Lebesgue contribution, which is what CLML ranks
    candidates by. Bars beside the space have the volumes.

    Parameters
    ----------
    losses : array-like of shape (m, o)
        Of each candidate, o 2 or 3, m 200 at most.
    loss_names : sequence of o str
    names : sequence of m str, default=None
        Of the candidates; None numbers them.
    reference : float or array-like of shape (o,), default=1.0
        The worst losses that count.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import ContributionsDisplay
    >>> display = ContributionsDisplay(
    ...     [[0.2, 0.5], [0.4, 0.1], [0.5, 0.5]], ["hamming", "lrap"], names="abc"
    ... )
    >>> display.contributions.round(2)
    array([0.1 , 0.24, 0.  ])
    """

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> ContributionsDisplay:
        """Draw the space and the bars.

        Parameters
        ----------
        ax : two matplotlib Axes, default=None
            The first one for the space: with three losses an Axes3D. None for a new
            figure.
        title : str, default=None

        Returns
        -------
        ContributionsDisplay
        """
        if ax is None:
            figure = new_figure(8.0, 3.8)
            grid = figure.add_gridspec(1, 2, width_ratios=(3, 2))
            panels = np.array(
                [self._new_space(figure, grid[0]), figure.add_subplot(grid[1])]
            )
        else:
            panels = panel_array(ax, 2)
        colours = self._colours()
        self._draw_space(panels[0], dict(enumerate(colours)), 0.75)
        panels[0].set_title("covered by one alone")
        self._draw_bars(panels[1], colours)
        figure = panels[0].figure
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = panels, figure
        return self

    def _draw_bars(self, ax: Any, colours: list[Any]) -> None:
        place = np.arange(len(self.losses))
        ax.barh(place, self.contributions, color=colours)
        ax.invert_yaxis()
        if len(place) <= _MOST_NAMES:
            ax.set_yticks(place, [plain_label(name) for name in self.names])
        ax.set(xlabel=loss_label("contribution"))
        ax.margins(x=0.02)


class MeasureDisplay(_VolumeDisplay):
    """What a set of candidates covers of the space of two or three losses.

    Its volume is the Lebesgue measure (hypervolume) of the set, which grows as any of
    the losses gets smaller. What several candidates cover is counted once, so that it
    is more than the sum of what each covers alone.

    Parameters
    ----------
    losses : array-like of shape (m, o)
        Of each candidate, o 2 or 3, m 200 at most.
    loss_names : sequence of o str
    names : sequence of m str, default=None
        Of the candidates; None numbers them.
    reference : float or array-like of shape (o,), default=1.0
        The worst losses that count.

    Attributes
    ----------
    ax_ : matplotlib Axes, with three losses an Axes3D
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import MeasureDisplay
    >>> display = MeasureDisplay([[0.2, 0.5], [0.4, 0.1]], ["hamming", "lrap"])
    >>> round(display.measure, 2), float(display.contributions.sum().round(2))
    (0.64, 0.34)
    """

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> MeasureDisplay:
        """Draw the space.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            With three losses an Axes3D. None for a new figure.
        title : str, default=None

        Returns
        -------
        MeasureDisplay
        """
        if ax is None:
            ax = self._new_space(new_figure(4.4, 4.0), 111)
        everything = dict.fromkeys([SEVERAL, *range(len(self.losses))], COLOURS[5])
        self._draw_space(ax, everything, 0.6)
        ax.set_title(f"{title}\n" * bool(title) + f"measure {self.measure:.3f}")
        self.ax_, self.figure_ = ax, ax.figure
        return self

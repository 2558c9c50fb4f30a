"""What the width of the network does: the measure, and the losses at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._style import (
    COLOUR_MAP,
    COLOURS,
    GREY,
    MARKERS,
    Floats,
    check_numbers,
    import_matplotlib,
    loss_label,
    new_figure,
    panel_array,
    styled,
)

if TYPE_CHECKING:
    from ..experiments.results import Results

_LOSSES = ("hamming", "lrap", "micro_f1")


class AblationDisplay:
    """Runs that differ in their embedding dimension alone.

    The left panel has the Lebesgue measure of what each run found, against the epoch;
    the right one the losses at the end against the dimension, beside printed ones.

    Parameters
    ----------
    dimensions : sequence of d int
    losses : array-like of shape (d, o)
        At the end of each run.
    loss_names : sequence of o str
    measures : mapping of int to array-like (epochs,), default=None
        By dimension: the measure after each epoch. None draws no left panel's curves.
    printed_dimensions : sequence of p int, default=()
    printed : array-like of shape (p, o), default=None
        The paper's losses, NaN where it has none.
    rows : str, default="validation"
        Which rows the losses are from, for the labels.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import AblationDisplay
    >>> display = AblationDisplay([20, 40], [[0.2, 0.3], [0.25, 0.3]],
    ...                           ["hamming", "lrap"], {20: [0.1, 0.4], 40: [0.1, 0.3]})
    >>> display.dimensions, display.measures[40]
    ([20, 40], array([0.1, 0.3]))
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        dimensions: Sequence[int],
        losses: ArrayLike,
        loss_names: Sequence[str],
        measures: Mapping[int, ArrayLike] | None = None,
        *,
        printed_dimensions: Sequence[int] = (),
        printed: ArrayLike | None = None,
        rows: str = "validation",
    ) -> None:
        self.dimensions = [int(dimension) for dimension in dimensions]
        self.loss_names = [str(name) for name in loss_names]
        if not self.dimensions or sorted(set(self.dimensions)) != self.dimensions:
            raise ValueError(
                "dimensions must be increasing, at least one of them, "
                f"got {self.dimensions}."
            )
        n_losses = len(self.loss_names)
        self.losses: Floats = check_numbers(
            "losses", losses, len(self.dimensions), n_losses
        )
        self.measures = {
            int(dimension): check_numbers("measures", curve, None)
            for dimension, curve in sorted((measures or {}).items())
        }
        self.printed_dimensions = [int(dimension) for dimension in printed_dimensions]
        self.printed: Floats = (
            np.empty((0, n_losses))
            if printed is None
            else check_numbers(
                "printed", printed, len(self.printed_dimensions), n_losses
            )
        )
        self.rows = rows

    @classmethod
    def from_results(
        cls, results: Results, dataset: str, *, loss_names: Sequence[str] = _LOSSES
    ) -> AblationDisplay:
        """Take the ablation of an experiment over ``embedding_dim``.

        Losses are means over splits and seeds, on validation rows where every run has
        them, as in the paper, else on test rows. Measures are of one run each.

        Parameters
        ----------
        results : clml.experiments.Results
        dataset : str
        loss_names : sequence of str, default=("hamming", "lrap", "micro_f1")
        """
        from ..experiments import PAPER_RESULTS

        methods = dimension_methods(results, dataset)
        if len(methods) < 2:
            raise ValueError(
                "results must have an ablation over embedding_dim with at least 2 "
                f"values done on {dataset!r}, got {len(methods)}."
            )
        for rows in ("validation", "test"):
            losses = np.array(
                [
                    [
                        _mean(results.values(dataset, method, loss, part=rows))
                        for loss in loss_names
                    ]
                    for method in methods.values()
                ]
            )
            if np.isfinite(losses).all():
                break
        measures = {}
        for dimension, method in methods.items():
            artifact = results.artifact(dataset, method) or {}
            if "history/archive_measure" in artifact:
                measures[dimension] = artifact["history/archive_measure"]
        printed = [
            row
            for row in PAPER_RESULTS.ablation
            if row.dataset.lower() == dataset.lower()
        ]
        return cls(
            list(methods),
            losses,
            loss_names,
            measures,
            printed_dimensions=[row.embedding_dim for row in printed],
            printed=np.array(
                [[getattr(row, name, np.nan) for name in loss_names] for row in printed]
            ).reshape(-1, len(loss_names)),
            rows=rows,
        )

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> AblationDisplay:
        """Draw both panels.

        Parameters
        ----------
        ax : two matplotlib Axes, default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        AblationDisplay
        """
        panels = (
            new_figure(8.6, 3.5).subplots(1, 2) if ax is None else panel_array(ax, 2)
        )
        self._draw_measures(panels[0])
        self._draw_losses(panels[1])
        figure = panels[0].figure
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = np.asarray(panels), figure
        return self

    def _draw_measures(self, ax: Any) -> None:
        # Dimensions have an order, so their colours have one; line styles alternate
        # because neighbours differ little.
        shades = import_matplotlib().colormaps[COLOUR_MAP]
        for i, (dimension, curve) in enumerate(self.measures.items()):
            ax.plot(
                np.arange(1, len(curve) + 1),
                curve,
                color=shades(0.9 * i / max(len(self.measures) - 1, 1)),
                linestyle=("-", "--", "-.", ":")[i % 4],
                label=str(dimension),
            )
        ax.set(xlabel="epoch", ylabel="Lebesgue measure of the archive")
        if self.measures:
            ax.legend(title="embedding dimension", ncols=2, loc="lower right")
        else:
            ax.text(0.5, 0.5, "no curves", ha="center", transform=ax.transAxes)

    def _draw_losses(self, ax: Any) -> None:
        from matplotlib.lines import Line2D

        handles = []
        for i, name in enumerate(self.loss_names):
            look: dict[str, Any] = {
                "color": COLOURS[i % len(COLOURS)],
                "marker": MARKERS[i % len(MARKERS)],
                "markersize": 5,
            }
            label = loss_label(name)
            handles += ax.plot(self.dimensions, self.losses[:, i], label=label, **look)
            if len(self.printed):
                ax.plot(
                    self.printed_dimensions,
                    self.printed[:, i],
                    linestyle=":",
                    markerfacecolor="white",
                    **look,
                )
        if len(self.printed):
            looks: list[dict[str, Any]] = [
                {"label": "ours", "linestyle": "-"},
                {"label": "printed", "linestyle": ":", "markerfacecolor": "white"},
            ]
            grey: dict[str, Any] = {"color": GREY, "marker": "o", "markersize": 5}
            handles += [Line2D([], [], **grey, **look) for look in looks]
        ax.set(xlabel="embedding dimension", ylabel=f"loss on {self.rows} rows")
        ax.set_xticks(sorted({*self.dimensions, *self.printed_dimensions}))
        ax.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3
        )


def dimension_methods(results: Results, dataset: str) -> dict[int, str]:
    """Return the methods of an ablation over embedding_dim, by it, increasing.

    Those that have losses on the dataset.
    """
    ablation = results.plan.get("ablation") or {}
    setting = str(ablation.get("setting"))
    if setting.rpartition("__")[2] != "embedding_dim":
        return {}
    done = {r["method"] for r in results.records if _is_done(r, dataset)}
    return {n: m for n, m in sorted(results.ablation.items()) if m in done}


def _is_done(record: Mapping[str, Any], dataset: str) -> bool:
    return record["dataset"] == dataset and record["status"] == "done"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")

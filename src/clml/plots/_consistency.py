"""Losses on their way to their Bayes values, as rows and epochs grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._support.paths import PathLike
from ._style import (
    COLOURS,
    GREY,
    MARKERS,
    Floats,
    loss_label,
    new_figure,
    panel_array,
    plain_label,
    styled,
)

_FIELDS = ("learner", "rows", "epochs", "seed", "loss", "value", "bayes")


class ConsistencyDisplay:
    """Each loss of several learners beside its Bayes value.

    The upper panels have the loss against the training rows, at the most epochs; the
    lower ones against the epochs, at the most rows. Lines are means over seeds, bars
    one standard deviation. A learner that is named as another, a comma and a word more
    shares its colour, dashed.

    Parameters
    ----------
    records : iterable of records or mappings
        Each with learner, rows, epochs, seed, loss, value and bayes, as
        :func:`clml.experiments.consistency_study` returns them.

    Attributes
    ----------
    ax_ : array of matplotlib Axes, (2, losses)
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from clml.plots import ConsistencyDisplay
    >>> row = {"learner": "A", "epochs": 5, "seed": 0, "loss": "lrap", "bayes": 0.1}
    >>> display = ConsistencyDisplay(
    ...     [row | {"rows": 50, "value": 0.3}, row | {"rows": 100, "value": 0.2}]
    ... )
    >>> display.curve("A", "lrap", "rows")
    (array([ 50., 100.]), array([0.3, 0.2]), array([0., 0.]))
    """

    ax_: Any
    figure_: Any

    def __init__(self, records: Iterable[Any]) -> None:
        self.records = [_as_dict(record) for record in records]
        if not self.records:
            raise ValueError("records must hold at least one record.")

    @property
    def losses(self) -> list[str]:
        """Names of the losses, in the order of the records."""
        return list(dict.fromkeys(record["loss"] for record in self.records))

    @property
    def learners(self) -> list[str]:
        """Names of the learners, in the order of the records."""
        return list(dict.fromkeys(record["learner"] for record in self.records))

    @classmethod
    def from_file(cls, path: PathLike) -> ConsistencyDisplay:
        """Read the file of a study.

        Parameters
        ----------
        path : str or path
            As :func:`clml.experiments.consistency_study` writes it.
        """
        from ..experiments.consistency import read_consistency

        return cls(read_consistency(path))

    def curve(
        self, learner: str, loss: str, along: str
    ) -> tuple[Floats, Floats, Floats]:
        """Return where, the mean and the standard deviation over seeds.

        Parameters
        ----------
        learner, loss : str
        along : {"rows", "epochs"}
            What grows; the other one is at its largest.
        """
        fixed = "epochs" if along == "rows" else "rows"
        most = max(record[fixed] for record in self.records)
        values: dict[int, list[float]] = {}
        for record in self.records:
            wanted = (learner, loss, most)
            if (record["learner"], record["loss"], record[fixed]) == wanted:
                values.setdefault(record[along], []).append(record["value"])
        where = sorted(values)
        means = [float(np.mean(values[place])) for place in where]
        spreads = [
            float(np.std(values[place], ddof=1)) if len(values[place]) > 1 else 0.0
            for place in where
        ]
        return np.array(where, dtype=float), np.array(means), np.array(spreads)

    @styled
    def plot(self, ax: Any = None, *, title: str | None = None) -> ConsistencyDisplay:
        """Draw two panels for each loss.

        Parameters
        ----------
        ax : array of matplotlib Axes (2, losses), default=None
            None for a new figure.
        title : str, default=None

        Returns
        -------
        ConsistencyDisplay
        """
        n = len(self.losses)
        if ax is None:
            figure = new_figure(2.9 * n + 0.4, 5.4)
            panels = figure.subplots(2, n, squeeze=False)
        else:
            panels = panel_array(ax, 2 * n).reshape(2, n)
            figure = panels[0, 0].figure
        for (upper, lower), loss in zip(panels.T, self.losses, strict=True):
            self._draw(upper, loss, "rows")
            self._draw(lower, loss, "epochs")
            upper.set_title(loss_label(loss))
        for row in panels:
            row[0].set_ylabel("expected loss")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        if ax is None:
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
        else:
            panels[0, 0].legend()
        if title:
            figure.suptitle(title)
        self.ax_, self.figure_ = panels, figure
        return self

    def _draw(self, ax: Any, loss: str, along: str) -> None:
        families = list(dict.fromkeys(map(_family, self.learners)))
        places: set[float] = set()
        n_learners = len(self.learners)
        for place, learner in enumerate(self.learners):
            where, mean, spread = self.curve(learner, loss, along)
            places.update(where.tolist())
            # A little beside each other, so that no bar hides another.
            where = where * 1.025 ** (place - (n_learners - 1) / 2)
            i = families.index(_family(learner))
            is_variant = learner != families[i]
            ax.errorbar(
                where,
                mean,
                yerr=spread,
                color=COLOURS[i % len(COLOURS)],
                marker=MARKERS[i % len(MARKERS)],
                markersize=4.5,
                markerfacecolor="white" if is_variant else None,
                linestyle="--" if is_variant else "-",
                elinewidth=0.8,
                capsize=2,
                label=plain_label(learner),
            )
        bayes = [r["bayes"] for r in self.records if r["loss"] == loss]
        ax.axhline(np.mean(bayes), color=GREY, linestyle=":", label="Bayes value")
        ax.set_xscale("log")
        # The numbers that were tried say more than powers of ten.
        ax.set_xticks(sorted(places), [f"{place:,.0f}" for place in sorted(places)])
        ax.set_xticks([], minor=True)
        fixed = "epochs" if along == "rows" else "rows"
        most = max(record[fixed] for record in self.records)
        what = "training rows" if along == "rows" else "epochs"
        ax.set_xlabel(f"{what} ({most:,} {fixed})")


def _family(learner: str) -> str:
    return learner.partition(", ")[0]


def _as_dict(record: Any) -> dict[str, Any]:
    """Return a record as a dictionary, or say what it lacks."""
    if not isinstance(record, Mapping):
        record = {n: getattr(record, n) for n in _FIELDS if hasattr(record, n)}
    missing = [name for name in _FIELDS if name not in record]
    if missing:
        raise ValueError(
            f"Each record must have {', '.join(_FIELDS)}, lacks {missing}."
        )
    return {name: record[name] for name in _FIELDS}

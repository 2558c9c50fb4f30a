"""Every figure of the paper, of an experiment's results and as printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._support.paths import PathLike
from ._ablation import AblationDisplay, dimension_methods
from ._calibration import CalibrationCurvesDisplay
from ._consistency import ConsistencyDisplay
from ._critical_difference import CriticalDifferenceDisplay
from ._front import FrontDisplay
from ._probabilities import LabelProbabilityDisplay
from ._style import FORMATS, loss_label, plain_label, save_figure, without_windows
from ._surrogate import SurrogateDisplay
from ._trajectory import TrajectoryDisplay
from ._volume import ContributionsDisplay, MeasureDisplay

if TYPE_CHECKING:
    from ..experiments.results import Results

#: What methods are ranked by.
MEASURES = ("hamming", "lrap", "micro_f1", "contribution", "geometric_mean")
CONSISTENCY = "consistency.csv"
# The method of the paper, as it was and with our defaults: the first that is there.
_OURS = ("CLML-paper", "CLML")
# One for every dataset: the start of the file's name, the display, words of its title.
_OF_A_RUN: tuple[tuple[str, Any, str], ...] = (
    ("trajectory", TrajectoryDisplay, "the space of the losses"),
    ("probabilities", LabelProbabilityDisplay, "label probabilities"),
    ("calibration", CalibrationCurvesDisplay, "calibration"),
    ("surrogate", SurrogateDisplay, "surrogate and losses"),
    ("front", FrontDisplay, "the front"),
)
# As _OF_A_RUN, of the test losses of all methods.
_OF_METHODS: tuple[tuple[str, Any, str], ...] = (
    ("contributions", ContributionsDisplay, "what each method alone covers"),
    ("measure", MeasureDisplay, "what the methods cover"),
)


class Figures(NamedTuple):
    """What :func:`write_figures` wrote, and what it could not.

    Attributes
    ----------
    files : list of Path
    skipped : list of str
        For each figure that has no data its name and the reason.
    """

    files: list[Path]
    skipped: list[str]


# A figure to be: the name of its file, what makes its display, its title.
Task = tuple[str, Callable[[], Any], str]


def write_figures(
    results: Results,
    folder: PathLike,
    formats: Sequence[str] = ("svg", "png"),
    *,
    control: str | None = None,
) -> Figures:
    """Write every figure of the paper for the results of an experiment.

    Critical-difference diagrams of five measures, ours and the printed ones; for each
    dataset the contributions and the measure of the methods, and the trajectory, label
    probabilities, calibration, surrogate and front of one run; the ablation; the study
    of consistency, where the results' folder has its ``consistency.csv``.

    Parameters
    ----------
    results : clml.experiments.Results
    folder : str or path
        Is made if it is absent.
    formats : sequence of {"svg", "png", "pdf"}, default=("svg", "png")
    control : str, default=None
        The method that others are compared with, and whose runs are drawn; None for
        the paper's, "CLML-paper", else "CLML", else the first one with runs to draw.

    Returns
    -------
    Figures
        ``files`` that were written and, for figures without data, reasons.
    """
    if isinstance(formats, str) or not set(formats) <= set(FORMATS):
        raise ValueError(
            f"formats must be a sequence of some of {FORMATS}, got {formats!r}."
        )
    if control is not None and control not in results.methods:
        raise ValueError(f"control must be one of {results.methods}, got {control!r}.")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    ours = control or _our_method(results)
    written = Figures([], [])
    for name, make, title in _tasks(results, ours):
        try:
            display = make()
        except ValueError as reason:
            written.skipped.append(f"{name}: {reason}")
            continue
        with without_windows():
            display.plot(title=title)
        for kind in formats:
            path = place / f"{name}.{kind}"
            written.files.append(save_figure(display.figure_, path))
    return written


def _tasks(results: Results, ours: str) -> Iterator[Task]:
    from ..experiments import PAPER_RESULTS

    for measure in MEASURES:
        name = f"critical_difference_{measure}"
        title = _capital(loss_label(measure))
        yield name, partial(_ranks, results, measure, ours), f"{title}: mean ranks"
        printed = partial(_ranks, PAPER_RESULTS, measure, "CLML")
        yield f"{name}_printed", printed, f"{title}: mean ranks, printed"
    for dataset in results.datasets:
        for kind, volume, words in _OF_METHODS:
            make = partial(volume.from_results, results, dataset)
            yield (
                f"{kind}_{_file_name(dataset)}",
                make,
                plain_label(f"{dataset}: {words}"),
            )
        for kind, display, words in _OF_A_RUN:
            make = partial(_of_run, display, results, dataset, ours)
            name = f"{kind}_{_file_name(dataset)}"
            yield name, make, plain_label(f"{ours} on {dataset}: {words}")
    widths = [d for d in results.datasets if len(dimension_methods(results, d)) > 1]
    for dataset in widths:
        make = partial(AblationDisplay.from_results, results, dataset)
        name = f"ablation_{_file_name(dataset)}"
        yield name, make, plain_label(f"Embedding dimension on {dataset}")
    if not widths:
        yield "ablation", _no_ablation, ""
    yield "consistency", partial(_consistency, results), "Losses and their Bayes values"


def _ranks(results: Any, measure: str, control: str) -> CriticalDifferenceDisplay:
    """Rank methods by a measure, on the datasets that every method has."""
    from ..experiments.measures import ranked_table

    table = ranked_table(results, measure)
    complete = table[np.isfinite(table).all(axis=1)]
    if len(complete) < 2 or table.shape[1] < 2:
        raise ValueError(
            "ranks need at least 2 methods and 2 datasets that all of them have, "
            f"got {table.shape[1]} and {len(complete)}"
        )
    names = list(results.methods)
    return CriticalDifferenceDisplay.from_table(complete, names, control=control)


def _of_run(display: Any, results: Results, dataset: str, method: str) -> Any:
    """Return a display of what the first run of a method left."""
    artifact = results.artifact(dataset, method)
    if artifact is None:
        raise ValueError(f"the first run of {method} left no arrays")
    return display.from_artifact(artifact)


def _no_ablation() -> AblationDisplay:
    raise ValueError("no dataset has two runs that differ in embedding_dim alone")


def _consistency(results: Results) -> ConsistencyDisplay:
    if results.folder is None or not (results.folder / CONSISTENCY).is_file():
        raise ValueError(f"the results have no {CONSISTENCY}")
    return ConsistencyDisplay.from_file(results.folder / CONSISTENCY)


def _our_method(results: Results) -> str:
    """Return the method of the paper, else the first that left something to draw."""
    drawable = {r["method"] for r in results.records if r.get("artifact")}
    for method in (*_OURS, *results.methods):
        if method in results.methods and method in drawable:
            return method
    return str(results.methods[0])


def _file_name(text: str) -> str:
    """Return a dataset's name as part of a file's: letters, digits, dots, dashes."""
    return re.sub(r"[^\w.-]+", "_", text)[:80]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

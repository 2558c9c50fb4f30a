"""From the results of an experiment to the data of its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.paths import PathLike
from ._costs import costs_group, failures_group, is_done, listed, origin_group
from ._runs import run_of_artifact
from ._sections import (
    Floats,
    group,
    loss_title,
    matrix_table,
    winners_table,
)
from ._significance import ranks_table, significance_group
from .page import build_page, write_page


def write_report(results: Any, path: PathLike) -> Path:
    """Write the page of an experiment.

    Parameters
    ----------
    results : Results, str or path
        What :func:`clml.experiments.run_experiment` returns, or the folder that it
        wrote to.
    path : str or path
        Where the HTML file goes. It needs no other file and no network.

    Returns
    -------
    Path
        Where it is.
    """
    return write_page(path, build_page(experiment_data(results)))


def experiment_data(results: Any) -> dict[str, Any]:
    """Return what a page shows of an experiment, as :func:`build_page` takes it.

    Parameters
    ----------
    results : Results, str or path

    Returns
    -------
    dict
        ``title``, ``subtitle``, ``groups``, ``runs``, ``notes``: numbers, text and
        nothing else, as JSON has them.
    """
    if isinstance(results, str | Path):
        from ..experiments.results import Results

        results = Results.read(results)
    if not hasattr(results, "records") or not hasattr(results, "table"):
        raise TypeError(
            "results must be Results of an experiment or the folder of one, "
            f"got {type(results).__name__}."
        )
    from ..experiments.measures import ranked_table, whole_cells

    done = [r for r in results.records if is_done(r)]
    measures = _measures(results)
    # Means over some of the splits are shown, but not compared.
    ranked = {name: ranked_table(results, name) for name in measures}
    whole = whole_cells(results)
    groups = [
        _overview(results, done, measures, ranked),
        _losses(results, measures, whole),
        _combined(results, measures, whole),
        significance_group(ranked, results.methods, results.datasets),
        costs_group(results),
        failures_group(results),
        origin_group(results, done),
    ]
    runs, notes = _runs(results, done)
    return {
        "title": _title(results.plan),
        "subtitle": f"{_many(results.methods, 'method')} on "
        f"{_many(results.datasets, 'dataset')}. Losses are on test rows, and smaller "
        "is better.",
        "groups": [one for one in groups if one is not None],
        "runs": runs,
        "notes": notes,
    }


def _title(plan: dict[str, Any]) -> str:
    name = plan.get("name") or "experiment"
    return "Results of an experiment" if name == "experiment" else f"Results of {name}"


def _many(things: Any, name: str) -> str:
    n = len(things)
    return f"{n} {name}" if n == 1 else f"{n} {name}s"


def _measures(results: Any) -> dict[str, tuple[Floats, Floats | None]]:
    """Return mean and spread of each loss and of what is computed from them."""
    from ..experiments.measures import (
        collect,
        geometric_mean_of,
        mean_and_spread,
        measure_table,
    )

    found: dict[str, tuple[Floats, Floats | None]] = {
        name: (results.table(name), results.spread(name)) for name in results.losses
    }
    found["geometric_mean"] = mean_and_spread(
        results, collect(results, geometric_mean_of)
    )
    found["contribution"] = (measure_table(results, "contribution"), None)
    # A loss that nobody recorded would only be a column of dashes.
    return {k: v for k, v in found.items() if not np.isnan(v[0]).all()}


def _overview(
    results: Any,
    done: list[dict[str, Any]],
    measures: dict[str, tuple[Floats, Floats | None]],
    ranked: dict[str, Floats],
) -> dict[str, Any]:
    text = [
        f"{len(done)} cells are done and {len(results.failed)} failed: a cell is one "
        "method trained on one split of one dataset.",
        *(str(note) for note in listed(results.plan.get("notes"))),
    ]
    losses = {
        name: (ranked[name], spread)
        for name, (_, spread) in measures.items()
        if name != "contribution"
    }
    tables = []
    if losses:
        tables.append(winners_table(results.datasets, results.methods, losses))
        ranks = ranks_table(ranked, results.methods)
        tables += [] if ranks is None else [ranks]
    else:
        text.append("Nothing has finished yet.")
    return group("overview", "Overview", text=text, tables=tables)


def _losses(
    results: Any,
    measures: dict[str, tuple[Floats, Floats | None]],
    whole: NDArray[np.bool_],
) -> dict[str, Any] | None:
    tables = [
        matrix_table(
            f"loss-{place}",
            loss_title(name),
            results.datasets,
            results.methods,
            *measures[name],
            whole=whole,
        )
        for place, name in enumerate(results.losses)
        if name in measures
    ]
    if not tables:
        return None
    text = [
        "Mean and standard deviation over splits and seeds, on test rows. Bold: the "
        "smallest of a row."
    ]
    return group("losses", "Losses", text=text, tables=tables)


def _combined(
    results: Any,
    measures: dict[str, tuple[Floats, Floats | None]],
    whole: NDArray[np.bool_],
) -> dict[str, Any] | None:
    from ..experiments.measures import normalise

    names = (results.datasets, results.methods)
    tables = []
    if "geometric_mean" in measures:
        tables.append(
            matrix_table(
                "geometric-mean",
                "Geometric mean of the losses",
                *names,
                *measures["geometric_mean"],
                whole=whole,
                note="Of Hamming loss, 1 \u2212 LRAP and 1 \u2212 micro-F1 of each "
                "cell. Smaller is better.",
            )
        )
    if "contribution" in measures:
        mean = measures["contribution"][0]
        about = "What a method alone covers of the space of the three losses, below 1"
        tables += [
            matrix_table(
                "contribution",
                "Lebesgue contributions",
                *names,
                mean,
                larger=True,
                digits=5,
                note=f"{about}. Larger is better; 0 where others are better in all.",
            ),
            matrix_table(
                "normalised-contribution",
                "Normalised contributions",
                *names,
                normalise(mean),
                larger=True,
                note="Contributions over their sum on the dataset.",
            ),
        ]
    return group("together", "All losses together", tables=tables) if tables else None


def _runs(
    results: Any, done: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the first stored run of each dataset and method."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for record in sorted(done, key=lambda r: (r["split"], r["seed"])):
        if record.get("artifact"):
            first.setdefault((record["dataset"], record["method"]), record)
    runs: list[dict[str, Any]] = []
    notes: list[str] = []
    for dataset in results.datasets:
        for method in results.methods:
            if (dataset, method) not in first:
                continue
            record = first[dataset, method]
            name = f"{dataset}, {method}, split {record['split']}"
            try:
                artifact = results.artifact(
                    dataset, method, split=record["split"], seed=record["seed"]
                )
            except (OSError, ValueError) as error:  # one damaged file, not the page
                notes.append(f"{name}: {error}")
                continue
            if artifact is None:
                continue
            run, trouble = run_of_artifact(name, artifact, record)
            runs += [] if run is None else [run]
            notes += trouble
    return runs, notes

"""Draw the paper's figures from runs with the paper's settings, and keep the curves.

    clml bench docs/results/paper/plan.toml -o runs
    python benchmarks/paper_figures.py runs docs/results

reads the runs and writes into the second folder, which has the records of all methods:

- ``paper/curves.csv``: the incumbent's losses and its L4 by epoch;
- ``records.jsonl``: the L4 of the same runs, whose other losses must be equal to the
  last bit, and the tables that have it as a column;
- ``figures``: trajectories, label probabilities and calibration of these runs,
  contributions and the measure of all methods.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
import numpy as np

from clml.experiments import Results, write_tables
from clml.plots import (
    CalibrationCurvesDisplay,
    ContributionsDisplay,
    LabelProbabilityDisplay,
    MeasureDisplay,
    TrajectoryDisplay,
    save_figure,
)

METHOD = "CLML-paper"
LOSSES = ("hamming", "lrap", "micro_f1")
# Where the paper shows probabilities, and a dataset with more labels.
PROBABILITIES = ("emotions", "yeast")
VOLUMES = "emotions"
COLUMNS = ("dataset", "epoch", "rows", *LOSSES, "row_log_loss")


def curves(results: Results, every: int = 10) -> list[list]:
    """Return the first, each tenth and the last epoch of each dataset's first run.

    The epoch with the smallest L4 is there as well.
    """
    rows = []
    for dataset in results.datasets:
        artifact = results.artifact(dataset, METHOD)
        for part in ("train", "validation"):
            losses = artifact[f"history/incumbent_{part}"]
            l4 = artifact[f"history/incumbent_row_log_loss_{part}"]
            shown = {
                0,
                len(l4) - 1,
                int(l4.argmin()),
                *range(every - 1, len(l4), every),
            }
            for epoch in sorted(shown):
                numbers = [f"{value:.5g}" for value in (*losses[epoch], l4[epoch])]
                rows.append([dataset, epoch + 1, part, *numbers])
    return rows


def complete(records: Path, runs: Results) -> int:
    """Add the L4 of runs to the records of the same ones; return how many there are.

    The records are of a version that did not keep it.
    """
    known = {
        (r["dataset"], r["method"].replace("network__", ""), r["split"], r["seed"]): r
        for r in runs.done
    }
    lines, found = [], 0
    for line in records.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        place = tuple(record[key] for key in ("dataset", "method", "split", "seed"))
        run = known.get(place)
        if run is not None:
            l4 = run["losses"]["validation"].pop("row_log_loss")
            record["losses"]["validation"].pop("row_log_loss", None)
            if run["losses"] != record["losses"]:
                raise ValueError(f"{place} has other losses than its record.")
            record["losses"]["validation"]["row_log_loss"] = l4
            line, found = json.dumps(record), found + 1
        lines.append(line)
    records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def main(runs: str, folder: str) -> None:
    """Write everything."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    results, place = Results.read(runs), Path(folder)
    kept, figures = place / "paper", place / "figures"
    with (kept / "curves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *curves(results)])
    print(complete(place / "records.jsonl", results), "records completed")
    with TemporaryDirectory() as written:
        for path in write_tables(Results.read(place), written, ("md", "tex", "csv")):
            if (place / "tables" / path.name).exists():  # others have no numbers
                shutil.copy(path, place / "tables")

    def draw(name: str, display, title: str) -> None:
        display.plot(title=title)
        save_figure(display.figure_, figures / f"{name}.png", dpi=100)
        pyplot.close(display.figure_)

    for dataset in results.datasets:
        artifact = results.artifact(dataset, METHOD)
        trajectory = TrajectoryDisplay.from_artifact(artifact)
        assert np.isfinite(trajectory.cross_entropy).all()
        title = f"{METHOD} on {dataset}"
        draw(f"trajectory_{dataset}", trajectory, f"{title}: the space of the losses")
        if dataset in PROBABILITIES:
            shown = LabelProbabilityDisplay.from_artifact(artifact)
            draw(f"probabilities_{dataset}", shown, f"{title}: label probabilities")
            curve = CalibrationCurvesDisplay.from_artifact(artifact)
            draw(f"calibration_{dataset}", curve, f"{title}: calibration")
    methods = Results.read(place)
    for name, display, words in (
        ("contributions", ContributionsDisplay, "what each method alone covers"),
        ("measure", MeasureDisplay, "what the methods cover"),
    ):
        shown = display.from_results(methods, VOLUMES)
        draw(f"{name}_{VOLUMES}", shown, f"{VOLUMES}: {words}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the model of an epoch on a cluster says, in words and tables.

    python benchmarks/_scale_page.py

Reads ``results/cluster_epoch.csv``, as ``cluster_epoch.py`` writes it; writes all of it
to ``results/cluster_epoch.md``, and the figures of ``docs/scale.md`` in their places.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from _scale_model import (
    BANDWIDTH,
    PARTITIONS,
    PARTS,
    Epoch,
    Measured,
    Model,
    fit,
    read,
    relative_errors,
    row_bytes,
    unseen_errors,
    usual,
)

FOLDER = Path(__file__).parent
TABLE = FOLDER / "results" / "cluster_epoch.csv"
REPORT = FOLDER / "results" / "cluster_epoch.md"
PAGE = FOLDER.parent / "docs" / "scale.md"
# What is foretold, and shown of what was measured.
WEIGHTS, POPULATION = 1650, 64


def _quantity(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def _seconds(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1e3:,.1f} s"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def travels(measured: Sequence[Measured]) -> str:
    """Return what travels, by the number of rows, and from rows in no order."""
    most = max(one.epoch.workers for one in measured)
    few = min(one.epoch.partitions for one in measured)
    shown = [
        one
        for one in measured
        if one.epoch.weights == WEIGHTS
        or one.epoch.partitions > few
        or one.placement == "scattered"
    ]
    lines = [
        (
            f"{one.epoch.rows:,}",
            f"{one.epoch.partitions}, {one.placement}",
            one.epoch.population,
            f"{one.epoch.weights:,}",
            _quantity(one.letter),
            _quantity(one.answer),
            _quantity(one.wire),
            _quantity(one.epoch.population_bytes),
        )
        for one in shown
        if one.epoch.workers == most and one.epoch.population >= POPULATION
    ]
    head = (
        "rows", "partitions", "population", "weights", "letter", "answer",
        "on the wire", "a population would be",
    )  # fmt: skip
    return f"Per epoch and worker, with {most} workers:\n\n{_table(head, lines)}"


def epochs(measured: Sequence[Measured]) -> str:
    """Return how epochs divide, by rows and workers."""
    shown = [
        one
        for one in usual(measured)
        if (one.epoch.population, one.epoch.weights) == (POPULATION, WEIGHTS)
    ]
    alone = {one.epoch.rows: one.total for one in shown if one.epoch.workers == 1}
    lines = [
        (
            f"{one.epoch.rows:,}",
            one.epoch.workers,
            f"{one.total:.0f} ({one.spread:.0f})",
            *(f"{one.parts[name]:.0f}" for name in PARTS),
            f"{alone[one.epoch.rows] / one.total:.2f}",
        )
        for one in sorted(shown, key=lambda one: (one.epoch.rows, one.epoch.workers))
    ]
    head = ("rows", "workers", "epoch, ms (spread)", *PARTS, "times as fast")
    return f"On a machine of {measured[0].cores} cores:\n\n{_table(head, lines)}"


def predictions(model: Model) -> str:
    """Return what the model says of a billion rows."""
    lines = []
    for population in (64, 256):
        for workers in (10, 100, 1000):
            epoch = Epoch(workers, 10**9, population, WEIGHTS, PARTITIONS * workers)
            instead = 1e3 * workers * epoch.population_bytes / BANDWIDTH
            lines.append(
                (
                    population,
                    f"{workers:,}",
                    _seconds(model.total(epoch) + model.sent(epoch)),
                    _seconds(model.part("compute", epoch)),
                    _seconds(model.part("network", epoch)),
                    _seconds(model.sent(epoch)),
                    _seconds(instead),
                )
            )
    head = (
        "population", "workers", "epoch", "of it compute", "tasks",
        "bytes", "bytes, if populations were sent",
    )  # fmt: skip
    return _table(head, lines)


def where_it_ends(model: Model, measured: Sequence[Measured]) -> str:
    """Return the sentences on the model and its limits."""
    errors = 100 * relative_errors(model, measured)
    latency, task, partition = model.parts["network"]
    ends = []
    for rows in (10**6, 10**8, 10**9):
        epoch = Epoch(1, rows, POPULATION, WEIGHTS, PARTITIONS)
        best = model.best_workers(epoch)
        at_best = replace(epoch, workers=best, partitions=PARTITIONS * best)
        ends.append(f"{best:,} ({_seconds(model.total(at_best))}) of {rows:,} rows")
    each = row_bytes(measured)
    sentences = [
        f"Errors of the model on what it was fitted to: {np.median(errors):.0f} % in "
        f"the median, {errors.max():.0f} % at worst.",
        f"A pass costs {latency:.1f} ms, {task:.2f} ms a worker and "
        f"{1e3 * partition:.0f} µs a partition, whatever the rows.",
        f"More workers stop helping where their tasks cost as much as their rows: at "
        f"{', '.join(ends)}, for a population of {POPULATION} and "
        f"{WEIGHTS:,} weights.",
        f"While rows are prepared a worker takes {each:.0f} bytes of memory a row of "
        f"210 bytes: {each * 1e9 / 1000 / 2**30:.1f} GiB each for 1e9 rows on 1,000 "
        "workers.",
    ]
    unseen = unseen_errors(measured)
    if unseen is not None:
        workers, off = unseen
        sentences.insert(
            1,
            f"Fitted to smaller clusters alone it is off by {100 * np.median(off):.0f} "
            f"% in the median, {100 * off.max():.0f} % at worst, with {workers} "
            "workers.",
        )
    return "\n".join(f"- {sentence}" for sentence in sentences)


def sections(measured: Sequence[Measured]) -> dict[str, str]:
    """Return the parts of the page that are figures, by their names."""
    model = fit(measured)
    return {
        "travels": travels(measured),
        "epochs": epochs(measured),
        "predictions": predictions(model),
        "ends": where_it_ends(model, measured),
    }


def filled(page: str, figures: dict[str, str]) -> str:
    """Return a page with its figures between ``<!-- name -->`` and ``<!-- / -->``."""
    for name, text in figures.items():
        pattern = rf"(<!-- {name} -->\n)(?:(?!<!-- / -->).)*(<!-- / -->)"
        page, found = re.subn(
            pattern, lambda m, t=text: f"{m[1]}{t}\n{m[2]}", page, flags=re.DOTALL
        )
        if found != 1:
            raise ValueError(f"The page must have one <!-- {name} -->, it has {found}.")
    return page


def report(measured: Sequence[Measured]) -> str:
    """Return all lines and the coefficients as a page of their own."""
    model = fit(measured)
    head = (
        "workers", "rows", "population", "weights", "partitions", "placement",
        "epoch, ms (spread)", *PARTS, "model", "wire bytes",
    )  # fmt: skip
    lines = [
        (
            *vars(one.epoch).values(),
            one.placement,
            f"{one.total:.1f} ({one.spread:.1f})",
            *(f"{one.parts[name]:.1f}" for name in PARTS),
            f"{model.total(one.epoch):.1f}",
            one.wire,
        )
        for one in measured
    ]
    text = ["# An epoch on a cluster", "", _table(head, lines), "", "## The model", ""]
    for name in PARTS:
        numbers = ", ".join(f"{value:.3g}" for value in model.parts[name])
        text.append(f"- {name}, ms a term: {numbers}")
    numbers = ", ".join(f"{value:.3g}" for value in model.wire)
    text.append(f"- bytes on the wire a term: {numbers}")
    return "\n".join(text) + "\n"


def main() -> None:
    """Fit the model and write what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    measured = read(arguments.table)
    figures = sections(measured)
    print("\n\n".join(figures.values()))
    REPORT.write_text(report(measured), encoding="utf-8")
    page = filled(PAGE.read_text(encoding="utf-8"), figures)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

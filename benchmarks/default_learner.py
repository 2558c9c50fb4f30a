"""The default learner on the reported splits, beside a tuned forest and stacking.

    python benchmarks/default_learner.py run --jobs 2
    python benchmarks/default_learner.py table

``run`` fits ``CLMLClassifier()`` on the splits of ``learning_power.py`` and adds a line
to ``results/default_learner.csv``; what is there already is not computed again.
``table`` writes ``results/default_learner.md``, with what ``learning_power.csv`` holds
of the same splits. The default's settings were chosen on splits with seeds from 100 on,
whose rows are the same.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _jobs import LOSSES, geometric_mean, mean_and_spread, read, run_jobs

from clml import CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "default_learner.csv"
OTHERS = RESULTS / "learning_power.csv"
KEY = ("dataset", "split")
FIELDS = (*KEY, *LOSSES, "test_decisions")
# Splits of each dataset, from 0 on; from the quickest to the slowest.
SPLITS = {
    "flags": 10,
    "genbase": 10,
    "emotions": 10,
    "cal500": 10,
    "enron": 3,
    "yeast": 3,
    "tmc2007-500": 1,
}
BESIDE = ("tuned random forest", "stacking", "CLML")
HEADER = """\
# The default learner

Geometric mean of Hamming loss, 1 - LRAP and 1 - micro-F1 on the 30 % of rows that are
held out: mean (standard deviation) over the splits from 0 on, whose number is in
brackets after the name. Every method had the same rows. Settings were chosen on splits
with seeds from 100 on, of the same rows. Narrow members are
`CLMLClassifier(network="paper")`. What stands beside the default was computed for
[another table](learning_power.md). Made by `benchmarks/default_learner.py`.

| dataset | CLML | tuned forest | stacking | narrow members | CLML / tuned forest | \
CLML / stacking |
|---|---|---|---|---|---|---|"""


def run_job(dataset: str, split: int) -> list[dict[str, Any]]:
    """Fit the default on one split; return its losses on the other rows."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf = CLMLClassifier(random_state=split).fit(X, Y)  # constant labels
    losses = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    found = dict(zip(LOSSES, losses.tolist(), strict=True))
    return [
        {"dataset": dataset, "split": split, **found, "test_decisions": Y_test.size}
    ]


def values(
    rows: list[dict[str, str]], dataset: str, n: int, **only: str
) -> list[float]:
    """Return the geometric mean on each of the first splits that there are rows of."""
    found = {
        int(row["split"]): geometric_mean(row)
        for row in rows
        if row["dataset"] == dataset
        and all(row[name] == value for name, value in only.items())
    }
    return [found[split] for split in range(n) if split in found]


def write_table() -> None:
    own, others = read(ROWS), read(OTHERS)
    lines, ratios = [HEADER], []
    for name, n in SPLITS.items():
        mine = values(own, name, n)
        if len(mine) < n:
            continue
        beside = [values(others, name, n, method=method) for method in BESIDE]
        cells = [mean_and_spread(v, 4) for v in (mine, *beside)]
        ratios.append([np.mean(mine) / np.mean(v) for v in beside[:2]])
        shown = [f"{ratio:.3f}" for ratio in ratios[-1]]
        lines.append(f"| {name} ({n}) | {' | '.join([*cells, *shown])} |")
    means = np.exp(np.log(ratios).mean(axis=0))
    shown = " | ".join(f"{mean:.3f}" for mean in means)
    lines.append(f"| geometric mean of {len(ratios)} | | | | | {shown} |")
    text = "\n".join(lines) + "\n"
    (RESULTS / "default_learner.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--datasets", nargs="+", choices=SPLITS, default=list(SPLITS))
    runs.add_argument("--jobs", type=int, default=1)
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        jobs = [(name, s) for name in given.datasets for s in range(SPLITS[name])]
        run_jobs(ROWS, FIELDS, KEY, jobs, run_job, given.jobs)
    write_table()


if __name__ == "__main__":
    main()

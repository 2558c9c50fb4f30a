"""Wide networks as members, beside narrow ones, on development splits.

    python benchmarks/wide_networks.py run --jobs 2
    python benchmarks/wide_networks.py table

``run`` fits each learner on 70 % of the rows and adds a line to
``results/wide_networks.csv``; what is there already is not computed again. ``table``
writes ``results/wide_networks.md``. Splits have the seeds 100 and 101: they are for
development, and share their rows with the splits from 0 on that other tables report.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _jobs import LOSSES, geometric_mean, mean_and_spread, read, run_jobs

from clml import CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values
from clml.network import PaperNetwork, WideNetwork

RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "wide_networks.csv"
SPLITS = (100, 101)
KEY = ("dataset", "split", "learner")
FIELDS = (*KEY, *LOSSES, "test_decisions")
# From the quickest to the slowest.
DATASETS = (
    "flags",
    "virus-go",
    "foodtruck",
    "chd49",
    "emotions",
    "birds",
    "water-quality",
    "genbase",
    "cal500",
    "medical",
    "plant-go",
    "gnegative-go",
    "enron",
    "yeast",
    "scene",
)
LEARNERS: dict[str, dict[str, Any]] = {
    "narrow": {"network": PaperNetwork()},
    "wide": {"network": WideNetwork()},
}
HEADER = """\
# Wide networks beside narrow ones

Geometric mean of Hamming loss, 1 - LRAP and 1 - micro-F1 on the 30 % of rows that are
held out: mean (standard deviation) over two development splits, seeds 100 and 101,
whose rows are also those of the reported splits. Narrow members are those of
`CLMLClassifier(network="paper")`, wide ones, features of kernels among them, those of
`CLMLClassifier()`. Made by `benchmarks/wide_networks.py`.

| dataset | narrow | wide | wide / narrow |
|---|---|---|---|"""


def run_job(dataset: str, split: int, learner: str) -> list[dict[str, Any]]:
    """Fit a learner on one split; return its losses on the other rows."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, random_state=split
    )
    clf = CLMLClassifier(random_state=0, **LEARNERS[learner])
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf.fit(X, Y)  # rare labels are constant in some splits
    losses = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    return [
        {
            **dict(zip(KEY, (dataset, split, learner), strict=True)),
            **dict(zip(LOSSES, losses.tolist(), strict=True)),
            "test_decisions": Y_test.size,
        }
    ]


def write_table() -> None:
    rows = read(ROWS)
    lines, ratios = [HEADER], []
    for name in DATASETS:
        cells = [name]
        means = []
        for learner in LEARNERS:
            found = [r for r in rows if (r["dataset"], r["learner"]) == (name, learner)]
            values = [geometric_mean(row) for row in found]
            if len(values) == len(SPLITS):
                means.append(np.mean(values))
                cells.append(mean_and_spread(values, 4))
        if len(means) == len(LEARNERS):
            ratios.append(means[1] / means[0])
            lines.append(f"| {' | '.join(cells)} | {ratios[-1]:.3f} |")
    mean = float(np.exp(np.log(ratios).mean()))
    lines.append(f"| geometric mean of {len(ratios)} | | | {mean:.3f} |")
    (RESULTS / "wide_networks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    runs.add_argument("--jobs", type=int, default=1)
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        jobs = list(itertools.product(given.datasets, SPLITS, LEARNERS))
        run_jobs(ROWS, FIELDS, KEY, jobs, run_job, given.jobs)
    write_table()


if __name__ == "__main__":
    main()

"""Ask whether other losses than the default pay in what was asked for.

    python benchmarks/asked_losses.py run --jobs 2
    python benchmarks/asked_losses.py table

``run`` fits ``CLMLClassifier(losses=...)`` for each loss alone and for pairs, on splits
of development (seeds from 100 on), beside ``CLMLClassifier()`` on the same rows, and
adds the losses on the other 30 % of rows to ``results/asked_losses.csv``. ``table``
writes ``results/asked_losses.md``: in the losses that were asked for, the geometric
mean of the ratios to the default.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _jobs import read, run_jobs

from clml import CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "asked_losses.csv"
ALONE = (
    "hamming",
    "lrap",
    "micro_f1",
    "macro_f1",
    "example_f1",
    "jaccard",
    "subset_zero_one",
    "ranking_loss",
    "coverage",
    "one_error",
    "precision_at_1",
    "precision_at_3",
    "precision_at_5",
)
PAIRED = ("hamming", "lrap", "micro_f1", "macro_f1", "subset_zero_one")
DEFAULT = ("hamming", "lrap", "micro_f1")
DATASETS = (
    "flags",
    "virus-go",
    "foodtruck",
    "chd49",
    "emotions",
    "birds",
    "genbase",
    "cal500",
    "water-quality",
    "medical",
    "plant-go",
    "gnegative-go",
    "enron",
    "yeast",
    "scene",
    "human-go",
)
SPLITS = (100, 101)
KEY = ("dataset", "asked", "split")
FIELDS = (*KEY, *ALONE)
HEADER = """\
# Asking for other losses

`CLMLClassifier(losses=...)` beside `CLMLClassifier()` on the same 70 % of rows: losses
that were asked for on the other 30 %, divided by the default's; of pairs the geometric
mean of both ratios. Geometric means over {n} datasets, development splits {splits}; in
brackets, on how many datasets it is better and on how many worse by more than 0.5 %,
and the largest ratio. Made by `benchmarks/asked_losses.py`.

| asked for | beside the default | better, worse | largest |
|---|---|---|---|"""


def run_job(dataset: str, asked: str, split: int) -> list[dict[str, Any]]:
    """Fit with some losses, their names joined by plus signs."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    losses = DEFAULT if asked == "default" else tuple(asked.split("+"))
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf = CLMLClassifier(losses=losses, random_state=split).fit(X, Y)
        found = loss_values(Y_test, clf.decision_function(X_test), ALONE)
    job = dict(zip(KEY, (dataset, asked, split), strict=True))
    return [job | {n: f"{v:.6f}" for n, v in zip(ALONE, found, strict=True)}]


def _ratio(own: list[float], default: list[float]) -> float:
    # A loss of 0 counts as half of the smallest error that the default could make.
    small = 1e-4
    return float((np.mean(own) + small) / (np.mean(default) + small))


def write_table() -> None:
    rows = read(ROWS)
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["asked"]), []).append(row)
    lines = []
    asked_for = [
        *ALONE,
        *("+".join(pair) for pair in itertools.combinations(PAIRED, 2)),
    ]
    sets = [name for name in DATASETS if (name, "default") in found]
    for asked in asked_for:
        ratios = []
        for name in sets:
            mine, theirs = found.get((name, asked), []), found[name, "default"]
            if len(mine) < len(SPLITS):
                continue
            logs = [
                np.log(
                    _ratio(
                        [float(r[loss]) for r in mine], [float(r[loss]) for r in theirs]
                    )
                )
                for loss in asked.split("+")
            ]
            ratios.append(float(np.exp(np.mean(logs))))
        if not ratios:
            continue
        better = sum(r < 0.995 for r in ratios)
        worse = sum(r > 1.005 for r in ratios)
        mean = np.exp(np.mean(np.log(ratios)))
        shown = asked.replace("+", ", ")
        lines.append(
            f"| {shown} | {mean:.3f} | {better}, {worse} | {max(ratios):.3f} |"
        )
    header = HEADER.format(n=len(sets), splits=" and ".join(map(str, SPLITS)))
    text = "\n".join([header, *lines]) + "\n"
    (RESULTS / "asked_losses.md").write_text(text)
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--alone", action="store_true", help="leave pairs out")
    args = parser.parse_args()
    if args.action == "run":
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        pairs = [] if args.alone else itertools.combinations(PAIRED, 2)
        asked = ["default", *ALONE, *("+".join(pair) for pair in pairs)]
        jobs = [
            (dataset, losses, split)
            for dataset in args.datasets
            for losses in asked
            for split in SPLITS
        ]
        run_jobs(ROWS, FIELDS, KEY, jobs, run_job, args.jobs)
    write_table()


if __name__ == "__main__":
    main()

"""Ask whether other losses than the default pay in what was asked for.

    python benchmarks/asked_losses.py run --jobs 2
    python benchmarks/asked_losses.py run --jobs 2 --method stacking --asked together
    python benchmarks/asked_losses.py table

``run`` fits ``CLMLClassifier(losses=...)``, or the stack, for each loss alone, for
pairs and for some together, on splits of development (seeds from 100 on), beside the
default losses on the same rows, and adds the losses on the other 30 % of rows to
``results/asked_losses.csv``. ``table`` writes ``results/asked_losses.md``: in the
losses that were asked for, the geometric mean of the ratios to the default.
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

from clml import CLMLClassifier, LebesgueStackingClassifier
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
TOGETHER = ("macro_f1+subset_zero_one+lrap",)
DEFAULT = ("hamming", "lrap", "micro_f1")
METHODS: dict[str, Any] = {
    "CLML": CLMLClassifier,
    "stacking": LebesgueStackingClassifier,
}
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
    "tmc2007-500",
    "imdb-f",
)
SPLITS = (100, 101)
KEY = ("dataset", "method", "asked", "split")
FIELDS = (*KEY, *ALONE)
HEADER = """\
# Asking for other losses

`CLMLClassifier(losses=...)` beside `CLMLClassifier()`, and in the second table
`LebesgueStackingClassifier`, on the same 70 % of rows: losses that were asked for on
the other 30 %, divided by the default's; of several the geometric mean of their ratios,
and then each of three. Geometric means over datasets, development splits {splits}; then
on how many datasets it is better and on how many worse by more than 0.5 %, and the
largest ratio. Made by `benchmarks/asked_losses.py`.
"""
TABLE = """\
| asked for | beside the default | datasets | better, worse | largest |
|---|---|---|---|---|"""


def run_job(dataset: str, method: str, asked: str, split: int) -> list[dict[str, Any]]:
    """Fit with some losses, their names joined by plus signs."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    losses = DEFAULT if asked == "default" else tuple(asked.split("+"))
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf = METHODS[method](losses=losses, random_state=split).fit(X, Y)
        found = loss_values(Y_test, clf.decision_function(X_test), ALONE)
    job = dict(zip(KEY, (dataset, method, asked, split), strict=True))
    return [job | {n: f"{v:.6f}" for n, v in zip(ALONE, found, strict=True)}]


def _ratio(own: list[float], default: list[float]) -> float:
    # A loss of 0 counts as half of the smallest error that the default could make.
    small = 1e-4
    return float((np.mean(own) + small) / (np.mean(default) + small))


def write_table() -> None:
    """Write a table for each method that was run."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in read(ROWS):
        found.setdefault((row["method"], row["dataset"], row["asked"]), []).append(row)
    pairs = ["+".join(pair) for pair in itertools.combinations(PAIRED, 2)]
    tables = []
    for method in METHODS:
        lines = []
        for asked in (*ALONE, *pairs, *TOGETHER):
            losses = asked.split("+")
            compared = [
                (found[method, name, asked], found[method, name, "default"])
                for name in DATASETS
                if {(method, name, asked), (method, name, "default")} <= found.keys()
            ]
            if not compared:
                continue
            shown = ", ".join(losses)
            lines.append(_line(shown, compared, losses))
            if len(losses) > 2:
                lines += [_line(f"{shown}: {x}", compared, [x]) for x in losses]
        if lines:
            tables.append("\n".join([f"## {method}", "", TABLE, *lines]))
    header = HEADER.format(splits=" and ".join(map(str, SPLITS)))
    text = "\n\n".join([header.rstrip(), *tables]) + "\n"
    (RESULTS / "asked_losses.md").write_text(text)
    print(text)


def _line(
    shown: str,
    compared: list[tuple[list[dict[str, str]], list[dict[str, str]]]],
    losses: list[str],
) -> str:
    """Return a line of the table, of rows of datasets beside the default's."""
    ratios = []
    for asked, default in compared:
        splits = {row["split"] for row in asked}
        same = [row for row in default if row["split"] in splits]
        logs = [
            np.log(_ratio([float(r[x]) for r in asked], [float(r[x]) for r in same]))
            for x in losses
        ]
        ratios.append(float(np.exp(np.mean(logs))))
    better = sum(r < 0.995 for r in ratios)
    worse = sum(r > 1.005 for r in ratios)
    mean = np.exp(np.mean(np.log(ratios)))
    return (
        f"| {shown} | {mean:.3f} | {len(ratios)} | {better}, {worse} "
        f"| {max(ratios):.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--method", choices=METHODS, default="CLML")
    parser.add_argument(
        "--asked",
        nargs="+",
        choices=("alone", "pairs", "together"),
        default=("alone", "pairs", "together"),
    )
    args = parser.parse_args()
    if args.action == "run":
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        pairs = ("+".join(pair) for pair in itertools.combinations(PAIRED, 2))
        some = {"alone": ALONE, "pairs": pairs, "together": TOGETHER}
        asked = ["default", *(one for name in args.asked for one in some[name])]
        jobs = [
            (dataset, args.method, losses, split)
            for dataset in args.datasets
            for losses in asked
            for split in SPLITS
        ]
        run_jobs(ROWS, FIELDS, KEY, jobs, run_job, args.jobs)
    write_table()


if __name__ == "__main__":
    main()

"""The default learner and the default stack on the reported splits, beside a forest.

    python benchmarks/default_learner.py run --jobs 2
    python benchmarks/default_learner.py run --jobs 2 --method stacking
    python benchmarks/default_learner.py run --method "tuned random forest"
    python benchmarks/default_learner.py table

``run`` fits a method, ``CLMLClassifier()`` by default, on the splits of the protocol
and adds a line to ``results/default_learner.csv``; what is there already is not
computed again. The rivals, a tuned forest and the five learners that were stacked
before, are those of ``learning_power.py``, whose results on the eight datasets of its
table are used as they are. ``table`` writes
``results/default_learner.md``. The default's settings were chosen on splits with seeds
from 100 on, whose rows are the same.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _jobs import LOSSES, geometric_mean, mean_and_spread, read, run_jobs

from clml import CLMLClassifier, LebesgueStackingClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "default_learner.csv"
OTHERS = RESULTS / "learning_power.csv"
KEY = ("dataset", "method", "split")
FIELDS = (*KEY, *LOSSES, "test_decisions", "seconds")
# Splits of each dataset, from 0 on: ten below 700 rows, one of the largest.
SPLITS = {
    "flags": 10,
    "virus-go": 10,
    "foodtruck": 10,
    "chd49": 10,
    "emotions": 10,
    "birds": 10,
    "genbase": 10,
    "cal500": 10,
    "water-quality": 3,
    "medical": 3,
    "plant-go": 3,
    "gnegative-go": 3,
    "enron": 3,
    "yeast": 3,
    "scene": 3,
    "human-go": 3,
    "tmc2007-500": 3,
    "imdb-f": 1,
}
OURS: dict[str, Any] = {
    "CLML": CLMLClassifier,
    "stacking": LebesgueStackingClassifier,
}
RIVALS = ("tuned random forest", "stacking of five")
# The ratios of the table: whose losses, divided by whose.
RATIOS = (
    ("CLML", "tuned random forest"),
    ("CLML", "stacking of five"),
    ("stacking", "stacking of five"),
    ("stacking", "CLML"),
)
# Two errors more or less are a tenth of its losses: it is not in the mean.
NOT_IN_MEAN = "genbase"
HEADER = """\
# The default learner

Geometric mean of Hamming loss, 1 - LRAP and 1 - micro-F1 on the 30 % of rows that are
held out: mean (standard deviation) over the splits from 0 on, whose number is in
brackets after the name. Every method had the same rows. Settings were chosen on splits
with seeds from 100 on; those are other divisions of the same rows, so development and
reported test rows overlap. "Stacking" is `LebesgueStackingClassifier()`: two forests
and CLML; "five" are the learners that were stacked before (two forests, a network, a
kernel machine and narrow networks). The tuned forest has 300 trees (100 on imdb-f).
Empty cells were not run. Made by `benchmarks/default_learner.py`.
"""


def run_job(dataset: str, method: str, split: int, cache: str) -> list[dict[str, Any]]:
    """Fit a method on one split; return its losses on the other rows."""
    if method not in OURS:
        return _run_rival(dataset, method, split, cache)
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    began = time.perf_counter()
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf = OURS[method](random_state=split).fit(X, Y)  # constant labels
    seconds = time.perf_counter() - began
    losses = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    found = {n: f"{v:.6f}" for n, v in zip(LOSSES, losses, strict=True)}
    job = dict(zip(KEY, (dataset, method, split), strict=True))
    return [
        {
            **job,
            **found,
            "test_decisions": Y_test.size,
            "seconds": f"{seconds:.2f}",
        }
    ]


def _run_rival(
    dataset: str, method: str, split: int, cache: str
) -> list[dict[str, Any]]:
    # Imported here: it needs packages that the learner itself does without.
    import learning_power

    settings = learning_power.Settings(Path(cache), "cpu", None)
    (row,) = learning_power.run_job(dataset, method, split, settings)
    return [{name: row[name] for name in FIELDS}]


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
    """Write the table of all datasets for which every split of the default was run."""
    rows = read(ROWS) + [r for r in read(OTHERS) if r["method"] in RIVALS]
    methods = (*OURS, *RIVALS)
    heads = [*methods, *(f"{one} / {other}" for one, other in RATIOS)]
    lines = [HEADER, f"| dataset | {' | '.join(heads)} |", "|---" * (len(heads) + 1)]
    lines[-1] += "|"
    ratios = []
    for name, n in SPLITS.items():
        found = {m: values(rows, name, n, method=m) for m in methods}
        if len(found["CLML"]) < n:
            continue
        cells = [
            mean_and_spread(found[m], 4) if len(found[m]) == n else "" for m in methods
        ]
        means = {m: np.mean(v) if len(v) == n else np.nan for m, v in found.items()}
        ratio = [means[one] / means[other] for one, other in RATIOS]
        shown = ["" if np.isnan(r) else f"{r:.3f}" for r in ratio]
        lines.append(f"| {name} ({n}) | {' | '.join([*cells, *shown])} |")
        if name != NOT_IN_MEAN:
            ratios.append(ratio)
    table = np.reshape(ratios, (-1, len(RATIOS)))
    counts = (~np.isnan(table)).sum(axis=0)
    geometric = np.exp(np.nansum(np.log(table), axis=0) / np.maximum(counts, 1))
    both = zip(geometric, counts, strict=True)
    shown = [f"{mean:.3f} of {count}" for mean, count in both]
    blank = [""] * len(methods)
    lines.append(
        f"| geometric mean without {NOT_IN_MEAN} | {' | '.join([*blank, *shown])} |"
    )
    text = "\n".join(lines) + "\n"
    (RESULTS / "default_learner.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--method", choices=(*OURS, *RIVALS), default="CLML")
    runs.add_argument("--datasets", nargs="+", choices=SPLITS, default=list(SPLITS))
    runs.add_argument("--splits", type=int, help="at most so many of each dataset")
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument(
        "--cache",
        default=str(Path(tempfile.gettempdir(), "clml-learning-power")),
        help="folder for the scores of learners that methods share",
    )
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        in_table = {(r["dataset"], r["method"], int(r["split"])) for r in read(OTHERS)}
        jobs = [
            (name, given.method, split, given.cache)
            for name in given.datasets
            for split in range(min(SPLITS[name], given.splits or SPLITS[name]))
            if (name, given.method, split) not in in_table or given.method in OURS
        ]
        run_jobs(ROWS, FIELDS, KEY, jobs, run_job, given.jobs)
    write_table()


if __name__ == "__main__":
    main()

"""Size of a model file and time of predictions, beside a random forest.

    python benchmarks/predict_time.py [--datasets flags human-go]

Fits ``CLMLClassifier(n_jobs=2)`` and a forest of 300 trees (``n_jobs=2``) on 70 % of
the rows: size of the file that ``save`` writes, milliseconds for one row (least of 21
calls), seconds for 10,000 rows, those of the dataset repeated (least of 7); both
models take turns. imdb-f has no forest, which would take half an hour and 14 GB. Writes
``results/predict_time.csv`` and ``results/predict_time.md``.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from clml import CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.persistence import save

RESULTS = Path(__file__).parent / "results"
DATASETS = (
    "flags",
    "emotions",
    "yeast",
    "cal500",
    "enron",
    "medical",
    "scene",
    "birds",
    "plant-go",
    "human-go",
    "imdb-f",
)
# Its forest would have some 30 million nodes, which take 14 GB.
WITHOUT_FOREST = ("imdb-f",)
FIELDS = ("dataset", "file_mb", "clml_row_ms", "clml_s", "forest_row_ms", "forest_s")
HEADER = """\
# Files and predictions

`CLMLClassifier()` and a random forest of 300 trees, fitted on 70 % of the rows: the
file that `save` writes, and `predict_proba` of one row (least of 21 calls) and of
10,000 rows, the dataset's repeated (least of 7); two threads, both models in turn. Made
by `benchmarks/predict_time.py`.

| dataset | file, MB | one row, ms | 10,000 rows, s | forest: one row, ms | 10,000, s |
|---|---|---|---|---|---|"""


def seconds(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the least time of each call, after a first one.

    They take turns: whatever else the machine does meets all of them.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - began)
    return {name: min(times[1:]) for name, times in found.items()}


def measure(dataset: str) -> dict[str, Any]:
    """Return a line of the table."""
    data = load_dataset(dataset)
    X, _, Y, _ = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, random_state=100
    )
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf = CLMLClassifier(n_jobs=2, random_state=0).fit(X, Y)  # constant labels
    many = X[np.arange(10_000) % X.shape[0]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.clml")
        save(clf, path)
        size = path.stat().st_size / 1e6
    models = {"clml": clf}
    if dataset not in WITHOUT_FOREST:
        forest = RandomForestClassifier(300, n_jobs=2, random_state=0)
        models["forest"] = forest.fit(X, Y)
    found = {"file_mb": size}
    for rows, unit, factor, repeats in ((X[:1], "row_ms", 1e3, 21), (many, "s", 1, 7)):
        calls = {n: partial(model.predict_proba, rows) for n, model in models.items()}
        for name, least in seconds(calls, repeats).items():
            found[f"{name}_{unit}"] = factor * least
    told = {name: f"{value:.3g}" for name, value in found.items()}
    line = {name: told.get(name, "") for name in FIELDS} | {"dataset": dataset}
    print(line, flush=True)
    return line


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    lines = [measure(name) for name in parser.parse_args().datasets]
    with (RESULTS / "predict_time.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines)
    text = [HEADER, *(f"| {' | '.join(line.values())} |" for line in lines)]
    path = RESULTS / "predict_time.md"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

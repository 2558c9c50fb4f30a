"""The covariance update that the paper prints, beside the rank-one update it names.

Both with exact and with Monte Carlo contributions, everything else as in
``PAPER_SETTINGS``, on the same seeded splits:

    python benchmarks/printed_update.py run        # adds what is missing to the csv
    python benchmarks/printed_update.py table      # writes the table of it
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from clml import CMA, PAPER_SETTINGS, CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
FILE, PAGE = RESULTS / "printed_update.csv", RESULTS / "printed_update.md"
DATASETS = ("flags", "emotions", "yeast")
SPLITS = range(2)
COVARIANCES = ("rank_one", "printed")
CONTRIBUTIONS = ("exact", "monte_carlo")
LOSSES = ("hamming", "lrap", "micro_f1")
COLUMNS = ("dataset", "split", "covariance", "contributions", *LOSSES, "seconds")


def read() -> list[dict[str, str]]:
    """Return what was measured so far."""
    if not FILE.exists():
        return []
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Fit what is missing, and write the file after each fit."""
    rows = read()
    done = {tuple(row[name] for name in COLUMNS[:4]) for row in rows}
    for split in SPLITS:
        for dataset in DATASETS:
            data = load_dataset(dataset)
            X, X_test, Y, Y_test = iterative_train_test_split(
                data.X, data.Y, test_size=0.3, refine=False, random_state=split
            )
            for covariance in COVARIANCES:
                for contributions in CONTRIBUTIONS:
                    place = (dataset, str(split), covariance, contributions)
                    if place in done:
                        continue
                    search = CMA(
                        population_size=None,
                        ties=None,
                        lebesgue=contributions,
                        covariance=covariance,
                    )
                    settings = {**PAPER_SETTINGS, "search": search}
                    began = time.perf_counter()
                    clf = CLMLClassifier(**settings, random_state=split).fit(X, Y)
                    seconds = time.perf_counter() - began
                    losses = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
                    numbers = [*(f"{loss:.6f}" for loss in losses), f"{seconds:.1f}"]
                    rows.append(dict(zip(COLUMNS, (*place, *numbers), strict=True)))
                    with FILE.open("w", newline="", encoding="utf-8") as file:
                        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                        writer.writeheader()
                        writer.writerows(rows)


def page(rows: list[dict[str, str]]) -> str:
    """Return the table of geometric means."""
    found = defaultdict(list)
    for row in rows:
        three = [float(row[loss]) for loss in LOSSES]
        place = (row["covariance"], row["contributions"], row["dataset"])
        found[place].append(np.prod(three) ** (1 / 3))
    lines = [
        "# The covariance update as printed",
        "",
        "Geometric mean of the three test losses, mean over the splits (their number",
        "in the header), standard deviation in brackets. *printed* is",
        '`covariance="printed"`, C ← (1 - c)·C + c·s·sᵀ with s the step of the epoch;',
        "*rank_one* has the evolution path in its place. All else as in",
        "`PAPER_SETTINGS`. Made by `benchmarks/printed_update.py`.",
        "",
    ]
    present = [d for d in DATASETS if any(place[2] == d for place in found)]
    counts = {d: len(found[COVARIANCES[0], CONTRIBUTIONS[0], d]) for d in present}
    head = " | ".join(f"{dataset} ({counts[dataset]})" for dataset in present)
    lines += [f"| covariance | contributions | {head} |"]
    lines += ["|---|---|" + "--:|" * len(present)]
    for covariance in COVARIANCES:
        for contributions in CONTRIBUTIONS:
            cells = []
            for dataset in present:
                values = found[covariance, contributions, dataset]
                spread = f" ({np.std(values, ddof=1):.3f})" if len(values) > 1 else ""
                cells.append(f"{np.mean(values):.3f}{spread}")
            name = contributions.replace("_", " ")
            lines.append(f"| {covariance} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        run()
    elif sys.argv[1:] == ["table"]:
        PAGE.write_text(page(read()), encoding="utf-8")
    else:
        sys.exit(__doc__)

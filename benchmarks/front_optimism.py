"""How much better a front looks than it is, where rows are few.

The losses of ``front_`` are those on which its members were found and the best of each
was chosen. Here labels that do not depend on the features at all, and those of
``make_bayes_multilabel``, are fitted with few rows, and the loss that ``select(loss)``
states is compared with that of the same model on many fresh rows.

    python benchmarks/front_optimism.py

Writes ``results/front_optimism.csv``, some minutes on one core: means over seeds of the
stated and of the fresh loss, and of the seed whose stated loss was furthest off.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from clml import PAPER_SETTINGS, CLMLClassifier, LebesgueTunedClassifier
from clml.datasets import make_bayes_multilabel
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
LOSSES = ("hamming", "lrap", "micro_f1")
ROWS = (60, 100, 300)
FRESH_ROWS = 20_000
# Labels that are noise: as many as those of known truth, and about as frequent.
N_LABELS, SHARE = 6, 0.3


def draw(kind: str, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of rows to fit, then of fresh ones."""
    n = n_rows + FRESH_ROWS
    if kind == "known truth":
        data = make_bayes_multilabel(n, random_state=seed)
        return data.X, data.Y
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 10))
    return X, (generator.random((n, N_LABELS)) < SHARE).astype(np.int64)


def classifiers(seed: int) -> dict[str, Any]:
    forest = RandomForestClassifier(100, random_state=seed)
    return {
        "CLMLClassifier": CLMLClassifier(network="paper", random_state=seed),
        "CLMLClassifier(**PAPER_SETTINGS)": CLMLClassifier(
            **PAPER_SETTINGS, random_state=seed
        ),
        "LebesgueTunedClassifier": LebesgueTunedClassifier(forest, random_state=seed),
    }


def compare(kind: str, n_rows: int, seed: int) -> Iterator[dict[str, Any]]:
    """Fit the classifiers once, and give each loss as it is stated and as it is."""
    X, Y = draw(kind, n_rows, seed)
    fresh, true = X[n_rows:], Y[n_rows:]
    for name, clf in classifiers(seed).items():
        clf.fit(X[:n_rows], Y[:n_rows])
        for number, loss in enumerate(LOSSES):
            chosen = clf.select(loss)
            scores = chosen.decision_function(fresh)
            yield {
                "labels": kind,
                "classifier": name,
                "rows": n_rows,
                "loss": loss,
                "stated": float(clf.front_.losses[chosen.incumbent_, number]),
                "fresh": float(loss_values(true, scores, [loss])[0]),
            }


def summary(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one line for each setting."""
    keys = ("labels", "classifier", "rows", "loss")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in found:
        groups.setdefault(tuple(one[key] for key in keys), []).append(one)
    lines = []
    for setting, some in groups.items():
        worst = max(some, key=lambda one: one["fresh"] - one["stated"])
        numbers = {
            "stated": np.mean([one["stated"] for one in some]),
            "fresh": np.mean([one["fresh"] for one in some]),
            "worst_stated": worst["stated"],
            "worst_fresh": worst["fresh"],
        }
        rounded = {name: f"{value:.3f}" for name, value in numbers.items()}
        lines.append(
            dict(zip(keys, setting, strict=True)) | {"seeds": len(some)} | rounded
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "front_optimism.csv")
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for kind in ("noise", "known truth"):
        for n_rows in ROWS:
            for seed in range(arguments.seeds):
                found += compare(kind, n_rows, seed)
            print(f"{kind}, {n_rows} rows", flush=True)
    lines = summary(found)
    with arguments.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()

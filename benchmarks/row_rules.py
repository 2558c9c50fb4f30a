"""Whether rules for whole rows pay: ``select(loss)`` of fronts with them and without.

    CLML_DATA=... python benchmarks/row_rules.py

Development splits (30 % held out, seeds 100 and 101) of some datasets; a tuned forest
of 300 trees and ``CLMLClassifier``, with losses of whole rows. Each choice is a line of
``results/row_rules.csv``: its rule, its loss on test rows, that of the default, and
what the front states. Twenty minutes on two cores that others share.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from clml import CLMLClassifier, LebesgueTunedClassifier
from clml._maps import map_search as _map_search
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

FILE = Path(__file__).parent / "results" / "row_rules.csv"
LOSSES = ("subset_zero_one", "example_f1", "lrap")
DATASETS = ("emotions", "birds", "scene", "flags", "yeast")
SPLITS = (100, 101)
FIELDS = (
    *("dataset", "split", "classifier", "rules", "loss"),
    *("rule", "test", "default", "stated"),
)


def make(name: str) -> Any:
    if name == "CLMLClassifier":
        return CLMLClassifier(LOSSES, random_state=0)
    forest = RandomForestClassifier(300, random_state=0)
    return LebesgueTunedClassifier(forest, LOSSES, random_state=0)


def measured(dataset: str, split: int, name: str, rules: bool) -> Iterator[dict]:
    """Yield what is chosen for each loss."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    offered = _map_search.offered_rules if rules else lambda *_: ()
    with patch.object(_map_search, "offered_rules", offered):
        clf = make(name).fit(X, Y)
    default = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    for place, loss in enumerate(LOSSES):
        chosen = clf.select(loss)
        test = loss_values(Y_test, chosen.decision_function(X_test), LOSSES)
        stated = clf.front_.losses[clf.front_.choice(loss)[0]]
        yield {
            "dataset": dataset,
            "split": split,
            "classifier": name,
            "rules": int(rules),
            "loss": loss,
            "rule": chosen.rule_ or "",
            "test": round(float(test[place]), 4),
            "default": round(float(default[place]), 4),
            "stated": round(float(stated[place]), 4),
        }


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the page's table: means over splits, without rules and with them."""
    lines = [
        "| dataset | classifier | 1 - exact match | with rules "
        "| 1 - example-F1 | with rules |",
        "|---|---|---|---|---|---|",
    ]
    for dataset in DATASETS:
        for name in ("LebesgueTunedClassifier", "CLMLClassifier"):
            cells = []
            for loss in LOSSES[:2]:
                for rules in "01":
                    own = [
                        row
                        for row in rows
                        if (row["dataset"], row["classifier"]) == (dataset, name)
                        and (row["loss"], str(row["rules"])) == (loss, rules)
                    ]
                    mean = np.mean([float(row["test"]) for row in own])
                    told = dict.fromkeys(row["rule"] for row in own if row["rule"])
                    cells.append(
                        f"{mean:.3f}" + (f" ({', '.join(told)})" if told else "")
                    )
            lines.append(f"| {dataset} | `{name}` | {' | '.join(cells)} |")
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    rows = []
    for dataset in DATASETS:
        for split in SPLITS:
            for name in ("LebesgueTunedClassifier", "CLMLClassifier"):
                for rules in (False, True):
                    rows += measured(dataset, split, name, rules)
                    print(*rows[-3].values(), *rows[-2].values(), flush=True)
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()

"""Whether choosing from a front pays: ``select(loss)`` against the default.

    CLML_DATA=... python benchmarks/front_select.py --jobs 2

Development splits of six datasets (seeds 100 to 103, 30 % held out), ``CLMLClassifier``
and a tuned forest of 100 trees. Writes ``results/front_select.csv``: for each loss how
often ``select`` took another model than the default, how often that was worse on the
test rows by more than 0.5 %, or better by more than 1 %, and the mean change of the
loss over all fits. About 15 minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier

from clml import CLMLClassifier, LebesgueTunedClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
LOSSES = ("hamming", "lrap", "micro_f1")
DATASETS = ("flags", "emotions", "birds", "foodtruck", "scene", "yeast")
SPLITS = range(100, 104)
WORSE, BETTER = 0.005, -0.01


def classifier(name: str) -> Any:
    if name == "CLMLClassifier":
        return CLMLClassifier(random_state=0)
    forest = RandomForestClassifier(100, random_state=0)
    return LebesgueTunedClassifier(forest, random_state=0)


CLASSIFIERS = ("CLMLClassifier", "LebesgueTunedClassifier")


def changes(name: str, dataset: str, split: int) -> list[float]:
    """Return the relative change of each loss; NaN where the default is selected."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    clf = classifier(name).fit(X, Y)
    default = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    found = []
    for place, loss in enumerate(LOSSES):
        index, _ = clf.front_.choice(loss)
        if index == clf.front_.default:
            found.append(np.nan)
            continue
        scores = clf.select(index).decision_function(X_test)
        chosen = loss_values(Y_test, scores, LOSSES)
        found.append(float(chosen[place] / default[place] - 1))
    return found


def summary(name: str, found: np.ndarray) -> list[dict[str, Any]]:
    """Return one line for each loss from changes (fits, losses)."""
    return [
        {
            "classifier": name,
            "loss": loss,
            "fits": len(own),
            "selected_another": int(np.isfinite(own).sum()),
            "worse": int((own > WORSE).sum()),
            "better": int((own < BETTER).sum()),
            "mean_change": f"{np.nan_to_num(own).mean():+.4f}",
        }
        for loss, own in zip(LOSSES, found.T, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", type=Path, default=RESULTS / "front_select.csv")
    arguments = parser.parse_args()
    lines = []
    for name in CLASSIFIERS:
        found = Parallel(arguments.jobs)(
            delayed(changes)(name, dataset, split)
            for dataset in DATASETS
            for split in SPLITS
        )
        lines += summary(name, np.array(found))
        print(f"{name}: done", flush=True)
        with arguments.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()

"""Whether choosing from a front pays: ``select(loss)`` against the default.

    CLML_DATA=... python benchmarks/front_select.py [--classifiers ...] [--datasets ...]

The splits that are reported everywhere (30 % held out): ten of each dataset, three of
the large ones. Of ``CLMLClassifier`` and a tuned forest of 100 trees, each fit leaves
one line in ``results/front_select.csv``: the losses on test rows of the default and of
what is selected for each loss, and the Lebesgue measure that the test losses of the
whole front have. A fit that is there is not run again. ``results/front_select.md`` is
made of them. For what was reported the forest was not fitted on imdb-f. Half an hour on
two cores, with ``--jobs 2``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier

from clml import CLMLClassifier, LebesgueTunedClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.lebesgue import lebesgue_measure
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
LOSSES = ("hamming", "lrap", "micro_f1")
TITLES = ("Hamming loss", "1 - LRAP", "1 - micro-F1")
DATASETS = (
    "flags",
    "foodtruck",
    "emotions",
    "birds",
    "chd49",
    "virus-go",
    "genbase",
    "gnegative-go",
    "water-quality",
    "cal500",
    "medical",
    "plant-go",
    "enron",
    "yeast",
    "human-go",
    "scene",
    "tmc2007-500",
    "imdb-f",
)
LARGE = ("tmc2007-500", "imdb-f")
N_SPLITS, N_SPLITS_OF_LARGE = 10, 3
CLASSIFIERS = ("CLMLClassifier", "LebesgueTunedClassifier")
WORSE, BETTER = 0.005, -0.01
FIELDS = (
    "classifier",
    "dataset",
    "split",
    "models",
    "measure",
    *(f"default_{loss}" for loss in LOSSES),
    *(f"selected_{loss}" for loss in LOSSES),
)


def classifier(name: str) -> Any:
    if name == "CLMLClassifier":
        return CLMLClassifier(random_state=0)
    forest = RandomForestClassifier(100, random_state=0)
    return LebesgueTunedClassifier(forest, random_state=0)


def fit(name: str, dataset: str, split: int) -> dict[str, Any]:
    """Return one line of the results."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant labels
        clf = classifier(name).fit(X, Y)
    of_models = np.array(
        [
            loss_values(Y_test, clf.select(i).decision_function(X_test), LOSSES)
            for i in range(len(clf.front_))
        ]
    )
    default = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    line: dict[str, Any] = {
        "classifier": name,
        "dataset": dataset,
        "split": split,
        "models": len(of_models),
        "measure": lebesgue_measure(of_models),
    }
    for place, loss in enumerate(LOSSES):
        index, _ = clf.front_.choice(loss)
        line[f"default_{loss}"] = default[place]
        line[f"selected_{loss}"] = of_models[index, place]
    return line


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write the lines in the order of classifiers, datasets and splits."""
    lines = sorted(
        lines,
        key=lambda line: (
            CLASSIFIERS.index(line["classifier"]),
            DATASETS.index(line["dataset"]),
            int(line["split"]),
        ),
    )
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for line in lines:
            short = {
                k: f"{v:.6f}" if isinstance(v, float) else v for k, v in line.items()
            }
            writer.writerow(short)


def changes(lines: list[dict[str, str]]) -> np.ndarray:
    """Return the relative change of each loss (o,) in the mean over splits."""
    defaults, selected = (
        np.array([[float(line[f"{kind}_{loss}"]) for loss in LOSSES] for line in lines])
        for kind in ("default", "selected")
    )
    return selected.mean(axis=0) / np.maximum(defaults.mean(axis=0), 1e-12) - 1


def by_dataset(
    lines: list[dict[str, str]], name: str
) -> dict[str, list[dict[str, str]]]:
    """Return the lines of a classifier for each dataset that it was fitted on."""
    found = {
        dataset: [
            line
            for line in lines
            if line["dataset"] == dataset and line["classifier"] == name
        ]
        for dataset in DATASETS
    }
    return {dataset: own for dataset, own in found.items() if own}


def summary(lines: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return one line for each loss of each classifier: on how many datasets."""
    found = []
    for name in CLASSIFIERS:
        own = np.array([changes(some) for some in by_dataset(lines, name).values()])
        if not len(own):  # nothing is fitted yet
            continue
        for title, change in zip(TITLES, own.T, strict=True):
            found.append(
                {
                    "classifier": f"`{name}`",
                    "loss": title,
                    "datasets": str(len(change)),
                    "worse": str((change > WORSE).sum()),
                    "better": str((change <= BETTER).sum()),
                    "mean change": f"{100 * change.mean():+.2f} %",
                }
            )
    return found


def markdown(rows: list[list[str]]) -> Iterator[str]:
    """Yield a table; the first row is its head."""
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    yield from (head, "|---" * len(rows[0]) + "|", *others)


def page(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield the page."""
    yield "# Choosing from a front\n"
    yield (
        "What `select(loss)` changes in that loss, on test rows, against the default.\n"
        "On how many datasets it is worse by more than 0.5 % or better by 1 % or\n"
        "more: means over ten splits, over three of tmc2007-500 and imdb-f, which is\n"
        "not there for the forest. By `benchmarks/front_select.py`.\n"
    )
    counts = summary(lines)
    yield from markdown([[*counts[0]], *([*count.values()] for count in counts)])
    yield (
        "\nChanges in percent, bold where better and with a star where worse. The\n"
        "measure is that of the test losses of the whole front: ten models at most.\n"
    )
    for name in CLASSIFIERS:
        yield f"\n`{name}`\n"
        rows = [["dataset", "splits", "models", *TITLES, "measure"]]
        for dataset, own in by_dataset(lines, name).items():
            cells = []
            for value in changes(own):
                text = f"{100 * value:+.2f}"
                cells.append(
                    f"**{text}**"
                    if value <= BETTER
                    else text + " *" * int(value > WORSE)
                )
            models = np.mean([int(line["models"]) for line in own])
            measure = np.mean([float(line["measure"]) for line in own])
            rows.append(
                [dataset, f"{len(own)}", f"{models:.1f}", *cells, f"{measure:.4f}"]
            )
        yield from markdown(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--classifiers", nargs="*", default=CLASSIFIERS)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    arguments = parser.parse_args()
    path = RESULTS / "front_select.csv"
    there = {(r["classifier"], r["dataset"], int(r["split"])) for r in read(path)}
    asked = [
        (name, dataset, split)
        for name in arguments.classifiers
        for dataset in arguments.datasets
        for split in range(N_SPLITS_OF_LARGE if dataset in LARGE else N_SPLITS)
    ]
    found = Parallel(arguments.jobs, return_as="generator_unordered")(
        delayed(fit)(*one) for one in asked if one not in there
    )
    for line in found:
        print(
            f"{line['classifier']}, {line['dataset']}, split {line['split']}",
            flush=True,
        )
        write(path, [*read(path), line])
    (RESULTS / "front_select.md").write_text("\n".join(page(read(path))) + "\n")


if __name__ == "__main__":
    main()

"""Whether choosing from a front pays: ``select(loss)`` against the default.

    CLML_DATA=... python benchmarks/front_select.py [--classifiers ...] [--datasets ...]

The splits that are reported everywhere (30 % held out): ten of each dataset, three of
the large ones. Of ``CLMLClassifier`` and a tuned forest of 100 trees, each fit leaves
one line in ``results/front_select.csv``: the losses on test rows of the default and of
what is selected for each loss, and the Lebesgue measure that the test losses of the
whole front have. A fit that is there is not run again. ``results/front_select.md`` is
made of them. About an hour on two cores.
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


def table(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield the page."""
    yield "# Choosing from a front\n"
    yield (
        "Change of a loss on test rows, in percent, by `select(loss)` against the\n"
        "default, in the mean over splits. Bold is better by 1 % or more, a star is\n"
        "worse by more than 0.5 %. The last column of each is the Lebesgue measure\n"
        "of the test losses of its whole front, of at most ten models.\n"
        "By `benchmarks/front_select.py`.\n"
    )
    titles = " | ".join(TITLES)
    heads = (f"{name} | {titles} | measure" for name in ("CLML", "tuned forest"))
    yield f"| dataset | {' | '.join(heads)} |"
    yield "|---" * 11 + "|"
    counts = {name: np.zeros((2, len(LOSSES)), dtype=int) for name in CLASSIFIERS}
    n_datasets = dict.fromkeys(CLASSIFIERS, 0)
    for dataset in DATASETS:
        cells = [dataset]
        for name in CLASSIFIERS:
            own = [
                line
                for line in lines
                if line["dataset"] == dataset and line["classifier"] == name
            ]
            if not own:
                cells += ["-"] * 5
                continue
            change = changes(own)
            n_datasets[name] += 1
            counts[name] += np.array([change > WORSE, change <= BETTER])
            cells.append(f"{len(own)} splits")
            for value in change:
                text = f"{100 * value:+.2f}"
                cells.append(
                    f"**{text}**" if value <= BETTER else text + " *" * (value > WORSE)
                )
            cells.append(f"{np.mean([float(line['measure']) for line in own]):.4f}")
        yield f"| {' | '.join(cells)} |"
    yield ""
    for name, (worse, better) in counts.items():
        yield (
            f"- `{name}`, {n_datasets[name]} datasets: better by 1 % or more on "
            f"{better.sum()} pairs of dataset and loss ({better.tolist()}), worse by "
            f"more than 0.5 % on {worse.sum()} ({worse.tolist()})."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--classifiers", nargs="*", default=CLASSIFIERS)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    arguments = parser.parse_args()
    path = RESULTS / "front_select.csv"
    there = {(r["classifier"], r["dataset"], int(r["split"])) for r in read(path)}
    asked = [
        (name, dataset, split)
        for name in arguments.classifiers
        for dataset in arguments.datasets
        for split in range(N_SPLITS_OF_LARGE if dataset in LARGE else arguments.splits)
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
    (RESULTS / "front_select.md").write_text("\n".join(table(read(path))) + "\n")


if __name__ == "__main__":
    main()

"""How evenly labels are divided: ours against the iterative-stratification package.

    CLML_DATA=folder python benchmarks/split_evenness.py --output evenness.csv

Deviation is the mean, over parts and labels (or pairs of labels), of the difference
between the part's share of the label's rows and its share of all rows; mean and
standard deviation over the seeds. Both make five folds, and one split of 70 and 30 %.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from iterstrat.ml_stratifiers import (
    MultilabelStratifiedKFold,
    MultilabelStratifiedShuffleSplit,
)

from clml.datasets import (
    IterativeStratifiedKFold,
    iterative_split_indices,
    load_dataset,
)

DATASETS = (
    "flags",
    "cal500",
    "emotions",
    "genbase",
    "enron",
    "yeast",
    "tmc2007-500",
    "imdb-f",
)


def folds(splitter: object, Y: np.ndarray) -> np.ndarray:
    parts = np.empty(len(Y), dtype=int)
    for number, (_, test) in enumerate(splitter.split(Y, Y)):
        parts[test] = number
    return parts


def our_split(Y: np.ndarray, order: int, seed: int) -> np.ndarray:
    parts = np.zeros(len(Y), dtype=int)
    split = iterative_split_indices(Y, test_size=0.3, order=order, random_state=seed)
    parts[split[1]] = 1
    return parts


def their_split(Y: np.ndarray, seed: int) -> np.ndarray:
    splitter = MultilabelStratifiedShuffleSplit(1, test_size=0.3, random_state=seed)
    ((_, test),) = splitter.split(Y, Y)
    parts = np.zeros(len(Y), dtype=int)
    parts[test] = 1
    return parts


METHODS: dict[tuple[str, str], Callable[[np.ndarray, int], np.ndarray]] = {
    ("5 folds", "clml"): lambda Y, seed: folds(
        IterativeStratifiedKFold(5, random_state=seed), Y
    ),
    ("5 folds", "clml, order 2"): lambda Y, seed: folds(
        IterativeStratifiedKFold(5, order=2, random_state=seed), Y
    ),
    ("5 folds", "iterative-stratification"): lambda Y, seed: folds(
        MultilabelStratifiedKFold(5, shuffle=True, random_state=seed), Y
    ),
    ("70/30", "clml"): lambda Y, seed: our_split(Y, 1, seed),
    ("70/30", "clml, order 2"): lambda Y, seed: our_split(Y, 2, seed),
    ("70/30", "iterative-stratification"): their_split,
}


def deviation(Y: np.ndarray, parts: np.ndarray, pairs: bool) -> float:
    def count(rows: np.ndarray) -> np.ndarray:
        # float64, so that the product is one of BLAS
        rows = rows.astype(np.float64)
        if pairs:
            return (rows.T @ rows)[np.triu_indices(Y.shape[1], 1)]
        return rows.sum(axis=0)

    sizes = np.bincount(parts) / len(Y)
    totals = count(Y)
    seen = totals > 0
    shares = [count(Y[parts == part])[seen] / totals[seen] for part in np.unique(parts)]
    return float(np.abs(np.array(shares) - sizes[:, None]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = [
        "dataset,division,method,labels_mean,labels_sd,pairs_mean,pairs_sd,seconds"
    ]
    for name in arguments.datasets:
        Y = load_dataset(name, download=False).Y
        for (division, method), divide in METHODS.items():
            found, seconds = [], []
            for seed in range(arguments.seeds):
                began = time.perf_counter()
                parts = divide(Y, seed)
                seconds.append(time.perf_counter() - began)
                found.append([deviation(Y, parts, pairs) for pairs in (False, True)])
            (labels, pairs), (labels_sd, pairs_sd) = (
                np.mean(found, axis=0),
                np.std(found, axis=0),
            )
            lines.append(
                f'{name},{division},"{method}",{labels:.5f},{labels_sd:.5f},'
                f"{pairs:.5f},{pairs_sd:.5f},{np.median(seconds):.3f}"
            )
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

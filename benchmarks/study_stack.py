"""Which learners a stack should have, on development splits.

    CLML_DATA=... OMP_NUM_THREADS=1 python benchmarks/study_stack.py fit --jobs 2
    python benchmarks/study_stack.py combine forest+extra_trees+clml clml

``fit`` keeps the out-of-fold and test scores of each learner on each split (seeds from
100 on: not those that are reported) in a folder. ``combine`` learns the map that
:class:`clml.LebesgueStackingClassifier` would learn of the learners named, and prints
the geometric mean of Hamming loss, 1 - LRAP and 1 - micro-F1 on test rows, with the
seconds of the fits in brackets; the last line has ratios to the first stack.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _kernel_features import GaussianKernelFeatures
from joblib import Parallel, delayed
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline

from clml import Ascent, CLMLClassifier
from clml._learners.out_of_fold import fold_logits, folds
from clml._learners.scale_columns import ScaleNonIndicators
from clml._learners.scores import label_logits
from clml._maps.map_search import MapSearch
from clml._maps.score_map import apply_map
from clml.baselines import MLPRelevanceClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import RowTargets, get_losses, loss_values

LOSSES = ("hamming", "lrap", "micro_f1")
DATASETS = (
    "flags",
    "virus-go",
    "foodtruck",
    "emotions",
    "chd49",
    "birds",
    "genbase",
    "water-quality",
    "medical",
    "plant-go",
    "gnegative-go",
    "enron",
    "yeast",
    "scene",
    "cal500",
    "human-go",
)


def _lightgbm(**settings: Any) -> Any:
    from lightgbm import LGBMClassifier

    return OneVsRestClassifier(LGBMClassifier(verbose=-1, n_jobs=1, **settings))


LEARNERS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(300, random_state=0),
    "extra_trees": lambda: ExtraTreesClassifier(300, random_state=0),
    "forest_wide": lambda: RandomForestClassifier(
        200, max_features=0.2, random_state=0
    ),
    "extra_wide": lambda: ExtraTreesClassifier(200, max_features=0.2, random_state=0),
    "clml": lambda: CLMLClassifier(random_state=0),
    "clml_entropy": lambda: CLMLClassifier(
        search=Ascent(init="surrogate"), random_state=0
    ),
    "lightgbm": lambda: _lightgbm(n_estimators=100),
    "lightgbm_slow": lambda: _lightgbm(
        n_estimators=200,
        learning_rate=0.05,
        num_leaves=15,
        colsample_bytree=0.5,
        subsample=0.8,
        subsample_freq=1,
        min_child_samples=10,
    ),
    "boosting": lambda: OneVsRestClassifier(
        HistGradientBoostingClassifier(random_state=0)
    ),
    "chain": lambda: ClassifierChain(
        RandomForestClassifier(100, random_state=0), random_state=0
    ),
    "kernel": lambda: make_pipeline(
        ScaleNonIndicators(),
        GaussianKernelFeatures(random_state=0),
        OneVsRestClassifier(LogisticRegression(C=10.0, max_iter=1000)),
    ),
    "network": lambda: make_pipeline(
        ScaleNonIndicators(), MLPRelevanceClassifier(random_state=0)
    ),
    "narrow": lambda: CLMLClassifier(
        search=Ascent(init="surrogate"),
        network="paper",
        n_members=8,
        shrinkage=0.0,
        random_state=0,
    ),
}


def rows_of_split(dataset: str, split: int) -> tuple[Any, Any, Any, Any]:
    data = load_dataset(dataset)
    return iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )


def fit(folder: Path, dataset: str, split: int, learner: str) -> str:
    """Keep the scores of a learner on one split."""
    path = folder / f"{dataset}-{split}-{learner}.npz"
    if path.exists():
        return ""
    X, X_test, Y, _ = rows_of_split(dataset, split)
    made = LEARNERS[learner]()
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant labels
        out_of_fold = np.empty(Y.shape)
        for fold in folds(5, X, Y, split):
            out_of_fold[fold[1]] = fold_logits(made, X, Y, fold, None, Y.shape[1])
        fitted = made.fit(X, Y)
        test = label_logits(fitted, X_test, Y.shape[1])
    seconds = time.perf_counter() - began
    np.savez(path, out_of_fold=out_of_fold, test=test, seconds=seconds)
    return f"{path.stem}: {seconds:.1f} s"


def combine(
    folder: Path, dataset: str, split: int, learners: tuple[str, ...]
) -> tuple[float, float] | None:
    """Return the geometric mean of test losses, and seconds; None if any is missing."""
    paths = [folder / f"{dataset}-{split}-{learner}.npz" for learner in learners]
    if not all(path.exists() for path in paths):
        return None
    found = [dict(np.load(path)) for path in paths]
    _, _, Y, Y_test = rows_of_split(dataset, split)
    scores = np.stack([one["out_of_fold"] for one in found], axis=1)
    test = np.stack([one["test"] for one in found], axis=1)
    run = MapSearch(
        scores,
        RowTargets.from_indicator(Y),
        get_losses(LOSSES),
        transform="weights",
        max_epochs=1,
        population_size=64,
        ties="depth",
        max_front=200,
        seed=(split, 0, 0, 0),
        averages=True,
    )
    chosen = run.choose("auto")
    theta = run.found(None, chosen, judged=False).mean_map
    losses = loss_values(Y_test, apply_map(theta, test), LOSSES)
    half = 0.5 / Y_test.size
    mean = float(np.exp(np.log(np.maximum(losses, half)).mean()))
    return mean, float(sum(one["seconds"] for one in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("fit", "combine"))
    parser.add_argument("stacks", nargs="*", help="names joined by +")
    parser.add_argument("--folder", type=Path, default=Path("build/study_stack"))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--splits", nargs="+", type=int, default=(100, 101))
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    splits = [(name, split) for name in given.datasets for split in given.splits]
    parallel = Parallel(given.jobs, return_as="generator_unordered")
    if given.command == "fit":
        jobs = (
            delayed(fit)(given.folder, name, split, learner)
            for name, split in splits
            for learner in given.learners
        )
        for line in parallel(jobs):
            if line:
                print(line, flush=True)
        return
    stacks = {name: tuple(name.split("+")) for name in given.stacks}
    print("dataset", *stacks, sep="\t")
    log_ratios: dict[str, list[float]] = {name: [] for name in stacks}
    keep = Parallel(given.jobs)
    n = len(given.splits)
    for dataset in given.datasets:
        found = keep(
            delayed(combine)(given.folder, dataset, split, learners)
            for learners in stacks.values()
            for split in given.splits
        )
        if any(one is None for one in found):
            continue
        means, seconds = np.array(found).reshape(len(stacks), n, 2).mean(axis=1).T
        cells = [f"{a:.4f} ({b:.0f})" for a, b in zip(means, seconds, strict=True)]
        print(dataset, *cells, sep="\t", flush=True)
        for name, mean in zip(stacks, means, strict=True):
            log_ratios[name].append(np.log(mean / means[0]))
    ratios = [f"{np.exp(np.mean(values)):.4f}" for values in log_ratios.values()]
    print("beside the first", *ratios, sep="\t")


if __name__ == "__main__":
    main()

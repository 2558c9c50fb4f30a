"""What tuning and stacking by the Lebesgue measure add to ordinary learners.

Each job is one method on one seeded stratified split: 30 % of the rows are test rows,
the same for all methods. Columns that hold anything but 0 and 1 are standardised by the
training rows; `CLMLClassifier` does that itself, and to forests scales are all one.
Forests get sparse rows as dense arrays, which gives the same trees in half the time.
Splits from 100 on are for choosing settings, those that are reported begin at 0.

    python benchmarks/learning_power.py warm --jobs 16
    python benchmarks/learning_power.py run --jobs 16
    python benchmarks/learning_power.py run --seeds 100 2 --results development.csv
    python benchmarks/learning_power.py table

``warm`` fits the learners that the methods share, one fold of one learner a job, and
keeps their scores in the cache folder. ``run`` appends finished jobs to a CSV file and
skips those that are there already. Without ``warm`` it fits what it misses itself.
Jobs that ran elsewhere under the same protocol, those of `compare_baselines.py` among
them, need not be run again:

    python benchmarks/learning_power.py adopt --from benchmarks/results/baselines.csv
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import scipy.sparse as sp
from _cached import CachedScores, FoldSample, recalled_seconds
from _jobs import LOSSES, geometric_mean, mean_and_spread, read, run_jobs
from _kernel_features import GaussianKernelFeatures
from _significance import (
    bonferroni_dunn_difference,
    friedman,
    mean_ranks,
    nemenyi_difference,
    not_worse,
    paired_difference,
    rank_groups,
    signed_rank,
)
from compare_baselines import METHODS, with_scaling
from matplotlib.figure import Figure
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import clml
from clml._learners.out_of_fold import folds
from clml._learners.scale_columns import ScaleNonIndicators
from clml._learners.scores import label_scores
from clml._training.cross_entropy import fit_cross_entropy
from clml.baselines import MLPRelevanceClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.experiments import holm
from clml.losses import loss_values
from clml.splits.splitting import rows_of

RESULTS = Path(__file__).parent / "results"
TARGETS = Path(__file__).parent / "paper_targets.csv"
TEMPLATE = Path(__file__).parent / "learning_power.template.md"
# Dataset to number of reported splits, from the quickest to the longest.
SPLITS = {
    "flags": 20,
    "emotions": 20,
    "cal500": 20,
    "genbase": 20,
    "yeast": 5,
    "enron": 5,
    "tmc2007-500": 5,
    "imdb-f": 1,
}
LARGE = "imdb-f"
LARGE_TREES = 100
LARGE_FOLD_ROWS = 20_000
CV = 5
WHOLE = "all"  # beside the folds 0 to CV − 1: fitted on all training rows

BASELINES = tuple(name for name in METHODS if name != "CLML")
OWN: dict[str, Callable[[int], Any]] = {
    "CLML": lambda seed: clml.CLMLClassifier(random_state=seed),
    "CLML, narrow members": lambda seed: clml.CLMLClassifier(
        network="paper", random_state=seed
    ),
    "CLML's network on cross-entropy": lambda seed: CrossEntropyClassifier(seed),
}
TUNED = {
    f"tuned {base}": base
    for base in ("random forest", "extra trees", "logistic regression")
}
STACKED: dict[str, dict[str, Any]] = {
    "stacking of five": {},
    "plain average": {"mapping": "average"},
}
OURS = "stacking of five"
# A member of the stacking as a method of its own.
MEMBER = "member "
RIVALS = (
    "random forest",
    "extra trees",
    "gradient boosting",
    "logistic regression",
    "plain network",
    "DELA",
    "CLIF",
)
KEY = ("dataset", "method", "split")
FIELDS = (*KEY, *LOSSES, "test_decisions", "trees", "seconds", "device")
SCORES_KEY = ("dataset", "learner", "split", "fold", "trees", "device")
SCORES_FIELDS = (*SCORES_KEY, "seconds")


@dataclass(frozen=True)
class Settings:
    """What a job needs to know beside its dataset, method and split.

    Parameters
    ----------
    cache : Path
        Folder of the learners' scores.
    device : str
        Of the networks among the learners.
    trees : int or None
        Of each forest; None: 300, as in `METHODS`, and 100 on imdb-f.
    """

    cache: Path
    device: str
    trees: int | None

    def n_trees(self, dataset: str) -> int | None:
        """Return the size of forests on a dataset; None: that of `METHODS`."""
        return self.trees or (LARGE_TREES if dataset == LARGE else None)


class CrossEntropyClassifier:
    """One network of CLML's default width, trained on cross-entropy."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X: Any, Y: Any) -> CrossEntropyClassifier:
        """Train it."""
        many = X.shape[0] >= 10_000
        self.network = fit_cross_entropy(
            X,
            Y,
            embedding_dim=64 if many else 20,
            batch_size=256 if many else 64,
            random_state=self.seed,
        )
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the logits."""
        return self.network.decision_function(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the seed."""
        return {"seed": self.seed}


def members(seed: int) -> dict[str, Any]:
    """Return the five learners that were stacked by default before.

    Those of today are in `default_learner.py`.
    """
    network = MLPRelevanceClassifier(random_state=seed)
    features = GaussianKernelFeatures(random_state=seed)
    machine = OneVsRestClassifier(LogisticRegression(C=10.0, max_iter=1000))
    return {
        "forest": RandomForestClassifier(300, random_state=seed),
        "extra_trees": ExtraTreesClassifier(300, random_state=seed),
        "network": make_pipeline(ScaleNonIndicators(), network),
        "kernel": make_pipeline(ScaleNonIndicators(), features, machine),
        "clml": clml.CLMLClassifier(
            search=clml.Ascent(init="surrogate"),
            network="paper",
            n_members=8,
            shrinkage=0.0,
            random_state=seed,
        ),
    }


def split_data(dataset: str, split: int) -> tuple[Any, Any, Any, Any]:
    data = load_dataset(dataset)
    return iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )


def parts(estimator: Any) -> list[Any]:
    """Return an estimator and every one inside it."""
    inner = estimator.get_params().values()
    return [estimator, *(value for value in inner if hasattr(value, "get_params"))]


def is_boosting(estimator: Any) -> bool:
    return any(isinstance(p, HistGradientBoostingClassifier) for p in parts(estimator))


def uses_device(estimator: Any) -> bool:
    return any(
        "device" in part.get_params(deep=False)
        for part in parts(estimator)
        if not isinstance(part, clml.CLMLClassifier)  # which computes on the CPU
    )


def set_sizes(estimator: Any, dataset: str, settings: Settings) -> None:
    trees = settings.n_trees(dataset)
    for part in parts(estimator):
        if trees and is_forest(part):
            part.set_params(n_estimators=trees)
        if uses_device(part) and "device" in part.get_params(deep=False):
            part.set_params(device=settings.device)


def is_forest(estimator: Any) -> bool:
    return isinstance(estimator, (RandomForestClassifier, ExtraTreesClassifier))


def dense_for_trees(X: Any) -> Any:
    """Return what trees make of sparse rows anyway, all at once."""
    return X.astype(np.float32).toarray()


def bare_learner(name: str, seed: int) -> Any:
    if name.startswith(MEMBER):
        return members(seed)[name.removeprefix(MEMBER)]
    return METHODS[name](seed, "cpu")


def learner(
    name: str, dataset: str, seed: int, X_train: Any, settings: Settings
) -> CachedScores:
    """Return a baseline or a member as it is fitted on a dataset's training rows."""
    estimator = bare_learner(name, seed)
    set_sizes(estimator, dataset, settings)
    if is_forest(estimator):
        if sp.issparse(X_train):
            dense = FunctionTransformer(dense_for_trees, accept_sparse=True)
            estimator = make_pipeline(dense, estimator)
    elif not name.startswith(MEMBER):  # members scale what they need to
        estimator = with_scaling(estimator, X_train)
    sample = None
    if dataset == LARGE:
        sample = FoldSample(X_train.shape[0], LARGE_FOLD_ROWS, seed)
    return CachedScores(estimator, settings.cache, sample)


def left_out(dataset: str, name: str) -> bool:
    """Return whether a learner takes too long: boosting on the largest dataset."""
    is_learner = name in BASELINES or name.startswith(MEMBER)
    return dataset == LARGE and is_learner and is_boosting(bare_learner(name, 0))


def stacked_members(dataset: str) -> list[str]:
    names = [MEMBER + name for name in members(0)]
    return [name for name in names if not left_out(dataset, name)]


def build(
    method: str, dataset: str, seed: int, X_train: Any, settings: Settings
) -> Any:
    """Return the unfitted method; tuned and stacked ones hold cached learners."""

    def made(name: str) -> CachedScores:
        return learner(name, dataset, seed, X_train, settings)

    if method in OWN:
        return OWN[method](seed)
    if method in TUNED:
        return clml.LebesgueTunedClassifier(
            made(TUNED[method]), cv=CV, random_state=seed
        )
    if method in STACKED:
        return clml.LebesgueStackingClassifier(
            [(n.removeprefix(MEMBER), made(n)) for n in stacked_members(dataset)],
            cv=CV,
            random_state=seed,
            **STACKED[method],
        )
    return made(method)


def expect_constant_labels() -> None:
    # Rare labels can be constant in a training part: every method copes, some warn.
    warnings.filterwarnings("ignore", message=".*labels are constant")
    warnings.filterwarnings("ignore", message="Label .* is present in all")


def run_job(
    dataset: str, method: str, split: int, settings: Settings
) -> list[dict[str, Any]]:
    expect_constant_labels()
    X_train, X_test, Y_train, Y_test = split_data(dataset, split)
    model = build(method, dataset, split, X_train, settings)
    recalled_seconds.clear()
    began = time.perf_counter()
    model.fit(X_train, Y_train)
    scores = label_scores(model, X_test, Y_test.shape[1])
    seconds = time.perf_counter() - began + sum(recalled_seconds)
    losses = loss_values(Y_test, scores, LOSSES)
    return [
        {
            "dataset": dataset,
            "method": method,
            "split": split,
            **{n: f"{v:.6f}" for n, v in zip(LOSSES, losses, strict=True)},
            "test_decisions": Y_test.size,
            "trees": settings.n_trees(dataset) or "",
            "seconds": f"{seconds:.2f}",
            "device": settings.device if uses_device(model) else "cpu",
        }
    ]


def scores_job(
    dataset: str,
    name: str,
    split: int,
    fold: int | str,
    trees: int | str,
    device: str,
    settings: Settings,
) -> list[dict[str, Any]]:
    """Fit one learner on one fold, or on all training rows, and store its scores."""
    expect_constant_labels()
    X, X_asked, Y, _ = split_data(dataset, split)
    model = learner(name, dataset, split, X, settings)
    if fold != WHOLE:
        train, asked = folds(CV, X, Y, split)[int(fold)]
        X, X_asked, Y = rows_of(X, train), rows_of(X, asked), rows_of(Y, train)
    began = time.perf_counter()
    label_scores(model.fit(X, Y), X_asked, Y.shape[1])
    job = (dataset, name, split, fold, trees, device)
    return [
        {
            **dict(zip(SCORES_KEY, job, strict=True)),
            "seconds": f"{time.perf_counter() - began:.2f}",
        }
    ]


def scores_needed(dataset: str, methods: Iterable[str]) -> list[tuple[str, int | str]]:
    """Return the learners of these methods, each with the folds that they ask for."""
    every: tuple[int | str, ...] = (WHOLE, *range(CV))
    needed: dict[tuple[str, int | str], None] = {}
    for method in methods:
        if method in OWN or left_out(dataset, method):
            continue
        if method in STACKED:
            pairs = [
                (name, fold) for name in stacked_members(dataset) for fold in every
            ]
        elif method in TUNED:
            pairs = [(TUNED[method], fold) for fold in every]
        else:
            pairs = [(method, WHOLE)]
        needed |= dict.fromkeys(pairs)
    return list(needed)


def splits_of(dataset: str, seeds: tuple[int, int] | None) -> range:
    first, number = seeds or (0, SPLITS[dataset])
    return range(first, first + number)


def longest_first(datasets: Iterable[str]) -> list[str]:
    return sorted(datasets, key=list(SPLITS).index, reverse=True)


def all_methods() -> list[str]:
    return [*BASELINES, *OWN, *TUNED, *STACKED, *(MEMBER + name for name in members(0))]


def warm(arguments: argparse.Namespace) -> None:
    settings = Settings(arguments.cache, arguments.device, arguments.trees)
    run_jobs(
        arguments.cache / "scores.csv",
        SCORES_FIELDS,
        SCORES_KEY,
        [
            (dataset, name, split, fold, trees or "", settings.device, settings)
            for dataset in longest_first(arguments.datasets)
            for trees in [settings.n_trees(dataset)]
            for name, fold in scores_needed(dataset, arguments.methods or all_methods())
            for split in splits_of(dataset, arguments.seeds)
        ],
        scores_job,
        arguments.jobs,
    )


def run(arguments: argparse.Namespace) -> None:
    settings = Settings(arguments.cache, arguments.device, arguments.trees)
    run_jobs(
        arguments.results,
        FIELDS,
        KEY,
        [
            (dataset, method, split, settings)
            for dataset in longest_first(arguments.datasets)
            for method in arguments.methods or all_methods()
            if not left_out(dataset, method)
            for split in splits_of(dataset, arguments.seeds)
        ],
        run_job,
        arguments.jobs,
    )


def adopt(arguments: argparse.Namespace) -> None:
    """Append the rows of reported jobs that other files have and the results lack."""
    known = {tuple(row[name] for name in KEY) for row in read(arguments.results)}
    wanted = {
        (dataset, method, str(split))
        for dataset in arguments.datasets
        for method in arguments.methods or all_methods()
        for split in splits_of(dataset, arguments.seeds)
    }
    wanted -= known
    adopted: dict[tuple[str, ...], dict[str, str]] = {}
    for path in arguments.source:
        for row in read(path):
            key = tuple(row[name] for name in KEY)
            # What the comparison of baselines calls CLML has other settings.
            is_same = row["method"] in BASELINES or row.keys() >= set(FIELDS)
            if key in wanted and is_same:
                adopted.setdefault(key, {name: row.get(name, "") for name in FIELDS})
    is_new = not arguments.results.exists()
    with arguments.results.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerows(adopted.values())
    print(f"{len(adopted)} rows")


Means = dict[tuple[str, str], dict[int, float]]


def reported_means(rows: Iterable[dict[str, str]]) -> Means:
    """Return (dataset, method) to split to geometric mean, of the reported splits.

    A method that lacks some of a dataset's splits is left out there: its mean would be
    one of other rows than those of the rest.
    """
    means: Means = {}
    for row in rows:
        dataset, split = row["dataset"], int(row["split"])
        if split in splits_of(dataset, None):
            means.setdefault((dataset, row["method"]), {})[split] = geometric_mean(row)
    for (dataset, method), found in list(means.items()):
        if len(found) < SPLITS[dataset]:
            print(f"{method} left out on {dataset}: {len(found)} splits", flush=True)
            del means[dataset, method]
    return means


def methods_in(means: Means) -> list[str]:
    """Return the methods that were run: the fixed ones in their order, then members."""
    found = dict.fromkeys(method for _, method in means)
    fixed = [m for m in (*BASELINES, *OWN, *TUNED, *STACKED) if m in found]
    return list(dict.fromkeys([*fixed, *found]))


def average(means: Means, dataset: str, method: str) -> float:
    return float(np.mean(list(means[dataset, method].values())))


def shared_datasets(means: Means, methods: Sequence[str]) -> list[str]:
    """Return the datasets on which all of these methods were run."""
    return [d for d in SPLITS if all((d, method) in means for method in methods)]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def means_table(means: Means) -> list[str]:
    def cell(dataset: str, method: str) -> str:
        found = means.get((dataset, method))
        return mean_and_spread(list(found.values())) if found else ""

    return markdown(
        ["method", *(f"{d} ({n})" for d, n in SPLITS.items())],
        [[m, *(cell(d, m) for d in SPLITS)] for m in methods_in(means)],
    )


def comparison(means: Means, dataset: str, ours: str, base: str) -> list[str]:
    """Return the cells of ours against a base, on the splits that both have."""
    a, b = means[dataset, ours], means[dataset, base]
    pairs = sorted(a.keys() & b.keys())
    our_losses, base_losses = [a[s] for s in pairs], [b[s] for s in pairs]
    difference = paired_difference(our_losses, base_losses)
    our_mean, base_mean = np.mean(our_losses), np.mean(base_losses)
    interval = f"{difference.low:+.4f} to {difference.high:+.4f}"
    return [
        dataset,
        base,
        f"{base_mean:.4f}",
        f"{our_mean:.4f}",
        f"{difference.mean:+.4f}",
        interval if len(pairs) > 1 else "one split",
        f"{our_mean / base_mean:.3f}",
        "not worse" if not_worse(difference, float(base_mean)) else "worse",
    ]


def comparison_table(means: Means, pairs: Iterable[tuple[str, str]]) -> list[str]:
    header = ["dataset", "base", "mean of the base", "mean", "difference"]
    return markdown(
        [*header, "95 % interval", "ratio", "verdict"],
        [
            comparison(means, dataset, ours, base)
            for ours, base in pairs
            for dataset in shared_datasets(means, (ours, base))
            if means[dataset, ours].keys() & means[dataset, base].keys()
        ],
    )


def improvement_table(means: Means) -> list[str]:
    """Return by how much tuning lessens the loss, over datasets without genbase."""
    rows = []
    for tuned, base in TUNED.items():
        datasets = [d for d in shared_datasets(means, (tuned, base)) if d != "genbase"]
        if datasets:
            ratios = [
                average(means, d, tuned) / average(means, d, base) for d in datasets
            ]
            rows.append([tuned, str(len(datasets)), f"{1 - np.mean(ratios):+.1%}"])
    return markdown(["method", "datasets", "improvement"], rows)


def stacking_pairs(means: Means) -> list[tuple[str, str]]:
    bases = [m for m in methods_in(means) if m.startswith(MEMBER)]
    return [(OURS, base) for base in (*bases, "plain average")]


def printed_table(means: Means) -> list[str]:
    rows = []
    for target in read(TARGETS):
        dataset, clml_printed = target["dataset"], float(target["clml"])
        best = float(target["best"])
        cells = [
            dataset,
            f"{clml_printed:.4f}",
            f"{best:.4f} ({target['best_method']})",
        ]
        for method, printed in (("CLML", clml_printed), (OURS, best)):
            if (dataset, method) in means:
                mean = average(means, dataset, method)
                cells += [f"{mean:.4f}", f"{mean / printed:.3f}"]
            else:
                cells += ["", ""]
        rows.append(cells)
    header = ["dataset", "CLML, printed", "best printed", "CLML", "ratio to its print"]
    return markdown([*header, OURS, "ratio to the best printed"], rows)


def loss_table(
    means: Means, datasets: Sequence[str], methods: Sequence[str]
) -> np.ndarray:
    """Return the mean losses, shape (datasets, methods)."""
    return np.array([[average(means, d, m) for m in methods] for d in datasets])


def rank_table(
    means: Means, datasets: Sequence[str], methods: Sequence[str]
) -> list[str]:
    losses = loss_table(means, datasets, methods)
    ranks = dict(zip(methods, mean_ranks(losses), strict=True))
    size = (len(methods), len(datasets))
    nemenyi, dunn = nemenyi_difference(*size), bonferroni_dunn_difference(*size)
    statistic, pvalue = friedman(losses)
    rows = [
        [
            method,
            f"{rank:.2f}",
            f"{rank - ranks[OURS]:+.2f}",
            "yes" if abs(rank - ranks[OURS]) > dunn else "no",
        ]
        for method, rank in sorted(ranks.items(), key=lambda item: item[1])
    ]
    return [
        f"{len(methods)} methods on {len(datasets)} datasets ({', '.join(datasets)}).",
        f"Friedman's statistic is {statistic:.2f} (p = {pvalue:.2g}); the critical",
        f"difference at 5 % is {nemenyi:.2f} between any two (Nemenyi) and {dunn:.2f}",
        f"from {OURS} (Bonferroni-Dunn).",
        "",
        *markdown(
            ["method", "mean rank", f"from {OURS}", "beyond Bonferroni-Dunn"], rows
        ),
    ]


def ranks_section(means: Means) -> list[str]:
    """Return mean ranks over datasets that all methods have, then of all datasets."""
    methods = [OURS, *BASELINES]
    lines = []
    for dataset in SPLITS:
        absent = [m for m in methods if (dataset, m) not in means]
        if absent:
            lines += [f"No run on {dataset}: {', '.join(absent)}.", ""]
    everywhere = [m for m in methods if len(shared_datasets(means, [m])) == len(SPLITS)]
    blocks = [(shared_datasets(means, methods), methods)]
    if OURS in everywhere and everywhere != methods:
        blocks.append((list(SPLITS), everywhere))
    for datasets, chosen in blocks:
        if len(datasets) > 1 and len(chosen) > 2:
            lines += [*rank_table(means, datasets, chosen), ""]
    return lines


def rival_table(means: Means) -> list[str]:
    found = {
        rival: shared_datasets(means, (OURS, rival))
        for rival in RIVALS
        if len(shared_datasets(means, (OURS, rival))) > 1
    }
    losses = {r: loss_table(means, d, (OURS, r)).T for r, d in found.items()}
    columns: list[Sequence[float]] = []
    for alternative in ("two-sided", "less"):
        pvalues = [signed_rank(a, b, alternative) for a, b in losses.values()]
        columns += [pvalues, list(holm(pvalues))]
    rows = [
        [
            rival,
            str(len(found[rival])),
            str(int((ours < theirs).sum())),
            *(f"{p:.3f}" for p in values),
        ]
        for (rival, (ours, theirs)), *values in zip(
            losses.items(), *columns, strict=True
        )
    ]
    header = ["against", "datasets", "better on", "p, two-sided", "Holm"]
    return markdown([*header, "p, one-sided", "Holm"], rows)


def ranks_figure(ranks: dict[str, float], critical_difference: float) -> Figure:
    """Return a critical-difference diagram: bars join what cannot be told apart."""
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    groups = rank_groups(list(ranks.values()), critical_difference)
    n_left = (len(ordered) + 1) // 2
    top = 0.5 * len(groups) + 0.5
    figure = Figure(figsize=(7, 0.24 * (n_left + top + 3)), layout="constrained")
    ax = figure.subplots()
    ax.set(xlim=(1 - 0.45 * len(ordered), 1.45 * len(ordered)), ylim=(top + n_left, -3))
    ax.axis("off")
    black: dict[str, Any] = {"color": "black", "linewidth": 1}
    ax.plot([1, len(ordered)], [0, 0], **black)
    for tick in range(1, len(ordered) + 1):
        ax.plot([tick, tick], [0, -0.3], **black)
        ax.text(tick, -0.5, str(tick), ha="center", va="bottom")
    ax.plot([1, 1 + critical_difference], [-2, -2], marker="|", **black)
    ax.text(
        1 + critical_difference, -2, f"  CD = {critical_difference:.2f}", va="center"
    )
    for place, (method, rank) in enumerate(ordered):
        is_left = place < n_left
        y = top + (place if is_left else len(ordered) - 1 - place)
        x = 0.7 if is_left else len(ordered) + 0.3
        ax.plot([rank, rank, x], [0, y, y], **black)
        label = f"{method} {rank:.2f}" if is_left else f"{rank:.2f} {method}"
        weight = "bold" if method == OURS else "normal"
        side = "right" if is_left else "left"
        ax.text(x, y, f" {label} ", ha=side, va="center", weight=weight)
    for place, (first, last) in enumerate(groups):
        height = 0.5 * (place + 1)
        bar = [first - 0.08, last + 0.08]
        ax.plot(bar, [height, height], color="black", linewidth=3)
    return figure


def write_ranks_figure(means: Means, path: Path) -> None:
    """Draw the ranks of all methods, over the datasets that all of them have."""
    methods = [OURS, *BASELINES]
    datasets = shared_datasets(means, methods)
    if len(datasets) < 2:
        return
    ranks = mean_ranks(loss_table(means, datasets, methods))
    # The same ranks give the same bytes: no random names, no date, no version.
    with matplotlib.rc_context({"svg.hashsalt": "clml", "svg.fonttype": "none"}):
        ranks_figure(
            dict(zip(methods, ranks, strict=True)),
            nemenyi_difference(len(methods), len(datasets)),
        ).savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def table(arguments: argparse.Namespace) -> None:
    """Fill the template with the tables; draw the ranks beside it."""
    means = reported_means(read(arguments.results))
    tables = {
        "means": means_table(means),
        "tuned": comparison_table(means, TUNED.items()),
        "improvement": improvement_table(means),
        "stacking": comparison_table(means, stacking_pairs(means)),
        "printed": printed_table(means),
        "ranks": ranks_section(means),
        "rivals": rival_table(means),
    }
    text = TEMPLATE.read_text(encoding="utf-8").format(
        **{name: "\n".join(lines).strip() for name, lines in tables.items()}
    )
    arguments.results.with_suffix(".md").write_text(text, encoding="utf-8")
    write_ranks_figure(means, arguments.results.with_name("learning_power_ranks.svg"))
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["warm", "run", "adopt", "table"])
    parser.add_argument("--datasets", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--methods", nargs="+", help="default: all")
    parser.add_argument(
        "--seeds",
        nargs=2,
        type=int,
        metavar=("FIRST", "N"),
        help="default: 0 and as many as are reported of the dataset",
    )
    parser.add_argument("--cache", type=Path, default=Path("build/learning_power"))
    parser.add_argument("--device", default="cpu", help="of the networks")
    parser.add_argument("--trees", type=int, help="of each forest")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--from", dest="source", type=Path, nargs="+", default=[], metavar="FILE"
    )
    parser.add_argument("--results", type=Path, default=RESULTS / "learning_power.csv")
    arguments = parser.parse_args()
    # Processes fill the cores; threads of libraries would only get in their way.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    actions = {"warm": warm, "run": run, "adopt": adopt, "table": table}
    actions[arguments.action](arguments)


if __name__ == "__main__":
    main()

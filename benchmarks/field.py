"""Forests and boosters that people use, plain and tuned, beside the library's learners.

    python benchmarks/field.py run --datasets flags emotions --splits 3
    python benchmarks/field.py run --methods CatBoost --jobs 2
    python benchmarks/field.py run --methods CLML
    python benchmarks/field.py table

``run`` fits each learner on five folds and on all training rows of a split, and adds
lines to ``results/field.csv``: its scores as they are, with one threshold for all
labels that is chosen out of fold, and tuned by `LebesgueTunedClassifier`. What is there
already is not run again, and scores are kept in the cache folder, so that a run which
was stopped goes on; after an update of a learner's package begin another folder. The
protocol, datasets and splits are those of ``default_learner.py``, whose rows of CLML
and of stacking are used where ``field.csv`` has none: naming these methods runs them
here, with the losses that the other file does not have. ``table`` writes
``results/field.md``.

XGBoost, LightGBM and CatBoost take part where they are installed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import scipy.sparse as sp
from _cached import CachedScores, FoldSample, recalled_seconds
from _jobs import LOSSES, geometric_mean, mean_and_spread, read, run_jobs
from _significance import (
    bonferroni_dunn_difference,
    friedman,
    mean_ranks,
    nemenyi_difference,
)
from default_learner import NOT_IN_MEAN, SPLITS
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import clml
from clml._learners.out_of_fold import folds
from clml._learners.scores import label_scores
from clml.datasets import iterative_train_test_split, load_dataset
from clml.experiments._methods import MethodSpec, build_estimator, check_packages
from clml.losses import loss_values
from clml.splits.splitting import rows_of

RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "field.csv"
# Rows of CLML and of stacking, by the names that the other files have for them.
OTHERS = (RESULTS / "default_learner.csv", RESULTS / "learning_power.csv")
OURS, STACKING = "CLML", "Stacking"
OWN = {OURS: "CLML", STACKING: "stacking"}
TEMPLATE = Path(__file__).parent / "field.template.md"
# Registered methods.
LEARNERS = (
    "RandomForest",
    "ExtraTrees",
    "XGBoost",
    "XGBoost-multi",
    "LightGBM",
    "CatBoost",
)
FORESTS = ("RandomForest", "ExtraTrees")
PLAIN, THRESHOLD, TUNED = "plain", "one threshold", "tuned"
VARIANTS = (PLAIN, THRESHOLD, TUNED)
KEY = ("dataset", "method", "split")
ALL_LOSSES = (*LOSSES, "macro_f1", "subset_zero_one")
FIELDS = (*KEY, "variant", *ALL_LOSSES, "test_decisions", "seconds", "packages")
CV = 5
# On the largest dataset, as in `learning_power.py`: smaller forests, and folds on a
# sample of their rows.
LARGE = "imdb-f"
LARGE_TREES = 100
LARGE_FOLD_ROWS = 20_000


def dense_for_trees(X: Any) -> Any:
    """Return what forests make of sparse rows anyway, all at once."""
    return X.astype(np.float32).toarray()


def learner(
    method: str, dataset: str, split: int, X_train: Any, cache: str
) -> CachedScores:
    """Return a registered method, as it is fitted here, whose scores are kept."""
    estimator = build_estimator(MethodSpec.of(method).order(), split)
    if method in FORESTS:
        if dataset == LARGE:
            estimator.set_params(n_estimators=LARGE_TREES)
        if sp.issparse(X_train):
            dense = FunctionTransformer(dense_for_trees, accept_sparse=True)
            estimator = make_pipeline(dense, estimator)
    sample = None
    if dataset == LARGE:
        sample = FoldSample(X_train.shape[0], LARGE_FOLD_ROWS, split)
    return CachedScores(estimator, cache, sample)


def best_threshold(scores: NDArray[np.float64], Y: NDArray[Any]) -> float:
    """Return the threshold for all labels with the smallest geometric mean of losses.

    LRAP does not depend on it: what counts is the product of Hamming loss and micro-F1
    loss, each at least half an error. It lies midway between the scores that it parts.
    """
    order = np.argsort(-scores.ravel(), kind="stable")
    falling = scores.ravel()[order]
    hits = np.append(0, np.cumsum(Y.ravel()[order]))
    predicted = np.arange(len(hits))
    relevant = hits[-1]
    hamming = (predicted + relevant - 2 * hits) / len(falling)
    micro_f1 = 1.0 - 2.0 * hits / np.maximum(predicted + relevant, 1)
    least = 0.5 / len(falling)
    product = np.maximum(hamming, least) * np.maximum(micro_f1, least)
    # Equal scores are decided alike: no threshold comes between them.
    product[1:-1][falling[1:] == falling[:-1]] = np.inf
    best = int(np.argmin(product))
    if best == 0:
        return float(falling[0] + 1.0)
    if best == len(falling):
        return float(falling[-1] - 1.0)
    return float(falling[best - 1] + falling[best]) / 2


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and its seconds, those of scores that were read included."""
    recalled_seconds.clear()
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began + sum(recalled_seconds)


def out_of_fold(
    model: CachedScores, X: Any, Y: NDArray[Any], split: int
) -> NDArray[np.float64]:
    """Return scores (n, K) of rows that the learner did not see.

    They come of the folds that `LebesgueTunedClassifier` makes with the same seed.
    """
    scores = np.empty(Y.shape)
    for train, test in folds(CV, X, Y, split):
        model.fit(rows_of(X, train), rows_of(Y, train))
        scores[test] = label_scores(model, rows_of(X, test), Y.shape[1])
    return scores


def quietly(dataset: str, method: str, split: int, cache: str) -> list[dict[str, Any]]:
    """Run a job; leave out what its learners warn of."""
    # Constant labels, with which every method copes, and LightGBM's conversions.
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        return run_job(dataset, method, split, cache)


def run_job(dataset: str, method: str, split: int, cache: str) -> list[dict[str, Any]]:
    """Return the rows of one method on one split: one, or one a variant."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    packages = packages_of(method)

    def row(variant: str, scores: Any, seconds: float, at: float = 0.0) -> Any:
        losses = loss_values(Y_test, scores, ALL_LOSSES, threshold=at)
        return {
            **dict(zip(KEY, (dataset, method, split), strict=True)),
            "variant": variant,
            **{n: f"{v:.6f}" for n, v in zip(ALL_LOSSES, losses, strict=True)},
            "test_decisions": Y_test.size,
            "seconds": f"{seconds:.2f}",
            "packages": packages,
        }

    def fitted(model: Any) -> NDArray[np.float64]:
        return label_scores(model.fit(X, Y), X_test, Y.shape[1])

    if method in OWN:
        estimator = build_estimator(MethodSpec.of(method).order(), split)
        scores, seconds = timed(lambda: fitted(estimator))
        return [row(PLAIN, scores, seconds)]
    model = learner(method, dataset, split, X, cache)
    scores, seconds = timed(lambda: fitted(model))
    unseen, seconds_of_folds = timed(lambda: out_of_fold(model, X, Y, split))
    at, seconds_to_choose = timed(lambda: best_threshold(unseen, Y))
    tuned = clml.LebesgueTunedClassifier(model, cv=CV, random_state=split)
    tuned_scores, seconds_tuned = timed(lambda: fitted(tuned))
    all_fits = seconds + seconds_of_folds
    return [
        row(PLAIN, scores, seconds),
        row(THRESHOLD, scores, all_fits + seconds_to_choose, at),
        row(TUNED, tuned_scores, seconds_tuned),
    ]


def packages_of(method: str) -> str:
    """Return the packages that a method's results depend on, with their versions."""
    found = MethodSpec.of(method).description().get("packages", {})
    told = {
        k: v for k, v in found.items() if k not in ("python", "clml") or method in OWN
    }
    return ", ".join(v if k in v else f"{k} {v}" for k, v in sorted(told.items()))


def known_rows() -> list[dict[str, str]]:
    """Return the rows of the field, and those of ours that only other files have."""
    rows = read(ROWS)
    known = {tuple(row[name] for name in KEY) for row in rows}
    ours = {theirs: name for name, theirs in OWN.items()}
    for path in OTHERS:
        for found in read(path):
            if found["method"] not in ours:
                continue
            row = {**found, "method": ours[found["method"]], "variant": PLAIN}
            key = tuple(row[name] for name in KEY)
            if key not in known:
                known.add(key)
                rows.append({name: row.get(name, "") for name in FIELDS})
    return rows


def label(method: str, variant: str) -> str:
    """Return what the tables call a variant."""
    return method if variant == PLAIN else f"{method}, {variant}"


def labels() -> list[str]:
    """Return all of them, ours last."""
    return [*(label(m, v) for m in LEARNERS for v in VARIANTS), *OWN]


# What is called so on a dataset: the rows of its splits, from 0 on.
Found = dict[tuple[str, str], list[dict[str, str]]]


def reported(rows: Iterable[dict[str, str]]) -> Found:
    """Return the rows of each variant on each dataset, as many for all of a dataset.

    Splits count from 0 on, and as far as every learner that was run on the dataset has
    them. Ours are left out where they have fewer.
    """
    found: dict[tuple[str, str], dict[int, dict[str, str]]] = {}
    for row in rows:
        name = label(row["method"], row["variant"])
        found.setdefault((row["dataset"], name), {})[int(row["split"])] = row
    kept: Found = {}
    for dataset, most in SPLITS.items():
        names = [name for name in labels() if (dataset, name) in found]
        splits = {
            name: next(n for n in range(most + 1) if n == most or n not in of_name)
            for name in names
            for of_name in [found[dataset, name]]
        }
        n = min((splits[name] for name in names if name not in OWN), default=0)
        for name in names:
            if n and splits[name] >= n:
                kept[dataset, name] = [found[dataset, name][s] for s in range(n)]
    return kept


def values(found: Found, dataset: str, name: str, column: str = "") -> list[float]:
    """Return a column's values over splits, or geometric means; none if one lacks."""
    rows = found.get((dataset, name), [])
    if not column:
        return [geometric_mean(row) for row in rows]
    given = [row[column] for row in rows]
    return [float(value) for value in given] if all(given) else []


def datasets_of(found: Found, names: Sequence[str] = ()) -> list[str]:
    """Return the datasets that were run, or those on which all of these names were."""
    if names:
        return [d for d in SPLITS if all((d, name) in found for name in names)]
    return [d for d in SPLITS if any(dataset == d for dataset, _ in found)]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def found_labels(found: Found) -> list[str]:
    return [name for name in labels() if any(n == name for _, n in found)]


def by_dataset(found: Found, cell: Callable[[str, str], str]) -> str:
    """Return a table of variants and datasets."""
    datasets = datasets_of(found)
    n = {
        d: max(len(rows) for (name, _), rows in found.items() if name == d)
        for d in datasets
    }
    return table(
        ["method", *(f"{d} ({n[d]})" for d in datasets)],
        [[name, *(cell(d, name) for d in datasets)] for name in found_labels(found)],
    )


def means_cell(found: Found, dataset: str, name: str) -> str:
    given = values(found, dataset, name)
    return mean_and_spread(given, 4) if given else ""


def seconds_cell(found: Found, dataset: str, name: str) -> str:
    given = values(found, dataset, name, "seconds")
    return f"{np.mean(given):.3g}" if given else ""


def losses_table(found: Found) -> tuple[str, list[str]]:
    """Return the mean of each loss over the datasets that all have, and these."""
    names = found_labels(found)
    datasets = datasets_of(found, names)

    def cell(name: str, loss: str) -> str:
        given = [values(found, d, name, loss) for d in datasets]
        if not given or not all(given):
            return ""
        return f"{np.mean([np.mean(v) for v in given]):.4f}"

    rows = [[name, *(cell(name, loss) for loss in ALL_LOSSES)] for name in names]
    return table(["method", *ALL_LOSSES], rows), datasets


def ranks_section(found: Found, names: Sequence[str]) -> str:
    """Return ranks over the datasets that all have, then of those that have all."""
    everywhere = [n for n in names if datasets_of(found, [n]) == datasets_of(found)]
    blocks = [names] if everywhere == names else [names, everywhere]
    tables = [ranks_table(found, block) for block in blocks]
    return "\n\n".join(filter(None, tables)) or "Too few datasets have all methods."


def ranks_table(found: Found, names: Sequence[str]) -> str:
    """Return mean ranks with the tests, over the datasets that all have."""
    datasets = datasets_of(found, names)
    if len(datasets) < 2 or len(names) < 3 or OURS not in names:
        return ""
    losses = np.array(
        [[np.mean(values(found, d, name)) for name in names] for d in datasets]
    )
    ranks = mean_ranks(losses)
    statistic, pvalue = friedman(losses)
    size = (len(names), len(datasets))
    dunn = bonferroni_dunn_difference(*size)
    ours = names.index(OURS)
    counted = np.array([d != NOT_IN_MEAN for d in datasets])
    ratios = np.exp(np.log(losses / losses[:, [ours]])[counted].mean(axis=0))
    rows = [
        [
            names[i],
            f"{ranks[i]:.2f}",
            f"{ranks[i] - ranks[ours]:+.2f}",
            "yes" if abs(ranks[i] - ranks[ours]) > dunn else "no",
            f"{ratios[i]:.3f}",
        ]
        for i in np.argsort(ranks, kind="stable")
    ]
    header = ["method", "mean rank", f"from {OURS}", "beyond Bonferroni-Dunn"]
    told = (
        f"{len(names)} methods on {len(datasets)} datasets ({', '.join(datasets)}). "
        f"Friedman's statistic is {statistic:.2f} (p = {pvalue:.2g}); the critical "
        f"difference at 5 % is {nemenyi_difference(*size):.2f} between any two "
        f"(Nemenyi) and {dunn:.2f} from {OURS} (Bonferroni-Dunn)."
    )
    return f"{fill(told, 88)}\n\n{table([*header, f'ratio to {OURS}'], rows)}"


def write_table() -> None:
    """Fill the template."""
    rows = known_rows()
    found = reported(rows)
    names = found_labels(found)
    single = [label(m, TUNED) for m in LEARNERS if label(m, TUNED) in names]
    single += [OURS] * (OURS in names)
    datasets = datasets_of(found)
    losses, shared = losses_table(found)
    here = {row["packages"] for row in read(ROWS)} - {""}
    text = TEMPLATE.read_text(encoding="utf-8").format(
        n_datasets=len(datasets),
        n_all=len(SPLITS),
        packages=", ".join(sorted({p for told in here for p in told.split(", ")})),
        means=by_dataset(found, lambda d, name: means_cell(found, d, name)),
        losses=losses,
        shared=", ".join(shared),
        without=f" without {NOT_IN_MEAN}" if NOT_IN_MEAN in datasets else "",
        single=ranks_section(found, single),
        everything=ranks_section(found, names),
        seconds=by_dataset(found, lambda d, name: seconds_cell(found, d, name)),
    )
    (RESULTS / "field.md").write_text(text, encoding="utf-8")


def installed_learners() -> list[str]:
    """Return the learners whose packages are here; say which are not."""
    lacking = {method: MethodSpec.of(method).lacking() for method in LEARNERS}
    for method, packages in lacking.items():
        if packages:
            print(f"{method} is left out: {', '.join(packages)} is not installed")
    return [method for method in LEARNERS if not lacking[method]]


def jobs_of(
    datasets: Sequence[str], methods: Sequence[str], splits: int | None, cache: str
) -> list[tuple[Any, ...]]:
    """Return the jobs split by split: what is stopped has some of everything.

    Without names these are the learners, and ours where no file has them.
    """
    known = {tuple(row[name] for name in KEY) for row in known_rows()}
    return [
        (dataset, method, split, cache)
        for dataset in datasets
        for split in range(min(SPLITS[dataset], splits or SPLITS[dataset]))
        for method in methods or (*installed_learners(), *OWN)
        if methods or method in LEARNERS or (dataset, method, str(split)) not in known
    ]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--datasets", nargs="+", choices=SPLITS, default=list(SPLITS))
    runs.add_argument("--methods", nargs="+", choices=(*LEARNERS, *OWN), default=[])
    runs.add_argument("--splits", type=int, help="at most so many of each dataset")
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument(
        "--cache",
        default=str(Path(tempfile.gettempdir(), "clml-field")),
        help="folder for the scores of learners",
    )
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        check_packages([MethodSpec.of(method) for method in given.methods])
        # Processes fill the cores; threads of libraries would only get in their way.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        jobs = jobs_of(given.datasets, given.methods, given.splits, given.cache)
        run_jobs(ROWS, FIELDS, KEY, jobs, quietly, given.jobs)
    write_table()


if __name__ == "__main__":
    main()

"""What the defaults of `CLMLClassifier` rest on: one thing changed at a time.

Each job fits one variant on one development split (seeds from 100 on; the splits that
results are reported for begin at 0) and takes the losses of the rows held out of it.

    python benchmarks/study_defaults.py run --jobs 16
    python benchmarks/study_defaults.py table

``run`` appends finished jobs to a CSV file and skips those that are there already.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

from _jobs import LOSSES, geometric_mean, mean_and_spread, read, run_jobs

from clml import CMA, PAPER_SETTINGS, Ascent, CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values
from clml.network import PaperNetwork, forward

RESULTS = Path(__file__).parent / "results" / "study_defaults.csv"
FIRST_SPLIT = 100
# Dataset to number of development splits, the quickest first.
SPLITS = {
    "flags": 6,
    "emotions": 6,
    "yeast": 2,
    "cal500": 2,
    "enron": 3,
    "genbase": 3,
    "tmc2007-500": 1,
}
EVOLVED = {"search": CMA(population_size=64), "n_members": 1}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    # How networks are trained.
    "the paper's settings": PAPER_SETTINGS,
    "one network, CMA-ES, ties by depth": EVOLVED,
    "one network, CMA-ES, ties by layer": {
        **EVOLVED,
        "search": CMA(population_size=64, ties="layer"),
    },
    "8 members, CMA-ES": {"search": "cma", "n_members": 8},
    "8 members, rank gradient": {"search": "rank_gradient", "n_members": 8},
    "surrogate start": {"search": Ascent(init="surrogate")},
    # Members.
    "1 member": {"n_members": 1},
    "4 members": {"n_members": 4},
    "8 members": {"n_members": 8},
    "32 members": {"n_members": 32},
    # The network.
    "width 20": {"network": PaperNetwork(20)},
    "width 64": {"network": PaperNetwork(64)},
    "width 200, dropout 0.5": {
        "network": PaperNetwork(200, dropout=0.5),
        "search": Ascent(learning_rate=0.003),
    },
    "2 hidden layers": {"network": PaperNetwork(n_layers=2)},
    "features as they are": {"network": PaperNetwork(standardize=False)},
    # The ascent.
    "learning rate 0.003": {"search": Ascent(learning_rate=0.003)},
    "learning rate 0.03": {"search": Ascent(learning_rate=0.03)},
    "smoothing 0.25": {"search": Ascent(smoothing=0.25)},
    "smoothing 1": {"search": Ascent(smoothing=1.0)},
    "half the epochs": {"max_epochs": 50},
    "twice the epochs": {"max_epochs": 200},
    # The map of the outputs.
    "shrinkage 0": {"shrinkage": 0.0},
    "shrinkage 1": {"shrinkage": 1.0},
}
# Not every variant is worth its time on every dataset.
_RANK_GRADIENT = "8 members, rank gradient"
_MEMBERS_BY_POPULATIONS = ("8 members, CMA-ES", _RANK_GRADIENT)
_OF_THE_NETWORK = list(VARIANTS)[list(VARIANTS).index("width 20") :]
TOO_LONG: dict[str, tuple[str, ...]] = {
    "emotions": (_RANK_GRADIENT,),
    "yeast": (*_MEMBERS_BY_POPULATIONS, *_OF_THE_NETWORK),
    "cal500": (*_MEMBERS_BY_POPULATIONS, *_OF_THE_NETWORK),
    "genbase": _MEMBERS_BY_POPULATIONS,
    "enron": (*_MEMBERS_BY_POPULATIONS, "32 members", *_OF_THE_NETWORK),
    "tmc2007-500": (
        "the paper's settings",
        "one network, CMA-ES, ties by depth",
        "one network, CMA-ES, ties by layer",
        *_MEMBERS_BY_POPULATIONS,
        "32 members",
        "twice the epochs",
    ),
}
# What of one fit predicts, beside what does by default.
PICKS = ("final", "geometric_mean", "knee")
FIELDS = (
    "dataset",
    "variant",
    "split",
    "predicts",
    *LOSSES,
    "test_decisions",
    "seconds",
)


def run_job(dataset: str, variant: str, split: int) -> list[dict[str, Any]]:
    warnings.filterwarnings("ignore", message=".*labels are constant")
    data = load_dataset(dataset)
    X, X_held, Y, Y_held = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    began = time.perf_counter()
    settings = {"network": "paper", **VARIANTS[variant]}
    clf = CLMLClassifier(**settings, random_state=split).fit(X, Y)
    seconds = time.perf_counter() - began
    scores = {"default": clf.decision_function(X_held)}
    if variant == "default":
        scores |= {name: clf.select(name).decision_function(X_held) for name in PICKS}
        each = forward(clf.networks_.astype(float), X_held, clf.layout_, clf.scaling_)
        scores["average, no map"] = each.mean(axis=0)
        scores |= {f"member {i}": member for i, member in enumerate(each)}
    return [
        {
            "dataset": dataset,
            "variant": variant,
            "split": split,
            "predicts": predicts,
            **{
                name: f"{value:.6f}"
                for name, value in zip(
                    LOSSES, loss_values(Y_held, logits, LOSSES), strict=True
                )
            },
            "test_decisions": Y_held.size,
            "seconds": f"{seconds:.2f}",
        }
        for predicts, logits in scores.items()
    ]


def run(arguments: argparse.Namespace) -> None:
    run_jobs(
        arguments.results,
        FIELDS,
        ("dataset", "variant", "split"),
        [
            (dataset, variant, FIRST_SPLIT + i)
            for dataset in SPLITS
            for variant in VARIANTS
            if variant not in TOO_LONG.get(dataset, ())
            for i in range(SPLITS[dataset])
        ],
        run_job,
        arguments.jobs,
    )


def table(arguments: argparse.Namespace) -> None:
    """Print mean and deviation of each variant, and of what else may predict."""
    means: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in read(arguments.results):
        predicts = row["predicts"]
        if predicts.startswith("member "):
            predicts = "one of the members"
        which = (row["variant"], predicts)
        cells = means.setdefault(which, {})
        cells.setdefault(row["dataset"], []).append(geometric_mean(row))
    names = list(SPLITS)
    print("| | " + " | ".join(f"{name} ({SPLITS[name]})" for name in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    order = list(VARIANTS)
    for (variant, predicts), cells in sorted(
        means.items(), key=lambda item: order.index(item[0][0])
    ):
        label = variant if predicts == "default" else f"default, {predicts}"
        values = [
            mean_and_spread(cells[name], 4) if name in cells else "" for name in names
        ]
        print(f"| {label} | " + " | ".join(values) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    {"run": run, "table": table}[arguments.action](arguments)


if __name__ == "__main__":
    main()

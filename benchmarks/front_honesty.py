"""How far off the stated losses of a front are, against their standard errors.

Few rows of ``make_bayes_multilabel`` are fitted, of labels that depend on the features
and of labels that are noise, and the losses that ``front_`` states for the default and
for the model of each ``select(loss)`` are compared with those of the same model on many
fresh rows.

    python benchmarks/front_honesty.py --jobs 2

Writes ``results/front_honesty.csv``: means over runs of the stated loss, of the fresh
one and of the standard error, and the share of runs in which the fresh loss lies within
two standard errors of the stated one. About 20 minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from clml import PAPER_SETTINGS, CLMLClassifier, LebesgueTunedClassifier
from clml.datasets import make_bayes_multilabel
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
LOSSES = ("hamming", "lrap", "micro_f1")
ROWS, FRESH_ROWS = 200, 20_000
NOISE = {"known truth": 0.3, "noise": 1.0}
# The paper's settings state no errors: a few runs show how far off they are.
RUNS = {
    "LebesgueTunedClassifier": 200,
    "CLMLClassifier": 200,
    "CLMLClassifier(**PAPER_SETTINGS)": 10,
}


def classifier(name: str, seed: int) -> Any:
    if name == "LebesgueTunedClassifier":
        learner = MultiOutputClassifier(LogisticRegression())
        return LebesgueTunedClassifier(learner, random_state=seed)
    settings = PAPER_SETTINGS if "PAPER" in name else {}
    return CLMLClassifier(**settings, random_state=seed)


def compare(labels: str, name: str, seed: int) -> list[dict[str, Any]]:
    """Fit once; return stated and fresh losses of the models that one would choose."""
    n = ROWS + FRESH_ROWS
    data = make_bayes_multilabel(n, noise=NOISE[labels], random_state=seed)
    clf = classifier(name, seed).fit(data.X[:ROWS], data.Y[:ROWS])
    front = clf.front_
    models = {loss: front.choice(loss)[0] for loss in LOSSES}
    if front.default is not None:
        models["default"] = front.default
    fresh = {
        model: loss_values(
            data.Y[ROWS:], clf.select(model).decision_function(data.X[ROWS:]), LOSSES
        )
        for model in set(models.values())
    }
    return [
        {
            "labels": labels,
            "classifier": name,
            "model": model,
            "loss": loss,
            "stated": front.losses[index, number],
            "fresh": fresh[index][number],
            "error": front.standard_error[index, number],
        }
        for model, index in models.items()
        for number, loss in enumerate(LOSSES)
    ]


def summary(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one line for each loss of each model."""
    keys = ("labels", "classifier", "model", "loss")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in found:
        groups.setdefault(tuple(one[key] for key in keys), []).append(one)
    lines = []
    for setting, some in groups.items():
        stated, fresh, error = (
            np.array([one[name] for one in some], dtype=float)
            for name in ("stated", "fresh", "error")
        )
        known = np.isfinite(error).all()
        within = np.mean(np.abs(stated - fresh) <= 2 * error)
        lines.append(
            dict(zip(keys, setting, strict=True))
            | {"runs": len(some)}
            | {"stated": f"{stated.mean():.3f}", "fresh": f"{fresh.mean():.3f}"}
            | {"error": f"{error.mean():.3f}" if known else ""}
            | {"within_two_errors": f"{within:.3f}" if known else ""}
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--classifier", choices=RUNS, action="append")
    parser.add_argument("--runs", type=int, default=1000, help="at most")
    parser.add_argument("--output", type=Path, default=RESULTS / "front_honesty.csv")
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for labels in NOISE:
        for name in arguments.classifier or RUNS:
            runs = Parallel(arguments.jobs)(
                delayed(compare)(labels, name, seed)
                for seed in range(min(RUNS[name], arguments.runs))
            )
            found += [one for run in runs for one in run]
            print(f"{labels}, {name}: done", flush=True)
    lines = summary(found)
    with arguments.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()

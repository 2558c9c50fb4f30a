"""A stack in one network: what distilling costs and what it is worth.

    python benchmarks/distillation.py run --jobs 2
    python benchmarks/distillation.py table

``run`` fits a stack of two forests and CLML with ``distil=True`` and adds a line for
each model to ``results/distillation.csv``: CLML alone, the stack, what was distilled,
and for comparison networks that were trained in the same way on other mixtures of
labels and teacher. What is there already is not computed again. ``table`` writes
``results/distillation.md``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _jobs import LOSSES, geometric_mean, read, run_jobs
from sklearn.utils import _safe_indexing

from clml import CLMLClassifier, LebesgueStackingClassifier, _stacking
from clml._maps.teacher import Teacher, soft_targets
from clml._training.run_checkpoint import Clock
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "distillation.csv"
KEY = ("dataset", "split")
MEASURED = ("stated", "fit_seconds", "predict_seconds", "onnx_bytes")
FIELDS = (*KEY, "model", *LOSSES, "test_decisions", *MEASURED)
DATASETS = ("emotions", "birds", "medical", "yeast")
DEVELOPMENT = (100, 101)
# The share of a target that is the teacher's; that of distil=True is another.
SHARES = {"labels alone": 0.0, "half the teacher": 0.5}
MODELS = ("CLML", "stack", "distilled", *SHARES)
N_ROWS = 10_000
HEADER = """\
# A stack in one network

The default stack, two forests and CLML, and what `distil=True` makes of it,
on development splits alone: seeds from 100 on, on which its settings were chosen.
Geometric mean of Hamming loss, 1 - LRAP and 1 - micro-F1 on the 30 % of rows that are
held out, averaged over the splits, whose number is in brackets. *Labels alone* and
*half the teacher* are networks that were trained as the distilled one, on
cross-entropy, with none and half of the teacher's probabilities in their targets; the
distilled one has a fifth. Made by `benchmarks/distillation.py`.
"""


def new_stack(seed: int) -> LebesgueStackingClassifier:
    """Return the default stack, distilled too."""
    return LebesgueStackingClassifier(distil=True, random_state=seed)


def run_job(dataset: str, split: int) -> list[dict[str, Any]]:
    """Fit all models on one split; return their losses on the other rows."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        fitted = _fitted_models(X, Y, split)
    some = np.random.default_rng(0).integers(len(Y_test), size=N_ROWS)
    many = _safe_indexing(X_test, some)
    found = []
    for name, (clf, seconds) in fitted.items():
        losses = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
        front = clf.front_
        stated = front.losses[0 if front.default is None else front.default]
        began = time.perf_counter()
        clf.predict_proba(many)
        row = {"dataset": dataset, "split": split, "model": name}
        row |= {n: f"{v:.6f}" for n, v in zip(LOSSES, losses, strict=True)}
        row |= {
            "test_decisions": Y_test.size,
            "stated": f"{np.prod(stated) ** (1 / len(stated)):.6f}",
            "fit_seconds": f"{seconds:.2f}",
            "predict_seconds": f"{time.perf_counter() - began:.2f}",
            "onnx_bytes": _onnx_bytes(clf),
        }
        found.append(row)
    return found


def _fitted_models(X: Any, Y: Any, split: int) -> dict[str, tuple[Any, float]]:
    """Return the models with the seconds of their fits."""
    told: list[Any] = []
    taught: list[float] = []
    real_teach = _stacking.teach

    def listen(logits: Any, targets: Any) -> Any:
        told.extend((logits, targets))
        return soft_targets(logits, targets)

    def teach(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return real_teach(*arguments)
        finally:
            taught.append(time.perf_counter() - began)

    began = time.perf_counter()
    with (
        patch.object(_stacking, "soft_targets", listen),
        patch.object(_stacking, "teach", teach),
    ):
        stack = new_stack(split).fit(X, Y)
    in_all = time.perf_counter() - began
    own = stack.leaderboard_.seconds[list(stack.leaderboard_.names).index("clml")]
    found: dict[str, tuple[Any, float]] = {
        # One fit of six, those on the folds being of four fifths of the rows.
        "CLML": (stack.named_estimators_.clml, own / 5),
        "stack": (stack, in_all - taught[0]),
        "distilled": (stack.distilled_, taught[0]),
    }
    for name, share in SHARES.items():
        began = time.perf_counter()
        teacher = Teacher(soft_targets(*told, share=share), Clock(None))
        student = CLMLClassifier(random_state=split)._fit_to(teacher, X, Y, None)
        found[name] = student, time.perf_counter() - began
    return found


def _onnx_bytes(clf: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        clf.to_onnx(path)
        return path.stat().st_size


def write_table() -> None:
    """Write the tables of what was run."""
    rows = read(ROWS)
    known = [name for name in DATASETS if any(r["dataset"] == name for r in rows)]
    lines = [
        HEADER,
        f"| dataset (splits) | {' | '.join(MODELS)} | distilled / CLML "
        "| distilled / stack |",
        "|---" * (len(MODELS) + 3) + "|",
    ]
    ratios = []
    for name in known:
        of_model = {
            model: [
                geometric_mean(row)
                for row in rows
                if row["dataset"] == name and row["model"] == model
            ]
            for model in MODELS
        }
        means = {model: float(np.mean(found)) for model, found in of_model.items()}
        over = [means["distilled"] / means[model] for model in ("CLML", "stack")]
        ratios.append(over)
        cells = [f"{mean:.4f}" for mean in means.values()]
        shown = [f"{ratio:.3f}" for ratio in over]
        n = len(of_model["CLML"])
        lines.append(f"| {name} ({n}) | {' | '.join([*cells, *shown])} |")
    if ratios:
        mean = " | ".join(f"{m:.3f}" for m in np.exp(np.log(ratios).mean(axis=0)))
        lines.append(f"| geometric mean{' |' * (len(MODELS) + 1)} {mean} |")
    lines += ["", *_sizes(rows, known), "", *_stated(rows, known)]
    text = "\n".join(lines) + "\n"
    (RESULTS / "distillation.md").write_text(text, encoding="utf-8")


def _sizes(rows: list[dict[str, str]], known: list[str]) -> list[str]:
    """Return the table of files and seconds."""
    shown = ("CLML", "stack", "distilled")
    lines = [
        "ONNX files in MB, and seconds of `predict_proba` for 10,000 rows and of the "
        "fit (one thread, on a machine that others used, too; the stack's without the "
        "distilled model):",
        "",
        "| dataset | " + " | ".join(f"{m} MB" for m in shown) + " | "
        + " | ".join(f"{m} predicts" for m in shown) + " | "
        + " | ".join(f"{m} fits" for m in shown) + " |",
        "|---" * (1 + 3 * len(shown)) + "|",
    ]  # fmt: skip
    for name in known:
        cells = []
        for column, scale in (
            ("onnx_bytes", 1e-6),
            ("predict_seconds", 1.0),
            ("fit_seconds", 1.0),
        ):
            for model in shown:
                mean = _mean(rows, name, model, column) * scale
                cells.append(f"{mean:.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _stated(rows: list[dict[str, str]], known: list[str]) -> list[str]:
    """Return the table of how honest fronts are."""
    lines = [
        "Losses that `front_` states of the model that predicts, over those on the "
        "rows held out (geometric means). A teacher has seen the labels of rows that "
        "judge:",
        "",
        f"| dataset | {' | '.join(MODELS)} |",
        "|---" * (len(MODELS) + 1) + "|",
    ]
    for name in known:
        cells = []
        for model in MODELS:
            own = [r for r in rows if r["dataset"] == name and r["model"] == model]
            held_out = np.mean([geometric_mean(row) for row in own])
            cells.append(f"{_mean(rows, name, model, 'stated') / held_out:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _mean(rows: list[dict[str, str]], dataset: str, model: str, column: str) -> float:
    found = [
        float(row[column])
        for row in rows
        if row["dataset"] == dataset and row["model"] == model
    ]
    return float(np.mean(found))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--datasets", nargs="+", default=list(DATASETS))
    runs.add_argument("--splits", nargs="+", type=int, default=list(DEVELOPMENT))
    runs.add_argument("--jobs", type=int, default=1)
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        jobs = [(name, split) for name in given.datasets for split in given.splits]
        run_jobs(ROWS, FIELDS, KEY, jobs, run_job, given.jobs)
    write_table()


if __name__ == "__main__":
    main()

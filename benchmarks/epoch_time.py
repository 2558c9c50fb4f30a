"""Time of an epoch: the library against loops from standard packages, in one run.

All train the same network on the same rows with the same population size. The
reference (``reference_loop.py``) has ``cma`` at full covariance, scikit-learn's metrics
candidate by candidate, and Monte Carlo contributions; ``numpy_loop.py`` the same
strategy, whole populations as NumPy arrays, and exact contributions. Their first epochs
are timed, which leave out the factorisation that ``cma`` does once in about a hundred:
that favours them. The library's first 100 epochs are what they are compared with; those
of a whole run of 750, which grow dearer as the paths of its covariance pile up, stand
beside. All are timed in turns, several times, and the median ratio counts: machines are
never quiet for long.

    python benchmarks/epoch_time.py

Uses the datasets of ``CLML_DATA`` if they are there and generated rows of the same
shape otherwise. Writes ``results/epoch_time.json`` and ``results/epoch_time.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy_loop import numpy_epochs
from reference_loop import protocol_data, reference_epochs
from sklearn.datasets import make_multilabel_classification
from threadpoolctl import threadpool_limits

from clml import PAPER_SETTINGS, CLMLClassifier
from clml.datasets import load_dataset

RESULTS = Path(__file__).parent / "results"
# Rows, features, labels, and epochs of the reference that take some seconds.
SHAPES = {
    "emotions": (593, 72, 6, 4),
    "yeast": (2417, 103, 14, 2),
    "cal500": (502, 68, 174, 3),
}
NUMPY_EPOCHS = 20
FIRST_EPOCHS = 100
TURNS = 5
# What ratios may be below those of the file, with --check.
WORSE = 1.5


def rows(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    if "CLML_DATA" in os.environ:
        data = load_dataset(name)
        return data.X, data.Y, "real"
    n, d, k, _ = SHAPES[name]
    X, Y = make_multilabel_classification(n, d, n_classes=k, random_state=0)
    return X, Y, "generated"


def measure(name: str) -> dict[str, Any]:
    X, Y, source = rows(name)
    X_train, Y_train, X_val, Y_val = protocol_data(X, Y)
    result: dict[str, Any] = {
        "dataset": name,
        "rows": source,
        "training_rows": len(X_train),
        "validation_rows": len(X_val),
    }
    for threads in (1, 2):
        settings = {**PAPER_SETTINGS, "n_jobs": threads, "random_state": 0}
        data = (X_train, Y_train, X_val, Y_val)

        def fit(n_epochs: int, settings: dict[str, Any] = settings) -> CLMLClassifier:
            clf = CLMLClassifier(**{**settings, "max_epochs": n_epochs})
            return clf.fit(X_train, Y_train, X_val=X_val, y_val=Y_val)

        with (
            threadpool_limits(threads, user_api="blas"),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", UserWarning)  # constant labels
            population = fit(3).population_size_  # compiles, once
            turns = []
            for _ in range(TURNS):
                reference = reference_epochs(*data, n_epochs=SHAPES[name][3])
                by_numpy = numpy_epochs(*data, NUMPY_EPOCHS, population)
                # The threads of the competitors' BLAS spin on for a while.
                fit(FIRST_EPOCHS)
                ours = fit(FIRST_EPOCHS).history_["seconds"]
                turns.append([np.mean(x) for x in (reference, by_numpy, ours)])
            clf = fit(settings["max_epochs"])
        reference, by_numpy, ours = np.array(turns).T
        whole = float(np.mean(clf.history_["seconds"]))
        result[f"threads_{threads}"] = {
            "reference_ms": 1e3 * float(np.median(reference)),
            "numpy_ms": 1e3 * float(np.median(by_numpy)),
            "clml_ms": 1e3 * whole,
            "clml_first_100_ms": 1e3 * float(np.median(ours)),
            "ratio": float(np.median(reference / ours)),
            "least": float(np.min(reference / ours)),
            "most": float(np.max(reference / ours)),
            "ratio_of_a_run": float(np.median(reference)) / whole,
            "numpy_ratio": float(np.median(by_numpy / ours)),
        }
        result["population"] = clf.population_size_
        result["weights"] = clf.layout_.size
    return result


def table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Time of an epoch",
        "",
        "Milliseconds of an epoch (sampling, losses on training and validation rows,",
        "contributions, update), the paper's settings, all in one run: medians of "
        f"{TURNS}",
        "turns. Ratios are to the library's first 100 epochs, with the least and the",
        "most of the turns, and to all 750 of a run. Made by "
        "`benchmarks/epoch_time.py`.",
        "",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        "| dataset | weights | population | threads | clml, first 100 | clml, 750 "
        "| NumPy loop | ratio | reference loop | ratio | of a run |",
        "|---" * 11 + "|",
    ]
    for r in results:
        for threads in (1, 2):
            t = r[f"threads_{threads}"]
            lines.append(
                f"| {r['dataset']} ({r['rows']} rows) | {r['weights']} "
                f"| {r['population']} | {threads} | {t['clml_first_100_ms']:.2f} "
                f"| {t['clml_ms']:.2f} | {t['numpy_ms']:.1f} "
                f"| {t['numpy_ratio']:.1f} | {t['reference_ms']:.0f} "
                f"| {t['ratio']:.0f} ({t['least']:.0f} to {t['most']:.0f}) "
                f"| {t['ratio_of_a_run']:.0f} |"
            )
    return "\n".join(lines) + "\n"


def check(results: list[dict[str, Any]], path: Path) -> None:
    """Fail where a ratio has fallen since the file was written."""
    before = {r["dataset"]: r for r in json.loads(path.read_text())}
    worse = [
        f"{r['dataset']}, {name}: {r[threads][name]:.1f}, was {known:.1f}"
        for r in results
        for threads in ("threads_1", "threads_2")
        for name, known in before[r["dataset"]][threads].items()
        if "ratio" in name and r[threads][name] * WORSE < known
    ]
    if worse:
        raise SystemExit("Slower against its competitors:\n" + "\n".join(worse))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare with the file, write nothing"
    )
    arguments = parser.parse_args()
    results = [measure(name) for name in SHAPES]
    text = table(results)
    print(text)
    path = RESULTS / "epoch_time.json"
    if arguments.check:
        check(results, path)
        return
    path.write_text(json.dumps(results, indent=1) + "\n")
    path.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()

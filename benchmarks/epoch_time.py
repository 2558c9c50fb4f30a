"""Time of an epoch: the library against a plain reference loop, in one run.

Both train the same network on the same rows with the same population size. The
reference (``reference_loop.py``) is what one would assemble from standard packages:
``cma`` at full covariance, scikit-learn's metrics candidate by candidate, Monte Carlo
contributions. Its first epochs are timed, which leave out the factorisation that
``cma`` does once in about a hundred: that favours the reference. The library's epochs
are those of a whole run of 750, which grow dearer as the paths of its covariance pile
up.

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
from reference_loop import protocol_data, reference_epochs
from sklearn.datasets import make_multilabel_classification
from threadpoolctl import threadpool_limits

from clml import PAPER_SETTINGS, CLMLClassifier
from clml.datasets import load_dataset

RESULTS = Path(__file__).parent / "results"
# Rows, features, labels, and epochs of the reference that take some seconds.
SHAPES = {"emotions": (593, 72, 6, 8), "yeast": (2417, 103, 14, 4)}
REQUIRED_RATIO = 200


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
        with threadpool_limits(threads, user_api="blas"):
            seconds = reference_epochs(
                X_train, Y_train, X_val, Y_val, n_epochs=SHAPES[name][3]
            )
        clf = CLMLClassifier(**PAPER_SETTINGS, n_jobs=threads, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # constant labels
            clf.fit(X_train, Y_train, X_val=X_val, y_val=Y_val)
        ours = clf.history_["seconds"]
        result[f"threads_{threads}"] = {
            "reference_ms": 1e3 * float(np.mean(seconds)),
            "clml_ms": 1e3 * float(np.mean(ours)),
            "clml_first_100_ms": 1e3 * float(np.mean(ours[:100])),
            "ratio": float(np.mean(seconds) / np.mean(ours)),
        }
        result["population"] = clf.population_size_
        result["weights"] = clf.layout_.size
    return result


def table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Time of an epoch",
        "",
        "Mean milliseconds of an epoch (sampling, losses on training and validation",
        "rows, contributions, update), the paper's settings, both sides in one run.",
        "Made by `benchmarks/epoch_time.py`.",
        "",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        "| dataset | weights | population | threads | reference loop "
        "| clml, 750 epochs | clml, first 100 | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        for threads in (1, 2):
            t = r[f"threads_{threads}"]
            lines.append(
                f"| {r['dataset']} ({r['rows']} rows) | {r['weights']} "
                f"| {r['population']} | {threads} | {t['reference_ms']:.0f} "
                f"| {t['clml_ms']:.2f} | {t['clml_first_100_ms']:.2f} "
                f"| {t['ratio']:.0f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail below 200")
    arguments = parser.parse_args()
    results = [measure(name) for name in SHAPES]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "epoch_time.json").write_text(json.dumps(results, indent=1) + "\n")
    text = table(results)
    (RESULTS / "epoch_time.md").write_text(text)
    print(text)
    worst = min(r[f"threads_{t}"]["ratio"] for r in results for t in (1, 2))
    if arguments.check and worst < REQUIRED_RATIO:
        raise SystemExit(f"The smallest ratio is {worst:.0f}, below {REQUIRED_RATIO}.")


if __name__ == "__main__":
    main()

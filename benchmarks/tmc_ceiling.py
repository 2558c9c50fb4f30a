"""Ask whether tmc2007-500 can be predicted as well as its printed rows say.

The paper prints a Hamming loss of 0.040 for CLIF and 0.041 for DELA, far below what
any method reaches in `compare_baselines.py`. Three questions, one split each:

- Do the settings that the methods' authors published for tmc2007 get there?
- Does a network get there that has seen the test rows?
- Rows with the same features are seen by every method as one. How often do their
  labels differ? No predictor has an expected Hamming loss below half of that there.

    python benchmarks/tmc_ceiling.py
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _jobs import LOSSES

from clml.baselines import CLIFClassifier, DELAClassifier, MLPRelevanceClassifier
from clml.datasets import iterative_split_indices, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results" / "tmc_ceiling.csv"


def twins(X: sp.csr_array) -> list[list[int]]:
    """Return the groups of rows with the same features."""
    groups: dict[bytes, list[int]] = {}
    for row in range(X.shape[0]):
        columns = X.indices[X.indptr[row] : X.indptr[row + 1]]
        groups.setdefault(columns.tobytes(), []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def disagreement(Y: np.ndarray, groups: list[list[int]]) -> float:
    """Share of labels in which two rows of a group differ, each row counted once."""
    shares = []
    for rows in groups:
        positive, n = Y[rows].sum(axis=0), len(rows)
        pairs = 2 * positive * (n - positive) / (n * (n - 1))
        shares += [pairs.mean()] * n
    return float(np.mean(shares))


def main() -> None:
    data = load_dataset("tmc2007-500")
    X, Y = data.X, data.Y
    train, test = iterative_split_indices(
        Y, test_size=0.3, refine=False, random_state=0
    )
    settings = {"random_state": 0, "verbose": 1}
    # Decisions at 0.5, as in the paper.
    clif = CLIFClassifier.from_preset(
        "tmc2007", threshold=0.5, max_epochs=30, **settings
    )
    dela = DELAClassifier.from_preset("tmc2007", **settings)
    plain = MLPRelevanceClassifier(**settings)
    everything = np.arange(len(Y))
    fits: list[tuple[str, Any, np.ndarray]] = [
        ("plain network", plain, train),
        ("plain network, test rows among its training rows", plain, everything),
        ("DELA, published settings for tmc2007", dela, train),
        ("CLIF, published settings for tmc2007", clif, train),
    ]
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", *LOSSES])
        for name, model, rows in fits:
            model.fit(X[rows], Y[rows])
            losses = loss_values(Y[test], model.decision_function(X[test]), LOSSES)
            writer.writerow([name, *(f"{loss:.4f}" for loss in losses)])
            file.flush()
        groups = twins(X)
        n_rows = sum(map(len, groups))
        writer.writerow(
            [
                f"least Hamming loss on the {n_rows} rows that have a twin",
                f"{disagreement(Y, groups) / 2:.4f}",
                "",
                "",
            ]
        )
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()

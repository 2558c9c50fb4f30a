"""Rows on disk against the same rows in memory: seconds an epoch, and memory.

    python benchmarks/out_of_core.py --folder /big/disk --rows 5000000

Writes generated rows as partitions of 65,536 rows (``.npz``, float32), then fits the
same network on them twice, each time in a process of its own: from the files with a
budget of memory, and from one array that holds them all. Half the epochs of the one are
run before and half after the other, so that a machine that changes its mind shows.
The medians of the epochs' seconds are compared; the first epoch from disk, which reads
the files and writes copies of what does not fit, is told apart. Results go to
``results/out_of_core.csv``.
"""

import argparse
import csv
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "out_of_core.csv"
PARTITION = 65_536
FEATURES, LABELS = 200, 10


@dataclass(frozen=True)
class Run:
    """One fit in a process of its own."""

    kind: str
    rows: int
    features: int
    labels: int
    budget_mb: int
    epochs: int
    threads: int
    first_epoch_s: float
    epoch_s: float
    slowest_epoch_s: float
    peak_mb: float
    start_mb: float
    hamming: float


def write_rows(folder: Path, n_rows: int) -> None:
    """Write partitions of generated rows, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = np.random.default_rng(0).normal(size=(FEATURES, LABELS))
    for number, start in enumerate(range(0, n_rows, PARTITION)):
        path = folder / f"part-{number}.npz"
        if path.exists():
            continue
        n = min(PARTITION, n_rows - start)
        generator = np.random.default_rng([1, number])
        X = generator.standard_normal((n, FEATURES), dtype=np.float32)
        noise = generator.standard_normal((n, LABELS), dtype=np.float32)
        Y = X @ weights.astype(np.float32) + 10 * noise > 12
        np.savez(path, X=X, Y=Y.astype(np.uint8))


def memory_mb(name: str) -> float:
    """Return a line of what the kernel knows of this process's memory."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def fit(
    kind: str, folder: Path, n_rows: int, budget: int, epochs: int, threads: int
) -> Run:
    """Fit once, in this process."""
    from clml import CLMLClassifier
    from clml.datasets import read_partitions
    from clml.network import PaperNetwork

    rows = read_partitions(folder)
    settings = {
        "search": "cma",
        "n_members": 1,
        "network": PaperNetwork(embedding_dim=20),
        "max_epochs": epochs,
        "calibrate": False,
        "n_jobs": threads,
        "random_state": 0,
    }
    # What Python, NumPy, scikit-learn and the compiled kernels take without any rows.
    X, Y, _ = rows.load(0)
    CLMLClassifier(**{**settings, "max_epochs": 1}).fit(X[:3000], Y[:3000])
    start = memory_mb("VmRSS")
    if kind == "disk":
        clf = CLMLClassifier(**settings, memory_mb=budget).fit(rows)
    else:
        X = np.empty((n_rows, FEATURES), dtype=np.float32)
        Y = np.empty((n_rows, LABELS), dtype=np.uint8)
        for number in range(len(rows)):
            here = slice(number * PARTITION, (number + 1) * PARTITION)
            X[here], Y[here], _ = rows.load(number)
        clf = CLMLClassifier(**settings).fit(X, Y)
    seconds = clf.history_["seconds"]
    return Run(
        kind,
        n_rows,
        FEATURES,
        LABELS,
        budget if kind == "disk" else 0,
        epochs,
        threads,
        round(float(seconds[0]), 3),
        round(float(np.median(seconds[1:])), 3),
        round(float(seconds[1:].max()), 3),
        round(memory_mb("VmHWM")),
        round(start),
        round(float(clf.history_["incumbent_validation"][-1][0]), 4),
    )


def main() -> None:
    """Write the rows and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--budget", type=int, default=2048, help="MB of memory")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=["disk", "memory"], help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.kind is not None:
        run = fit(
            arguments.kind,
            arguments.folder,
            arguments.rows,
            arguments.budget,
            arguments.epochs,
            arguments.threads,
        )
        print(json.dumps(asdict(run)))
        return
    write_rows(arguments.folder, arguments.rows)
    runs = []
    for kind in ("disk", "memory", "disk", "memory"):
        command = [sys.executable, __file__, "--kind", kind]
        for name in ("folder", "rows", "budget", "epochs", "threads"):
            command += [f"--{name}", str(getattr(arguments, name))]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(Run(**json.loads(output.stdout.splitlines()[-1])))
        print(runs[-1], flush=True)
    with open(arguments.table, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Run)])
        writer.writeheader()
        writer.writerows(asdict(run) for run in runs)
    disk, memory = (
        np.mean([run.epoch_s for run in runs if run.kind == kind])
        for kind in ("disk", "memory")
    )
    print(f"an epoch from disk takes {disk / memory:.2f} times one from memory")


if __name__ == "__main__":
    main()

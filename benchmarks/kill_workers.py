"""Kill workers of a cluster at random moments of a fit: the model must be the same.

    python benchmarks/kill_workers.py --kills 10 --fits 3

Each fit runs on a cluster of worker processes on this machine. Meanwhile workers are
killed (SIGKILL) at random moments; the cluster starts new ones. The model is compared,
bit for bit, with the one of a fit in this process on the same partitions. Half the fits
read their rows from files, half get them from this process. Results go to
``results/kill_workers.csv``.
"""

import argparse
import csv
import logging
import os
import random
import signal
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "kill_workers.csv"
ROWS, FEATURES, LABELS, PARTITION = 20_000, 12, 5, 2_000


@dataclass(frozen=True)
class Fit:
    """A fit whose workers were killed."""

    seed: int
    source: str
    workers: int
    kills: int
    epochs: int
    seconds: float
    seconds_undisturbed: float
    same_model: bool


def make_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features, and labels that follow from them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(ROWS, FEATURES))
    scores = X @ generator.normal(size=(FEATURES, LABELS))
    Y = scores + generator.normal(size=scores.shape) > 0.5
    return X, Y.astype(np.uint8)


class Killer(threading.Thread):
    """Kills workers of a cluster until told to stop, or until it has had enough."""

    def __init__(self, cluster, n_kills: int, seed: int):
        super().__init__(daemon=True)
        self._cluster, self._most = cluster, n_kills
        self._random = random.Random(seed)
        self._enough = threading.Event()
        self.kills = 0

    def run(self) -> None:
        """Kill one after the other."""
        while self.kills < self._most and not self._enough.wait(
            self._random.uniform(0.2, 1.5)
        ):
            # Who is killed while he starts is not started again: dask gives him up.
            known = self._cluster.scheduler.workers
            alive = [
                nanny.pid
                for nanny in self._cluster.workers.values()
                if nanny.worker_address in known and nanny.pid
            ]
            if alive:
                os.kill(self._random.choice(alive), signal.SIGKILL)
                self.kills += 1

    def stop(self) -> None:
        """Kill nobody any more."""
        self._enough.set()
        self.join()


def same_model(one, other) -> bool:
    """Tell whether two fits found the same, bit for bit."""
    pairs = [
        (one.theta_, other.theta_),
        (one.front_.theta, other.front_.theta),
        (one.front_.losses, other.front_.losses),
        (one.front_.temperature, other.front_.temperature),
        (one.archive_losses_, other.archive_losses_),
    ]
    return all(np.array_equal(a, b) for a, b in pairs)


def fit_and_kill(seed: int, source: str, n_workers: int, n_kills: int) -> Fit:
    """Fit once in this process and once on a cluster that loses workers."""
    from distributed import Client, LocalCluster

    from clml import CLMLClassifier
    from clml.datasets import as_partitions, read_partitions

    settings = {"search": "cma", "max_epochs": 150, "random_state": seed}
    X, Y = make_rows(seed)
    with tempfile.TemporaryDirectory() as folder:
        rows = as_partitions(X, Y, rows=PARTITION)
        if source == "files":
            for i, start in enumerate(range(0, ROWS, PARTITION)):
                here = slice(start, start + PARTITION)
                np.savez(Path(folder, f"part-{i}.npz"), X=X[here], Y=Y[here])
            rows = read_partitions(folder)
        began = time.perf_counter()
        alone = CLMLClassifier(**settings).fit(rows)
        undisturbed = time.perf_counter() - began
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            killer = Killer(cluster, n_kills, seed)
            began = time.perf_counter()
            killer.start()
            try:
                clf = CLMLClassifier(**settings, client=client).fit(rows)
            finally:
                killer.stop()
            seconds = time.perf_counter() - began
    return Fit(
        seed,
        source,
        n_workers,
        killer.kills,
        clf.n_epochs_,
        round(seconds, 1),
        round(undisturbed, 1),
        same_model(alone, clf),
    )


def main() -> None:
    """Run all fits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="in each fit")
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    fits = []
    for seed in range(arguments.fits):
        source = ("memory", "files")[seed % 2]
        fits.append(fit_and_kill(seed, source, arguments.workers, arguments.kills))
        print(fits[-1], flush=True)
    with open(arguments.table, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Fit)])
        writer.writeheader()
        writer.writerows(asdict(fit) for fit in fits)


if __name__ == "__main__":
    main()

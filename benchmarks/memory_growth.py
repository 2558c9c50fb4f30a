"""Fit, predict, choose, save and load thousands of times in one process.

    python benchmarks/memory_growth.py --fits 10000

A service that fits all day must not grow. Every hundred fits the resident memory of the
process, the blocks that Python has given to objects, the threads and the open files are
counted; a line through the memory after the warm-up says how much a fit leaves behind,
with the error of that figure. The fits take turns: every search, one thread and two,
dense and sparse rows, the tuned classifier, the baselines. Results go to
``results/memory_growth.csv``.
"""

import argparse
import csv
import ctypes
import gc
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier

from clml import CMA, CLMLClassifier, LebesgueTunedClassifier
from clml.baselines import GaussianNBChain, MLkNNClassifier, MLPRelevanceClassifier
from clml.persistence import load, save

RESULTS = Path(__file__).parent / "results" / "memory_growth.csv"
# The first fits import, compile and lay out what all later ones use again.
WARM_UP = 0.2


@dataclass(frozen=True)
class Sample:
    """What a process holds after so many fits."""

    fits: int
    seconds: float
    memory_mb: float
    blocks: int
    threads: int
    files: int


@dataclass(frozen=True)
class Growth:
    """What a fit leaves behind, on average."""

    bytes_a_fit: float
    error: float
    blocks_a_fit: float
    threads: int
    files: int


def models(seed: int) -> list[tuple[object, bool]]:
    """Return unfitted estimators, and whether each is given sparse rows."""
    clml = {"max_epochs": 2, "random_state": seed}
    members = clml | {"n_members": 2, "shrinkage": 0.5}
    tuned = {"max_epochs": 2, "shrinkage": 0.5, "cv": 2, "random_state": seed}
    return [
        (CLMLClassifier(**members), False),
        (CLMLClassifier(n_jobs=2, **members), True),
        (CLMLClassifier(n_members=1, search="cma", **clml), False),
        (CLMLClassifier(n_members=1, search="cma", n_jobs=2, **clml), True),
        (CLMLClassifier(n_members=1, search="rank_gradient", **clml), False),
        (CLMLClassifier(n_members=1, search=CMA(ties=None), **clml), True),
        (LebesgueTunedClassifier(KNeighborsClassifier(), **tuned), False),
        (GaussianNBChain(), False),
        (MLkNNClassifier(n_neighbors=3), True),
        (MLPRelevanceClassifier(max_epochs=1, random_state=seed), False),
    ]


def one_fit(model: object, X: object, Y: np.ndarray, folder: str) -> None:
    """Fit a model and do with it what users do."""
    model.fit(X, Y)
    model.predict(X)
    model.predict_proba(X[:2])
    if hasattr(model, "select"):
        model.select("knee").predict(X)
    pickle.loads(pickle.dumps(model)).predict(X[:1])
    if not isinstance(model, LebesgueTunedClassifier):
        save(model, f"{folder}/model.clml")
        load(f"{folder}/model.clml").predict(X)


def all_kinds(folder: str) -> Callable[[int], None]:
    """Return what makes the fit of a number: each kind in turn, always other rows."""

    def fit(number: int) -> None:
        random = np.random.default_rng(number)
        X = random.normal(size=(30 + number % 7, 4))
        Y = (X[:, :3] + random.normal(size=(len(X), 3)) > 0).astype(int)
        Y[:2] = [[0] * 3, [1] * 3]  # no label is constant
        known = models(number)
        model, sparse = known[number % len(known)]
        one_fit(model, sp.csr_array(X) if sparse else X, Y, folder)

    return fit


def tidy_up() -> None:
    """Let go of what nobody holds, as far as Python and the system can be told to."""
    gc.collect()
    with suppress(AttributeError, OSError):  # another C library
        # Else what the allocator keeps for later comes and goes by some megabytes.
        ctypes.CDLL(None).malloc_trim(0)


def samples(fit: Callable[[int], None], n_fits: int, every: int) -> list[Sample]:
    """Count what the process holds after every so many fits."""
    process, began, found = psutil.Process(), time.perf_counter(), []
    gc.collect()
    gc.freeze()  # what the packages hold need not be looked through each time
    try:
        for number in range(1, n_fits + 1):
            fit(number)
            if number % every:
                continue
            tidy_up()
            found.append(
                Sample(
                    fits=number,
                    seconds=round(time.perf_counter() - began, 1),
                    memory_mb=round(process.memory_info().rss / 2**20, 3),
                    blocks=sys.getallocatedblocks(),
                    threads=process.num_threads(),
                    files=process.num_fds(),
                )
            )
    finally:
        gc.unfreeze()
    return found


def growth(found: Sequence[Sample], warm_up: float = WARM_UP) -> Growth:
    """Return the slope of the memory after the warm-up, and its standard error."""
    rest = [s for s in found if s.fits > warm_up * found[-1].fits]
    fits = np.array([s.fits for s in rest], dtype=float)
    memory = np.array([s.memory_mb for s in rest]) * 2**20
    centred = fits - fits.mean()
    slope = centred @ memory / (centred @ centred)
    blocks = centred @ np.array([s.blocks for s in rest]) / (centred @ centred)
    residual = memory - memory.mean() - slope * centred
    variance = residual @ residual / max(len(rest) - 2, 1)
    return Growth(
        bytes_a_fit=float(slope),
        error=float(np.sqrt(variance / (centred @ centred))),
        blocks_a_fit=float(blocks),
        threads=rest[-1].threads - rest[0].threads,
        files=rest[-1].files - rest[0].files,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = samples(all_kinds(folder), arguments.fits, arguments.every)
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(found[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(sample) for sample in found)
    seen = growth(found)
    print(
        f"{arguments.fits} fits, after the first {WARM_UP:.0%}: "
        f"{seen.bytes_a_fit:+.0f} ± {seen.error:.0f} bytes a fit, "
        f"{seen.blocks_a_fit:+.2f} blocks of Python's, "
        f"{seen.threads:+d} threads, {seen.files:+d} files; "
        f"{found[-1].memory_mb:.0f} MB at the end"
    )


if __name__ == "__main__":
    sys.exit(main())

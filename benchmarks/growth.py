"""How time and memory grow with the size of a task.

    python benchmarks/growth.py

Times: evaluating a population on one thread, one size at a time over a range of 16
times, the best of some repeats. The exponent is the slope of log time against log size.
An affine model in D*C + C^2 + C*K + cardinality*K, times rows and candidates, is fitted
to all of them. Memory: the peak of a process that fits a dataset of ``CLML_DATA``, or
that runs one epoch on a generated sparse matrix of 1,000,000 x 1,000.

Writes ``results/growth.json`` and ``results/growth.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from clml.engine import NumpyEngine
from clml.losses import RowTargets
from clml.network import Layout

RESULTS = Path(__file__).parent / "results"
WIDTH, CARDINALITY = 20, 3
BASE = {"rows": 2000, "labels": 16, "features": 100, "population": 32}
FACTORS = (1, 2, 4, 8, 16)
LARGE = "1,000,000 x 1,000, sparse, one epoch"
FITS = tuple(
    f"{name}, {settings}"
    for name in ("enron", "genbase")
    for settings in ("defaults", "the paper's settings")
)


def milliseconds(sizes: dict[str, int], repeats: int = 7) -> float:
    rng = np.random.default_rng(0)
    n, k, d = sizes["rows"], sizes["labels"], sizes["features"]
    Y = (rng.random((n, k)) < CARDINALITY / k).astype(np.uint8)
    layout = Layout(d, k, WIDTH)
    X = rng.normal(size=(n, d)).astype(np.float32)
    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y))
    thetas = rng.normal(size=(sizes["population"], layout.size)).astype(np.float32)
    engine.losses(thetas)
    best = np.inf
    for _ in range(repeats):
        began = time.perf_counter()
        engine.losses(thetas)
        best = min(best, time.perf_counter() - began)
    return 1e3 * best


def work(sizes: dict[str, int]) -> float:
    """Return rows times candidates times what one of each needs."""
    d, k = sizes["features"], sizes["labels"]
    each = d * WIDTH + WIDTH**2 + WIDTH * k + CARDINALITY * k
    return sizes["rows"] * sizes["population"] * each


def grow() -> dict[str, Any]:
    exponents, times, sizes_of = {}, [], []
    for name in BASE:
        of_name = []
        for factor in FACTORS:
            sizes = {**BASE, name: factor * BASE[name]}
            of_name.append(milliseconds(sizes))
            sizes_of.append(sizes)
        slope = np.polyfit(np.log(FACTORS), np.log(of_name), 1)[0]
        exponents[name] = {"exponent": float(slope), "ms": of_name}
        times += of_name
    x = np.array([work(sizes) for sizes in sizes_of])
    y = np.array(times)
    design = np.stack([x, np.ones_like(x)], axis=1)
    # Relative errors count: times span two orders of magnitude.
    solution, *_ = np.linalg.lstsq(design / y[:, None], np.ones_like(y), rcond=None)
    residual = np.log(y) - np.log(design @ solution)
    explained = 1 - residual.var() / np.log(y).var()
    return {"exponents": exponents, "affine model explains": float(explained)}


def large_epoch() -> None:
    """One epoch of the paper's learner on generated sparse rows."""
    from clml._training.archive import Archive
    from clml._training.search import Fitness, Search
    from clml.evolution import RankOneCMA
    from clml.network import Scaling

    rng = np.random.default_rng(0)
    n, d, k = 1_000_000, 1000, 50
    indices = rng.integers(0, d, (n, 10), dtype=np.int32)
    indices.sort(axis=1)
    X = sp.csr_matrix(
        (
            np.ones(10 * n, dtype=np.float32),
            indices.ravel(),
            np.arange(0, 10 * n + 1, 10, dtype=np.int32),
        ),
        shape=(n, d),
    )
    X.sum_duplicates()
    Y = np.zeros((n, k), dtype=np.uint8)
    Y[np.arange(n), rng.integers(0, k, n)] = 1
    layout = Layout(d, k, WIDTH)
    engine = NumpyEngine(
        layout, X, RowTargets.from_indicator(Y), scaling=Scaling.fit(X)
    )
    start = rng.normal(scale=layout.size**-0.5, size=layout.size)
    search = Search(
        RankOneCMA(start, 1.0, seed=0),
        Fitness("depth", "auto", 10_000, (0,), False),
        Archive.empty(3, layout.size, 200),
    )
    search.attach(engine, None)
    search.epoch()


#: Members of the paper's kind of network.
NARROW = {"network": "paper"}


def fit(dataset: str) -> None:
    import warnings

    from clml import PAPER_SETTINGS, CLMLClassifier
    from clml.datasets import load_dataset

    name, settings = dataset.split(", ")
    data = load_dataset(name)
    chosen = PAPER_SETTINGS if settings == "the paper's settings" else NARROW
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant labels
        CLMLClassifier(**chosen, random_state=0).fit(data.X, data.Y)


def peak(task: str) -> dict[str, float]:
    """Return the peak memory and the seconds of a task in a process of its own."""
    began = time.perf_counter()
    code = (
        "import sys, resource; sys.path.insert(0, sys.argv[1]); import growth; "
        "growth.run(sys.argv[2]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code, here, task],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    kilobytes = int(done.stdout.split()[-1])
    return {"MB": kilobytes / 1024, "seconds": time.perf_counter() - began}


def run(task: str) -> None:
    if task == LARGE:
        large_epoch()
    else:
        fit(task)


def table(result: dict[str, Any]) -> str:
    lines = [
        "# How time and memory grow",
        "",
        "Time of evaluating a population, milliseconds, while one size grows and the",
        f"others stay ({', '.join(f'{v} {k}' for k, v in BASE.items())}; cardinality "
        f"{CARDINALITY}). Made by `benchmarks/growth.py`.",
        "",
        "| grows | " + " | ".join(f"x {f}" for f in FACTORS) + " | exponent |",
        "|---" * (len(FACTORS) + 2) + "|",
    ]
    for name, found in result["exponents"].items():
        cells = " | ".join(f"{ms:.1f}" for ms in found["ms"])
        lines.append(f"| {name} | {cells} | {found['exponent']:.2f} |")
    lines += [
        "",
        "An affine model in D*C + C^2 + C*K + cardinality*K, times rows and",
        f"candidates, explains {100 * result['affine model explains']:.1f} % of the "
        "variation of log time.",
        "",
        "Peak memory of a process, imports and data included:",
        "",
        "| | MB | seconds |",
        "|---|---|---|",
    ]
    for name, found in result["memory"].items():
        lines.append(f"| {name} | {found['MB']:.0f} | {found['seconds']:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    result = grow()
    result["memory"] = {
        f"fit of {name}" if name in FITS else name: peak(name)
        for name in (*FITS, LARGE)
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "growth.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "growth.md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()

"""Time of evaluating a population: the library against what else one could use.

    python benchmarks/evaluation_time.py [--check]

All in one run, so that ratios mean something on a noisy machine; times are the best of
some repeats, taken in turn. Competitors, each on one thread:

- *products*: the matrix products of the same shapes alone, through NumPy's BLAS, in
  blocks as the library cuts them (SciPy's sparse product for sparse rows);
- *NumPy*: ``numpy_loop.py``, whole populations as arrays;
- *EvoTorch*: the same arrays in PyTorch as a vectorised problem of that package, if it
  is installed;
- *scikit-learn's LRAP*: that one loss of three, from logits that are there already.

Rows are generated in the shapes of public datasets. Writes
``results/evaluation_time.json`` and ``.md``; with ``--check`` nothing is written, and
ratios that are 1.5 times those of the file fail.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy_loop import population_losses
from sklearn.metrics import label_ranking_average_precision_score
from threadpoolctl import threadpool_limits

from clml.engine import NumpyEngine
from clml.losses import RowTargets
from clml.network import Layout

RESULTS = Path(__file__).parent / "results"
POPULATION = 32
# Rows, features, labels, cardinality, share of entries that are not 0 (1: dense).
SHAPES = {
    "emotions": (593, 72, 6, 1.87, 1.0),
    "yeast": (2417, 103, 14, 4.24, 1.0),
    "CAL500": (502, 68, 174, 26.0, 1.0),
    "enron, sparse": (1702, 1001, 53, 3.38, 0.08),
    "tmc2007-500, sparse": (8000, 500, 22, 2.22, 0.2),
    "tmc2007-500, dense": (8000, 500, 22, 2.22, 1.0),
    "mediamill": (43_907, 120, 101, 4.38, 1.0),
    "imdb-f, sparse": (20_000, 1001, 28, 2.0, 0.0194),
}
# A row of a block is a multiple of this many candidates: see ``clml.engine``.
BLOCK = (512, 16)
WORSE = 1.5


def rows(shape: tuple[Any, ...]) -> tuple[Any, np.ndarray]:
    n, d, k, cardinality, share = shape
    rng = np.random.default_rng(0)
    Y = (rng.random((n, k)) < cardinality / k).astype(np.uint8)
    if share == 1:
        return rng.normal(size=(n, d)).astype(np.float32), Y
    X = sp.random(n, d, share, format="csr", dtype=np.float32, rng=rng)
    X.data[:] = 1
    return X, Y


def products(X: Any, layout: Layout, thetas: np.ndarray) -> Callable[[], None]:
    """Return what computes the bare products of a population."""
    n_rows, n_candidates = BLOCK
    c = layout.embedding_dim
    kind = np.float32
    first = np.ones((layout.n_features, n_candidates * c), kind)
    hidden = np.ones((n_candidates, c, c), kind)
    last = np.ones((n_candidates, c, layout.n_labels), kind)

    def work() -> None:
        for start in range(0, X.shape[0], n_rows):
            x = X[start : start + n_rows]
            inputs = np.ones((n_candidates, x.shape[0], c), kind)
            for _ in range(0, len(thetas), n_candidates):
                x @ first
                np.matmul(inputs, hidden)
                np.matmul(inputs, last)

    return work


def evotorch_problem(X: Any, Y: np.ndarray, layout: Layout) -> Any:
    """Return what evaluates a population through EvoTorch, or None without it."""
    try:
        import torch
        from evotorch import Problem, SolutionBatch
    except ImportError:
        return None
    torch.set_num_threads(1)
    if sp.issparse(X):
        X = X.toarray()
    data = torch.as_tensor(X)
    truth = torch.as_tensor(Y.astype(bool))
    d, c, k = layout.n_features, layout.embedding_dim, layout.n_labels
    sizes = [d * c, c, c * c, c, c * k, k]
    row, label = truth.nonzero(as_tuple=True)
    n_relevant = truth.sum(dim=1)
    trivial = (n_relevant == 0) | (n_relevant == k)

    def activated(H: Any) -> Any:
        H = H - H.mean(dim=-1, keepdim=True)
        return torch.sigmoid(H / (H.std(dim=-1, unbiased=False, keepdim=True) + 1e-10))

    def evaluate(thetas: Any) -> Any:
        p = len(thetas)
        E, b_E, L, b_L, Dec, b_D = thetas.split(sizes, dim=1)
        H = activated(data @ E.view(p, d, c) + b_E[:, None])
        H = activated(torch.baddbmm(b_L[:, None], H, L.view(p, c, c)))
        Z = torch.baddbmm(b_D[:, None], H, Dec.view(p, c, k))
        decided = Z > 0
        hits = (decided & truth).sum(dim=(1, 2))
        wrong = (decided != truth).sum(dim=(1, 2))
        size = decided.sum(dim=(1, 2)) + truth.sum()
        at_least = Z[:, row] >= Z[:, row, label][..., None]
        ratio = (at_least & truth[row]).sum(dim=2) / at_least.sum(dim=2)
        weight = torch.where(trivial, 0.0, 1.0 / n_relevant.clamp(min=1))
        lrap = (ratio @ weight[row] + trivial.sum()) / len(truth)
        return torch.stack(
            [wrong / truth.numel(), 1 - lrap, 1 - 2 * hits / size], dim=1
        )

    problem = Problem(
        ["min"] * 3, evaluate, solution_length=layout.size, vectorized=True
    )

    def work(thetas: np.ndarray) -> np.ndarray:
        batch = SolutionBatch(problem, len(thetas), empty=True)
        batch.set_values(torch.as_tensor(thetas))
        problem.evaluate(batch)
        return batch.evals.numpy()

    return work


def measure(name: str) -> dict[str, Any]:
    X, Y = rows(SHAPES[name])
    layout = Layout(X.shape[1], Y.shape[1], 20)
    rng = np.random.default_rng(1)
    thetas = rng.normal(size=(POPULATION, layout.size)).astype(np.float32)
    targets = RowTargets.from_indicator(Y)
    work: dict[str, Callable[[], Any]] = {}
    engine = NumpyEngine(layout, X, targets)
    work["clml"] = lambda: engine.losses(thetas)
    pool = ThreadPoolExecutor(2)
    threaded = NumpyEngine(layout, X, targets, executor=pool)
    work["clml, 2 threads"] = lambda: threaded.losses(thetas)
    work["products"] = products(X, layout, thetas)
    work["NumPy"] = lambda: population_losses(thetas, X, Y)
    evotorch = evotorch_problem(X, Y, layout) if X.shape[0] < 10_000 else None
    if evotorch is not None:
        work["EvoTorch"] = lambda: evotorch(thetas)
    logits = engine.scores(thetas[:1])[0]
    # One candidate's, times as many as there are.
    work["scikit-learn's LRAP"] = lambda: label_ranking_average_precision_score(
        Y, logits
    )
    expected = work["NumPy"]()
    np.testing.assert_allclose(work["clml"](), expected, atol=1e-3)
    if evotorch is not None:
        np.testing.assert_allclose(work["EvoTorch"](), expected, atol=1e-3)
    best = dict.fromkeys(work, np.inf)
    with threadpool_limits(1):
        for _ in range(5 if X.shape[0] < 10_000 else 3):
            for kind, run in work.items():
                began = time.perf_counter()
                run()
                best[kind] = min(best[kind], time.perf_counter() - began)
    best["scikit-learn's LRAP"] *= POPULATION
    pool.shutdown()
    return {
        "shape": name,
        "ms": {kind: 1e3 * seconds for kind, seconds in best.items()},
        "ratio": {kind: seconds / best["clml"] for kind, seconds in best.items()},
    }


def table(results: list[dict[str, Any]]) -> str:
    kinds = list(max((r["ms"] for r in results), key=len))
    lines = [
        "# Time of evaluating a population",
        "",
        f"Three losses of {POPULATION} candidates, milliseconds, and in brackets how",
        "many times the library's time that is. Made by",
        "`benchmarks/evaluation_time.py`, which says what the columns are.",
        "",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        "| rows like | " + " | ".join(kinds) + " |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for r in results:
        cells = [
            f"{r['ms'][kind]:.1f} ({r['ratio'][kind]:.2f})" if kind in r["ms"] else ""
            for kind in kinds
        ]
        lines.append(f"| {r['shape']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def check(results: list[dict[str, Any]], path: Path) -> None:
    """Fail where a competitor has gained on the library since the file was written."""
    before = {r["shape"]: r["ratio"] for r in json.loads(path.read_text())}
    worse = [
        f"{r['shape']}, {kind}: {ratio:.2f} was {before[r['shape']][kind]:.2f}"
        for r in results
        for kind, ratio in r["ratio"].items()
        if not kind.startswith("clml")
        and ratio * WORSE < before[r["shape"]].get(kind, 0.0)
    ]
    if worse:
        raise SystemExit("Slower against its competitors:\n" + "\n".join(worse))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments = parser.parse_args()
    results = []
    for name in arguments.shapes:
        results.append(measure(name))
        print(name, {k: round(v, 2) for k, v in results[-1]["ms"].items()}, flush=True)
    path = RESULTS / "evaluation_time.json"
    if arguments.check:
        check(results, path)
    elif set(arguments.shapes) == set(SHAPES):
        path.write_text(json.dumps(results, indent=1) + "\n")
        path.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()

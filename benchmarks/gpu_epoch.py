"""Time of an epoch on a GPU: against the floor, the CPU engine, and by population.

    python benchmarks/gpu_epoch.py [--dataset imdb-f] [--threads 16]

An epoch is what ``CLMLClassifier(search="cma", n_members=1, device="cuda")`` does in
one: sampling, losses on training and validation rows, contributions, archive, update.
Writes ``results/gpu_epoch.json``, ``gpu_epoch.md`` and ``gpu_epoch.svg``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from clml._training.archive import Archive
from clml._training.search import Fitness, Search
from clml.datasets import load_dataset
from clml.engine import NumpyEngine, TorchEngine
from clml.engine.blocks import SHARD_ROWS
from clml.evolution import RankOneCMA
from clml.losses import RowTargets
from clml.network import Layout, Scaling

RESULTS = Path(__file__).parent / "results"
POPULATION = 256
POPULATIONS = (16, 32, 64, 128, 256, 512, 1024, 2048)
# Candidates whose decisions are compared with the CPU's, on all training rows.
COMPARED = 32


def milliseconds(work: Callable[[], Any], repeats: int = 10) -> float:
    """Return the mean time of some work, the device's included."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - began) / repeats


class Task:
    """Rows of a dataset as a fit has them: 70 % of it, a fifth of that to validate."""

    def __init__(self, dataset: str, embedding_dim: int):
        data = load_dataset(dataset)
        n = round(0.7 * len(data.Y))
        order = np.random.default_rng(0).permutation(len(data.Y))[:n]
        train, validation = np.sort(order[n // 5 :]), np.sort(order[: n // 5])
        self.X, self.Y = data.X[train], data.Y[train]
        self.X_val, self.Y_val = data.X[validation], data.Y[validation]
        self.scaling = Scaling.fit(self.X)
        self.layout = Layout(self.X.shape[1], self.Y.shape[1], embedding_dim)
        self.on_gpu = [
            self.engine(TorchEngine, validation=which, device="cuda")
            for which in (False, True)
        ]

    def engine(self, kind: type, validation: bool = False, **options: Any) -> Any:
        """Return an engine on the training or validation rows."""
        X, Y = (self.X_val, self.Y_val) if validation else (self.X, self.Y)
        targets = RowTargets.from_indicator(Y)
        return kind(self.layout, X, targets, scaling=self.scaling, **options)

    def search(self, population: int) -> Search:
        """Return a search at its start."""
        n = self.layout.size
        start = np.random.default_rng(0).normal(scale=n**-0.5, size=n)
        search = Search(
            RankOneCMA(start, 1.0, population, seed=0, device="cuda"),
            Fitness("depth", "exact", 10_000, (0,), False),
            Archive.empty(3, n, 200),
        )
        search.attach(*self.on_gpu)
        return search


def epoch_times(task: Task, population: int, n_epochs: int) -> np.ndarray:
    """Return the milliseconds of each epoch after a few."""
    search = task.search(population)
    for _ in range(5):
        search.epoch()
    times = []
    for _ in range(n_epochs):
        torch.cuda.synchronize()
        began = time.perf_counter()
        search.epoch()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
    return np.array(times)


def parts(task: Task) -> dict[str, float]:
    """Return where the milliseconds of one evaluation of the training rows go."""
    engine, _ = task.on_gpu
    thetas = torch.randn(POPULATION, task.layout.size, device="cuda")
    weights = engine._rows.lay_out(thetas, task.layout)
    kernels, targets, wants = engine._kernels, engine._device_targets, engine._wants
    chunks = list(engine._chunks(POPULATION))
    products = [engine._rows.product(weights, a, b, kernels) for a, b in chunks]
    counted = [
        kernels.count_rows(p, weights, targets, a, 0.0, wants)
        for p, (a, _) in zip(products, chunks, strict=True)
    ]

    def each(work: Callable[..., Any], *lists: Any) -> float:
        return milliseconds(lambda: [work(*x) for x in zip(*lists, strict=True)])

    starts = [a for a, _ in chunks]
    return {
        "lay out weights": milliseconds(
            lambda: engine._rows.lay_out(thetas, task.layout)
        ),
        "first product": each(
            lambda c: engine._rows.product(weights, *c, kernels), chunks
        ),
        "fused rest": each(
            lambda p, a: kernels.count_rows(p, weights, targets, a, 0.0, wants),
            products,
            starts,
        ),
        "sums in row order": each(
            lambda r, a: kernels.sum_shards(r, targets, a, wants), counted, starts
        ),
        "whole evaluation": milliseconds(lambda: engine.evaluate(thetas)),
    }


def floor(task: Task) -> dict[str, float]:
    """Return what products and memory traffic of an epoch take at measured rates.

    The first product is the faster of the libraries' two for these rows (cuBLAS in
    float32, cuSPARSE), the later ones run at cuBLAS's rate, and their inputs are
    written and read once at the rate of a copy.
    """
    layout = task.layout
    n = len(task.Y) + len(task.Y_val)
    width = POPULATION * layout.embedding_dim
    rows = min(16_384, task.X.shape[0])
    dense = torch.randn(rows, layout.n_features, device="cuda")
    matrix = torch.randn(layout.n_features, width, device="cuda")
    by_cublas = milliseconds(lambda: dense @ matrix)
    rate = 2 * dense.numel() * width / by_cublas / 1e9  # TFLOP/s
    first = {"cublas": by_cublas * n / rows}
    if sp.issparse(task.X):
        part = task.X[:rows].tocsr()
        csr = torch.sparse_csr_tensor(
            torch.as_tensor(part.indptr.astype(np.int64)),
            torch.as_tensor(part.indices.astype(np.int64)),
            torch.as_tensor(part.data.astype(np.float32)),
            size=part.shape,
            check_invariants=False,
        ).cuda()
        first["cusparse"] = milliseconds(lambda: csr @ matrix) * n / rows
    source = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    bandwidth = 2 * source.numel() / milliseconds(lambda: target.copy_(source)) / 1e9
    c, k = layout.embedding_dim, layout.n_labels
    later = 2 * POPULATION * n * (layout.n_layers * c * c + c * k) / rate / 1e9
    traffic = 2 * 4 * n * width / bandwidth / 1e9
    return {
        "matrix product rate, TFLOP/s": rate,
        "copy rate, TB/s": bandwidth,
        **{f"first product by {name}": value for name, value in first.items()},
        "later products": later,
        "traffic": traffic,
        "floor": min(first.values()) + later + traffic,
        "floor of dense products": first["cublas"] + later + traffic,
    }


def agreement(task: Task, threads: int) -> dict[str, float]:
    """Compare logits, decisions and statistics with the CPU engine's."""
    rng = np.random.default_rng(1)
    thetas = rng.normal(size=(COMPARED, task.layout.size)).astype(np.float32)
    gpu, _ = task.on_gpu
    with ThreadPoolExecutor(max(1, threads - 1)) as helpers:
        cpu = task.engine(NumpyEngine, executor=helpers)
        cpu.losses(thetas)  # compiles
        began = time.perf_counter()
        expected = cpu.losses(thetas)
        cpu_ms = 1e3 * (time.perf_counter() - began)
        theirs = cpu.scores(thetas)
    ours = gpu.scores(thetas)
    differ = (ours > 0) != (theirs > 0)
    # The host's statistics of the device's logits, in the same shards.
    totals = cpu.loss_set.new_totals(COMPARED)
    for start in range(0, len(task.Y), SHARD_ROWS):
        shard = cpu.loss_set.new_totals(COMPARED)
        scores = np.ascontiguousarray(ours[:, start : start + SHARD_ROWS])
        cpu.loss_set.accumulate(shard, scores, cpu.targets, start)
        totals.add(shard)
    known = cpu.loss_set.statistics(totals, 1.0).sums
    found = gpu.evaluate(thetas).sums
    return {
        "decisions": float(differ.size),
        "decisions that differ": float(differ.sum()),
        "largest |logit| among them": float(np.abs(theirs[differ]).max(initial=0.0)),
        "largest difference of logits": float(np.abs(ours - theirs).max()),
        "largest |logit|": float(np.abs(theirs).max()),
        "largest difference of losses": float(
            np.abs(gpu.losses(thetas) - expected).max()
        ),
        "statistics of the same logits are the same": float(
            all(np.array_equal(known[name], found[name]) for name in known)
        ),
        f"CPU engine, {threads} threads, {COMPARED} candidates, ms": cpu_ms,
        f"GPU engine, {COMPARED} candidates, ms": milliseconds(
            lambda: gpu.losses(thetas)
        ),
    }


def picture(by_population: dict[int, float], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
    axes.plot(list(by_population), list(by_population.values()), marker="o")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(list(by_population), [str(p) for p in by_population])
    axes.set_xlabel("population")
    axes.set_ylabel("milliseconds an epoch")
    axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def table(result: dict[str, Any]) -> str:
    t = result["epochs"]
    floor = result["floor"]
    lines = [
        "# Time of an epoch on a GPU",
        "",
        f"{result['dataset']}: {result['training rows']} training rows and "
        f"{result['validation rows']} validation rows, {result['features']} features, "
        f"{result['labels']} labels, {result['weights']} weights; population "
        f"{POPULATION}; {result['device']}; PyTorch {result['pytorch']}.",
        "Made by `benchmarks/gpu_epoch.py`.",
        "",
        f"An epoch takes {t['mean']:.1f} ms (standard deviation "
        f"{t['deviation']:.1f} over {t['n']} epochs), {t['late']:.1f} ms after 640.",
        f"The GPU's memory holds {t['peak_gib']:.2f} GiB at most.",
        "",
        "Its products as dense ones, population x rows x (D*C + C^2 + C*K) at the",
        "rate of float32 products, and what goes through memory take "
        f"{floor['floor of dense products']:.1f} ms, ",
        f"{100 * floor['floor of dense products'] / t['mean']:.0f} % of that; with the "
        f"first product as cuSPARSE computes it {floor['floor']:.1f} ms, "
        f"{100 * floor['floor'] / t['mean']:.0f} %.",
        "",
    ]
    for title in ("floor", "parts", "agreement", "by population"):
        lines += [f"## {title.capitalize()}", "", "| | |", "|---|---|"]
        for name, value in result[title].items():
            lines.append(f"| {name} | {value:.4g} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="imdb-f")
    parser.add_argument("--embedding-dim", type=int, default=20)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    task = Task(arguments.dataset, arguments.embedding_dim)
    torch.cuda.reset_peak_memory_stats()
    times = epoch_times(task, POPULATION, 740)
    peak = torch.cuda.max_memory_allocated()
    early, late = times[:100], times[-100:]
    result = {
        "dataset": arguments.dataset,
        "device": torch.cuda.get_device_name(),
        "pytorch": torch.__version__,
        "training rows": len(task.Y),
        "validation rows": len(task.Y_val),
        "features": task.layout.n_features,
        "labels": task.layout.n_labels,
        "weights": task.layout.size,
        "epochs": {
            "mean": float(early.mean()),
            "deviation": float(early.std(ddof=1)),
            "n": len(early),
            "late": float(late.mean()),
            "peak_gib": peak / 2**30,
        },
        "floor": floor(task),
        "parts": parts(task),
        "agreement": agreement(task, arguments.threads),
        "by population": {
            p: float(epoch_times(task, p, 10).mean()) for p in POPULATIONS
        },
    }
    arguments.results.mkdir(parents=True, exist_ok=True)
    (arguments.results / "gpu_epoch.json").write_text(json.dumps(result, indent=1))
    (arguments.results / "gpu_epoch.md").write_text(table(result))
    picture(result["by population"], arguments.results / "gpu_epoch.svg")
    print(table(result))


if __name__ == "__main__":
    main()

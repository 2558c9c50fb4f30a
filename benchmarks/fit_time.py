"""Time of a fit: the default learner beside XGBoost and plain PyTorch, in one run.

    python benchmarks/fit_time.py [--datasets flags scene] [--turns 3]

All have two threads. XGBoost (package ``xgboost`` or ``xgboost-cpu``) fits 200 trees
(``tree_method="hist"``) a label, one model after the other, as most people do. Plain
PyTorch trains as many networks as a fit of the default, of the same shapes, on the same
encoded rows, objective and epochs: dense layers, dropout and AdamW as the package has
them, and nothing else, neither judging nor a map of scores. They are timed in turns,
PyTorch, which takes longest, in the first alone, and the median of the ratios counts:
machines are never quiet for long.

Beside each stands the floor of the default: the products of its layers at the speed of
one large product, the optimiser's bytes at the speed of memory, and the normal
distribution at the speed of its kernel, on all threads. Writes
``results/fit_time.csv`` and ``results/fit_time.md``.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import xgboost
from threadpoolctl import threadpool_limits

from clml import CLMLClassifier
from clml._training.adam import Adam
from clml._training.adam import step as adam_step
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import (
    LossSet,
    RowTargets,
    get_losses,
    measure_gradient,
    smoothed_gradient,
)

RESULTS = Path(__file__).parent / "results"
DATASETS = (
    "flags",
    "emotions",
    "yeast",
    "cal500",
    "enron",
    "medical",
    "scene",
    "birds",
)
THREADS = 2
LOSSES = ("hamming", "lrap", "micro_f1")
SMOOTHING, RATE, DECAY = 0.5, 0.002, 1e-4
FIELDS = ("dataset", "turn", "clml_s", "xgboost_s", "pytorch_s", "floor_s")
HEADER = """\
# Time of a fit

Seconds of `CLMLClassifier(n_jobs=2)` on 70 % of the rows, beside XGBoost (200 trees,
`hist`, a model a label, two threads) and as many networks of the same shapes, objective
and epochs in plain PyTorch on two threads, in the first turn alone; median of {turns}
turns, ratios of single turns. The floor: products, the optimiser's bytes and the normal
distribution at the speeds that this machine has for each alone, on both threads. By
`benchmarks/fit_time.py`, PyTorch {torch}, XGBoost {xgboost}.

| dataset | rows x columns, labels | CLML, s | XGBoost, s | PyTorch, s | floor, s \
| CLML / XGBoost | CLML / PyTorch | CLML / floor |
|---|---|---|---|---|---|---|---|---|"""


def seconds(function: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def fit_xgboost(X: Any, Y: np.ndarray) -> None:
    """Fit one model a label; labels of one class have nothing to fit."""
    for y in Y.T:
        if y.min() < y.max():
            model = xgboost.XGBClassifier(
                n_estimators=200, tree_method="hist", n_jobs=THREADS
            )
            model.fit(X, y)


def smoothed_objective(z: Any, y: Any, running: Any) -> tuple[Any, Any]:
    """Return Σ ln(2 − L) of a batch's smoothed losses, and the running sums.

    As the library has it: decisions and the order of two labels by the normal
    distribution, micro-F1 at sums that are averaged over batches.
    """
    decided = torch.special.ndtr(z / SMOOTHING)
    hamming = (decided * (1 - y) + (1 - decided) * y).mean()
    apart = (z[:, None, :] - z[:, :, None]) / (SMOOTHING * math.sqrt(2))
    above = torch.special.ndtr(apart) * (1 - torch.eye(z.shape[1]))
    precision = (1 + (above * y[:, None, :]).sum(2)) / (1 + above.sum(2))
    n_relevant = y.sum(1)
    trivial = (n_relevant == 0) | (n_relevant == y.shape[1])
    of_rows = (precision * y).sum(1) / n_relevant.clamp(min=1)
    lrap = 1 - torch.where(trivial, torch.ones_like(of_rows), of_rows).mean()
    batch = torch.stack([(decided * y).sum(), decided.sum(), y.sum()]) / len(y)
    sums = batch if running is None else 0.9 * running + 0.1 * batch
    f1 = 1 - 2 * sums[0] / (sums[1] + sums[2])
    return sum(torch.log(2 - loss) for loss in (hamming, lrap, f1)), sums.detach()


def pytorch_network(n_inputs: int, hidden: tuple[int, ...], n_labels: int) -> Any:
    """Return one of the default's networks as PyTorch has them."""
    layers: list[Any] = []
    for width in hidden:
        layers += [torch.nn.Linear(n_inputs, width), torch.nn.ReLU()]
        layers.append(torch.nn.Dropout(0.5))
        n_inputs = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(n_inputs, n_labels))


def train_pytorch(X: Any, Y: Any, hidden: tuple[int, ...], n_epochs: int) -> None:
    """Train a network; keep a running average of its weights."""
    n = len(X)
    batch_size = int(np.clip(round(2 * n**0.5), 32, 256))
    n_batches = max(1, round(n / batch_size))
    network = pytorch_network(X.shape[1], hidden, Y.shape[1])
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995)
    )
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimiser, n_epochs * n_batches
    )
    running = None
    for _ in range(n_epochs):
        for rows in torch.randperm(n).tensor_split(n_batches):
            objective, running = smoothed_objective(network(X[rows]), Y[rows], running)
            optimiser.zero_grad()
            (-objective).backward()
            optimiser.step()
            schedule.step()
            average.update_parameters(network)


def fit_pytorch(clf: CLMLClassifier, X: Any, Y: np.ndarray) -> None:
    """Train as many networks as a fitted classifier has, on rows that it encoded."""
    n_train = round(0.8 * len(Y))  # a member leaves out a fifth
    truth = torch.tensor(Y[:n_train], dtype=torch.float32)
    for rows in clf.ensemble_.rows(X):
        dense = rows.X.toarray() if sp.issparse(rows.X) else rows.X
        inputs = torch.from_numpy(np.ascontiguousarray(dense[:n_train]))
        train_pytorch(inputs, truth, rows.layout.hidden, clf.n_epochs_)


def product_speed() -> float:
    """Return multiplications and additions of one thread a second, in a product."""
    A = np.ones((1024, 1024), dtype=np.float32)
    with threadpool_limits(1):
        A @ A
        return 2 * 1024**3 / min(seconds(lambda: A @ A) for _ in range(5))


def optimiser_speed(n: int) -> float:
    """Return weights that the optimiser's kernel moves a second, of so many."""
    arrays = [np.ones(n, dtype=np.float32) for _ in range(5)]
    (numbers,) = Adam(n).next_steps([RATE], DECAY, 0.99)
    repeats = max(1, int(1e7 / n))
    adam_step(*arrays, numbers)

    def some() -> None:
        for _ in range(repeats):
            adam_step(*arrays, numbers)

    return n * repeats / min(seconds(some) for _ in range(3))


def gradient_speed(Y: np.ndarray) -> float:
    """Return rows a second whose smoothed losses are derived."""
    n = min(len(Y), 500)
    targets = RowTargets.from_indicator(Y[:n])
    loss_set = LossSet(get_losses(LOSSES), Y.shape[1])
    logits = np.random.default_rng(0).normal(size=(n, Y.shape[1])).astype(np.float32)
    totals = loss_set.new_totals(1)
    loss_set.accumulate(totals, logits[None], targets)
    prices = measure_gradient(loss_set, totals, float(n))
    rows = np.arange(n)

    def derive() -> None:
        smoothed_gradient(logits, targets, rows, SMOOTHING, prices, loss_set)

    derive()
    return n / min(seconds(derive) for _ in range(5))


def floor(clf: CLMLClassifier, X: Any, Y: np.ndarray) -> float:
    """Return the least seconds of the epochs of a fit on all threads."""
    n, n_labels = round(0.8 * len(Y)), Y.shape[1]
    n_steps = max(1, round(n / np.clip(round(2 * n**0.5), 32, 256)))
    flops = moved = 0.0
    for rows in clf.ensemble_.rows(X):
        layout = rows.layout
        entries = rows.X.nnz / rows.X.shape[0] if sp.issparse(rows.X) else None
        n_inputs = layout.n_inputs if entries is None else entries
        widths = [n_inputs, *layout.hidden, n_labels]
        products = sum(a * b for a, b in itertools.pairwise(widths))
        # Forward, the weights' slopes, and but for the first layer those of the inputs.
        flops += 2 * n * (3 * products - n_inputs * widths[1])
        moved += n_steps * layout.size / optimiser_speed(layout.size)
    of_products = flops / product_speed()
    of_losses = len(clf.ensemble_.chosen) * n / gradient_speed(Y)
    return clf.n_epochs_ * (of_products + moved + of_losses) / THREADS


def measure(dataset: str, turns: int) -> list[dict[str, Any]]:
    """Time all three in turns; return a line a turn."""
    data = load_dataset(dataset)
    X, _, Y, _ = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, random_state=100
    )
    clf = CLMLClassifier(n_jobs=THREADS, random_state=0)
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf.fit(X, Y)  # compiles kernels, and says what the others need
        least = floor(clf, X, Y)
        lines = []
        for turn in range(turns):
            line: dict[str, Any] = {"dataset": dataset, "turn": turn, "floor_s": least}
            line["clml_s"] = seconds(lambda: clf.fit(X, Y))
            line["xgboost_s"] = seconds(lambda: fit_xgboost(X, Y))
            line["pytorch_s"] = math.nan
            if turn == 0:
                line["pytorch_s"] = seconds(lambda: fit_pytorch(clf, X, Y))
            lines.append(line)
            print(line, flush=True)
    return lines


def write_table(lines: list[dict[str, Any]]) -> None:
    """Write the table of all datasets in the file."""
    turns = 1 + max(int(line["turn"]) for line in lines)
    told = HEADER.format(
        turns=turns, torch=torch.__version__, xgboost=xgboost.__version__
    )
    text, ratios = [told], []
    for name in dict.fromkeys(line["dataset"] for line in lines):
        own = [line for line in lines if line["dataset"] == name]
        columns = {
            f: np.array([float(line[f]) for line in own])
            for f in FIELDS
            if f.endswith("_s")
        }
        data = load_dataset(name)
        n = round(0.7 * data.n_instances)
        clml_s = columns.pop("clml_s")
        found = [np.nanmedian(clml_s / other) for other in columns.values()]
        ratios.append(found)
        cells = [f"{np.nanmedian(v):.2f}" for v in (clml_s, *columns.values())]
        shown = [f"{ratio:.2f}" for ratio in found]
        shape = f"{n} x {data.X.shape[1]}, {data.n_labels}"
        text.append(f"| {name} | {shape} | {' | '.join([*cells, *shown])} |")
    means = " | ".join(f"{v:.2f}" for v in np.exp(np.log(ratios).mean(axis=0)))
    text.append(f"| geometric mean | | | | | | {means} |")
    (RESULTS / "fit_time.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def main() -> None:
    """Time what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(THREADS)
    lines = [line for name in given.datasets for line in measure(name, given.turns)]
    with (RESULTS / "fit_time.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for line in lines:
            writer.writerow(
                {
                    n: v if isinstance(v, str | int) else f"{v:.4f}"
                    for n, v in line.items()
                }
            )
    write_table(lines)


if __name__ == "__main__":
    main()

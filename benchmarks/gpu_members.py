"""Time and memory of wide members that are trained on a GPU.

    python benchmarks/gpu_members.py [--datasets emotions human-go] [--threads 16]

Fits ``CLMLClassifier(network="wide", device="cuda")`` with its defaults on 70 % of each
dataset's rows, twice, to see whether the networks are the same to the last bit; with
``--cpu`` also on the CPU. Adds lines to ``results/gpu_members.csv`` and writes
``results/gpu_members.md`` from it. ``--device cpu`` runs the device's code on the CPU.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_multilabel_classification

from clml import CLMLClassifier
from clml.datasets import iterative_train_test_split, load_dataset
from clml.losses import loss_values

RESULTS = Path(__file__).parent / "results"
DATASETS = (
    "flags",
    "virus-go",
    "foodtruck",
    "chd49",
    "emotions",
    "birds",
    "genbase",
    "cal500",
    "water-quality",
    "medical",
    "plant-go",
    "gnegative-go",
    "enron",
    "yeast",
    "scene",
    "human-go",
    "tmc2007-500",
    "imdb-f",
)
LOSSES = ("hamming", "lrap", "micro_f1")
FIELDS = (
    "dataset",
    "rows",
    "features",
    "labels",
    "where",
    "members",
    "epochs",
    "fit_s",
    "epochs_s",
    "peak_gib",
    *LOSSES,
    "same_bits",
)
HEADER = """\
# Wide members on a GPU

`CLMLClassifier(network="wide")` on 70 % of the rows: seconds of the fit and of its
epochs alone (training and judging; the rest is the encoding of columns and the map of
the outputs, on the CPU), memory at its peak (of the GPU, or of the process), and losses
on the other rows. Same bits: whether a second fit had the same networks. Datasets were
fitted one after another in one process, after kernels were compiled, on a machine whose
other cores were busy; memory includes what earlier fits had not given back. Made by
`benchmarks/gpu_members.py`.

| dataset | rows x features, labels | where | members | epochs | fit, s | epochs, s \
| GiB | hamming | lrap | micro-F1 | same bits |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def place(device: str, engine: str, threads: int) -> str:
    """Say what a fit runs on."""
    if engine == "torch" and device != "cpu":
        return f"{torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}"
    kind = "PyTorch" if engine == "torch" else "NumPy"
    return f"CPU, {kind}, {threads} threads"


def peak_gib(device: str, engine: str) -> float:
    """Return the most memory that was held, of the GPU or of the process."""
    if engine == "torch" and device != "cpu":
        return torch.cuda.max_memory_allocated(device) / 2**30
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / 2**20


def fitted(
    X: Any, Y: Any, device: str, engine: str, threads: int, epochs: int | None
) -> tuple[CLMLClassifier, float]:
    """Return a classifier, and the seconds that its fit took."""
    clf = CLMLClassifier(
        network="wide",
        device=device if engine == "torch" else "cpu",
        engine=engine,
        n_jobs=threads,
        max_epochs=epochs,
        random_state=0,
    )
    began = time.perf_counter()
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        clf.fit(X, Y)  # rare labels are constant in some splits
    return clf, time.perf_counter() - began


def measure(
    dataset: str, device: str, engine: str, threads: int, epochs: int | None
) -> dict[str, Any]:
    """Fit one dataset, on the device twice; return a line of the table."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=100
    )
    if engine == "torch" and device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    settings = (device, engine, threads, epochs)
    clf, seconds = fitted(X, Y, *settings)
    line = {
        "dataset": dataset,
        "rows": X.shape[0],
        "features": X.shape[1],
        "labels": Y.shape[1],
        "where": place(device, engine, threads),
        "members": len(clf.networks_),
        "epochs": clf.n_epochs_,
        "fit_s": round(seconds, 2),
        "epochs_s": round(float(clf.history_["seconds"].sum()), 2),
        "peak_gib": round(peak_gib(device, engine), 2),
    }
    losses = loss_values(Y_test, clf.decision_function(X_test), LOSSES)
    line |= {name: round(float(x), 4) for name, x in zip(LOSSES, losses, strict=True)}
    line["same_bits"] = ""
    if engine == "torch":
        again, _ = fitted(X, Y, *settings)
        both = zip(clf.networks_, again.networks_, strict=True)
        same = all(np.array_equal(one, other) for one, other in both)
        line["same_bits"] = "yes" if same else "NO"
    return line


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines that were measured before."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(lines: list[dict[str, Any]], folder: Path) -> None:
    """Write the lines and the table of them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gpu_members.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    rows = [HEADER]
    for line in lines:
        size = f"{line['rows']} x {line['features']}, {line['labels']}"
        rest = " | ".join(str(line[name]) for name in FIELDS[4:])
        rows.append(f"| {line['dataset']} | {size} | {rest} |")
    table = folder / "gpu_members.md"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cpu", action="store_true", help="the CPU's engine as well")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.device != "cpu" and not torch.cuda.is_available():
        sys.exit(
            f"PyTorch {torch.__version__} sees no GPU here, and --device is "
            f"{given.device!r}. --device cpu runs the same code on the CPU."
        )
    # What is compiled, and loaded, once.
    X, Y = make_multilabel_classification(60, 8, n_classes=4, random_state=0)
    engines = ("torch", "numpy") if given.cpu else ("torch",)
    for engine in engines:
        fitted(X, Y, given.device, engine, given.threads, 2)
    lines: list[dict[str, Any]] = [*read(given.results / "gpu_members.csv")]
    for dataset in given.datasets:
        for engine in engines:
            line = measure(dataset, given.device, engine, given.threads, given.epochs)
            print({name: line[name] for name in FIELDS}, flush=True)
            key = ("dataset", "where", "epochs")
            new = tuple(str(line[name]) for name in key)
            lines = [x for x in lines if tuple(str(x[name]) for name in key) != new]
            lines.append(line)
            write(lines, given.results)


if __name__ == "__main__":
    main()

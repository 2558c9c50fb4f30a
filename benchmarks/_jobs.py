"""Long lists of jobs whose results are rows of a CSV file, written as they finish."""

from __future__ import annotations

import csv
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

LOSSES = ("hamming", "lrap", "micro_f1")


def geometric_mean(row: dict[str, str]) -> float:
    """Return the geometric mean; a loss of exactly 0 counts as half an error."""
    half_an_error = 0.5 / int(row["test_decisions"])
    losses = [max(float(row[name]), half_an_error) for name in LOSSES]
    return float(np.prod(losses) ** (1 / len(losses)))


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Return "mean (standard deviation)"; a single value has none."""
    mean = f"{np.mean(values):.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ({np.std(values, ddof=1):.{digits}f})"


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run_jobs(
    path: Path,
    fields: Sequence[str],
    key: Sequence[str],
    jobs: Sequence[tuple[Any, ...]],
    run_job: Callable[..., list[dict[str, Any]]],
    n_processes: int,
) -> None:
    """Run jobs that are not in the file yet; append the rows of each when it ends.

    The first entries of a job are the values of the fields in ``key``. A job that
    fails is reported and left out; the others go on.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {tuple(row[name] for name in key) for row in read(path)}
    todo = [job for job in jobs if tuple(map(str, job[: len(key)])) not in done]
    is_new = not path.exists()
    # Fresh processes: threads of the parent do not survive a fork, nor does CUDA.
    context = multiprocessing.get_context("spawn")
    with (
        path.open("a", newline="") as file,
        ProcessPoolExecutor(n_processes, context) as pool,
    ):
        writer = csv.DictWriter(file, fields)
        if is_new:
            writer.writeheader()
        futures = {pool.submit(run_job, *job): job for job in todo}
        for n_done, future in enumerate(as_completed(futures), 1):
            job = futures[future]
            try:
                writer.writerows(future.result())
                file.flush()
                print(f"{n_done}/{len(todo)}", *job, flush=True)
            except Exception as error:
                print(f"{n_done}/{len(todo)}", *job, f"FAILED: {error!r}", flush=True)

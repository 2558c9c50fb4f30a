"""A model of an epoch on a cluster, fitted to those that were measured.

The three parts of an epoch are sums of terms with coefficients
that are not negative, fitted by least squares of relative errors:

- compute, of a worker: rows of his × candidates × weights (the arithmetic), rows of his
  × candidates (what each decision costs), candidates × weights (he draws the population
  himself), and a constant;
- network: a constant, so much a worker (a task each) and so much a partition (each is
  named in a task);
- update, of the coordinator: candidates × weights, sampled rows × weights (the tracked
  losses), and a constant.

To these, bytes over a network of 10 Gbit/s are added; on one machine there is none.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from clml.engine.tree_sum import Node, add_along_tree

BANDWIDTH = 10e9 / 8  # bytes a second, of the coordinator
SAMPLE_ROWS, JUDGING_SHARE = 20_000, 0.2  # as fits have them
PARTITIONS = 4  # a worker, in what is foretold
PARTS = ("compute", "network", "update")


@dataclass(frozen=True)
class Epoch:
    """What an epoch is of.

    Attributes
    ----------
    workers, rows, population, weights, partitions : int
    """

    workers: int
    rows: int
    population: int
    weights: int
    partitions: int

    @property
    def candidates(self) -> int:
        """Those of the population, and the mean of the distribution."""
        return self.population + 1

    def terms(self, part: str) -> list[float]:
        """Return the terms of a part of the epoch, in the order of its coefficients."""
        drawn = self.candidates * self.weights
        if part == "compute":
            own = self.rows / self.workers
            return [own * drawn, own * self.candidates, drawn, 1.0]
        if part == "network":
            return [1.0, self.workers, self.partitions]
        judging = JUDGING_SHARE * self.rows
        sample = min(SAMPLE_ROWS, self.rows - judging) + min(SAMPLE_ROWS, judging)
        return [1.0, drawn, sample * self.weights]

    @property
    def population_bytes(self) -> int:
        """What the candidates weigh."""
        return 4 * self.candidates * self.weights

    def sums(self) -> float:
        """Return how many sums a worker hands on, with neighbours on one worker."""
        owners = np.arange(self.partitions) * self.workers // self.partitions
        counts = [
            len(add_along_tree([Node(i, i + 1, None) for i in own], self.partitions))
            for own in np.split(
                np.arange(self.partitions), np.flatnonzero(np.diff(owners)) + 1
            )
        ]
        return float(np.mean(counts))


@dataclass(frozen=True)
class Measured:
    """An epoch, and what it took in milliseconds and bytes a worker.

    ``idle`` are bytes a second and worker of a cluster that waits.
    """

    epoch: Epoch
    width: int
    placement: str
    parts: dict[str, float]
    total: float
    spread: float
    letter: int
    answer: int
    wire: int
    idle: int
    peak_mb: float
    cores: int


@dataclass(frozen=True)
class Model:
    """Coefficients, in milliseconds and bytes a term.

    Attributes
    ----------
    parts : dict of str to float64 array
    wire : float64 array (4,)
        Bytes of an epoch and worker: constant, a byte of the answer, a partition; and
        a second, which workers tell the scheduler whatever they do.
    answer : float
        Bytes of a sum and candidate.
    """

    parts: dict[str, np.ndarray]
    wire: np.ndarray
    answer: float

    def part(self, name: str, epoch: Epoch) -> float:
        """Return the milliseconds of a part of an epoch."""
        return float(self.parts[name] @ epoch.terms(name))

    def total(self, epoch: Epoch) -> float:
        """Return the milliseconds of an epoch on one machine."""
        return sum(self.part(name, epoch) for name in PARTS)

    def wire_bytes(self, epoch: Epoch) -> float:
        """Return what a worker and the coordinator send each other in an epoch."""
        answer = self.answer * epoch.candidates * epoch.sums()
        own = epoch.partitions / epoch.workers
        return float(self.wire[:3] @ [1.0, answer, own])

    def sent(self, epoch: Epoch) -> float:
        """Return the milliseconds that all bytes take at the coordinator."""
        return 1e3 * epoch.workers * self.wire_bytes(epoch) / BANDWIDTH

    def best_workers(self, epoch: Epoch) -> int:
        """Return the number of workers with which an epoch is shortest.

        Rows cost compute / W and tasks cost W: their sum is least where both are equal.
        """
        one = replace(epoch, workers=1, partitions=PARTITIONS)
        shared = self.parts["compute"][:2] @ one.terms("compute")[:2]
        _, task, partition = self.parts["network"]
        each = task + PARTITIONS * partition + self.sent(one)
        return round(np.sqrt(shared / each))


def read(path: Path) -> list[Measured]:
    """Return the lines of a table of ``cluster_epoch.py``."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_measured(row) for row in csv.DictReader(file)]


def _measured(row: dict[str, str]) -> Measured:
    names = ("workers", "rows", "population", "weights", "partitions")
    return Measured(
        Epoch(*(int(row[name]) for name in names)),
        int(row["width"]),
        row["placement"],
        {name: float(row[f"{name}_ms"]) for name in PARTS},
        float(row["epoch_ms"]),
        float(row["epoch_iqr_ms"]),
        int(row["letter_bytes"]),
        int(row["answer_bytes"]),
        int(row["wire_bytes"]),
        int(row["idle_bytes_per_s"]),
        float(row["worker_peak_mb"]),
        int(row["cores"]),
    )


def _least_squares(terms: Sequence[Sequence[float]], values: Sequence[float]):
    """Return coefficients, none negative, with the least relative errors."""
    design, y = np.array(terms), np.array(values)
    relative = design / y[:, None]
    scale = np.linalg.norm(relative, axis=0)
    solution, _ = nnls(relative / scale, np.ones_like(y))
    return solution / scale


def usual(measured: Sequence[Measured]) -> list[Measured]:
    """Return the epochs on few partitions, neighbours on one worker."""
    few = min(one.epoch.partitions for one in measured)
    return [
        one
        for one in measured
        if one.placement == "neighbours" and one.epoch.partitions == few
    ]


def fit(measured: Sequence[Measured]) -> Model:
    """Fit the model to measured epochs."""
    near = [one for one in measured if one.placement == "neighbours"]
    # Many small partitions are another arithmetic: they tell of the network alone.
    alike = usual(measured)
    parts = {
        name: _least_squares(
            [one.epoch.terms(name) for one in some], [one.parts[name] for one in some]
        )
        for name, some in (("compute", alike), ("network", near), ("update", near))
    }
    wire = _least_squares(
        [
            [
                1.0,
                one.answer,
                one.epoch.partitions / one.epoch.workers,
                one.total / 1e3,
            ]
            for one in measured
        ],
        [one.wire for one in measured],
    )
    answers = [one.answer / one.epoch.candidates / one.epoch.sums() for one in near]
    return Model(parts, wire, float(np.median(answers)))


def relative_errors(model: Model, measured: Sequence[Measured]) -> np.ndarray:
    """Return by how much of themselves whole epochs differ from the model."""
    return np.array(
        [abs(model.total(one.epoch) / one.total - 1) for one in usual(measured)]
    )


def unseen_errors(measured: Sequence[Measured]) -> tuple[int, np.ndarray] | None:
    """Return the largest cluster and the errors there of a model of smaller ones."""
    sizes = sorted({one.epoch.workers for one in measured})
    if len(sizes) < 3:
        return None
    smaller = [one for one in measured if one.epoch.workers < sizes[-1]]
    largest = [one for one in measured if one.epoch.workers == sizes[-1]]
    return sizes[-1], relative_errors(fit(smaller), largest)


def row_bytes(measured: Sequence[Measured]) -> float:
    """Return the memory of a row on a worker at its peak, while rows are prepared."""
    most = max(one.epoch.rows / one.epoch.workers for one in measured)
    peaks = [
        one.peak_mb for one in measured if one.epoch.rows / one.epoch.workers == most
    ]
    return max(peaks) * 2**20 / most

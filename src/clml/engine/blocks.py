"""How work is cut: canonical blocks that depend on shapes alone.

A matrix product may round differently for another shape. Candidates and rows are
therefore always cut at the same places, whatever the threads and the memory: those
decide only how many blocks are in flight. Sums over the rows of a shard are taken in
row order, sums over shards in shard order, so every bit is reproducible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._support.simd import LANES
from ..losses import LossSet, RowTargets, Totals
from ..network import Layout

# Candidates that share every instruction, and one product of their first layers.
BLOCK_CANDIDATES = LANES
# Rows summed by one task.
SHARD_ROWS = 1024
# What one block may keep in the cache of a core while it is worked on.
_CACHE_BYTES = 1 << 20


@dataclass(frozen=True)
class Task:
    """Candidates ``first`` to ``last`` on the rows ``start`` to ``stop``."""

    first: int
    last: int
    shard: int
    start: int
    stop: int


def rows_per_block(embedding_dim: int, n_labels: int, itemsize: int) -> int:
    """Rows of one block: a power of two from 32 to 512 that keeps it in cache."""
    row_bytes = BLOCK_CANDIDATES * (embedding_dim + n_labels) * itemsize
    rows = 512
    while rows > 32 and rows * row_bytes > _CACHE_BYTES:
        rows //= 2
    return rows


def cut(n_candidates: int, n_rows: int) -> list[Task]:
    """Return the tasks of a population on a set of rows, in canonical order."""
    return [
        Task(
            first,
            min(first + BLOCK_CANDIDATES, n_candidates),
            shard,
            start,
            min(start + SHARD_ROWS, n_rows),
        )
        for first in range(0, n_candidates, BLOCK_CANDIDATES)
        for shard, start in enumerate(range(0, n_rows, SHARD_ROWS))
    ]


def add_up(loss_set: LossSet, tasks: list[Task], parts: list[Totals]) -> Totals:
    """Add the sums of tasks up, those of the same candidates in row order."""
    totals = loss_set.new_totals(max((task.last for task in tasks), default=0))
    for task, part in zip(tasks, parts, strict=True):
        where = slice(task.first, task.last)
        if task.shard == 0:
            totals.put(where, part)
        else:
            totals.at(where).add(part)
    return totals


def check_shapes(layout: Layout, X: Any, targets: RowTargets) -> None:
    """Check that rows, their targets and a layout belong together."""
    expected = (targets.n_rows, layout.n_features)
    if X.shape != expected or targets.n_rows == 0:
        raise ValueError(
            f"X must have shape {expected} with at least one row, got {X.shape}."
        )
    if targets.n_labels != layout.n_labels:
        raise ValueError(
            f"targets must have {layout.n_labels} labels as the layout has, "
            f"got {targets.n_labels}."
        )

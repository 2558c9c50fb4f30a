"""One partition's way from what was given to rows that are computed with.

Everything here is done where the partition is, and depends on its rows, its index and
the plan alone: who does it, and how often, changes nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from .._base.rows import Names, Part, systematic_share
from .._support.fingerprint import data_digest
from .._support.indicator import check_indicator
from .._support.names import column_names, is_numbering, match_names, shown
from .._support.torch import find_device
from ..engine import NumpyEngine, TorchEngine, single_threaded_blas
from ..engine.base import RowEngine, drawn_rows
from ..engine.partitioned import Held
from ..engine.tree_sum import Node, add_along_tree
from ..losses import Loss
from ..network import Layout, Moments, Scaling

# Numbers that moments are taken of at a time.
_TOGETHER = 1 << 21
TRAIN, VALIDATION = "train", "validation"
Parts = Mapping[str, Part]


@dataclass(frozen=True)
class SplitPlan:
    """What becomes of the rows of each partition.

    Attributes
    ----------
    fraction : float
        Share of the rows, stratified, that judge.
    seed : tuple of int
        Of the split.
    n_train : int
        Partitions from this one on were given to judge: none of their rows train.
    """

    fraction: float
    seed: tuple[int, ...]
    n_train: int

    def split(self, part: Part, index: int) -> tuple[Part, Part]:
        """Part the share of a partition that judges off; return the rest and it."""
        if self.n_train == 1:  # as rows in memory
            return part.split(self.fraction, np.random.default_rng(self.seed))
        generator = np.random.default_rng([*self.seed, index])
        chosen = systematic_share(part.Y, self.fraction, generator)
        return part.take(np.flatnonzero(~chosen)), part.take(np.flatnonzero(chosen))


def checked_part(rows: Any, index: int) -> Part:
    """Check what a partition gave: X, Y, and weights or None."""
    try:
        names: Names
        if len(rows) == 4:  # told beside plain arrays
            X, Y, weight, names = rows
        else:
            X, Y, weight = (*rows, None) if len(rows) == 2 else rows
            names = (column_names(X), column_names(Y))
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=0,
            input_name="X",
        )
        Y = check_indicator(Y, "y") if len(np.atleast_1d(Y)) else np.asarray(Y)
        if len(Y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y has {len(Y)}.")
        if weight is not None:
            weight = _checked_weight(weight, len(Y))
    except (TypeError, ValueError) as error:
        raise ValueError(f"Partition {index} is no rows to fit: {error}") from error
    Y = Y.astype(np.uint8, copy=False)
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)  # sums of other orders round differently
    if weight is None:
        return Part(X, Y, None, names)
    used = weight > 0
    return Part(X[used], Y[used], weight[used], names)


def _checked_weight(weight: Any, n_rows: int) -> NDArray[np.float64]:
    weight = np.asarray(weight, dtype=np.float64).reshape(-1)
    if len(weight) != n_rows:
        raise ValueError(f"there are {len(weight)} weights for {n_rows} rows.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("weights must be finite and not negative.")
    return weight


def split_rows(rows: Any, index: int, plan: SplitPlan) -> dict[str, Part]:
    """Check a partition and part its rows; a part without rows is left out."""
    part = checked_part(rows, index)
    if index >= plan.n_train:
        parts = {VALIDATION: part}
    elif plan.fraction > 0 and len(part.Y):
        train, validation = plan.split(part, index)
        parts = {TRAIN: train, VALIDATION: validation}
    else:
        parts = {TRAIN: part}
    return {name: some for name, some in parts.items() if len(some.Y)}


@dataclass(frozen=True, eq=False)
class Survey:
    """What has to be known of all partitions before one can be scaled.

    Surveys of disjoint sets of partitions add up.

    Attributes
    ----------
    n_rows : dict of str to int
        Of each part.
    positives : int64 array (K,)
        Training rows that have each label.
    shape : (D, K)
    moments : Moments or None
        Of the training rows.
    n_numbers : dict of str to int
        That the features of each part are made of.
    checksums : dict of int to int
        Of the partitions.
    names : pair of list of str or None
        Of features and labels, which all partitions that have names share.
    """

    n_rows: dict[str, int]
    positives: NDArray[np.int64]
    shape: tuple[int, int]
    moments: Moments | None
    n_numbers: dict[str, int] = field(default_factory=dict)
    checksums: dict[int, int] = field(default_factory=dict)
    names: Names = (None, None)

    def __add__(self, other: Survey) -> Survey:
        if self.shape != other.shape:
            raise ValueError(
                "Partitions must have the same features and labels, got "
                f"{self.shape[0]} features and {self.shape[1]} labels in one and "
                f"{other.shape[0]} and {other.shape[1]} in another."
            )
        known = [m for m in (self.moments, other.moments) if m is not None]
        return Survey(
            _added(self.n_rows, other.n_rows),
            self.positives + other.positives,
            self.shape,
            sum(known[1:], start=known[0]) if known else None,
            _added(self.n_numbers, other.n_numbers),
            self.checksums | other.checksums,
            (
                shared_names(self.names[0], other.names[0], "features"),
                shared_names(self.names[1], other.names[1], "labels"),
            ),
        )


def shared_names(
    one: list[str] | None, other: list[str] | None, what: str
) -> list[str] | None:
    """Return the names that two partitions share, or refuse them.

    Rows of a partition are not changed here: columns in another order are refused.
    """
    if match_names(one, other, f"The {what} of a partition", "the others") is not None:
        assert one is not None and other is not None
        raise ValueError(
            f"Partitions must have their {what} in the same order, got {shown(one)} in "
            f"one and {shown(other)} in another."
        )
    return other if one is None or is_numbering(one) else one


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {n: one.get(n, 0) + other.get(n, 0) for n in {**one, **other}}


def checksum_of(parts: Parts) -> int:
    """Return what tells whether a partition is the same when it is made again."""
    value = 0
    for part in parts.values():
        for array in (*part.arrays, part.Y):
            value = zlib.crc32(np.ascontiguousarray(array).data.cast("B"), value)
    return value


def check_same(parts: Parts, index: int, checksums: Mapping[int, int] | None) -> None:
    """Refuse a partition that has other rows than it had, or in another order.

    Rows that trained would judge, and nothing could be repeated.
    """
    if checksums is not None and checksums.get(index, 0) != checksum_of(parts):
        raise ValueError(
            f"Partition {index} is not what it was when it was read before. Its source "
            "must give the same rows in the same order every time."
        )


def survey_of(parts: Parts, index: int) -> Survey | None:
    """Survey a partition; None if it has no rows."""
    if not parts:
        return None
    train = parts.get(TRAIN)
    some = next(iter(parts.values()))
    n_labels = some.Y.shape[1]
    positives = np.zeros(n_labels, dtype=np.int64)
    if train is not None:
        positives = train.Y.sum(axis=0, dtype=np.int64)
    return Survey(
        {name: len(part.Y) for name, part in parts.items()},
        positives,
        (some.X.shape[1], n_labels),
        None if train is None else _moments_of(train),
        {name: int(part.arrays[0].size) for name, part in parts.items()},
        {index: checksum_of(parts)},
        some.names,
    )


@single_threaded_blas()
def _moments_of(part: Part) -> Moments:
    """Take moments of a few rows at a time: in float64 they take much memory."""
    n, d = part.X.shape
    step = max(_TOGETHER // max(d, 1), 1)
    starts = range(0, n, step)
    leaves = [
        Node(i, i + 1, Moments.of(part.X[a : a + step], _some(part.weight, a, step)))
        for i, a in enumerate(starts)
    ]
    (whole,) = add_along_tree(leaves, len(leaves))
    moments: Moments = whole.value
    return moments


def _some(weight: NDArray | None, start: int, step: int) -> NDArray | None:
    return None if weight is None else weight[start : start + step]


def digest_of(rows: Any, index: int) -> str:
    """Return what tells a partition from others, by what it holds."""
    part = checked_part(rows, index)
    given = [part.X, part.Y] + ([] if part.weight is None else [part.weight])
    return " ".join(data_digest(array) for array in given)


def sample_of(
    parts: Parts,
    index: int,
    *,
    shares: Mapping[str, float],
    seed: tuple[int, ...],
    checksums: Mapping[int, int] | None = None,
) -> dict[str, Part]:
    """Draw a share of each part's rows."""
    check_same(parts, index, checksums)
    return {
        name: part.take(drawn_rows(len(part.Y), shares[name], (*seed, index)))
        for name, part in parts.items()
    }


def joined(samples: list[dict[str, Part]], name: str) -> Part | None:
    """Return the rows of one part of all partitions' samples; None of no rows."""
    found = [parts[name] for parts in samples if name in parts]
    if not found:
        return None
    weights = [part.weight for part in found if part.weight is not None]
    if weights and len(weights) < len(found):
        raise ValueError(
            "Some partitions have row weights and others have none: give weights with "
            "all partitions, or with none."
        )
    X: Any
    if any(sp.issparse(part.X) for part in found):
        X = sp.vstack([part.X for part in found], format="csr")
    else:
        X = np.vstack([part.X for part in found])
    return Part(
        X,
        np.vstack([part.Y for part in found]),
        np.concatenate(weights) if weights else None,
    )


@dataclass(frozen=True, eq=False)
class EnginePlan:
    """How rows are computed with.

    Attributes
    ----------
    layout : Layout
    scaling : Scaling
    losses : tuple of Loss
    device : str or None
        That of PyTorch; None is the library's own engine on the CPU. "auto" is a GPU
        where the partition is, if there is one.
    memory_mb : float
        Of candidates in flight.
    checksums : dict of int to int, or None
        Of partitions, which are to be what they were.
    """

    layout: Layout
    scaling: Scaling
    losses: tuple[Loss, ...]
    device: str | None
    memory_mb: float
    checksums: Mapping[int, int] | None = None

    def engine(self, part: Part) -> RowEngine:
        """Return the engine of some rows."""
        given = (self.layout, part.X, part.targets, self.losses)
        device = self.device
        if device == "auto":
            found = str(find_device("auto"))
            device = None if found == "cpu" else found
        if device is not None:
            return TorchEngine(*given, scaling=self.scaling, device=device)
        return NumpyEngine(*given, scaling=self.scaling, memory_mb=self.memory_mb)

    def hold(self, parts: Parts, index: int) -> Held:
        """Return a partition's rows as they are computed with."""
        check_same(parts, index, self.checksums)
        return Held(index, {name: self.engine(part) for name, part in parts.items()})

"""What the logits of single rows come to, in PyTorch, and their sums in row order.

The plain path of the device engine and the twin of its fused kernels. Counts and ratios
are those of ``losses._kernels``, added in the same order: the same logits give the same
sums, bit for bit, on the host and on a device. (Logarithms of probabilities are the
device's own and agree to rounding.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.torch import import_torch
from ..losses import RowTargets
from ..losses import kernels as columns
from .blocks import SHARD_ROWS

if TYPE_CHECKING:
    from torch import Tensor

# Of the labels decided for, in the plain path.
_BITS = 32
#: Adds values (..., n) in their order, so many together: ``ordered_sums``.
Add = Callable[..., Any]


@dataclass(frozen=True)
class Wants:
    """Which groups of statistics are asked for; decisions always are."""

    lrap: bool = False
    order: bool = False
    example: bool = False


@dataclass(frozen=True, eq=False)
class DeviceTargets:
    """``RowTargets`` on a device.

    Attributes
    ----------
    dense : uint8 tensor (n, K)
    indptr, indices : int32 tensors
    weight : float64 tensor (n,)
    order : int32 tensor (n,)
        All rows; within each shard those with fewer relevant labels first.
    ratios : float64 tensor ((K + 1)²,), or of no entry
        All that a rank among relevant labels over a rank may be, for ``_triton``.
    whole : bool
        Whether all weights are whole numbers, so that their sums are exact.
    """

    dense: Tensor
    indptr: Tensor
    indices: Tensor
    weight: Tensor
    order: Tensor
    ratios: Tensor
    whole: bool

    @classmethod
    def put(cls, targets: RowTargets, device: Any, ratios: Any = None) -> DeviceTargets:
        """Copy targets to a device."""
        torch = import_torch()
        n_relevant = np.diff(targets.indptr)
        shard = np.arange(targets.n_rows) // SHARD_ROWS
        order = np.lexsort((n_relevant, shard)).astype(np.int32)
        arrays = (*targets.arrays, order, np.empty(0) if ratios is None else ratios)
        whole = bool((targets.weight == np.rint(targets.weight)).all())
        dense, indptr, indices, weight, order, ratios = (
            torch.as_tensor(array, device=device) for array in arrays
        )
        return cls(dense, indptr, indices, weight, order, ratios, whole)

    @staticmethod
    def all_ratios(n_labels: int, device: Any) -> Tensor:
        """Return the ratios of so many labels."""
        ranks = np.arange(n_labels + 1, dtype=np.float64)
        ratios = ranks / np.maximum(ranks, 1)[:, None]  # [rank, rank among relevant]
        return import_torch().as_tensor(ratios.ravel(), device=device)

    def between(self, start: int, stop: int) -> DeviceTargets:
        """Return the targets of rows ``start`` to ``stop``; positions stay global."""
        return replace(
            self,
            dense=self.dense[start:stop],
            indptr=self.indptr[start : stop + 1],
            weight=self.weight[start:stop],
        )


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """What each row comes to for each candidate, tensors (rows, candidates).

    Attributes
    ----------
    decisions : int32, or int64 of the plain path
        Labels decided for, and above their bits (11, or 32 of the plain path) the
        relevant ones among them; −1 where a score is NaN.
    lrap, ranking : float64 or None
        The row's precision and ranking loss, times its weight.
    coverage, topped : int32 and int8, or None
        Lowest rank of a relevant label, and whether a relevant label is on top.
    """

    decisions: Tensor
    lrap: Tensor | None = None
    ranking: Tensor | None = None
    coverage: Tensor | None = None
    topped: Tensor | None = None

    @classmethod
    def empty(
        cls, shape: tuple[int, int], wants: Wants, device: Any, wide: bool = False
    ) -> RowStatistics:
        """Return room for the statistics of (rows, candidates)."""
        torch = import_torch()

        def room(kind: Any, wanted: bool = True) -> Any:
            return torch.empty(shape, dtype=kind, device=device) if wanted else None

        return cls(
            room(torch.int64 if wide else torch.int32),
            room(torch.float64, wants.lrap),
            room(torch.float64, wants.order),
            room(torch.int32, wants.order),
            room(torch.int8, wants.order),
        )


def count_rows(
    logits: Tensor, targets: DeviceTargets, threshold: float, wants: Wants
) -> RowStatistics:
    """Count what the logits (candidates, rows, K) come to."""
    torch = import_torch()
    logits = logits.transpose(0, 1)
    truth = targets.dense.bool()[:, None]
    decided = logits > threshold
    n_rows, n_candidates, _ = logits.shape
    shape = (n_rows, n_candidates)
    found = RowStatistics.empty(shape, wants, logits.device, wide=True)
    hits = (decided & truth).sum(dim=2)
    found.decisions[:] = decided.sum(dim=2) + (hits << _BITS)
    found.decisions[logits.isnan().any(dim=2)] = -1
    if not (wants.lrap or wants.order):
        return found
    start = targets.indptr[:-1].long()
    n_relevant = targets.indptr.diff().long()
    precision = torch.zeros(shape, dtype=torch.float64, device=logits.device)
    swapped, coverage, topped = (
        torch.zeros(shape, dtype=torch.int64, device=logits.device) for _ in range(3)
    )
    for j in range(int(n_relevant.max())):
        has = (j < n_relevant).nonzero()[:, 0]
        label = targets.indices[start[has] + j].long()
        scores = logits[has]
        limit = scores.gather(2, label[:, None, None].expand(-1, n_candidates, 1))
        at_least = scores >= limit
        rank = at_least.sum(dim=2)
        own = (at_least & truth[has]).sum(dim=2)
        precision[has] += own.double() / rank.double()
        swapped[has] += rank - own
        coverage[has] = torch.maximum(coverage[has], rank)
        topped[has] |= rank == own
    n_labels = targets.dense.shape[1]
    trivial = ((n_relevant == 0) | (n_relevant == n_labels))[:, None]
    weight, n_relevant = targets.weight[:, None], n_relevant[:, None]
    if found.lrap is not None:
        share = precision / torch.where(trivial, 1, n_relevant).double()
        found.lrap[:] = weight * torch.where(trivial, 1.0, share)
    if found.ranking is not None:
        assert found.coverage is not None and found.topped is not None
        pairs = torch.where(trivial, 1, n_relevant * (n_labels - n_relevant))
        share = weight * (swapped.double() / pairs.double())
        found.ranking[:] = torch.where(trivial, 0.0, share)
        found.coverage[:] = coverage
        found.topped[:] = topped
    return found


def sum_shards(
    rows: RowStatistics, targets: DeviceTargets, wants: Wants, add: Add
) -> Tensor:
    """Return the sums (shards, columns, candidates) of rows from a shard's start on.

    The columns are the first eleven of ``losses._kernels``. ``add`` is
    ``ordered_sums``, or what does the same on a device.
    """
    torch = import_torch()
    weight = targets.weight[:, None]
    n_relevant = targets.indptr.diff().double()[:, None]
    predicted = (rows.decisions & (1 << _BITS) - 1).double()
    hits = (rows.decisions >> _BITS).double()
    size = predicted + n_relevant
    wrong = size - 2 * hits
    values: dict[int, Tensor] = {
        columns.WRONG: weight * wrong,
        columns.HITS: weight * hits,
        columns.PREDICTED: weight * predicted,
        columns.RELEVANT: (weight * n_relevant).expand_as(hits),
    }
    if wants.example:
        some = hits > 0
        of_all = hits / torch.where(some, size - hits, 1.0)
        of_both = 2 * hits / torch.where(some, size, 1.0)
        values[columns.SUBSET] = torch.where(wrong > 0, weight, 0.0)
        values[columns.JACCARD] = torch.where(some, weight * of_all, 0.0)
        values[columns.EXAMPLE_F1] = torch.where(some, weight * of_both, 0.0)
    if rows.lrap is not None:
        values[columns.LRAP] = rows.lrap
    if rows.ranking is not None:
        assert rows.coverage is not None and rows.topped is not None
        values[columns.RANKING] = rows.ranking
        values[columns.COVERAGE] = weight * rows.coverage.double()
        values[columns.ONE_ERROR] = torch.where(rows.topped == 0, weight, 0.0)
    wanted = sorted(values)
    stack = torch.stack([values[c] for c in wanted])
    stack = torch.where(weight > 0, stack, 0.0)  # also of rows that are not defined
    sums = add(stack.transpose(1, 2))
    undefined = ((rows.decisions < 0) & (weight > 0)).any(dim=0)
    out = sums.new_zeros((columns.CROSS_ENTROPY, *sums.shape[1:]))
    out[wanted] = sums
    out[:, undefined] = torch.nan
    return out.permute(2, 0, 1)


def ordered_sums(values: Tensor, together: int = SHARD_ROWS) -> Tensor:
    """Return the sums (..., parts) of so many values (..., n) each, added in order."""
    torch = import_torch()
    parts = _cut(values, together)
    if values.device.type == "cpu":
        # NumPy adds one after the other; a device has its own ideas.
        added = np.add.accumulate(parts.numpy(), axis=-1)
        return torch.from_numpy(added[..., -1].copy())
    sums = torch.zeros_like(parts[..., 0])
    for i in range(min(together, values.shape[-1])):
        sums += parts[..., i]
    return sums


def _cut(values: Tensor, together: int) -> Tensor:
    """Return values (..., n) as (..., parts, together), zeros at the end."""
    torch = import_torch()
    missing = -values.shape[-1] % together
    padded = torch.nn.functional.pad(values, (0, missing))
    return padded.unflatten(-1, (-1, together))


def label_sums(
    logits: Tensor, targets: DeviceTargets, threshold: float, add: Add
) -> Tensor:
    """Return hits, predictions and relevance by label, (shards, 3, candidates, K)."""
    torch = import_torch()
    truth = targets.dense.double()
    weight = targets.weight[:, None]
    decided = (logits > threshold).double()
    relevant = (weight * truth).expand_as(decided)
    values = torch.stack([weight * decided * truth, weight * decided, relevant])
    values = values.transpose(2, 3)  # rows last
    undefined = (logits.isnan().any(dim=2) & (targets.weight > 0)).any(dim=1)
    values[:, undefined] = torch.nan
    if not targets.whole:
        return add(values).permute(3, 0, 1, 2)
    # Whole numbers may be added in any order.
    return _cut(values, SHARD_ROWS).sum(dim=-1).permute(3, 0, 1, 2)


def probability_sums(logits: Tensor, targets: DeviceTargets, add: Add) -> Tensor:
    """Return cross-entropy and the rows' log loss, (shards, 2, candidates)."""
    torch = import_torch()
    functional = torch.nn.functional
    z = logits.double()
    truth = targets.dense.bool()
    entropy = -torch.where(truth, functional.logsigmoid(z), functional.logsigmoid(-z))
    log_p = functional.logsigmoid(z)
    own = torch.where(truth, log_p.logsumexp(dim=2, keepdim=True) - log_p, 0.0)
    values = torch.stack([entropy.sum(dim=2), own.sum(dim=2)])
    values = torch.where(targets.weight > 0, targets.weight * values, 0.0)
    undefined = (logits.isnan().any(dim=2) & (targets.weight > 0)).any(dim=1)
    values[:, undefined] = torch.nan
    return add(values).permute(2, 0, 1)

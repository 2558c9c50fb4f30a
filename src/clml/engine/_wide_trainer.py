"""An epoch of several wide members at once, on a device.

The steps of ``climbed``, one batched operation for all members: of one encoding
in the products of networks, of all encodings in what follows their logits. An epoch is
a function of values: the state that it is given stays as it is, so that an interrupt,
or a lack of memory, loses nothing. Steps are given to one stream without waiting for
the device; what an epoch needs of the host is sent before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._memory import Portion
from .._torch import import_torch
from ..losses import LossSet
from ..network import WideLayout
from ..network._wide import _DROPOUT_STEPS
from ._batch_sums import batch_sums
from ._dropout import DropoutMasks
from ._full_precision import full_precision
from ._member_prices import member_prices
from ._member_rows import LabelBatch, MemberLabels, MemberRows, told_if_too_large
from ._smooth_rows import Prices, smoothed_gradient
from ._step_rows import StepRows
from ._wide_batches import WideWeights, backward, forward

if TYPE_CHECKING:
    from torch import Tensor

# Rows of a block where nothing is trained, and bytes of its inputs at most.
_BLOCK, _BLOCK_BYTES = 16_384, 128 << 20
# The order of ``GroupState``.
_WEIGHTS = ("theta", "average", "first", "second")


@dataclass(frozen=True, eq=False, repr=False)
class WideGroup:
    """Members of one encoding.

    Attributes
    ----------
    layout : WideLayout
        Groups that are trained together differ in the number of inputs alone.
    rows : MemberRows
    n_members : int
    """

    layout: WideLayout
    rows: MemberRows
    n_members: int


@dataclass(frozen=True, eq=False, repr=False)
class GroupState:
    """The weights of members of one encoding.

    Attributes
    ----------
    theta, average, first, second : float32 tensors (members, n)
        Weights, their running average, and Adam's averages.
    """

    theta: Tensor
    average: Tensor
    first: Tensor
    second: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of them."""
        return tuple(getattr(self, name) for name in _WEIGHTS)


@dataclass(frozen=True, eq=False, repr=False)
class WideState:
    """Members between two epochs, in a device's memory.

    Attributes
    ----------
    begun : bool
        Whether any step was taken: before there are no running statistics.
    groups : tuple of GroupState
        Members follow each other group by group.
    columns : float64 tensor (members, columns)
        Running statistics of a row.
    labels : float64 tensor (members, 3, K), or of no entry
    """

    begun: bool
    groups: tuple[GroupState, ...]
    columns: Tensor
    labels: Tensor

    @property
    def tensors(self) -> Iterator[Tensor]:
        """All that the members are made of."""
        for group in self.groups:
            yield from group.tensors
        yield from (self.columns, self.labels)

    def empty_like(self) -> WideState:
        """Return room for members after an epoch."""
        new = import_torch().empty_like
        groups = (GroupState(*(new(part) for part in g.tensors)) for g in self.groups)
        return WideState(True, tuple(groups), new(self.columns), new(self.labels))

    def at(self, where: slice) -> WideState:
        """Return some of the members: views of these, of some groups none."""
        groups, first = [], 0
        for group in self.groups:
            own = slice(max(where.start - first, 0), max(where.stop - first, 0))
            groups.append(GroupState(*(part[own] for part in group.tensors)))
            first += len(group.theta)
        return WideState(
            self.begun, tuple(groups), self.columns[where], self.labels[where]
        )

    def tensor(self, name: str, member: int) -> Tensor:
        """Return what a member has under a name."""
        if name in ("columns", "labels"):
            found: Tensor = getattr(self, name)[member]
            return found
        for group in self.groups:
            if member < len(group.theta):
                break
            member -= len(group.theta)
        found = getattr(group, name)[member]
        return found

    def array(self, name: str, member: int) -> NDArray:
        """Copy what a member has under a name to the host."""
        found: NDArray = self.tensor(name, member).cpu().numpy().copy()
        return found


@dataclass(frozen=True, eq=False, repr=False)
class EpochSteps:
    """What an epoch does, step by step, for members that take as many steps.

    Attributes
    ----------
    rows : int64 array (steps, members, most rows)
        −1 where a batch has fewer.
    weight : float64 array of the same shape
        0 there.
    keys : uint64 array (steps, members)
        Which units are dropped.
    rates : float64 array (4, steps, members)
        Of Adam: what the averages of gradients are multiplied by, what the roots of
        those of squares are, the share of the weights that is taken away; and how much
        the running average keeps.
    beta1, beta2, eps : float
        Of Adam.
    kept_sums : float
        How much of the running statistics a batch keeps.
    price_every : int
        For how many steps prices hold.
    cross_entropy : bool
        Whether steps descend that, and not the losses.
    """

    rows: NDArray[np.int64]
    weight: NDArray[np.float64]
    keys: NDArray[np.uint64]
    rates: NDArray[np.float64]
    beta1: float
    beta2: float
    eps: float
    kept_sums: float
    price_every: int
    cross_entropy: bool

    @property
    def n_steps(self) -> int:
        """Steps of the epoch."""
        return len(self.rows)

    @property
    def n_members(self) -> int:
        """Members that take them."""
        return self.rows.shape[1]


class WideTrainer:
    """Trains members, all of them in one batch.

    Where the device's memory runs out, half as many members are trained at once from
    then on, and a warning says so.

    Parameters
    ----------
    groups : sequence of WideGroup
    labels : MemberLabels
        Of the rows, which all groups encode.
    loss_set : LossSet
        Made of built-in row statistics.
    smoothing : float
    device : torch.device
    memory_mb : float, default=512
        What pairs of labels may take while they are looked at.
    """

    def __init__(
        self,
        groups: Sequence[WideGroup],
        labels: MemberLabels,
        loss_set: LossSet,
        smoothing: float,
        device: Any,
        memory_mb: float = 512,
    ):
        self._groups = tuple(groups)
        self._layout = groups[0].layout
        self._labels = labels
        self._loss_set, self._smoothing = loss_set, smoothing
        self._device = device
        self._memory = memory_mb * 2**20
        share = self._layout.dropout
        dropped = min(round(share * _DROPOUT_STEPS), _DROPOUT_STEPS - 1)
        self._dropped = dropped if self._layout.hidden else 0
        self._scale = float(np.float32(_DROPOUT_STEPS / (_DROPOUT_STEPS - dropped)))
        self._at_once = Portion("members", exact=False, release=self._release)

    @property
    def n_members(self) -> tuple[int, ...]:
        """Members of each group."""
        return tuple(group.n_members for group in self._groups)

    def put(
        self,
        groups: Sequence[dict[str, NDArray[np.float32]]],
        columns: NDArray[np.float64] | None,
        labels: NDArray[np.float64] | None,
    ) -> WideState:
        """Copy members to the device.

        Parameters
        ----------
        groups : sequence of dict of float32 arrays (members, n)
            ``theta``, ``average``, ``first`` and ``second`` of each group.
        columns, labels : float64 arrays (members, ...) or None
            Running statistics; None before the first step.
        """
        new = partial(import_torch().tensor, device=self._device)
        with self._told_if_too_large():
            states = tuple(
                GroupState(*(new(group[name]) for name in _WEIGHTS)) for group in groups
            )
        empty = self._loss_set.new_totals(sum(len(state.theta) for state in states))
        begun = columns is not None
        sums = (columns if begun else empty.columns, labels if begun else empty.labels)
        return WideState(begun, states, *(new(array) for array in sums))

    def climbed(
        self, state: WideState, steps: EpochSteps
    ) -> tuple[WideState, NDArray[np.float64], NDArray[np.float64]]:
        """Return members after an epoch, and the sums of statistics on the way.

        Returns
        -------
        state : WideState
        columns, labels : float64 arrays (members, columns) and (members, 3, K)
        """
        torch = import_torch()
        n = steps.n_members
        with self._told_if_too_large():
            after = state.empty_like()
        seen: list[tuple[Tensor, Tensor]] = []

        def some(start: int, stop: int) -> None:
            where = slice(start, stop)
            seen.append(self._epoch(state.at(where), after.at(where), steps, where))

        with full_precision(), on_device(self._device), torch.no_grad():
            self._at_once.work_through(n, n, some)
            both = zip(*seen, strict=True)
            columns, labels = (torch.cat(parts).cpu().numpy() for parts in both)
        return after, columns, labels

    def _epoch(
        self, before: WideState, now: WideState, steps: EpochSteps, where: slice
    ) -> tuple[Tensor, Tensor]:
        """Train some members for an epoch, from one state into another."""
        torch = import_torch()
        for into, what in zip(now.tensors, before.tensors, strict=True):
            into.copy_(what)
        batches = _Batches(steps, where, self._labels, self._device)
        nets = self._networks(now, batches)
        kept: Iterator[list[Tensor]] = iter(())
        if self._dropped:
            most = steps.rows.shape[2]
            masks = DropoutMasks(self._layout.hidden, most, self._dropped, self._device)
            kept = masks.of(steps.keys[:, where])
        columns, labels = torch.zeros_like(now.columns), torch.zeros_like(now.labels)
        prices: Prices | None = None
        for step in range(steps.n_steps):
            layers = next(kept, [])
            found = [net.forward(step, layers) for net in nets]
            logits = torch.cat(found) if len(found) > 1 else found[0]
            rows = StepRows(logits, batches.labels(step), self._memory)
            sums = batch_sums(rows, self._loss_set)
            columns += sums[0]
            labels += sums[1]
            means = _per_row(sums, rows.labels)
            if step == 0 and not before.begun:
                _blend(now, means, 1.0)
            if step % steps.price_every == 0:
                prices = member_prices(self._loss_set, now.columns, now.labels)
            assert prices is not None
            credit = self._credit(rows, prices, steps.cross_entropy)
            _blend(now, means, 1 - steps.kept_sums)
            credit /= batches.n_rows[step]
            rates = batches.rates(step)
            for net in nets:
                net.backward(credit)
                net.update(rates, steps)
        return columns, labels

    def _networks(self, now: WideState, batches: _Batches) -> list[_Networks]:
        """Return the networks of each group that has some of the members."""
        found, first = [], 0
        for group, state in zip(self._groups, now.groups, strict=True):
            n = len(state.theta)
            if n:
                own = slice(first, first + n)
                found.append(_Networks(group, state, own, batches, self._scale))
            first += n
        return found

    def _credit(self, rows: StepRows, prices: Prices, cross_entropy: bool) -> Tensor:
        """Return what each output of each row is worth."""
        if cross_entropy:
            weight = rows.labels.weight.float()[..., None]
            return weight * (rows.truth - rows.given.sigmoid())
        return smoothed_gradient(rows, self._smoothing, prices, self._loss_set)

    def _told_if_too_large(self) -> Any:
        n, size = sum(self.n_members), max(g.layout.size for g in self._groups)
        what = f"{n} members of up to {size} weights, eight numbers each"
        return told_if_too_large("networks", what, self._device)

    def _release(self) -> None:
        if self._device.type == "cuda":
            import_torch().cuda.empty_cache()


class _Batches:
    """The batches of some members: what an epoch needs of the host, sent at once."""

    def __init__(
        self, steps: EpochSteps, where: slice, labels: MemberLabels, device: Any
    ):
        torch = import_torch()
        self.chosen = steps.rows[:, where]
        self.rows = torch.as_tensor(np.maximum(self.chosen, 0), device=device)
        self._labels = labels
        self._weight = torch.as_tensor(steps.weight[:, where].copy(), device=device)
        counts = (self.chosen >= 0).sum(axis=2, dtype=np.float32)
        self.n_rows = torch.as_tensor(counts, device=device)[..., None, None]
        rates = steps.rates[..., where].astype(np.float32)
        self._rates = torch.as_tensor(rates, device=device)

    def labels(self, step: int) -> LabelBatch:
        """Return labels and weights of the rows of a step."""
        return self._labels.batch(self.rows[step], self._weight[step])

    def rates(self, step: int) -> Tensor:
        """Return the rates (4, members, 1) of a step."""
        found: Tensor = self._rates[:, step, :, None]
        return found


class _Networks:
    """Networks of one group on their way through an epoch."""

    def __init__(
        self,
        group: WideGroup,
        state: GroupState,
        own: slice,
        batches: _Batches,
        scale: float,
    ):
        torch = import_torch()
        self._from, self._state, self._own = group.rows, state, own
        self._rows = batches.rows[:, own]
        lengths = np.append(group.rows.lengths, 0)  # the last is that of no row
        self._longest = lengths[batches.chosen[:, own]].max(axis=(1, 2)).tolist()
        self._weights = WideWeights.of(state.theta, group.layout)
        self._gradient = torch.empty_like(state.theta)
        self._slopes = WideWeights.of(self._gradient, group.layout)
        self._activation, self._scale = group.layout.activation, scale
        self._last: tuple[Any, ...] = ()

    def forward(self, step: int, layers: Sequence[Tensor]) -> Tensor:
        """Return the logits of a step's rows."""
        x = self._from.batch(self._rows[step], self._longest[step])
        kept = [layer[self._own] for layer in layers]
        dropping = (self._activation, kept, self._scale)
        logits, outputs = forward(self._weights, x, *dropping)
        self._last = (x, outputs, *dropping)
        return logits

    def backward(self, slope: Tensor) -> None:
        """Carry the slopes of all members' logits back."""
        backward(slope[self._own], self._weights, self._slopes, *self._last)
        self._last = ()

    def update(self, rates: Tensor, steps: EpochSteps) -> None:
        """Change the weights, and their running average, in place."""
        size, correction, decay, keep = rates[:, self._own]
        state, gradient = self._state, self._gradient
        state.first.mul_(steps.beta1).add_(gradient, alpha=1 - steps.beta1)
        state.second.mul_(steps.beta2)
        state.second.addcmul_(gradient, gradient, value=1 - steps.beta2)
        change = state.second.sqrt().mul_(correction).add_(steps.eps)
        change = change.reciprocal_().mul_(state.first).mul_(size)
        # Added up first: what decays is less than the last digit of most weights.
        change.addcmul_(state.theta, decay)
        state.theta.sub_(change)
        state.average.mul_(keep).addcmul_(state.theta, 1 - keep)


def _per_row(sums: tuple[Tensor, Tensor], batch: LabelBatch) -> tuple[Tensor, Tensor]:
    """Return the statistics of a row of weight 1 in a batch."""
    weight = batch.weight.sum(dim=1)
    return sums[0] / weight[:, None], sums[1] / weight[:, None, None]


def _blend(state: WideState, means: tuple[Tensor, Tensor], share: float) -> None:
    """Let running statistics take a share of a batch's."""
    for running, mean in zip((state.columns, state.labels), means, strict=True):
        if share == 1.0:
            running.copy_(mean)
        else:
            running.mul_(1 - share).add_(mean, alpha=share)


def wide_logits(
    theta: Tensor,
    layout: WideLayout,
    rows: MemberRows,
    chosen: NDArray[np.intp] | None = None,
) -> NDArray[np.float32]:
    """Return the logits (rows, K) of one network, computed where the rows are.

    Parameters
    ----------
    theta : float32 tensor (weights,)
    layout : WideLayout
    rows : MemberRows
    chosen : int array, default=None
        Which rows; None for all.
    """
    torch = import_torch()
    widest = int(layout.widths.max())
    block = max(1, min(_BLOCK, _BLOCK_BYTES // (4 * widest)))
    n = rows.n_rows if chosen is None else len(chosen)
    found = theta.new_empty((n, layout.n_labels))
    with full_precision(), on_device(theta.device), torch.no_grad():
        weights = WideWeights.of(theta[None], layout)
        for a in range(0, n, block):
            b = min(a + block, n)
            some = rows.block(a, b) if chosen is None else rows.some(chosen[a:b])
            x = some[None]
            found[a:b] = forward(weights, x, layout.activation)[0][0]
        logits: NDArray[np.float32] = found.cpu().numpy()
    return logits


def on_device(device: Any) -> Any:
    """Return a context in which work goes to that device."""
    if device.type != "cuda":
        return nullcontext()
    return import_torch().cuda.device(device)

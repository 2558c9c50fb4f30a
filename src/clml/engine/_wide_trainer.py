"""An epoch of several wide members at once, on a device.

The steps of ``after_epoch``, one batched operation for all members: of one encoding
in the products of networks, of all encodings in what follows their logits. An epoch is
a function of values: the state that it is given stays as it is, so that an interrupt,
or a lack of memory, loses nothing. Steps are given to one stream without waiting for
the device; what an epoch needs of the host is sent before it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.memory import BatchSize
from .._support.torch import import_torch
from ..losses import LossSet
from ..network import WideLayout
from ..network.wide import _DROPOUT_STEPS
from ._batch_sums import batch_sums
from ._dropout import DropoutMasks
from ._full_precision import full_precision
from ._member_prices import known_on_device, member_prices
from ._member_rows import LabelBatch, MemberLabels, MemberRows, told_if_too_large
from ._smooth_rows import Prices, smoothed_gradient
from ._step_rows import StepRows
from ._wide_batches import WideWeights, backward, forward

if TYPE_CHECKING:
    from torch import Tensor

_logger = logging.getLogger("clml")

# Prices of an epoch from which on its steps are recorded: that takes some time.
_WORTH_RECORDING = 2
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

    def take(self, other: WideState) -> None:
        """Overwrite these members with others, of the same shapes."""
        for into, what in zip(self.tensors, other.tensors, strict=True):
            into.copy_(what)

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


@dataclass(frozen=True, eq=False, repr=False)
class _Objective:
    """What members climb, on which labels.

    Attributes
    ----------
    labels : MemberLabels
    loss_set : LossSet
    smoothing : float
    memory : float
        Bytes that pairs of labels may take.
    """

    labels: MemberLabels
    loss_set: LossSet
    smoothing: float
    memory: float

    def rows(self, logits: Tensor, rows: Tensor, weight: Tensor) -> StepRows:
        """Return the logits of a step with the labels of its rows."""
        return StepRows(logits, self.labels.batch(rows, weight), self.memory)

    def credit(self, rows: StepRows, prices: Prices, cross_entropy: bool) -> Tensor:
        """Return what each output of each row is worth."""
        if cross_entropy:
            weight = rows.labels.weight.float()[..., None]
            return weight * (rows.truth - rows.given.sigmoid())
        return smoothed_gradient(rows, self.smoothing, prices, self.loss_set)


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
        self._loss_set, self._device = loss_set, device
        self._objective = _Objective(labels, loss_set, smoothing, memory_mb * 2**20)
        share = self._layout.dropout
        dropped = min(round(share * _DROPOUT_STEPS), _DROPOUT_STEPS - 1)
        self._dropped = dropped if self._layout.hidden else 0
        self._scale = float(np.float32(_DROPOUT_STEPS / (_DROPOUT_STEPS - dropped)))
        self._graphs: dict[Any, _Recorded | None] = {}
        self._at_once = BatchSize(
            # Nothing that knows the trainer, with which graphs are to be given back.
            "members",
            exact=False,
            release=partial(_release, self._graphs, device),
        )

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

    def after_epoch(
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
            self._at_once.for_each_batch(n, n, some)
            both = zip(*seen, strict=True)
            columns, labels = (torch.cat(parts).cpu().numpy() for parts in both)
        return after, columns, labels

    def _epoch(
        self, before: WideState, now: WideState, steps: EpochSteps, where: slice
    ) -> tuple[Tensor, Tensor]:
        """Train some members for an epoch, from one state into another."""
        batches = _Batches.of(steps, where, self._masks(steps), self._device)
        recorded = self._recorded(before, batches, steps, where)
        some = recorded or self._some(now, steps, where)
        some.state.take(before)
        for seen in some.seen:
            seen.zero_()
        for first in range(0, steps.n_steps, steps.price_every):
            part = batches.part(first, first + steps.price_every)
            begins = first == 0 and not before.begun
            if recorded is None or begins or part.n_steps < steps.price_every:
                some.train(part, begins=begins)
            else:
                recorded.replay(part)
        if recorded is not None:
            now.take(some.state)
        columns, labels = some.seen
        return columns.clone(), labels.clone()

    def _masks(self, steps: EpochSteps) -> DropoutMasks | None:
        if not self._dropped:
            return None
        most = steps.rows.shape[2]
        return DropoutMasks(self._layout.hidden, most, self._dropped, self._device)

    def _some(self, state: WideState, steps: EpochSteps, where: slice) -> _Some:
        """Return some members as an epoch trains them."""
        nets, first = [], 0
        for group, own_state in zip(self._groups, state.groups, strict=True):
            n = len(own_state.theta)
            if n:
                own = slice(first, first + n)
                chosen = steps.rows[:, where][:, own]
                longest = _most_entries(group.rows, chosen)
                nets.append(_Networks(group, own_state, own, longest, self._scale))
            first += n
        return _Some(self._objective, state, nets, steps, self._masks(steps))

    def _recorded(
        self, before: WideState, batches: _Batches, steps: EpochSteps, where: slice
    ) -> _Recorded | None:
        """Return steps of some members as a graph of the device, if it has such.

        A step is some hundred small operations, and to ask for them one by one takes
        longer than they do.
        """
        if self._device.type != "cuda" or not all(
            known_on_device(loss) for loss in self._loss_set.losses
        ):
            return None
        if steps.n_steps < _WORTH_RECORDING * steps.price_every:
            return None
        chosen = steps.rows[:, where]
        longest = (_most_entries(group.rows, chosen) for group in self._groups)
        shape = (where.start, where.stop, steps.rows.shape[2], *longest)
        key = (shape, steps.cross_entropy)
        if key not in self._graphs:
            try:
                some = self._some(before.empty_like(), steps, where)
                part = batches.part(0, steps.price_every)
                self._graphs[key] = _Recorded(some, before, part)
            except RuntimeError as error:  # for want of memory, say
                _logger.info("Steps are not recorded on %s: %s", self._device, error)
                self._graphs[key] = None
        return self._graphs[key]

    def _told_if_too_large(self) -> Any:
        n, size = sum(self.n_members), max(g.layout.size for g in self._groups)
        what = f"{n} members of up to {size} weights, eight numbers each"
        return told_if_too_large("networks", what, self._device)


def _release(graphs: dict[Any, Any], device: Any) -> None:
    """Give back what a device holds and nobody needs."""
    graphs.clear()
    if device.type == "cuda":
        import_torch().cuda.empty_cache()


@dataclass(frozen=True, eq=False, repr=False)
class _Batches:
    """The batches of some members, step by step: what steps need of the host.

    Attributes
    ----------
    rows : int64 tensor (steps, members, most rows)
    weight : float64 tensor of the same shape
    n_rows : float32 tensor (steps, members, 1, 1)
    rates : float32 tensor (steps, 4, members, 1)
    starts : int64 tensor (steps, members, layers)
        Of ``DropoutMasks``; no layers where nothing is dropped.
    """

    rows: Tensor
    weight: Tensor
    n_rows: Tensor
    rates: Tensor
    starts: Tensor

    @classmethod
    def of(
        cls, steps: EpochSteps, where: slice, masks: DropoutMasks | None, device: Any
    ) -> _Batches:
        """Send those of an epoch, all at once."""
        torch = import_torch()
        chosen = steps.rows[:, where]
        counts = (chosen >= 0).sum(axis=2, dtype=np.float32)
        rates = steps.rates[..., where].astype(np.float32)
        rows = torch.as_tensor(np.maximum(chosen, 0), device=device)
        starts = rows.new_empty((*rows.shape[:2], 0))
        if masks is not None:
            starts = masks.starts(steps.keys[:, where])
        return cls(
            rows,
            torch.as_tensor(steps.weight[:, where].copy(), device=device),
            torch.as_tensor(counts, device=device)[..., None, None],
            torch.as_tensor(rates, device=device).transpose(0, 1)[..., None],
            starts,
        )

    @property
    def n_steps(self) -> int:
        """How many steps there are."""
        return len(self.rows)

    def part(self, start: int, stop: int) -> _Batches:
        """Return those of some steps."""
        return _Batches(*(part[start:stop] for part in self._tensors))

    def copy(self) -> _Batches:
        """Return the same in a place of their own."""
        return _Batches(*(part.clone() for part in self._tensors))

    def take(self, other: _Batches) -> None:
        """Overwrite these with others of the same shapes."""
        for into, what in zip(self._tensors, other._tensors, strict=True):
            into.copy_(what)

    @property
    def _tensors(self) -> tuple[Tensor, ...]:
        return self.rows, self.weight, self.n_rows, self.rates, self.starts


class _Some:
    """Some members with their state, which steps change.

    Parameters
    ----------
    objective : _Objective
    state : WideState
        Overwritten.
    nets : sequence of _Networks
        On that state.
    steps : EpochSteps
        Of an epoch of these members; what differs from epoch to epoch is not used.
    masks : DropoutMasks or None

    Attributes
    ----------
    seen : tuple of float64 tensors
        Sums of the statistics of all rows on the way.
    """

    def __init__(
        self,
        objective: _Objective,
        state: WideState,
        nets: Sequence[_Networks],
        steps: EpochSteps,
        masks: DropoutMasks | None,
    ):
        torch = import_torch()
        self._objective, self.state, self._nets = objective, state, nets
        self._epoch, self._masks = steps, masks
        self.seen = torch.zeros_like(state.columns), torch.zeros_like(state.labels)

    def train(self, batches: _Batches, *, begins: bool) -> None:
        """Take a few steps at the same prices.

        Parameters
        ----------
        batches : _Batches
        begins : bool
            Whether there are no running statistics before the first.
        """
        torch, epoch, state = import_torch(), self._epoch, self.state
        objective, loss_set = self._objective, self._objective.loss_set
        kept: Iterator[list[Tensor]] = iter(())
        if self._masks is not None:
            kept = self._masks.of(batches.starts)
        prices: Prices | None = None
        for step in range(batches.n_steps):
            chosen, layers = batches.rows[step], next(kept, [])
            found = [net.forward(chosen, layers) for net in self._nets]
            logits = torch.cat(found) if len(found) > 1 else found[0]
            rows = objective.rows(logits, chosen, batches.weight[step])
            sums = batch_sums(rows, loss_set)
            for total, own in zip(self.seen, sums, strict=True):
                total += own
            means = _per_row(sums, rows.labels)
            if step == 0 and begins:
                _blend(state, means, 1.0)
            if prices is None:
                prices = member_prices(loss_set, state.columns, state.labels)
            credit = objective.credit(rows, prices, epoch.cross_entropy)
            _blend(state, means, 1 - epoch.kept_sums)
            credit /= batches.n_rows[step]
            for net in self._nets:
                net.backward(credit)
                net.update(batches.rates[step], epoch)


class _Recorded:
    """Steps of some members as one graph of a device.

    Parameters
    ----------
    some : _Some
    before : WideState
        Any state of these members.
    part : _Batches
        As many steps as are recorded together.
    """

    def __init__(self, some: _Some, before: WideState, part: _Batches):
        torch = import_torch()
        self._some, self._held = some, part.copy()
        some.state.take(before)
        # Libraries prepare themselves in a first call, which a graph must not hold.
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            some.train(self._held, begins=False)
        torch.cuda.current_stream().wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            some.train(self._held, begins=False)

    @property
    def state(self) -> WideState:
        """The members."""
        return self._some.state

    @property
    def seen(self) -> tuple[Tensor, Tensor]:
        """What rows on the way came to."""
        return self._some.seen

    def train(self, batches: _Batches, *, begins: bool) -> None:
        """Take steps one by one: others than those recorded."""
        self._some.train(batches, begins=begins)

    def replay(self, batches: _Batches) -> None:
        """Take the steps."""
        self._held.take(batches)
        self._graph.replay()


class _Networks:
    """Networks of one group on their way through an epoch.

    Parameters
    ----------
    group : WideGroup
    state : GroupState
        Overwritten.
    own : slice
        Which of the members they are.
    longest : int
        Entries of a row at most, where rows are sparse.
    scale : float
    """

    def __init__(
        self,
        group: WideGroup,
        state: GroupState,
        own: slice,
        longest: int,
        scale: float,
    ):
        torch = import_torch()
        self._from, self._state, self._own = group.rows, state, own
        self._longest = longest
        self._weights = WideWeights.of(state.theta, group.layout)
        self._gradient = torch.empty_like(state.theta)
        self._slopes = WideWeights.of(self._gradient, group.layout)
        self._activation, self._scale = group.layout.activation, scale
        self._last: tuple[Any, ...] = ()

    def forward(self, rows: Tensor, layers: Sequence[Tensor]) -> Tensor:
        """Return the logits of a step's rows (members, rows)."""
        x = self._from.batch(rows[self._own], self._longest)
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


def _most_entries(rows: MemberRows, chosen: NDArray[np.int64]) -> int:
    """Return how many entries any of some rows has; −1 is no row."""
    lengths = np.append(rows.lengths, 0)
    return int(lengths[chosen].max())


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

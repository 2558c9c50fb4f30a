"""Members that climb on a device, all of them in one batch.

What is trained is a ``AscentState`` all the same: one whose weights stay on the device
until somebody asks for them. So checkpoints, warm starts and what follows a fit know
nothing of it, and a run may go on elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.torch import find_device, import_torch
from ..engine import (
    EpochSteps,
    MemberLabels,
    MemberRows,
    WideGroup,
    WideState,
    WideTrainer,
    wide_logits,
)
from ..losses import LossSet, RowTargets, Totals
from .adam import Adam
from .ascent import BATCHES_A_PRICE, KEPT_SUMS, AscentState, sums_of
from .member_epochs import AscentEpoch
from .members import AscendingMembers
from .steps import AVERAGED, AscentPlan
from .training_rows import TrainingRows, WideRows

if TYPE_CHECKING:
    from torch import Tensor

# For its constants.
_ADAM = Adam(0, maximize=True)


class HeldClimber(AscentState):
    """A member in a device's memory; its weights are copied when they are asked for.

    A copy, or what is pickled, is a plain ``AscentState``.

    Parameters
    ----------
    held : WideState
        Of all members that are trained with it.
    place : int
        Which of them it is.
    n_steps : int
        Steps taken.
    generator : dict
    epoch : int
    losses : float64 array (o,)
    """

    def __init__(
        self,
        held: WideState,
        place: int,
        n_steps: int,
        generator: dict[str, Any],
        epoch: int,
        losses: NDArray[np.float64],
    ):
        # Fields of a frozen class, of which others follow from these.
        vars(self).update(
            held=held,
            place=place,
            n_steps=n_steps,
            generator=generator,
            epoch=epoch,
            losses=losses,
        )

    held: WideState
    place: int
    n_steps: int

    @cached_property
    def theta(self) -> NDArray[np.float32]:
        """The weights."""
        return self.held.array("theta", self.place)

    @cached_property
    def average(self) -> NDArray[np.float32]:
        """Their running average."""
        return self.held.array("average", self.place)

    @cached_property
    def adam(self) -> Adam:
        """Adam's averages."""
        found = Adam(0, maximize=True)
        found.first = self.held.array("first", self.place)
        found.second = self.held.array("second", self.place)
        found.n_steps = self.n_steps
        return found

    @cached_property
    def sums(self) -> Totals:
        """Running statistics of a row."""
        columns, labels = (
            self.held.array(name, self.place)[None] for name in ("columns", "labels")
        )
        return Totals(columns, labels, {})

    def on_host(self) -> AscentState:
        """Return the member with nothing on a device."""
        return AscentState(*self._parts)

    def __reduce__(self) -> Any:
        return AscentState, self._parts

    @property
    def _parts(self) -> tuple[Any, ...]:
        """The fields of a ``AscentState``, in their order."""
        return tuple(getattr(self, one.name) for one in fields(AscentState))


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class RowsOnDevice(WideRows):
    """Rows as wide networks read them, on a device as well.

    Attributes
    ----------
    device : MemberDevice
    held : MemberRows
    """

    device: MemberDevice = field(kw_only=True)
    held: MemberRows = field(kw_only=True)

    def logits(
        self, theta: NDArray[np.float32], rows: NDArray[np.intp] | None = None
    ) -> NDArray:
        """Return the logits (rows, K) of one network, computed on the device."""
        return wide_logits(self.device.sent(theta), self.layout, self.held, rows)


class MemberDevice:
    """A device that holds rows and trains members: a ``RunAll``.

    Parameters
    ----------
    name : str
        "cpu", "cuda" or "cuda:1", say.
    memory_mb : float
        What pairs of labels may take while they are looked at.
    """

    def __init__(self, name: str, memory_mb: float):
        self._device = find_device(name)
        self._memory_mb = memory_mb
        self._epoch: AscentEpoch | None = None
        self._labels: MemberLabels | None = None
        self._trainers: dict[tuple[int, ...], WideTrainer] = {}
        self._known: dict[int, tuple[NDArray, Tensor]] = {}

    def rows(self, rows: Sequence[TrainingRows]) -> list[TrainingRows]:
        """Copy rows to the device; members that share them share the copy."""
        found: dict[int, TrainingRows] = {}
        for one in rows:
            assert isinstance(one, WideRows)
            if id(one) not in found:
                held = MemberRows.put(one.X, self._device)
                found[id(one)] = RowsOnDevice(
                    one.X, one.layout, one.strangers, device=self, held=held
                )
        return [found[id(one)] for one in rows]

    def sent(self, theta: NDArray[np.float32]) -> Tensor:
        """Return weights on the device; those that came from there are there still."""
        array, tensor = self._known.get(id(theta), (None, None))
        if array is theta and tensor is not None:
            return tensor
        return import_torch().tensor(theta, device=self._device)

    def remember(self, climbers: Sequence[AscentState]) -> None:
        """Note which averages need not be sent back."""
        self._known = {
            id(one.average): (one.average, one.held.tensor("average", one.place))
            for one in climbers
            if isinstance(one, HeldClimber)
        }

    def __call__(
        self, epoch: Callable[..., Any], numbers: Sequence[int], members: Sequence[Any]
    ) -> list[Any]:
        """Return each member after one more epoch; members stay as given."""
        assert isinstance(epoch, AscentEpoch)
        if epoch is not self._epoch:
            self._epoch, self._trainers = epoch, {}
            self._labels = MemberLabels.put(epoch.targets[0], self._device)
        found: dict[int, AscentState] = {}
        climbers = dict(zip(numbers, members, strict=True))
        for together in _alike(epoch, numbers):
            some = [climbers[number] for number in together]
            after_epoch = self._climbed(epoch, together, some)
            found |= dict(zip(together, after_epoch, strict=True))
        return [found[number] for number in numbers]

    def _climbed(
        self, epoch: AscentEpoch, numbers: Sequence[int], climbers: list[AscentState]
    ) -> list[AscentState]:
        """Train members that take as many steps, those of one encoding side by side."""
        targets = [epoch.targets[number] for number in numbers]
        trainer = self._trainer(epoch, tuple(numbers))
        steps, generators = _steps(climbers, targets, epoch.plan, epoch.begun)
        if any(climber.sums is None for climber in climbers):
            climbers = self._with_sums(epoch, numbers, climbers, steps)
        state, columns, labels = trainer.after_epoch(_state(trainer, climbers), steps)
        loss_set = epoch.loss_set
        after: list[AscentState] = []
        for i, (climber, own) in enumerate(zip(climbers, targets, strict=True)):
            seen = Totals(columns[i : i + 1], labels[i : i + 1], {})
            weight = float(own.weight[own.weight > 0].sum())
            losses = loss_set.close(loss_set.statistics(seen, weight))[0]
            n_steps = _steps_taken(climber) + steps.n_steps
            held = state, i, n_steps, generators[i], climber.epoch + 1, losses
            after.append(HeldClimber(*held))
        return after

    def _with_sums(
        self,
        epoch: AscentEpoch,
        numbers: Sequence[int],
        climbers: Sequence[AscentState],
        steps: EpochSteps,
    ) -> list[AscentState]:
        """Return members before their first step with the sums that prices need."""
        found = []
        for i, (number, climber) in enumerate(zip(numbers, climbers, strict=True)):
            batch = steps.rows[0, i]
            sums = sums_of(
                epoch.rows[number],
                climber.theta,
                batch[batch >= 0],
                epoch.loss_set,
                epoch.targets[number],
            )
            found.append(replace(climber, sums=sums))
        return found

    def _trainer(self, epoch: AscentEpoch, numbers: tuple[int, ...]) -> WideTrainer:
        if numbers not in self._trainers:
            assert self._labels is not None
            groups = []
            for _, some in groupby(numbers, lambda number: id(epoch.rows[number])):
                own = list(some)
                rows = epoch.rows[own[0]]
                assert isinstance(rows, RowsOnDevice)
                groups.append(WideGroup(rows.layout, rows.held, len(own)))
            self._trainers[numbers] = WideTrainer(
                groups,
                self._labels,
                epoch.loss_set,
                epoch.plan.smoothing,
                self._device,
                self._memory_mb,
            )
        return self._trainers[numbers]


class DeviceMembers(AscendingMembers):
    """Members that climb on a device.

    Parameters
    ----------
    device : MemberDevice
        Which has the rows.
    climbers, rows, targets, loss_set, plan, begun
        Those of ``AscendingMembers``.
    """

    def __init__(
        self,
        device: MemberDevice,
        climbers: Sequence[AscentState],
        rows: Sequence[TrainingRows],
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        begun: int,
    ):
        super().__init__(climbers, rows, targets, loss_set, plan, begun, device)
        self._device = device

    def state(self) -> tuple[AscentState, ...]:
        """Return what another run goes on from, with nothing on the device."""
        return tuple(
            one.on_host() if isinstance(one, HeldClimber) else one
            for one in self.climbers
        )

    def networks(self) -> tuple[NDArray[np.float32], ...]:
        """Return each member's average along the run."""
        self._device.remember(self.climbers)
        return super().networks()


def _n_batches(own: RowTargets, plan: AscentPlan) -> int:
    return max(1, round(np.count_nonzero(own.weight) / plan.batch_size))


def _alike(epoch: AscentEpoch, numbers: Sequence[int]) -> list[list[int]]:
    """Return members of as many batches together, those of the same rows side by side.

    Rows that members leave out differ in number by a few, and may make one batch more.
    Networks without hidden units are apart: they drop none.
    """
    found: dict[Any, list[int]] = {}
    place = {id(rows): i for i, rows in reversed(list(enumerate(epoch.rows)))}
    for number in sorted(numbers, key=lambda number: place[id(epoch.rows[number])]):
        n_batches = _n_batches(epoch.targets[number], epoch.plan)
        rows = epoch.rows[number]
        assert isinstance(rows, WideRows)
        found.setdefault((n_batches, rows.layout.hidden), []).append(number)
    return list(found.values())


def _steps_taken(climber: AscentState) -> int:
    if isinstance(climber, HeldClimber):
        return climber.n_steps
    return climber.adam.n_steps


def _state(trainer: WideTrainer, climbers: Sequence[AscentState]) -> WideState:
    """Return members on the device; those that are there are not sent again."""
    first = climbers[0]
    if isinstance(first, HeldClimber) and all(
        isinstance(one, HeldClimber) and one.held is first.held and one.place == i
        for i, one in enumerate(climbers)
    ):
        return first.held
    groups, first_one = [], 0
    for n in trainer.n_members:
        own = climbers[first_one : first_one + n]
        groups.append(
            {
                "theta": np.stack([one.theta for one in own]),
                "average": np.stack([one.average for one in own]),
                "first": np.stack([one.adam.first for one in own]),
                "second": np.stack([one.adam.second for one in own]),
            }
        )
        first_one += n
    sums = [one.sums for one in climbers if one.sums is not None]
    if not sums:
        return trainer.put(groups, None, None)
    columns = np.concatenate([one.columns for one in sums])
    return trainer.put(groups, columns, np.concatenate([one.labels for one in sums]))


def _steps(
    climbers: Sequence[AscentState],
    targets: Sequence[RowTargets],
    plan: AscentPlan,
    begun: int,
) -> tuple[EpochSteps, list[dict[str, Any]]]:
    """Draw what an epoch of some members does, as ``after_epoch`` draws it.

    Returns
    -------
    steps : EpochSteps
    generators : list of dict
        The states of the members' generators afterwards.
    """
    n_batches = _n_batches(targets[0], plan)
    n_rows = max(np.count_nonzero(own.weight) for own in targets)
    shape = (n_batches, len(climbers))
    rows = np.full((*shape, -(-n_rows // n_batches)), -1)
    weight = np.zeros(rows.shape)
    keys = np.empty(shape, dtype=np.uint64)
    rates = np.empty((4, *shape))
    generators = []
    for m, (climber, own) in enumerate(zip(climbers, targets, strict=True)):
        generator = np.random.default_rng()
        generator.bit_generator.state = climber.generator
        order = generator.permutation(np.flatnonzero(own.weight))
        for b, batch in enumerate(np.array_split(order, n_batches)):
            rows[b, m, : len(batch)] = batch
            weight[b, m, : len(batch)] = own.weight[batch]
            keys[b, m] = int(generator.integers(2**63))
            progress = (climber.epoch - begun + b / n_batches) / plan.n_epochs
            t = _steps_taken(climber) + b + 1
            rates[:, b, m] = _rates(plan.rate(progress), t, plan.weight_decay)
        generators.append(dict(generator.bit_generator.state))
    surrogate = climbers[0].epoch - begun < plan.surrogate_epochs
    steps = EpochSteps(
        rows,
        weight,
        keys,
        rates,
        beta1=_ADAM.beta1,
        beta2=_ADAM.beta2,
        eps=_ADAM.eps,
        kept_sums=KEPT_SUMS,
        price_every=BATCHES_A_PRICE,
        cross_entropy=surrogate,
    )
    return steps, generators


def _rates(rate: float, t: int, weight_decay: float) -> tuple[float, ...]:
    """Return size, correction and decay of Adam's t-th step, and what averages keep."""
    return (
        -rate / (1 - _ADAM.beta1**t),
        (1 - _ADAM.beta2**t) ** -0.5,
        rate * weight_decay,
        min(AVERAGED, t / (t + 10)),
    )

"""Several members on their own rows each, judged together on the rows they left out.

One network that fits a few hundred rows closely has learnt their noise too. The
average of several, each of which left some rows out, has less of it; and what a row is
given by the members that never saw it is an honest judgement, without a row being lost
to validation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._support.threads import shared
from ..engine import NumpyEngine, TorchEngine
from ..evolution import Strategy
from ..losses import Loss, LossSet, RowTargets, get_losses
from .ascent import AscentState
from .epoch_folds import N_FOLDS, EpochChoices, EpochFolds
from .holdout import EnsembleLogits, HeldOutScorer
from .kind_shares import kind_shares
from .member_epochs import AscentEpoch, EvolutionEpoch, RunAll
from .search import TRACKED, EpochRows, Fitness, centre, n_undefined
from .steps import AscentPlan
from .training_rows import TrainingRows, WideRows

# How much of the judgement of earlier epochs counts: one epoch's is noisy.
_KEPT_VALUE = 0.8
# Weights times rows of an epoch: with more, a member is trained in a call of its own.
_WORTH_A_CALL = 5e7
# Weights times rows of an epoch: with fewer, threads wait for each other's Python.
_WORTH_A_THREAD = 1e7


def _if_worth_it(
    executor: Executor | None, networks: Sequence[NDArray[np.float32]], n_rows: int
) -> Executor | None:
    """Return the threads if an epoch of a network is long enough for them."""
    largest = max(len(network) for network in networks)
    return executor if largest * n_rows > _WORTH_A_THREAD else None


class Members(Protocol):
    """What trains members."""

    @property
    def epoch(self) -> int:
        """Epochs done."""

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs that each member has done."""

    def state(self) -> tuple[Any, ...]:
        """Return what another run goes on from."""

    def networks(self) -> tuple[NDArray[np.float32], ...]:
        """Return the weights of each member that predict now."""

    def step(self, executor: Executor | None) -> None:
        """Train all members for an epoch."""

    def record(self) -> dict[str, Any]:
        """Return ``sigma``, losses ``members_train``, how many were ``undefined``."""


class AscendingMembers:
    """Members that climb the Lebesgue measure, see ``_ascent``.

    Parameters
    ----------
    climbers : sequence of AscentState
    rows : sequence of TrainingRows
        One a member; those of one kind share them.
    targets : sequence of RowTargets
        One a member, which differ in their weights.
    loss_set : LossSet
    plan : AscentPlan
    begun : int, default=0
        The epoch at which the plan began.
    run_all : RunAll, default=None
        What runs the members' epochs; None for threads of this process.
    """

    def __init__(
        self,
        climbers: Sequence[AscentState],
        rows: Sequence[TrainingRows],
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        begun: int = 0,
        run_all: RunAll | None = None,
    ):
        self.climbers = tuple(climbers)
        self._one_epoch = AscentEpoch(rows, targets, loss_set, plan, begun)
        self._run_all = run_all

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return self.climbers[0].epoch

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs that each member has done."""
        return tuple(climber.epoch for climber in self.climbers)

    def state(self) -> tuple[AscentState, ...]:
        """Return what another run goes on from."""
        return self.climbers

    def networks(self) -> tuple[NDArray[np.float32], ...]:
        """Return each member's average along the run."""
        return tuple(climber.average for climber in self.climbers)

    def step(self, executor: Executor | None) -> None:
        """Let every member climb for an epoch."""
        if self._run_all is not None:
            members = range(len(self.climbers))
            after = self._run_all(self._one_epoch, members, self.climbers)
        else:
            after = self._stepped(executor)
        # Committed as a whole: an interrupt leaves all members before the epoch.
        self.climbers = tuple(after)

    def _stepped(self, executor: Executor | None) -> list[AscentState]:
        groups = self._groups
        climbers = [[self.climbers[number] for number in own] for own in groups]
        found = shared(executor, self._one_epoch.together, groups, climbers)
        after = list(self.climbers)
        for numbers, own in zip(groups, found, strict=True):
            for number, climber in zip(numbers, own, strict=True):
                after[number] = climber
        return after

    @cached_property
    def _groups(self) -> list[list[int]]:
        """Members that are trained in one call: short epochs of compiled steps.

        What an epoch of a few hundred rows takes beside its steps is taken once for
        all that read the same rows.
        """
        found: dict[Any, list[int]] = {}
        for number, rows in enumerate(self._one_epoch.rows):
            size = len(self.climbers[number].theta) * rows.X.shape[0]
            alone = size > _WORTH_A_CALL or not isinstance(rows, WideRows)
            found.setdefault((id(rows), number if alone else None), []).append(number)
        return list(found.values())

    def record(self) -> dict[str, Any]:
        """Return the learning rate and the losses of the last epoch."""
        plan, begun = self._one_epoch.plan, self._one_epoch.begun
        progress = max(self.epoch - begun - 1, 0) / plan.n_epochs
        losses = np.stack([climber.losses for climber in self.climbers])
        return {
            "sigma": plan.rate(progress),
            "members_train": losses,
            "undefined": n_undefined(losses),
        }


class EvolvedMembers:
    """Members that are evolved side by side: one population an epoch holds them all.

    Parameters
    ----------
    strategies : sequence of Strategy
    expand : sequence of callables
        One a member: what its strategy moves, as whole networks.
    engine : NumpyEngine or TorchEngine
        On all rows.
    targets : sequence of RowTargets
        One a member, which differ in their weights: it sees the rows of positive
        weight.
    fitness : Fitness
    epoch_rows : EpochRows or None
        Which rows an epoch evaluates; None for all.
    run_all : RunAll, default=None
        What runs the members' epochs; None for this process, one after the other, with
        the engine's threads.
    """

    def __init__(
        self,
        strategies: Sequence[Strategy],
        expand: Sequence[Callable[[Any], Any]],
        engine: NumpyEngine | TorchEngine,
        targets: Sequence[RowTargets],
        fitness: Fitness,
        epoch_rows: EpochRows | None,
        run_all: RunAll | None = None,
    ):
        self.strategies = tuple(strategies)
        self._one_epoch = EvolutionEpoch(expand, engine, targets, fitness, epoch_rows)
        self._run_all = run_all
        n_losses = len(engine.loss_set.losses)
        self._found = np.full((1, n_losses), np.nan)
        self._undefined = np.zeros(n_losses, dtype=np.int64)

    @property
    def epoch(self) -> int:
        """Epochs done."""
        # After an interrupt some may have been told and others not.
        return min(self.epochs)

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs that each member has done."""
        return tuple(strategy.epoch for strategy in self.strategies)

    def state(self) -> tuple[tuple[Strategy, Any], ...]:
        """Return what another run goes on from."""
        return tuple(zip(self.strategies, self._one_epoch.expand, strict=True))

    def networks(self) -> tuple[NDArray[np.float32], ...]:
        """Return the mean of each member's distribution."""
        return tuple(
            expand(centre(strategy).astype(np.float32)[None])[0]
            for strategy, expand in self.state()
        )

    def step(self, executor: Executor | None) -> None:
        """Ask every member, evaluate all candidates, tell every member."""
        # Others were told before an interrupt.
        behind = [i for i, done in enumerate(self.epochs) if done == self.epoch]
        run_all = self._run_all or partial(shared, None)
        told = run_all(self._one_epoch, behind, [self.strategies[i] for i in behind])
        strategies = list(self.strategies)
        for i, (strategy, _, _) in zip(behind, told, strict=True):
            strategies[i] = strategy
        # Where strategies had travelled, an interrupt leaves all before the epoch.
        self.strategies = tuple(strategies)
        self._found = np.stack([best for _, best, _ in told])
        self._undefined = np.sum([undefined for _, _, undefined in told], axis=0)

    def record(self) -> dict[str, Any]:
        """Return the mean step size and each member's best losses, if known."""
        sigma = float(np.mean([strategy.sigma for strategy in self.strategies]))
        return {
            "sigma": sigma,
            "members_train": self._found,
            "undefined": self._undefined,
        }


@dataclass(frozen=True, eq=False)
class MemberProgress:
    """What a run has found after some epochs. A value.

    Attributes
    ----------
    epoch : int
    best : EnsembleLogits or None
        The members after the epoch that the jury liked best, each kind after its own.
    value, best_value : float64 arrays (kinds,)
        Mean logarithm of the judged losses, averaged over the last epochs: now, and
        the smallest. Of no entries before the first.
    measure : float
        The largest Lebesgue measure of what the members' judged losses dominate.
    history : tuple of dict
    choices : EpochChoices
        What parts of the rows that judge have chosen for the rest; of no entries
        before the first epoch, and where losses are functions of all rows.
    """

    epoch: int = 0
    best: EnsembleLogits | None = None
    best_value: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    value: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    measure: float = 0.0
    history: tuple[dict[str, Any], ...] = ()
    choices: EpochChoices = field(default_factory=EpochChoices)

    @property
    def archived_losses(self) -> tuple[NDArray[np.float64], ...]:
        """The judged losses (1, o) of each epoch."""
        return tuple(record["incumbent_validation"][None] for record in self.history)

    def to_continue(self) -> MemberProgress:
        """Return what another run goes on from, which may have other rows to judge."""
        nothing = np.empty(0)
        return replace(
            self,
            best=None,
            best_value=nothing,
            value=nothing,
            choices=EpochChoices(),
        )


class MemberRun:
    """Trains members and keeps those of the epoch that judged best.

    Parameters
    ----------
    members : Members
    jury : HeldOutScorer
    train, judge : RowTargets
        Of the training rows that the jury follows, and of those that judge.
    losses : sequence of losses
    executor : Executor or None
    progress : MemberProgress, default=None
        Of the run that this one continues.
    trained : sequence of Loss, default=None
        The losses that members are trained on, where these are others: some of the
        losses, or what stands in for them. The latter takes part in choosing the epoch,
        since it is less noisy than functions that count few errors.
    """

    def __init__(
        self,
        members: Members,
        jury: HeldOutScorer,
        train: RowTargets,
        judge: RowTargets,
        losses: Any,
        executor: Executor | None,
        progress: MemberProgress | None = None,
        trained: Sequence[Loss] | None = None,
    ):
        self.members, self.jury = members, jury
        self.train, self.judge = train, judge
        self._losses, self._executor = get_losses(losses), executor
        names = [loss.name for loss in self._losses]
        known = names if trained is None else [loss.name for loss in trained]
        # Where members have each loss; those that only judge have no place.
        self._places = np.array([known.index(n) if n in known else -1 for n in names])
        self._stand_ins = tuple(x for x in trained or () if x.name not in names)
        n_labels = judge.n_labels
        choosing = (*self._losses, *self._stand_ins)
        self._choosing = LossSet(choosing, n_labels)
        self._recorded = LossSet((*choosing, *get_losses(TRACKED)), n_labels)
        self._folds: EpochFolds | None = None
        # Functions are slow enough where they are called once an epoch.
        if judge.n_rows >= N_FOLDS and not self._choosing.matrix_losses:
            value_of = partial(_log_mean, targets=judge)
            self._folds = EpochFolds(judge, self._choosing, value_of)
        self.progress = progress or MemberProgress()

    #: What counts the statistics of rows: losses that are followed have some.
    kernel = staticmethod(LossSet.kernel)

    def epoch(self) -> dict[str, Any]:
        """Train for an epoch, judge, and return its record."""
        began = time.perf_counter()
        now = self.progress
        # After an interrupt the members may be an epoch ahead, and not yet judged.
        if self.members.epoch <= now.epoch:
            self.members.step(self._executor)
        step = self.members.record()
        said = self.jury.score(self.members.networks(), self._helpers)
        train, judged, value = self._judged(said)
        train, of_train = self._parted(train)
        judged, of_judged = self._parted(judged)
        measure = max(now.measure, float(np.prod(1 - np.clip(judged, 0, 1))))
        if len(now.value):  # not the first
            older = np.where(np.isfinite(now.value), now.value, value)
            value = _KEPT_VALUE * older + (1 - _KEPT_VALUE) * value
        best, best_value = said, value
        if now.best is not None:
            better = value < now.best_value
            best = now.best.mixed(said, better, self.jury.kind_of)
            best_value = np.where(better, value, now.best_value)
        record = {
            "sigma": step["sigma"],
            "measure": float(np.prod(1 - np.clip(train, 0, 1))),
            "archive_measure": measure,
            "incumbent_train": train,
            "mean_train": self._of_all(_mean_of_defined(step["members_train"]), np.nan),
            "undefined": self._of_all(step["undefined"], n_undefined(judged[None])),
            "incumbent_validation": judged,
            "mean_validation": judged,
            **_named("train", of_train),
            **_named("validation", of_judged),
            "seconds": time.perf_counter() - began,
        }
        self.progress = replace(
            now,
            epoch=now.epoch + 1,
            best=best,
            best_value=best_value,
            value=value,
            measure=measure,
            history=(*now.history, record),
            choices=self._choices(said),
        )
        return record

    def _choices(self, said: EnsembleLogits) -> EpochChoices:
        now = self.progress.choices
        if self._folds is None:
            return now
        return self._folds.after(now, said.by_kind, _KEPT_VALUE)

    @property
    def _helpers(self) -> Executor | None:
        n_rows = len(self.jury.held_out[0])
        return _if_worth_it(self._executor, self.members.networks(), n_rows)

    @property
    def between_epochs(self) -> bool:
        """Whether an epoch has been completed, and no member has begun another."""
        done = self.progress.epoch
        return done > 0 and all(epoch == done for epoch in self.members.epochs)

    def weighed(self) -> EnsembleLogits:
        """Return the best members, each kind with the share that the judges give it."""
        best = self.progress.best
        assert best is not None
        if len(best.by_kind) == 1 or not self.jury.impartial:
            return best
        shares = kind_shares(best.by_kind, self.judge, self._choosing.losses)
        return replace(best, shares=shares)

    def unswayed(self, together: EnsembleLogits) -> NDArray[np.float64]:
        """Return logits of the rows that judge, of epochs that others of them chose.

        Parameters
        ----------
        together : EnsembleLogits
            What predicts: kinds of members have the shares that they have there.
        """
        by_kind = self.progress.choices.by_kind
        if not by_kind.size:
            return together.unseen
        return replace(together, by_kind=by_kind).unseen

    def judge_now(self) -> None:
        """Judge the members as they are, before any epoch."""
        said = self.jury.score(self.members.networks(), self._helpers)
        _, _, value = self._judged(said)
        self.progress = replace(self.progress, best=said, best_value=value)

    def losses_of(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the losses (o,) of logits of the rows that judge."""
        loss_set = LossSet(self._losses, self.judge.n_labels)
        return _losses_of(loss_set, logits, self.judge)

    def _judged(self, said: EnsembleLogits) -> tuple[NDArray, NDArray, NDArray]:
        """Return what is recorded of rows that were seen and of those that judge.

        The third is what the epoch of each kind is chosen by.
        """
        asked = [
            (self._recorded, said.seen, self.train),
            (self._recorded, said.unseen, self.judge),
        ]
        if len(said.by_kind) > 1:
            asked += [(self._choosing, z, self.judge) for z in said.by_kind]
        # Functions of a user's own are called by one thread, as he would call them.
        helpers = self._helpers if self._choosing.is_built_in else None
        train, judged, *by_kind = shared(helpers, _losses_of, *zip(*asked, strict=True))
        n_choosing = len(self._choosing.losses)
        values = [_log_mean(v[:n_choosing], self.judge) for v in by_kind or [judged]]
        return train, judged, np.array(values)

    def _parted(self, values: NDArray) -> tuple[NDArray, NDArray]:
        """Return the losses and those that are only followed."""
        n = len(self._losses)
        return values[:n], values[len(values) - len(TRACKED) :]

    def _of_all(self, trained: NDArray[Any], others: Any) -> NDArray[Any]:
        """Return a value for each loss, others for those that only judge."""
        return np.where(self._places >= 0, trained[self._places], others)


def _named(rows: str, values: NDArray[np.float64]) -> dict[str, float]:
    """Name the losses that are only followed, as histories do."""
    return {
        f"incumbent_{name}_{rows}": float(value)
        for name, value in zip(TRACKED, values, strict=True)
    }


def _losses_of(
    loss_set: LossSet, logits: NDArray[np.float64], targets: RowTargets
) -> NDArray[np.float64]:
    return loss_set.evaluate(logits[None], targets)[0]


def _mean_of_defined(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean (o,) of losses (members, o) that are defined, NaN of none."""
    n_defined = (~np.isnan(losses)).sum(axis=0)
    mean = np.nansum(losses, axis=0) / np.maximum(n_defined, 1)
    return np.where(n_defined, mean, np.nan)


def _log_mean(losses: NDArray[np.float64], targets: RowTargets) -> float:
    """Return the mean logarithm; a loss counts as half an error at least."""
    value = float(np.log(np.maximum(losses, 0.5 / targets.dense.size)).mean())
    return np.inf if np.isnan(value) else value

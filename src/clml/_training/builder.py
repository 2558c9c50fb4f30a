"""What a fit of networks runs, built from its settings and rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.rows import FitRows, Part
from ..engine import Engine, NumpyEngine, TorchEngine
from ..losses import Loss, LossSet, RowTargets, supports_gradient
from ..network import Layout, PaperNetwork, Scaling, WideLayout
from .archive import Archive
from .ascent import AscentState
from .device_members import DeviceMembers, MemberDevice
from .ensemble import Ensemble
from .left_out import folds_left_out, kinds_left_out, left_out
from .member_epochs import RunAll
from .members import (
    AscendingMembers,
    EvolvedMembers,
    HeldOutScorer,
    MemberRun,
)
from .own_losses import training_losses
from .recipe import TrainingSettings, default_epochs
from .run_state import (
    entry,
    read_member_progress,
    read_members,
    read_progress,
    read_strategy,
)
from .search import Fitness, Search
from .searches import Ascent, Population, SearchMethod
from .training_rows import NetworkRows, TrainingRows


@dataclass(frozen=True, eq=False)
class TrainingBuilder:
    """Builds searches and members, new ones or such that go on.

    Attributes
    ----------
    settings : CLMLClassifier
        For its parameters.
    method : SearchMethod
        What "auto" stands for, if it was that.
    losses : tuple of Loss
    layout : Layout
        Of networks of the paper's kind.
    scaling : Scaling
    seed : sequence of int
    rows : FitRows
    device : str or None
        Where populations live and wide members are trained; None is the memory of the
        CPU.
    executor : Executor or None
    n_rows : int or None
        Training rows, if ``rows`` are but a sample of them.
    engines : pair of Engine or None
        What evaluates these, and those that judge, if there are any.
    run_all : RunAll or None
        What runs epochs of members; None for this process.
    network : PaperNetwork or None
        What the layout is one of.
    ensemble : Ensemble or None
        Members that are networks of another kind than the paper's.
    by_kind : bool
        Whether each encoding has members for all rows, or members have folds and
        encodings in turn.
    """

    settings: Any
    method: SearchMethod
    losses: tuple[Loss, ...]
    layout: Layout | None
    scaling: Scaling | None
    seed: tuple[int, ...]
    rows: FitRows
    device: str | None
    executor: Executor | None
    n_rows: int | None = None
    engines: tuple[Engine, Engine | None] | None = None
    run_all: RunAll | None = None
    network: PaperNetwork | None = None
    ensemble: Ensemble | None = None
    by_kind: bool = False

    @property
    def _paper_layout(self) -> Layout:
        assert self.layout is not None  # wide networks have one each
        return self.layout

    @property
    def ascends(self) -> bool:
        return isinstance(self.method, Ascent)

    @property
    def _n_rows(self) -> int:
        return len(self.rows.train.Y) if self.n_rows is None else self.n_rows

    @property
    def recipe(self) -> TrainingSettings:
        """How networks are trained."""
        wide = self.ensemble is not None
        n_epochs = self.settings.max_epochs or default_epochs(
            self.method.kind, self._n_rows, wide
        )
        return TrainingSettings(
            search=self.method,
            n_epochs=int(n_epochs),
            # How far a warm start will go is not known.
            horizon=None if self.settings.warm_start else int(n_epochs),
            wide=wide,
            dropout=0.0 if self.network is None else self.network.dropout,
            soft=self.rows.train.soft is not None,
        )

    @property
    def samples_rows(self) -> bool:
        """Whether an epoch of a population looks at some of the rows alone."""
        return self.recipe.rows_of_an_epoch(self._n_rows, (*self.seed, 3)) is not None

    def search(self, continued: Search | None = None, state: Any = None) -> Search:
        """Return the search for one network, its rows attached.

        Parameters
        ----------
        continued : Search, default=None
            One that goes on with these rows.
        state : dict, default=None
            That of a checkpoint, on the same rows.
        """
        if continued is not None:
            self._attach(continued)
            return continued
        recipe = self.recipe
        if state is None:
            strategy, expand = recipe.strategy(
                self.network_rows(self.rows.train),
                self.rows.train.targets,
                np.random.SeedSequence([*self.seed, 1]),
                self.device,
            )
        else:
            strategy, expand = read_strategy(
                entry(state, "strategy"), self._paper_layout.size
            )
        archive = Archive.empty(
            len(self.losses), self._paper_layout.size, int(self.settings.max_front)
        )
        search = Search(
            strategy=strategy,
            fitness=self._fitness,
            archive=archive,
            expand=expand,
            epoch_rows=recipe.rows_of_an_epoch(self._n_rows, (*self.seed, 3)),
        )
        self._attach(search)
        if state is not None:
            search.resume(read_progress(state, strategy, archive))
        return search

    def _attach(self, search: Search) -> None:
        if self.engines is not None:
            search.attach(*self.engines, self.executor)
            return
        validation = self.rows.validation
        search.attach(
            self._engine(self.rows.train),
            None if validation is None else self._engine(validation),
            self.executor,
        )

    def members(
        self, n_members: int, continued: Any = None, state: Any = None
    ) -> MemberRun:
        """Return the run of several networks.

        Parameters
        ----------
        n_members : int
        continued : pair of members' state and progress, default=None
            Those of a run that goes on with these rows.
        state : dict, default=None
            That of a checkpoint, on the same rows.
        """
        trained, progress = continued or (None, None)
        n_members = n_members if trained is None else len(trained)
        device = self._member_device()
        train = self._member_rows(self.rows.train, n_members, device)
        validation = self.rows.validation
        beyond = None
        if validation is not None:
            beyond = self._member_rows(validation, n_members, device)
        held_out = self._held_out(n_members)
        jury = HeldOutScorer(
            train,
            held_out,
            beyond,
            self._followed(),
            None if self.ensemble is None else _kinds(self.ensemble.chosen, held_out),
        )
        all_targets = self.rows.train.targets
        followed = all_targets
        if jury.followed is not None:
            followed = all_targets.take(jury.followed)
        judge = self.rows.judge.targets
        if jury.judged is not None:
            judge = all_targets.take(np.flatnonzero(jury.judged))
        n_labels = all_targets.n_labels
        trained_on = self.losses
        if self.ascends:
            trained_on = training_losses(self.losses)
        loss_set = LossSet(trained_on, n_labels)
        if state is not None:
            sizes = [rows.layout.size for rows in train]
            trained = read_members(state, sizes, loss_set, self.ascends)
            progress = read_member_progress(
                state,
                len(self.losses),
                sizes,
                (followed.n_rows, n_labels),
                (judge.n_rows, n_labels),
                int(jury.kind_of.max()) + 1,
            )
        # Of any unit: what a step does must not depend on it.
        weight = all_targets.weight / all_targets.weight.mean()
        targets = [
            replace(all_targets, weight=weight * ~out, weighted=True)
            for out in jury.held_out
        ]
        members: AscendingMembers | EvolvedMembers
        if self.ascends:
            began = 0 if state is not None else None
            members = self._ascending(train, targets, loss_set, trained, began, device)
        else:
            members = self._evolved(
                self.network_rows(self.rows.train), targets, trained
            )
        return MemberRun(
            members,
            jury,
            followed,
            judge,
            self.losses,
            self.executor,
            progress,
            trained_on,
        )

    def _followed(self) -> NDArray[np.intp] | None:
        """Return the training rows whose losses are followed; None for all."""
        # A function may need more rows than some.
        if self.ensemble is None or not supports_gradient(self.losses):
            return None
        return followed_rows(self._n_rows)

    def _held_out(self, n_members: int) -> NDArray[np.bool_]:
        if self.rows.validation is not None:
            return np.zeros((n_members, len(self.rows.train.Y)), dtype=bool)
        seed = int(np.random.default_rng([*self.seed, 5]).integers(2**31))
        if self.by_kind and self.ensemble is not None:
            return kinds_left_out(self.rows.train.Y, self.ensemble.chosen, seed)
        if self.ensemble is not None:
            return folds_left_out(self.rows.train.Y, n_members, seed)
        return left_out(self.rows.train.Y, n_members, seed)

    def _member_device(self) -> MemberDevice | None:
        """Return what trains wide members on a device, if one was asked for."""
        ensemble = self.ensemble
        if ensemble is None or self.device is None or self.run_all is not None:
            return None
        if all(type(layout) is WideLayout for layout in ensemble.layouts):
            return MemberDevice(self.device, self.settings.memory_mb)
        if self.settings.device == "auto":
            return None
        raise ValueError(
            "Networks of your own are trained by their own code, on the CPU; a device "
            f"trains WideNetwork alone. Got network={self.settings.network!r} with "
            f"device={self.settings.device!r} and engine={self.settings.engine!r}."
        )

    def _member_rows(
        self, part: Part, n_members: int, device: MemberDevice | None = None
    ) -> list[TrainingRows]:
        """Return rows as each of the members reads them."""
        if self.ensemble is None:
            return [self.network_rows(part)] * n_members
        train = part is self.rows.train
        rows: list[TrainingRows] = [*self.ensemble.rows(part.X, train)]
        return rows if device is None else device.rows(rows)

    def _member_seeds(self, n_members: int) -> list[np.random.SeedSequence]:
        return np.random.SeedSequence([*self.seed, 1]).spawn(n_members)

    def _ascending(
        self,
        train: list[TrainingRows],
        targets: list[RowTargets],
        loss_set: LossSet,
        climbers: Any,
        began: int | None,
        device: MemberDevice | None,
    ) -> AscendingMembers:
        seeds = self._member_seeds(len(targets))
        climbers = climbers or [
            AscentState.start(rows.layout, seed)
            for rows, seed in zip(train, seeds, strict=True)
        ]
        began = climbers[0].epoch if began is None else began
        plan = self.recipe.ascent(targets[0].n_rows)
        # What of the start still lies ahead of a warm start, after an interrupt.
        left = max(plan.surrogate_epochs - began, 0)
        plan = replace(plan, surrogate_epochs=left)
        if device is not None:
            return DeviceMembers(
                device, climbers, train, targets, loss_set, plan, began
            )
        return AscendingMembers(
            climbers, train, targets, loss_set, plan, began, self.run_all
        )

    def _evolved(
        self, train: NetworkRows, targets: list[RowTargets], pairs: Any
    ) -> EvolvedMembers:
        recipe = self.recipe
        pairs = pairs or [
            recipe.strategy(train, own, seed, self.device)
            for own, seed in zip(targets, self._member_seeds(len(targets)), strict=True)
        ]
        strategies, expand = zip(*pairs, strict=True)
        return EvolvedMembers(
            strategies,
            expand,
            engine=self._engine(self.rows.train),
            targets=targets,
            fitness=self._fitness,
            epoch_rows=recipe.rows_of_an_epoch(train.X.shape[0], (*self.seed, 3)),
            run_all=self.run_all,
        )

    def network_rows(self, part: Part) -> NetworkRows:
        """Return rows as single networks of the paper's kind read them."""
        assert self.scaling is not None
        return NetworkRows.prepared(part.X, self.scaling, self._paper_layout)

    def _engine(self, part: Part) -> NumpyEngine | TorchEngine:
        if self.device is not None:
            return TorchEngine(
                self._paper_layout,
                part.X,
                part.targets,
                self.losses,
                scaling=self.scaling,
                device=self.device,
            )
        return NumpyEngine(
            self._paper_layout,
            part.X,
            part.targets,
            self.losses,
            scaling=self.scaling,
            executor=self.executor,
            memory_mb=self.settings.memory_mb,
        )

    @property
    def _fitness(self) -> Fitness:
        search = self.method
        assert isinstance(search, Population)  # an ascent ranks nothing
        return Fitness(
            ties=search.ties,
            method=search.lebesgue,
            n_samples=search.n_samples,
            seed=(*self.seed, 2),
            archived=search.reference == "archive",
        )


def _kinds(
    chosen: Sequence[int], held_out: NDArray[np.bool_]
) -> NDArray[np.intp] | None:
    """Return the kind of each member: its encoding, if each kind judges all rows."""
    kinds = np.unique(chosen, return_inverse=True)[1]
    judged = held_out.any(axis=0)
    for kind in range(kinds.max() + 1):
        if (held_out[kinds == kind].any(axis=0) != judged).any():
            return None
    return kinds


def followed_rows(n: int) -> NDArray[np.intp]:
    """Return rows that stand for all of them while wide networks are trained."""
    n_followed = int(np.clip(n // 5, min(n, 100), 2000))
    return np.linspace(0, n - 1, n_followed).astype(np.intp)

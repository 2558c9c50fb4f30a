"""A small map of given scores, learnt on several losses and held towards identity.

Few numbers a label are still enough to learn the noise of a few hundred rows. So what
is learnt is not taken as it is: one bias that all labels share is found by a line
search, and of the labels' own deviations only a share is believed, the strength, which
halves of the rows choose: what is learnt on one half is judged on the other.

Deviations ascend the smoothed losses where these have a gradient; for functions they
are evolved. Around them lies the front: maps on the way to the best one of each loss
alone. Where a loss reads decisions that is a matter of probabilities: counting errors
on some hundred rows says less of where to cut than what is to be expected. For losses
of whole rows some maps have a rule, see ``_row_rules``.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .._support.threads import shared
from .._training.archive import Archive
from .._training.run_state import (
    damaged,
    entry,
    read_float,
    read_progress,
    read_strategy,
)
from .._training.search import Fitness, Search
from ..evolution import SeparableCMA, Strategy
from ..lebesgue import Ties
from ..losses import RowTargets, get_losses
from ..splits import iterative_split_indices
from .cross_fitted import CrossFitted, Learn, cross_fitted
from .expected_losses import best_shifts
from .label_calibration import fit_label_calibration
from .map_ascent import ascended_deviations, can_ascend
from .row_rules import Offer, offered_rules
from .score_engine import ScoreEngine
from .score_map import MapSpace, moved_map
from .thresholds import threshold_front

# A shift of the scores, in their standard deviation; 0 stands in the middle.
_SHIFTS = np.arange(-30, 31) / 20
# Folds whose maps are learnt anew to judge a front, by ascents and by evolutions.
_FOLDS, _FOLDS_OF_EVOLUTIONS = 5, 2
# The strength of what an evolution kept where that of the model is less.
_LEAST_CHOICE = 0.25
# Maps of one loss alone stand at the ends of a front. Those of ranks are held back by
# a short ascent: a long one believes the noise of that loss. Models stand at so many
# steps from the default to each end.
_STEPS_OF_ENDS = 8
_STEPS_TO_END = (1 / 3, 2 / 3, 1.0)
# Thresholds between the best Hamming loss and the best micro-F1, both counted.
_CUTS = 9
_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Logarithms of geometric means this near to each other are equal.
_NEAR = 1e-4
# The search learns nothing more from further rows, which only take time.
_MOST_ROWS = 20_000
# Halves that choose the strength: so many pairs below so many rows, then one.
_REPEATS = ((2_000, 5), (8_001, 2))
# Scores that these evaluate altogether, unless one pair takes more: with thousands of
# labels five pairs took most of a fit, and more labels judge each of them.
_MOST_SCORES = 3e9

#: "identity", or the strength of a map with a shift.
Candidate = Literal["identity"] | float


@dataclass(frozen=True)
class Shrinkage:
    """How much of what a search finds is believed.

    Attributes
    ----------
    strength : float
        In [0, 1], of the labels' own deviations.
    shift : float
        The bias that all labels have in common; 0 where the identity was best.
    path : dict of candidate to float
        Mean geometric mean of the losses on held-out halves for "identity" and each
        strength; empty if the strength was given.
    share : float
        What the shift is of the best one.
    """

    strength: float
    shift: float
    path: Mapping[Candidate, float]
    share: float = 1.0

    _NUMBERS: ClassVar = ("strength", "shift", "share")

    def state(self) -> dict[str, Any]:
        """Return it as plain values."""
        path = [[name, float(value)] for name, value in self.path.items()]
        numbers = {name: getattr(self, name) for name in self._NUMBERS}
        return numbers | {"path": path}

    @classmethod
    def from_state(cls, state: Any) -> Shrinkage | None:
        """Return what ``state`` wrote down, which is not trusted; None for None."""
        if state is None:
            return None
        path = entry(state, "path")
        try:
            pairs = {
                name if name == "identity" else float(name): float(value)
                for name, value in path
            }
        except (TypeError, ValueError) as error:
            raise damaged("the shrinkage path must map names to numbers") from error
        return cls(path=pairs, **{n: read_float(state, n) for n in cls._NUMBERS})


@dataclass(frozen=True, eq=False)
class EvolvedMap:
    """What a search for a map found. Maps are flat, see ``_score_map``.

    Attributes
    ----------
    front : CrossFitted
        Maps to choose from.
    default : int or None
        Which of them is ``mean_map``.
    mean_map, final_map : float64 array (size,) or None
        The map that was learnt (of functions, that of the search distribution's mean),
        and that of the best candidate of the last epoch; None for thresholds and the
        plain average, which nothing is evolved for.
    strength, shift : float
    path : dict of candidate to float
        See ``Shrinkage``.
    history : tuple of dict
        One record an epoch.
    """

    front: CrossFitted
    default: int | None
    mean_map: NDArray[np.float64] | None
    final_map: NDArray[np.float64] | None
    strength: float
    shift: float
    path: Mapping[Candidate, float]
    history: tuple[dict[str, Any], ...]


class MapSearch:
    """The pieces of one search: choosing the strength, evolving, what was found.

    Parameters
    ----------
    scores : float array (n, M, K)
        Finite logits of M learners on rows that they were not fitted on.
    targets : RowTargets
    losses : sequence of losses
    transform : {"affine", "average", "bias", "mixing", "thresholds", "weights"}
        See ``MapSpace``.
    max_epochs : int
        Of the evolutions that choose the strength, for losses without a gradient.
    population_size : int or None
    ties : {"depth", "layer"} or None
    max_front : int
    seed : tuple of int
    executor : concurrent.futures.Executor, default=None
    most_repeats : int, default=None
        Pairs of halves that choose the strength, at most.
    standard_errors : float, default=1.0
        By how many of these a map must be better than a simpler one.
    ascends : bool, default=True
        Whether losses that have a gradient are ascended. Otherwise all are evolved, and
        the front is what the evolution kept, with its losses on the same rows.
    averages : bool, default=False
        Whether pairs of halves that disagree on the strength are averaged, instead of
        taking the simplest map that is as good as the best. For losses that are
        ascended.
    judging : float array (n, M, K), default=None
        Other scores of the same rows, by which the maps of the front are judged.
    """

    def __init__(
        self,
        scores: NDArray[np.floating],
        targets: RowTargets,
        losses: Any,
        *,
        transform: str,
        max_epochs: int,
        population_size: int | None,
        ties: Ties,
        max_front: int,
        seed: tuple[int, ...],
        executor: Executor | None = None,
        most_repeats: int | None = None,
        standard_errors: float = 1.0,
        ascends: bool = True,
        averages: bool = False,
        judging: NDArray[np.floating] | None = None,
    ):
        _check_finite(scores)
        self.space = MapSpace.fit(scores, targets, transform)
        #: All rows, and those that the search sees.
        self.judge = ScoreEngine(self.space, scores, targets, losses, executor)
        part = _at_most(self.judge, _MOST_ROWS, (*seed, 0))
        self.rows = self.judge if part is None else self.judge.take(part)
        self._judging = self.rows
        if judging is not None:
            own = judging if part is None else judging[part]
            self._judging = self.rows.with_scores(own)
        self.population_size = population_size
        self._n_losses = len(get_losses(losses))
        self._max_epochs = max_epochs
        self._max_front = max_front
        self._most_repeats = most_repeats
        self._standard_errors = standard_errors
        self._seed = seed
        self._executor = executor
        self._keeps_archive = not ascends
        self._may_ascend = ascends and self.space.evolved
        self._ascends = self._may_ascend and can_ascend(self.judge)
        self._averages = averages and self._ascends
        self._ascended: dict[float, NDArray[np.float64]] = {}
        self._spread: tuple[float, float] | None = None
        # How many labels rows have, which some rules ask for, is told by all of them.
        self._ruled: tuple[Offer, ...] = ()
        if self._may_ascend:
            self._ruled = offered_rules(get_losses(losses), self.rows.targets)
        self._fitness = Fitness(
            ties=ties, method="exact", n_samples=1, seed=(*seed, 1), archived=False
        )

    def choose(self, shrinkage: float | Literal["auto"]) -> Shrinkage:
        """Return the strength and the shift; "auto" asks halves of the rows."""
        if self.space.transform == "average":
            return Shrinkage(0.0, 0.0, {}, 0.0)
        if shrinkage != "auto":
            return Shrinkage(float(shrinkage), find_shift(self.rows), {})
        if self.rows.n_rows < 2:
            return Shrinkage(0.0, 0.0, {"identity": np.nan}, 0.0)
        values = self._judged_on_halves()
        names: tuple[Candidate, ...] = ("identity", *_STRENGTHS)
        means = np.exp(values.mean(axis=0)).tolist()
        path = dict(zip(names, means, strict=True))
        if self._averages:
            share, strength = mean_choice(values)
            shift = share * find_shift(self.rows) if share > 0 else 0.0
            return Shrinkage(strength, shift, path, share)
        best = names[simplest(values, self._standard_errors)]
        if best == "identity":
            return Shrinkage(0.0, 0.0, path, 0.0)
        return Shrinkage(best, find_shift(self.rows), path)

    def search(self, shift: float, state: Any = None) -> Search:
        """Return the search for deviations from the shifted identity.

        ``state`` is that of a checkpoint, if the search goes on.
        """
        n = self.space.n_deviations
        strategy: Strategy = self._strategy((*self._seed, 2), np.zeros(n))
        if state is not None:
            strategy, _ = read_strategy(entry(state, "strategy"), n)
        archive = Archive.empty(self._n_losses, n, self._max_front)
        search = Search(strategy, self._fitness, archive)
        search.attach(self.rows.of_deviations(shift), None)
        if state is not None:
            search.resume(read_progress(state, strategy, archive))
        return search

    @property
    def evolves(self) -> bool:
        """Whether anything is left for an evolution to find."""
        return self.space.evolved and not self._ascends

    def found(
        self, search: Search | None, shrinkage: Shrinkage, *, judged: bool = True
    ) -> EvolvedMap:
        """Return what was learnt, and the front around it.

        Parameters
        ----------
        search : Search or None
            The evolution so far, of losses without a gradient.
        shrinkage : Shrinkage
        judged : bool, default=True
            Whether there is time for a front: maps to choose from, judged on rows that
            they were learnt without. Otherwise there is one map, on the rows at hand.
        """
        mean_map = final_map = None
        history: tuple[dict[str, Any], ...] = ()
        if self.space.evolved:
            deviations = self._deviations(search, shrinkage)
            mean_map = final_map = self._shrunk(deviations, shrinkage)
        if search is not None:
            history = search.progress.history
            if search.progress.incumbent is not None:
                final_map = self._shrunk(search.progress.incumbent, shrinkage)
        if not judged:
            some = self.space.identity() if mean_map is None else mean_map
            front = CrossFitted.apparent(some[None], self.judge)
        elif self._keeps_archive and search is not None:
            candidates = self._archived(search, shrinkage, mean_map)
            front = CrossFitted.apparent(candidates, self.judge)
        else:
            front = self._front(mean_map, shrinkage, len(history))
        front, default = front.front(
            self._max_front,
            keep_first=mean_map is not None and not self._keeps_archive,
        )
        return EvolvedMap(
            front,
            default if mean_map is not None else None,
            mean_map,
            final_map,
            shrinkage.strength,
            shrinkage.shift,
            shrinkage.path,
            history,
        )

    def _shrunk(
        self, deviations: NDArray[np.floating], shrinkage: Shrinkage
    ) -> NDArray[np.float64]:
        return self.space.maps(deviations[None], shrinkage.shift, shrinkage.strength)[0]

    def _deviations(
        self, search: Search | None, shrinkage: Shrinkage
    ) -> NDArray[np.floating]:
        """Return what was learnt from all rows."""
        if shrinkage.strength == 0:
            return np.zeros(self.space.n_deviations)
        if self._ascends:
            return self._of_all_rows(shrinkage.shift)
        assert search is not None
        return search.strategy.mean

    def _front(
        self,
        mean_map: NDArray[np.float64] | None,
        shrinkage: Shrinkage,
        n_epochs: int,
    ) -> CrossFitted:
        """Return maps to choose from; the first is the one that was learnt."""
        if self.space.evolved and (self._n_losses > 1 or self._ruled):
            same = self.rows.scores(self.space.identity()[None])[0]
            # Two numbers that all rows choose, for each fold too.
            self._spread = fit_label_calibration(same, self.rows.targets).spread
        learn: Learn = partial(
            self._maps_between,
            mean_map=mean_map,
            shrinkage=shrinkage,
            n_epochs=n_epochs,
        )
        if self.space.transform == "average":
            learn = self._average
        elif self.space.transform == "thresholds":
            learn = partial(self._cuts, shrinkage=shrinkage)
        return cross_fitted(
            self.rows,
            learn,
            self._seed[0],
            n_folds=_FOLDS_OF_EVOLUTIONS if self.evolves else _FOLDS,
            # Functions of a user's own are called by one thread.
            executor=None if self.rows.loss_set.matrix_losses else self._executor,
            judge=self._judging,
            rules=self._rules_of_maps(),
        )

    def _average(self, engine: ScoreEngine) -> NDArray[np.float64]:
        """Return what is the same for any rows."""
        return self.space.identity()[None]

    def _archived(
        self,
        search: Search,
        shrinkage: Shrinkage,
        mean_map: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Return the maps that an evolution kept, and shifts of what it learnt."""
        assert mean_map is not None
        deviations: NDArray[np.floating] = search.strategy.mean[None]
        if search.progress.incumbent is not None:
            deviations = search.progress.archive.thetas
        # What predicts may be the identity; there is a choice nevertheless.
        strength = max(shrinkage.strength, _LEAST_CHOICE)
        own = self.space.maps(deviations, shrinkage.shift, strength)
        return np.concatenate([mean_map[None], shifted(self.rows, mean_map), own])

    def _maps_between(
        self,
        engine: ScoreEngine,
        mean_map: NDArray[np.float64] | None,
        shrinkage: Shrinkage,
        n_epochs: int,
    ) -> NDArray[np.float64]:
        """Return a map of all losses, and maps from there to those of each alone.

        Behind them are those that have a row rule.

        Parameters
        ----------
        engine : ScoreEngine
            All rows, or some.
        mean_map : float64 array (size,) or None
            What all rows taught; None for the plain average.
        shrinkage : Shrinkage
        n_epochs : int
            Of the evolution that taught all rows, which a limit may have cut short.
        """
        centre = mean_map
        if engine.n_rows < self.rows.n_rows or centre is None:
            shift = shrinkage.share * find_shift(engine) if shrinkage.share else 0.0
            deviations = np.zeros(self.space.n_deviations)
            if shrinkage.strength > 0:
                deviations = self._taught(engine, shift, n_epochs)
            centre = self.space.maps(deviations[None], shift, shrinkage.strength)[0]
        if self._n_losses == 1 and not self._ruled:
            return np.array([centre])
        likely = self._probabilities(engine)
        ends = self._ends(engine, likely, shrinkage.shift)
        between = [
            (1 - t) * centre + t * end for end in ends for t in self._steps_to_end
        ]
        ruled = [likely if place is None else ends[place] for _, place in self._ruled]
        return np.array([centre, *between, *ruled])

    @property
    def _steps_to_end(self) -> tuple[float, ...]:
        # What all losses together teach is the end of an only one.
        return _STEPS_TO_END if self._n_losses > 1 else ()

    def _rules_of_maps(self) -> tuple[str | None, ...]:
        """Return the row rule of each of ``_maps_between``; () if none has one."""
        if not self._ruled:
            return ()
        n_plain = 1 + len(self._steps_to_end) * self._n_losses
        return (*[None] * n_plain, *(rule for rule, _ in self._ruled))

    def _ends(
        self, engine: ScoreEngine, likely: NDArray[np.float64], shift: float
    ) -> list[NDArray[np.float64]]:
        """Return a map for each loss alone.

        Parameters
        ----------
        engine : ScoreEngine
        likely : float64 array (size,)
            The map to logits of each label's probability.
        shift : float
            Of all labels, for losses that do not say where to cut.
        """
        losses = engine.loss_set.losses
        logits = engine.scores(likely[None])[0]
        cuts = best_shifts(losses, logits, engine.targets.weight)
        return [
            self._alone(engine.with_losses([loss]), shift)
            if cut is None
            else moved_map(likely, 1.0, cut)
            for loss, cut in zip(losses, cuts, strict=True)
        ]

    def _probabilities(self, engine: ScoreEngine) -> NDArray[np.float64]:
        """Return the map to logits of each label's probability."""
        same = self.space.identity()
        logits = engine.scores(same[None])[0]
        found = fit_label_calibration(logits, engine.targets, self._spread)
        return moved_map(same, found.gain, found.bias)

    def _alone(self, engine: ScoreEngine, shift: float) -> NDArray[np.float64]:
        """Return the map of an engine's only loss, which the rows themselves teach."""
        if self._may_ascend and can_ascend(engine):
            deviations = ascended_deviations(engine, shift, _STEPS_OF_ENDS)
            return self.space.maps(deviations[None], shift)[0]
        shifts, values = _shift_values(engine)
        return self.space.identity(_best_shift(shifts, values[:, 0]))

    def _taught(
        self, engine: ScoreEngine, shift: float, n_epochs: int
    ) -> NDArray[np.float64]:
        """Return the deviations that some rows teach."""
        if self._ascends:
            return ascended_deviations(engine, shift)
        seed = (*self._seed, 5, engine.n_rows)
        return self._evolved_mean(engine.of_deviations(shift), seed, n_epochs)

    def _cuts(self, engine: ScoreEngine, shrinkage: Shrinkage) -> NDArray[np.float64]:
        """Return thresholds from the best Hamming loss to the best micro-F1."""
        shift = shrinkage.share * find_shift(engine) if shrinkage.share else 0.0
        cuts = _threshold_deviations(engine, shift)
        places = np.linspace(0, len(cuts) - 1, _CUTS).round().astype(int)
        return self.space.maps(cuts[places], shift, shrinkage.strength)

    def _of_all_rows(self, shift: float) -> NDArray[np.float64]:
        """Return the deviations that an ascent on all rows finds."""
        if shift not in self._ascended:
            self._ascended[shift] = ascended_deviations(self.rows, shift)
        return self._ascended[shift]

    def _judged_on_halves(self) -> NDArray[np.float64]:
        """Return the log geometric mean (halves, candidates) on held-out halves."""
        pairs, seeds = [], []
        for repeat in range(self._n_repeats()):
            generator = np.random.default_rng([*self._seed, 3, repeat])
            halves = iterative_split_indices(
                self.rows.targets.dense, test_size=0.5, random_state=generator
            )
            one, other = (self.rows.take(half) for half in halves)
            pairs += [(one, other), (other, one)]
            seeds += [(*self._seed, 4, repeat, side) for side in range(2)]
        shifts = [find_shift(given) for given, _ in pairs]
        learnt = self._learnt([given for given, _ in pairs], shifts, seeds)
        values = []
        for (_, held_out), shift, deviations in zip(pairs, shifts, learnt, strict=True):
            at = [self.space.maps(deviations[None], shift, s) for s in _STRENGTHS]
            maps = np.concatenate([self.space.identity()[None], *at])
            values.append(log_geometric_mean(held_out, maps))
        return np.array(values)

    def _learnt(
        self,
        engines: list[ScoreEngine],
        shifts: list[float],
        seeds: list[tuple[int, ...]],
    ) -> list[NDArray[np.float64]]:
        """Return the deviations that each engine's rows teach."""
        if self._ascends:
            alone = [engine.helped_by(None) for engine in engines]
            return shared(self._executor, ascended_deviations, alone, shifts)
        if self.space.transform == "thresholds":
            both = zip(engines, shifts, strict=True)
            return [self._best_thresholds(engine, shift) for engine, shift in both]
        return [
            self._evolved_mean(engine.of_deviations(shift), seed, self._max_epochs)
            for engine, shift, seed in zip(engines, shifts, seeds, strict=True)
        ]

    def _n_repeats(self) -> int:
        """Return how many pairs of halves choose the strength."""
        n = self.rows.n_rows
        repeats = next((r for most, r in _REPEATS if n < most), 1)
        repeats = min(repeats, self._most_repeats or repeats)
        if not self.space.evolved or self._ascends:
            return repeats
        none = np.zeros(self.space.n_deviations)
        candidates = self._strategy((0,), none).population_size * self._max_epochs
        affordable = _MOST_SCORES / (n * self.space.n_labels * candidates)
        return int(np.clip(affordable, 1, repeats))

    def _best_thresholds(
        self, engine: ScoreEngine, shift: float
    ) -> NDArray[np.float64]:
        members = _threshold_deviations(engine, shift)
        values = log_geometric_mean(engine, self.space.maps(members, shift))
        return members[values.argmin()]

    def _evolved_mean(
        self, engine: ScoreEngine, seed: tuple[int, ...], n_epochs: int
    ) -> NDArray[np.float64]:
        strategy = self._strategy(seed, np.zeros(self.space.n_deviations))
        unit = np.ones((1, self._n_losses))
        for epoch in range(n_epochs):
            losses = engine.losses(strategy.ask())
            strategy.tell(self._fitness.order(losses, unit, epoch))
        return strategy.mean

    def _strategy(
        self, seed: tuple[int, ...], start: NDArray[np.float64]
    ) -> SeparableCMA:
        return SeparableCMA(
            start,
            self.space.sigma,
            self.population_size,
            seed=np.random.SeedSequence(seed),
        )


def evolve_map(
    scores: NDArray[np.floating],
    targets: RowTargets,
    losses: Any,
    *,
    transform: str,
    shrinkage: float | Literal["auto"],
    max_epochs: int,
    population_size: int | None,
    ties: Ties,
    max_front: int,
    seed: tuple[int, ...],
    executor: Executor | None = None,
    most_repeats: int | None = None,
    standard_errors: float = 1.0,
    ascends: bool = True,
    averages: bool = False,
    judging: NDArray[np.floating] | None = None,
    judged: bool = True,
) -> EvolvedMap:
    """Evolve a map of scores, from the choice of its strength to its front.

    Parameters
    ----------
    scores : float array (n, M, K)
        Finite logits of M learners, on rows that they were not fitted on.
    targets : RowTargets
        The true labels and weights of these rows.
    losses : sequence of losses
    transform : {"affine", "average", "bias", "mixing", "thresholds", "weights"}
        What may change, see ``MapSpace``.
    shrinkage : "auto" or float in [0, 1]
        The strength of the labels' own deviations; halves of the rows choose it, or
        that no shift helps either. 0 is one shift of all labels.
    max_epochs : int
    population_size : int or None
    ties : {"depth", "layer"} or None
    max_front : int
        Members of the front at most; more than there are losses.
    seed : tuple of int
        Not negative.
    executor : concurrent.futures.Executor, default=None
        Threads; the result is the same without.
    most_repeats : int, default=None
        Pairs of halves that choose the strength, at most.
    standard_errors : float, default=1.0
        By how many of these a map must be better than a simpler one.
    ascends : bool, default=True
        Whether losses that have a gradient are ascended; otherwise all are evolved.
    averages : bool, default=False
        Whether pairs of halves that disagree on the strength are averaged.
    judging : float array (n, M, K), default=None
        Other scores of the same rows, by which the maps of the front are judged.
    judged : bool, default=True
        Whether there is a front of maps to choose from, or one map.

    Returns
    -------
    EvolvedMap
        Its maps apply to the scores as they were given.

    Examples
    --------
    A learner that says too little: one shift mends it.

    >>> import numpy as np
    >>> from clml._maps.map_search import evolve_map
    >>> from clml._maps.score_map import apply_map
    >>> from clml.losses import RowTargets, loss_values
    >>> generator = np.random.default_rng(0)
    >>> truth = generator.normal(size=(200, 3))
    >>> scores = truth + generator.normal(scale=0.5, size=truth.shape) - 1.0
    >>> Y = (truth > 0).astype(int)
    >>> found = evolve_map(
    ...     scores[:, None],
    ...     RowTargets.from_indicator(Y),
    ...     ("hamming", "micro_f1"),
    ...     transform="affine",
    ...     shrinkage=0.0,
    ...     max_epochs=10,
    ...     population_size=8,
    ...     ties="depth",
    ...     max_front=20,
    ...     seed=(0,),
    ... )
    >>> before = loss_values(Y, scores, ("hamming",))
    >>> after = loss_values(Y, apply_map(found.mean_map, scores[:, None]), ("hamming",))
    >>> bool(after < 0.6 * before)
    True
    """
    run = MapSearch(
        scores,
        targets,
        losses,
        transform=transform,
        max_epochs=max_epochs,
        population_size=population_size,
        ties=ties,
        max_front=max_front,
        seed=seed,
        executor=executor,
        most_repeats=most_repeats,
        standard_errors=standard_errors,
        ascends=ascends,
        averages=averages,
        judging=judging,
    )
    chosen = run.choose(shrinkage)
    search = None
    # What is not believed at all changes no map; only an archive is kept besides.
    if run.evolves and (chosen.strength > 0 or not ascends):
        search = run.search(chosen.shift)
        for _ in range(max_epochs):
            search.epoch()
    return run.found(search, chosen, judged=judged)


def find_shift(engine: ScoreEngine) -> float:
    """Return the common bias with the smallest geometric mean of the losses.

    Of equal ones that nearest to 0.
    """
    shifts, values = _shift_values(engine)
    return _best_shift(shifts, values.mean(axis=1))


def _shift_values(
    engine: ScoreEngine,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return common biases (shifts,), and the log losses (shifts, o) with each."""
    identity = engine.space.identity()
    maps = shifted(engine, identity)
    return maps[:, -1] - identity[-1], log_losses(engine, maps)


def _best_shift(shifts: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    return float(shifts[np.lexsort((np.abs(_SHIFTS), values))[0]])


def shifted(engine: ScoreEngine, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a map with one bias after another added to all labels, flat."""
    spread = float(engine.scores(theta[None]).std())
    maps = np.tile(theta, (len(_SHIFTS), 1))
    maps[:, -engine.space.n_labels :] += (_SHIFTS * spread)[:, None]
    return maps


def log_geometric_mean(
    engine: ScoreEngine, maps: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean logarithm of the losses (p,); undefined ones are infinite."""
    return log_losses(engine, maps).mean(axis=1)


def log_losses(engine: ScoreEngine, maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms of the losses (p, o); undefined ones are infinite.

    A loss counts as half an error at least: with none at all everything else would
    be forgiven.
    """
    least = 0.5 / engine.targets.dense.size
    values = np.log(np.maximum(engine.losses(maps), least))
    return np.where(np.isnan(values), np.inf, values)


def simplest(values: NDArray[np.float64], standard_errors: float = 1.0) -> int:
    """Return the first candidate that is as good as the best, as far as one can tell.

    As good: not behind the best by more than some standard errors of the difference,
    over the halves.

    Parameters
    ----------
    values : float array (halves, candidates)
        Smaller is better; candidates from the simplest on.
    standard_errors : float, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.map_search import simplest
    >>> simplest(np.array([[1.0, 0.9], [1.0, 0.7]]))  # better by 0.2, give or take 0.1
    1
    >>> simplest(np.array([[1.0, 0.9], [1.0, 1.05]]))  # by 0.025, give or take 0.075
    0
    """
    best = int(np.argmin(values.mean(axis=0)))
    with np.errstate(invalid="ignore"):  # losses that are undefined are infinite
        behind = values - values[:, [best]]
        error = behind.std(axis=0, ddof=1) / len(values) ** 0.5
        near = standard_errors * error + _NEAR
        return int(np.argmax(behind.mean(axis=0) <= near))


def mean_choice(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of the shift and the strength that pairs of halves choose.

    Each pair chooses the candidate that is best on average over its two halves, and
    the mean of their choices counts; the identity has neither shift nor strength. Where
    the rows are sure, all pairs choose the same; where they are not, the map lies
    between what this pair and that one would have.

    Parameters
    ----------
    values : float array (halves, candidates)
        Smaller is better; both halves of a pair follow each other. Candidates are the
        identity and a map of each strength.

    Examples
    --------
    One pair is for the identity, the other for a strength of 0.5:

    >>> import numpy as np
    >>> from clml._maps.map_search import mean_choice
    >>> one, other = [0.1, 0.2, 0.2, 0.2, 0.2, 0.2], [0.3, 0.2, 0.2, 0.1, 0.2, 0.2]
    >>> mean_choice(np.array([one, one, other, other]))
    (0.5, 0.25)
    """
    pairs = values.reshape(-1, 2, values.shape[1]).mean(axis=1)
    chosen = pairs.argmin(axis=1)
    strengths = np.array([0.0, *_STRENGTHS])[chosen]
    return float((chosen > 0).mean()), float(strengths.mean())


def _threshold_deviations(engine: ScoreEngine, shift: float) -> NDArray[np.float64]:
    """Return the biases (m, K), beside the shift, of the best thresholds."""
    (scores,) = engine.scores(engine.space.identity()[None])
    targets = engine.targets
    weight = targets.weight if targets.weighted else None
    return -threshold_front(scores, targets.dense, weight).thresholds - shift


def _at_most(
    engine: ScoreEngine, most: int, seed: tuple[int, ...]
) -> NDArray[np.intp] | None:
    """Return a stratified part of the rows if they are too many, else None."""
    if engine.n_rows <= most:
        return None
    _, part = iterative_split_indices(
        engine.targets.dense,
        test_size=most / engine.n_rows,
        random_state=np.random.default_rng(seed),
    )
    return part


def _check_finite(scores: NDArray[np.floating]) -> None:
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        row, learner, label = bad[0].tolist()
        raise ValueError(
            f"scores must be finite, got {scores[row, learner, label]} at row {row}, "
            f"learner {learner}, label {label}."
        )

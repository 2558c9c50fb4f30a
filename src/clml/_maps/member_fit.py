"""A fit with several members: their networks, then the front of their outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._training.builder import TrainingBuilder
from .._training.holdout import EnsembleLogits
from .._training.members import MemberRun
from .._training.own_losses import FULL, MapBudget
from .._training.search import history_arrays
from ..lebesgue import Ties
from ..losses import get_losses
from ..network import Layout
from .calibration import fit_temperatures
from .cross_fitted import CrossFitted
from .front import ParetoFront
from .map_search import EvolvedMap, evolve_map
from .row_rules import shifted_rows
from .score_map import apply_map


@dataclass(frozen=True)
class MapSettings:
    """How the front of the members' outputs is searched for.

    Attributes
    ----------
    losses : sequence of losses
    ties : {"depth", "layer"} or None
    max_front : int
    shrinkage : "auto" or float
    seed : tuple of int
    budget : MapBudget
    ascends : bool
        Whether maps ascend the losses, as members did, or are evolved, as these were.
    """

    losses: Any
    ties: Ties
    max_front: int
    shrinkage: Any
    seed: tuple[int, ...]
    budget: MapBudget = FULL
    ascends: bool = True

    @classmethod
    def of(cls, fit: TrainingBuilder, budget: MapBudget) -> MapSettings:
        """Return those of a fit."""
        return cls(
            losses=fit.settings.losses,
            # Nothing is ranked in an ascent but these outputs.
            ties=getattr(fit.method, "ties", "depth"),
            max_front=int(fit.settings.max_front),
            shrinkage=fit.settings.shrinkage,
            seed=(*fit.seed, 4),
            budget=budget,
            ascends=fit.ascends,
        )


# Scores of the rows that judge: with fewer, threads wait for each other's Python.
_WORTH_A_THREAD = 10_000


def plain_outputs(run: MemberRun, together: EnsembleLogits) -> EvolvedMap:
    """Return the outputs as they are, for a model that holds whatever comes."""
    n_labels = run.judge.n_labels
    identity = np.concatenate([np.ones(n_labels), np.zeros(n_labels)])
    losses = run.losses_of(run.unswayed(together))[None]
    unknown = np.full(losses.shape, np.nan)
    front = CrossFitted(identity[None], losses, unknown, unknown)
    return EvolvedMap(front, 0, identity, identity, 0.0, 0.0, {}, ())


def evolved_outputs(
    run: MemberRun,
    together: EnsembleLogits,
    settings: MapSettings,
    executor: Any,
    judged: bool = True,
) -> EvolvedMap:
    """Evolve a scale and a bias for each label on the rows that judge.

    ``judged`` says whether there is to be a front to choose from.
    """
    if together.unseen.size < _WORTH_A_THREAD:
        executor = None
    return evolve_map(
        together.unseen[:, None],
        run.judge,
        settings.losses,
        transform="affine",
        shrinkage=settings.shrinkage,
        max_epochs=settings.budget.max_epochs,
        population_size=settings.budget.population_size,
        most_repeats=settings.budget.most_repeats,
        standard_errors=settings.budget.standard_errors,
        ascends=settings.ascends,
        averages=True,
        ties=settings.ties,
        max_front=settings.max_front,
        seed=settings.seed,
        executor=executor,
        judging=run.unswayed(together)[:, None],
        judged=judged,
    )


def member_attributes(
    run: MemberRun,
    together: EnsembleLogits,
    outputs: EvolvedMap,
    losses: Any,
    calibrate: bool,
) -> dict[str, Any]:
    """Return the fitted attributes of members and their outputs."""
    found = outputs.front
    # Rows that every member was trained on say nothing of how far off losses may be.
    known = 1.0 if run.jury.impartial else np.nan
    maps = [*found.maps, outputs.final_map, outputs.mean_map]
    rules = [*(found.rules or [None] * len(found.maps)), None, None]
    temperature = np.ones(len(maps))
    if calibrate:
        scores = together.unseen[:, None]
        for i, (theta, rule) in enumerate(zip(maps, rules, strict=True)):
            logits = shifted_rows(rule, apply_map(theta, scores))[None]
            (temperature[i],) = fit_temperatures(logits, run.judge)
    front = ParetoFront(
        losses=found.losses,
        loss_names=tuple(loss.name for loss in get_losses(losses)),
        theta=found.maps.astype(np.float32),
        temperature=temperature[:-2],
        standard_error=known * found.standard_error,
        difference_error=known * found.difference_error,
        default=outputs.default,
        rules=found.rules or None,  # type: ignore[arg-type]
    )
    history = run.progress.history
    judged = [record["incumbent_validation"] for record in history]
    return {
        "front_": front,
        "history_": history_arrays(history),
        "archive_losses_": np.array(judged or found.losses, dtype=np.float32),
        "n_epochs_": run.progress.epoch,
        "shrinkage_": outputs.strength,
        "shift_": outputs.shift,
        "interrupted_": False,
        "_alternatives": {
            "final": (np.float32(outputs.final_map), float(temperature[-2])),
            "mean": (np.float32(outputs.mean_map), float(temperature[-1])),
        },
    }


def mapped_networks(
    networks: NDArray[np.float32], layout: Layout, theta: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return networks (members, n) whose outputs are mapped; one alone is (n,)."""
    scale, bias = np.split(np.asarray(theta), 2)
    mapped = layout.mapped(networks, scale, bias)
    return mapped[0] if len(mapped) == 1 else mapped

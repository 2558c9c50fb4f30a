"""Runs as plain values, for checkpoints, and back. What is read is not trusted.

A state is made of dicts, arrays, numbers and text. It is taken between two epochs and
holds all that the next one depends on, the generators too, so that a run that goes on
from it is the run itself, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evolution import Strategy, strategy_from_state
from ..evolution.random import generator_from_state, generator_state
from ..losses import LossSet, Totals
from .adam import Adam
from .archive import Archive
from .ascent import AscentState
from .candidates import as_single
from .epoch_folds import N_FOLDS, EpochChoices
from .holdout import EnsembleLogits
from .init import LastLayer
from .members import AscendingMembers, MemberProgress, Members
from .search import Progress, Search, history_arrays

# What a history holds of each loss; everything else is one number an epoch.
_PER_LOSS = {
    "incumbent_train",
    "incumbent_validation",
    "mean_train",
    "mean_validation",
    "undefined",
}

#: A length of an axis; None is any.
Shape = tuple[int | None, ...]


def search_state(search: Search) -> dict[str, Any]:
    """Return the state of a search between two epochs."""
    progress = search.progress
    archive = progress.archive
    return {
        "strategy": strategy_state(search.strategy, search.expand),
        "epoch": progress.epoch,
        "archive_losses": archive.losses,
        "archive_thetas": archive.thetas,
        "archive_measure": archive.measure,
        "references": progress.references,
        "incumbent": progress.incumbent,
        "history": history_arrays(progress.history),
        "archived_losses": np.stack(progress.archived_losses),
    }


def read_progress(state: Any, strategy: Strategy, archive: Archive) -> Progress:
    """Return the progress of a search whose strategy was read.

    Parameters
    ----------
    state : dict
        Of ``search_state``.
    strategy : Strategy
    archive : Archive
        An empty one, of the size of whole candidates.
    """
    n_epochs = read_whole(state, "epoch")
    n_losses = archive.losses.shape[1]
    losses = read_floats(state, "archive_losses", (None, n_losses))
    thetas = read_floats(
        state, "archive_thetas", (len(losses), archive.n_parameters), np.float32
    )
    population = (n_epochs, strategy.population_size, n_losses)
    archived = read_floats(state, "archived_losses", population, np.float32)
    if strategy.epoch != n_epochs or n_epochs == 0:
        raise damaged(f"{n_epochs} epochs do not go with {strategy.epoch} updates")
    references = read_floats(state, "references", (None, n_losses))
    if len(references) == 0:
        raise damaged("nothing bounds the measure")
    return Progress(
        epoch=n_epochs,
        archive=Archive(
            archive.capacity,
            losses,
            tuple(thetas),
            archive.n_parameters,
            read_float(state, "archive_measure"),
        ),
        references=references,
        incumbent=read_floats(state, "incumbent", (archive.n_parameters,), np.float32),
        history=read_history(state, n_epochs, n_losses, "incumbent_train"),
        archived_losses=tuple(archived),
    )


def strategy_state(strategy: Strategy, expand: Any) -> dict[str, Any]:
    """Return the state of a strategy and of what completes its candidates."""
    kept = expand.before if isinstance(expand, LastLayer) else None
    return {"state": strategy.state(), "kept": kept}


def read_strategy(state: Any, n_parameters: int) -> tuple[Strategy, Any]:
    """Return a strategy that goes on, and what completes its candidates.

    Parameters
    ----------
    state : dict
        Of ``strategy_state``.
    n_parameters : int
        Size of a whole candidate.
    """
    strategy = strategy_from_state(entry(state, "state"))
    expand: Any = as_single
    n_kept = 0
    if entry(state, "kept") is not None:
        kept = read_floats(state, "kept", (None,), np.float32)
        expand, n_kept = LastLayer(kept), len(kept)
    if strategy.n_parameters + n_kept != n_parameters:
        raise damaged(
            f"candidates have {strategy.n_parameters + n_kept} weights, "
            f"expected {n_parameters}"
        )
    return strategy, expand


def members_state(members: Members, progress: MemberProgress) -> dict[str, Any]:
    """Return the state of members between two epochs."""
    if isinstance(members, AscendingMembers):
        trained = [_climber_state(climber) for climber in members.climbers]
    else:
        trained = [strategy_state(*pair) for pair in members.state()]
    best = progress.best
    assert best is not None  # there is one after an epoch
    return {
        "members": trained,
        "epoch": progress.epoch,
        "best": {
            "networks": list(best.networks),
            "sizes": best.sizes,
            "seen": best.seen,
            "by_kind": best.by_kind,
        },
        "best_value": progress.best_value,
        "value": progress.value,
        "measure": progress.measure,
        "history": history_arrays(progress.history),
        "choices": dict(vars(progress.choices)),
    }


def read_members(
    state: Any, sizes: Sequence[int], loss_set: LossSet, ascending: bool
) -> list[Any]:
    """Return climbers, or pairs of a strategy and what completes its candidates.

    ``sizes`` are the numbers of weights of the members.
    """
    found = entry(state, "members")
    if not isinstance(found, list) or len(found) != len(sizes):
        raise damaged(f"there are not {len(sizes)} members")
    n_epochs = read_whole(state, "epoch")
    both = list(zip(found, sizes, strict=True))
    if ascending:
        climbers = [_read_climber(one, size, loss_set) for one, size in both]
        epochs = {climber.epoch for climber in climbers}
    else:
        pairs = [read_strategy(one, size) for one, size in both]
        epochs = {strategy.epoch for strategy, _ in pairs}
    if epochs != {n_epochs} or n_epochs == 0:
        raise damaged(f"members have done {sorted(epochs)} epochs, not {n_epochs}")
    return climbers if ascending else pairs


def read_member_progress(
    state: Any,
    n_losses: int,
    sizes: Sequence[int],
    seen: Shape,
    unseen: Shape,
    n_kinds: int = 1,
) -> MemberProgress:
    """Return what members had found; shapes are those of what they say."""
    best = entry(state, "best")
    n_epochs = read_whole(state, "epoch")
    networks = entry(best, "networks")
    if not isinstance(networks, list) or len(networks) != len(sizes):
        raise damaged(f"there are not {len(sizes)} networks")
    own_sizes = read_floats(best, "sizes", (len(sizes),))
    if not ((own_sizes > 0) & np.isfinite(own_sizes)).all():
        raise damaged("sizes of members are not positive")
    return MemberProgress(
        epoch=n_epochs,
        best=EnsembleLogits(
            tuple(
                read_floats({"network": one}, "network", (size,), np.float32)
                for one, size in zip(networks, sizes, strict=True)
            ),
            own_sizes,
            read_floats(best, "seen", seen),
            read_floats(best, "by_kind", (n_kinds, *unseen)),
        ),
        best_value=read_floats(state, "best_value", (n_kinds,)),
        value=read_floats(state, "value", (n_kinds,)),
        measure=read_float(state, "measure"),
        history=read_history(state, n_epochs, n_losses, "incumbent_validation"),
        choices=_read_choices(entry(state, "choices"), n_kinds, unseen),
    )


def _read_choices(state: Any, n_kinds: int, unseen: Shape) -> EpochChoices:
    values = entry(state, "value")
    if isinstance(values, np.ndarray) and values.size == 0:
        return EpochChoices()
    shape = (N_FOLDS, n_kinds)
    return EpochChoices(
        read_floats(state, "value", shape),
        read_floats(state, "best_value", shape),
        read_floats(state, "by_kind", (n_kinds, *unseen)),
    )


def _climber_state(climber: AscentState) -> dict[str, Any]:
    generator = np.random.default_rng()
    generator.bit_generator.state = climber.generator
    sums = climber.sums
    assert sums is not None  # there are some after an epoch
    return {
        "theta": climber.theta,
        "average": climber.average,
        "first": climber.adam.first,
        "second": climber.adam.second,
        "n_steps": climber.adam.n_steps,
        "columns": sums.columns,
        "labels": sums.labels,
        "generator": generator_state(generator),
        "epoch": climber.epoch,
        "losses": climber.losses,
    }


def _read_climber(state: Any, n_parameters: int, loss_set: LossSet) -> AscentState:
    weights = {
        name: read_floats(state, name, (n_parameters,), np.float32)
        for name in ("theta", "average", "first", "second")
    }
    adam = Adam(n_parameters, maximize=True)
    adam.first, adam.second = weights["first"], weights["second"]
    adam.n_steps = read_whole(state, "n_steps")
    empty = loss_set.new_totals(1)
    generator = entry(state, "generator")
    if not isinstance(generator, Mapping):
        raise damaged("a generator must be the state of a generator")
    return AscentState(
        theta=weights["theta"],
        average=weights["average"],
        adam=adam,
        generator=dict(generator_from_state(generator).bit_generator.state),
        sums=Totals(
            read_floats(state, "columns", empty.columns.shape),
            read_floats(state, "labels", empty.labels.shape),
            {},
        ),
        epoch=read_whole(state, "epoch"),
        losses=read_floats(state, "losses", (len(loss_set.losses),)),
    )


def read_history(
    state: Any, n_epochs: int, n_losses: int, judged: str
) -> tuple[dict[str, Any], ...]:
    """Return one record an epoch from arrays of ``history_arrays``.

    ``judged`` are the losses that an estimator shows while it goes on.
    """
    arrays = entry(state, "history")
    if not isinstance(arrays, Mapping) or not all(
        isinstance(values, np.ndarray)
        and values.dtype.kind in "fi"
        and values.shape in ((n_epochs,), (n_epochs, n_losses))
        for values in arrays.values()
    ):
        raise damaged(f"the history is not one of {n_epochs} epochs")
    for name, values in arrays.items():
        per_loss = name in _PER_LOSS
        if values.ndim != 1 + per_loss:
            raise damaged(f"the history of {name} has shape {values.shape}")
    read_floats(arrays, "archive_measure", (n_epochs,))
    read_floats(arrays, judged, (n_epochs, n_losses))
    read_floats(arrays, "undefined", (n_epochs, n_losses), np.int64)
    return tuple(
        {name: values[i] for name, values in arrays.items()} for i in range(n_epochs)
    )


def entry(state: Any, name: str) -> Any:
    """Return what a state has under a name."""
    if not isinstance(state, Mapping) or name not in state:
        raise damaged(f"{name} is missing")
    return state[name]


def read_floats(
    state: Any, name: str, shape: Shape, dtype: type = np.float64
) -> NDArray[Any]:
    """Return an array of a state, in rows as the one that was written."""
    array = entry(state, name)
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != dtype
        or not _fits(array.shape, shape)
    ):
        raise damaged(f"{name} is no array {shape} of {np.dtype(dtype)}")
    return np.ascontiguousarray(array)


def _fits(found: Sequence[int], expected: Shape) -> bool:
    return len(found) == len(expected) and all(
        e is None or e == f for e, f in zip(expected, found, strict=True)
    )


def read_float(state: Any, name: str) -> float:
    """Return a number of a state."""
    value = entry(state, name)
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise damaged(f"{name} is no number")
    return float(value)


def read_whole(state: Any, name: str) -> int:
    """Return a number of a state that counts something."""
    value = entry(state, name)
    if type(value) is not int or not 0 <= value < 2**53:
        raise damaged(f"{name} is no count")
    return value


def damaged(reason: str) -> ValueError:
    """Return the error of a state that no run has written."""
    return ValueError(f"The state of a run is damaged: {reason}.")

"""Losses by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, TypeVar

from . import definitions as built_in
from ._loss import AbsentLoss, CallableLoss, Loss

_T = TypeVar("_T", bound=type[Loss] | Loss)

_REGISTRY: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        built_in.Hamming(),
        built_in.LRAP(),
        built_in.MicroF1(),
        built_in.MacroF1(),
        built_in.ExampleF1(),
        built_in.Jaccard(),
        built_in.SubsetZeroOne(),
        built_in.OneError(),
        built_in.Coverage(),
        built_in.RankingLoss(),
        built_in.PrecisionAtK(1),
        built_in.PrecisionAtK(3),
        built_in.PrecisionAtK(5),
        built_in.BinaryCrossEntropy(),
        built_in.RowLogLoss(),
        built_in.MacroAUC(),
        built_in.MacroAveragePrecision(),
    )
}
_PRECISION_AT = re.compile(r"precision(?:_at_|@)([1-9]\d*)$")

LossLike = str | Loss | type[Loss] | Callable[..., float]


def list_losses(role: str | None = None) -> list[str]:
    """Names of the registered losses, sorted.

    Parameters
    ----------
    role : {"objective", "tracked", "evaluation"}, default=None
        Only those with this role; all by default. ``precision_at_k`` exists for
        every k, the usual ones are listed.

    Examples
    --------
    >>> from clml.losses import list_losses
    >>> list_losses(role="tracked")
    ['binary_cross_entropy', 'row_log_loss']
    """
    roles = ("objective", "tracked", "evaluation")
    if role is not None and role not in roles:
        raise ValueError(f"role must be one of {roles} or None, got {role!r}.")
    return sorted(n for n, loss in _REGISTRY.items() if role in (None, loss.role))


def get_loss(loss: LossLike) -> Loss:
    """Return the loss that a name, a class, an instance or a function stands for.

    Parameters
    ----------
    loss : str, Loss, subclass of Loss, or callable
        A registered name (``precision_at_k`` for any k), a loss, or a function
        ``f(Y, scores)`` that returns a number.

    Examples
    --------
    >>> from clml.losses import get_loss
    >>> get_loss("precision_at_2")
    PrecisionAtK(2)
    """
    if isinstance(loss, type) and issubclass(loss, Loss):
        loss = loss()
    if isinstance(loss, Loss):
        return _named(loss)
    if isinstance(loss, str):
        return _by_name(loss)
    if callable(loss) and not isinstance(loss, type):
        return CallableLoss(loss)
    raise TypeError(
        "A loss must be a name, a Loss, a subclass of Loss or a function, "
        f"got {loss!r} of type {type(loss).__name__}."
    )


def _named(loss: Loss) -> Loss:
    name = getattr(loss, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"A loss must be a Loss with a name, {type(loss).__name__} has no name."
        )
    return loss


def _by_name(name: str) -> Loss:
    if name in _REGISTRY:
        return _REGISTRY[name]
    precision = _PRECISION_AT.match(name)
    if precision:
        return built_in.PrecisionAtK(int(precision[1]))
    near = difflib.get_close_matches(name.lower(), _REGISTRY, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"Unknown loss {name!r}.{hint} Known: {list_losses()}.")


def own_loss(loss: LossLike) -> LossLike:
    """Return a loss as it was given; for a name that is not built in, what it names.

    A built-in name says all; what stands for any other may change.

    Examples
    --------
    >>> from clml.losses import own_loss
    >>> own_loss("hamming")
    'hamming'
    """
    if isinstance(loss, str):
        found = _by_name(loss)
        return loss if type(found).__module__ == built_in.__name__ else found
    return loss


def saved_loss(loss: LossLike) -> str | AbsentLoss:
    """Return what a file can hold of a loss: a name, or that it was there.

    Examples
    --------
    >>> from clml.losses import get_loss, saved_loss
    >>> saved_loss(get_loss("precision_at_2"))
    'precision_at_2'
    >>> def errors(Y, scores):
    ...     return ((scores > 0) != Y).mean()
    >>> saved_loss(errors)
    AbsentLoss('errors')
    """
    if isinstance(loss, str):
        return str(loss)
    found = get_loss(loss)
    is_built_in = type(found).__module__ == built_in.__name__
    return found.name if is_built_in else AbsentLoss(found.name)


def get_losses(losses: Any) -> tuple[Loss, ...]:
    """Return several losses, at least one, with distinct names."""
    # A set has no order, and the order of the losses is that of the columns.
    if isinstance(losses, str | Set | Mapping) or not isinstance(losses, Iterable):
        raise TypeError(
            "losses must be a sequence of losses such as ('hamming', 'lrap'), "
            f"got {losses!r}."
        )
    found = tuple(get_loss(loss) for loss in losses)
    if not found:
        raise ValueError("losses must name at least one loss, got none.")
    names = [loss.name for loss in found]
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise ValueError(f"losses must be distinct, got {repeated} more than once.")
    return found


def register_loss(loss: _T) -> _T:
    """Make a loss known by its name; works as a class decorator.

    Parameters
    ----------
    loss : subclass of Loss, or Loss
        A class is instantiated without arguments. A name already taken by another
        class is refused.

    Returns
    -------
    The argument, unchanged.
    """
    instance = loss() if isinstance(loss, type) else loss
    if not isinstance(instance, Loss):
        raise TypeError(f"A loss must be a Loss with a name, got {loss!r}.")
    _named(instance)
    taken = _REGISTRY.get(instance.name)
    if taken is not None and not _same_definition(taken, instance):
        raise ValueError(
            f"The loss name {instance.name!r} is taken by {type(taken).__name__}."
        )
    instance.resolved_statistics()
    _REGISTRY[instance.name] = instance
    return loss


def _same_definition(a: Loss, b: Loss) -> bool:
    """Whether b is a again, as when a module is loaded twice."""
    where = [(type(x).__module__, type(x).__qualname__) for x in (a, b)]
    return where[0] == where[1]

"""What members are trained on, and losses that they cannot be trained on.

Functions, and statistics of a user's own, tell what a whole matrix of scores is worth
and nothing about single outputs, so no gradient comes out of them. They judge epochs
instead, maps of the outputs are evolved on them, and the front holds them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._support.sklearn_compat import warn_user
from ..losses import Loss, MatrixLoss, RowTargets, get_losses, supports_gradient
from .run_state import damaged

#: What members are trained on where none of the losses can be. It asks for the
#: probability of every label, whatever threshold or order a loss then makes of it;
#: losses of decisions at one threshold are a worse start (docs/learning.md).
STAND_IN = ("binary_cross_entropy",)

#: What members are trained on besides where fewer losses are asked for than these are:
#: decisions, rankings and rare labels (docs/learning.md).
COMPANIONS = ("hamming", "lrap", "micro_f1")

# Seconds from which on a call of all functions is slow.
_SLOW = 0.02


@dataclass(frozen=True)
class MapBudget:
    """How much is spent on maps of the outputs.

    Attributes
    ----------
    max_epochs, population_size : int
        Of an evolution.
    most_repeats : int or None
        Pairs of halves that choose the strength, at most; None for as many as the rows
        call for.
    standard_errors : float
        By how many of these a map must be better than a simpler one. Over halves of the
        same rows they come out some three times too small (Nadeau and Bengio, 2003).
        With the losses that members were trained on that does no harm, since little is
        left to gain or lose. Of functions that count few errors noise was believed.
    """

    max_epochs: int
    population_size: int
    most_repeats: int | None = None
    standard_errors: float = 1.0

    @property
    def n_calls(self) -> int:
        """About how often a loss is computed."""
        # On halves for the strength, on all rows, on halves to judge the front.
        n_evolutions = 2 * (self.most_repeats or 5) + 1 + 2
        return n_evolutions * (self.max_epochs * self.population_size + 70) + 600


#: What a label's scale and bias take: more epochs find nothing more.
FULL = MapBudget(120, 64)
_WITH_OWN_STATISTICS = MapBudget(120, 64, standard_errors=3.0)
# Functions are called for one candidate after the other.
_WITH_FUNCTIONS = MapBudget(40, 24, 5, 3.0)
_WITH_SLOW_FUNCTIONS = MapBudget(15, 12, 2, 3.0)


def with_gradient(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """Return the losses that members can be trained on."""
    return tuple(loss for loss in losses if supports_gradient((loss,)))


def training_losses(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """Return the losses that members are trained on.

    Those of the losses that they can be trained on. A single loss, or two, say little
    about most outputs: decisions that are right, or wrong by much, or labels in their
    right order leave nothing to learn. So the default's losses join them. Of functions
    alone nothing is learnt, and cross-entropy stands in for them.

    Examples
    --------
    >>> from clml._training.own_losses import training_losses
    >>> from clml.losses import get_losses
    >>> training_losses(get_losses(("macro_f1",)))
    (MacroF1(), Hamming(), LRAP(), MicroF1())
    >>> training_losses(get_losses(("macro_f1", "lrap", "jaccard")))
    (MacroF1(), LRAP(), Jaccard())
    >>> def errors(Y, scores):
    ...     return ((scores > 0) != Y).mean()
    >>> training_losses(get_losses((errors,)))
    (BinaryCrossEntropy(),)
    """
    own = with_gradient(losses)
    if not own:
        return get_losses(STAND_IN)
    if len(own) >= len(COMPANIONS):
        return own
    names = [loss.name for loss in losses]
    return own + tuple(x for x in get_losses(COMPANIONS) if x.name not in names)


def functions_among(losses: Sequence[Loss]) -> tuple[MatrixLoss, ...]:
    """Return the losses that are called with the scores of all rows."""
    return tuple(loss for loss in losses if isinstance(loss, MatrixLoss))


def are_slow(functions: Sequence[MatrixLoss], targets: RowTargets) -> bool:
    """Call functions before anything is trained, to see that they work and how fast.

    Parameters
    ----------
    functions : sequence of MatrixLoss
    targets : RowTargets
        Of the rows that judge. Functions will be called with half of them, too.

    Returns
    -------
    bool
        Whether one call of all of them takes so long that maps are searched for with
        fewer calls, of which a warning then tells.
    """
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(targets.n_rows, targets.n_labels))
    if targets.n_rows > 1:
        half = np.arange(0, targets.n_rows, 2)
        _seconds_of(functions, targets.take(half), scores[half])
    seconds = np.inf
    for _ in range(2):  # the first call may have had to prepare something
        seconds = min(seconds, _seconds_of(functions, targets, scores))
        if seconds < _SLOW:
            return False
    names = ", ".join(repr(loss.name) for loss in functions)
    few, many = _WITH_SLOW_FUNCTIONS.n_calls, _WITH_FUNCTIONS.n_calls
    warn_user(
        f"A call of the loss {names} takes {seconds:.2g} s. The front is searched for "
        f"with about {few:,} calls instead of {many:,}. A machine on which it takes "
        f"less than {_SLOW} s may find another one."
    )
    return True


def _seconds_of(
    functions: Sequence[MatrixLoss], targets: RowTargets, scores: np.ndarray
) -> float:
    scores, truth = scores.copy(), targets.dense.view()
    scores.flags.writeable = truth.flags.writeable = False
    weight = targets.weight if targets.weighted else None
    began = time.perf_counter()
    for loss in functions:
        loss.evaluate(truth, scores, weight, 0.0)
    return time.perf_counter() - began


def map_budget(losses: Sequence[Loss], slow: bool) -> MapBudget:
    """Return what may be spent on maps of the outputs."""
    if functions_among(losses):
        return _WITH_SLOW_FUNCTIONS if slow else _WITH_FUNCTIONS
    return FULL if supports_gradient(losses) else _WITH_OWN_STATISTICS


def read_slow(saved: object) -> bool | None:
    """Return what a checkpoint says about functions being slow; None if nothing."""
    if saved is not None and not isinstance(saved, bool):
        raise damaged("whether functions are slow is no yes or no")
    return saved

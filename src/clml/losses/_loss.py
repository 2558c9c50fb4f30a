"""What a loss is: row statistics and a closing formula, or a whole-matrix function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .statistics import STATISTICS, Statistic

Sums = Mapping[str, NDArray[np.float64]]
Role = Literal["objective", "tracked", "evaluation"]


class Loss:
    """A multi-label loss, smaller is better, made of additive row statistics.

    Subclass it, name the statistics, write the closing formula, and pass the class,
    an instance, or (after :func:`clml.losses.register_loss`) its name wherever losses
    are taken.

    Attributes
    ----------
    name : str
        The name in the registry, in fronts and in histories.
    statistics : tuple of str or Statistic
        The row statistics that :meth:`close` needs: names of built-in ones
        (``clml.losses.STATISTICS``) or :class:`Statistic` objects of your own.
    role : {"objective", "tracked", "evaluation"}
        Whether the loss may be optimised, is only followed along a run, or is for
        evaluation alone.
    additive : bool
        Whether the loss follows from sums over rows, and so can be computed in chunks
        and over several machines.
    affine : bool
        Whether the loss is a multiple of one statistic's sum plus a constant, but for
        its bounds 0 and 1: its derivative is then computed once and not in every step.

    Examples
    --------
    The share of relevant labels that were missed:

    >>> import numpy as np
    >>> from clml.losses import Loss, loss_values
    >>> class MissRate(Loss):
    ...     name = "miss_rate"
    ...     statistics = ("hits", "relevant")
    ...
    ...     def close(self, sums, weight, n_labels):
    ...         # In [0, 1] always: nothing relevant, nothing missed.
    ...         missed = sums["relevant"] - sums["hits"]
    ...         return missed / np.maximum(sums["relevant"], 1e-12)
    >>> loss_values([[1, 0], [1, 1]], [[0.3, -1.0], [-0.2, 2.0]], losses=(MissRate,))
    array([0.33333333])
    """

    name: str
    statistics: tuple[str | Statistic, ...] = ()
    role: ClassVar[Role] = "objective"
    additive: ClassVar[bool] = True
    affine: ClassVar[bool] = False

    def close(self, sums: Sums, weight: float, n_labels: int) -> NDArray[np.float64]:
        """Turn the sums of the statistics into the loss.

        Parameters
        ----------
        sums : mapping of str to float64 array (population,) or (population, K)
            Weighted sums over the rows, by the statistics' names.
        weight : float
            The sum of the row weights (the number of rows without weights).
        n_labels : int
            K.

        Returns
        -------
        float64 array (population,)
        """
        raise TypeError(f"{type(self).__name__} must define close().")

    def check(self, n_labels: int) -> None:
        """Raise ValueError if the loss has no meaning for this number of labels."""

    def resolved_statistics(self) -> tuple[Statistic, ...]:
        """Return the statistics as objects, built-in names looked up."""
        found = []
        for item in self.statistics:
            if isinstance(item, Statistic):
                found.append(item)
            elif item in STATISTICS:
                found.append(STATISTICS[item])
            else:
                raise ValueError(
                    f"Loss {self.name!r} names the statistic {item!r}, which is none "
                    f"of the built-in ones: {sorted(STATISTICS)}."
                )
        return tuple(found)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MatrixLoss(Loss):
    """A loss of the whole score matrix, which no sum over rows gives.

    Such a loss needs the scores of all rows at once: it cannot be computed in chunks
    or over several machines.
    """

    additive: ClassVar[bool] = False

    def evaluate(
        self,
        Y: NDArray[np.uint8],
        scores: NDArray[np.floating],
        sample_weight: NDArray[np.float64] | None,
        threshold: float,
    ) -> float:
        """Return the loss of one score matrix (n, K)."""
        raise TypeError(f"{type(self).__name__} must define evaluate().")


class CallableLoss(MatrixLoss):
    """A user's function ``f(Y, scores)`` or ``f(Y, scores, sample_weight=...)``.

    Parameters
    ----------
    function : callable
        Takes the indicator (n, K) and the scores (n, K), returns a number, smaller is
        better, in [0, 1] if it is to be optimised by its Lebesgue measure.
    """

    def __init__(self, function: Callable[..., float]):
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._takes_weight = _accepts_sample_weight(function)

    def evaluate(
        self,
        Y: NDArray[np.uint8],
        scores: NDArray[np.floating],
        sample_weight: NDArray[np.float64] | None,
        threshold: float,
    ) -> float:
        """Call the function and check that a number came back."""
        if sample_weight is not None and not self._takes_weight:
            raise ValueError(
                f"The loss function {self.name!r} takes no sample_weight argument, "
                "but sample weights were given."
            )
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        try:
            value = self.function(Y, scores, **weight)
        except Exception as error:
            error.add_note(
                f"The loss function {self.name!r} raised this, given Y and scores of "
                f"shape {scores.shape}."
            )
            raise
        return _as_number(value, self.name)

    def __repr__(self) -> str:
        return f"CallableLoss({self.name})"


class AbsentLoss(MatrixLoss):
    """The name of a loss of a user's own, in a model that was loaded.

    Files hold no code. Such a model predicts and has its front; what needs the loss
    asks for it.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name: str):
        self.name = name

    def evaluate(
        self,
        Y: NDArray[np.uint8],
        scores: NDArray[np.floating],
        sample_weight: NDArray[np.float64] | None,
        threshold: float,
    ) -> float:
        """Ask for the loss."""
        raise ValueError(self.request)

    @property
    def request(self) -> str:
        """What to say where the loss is needed."""
        return (
            f"The loss {self.name!r} was not saved with the model, since files hold no "
            "code. Give it again: set_params(losses=(...)), with the function or the "
            "object that it was."
        )

    def __repr__(self) -> str:
        return f"AbsentLoss({self.name!r})"


def _accepts_sample_weight(function: Callable[..., float]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def _as_number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"The loss function {name!r} must return a number, "
            f"got {type(value).__name__}."
        ) from None

"""Gradient ascent on the expected rank, estimated from mirrored candidates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._constants import default_population_size
from ._place import NUMPY, ArrayBackend, place_of, read_device
from ._validation import (
    STATE_VERSION,
    check_kind,
    check_mean,
    check_order,
    check_population_size,
    check_sigma,
    read_array,
    read_integer,
    read_mapping,
    read_number,
    read_population_size,
)
from .random import Seed

__all__ = ["RankGradient"]

# Candidates are float32, which ends at 3.4e38 and loses digits below 1.2e-38; a
# normal number stays below 10.
_LIMITS = (1e-37, 1e37)

# Against division by zero only: an order without information still makes gradients
# of about 0.3/√population.
_EPSILON = 1e-8

# Share of the learning rate that is left when the cosine has ended.
_FLOOR = 0.01


def _check_even_size(population_size: int | None, n_parameters: int) -> int:
    if population_size is None:
        size = default_population_size(n_parameters)
        return size + size % 2
    size = check_population_size(population_size, n_parameters)
    if size % 2:
        raise ValueError(
            "Expected population_size to be even, as candidates come in mirrored "
            f"pairs. Got {size}."
        )
    return size


def _check_positive(name: str, value: float, maximum: float = math.inf) -> float:
    valid = isinstance(value, Real) and math.isfinite(value) and 0 < value <= maximum
    if not valid:
        limit = "" if maximum == math.inf else f" of at most {maximum:g}"
        raise ValueError(
            f"Expected {name} to be a positive finite number{limit}. Got {value!r}."
        )
    return float(value)


def _check_weight(name: str, value: float) -> float:
    """Return the weight of the past in an exponential average."""
    if not isinstance(value, Real) or not 0 <= value < 1:
        raise ValueError(
            f"Expected {name} to be a number of at least 0 and below 1. Got {value!r}."
        )
    return float(value)


def _check_horizon(horizon: int | None, decay: float) -> int | None:
    if horizon is None:
        return None
    if not isinstance(horizon, Integral) or horizon < 1:
        raise ValueError(
            f"Expected horizon to be None or a positive integer. Got {horizon!r}."
        )
    if decay != 1:
        raise ValueError(
            "Expected horizon or decay, not both: each sets the learning rate. "
            f"Got horizon={horizon} and decay={decay}."
        )
    return int(horizon)


def _check_scale(scale: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Return the scale as a vector of its own, ones for None."""
    if scale is None:
        return np.ones(n)
    expected = f"Expected scale to be None or {n} positive finite numbers."
    try:
        vector = np.array(scale, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected} Got {scale!r}.") from error
    if vector.shape != (n,):
        raise ValueError(f"{expected} Got an array of shape {vector.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(vector) & (vector > 0)))
    if wrong.size:
        raise ValueError(f"{expected} Got {vector[wrong[0]]} at index {wrong[0]}.")
    return vector


def _check_range(
    name: str, values: NDArray[np.float64], low: float, high: float
) -> None:
    """Refuse what float32 candidates cannot carry."""
    outside = values[(values < low) | (values > high)]
    if outside.size:
        raise ValueError(
            f"Expected {name} to lie between {low:g} and {high:g}, as candidates are "
            f"float32. Got {outside[0]:g}."
        )


def _pair_utilities(ranked: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return by how much each direction's plus is better than its minus.

    Utilities fall linearly from 1/2 for the best to −1/2 for the worst. Row i and row
    i + population/2 are one pair; `ranked` holds the rows, best first.
    """
    utilities = np.empty(ranked.size)
    utilities[ranked] = np.linspace(0.5, -0.5, ranked.size)
    plus, minus = np.split(utilities, 2)
    return plus - minus


def _gradient(
    directions: Any, ranked: NDArray[np.intp], place: ArrayBackend = NUMPY
) -> NDArray[np.float64]:
    """Estimate the gradient of the expected utility, shape (n,).

    It is (1/λ)·Σ u_i·ε_i over all λ candidates, where a pair shares its direction
    with opposite signs: the differences of utilities suffice. The gradient is with
    respect to the mean in units of sigma·scale.
    """
    weights = (_pair_utilities(ranked) / ranked.size).astype(np.float32)
    return place.get(place.put(weights) @ directions).astype(np.float64)


def _averaged(
    old: NDArray[np.float64], new: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    return weight * old + (1 - weight) * new


def _unbiased(
    average: NDArray[np.float64], weight: float, n_terms: int
) -> NDArray[np.float64]:
    """Make up for an exponential average having started at zero."""
    return average / (1 - weight**n_terms)


@dataclass(frozen=True)
class _Settings:
    """All that does not change."""

    population_size: int
    sigma: float
    scale: NDArray[np.float64]
    learning_rate: float
    horizon: int | None
    decay: float
    beta1: float
    beta2: float
    averaging: float

    def rate(self, epoch: int) -> float:
        """Return the learning rate after `epoch` epochs."""
        if self.horizon is None:
            return self.learning_rate * self.decay**epoch
        done = min(1.0, epoch / self.horizon)
        cosine = (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * max(_FLOOR, cosine)


@dataclass(frozen=True)
class _Pending:
    """A population that was asked for and not yet told about."""

    directions: Any  # float32 (population / 2, n), of the plus candidates
    generator: dict[str, Any]  # after drawing them


@dataclass(frozen=True)
class _State:
    """All that changes. Replaced as a whole, never modified."""

    epoch: int
    mean: NDArray[np.float64]
    average: NDArray[np.float64]  # of the means so far, still biased towards 0
    first_moment: NDArray[np.float64]
    second_moment: NDArray[np.float64]
    generator: dict[str, Any]  # before drawing the pending population
    pending: _Pending | None = None


class RankGradient:
    """Stochastic gradient ascent on the expected rank of a candidate.

    Half of the candidates are mean + sigma·scale∘ε with a normal direction ε each,
    the other half their mirror images mean − sigma·scale∘ε. The ranks tell how much
    each direction helps, the weighted sum of the directions estimates the gradient
    of the expected utility, and Adam takes a step along it. How far the mean moves
    is set, not learnt: for problems with 10,000 parameters and more, where the step
    size of CMA-ES needs thousands of epochs to become the right one. An epoch costs
    O(n·population) and draws population/2 directions.

    Parameters
    ----------
    mean : array-like of shape (n_parameters,)
        Where to start.
    sigma : float, default=0.1
        Standard deviation of every coordinate, in units of `scale`. It stays.
    population_size : int, default=None
        Candidates per epoch, even; None for 4 + ⌊3 ln n⌋, rounded up to even. Wide
        problems want hundreds.
    seed : int or numpy.random.SeedSequence, default=None
        Seed of the strategy's own generator. None takes one from the system.
    learning_rate : float, default=0.02
        How far the mean moves in an epoch, in units of `scale`, along a coordinate
        whose gradient keeps its sign.
    horizon : int, default=None
        Number of epochs over which the learning rate falls to zero along a half
        cosine. It stops falling at 1 % of its start, where it stays.
    decay : float, default=1.0
        Factor of the learning rate per epoch, in (0, 1]. Not together with `horizon`.
    scale : array-like of shape (n_parameters,), default=None
        Unit of each coordinate, positive, for `sigma` and `learning_rate`; None for
        ones.
    beta1, beta2 : float, default=0.9 and 0.999
        Weights of the past in Adam's averages of the gradient and of its square, in
        [0, 1).
    averaging : float, default=0.98
        Weight of the past in `average`, in [0, 1). With 0 that is the mean itself.
    device : str, default=None
        Where populations are drawn and live, as PyTorch calls it: "cuda", "cuda:1".
        None is the host's memory. A seed gives other numbers on a device.

    Attributes
    ----------
    mean : ndarray of shape (n_parameters,)
        Mean of the search distribution.
    average : ndarray of shape (n_parameters,)
        Exponential average of the means after each epoch.
    sigma : float
        Step size.
    learning_rate : float
        Learning rate of the next `tell`.
    population_size, n_parameters, epoch : int
        Candidates per epoch, their coordinates, and `tell` calls done.

    See Also
    --------
    RankOneCMA : Adapts its step size and one direction per epoch.

    Notes
    -----
    Candidates are float32: sigma·scale must be well above 1e-7 of the mean for a
    candidate to differ from it. The mean itself is float64.

    Candidates of equal fitness may be put in any order that does not look at them.
    The directions are symmetric, so such an order adds noise and no bias.

    References
    ----------
    T. Salimans, J. Ho, X. Chen, S. Sidor and I. Sutskever, Evolution Strategies as a
    Scalable Alternative to Reinforcement Learning, arXiv:1703.03864.

    D. P. Kingma and J. Ba, Adam: A Method for Stochastic Optimization,
    arXiv:1412.6980.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.evolution import RankGradient, rank_by_fitness
    >>> strategy = RankGradient(np.ones(50), population_size=40, seed=0, horizon=300)
    >>> for _ in range(300):
    ...     X = strategy.ask()
    ...     strategy.tell(rank_by_fitness(np.sum(X**2, axis=1)))
    >>> bool(np.abs(strategy.mean).max() < 0.05)
    True

    Where noise keeps the mean wandering about, the average of the means is closer:

    >>> strategy = RankGradient(np.ones(50), population_size=40, seed=0)
    >>> noise = np.random.default_rng(0)
    >>> for _ in range(500):
    ...     X = strategy.ask()
    ...     fitness = np.sum(X**2, axis=1) + noise.normal(size=40)
    ...     strategy.tell(rank_by_fitness(fitness))
    >>> bool(np.sum(strategy.average**2) < np.sum(strategy.mean**2))
    True
    """

    kind: ClassVar[str] = "rank_gradient"

    def __init__(
        self,
        mean: ArrayLike,
        sigma: float = 0.1,
        population_size: int | None = None,
        seed: Seed = None,
        *,
        learning_rate: float = 0.02,
        horizon: int | None = None,
        decay: float = 1.0,
        scale: ArrayLike | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        averaging: float = 0.98,
        device: str | None = None,
    ) -> None:
        self._place = place_of(device)
        start = check_mean(mean)
        low, high = _LIMITS
        _check_range("mean", start, -high, high)
        checked_decay = _check_positive("decay", decay, maximum=1)
        self._settings = settings = _Settings(
            population_size=_check_even_size(population_size, start.size),
            sigma=check_sigma(sigma),
            scale=_check_scale(scale, start.size),
            learning_rate=_check_positive("learning_rate", learning_rate),
            horizon=_check_horizon(horizon, checked_decay),
            decay=checked_decay,
            beta1=_check_weight("beta1", beta1),
            beta2=_check_weight("beta2", beta2),
            averaging=_check_weight("averaging", averaging),
        )
        with np.errstate(over="ignore"):
            spread = settings.sigma * settings.scale
            stride = settings.learning_rate * settings.scale
        _check_range("sigma times scale", spread, low, high)
        _check_range("learning_rate times scale", stride, 0, high)
        zeros = np.zeros(start.size)
        self._state = _State(
            epoch=0,
            mean=start,
            average=zeros,
            first_moment=zeros,
            second_moment=zeros,
            generator=self._place.generator_state(self._place.new_generator(seed)),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_parameters={self.n_parameters}, "
            f"population_size={self.population_size}, epoch={self.epoch}, "
            f"sigma={self.sigma:.3g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy needs what its state needs, not the pending directions.
        return type(self).from_state, (self.state(),)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the search distribution, shape (n_parameters,)."""
        return self._state.mean.copy()

    @property
    def average(self) -> NDArray[np.float64]:
        """Exponential average of the means, shape (n_parameters,).

        The start does not count. Before the first `tell` it is all there is.
        """
        state = self._state
        if state.epoch == 0:
            return state.mean.copy()
        return _unbiased(state.average, self._settings.averaging, state.epoch)

    @property
    def sigma(self) -> float:
        """Step size."""
        return self._settings.sigma

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next `tell`."""
        return self._settings.rate(self.epoch)

    @property
    def population_size(self) -> int:
        """Number of candidates per epoch."""
        return self._settings.population_size

    @property
    def n_parameters(self) -> int:
        """Number of coordinates of a candidate."""
        return self._settings.scale.size

    @property
    def epoch(self) -> int:
        """Number of `tell` calls done."""
        return self._state.epoch

    def ask(self) -> Any:
        """Return the population of this epoch.

        Returns
        -------
        float32 ndarray of shape (population_size, n_parameters)
            The candidates, one per row; row i + population_size/2 mirrors row i at
            the mean. A tensor if a device was given. Asking again before `tell`
            returns the same population.
        """
        state, place = self._state, self._place
        pending = state.pending
        if pending is None:
            generator = place.generator_from_state(state.generator)
            shape = (self.population_size // 2, self.n_parameters)
            directions = generator.standard_normal(shape, dtype=np.float32)
            pending = _Pending(directions, place.generator_state(generator))
            self._state = replace(state, pending=pending)
        return self._candidates(state.mean, pending.directions)

    def tell(self, order: ArrayLike) -> None:
        """Move the mean along the gradient that the order of the candidates tells.

        Parameters
        ----------
        order : array-like of int, shape (population_size,)
            Indices of the rows that `ask` returned, best first, each one once.
        """
        ranked = check_order(order, self.population_size)
        state, settings = self._state, self._settings
        if state.pending is None:
            raise RuntimeError("tell() needs a population: call ask() first.")
        g = _gradient(state.pending.directions, ranked, self._place)
        first = _averaged(state.first_moment, g, settings.beta1)
        second = _averaged(state.second_moment, g**2, settings.beta2)
        mean = self._update_mean(state, first, second)
        self._state = _State(
            epoch=state.epoch + 1,
            mean=mean,
            average=_averaged(state.average, mean, settings.averaging),
            first_moment=first,
            second_moment=second,
            generator=state.pending.generator,
        )

    def state(self) -> dict[str, Any]:
        """Return the whole state as a value.

        Returns
        -------
        dict
            Arrays, numbers, strings and nested dicts only. Between `ask` and `tell`
            it is the state before that `ask`, so what continues from it asks for the
            same population.
        """
        state, settings = self._state, self._settings
        return {
            "kind": self.kind,
            "version": STATE_VERSION,
            "population_size": settings.population_size,
            "epoch": state.epoch,
            "mean": state.mean.copy(),
            "sigma": settings.sigma,
            "scale": settings.scale.copy(),
            "learning_rate": settings.learning_rate,
            "horizon": settings.horizon or 0,  # 0 for none: states hold numbers
            "decay": settings.decay,
            "beta1": settings.beta1,
            "beta2": settings.beta2,
            "averaging": settings.averaging,
            "average": state.average.copy(),
            "first_moment": state.first_moment.copy(),
            "second_moment": state.second_moment.copy(),
            "generator": dict(state.generator),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Continue from a state.

        Parameters
        ----------
        state : dict
            What `state` returned, possibly written to a file and read again.

        Returns
        -------
        strategy
            Its populations are bit for bit those of the strategy that was saved.
        """
        check_kind(state, cls.kind, cls.__name__)
        mean = check_mean(state.get("mean", ()))
        shape = mean.shape
        drawn_from = read_mapping(state, "generator")
        strategy = cls(
            mean,
            read_number(state, "sigma"),
            read_population_size(state),
            seed=0,
            learning_rate=read_number(state, "learning_rate"),
            horizon=read_integer(state, "horizon") or None,
            decay=read_number(state, "decay"),
            scale=read_array(state, "scale", shape),
            beta1=read_number(state, "beta1"),
            beta2=read_number(state, "beta2"),
            averaging=read_number(state, "averaging"),
            device=read_device(drawn_from),
        )
        second_moment = read_array(state, "second_moment", shape)
        if (second_moment < 0).any():
            raise ValueError("The state is damaged: a second moment is negative.")
        generator = strategy._place.generator_from_state(drawn_from)
        strategy._state = replace(
            strategy._state,
            epoch=read_integer(state, "epoch"),
            average=read_array(state, "average", shape),
            first_moment=read_array(state, "first_moment", shape),
            second_moment=second_moment,
            generator=strategy._place.generator_state(generator),
        )
        return strategy

    def _candidates(self, mean: NDArray[np.float64], directions: Any) -> Any:
        """Return the pairs around the mean; no other array is as large."""
        place, half = self._place, len(directions)
        centre = place.put(mean.astype(np.float32))
        spread = (self._settings.sigma * self._settings.scale).astype(np.float32)
        population = place.empty((2 * half, mean.size), np.float32)
        plus, minus = population[:half], population[half:]
        plus[:] = directions
        plus *= place.put(spread)
        minus[:] = centre
        minus -= plus
        plus += centre
        return population

    def _update_mean(
        self,
        state: _State,
        first_moment: NDArray[np.float64],
        second_moment: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Take Adam's step upwards, in units of the scale."""
        settings, t = self._settings, state.epoch + 1
        m = _unbiased(first_moment, settings.beta1, t)
        v = _unbiased(second_moment, settings.beta2, t)
        step = m / (np.sqrt(v) + _EPSILON)
        moved = state.mean + settings.rate(state.epoch) * settings.scale * step
        # A run that goes on for ever must not leave the range of its candidates.
        return np.clip(moved, -_LIMITS[1], _LIMITS[1])

"""The CMA-ES loop as named steps on an immutable state."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.threads import begin
from ._constants import Constants
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

__all__ = ["BaseCMA"]

CovarianceT = TypeVar("CovarianceT")

# Far outside any use, far inside float64: a run that goes on after it has converged
# (or diverges) must neither reach 0 nor infinity.
_SIGMA_LIMITS = (1e-150, 1e150)


@dataclass(frozen=True)
class _Pending:
    """A population that was asked for and not yet told about."""

    steps: Any  # (population, n), the y of x = mean + sigma·y
    generator: dict[str, Any]  # after drawing them


@dataclass(frozen=True)
class _Ahead:
    """Normal numbers that are being drawn before they are asked for."""

    begun: dict[str, Any]  # the generator before
    generator: Any  # and after them
    finish: Callable[[], list[Any]]


@dataclass(frozen=True)
class _State(Generic[CovarianceT]):
    """All that changes. Replaced as a whole, never modified."""

    epoch: int
    mean: NDArray[np.float64]
    sigma: float
    path_sigma: NDArray[np.float64]
    path_c: NDArray[np.float64]
    covariance: CovarianceT
    generator: dict[str, Any]  # before drawing the pending population
    pending: _Pending | None = None


class BaseCMA(ABC, Generic[CovarianceT]):
    """The steps all variants share; a variant says what its covariance is.

    `ask` and `tell` compute a new `_State` and commit it by one assignment, so an
    interrupt at any moment leaves the strategy before or after the call, never in
    between.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        mean: ArrayLike,
        sigma: float,
        population_size: int | None = None,
        seed: Seed = None,
        device: str | None = None,
    ) -> None:
        self._place = self._check_place(device)
        self._ahead: _Ahead | None = None
        start = check_mean(mean)
        n = start.size
        self._check_dimension(n)
        self._constants = self._make_constants(
            n, check_population_size(population_size, n)
        )
        self._state: _State[CovarianceT] = _State(
            epoch=0,
            mean=start,
            sigma=check_sigma(sigma),
            path_sigma=np.zeros(n),
            path_c=np.zeros(n),
            covariance=self._initial_covariance(n),
            generator=self._place.generator_state(self._place.new_generator(seed)),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_parameters={self.n_parameters}, "
            f"population_size={self.population_size}, epoch={self.epoch}, "
            f"sigma={self.sigma:.3g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles are made from the state: attribute by attribute, a copy
        # would share storage that both append to.
        return type(self).from_state, (self.state(),)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the search distribution, shape (n_parameters,)."""
        return self._state.mean.copy()

    @property
    def sigma(self) -> float:
        """Step size."""
        return self._state.sigma

    @property
    def population_size(self) -> int:
        """Number of candidates per epoch."""
        return self._constants.population_size

    @property
    def n_parameters(self) -> int:
        """Number of coordinates of a candidate."""
        return self._constants.n

    @property
    def epoch(self) -> int:
        """Number of `tell` calls done."""
        return self._state.epoch

    def ask(self) -> Any:
        """Return the population of this epoch.

        Returns
        -------
        ndarray of shape (population_size, n_parameters)
            The candidates, one per row; a tensor if a device was given. Asking again
            before `tell` returns the same population.
        """
        state, place = self._state, self._place
        pending = state.pending
        if pending is None:
            generator, normal = self._drawn(state.generator)  # (eq. 38)
            steps = self._sample(state.covariance, normal, generator)  # (eq. 39)
            pending = _Pending(steps, place.generator_state(generator))
            self._state = replace(state, pending=pending)
        return place.put(state.mean) + state.sigma * pending.steps  # (eq. 40)

    def draw_ahead(self, helpers: Executor) -> None:
        """Let helpers draw the numbers of the next `ask`, while other work goes on.

        Nothing changes but the time that `ask` takes. It has no effect where no
        population is pending, or where populations live on a device.

        Parameters
        ----------
        helpers : concurrent.futures.Executor
            Threads.
        """
        pending = self._state.pending
        if pending is not None and self._place is NUMPY:
            generator = self._place.generator_from_state(pending.generator)
            finish = begin(helpers, generator.standard_normal, [self._shape])
            self._ahead = _Ahead(pending.generator, generator, finish)

    def _drawn(self, begun: dict[str, Any]) -> tuple[Any, Any]:
        """Return normal numbers from a state of the generator, and what comes next."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.begun is begun:
            (normal,) = ahead.finish()
            return ahead.generator, normal
        generator = self._place.generator_from_state(begun)
        return generator, generator.standard_normal(self._shape)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.population_size, self.n_parameters

    def tell(self, order: ArrayLike) -> None:
        """Update the distribution from the order of the candidates.

        Parameters
        ----------
        order : array-like of int, shape (population_size,)
            Indices of the rows that `ask` returned, best first, each one once.
        """
        ranked = check_order(order, self.population_size)
        state, constants = self._state, self._constants
        if state.pending is None:
            raise RuntimeError("tell() needs a population: call ask() first.")
        place = self._place
        parents = place.rows(state.pending.steps, ranked[: constants.weights.size])
        step = place.get(place.put(constants.weights) @ parents)  # (eq. 41)
        whitened, learnt = self._whiten(state.covariance, step)
        path_sigma = self._update_path_sigma(state.path_sigma, whitened)
        h_sigma = self._h_sigma(path_sigma, state.epoch + 1)
        path_c = self._update_path_c(state.path_c, step, h_sigma)
        self._state = _State(
            epoch=state.epoch + 1,
            mean=self._update_mean(state, step),
            sigma=self._update_sigma(state.sigma, path_sigma),
            path_sigma=path_sigma,
            path_c=path_c,
            covariance=self._update_covariance(
                state.covariance, path_c, parents, h_sigma, state.epoch + 1, learnt
            ),
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
        state = self._state
        return {
            "kind": self.kind,
            "version": STATE_VERSION,
            "population_size": self.population_size,
            "epoch": state.epoch,
            "mean": state.mean.copy(),
            "sigma": state.sigma,
            "path_sigma": state.path_sigma.copy(),
            "path_c": state.path_c.copy(),
            "covariance": self._covariance_to_dict(state.covariance),
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
        n = mean.size
        drawn_from = read_mapping(state, "generator")
        strategy = cls(
            mean,
            read_number(state, "sigma"),
            read_population_size(state),
            seed=0,
            device=read_device(drawn_from),
        )
        place = strategy._place
        generator = place.generator_from_state(drawn_from)
        strategy._state = replace(
            strategy._state,
            epoch=read_integer(state, "epoch"),
            path_sigma=read_array(state, "path_sigma", (n,)),
            path_c=read_array(state, "path_c", (n,)),
            covariance=strategy._covariance_from_dict(
                read_mapping(state, "covariance"), n
            ),
            generator=place.generator_state(generator),
        )
        return strategy

    # The steps of one epoch, in the order in which `tell` takes them.

    def _update_path_sigma(
        self, path_sigma: NDArray[np.float64], whitened: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        c_sigma, mu_eff = self._constants.c_sigma, self._constants.mu_eff
        return (1 - c_sigma) * path_sigma + math.sqrt(
            c_sigma * (2 - c_sigma) * mu_eff
        ) * whitened  # (eq. 43)

    def _h_sigma(self, path_sigma: NDArray[np.float64], epoch: int) -> bool:
        """Whether the path is short enough for the rank-one update (below eq. 45)."""
        constants = self._constants
        started = math.sqrt(1 - (1 - constants.c_sigma) ** (2 * epoch))
        limit = (1.4 + 2 / (constants.n + 1)) * constants.chi_n
        return bool(np.linalg.norm(path_sigma) / started < limit)

    def _update_path_c(
        self, path_c: NDArray[np.float64], step: NDArray[np.float64], h_sigma: bool
    ) -> NDArray[np.float64]:
        old, new = self._path_weights(h_sigma)
        return old * path_c + new * step if h_sigma else old * path_c

    def _path_weights(self, h_sigma: bool) -> tuple[float, float]:
        """Weights of the old path and of the step in the new path (eq. 45)."""
        c_c, mu_eff = self._constants.c_c, self._constants.mu_eff
        return 1 - c_c, math.sqrt(c_c * (2 - c_c) * mu_eff) if h_sigma else 0.0

    def _update_mean(
        self, state: _State[CovarianceT], step: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return state.mean + state.sigma * step  # (eq. 42)

    def _update_sigma(self, sigma: float, path_sigma: NDArray[np.float64]) -> float:
        constants = self._constants
        length = float(np.linalg.norm(path_sigma)) / constants.chi_n
        exponent = constants.c_sigma / constants.d_sigma * (length - 1)  # (eq. 44)
        # At most a factor e per epoch: the tutorial's safeguard for huge populations,
        # where one lucky step could otherwise throw the step size away.
        grown = sigma * math.exp(min(1.0, exponent))
        return float(np.clip(grown, *_SIGMA_LIMITS))

    def _decay(self, h_sigma: bool) -> float:
        """Weight of the old covariance in eq. 47.

        A path stopped by h_sigma carries less variance; δ(h_sigma) keeps as much of
        the old matrix as makes up for it.
        """
        constants = self._constants
        delta = 0.0 if h_sigma else constants.c_c * (2 - constants.c_c)
        return 1 - constants.c_1 - constants.c_mu + constants.c_1 * delta

    # What a variant decides.

    def _check_dimension(self, n: int) -> None:
        """Refuse dimensions the variant cannot serve."""

    def _check_place(self, device: str | None) -> ArrayBackend:
        """Return where populations live; refuse what the variant cannot serve."""
        return place_of(device)

    def _make_constants(self, n: int, population_size: int) -> Constants:
        return Constants.default(n, population_size)

    @abstractmethod
    def _initial_covariance(self, n: int) -> CovarianceT: ...

    @abstractmethod
    def _sample(self, covariance: CovarianceT, normal: Any, generator: Any) -> Any:
        """Turn standard normal numbers, which it may overwrite, into y ~ N(0, C).

        Both have the shape (population_size, n); more can be drawn.
        """

    @abstractmethod
    def _whiten(
        self, covariance: CovarianceT, step: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], Any]:
        """Return C^(-1/2)·step, and what was learnt on the way for the update."""

    @abstractmethod
    def _update_covariance(
        self,
        covariance: CovarianceT,
        path_c: NDArray[np.float64],
        parents: Any,
        h_sigma: bool,
        epoch: int,
        learnt: Any,
    ) -> CovarianceT:
        """Return the next covariance; `parents` are the best steps, best first."""

    @abstractmethod
    def _covariance_to_dict(self, covariance: CovarianceT) -> dict[str, Any]: ...

    @abstractmethod
    def _covariance_from_dict(
        self, state: Mapping[str, Any], n: int
    ) -> CovarianceT: ...

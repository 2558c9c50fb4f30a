"""The reference implementation behind the same interface."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from .random import Seed, generator_from_state, generator_state, new_generator

__all__ = ["CMAPackage"]

# Set by the adapter, each with what to use instead.
_RESERVED = {
    "popsize": "the argument population_size",
    "seed": "the argument seed",
    "randn": "the argument seed",
}
_SILENT = {"verbose": -9, "verb_log": 0, "verb_disp": 0}


def _import_cma() -> Any:
    try:
        import cma
    except ImportError as error:
        raise ImportError(
            "CMAPackage needs the package cma. Install it with: pip install cma"
        ) from error
    return cma


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, Real | np.bool_)


def _check_options(options: Mapping[str, Any] | None, known: Any) -> dict[str, Any]:
    """Return the options as plain values.

    cma evaluates text as Python code, and options travel in states that may come
    from a file: numbers only.
    """
    checked = {}
    for name, value in (options or {}).items():
        if name in _RESERVED:
            raise ValueError(f"Got the option {name!r}: use {_RESERVED[name]} instead.")
        if name not in known:
            raise ValueError(f"Got the option {name!r}, which cma does not know.")
        if not _is_plain(value):
            raise ValueError(
                f"Expected the option {name!r} to be a number, None or a list of "
                f"these. Got {value!r}."
            )
        checked[name] = value.tolist() if hasattr(value, "tolist") else value
    return checked


@dataclass(frozen=True)
class _Live:
    """The package's optimiser, and the population it is waiting to hear about."""

    optimiser: Any
    solutions: list[NDArray[np.float64]] | None = None


@dataclass(frozen=True)
class _History:
    """The orders told are the state; the live optimiser follows from them.

    `live` is None while a call is changing the optimiser. Should that call be
    interrupted, the optimiser is made again from the orders.
    """

    orders: tuple[NDArray[np.intp], ...] = ()
    live: _Live | None = None


class CMAPackage:
    """The optimiser of the package ``cma`` as a strategy.

    For comparisons, and for the options of that package. It draws all random numbers
    from a generator of its own and leaves NumPy's global one alone. It keeps a dense
    matrix unless told otherwise, and its state is the list of all orders told, from
    which `from_state` repeats the run.

    Parameters
    ----------
    mean : array-like of shape (n_parameters,)
        Where to start; at least 2 parameters.
    sigma : float
        Initial step size: the standard deviation of every coordinate.
    population_size : int, default=None
        Candidates per epoch, at least 2; None for 4 + ⌊3 ln n⌋.
    seed : int or numpy.random.SeedSequence, default=None
        Seed of the strategy's own generator. None takes one from the system.
    options : dict, default=None
        Options of ``cma.CMAOptions``, such as ``{"CMA_active": False}``; numbers,
        None and lists of them only.

    Attributes
    ----------
    mean : ndarray of shape (n_parameters,)
        Mean of the search distribution.
    sigma : float
        Step size.
    population_size, n_parameters, epoch : int
        Candidates per epoch, their coordinates, and `tell` calls done.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.evolution import CMAPackage, rank_by_fitness
    >>> strategy = CMAPackage(np.ones(3), sigma=0.5, seed=0)
    >>> for _ in range(100):
    ...     X = strategy.ask()
    ...     strategy.tell(rank_by_fitness(np.sum(X**2, axis=1)))
    >>> bool(np.abs(strategy.mean).max() < 1e-6)
    True
    """

    kind: ClassVar[str] = "cma_package"

    def __init__(
        self,
        mean: ArrayLike,
        sigma: float,
        population_size: int | None = None,
        seed: Seed = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        cma = _import_cma()
        self._start = check_mean(mean)
        if self._start.size < 2:
            raise ValueError(
                "Expected mean to have at least 2 parameters, which cma needs. "
                f"Got {self._start.size}."
            )
        self._sigma = check_sigma(sigma)
        self._population_size = check_population_size(population_size, self._start.size)
        self._options = _check_options(options, cma.CMAOptions())
        self._generator = generator_state(new_generator(seed))
        self._history = _History()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_parameters={self.n_parameters}, "
            f"population_size={self.population_size}, epoch={self.epoch}, "
            f"sigma={self.sigma:.3g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles are made from the state: attribute by attribute, a copy
        # would draw from the same generator.
        return type(self).from_state, (self.state(),)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the search distribution, shape (n_parameters,)."""
        return np.array(self._resume().optimiser.mean, dtype=np.float64)

    @property
    def sigma(self) -> float:
        """Step size."""
        return float(self._resume().optimiser.sigma)

    @property
    def population_size(self) -> int:
        """Number of candidates per epoch."""
        return self._population_size

    @property
    def n_parameters(self) -> int:
        """Number of coordinates of a candidate."""
        return self._start.size

    @property
    def epoch(self) -> int:
        """Number of `tell` calls done."""
        return len(self._history.orders)

    def ask(self) -> NDArray[np.float64]:
        """Return the population of this epoch.

        Returns
        -------
        ndarray of shape (population_size, n_parameters)
            The candidates, one per row. Asking again before `tell` returns the same
            population.
        """
        live = self._resume()
        if live.solutions is None:
            self._history = replace(self._history, live=None)
            live = replace(live, solutions=live.optimiser.ask())
            self._history = replace(self._history, live=live)
        return np.array(live.solutions, dtype=np.float64)

    def tell(self, order: ArrayLike) -> None:
        """Update the distribution from the order of the candidates.

        Parameters
        ----------
        order : array-like of int, shape (population_size,)
            Indices of the rows that `ask` returned, best first, each one once.
        """
        ranked = check_order(order, self.population_size)
        live = self._resume()
        if live.solutions is None:
            raise RuntimeError("tell() needs a population: call ask() first.")
        self._history = replace(self._history, live=None)
        _tell_ranks(live, ranked)
        self._history = _History((*self._history.orders, ranked), _Live(live.optimiser))

    def state(self) -> dict[str, Any]:
        """Return the whole state as a value.

        Returns
        -------
        dict
            Arrays, numbers, strings and nested dicts only: the arguments, the
            generator as it was at the start, and all orders told.
        """
        orders = self._history.orders
        return {
            "kind": self.kind,
            "version": STATE_VERSION,
            "population_size": self.population_size,
            "epoch": self.epoch,
            "mean": self._start.copy(),
            "sigma": self._sigma,
            "options": dict(self._options),
            "generator": dict(self._generator),
            "orders": np.array(orders, dtype=np.int64).reshape(
                len(orders), self.population_size
            ),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Continue from a state, by repeating the run without evaluations.

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
        strategy = cls(
            check_mean(state.get("mean", ())),
            read_number(state, "sigma"),
            read_population_size(state),
            seed=0,
            options=read_mapping(state, "options"),
        )
        strategy._generator = generator_state(
            generator_from_state(read_mapping(state, "generator"))
        )
        shape = (read_integer(state, "epoch"), strategy.population_size)
        orders = read_array(state, "orders", shape).astype(np.intp)
        strategy._history = _History(
            tuple(check_order(order, strategy.population_size) for order in orders)
        )
        return strategy

    def _resume(self) -> _Live:
        """Return the live optimiser, made from the orders if there is none."""
        live = self._history.live
        if live is None:
            live = self._repeated()
            self._history = replace(self._history, live=live)
        return live

    def _repeated(self) -> _Live:
        """Return an optimiser that has been told all orders."""
        try:
            live = _Live(self._new_optimiser())
            for ranked in self._history.orders:
                _tell_ranks(replace(live, solutions=live.optimiser.ask()), ranked)
        except Exception as error:  # asserted, or whatever numbers that ran away do
            raise ValueError(
                f"The state is damaged: cma cannot repeat the run, {error!r}."
            ) from error
        return live

    def _new_optimiser(self) -> Any:
        generator = generator_from_state(self._generator)
        options = {
            **_SILENT,
            **self._options,
            "popsize": self._population_size,
            # cma seeds NumPy's global generator unless the seed is NaN.
            "seed": np.nan,
            "randn": lambda *shape: generator.standard_normal(shape),
        }
        return _import_cma().CMAEvolutionStrategy(
            self._start.copy(), self._sigma, options
        )


def _tell_ranks(live: _Live, ranked: NDArray[np.intp]) -> None:
    """Tell the optimiser the position of each solution as its function value."""
    ranks = np.empty(ranked.size)
    ranks[ranked] = np.arange(ranked.size)
    live.optimiser.tell(live.solutions, ranks.tolist())

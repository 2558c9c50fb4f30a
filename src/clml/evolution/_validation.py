"""Checks of arguments and of states read from somewhere else."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._constants import default_population_size

__all__ = [
    "STATE_VERSION",
    "check_mean",
    "check_order",
    "check_population_size",
    "check_sigma",
    "read_array",
    "read_integer",
    "read_kind",
    "read_mapping",
    "read_number",
    "read_population_size",
]

STATE_VERSION = 1
# Of a state: beyond any use, and little memory for what depends on it alone.
_LARGEST_POPULATION = 2**20
# Integers that floats tell apart.
_LARGEST_INTEGER = 2**53


def check_mean(mean: ArrayLike) -> NDArray[np.float64]:
    """Return the start as a finite float64 vector of its own."""
    try:
        vector = np.array(mean, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"Expected mean to be a vector of numbers. Got {mean!r}."
        ) from error
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            "Expected mean to be a non-empty vector, shape (n_parameters,). "
            f"Got an array of shape {vector.shape}."
        )
    if not np.isfinite(vector).all():
        position = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise ValueError(
            f"Expected mean to be finite. Got {vector[position]} at index {position}."
        )
    return vector


def check_sigma(sigma: float) -> float:
    """Return the step size as a positive finite float."""
    if not isinstance(sigma, Real) or not math.isfinite(sigma) or sigma <= 0:
        raise ValueError(
            f"Expected sigma to be a positive finite number. Got {sigma!r}."
        )
    return float(sigma)


def check_population_size(population_size: int | None, n_parameters: int) -> int:
    """Return the population size, the default one for None."""
    if population_size is None:
        return default_population_size(n_parameters)
    if not isinstance(population_size, Integral) or population_size < 2:
        raise ValueError(
            "Expected population_size to be None or an integer of at least 2. "
            f"Got {population_size!r}."
        )
    return int(population_size)


def check_order(order: ArrayLike, population_size: int) -> NDArray[np.intp]:
    """Return the order as indices if it names every candidate exactly once."""
    expected = (
        f"Expected order to hold each of the indices 0 to {population_size - 1} "
        "once, best first."
    )
    indices = np.asarray(order)
    if indices.shape != (population_size,):
        raise ValueError(f"{expected} Got an array of shape {indices.shape}.")
    if indices.dtype.kind not in "iu":
        raise ValueError(f"{expected} Got values of type {indices.dtype}.")
    outside = indices[(indices < 0) | (indices >= population_size)]
    if outside.size:
        raise ValueError(f"{expected} Got the index {outside[0]}.")
    counts = np.bincount(indices.astype(np.intp), minlength=population_size)
    if (counts != 1).any():
        repeated = int(np.argmax(counts))
        raise ValueError(
            f"{expected} Got the index {repeated} {counts[repeated]} times."
        )
    return indices.astype(np.intp)


def read_kind(state: Mapping[str, Any]) -> str:
    """Return the kind of strategy a state belongs to."""
    if not isinstance(state, Mapping):
        raise ValueError(f"Expected the state to be a dict. Got {type(state)}.")
    if "kind" not in state:
        raise ValueError("The state is damaged: it has no 'kind'.")
    version = state.get("version")
    if version is None or str(version) != str(STATE_VERSION):
        raise ValueError(
            f"Expected a state of version {STATE_VERSION}. Got {version!r}."
        )
    return str(state["kind"])


def check_kind(state: Mapping[str, Any], kind: str, name: str) -> None:
    """Refuse a state that another class than `name` wrote."""
    found = read_kind(state)
    if found != kind:
        raise ValueError(
            f"Expected a state of kind {kind!r} for {name}. Got {found!r}."
        )


def _entry(state: Mapping[str, Any], key: str) -> Any:
    if key not in state:
        raise ValueError(f"The state is damaged: it has no {key!r}.")
    return state[key]


def read_mapping(state: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a nested dict of a state."""
    value = _entry(state, key)
    if not isinstance(value, Mapping):
        raise ValueError(
            f"The state is damaged: expected {key!r} to be a dict, got {type(value)}."
        )
    return value


def read_array(
    state: Mapping[str, Any], key: str, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return an array of a state: a finite float64 copy in C order.

    The memory order is made canonical because the last bits of a matrix product may
    depend on it.
    """
    try:
        array = np.array(_entry(state, key), dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"The state is damaged: {key!r} is no array of numbers ({error})."
        ) from error
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(
            f"The state is damaged: expected {key!r} to be finite with shape {shape}, "
            f"got shape {array.shape}."
        )
    return array


def read_number(state: Mapping[str, Any], key: str) -> float:
    """Return a finite non-negative number of a state."""
    number = float(read_array(state, key, ()))
    if number < 0:
        raise ValueError(
            f"The state is damaged: expected {key!r} not to be negative, got {number}."
        )
    return number


def read_integer(state: Mapping[str, Any], key: str) -> int:
    """Return a non-negative integer of a state."""
    number = read_number(state, key)
    if number != int(number) or number > _LARGEST_INTEGER:
        raise ValueError(
            f"The state is damaged: expected {key!r} to be an integer of at most "
            f"{_LARGEST_INTEGER}, got {number}."
        )
    return int(number)


def read_population_size(state: Mapping[str, Any]) -> int:
    """Return the population size of a state, which decides what memory is taken."""
    size = read_integer(state, "population_size")
    if size > _LARGEST_POPULATION:
        raise ValueError(
            "The state is damaged: expected 'population_size' to be at most "
            f"{_LARGEST_POPULATION}, got {size}."
        )
    return size

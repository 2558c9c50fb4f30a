"""Argument checks shared by the public functions of this package."""

from collections.abc import Sequence
from numbers import Integral
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
RandomSource: TypeAlias = np.random.Generator | np.random.RandomState

MAX_LOSSES = 31  # moocore's limit


def as_numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return `values` as a C-contiguous float64 array, or refuse them by name."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array of numbers. Got {values!r}."
        ) from error
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers. "
            f"Got {type(values).__name__} of dtype {array.dtype}."
        )
    # The shape is restored because ascontiguousarray makes a number a vector.
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)


def check_losses(L: npt.ArrayLike) -> FloatArray:
    """Return `L` as a float64 array of shape (m, o) with 1 <= o <= 31."""
    losses = as_numbers(L, "L")
    if losses.ndim != 2 or losses.shape[1] == 0:
        raise ValueError(
            "L must have shape (m, o): one row per member, at least one column. "
            f"Got shape {losses.shape}."
        )
    if losses.shape[1] > MAX_LOSSES:
        raise ValueError(
            f"L must have at most {MAX_LOSSES} columns. Got shape {losses.shape}."
        )
    return losses


def check_vector(vector: npt.ArrayLike, name: str) -> FloatArray:
    """Return `vector` as a float64 array of shape (o,) with o >= 1."""
    losses = as_numbers(vector, name)
    if losses.ndim != 1 or losses.size == 0:
        raise ValueError(
            f"{name} must be one loss vector of shape (o,). Got shape {losses.shape}."
        )
    return losses


def check_reference(reference: npt.ArrayLike, n_losses: int) -> FloatArray:
    """Return a number, a vector or a set of references as an array (r, o)."""
    references = as_numbers(reference, "reference")
    if references.ndim == 0:
        references = np.full((1, n_losses), references)
    elif references.ndim == 1:
        references = references[np.newaxis]
    if references.ndim != 2 or len(references) == 0 or references.shape[1] != n_losses:
        raise ValueError(
            f"reference must be a number, a vector of length {n_losses} or a "
            f"non-empty set of shape (r, {n_losses}), as L has {n_losses} columns. "
            f"Got shape {np.shape(reference)}."
        )
    if not np.isfinite(references).all():
        raise ValueError(f"reference must be finite. Got {reference!r}.")
    return references


def check_choice(value: object, name: str, allowed: Sequence[str | None]) -> None:
    """Refuse a `value` that is not among the `allowed` ones."""
    # Not `value in allowed`: an array would be compared element by element.
    if not (value is None or isinstance(value, str)) or value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}. Got {value!r}.")


def check_n_samples(n_samples: int) -> int:
    """Return `n_samples` as an int of at least 1."""
    if isinstance(n_samples, bool) or not isinstance(n_samples, Integral):
        raise TypeError(f"n_samples must be an integer. Got {n_samples!r}.")
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1. Got {n_samples!r}.")
    return int(n_samples)


def check_random_state(random_state: int | RandomSource | None) -> None:
    """Refuse what neither is nor seeds a generator."""
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState
    ):
        return
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise TypeError(
            "random_state must be None, an integer, a numpy Generator or a "
            f"RandomState. Got {random_state!r}."
        )
    if random_state < 0:
        raise ValueError(
            f"random_state must not be a negative integer. Got {random_state!r}."
        )


def as_generator(random_state: int | RandomSource | None) -> RandomSource:
    """Return the generator that a checked `random_state` is or seeds."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def pad_single_loss(
    losses: FloatArray, references: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give a single loss a second column of extent 1, which changes no volume.

    moocore and the sweep over slices both need at least two columns.
    """
    if losses.shape[1] > 1:
        return losses, references
    return (
        np.column_stack((losses, np.zeros(len(losses)))),
        np.column_stack((references, np.ones(len(references)))),
    )


def box_volume(lower: FloatArray, upper: FloatArray) -> float:
    """Return the volume between two corners, refusing one that is not finite."""
    with np.errstate(over="ignore"):
        volume = float(np.prod(upper - lower))
    if not np.isfinite(volume):
        raise ValueError(
            "L must span a finite volume below the reference. "
            f"Got smallest losses {lower.tolist()}, reference {upper.tolist()}."
        )
    return volume

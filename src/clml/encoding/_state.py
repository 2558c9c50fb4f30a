"""Reading states that may come from anywhere: entries are as they should be, or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_array(
    state: Mapping[str, Any], name: str, dtype: Any, size: int | None = None
) -> NDArray:
    """Return a copy of an array of one dimension that the state holds.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding._state import read_array
    >>> read_array({"scale": np.ones(2)}, "scale", np.float64, 3)
    Traceback (most recent call last):
    ...
    ValueError: The state's 'scale' must have 3 entries, got 2.
    """
    array = state.get(name)
    dtype = np.dtype(dtype)
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        raise ValueError(
            f"The state's {name!r} must be an array of {dtype} with one dimension, got "
            f"{_described(array)}."
        )
    if size is not None and array.size != size:
        raise ValueError(
            f"The state's {name!r} must have {size} entries, got {array.size}."
        )
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"The state's {name!r} must hold finite numbers.")
    return np.array(array, order="C")


def read_flag(state: Mapping[str, Any], name: str) -> bool:
    """Return a bool that the state holds."""
    flag = state.get(name)
    if not isinstance(flag, bool | np.bool_):
        raise ValueError(
            f"The state's {name!r} must be True or False, got {_described(flag)}."
        )
    return bool(flag)


def read_number(
    state: Mapping[str, Any], name: str, least: float, most: float
) -> float:
    """Return a number between two others that the state holds."""
    number: Any = state.get(name)
    is_number = isinstance(number, float | int | np.floating | np.integer)
    if not is_number or isinstance(number, bool) or not least <= number <= most:
        raise ValueError(
            f"The state's {name!r} must be a number from {least:g} to {most:g}, got "
            f"{_described(number)}."
        )
    return float(number)


def require(condition: Any, name: str, expected: str) -> None:
    """Refuse a state of which an entry is not as it should be."""
    if not condition:
        raise ValueError(f"The state's {name!r} must {expected}.")


def _described(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"one of {thing.dtype} with shape {thing.shape}"
    if isinstance(thing, float | int | None):
        return repr(thing)
    return type(thing).__name__

"""What is said of attributes that are missing, of another kind or another shape."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp


def require(condition: bool, problem: str) -> None:
    """Raise ValueError unless a condition holds."""
    if not condition:
        raise ValueError(problem)


def find(value: Any, path: str) -> Any:
    """Return an attribute, with dots one of an attribute."""
    for name in path.split("."):
        if not hasattr(value, name):
            raise ValueError(f"the fitted attribute {path} is missing")
        value = getattr(value, name)
    return value


def find_a(kind: Any, value: Any, path: str) -> Any:
    """Return an attribute that must be of a class, or of one of several."""
    found = find(value, path)
    if not isinstance(found, kind):
        raise ValueError(f"{path} cannot be of {type(found).__name__}")
    return found


def check_array(
    path: str,
    array: Any,
    kinds: str,
    shape: tuple[str | int, ...],
    lengths: dict[str, int],
) -> None:
    """Check kind and shape; lengths by name are learnt where they are first met."""
    require(
        (isinstance(array, np.ndarray) or sp.issparse(array))
        and array.dtype.kind in kinds
        and array.ndim == len(shape),
        f"{path} is not an array {shape} of kind {kinds!r}",
    )
    for length, expected in zip(array.shape, shape, strict=True):
        if isinstance(expected, str):
            expected = lengths.setdefault(expected, length)
        require(length == expected, f"{path} has shape {array.shape}, not {shape}")


def check_finite(path: str, values: Any) -> None:
    """Refuse numbers that are NaN or infinite; predictions of them would be nonsense.

    Parameters
    ----------
    path : str
        Of what they are called in the error.
    values : number, array or sparse matrix
    """
    stored = values.data if sp.issparse(values) else values
    try:
        finite = bool(np.isfinite(stored).all())
    except TypeError:  # an integer beyond all floats
        finite = False
    require(finite, f"{path} is not finite")


def check_positive(path: str, values: Any) -> None:
    """Refuse what is divided by unless it is positive and finite."""
    check_finite(path, values)
    require(bool((np.asarray(values) > 0).all()), f"{path} is not positive")


def find_number(value: Any, path: str) -> float:
    """Return an attribute that must be a finite number."""
    found = find_a(Real, value, path)
    check_finite(path, found)
    return found


def check_history(estimator: Any) -> None:
    """Check that every quantity has one value an epoch."""
    n_epochs = find_a(Integral, estimator, "n_epochs_")
    for name, values in find_a(dict, estimator, "history_").items():
        require(
            isinstance(values, np.ndarray) and values.shape[:1] == (n_epochs,),
            f"history_[{name!r}] does not hold {n_epochs} epochs",
        )

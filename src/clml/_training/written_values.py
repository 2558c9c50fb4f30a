"""Searches, networks and encodings as plans, files and command lines write them.

The written form is a table: its entry ``kind`` names the class, the others are
parameters. ``{"kind": "cma", "sigma0": 0.5}`` is ``CMA(sigma0=0.5)``. What is read is
not trusted: a table names one of the kinds here, never a class to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._support.value import Value
from ..encoding import (
    Bins,
    GaussianKernel,
    LaplaceKernel,
    Quantiles,
    Robust,
    Standardized,
)
from ..network import PaperNetwork, WideNetwork
from .searches import SEARCHES

#: By the names that stand for them.
KINDS: dict[str, type[Value]] = {
    **SEARCHES,
    "paper": PaperNetwork,
    "wide": WideNetwork,
    "bins": Bins,
    "gaussian_kernel": GaussianKernel,
    "laplace_kernel": LaplaceKernel,
    "quantiles": Quantiles,
    "robust": Robust,
    "standardized": Standardized,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_PLAIN = (bool, int, float, str, type(None))


def is_written(value: Any) -> bool:
    """Tell whether something is the table of a value."""
    return isinstance(value, Mapping) and "kind" in value


def read_value(written: Mapping[str, Any]) -> Value:
    """Return the value that a table stands for; its parameters are checked at ``fit``.

    Raises
    ------
    ValueError
        For another kind, a parameter that the kind does not have, or one that is no
        number, text, truth value or list of such.

    Examples
    --------
    >>> from clml._training.written_values import read_value
    >>> read_value({"kind": "wide", "hidden": [64], "dropout": 0.1})
    WideNetwork(hidden=[64], dropout=0.1)
    >>> read_value({"kind": "gaussian_kernel", "columns": {"kind": "bins"}})
    GaussianKernel(columns=Bins())
    """
    name = written.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"kind must be one of {list(KINDS)}, got {name!r}.")
    kind = KINDS[name]
    given = {key: value for key, value in written.items() if key != "kind"}
    known = list(kind._defaults())
    for key, value in list(given.items()):
        if key not in known:
            raise ValueError(
                f"kind = {name!r} has the parameters {known}, got {key!r}."
            )
        if key == "columns" and is_written(value) and value["kind"] != name:
            given[key] = read_value(value)  # what a kernel compares rows by
            continue
        members = value if isinstance(value, list) else [value]
        if not all(isinstance(member, _PLAIN) for member in members):
            raise ValueError(
                f"{key} of kind = {name!r} must be a number, text, truth value or a "
                f"list of such, got {value!r}."
            )
    return kind(**given)


def write_value(value: Value) -> dict[str, Any]:
    """Return the table of a value, all its parameters in it.

    Raises
    ------
    TypeError
        For one of another class, subclasses included.

    Examples
    --------
    >>> from clml import Ascent
    >>> from clml._training.written_values import write_value
    >>> write_value(Ascent(init="surrogate"))  # doctest: +NORMALIZE_WHITESPACE
    {'kind': 'ascent', 'learning_rate': None, 'batch_size': None, 'smoothing': 0.5,
     'weight_decay': None, 'init': 'surrogate'}
    """
    if type(value) not in _NAMES:
        raise TypeError(
            f"value must be one of {list(KINDS)}, got {type(value).__name__}."
        )
    params = value.get_params(deep=False)
    plain = {name: _plain(param) for name, param in params.items()}
    return {"kind": _NAMES[type(value)], **plain}


def _plain(param: Any) -> Any:
    if isinstance(param, Value):
        return write_value(param)
    if isinstance(param, np.ndarray | np.generic):
        return param.tolist()
    return [_plain(one) for one in param] if isinstance(param, tuple | list) else param


def with_values_read(setting: Any) -> Any:
    """Return a setting with the tables of values in it read, at any depth."""
    if is_written(setting):
        return read_value(setting)
    if isinstance(setting, list):
        return [with_values_read(one) for one in setting]
    if type(setting) is dict:
        return {name: with_values_read(one) for name, one in setting.items()}
    return setting


def with_values_written(setting: Any) -> Any:
    """Return a setting with the values in it as tables; all others as they are."""
    if type(setting) in _NAMES:
        return write_value(setting)
    if isinstance(setting, list):
        return [with_values_written(one) for one in setting]
    if type(setting) is dict:
        return {name: with_values_written(one) for name, one in setting.items()}
    return setting

"""Descriptions that are values: given to an estimator, compared, cloned, searched."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np


class Value:
    """What an estimator takes as a parameter and scikit-learn can look into.

    A subclass stores the arguments of its constructor under their names, unchecked,
    and has no others. It then works in ``clone``, ``get_params(deep=True)`` and in the
    grids of searches.

    Examples
    --------
    >>> from clml._support.value import Value
    >>> class Point(Value):
    ...     def __init__(self, x=0, *, y=0):
    ...         self.x = x
    ...         self.y = y
    >>> Point(1)
    Point(x=1)
    >>> Point(1).set_params(y=2) == Point(1, y=2)
    True
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the names of the parameters, with their defaults if they have any."""
        if cls.__init__ is object.__init__:
            return {}
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"{cls.__name__}.__init__ must name its parameters, got {parameter}"
                )
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; ``deep`` also those of values within."""
        found = {}
        for name in self._defaults():
            value = found[name] = getattr(self, name)
            if deep and isinstance(value, Value):
                within = value.get_params().items()
                found |= {f"{name}__{inner}": given for inner, given in within}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, ``a__b`` for b of the value a; all of them or none."""
        names = list(self._defaults())
        own: dict[str, Any] = {}
        within: dict[str, dict[str, Any]] = {}
        for key, given in params.items():
            name, _, inner = key.partition("__")
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {names}."
                )
            if inner:
                within.setdefault(name, {})[inner] = given
            else:
                own[name] = given
        for name, inner_params in within.items():
            value = own.get(name, getattr(self, name))
            if not isinstance(value, Value):
                raise ValueError(
                    f"{name} of {type(self).__name__} has no parameters, got {value!r}."
                )
            # A copy: the value may be another estimator's, too.
            copy = type(value)(**value.get_params(deep=False))
            own[name] = copy.set_params(**inner_params)
        self.__dict__.update(own)
        return self

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, others = self.get_params(False), other.get_params(False)
        return all(_equal(mine[name], others[name]) for name in mine)

    # They can be changed, so they are no keys.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if not _equal(getattr(self, name), default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return type(one) is type(other) and bool(one == other)

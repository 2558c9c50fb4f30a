"""Small classes that are their parameters: compared, shown, cloned, searched over."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np


class Value:
    """What is nothing but the parameters that its constructor stored.

    A subclass's ``__init__`` stores each argument unchanged under its own name and does
    nothing else. ``sklearn.base.clone`` and grids (``encoding__limit``) then work, two
    values with equal parameters are equal, and the text of one is code that makes it.
    Parameters can be set, so values are not hashable.

    Examples
    --------
    >>> from clml._value import Value
    >>> class Step(Value):
    ...     def __init__(self, rate=0.1, *, steps=5):
    ...         self.rate = rate
    ...         self.steps = steps
    >>> Step(rate=0.2)
    Step(rate=0.2)
    >>> Step(0.2).set_params(steps=7).get_params()
    {'rate': 0.2, 'steps': 7}
    >>> Step(steps=5) == Step()
    True
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the constructor's parameters and their defaults, if any, in order."""
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
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of parameters that have parameters come, too, as
            ``name__inner``.

        Returns
        -------
        dict
        """
        parameters: dict[str, Any] = {}
        for name in self._defaults():
            value = getattr(self, name)
            parameters[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                for inner, what in value.get_params(deep=True).items():
                    parameters[f"{name}__{inner}"] = what
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; ``name__inner`` sets one of a parameter's own.

        Returns
        -------
        self
        """
        known = self._defaults()
        nested: dict[str, dict[str, Any]] = {}
        # Names are looked at first: what is refused changes nothing.
        for key, value in parameters.items():
            name, divider, inner = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}. It has "
                    f"{', '.join(known) or 'none'}."
                )
            if divider:
                nested.setdefault(name, {})[inner] = value
        for name in nested:
            if not hasattr(parameters.get(name, getattr(self, name)), "set_params"):
                raise ValueError(
                    f"{name!r} of {type(self).__name__} has no parameters of its own, "
                    f"got {name}__{next(iter(nested[name]))}."
                )
        for key, value in parameters.items():
            if "__" not in key:
                setattr(self, key, value)
        for name, inner_parameters in nested.items():
            getattr(self, name).set_params(**inner_parameters)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if not _same(getattr(self, name), default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)

"""What tells one fit from another: values, data and code as text.

Equal text for equal ones, in every process; other text for others. Installed packages
are known by name and version, everything else by what it holds: arrays by their
entries, functions and classes by their code and all that it uses, objects by their
state. What cannot be told apart that way is an error: no fit may take the answer of
another one.
"""

from __future__ import annotations

import _thread
import copyreg
import enum
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from . import own_code as _own_code
from .own_code import MISSING

# Arrays of more entries are described by a digest.
_MANY = 1000
# Numbers that are copied at a time where an array has no plain order in memory.
_TOGETHER = 1 << 17
_PLAIN = (bool, int, float, str, bytes)
# What a clone of an estimator keeps beside its parameters.
_CLONED = ("_metadata_request", "_sklearn_output_config")
# What a class has without being told, or says about its text alone.
_OF_ANY_CLASS = _own_code.ABOUT_THE_TEXT | {
    "__abstractmethods__",
    "__dict__",
    "__module__",
    "__qualname__",
    "__weakref__",
    "_abc_impl",
}
_LOCKS = (_thread.LockType, _thread.RLock)
_ON_THE_HEAP = 1 << 9  # a flag of classes


def as_json(value: Any) -> Any:
    """Return a description of a value that JSON can hold, the same at every run.

    See :class:`Describer`, which also tells the packages that it met.

    Parameters
    ----------
    value : object

    Examples
    --------
    >>> from clml._support.fingerprint import as_json
    >>> as_json({"a": (1, None), "b": float("inf"), "c": {2, 1}})
    {'a': [1, None], 'b': {'float': 'inf'}, 'c': {'set': [1, 2]}}
    """
    return Describer().of(value)


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces.

    Examples
    --------
    >>> from clml._support.fingerprint import canonical
    >>> canonical({"b": 1, "a": [None, 0.5]})
    '{"a":[null,0.5],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def is_plain(value: Any) -> bool:
    """Whether a value comes back from JSON as it is.

    Examples
    --------
    >>> from clml._support.fingerprint import is_plain
    >>> [is_plain(v) for v in ({"a": [1]}, {"a": (1,)}, {1: 2}, float("nan"), {3})]
    [True, False, False, False, False]
    """
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def data_digest(data: Any) -> str:
    """Return a digest of rows: arrays and sparse matrices, or anything with a pickle.

    The same for the same numbers, however they lie in memory.

    Parameters
    ----------
    data : array, sparse matrix, frame, list ...

    Examples
    --------
    >>> import numpy as np
    >>> from clml._support.fingerprint import data_digest
    >>> X = np.arange(6.0).reshape(2, 3)
    >>> data_digest(X) == data_digest(np.asfortranarray(X))
    True
    >>> data_digest(X) == data_digest(X.reshape(3, 2))
    False
    """
    digest = hashlib.sha256()
    for piece in _pieces(data):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(data: Any) -> Iterator[Any]:
    if sp.issparse(data):
        rows = sp.csr_array(data)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()  # sorts columns, too
        yield repr(("sparse", rows.shape)).encode()
        yield from _pieces(rows.data)
        for places in (rows.indices, rows.indptr):
            yield repr(places.shape).encode()
            yield from _entries(places, np.int64)
    elif _is_frame(data):
        # By columns: frames of the same values lie in memory in many ways.
        names = [canonical(as_json(name)) for name in data.columns]
        yield repr(("frame", data.shape, names)).encode()
        yield from _pieces(data.index.to_numpy())
        for column in range(data.shape[1]):
            yield from _of_column(data.iloc[:, column])
    elif _is_frame(data, 1):
        yield repr(("series", len(data), canonical(as_json(data.name)))).encode()
        yield from _pieces(data.index.to_numpy())
        yield from _of_column(data)
    elif isinstance(data, np.ma.MaskedArray):
        yield b"masked"
        yield from _pieces(np.asarray(data.data))
        yield from _pieces(np.ma.getmaskarray(data))
    elif isinstance(data, np.ndarray) and data.dtype.names:
        yield repr(("fields", data.dtype.names, data.shape)).encode()
        for name in data.dtype.names:  # between fields may be anything
            yield from _pieces(data[name])
    elif isinstance(data, np.ndarray) and not data.dtype.hasobject:
        yield repr((data.dtype.str, data.shape)).encode()
        yield from _entries(data)
    else:
        yield repr(type(data).__name__).encode()
        yield str(joblib.hash(data)).encode()


def _of_column(values: Any) -> Iterator[Any]:
    yield str(values.dtype).encode()
    if hasattr(values, "cat"):
        yield repr(values.cat.ordered).encode()
        yield from _pieces(values.cat.categories.to_numpy())
    yield from _pieces(values.to_numpy())


def _entries(array: Any, kind: Any = None) -> Iterator[Any]:
    """Yield the bytes of an array row by row, without a copy of all of it."""
    if array.ndim == 0 or (array.flags.c_contiguous and kind in (None, array.dtype)):
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return
    step = max(1, _TOGETHER // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        block = np.ascontiguousarray(array[start : start + step], dtype=kind)
        yield block.reshape(-1).view(np.uint8)


def _is_frame(value: Any, ndim: int = 2) -> bool:
    return hasattr(type(value), "iloc") and getattr(value, "ndim", 0) == ndim


class Describer:
    """Describes values, and remembers the installed packages that they come from.

    Plain values are themselves. Estimators are described by their class and settings;
    and by their state, too, where it is not a clone of them that is fitted. Functions,
    classes and objects have their names and a digest of what they are made of.

    Attributes
    ----------
    packages : dict of str to str
        Name to version.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from clml._support.fingerprint import Describer
    >>> describer = Describer()
    >>> describer.of([GaussianNB(), len])  # doctest: +NORMALIZE_WHITESPACE
    [{'class': 'sklearn.naive_bayes:GaussianNB',
      'settings': {'priors': None, 'var_smoothing': 1e-09}}, 'builtins:len']
    >>> sorted(describer.packages)
    ['python', 'sklearn']
    >>> sorted(describer.of(lambda x: x + 1))
    ['code', 'function']
    """

    def __init__(self) -> None:
        self.packages: dict[str, str] = {}
        self._installed: dict[str, bool] = {}
        # Within a digest: what was met, by its id, with its number. It is kept, too:
        # nothing else may get its id meanwhile.
        self._met: dict[int, tuple[int, Any]] | None = None

    def of(self, value: Any, cloned: bool = True) -> Any:
        """Return the description of a value.

        Parameters
        ----------
        value : object
        cloned : bool, default=True
            Whether an estimator is cloned before it is fitted, so that its settings
            alone count.
        """
        try:
            return self._described(value, cloned)
        except RecursionError as error:
            raise _unknown(value, error) from None

    def knows(self, module: str | None) -> bool:
        """Whether a module is of an installed package, which is then remembered."""
        if module is None:
            return False
        if module not in self._installed:
            package = _own_code.package_of(module)
            self._installed[module] = package is not None
            if package is not None:
                self.packages[package[0]] = package[1]
        return self._installed[module]

    def _described(self, value: Any, cloned: bool = False) -> Any:
        if self._met is not None and isinstance(value, np.generic):
            value = np.asarray(value)  # its type counts
        plain = _plain(value)
        if plain is not MISSING:
            return plain
        kind = type(value)
        if kind is tuple:
            entries = [self._described(v, cloned) for v in value]
            # As a setting a list is as good.
            return entries if self._met is None else {"tuple": entries}
        if kind is list:
            return self._once(
                value, lambda: [self._described(v, cloned) for v in value]
            )
        if kind in (set, frozenset):
            members = [self._apart(v, cloned) for v in value]
            return {"set": sorted(members, key=canonical)}
        if kind in (dict, MappingProxyType):
            return self._once(value, lambda: self._of_mapping(value))
        if kind in (np.ndarray, np.memmap):
            return self._of_array(value, cloned)
        if (
            isinstance(value, np.ndarray)
            or sp.issparse(value)
            or _is_frame(value)
            or _is_frame(value, 1)
        ):
            return {"data": self._of_class(kind), "sha256": data_digest(value)}
        if isinstance(value, ModuleType):
            return self._of_module(value)
        if isinstance(value, type):
            return self._of_class(value)
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if hasattr(kind, "get_params") and self._met is None:
            return self._of_estimator(value, cloned)
        return self._of_object(value)

    def _once(self, value: Any, parts: Callable[[], Any]) -> Any:
        """Return the parts of a thing; a second time in a digest, its number.

        What uses itself ends there, and what many use does not multiply.
        """
        if self._met is None:
            return parts()
        if id(value) in self._met:
            return {"same as": self._met[id(value)][0]}
        self._met[id(value)] = (len(self._met), value)
        return parts()

    def _apart(self, value: Any, cloned: bool = False) -> Any:
        """Return a description that does not depend on what was met beside it."""
        plain = _plain(value)
        if plain is not MISSING or self._met is None:
            return self._described(value, cloned)
        met = self._met
        self._met = dict(met)
        try:
            return self._described(value, cloned)
        finally:
            self._met = met

    def _sealed(
        self, about: dict[str, Any], name: str, value: Any, parts: Callable[[], Any]
    ) -> dict[str, Any]:
        """Return what a thing is called, and a digest of its parts under a name.

        Within a digest these are the parts themselves.
        """
        if self._met is not None:
            return self._once(value, lambda: {**about, name: self._described(parts())})
        self._met = {id(value): (0, value)}
        try:
            text = canonical(self._described(parts()))
        except Exception as error:
            raise _unknown(value, error) from None
        finally:
            self._met = None
        return {**about, name: hashlib.sha256(text.encode()).hexdigest()}

    def _of_mapping(self, value: Mapping[Any, Any]) -> Any:
        if all(type(key) is str for key in value):
            return {key: self._described(value[key]) for key in sorted(value)}
        told = [(self._apart(key), key) for key in value]
        told.sort(key=lambda pair: canonical(pair[0]))
        return {"dict": [[name, self._described(value[key])] for name, key in told]}

    def _of_array(self, value: np.ndarray, cloned: bool) -> Any:
        if value.dtype == object:
            return self._described(value.tolist(), cloned)
        usual = value.dtype.kind == "U" or value.dtype in (bool, np.int64, np.float64)
        if self._met is None and usual and 0 < value.size <= _MANY:
            return self._described(value.tolist(), cloned)
        return {"array": list(value.shape), "sha256": data_digest(value)}

    def _of_module(self, value: ModuleType) -> Any:
        about = {"module": value.__name__}
        if self.knows(value.__name__):
            return about
        return self._sealed(about, "code", value, lambda: _parts_of_module(value))

    def _of_class(self, value: type) -> Any:
        path, home = _path(value), value.__module__
        # Nobody makes a class without a place on the heap in Python.
        if self.knows(home) and (
            not value.__flags__ & _ON_THE_HEAP
            or _own_code.find(home, value.__qualname__) is value
        ):
            return path
        return self._sealed(
            {"class": path}, "code", value, lambda: _parts_of_class(value)
        )

    def _of_function(self, value: FunctionType) -> Any:
        # A decorator gives its function the name of what it decorates: only the place
        # of its code tells whose it is.
        installed = self.knows(value.__globals__.get("__name__"))
        if (
            installed
            and self.knows(value.__module__)
            and _own_code.find(value.__module__, value.__qualname__) is value
        ):
            return _path(value)

        def parts() -> list[Any]:
            code, namespace = value.__code__, value.__globals__
            return [
                code,
                value.__defaults__,
                value.__kwdefaults__,
                [_content(cell) for cell in value.__closure__ or ()],
                vars(value),
                {} if installed else _own_code.used_globals(code, namespace),
            ]

        return self._sealed({"function": _path(value)}, "code", value, parts)

    def _of_estimator(self, value: Any, cloned: bool) -> dict[str, Any]:
        told = self._of_class(type(value))
        described = told if isinstance(told, dict) else {"class": told}
        cloned = cloned and not _keeps_its_state(value)
        params = value.get_params(deep=False)
        described["settings"] = {
            name: self._described(params[name], cloned) for name in sorted(params)
        }
        if cloned:
            own = getattr(value, "__dict__", {})
            state = {name: own[name] for name in _CLONED if name in own}
        else:
            try:
                state = _state_beside(value, params)
            except Exception as error:
                raise _unknown(value, error) from None
        if not state:
            return described
        return self._sealed(described, "state", value, lambda: state)

    def _of_object(self, value: Any) -> Any:
        home, name = (
            getattr(value, part, None) for part in ("__module__", "__qualname__")
        )
        if (
            callable(value)
            and isinstance(home, str)
            and isinstance(name, str)
            and _own_code.find(home, name) is value
        ):
            if self.knows(home):
                return _path(value)
            compiled = _compiled_code(home)
            if compiled is not None:
                return {"function": _path(value), "code": compiled}
        kind = type(value)
        return self._sealed(
            {"object": _path(kind)},
            "sha256",
            value,
            lambda: [kind, *_parts_of_object(value)],
        )


def _unknown(value: Any, reason: Exception) -> TypeError:
    return TypeError(
        "settings must be values that can be told apart by what they hold, got "
        f"{value!r}: {reason}"
    )


def _plain(value: Any) -> Any:
    """Return a number or text as JSON has it, ``MISSING`` if a value is more."""
    if value is None or isinstance(value, bool):
        return value
    if type(value) not in _PLAIN and not isinstance(value, enum.Enum | np.generic):
        return MISSING
    # Members of enumerations and the like become what they are equal to.
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return MISSING


def _path(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _content(cell: Any) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # nothing yet
        return []


def _compiled_code(module: str) -> str | None:
    """Return a digest of the file of a compiled module, None if it is none."""
    file = _own_code.module_file(module)
    if file is None or not file.name.endswith(tuple(EXTENSION_SUFFIXES)):
        return None
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _parts_of_module(value: ModuleType) -> Any:
    return _compiled_code(value.__name__) or {
        name: member
        for name, member in vars(value).items()
        if not (name.startswith("__") and name.endswith("__"))
    }


def _parts_of_class(value: type) -> Any:
    return _compiled_code(value.__module__) or [
        type(value),
        value.__bases__,
        {k: v for k, v in vars(value).items() if k not in _OF_ANY_CLASS},
    ]


def _keeps_its_state(estimator: Any) -> bool:
    """Whether a clone of an estimator is as fitted as the estimator itself."""
    usual = BaseEstimator.__sklearn_clone__
    return getattr(type(estimator), "__sklearn_clone__", usual) is not usual


def _state_beside(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return what an estimator holds beside its parameters."""
    make, arguments, state, *more = _parts_of_object(estimator)
    if isinstance(state, dict):
        state = {
            name: value
            for name, value in state.items()
            if name != "_sklearn_version" and params.get(name, MISSING) is not value
        }
    usual = make is copyreg.__newobj__ and len(arguments) == 1  # type: ignore[attr-defined]
    return state if usual and not any(more) else [make, arguments, state, *more]


def _parts_of_object(value: Any) -> list[Any]:
    """Return what an object is made of: what pickle would write, if nothing else."""
    if isinstance(value, CodeType):
        return [_own_code.signature(value), _own_code.instructions(value)]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, functools._lru_cache_wrapper):
        return [value.__wrapped__, value.cache_parameters()]
    if isinstance(value, MemberDescriptorType | GetSetDescriptorType):
        return [value.__name__]
    if isinstance(value, _LOCKS):
        return []
    if type(value).__module__.startswith("numba.") and hasattr(value, "py_func"):
        return [value.py_func, value.targetoptions]
    if hasattr(type(value), "get_tree_stats"):
        # A tree of neighbours, which counts how often it was asked.
        return [part for part in value.__getstate__() if not isinstance(part, int)]
    reduce = copyreg.dispatch_table.get(type(value))
    parts = reduce(value) if reduce else value.__reduce_ex__(4)
    if isinstance(parts, str):  # the name of a thing that is one of its kind
        return [parts]
    make, arguments, state, members, items, setter = (*parts, *[None] * 6)[:6]
    return [
        make,
        arguments,
        state,
        None if members is None else list(members),
        None if items is None else dict(items),
        setter,
    ]

"""Values and data as text: equal for equal ones, different for others."""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import json
import math
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

# Arrays of more entries are described by a digest.
_MANY = 1000
# Packages whose functions do not change while a fit is broken off.
_INSTALLED = ("clml", "numpy", "scipy", "sklearn")


def with_code(value: Any) -> Any:
    """Return a description like that of ``as_json``, with the code of what is called.

    A function that can be imported is otherwise known by its name, and may be another
    one tomorrow.

    Examples
    --------
    >>> from clml._fingerprint import with_code
    >>> with_code(("hamming", len))
    ['hamming', 'builtins:len']
    """
    if isinstance(value, list | tuple):
        return [with_code(one) for one in value]
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, str) or home.partition(".")[0] in _INSTALLED:
        return as_json(value)
    kind = value if isinstance(value, type) else type(value)
    functions = [value] if isinstance(value, FunctionType) else vars(kind).values()
    code = [
        _described(_parts_of_code(function.__code__), ())
        for function in functions
        if isinstance(function, FunctionType)
    ]
    if not code:
        return as_json(value)
    digest = hashlib.sha256(canonical(code).encode()).hexdigest()
    return {"value": as_json(value), "code": digest}


def data_digest(data: Any) -> str:
    """Return a digest of rows: arrays and sparse matrices, or anything with a pickle.

    The same for the same numbers, however they lie in memory.

    Parameters
    ----------
    data : array, sparse matrix, frame, list ...

    Examples
    --------
    >>> import numpy as np
    >>> from clml._fingerprint import data_digest
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
        rows = sp.csr_array(data, copy=True)
        rows.sum_duplicates()  # sorts columns, too
        yield repr(("sparse", rows.shape)).encode()
        yield from _pieces(rows.data)
        yield from _pieces(rows.indices.astype(np.int64, copy=False))
        yield from _pieces(rows.indptr.astype(np.int64, copy=False))
    elif hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        # By columns: frames of the same values lie in memory in many ways.
        yield repr(("frame", data.shape, list(map(str, data.columns)))).encode()
        for column in range(data.shape[1]):
            yield from _pieces(data.iloc[:, column].to_numpy())
    elif isinstance(data, np.ma.MaskedArray):
        yield b"masked"
        yield from _pieces(np.asarray(data.data))
        yield from _pieces(np.ma.getmaskarray(data))
    elif isinstance(data, np.ndarray) and not data.dtype.hasobject:
        yield repr((data.dtype.str, data.shape)).encode()
        yield np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    else:
        yield repr(type(data).__name__).encode()
        yield str(joblib.hash(data)).encode()


def as_json(value: Any) -> Any:
    """Return a description of a value that JSON can hold, the same at every run.

    Plain values are themselves. Estimators are described by their class and settings,
    functions and classes that can be imported by their names, and everything else by
    its class and a hash of what it holds.

    Parameters
    ----------
    value : object

    Examples
    --------
    >>> from clml._fingerprint import as_json
    >>> as_json({"a": (1, None), "b": float("inf"), "c": {2, 1}})
    {'a': [1, None], 'b': {'float': 'inf'}, 'c': {'set': [1, 2]}}
    """
    return _described(value, ())


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces.

    Examples
    --------
    >>> from clml._fingerprint import canonical
    >>> canonical({"b": 1, "a": [None, 0.5]})
    '{"a":[null,0.5],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def is_plain(value: Any) -> bool:
    """Whether a value comes back from JSON as it is.

    Examples
    --------
    >>> from clml._fingerprint import is_plain
    >>> [is_plain(v) for v in ({"a": [1]}, {"a": (1,)}, {1: 2}, float("nan"), {3})]
    [True, False, False, False, False]
    """
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _described(value: Any, within: tuple[int, ...]) -> Any:
    """Return the description of a value inside of others, known by their ids."""
    if value is None or isinstance(value, bool):
        return value
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
    if id(value) in within:  # such as a function that calls itself
        return {"same as": len(within) - within.index(id(value))}
    within = (*within, id(value))
    if isinstance(value, Mapping):
        return {_key(k, within): _described(v, within) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_described(v, within) for v in value]
    if isinstance(value, set | frozenset):
        members = [_described(v, within) for v in value]
        return {"set": sorted(members, key=canonical)}
    if isinstance(value, np.ndarray) and not value.dtype.names:
        if value.size > _MANY and not value.dtype.hasobject:
            return {"array": list(value.shape), "sha256": data_digest(value)}
        return _described(value.tolist(), within)
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        return {
            "class": _path(type(value)),
            "settings": {k: _described(params[k], within) for k in sorted(params)},
        }
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    if isinstance(value, type) or _can_be_imported(value):
        return _path(value)
    return _hashed(value, within)


def _key(key: Any, within: tuple[int, ...]) -> str:
    if key is None or isinstance(key, str | int | float):
        return str(key)
    return canonical(_described(key, within))


def _path(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _can_be_imported(value: Any) -> bool:
    """Whether a function is what its module has under its name."""
    name = getattr(value, "__qualname__", None)
    module = getattr(value, "__module__", None)
    # What the name stands for in the program itself is another thing at every run.
    if not callable(value) or not name or not module or module == "__main__":
        return False
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return False
    return found is value


def _hashed(value: Any, within: tuple[int, ...]) -> dict[str, Any]:
    """Return the class of a value and the hash of what it is made of."""
    try:
        if isinstance(value, FunctionType):
            parts = _parts_of_function(value)
        elif isinstance(value, CodeType):
            parts = _parts_of_code(value)
        else:
            parts = _parts_of_object(value)
        text = canonical([_described(part, within) for part in parts])
    except Exception as error:
        raise TypeError(
            "settings must be values that can be told apart by what they hold, got "
            f"{value!r}: {error}"
        ) from None
    return {
        "object": _path(type(value)),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def _parts_of_function(value: FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    used = sorted(_names_in(value.__code__) & set(value.__globals__))
    return [
        value.__code__,
        value.__defaults__,
        value.__kwdefaults__,
        cells,
        {name: value.__globals__[name] for name in used},
    ]


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)


def _parts_of_code(code: CodeType) -> list[Any]:
    """Return what code does, without where it was written."""
    kept = ("co_code", "co_consts", "co_names", "co_varnames", "co_freevars")
    counts = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags")
    return [getattr(code, name) for name in (*kept, *counts)]


def _parts_of_object(value: Any) -> list[Any]:
    """Return what pickle would write of an object."""
    reduce = copyreg.dispatch_table.get(type(value))
    parts = reduce(value) if reduce else value.__reduce_ex__(4)
    if isinstance(parts, str):  # the name of a thing that is one of its kind
        return [parts]
    # Members of lists and of dicts come as iterators.
    more = [None if part is None else list(part) for part in parts[3:5]]
    return [*parts[:3], *more]

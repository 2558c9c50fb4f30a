"""JSON and arrays become values again. Both are untrusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._base.multilabel import LabelClasses
from .._support.csr_format import check_csr_parts
from ..losses import AbsentLoss
from ._encode import DEEPEST
from ._npy import is_number, plain_dtype
from ._objects import build_dataclass, build_estimator, build_value
from ._random import random_state_from
from .skops import check_ways, read_foreign

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_LARGEST_LENGTH = 2**63 - 1


def _check_keys(node: Any, *keys: str) -> None:
    if not isinstance(node, dict) or set(node) != set(keys):
        raise ValueError(f"expected a JSON object with the keys {keys}")


def _check_list(node: Any) -> list[Any]:
    if not isinstance(node, list):
        raise ValueError(f"expected a JSON array, got {type(node).__name__}")
    return node


def _check_pairs(node: Any) -> list[Any]:
    for item in _check_list(node):
        if len(_check_list(item)) != 2:
            raise ValueError("expected pairs of a key and a value")
    return node


def _check_text(node: Any) -> str:
    if not isinstance(node, str):
        raise ValueError(f"expected a JSON string, got {type(node).__name__}")
    return node


def _check_shape(node: Any) -> tuple[int, ...]:
    for length in _check_list(node):
        if type(length) is not int or not 0 <= length <= _LARGEST_LENGTH:
            raise ValueError("a shape must be made of lengths")
    return tuple(node)


class Decoder:
    """Turns JSON into values.

    Parameters
    ----------
    take_array : callable
        Returns an array by its number; ValueError if there is none.
    trusted : collection of str, default=()
        Types that objects of other libraries may be made of, beside those of the
        packages that are accepted.
    objects : bool, default=True
        Whether there may be estimators and the like among the values.

    Examples
    --------
    >>> from clml.persistence._decode import Decoder
    >>> Decoder([].pop).decode([1, {"type": "tuple", "value": [0.5, None]}])
    [1, (0.5, None)]
    """

    def __init__(
        self,
        take_array: Callable[[Any], NDArray],
        trusted: Collection[str] = (),
        objects: bool = True,
    ):
        self._take_array = take_array
        self._trusted = trusted
        self._depth = 0
        # Each with the ways to all that it holds.
        self._estimators: list[tuple[Any, int]] = []
        self._n_objects = self._n_ways = 0
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": _float,
            "tuple": lambda node: tuple(self._list(node)),
            "dict": self._items,
            "map": self._pairs,
            "bunch": self._bunch,
            "classes": self._classes,
            "numpy_str": lambda node: np.str_(_check_text(node)),
            "scalar": _scalar,
            "array": take_array,
            "str_array": _str_array,
            "csr_matrix": lambda node: self._csr(node, sp.csr_matrix),
            "csr_array": lambda node: self._csr(node, sp.csr_array),
            "random_state": lambda node: random_state_from(self._items(node)),
        }
        if objects:
            self._readers |= {
                "estimator": self._estimator,
                "skops": self._foreign,
                "same": self._same,
                "dataclass": self._dataclass,
                "description": self._value,
                "absent_loss": lambda node: AbsentLoss(_check_text(node)),
            }

    def decode(self, node: Any) -> Any:
        """Return the value; ValueError if the JSON is not that of a value."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError(f"values are nested more than {DEEPEST} deep")
        value = self._decode(node)
        self._depth -= 1
        return value

    def _decode(self, node: Any) -> Any:
        if isinstance(node, list):
            return self._list(node)
        if not isinstance(node, dict):
            return node
        _check_keys(node, "type", "value")
        kind = _check_text(node["type"])
        if kind not in self._readers:
            raise ValueError(f"values of type {kind!r} are unknown")
        return self._readers[kind](node["value"])

    def _list(self, node: Any) -> list[Any]:
        return [self.decode(item) for item in _check_list(node)]

    def _items(self, node: Any) -> dict[str, Any]:
        return self._pairs([[_check_text(k), v] for k, v in _check_pairs(node)])

    def _pairs(self, node: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for item in _check_pairs(node):
            key = self.decode(item[0])
            if type(key) not in (str, int, float):
                raise ValueError(f"a key cannot be of {type(key).__name__}")
            if key in found:
                raise ValueError(f"the key {key!r} is there twice")
            found[key] = self.decode(item[1])
        return found

    def _bunch(self, node: Any) -> Bunch:
        bunch = Bunch()
        bunch.update(self._items(node))
        return bunch

    def _classes(self, node: Any) -> LabelClasses:
        classes = LabelClasses(self._list(node))
        if not all(type(values) is np.ndarray for values in classes):
            raise ValueError("the classes of a label must be an array")
        return classes

    def _csr(self, node: Any, kind: type) -> Any:
        _check_keys(node, "shape", "data", "indices", "indptr")
        shape = _check_shape(node["shape"])
        data, indices, indptr = (
            self.decode(node[name]) for name in ("data", "indices", "indptr")
        )
        for part in (data, indices, indptr):
            if type(part) is not np.ndarray or not is_number(part.dtype):
                raise ValueError("a sparse array must be made of arrays of numbers")
        if len(shape) != 2 or any(
            part.dtype not in (np.int32, np.int64) for part in (indices, indptr)
        ):
            raise ValueError("a sparse array must have two axes and integer indices")
        matrix = kind((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        check_csr_parts(data, indices, indptr, shape)
        # The constructor may have chosen other types of integers, and less of them.
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _estimator(self, node: Any) -> Any:
        _check_keys(node, "class", "parameters", "attributes")
        before = self._n_ways
        self._count(1, 1)
        parts = (self._items(node[part]) for part in ("parameters", "attributes"))
        estimator = build_estimator(node["class"], *parts)
        self._estimators.append((estimator, self._n_ways - before))
        return estimator

    def _foreign(self, node: Any) -> Any:
        content = self._take_array(node)
        if content.dtype != np.uint8 or content.ndim != 1:
            raise ValueError("what skops wrote must be bytes")
        value, (n_objects, n_ways) = read_foreign(content.tobytes(), self._trusted)
        self._count(n_objects, n_ways)
        self._estimators.append((value, n_ways))
        return value

    def _same(self, node: Any) -> Any:
        if type(node) is not int or not 0 <= node < len(self._estimators):
            raise ValueError(f"there is no estimator {node!r} before")
        estimator, n_ways = self._estimators[node]
        self._count(0, n_ways)
        return estimator

    def _count(self, n_objects: int, n_ways: int) -> None:
        self._n_objects += n_objects
        self._n_ways += n_ways
        check_ways(self._n_objects, self._n_ways)

    def _dataclass(self, node: Any) -> Any:
        _check_keys(node, "class", "fields")
        return build_dataclass(node["class"], self._items(node["fields"]))

    def _value(self, node: Any) -> Any:
        _check_keys(node, "class", "parameters")
        return build_value(node["class"], self._items(node["parameters"]))


def _float(node: Any) -> float:
    if _check_text(node) not in _FLOATS:
        raise ValueError(f"{node!r} is not a float")
    return _FLOATS[node]


def _scalar(node: Any) -> Any:
    if len(_check_list(node)) != 2:
        raise ValueError("a number must have a type and a value")
    dtype = plain_dtype(node[0])
    content = bytes.fromhex(_check_text(node[1]))
    if not is_number(dtype) or len(content) != dtype.itemsize:
        raise ValueError(f"a number of type {dtype} must have {dtype.itemsize} bytes")
    if dtype.kind == "b" and content[0] > 1:
        raise ValueError("a boolean must be 0 or 1")
    return np.frombuffer(content, dtype)[0]


def _str_array(node: Any) -> NDArray[np.object_]:
    _check_keys(node, "shape", "values")
    shape = _check_shape(node["shape"])
    values = [_check_text(value) for value in _check_list(node["values"])]
    if math.prod(shape) != len(values):
        raise ValueError(f"an array of shape {shape} cannot hold {len(values)} values")
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)

"""Values become JSON; their arrays are set aside.

Values that JSON has are written as they are. Every other one is an object with two
keys, its ``type`` and its ``value``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._base.multilabel import LabelClasses
from ..losses import AbsentLoss
from ._npy import is_number, is_plain
from ._objects import dataclass_parts, estimator_parts
from ._random import random_state_values
from ._registry import DATACLASSES, ESTIMATORS, VALUES, is_registered
from .skops import dump_foreign, is_foreign

#: Values within values; a file that goes deeper is not one of ours.
DEEPEST = 50


def _typed(name: str, value: Any) -> dict[str, Any]:
    return {"type": name, "value": value}


class Encoder:
    """Turns values into JSON and collects their arrays.

    Classes are compared exactly: what a subclass adds would be lost. Estimators that
    are met again, such as a fitted one by its name, are one again when decoded.

    Attributes
    ----------
    arrays : list of arrays

    Examples
    --------
    >>> import numpy as np
    >>> from clml.persistence._encode import Encoder
    >>> encoder = Encoder()
    >>> encoder.encode([1, (0.5, None), np.zeros(3)])  # doctest: +NORMALIZE_WHITESPACE
    [1, {'type': 'tuple', 'value': [0.5, None]}, {'type': 'array', 'value': 0}]
    >>> encoder.arrays
    [array([0., 0., 0.])]
    """

    def __init__(self) -> None:
        self.arrays: list[NDArray] = []
        self._depth = 0
        # With the estimators themselves: the id of one that is gone is used again.
        self._estimators: dict[int, tuple[int, Any]] = {}

    def encode(self, value: Any) -> Any:
        """Return the JSON of a value; TypeError for what cannot be saved."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise TypeError(f"values are nested more than {DEEPEST} deep")
        node = self._encode(value)
        self._depth -= 1
        return node

    def _encode(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else _typed("float", repr(value))
        if kind is list:
            return self._list(value)
        if kind is tuple:
            return _typed("tuple", self._list(value))
        if kind is dict:
            if all(type(key) is str for key in value):
                return _typed("dict", self._items(value))
            return _typed("map", self._pairs(value))
        if kind is Bunch:
            return _typed("bunch", self._items(value))
        if kind is LabelClasses:
            return _typed("classes", self._list(value))
        if isinstance(value, np.generic):
            return _scalar(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind in (sp.csr_matrix, sp.csr_array):
            return self._csr(value)
        if kind is np.random.RandomState:
            return _typed("random_state", self._items(random_state_values(value)))
        if kind is AbsentLoss:
            return _typed("absent_loss", value.name)
        if is_registered(VALUES, kind):
            parts = {"parameters": value.get_params(deep=False)}
            return _typed("description", self._object(kind.__name__, parts))
        if is_registered(ESTIMATORS, kind) or is_foreign(value):
            return self._estimator(value)
        if is_registered(DATACLASSES, kind):
            parts = dataclass_parts(value)
            return _typed("dataclass", self._object(kind.__name__, parts))
        raise TypeError(
            f"an object of {kind.__module__}.{kind.__qualname__} cannot be saved"
        )

    def _list(self, values: Any) -> list[Any]:
        return [self.encode(value) for value in values]

    def _items(self, values: dict[str, Any]) -> list[Any]:
        return [[key, self.encode(value)] for key, value in values.items()]

    def _pairs(self, values: dict[Any, Any]) -> list[Any]:
        for key in values:
            if type(key) not in (str, int, float) or key != key:
                raise TypeError(
                    f"the keys of a dict must be str or numbers, got {key!r}"
                )
        return [[self.encode(k), self.encode(v)] for k, v in values.items()]

    def _estimator(self, value: Any) -> Any:
        if id(value) in self._estimators:
            return _typed("same", self._estimators[id(value)][0])
        kind = type(value)
        if is_registered(ESTIMATORS, kind):
            parts = estimator_parts(value)
            node = _typed("estimator", self._object(kind.__name__, parts))
        else:
            content = np.frombuffer(dump_foreign(value), dtype=np.uint8)
            node = _typed("skops", self._array(content)["value"])
        self._estimators[id(value)] = (len(self._estimators), value)
        return node

    def _object(self, name: str, parts: dict[str, dict[str, Any]]) -> Any:
        node: dict[str, Any] = {"class": name}
        for part, values in parts.items():
            node[part] = []
            for key, value in values.items():
                try:
                    node[part].append([key, self.encode(value)])
                except TypeError as error:
                    raise TypeError(f"{key} of {name}: {error}") from error
        return node

    def _array(self, array: NDArray) -> Any:
        if array.dtype == object:
            values = array.ravel().tolist()
            if not all(type(value) in (str, np.str_) for value in values):
                raise TypeError("an array of objects that are not str cannot be saved")
            content = {
                "shape": list(array.shape),
                "values": list(map(str.__str__, values)),
            }
            return _typed("str_array", content)
        if not is_plain(array.dtype):
            raise TypeError(f"an array of type {array.dtype} cannot be saved")
        self.arrays.append(array)
        return _typed("array", len(self.arrays) - 1)

    def _csr(self, matrix: Any) -> Any:
        if matrix.ndim != 2 or not is_number(matrix.dtype):
            raise TypeError(
                f"a sparse array of type {matrix.dtype} and shape {matrix.shape} "
                "cannot be saved"
            )
        content = {"shape": list(map(int, matrix.shape))}
        for name in ("data", "indices", "indptr"):
            content[name] = self._array(getattr(matrix, name))
        return _typed(type(matrix).__name__, content)


def _scalar(value: Any) -> Any:
    if type(value) is np.str_:
        # str(value) would leave zeros at its end out.
        return _typed("numpy_str", str.__str__(value))
    if not is_number(value.dtype):
        raise TypeError(f"a number of type {value.dtype} cannot be saved")
    return _typed("scalar", [value.dtype.str, value.tobytes().hex()])

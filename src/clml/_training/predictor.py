"""An ensemble as it predicts: members that read the same rows are one network.

First layers lie side by side in one matrix and last ones, times the members' scales,
below each other. Linear members add up to one, and with features of a kernel to weights
of its landmarks. Rows are summed by :mod:`clml._support.rowwise`, each by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.rowwise import Packed, PackedTable
from .._support.threads import shared
from ..encoding import FittedEncoding, FittedKernel, Hats
from ..network import WideLayout

# Rows that are predicted at a time: what lies between layers stays in the cache.
_BLOCK = 480

#: What makes of rows, read in one way or the other, the sum (n, K) of some members'
#: logits, each times its scale.
Part = Callable[[Any], NDArray[np.floating]]
_Views = Sequence[dict[str, NDArray]]


class Predictor:
    """What sums the members of an ensemble.

    Parameters
    ----------
    parts : iterable of pair of FittedEncoding or None, and Part
        What encodes the rows that each part takes. None is for rows as they are given.
    n_labels : int
    centred : bool
        Whether rows have to be dense to be encoded; else they have to be sparse.
    """

    def __init__(
        self,
        parts: Iterable[tuple[FittedEncoding | None, Part]],
        n_labels: int,
        centred: bool,
    ):
        self._n_labels, self._centred = n_labels, centred
        self._groups: list[tuple[FittedEncoding | None, list[Part]]] = []
        for encoding, part in parts:
            for other, together in self._groups:
                if _are_same(encoding, other):
                    together.append(part)
                    break
            else:
                self._groups.append((encoding, [part]))

    def logits(self, X: Any, executor: Executor | None = None) -> NDArray[np.float64]:
        """Return the sum (n, K) of the members' logits, each times its scale.

        Each row is on its own: the result is the same for any threads.

        Parameters
        ----------
        X : array or sparse matrix (n, D)
        executor : Executor, default=None
        """

        def of_block(start: int) -> NDArray[np.float64]:
            rows = X[start : start + _BLOCK]
            if self._centred and sp.issparse(rows):
                rows = rows.toarray()  # as the rows that were fitted
            elif not self._centred:
                rows = sp.csr_array(rows)
            total = np.zeros((rows.shape[0], self._n_labels))
            for encoding, parts in self._groups:
                encoded = rows if encoding is None else encoding.apply(rows)
                for part in parts:
                    total += part(encoded)
            return total

        starts = range(0, max(X.shape[0], 1), _BLOCK)
        return np.concatenate(shared(executor, of_block, starts))


def _are_same(one: FittedEncoding | None, other: FittedEncoding | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.encodes_as(other)


def wide_part(
    encoding: FittedEncoding | FittedKernel,
    layout: WideLayout,
    networks: Sequence[NDArray[np.float32]],
    scale: NDArray[np.float64],
) -> tuple[FittedEncoding | None, Part]:
    """Return wide networks on one encoding as they predict, and what encodes for them.

    Parameters
    ----------
    encoding : FittedEncoding or FittedKernel
    layout : WideLayout
    networks : sequence of float32 arrays
    scale : float64 array (members,)
    """
    views = [layout.views(network) for network in networks]
    if isinstance(encoding, FittedKernel):
        if layout.hidden:
            return None, _WidePart(layout, views, scale, _of_features(encoding))
        return encoding.columns, _of_landmarks(encoding, views, scale)
    hats = Hats(encoding)
    if hats.pays:
        return None, _WidePart(layout, views, scale, _of_entries(hats))
    inputs = _of_dense if encoding.centred else _of_sparse
    return encoding, _WidePart(layout, views, scale, inputs)


def _of_landmarks(
    encoding: FittedKernel, views: _Views, scale: NDArray[np.float64]
) -> Part:
    """Return linear members on features of a kernel."""
    matrix, bias = _sum_of_linear(views, scale)
    weights = Packed(encoding.projection.astype(np.float64) @ matrix, bias)
    return lambda encoded: weights.product(encoding.near(encoded))


def _sum_of_linear(
    views: _Views, scale: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matrix (D, K) and the bias (K,) of a sum of linear networks."""
    matrix = _weighted([v["W1"] for v in views], scale)
    if "linear" in views[0]:
        matrix += _weighted([v["linear"] for v in views], scale)
    return matrix, _weighted([v["b1"] for v in views], scale)


def _weighted(
    arrays: Sequence[NDArray], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum of arrays, each times its scale."""
    total = np.zeros(arrays[0].shape)
    for array, factor in zip(arrays, scale, strict=True):
        total += factor * array
    return total


#: What makes a layer's matrix (columns, H) and bias (H,) a function of rows; it is told
#: whether to leave out what is below 0.
_Inputs = Callable[[NDArray[np.float32], NDArray, bool], Part]


def _of_dense(matrix: NDArray[np.float32], bias: NDArray, rectified: bool) -> Part:
    return Packed(matrix, bias, rectified).product


def _of_sparse(matrix: NDArray[np.float32], bias: NDArray, rectified: bool) -> Part:
    table = PackedTable(matrix, bias, rectified)

    def product(encoded: Any) -> NDArray:
        indices = encoded.indices.astype(np.int32, copy=False)
        return table.product(encoded.data, indices, encoded.indptr)

    return product


def _of_entries(hats: Hats) -> _Inputs:
    def inputs(matrix: NDArray[np.float32], bias: NDArray, rectified: bool) -> Part:
        values = hats.table(matrix).astype(np.float32)
        table = PackedTable(values, bias, rectified)
        return lambda rows: table.product(*hats.entries(rows))

    return inputs


def _of_features(encoding: FittedKernel) -> _Inputs:
    def inputs(matrix: NDArray[np.float32], bias: NDArray, rectified: bool) -> Part:
        layer = Packed(matrix, bias, rectified)
        return lambda rows: layer.product(encoding.apply(rows))

    return inputs


class _WidePart:
    """Members of hidden layers, or linear ones on encoded columns.

    Parameters
    ----------
    layout : WideLayout
    views : sequence of dict
        The weights of each member by name.
    scale : float64 array (members,)
    inputs : _Inputs
        How the first layer reads rows.
    """

    def __init__(
        self,
        layout: WideLayout,
        views: _Views,
        scale: NDArray[np.float64],
        inputs: _Inputs,
    ):
        self._n_members, self._is_tanh = len(views), layout.activation == "tanh"
        self._direct: Part | None = None
        self._layers: list[list[Part]] = []
        if not layout.hidden:
            matrix, bias = _sum_of_linear(views, scale)
            self._direct = inputs(matrix.astype(np.float32), bias, False)
            return
        if layout.linear_path:
            matrix = _weighted([v["linear"] for v in views], scale)
            bias = np.zeros(layout.n_labels)
            self._direct = inputs(matrix.astype(np.float32), bias, False)
        last, rectified = len(layout.hidden) + 1, not self._is_tanh
        first = np.concatenate([v["W1"] for v in views], axis=1)
        bias = np.concatenate([v["b1"] for v in views])
        self._layers.append([inputs(first, bias, rectified)])
        for i in range(2, last):
            self._layers.append(
                [_of_dense(v[f"W{i}"], v[f"b{i}"], rectified) for v in views]
            )
        outputs = [s * v[f"W{last}"] for v, s in zip(views, scale, strict=True)]
        bias = _weighted([v[f"b{last}"] for v in views], scale)
        self._last = Packed(np.concatenate(outputs, dtype=np.float32), bias)

    def __call__(self, rows: Any) -> NDArray[np.floating]:
        direct = 0.0 if self._direct is None else self._direct(rows)
        if not self._layers:
            return np.asarray(direct)
        units = rows
        for i, layers in enumerate(self._layers):
            own = np.split(units, self._n_members, axis=1) if i else [rows]
            found = [layer(one) for layer, one in zip(layers, own, strict=True)]
            units = np.concatenate(found, axis=1) if i else found[0]
            if self._is_tanh:
                # In one piece: NumPy may round what lies apart differently.
                units = np.tanh(np.ascontiguousarray(units))
        return self._last.product(units) + direct

"""One compiled pass from rows to logits, of one network or averaged over several."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.compiled import compiled
from .._support.memory import BatchSize
from .._support.simd import LANES, ROWS, address, multiply_sparse
from ._forward import Rows, Weights, block_logits
from ._layout import Layout
from ._scaling import Scaling
from .lanes import LaneWeights, logits_of_rows, room_for_rows
from .range import check_sparse_range, scaled_features

# Networks side by side in double precision: what is predicted should not depend on
# which rows were asked for together.
_PRECISION = np.float64
_ROWS_AT_A_TIME = 8_192
# The same of one network, whose first layer is a matrix product.
_ROWS_OF_A_PRODUCT = 1_024
# In place of CSR's pointers.
_DENSE = np.zeros(1, dtype=np.int64)
# Rows from which on a matrix product pays where most lanes would be empty.
_MANY_ROWS = 16


class Predictor:
    """The average of networks, laid out once for any number of rows.

    Rows are worked on in blocks, half as large where memory runs out. Rows whose
    features overflow are refused.

    Parameters
    ----------
    thetas : float array (n,) or (members, n)
    layout : Layout
    scaling : Scaling

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import Layout, Predictor, Scaling, forward
    >>> layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    >>> thetas = np.linspace([-1.0, 2.0], [1.0, -2.0], layout.size).T
    >>> X = np.eye(3)
    >>> found = Predictor(thetas, layout, Scaling.identity(3)).logits(X)
    >>> bool(np.allclose(found, forward(thetas, X, layout).mean(axis=0)))
    True
    """

    def __init__(self, thetas: NDArray, layout: Layout, scaling: Scaling):
        self._thetas = np.atleast_2d(thetas).astype(_PRECISION)
        self._layout = layout
        self._scaling = scaling
        self._columns = np.arange(layout.n_features)
        # A matrix product may round differently for another number of rows.
        self._portion = BatchSize("rows", exact=len(self._thetas) > 1)

    def logits(self, X: Any) -> NDArray[np.float64]:
        """Return the logits (rows, K) of dense or CSR rows (rows, D)."""
        n_rows = X.shape[0]
        multiplied = len(self._thetas) == 1 and n_rows >= _MANY_ROWS
        fill = self._fill_by_product if multiplied else self._fill
        out = np.empty((n_rows, self._layout.n_labels))

        def some(start: int, stop: int) -> None:
            fill(X[start:stop], out[start:stop])

        at_once = _ROWS_OF_A_PRODUCT if multiplied else _ROWS_AT_A_TIME
        self._portion.for_each_batch(n_rows, at_once, some)
        return out

    def _fill_by_product(self, X: Any, out: NDArray[np.float64]) -> None:
        rows = Rows.from_features(X, self._scaling, _PRECISION)
        weights = self._of_products[rows.csr is not None]
        out[:] = block_logits(weights, rows, 0, rows.n_rows)[0]

    def _fill(self, X: Any, out: NDArray[np.float64]) -> None:
        rows: tuple[NDArray, ...]
        if sp.issparse(X):
            check_sparse_range(X, self._scaling, _PRECISION)
            bundles = self._of_sparse_rows
            rows = (X.data.astype(_PRECISION), X.indices, X.indptr)
        else:
            bundles = self._of_dense_rows
            scaled = scaled_features(X, self._scaling, _PRECISION)
            rows = (scaled.ravel(), self._columns, _DENSE)
        out[:] = 0
        for b in bundles:
            _add_logits(*rows, b.first, b.hidden, b.last, b.n_candidates, out)
        out /= len(self._thetas)

    @cached_property
    def _of_dense_rows(self) -> list[LaneWeights]:
        return self._laid_out(self._no_rows[0])

    @cached_property
    def _of_sparse_rows(self) -> list[LaneWeights]:
        """Weights with the scaling folded in: sparse rows are used as they come."""
        return self._laid_out(self._no_rows[1])

    @property
    def _no_rows(self) -> tuple[Rows, Rows]:
        """Dense and sparse rows, none of them: they say how to lay weights out."""
        empty = (np.empty(0, _PRECISION),) * 3
        return (
            Rows(np.empty((0, 0)), None, self._scaling, 0),
            Rows(None, empty, self._scaling, 0),
        )

    @cached_property
    def _of_products(self) -> tuple[Weights, Weights]:
        """Weights of one network, for dense rows and for sparse ones."""
        dense, sparse = self._no_rows
        return (
            Weights.from_thetas(self._thetas, self._layout, dense),
            Weights.from_thetas(self._thetas, self._layout, sparse),
        )

    def _laid_out(self, rows: Rows) -> list[LaneWeights]:
        return [
            LaneWeights.from_thetas(self._thetas[i : i + LANES], self._layout, rows)
            for i in range(0, len(self._thetas), LANES)
        ]


# By the identity of the weights, which is one as long as they live.
_predictors: dict[int, tuple[weakref.ref, Layout, Scaling, Predictor]] = {}


def predictor_of(thetas: NDArray, layout: Layout, scaling: Scaling) -> Predictor:
    """Return the predictor of networks, the same one for the same arrays.

    It is kept apart from estimators, whose copies and files need none, and is let go
    with the weights.
    """
    key = id(thetas)
    known = _predictors.get(key)
    if known is not None:
        owner, known_layout, known_scaling, predictor = known
        same = known_layout == layout and known_scaling is scaling
        if same and owner() is thetas:
            return predictor
    predictor = Predictor(thetas, layout, scaling)

    def let_go(gone: weakref.ref) -> None:
        # Another array may have the number by now.
        if _predictors.get(key, (None,))[0] is gone:
            del _predictors[key]

    _predictors[key] = (weakref.ref(thetas, let_go), layout, scaling, predictor)
    return predictor


@compiled
def _add_logits(  # type: ignore[no-untyped-def]
    data, indices, indptr, first, hidden, last, n_candidates, out
):
    """Add the logits of up to LANES networks to ``out`` (rows, K).

    ``indptr`` of a single entry means dense rows, one after another in ``data``, and
    ``indices`` then are all columns.
    """
    rows, k = out.shape
    inputs, c, _ = first.shape
    width = indices.shape[0]
    product = np.zeros((ROWS, c, LANES), first.dtype)
    entries, sums, logits = room_for_rows(c, k, first)
    for i in range(0, rows, ROWS):
        here = min(ROWS, rows - i)
        for r in range(here):
            for j in range(c):
                for a in range(LANES):
                    product[r, j, a] = first[inputs - 1, j, a]
            start, place, n = (i + r) * width, 0, width
            if indptr.shape[0] > 1:
                start, place = indptr[i + r], indptr[i + r]
                n = indptr[i + r + 1] - start
            if n > 0:
                multiply_sparse(
                    address(data, start),
                    address(indices, place),
                    n,
                    address(first, 0),
                    c,
                    address(product, r * c * LANES),
                )
        logits_of_rows(product, 0, hidden, last, entries, sums, logits)
        for r in range(here):
            for j in range(k):
                total = 0.0
                for a in range(n_candidates):
                    total += logits[r, j, a]
                out[i + r, j] += total

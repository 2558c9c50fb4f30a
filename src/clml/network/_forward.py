"""The forward pass: logits of one network or of a population, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._layout import Layout
from ._scaling import Scaling
from .kernels import activate, sparse_product
from .range import check_sparse_range, scaled_features


@dataclass(frozen=True, eq=False)
class Rows:
    """Input rows in the form the network reads: with the bias' column of ones.

    Attributes
    ----------
    dense : float array (n, D + 1) or None
        Scaled, with a last column of ones.
    csr : (data, indices, indptr) or None
        Unscaled; the scaling goes into the first layer. The data are float64 where
        that would cancel most of the digits of a single precision.
    scaling : Scaling
    n_rows : int
    """

    dense: NDArray | None
    csr: tuple[NDArray, NDArray, NDArray] | None
    scaling: Scaling
    n_rows: int

    @classmethod
    def from_features(
        cls,
        X: Any,
        scaling: Scaling | None = None,
        dtype: type = np.float32,
    ) -> Rows:
        """Prepare dense or sparse features (n, D); sparse ones are never densified."""
        n, d = X.shape
        scaling = Scaling.identity(d) if scaling is None else scaling
        if sp.issparse(X):
            X = X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            check_sparse_range(X, scaling, dtype)
            kind = dtype if _is_gentle(scaling, X.data) else np.float64
            arrays = (X.data.astype(kind), X.indices, X.indptr)
            return cls(None, arrays, scaling, n)
        with_ones = scaled_features(X, scaling, dtype, n_more=1)
        with_ones[:, d] = 1
        return cls(with_ones, None, scaling, n)

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """What the rows are made of."""
        if self.csr is not None:
            return self.csr
        assert self.dense is not None
        return (self.dense,)

    def with_arrays(self, arrays: Sequence[NDArray]) -> Rows:
        """Return other rows of the same form and scaling, from their ``arrays``."""
        if self.csr is None:
            (dense,) = arrays
            return replace(self, dense=dense, n_rows=len(dense))
        data, indices, indptr = arrays
        return replace(self, csr=(data, indices, indptr), n_rows=len(indptr) - 1)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take."""
        return sum(array.nbytes for array in self.arrays)

    def take(self, rows: NDArray[np.integer]) -> Rows:
        """Return some of the rows alone."""
        if self.csr is None:
            assert self.dense is not None
            return replace(self, dense=self.dense[rows], n_rows=len(rows))
        taken = sp.csr_array(self.csr, shape=(self.n_rows, len(self.scaling.mean)))[
            rows
        ]
        arrays = (taken.data, taken.indices, taken.indptr)
        return replace(self, csr=arrays, n_rows=len(rows))


def _is_gentle(scaling: Scaling, data: NDArray) -> bool:
    """Return whether x/s and m/s of x − m are small enough to be subtracted as float32.

    Both enter the first layer's sum apart. Numbers up to 100 leave an error of 1e-5.
    """
    with np.errstate(over="ignore"):
        means = np.abs(scaling.mean / scaling.scale)
        largest = np.abs(data).max(initial=0.0)
        return bool(
            (means <= 100.0).all() and largest < 1e30 and (scaling.scale > 1e-30).all()
        )


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of some candidates, laid out for the products of a block.

    Attributes
    ----------
    first : array (D + 1, candidates · C)
        The first layers side by side, so that one product serves all candidates;
        float64 with the scaling folded in when the rows are sparse.
    later : list of arrays (candidates, C + 1, outputs)
    """

    first: NDArray
    later: list[NDArray]
    embedding_dim: int

    @classmethod
    def from_thetas(cls, thetas: NDArray, layout: Layout, rows: Rows) -> Weights:
        """Lay out the weights of candidates (p, n) for these rows."""
        first, *later = layout.matrices(thetas)
        if rows.csr is not None:
            first = rows.scaling.fold(first)
        p, d, c = first.shape
        side_by_side = np.ascontiguousarray(first.transpose(1, 0, 2)).reshape(d, p * c)
        return cls(side_by_side, later, c)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return self.later[0].shape[0]


def block_logits(weights: Weights, rows: Rows, start: int, stop: int) -> NDArray:
    """Logits (candidates, stop − start, K) of a block of rows.

    The arithmetic of a block depends on its shape alone: cutting rows and candidates
    at the same places gives the same bits, whoever computes the blocks.
    """
    p, c, n = weights.n_candidates, weights.embedding_dim, stop - start
    kind = weights.later[0].dtype
    if rows.csr is not None:
        by_row = np.empty((n, p * c))
        data, indices, indptr = rows.csr
        sparse_product(data, indices, indptr, start, n, weights.first, by_row)
        product = by_row.T.astype(kind, order="C")
    else:
        assert rows.dense is not None
        product = weights.first.T @ rows.dense[start:stop].T
    # Entries by candidate, unit and row: see ``activate``.
    hidden = np.empty((p, c + 1, n), dtype=kind)
    activate(product.reshape(p, c, n), hidden)
    for matrix in weights.later[:-1]:
        activate(matrix.transpose(0, 2, 1) @ hidden, hidden)
    return hidden.transpose(0, 2, 1) @ weights.later[-1]


def forward(
    thetas: NDArray[np.floating],
    X: Any,
    layout: Layout,
    scaling: Scaling | None = None,
    dtype: type = np.float64,
    block_rows: int = 1024,
) -> NDArray:
    """Logits of one network, or of each network of a population.

    Parameters
    ----------
    thetas : array (n,) or (population, n)
    X : array or CSR matrix (rows, D)
    layout : Layout
    scaling : Scaling, default=None
        Standardisation of the features; none by default.
    dtype : numpy dtype, default=float64
        Of the arithmetic and of the result.
    block_rows : int, default=1024
        Rows computed at a time.

    Returns
    -------
    array (rows, K) or (population, rows, K)

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import Layout, forward
    >>> layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    >>> theta = np.linspace(-1, 1, layout.size)
    >>> forward(theta, np.eye(3), layout).shape
    (3, 2)
    >>> forward(np.stack([theta, -theta]), np.eye(3), layout).shape
    (2, 3, 2)
    """
    if X.shape[1] != layout.n_features:
        raise ValueError(f"X must have {layout.n_features} features, got {X.shape[1]}.")
    single = thetas.ndim == 1
    population: NDArray = np.atleast_2d(thetas).astype(dtype)
    n_rows = X.shape[0]
    logits: NDArray = np.empty((len(population), n_rows, layout.n_labels), dtype=dtype)
    weights = None
    for start in range(0, n_rows, block_rows):
        stop = min(start + block_rows, n_rows)
        rows = Rows.from_features(X[start:stop], scaling, dtype)
        if weights is None:
            weights = Weights.from_thetas(population, layout, rows)
        logits[:, start:stop] = block_logits(weights, rows, 0, stop - start)
    return logits[0] if single else logits

"""Features of a kernel: how near a row is to some of the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._compiled import compiled
from .._rowwise import rowwise_product
from ._base import Encoding, NumberCodes, check_count, check_range
from ._fitted import FittedEncoding
from ._kernels import LARGEST
from ._matrix import as_matrix, as_weight
from ._robust import Robust
from ._state import read_array, read_number, require
from ._summary import ColumnSummary

# The length of a row's features. A network without hidden units then learns about as
# much in a step as one with a few hundred of them.
_LENGTH = 16.0
# Directions in which landmarks differ by less, beside the largest, are rounding.
_LEAST_SHARE = 1e-6
# Rows that are compared with the landmarks at a time.
_BLOCK = 2048
# Of these, rows that are compared with a landmark while it is in the nearest cache.
_ROWS_IN_CACHE = 8
# Added to the kernel of landmarks where they are explained by each other.
_RIDGE = 0.01
# What γ may be: beyond, all rows are equal, or all are infinitely far apart.
_GAMMAS = (1e-30, 1e30)
# Squared distances of equal rows, beside the rows' own squared lengths.
_ROUNDING = 1e-12
_VERSION = 2
_KEYS = {"kind", "version", "columns", "landmarks", "gamma", "projection", "norm"}
# Distances that kernels have: sums of absolute differences, or of their squares.
_NORMS = (1, 2)


class LandmarkKernel(Encoding):
    """Features by which a linear model becomes one of a kernel.

    Rows, encoded column by column, are compared with landmarks, some of the training
    rows, by exp(−γ·d) of their distance d; Nyström's features are coordinates in which
    the kernel is a product. A member that reads them has no hidden units: it is trained
    in a fraction of the time of others, and errs differently.

    Parameters are those of :class:`GaussianKernel`.

    References
    ----------
    C. K. I. Williams and M. Seeger, Using the Nyström method to speed up kernel
    machines, NIPS 2000.
    """

    #: The distance is the sum of absolute differences to this power.
    norm: ClassVar[int]
    #: A network that reads these features needs none.
    hidden_units = 0

    def __init__(
        self,
        columns: Encoding | None = None,
        n_landmarks: int = 512,
        width: float = 1.0,
    ):
        self.columns = columns
        self.n_landmarks = n_landmarks
        self.width = width

    def fit(self, X: Any, weight: Any = None) -> FittedKernel:  # type: ignore[override]
        """Draw landmarks from training rows.

        Parameters
        ----------
        X : array-like or sparse matrix (n, D)
            Numbers; NaN is a missing value.
        weight : array-like (n,), default=None
            Row weights for the encoding of the columns; landmarks are rows of positive
            weight.

        Returns
        -------
        FittedKernel
        """
        self._check()
        X = as_matrix(X)
        weight = as_weight(weight, X.shape[0])
        columns = self._columns().fit(X, weight)
        used = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
        # A seed of its own: rows that are the same give the same landmarks.
        generator = np.random.default_rng(0)
        if len(used) > self.n_landmarks:
            used = np.sort(generator.permutation(used)[: self.n_landmarks])
        landmarks = columns.apply(X[used])
        if sp.issparse(landmarks):
            landmarks = landmarks.toarray()
        exact, lengths = _with_lengths(landmarks)
        if self.norm == 1:
            distances = _absolute_distances(landmarks, exact)
        else:
            distances = _squared_distances(landmarks, exact, lengths)
            # Rows that are the same differ by rounding, which is no distance.
            distances[distances <= _ROUNDING * (lengths[:, None] + lengths)] = 0.0
        apart = distances[distances > 0]
        gamma = float(self.width / np.median(apart)) if apart.size else 1.0
        gamma = float(np.clip(gamma, *_GAMMAS))
        sizes, vectors = np.linalg.eigh(np.exp(-gamma * distances))
        inverse = np.square(vectors) @ (1.0 / (np.maximum(sizes, 0.0) + _RIDGE))
        novelty = np.clip(1.0 / inverse - _RIDGE, 0.0, 1.0)
        kept = sizes > _LEAST_SHARE * sizes[-1]
        if not columns.n_columns:
            kept[:] = False
        # From the largest on, whose signs are not left to chance.
        vectors = (vectors[:, kept] / np.sqrt(sizes[kept]))[:, ::-1]
        vectors *= np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)
        projection = np.ascontiguousarray(_LENGTH * vectors, dtype=np.float32)
        return FittedKernel(
            columns,
            landmarks,
            gamma,
            projection,
            self.norm,
            LandmarkRows(used, novelty),
        )

    def fit_summary(self, summary: ColumnSummary) -> FittedEncoding:
        """Refuse: landmarks are rows, and a summary of the columns has none."""
        name = type(self).__name__
        raise ValueError(f"{name} must be fitted to rows, got a summary.")

    def _columns(self) -> Encoding:
        return Robust() if self.columns is None else self.columns

    def _number_codes(
        self, summary: ColumnSummary, columns: NDArray[np.int64]
    ) -> NumberCodes:
        return self._columns()._number_codes(summary, columns)

    def _check(self) -> None:
        check_count("n_landmarks", self.n_landmarks, 1)
        check_range("width", self.width, 1e-6, 1e6)
        if not isinstance(self._columns(), Encoding) or isinstance(
            self.columns, LandmarkKernel
        ):
            raise ValueError(
                "columns must be an encoding of single columns, such as Robust(), "
                f"got {self.columns!r}."
            )
        self._columns()._check()


class GaussianKernel(LandmarkKernel):
    """Features by which a linear model becomes one of a Gaussian kernel.

    Rows, encoded column by column, are compared with landmarks, some of the training
    rows, by exp(−γ‖x − x'‖²); Nyström's features are coordinates in which the kernel is
    a product. A member that reads them has no hidden units: it is trained in a fraction
    of the time of others, and errs differently.

    Parameters
    ----------
    columns : Encoding, default=None
        How columns are encoded before rows are compared; None is ``Robust()``.
    n_landmarks : int, default=512
        Training rows that others are compared with; all of them if there are fewer.
    width : float, default=1.0
        γ times the median distance between landmarks, here of squared distances: with
        larger ones only near rows have to do with each other.

    References
    ----------
    C. K. I. Williams and M. Seeger, Using the Nyström method to speed up kernel
    machines, NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import GaussianKernel
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> fitted = GaussianKernel(n_landmarks=20).fit(X)
    >>> fitted.apply(X[:5]).shape
    (5, 20)
    """

    norm = 2


class LaplaceKernel(LandmarkKernel):
    """Features by which a linear model becomes one of a Laplace kernel.

    As :class:`GaussianKernel`, with exp(−γ Σ|xᵢ − x'ᵢ|): differences in single columns
    add up instead of their squares. That is how rows are near each other in randomised
    trees, and a kernel that is not smooth follows steps better. Sparse rows are
    compared as dense ones, a few at a time.

    Parameters
    ----------
    columns : Encoding, default=None
        How columns are encoded before rows are compared; None is ``Robust()``.
    n_landmarks : int, default=512
        Training rows that others are compared with; all of them if there are fewer.
    width : float, default=1.0
        γ times the median distance between landmarks: with larger ones only near rows
        have to do with each other.

    References
    ----------
    A. Davies and Z. Ghahramani, The random forest kernel and other kernels for big data
    from random partitions, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import LaplaceKernel, Standardized
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> fitted = LaplaceKernel(Standardized()).fit(X)
    >>> features = fitted.apply(X) / 16
    >>> Z = Standardized().fit(X).apply(X)
    >>> kernel = np.exp(-fitted.gamma * np.abs(Z - Z.T))
    >>> bool(np.allclose(features @ features.T, kernel, atol=1e-6))
    True
    """

    norm = 1


@dataclass(frozen=True, eq=False)
class LandmarkRows:
    """Where landmarks come from.

    Attributes
    ----------
    rows : int array (m,)
        Which of the rows that the encoding was fitted to.
    novelty : float64 array (m,)
        How much of each the others do not explain, in [0, 1]: 1 − kᵀK⁻¹k with its
        kernel k to the others and theirs K.
    """

    rows: NDArray[np.intp]
    novelty: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedKernel:
    """How rows become features of a kernel.

    Attributes
    ----------
    columns : FittedEncoding
    landmarks : float32 array (m, d)
        Encoded rows.
    gamma : float
    projection : float32 array (m, r)
        What the kernel between a row and the landmarks is multiplied by.
    norm : {1, 2}
        Of distances: sums of absolute differences, or of their squares.
    origin : LandmarkRows, default=None
        Neither saved nor a part of the state: None in an encoding that was loaded.

    Examples
    --------
    Products of features are those of the kernel, where landmarks are:

    >>> import numpy as np
    >>> from clml.encoding import GaussianKernel, Standardized
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> fitted = GaussianKernel(Standardized()).fit(X)
    >>> features = fitted.apply(X) / 16
    >>> Z = Standardized().fit(X).apply(X)
    >>> bool(np.allclose(features @ features.T, np.exp(-fitted.gamma * (Z - Z.T) ** 2)))
    True
    """

    columns: FittedEncoding
    landmarks: NDArray[np.float32]
    gamma: float
    projection: NDArray[np.float32]
    norm: int
    origin: LandmarkRows | None = field(default=None, metadata={"saved": False})

    @property
    def n_inputs(self) -> int:
        """Return the number of columns of X."""
        return self.columns.n_inputs

    @property
    def n_columns(self) -> int:
        """Return the number of features."""
        return self.projection.shape[1]

    @property
    def centred(self) -> bool:
        """Whether sparse rows have to be made dense first."""
        return self.columns.centred

    @cached_property
    def _exact(self) -> tuple[NDArray[np.float64], ...]:
        """Landmarks, their squared lengths and the projection, in float64.

        Where landmarks hardly differ, rounding would be multiplied by thousands.
        """
        return (
            *_with_lengths(self.landmarks),
            self.projection.astype(np.float64),
        )

    def __getstate__(self) -> dict[str, Any]:
        # Twice the rest, and computed again in no time.
        return {k: v for k, v in self.__dict__.items() if k != "_exact"}

    def apply(self, X: Any) -> NDArray[np.float32]:
        """Return the features (n, n_columns) of rows, dense or sparse."""
        encoded = self.columns.apply(X)
        features = np.empty((encoded.shape[0], self.n_columns), dtype=np.float32)
        landmarks, lengths, projection = self._exact
        for a in range(0, len(features), _BLOCK):
            some = encoded[a : a + _BLOCK]
            if self.norm == 1:
                distances = _absolute_distances(some, landmarks)
            else:
                distances = _squared_distances(some, landmarks, lengths)
            near = np.exp(-self.gamma * distances)
            features[a : a + _BLOCK] = rowwise_product(near, projection)
        return features

    def of_strangers(
        self, X: Any, features: NDArray[np.float32]
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
        """Return which rows are landmarks, and their features as if they were not.

        A landmark has a direction to itself, in which no other row lies. What a member
        that left the row out has learnt there is noise, and no row that comes later
        has anything to do with it: such a row has the part of the landmark's features
        that other landmarks explain.

        Parameters
        ----------
        X : array or sparse matrix (n, D)
            The rows that the encoding was fitted to.
        features : float32 array (n, n_columns)
            What they are encoded as.

        Returns
        -------
        rows, features : int array (m,), float32 array (m, n_columns); or None
            None for other rows than these.
        """
        if self.origin is None or X.shape[0] <= self.origin.rows.max(initial=-1):
            return None
        rows = self.origin.rows
        encoded = self.columns.apply(X[rows])
        if sp.issparse(encoded):
            encoded = encoded.toarray()
        if not np.array_equal(encoded, self.landmarks):
            return None
        own = self.origin.novelty.astype(np.float32)[:, None] * self.projection
        return rows, features[rows] - own

    def state(self) -> dict[str, Any]:
        """Return everything as arrays, numbers and text; the arrays are copies."""
        return {
            "kind": "kernel",
            "version": _VERSION,
            "columns": self.columns.state(),
            "landmarks": self.landmarks.copy(),
            "gamma": self.gamma,
            "projection": self.projection.copy(),
            "norm": self.norm,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FittedKernel:
        """Return the encoding whose state that is; ValueError if it cannot be one."""
        if not isinstance(state, Mapping) or state.get("kind") != "kernel":
            raise ValueError("The state must be that of kernel features.")
        if state.get("version") != _VERSION:
            raise ValueError(
                f"The state must be of version {_VERSION}, got "
                f"{state.get('version')!r:.40}."
            )
        unknown = sorted(set(map(str, state)) - _KEYS)
        if unknown:
            raise ValueError(
                f"The state holds what no kernel features have: {unknown[0]!r:.40}."
            )
        columns = FittedEncoding.from_state(state.get("columns", {}))
        landmarks = _read_matrix(state, "landmarks")
        projection = _read_matrix(state, "projection")
        fits = landmarks.shape[1] == columns.n_columns
        require(fits, "landmarks", f"have {columns.n_columns} columns")
        bounded = np.abs(landmarks).max(initial=0) <= LARGEST
        require(bounded, "landmarks", f"hold numbers up to {LARGEST:g}")
        most = 2 * _LENGTH / _LEAST_SHARE**0.5
        bounded = np.abs(projection).max(initial=0) <= most
        require(bounded, "projection", f"hold numbers up to {most:g}")
        rows = len(landmarks)
        require(len(projection) == rows, "projection", f"have {rows} rows")
        gamma = read_number(state, "gamma", *_GAMMAS)
        norm: Any = state.get("norm")
        require(type(norm) is int and norm in _NORMS, "norm", "be 1 or 2")
        return cls(columns, landmarks, gamma, projection, norm)


def _read_matrix(state: Mapping[str, Any], name: str) -> NDArray[np.float32]:
    array: Any = state.get(name)
    require(isinstance(array, np.ndarray) and array.ndim == 2, name, "be a matrix")
    flat = read_array({name: array.ravel()}, name, np.float32)
    return flat.reshape(array.shape)


def _with_lengths(
    landmarks: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return landmarks in float64, and their squared lengths (m,)."""
    exact = landmarks.astype(np.float64)
    return exact, np.einsum("ij,ij->i", exact, exact)


def _squared_distances(
    rows: Any, landmarks: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ‖x − c‖² (n, m), not negative."""
    exact = rows.astype(np.float64)
    if sp.issparse(rows):
        own = np.asarray(exact.multiply(exact).sum(axis=1)).reshape(-1)
        products = np.asarray(exact @ landmarks.T)
    else:
        own = np.einsum("ij,ij->i", exact, exact)
        products = rowwise_product(exact, landmarks.T)
    return np.maximum(own[:, None] + lengths - 2 * products, 0.0)


@compiled(reorder=True)
def _sum_absolute(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(x.shape[0]):
        total += abs(x[k] - y[k])
    return total


@compiled
def _fill_absolute(rows, landmarks, out):  # type: ignore[no-untyped-def]
    for first in range(0, rows.shape[0], _ROWS_IN_CACHE):
        last = min(first + _ROWS_IN_CACHE, rows.shape[0])
        for j in range(landmarks.shape[0]):
            for i in range(first, last):
                out[i, j] = _sum_absolute(rows[i], landmarks[j])


def _absolute_distances(
    rows: Any, landmarks: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ|x − c| (n, m), each row's whatever the other rows are."""
    dense = rows.toarray() if sp.issparse(rows) else rows
    out = np.empty((dense.shape[0], len(landmarks)))
    _fill_absolute(np.ascontiguousarray(dense, dtype=np.float64), landmarks, out)
    return out

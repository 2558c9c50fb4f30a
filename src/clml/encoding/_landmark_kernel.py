"""Features of a kernel: how near a row is to some of the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.csr_format import check_csr_parts
from .._support.rowwise import Packed
from ._base import Encoding, NumberCodes, check_count, check_range
from ._fitted import FittedEncoding
from ._landmarks import Landmarks
from ._matrix import as_matrix, as_weight
from ._robust import Robust
from ._state import read_array, read_number, require
from ._summary import ColumnSummary
from .kernels import LARGEST

# The length of a row's features. A network without hidden units then learns about as
# much in a step as one with a few hundred of them.
_LENGTH = 16.0
# Directions in which landmarks differ by less, beside the largest, are rounding.
_LEAST_SHARE = 1e-6
# Rows that are compared with the landmarks at a time.
_BLOCK = 256
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
            landmarks = sp.csr_array(landmarks)
        beside = Landmarks(landmarks, self.norm)
        distances = beside.distances(landmarks)
        if self.norm == 2:
            # Rows that are the same differ by rounding, which is no distance.
            lengths = beside.lengths
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
    landmarks : float32 array or CSR matrix (m, d)
        Encoded rows, sparse where those that were fitted are.
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
    landmarks: Any
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
    def _beside(self) -> Landmarks:
        return Landmarks(self.landmarks, self.norm)

    @cached_property
    def _projection(self) -> Packed:
        return Packed(self.projection.astype(np.float64))

    def __getstate__(self) -> dict[str, Any]:
        # Twice the rest, and computed again in no time.
        computed = {"_beside", "_projection"}
        return {k: v for k, v in self.__dict__.items() if k not in computed}

    def near(self, encoded: Any) -> NDArray[np.float64]:
        """Return the kernel (n, m) between rows that are encoded and landmarks.

        Parameters
        ----------
        encoded : float32 array or CSR matrix (n, d)
            As ``columns`` encodes them.
        """
        return self._beside.near(encoded, self.gamma)

    def apply(self, X: Any) -> NDArray[np.float32]:
        """Return the features (n, n_columns) of rows, dense or sparse."""
        encoded = self.columns.apply(X)
        features = np.empty((encoded.shape[0], self.n_columns), dtype=np.float32)
        for a in range(0, len(features), _BLOCK):
            near = self.near(encoded[a : a + _BLOCK])
            features[a : a + _BLOCK] = self._projection.product(near)
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
        if not _same(self.columns.apply(X[rows]), self.landmarks):
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
        landmarks = _read_landmarks(state)
        projection = _read_matrix(state, "projection")
        fits = landmarks.shape[1] == columns.n_columns
        require(fits, "landmarks", f"have {columns.n_columns} columns")
        entries = landmarks.data if sp.issparse(landmarks) else landmarks
        bounded = np.abs(entries).max(initial=0) <= LARGEST
        require(bounded, "landmarks", f"hold numbers up to {LARGEST:g}")
        most = 2 * _LENGTH / _LEAST_SHARE**0.5
        bounded = np.abs(projection).max(initial=0) <= most
        require(bounded, "projection", f"hold numbers up to {most:g}")
        rows = landmarks.shape[0]
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


def _read_landmarks(state: Mapping[str, Any]) -> Any:
    found: Any = state.get("landmarks")
    if not sp.issparse(found):
        return _read_matrix(state, "landmarks")
    require(found.format == "csr" and found.ndim == 2, "landmarks", "be CSR rows")
    try:
        check_csr_parts(found.data, found.indices, found.indptr, found.shape)
    except ValueError as error:
        raise ValueError(f"The state's 'landmarks' are not sound: {error}.") from None
    read_array({"landmarks": found.data}, "landmarks", np.float32)
    return found.copy()


def _same(rows: Any, others: Any) -> bool:
    if sp.issparse(rows) != sp.issparse(others) or rows.shape != others.shape:
        return False
    if sp.issparse(rows):
        return bool((rows != others).nnz == 0)
    return np.array_equal(rows, others)

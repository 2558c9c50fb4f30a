"""A fitted encoding: tables that turn columns of X into a network's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._matrix import as_float64, as_matrix, not_finite
from ._points import offsets_of
from ._state import read_array, read_flag, read_number, require
from .kernels import LARGEST, Tables, encode_dense, encode_sparse
from .kinds import Code

#: What the limit of clipped numbers may be: less, and squares overflow; beyond, there
#: is none.
LIMITS = (1e-3, LARGEST)
# Encoded numbers that are written at a time: they stay in the processor's cache.
_TOGETHER = 1 << 17
_VERSION = 2
_WITH_RAMPS = (Code.RAMPS, Code.STANDARD_AND_RAMPS)


@dataclass(frozen=True, eq=False)
class FittedEncoding:
    """How the columns of X become a network's inputs.

    Each input column takes no, one or several encoded columns, in the order of the
    inputs: its number, its ramps, and last whether it is missing. Encodings make these
    from training rows (``Encoding.fit``); nobody else needs to.

    A missing value (NaN) is 0 in all encoded columns but the indicator, which is 1.
    Where there is no indicator, because the column was never missing in the training
    rows, it stands for their median. Numbers are bounded by ±1e6, so whatever comes
    stays finite.

    Rows that were fitted sparse are encoded without centring: what a value becomes,
    less what 0 becomes. So 0 stays 0, sparse rows stay sparse, and what a network sees
    differs from the dense encoding by a constant in each column, which its biases make
    up for. Dense rows are then encoded in the same way.

    Parameters
    ----------
    centred : bool
        Whether 0 may become something else.
    limit : float
        What clipped numbers tend to.
    code : uint8 array (D,)
        What is made of each column: the numbers of ``Code``.
    missing : bool array (D,)
        Which columns have an indicator of missing values.
    shift, scale : float64 arrays (D,)
        Of standardised and clipped numbers.
    offsets : int64 array (D + 1,)
        Where the tables of each column begin.
    knots, levels : float64 arrays
        The tables of all columns behind one another: ascending values, and what they
        become (0 for ramps, of which there is one between each two knots).
    neutral : float64 array (D,)
        What a missing value stands for in columns without an indicator.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.encoding import FittedEncoding, Standardized
    >>> X = np.array([[1.0, 0.0, 5.0], [2.0, 1.0, 5.0], [3.0, np.nan, 5.0]])
    >>> fitted = Standardized().fit(X)
    >>> fitted.names(["age", "member", "year"])
    ['age', 'member', 'member is missing']
    >>> fitted.apply(X)
    array([[-1.2247449,  0.       ,  0.       ],
           [ 0.       ,  1.       ,  0.       ],
           [ 1.2247449,  0.       ,  1.       ]], dtype=float32)
    >>> again = FittedEncoding.from_state(fitted.state())
    >>> bool((again.apply(X) == fitted.apply(X)).all())
    True
    """

    centred: bool
    limit: float
    code: NDArray[np.uint8]
    missing: NDArray[np.bool_]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    offsets: NDArray[np.int64]
    knots: NDArray[np.float64]
    levels: NDArray[np.float64]
    neutral: NDArray[np.float64]

    def encodes_as(self, other: FittedEncoding) -> bool:
        """Tell whether another encoding makes the same of all rows."""
        mine, others = self.state(), other.state()
        if not (self.code == Code.CLIPPED).any():
            del mine["limit"]  # which bounds nothing
        return all(np.array_equal(mine[name], others[name]) for name in mine)

    @property
    def n_inputs(self) -> int:
        """Return the number of columns of X."""
        return self.code.size

    @property
    def n_columns(self) -> int:
        """Return the number of encoded columns; 0 where X says nothing."""
        return int(self._place[-1])

    def apply(self, X: Any) -> Any:
        """Encode rows.

        Each encoded number costs some nanoseconds (a table of levels some tens) and
        four bytes; beside the result one megabyte or a row is in memory. Sparse entries
        are encoded twice: once to count what they become.

        Parameters
        ----------
        X : array-like or sparse matrix (n, n_inputs)
            Numbers; NaN is a missing value.

        Returns
        -------
        float32 array (n, n_columns), or CSR of float32 if X is sparse
            Arrays are C-contiguous; CSR stores no zeros.
        """
        X = as_matrix(X)
        if X.shape[1] != self.n_inputs:
            raise ValueError(
                f"X must have the {self.n_inputs} columns that were fitted, got "
                f"{X.shape[1]}."
            )
        if sp.issparse(X):
            return self._apply_sparse(X)
        n = X.shape[0]
        encoded = np.empty((n, self.n_columns), dtype=np.float32)
        step = max(_TOGETHER // max(self.n_columns, self.n_inputs, 1), 1)
        for start in range(0, n, step):
            some = slice(start, start + step)
            _check(encode_dense(as_float64(X[some]), self.tables, encoded[some]))
        return encoded

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return a name for each encoded column.

        Parameters
        ----------
        feature_names : sequence of str (n_inputs,), default=None
            Names of the columns of X; None for x0, x1, …

        Returns
        -------
        list of str
            A ramp is named with the values at which it begins and ends.
        """
        if feature_names is None:
            feature_names = [f"x{j}" for j in range(self.n_inputs)]
        if len(feature_names) != self.n_inputs:
            raise ValueError(
                f"feature_names must be {self.n_inputs} names, got "
                f"{len(feature_names)}."
            )
        names = []
        for j, name in enumerate(feature_names):
            if self.code[j] not in (Code.NONE, Code.RAMPS):
                names.append(str(name))
            if self.code[j] in _WITH_RAMPS:
                edges = _as_text(self.knots[self.offsets[j] : self.offsets[j + 1]])
                names += [
                    f"{name} from {low} to {high}" for low, high in pairwise(edges)
                ]
            if self.missing[j]:
                names.append(f"{name} is missing")
        return names

    def state(self) -> dict[str, Any]:
        """Return everything as arrays, numbers and text.

        Returns
        -------
        dict
            The arrays are copies.
        """
        state: dict[str, Any] = {"kind": "encoding", "version": _VERSION}
        for field in fields(self):
            value = getattr(self, field.name)
            state[field.name] = value.copy() if isinstance(value, np.ndarray) else value
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FittedEncoding:
        """Return the encoding whose state that is.

        Parameters
        ----------
        state : dict
            What ``state`` returned, possibly written to a file and read again. It is
            not trusted: ValueError for anything that no encoding could have returned.

        Returns
        -------
        FittedEncoding
            It encodes bit for bit as the one that was saved.
        """
        if not isinstance(state, Mapping) or state.get("kind") != "encoding":
            raise ValueError("The state must be that of an encoding.")
        if state.get("version") != _VERSION:
            raise ValueError(
                f"The state must be of version {_VERSION}, got "
                f"{state.get('version')!r:.40}."
            )
        known = {"kind", "version", *(field.name for field in fields(cls))}
        unknown = sorted(set(map(str, state)) - known)
        if unknown:
            raise ValueError(
                f"The state holds what no encoding has: {unknown[0]!r:.40}."
            )
        code = read_array(state, "code", np.uint8)
        d = code.size
        knots = read_array(state, "knots", np.float64)
        fitted = cls(
            centred=read_flag(state, "centred"),
            limit=read_number(state, "limit", *LIMITS),
            code=code,
            missing=read_array(state, "missing", np.bool_, d),
            shift=read_array(state, "shift", np.float64, d),
            scale=read_array(state, "scale", np.float64, d),
            offsets=read_array(state, "offsets", np.int64, d + 1),
            knots=knots,
            levels=read_array(state, "levels", np.float64, knots.size),
            neutral=read_array(state, "neutral", np.float64, d),
        )
        _require_tables(fitted)
        return fitted

    @cached_property
    def _place(self) -> NDArray[np.int64]:
        """Where the encoded columns of each input begin."""
        numbers = (self.code != Code.NONE) & (self.code != Code.RAMPS)
        ramps = np.where(np.isin(self.code, _WITH_RAMPS), np.diff(self.offsets) - 1, 0)
        return offsets_of(numbers + ramps + self.missing)

    @cached_property
    def _at_zero(self) -> NDArray[np.float64]:
        """What a row of zeros becomes where nothing is subtracted."""
        encoded = np.zeros((1, self.n_columns))
        tables = self._tables_with(np.zeros(self.n_columns))
        encode_dense(np.zeros((1, self.n_inputs)), tables, encoded)
        return encoded[0]

    @cached_property
    def tables(self) -> Tables:
        """What encodes, as arrays; not to be changed."""
        return self._tables_with(
            np.zeros(self.n_columns) if self.centred else self._at_zero
        )

    def _tables_with(self, zero: NDArray[np.float64]) -> Tables:
        return Tables(
            self.code,
            self.missing,
            self.shift,
            self.scale,
            float(self.limit),
            self.offsets,
            self.knots,
            self.levels,
            self.neutral,
            self._place,
            zero,
        )

    def _apply_sparse(self, X: Any) -> Any:
        if self.centred and self._at_zero.any():
            raise ValueError(
                "X must be dense, as were the rows that were fitted: its zeros become "
                "other numbers. Fit sparse rows to encode sparse rows."
            )
        n = X.shape[0]
        indptr = np.zeros(n + 1, dtype=np.int64)
        data, indices = np.empty(0, np.float32), np.empty(0, np.int32)
        step = max(_TOGETHER * n // max(X.nnz, 1), 1)
        for fill in (False, True):
            if fill:
                data = np.empty(indptr[-1], dtype=np.float32)
                large = max(indptr[-1], self.n_columns) > np.iinfo(np.int32).max
                indices = np.empty(indptr[-1], dtype=np.int64 if large else np.int32)
            for start in range(0, n, step):
                pointers = X.indptr[start : start + step + 1]
                some = slice(pointers[0], pointers[-1])
                column = encode_sparse(
                    as_float64(X.data[some]),
                    X.indices[some],
                    pointers,
                    self.tables,
                    fill,
                    (data, indices, indptr[start : start + step + 1]),
                )
                _check(column)
        kind = sp.csr_matrix if sp.isspmatrix(X) else sp.csr_array
        parts = (data, indices, indptr.astype(indices.dtype))
        encoded = kind(parts, shape=(n, self.n_columns))
        encoded.has_canonical_format = True  # columns come in their order
        return encoded


def _check(column: int) -> None:
    if column >= 0:
        raise not_finite(column)


def _as_text(edges: NDArray[np.float64]) -> list[str]:
    """Write numbers with as many digits as tell them apart."""
    for digits in (6, 9, 17):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return texts


def _require_tables(fitted: FittedEncoding) -> None:
    """Refuse tables that no encoding makes, or that kernels could not work with."""
    offsets, knots, levels = fitted.offsets, fitted.knots, fitted.levels
    codes = [int(code) for code in Code]
    known = np.isin(fitted.code, codes).all()
    require(known, "code", f"hold numbers up to {codes[-1]}")
    least = np.finfo(np.float64).tiny
    require((fitted.scale >= least).all(), "scale", "hold positive numbers")
    ends_right = offsets[0] == 0 and offsets[-1] == knots.size
    counts = np.diff(offsets)
    # Of differences that overflow no sign can be told: the limits are looked at, too.
    inside = (offsets >= 0).all() and (offsets <= knots.size).all()
    require(
        ends_right and inside and (counts >= 0).all(),
        "offsets",
        f"ascend from 0 to {knots.size}",
    )
    with_table = np.isin(fitted.code, (Code.LEVELS, *_WITH_RAMPS))
    require(
        ((counts >= 2) == with_table).all() and (counts[~with_table] == 0).all(),
        "offsets",
        "give tables of two knots or more to the codes that have them",
    )
    # Within a table, that is, not from the last knot of one to the first of the next.
    within = np.ones(max(knots.size - 1, 0), dtype=bool)
    first = offsets[(offsets > 0) & (offsets < knots.size)]
    within[first - 1] = False
    # Halves: that is what kernels take differences of.
    rises = knots[1:] / 2 > knots[:-1] / 2
    require(rises[within].all(), "knots", "ascend within each column")
    require((np.abs(levels) <= LARGEST).all(), "levels", f"be at most {LARGEST:g}")
    require((levels[1:] >= levels[:-1])[within].all(), "levels", "not descend")

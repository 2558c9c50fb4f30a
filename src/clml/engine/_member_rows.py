"""Encoded rows and their labels in a device's memory, and batches of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.memory import ran_out
from .._support.torch import import_torch
from ..losses import RowTargets
from ._device_rows import padded

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def told_if_too_large(name: str, what: str, device: Any) -> Iterator[None]:
    """Say what does not fit a device."""
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        raise MemoryError(
            f"{name} must fit the memory of the device {str(device)!r}, got {what}. "
            f"It was said: {error}"
        ) from error


@dataclass(frozen=True, eq=False, repr=False)
class MemberRows:
    """Rows (n, D) as wide networks of one encoding read them.

    Attributes
    ----------
    dense : float32 tensor (n, D) or None
    sparse : tuple of tensors or None
        Values, columns and row pointers of CSR rows.
    lengths : int array (n,)
        Entries of each CSR row, in the host's memory: nobody waits for the device to
        learn how large a batch is.
    n_columns : int
    """

    dense: Tensor | None
    sparse: tuple[Tensor, Tensor, Tensor] | None
    lengths: NDArray[np.int64]
    n_columns: int

    @classmethod
    def put(cls, X: Any, device: Any) -> MemberRows:
        """Copy float32 rows, dense or CSR, to a device."""
        what = f"{X.shape[0]} rows of {X.shape[1]} columns"
        with told_if_too_large("X", what, device):
            return cls._put(X, device)

    @classmethod
    def _put(cls, X: Any, device: Any) -> MemberRows:
        torch = import_torch()
        n, d = X.shape
        if not sp.issparse(X):
            # A copy also on the CPU, where arrays may be shared and read-only.
            dense = torch.tensor(np.ascontiguousarray(X), device=device)
            return cls(dense, None, np.full(n, d), d)
        X = X.tocsr()
        if not X.has_canonical_format:  # an entry of a batch is written once
            X = X.copy()
            X.sum_duplicates()
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64))
        values, columns, indptr = (torch.tensor(part, device=device) for part in parts)
        return cls(None, (values, columns, indptr), np.diff(parts[2]), d)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.lengths)

    def batch(self, rows: Tensor, longest: int) -> Tensor:
        """Return some rows (..., D), as dense ones.

        Parameters
        ----------
        rows : int64 tensor
        longest : int
            Most entries that any of these has, if they are sparse.
        """
        torch = import_torch()
        if self.dense is not None:
            return self.dense[rows]
        assert self.sparse is not None
        values, columns, indptr = self.sparse
        d = self.n_columns
        # A column for what is no entry, and rows that begin at multiples of 16 bytes.
        width = padded(d + 1, 4)
        x = torch.zeros((*rows.shape, width), dtype=values.dtype, device=values.device)
        if longest == 0 or len(values) == 0:
            return x[..., :d]
        first = indptr[rows][..., None]
        there = torch.arange(longest, device=values.device) + first
        entry = there < indptr[rows + 1][..., None]
        there.clamp_(max=len(values) - 1)
        # What goes behind the last column nobody reads.
        column = torch.where(entry, columns[there], d)
        x.scatter_(-1, column.long(), values[there])
        return x[..., :d]

    def block(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop``, as dense ones."""
        if self.dense is not None:
            return self.dense[start:stop]
        assert self.sparse is not None
        rows = import_torch().arange(start, stop, device=self.sparse[0].device)
        return self.batch(rows, int(self.lengths[start:stop].max(initial=0)))

    def some(self, chosen: NDArray[np.intp]) -> Tensor:
        """Return some rows, as dense ones."""
        held = self.dense if self.dense is not None else self._pointers
        rows = import_torch().as_tensor(chosen, device=held.device)
        if self.dense is not None:
            return self.dense[rows]
        return self.batch(rows, int(self.lengths[chosen].max(initial=0)))

    @property
    def _pointers(self) -> Tensor:
        assert self.sparse is not None
        return self.sparse[0]


@dataclass(frozen=True, eq=False, repr=False)
class LabelBatch:
    """Labels and weights of the rows of a step, members first.

    Attributes
    ----------
    truth : bool tensor (members, rows, K)
    weight : float64 tensor (members, rows)
        0 where a member has no row.
    n_relevant : int64 tensor (members, rows)
    relevant : int64 tensor (members, rows, R)
        Relevant labels of each row, then zeros.
    valid : bool tensor (members, rows, R)
        Which of these are labels.
    place : int64 tensor (members, rows, K)
        Where each label is among the relevant ones; R if it is not.
    """

    truth: Tensor
    weight: Tensor
    n_relevant: Tensor
    relevant: Tensor
    valid: Tensor
    place: Tensor


@dataclass(frozen=True, eq=False, repr=False)
class MemberLabels:
    """The labels of all rows; every relevant label has a place in its row.

    Attributes
    ----------
    table : int64 tensor (n, 1 + R + K)
        The number of relevant labels, which they are, and the place of each label, all
        side by side: a batch is one operation, and on small data their number counts.
    most_relevant : int
        R, the number of relevant labels that a row has at most, at least 1.
    """

    table: Tensor
    most_relevant: int

    @classmethod
    def put(cls, targets: RowTargets, device: Any) -> MemberLabels:
        """Copy labels to a device."""
        counts = np.diff(targets.indptr)
        most = max(1, int(counts.max(initial=0)))
        row = np.repeat(np.arange(targets.n_rows), counts)
        at = np.arange(len(row)) - np.repeat(targets.indptr[:-1], counts)
        table = np.zeros((targets.n_rows, 1 + most + targets.n_labels), dtype=np.int64)
        table[:, 0] = counts
        table[row, 1 + at] = targets.indices
        table[:, 1 + most :] = most
        table[row, 1 + most + targets.indices] = at
        return cls(import_torch().as_tensor(table, device=device), most)

    def batch(self, rows: Tensor, weight: Tensor) -> LabelBatch:
        """Return the labels of rows (members, rows)."""
        torch = import_torch()
        most = self.most_relevant
        n_relevant, relevant, place = self.table[rows].tensor_split((1, 1 + most), -1)
        valid = torch.arange(most, device=rows.device) < n_relevant
        truth = place < most
        return LabelBatch(truth, weight, n_relevant[..., 0], relevant, valid, place)

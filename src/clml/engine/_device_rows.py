"""Rows on a device, and the first product of a whole population with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.torch import import_torch
from ..network import Layout, Rows, Scaling
from .blocks import SHARD_ROWS

if TYPE_CHECKING:
    from torch import Tensor

# Rows with a larger share of entries that are not zero are kept as dense ones.
_DENSE_SHARE = 0.1
# Dense rows get zeros at their end so that each begins at a multiple of 16 bytes.
_MULTIPLE = 4
# Weights side by side get zeros at their end, which saves kernels a test.
WIDTH_MULTIPLE = 32


@dataclass(frozen=True, eq=False)
class DeviceWeights:
    """The weights of some candidates, laid out for the products on a device.

    Attributes
    ----------
    first : tensor (D, at least candidates · C)
        The first layers side by side, without their bias, and some zeros.
    bias : tensor (candidates, C)
        Zero where it is a last row of ``first``: see ``DeviceRows``.
    hidden : tensor (candidates, n_layers, C + 1, C)
    last : tensor (candidates, C + 1, K)
    """

    first: Tensor
    bias: Tensor
    hidden: Tensor
    last: Tensor

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return int(self.bias.shape[0])


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A CSR matrix on a device.

    Attributes
    ----------
    values, columns : tensors (number of entries,)
        Float32, or float64 where scaling would cancel most digits of that; int32.
    indptr : int64 tensor (n + 1,)
    order : int32 tensor (n,)
        All rows; within each shard those with fewer entries first.
    mean, scale : float64 tensors (D,)
        Of the scaling, which goes into the first layer.
    """

    values: Tensor
    columns: Tensor
    indptr: Tensor
    order: Tensor
    mean: Tensor
    scale: Tensor

    @classmethod
    def put(
        cls,
        values: Tensor,
        columns: Tensor,
        indptr: NDArray[np.int64],
        mean: Any,
        scale: Any,
    ) -> SparseRows:
        """Complete what is on a device already."""
        torch = import_torch()
        shard = np.arange(len(indptr) - 1) // SHARD_ROWS
        order = np.lexsort((np.diff(indptr), shard)).astype(np.int32)
        device = values.device
        return cls(
            values,
            columns,
            torch.as_tensor(indptr, device=device),
            torch.as_tensor(order, device=device),
            torch.as_tensor(mean, device=device),
            torch.as_tensor(scale, device=device),
        )

    def take(self, rows: Tensor) -> SparseRows:
        """Return some of the rows alone."""
        torch = import_torch()
        first = self.indptr[rows]
        counts = self.indptr[rows + 1] - first
        indptr = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
        torch.cumsum(counts, 0, out=indptr[1:])
        shift = (first - indptr[:-1]).repeat_interleave(counts)
        source = shift + torch.arange(len(shift), device=rows.device)
        return SparseRows.put(
            self.values[source],
            self.columns[source],
            indptr.cpu().numpy(),
            self.mean,
            self.scale,
        )

    def densified(self, start: int, stop: int, width: int) -> Tensor:
        """Return rows ``start`` to ``stop`` as a dense tensor."""
        torch = import_torch()
        indptr = self.indptr[start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        x = self.values.new_zeros((stop - start, width))
        rows = torch.arange(stop - start, device=x.device)
        rows = rows.repeat_interleave(indptr.diff())
        x[rows, self.columns[first:last].long()] = self.values[first:last]
        return x


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Input rows on a device.

    Attributes
    ----------
    dense : tensor (n, at least D) or None
        Scaled, with a few zeros at the end of each row.
    sparse : SparseRows or None
        Unscaled.
    n_features : int
    kind : torch dtype
        Of the arithmetic.
    n_rows : int
    """

    dense: Tensor | None
    sparse: SparseRows | None
    n_features: int
    kind: Any
    n_rows: int

    @property
    def nbytes(self) -> int:
        """Bytes of the device's memory that the rows take."""
        if self.dense is not None:
            return int(self.dense.nbytes)
        assert self.sparse is not None
        return int(self.sparse.values.nbytes + self.sparse.columns.nbytes)

    @classmethod
    def put(
        cls, X: Any, scaling: Scaling | None, dtype: type, device: Any
    ) -> DeviceRows:
        """Copy dense or sparse features (n, D) to a device."""
        torch = import_torch()
        if sp.issparse(X) and X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        host = Rows.from_features(X, scaling, dtype)
        kind = torch.float32 if dtype is np.float32 else torch.float64
        dense = sparse = None
        if host.csr is None:
            assert host.dense is not None
            d = X.shape[1]
            dense = torch.zeros(
                (len(host.dense), padded(d, _MULTIPLE)), dtype=kind, device=device
            )
            dense[:, :d] = torch.as_tensor(host.dense[:, :-1], device=device)
        else:
            data, indices, indptr = host.csr
            sparse = SparseRows.put(
                torch.as_tensor(data, device=device),
                torch.as_tensor(indices.astype(np.int32), device=device),
                indptr.astype(np.int64),
                host.scaling.mean,
                host.scaling.scale,
            )
        return cls(dense, sparse, X.shape[1], kind, host.n_rows)

    def take(self, rows: NDArray[np.integer]) -> DeviceRows:
        """Return some of the rows alone."""
        torch = import_torch()
        n = len(rows)
        if self.dense is not None:
            index = torch.as_tensor(rows, device=self.dense.device)
            return replace(self, dense=self.dense[index], n_rows=n)
        assert self.sparse is not None
        index = torch.as_tensor(rows, device=self.sparse.values.device)
        return replace(self, sparse=self.sparse.take(index), n_rows=n)

    @property
    def _cancels(self) -> bool:
        """Whether the product and the bias nearly cancel: both are then float64."""
        return self.sparse is not None and self.sparse.values.dtype != self.kind

    def lay_out(self, thetas: Tensor, layout: Layout) -> DeviceWeights:
        """Lay out the weights of candidates (p, n) for these rows."""
        torch = import_torch()
        found: list[Any] = layout.matrices(cast(Any, thetas))
        first, *later = found
        kind = self.kind
        if self.sparse is not None:
            first, kind = self._folded(first), self.sparse.values.dtype
        p, d, c = first.shape
        bias = first[:, -1].to(self.kind).contiguous()
        if self._cancels:
            bias = torch.zeros_like(bias)
        else:
            first, d = first[:, :-1], d - 1
        rows = d if self.dense is None else self.dense.shape[1]
        width = padded(p * c, WIDTH_MULTIPLE)
        matrix = torch.zeros((rows, width), dtype=kind, device=thetas.device)
        matrix[:d, : p * c].unflatten(1, (p, c))[:] = first.transpose(0, 1)
        return DeviceWeights(
            matrix,
            bias,
            torch.stack(later[:-1], dim=1).contiguous(),
            later[-1].contiguous(),
        )

    def product(
        self, weights: DeviceWeights, start: int, stop: int, kernels: Any
    ) -> Tensor:
        """Return the first product (rows, candidates, C), before its bias."""
        if self.dense is not None:
            product = self.dense[start:stop] @ weights.first
        else:
            assert self.sparse is not None
            if kernels is not None and not self._cancels:
                product = kernels.sparse_product(
                    self.sparse, weights.first, start, stop
                )
            else:
                x = self.sparse.densified(start, stop, len(weights.first))
                if self._cancels:
                    x[:, -1] = 1  # meets the bias
                product = (x @ weights.first).to(self.kind)
        p, c = weights.bias.shape
        return product[:, : p * c].unflatten(1, (p, c))

    def bytes_a_row(self, kernels: Any) -> int:
        """Return what a row takes while its product is computed."""
        if self.dense is not None or (kernels is not None and not self._cancels):
            return 0
        return 8 * self.n_features

    def _folded(self, first: Tensor) -> Tensor:
        """Move the scaling into first layers (p, D + 1, C): ``Scaling.fold``."""
        torch = import_torch()
        assert self.sparse is not None
        folded = first.double()
        weights = folded[:, :-1] / self.sparse.scale[:, None]
        bias = folded[:, -1] - (self.sparse.mean @ weights)
        return torch.cat([weights, bias[:, None]], dim=1)


def padded(size: int, multiple: int) -> int:
    """Return a size made a multiple."""
    return -(-size // multiple) * multiple

"""A covariance matrix kept as a multiple of the identity plus rank-one terms."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._validation import read_array, read_mapping, read_number

__all__ = ["FactoredCovariance"]

# Rows per block: long enough for matrix products to run at full speed, short enough
# that the unused end of the last block does not matter.
_BLOCK_ROWS = 128
# Small matrices are not folded more often than this.
_MIN_FOLD = 64


@dataclass(frozen=True)
class FactoredCovariance:
    """The matrix C = scale·I + Σ_s weights[s]·p_s·p_sᵀ, exactly.

    A value: updates return a new object. Two successors of one object must not both
    be kept, because they share the blocks and would write the same unused row.

    Parameters
    ----------
    scale : float
        The factor a of the identity.
    weights : ndarray of shape (n_factors,)
        One weight per path.
    blocks : tuple of ndarrays of shape (block rows, n)
        The paths, row after row. Rows from ``n_factors`` on hold nothing yet; a row
        is written once, so appending copies no path and an interrupted update
        leaves no trace.
    n : int
        Order of the matrix.
    """

    scale: float
    weights: NDArray[np.float64]
    blocks: tuple[NDArray[np.float64], ...]
    n: int

    @classmethod
    def identity(cls, n: int) -> "FactoredCovariance":
        """Return the identity matrix: no factors yet."""
        return cls(1.0, np.empty(0), (), n)

    @property
    def n_factors(self) -> int:
        """Number of rank-one terms."""
        return self.weights.size

    def rows(self) -> Iterator[tuple[NDArray[np.float64], slice]]:
        """Yield the paths block by block, with their positions among the weights."""
        for number, block in enumerate(self.blocks):
            start = number * _BLOCK_ROWS
            stop = min(start + _BLOCK_ROWS, self.n_factors)
            yield block[: stop - start], slice(start, stop)

    def sample(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw from N(0, C), shape (size, n).

        √a·z + Σ_s √w_s·ξ_s·p_s with independent standard normal z and ξ has exactly
        this covariance; the sum is one matrix product per block.
        """
        samples = generator.standard_normal((size, self.n))
        samples *= math.sqrt(self.scale)
        amplitudes = generator.standard_normal((size, self.n_factors))
        amplitudes *= np.sqrt(self.weights)
        for paths, where in self.rows():
            samples += amplitudes[:, where] @ paths
        return samples

    def matvec(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return C·vector."""
        product = self.scale * vector
        for paths, where in self.rows():
            product += (self.weights[where] * (paths @ vector)) @ paths
        return product

    def stacked(self) -> NDArray[np.float64]:
        """Return V, shape (n_factors, n), whose rows √w_s·p_s give C = a·I + Vᵀ·V."""
        stack = np.empty((self.n_factors, self.n))
        for paths, where in self.rows():
            np.multiply(np.sqrt(self.weights[where])[:, None], paths, out=stack[where])
        return stack

    def dense(self) -> NDArray[np.float64]:
        """Return the matrix itself, shape (n, n)."""
        stack = self.stacked()
        return self.scale * np.eye(self.n) + stack.T @ stack

    def updated(
        self, decay: float, weight: float, path: NDArray[np.float64]
    ) -> "FactoredCovariance":
        """Return decay·C + weight·path·pathᵀ."""
        used = self.n_factors % _BLOCK_ROWS
        blocks = self.blocks
        if used == 0:
            # Fixed-size blocks: growing one array would need the old and the new
            # one at the same time.
            blocks = (*blocks, np.empty((_BLOCK_ROWS, self.n)))
        blocks[-1][used] = path
        grown = FactoredCovariance(
            scale=decay * self.scale,
            weights=np.append(decay * self.weights, weight),
            blocks=blocks,
            n=self.n,
        )
        return grown._folded() if grown.n_factors >= self._max_factors else grown

    @property
    def _max_factors(self) -> int:
        return max(2 * self.n, _MIN_FOLD)

    def _folded(self) -> "FactoredCovariance":
        """Return the same matrix with n factors.

        With V = Q·R, Vᵀ·V = Rᵀ·R: the rows of R are n factors of the same sum. Unlike
        an eigendecomposition of VᵀV this does not square the condition number. Done
        every n epochs, it costs O(n²) an epoch.
        """
        triangle: NDArray[np.float64] = np.asarray(
            np.linalg.qr(self.stacked(), mode="r")
        )
        return FactoredCovariance(
            self.scale, np.ones(len(triangle)), _cut_into_blocks(triangle), self.n
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix as numbers and arrays.

        The arrays of paths are read-only views: rows are written once, so the views
        stay what they are and a state costs no second copy of all paths.
        """
        paths = {}
        for number, (rows, _) in enumerate(self.rows()):
            view = rows.view()
            view.flags.writeable = False
            paths[str(number)] = view
        return {"scale": self.scale, "weights": self.weights.copy(), "paths": paths}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], n: int) -> "FactoredCovariance":
        """Return the matrix that `to_dict` wrote down, on storage of its own."""
        n_factors = int(np.size(state.get("weights", ())))
        weights = read_array(state, "weights", (n_factors,))
        if (weights < 0).any():
            raise ValueError("The state is damaged: a weight is negative.")
        paths = read_mapping(state, "paths")
        n_blocks = math.ceil(n_factors / _BLOCK_ROWS)
        if set(paths) != {str(number) for number in range(n_blocks)}:
            raise ValueError(
                f"The state is damaged: expected {n_blocks} blocks of paths for "
                f"{n_factors} weights, got {sorted(paths)}."
            )
        blocks: list[NDArray[np.float64]] = []
        for number in range(n_blocks):
            n_rows = min(_BLOCK_ROWS, n_factors - number * _BLOCK_ROWS)
            rows = read_array(paths, str(number), (n_rows, n))
            blocks.extend(_cut_into_blocks(rows))
        return cls(read_number(state, "scale"), weights, tuple(blocks), n)


def _cut_into_blocks(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    blocks = []
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = rows[start : start + _BLOCK_ROWS]
        block = np.empty((_BLOCK_ROWS, rows.shape[1]))
        block[: len(part)] = part
        blocks.append(block)
    return tuple(blocks)

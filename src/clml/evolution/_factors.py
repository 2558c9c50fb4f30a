"""A covariance matrix kept as a multiple of the identity plus rank-one terms."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._place import NUMPY, ArrayBackend
from ._validation import read_array, read_mapping, read_number

__all__ = ["FactoredCovariance"]

# Rows per block: long enough for matrix products to run at full speed, short enough
# that the unused end of the last block does not matter.
_BLOCK_ROWS = 128
# Small matrices are not folded more often than this.
_MIN_FOLD = 64
# Up to this order a factorisation of the whole matrix is cheap and no Gram matrix of
# the paths is kept; nor is one beyond this many paths, where it would be large itself.
DENSE_ORDER = 64
_MAX_GRAM = 4096


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
    gram : ndarray of shape (capacity, capacity), default=None
        The products p_s·p_r in its leading rows and columns, while there are fewer
        paths than coordinates; like a row of a block, an entry is written once. With
        them, functions of the matrix need two passes over the paths and not two for
        every step of an iteration.
    place : ArrayBackend, default=NUMPY
        Where the blocks are. All else is on the host.
    singles : tuple of arrays like the blocks, float32
        The paths once more, for sampling: noise needs no more digits, and a product
        of them takes half the time.
    """

    scale: float
    weights: NDArray[np.float64]
    blocks: tuple[Any, ...]
    n: int
    gram: NDArray[np.float64] | None = None
    place: ArrayBackend = NUMPY
    singles: tuple[Any, ...] = ()

    @classmethod
    def identity(cls, n: int, place: ArrayBackend = NUMPY) -> "FactoredCovariance":
        """Return the identity matrix: no factors yet."""
        gram = np.empty((0, 0)) if n > DENSE_ORDER else None
        return cls(1.0, np.empty(0), (), n, gram, place)

    @property
    def n_factors(self) -> int:
        """Number of rank-one terms."""
        return self.weights.size

    def rows(self, single: bool = False) -> Iterator[tuple[Any, slice]]:
        """Yield the paths block by block, with their positions among the weights."""
        for number, block in enumerate(self.singles if single else self.blocks):
            start = number * _BLOCK_ROWS
            stop = min(start + _BLOCK_ROWS, self.n_factors)
            yield block[: stop - start], slice(start, stop)

    def sample(self, samples: Any, generator: Any) -> Any:
        """Turn standard normal numbers (size, n) into draws from N(0, C), in place.

        √a·z + Σ_s √w_s·ξ_s·p_s with independent standard normal z and ξ has exactly
        this covariance; the sum is one matrix product per block.
        """
        samples *= math.sqrt(self.scale)
        amplitudes = generator.standard_normal((len(samples), self.n_factors))
        amplitudes *= self.place.put(np.sqrt(self.weights))
        amplitudes = self.place.as_single(amplitudes)
        products = (amplitudes[:, where] @ paths for paths, where in self.rows(True))
        along_paths = next(products, None)
        if along_paths is not None:
            for product in products:
                along_paths += product
            samples += along_paths
        return samples

    def project(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the products p_s·vector, shape (n_factors,)."""
        products = np.empty(self.n_factors)
        placed = self.place.put(vector)
        for paths, where in self.rows():
            products[where] = self.place.get(paths @ placed)
        return products

    def combine(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_s coefficients[s]·p_s, shape (n,)."""
        total = np.zeros(self.n)
        for paths, where in self.rows():
            total += self.place.get(self.place.put(coefficients[where]) @ paths)
        return total

    def matvec(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return C·vector."""
        return self.scale * vector + self.combine(self.weights * self.project(vector))

    def stacked(self) -> NDArray[np.float64]:
        """Return V, shape (n_factors, n), whose rows √w_s·p_s give C = a·I + Vᵀ·V."""
        stack = np.empty((self.n_factors, self.n))
        for paths, where in self.rows():
            stack[where] = self.place.get(paths)
            stack[where] *= np.sqrt(self.weights[where])[:, None]
        return stack

    def dense(self) -> NDArray[np.float64]:
        """Return the matrix itself, shape (n, n)."""
        stack = self.stacked()
        return self.scale * np.eye(self.n) + stack.T @ stack

    @property
    def last_products(self) -> NDArray[np.float64]:
        """The products p_s·p of all paths with the last one, where they are kept."""
        assert self.gram is not None
        return self.gram[self.n_factors - 1, : self.n_factors]

    def updated(
        self,
        decay: float,
        weight: float,
        path: NDArray[np.float64],
        products: NDArray[np.float64] | None = None,
    ) -> "FactoredCovariance":
        """Return decay·C + weight·path·pathᵀ.

        ``products`` is ``project(path)`` where that is known already.
        """
        used = self.n_factors % _BLOCK_ROWS
        blocks, singles = self.blocks, self.singles
        if used == 0:
            # Fixed-size blocks: growing one array would need the old and the new
            # one at the same time.
            shape = (_BLOCK_ROWS, self.n)
            blocks = (*blocks, self.place.empty(shape))
            singles = (*singles, self.place.empty(shape, np.float32))
        blocks[-1][used] = placed = self.place.put(path)
        singles[-1][used] = placed
        grown = FactoredCovariance(
            scale=decay * self.scale,
            weights=np.append(decay * self.weights, weight),
            blocks=blocks,
            n=self.n,
            gram=self._grown_gram(path, products),
            place=self.place,
            singles=singles,
        )
        return grown._folded() if grown.n_factors >= self._max_factors else grown

    def _grown_gram(
        self, path: NDArray[np.float64], products: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        gram, size = self.gram, self.n_factors
        if gram is None or size + 1 >= min(self.n, _MAX_GRAM):
            return None
        if size == len(gram):
            gram = _with_room(gram, size)
        gram[size, :size] = self.project(path) if products is None else products
        gram[:size, size] = gram[size, :size]
        gram[size, size] = path @ path
        return gram

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
            self.scale,
            np.ones(len(triangle)),
            _cut_into_blocks(triangle, self.place),
            self.n,
            place=self.place,
            singles=_cut_into_blocks(triangle, self.place, np.float32),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix as numbers and arrays.

        The arrays of paths are read-only views: rows are written once, so the views
        stay what they are and a state costs no second copy of all paths.
        """
        paths = {}
        for number, (rows, _) in enumerate(self.rows()):
            view = self.place.get(rows).view()
            view.flags.writeable = False
            paths[str(number)] = view
        state = {"scale": self.scale, "weights": self.weights.copy(), "paths": paths}
        if self.gram is not None:
            state["gram"] = self.gram[: self.n_factors, : self.n_factors].copy()
        return state

    @classmethod
    def from_dict(
        cls, state: Mapping[str, Any], n: int, place: ArrayBackend = NUMPY
    ) -> "FactoredCovariance":
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
        blocks: list[Any] = []
        singles: list[Any] = []
        for number in range(n_blocks):
            n_rows = min(_BLOCK_ROWS, n_factors - number * _BLOCK_ROWS)
            rows = read_array(paths, str(number), (n_rows, n))
            blocks.extend(_cut_into_blocks(rows, place))
            singles.extend(_cut_into_blocks(rows, place, np.float32))
        gram = None
        if "gram" in state:
            gram = _with_room(read_array(state, "gram", (n_factors,) * 2), n_factors)
        scale = read_number(state, "scale")
        return cls(scale, weights, tuple(blocks), n, gram, place, tuple(singles))


def _with_room(gram: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return a larger array with the leading part of `gram` in place."""
    roomy = np.empty((size + _BLOCK_ROWS,) * 2)
    roomy[:size, :size] = gram[:size, :size]
    return roomy


def _cut_into_blocks(
    rows: NDArray[np.float64], place: ArrayBackend, dtype: type = np.float64
) -> tuple[Any, ...]:
    blocks = []
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = rows[start : start + _BLOCK_ROWS]
        block = place.empty((_BLOCK_ROWS, rows.shape[1]), dtype)
        block[: len(part)] = place.put(part)
        blocks.append(block)
    return tuple(blocks)

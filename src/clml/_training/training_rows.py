"""Rows as networks of each kind read them in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..losses import LossSet, RowTargets
from ..network import (
    ForwardCache,
    Layout,
    NetworkLayout,
    Scaling,
    WideLayout,
    WidePass,
    backward_pass,
    check_sparse_range,
    forward_pass,
    scaled_features,
)
from .steps import AscentPlan, PlainSteps, Steps
from .wide_steps import WideSteps

# Rows that go through a network at a time.
_BLOCK = 4096


class Startable(Protocol):
    """What has weights that can be drawn."""

    @property
    def size(self) -> int:
        """Number of weights."""

    def start(self, generator: np.random.Generator) -> NDArray[np.float32]:
        """Draw the weights to begin with."""


class TrainingRows(Protocol):
    """Rows as networks of one kind read them."""

    @property
    def X(self) -> Any:
        """The rows, dense or CSR."""

    @property
    def layout(self) -> Startable:
        """The network."""

    def steps(
        self,
        most_rows: int,
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ) -> Steps:
        """Return what takes steps of members, on batches of so many rows at most."""

    def logits(
        self, theta: NDArray[np.float32], rows: NDArray[np.intp] | None = None
    ) -> NDArray:
        """Return the logits (rows, K) of one network; None is all rows."""


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class WideRows:
    """Rows as wide networks read them, encoded already.

    Attributes
    ----------
    X : float32 array (n, D) or CSR matrix
    layout : WideLayout
    strangers : pair of int array (m,) and float32 array (m, D), default=None
        Rows that members which left them out read differently, and how.
    """

    X: Any
    layout: WideLayout
    strangers: tuple[NDArray[np.intp], NDArray[np.float32]] | None = None

    def steps(
        self,
        most_rows: int,
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ) -> Steps:
        """Return what takes steps in compiled code."""
        passes = WidePass(self.layout, self.X, most_rows)
        return WideSteps(passes, targets, loss_set, plan, surrogate)

    def logits(
        self, theta: NDArray[np.float32], rows: NDArray[np.intp] | None = None
    ) -> NDArray:
        """Return the logits (rows, K) of one network; None is all rows."""
        return self.layout.logits(theta, self.X, rows)

    def logits_of_each(
        self,
        thetas: Sequence[NDArray[np.float32]],
        rows: Sequence[NDArray[np.intp]],
    ) -> NDArray[np.float32]:
        """Return the logits of each network, of rows of its own, one after another."""
        return self.layout.logits_of_each(thetas, self.X, rows)

    def strangers_logits(
        self,
        thetas: Sequence[NDArray[np.float32]],
        some: Sequence[NDArray[np.intp]],
    ) -> NDArray[np.float32]:
        """Return the same of some of the rows that are read differently.

        Parameters
        ----------
        thetas : sequence of float32 arrays (n,)
            Of members that left these rows out.
        some : sequence of int arrays
            Which of ``strangers`` each is asked about.
        """
        assert self.strangers is not None  # who asks has looked
        return self.layout.logits_of_each(thetas, self.strangers[1], some)


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class OwnRows:
    """Rows as networks of a user's own read them, encoded already.

    Attributes
    ----------
    X : float32 array (n, D) or CSR matrix
    layout : NetworkLayout
    n_labels : int
    """

    X: Any
    layout: NetworkLayout
    n_labels: int

    def steps(
        self,
        most_rows: int,
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ) -> Steps:
        """Return what takes steps of any network, which says itself what it drops."""
        return PlainSteps(_OwnBatches(self), targets, loss_set, plan, surrogate)

    def logits(
        self, theta: NDArray[np.float32], rows: NDArray[np.intp] | None = None
    ) -> NDArray:
        """Return the logits (rows, K) of one network; None is all rows."""
        parts = [self.forward(theta, X, None)[0] for X in _blocks(self.X, rows)]
        return np.concatenate(parts)

    def forward(
        self, theta: NDArray[np.float32], X: Any, generator: np.random.Generator | None
    ) -> tuple[NDArray[np.float32], Any]:
        """Return the logits of a batch, which are checked, and the network's memory."""
        logits, memory = self.layout.forward(theta, X, generator)
        _check_own(logits, "forward", (X.shape[0], self.n_labels))
        return logits, memory


def _check_own(array: Any, method: str, shape: tuple[int, ...]) -> None:
    """Refuse what kernels could not read."""
    found = getattr(array, "shape", None), getattr(array, "dtype", None)
    if not isinstance(array, np.ndarray) or found != (shape, np.float32):
        raise ValueError(
            f"network: {method} must return a float32 array of shape {shape}, got "
            f"{type(array).__name__} of shape {found[0]} and type {found[1]}."
        )


class _OwnBatches:
    def __init__(self, rows: OwnRows):
        self._rows = rows
        self._memory: Any = None

    def forward(
        self,
        theta: NDArray[np.float32],
        batch: NDArray[np.intp],
        generator: np.random.Generator,
    ) -> NDArray[np.float32]:
        rows = self._rows
        logits, self._memory = rows.forward(theta, rows.X[batch], generator)
        return np.ascontiguousarray(logits)

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        gradient = self._rows.layout.backward(slope, self._memory)
        _check_own(gradient, "backward", (self._rows.layout.size,))
        return gradient


class _PaperBatches:
    def __init__(self, rows: NetworkRows, dropout: float):
        self._rows, self._dropout = rows, dropout
        self._cache: ForwardCache | None = None

    def forward(
        self,
        theta: NDArray[np.float32],
        batch: NDArray[np.intp],
        generator: np.random.Generator,
    ) -> NDArray[np.float32]:
        rows = self._rows
        masks = _masks(self._dropout, len(batch), rows.layout, generator)
        logits, self._cache = forward_pass(
            theta, rows.X[batch], rows.layout, rows.scaling, masks
        )
        return logits

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        assert self._cache is not None  # of the forward pass before
        return backward_pass(slope, self._cache)


# Messages and logs show objects by their repr, and must not show rows.
@dataclass(frozen=True, eq=False, repr=False)
class NetworkRows:
    """Rows as single networks of the paper's kind read them.

    Attributes
    ----------
    X : float32 array (n, D), scaled, or CSR matrix
    scaling : Scaling or None
        Of sparse rows.
    layout : Layout
    """

    X: Any
    scaling: Scaling | None
    layout: Layout

    @classmethod
    def prepared(cls, X: Any, scaling: Scaling, layout: Layout) -> NetworkRows:
        """Scale dense rows once; sparse ones are scaled in the products."""
        if sp.issparse(X):
            X = X.tocsr()
            check_sparse_range(X, scaling, np.float32)
            return cls(X, scaling, layout)
        return cls(scaled_features(X, scaling, np.float32), None, layout)

    def steps(
        self,
        most_rows: int,
        targets: Sequence[RowTargets],
        loss_set: LossSet,
        plan: AscentPlan,
        surrogate: bool,
    ) -> Steps:
        """Return what takes steps of any network."""
        passes = _PaperBatches(self, plan.dropout)
        return PlainSteps(passes, targets, loss_set, plan, surrogate)

    def logits(
        self,
        theta: NDArray[np.float32],
        rows: NDArray[np.intp] | None = None,
        block: int = _BLOCK,
    ) -> NDArray:
        """Return the logits (rows, K) of one network; None is all rows."""
        parts = [
            forward_pass(theta, X, self.layout, self.scaling)[0]
            for X in _blocks(self.X, rows, block)
        ]
        return np.concatenate(parts)


def _blocks(
    X: Any, rows: NDArray[np.intp] | None, block: int = _BLOCK
) -> Iterator[Any]:
    """Yield some rows a few at a time; at least one block, which may be empty."""
    n = X.shape[0] if rows is None else len(rows)
    for a in range(0, max(n, 1), block):
        yield X[a : a + block] if rows is None else X[rows[a : a + block]]


def _masks(
    dropout: float, n_rows: int, layout: Layout, generator: np.random.Generator
) -> list[NDArray[np.float32]] | None:
    """Return what hidden units are multiplied by, layer by layer; None for all 1."""
    if dropout == 0:
        return None
    shape = (n_rows, layout.embedding_dim)
    kept = np.float32(1 / (1 - dropout))
    return [
        kept * (generator.random(shape, dtype=np.float32) >= dropout)
        for _ in range(layout.n_layers + 1)
    ]

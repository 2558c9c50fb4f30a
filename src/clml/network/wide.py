"""A wide network: layers of many units, dropout, and if wanted a linear path.

:class:`WideNetwork` describes it, as a value that is given to an estimator;
:class:`WideLayout` is that description for some inputs and labels, and says where each
weight stands in the flat vector theta; :class:`WidePass` takes rows through it and
carries slopes back.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._support.csr_format import check_csr_parts
from .._support.products import room_for_products, spread_rows
from .._support.value import Value
from .wide_kernels import RELU, TANH, backward, forward, forward_each

_ACTIVATIONS = {"relu": RELU, "tanh": TANH}
# Deviation of the first hidden weights, times √inputs: what keeps the size of outputs
# from layer to layer.
_GAINS = {"relu": 2**0.5, "tanh": 1.0}
# Of the output weights: small, so that all labels begin near their bias.
_OUTPUT_GAIN = 0.3
# Inputs from which on fewer units are enough, at half the time and memory.
_MANY_INPUTS = 512
# Rows of a block where nothing is trained.
_BLOCK = 512
# Dropout is decided by sixteen bits.
_DROPOUT_STEPS = 2**16


def _default_hidden(n_inputs: int) -> tuple[int, ...]:
    return (512,) if n_inputs < _MANY_INPUTS else (256,)


class WideNetwork(Value):
    """A network of fully connected layers, D inputs → hidden units → K labels.

    Parameters
    ----------
    hidden : sequence of int, default=None
        Units of each hidden layer; without any the network is linear. None is one
        layer: as wide as the encoding of the columns asks for, else 512, or 256 from
        512 inputs on.
    activation : {"relu", "tanh"}, default="relu"
    dropout : float, default=0.5
        Fraction of the hidden units that each row of a training step leaves out, in
        [0, 1), to the nearest of 65,536 parts.
    linear_path : bool, default=False
        Whether the inputs also go to the outputs directly, by weights that start at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import WideNetwork
    >>> layout = WideNetwork(hidden=(8,)).build(n_inputs=3, n_labels=2)
    >>> layout.size
    50
    >>> theta = layout.start(np.random.default_rng(0))
    >>> layout.logits(theta, np.eye(3, dtype=np.float32)).shape
    (3, 2)
    """

    def __init__(
        self,
        hidden: Any = None,
        *,
        activation: str = "relu",
        dropout: float = 0.5,
        linear_path: bool = False,
    ):
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.linear_path = linear_path

    def build(self, n_inputs: int, n_labels: int) -> WideLayout:
        """Return the network for so many inputs and labels.

        Raises
        ------
        ValueError
            If a parameter is none.
        """
        units = _default_hidden(n_inputs) if self.hidden is None else self.hidden
        if not isinstance(units, tuple | list | np.ndarray):
            raise ValueError(f"hidden must be a sequence of integers, got {units!r}.")
        for width in units:
            if not isinstance(width, Integral) or isinstance(width, bool) or width < 1:
                raise ValueError(f"hidden must hold positive integers, got {units!r}.")
        if self.activation not in _ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {list(_ACTIVATIONS)}, "
                f"got {self.activation!r}."
            )
        if not isinstance(self.dropout, Real) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout!r}.")
        if not isinstance(self.linear_path, bool | np.bool_):
            raise ValueError(f"linear_path must be a bool, got {self.linear_path!r}.")
        return WideLayout(
            int(n_inputs),
            int(n_labels),
            tuple(int(width) for width in units),
            self.activation,
            float(self.dropout),
            bool(self.linear_path),
        )


@dataclass(frozen=True)
class WideLayout:
    """Where each weight of a wide network stands in theta, and what it computes.

    The order is W1, b1, W2, b2, ... up to the output layer, then the linear path.

    Attributes
    ----------
    n_inputs, n_labels : int
        D and K.
    hidden : tuple of int
    activation : {"relu", "tanh"}
    dropout : float
    linear_path : bool
    """

    n_inputs: int
    n_labels: int
    hidden: tuple[int, ...]
    activation: str = "relu"
    dropout: float = 0.5
    linear_path: bool = False

    def __post_init__(self) -> None:
        for name in ("n_inputs", "n_labels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}.")

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """D, the units of each hidden layer, K."""
        return np.array([self.n_inputs, *self.hidden, self.n_labels], dtype=np.int64)

    @cached_property
    def size(self) -> int:
        """Length n of theta."""
        layers = sum((a + 1) * b for a, b in self._pairs())
        return layers + self.linear_path * self.n_inputs * self.n_labels

    def _pairs(self) -> list[tuple[int, int]]:
        widths = self.widths.tolist()
        return list(itertools.pairwise(widths))

    def views(self, theta: NDArray) -> dict[str, NDArray]:
        """Return the weights by name, as views: ``W1``, ``b1``, ..., ``linear``."""
        if theta.shape != (self.size,):
            raise ValueError(
                f"theta must have shape {(self.size,)}, got {theta.shape}."
            )
        named: dict[str, NDArray] = {}
        start = 0
        for i, (rows, columns) in enumerate(self._pairs(), 1):
            end = start + rows * columns
            named[f"W{i}"] = theta[start:end].reshape(rows, columns)
            named[f"b{i}"] = theta[end : end + columns]
            start = end + columns
        if self.linear_path:
            named["linear"] = theta[start:].reshape(self.n_inputs, self.n_labels)
        return named

    def start(self, generator: np.random.Generator) -> NDArray[np.float32]:
        """Draw weights to begin with; biases and linear networks are 0."""
        theta = np.zeros(self.size, dtype=np.float32)
        if not self.hidden:
            return theta
        named = self.views(theta)
        last = len(self.hidden) + 1
        for i in range(1, last + 1):
            matrix = named[f"W{i}"]
            gain = _OUTPUT_GAIN if i == last else _GAINS[self.activation]
            matrix[:] = generator.normal(
                scale=gain * matrix.shape[0] ** -0.5, size=matrix.shape
            )
        return theta

    def logits(
        self, theta: NDArray[np.float32], X: Any, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """Return the logits (rows, K) of rows of X, all of them by default.

        Parameters
        ----------
        theta : float32 array (n,)
        X : float32 array or CSR matrix (N, D)
        rows : int array, default=None
        """
        chosen = np.arange(X.shape[0]) if rows is None else rows
        return self.logits_of_each([theta], X, [chosen])

    def logits_of_each(
        self,
        thetas: Sequence[NDArray[np.float32]],
        X: Any,
        rows: Sequence[NDArray[np.intp]],
    ) -> NDArray[np.float32]:
        """Return the logits (rows of all, K) of networks, each of some rows of X.

        Parameters
        ----------
        thetas : sequence of float32 arrays (n,)
        X : float32 array or CSR matrix (N, D)
        rows : sequence of int arrays
            Of each network; their logits follow each other.
        """
        most = max(map(len, rows), default=0)
        some = WidePass(self, X, min(_BLOCK, max(most, 1)))
        return some.forward_each(thetas, rows)

    def forward(
        self,
        theta: NDArray[np.float32],
        X: Any,
        generator: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], WidePass]:
        """Return the logits of a batch, and what :meth:`backward` needs of it.

        Whoever trains on many batches is quicker with one :class:`WidePass` for all.

        Parameters
        ----------
        theta : float32 array (n,)
        X : float32 array or CSR matrix (m, D)
        generator : Generator, default=None
            Decides which units are dropped; None drops nothing.
        """
        n = X.shape[0]
        some = WidePass(self, X, max(n, 1))
        key = None if generator is None else int(generator.integers(2**63))
        return some.forward(theta, np.arange(n), key), some

    def backward(
        self, slope: NDArray[np.float32], memory: WidePass
    ) -> NDArray[np.float32]:
        """Return the derivative (n,) of the sum of slope · logits in theta."""
        return memory.backward(slope)


class WidePass:
    """Takes batches of rows through a network and slopes back; one thread's own.

    Parameters
    ----------
    layout : WideLayout
    X : float32 array or CSR matrix (N, D)
    most_rows : int
        The largest batch: memory is taken once for all of them.

    Examples
    --------
    The derivative of the sum of all logits in the last bias is the number of rows:

    >>> import numpy as np
    >>> from clml.network import WideNetwork, WidePass
    >>> layout = WideNetwork(hidden=(8,)).build(n_inputs=3, n_labels=2)
    >>> theta = layout.start(np.random.default_rng(0))
    >>> some = WidePass(layout, np.eye(3, dtype=np.float32), most_rows=3)
    >>> logits = some.forward(theta, np.array([0, 2]), key=1)
    >>> gradient = some.backward(np.ones_like(logits))
    >>> layout.views(gradient)["b2"]
    array([2., 2.], dtype=float32)
    """

    def __init__(self, layout: WideLayout, X: Any, most_rows: int):
        if X.ndim != 2 or X.shape[1] != layout.n_inputs or X.dtype != np.float32:
            raise ValueError(
                f"X must be float32 with {layout.n_inputs} columns, "
                f"got {X.dtype} of shape {X.shape}."
            )
        self.layout = layout
        self._most_rows = int(most_rows)
        is_sparse = sp.issparse(X)
        if is_sparse:
            X = X.tocsr()
            check_csr_parts(X.data, X.indices, X.indptr, X.shape)
            self._dense = np.empty((0, 0), dtype=np.float32)
            self._sparse = (
                X.data,
                X.indices.astype(np.int32, copy=False),
                X.indptr.astype(np.int64, copy=False),
            )
        else:
            self._dense = np.ascontiguousarray(X)
            self._sparse = (
                np.empty(0, dtype=np.float32),
                np.empty(0, dtype=np.int32),
                np.empty(0, dtype=np.int64),
            )
        self._is_sparse = is_sparse
        self._n_rows = X.shape[0]
        n_inputs = 0 if is_sparse else layout.n_inputs
        self._inputs = spread_rows(self._most_rows, n_inputs)
        self._hidden = np.empty(self._most_rows * sum(layout.hidden), dtype=np.float32)
        widest = max(layout.hidden, default=0)
        self._factors = np.empty(self._most_rows * widest, dtype=np.float32)
        widths = layout.widths.tolist()
        if is_sparse:  # the first layer is not dense
            widths = widths[1:]
        self._panels = room_for_products(widths, self._most_rows)
        self._gradient = np.empty(layout.size, dtype=np.float32)
        self._last: tuple[Any, ...] | None = None

    @property
    def inputs_of_kernels(self) -> tuple[Any, ...]:
        """Rows, network and memory as the compiled passes take them.

        For compiled code that takes several steps without coming back: the rows dense,
        or as the three arrays of CSR; widths, linear path, kind of activation; the
        dropout threshold and scale; memory for inputs, outputs, factors, panels, the
        gradient.
        """
        layout = self.layout
        return (
            self._dense,
            self._sparse,
            layout.widths,
            layout.linear_path,
            _ACTIVATIONS[layout.activation],
            *self._dropout(),
            self._inputs,
            self._hidden,
            self._factors,
            self._panels,
            self._gradient,
        )

    def _dropout(self) -> tuple[int, np.float32]:
        """Return the threshold and the scale of ``dropout_factors`` in training."""
        dropped = min(round(self.layout.dropout * _DROPOUT_STEPS), _DROPOUT_STEPS - 1)
        return dropped, np.float32(_DROPOUT_STEPS / (_DROPOUT_STEPS - dropped))

    def forward(
        self,
        theta: NDArray[np.float32],
        rows: NDArray[np.integer],
        key: int | None = None,
    ) -> NDArray[np.float32]:
        """Return the logits (m, K) of some rows.

        Parameters
        ----------
        theta : float32 array (n,)
        rows : int array (m,)
            In any order, repeats allowed.
        key : int, default=None
            Decides, in a training step, which units are dropped: of 64 bits, another
            one each step. None drops nothing.
        """
        layout = self.layout
        self._check_theta(theta)
        self._check_rows(rows)
        theta = np.ascontiguousarray(theta)
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        if len(rows) > self._most_rows:
            raise ValueError(
                f"rows must be {self._most_rows} at most, got {len(rows)}."
            )
        dropped, scale = (0, np.float32(1)) if key is None else self._dropout()
        dropout = (np.uint64(key or 0), dropped, scale)
        if not len(rows):
            self._last = None
            return np.empty((0, layout.n_labels), dtype=np.float32)
        self._last = (theta, rows, dropout)
        return forward(
            theta,
            self._dense,
            self._sparse,
            rows,
            layout.widths,
            layout.linear_path,
            _ACTIVATIONS[layout.activation],
            dropout,
            self._inputs,
            self._hidden,
            self._factors,
            self._panels,
        )

    def forward_each(
        self,
        thetas: Sequence[NDArray[np.float32]],
        rows: Sequence[NDArray[np.integer]],
    ) -> NDArray[np.float32]:
        """Return logits (rows of all, K) of networks, nothing dropped, in one call.

        There is no way back from here.

        Parameters
        ----------
        thetas : sequence of float32 arrays (n,)
        rows : sequence of int arrays
            Of each network, any number; their logits follow each other.
        """
        self._last = None
        layout = self.layout
        for theta in thetas:
            self._check_theta(theta)
        order = np.concatenate([np.empty(0, dtype=np.int64), *rows])
        self._check_rows(order)
        ends = np.cumsum([0, *map(len, rows)])
        out = np.empty((len(order), layout.n_labels), dtype=np.float32)
        if len(order):
            forward_each(
                np.stack(thetas),
                self._dense,
                self._sparse,
                order.astype(np.int64, copy=False),
                ends,
                layout.widths,
                layout.linear_path,
                _ACTIVATIONS[layout.activation],
                self._inputs,
                self._hidden,
                self._factors,
                self._panels,
                self._most_rows,
                out,
            )
        return out

    def _check_theta(self, theta: NDArray) -> None:
        size = self.layout.size
        if theta.shape != (size,) or theta.dtype != np.float32:
            raise ValueError(
                f"theta must be float32 of shape {(size,)}, got {theta.dtype} "
                f"of shape {theta.shape}."
            )

    def _check_rows(self, rows: NDArray) -> None:
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(
                f"rows must be integers of one axis, got {rows.dtype} of shape "
                f"{rows.shape}."
            )
        if len(rows) and not 0 <= rows.min() <= rows.max() < self._n_rows:
            raise ValueError(
                f"rows must be in [0, {self._n_rows}), got {rows.min()} to "
                f"{rows.max()}."
            )

    def backward(self, slope: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the derivative of Σ slope · logits in theta, for the last forward.

        It is overwritten by the next call.

        Parameters
        ----------
        slope : float32 array (m, K)
            Of the logits that :meth:`forward` returned last; theta and the rows may
            not have changed since.
        """
        if self._last is None:
            raise ValueError("backward needs a forward pass over some rows before it.")
        theta, rows, dropout = self._last
        layout = self.layout
        expected = (len(rows), layout.n_labels)
        if slope.shape != expected or slope.dtype != np.float32:
            raise ValueError(
                f"slope must be float32 of shape {expected}, got {slope.dtype} of "
                f"shape {slope.shape}."
            )
        backward(
            theta,
            self._sparse,
            rows,
            layout.widths,
            layout.linear_path,
            _ACTIVATIONS[layout.activation],
            dropout,
            self._inputs,
            self._hidden,
            self._factors,
            self._panels,
            np.ascontiguousarray(slope),
            self._gradient,
        )
        return self._gradient

"""Derivatives of one network's logits: a forward pass that remembers, and its reverse.

The passes serve searches that know in which direction the outputs should move and ask
how the weights have to. One network at a time, a batch of rows at a time; populations
go through :mod:`clml.network._forward`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._layout import Layout
from ._scaling import Scaling
from .kernels import TINY


@dataclass(frozen=True, eq=False)
class _Hidden:
    """What the reverse of one layer's standardisation and sigmoid needs.

    Attributes
    ----------
    standardised, activated, output : arrays (rows, C)
        γ(a), σ(γ(a)) and the latter after dropout.
    deviation : array (rows, 1)
        Of the pre-activations a over their C entries.
    """

    standardised: NDArray
    activated: NDArray
    output: NDArray
    deviation: NDArray


@dataclass(frozen=True, eq=False)
class ForwardCache:
    """What :func:`forward_pass` keeps for :func:`backward_pass`.

    It refers to theta and to the rows: neither may change in between.
    """

    layout: Layout
    matrices: list[NDArray]
    X: Any
    scaling: Scaling | None
    hidden: list[_Hidden]
    dropout_masks: Sequence[NDArray] | None


def forward_pass(
    theta: NDArray[np.floating],
    X: Any,
    layout: Layout,
    scaling: Scaling | None = None,
    dropout_masks: Sequence[NDArray] | None = None,
) -> tuple[NDArray, ForwardCache]:
    """Logits of one network for a batch of rows, and what their derivatives need.

    Parameters
    ----------
    theta : float array (n,)
        Its precision is that of the arithmetic.
    X : float array or CSR matrix (rows, D)
        Dense rows are used as they are, scaled already. Sparse rows are scaled here
        and not made dense.
    layout : Layout
    scaling : Scaling, default=None
        Of sparse rows; None leaves them as they are.
    dropout_masks : sequence of arrays (rows, C), default=None
        One for each of the ``n_layers + 1`` hidden activations, which it multiplies:
        0 where a unit is dropped, 1 / (share kept) elsewhere.

    Returns
    -------
    logits : array (rows, K)
    cache : ForwardCache
        For :func:`backward_pass`.

    Examples
    --------
    The derivative of the sum of all logits in the last bias is the number of rows:

    >>> import numpy as np
    >>> from clml.network import Layout, backward_pass, forward_pass
    >>> layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    >>> theta = np.linspace(-1, 1, layout.size, dtype=np.float32)
    >>> logits, cache = forward_pass(theta, np.eye(3, dtype=np.float32), layout)
    >>> logits.shape
    (3, 2)
    >>> gradient = backward_pass(np.ones_like(logits), cache)
    >>> layout.views(gradient)["b_D"]
    array([3., 3.], dtype=float32)
    """
    _check_batch(X, layout, scaling, dropout_masks)
    first, *later = matrices = layout.matrices(theta)
    values = _first_product(X, first, scaling)
    hidden = []
    for i, matrix in enumerate(later):
        mask = None if dropout_masks is None else dropout_masks[i]
        hidden.append(_activate(values, mask))
        values = hidden[-1].output @ matrix[:-1]
        values += matrix[-1]
    return values, ForwardCache(layout, matrices, X, scaling, hidden, dropout_masks)


def backward_pass(credit: NDArray[np.floating], cache: ForwardCache) -> NDArray:
    """Return the derivative of Σ credit · logits in theta.

    A row whose pre-activations are all equal passes nothing on to the layers before:
    γ has a kink there with a slope of 1/1e-10, which is no direction to follow.

    Parameters
    ----------
    credit : float array (rows, K)
        Worth of each logit.
    cache : ForwardCache
        From :func:`forward_pass`.

    Returns
    -------
    array (n,), of theta's precision
    """
    first, *later = cache.matrices
    rows, n_labels = cache.X.shape[0], cache.layout.n_labels
    if credit.shape != (rows, n_labels):
        raise ValueError(
            f"credit must have the logits' shape {(rows, n_labels)}, "
            f"got {credit.shape}."
        )
    gradient = np.empty(cache.layout.size, dtype=first.dtype)
    first_slope, *later_slopes = cache.layout.matrices(gradient)
    slope = credit.astype(first.dtype, copy=False)
    for i in range(len(later) - 1, -1, -1):
        layer = cache.hidden[i]
        np.matmul(layer.output.T, slope, out=later_slopes[i][:-1])
        slope.sum(axis=0, out=later_slopes[i][-1])
        slope = slope @ later[i][:-1].T
        if cache.dropout_masks is not None:
            slope *= cache.dropout_masks[i]
        slope = _reverse_activation(slope, layer)
    _first_gradient(cache.X, slope, cache.scaling, first_slope)
    return gradient


def _check_batch(
    X: Any,
    layout: Layout,
    scaling: Scaling | None,
    dropout_masks: Sequence[NDArray] | None,
) -> None:
    if X.shape[1] != layout.n_features:
        raise ValueError(f"X must have {layout.n_features} features, got {X.shape[1]}.")
    if scaling is not None and not sp.issparse(X):
        raise ValueError("Dense X must be scaled already, got a scaling for it.")
    if dropout_masks is None:
        return
    expected = [(X.shape[0], layout.embedding_dim)] * (layout.n_layers + 1)
    shapes = [mask.shape for mask in dropout_masks]
    if shapes != expected:
        raise ValueError(f"dropout_masks must have shapes {expected}, got {shapes}.")


def _first_product(X: Any, first: NDArray, scaling: Scaling | None) -> NDArray:
    """Pre-activations (rows, C) of the first layer."""
    if scaling is None:
        return (X @ first[:-1] + first[-1]).astype(first.dtype, copy=False)
    # In float64: the features' part and the means' part may nearly cancel.
    folded = scaling.fold(first)
    return (X @ folded[:-1] + folded[-1]).astype(first.dtype)


def _first_gradient(
    X: Any, slope: NDArray, scaling: Scaling | None, out: NDArray
) -> None:
    """Fill the derivative (D + 1, C) in the first layer, of slope · product."""
    bias = slope.sum(axis=0, dtype=np.float64)
    out[-1] = bias
    if scaling is None and not sp.issparse(X):
        np.matmul(X.T, slope, out=out[:-1])
    elif scaling is None:
        out[:-1] = X.T @ slope
    else:
        # The transpose of Scaling.fold: ((x − m) / s)ᵀ · slope.
        by_feature = X.T @ slope.astype(np.float64)
        by_feature -= np.outer(scaling.mean, bias)
        by_feature /= scaling.scale[:, None]
        out[:-1] = by_feature


def _activate(values: NDArray, mask: NDArray | None) -> _Hidden:
    """Standardise rows over their C entries, apply the sigmoid and the mask."""
    # From the first entry on, so that the mean of equal entries is exact.
    centred = values - values[:, :1]
    centred -= centred.mean(axis=1, keepdims=True)
    c = values.shape[1]
    square = np.einsum("rc,rc->r", centred, centred) / c
    square[np.isinf(square)] = np.nan  # entries over inf would all be 0
    deviation = np.sqrt(square)[:, None]
    centred /= deviation + deviation.dtype.type(TINY)
    activated = np.exp(-centred)
    activated += 1
    np.reciprocal(activated, out=activated)
    output = activated if mask is None else activated * mask
    return _Hidden(centred, activated, output, deviation)


def _reverse_activation(slope: NDArray, layer: _Hidden) -> NDArray:
    """Turn the slope in σ(γ(a)) into the slope in a.

    With z = γ(a), s the deviation and d = slope · σ'(z), it is
    (d − mean(d)) / (s + tiny) − z · mean(d·z) / s.
    """
    z, h, s = layer.standardised, layer.activated, layer.deviation
    c = z.shape[1]
    constant = s == 0
    safe = np.where(constant, 1, s)
    d = slope * h
    d *= 1 - h
    along = np.einsum("rc,rc->r", d, z)[:, None] / (c * safe)
    d -= d.mean(axis=1, keepdims=True)
    d /= safe + s.dtype.type(TINY)
    d -= z * along
    d *= ~constant
    return d

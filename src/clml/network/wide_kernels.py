"""Compiled passes through a wide network, forward and back, a batch at a time.

Layers are products of tiles; what lies between two of them is one sweep. The rows of a
batch are taken from all rows here, so that a step of training is three calls: forward,
the gradient of the losses in the outputs, back.

Which units a row drops is a function of a key and of their place, not of a generator's
past: forward and back agree without storing it, and any device can compute it.
"""

from __future__ import annotations

import numpy as np

from .._support.compiled import compiled
from .._support.products import product, transposed_product
from .._support.simd import address
from .._support.simd_tiles import NUMBERS, TABLE_WIDTH, add_entries

RELU, TANH = 0, 1

# Of SplitMix64: an odd step, and the multipliers and shifts of its finaliser.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
#: Units that one 64-bit number decides about, sixteen bits each.
_PER_WORD = 4
_BITS, _LOW = np.uint64(16), np.uint64(0xFFFF)
# Sums that stay in registers while entries of a sparse row are added to them.
_TOGETHER = TABLE_WIDTH * NUMBERS[4]


@compiled(inline=True)
def _mixed(word):  # type: ignore[no-untyped-def]
    word = (word ^ (word >> _SHIFTS[0])) * _MIX[0]
    word = (word ^ (word >> _SHIFTS[1])) * _MIX[1]
    return word ^ (word >> _SHIFTS[2])


@compiled
def dropout_factors(key, layer, threshold, scale, factors):  # type: ignore[no-untyped-def]
    """Fill what hidden units are multiplied by: 0, or the inverse of the share kept.

    Parameters
    ----------
    key : uint64
        Of the step.
    layer : int
    threshold : int
        Of 65,536: a unit is dropped if its sixteen bits are below.
    scale : float32
    factors : float32 array (rows, units), overwritten
    """
    n = factors.size
    flat = factors.reshape(n)
    first = _mixed(np.uint64(key) + np.uint64(layer + 1) * _STEP)
    limit = np.uint64(threshold)
    for i in range(0, n - n % _PER_WORD, _PER_WORD):
        word = _mixed(first + np.uint64(i) * _STEP)
        for j in range(_PER_WORD):
            bits = (word >> (np.uint64(j) * _BITS)) & _LOW
            flat[i + j] = scale if bits >= limit else np.float32(0)
    for i in range(n - n % _PER_WORD, n):
        start = n - n % _PER_WORD
        word = _mixed(first + np.uint64(start) * _STEP)
        bits = (word >> (np.uint64(i - start) * _BITS)) & _LOW
        flat[i] = scale if bits >= limit else np.float32(0)


@compiled
def _activate(values, bias, kind, factors, drops):  # type: ignore[no-untyped-def]
    """Add the bias, take the activation and drop units, in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[i, j] + bias[j]
            if kind == RELU:
                value = max(value, np.float32(0))
            else:
                value = np.tanh(value)
            values[i, j] = value * factors[i, j] if drops else value


@compiled
def _reverse_activation(slope, output, kind, factors, drops, scale):  # type: ignore[no-untyped-def]
    """Carry a slope back through dropping and activation, in place.

    ``output`` is what :func:`_activate` left.
    """
    for i in range(slope.shape[0]):
        for j in range(slope.shape[1]):
            factor = factors[i, j] if drops else np.float32(1)
            if kind == RELU:
                # Where a unit is dropped its output is 0, too.
                factor = scale if output[i, j] > 0 else np.float32(0)
            else:
                # The activation before it was dropped; of those that were, nothing.
                value = output[i, j] / scale
                factor *= np.float32(1) - value * value
            slope[i, j] *= factor


@compiled
def _add_bias(values, bias):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] += bias[j]


@compiled
def _sum_rows(slope, out):  # type: ignore[no-untyped-def]
    out[:] = 0
    for i in range(slope.shape[0]):
        for j in range(slope.shape[1]):
            out[j] += slope[i, j]


@compiled
def gather_dense(X, rows, out):  # type: ignore[no-untyped-def]
    """Copy some rows of X."""
    for i in range(len(rows)):
        out[i] = X[rows[i]]


@compiled
def multiply_rows(data, indices, indptr, rows, matrix, out):  # type: ignore[no-untyped-def]
    """Multiply some rows in CSR form by a matrix."""
    n_columns = matrix.shape[1]
    whole = n_columns // _TOGETHER * _TOGETHER
    for i in range(len(rows)):
        out[i] = 0
        start, end = indptr[rows[i]], indptr[rows[i] + 1]
        for begin in range(0, whole, _TOGETHER):
            add_entries(
                address(data, start),
                address(indices, start),
                end - start,
                address(matrix, begin),
                n_columns,
                address(out, i * n_columns + begin),
            )
        if whole == n_columns:
            continue
        for p in range(start, end):
            value, column = data[p], indices[p]
            for j in range(whole, n_columns):
                out[i, j] += value * matrix[column, j]


@compiled
def multiply_transposed(data, indices, indptr, rows, slope, out):  # type: ignore[no-untyped-def]
    """Multiply the transpose of some rows in CSR form by a matrix (rows, columns)."""
    n_columns = slope.shape[1]
    out[:] = 0
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value, column = data[p], indices[p]
            for j in range(n_columns):
                out[column, j] += value * slope[i, j]


@compiled
def layer(theta, start, n_inputs, n_outputs):  # type: ignore[no-untyped-def]
    """Return a layer's matrix and bias as views, and where the next layer starts."""
    end = start + n_inputs * n_outputs
    matrix = theta[start:end].reshape((n_inputs, n_outputs))
    return matrix, theta[end : end + n_outputs], end + n_outputs


@compiled
def forward(  # type: ignore[no-untyped-def]
    theta,
    dense,
    sparse,
    rows,
    widths,
    linear,
    kind,
    dropout,
    inputs,
    hidden,
    factors,
    panels,
):
    """Return the logits of some rows.

    Parameters
    ----------
    theta : float32 array (n,)
    dense : float32 array (n, D), or (0, 0)
    sparse : tuple of the three arrays of CSR rows
        Used if ``dense`` is empty.
    rows : int array (m,)
    widths : int array
        D, units of each hidden layer, K.
    linear : bool
        Whether the inputs also go to the outputs directly.
    kind : int
        RELU or TANH.
    dropout : tuple (key, threshold, scale)
        See ``dropout_factors``; a threshold of 0 drops nothing.
    inputs : float32 array (at least m, D)
        Overwritten with the rows, if they are dense.
    hidden : float32 array
        Overwritten with the outputs of all hidden layers, one after another.
    factors : float32 array, as large as the widest hidden layer's outputs
        Overwritten.
    panels : float32 array
        Overwritten; as large as ``room_for_products`` says.
    """
    m, n_layers = len(rows), len(widths) - 1
    key, threshold, scale = dropout
    is_dense = dense.shape[0] > 0
    if is_dense:
        gather_dense(dense, rows, inputs)
    logits = np.empty((m, widths[-1]), np.float32)
    start, place = 0, 0
    before = inputs[:m]
    for i in range(n_layers):
        matrix, bias, start = layer(theta, start, widths[i], widths[i + 1])
        if i < n_layers - 1:
            size = m * widths[i + 1]
            out = hidden[place : place + size].reshape((m, widths[i + 1]))
            place += size
        else:
            out = logits
        if i == 0 and not is_dense:
            multiply_rows(sparse[0], sparse[1], sparse[2], rows, matrix, out)
        else:
            product(before, matrix, panels, out)
        if i == n_layers - 1:
            _add_bias(out, bias)
        else:
            dropped = factors[:size].reshape((m, widths[i + 1]))
            if threshold > 0:
                dropout_factors(key, i, threshold, scale, dropped)
            _activate(out, bias, kind, dropped, threshold > 0)
        before = out
    if linear:
        matrix = theta[start:].reshape((widths[0], widths[-1]))
        direct = np.empty_like(logits)
        if is_dense:
            product(inputs[:m], matrix, panels, direct)
        else:
            multiply_rows(sparse[0], sparse[1], sparse[2], rows, matrix, direct)
        logits += direct
    return logits


@compiled
def forward_each(  # type: ignore[no-untyped-def]
    theta,
    dense,
    sparse,
    rows,
    ends,
    widths,
    linear,
    kind,
    inputs,
    hidden,
    factors,
    panels,
    block,
    out,
):
    """Fill the logits of networks, one after another, nothing dropped.

    Parameters
    ----------
    theta : float32 array (networks, n)
    dense, sparse, widths, linear, kind, inputs, hidden, factors, panels
        As of :func:`forward`.
    rows : int array (m,)
        Those of the first network, then those of the second, and so on.
    ends : int array (networks + 1,)
        Where the rows of each begin, and how many there are.
    block : int
        Rows at a time at most.
    out : float32 array (m, K), overwritten
    """
    dropout = (np.uint64(0), 0, np.float32(1))
    for i in range(theta.shape[0]):
        for start in range(ends[i], ends[i + 1], block):
            stop = min(start + block, ends[i + 1])
            out[start:stop] = forward(
                theta[i],
                dense,
                sparse,
                rows[start:stop],
                widths,
                linear,
                kind,
                dropout,
                inputs,
                hidden,
                factors,
                panels,
            )


@compiled
def backward(  # type: ignore[no-untyped-def]
    theta,
    sparse,
    rows,
    widths,
    linear,
    kind,
    dropout,
    inputs,
    hidden,
    factors,
    panels,
    slope,
    gradient,
):
    """Fill the derivative of Σ slope · logits in theta.

    Parameters
    ----------
    theta, sparse, rows, widths, linear, kind, dropout, inputs, hidden, factors, panels
        As :func:`forward` had and left them; ``sparse`` has no rows if they are dense.
    slope : float32 array (m, K)
    gradient : float32 array (n,), overwritten
    """
    m, n_layers = len(rows), len(widths) - 1
    key, threshold, scale = dropout
    is_dense = len(sparse[2]) == 0
    end = len(theta)
    if linear:
        end -= widths[0] * widths[-1]
        matrix = gradient[end:].reshape((widths[0], widths[-1]))
        if is_dense:
            transposed_product(inputs[:m], slope, panels, matrix)
        else:
            multiply_transposed(sparse[0], sparse[1], sparse[2], rows, slope, matrix)
    place = 0
    for i in range(1, n_layers):
        place += m * widths[i]
    for i in range(n_layers - 1, -1, -1):
        start = end - (widths[i] + 1) * widths[i + 1]
        weights, _, _ = layer(theta, start, widths[i], widths[i + 1])
        matrix, bias, _ = layer(gradient, start, widths[i], widths[i + 1])
        end = start
        _sum_rows(slope, bias)
        if i == 0:
            if is_dense:
                transposed_product(inputs[:m], slope, panels, matrix)
            else:
                multiply_transposed(
                    sparse[0], sparse[1], sparse[2], rows, slope, matrix
                )
            break
        size = m * widths[i]
        place -= size
        before = hidden[place : place + size].reshape((m, widths[i]))
        transposed_product(before, slope, panels, matrix)
        earlier = np.empty((m, widths[i]), np.float32)
        product(slope, weights.T, panels, earlier)
        dropped = factors[:size].reshape((m, widths[i]))
        if threshold > 0 and kind != RELU:
            dropout_factors(key, i - 1, threshold, scale, dropped)
        _reverse_activation(earlier, before, kind, dropped, threshold > 0, scale)
        slope = earlier

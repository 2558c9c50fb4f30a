"""Vector instructions for kernels: sixteen candidates side by side in memory.

Arrays whose last axis holds LANES candidates are worked on a whole axis at a time, as
one vector. What the compiler makes of loops over such an axis is mostly as good; the
functions here are those where it is not, because sums have to stay in registers: small
products, the activation, counting. They are written in LLVM's own terms, which it turns
into whatever the machine has: one instruction where vectors are 512 bits wide, two
where they are 256.

Each takes addresses (:func:`address`) of contiguous arrays and checks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

#: Candidates side by side.
LANES = 16
#: Rows that are worked on together; arrays of rows are padded to a multiple.
ROWS = 4


def _has_wide_registers() -> bool:
    try:
        features = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:  # not known on this system
        return False
    return bool(features.get("avx512f", False))


# Sums in registers at a time: ROWS × this many vectors, with some left for operands.
_OUTPUTS = 4 if _has_wide_registers() else 2
# Vectors of a row of sums that is kept in registers over all entries of a sparse row.
_COLUMNS = 8 if _has_wide_registers() else 4
# Thresholds that are counted together.
COUNTED = 4
#: Standardised entries are at most √(n − 1), which has to stay below this.
MOST_EXPONENT = 80.0

_INT = ir.IntType(64)
_FLOATS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
_SUFFIX = {types.float32: "f32", types.float64: "f64"}
Value = Any  # llvmlite has no types of its own
# Calls take one argument less than the functions that write the code.
_in_llvm: Any = intrinsic


def side_by_side(values: NDArray, dtype: Any = np.float64) -> NDArray:
    """Turn (p, ...) of at most LANES candidates into (..., LANES), padded with 0."""
    lanes = np.zeros((*values.shape[1:], LANES), dtype=dtype)
    lanes[..., : len(values)] = np.moveaxis(values, 0, -1)
    return lanes


def _whole(number: int) -> Value:
    return ir.Constant(_INT, number)


class _Vectors:
    """Vectors of one precision in the code that is being written."""

    def __init__(self, builder: Any, kind: types.Type, lanes: int = LANES):
        self.builder = builder
        self.kind = kind
        self.lanes = lanes
        self.type = ir.VectorType(_FLOATS[kind], lanes)

    def constant(self, number: float) -> Value:
        return ir.Constant(self.type, [number] * self.lanes)

    def broadcast(self, scalar: Value) -> Value:
        one = self.builder.insert_element(
            ir.Constant(self.type, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
        )
        places = ir.Constant(
            ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes
        )
        return self.builder.shuffle_vector(one, one, places)

    def _pointer(self, base: Value, index: Value) -> Value:
        place = self.builder.gep(base, [self.builder.mul(index, _whole(self.lanes))])
        return self.builder.bitcast(place, self.type.as_pointer())

    def load(self, base: Value, index: Value) -> Value:
        """Return vector number ``index`` from an address on."""
        # Aligned as a single number is: arrays of NumPy promise no more.
        size = 4 if self.kind == types.float32 else 8
        return self.builder.load(self._pointer(base, index), align=size)

    def store(self, value: Value, base: Value, index: Value) -> None:
        size = 4 if self.kind == types.float32 else 8
        self.builder.store(value, self._pointer(base, index), align=size)

    def call(self, name: str, *arguments: Value) -> Value:
        """Call one of LLVM's own functions of vectors."""
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(self.type, [self.type] * len(arguments)),
            f"llvm.{name}.v{self.lanes}{_SUFFIX[self.kind]}",
        )
        return self.builder.call(function, arguments)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.call("fma", a, b, c)

    def variables(self, number: int, value: Value) -> list[Value]:
        """Return variables that become registers, all set to a value."""
        found = [cgutils.alloca_once(self.builder, value.type) for _ in range(number)]
        for variable in found:
            self.builder.store(value, variable)
        return found


def _add_up(builder: Any, terms: Sequence[int | Value]) -> Value:
    total = _whole(0)
    for value in terms:
        total = builder.add(total, _whole(value) if isinstance(value, int) else value)
    return total


@_in_llvm
def address(typingctx, array, entry):  # type: ignore[no-untyped-def]
    """Return where an entry of a contiguous array is, counted from its first one.

    A slice would do, but costs a count of references.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, arguments[0]).data
        return builder.gep(data, [arguments[1]])

    return types.CPointer(array.dtype)(array, types.int64), generate


@_in_llvm
def multiply_lanes(typingctx, rows, weights, out, n_inputs, n_outputs):  # type: ignore[no-untyped-def]
    """Set out[r, j] = Σ_i rows[r, i] · weights[i, j], lane by lane, for ROWS rows.

    ``rows`` are (ROWS, n_inputs, LANES), ``weights`` (n_inputs, n_outputs, LANES) and
    ``out`` (ROWS, n_outputs, LANES).
    """
    kind = rows.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        rows, weights, out, n_inputs, n_outputs = arguments
        v = _Vectors(builder, kind)

        def some_outputs(first: Value, number: int) -> None:
            sums = v.variables(ROWS * number, v.constant(0.0))
            with cgutils.for_range(builder, n_inputs, intp=_INT) as loop:
                i = loop.index
                inputs = [
                    v.load(rows, builder.add(builder.mul(n_inputs, _whole(r)), i))
                    for r in range(ROWS)
                ]
                for j in range(number):
                    place = _add_up(builder, [builder.mul(i, n_outputs), first, j])
                    weight = v.load(weights, place)
                    for r in range(ROWS):
                        total = sums[r * number + j]
                        grown = v.fma(inputs[r], weight, builder.load(total))
                        builder.store(grown, total)
            for r in range(ROWS):
                for j in range(number):
                    place = [builder.mul(n_outputs, _whole(r)), first, j]
                    total = builder.load(sums[r * number + j])
                    v.store(total, out, _add_up(builder, place))

        whole = builder.sdiv(n_outputs, _whole(_OUTPUTS))
        with cgutils.for_range(builder, whole, intp=_INT) as loop:
            some_outputs(builder.mul(loop.index, _whole(_OUTPUTS)), _OUTPUTS)
        done = builder.mul(whole, _whole(_OUTPUTS))
        with cgutils.for_range(
            builder, builder.sub(n_outputs, done), intp=_INT
        ) as loop:
            some_outputs(builder.add(done, loop.index), 1)
        return context.get_dummy_value()

    return types.void(rows, weights, out, types.int64, types.int64), generate


class _Exponential(NamedTuple):
    """What e^x takes in one precision.

    ln 2 is the sum of ``high``, which a whole number of a few digits multiplies without
    rounding, and ``low``. Adding ``magic`` rounds to whole numbers, and leaves them in
    the lowest bits.
    """

    magic: float
    high: float
    low: float
    n_terms: int
    word: int
    exponent: int
    bias: int


_EXPONENTIAL = {
    types.float32: _Exponential(
        1.5 * 2**23, 0.693145751953125, 1.428606765330187e-06, 8, 32, 23, 127
    ),
    types.float64: _Exponential(
        1.5 * 2**52,
        0.693147180369123816490,
        1.90821492927058770002e-10,
        14,
        64,
        52,
        1023,
    ),
}


def _exponential(v: _Vectors, x: Value) -> Value:
    """Return e^x to about the last bit, for |x| below MOST_EXPONENT; NaN stays NaN.

    e^x = 2^n · e^f with n the nearest whole number to x / ln 2, so |f| ≤ ln(2) / 2,
    where the series needs few terms.
    """
    builder = v.builder
    e = _EXPONENTIAL[v.kind]
    magic = v.constant(e.magic)
    raised = v.fma(x, v.constant(1 / math.log(2)), magic)
    n = builder.fsub(raised, magic)
    f = v.fma(n, v.constant(-e.high), x)
    f = v.fma(n, v.constant(-e.low), f)
    series = v.constant(0.0)
    for k in reversed(range(e.n_terms)):
        series = v.fma(series, f, v.constant(1 / math.factorial(k)))
    words = ir.VectorType(ir.IntType(e.word), v.lanes)
    bits = builder.bitcast(raised, words)
    bits = builder.add(bits, ir.Constant(words, [e.bias] * v.lanes))
    bits = builder.shl(bits, ir.Constant(words, [e.exponent] * v.lanes))
    return builder.fmul(series, builder.bitcast(bits, v.type))


@_in_llvm
def activate_lanes(typingctx, values, out, n):  # type: ignore[no-untyped-def]
    """Standardise n entries over themselves and apply the sigmoid, lane by lane.

    Entries whose squares overflow become NaN.

    ``values`` are (ROWS, n, LANES), ``out`` (ROWS, n + 1, LANES), whose last entries
    become 1 and meet the bias row of the next matrix.
    """
    kind = values.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        values, out, n = arguments
        v = _Vectors(builder, kind)
        size = v.broadcast(builder.sitofp(n, _FLOATS[kind]))
        starts = [builder.mul(n, _whole(r)) for r in range(ROWS)]
        # From the first entry on, so that the mean of equal entries is exact.
        bases = [v.load(values, start) for start in starts]
        sums = v.variables(ROWS, v.constant(0.0))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            for start, base, total in zip(starts, bases, sums, strict=True):
                entry = v.load(values, builder.add(start, loop.index))
                away = builder.fsub(entry, base)
                builder.store(builder.fadd(builder.load(total), away), total)
        means = [
            builder.fadd(base, builder.fdiv(builder.load(total), size))
            for base, total in zip(bases, sums, strict=True)
        ]
        squares = v.variables(ROWS, v.constant(0.0))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            for start, mean, total in zip(starts, means, squares, strict=True):
                entry = v.load(values, builder.add(start, loop.index))
                away = builder.fsub(entry, mean)
                builder.store(v.fma(away, away, builder.load(total)), total)
        factors = []
        for total in squares:
            square = builder.load(total)
            deviation = v.call("sqrt", builder.fdiv(square, size))
            deviation = builder.fadd(deviation, v.constant(1e-10))
            # 0, but NaN where squares overflow: entries over inf would all be 0, which
            # looks like a network that works.
            sound = builder.fsub(square, square)
            above = builder.fadd(v.constant(-1.0), sound)
            factors.append(builder.fdiv(above, deviation))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            for r in range(ROWS):
                entry = v.load(values, builder.add(starts[r], loop.index))
                x = builder.fmul(builder.fsub(entry, means[r]), factors[r])
                below = builder.fadd(_exponential(v, x), v.constant(1.0))
                result = builder.fdiv(v.constant(1.0), below)
                place = _add_up(builder, [starts[r], r, loop.index])
                v.store(result, out, place)
        for r in range(ROWS):
            v.store(v.constant(1.0), out, _add_up(builder, [starts[r], r, n]))
        return context.get_dummy_value()

    return types.void(values, out, types.int64), generate


@_in_llvm
def count_lanes(typingctx, scores, n, thresholds, counts):  # type: ignore[no-untyped-def]
    """Set counts[t] to how many of n scores are at least thresholds[t], lane by lane.

    ``scores`` are (n, LANES), ``thresholds`` (COUNTED, LANES) and ``counts`` int32 of
    that shape.
    """
    kind = scores.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        scores, n, thresholds, counts = arguments
        v = _Vectors(builder, kind)
        words = ir.VectorType(ir.IntType(32), LANES)
        limits = [v.load(thresholds, _whole(t)) for t in range(COUNTED)]
        found = v.variables(COUNTED, ir.Constant(words, [0] * LANES))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            score = v.load(scores, loop.index)
            for limit, total in zip(limits, found, strict=True):
                reached = builder.fcmp_ordered(">=", score, limit)
                grown = builder.add(builder.load(total), builder.zext(reached, words))
                builder.store(grown, total)
        _store_counts(builder, found, counts)
        return context.get_dummy_value()

    return types.void(scores, types.int64, thresholds, counts), generate


@_in_llvm
def decide_lanes(typingctx, scores, n, threshold, counts):  # type: ignore[no-untyped-def]
    """Set counts[0] to how many of n scores are above a threshold, [1] to those NaN.

    ``scores`` are (n, LANES), ``counts`` int32 (2, LANES).
    """
    kind = scores.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        scores, n, threshold, counts = arguments
        v = _Vectors(builder, kind)
        words = ir.VectorType(ir.IntType(32), LANES)
        limit = v.broadcast(threshold)
        above, broken = v.variables(2, ir.Constant(words, [0] * LANES))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            score = v.load(scores, loop.index)
            for total, met in (
                (above, builder.fcmp_ordered(">", score, limit)),
                (broken, builder.fcmp_unordered("uno", score, score)),
            ):
                grown = builder.add(builder.load(total), builder.zext(met, words))
                builder.store(grown, total)
        _store_counts(builder, [above, broken], counts)
        return context.get_dummy_value()

    return types.void(scores, types.int64, kind, counts), generate


def _store_counts(builder: Any, totals: Sequence[Value], counts: Value) -> None:
    words = ir.VectorType(ir.IntType(32), LANES)
    for t, total in enumerate(totals):
        place = builder.gep(counts, [_whole(t * LANES)])
        place = builder.bitcast(place, words.as_pointer())
        builder.store(builder.load(total), place, align=4)


def _as_numbers(v: _Vectors, counts: Value, index: Value) -> Value:
    """Return vector ``index`` of int32 counts in float64."""
    builder = v.builder
    words = ir.VectorType(ir.IntType(32), LANES)
    place = builder.gep(counts, [builder.mul(index, _whole(LANES))])
    place = builder.bitcast(place, words.as_pointer())
    return builder.sitofp(builder.load(place, align=4), v.type)


def _add_weighted(v: _Vectors, value: Value, weight: Value, totals: Value) -> None:
    """Add weight · value to a vector of totals; two roundings, as in plain code."""
    grown = v.builder.fmul(weight, value)
    v.store(v.builder.fadd(v.load(totals, _whole(0)), grown), totals, _whole(0))


@_in_llvm
def add_decisions(typingctx, predicted, hits, n_relevant, weight, totals):  # type: ignore[no-untyped-def]
    """Add a row's wrong decisions, hits, predicted and relevant labels to totals.

    ``predicted`` and ``hits`` are int32 (LANES,), ``totals`` float64 (4, LANES).
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        predicted, hits, n_relevant, weight, totals = arguments
        v = _Vectors(builder, types.float64)
        weight = v.broadcast(weight)
        predicted, hits = (_as_numbers(v, c, _whole(0)) for c in (predicted, hits))
        relevant = v.broadcast(builder.sitofp(n_relevant, ir.DoubleType()))
        twice = builder.fadd(hits, hits)
        wrong = builder.fsub(builder.fadd(predicted, relevant), twice)
        for i, value in enumerate((wrong, hits, predicted, relevant)):
            place = builder.gep(totals, [_whole(i * LANES)])
            _add_weighted(v, value, weight, place)
        return context.get_dummy_value()

    counts = types.CPointer(types.int32)
    return types.void(counts, counts, types.int64, types.float64, totals), generate


@_in_llvm
def add_ratios(typingctx, numerators, denominators, n, weight, totals):  # type: ignore[no-untyped-def]
    """Add weight · (Σ numerator / denominator) / n to totals, lane by lane.

    Numerators and denominators are int32 (n, LANES), ``totals`` float64 (LANES,).
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        numerators, denominators, n, weight, totals = arguments
        v = _Vectors(builder, types.float64)
        (total,) = v.variables(1, v.constant(0.0))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            above, below = (
                _as_numbers(v, counts, loop.index)
                for counts in (numerators, denominators)
            )
            ratio = builder.fdiv(above, below)
            builder.store(builder.fadd(builder.load(total), ratio), total)
        size = v.broadcast(builder.sitofp(n, ir.DoubleType()))
        mean = builder.fdiv(builder.load(total), size)
        _add_weighted(v, mean, v.broadcast(weight), totals)
        return context.get_dummy_value()

    counts = types.CPointer(types.int32)
    return types.void(counts, counts, types.int64, types.float64, totals), generate


@_in_llvm
def multiply_sparse(typingctx, data, places, n, matrix, width, out):  # type: ignore[no-untyped-def]
    """Add to out the rows ``places`` of a matrix, times ``data``; n of them.

    ``matrix`` has rows of ``width`` vectors, as ``out`` is one.
    """
    kind = matrix.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data, places, n, matrix, width, out = arguments
        v = _Vectors(builder, kind)

        def some_columns(first: Value, number: int) -> None:
            sums = v.variables(number, v.constant(0.0))
            for j, total in enumerate(sums):
                start = v.load(out, _add_up(builder, [first, j]))
                builder.store(start, total)
            with cgutils.for_range(builder, n, intp=_INT) as loop:
                x = v.broadcast(builder.load(builder.gep(data, [loop.index])))
                place = builder.load(builder.gep(places, [loop.index]))
                if place.type != _INT:
                    place = builder.sext(place, _INT)
                base = builder.add(builder.mul(place, width), first)
                for j, total in enumerate(sums):
                    weight = v.load(matrix, builder.add(base, _whole(j)))
                    builder.store(v.fma(x, weight, builder.load(total)), total)
            for j, total in enumerate(sums):
                v.store(builder.load(total), out, _add_up(builder, [first, j]))

        whole = builder.sdiv(width, _whole(_COLUMNS))
        with cgutils.for_range(builder, whole, intp=_INT) as loop:
            some_columns(builder.mul(loop.index, _whole(_COLUMNS)), _COLUMNS)
        done = builder.mul(whole, _whole(_COLUMNS))
        with cgutils.for_range(builder, builder.sub(width, done), intp=_INT) as loop:
            some_columns(builder.add(done, loop.index), 1)
        return context.get_dummy_value()

    return types.void(data, places, types.int64, matrix, types.int64, out), generate

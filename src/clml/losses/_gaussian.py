"""The normal distribution for many numbers at once, in vector instructions.

Outputs x are LANES to a vector, from an address on, in a number of whole vectors. The
functions give Φ(u) and e^(−u²/2) of u = (x − centre)·scale: the probability that
Gaussian noise lifts x above the centre, and how fast it changes.

With a = |u|, e^(−a²/2) is a polynomial in a² taken four times to its square, and the
tail 1 − Φ(a) is that times a polynomial in a (Mills' ratio is smooth). Φ is off by
6e-7 at most and the density by 4e-7; beyond 5.5 deviations Φ is 0 or 1 and the density
0. A table of Φ took four times as long: vectors gather their entries one by one.

Nothing is checked. There is no NaN among the numbers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from .._support.simd import _INT, LANES, Value, _in_llvm, _Vectors

# Where the distribution ends.
_END = 5.5
# Least largest errors on [0, _END], the first term fixed so that Φ(0) is 1/2: of
# e^(−a²/32) relative to it, in powers of a²; of Mills' ratio (1 − Φ(a))·e^(a²/2)
# relative to e^(a²/2), in powers of a.
_ROOT = (
    1.0,
    -0.031249966472387314,
    0.00048826177953742445,
    -5.082296866021352e-06,
    3.935645764840956e-08,
    -2.2943305588718488e-10,
    8.059757288653158e-13,
)
_SQUARINGS = 4
_MILLS = (
    0.5,
    -0.39892882108688354,
    0.24979335069656372,
    -0.13189220428466797,
    0.059678997844457626,
    -0.02238980494439602,
    0.006464394275099039,
    -0.001295427791774273,
    0.0001557930518174544,
    -8.314407750731334e-06,
)


def _polynomial(v: _Vectors, coefficients: tuple[float, ...], x: Value) -> Value:
    total = v.constant(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = v.fma(total, x, v.constant(coefficient))
    return total


def _normal(v: _Vectors, u: Value) -> tuple[Value, Value]:
    """Return Φ(u) and e^(−u²/2)."""
    builder = v.builder
    size = v.call("fabs", u)
    inside = builder.fcmp_ordered("<", size, v.constant(_END))
    size = v.call("minnum", size, v.constant(_END))
    density = _polynomial(v, _ROOT, builder.fmul(size, size))
    for _ in range(_SQUARINGS):
        density = builder.fmul(density, density)
    density = builder.select(inside, density, v.constant(0.0))
    tail = builder.fmul(_polynomial(v, _MILLS, size), density)
    positive = builder.fcmp_ordered(">", u, v.constant(0.0))
    upper = builder.fsub(v.constant(1.0), tail)
    return builder.select(positive, upper, tail), density


def _sum(v: _Vectors, vector: Value) -> Value:
    """Return the sum over a vector's lanes, taken in pairs."""
    one = ir.FloatType()
    function = cgutils.get_or_insert_function(
        v.builder.module,
        ir.FunctionType(one, [one, v.type]),
        f"llvm.vector.reduce.fadd.v{LANES}f32",
    )
    arguments = [ir.Constant(one, -0.0), vector]
    return v.builder.call(function, arguments, fastmath=("reassoc",))


def _distances(v: _Vectors, x: Value, centre: Value, scale: Value) -> Value:
    return v.builder.fmul(v.builder.fsub(x, centre), scale)


@_in_llvm
def normal_lanes(typingctx, outputs, n, centre, scale, probability, density):  # type: ignore[no-untyped-def]
    """Set Φ(u) and e^(−u²/2) of n vectors of outputs.

    All are addresses of float32 but ``n``, ``centre`` and ``scale``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
        outputs, n, centre, scale, probability, density = arguments
        v = _Vectors(builder, types.float32)
        centre, scale = v.broadcast(centre), v.broadcast(scale)
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            i = loop.index
            u = _distances(v, v.load(outputs, i), centre, scale)
            above, at = _normal(v, u)
            v.store(above, probability, i)
            v.store(at, density, i)
        return context.get_dummy_value()

    number = types.float32
    arguments = outputs, types.int64, number, number, probability, density
    return types.void(*arguments), generate


@_in_llvm
def weigh_lanes(typingctx, outputs, n, centre, scale, first, second, density):  # type: ignore[no-untyped-def]
    """Return Σ first·Φ(u) and Σ second·Φ(u), and set e^(−u²/2), of n vectors.

    ``outputs``, the weights ``first`` and ``second``, and ``density`` are addresses of
    float32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
        outputs, n, centre, scale, first, second, density = arguments
        v = _Vectors(builder, types.float32)
        centre, scale = v.broadcast(centre), v.broadcast(scale)
        sums = v.variables(2, v.constant(0.0))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            i = loop.index
            u = _distances(v, v.load(outputs, i), centre, scale)
            above, at = _normal(v, u)
            v.store(at, density, i)
            for total, weight in zip(sums, (first, second), strict=True):
                grown = v.fma(v.load(weight, i), above, builder.load(total))
                builder.store(grown, total)
        found = [_sum(v, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, found)

    number = types.float32
    arguments = outputs, types.int64, number, number, first, second, density
    return types.UniTuple(number, 2)(*arguments), generate


@_in_llvm
def spread_lanes(typingctx, density, n, first, of_first, second, of_second, out):  # type: ignore[no-untyped-def]
    """Add density·(of_first·first + of_second·second) to ``out``; return the sum of it.

    ``density``, the weights ``first`` and ``second``, and ``out`` are addresses of n
    vectors of float32, ``of_first`` and ``of_second`` numbers.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
        density, n, first, of_first, second, of_second, out = arguments
        v = _Vectors(builder, types.float32)
        of_first, of_second = v.broadcast(of_first), v.broadcast(of_second)
        (total,) = v.variables(1, v.constant(0.0))
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            i = loop.index
            part = builder.fmul(v.load(second, i), of_second)
            part = v.fma(v.load(first, i), of_first, part)
            part = builder.fmul(part, v.load(density, i))
            v.store(builder.fadd(v.load(out, i), part), out, i)
            builder.store(builder.fadd(builder.load(total), part), total)
        return _sum(v, builder.load(total))

    number = types.float32
    arguments = density, types.int64, first, number, second, number, out
    return number(*arguments), generate

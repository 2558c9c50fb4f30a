"""Products of rows with a matrix, a tile of sums in registers at a time.

Each sum takes its terms one after the other, whichever tile it is in and wherever: a
row has the same bits in any company. A matrix is packed in panels for it, see
:class:`clml._support.rowwise.Packed`.

The functions take addresses (:func:`clml._support.simd.address`) and check nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types

from .simd import (
    _INT,
    Value,
    _add_up,
    _exponential,
    _has_wide_registers,
    _in_llvm,
    _Vectors,
    _whole,
)

#: Numbers in a vector of 512 bits, by the bytes of one.
NUMBERS = {4: 16, 8: 8}
#: Vectors that a panel may be wide: with six rows, as many sums as registers hold.
WIDTHS = (1, 2, 4) if _has_wide_registers() else (1,)
#: Vectors of a panel of a table.
TABLE_WIDTH = 8 if _has_wide_registers() else 4
#: Rows of a tile.
TILE_ROWS = 6
# e to less than this is of no account, and its float64 must not become denormal.
_LEAST_EXPONENT = -700.0

_Combine = Callable[[_Vectors, Value, Value, Value], Value]


def _vectors(builder: Any, kind: Any) -> _Vectors:
    return _Vectors(builder, kind, NUMBERS[kind.bitwidth // 8])


def _tiles_of(combine: _Combine, adds: bool = True) -> Any:
    """Return what adds the combinations of rows with a panel to sums, or sets these.

    Its arguments are the address of the rows, how far apart these are, how far apart
    the numbers of a row are, and how many rows there are; the address of the panel, its
    depth and its width in vectors; the address of the sums, and how far apart their
    rows are.
    """

    def tiles(typingctx, x, stride, step, n_rows, panel, depth, wide, out, apart):  # type: ignore[no-untyped-def]
        kind = x.dtype

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            x, stride, step, n_rows, panel, depth, wide, out, apart = arguments
            v = _vectors(builder, kind)

            def tile(first: Value, rows: int, width: int) -> None:
                sums = v.variables(rows * width, v.constant(0.0))
                starts = [
                    builder.gep(x, [builder.mul(_add_up(builder, [first, r]), stride)])
                    for r in range(rows)
                ]
                with cgutils.for_range(builder, depth, intp=_INT) as loop:
                    k = loop.index
                    base = builder.mul(k, _whole(width))
                    columns = [
                        v.load(panel, builder.add(base, _whole(c)))
                        for c in range(width)
                    ]
                    for r in range(rows):
                        place = builder.mul(k, step)
                        entry = builder.load(builder.gep(starts[r], [place]))
                        entry = v.broadcast(entry)
                        for c in range(width):
                            total = sums[r * width + c]
                            grown = combine(v, entry, columns[c], builder.load(total))
                            builder.store(grown, total)
                for r in range(rows):
                    start = builder.mul(_add_up(builder, [first, r]), apart)
                    row = builder.gep(out, [start])
                    for c in range(width):
                        total = builder.load(sums[r * width + c])
                        if adds:
                            total = builder.fadd(v.load(row, _whole(c)), total)
                        v.store(total, row, _whole(c))

            whole = builder.sdiv(n_rows, _whole(TILE_ROWS))
            done = builder.mul(whole, _whole(TILE_ROWS))
            rest = builder.sub(n_rows, done)
            for width in WIDTHS:
                is_it = builder.icmp_signed("==", wide, _whole(width))
                with builder.if_then(is_it):
                    with cgutils.for_range(builder, whole, intp=_INT) as loop:
                        first = builder.mul(loop.index, _whole(TILE_ROWS))
                        tile(first, TILE_ROWS, width)
                    with cgutils.for_range(builder, rest, intp=_INT) as loop:
                        tile(builder.add(done, loop.index), 1, width)
            return context.get_dummy_value()

        size = types.int64
        arguments = (x, size, size, size, panel, size, size, out, size)
        return types.void(*arguments), generate

    return _in_llvm(tiles)


def _product(v: _Vectors, x: Value, column: Value, total: Value) -> Value:
    return v.fma(x, column, total)


def _difference(v: _Vectors, x: Value, column: Value, total: Value) -> Value:
    away = v.call("fabs", v.builder.fsub(x, column))
    return v.builder.fadd(total, away)


#: Adds Σ x·w to sums, see the source of the function that makes it.
add_products = _tiles_of(_product)
#: Sets sums to Σ x·w.
set_products = _tiles_of(_product, adds=False)
#: Adds Σ |x − w|.
add_differences = _tiles_of(_difference)


@_in_llvm
def add_entries(typingctx, data, places, n, panel, apart, out):  # type: ignore[no-untyped-def]
    """Add to TABLE_WIDTH vectors the rows ``places`` of a panel, times ``data``.

    ``apart`` is how many numbers there are from one row of the panel to the next.
    """
    kind = panel.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data, places, n, panel, apart, out = arguments
        v = _vectors(builder, kind)
        sums = v.variables(TABLE_WIDTH, v.constant(0.0))
        for c, total in enumerate(sums):
            builder.store(v.load(out, _whole(c)), total)
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            x = v.broadcast(builder.load(builder.gep(data, [loop.index])))
            place = builder.load(builder.gep(places, [loop.index]))
            start = builder.mul(builder.zext(place, _INT), apart)
            row = builder.gep(panel, [start])
            for c, total in enumerate(sums):
                weight = v.load(row, _whole(c))
                builder.store(v.fma(x, weight, builder.load(total)), total)
        for c, total in enumerate(sums):
            v.store(builder.load(total), out, _whole(c))
        return context.get_dummy_value()

    places = types.CPointer(types.int32)
    size = types.int64
    return types.void(data, places, size, panel, size, out), generate


@_in_llvm
def to_exponentials(typingctx, values, n, factor, shift, offsets):  # type: ignore[no-untyped-def]
    """Set n vectors to e^min(factor · values + shift + offsets, 0), in place.

    Exponents below −700 count as that.
    """
    kind = values.dtype

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        values, n, factor, shift, offsets = arguments
        v = _vectors(builder, kind)
        factor, shift = v.broadcast(factor), v.broadcast(shift)
        least, most = v.constant(_LEAST_EXPONENT), v.constant(0.0)
        with cgutils.for_range(builder, n, intp=_INT) as loop:
            i = loop.index
            exponent = v.fma(factor, v.load(values, i), v.load(offsets, i))
            exponent = builder.fadd(exponent, shift)
            exponent = v.call("maxnum", v.call("minnum", exponent, most), least)
            v.store(_exponential(v, exponent), values, i)
        return context.get_dummy_value()

    number = types.float64
    return types.void(values, types.int64, number, number, offsets), generate

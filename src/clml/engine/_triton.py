"""What follows the first product on a GPU, fused: from there to counts, in registers.

A program takes one candidate through some rows. Nothing of the size (candidates, rows,
labels) is ever in memory; what a row's logits come to, some dozen bytes, is, and is
then summed in the order of the rows, as on the CPU: the same logits give the same
sums, bit for bit.

Imported only where Triton is installed and used.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ..losses import kernels as columns
from ._device_rows import WIDTH_MULTIPLE, SparseRows
from ._row_statistics import DeviceTargets, RowStatistics, Wants
from .blocks import SHARD_ROWS

# What one program keeps in registers: entries of a block of rows, and its rows.
_MOST_ENTRIES, _MOST_ROWS = 4096, 32
# Beyond these a row of a block alone is too much, or counts do not fit their bits.
_MOST_LABELS, _MOST_UNITS = 1000, 256
# Blocks of rows that share one loading of the candidate's weights.
_BLOCKS_A_PROGRAM = 4
_WARPS = 1
_PRECISION = "tf32x3"
# Rows and columns of one program of a sparse product.
_SPARSE_ROWS, _ENTRIES_AHEAD, _SPARSE_WARPS = 8, 1, 2
# Candidates summed by one program, a thread each, and rows loaded ahead.
_SUMMED_TOGETHER, _ROWS_AHEAD = 32, 16


@triton.jit
def _activate(entries, used, n_units: tl.constexpr):
    """Standardise each row over its used entries and apply the sigmoid."""
    # From one of the entries on, so that a row of equal ones is exactly 0.
    most = tl.max(tl.where(used[None, :], entries, float("-inf")), axis=1)
    distance = tl.where(used[None, :], entries - most[:, None], 0.0)
    mean = tl.sum(distance, axis=1) * (1.0 / n_units)
    distance = tl.where(used[None, :], distance - mean[:, None], 0.0)
    square = tl.sum(distance * distance, axis=1) * (1.0 / n_units)
    # NaN where squares overflow: entries over inf would all be 0.
    deviation = tl.sqrt(square) + (square - square)
    factor = -1.4426950408889634 / (deviation + 1e-10)  # e^-z is 2^(-z·log2(e))
    return tl.where(
        used[None, :], 1.0 / (1.0 + tl.exp2(distance * factor[:, None])), 0.0
    )


@triton.jit
def _row_statistics(
    product,
    bias,
    hidden,
    last,
    truth,
    indptr,
    indices,
    weights,
    order,
    ratios,
    decisions_out,
    lrap_out,
    ranking_out,
    coverage_out,
    topped_out,
    logits_out,
    first_row,
    n_rows,
    n_candidates,
    stride,
    threshold,
    n_units: tl.constexpr,
    n_labels: tl.constexpr,
    n_layers: tl.constexpr,
    unit_room: tl.constexpr,
    label_room: tl.constexpr,
    block: tl.constexpr,
    blocks: tl.constexpr,
    want_lrap: tl.constexpr,
    want_order: tl.constexpr,
    want_logits: tl.constexpr,
    precise: tl.constexpr,
):
    """Fill what the logits of some rows come to, for one candidate."""
    candidate = tl.program_id(0)
    unit = tl.arange(0, unit_room)
    label = tl.arange(0, label_room)
    unit_used, label_used = unit < n_units, label < n_labels
    first_bias = tl.load(bias + candidate * n_units + unit, mask=unit_used, other=0.0)
    last += candidate * (n_units + 1) * n_labels
    last_matrix = tl.load(
        last + unit[:, None] * n_labels + label[None, :],
        mask=unit_used[:, None] & label_used[None, :],
        other=0.0,
    )
    last_bias = tl.load(last + n_units * n_labels + label, mask=label_used, other=0.0)
    hidden += candidate * n_layers * (n_units + 1) * n_units
    for number in range(blocks):
        position = (tl.program_id(1) * blocks + number) * block + tl.arange(0, block)
        here = position < n_rows
        # Rows with as many relevant labels come together: see below.
        target = tl.load(order + first_row + position, mask=here, other=first_row)
        row = target - first_row
        # Rows times candidates times units pass 2^31.
        place = row.to(tl.int64) * n_candidates + candidate
        first = row.to(tl.int64) * stride + candidate * n_units
        entries = tl.load(
            product + first[:, None] + unit[None, :],
            mask=here[:, None] & unit_used[None, :],
            other=0.0,
        )
        active = _activate(entries + first_bias[None, :], unit_used, n_units)
        for layer in tl.static_range(n_layers):
            own = hidden + layer * (n_units + 1) * n_units
            matrix = tl.load(
                own + unit[:, None] * n_units + unit[None, :],
                mask=unit_used[:, None] & unit_used[None, :],
                other=0.0,
            )
            own_bias = tl.load(
                own + n_units * n_units + unit, mask=unit_used, other=0.0
            )
            sums = tl.dot(active, matrix, input_precision=precise)
            active = _activate(sums + own_bias[None, :], unit_used, n_units)
        logits = tl.dot(active, last_matrix, input_precision=precise)
        logits += last_bias[None, :]

        used = here[:, None] & label_used[None, :]
        if want_logits:
            at = (candidate.to(tl.int64) * n_rows + row) * n_labels
            tl.store(logits_out + at[:, None] + label[None, :], logits, mask=used)
        relevant = tl.load(
            truth + target[:, None].to(tl.int64) * n_labels + label[None, :],
            mask=used,
            other=0,
        ).to(tl.int32)
        # Three counts below 1024 in one number: decisions, hits, and NaN.
        decided = tl.where(used & (logits > threshold), 1 + (relevant << 11), 0)
        decided = tl.where(used & (logits != logits), 1 << 22, decided)
        counts = tl.sum(decided, axis=1)
        # From 512 of them on the sum wraps round to a negative number.
        counts = tl.where((counts >= 1 << 22) | (counts < 0), -1, counts)
        tl.store(decisions_out + place, counts, mask=here)
        if want_lrap or want_order:
            start = tl.load(indptr + target, mask=here, other=0)
            n_relevant = tl.load(indptr + target + 1, mask=here, other=0) - start
            weight = tl.load(weights + target, mask=here, other=0.0)
            precision = tl.zeros((block,), tl.float64)
            swapped = tl.zeros((block,), tl.int32)
            coverage = tl.zeros((block,), tl.int32)
            topped = tl.zeros((block,), tl.int32)
            one = tl.where(label_used[None, :], 1 + (relevant << 11), 0)
            for j in range(tl.max(n_relevant, axis=0)):
                has = j < n_relevant
                index = tl.load(indices + start + j, mask=has, other=0)
                chosen = label[None, :] == index[:, None]
                limit = tl.sum(tl.where(chosen, logits, 0.0), axis=1)
                counts = tl.sum(tl.where(logits >= limit[:, None], one, 0), axis=1)
                rank, among = counts & 2047, counts >> 11
                if want_lrap:
                    # A division of doubles is dear, and every one is known before.
                    share = tl.load(
                        ratios + rank * (n_labels + 1) + among, mask=has, other=0.0
                    )
                    precision += share
                if want_order:
                    swapped += tl.where(has, rank - among, 0)
                    coverage = tl.maximum(coverage, tl.where(has, rank, 0))
                    topped |= (has & (rank == among)).to(tl.int32)
            trivial = (n_relevant == 0) | (n_relevant == n_labels)
            if want_lrap:
                share = precision / tl.where(trivial, 1, n_relevant).to(tl.float64)
                lrap = weight * tl.where(trivial, 1.0, share)
                tl.store(lrap_out + place, lrap, mask=here)
            if want_order:
                pairs = tl.where(trivial, 1, n_relevant * (n_labels - n_relevant))
                share = weight * (swapped.to(tl.float64) / pairs.to(tl.float64))
                tl.store(ranking_out + place, tl.where(trivial, 0.0, share), mask=here)
                tl.store(coverage_out + place, coverage, mask=here)
                tl.store(topped_out + place, topped, mask=here)


@triton.jit
def _sum_rows(
    decisions_in,
    lrap_in,
    ranking_in,
    coverage_in,
    topped_in,
    indptr,
    weights,
    totals,
    first_row,
    n_rows,
    n_candidates,
    n_columns: tl.constexpr,
    shard_rows: tl.constexpr,
    room: tl.constexpr,
    ahead: tl.constexpr,
    want_lrap: tl.constexpr,
    want_order: tl.constexpr,
    want_example: tl.constexpr,
):
    """Add the rows of a shard, one after the other, to the sums of some candidates."""
    candidate = tl.program_id(0) * room + tl.arange(0, room)
    used = candidate < n_candidates
    first = tl.program_id(1) * shard_rows
    zero = tl.zeros((room,), tl.float64)
    wrong, hit, found, counted = zero, zero, zero, zero
    subset, jaccard, example_f1 = zero, zero, zero
    lrap, ranking, coverage, one_error = zero, zero, zero, zero
    n_nan = tl.zeros((room,), tl.int32)
    end = tl.minimum(first + shard_rows, n_rows)
    for block in range(first, end, ahead):
        # Unrolled: what later rows need is on its way while earlier ones are added.
        for i in tl.static_range(ahead):
            # Beyond the end the last row once more, of weight 0.
            row = tl.minimum(block + i, end - 1)
            weight = tl.load(weights + first_row + row)
            weight = tl.where(block + i < end, weight, 0.0) + zero
            start = tl.load(indptr + first_row + row)
            n_relevant = tl.load(indptr + first_row + row + 1) - start
            relevant = n_relevant.to(tl.float64)
            place = row.to(tl.int64) * n_candidates + candidate
            counts = (weight > 0.0) & used
            decisions = tl.load(decisions_in + place, mask=counts, other=0)
            n_nan += (decisions < 0).to(tl.int32)
            predicted = (decisions & 2047).to(tl.float64)
            hits = (decisions >> 11).to(tl.float64)
            size = predicted + relevant
            errors = size - 2.0 * hits
            wrong += weight * errors
            hit += weight * hits
            found += weight * predicted
            counted += weight * relevant
            if want_example:
                subset += tl.where(errors > 0, weight, 0.0)
                some = hits > 0
                of_all = hits / tl.where(some, size - hits, 1.0)
                jaccard += tl.where(some, weight * of_all, 0.0)
                of_both = 2.0 * hits / tl.where(some, size, 1.0)
                example_f1 += tl.where(some, weight * of_both, 0.0)
            if want_lrap:
                lrap += tl.load(lrap_in + place, mask=counts, other=0.0)
            if want_order:
                lowest = tl.load(coverage_in + place, mask=counts, other=0)
                coverage += weight * lowest.to(tl.float64)
                topped = tl.load(topped_in + place, mask=counts, other=0)
                one_error += tl.where(topped == 0, weight, 0.0)
                ranking += tl.load(ranking_in + place, mask=counts, other=0.0)
    totals += tl.program_id(1) * n_columns * n_candidates + candidate
    nan = tl.where(n_nan > 0, float("nan"), 0.0).to(tl.float64)
    tl.store(totals, wrong + nan, mask=used)
    tl.store(totals + n_candidates, hit + nan, mask=used)
    tl.store(totals + 2 * n_candidates, found + nan, mask=used)
    tl.store(totals + 3 * n_candidates, counted + nan, mask=used)
    tl.store(totals + 4 * n_candidates, subset + nan, mask=used)
    tl.store(totals + 5 * n_candidates, jaccard + nan, mask=used)
    tl.store(totals + 6 * n_candidates, example_f1 + nan, mask=used)
    tl.store(totals + 7 * n_candidates, lrap + nan, mask=used)
    tl.store(totals + 8 * n_candidates, ranking + nan, mask=used)
    tl.store(totals + 9 * n_candidates, coverage + nan, mask=used)
    tl.store(totals + 10 * n_candidates, one_error + nan, mask=used)


@triton.jit
def _sparse_product(
    values,
    columns,
    indptr,
    order,
    matrix,
    out,
    first_row,
    n_rows,
    width,
    block: tl.constexpr,
    room: tl.constexpr,
    ahead: tl.constexpr,
    place_type: tl.constexpr,
):
    """Multiply some sparse rows by some columns of a matrix, entry after entry."""
    # Neighbouring programs have the same columns, which then stay in the cache.
    position = tl.program_id(0) * block + tl.arange(0, block)
    column = tl.program_id(1) * room + tl.arange(0, room)
    here = position < n_rows
    row = tl.load(order + first_row + position, mask=here, other=first_row)
    start = tl.load(indptr + row, mask=here, other=0)
    count = (tl.load(indptr + row + 1, mask=here, other=0) - start).to(tl.int32)
    values += start
    columns += start
    matrix += column[None, :]
    total = tl.zeros((block, room), tl.float32)
    for first in range(0, tl.max(count, axis=0), ahead):
        for i in tl.static_range(ahead):
            has = first + i < count
            value = tl.load(values + first + i, mask=has, other=0.0)
            index = tl.load(columns + first + i, mask=has, other=0).to(place_type)
            # Masked: 0 times a weight that is not finite would be NaN.
            weights = tl.load(
                matrix + (index * width)[:, None], mask=has[:, None], other=0.0
            )
            total += value[:, None] * weights
    place = (row - first_row).to(tl.int64) * width
    tl.store(out + place[:, None] + column[None, :], total, mask=here[:, None])


def sparse_product(
    rows: SparseRows, matrix: torch.Tensor, start: int, stop: int
) -> torch.Tensor:
    """Return the product (stop - start, width) of sparse rows and a matrix (D, width).

    Entries are added in the order of a row, so that the result is always the same.
    The width is a multiple of ``WIDTH_MULTIPLE``.
    """
    n_rows, width = stop - start, matrix.shape[1]
    out = torch.empty((n_rows, width), dtype=matrix.dtype, device=matrix.device)
    grid = (triton.cdiv(n_rows, _SPARSE_ROWS), width // WIDTH_MULTIPLE)
    _sparse_product[grid](
        rows.values,
        rows.columns,
        rows.indptr,
        rows.order,
        matrix,
        out,
        start,
        n_rows,
        width,
        block=_SPARSE_ROWS,
        room=WIDTH_MULTIPLE,
        ahead=_ENTRIES_AHEAD,
        place_type=tl.int32 if matrix.numel() < 2**31 else tl.int64,
        num_warps=_SPARSE_WARPS,
    )
    return out


@triton.jit
def _ordered_sums(
    values,
    sums,
    n_series,
    n_values,
    together,
    n_sums,
    room: tl.constexpr,
    ahead: tl.constexpr,
):
    """Add values of some series, one after the other."""
    series = tl.program_id(0) * room + tl.arange(0, room)
    used = series < n_series
    first = tl.program_id(1) * together
    end = tl.minimum(first + together, n_values)
    values += series.to(tl.int64) * n_values
    total = tl.zeros((room,), tl.float64)
    for block in range(first, end, ahead):
        for i in tl.static_range(ahead):
            # Beyond the end the last value once more, as 0.
            place = tl.minimum(block + i, end - 1)
            value = tl.load(values + place, mask=used, other=0.0)
            total += tl.where(block + i < end, value, 0.0)
    place = series.to(tl.int64) * n_sums + tl.program_id(1)
    tl.store(sums + place, total, mask=used)


def ordered_sums(values: torch.Tensor, together: int = SHARD_ROWS) -> torch.Tensor:
    """Return sums (..., parts) of values (..., n), as the plain ``ordered_sums``."""
    values = values.contiguous()
    n_values = values.shape[-1]
    n_series, n_sums = values[..., 0].numel(), triton.cdiv(n_values, together)
    sums = values.new_empty((*values.shape[:-1], n_sums))
    grid = (triton.cdiv(n_series, _SUMMED_TOGETHER), n_sums)
    _ordered_sums[grid](
        values,
        sums,
        n_series,
        n_values,
        together,
        n_sums,
        room=_SUMMED_TOGETHER,
        ahead=_ROWS_AHEAD,
        num_warps=1,
    )
    return sums


def is_supported(n_units: int, n_labels: int) -> bool:
    """Tell whether rows of this size fit the registers of a program."""
    return n_units <= _MOST_UNITS and n_labels <= _MOST_LABELS


def count_rows(
    product: torch.Tensor,
    weights: Any,
    targets: DeviceTargets,
    start: int,
    threshold: float,
    wants: Wants,
    logits: torch.Tensor | None = None,
) -> RowStatistics:
    """Count what rows come to, from the first product (rows, candidates, C) on.

    Parameters
    ----------
    product : float32 tensor (rows, candidates, C)
        Of whole shards of rows, or of the last ones.
    weights : DeviceWeights
    targets : DeviceTargets
        Of all rows.
    start : int
        The targets' row that the first one is; a shard's first.
    threshold : float
    wants : Wants
    logits : float32 tensor (candidates, rows, K), default=None
        Overwritten with the logits, if given.
    """
    n_rows, n_candidates, n_units = product.shape
    n_labels = weights.last.shape[2]
    found = RowStatistics.empty((n_rows, n_candidates), wants, product.device)
    unit_room = max(16, triton.next_power_of_2(n_units))
    label_room = max(16, triton.next_power_of_2(n_labels))
    entries = max(unit_room, label_room)
    block = max(16, min(_MOST_ROWS, _MOST_ENTRIES // entries))
    grid = (n_candidates, triton.cdiv(n_rows, block * _BLOCKS_A_PROGRAM))
    _row_statistics[grid](
        product,
        weights.bias,
        weights.hidden,
        weights.last,
        targets.dense,
        targets.indptr,
        targets.indices,
        targets.weight,
        targets.order,
        targets.ratios,
        *_outputs(found),
        product if logits is None else logits,
        start,
        n_rows,
        n_candidates,
        product.stride(0),
        threshold,
        n_units=n_units,
        n_labels=n_labels,
        n_layers=weights.hidden.shape[1],
        unit_room=unit_room,
        label_room=label_room,
        block=block,
        blocks=_BLOCKS_A_PROGRAM,
        want_lrap=wants.lrap,
        want_order=wants.order,
        want_logits=logits is not None,
        precise=_PRECISION,
        num_warps=_WARPS,
    )
    return found


def sum_shards(
    rows: RowStatistics, targets: DeviceTargets, start: int, wants: Wants
) -> torch.Tensor:
    """Return the sums (shards, columns, candidates), as the plain ``sum_shards``."""
    n_rows, n_candidates = rows.decisions.shape
    n_shards = triton.cdiv(n_rows, SHARD_ROWS)
    totals = torch.empty(
        (n_shards, columns.CROSS_ENTROPY, n_candidates),
        dtype=torch.float64,
        device=rows.decisions.device,
    )
    grid = (triton.cdiv(n_candidates, _SUMMED_TOGETHER), n_shards)
    _sum_rows[grid](
        *_outputs(rows),
        targets.indptr,
        targets.weight,
        totals,
        start,
        n_rows,
        n_candidates,
        n_columns=columns.CROSS_ENTROPY,
        shard_rows=SHARD_ROWS,
        room=_SUMMED_TOGETHER,
        ahead=_ROWS_AHEAD,
        want_lrap=wants.lrap,
        want_order=wants.order,
        want_example=wants.example,
        num_warps=1,
        # A product and a sum rounded together would not be those of the CPU.
        enable_fp_fusion=False,
    )
    return totals


def _outputs(rows: RowStatistics) -> tuple[torch.Tensor, ...]:
    """Return the tensors; those that are not wanted are never touched."""
    spare = rows.decisions
    return tuple(
        spare if tensor is None else tensor
        for tensor in (
            rows.decisions,
            rows.lrap,
            rows.ranking,
            rows.coverage,
            rows.topped,
        )
    )

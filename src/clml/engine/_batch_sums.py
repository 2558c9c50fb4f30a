"""Statistics of the rows of a step, summed for each member, in PyTorch.

The sums that ``losses._kernels.accumulate`` gives for one member, whose rows are its
own, for all members at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._support.torch import import_torch
from ..losses import LossSet
from ..losses import kernels as columns
from ._step_rows import StepRows

if TYPE_CHECKING:
    from torch import Tensor


def batch_sums(rows: StepRows, loss_set: LossSet) -> tuple[Tensor, Tensor]:
    """Return the sums (members, columns) and (members, 3, K) of a step's rows.

    They are float64, in the order of ``Totals``; without statistics of labels the
    latter have no entry. A member with NaN in a row of positive weight has NaN.

    Parameters
    ----------
    rows : StepRows
    loss_set : LossSet
        Made of built-in row statistics.
    """
    torch = import_torch()
    wanted = loss_set.row_statistics
    assert wanted is not None  # there is no credit for others
    _, example, probability, per_label, ks = wanted
    needs = loss_set.needs
    truth, n_relevant = rows.labels.truth, rows.n_relevant
    decided = rows.scores > loss_set.threshold
    right = decided & truth
    # All of one type: what is stacked is then one operation.
    predicted, hits = (x.sum(dim=2, dtype=torch.float64) for x in (decided, right))
    size = predicted + n_relevant
    wrong = size - 2 * hits
    values = {
        columns.WRONG: wrong,
        columns.HITS: hits,
        columns.PREDICTED: predicted,
        columns.RELEVANT: n_relevant,
    }
    if example:
        values[columns.SUBSET] = (wrong > 0).double()
        values[columns.JACCARD] = hits / (size - hits).clamp(min=1)
        values[columns.EXAMPLE_F1] = 2 * hits / size.clamp(min=1)
    if needs.lrap or needs.order:
        values |= _order_values(rows, needs.lrap, needs.order)
    for i, k in enumerate(ks.tolist()):
        ranked = truth.gather(-1, rows.falling_order)
        found = ranked[..., :k].sum(dim=2, dtype=torch.float64)
        values[columns.N_COLUMNS + i] = found
    if probability:
        values |= _log_losses(rows)
    nothing = torch.zeros_like(wrong)
    n_columns = columns.N_COLUMNS + len(ks)
    stack = torch.stack([values.get(c, nothing) for c in range(n_columns)], dim=1)
    weight = rows.labels.weight.masked_fill(rows.undefined & rows.used, torch.nan)
    sums = (weight[:, None] * stack).sum(dim=2)
    if not per_label:
        return sums, sums.new_zeros((len(sums), 3, 0))
    each = torch.stack([right, decided, truth], dim=1)
    return sums, (weight[:, None, :, None] * each).sum(dim=2)


def _order_values(rows: StepRows, lrap: bool, order: bool) -> dict[int, Tensor]:
    """Return statistics of the order, (members, rows) each."""
    torch = import_torch()
    found = [_order_of(rows, block, order) for block in rows.blocks]
    both = zip(*found, strict=True)
    parts = [torch.cat(some, dim=1) if len(some) > 1 else some[0] for some in both]
    trivial = ~rows.ranked
    values = {}
    if lrap:
        share = parts[0] / rows.n_relevant.clamp(min=1)
        values[columns.LRAP] = share.masked_fill(trivial, 1.0)
    if order:
        _, swapped, lowest, topped = parts
        pairs = (rows.n_relevant * rows.n_other).clamp(min=1)
        values[columns.RANKING] = (swapped / pairs).masked_fill(trivial, 0.0)
        values[columns.COVERAGE] = lowest.double()
        values[columns.ONE_ERROR] = (~topped).double()
    return values


def _order_of(rows: StepRows, block: slice, order: bool) -> list[Tensor]:
    """Return Σ q/r, and if asked for Σ (r − q), the largest r, whether an r is q.

    r is a relevant label's rank among all labels, q that among relevant ones.
    """
    at_least = rows.distances(block) >= 0
    nothing = ~rows.labels.valid[:, block]
    rank = at_least.sum(dim=3)
    among = (at_least & rows.labels.truth[:, block, None]).sum(dim=3)
    found = [(among / rank.double()).masked_fill(nothing, 0.0).sum(dim=2)]
    if order:
        above = rank - among
        topped = (above == 0).masked_fill(nothing, False).any(dim=2)
        above, rank = above.masked_fill(nothing, 0), rank.masked_fill(nothing, 0)
        found += [above.sum(dim=2), rank.amax(dim=2), topped]
    return found


def _log_losses(rows: StepRows) -> dict[int, Tensor]:
    """Return cross-entropy and row log loss, infinite where scores are."""
    torch = import_torch()
    log_sigmoid = torch.nn.functional.logsigmoid
    z = rows.given.double().masked_fill(~rows.used[..., None], 0.0)
    truth = rows.labels.truth
    log_p = log_sigmoid(z)
    entropy = -torch.where(truth, log_p, log_sigmoid(-z)).sum(dim=2)
    mass = log_p.logsumexp(dim=2, keepdim=True)
    row = (mass - log_p).masked_fill(~truth, 0.0).sum(dim=2)
    return {columns.CROSS_ENTROPY: entropy, columns.ROW_LOG_LOSS: row}

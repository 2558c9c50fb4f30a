"""Derivatives of smoothed row statistics for several members at once, in PyTorch.

What ``losses._smooth_kernels`` computes one row after the other; ``losses._smoothed``
says what becomes of each statistic when outputs carry Gaussian noise. Nothing here is
added by atomic operations, and nothing is read back from the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._support.torch import import_torch
from ..losses import LossSet
from ..losses import kernels as columns
from ..losses.statistics import SCALAR_STATISTICS
from ._step_rows import StepRows

if TYPE_CHECKING:
    from torch import Tensor

_PEAK = 1 / math.sqrt(2 * math.pi)
# Where the normal distribution ends, as the compiled one does.
_END = 5.5
_OF_DECISIONS = {s.name for s in SCALAR_STATISTICS[: columns.LRAP]}


@dataclass(frozen=True, eq=False)
class Prices:
    """What a unit of each statistic's sum is worth, for each member.

    Attributes
    ----------
    columns : float64 tensor (members, columns)
        In the order of ``Totals.columns``.
    labels : float64 tensor (members, 3, K) or None
        Of hits, predicted and relevant of each label; None if no loss has these.
    """

    columns: Tensor
    labels: Tensor | None


def smoothed_gradient(
    rows: StepRows, smoothing: float, prices: Prices, loss_set: LossSet
) -> Tensor:
    """Return the derivative of the smoothed losses in each output of each row.

    What :func:`clml.losses.smoothed_gradient` does for one member.

    Parameters
    ----------
    rows : StepRows
        A row that had NaN has gradient 0.
    smoothing : float
        Deviation σ of the noise.
    prices : Prices
    loss_set : LossSet
        Made of built-in row statistics.

    Returns
    -------
    float32 tensor (members, rows, K)
    """
    found = _Gradient(rows, 1.0 / smoothing, prices)
    wanted = {s.name for x in loss_set.losses for s in x.resolved_statistics()}
    if prices.labels is not None or wanted & _OF_DECISIONS:
        found.add_decisions(loss_set.threshold, wanted)
    if wanted & {"lrap", "ranking"}:
        found.add_pairs()
    if "coverage" in wanted:
        found.add_coverage()
    if "one_error" in wanted:
        found.add_one_error()
    ks = [] if loss_set.row_statistics is None else loss_set.row_statistics[4].tolist()
    if ks:
        found.add_top_hits(ks)
    if wanted & {"cross_entropy", "row_log_loss"}:
        found.add_log_losses()
    weight = rows.labels.weight.float().masked_fill_(rows.undefined, 0.0)
    return found.total * weight[..., None]


def _density(u: Tensor) -> Tensor:
    """Return e^(−u²/2), 0 where the distribution has ended."""
    return (u * u).mul_(-0.5).exp_().masked_fill_(u.abs() >= _END, 0.0)


def _products_of_others(factors: Tensor) -> Tensor:
    """Return the product (..., K) of all factors but one; factors may be 0.

    The product of those before times that of those behind, both by doubling.
    """
    return _before(factors) * _before(factors.flip(-1)).flip(-1)


def _before(factors: Tensor) -> Tensor:
    torch = import_torch()
    ones = torch.ones_like(factors)
    found = torch.cat([ones[..., :1], factors[..., :-1]], dim=-1)
    step = 1
    while step < factors.shape[-1]:
        found = found * torch.cat([ones[..., :step], found[..., :-step]], dim=-1)
        step *= 2
    return found


def _two_largest(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest values (..., 1) and the next, equal ones counted apart."""
    torch = import_torch()
    falling = values.sort(dim=-1, descending=True).values
    if values.shape[-1] == 1:
        return falling, torch.full_like(falling, -torch.inf)
    return falling[..., :1], falling[..., 1:2]


class _Gradient:
    """The gradient of a step's rows, to which one statistic after the other is added.

    Attributes
    ----------
    total : float32 tensor (members, rows, K)
        Of rows of weight 1.
    """

    def __init__(self, rows: StepRows, scale: float, prices: Prices):
        self._rows, self._scale, self._prices = rows, scale, prices
        self._scores, self._truth = rows.scores, rows.labels.truth
        self.total = import_torch().zeros_like(rows.scores)

    def _price(self, column: int) -> Tensor:
        """Return the price (members, 1) of a statistic, for all rows."""
        return self._prices.columns[:, column, None]

    def _change(self, column: int) -> Tensor:
        """Return it in units of the density, float32 (members, 1, 1)."""
        return (_PEAK * self._scale * self._price(column)).float()[..., None]

    def add_decisions(self, threshold: float, wanted: set[str]) -> None:
        """Add counts of decisions, their ratios, and whether one is wrong."""
        torch = import_torch()
        rows, peak = self._rows, _PEAK * self._scale
        u = (self._scores - threshold) * self._scale
        probability, density = torch.special.ndtr(u), _density(u)
        wrong = self._price(columns.WRONG)
        of_other = self._price(columns.PREDICTED) + wrong
        of_own = self._price(columns.HITS) - 2 * wrong + of_other
        if wanted & {"jaccard", "example_f1"}:
            by_hits, by_predicted = self._ratio_prices(probability)
            of_other = of_other + by_predicted
            of_own = of_own + by_predicted + by_hits
        own, other = ((peak * x).float()[..., None] for x in (of_own, of_other))
        worth = torch.where(self._truth, own, other)
        if self._prices.labels is not None:
            by_label = (peak * self._prices.labels).float()[:, :, None]
            worth = worth + by_label[:, 0] * rows.truth + by_label[:, 1]
        self.total += worth * density
        if "subset" in wanted:
            p = probability.double()
            right = torch.where(self._truth, p, 1 - p)
            change = _products_of_others(right) * density * self._change(columns.SUBSET)
            self.total += torch.where(self._truth, -change, change)

    def _ratio_prices(self, probability: Tensor) -> tuple[Tensor, Tensor]:
        """Return what hits and predictions are worth in Jaccard and F1 of a row."""
        rows = self._rows
        none = rows.n_relevant == 0  # both are 0 there, whatever is predicted
        hits = (probability * rows.truth).sum(dim=2).double()
        size = probability.sum(dim=2).double() + rows.n_relevant
        size = size.masked_fill(none, 1.0)
        union = (size - hits).masked_fill(none, 1.0)
        jaccard = self._price(columns.JACCARD).expand_as(hits).masked_fill(none, 0.0)
        f1 = self._price(columns.EXAMPLE_F1).expand_as(hits).masked_fill(none, 0.0)
        by_hits = jaccard * (size / union**2) + f1 * (2 / size)
        by_predicted = -jaccard * (hits / union**2) - f1 * (2 * hits / size**2)
        return by_hits, by_predicted

    def add_pairs(self) -> None:
        """Add LRAP and the share of pairs in the wrong order, a block at a time.

        For a relevant label, with sums over others of the probability that they are
        above it, q is 1 plus that over relevant labels, r is q plus that over
        irrelevant ones. LRAP is the mean of q / r, and r − q counts pairs.
        """
        rows = self._rows
        # Two outputs with noise differ by noise of √2 times the deviation.
        scale = self._scale / math.sqrt(2)
        n_relevant = rows.n_relevant.clamp(min=1)
        share = _PEAK * scale * self._price(columns.LRAP) / n_relevant
        n_pairs = n_relevant * rows.n_other.clamp(min=1)
        swap = _PEAK * scale * self._price(columns.RANKING) / n_pairs
        for block in rows.blocks:
            self._add_pairs_of(block, scale, share[:, block], swap[:, block])

    def _add_pairs_of(
        self, block: slice, scale: float, share: Tensor, swap: Tensor
    ) -> None:
        torch = import_torch()
        rows = self._rows
        u = rows.distances(block) * scale
        above = torch.special.ndtr(u)
        # Among the relevant ones a label counted itself half: Φ(0).
        q = (above * rows.truth[:, block, None]).sum(dim=3).double() + 0.5
        others = (above * rows.others[:, block, None]).sum(dim=3).double()
        r = q + others
        slope = share[..., None] / (r * r)
        unused = ~(rows.labels.valid[:, block] & rows.ranked[:, block, None])
        own = (slope * others).masked_fill_(unused, 0.0).float()
        other = (swap[..., None] - slope * q).masked_fill_(unused, 0.0).float()
        truth = self._truth[:, block, None]
        part = _density(u).mul_(torch.where(truth, own[..., None], other[..., None]))
        self.total[:, block] += part.sum(dim=2)
        # What lifts another label above a relevant one lowers that.
        self.total[:, block] -= rows.placed(part.sum(dim=3), block)

    def add_coverage(self) -> None:
        """Add the rank of the lowest relevant label.

        It grows by one where an irrelevant label reaches the lowest relevant one, and
        falls by one where a relevant label passes an irrelevant one that is below all
        other relevant labels.
        """
        torch = import_torch()
        rows, change = self._rows, self._change(columns.COVERAGE)
        negative = (-self._scores).masked_fill_(~self._truth, -torch.inf)
        lowest, second = (-found for found in _two_largest(negative))
        counts = (rows.n_relevant > 0)[..., None] & ~self._truth
        density = _density((self._scores - lowest) * self._scale)
        self.total += change * density * counts
        bound = torch.where(self._scores == lowest, second, lowest)
        for block in rows.blocks:
            bounds = bound[:, block].gather(2, rows.labels.relevant[:, block])
            below = self._scores[:, block, None] < bounds[..., None]
            density = _density(rows.distances(block) * self._scale)
            passed = (density * (below & counts[:, block, None])).sum(dim=3)
            passed = passed.masked_fill_(~rows.labels.valid[:, block], 0.0)
            self.total[:, block] -= change * rows.placed(passed, block)

    def add_one_error(self) -> None:
        """Add whether an irrelevant label is highest.

        An output decides if without it the order would be the other: an irrelevant one
        where it reaches the highest relevant one, a relevant one where it passes the
        highest irrelevant one.
        """
        torch = import_torch()
        z, truth = self._scores, self._truth
        best, next_best = _two_largest(z.masked_fill(~truth, -torch.inf))
        other, next_other = _two_largest(z.masked_fill(truth, -torch.inf))
        rises = ~truth & (torch.where(z == other, next_other, other) < best)
        falls = truth & (torch.where(z == best, next_best, best) <= other)
        moved = _density((z - best) * self._scale) * rises
        moved -= _density((z - other) * self._scale) * falls
        moved = moved.masked_fill_(~self._rows.ranked[..., None], 0.0)
        self.total += self._change(columns.ONE_ERROR) * moved

    def add_top_hits(self, ks: list[int]) -> None:
        """Add the numbers of relevant labels among the k highest.

        One of them leaves where it falls below the first that is not among them, and
        one of the rest enters where it reaches the last that is; the two change places.
        """
        torch = import_torch()
        z, truth = self._scores, self._rows.truth
        order = self._rows.falling_order
        position = order.argsort(dim=-1)
        some = (self._rows.n_relevant > 0)[..., None]
        for i, k in enumerate(ks):
            if k >= self._rows.n_labels:
                continue
            last, first = order[..., k - 1 : k], order[..., k : k + 1]
            rival = torch.where(position < k, first, last)
            density = _density((z - z.gather(2, rival)) * self._scale)
            moved = (truth - truth.gather(2, rival)) * density * some
            self.total += self._change(columns.N_COLUMNS + i) * moved

    def add_log_losses(self) -> None:
        """Add cross-entropy and row log loss, which are smooth."""
        torch = import_torch()
        log_sigmoid = torch.nn.functional.logsigmoid
        z = self._scores.double()
        log_p, log_q = log_sigmoid(z), log_sigmoid(-z)
        p, q = log_p.exp(), log_q.exp()
        share = (log_p - log_p.logsumexp(dim=2, keepdim=True)).exp()
        entropy = self._price(columns.CROSS_ENTROPY)[..., None]
        row = self._price(columns.ROW_LOG_LOSS)[..., None]
        own, other = self._rows.truth, self._rows.others
        slope = entropy * (other * p - own * q)
        slope += row * q * (self._rows.n_relevant[..., None] * share - own)
        self.total += slope

"""Prices of statistics for several members at once, where their sums are.

The central differences of :func:`clml.losses.measure_gradient`. Closing formulas are
written for NumPy, so the built-in ones are said again here for tensors; where a loss
has another one, the sums go to the host and prices come back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .._support.torch import import_torch
from ..losses import Loss, LossSet, Totals, measure_gradient
from ..losses import definitions as built_in
from ..losses import kernels as columns
from ..losses.credit import _REFERENCE, _SMALL_SHARE, _STEP, affine_slope, is_affine
from ..losses.statistics import LABEL_STATISTICS, SCALAR_STATISTICS
from ._smooth_rows import Prices

if TYPE_CHECKING:
    from torch import Tensor

Sums = dict[str, "Tensor"]
_LABEL_ROW = {s.name: i for i, s in enumerate(LABEL_STATISTICS)}


def _share(name: str) -> Callable[[Sums, int], Tensor]:
    """Return the mean of what is a share of rows."""
    return lambda sums, n_labels: sums[name].clamp(max=1.0)


def _one_minus(name: str, over: int = 1) -> Callable[[Sums, int], Tensor]:
    return lambda sums, n_labels: (1.0 - sums[name] / over).clamp(min=0.0)


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    nothing = denominator == 0
    found = numerator / denominator.masked_fill(nothing, 1.0)
    return found.masked_fill(nothing, 0.0)


def _micro_f1(sums: Sums, n_labels: int) -> Tensor:
    size = sums["predicted"] + sums["relevant"]
    return (1.0 - _ratio(2.0 * sums["hits"], size)).clamp(min=0.0)


def _coverage(sums: Sums, n_labels: int) -> Tensor:
    depth = (sums["coverage"] - 1.0).clamp(min=0.0)
    return depth.clamp(max=n_labels - 1) / max(n_labels - 1, 1)


# Of sums of a row of weight 1.
_CLOSE: dict[type, Callable[[Sums, int], Tensor]] = {
    built_in.Hamming: lambda sums, n: (sums["wrong"] / n).clamp(max=1.0),
    built_in.LRAP: _one_minus("lrap"),
    built_in.MicroF1: _micro_f1,
    built_in.ExampleF1: _one_minus("example_f1"),
    built_in.Jaccard: _one_minus("jaccard"),
    built_in.SubsetZeroOne: _share("subset"),
    built_in.OneError: _share("one_error"),
    built_in.Coverage: _coverage,
    built_in.RankingLoss: _share("ranking"),
    built_in.BinaryCrossEntropy: lambda sums, n: sums["cross_entropy"] / n,
    built_in.RowLogLoss: lambda sums, n: sums["row_log_loss"],
}


def _closing(loss: Loss) -> Callable[[Sums, int], Tensor] | None:
    if type(loss) is built_in.PrecisionAtK:
        return _one_minus(f"top_hits_{loss.k}", loss.k)
    return _CLOSE.get(type(loss))


def known_on_device(loss: Loss) -> bool:
    """Whether the closing formula of a loss is known to devices."""
    return type(loss) is built_in.MacroF1 or _closing(loss) is not None


def member_prices(loss_set: LossSet, sums: Tensor, labels: Tensor) -> Prices:
    """Return the prices at running sums of a row of weight 1.

    Parameters
    ----------
    loss_set : LossSet
    sums : float64 tensor (members, columns)
    labels : float64 tensor (members, 3, K), or of no entry
    """
    if not all(known_on_device(loss) for loss in loss_set.losses):
        return _prices_of_host(loss_set, sums, labels)
    torch = import_torch()
    column = _column_of(loss_set)
    found = torch.zeros_like(sums)
    of_labels = torch.zeros_like(labels) if labels.numel() else None
    named = {name: sums[:, c] for name, c in column.items()}
    for loss in loss_set.losses:
        if type(loss) is built_in.MacroF1:
            assert of_labels is not None
            of_labels += _macro_f1_prices(labels)
            continue
        close = _closing(loss)
        assert close is not None
        price = _price_of_loss(close(named, loss_set.n_labels))
        for statistic in loss.resolved_statistics():
            name = statistic.name
            if is_affine(loss):
                slope = affine_slope(loss, name, 1.0, loss_set.n_labels)
                found[:, column[name]] += _finite(price * slope)
                continue
            total = named[name]
            step = _step_of(total)
            moved = {**named, name: torch.stack([total + step, total - step])}
            up, down = close(moved, loss_set.n_labels)
            found[:, column[name]] += _finite(price * ((up - down) / (2 * step)))
    return Prices(found, of_labels)


def _column_of(loss_set: LossSet) -> dict[str, int]:
    wanted = loss_set.row_statistics
    assert wanted is not None
    found = {s.name: i for i, s in enumerate(SCALAR_STATISTICS)}
    for i, k in enumerate(wanted[4].tolist()):
        found[f"top_hits_{k}"] = columns.N_COLUMNS + i
    return found


def _step_of(total: Tensor) -> Tensor:
    return _STEP * total.abs().clamp(min=_SMALL_SHARE)


def _price_of_loss(losses: Tensor) -> Tensor:
    return -1.0 / (_REFERENCE - losses.clamp(0.0, 1.0))


def _finite(slope: Tensor) -> Tensor:
    return slope.masked_fill(~slope.isfinite(), 0.0)


def _macro_f1_prices(labels: Tensor) -> Tensor:
    """Return prices (members, 3, K): a label's sums move its own F1 alone."""
    torch = import_torch()
    n_labels = labels.shape[2]

    def of_each(sums: list[Tensor]) -> Tensor:
        return _ratio(2.0 * sums[0], sums[1] + sums[2])

    sums = list(labels.unbind(dim=1))
    now = of_each(sums)
    total = now.sum(dim=1, keepdim=True)

    def closed(i: int, moved: Tensor) -> Tensor:
        mean = (total - now + of_each([*sums[:i], moved, *sums[i + 1 :]])) / n_labels
        return (1.0 - mean).clamp(min=0.0)

    price = _price_of_loss((1.0 - total / n_labels).clamp(min=0.0))
    found = []
    for i, own in enumerate(sums):
        step = _step_of(own)
        change = closed(i, own + step) - closed(i, own - step)
        found.append(_finite(price * (change / (2 * step))))
    return torch.stack(found, dim=1)


def _prices_of_host(loss_set: LossSet, sums: Tensor, labels: Tensor) -> Prices:
    torch = import_torch()
    host, host_labels = sums.cpu().numpy(), labels.cpu().numpy()
    each = [
        measure_gradient(
            loss_set, Totals(host[m : m + 1], host_labels[m : m + 1], {}), 1.0
        )
        for m in range(len(host))
    ]
    found = torch.as_tensor(np.stack([x.columns for x in each]), device=sums.device)
    if not labels.numel():
        return Prices(found, None)
    of_labels = np.stack([x.labels for x in each])
    return Prices(found, torch.as_tensor(of_labels, device=sums.device))

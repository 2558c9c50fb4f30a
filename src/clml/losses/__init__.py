"""Multi-label losses: what each one is, and how it is computed for a population."""

from ._loss import AbsentLoss, CallableLoss, Loss, MatrixLoss
from ._loss_set import LossSet, Statistics, Totals
from ._registry import (
    get_loss,
    get_losses,
    list_losses,
    own_loss,
    register_loss,
    saved_loss,
)
from ._smoothed import smoothed_gradient
from ._targets import RowTargets
from ._values import loss_values
from .credit import (
    StatisticWeights,
    measure_gradient,
    measure_gradients,
    output_gradient,
    supports_gradient,
)
from .statistics import STATISTICS, Statistic

__all__ = [
    "STATISTICS",
    "AbsentLoss",
    "CallableLoss",
    "Loss",
    "LossSet",
    "MatrixLoss",
    "RowTargets",
    "Statistic",
    "StatisticWeights",
    "Statistics",
    "Totals",
    "get_loss",
    "get_losses",
    "list_losses",
    "loss_values",
    "measure_gradient",
    "measure_gradients",
    "output_gradient",
    "own_loss",
    "register_loss",
    "saved_loss",
    "smoothed_gradient",
    "supports_gradient",
]

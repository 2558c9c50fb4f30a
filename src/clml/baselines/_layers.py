"""The few layers that the networks here are made of, as functions of named weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._support.torch import Weights, import_torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

# Of pair losses; C2AE's paper has no such factor, its code has, and MPVAE's.
_SHARPNESS = 5.0

Interval = tuple[float, float]
#: Numbers of inputs and outputs of linear layers, by name.
Layers = dict[str, tuple[int, int]]
#: Of weights, by name.
Shapes = dict[str, tuple[int, ...]]


def uniform(shape: tuple[int, ...], interval: Interval, generator: Generator) -> Tensor:
    """Return a tensor to train, drawn from an interval."""
    torch = import_torch()
    low, high = interval
    # Type and place are said, for users may have changed PyTorch's defaults.
    drawn = torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu")
    drawn = drawn * (high - low) + low
    return drawn.requires_grad_()


def constant(shape: tuple[int, ...], value: float) -> Tensor:
    """Return a tensor to train that begins as one number."""
    torch = import_torch()
    start = torch.full(shape, value, dtype=torch.float32, device="cpu")
    return start.requires_grad_()


def symmetric(bound: float) -> Interval:
    """Return the interval from -bound to bound."""
    return -bound, bound


def default_interval(n_in: int) -> Interval:
    """Return the interval that PyTorch draws weights and biases of a layer from."""
    return symmetric(n_in**-0.5)


def kaiming_interval(n_in: int, slope: float = 0.0) -> Interval:
    """He et al. (2015), uniform: for a (leaky) ReLU with this slope below 0.

    Slope 1 is no activation, or one that scales like none: gain 1.
    """
    return symmetric(math.sqrt(6 / ((1 + slope**2) * n_in)))


def new_linear(
    name: str,
    n_in: int,
    n_out: int,
    generator: Generator,
    weight: Interval | None = None,
    bias: Interval | None = None,
) -> Weights:
    """Return the weights of a linear layer.

    Parameters
    ----------
    name : str
        They are called ``name.weight``, (n_out, n_in), and ``name.bias``, (n_out,).
    n_in, n_out : int
    generator : torch.Generator
    weight, bias : pair of float, default=None
        Intervals to draw from; by default PyTorch's.
    """
    return {
        f"{name}.weight": uniform(
            (n_out, n_in), weight or default_interval(n_in), generator
        ),
        f"{name}.bias": uniform((n_out,), bias or default_interval(n_in), generator),
    }


def linear_shapes(layers: Layers) -> Shapes:
    """Return the shapes of what :func:`new_linear` makes.

    Examples
    --------
    >>> from clml.baselines._layers import linear_shapes
    >>> linear_shapes({"hidden": (3, 2)})
    {'hidden.weight': (2, 3), 'hidden.bias': (2,)}
    """
    shapes: Shapes = {}
    for name, (n_in, n_out) in layers.items():
        shapes |= {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}
    return shapes


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    """Apply the linear layer of a name to (..., n_in)."""
    torch = import_torch()
    return torch.nn.functional.linear(
        x, weights[f"{name}.weight"], weights[f"{name}.bias"]
    )


def label_outputs(weights: Weights, name: str, h: Tensor) -> Tensor:
    """Apply row k of a linear layer to the features of label k: (B, K, d) to (B, K)."""
    torch = import_torch()
    products = torch.einsum("bkd,kd->bk", h, weights[f"{name}.weight"])
    return products + weights[f"{name}.bias"]


def dropout(x: Tensor, share: float, generator: Generator) -> Tensor:
    """Set a random share to 0 and scale the rest up to the same mean."""
    torch = import_torch()
    if share == 0:
        return x
    kept = torch.empty_like(x).bernoulli_(1 - share, generator=generator)
    return x * kept / (1 - share)


def label_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Binary cross-entropy of each row and label, (B, K)."""
    torch = import_torch()
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits, y, reduction="none"
    )


def pair_losses(p: Tensor, y: Tensor) -> Tensor:
    """Return how badly positive labels are above negative ones, of each row.

    The mean over pairs of exp(-5 (positive - negative)) / 5. The sum over pairs is a
    product of two sums, so it takes no K × K numbers. A row with no pair, for it has
    all labels or none, is exactly 0.

    Parameters
    ----------
    p : tensor of shape (..., B, K)
        Probabilities.
    y : tensor of shape (B, K)
        0 or 1.
    """
    n_positive = y.sum(dim=-1)
    n_pairs = n_positive * (y.shape[-1] - n_positive)
    positive = ((-_SHARPNESS * p).exp() * y).sum(dim=-1)
    negative = ((_SHARPNESS * p).exp() * (1 - y)).sum(dim=-1)
    # Without a pair one of the sums is 0, and so is the row, if not divided by 0.
    return positive * negative / (_SHARPNESS * n_pairs.clamp(min=1))


def sum_of_squares(weights: Weights) -> Tensor:
    """Of the matrices of linear layers, not of the biases."""
    torch = import_torch()
    matrices = [w.flatten() for name, w in weights.items() if name.endswith(".weight")]
    return torch.stack([w @ w for w in matrices]).sum()


def row_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Mean over rows of (B,), each times its weight, whose mean over all rows is 1."""
    return (values * weight).mean()

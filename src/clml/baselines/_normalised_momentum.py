"""The optimiser that C2AE was published with: momentum on normalised gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._support.torch import import_torch

if TYPE_CHECKING:
    from torch import Tensor


class NormalisedMomentum:
    """Divide each gradient by its running root mean square, then add momentum.

    With g the gradient of a number and η the learning rate, a step is ::

        r ← sqrt(0.9 r² + 0.1 g²)     r starts at |g|, so the first step is -η sign(g)
        d ← 0.99 d - η g / r          0 / 0 is 0
        w ← w + d

    That is RMSprop with momentum and no constant beside r; the learning rate is inside
    the momentum, so a smaller one slows steps down that are already under way.

    Parameters
    ----------
    weights : iterable of tensors
        Those that require a gradient are moved; a step leaves those alone that have
        none.
    lr : float
        The learning rate η.
    smoothing : float in [0, 1), default=0.9
        Share of r² that a step keeps.
    momentum : float in [0, 1), default=0.99
        Share of d that a step keeps.

    Attributes
    ----------
    param_groups : list of one dict
        "params" and "lr", which may be changed between steps.

    Examples
    --------
    >>> import torch
    >>> from clml.baselines._normalised_momentum import NormalisedMomentum
    >>> w = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
    >>> optimiser = NormalisedMomentum([w], lr=0.25)
    >>> (w @ torch.tensor([1e-6, -1e6, 0.0])).backward()
    >>> optimiser.step()
    >>> w.tolist()
    [0.75, 1.25, 1.0]
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        lr: float,
        *,
        smoothing: float = 0.9,
        momentum: float = 0.99,
    ):
        trained = [w for w in weights if w.requires_grad]
        self.param_groups: list[dict[str, Any]] = [{"params": trained, "lr": lr}]
        self._smoothing, self._momentum = smoothing, momentum
        # By weight: r² and d.
        self._state: dict[Tensor, tuple[Tensor, Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for w in group["params"]:
                w.grad = None

    def step(self) -> None:
        """Move the weights."""
        torch = import_torch()
        with torch.no_grad():
            for group in self.param_groups:
                weights = [w for w in group["params"] if w.grad is not None]
                if weights:
                    self._move(weights, group["lr"])

    def _move(self, weights: list[Tensor], lr: float) -> None:
        torch = import_torch()
        gradients = [w.grad for w in weights if w.grad is not None]
        for w, g in zip(weights, gradients, strict=True):
            if w not in self._state:
                self._state[w] = g.square(), torch.zeros_like(w)
        squares, moves = (
            list(part) for part in zip(*(self._state[w] for w in weights), strict=True)
        )
        kept = self._smoothing
        torch._foreach_mul_(squares, kept)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - kept)
        roots = torch._foreach_sqrt(squares)
        # Below this the square of a gradient is not a normal number: r would be
        # imprecise, or 0 with a gradient that is not.
        torch._foreach_clamp_min_(roots, math.sqrt(torch.finfo(roots[0].dtype).tiny))
        torch._foreach_mul_(moves, self._momentum)
        torch._foreach_addcdiv_(moves, gradients, roots, value=-lr)
        torch._foreach_add_(weights, moves)

"""Several wide networks of one layout at once: forward and back, in PyTorch.

What ``network._wide_kernels`` computes for one network, each step one batched product
over all members. The weights of all are one tensor (members, n), of which layers are
views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from .._support.torch import import_torch
from ..network import WideLayout

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class WideWeights:
    """The layers of some members, as views of their weights (members, n).

    Attributes
    ----------
    matrices : list of tensors (members, inputs, outputs)
    biases : list of tensors (members, 1, outputs)
    linear : tensor (members, D, K) or None
    """

    matrices: list[Tensor]
    biases: list[Tensor]
    linear: Tensor | None

    @classmethod
    def of(cls, theta: Tensor, layout: WideLayout) -> WideWeights:
        """Find the layers."""
        matrices, biases = [], []
        start = 0
        for rows, columns in pairwise(layout.widths.tolist()):
            end = start + rows * columns
            matrices.append(theta[:, start:end].unflatten(1, (rows, columns)))
            biases.append(theta[:, None, end : end + columns])
            start = end + columns
        linear = None
        if layout.linear_path:
            shape = (layout.n_inputs, layout.n_labels)
            linear = theta[:, start:].unflatten(1, shape)
        return cls(matrices, biases, linear)


def forward(
    weights: WideWeights,
    x: Tensor,
    activation: str,
    kept: Sequence[Tensor] = (),
    scale: float = 1.0,
) -> tuple[Tensor, list[Tensor]]:
    """Return the logits (members, rows, K), and the outputs of each hidden layer.

    Parameters
    ----------
    weights : WideWeights
    x : float32 tensor (members, rows, D)
    activation : {"relu", "tanh"}
    kept : sequence of bool tensors (members, rows, units)
        Which units are not dropped; of no entry if none is.
    scale : float
        What those are multiplied by.
    """
    torch = import_torch()
    outputs = []
    before = x
    *inner, last = zip(weights.matrices, weights.biases, strict=True)
    for i, (matrix, bias) in enumerate(inner):
        out = torch.baddbmm(bias, before, matrix)
        out = out.relu_() if activation == "relu" else out.tanh_()
        if kept:
            out.mul_(kept[i]).mul_(scale)
        outputs.append(out)
        before = out
    logits = torch.baddbmm(last[1], before, last[0])
    if weights.linear is not None:
        logits += torch.bmm(x, weights.linear)
    return logits, outputs


def backward(
    slope: Tensor,
    weights: WideWeights,
    gradient: WideWeights,
    x: Tensor,
    outputs: Sequence[Tensor],
    activation: str,
    kept: Sequence[Tensor] = (),
    scale: float = 1.0,
) -> None:
    """Fill the derivative of Σ slope · logits in the weights.

    Parameters
    ----------
    slope : float32 tensor (members, rows, K)
    weights, x, activation, kept, scale
        As :func:`forward` had them.
    gradient : WideWeights
        Overwritten.
    outputs : sequence of tensors
        What :func:`forward` returned.
    """
    torch = import_torch()
    if gradient.linear is not None:
        torch.bmm(x.mT, slope, out=gradient.linear)
    for i in reversed(range(len(weights.matrices))):
        before = outputs[i - 1] if i else x
        torch.bmm(before.mT, slope, out=gradient.matrices[i])
        torch.sum(slope, dim=1, keepdim=True, out=gradient.biases[i])
        if i == 0:
            break
        slope = torch.bmm(slope, weights.matrices[i].mT)
        slope.mul_(scale)
        if activation == "relu":
            slope.mul_(before > 0)  # where a unit is dropped its output is 0, too
        else:
            slope.mul_(1 - (before / scale).square_())
            if kept:
                slope.mul_(kept[i - 1])

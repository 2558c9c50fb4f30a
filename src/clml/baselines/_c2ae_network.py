"""The network of C2AE: features and labels meet in one latent space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._support.torch import Weights, import_torch
from ._batches import Batch
from ._layers import (
    Layers,
    Shapes,
    linear,
    linear_shapes,
    new_linear,
    pair_losses,
    sum_of_squares,
    symmetric,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

_SLOPE = 0.1  # of the units below 0


def latent_size(ratio: float, n_labels: int) -> int:
    """Return the share of the number of labels, halves rounded up, at least 1.

    Examples
    --------
    >>> from clml.baselines._c2ae_network import latent_size
    >>> [latent_size(0.8, n_labels) for n_labels in (2, 6, 14, 174)]
    [2, 5, 11, 139]
    """
    return max(1, math.floor(ratio * n_labels + 0.5))


def latent_loss(zx: Tensor, ze: Tensor, weight: Tensor) -> Tensor:
    """Φ: how far latent features and latent labels are apart, and from orthonormal.

    ||Zx - Ze||² + ½ ||Zxᵀ Zx - I||² + ½ ||Zeᵀ Ze - I||², with weighted rows.

    Parameters
    ----------
    zx, ze : tensors of shape (B, m)
        Rows in the latent space, by their features and by their labels.
    weight : tensor of shape (B,)
    """
    distances = (zx - ze).square().sum(dim=1) @ weight
    return distances + 0.5 * (_skewness(zx, weight) + _skewness(ze, weight))


def _skewness(z: Tensor, weight: Tensor) -> Tensor:
    """||Zᵀ diag(w) Z - I||²."""
    torch = import_torch()
    products = z.T @ (z * weight[:, None])
    identity = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    return (products - identity).square().sum()


def pair_loss(p: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Γ: the pair losses of weighted rows, added up.

    Parameters
    ----------
    p : tensor of shape (B, K)
        Probabilities.
    y : tensor of shape (B, K)
        0 or 1.
    weight : tensor of shape (B,)
    """
    return pair_losses(p, y) @ weight


@dataclass(frozen=True)
class C2AENetwork:
    """Features to the latent space (Fx), labels to it (Fe), and back to labels (Fd).

    A single label is two inside, itself and its complement: with one there is no pair
    to compare, and nothing would train Fd.
    """

    n_features: int
    n_labels: int
    latent_ratio: float
    n_units: int
    alpha: float
    weight_decay: float

    @property
    def n_outputs(self) -> int:
        """How many labels the network sees."""
        return max(2, self.n_labels)

    @property
    def n_latent(self) -> int:
        """How many dimensions the latent space has."""
        return latent_size(self.latent_ratio, self.n_outputs)

    @property
    def activations(self) -> int:
        """How many numbers a row needs at most when logits are computed."""
        return self.n_features + 2 * self.n_units + self.n_latent + self.n_outputs

    @property
    def shapes(self) -> Shapes:
        """The shapes of the weights."""
        return linear_shapes(self._layers)

    @property
    def _layers(self) -> Layers:
        D, H, m, K = self.n_features, self.n_units, self.n_latent, self.n_outputs
        return {
            "fx.hidden0": (D, H),
            "fx.hidden1": (H, H),
            "fx.latent": (H, m),
            "fe.hidden": (K, H),
            "fe.latent": (H, m),
            "fd.hidden": (m, H),
            "fd.output": (H, K),
        }

    def initial(self, y: Tensor, weight: Tensor, generator: Generator) -> Weights:
        """Return random weights, as the authors draw them."""
        weights: Weights = {}
        for name, (n_in, n_out) in self._layers.items():
            if "hidden" in name:
                intervals = symmetric(0.01), (0.0, 0.1)
            else:
                # Before a sigmoid: Glorot and Bengio (2010), times 4; biases 0.
                intervals = symmetric(4 * math.sqrt(6 / (n_in + n_out))), (0.0, 0.0)
            weights |= new_linear(name, n_in, n_out, generator, *intervals)
        return weights

    def loss(self, weights: Weights, batch: Batch, generator: Generator) -> Tensor:
        """Φ + α Γ + the decay of the weights, summed over rows.

        Γ is that of labels which went through Fe and Fd, so Fx learns from Φ alone.
        """
        torch = import_torch()
        y = batch.y
        if self.n_labels == 1:
            y = torch.cat([y, 1 - y], dim=1)
        ze = self._latent_labels(weights, y)
        phi = latent_loss(self._latent_features(weights, batch.x), ze, batch.weight)
        p = self._outputs(weights, ze).sigmoid()
        gamma = pair_loss(p, y, batch.weight)
        return phi + self.alpha * gamma + self.weight_decay * sum_of_squares(weights)

    def logits(self, weights: Weights, x: Tensor) -> Tensor:
        """Return (B, K) logits of features (B, D)."""
        outputs = self._outputs(weights, self._latent_features(weights, x))
        if self.n_labels == 1:
            return outputs[:, :1] - outputs[:, 1:]
        return outputs

    def _latent_features(self, weights: Weights, x: Tensor) -> Tensor:
        """Apply Fx."""
        h = _hidden(weights, "fx.hidden1", _hidden(weights, "fx.hidden0", x))
        return _latent(weights, "fx.latent", h)

    def _latent_labels(self, weights: Weights, y: Tensor) -> Tensor:
        """Apply Fe."""
        return _latent(weights, "fe.latent", _hidden(weights, "fe.hidden", y))

    def _outputs(self, weights: Weights, z: Tensor) -> Tensor:
        """Apply Fd, up to its sigmoid."""
        return linear(weights, "fd.output", _hidden(weights, "fd.hidden", z))


def _hidden(weights: Weights, name: str, x: Tensor) -> Tensor:
    torch = import_torch()
    return torch.nn.functional.leaky_relu(linear(weights, name, x), _SLOPE)


def _latent(weights: Weights, name: str, x: Tensor) -> Tensor:
    return linear(weights, name, x).sigmoid() - 0.5

"""DELA's network: noise where a label says that it does not look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._support.torch import Weights, import_torch
from ._batches import Batch
from ._layers import (
    Shapes,
    constant,
    default_interval,
    dropout,
    kaiming_interval,
    label_cross_entropy,
    label_outputs,
    linear,
    linear_shapes,
    new_linear,
    row_mean,
    symmetric,
    uniform,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

_BIASES = (0.0, 0.1)  # of the encoder and the decoder
_GATE_TABLE = symmetric(10)
_GATE_BIAS = 2.0
_TEMPERATURE = 2 / 3
_TINY = 1e-6  # inside the logarithm of a gate
_STEEPEST = 20.0  # where the exponential function goes on as a straight line


def straight_through_gates(logits: Tensor, chance: Tensor, floor: float) -> Tensor:
    """Sample gates: 1 lets all noise in, the floor keeps part of it out.

    Their derivative is that of the soft gates s((logit(u) + a) / τ), as if these had
    been neither rounded nor kept above the floor.

    Parameters
    ----------
    logits : tensor (K, L)
        What is called a above.
    chance : tensor (K, L)
        Uniform numbers u between 0 and 1.
    floor : float
    """
    torch = import_torch()
    tiny = torch.finfo(chance.dtype).eps
    soft = ((torch.logit(chance, tiny) + logits) / _TEMPERATURE).sigmoid()
    gates = (soft.detach() > 0.5).to(soft.dtype).clamp(min=floor)
    # The difference is exactly 0: gates are exactly 1 or the floor.
    return gates + (soft - soft.detach())


def tamed_exp(v: Tensor) -> Tensor:
    """Exponential function that is its tangent beyond 20.

    Log-variances of scaled features stay far below. Those of features in the hundreds
    would overflow in the first step, which this makes finite and a way back.
    """
    return v.clamp(max=_STEEPEST).exp() * (1 + (v - _STEEPEST).clamp(min=0))


def noise_divergence(
    mean: Tensor, log_variance: Tensor, gates: Tensor, weight: Tensor
) -> Tensor:
    """KL divergence of N(z, (g_k σ)²) from N(0, 1), averaged over rows and labels.

    Per row and label it is ½ Σ_d [-v - 2 log(g_k + 1e-6) - 1 + exp(v) g_k² + z²]. For
    a d each term is one of the row times one of the label, so their means are taken
    apart and nothing of shape (B, K, L) is made.

    Parameters
    ----------
    mean, log_variance : tensor (B, L)
        z and v = log σ².
    gates : tensor (K, L)
    weight : tensor (B,)
        Row weights.
    """
    label_terms = -2 * (gates + _TINY).log().mean(dim=0) - 1
    scales = gates.square().mean(dim=0)
    terms = (
        mean.square() - log_variance + tamed_exp(log_variance) * scales + label_terms
    )
    return row_mean(0.5 * terms.sum(dim=1), weight)


@dataclass(frozen=True)
class DELANetwork:
    """Encoder to a latent z, noise in it by label, one decoder, an output a label.

    Attributes
    ----------
    n_features, n_labels, latent_dim : int
        D, K, L.
    beta : float
        Weight of the divergence.
    dropout : float
        Of the encoder.
    gate_floor : float
    narrow, wide : int
        Units of layers: narrow, wide, narrow in the encoder; narrow, wide in the
        decoder.
    """

    n_features: int
    n_labels: int
    latent_dim: int
    beta: float
    dropout: float
    gate_floor: float
    narrow: int = 256
    wide: int = 512

    @property
    def activations(self) -> int:
        """How many numbers a row needs at most when logits are computed."""
        return self.n_features + 2 * self.wide + self.latent_dim + self.n_labels

    @property
    def shapes(self) -> Shapes:
        """The shapes of the weights."""
        D, K, L = self.n_features, self.n_labels, self.latent_dim
        narrow, wide = self.narrow, self.wide
        return {
            **linear_shapes(
                {
                    "encoder0": (D, narrow),
                    "encoder1": (narrow, wide),
                    "encoder2": (wide, narrow),
                    "mean": (narrow, L),
                    "log_variance": (narrow, L),
                    "gate": (L, L),
                    "decoder_x": (D, narrow),
                    "decoder1": (narrow, wide),
                    "output": (wide, K),
                }
            ),
            "gate.table": (K, L),
            "decoder_z.weight": (narrow, L),
        }

    def initial(self, y: Tensor, weight: Tensor, generator: Generator) -> Weights:
        """Return random weights."""
        D, K, L = self.n_features, self.n_labels, self.latent_dim
        narrow, wide = self.narrow, self.wide

        def relu_layer(name: str, n_in: int, n_out: int) -> Weights:
            interval = kaiming_interval(n_in)
            return new_linear(name, n_in, n_out, generator, interval, _BIASES)

        # The decoder's first layer reads [x; z_k]. Its matrix comes in two parts, so
        # that the one of x, which is the same for all labels, is used once a row.
        joint = kaiming_interval(D + L)
        return {
            **relu_layer("encoder0", D, narrow),
            **relu_layer("encoder1", narrow, wide),
            **relu_layer("encoder2", wide, narrow),
            **new_linear("mean", narrow, L, generator),
            **new_linear("log_variance", narrow, L, generator),
            "gate.table": uniform((K, L), _GATE_TABLE, generator),
            "gate.weight": uniform((L, L), default_interval(L), generator),
            "gate.bias": constant((L,), _GATE_BIAS),
            **new_linear("decoder_x", D, narrow, generator, joint, _BIASES),
            "decoder_z.weight": uniform((narrow, L), joint, generator),
            **relu_layer("decoder1", narrow, wide),
            **new_linear("output", wide, K, generator),
        }

    def loss(self, weights: Weights, batch: Batch, generator: Generator) -> Tensor:
        """Cross-entropy summed over labels under noise, plus β times the divergence.

        Gates are drawn once a batch; a row's noise is the same for all labels.
        """
        torch = import_torch()
        encoded = self._encode(weights, batch.x, generator)
        mean = linear(weights, "mean", encoded)
        log_variance = linear(weights, "log_variance", encoded)
        like_x = {"dtype": batch.x.dtype, "device": batch.x.device}
        table = weights["gate.table"]
        chance = torch.rand(table.shape, generator=generator, **like_x)
        noise = torch.randn(mean.shape, generator=generator, **like_x)
        gates = straight_through_gates(
            linear(weights, "gate", table), chance, self.gate_floor
        )
        logits = self._perturbed_logits(
            weights, batch.x, mean, tamed_exp(log_variance / 2) * noise, gates
        )
        errors = label_cross_entropy(logits, batch.y).sum(dim=1)
        divergence = noise_divergence(mean, log_variance, gates, batch.weight)
        return row_mean(errors, batch.weight) + self.beta * divergence

    def logits(self, weights: Weights, x: Tensor) -> Tensor:
        """Return (B, K) logits of features (B, D): without noise, so without gates."""
        mean = linear(weights, "mean", self._encode(weights, x, None))
        return linear(weights, "output", self._decode(weights, x, mean))

    def _encode(
        self, weights: Weights, x: Tensor, generator: Generator | None
    ) -> Tensor:
        for layer in ("encoder0", "encoder1", "encoder2"):
            x = linear(weights, layer, x).relu()
            if generator is not None:
                x = dropout(x, self.dropout, generator)
        return x

    def _decode(
        self,
        weights: Weights,
        x: Tensor,
        mean: Tensor,
        perturbation: Tensor | None = None,
    ) -> Tensor:
        """Return (B, wide) features, or those of each label, (B, K, wide).

        The latent is that of the row, (B, L), plus what is given for each label,
        (B, K, L).
        """
        z_part = weights["decoder_z.weight"].T
        h = linear(weights, "decoder_x", x) + mean @ z_part
        if perturbation is not None:
            h = h[:, None] + perturbation @ z_part
        # In place: these are by far the largest tensors.
        return linear(weights, "decoder1", h.relu_()).relu_()

    def _perturbed_logits(
        self, weights: Weights, x: Tensor, mean: Tensor, noise: Tensor, gates: Tensor
    ) -> Tensor:
        """Return (B, K) logits, noise (B, L) let in by gates (K, L)."""
        h = self._decode(weights, x, mean, gates * noise[:, None])
        return label_outputs(weights, "output", h)

"""The network of MPVAE: features and labels in one latent space, a probit of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._support.torch import Weights, import_torch
from ._batches import Batch
from ._layers import (
    Layers,
    Shapes,
    dropout,
    linear,
    linear_shapes,
    new_linear,
    pair_losses,
    row_mean,
    sum_of_squares,
    symmetric,
    uniform,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

# What keeps probabilities from 0 and 1, and divisors from 0.
_EPSILON = 1e-6
# Logarithms of variances stay within these: features that nobody scaled would have
# variances that are no numbers.
_LOG_BOUND = 10.0


def divergence(
    mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor
) -> Tensor:
    """Kullback-Leibler divergence of normal distributions from others, (B,).

    Parameters
    ----------
    mean, log_variance : tensors of shape (B, L)
        Of distributions with independent dimensions.
    prior_mean, prior_log_variance : tensors of shape (B, L)
        Of those that they are to be near.
    """
    ratio = log_variance - prior_log_variance
    distance = (mean - prior_mean).square() / (prior_log_variance.exp() + _EPSILON)
    return 0.5 * (ratio.exp() - ratio - 1 + distance).sum(dim=1)


def sampled_probabilities(mean: Tensor, factor: Tensor, noise: Tensor) -> Tensor:
    """Return the probability of each label, given what the labels share, (S, B, K).

    A label is there if its mean, plus its row of the factor times the noise, plus noise
    of its own exceeds 0.

    Parameters
    ----------
    mean : tensor of shape (B, K)
    factor : tensor of shape (K, R)
    noise : tensor of shape (S, B, R)
        Standard normal.
    """
    torch = import_torch()
    p = torch.special.ndtr(mean + noise @ factor.T)
    return p * (1 - _EPSILON) + 0.5 * _EPSILON


def negative_log_likelihood(p: Tensor, y: Tensor) -> Tensor:
    """Return minus the logarithm of the mean probability of all labels of a row, (B,).

    Parameters
    ----------
    p : tensor of shape (S, B, K)
        Of each sample, in which the labels are independent.
    y : tensor of shape (B, K)
        0 or 1.
    """
    log_p = (p.log() * y + (1 - p).log() * (1 - y)).sum(dim=2)
    return math.log(len(p)) - log_p.logsumexp(dim=0)


def marginal_logits(mean: Tensor, factor: Tensor) -> Tensor:
    """Return the log-odds that many samples would come to, (B, K).

    The noise of a label is normal, with a variance of 1 plus the square of its row of
    the factor: the mean over all samples needs no samples.

    Parameters
    ----------
    mean : tensor of shape (B, K)
    factor : tensor of shape (K, R)
    """
    torch = import_torch()
    z = mean / (1 + factor.square().sum(dim=1)).sqrt()
    return torch.special.log_ndtr(z) - torch.special.log_ndtr(-z)


@dataclass(frozen=True)
class MPVAENetwork:
    """Two encoders into a latent space, that of features and that of both, a decoder.

    The decoder reads features beside the latent space. Its outputs are the means of a
    multivariate probit model, whose covariance is the identity plus the square of a
    factor, one for all rows.
    """

    n_features: int
    n_labels: int
    latent_dim: int
    rank: int
    likelihood_weight: float
    ranking_weight: float
    divergence_weight: float
    weight_decay: float
    dropout: float
    n_samples: int

    @property
    def activations(self) -> int:
        """How many numbers a row needs at most when logits are computed."""
        return 2 * self.n_features + 2 * self.latent_dim + 1024 + 4 * self.n_labels

    @property
    def shapes(self) -> Shapes:
        """The shapes of the weights."""
        return {**linear_shapes(self._layers), "factor": (self.n_labels, self.rank)}

    @property
    def _layers(self) -> Layers:
        D, K, L = self.n_features, self.n_labels, self.latent_dim
        return {
            "label.hidden0": (D + K, 512),
            "label.hidden1": (512, 256),
            "label.mean": (256, L),
            "label.log_variance": (256, L),
            "feature.hidden0": (D, 256),
            "feature.hidden1": (256, 512),
            "feature.hidden2": (512, 256),
            "feature.mean": (256, L),
            "feature.log_variance": (256, L),
            "decoder.hidden0": (D + L, 256),
            "decoder.hidden1": (256, 512),
            "label.output": (512, K),
            "feature.output": (512, K),
        }

    def initial(self, y: Tensor, weight: Tensor, generator: Generator) -> Weights:
        """Return random weights, as Glorot and Bengio (2010) draw them; biases 0."""
        weights: Weights = {}
        for name, (n_in, n_out) in self._layers.items():
            interval = symmetric(math.sqrt(6 / (n_in + n_out)))
            weights |= new_linear(name, n_in, n_out, generator, interval, (0.0, 0.0))
        interval = symmetric(math.sqrt(6 / (self.n_labels + self.rank)))
        weights["factor"] = uniform((self.n_labels, self.rank), interval, generator)
        return weights

    def loss(self, weights: Weights, batch: Batch, generator: Generator) -> Tensor:
        """Likelihood and ranking of both branches, their divergence, and the decay."""
        torch = import_torch()
        x, y = batch.x, batch.y
        by_label = self._encode(weights, "label", torch.cat([x, y], 1), generator)
        by_feature = self._encode(weights, "feature", x, generator)
        # One draw for both branches, of either kind.
        noise = torch.empty_like(by_label[0]).normal_(generator=generator)
        shape = self.n_samples, len(x), self.rank
        shared = x.new_empty(shape).normal_(generator=generator)
        rows = self.divergence_weight * divergence(*by_label, *by_feature)
        for branch, (mean, log_variance) in zip(
            ("label", "feature"), (by_label, by_feature), strict=True
        ):
            z = mean + (0.5 * log_variance).exp() * noise
            output = self._decode(weights, branch, x, z)
            p = sampled_probabilities(output, weights["factor"], shared)
            rows = rows + self.likelihood_weight * negative_log_likelihood(p, y)
            rows = rows + self.ranking_weight * pair_losses(p, y).mean(dim=0)
        decay = 0.5 * self.weight_decay * sum_of_squares(weights)
        return row_mean(rows, batch.weight) + decay

    def logits(self, weights: Weights, x: Tensor) -> Tensor:
        """Return (B, K) logits of features (B, D), at the mean latent place."""
        mean, _ = self._encode(weights, "feature", x, None)
        output = self._decode(weights, "feature", x, mean)
        return marginal_logits(output, weights["factor"])

    def _encode(
        self, weights: Weights, branch: str, x: Tensor, generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Return means and logarithms of variances; without generator, no dropout."""
        n_hidden = 2 if branch == "label" else 3
        for layer in range(n_hidden):
            x = linear(weights, f"{branch}.hidden{layer}", x).relu()
            if generator is not None:
                x = dropout(x, self.dropout, generator)
        log_variance = linear(weights, f"{branch}.log_variance", x)
        return (
            linear(weights, f"{branch}.mean", x),
            log_variance.clamp(-_LOG_BOUND, _LOG_BOUND),
        )

    def _decode(self, weights: Weights, branch: str, x: Tensor, z: Tensor) -> Tensor:
        torch = import_torch()
        h = torch.cat([x, z], dim=1)
        for layer in range(2):
            h = linear(weights, f"decoder.hidden{layer}", h).relu()
        return linear(weights, f"{branch}.output", h)

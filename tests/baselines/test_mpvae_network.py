"""The network of MPVAE: terms of the loss by hand, sampling, gradients."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import multivariate_normal, norm
from torch.distributions import Normal, kl_divergence

from clml.baselines._batches import Batch
from clml.baselines._c2ae_network import pair_loss
from clml.baselines._mpvae_network import (
    MPVAENetwork,
    divergence,
    marginal_logits,
    negative_log_likelihood,
    sampled_probabilities,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=np.float64))


def network(**changes):
    settings = {
        "n_features": 3,
        "n_labels": 4,
        "latent_dim": 2,
        "rank": 3,
        "likelihood_weight": 0.5,
        "ranking_weight": 2.0,
        "divergence_weight": 1.1,
        "weight_decay": 0.01,
        "dropout": 0.0,
        "n_samples": 5,
    }
    return MPVAENetwork(**{**settings, **changes})


def start(model, seed=0):
    weights = model.initial(None, None, generator(seed))
    return {k: w.detach().double().requires_grad_() for k, w in weights.items()}


def new_batch(n_rows=5, seed=0):
    random = np.random.default_rng(seed)
    Y = random.integers(2, size=(n_rows, 4))
    Y[0], Y[-1] = 1, 0
    weight = random.uniform(0.5, 2, size=n_rows)
    return Batch(tensor(random.normal(size=(n_rows, 3))), tensor(Y), tensor(weight))


def test_divergence_by_hand():
    # N(1, 4) from N(0, 1): (4 + 1 - 1 - log 4) / 2.
    found = divergence(
        tensor([[1.0]]), tensor([[math.log(4)]]), tensor([[0.0]]), tensor([[0.0]])
    )
    assert found.item() == pytest.approx((4 - math.log(4)) / 2, rel=1e-5)


def test_divergence_is_that_of_normal_distributions():
    random = np.random.default_rng(0)
    a, b, c, d = (tensor(random.normal(size=(6, 3))) for _ in range(4))
    own, prior = Normal(a, (b / 2).exp()), Normal(c, (d / 2).exp())
    expected = kl_divergence(own, prior).sum(dim=1)
    found = divergence(a, b, c, d)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(divergence(a, b, a, b), 0, atol=1e-12)


def test_sampled_probabilities_by_hand():
    mean, factor = tensor([[0.5, -1.0]]), tensor([[1.0, 2], [0, -1]])
    noise = tensor([[[1.0, -0.5]], [[0.0, 0.0]]])
    # The noise moves the means by 1·1 + 2·(-½) = 0 and by ½.
    expected = norm.cdf([[[0.5, -0.5]], [[0.5, -1.0]]])
    found = sampled_probabilities(mean, factor, noise)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_probabilities_are_never_0_or_1():
    mean = tensor([[50.0, -50.0]]).float()
    p = sampled_probabilities(mean, torch.zeros(2, 1), torch.zeros(1, 1, 1))
    assert 0 < 1 - p[0, 0, 0] < 1e-5
    assert 0 < p[0, 0, 1] < 1e-5


def test_likelihood_by_hand():
    # Rows of two samples: ½ (0.9 · 0.8 + 0.5 · 0.4) for labels 1 and 0.
    p = tensor([[[0.9, 0.2]], [[0.5, 0.6]]])
    found = negative_log_likelihood(p, tensor([[1, 0]]))
    assert found.item() == pytest.approx(-math.log(0.5 * (0.72 + 0.2)))


def test_likelihood_of_many_samples_is_that_of_the_probit_model():
    """An orthant of a normal distribution with covariance I + FFᵀ."""
    mean, factor = np.array([0.3, -0.6]), np.array([[1.0, 0.5], [-0.8, 0.4]])
    noise = torch.randn((200_000, 1, 2), generator=generator(), dtype=torch.float64)
    p = sampled_probabilities(tensor([mean]), tensor(factor), noise)
    covariance = np.eye(2) + factor @ factor.T
    for y in ([1, 1], [1, 0], [0, 1], [0, 0]):
        signs = 2 * np.array(y) - 1
        exact = multivariate_normal.cdf(
            signs * mean, cov=covariance * np.outer(signs, signs)
        )
        found = negative_log_likelihood(p, tensor([y])).neg().exp().item()
        assert found == pytest.approx(exact, abs=3e-3)


def test_marginals_are_the_mean_of_many_samples():
    mean, factor = tensor([[0.3, -2.0, 0.0]]), tensor([[1.0, 0.5], [-0.8, 3], [0, 0]])
    noise = torch.randn((200_000, 1, 2), generator=generator(), dtype=torch.float64)
    sampled = sampled_probabilities(mean, factor, noise).mean(dim=0)
    found = expit(marginal_logits(mean, factor).numpy())
    np.testing.assert_allclose(found, sampled, atol=3e-3)


def test_marginals_far_out_are_numbers():
    logits = marginal_logits(tensor([[300.0, -300.0]]), torch.zeros(2, 1).double())
    assert torch.isfinite(logits).all()
    assert logits[0, 0] == -logits[0, 1] > 40_000


def relu(x):
    return np.maximum(x, 0)


def slow_loss(model, weights, batch):
    """Every term in NumPy, sample by sample and pair by pair."""
    w = {k: v.detach().numpy() for k, v in weights.items()}
    X, Y, weight = (t.numpy() for t in (batch.x, batch.y, batch.weight))

    def layer(name, x):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    places, h = {}, np.hstack([X, Y])
    for name in ("label.hidden0", "label.hidden1"):
        h = relu(layer(name, h))
    places["label"] = layer("label.mean", h), layer("label.log_variance", h)
    h = X
    for name in ("feature.hidden0", "feature.hidden1", "feature.hidden2"):
        h = relu(layer(name, h))
    places["feature"] = layer("feature.mean", h), layer("feature.log_variance", h)
    draws = generator()
    noise = torch.empty(len(X), model.latent_dim, dtype=torch.float64)
    noise = noise.normal_(generator=draws).numpy()
    shared = torch.empty(model.n_samples, len(X), model.rank, dtype=torch.float64)
    shared = shared.normal_(generator=draws).numpy()
    total = 0.0
    for i in range(len(X)):
        row = 0.0
        (m, v), (m0, v0) = (
            (mean[i], log[i]) for mean, log in (places["label"], places["feature"])
        )
        kl = 0.5 * (v0 - v - 1 + np.exp(v - v0) + (m - m0) ** 2 / np.exp(v0)).sum()
        row += model.divergence_weight * kl
        for branch in ("label", "feature"):
            mean, log = (values[i] for values in places[branch])
            h = np.hstack([X[i], mean + np.exp(log / 2) * noise[i]])
            for name in ("decoder.hidden0", "decoder.hidden1"):
                h = relu(layer(name, h))
            output = layer(f"{branch}.output", h)
            likelihood, ranking = 0.0, 0.0
            for s in range(model.n_samples):
                p = norm.cdf(output + w["factor"] @ shared[s, i])
                likelihood += np.where(Y[i] == 1, p, 1 - p).prod() / model.n_samples
                positive, negative = np.flatnonzero(Y[i]), np.flatnonzero(Y[i] == 0)
                pairs = [np.exp(-5 * (p[a] - p[b])) for a in positive for b in negative]
                if pairs:
                    ranking += np.mean(pairs) / 5 / model.n_samples
            row -= model.likelihood_weight * np.log(likelihood)
            row += model.ranking_weight * ranking
        total += weight[i] * row / len(X)
    decay = sum((v**2).sum() for k, v in w.items() if k.endswith(".weight"))
    return total + 0.5 * model.weight_decay * decay


@pytest.mark.parametrize("seed", range(3))
def test_loss_is_what_its_slow_twin_says(seed):
    model, batch = network(), new_batch(seed=seed)
    weights = start(model, seed)
    found = model.loss(weights, batch, generator()).item()
    assert found == pytest.approx(slow_loss(model, weights, batch), rel=1e-4)


def test_gradients():
    model, batch = network(dropout=0.3), new_batch()
    weights = start(model)
    chosen = ["factor", "feature.mean.bias", "label.log_variance.bias"]
    chosen += ["label.output.bias", "feature.output.bias"]

    def loss(*values):
        given = {**weights, **dict(zip(chosen, values, strict=True))}
        return model.loss(given, batch, generator())

    assert torch.autograd.gradcheck(loss, [weights[name] for name in chosen])


def test_features_that_nobody_scaled_have_a_finite_loss():
    model, batch = network(), new_batch()
    weights = start(model)
    wild = Batch(batch.x * 1e4, batch.y, batch.weight)
    loss = model.loss(weights, wild, generator())
    gradients = torch.autograd.grad(loss, list(weights.values()))
    assert torch.isfinite(loss)
    assert all(torch.isfinite(g).all() for g in gradients)


def test_everything_is_trained():
    model, batch = network(weight_decay=0.0), new_batch()
    weights = start(model)
    loss = model.loss(weights, batch, generator())
    for name, gradient in zip(
        weights, torch.autograd.grad(loss, list(weights.values())), strict=True
    ):
        assert gradient.abs().sum() > 0, name


def test_dropout_is_of_training_alone():
    model, batch = network(dropout=0.5), new_batch()
    weights = start(model)
    losses = {model.loss(weights, batch, generator(s)).item() for s in range(2)}
    assert len(losses) == 2
    first, second = (model.logits(weights, batch.x) for _ in range(2))
    assert torch.equal(first, second)


def test_logits_are_those_of_the_mean_place():
    model, batch = network(), new_batch()
    weights = start(model)
    mean, _ = model._encode(weights, "feature", batch.x, None)
    output = model._decode(weights, "feature", batch.x, mean).detach()
    factor = weights["factor"].detach().numpy()
    z = output.numpy() / np.sqrt(1 + (factor**2).sum(axis=1))
    found = expit(model.logits(weights, batch.x).detach().numpy())
    np.testing.assert_allclose(found, norm.cdf(z), rtol=1e-9)


def test_shapes_and_intervals():
    model = network()
    weights = model.initial(None, None, generator())
    assert model.shapes == {k: tuple(w.shape) for k, w in weights.items()}
    bound = math.sqrt(6 / (4 + 3))
    assert 0.7 * bound < weights["factor"].abs().max() <= bound
    for name, w in weights.items():
        if name.endswith(".bias"):
            assert not w.any()
        elif name != "factor":
            bound = math.sqrt(6 / sum(w.shape))
            assert 0.9 * bound < w.abs().max() <= bound


def test_ranking_is_that_of_c2ae():
    p, y = tensor([[0.2, 0.9, 0.4]]), tensor([[1, 0, 1]])
    both = [np.exp(-5 * (0.2 - 0.9)), np.exp(-5 * (0.4 - 0.9))]
    found = pair_loss(p, y, tensor([1])).item()
    assert found == pytest.approx(np.mean(both) / 5)

"""The network of C2AE: loss terms and forward pass by hand, gradients, one label."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from clml.baselines._batches import Batch
from clml.baselines._c2ae_network import (
    C2AENetwork,
    latent_loss,
    latent_size,
    pair_loss,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=np.float64))


def start(network, seed=0):
    """First weights in double precision."""
    weights = network.initial(None, None, generator(seed))
    return {
        k: w.detach().double().requires_grad_(w.requires_grad)
        for k, w in weights.items()
    }


def new_batch(n_rows=5, n_features=3, n_labels=4, seed=0):
    random = np.random.default_rng(seed)
    Y = random.integers(2, size=(n_rows, n_labels))
    Y[0], Y[-1] = 1, 0
    return Batch(
        tensor(random.normal(size=(n_rows, n_features))),
        tensor(Y),
        tensor(random.uniform(0.5, 2, size=n_rows)),
    )


def loss_of(network, weights, batch):
    return network.loss(weights, batch, generator())


def gradients_of(network, weights, batch):
    loss = loss_of(network, weights, batch)
    found = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    return dict(zip(weights, found, strict=True))


# The terms of the loss.


def test_latent_loss_by_hand():
    zx = tensor([[0.5, 0.0], [0.0, 0.5]])
    ze = tensor([[0.5, 0.0], [0.0, 0.0]])
    # Distance 0.25; from ¼ I to I 2 · 0.75²; from diag(¼, 0) to I 0.75² + 1.
    expected = 0.25 + 0.5 * (1.125 + 1.5625)
    assert latent_loss(zx, ze, tensor([1, 1])).item() == expected
    # The second row twice: Zxᵀ Zx is diag(¼, ½).
    expected = 2 * 0.25 + 0.5 * (0.75**2 + 0.5**2 + 1.5625)
    assert latent_loss(zx, ze, tensor([1, 2])).item() == expected


def test_latent_loss_is_0_where_orthonormal_and_equal():
    z = tensor([[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5], [-0.5, -0.5]])
    assert latent_loss(z, z, torch.ones(4).double()).item() == 0


def test_pair_loss_by_hand():
    # exp(5 p) is 1, 2 and 4; positives 1 + 1/4, negatives 2, two pairs.
    p = tensor([[0, math.log(2) / 5, math.log(4) / 5]])
    y = tensor([[1, 0, 1]])
    value = pair_loss(p, y, tensor([1])).item()
    assert value == pytest.approx(1.25 * 2 / (5 * 2), rel=1e-12)
    # Weighted, beside a row of equal probabilities: 1/5 each pair, whatever p is.
    p = torch.cat([p, tensor([[0.7, 0.7, 0.7]])])
    y = torch.cat([y, tensor([[0, 1, 0]])])
    value = pair_loss(p, y, tensor([2, 3])).item()
    assert value == pytest.approx(2 * 0.25 + 3 * 0.2, rel=1e-12)


def slow_pair_loss(p, y, weight):
    total = 0.0
    for i in range(len(p)):
        positives = [k for k in range(p.shape[1]) if y[i, k] == 1]
        negatives = [k for k in range(p.shape[1]) if y[i, k] == 0]
        for a in positives:
            for b in negatives:
                pairs = len(positives) * len(negatives)
                total += weight[i] * math.exp(-5 * (p[i, a] - p[i, b])) / (5 * pairs)
    return total


@given(st.data())
def test_pair_loss_equals_the_sum_over_pairs(data):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=5))
    p = data.draw(hnp.arrays(float, shape, elements=st.floats(0, 1)))
    y = data.draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0])))
    weight = data.draw(hnp.arrays(float, shape[:1], elements=st.floats(0, 3)))
    found = pair_loss(tensor(p), tensor(y), tensor(weight)).item()
    assert found == pytest.approx(slow_pair_loss(p, y, weight), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("n_labels", [1, 3])
def test_rows_without_pairs_cost_nothing_and_have_finite_gradients(value, n_labels):
    p = torch.full((1, n_labels), 0.3, requires_grad=True)
    loss = pair_loss(p, torch.full((1, n_labels), value), torch.ones(1))
    loss.backward()
    assert loss.item() == 0
    assert p.grad.tolist() == [[0.0] * n_labels]


# The network.


def test_forward_by_hand():
    network = C2AENetwork(1, 2, 0.5, 1, 0.5, 0.0)
    weights = {
        "fx.hidden0.weight": tensor([[1]]),
        "fx.hidden0.bias": tensor([0]),
        "fx.hidden1.weight": tensor([[-1]]),
        "fx.hidden1.bias": tensor([0]),
        "fx.latent.weight": tensor([[1]]),
        "fx.latent.bias": tensor([0.2 + math.log(3)]),
        "fd.hidden.weight": tensor([[4]]),
        "fd.hidden.bias": tensor([0]),
        "fd.output.weight": tensor([[2], [-3]]),
        "fd.output.bias": tensor([0.5, 0]),
    }
    # 2, then -2 leaks to -0.2, then s(ln 3) - 0.5 = 0.25, then 1.
    logits = network.logits(weights, tensor([[2]]))
    np.testing.assert_allclose(logits, [[2.5, -3]], rtol=1e-12)
    # A single label is the first of the two outputs against the second.
    one = C2AENetwork(1, 1, 0.5, 1, 0.5, 0.0)
    np.testing.assert_allclose(one.logits(weights, tensor([[2]])), [[5.5]], rtol=1e-12)


def test_loss_by_hand():
    network = C2AENetwork(1, 2, 0.5, 1, 3.0, 0.1)
    weights = {k: torch.zeros_like(w) for k, w in start(network).items()}
    # Two decayed numbers that 0 is multiplied by, and a bias, which is not decayed.
    weights["fd.output.weight"] += tensor([[2], [1]])
    weights["fx.hidden1.weight"] += 3
    weights["fd.output.bias"] += 1
    batch = Batch(tensor([[1], [2]]), tensor([[1, 0], [1, 1]]), tensor([1, 1]))
    # Both latent spaces are 0: ½ (1 + 1). One pair of equal probabilities: 3 · 1/5.
    expected = 1 + 0.6 + 0.1 * (4 + 1 + 9)
    assert loss_of(network, weights, batch).item() == pytest.approx(expected, rel=1e-12)


def slow_loss(network, weights, batch):
    w = {k: v.detach().numpy() for k, v in weights.items()}
    X, Y, weight = (part.numpy() for part in (batch.x, batch.y, batch.weight))

    def layer(name, h):
        return w[f"{name}.weight"] @ h + w[f"{name}.bias"]

    def leaky(h):
        return np.where(h > 0, h, 0.1 * h)

    m = network.n_latent
    total, xx, ee, probabilities = 0.0, np.zeros((m, m)), np.zeros((m, m)), []
    for x, y, weight_i in zip(X, Y, weight, strict=True):
        h = leaky(layer("fx.hidden1", leaky(layer("fx.hidden0", x))))
        zx = expit(layer("fx.latent", h)) - 0.5
        ze = expit(layer("fe.latent", leaky(layer("fe.hidden", y)))) - 0.5
        total += weight_i * ((zx - ze) ** 2).sum()
        xx += weight_i * np.outer(zx, zx)
        ee += weight_i * np.outer(ze, ze)
        probabilities.append(expit(layer("fd.output", leaky(layer("fd.hidden", ze)))))
    total += 0.5 * ((xx - np.eye(m)) ** 2).sum() + 0.5 * ((ee - np.eye(m)) ** 2).sum()
    total += network.alpha * slow_pair_loss(np.array(probabilities), Y, weight)
    squares = sum((v**2).sum() for k, v in w.items() if k.endswith("weight"))
    return total + network.weight_decay * squares


@pytest.mark.parametrize("n_rows", [1, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_loss_equals_the_slow_twin(n_rows, seed):
    network = C2AENetwork(3, 4, 0.8, 5, 0.7, 1e-2)
    weights = start(network, seed)
    # Larger than they begin, so that no part is near 0.
    weights = {
        k: w.detach() * (100 if "hidden" in k else 1) for k, w in weights.items()
    }
    batch = new_batch(n_rows, seed=seed)
    expected = slow_loss(network, weights, batch)
    assert loss_of(network, weights, batch).item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n_labels", [1, 4])
def test_gradients_by_finite_differences(n_labels):
    network = C2AENetwork(3, n_labels, 0.8, 4, 0.5, 1e-2)
    weights = start(network)
    batch = new_batch(n_labels=n_labels)

    def loss(*tensors):
        return loss_of(network, dict(zip(weights, tensors, strict=True)), batch)

    assert torch.autograd.gradcheck(loss, tuple(weights.values()))


def test_features_learn_from_the_latent_loss_alone():
    weights, batch = start(C2AENetwork(3, 4, 0.8, 5, 0, 0)), new_batch()
    phi = gradients_of(C2AENetwork(3, 4, 0.8, 5, 0.0, 0.0), weights, batch)
    both = gradients_of(C2AENetwork(3, 4, 0.8, 5, 9.0, 0.0), weights, batch)
    for name in weights:
        if name.startswith("fx"):
            assert (phi[name] != 0).any()
            assert torch.equal(phi[name], both[name])
        elif name.startswith("fe"):
            assert (phi[name] != 0).any()
            assert not torch.allclose(phi[name], both[name])
        else:
            assert (phi[name] == 0).all()
            assert (both[name] != 0).any()


@pytest.mark.parametrize("n_labels", [1, 4])
def test_whole_weights_are_repeated_rows(n_labels):
    network = C2AENetwork(3, n_labels, 0.8, 5, 0.5, 1e-3)
    weights, batch = start(network), new_batch(4, n_labels=n_labels)
    times = torch.tensor([1, 3, 2, 1])
    weighted = Batch(batch.x, batch.y, times.double())
    repeated = Batch(
        *(part.repeat_interleave(times, dim=0) for part in (batch.x, batch.y)),
        torch.ones(7).double(),
    )
    a, b = (gradients_of(network, weights, part) for part in (weighted, repeated))
    for name in weights:
        torch.testing.assert_close(a[name], b[name])
    torch.testing.assert_close(
        loss_of(network, weights, weighted), loss_of(network, weights, repeated)
    )


def test_one_label_is_itself_and_its_complement():
    one, two = (C2AENetwork(3, K, 0.8, 5, 0.5, 1e-3) for K in (1, 2))
    weights, batch = start(one), new_batch(n_labels=1)
    assert {k: w.shape for k, w in weights.items()} == {
        k: w.shape for k, w in start(two).items()
    }
    both = Batch(batch.x, torch.cat([batch.y, 1 - batch.y], dim=1), batch.weight)
    assert loss_of(one, weights, batch) == loss_of(two, weights, both)


@pytest.mark.parametrize(
    ("ratio", "n_labels", "expected"),
    [(0.8, 2, 2), (0.8, 7, 6), (0.5, 5, 3), (0.01, 6, 1), (1.0, 6, 6), (1.5, 2, 3)],
)
def test_latent_size(ratio, n_labels, expected):
    assert latent_size(ratio, n_labels) == expected


def test_first_weights():
    D, K, H = 7, 5, 300
    network = C2AENetwork(D, K, 0.8, H, 0.5, 1e-3)
    m = network.n_latent
    assert m == 4
    weights = network.initial(None, None, generator())
    count = (D + 1) * H + (H + 1) * H + (H + 1) * m  # Fx
    count += (K + 1) * H + (H + 1) * m + (m + 1) * H + (H + 1) * K  # Fe, Fd
    assert sum(w.numel() for w in weights.values()) == count
    assert all(w.requires_grad and w.dtype == torch.float32 for w in weights.values())
    assert weights["fe.hidden.weight"].shape == (H, K)
    assert weights["fd.output.weight"].shape == (K, H)
    fan = {"fx.latent": H + m, "fe.latent": H + m, "fd.output": H + K}
    for name, w in weights.items():
        layer, kind = name.rsplit(".", 1)
        if layer in fan and kind == "bias":
            assert (w == 0).all()
            continue
        high = 4 * math.sqrt(6 / fan[layer]) if layer in fan else 0.01
        low = -high
        if kind == "bias":
            low, high = 0.0, 0.1
        assert low <= w.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < w.max() <= high
    assert network.activations >= D + H + K

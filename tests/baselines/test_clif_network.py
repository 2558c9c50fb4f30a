"""The network of CLIF against hand-made numbers, loops and finite differences."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from clml.baselines._batches import Batch
from clml.baselines._clif import CLIFNetwork
from clml.baselines._label_graph import (
    embed_labels,
    graph_loss,
    label_graph,
    new_label_encoder,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=np.float64))


def double(weights):
    return {
        name: w.detach().double().requires_grad_(w.requires_grad)
        for name, w in weights.items()
    }


def random_batch(n, n_features, n_labels, seed=0):
    random = np.random.default_rng(seed)
    return Batch(
        tensor(random.normal(size=(n, n_features))),
        tensor(random.integers(2, size=(n, n_labels))),
        tensor(random.uniform(0.5, 1.5, size=n)),
    )


def start(network, batch, seed=0):
    """Double weights away from their special values (0, 1), so that all matter."""
    weights = double(network.initial(batch.y, batch.weight, generator(seed)))
    random = np.random.default_rng(seed)
    for name, w in weights.items():
        if name.endswith(("scale", "variance")):
            w.data = tensor(random.uniform(0.5, 2, size=w.shape))
        elif name.endswith(("shift", "mean", "epsilon", "gate.bias")):
            w.data = tensor(random.normal(size=w.shape))
    return weights


def slow_embeddings(weights, *, training):
    """Section by section with loops over nodes, in plain numpy."""
    w = {name: t.detach().numpy() for name, t in weights.items()}
    h, graph = w["label_input"], w["graph"]
    for layer in range(2):
        name, before = f"gin{layer}", h
        summed = []
        for i in range(len(h)):
            neighbours = sum(graph[i, j] * h[j] for j in range(len(h)))
            summed.append((1 + w[f"{name}.epsilon"]) * h[i] + neighbours)
        h = np.array(summed)
        for part in range(2):
            linear, norm = f"{name}.linear{part}", f"{name}.norm{part}"
            h = np.array([w[f"{linear}.weight"] @ v + w[f"{linear}.bias"] for v in h])
            mean, variance = w[f"{norm}.mean"], w[f"{norm}.variance"]
            if training:
                mean, variance = h.mean(axis=0), h.var(axis=0)
            h = (h - mean) / np.sqrt(variance + 1e-5)
            if len(h) == 1:
                h = np.zeros_like(h)
            h = h * w[f"{norm}.scale"] + w[f"{norm}.shift"]
            h = np.where(h > 0, h, 0.1 * h)
        if layer == 1 or before.shape == h.shape:
            h = h + before
    return h


def slow_logits(weights, x, embeddings, n_feature_layers):
    w = {name: t.detach().numpy() for name, t in weights.items()}

    def leaky(v):
        return np.where(v > 0, v, 0.1 * v)

    logits = np.empty((len(x), len(embeddings)))
    for i, row in enumerate(x.numpy()):
        for layer in range(n_feature_layers):
            name = f"features{layer}"
            row = leaky(w[f"{name}.weight"] @ row + w[f"{name}.bias"])
        for k, embedding in enumerate(embeddings):
            gate = expit(w["gate.weight"] @ embedding + w["gate.bias"])
            h = leaky(w["shared.weight"] @ (row * gate) + w["shared.bias"])
            logits[i, k] = w["output.weight"][k] @ h + w["output.bias"][k]
    return logits


def slow_loss(weights, batch, network):
    embeddings = slow_embeddings(weights, training=True)
    logits = slow_logits(weights, batch.x, embeddings, network.n_feature_layers)
    p, y = expit(logits), batch.y.numpy()
    n, n_labels = y.shape
    cross_entropy = 0.0
    for i in range(n):
        for k in range(n_labels):
            likelihood = p[i, k] if y[i, k] else 1 - p[i, k]
            cross_entropy -= batch.weight[i].item() * np.log(likelihood)
    graph, distance = weights["graph"].numpy(), 0.0
    for i, a in enumerate(embeddings):
        for j, b in enumerate(embeddings):
            norms = (np.sqrt(a @ a) + 1e-6) * (np.sqrt(b @ b) + 1e-6)
            distance += (graph[i, j] + (i == j) - a @ b / norms) ** 2
    mean_distance = distance / n_labels**2
    return cross_entropy / (n * n_labels) + network.graph_weight * mean_distance


SIZES = {
    "plain": (6, CLIFNetwork(3, 3, 4, 1, 0.7, n_units=5)),
    "as many labels as dimensions": (4, CLIFNetwork(2, 4, 4, 2, 0.3, n_units=3)),
    "odd embedding": (5, CLIFNetwork(2, 3, 5, 1, 1.0, n_units=4)),
    "one label": (3, CLIFNetwork(2, 1, 4, 1, 0.5, n_units=4)),
    "one row": (1, CLIFNetwork(2, 3, 4, 1, 0.5, n_units=4)),
}
sizes = pytest.mark.parametrize(("n", "network"), SIZES.values(), ids=SIZES)


@sizes
def test_loss_and_logits_against_loops(n, network):
    batch = random_batch(n, network.n_features, network.n_labels)
    weights = start(network, batch)
    embeddings = slow_embeddings(weights, training=False)
    np.testing.assert_allclose(
        network.logits(weights, batch.x).detach(),
        slow_logits(weights, batch.x, embeddings, network.n_feature_layers),
        rtol=1e-9,
    )
    expected = slow_loss(weights, batch, network)
    loss = network.loss(weights, batch, generator())
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-9)


@sizes
def test_gradients_by_finite_differences(n, network):
    batch = random_batch(n, network.n_features, network.n_labels)
    weights = start(network, batch)
    trained = {name: w for name, w in weights.items() if w.requires_grad}

    def loss(*tensors):
        named = weights | dict(zip(trained, tensors, strict=True))
        return network.loss(named, batch, generator(1))

    assert torch.autograd.gradcheck(loss, tuple(trained.values()))


def one_unit_network():
    """One feature and one unit, two labels; gates of 1/2 whatever the embeddings."""
    network = CLIFNetwork(1, 2, 2, 1, 0.25, n_units=1)
    weights = double(network.initial(torch.eye(2), torch.ones(2), generator()))
    values = {
        "gate.weight": [[0, 0]],
        "features0.weight": [[1]],
        "features0.bias": [0],
        "shared.weight": [[3]],
        "shared.bias": [0],
        "output.weight": [[1], [-1]],
        "output.bias": [0, 1],
    }
    weights |= {name: tensor(value) for name, value in values.items()}
    return network, weights


def test_forward_and_loss_by_hand():
    network, weights = one_unit_network()
    x = tensor([[2], [-2]])
    # 2 passes the gate as 1 and becomes 3; -2 is -0.2, -0.1, -0.3 and then -0.03.
    logits = np.array([[3, -2], [-0.03, 1.03]])
    np.testing.assert_allclose(network.logits(weights, x).detach(), logits)
    batch = Batch(x, tensor([[1, 0], [0, 1]]), tensor([0.5, 1.5]))
    signs = np.array([[1, -1], [-1, 1]])
    rows = -np.log(expit(logits * signs)).mean(axis=1)
    graph = graph_loss(embed_labels(weights, training=True), weights["graph"])
    expected = (0.5 * rows[0] + 1.5 * rows[1]) / 2 + 0.25 * graph.item()
    loss = network.loss(weights, batch, generator())
    np.testing.assert_allclose(loss.item(), expected)


def test_integer_weights_are_repeated_rows():
    network = CLIFNetwork(3, 4, 4, 1, 0.1, n_units=5)
    batch = random_batch(3, 3, 4)
    repeats = torch.tensor([2, 1, 3])
    weighted = Batch(batch.x, batch.y, repeats.double() / 2)
    repeated = Batch(
        *(t.repeat_interleave(repeats, dim=0) for t in (batch.x, batch.y)),
        torch.ones(6, dtype=torch.float64),
    )
    losses = []
    for rows in (weighted, repeated):
        weights = double(network.initial(rows.y, rows.weight, generator()))
        losses.append(network.loss(weights, rows, generator()).item())
    np.testing.assert_allclose(*losses)


def test_running_statistics_move_once_a_step_and_not_at_evaluation():
    network, batch = CLIFNetwork(3, 4, 6, 1, 0.1, n_units=5), random_batch(4, 3, 4)
    weights = double(network.initial(batch.y, batch.weight, generator()))
    before = {name: w.detach().clone() for name, w in weights.items()}
    network.logits(weights, batch.x)
    for name, w in weights.items():
        assert torch.equal(w, before[name]), name
    network.loss(weights, batch, generator())
    moved = {name for name, w in weights.items() if not torch.equal(w, before[name])}
    assert moved == {
        f"gin{layer}.norm{part}.{statistic}"
        for layer in range(2)
        for part in range(2)
        for statistic in ("mean", "variance")
    }
    h = weights["label_input"] + weights["graph"] @ weights["label_input"]
    h = h @ weights["gin0.linear0.weight"].T + weights["gin0.linear0.bias"]
    np.testing.assert_allclose(
        weights["gin0.norm0.mean"], 0.1 * h.detach().mean(dim=0), atol=1e-12
    )


def test_nothing_is_made_on_another_device():
    # The device "meta" computes shapes alone and refuses tensors of the CPU.
    network, batch = CLIFNetwork(3, 4, 6, 2, 0.1, n_units=5), random_batch(4, 3, 4)
    weights = network.initial(batch.y.float(), batch.weight, generator())
    weights = {name: w.to("meta") for name, w in weights.items()}
    batch = Batch(*(t.float().to("meta") for t in (batch.x, batch.y, batch.weight)))
    assert network.loss(weights, batch, generator()).shape == ()
    assert network.logits(weights, batch.x).shape == (4, 4)


# Initialisation


def test_shapes_and_numbers_of_weights():
    D, K, E, U = 7, 3, 5, 11
    H = 3  # ⌈5/2⌉
    network = CLIFNetwork(D, K, E, 2, 1.0, n_units=U)
    weights = network.initial(torch.ones(2, K), torch.ones(2), generator())
    trained = [w for w in weights.values() if w.requires_grad]
    kept = {name for name, w in weights.items() if not w.requires_grad}
    gin = 2 * (1 + 2 * H + H * E + E + 2 * E + H) + K * H + E * H
    rest = (E + 1) * U + (D + 1) * U + 2 * (U + 1) * U + K * (U + 1)
    assert sum(w.numel() for w in trained) == gin + rest
    norms = [f"gin{layer}.norm{part}" for layer in range(2) for part in range(2)]
    assert kept == {"graph", "label_input"} | {
        f"{norm}.{statistic}" for norm in norms for statistic in ("mean", "variance")
    }
    assert weights["graph"].shape == weights["label_input"].shape == (K, K)
    assert weights["gin0.linear0.weight"].shape == (H, K)
    assert weights["gin1.linear1.weight"].shape == (E, H)
    assert weights["output.weight"].shape == (K, U)
    assert all(w.dtype == torch.float32 and w.is_leaf for w in weights.values())


def test_initial_values():
    network = CLIFNetwork(50, 40, 60, 1, 1.0)
    y = torch.ones(2, 40)
    weights = network.initial(y, torch.ones(2), generator())
    leaky = math.sqrt(6 / 1.01)  # over √n_in: Kaiming for slope 0.1
    bounds = {
        "gin0.linear0.weight": leaky / math.sqrt(40),
        "gin1.linear1.weight": leaky / math.sqrt(30),
        "features0.weight": leaky / math.sqrt(50),
        "shared.weight": leaky / math.sqrt(512),
        "gate.weight": math.sqrt(3 / 60),
        "output.weight": 1 / math.sqrt(512),
        "output.bias": 1 / math.sqrt(512),
    }
    for name, bound in bounds.items():
        w = weights[name].detach().numpy()
        assert np.abs(w).max() <= bound * (1 + 1e-6), name
        assert w.max() > 0.9 * bound and w.min() < -0.9 * bound, name
    for name in ("gin0.linear0.bias", "features0.bias", "shared.bias"):
        assert 0 <= weights[name].min() < 0.02 < 0.08 < weights[name].max() <= 0.1
    for name, value in [("epsilon", 0), ("scale", 1), ("shift", 0), ("variance", 1)]:
        same = [w for key, w in weights.items() if key.endswith(name)]
        assert same and all((w == value).all() for w in same)
    assert (weights["gate.bias"] == 0).all()
    # 1,600 draws of N(0, 1): four standard errors.
    drawn = weights["label_input"]
    assert abs(drawn.mean()) < 0.1 and abs(drawn.std() - 1) < 0.08
    assert torch.equal(weights["graph"], label_graph(y, torch.ones(2)))


def test_encoder_residual_of_the_first_layer_needs_equal_sizes():
    graph = torch.zeros(3, 3)
    for embedding_dim in (3, 4):
        weights = new_label_encoder(graph, embedding_dim, generator())
        for name in list(weights):
            if name.endswith(("scale", "epsilon")):
                weights[name] = torch.zeros_like(weights[name])
        # Layers that say nothing leave what the residuals let through.
        out = embed_labels(weights, training=True)
        expected = weights["label_input"] if embedding_dim == 3 else torch.zeros(3, 4)
        assert torch.equal(out, expected)

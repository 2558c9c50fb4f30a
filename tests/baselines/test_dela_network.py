import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from clml.baselines._batches import Batch
from clml.baselines._dela import DELANetwork
from clml.baselines._dela_network import (
    noise_divergence,
    straight_through_gates,
    tamed_exp,
)

TINY = DELANetwork(
    n_features=3,
    n_labels=2,
    latent_dim=4,
    beta=0.3,
    dropout=0.0,
    gate_floor=0.5,
    narrow=5,
    wide=6,
)
TEMPERATURE = 2 / 3


def doubles(values, **keywords):
    return torch.tensor(values, dtype=torch.float64, **keywords)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def initial(network, seed=0):
    """First weights, in double precision."""
    K = network.n_labels
    weights = network.initial(torch.zeros(1, K), torch.ones(1), generator(seed))
    return {name: w.detach().double().requires_grad_() for name, w in weights.items()}


def make_batch(network, rows=3, seed=0):
    rng = np.random.default_rng(seed)
    return Batch(
        doubles(rng.normal(size=(rows, network.n_features))),
        doubles(rng.integers(2, size=(rows, network.n_labels)).astype(float)),
        doubles(rng.uniform(0.5, 1.5, size=rows)),
    )


def drawn(network, rows, seed=0):
    """The gates' chances and the rows' noise of a loss without dropout."""
    draw = generator(seed)
    chance = torch.rand(
        (network.n_labels, network.latent_dim), generator=draw, dtype=torch.float64
    )
    noise = torch.randn((rows, network.latent_dim), generator=draw, dtype=torch.float64)
    return chance.numpy(), noise.numpy()


# Gates


def test_gates_by_hand():
    # logit(0.5) = 0, so that a soft gate is s(1.5 a): s(±3), over or under a half;
    # logit(0.9) = 2.2 lets the same logit of -2 through.
    logits = doubles([[2.0, -2.0, -2.0]], requires_grad=True)
    gates = straight_through_gates(logits, doubles([[0.5, 0.5, 0.9]]), 0.25)
    assert gates.tolist() == [[1.0, 0.25, 1.0]]
    (slope,) = torch.autograd.grad(gates.sum(), logits)
    # s'(3) / τ = 0.0451767 × 1.5, and s'(0.2958369) / τ.
    assert slope[0, :2].tolist() == pytest.approx([0.0677650] * 2, abs=1e-7)
    soft = 1 / (1 + math.exp(-1.5 * (math.log(9) - 2)))
    assert slope[0, 2].item() == pytest.approx(1.5 * soft * (1 - soft))


def test_a_soft_gate_of_one_half_is_informative():
    gates = straight_through_gates(doubles([[0.0]]), doubles([[0.5]]), 0.5)
    assert gates.item() == 0.5


@given(
    floor=st.floats(0.01, 1),
    logit=st.floats(-20, 20),
    chance=st.floats(0, 1),
)
def test_gates_have_two_values_and_the_slope_of_soft_ones(floor, logit, chance):
    logits = doubles([logit], requires_grad=True)
    gates = straight_through_gates(logits, doubles([chance]), floor)
    assert gates.item() in (1.0, floor)
    (slope,) = torch.autograd.grad(gates, logits)
    clamped = min(max(chance, 2.0**-52), 1 - 2.0**-52)
    soft = torch.sigmoid((torch.logit(doubles([clamped])) + logits) / TEMPERATURE)
    (soft_slope,) = torch.autograd.grad(soft, logits)
    torch.testing.assert_close(slope, soft_slope, rtol=1e-10, atol=1e-300)


def test_gates_are_exact_in_single_precision():
    logits = torch.linspace(-8, 8, 1000)
    gates = straight_through_gates(logits, torch.rand(1000, generator=generator()), 0.3)
    assert set(gates.tolist()) == {1.0, float(np.float32(0.3))}
    ends = straight_through_gates(torch.zeros(2), torch.tensor([0.0, 1.0]), 0.5)
    assert ends.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("latent_dim", [10, 50, 200])
def test_some_73_percent_of_gates_start_noisy(latent_dim):
    network = replace(TINY, n_labels=400, latent_dim=latent_dim)
    weights = initial(network)
    logits = weights["gate.table"] @ weights["gate.weight"].T + weights["gate.bias"]
    assert logits.mean().item() == pytest.approx(2, abs=0.2)
    assert logits.std().item() == pytest.approx(10 / 3, rel=0.15)
    assert (logits > 0).double().mean().item() == pytest.approx(0.73, abs=0.03)


# Divergence


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        # N(1, 1) from N(0, 1): 1/2. N(1, 1/4): log 2 + (1/4 + 1) / 2 - 1/2.
        (1.0, 0.5),
        (0.5, 0.8181472),
    ],
)
def test_divergence_by_hand(gate, expected):
    value = noise_divergence(
        doubles([[1.0]]), doubles([[0.0]]), doubles([[gate]]), doubles([1.0])
    )
    assert value.item() == pytest.approx(expected, abs=3e-6)


def slow_divergence(mean, log_variance, gates, weight):
    total = 0.0
    for z, v, w in zip(mean, log_variance, weight, strict=True):
        for g in gates:
            for d in range(len(z)):
                total += (w / 2) * (
                    -v[d]
                    - 2 * np.log(g[d] + 1e-6)
                    - 1
                    + np.exp(v[d]) * g[d] ** 2
                    + z[d] ** 2
                )
    return total / (len(mean) * len(gates))


@pytest.mark.parametrize("shape", [(5, 3, 4), (1, 3, 2), (4, 1, 1)])
def test_divergence_is_that_of_its_slow_twin(shape):
    B, K, L = shape
    rng = np.random.default_rng(0)
    mean, log_variance = rng.normal(size=(2, B, L))
    gates, weight = rng.choice([0.5, 1], size=(K, L)), rng.uniform(size=B)
    ours = noise_divergence(*map(torch.tensor, (mean, log_variance, gates, weight)))
    twin = slow_divergence(mean, log_variance, gates, weight)
    assert ours.item() == pytest.approx(twin, rel=1e-12)


def test_divergence_is_that_of_normal_distributions():
    rng = np.random.default_rng(1)
    mean, log_variance = torch.tensor(rng.normal(size=(2, 5, 4)))
    gates = torch.tensor(rng.choice([0.5, 1], size=(3, 4)))
    noisy = torch.distributions.Normal(
        mean[:, None].expand(5, 3, 4), gates * (log_variance / 2).exp()[:, None]
    )
    standard = torch.distributions.Normal(doubles(0.0), doubles(1.0))
    oracle = torch.distributions.kl_divergence(noisy, standard).sum(dim=2).mean()
    ours = noise_divergence(mean, log_variance, gates, torch.ones(5).double())
    assert ours.item() == pytest.approx(oracle.item(), abs=1e-4)


def test_a_floor_keeps_closed_gates_cheap():
    at_rest = doubles([[0.0]]), doubles([[0.0]])
    for floor, cost, slope in [(0.5, 0.318, -1.5), (0.0, 13.3, -1e6)]:
        logits = doubles([[-2.0]], requires_grad=True)
        gates = straight_through_gates(logits, doubles([[0.5]]), floor)
        value = noise_divergence(*at_rest, gates, doubles([1.0]))
        # ½ (-2 log g - 1 + g²), and its derivative -1 / g + g.
        assert value.item() == pytest.approx(cost, rel=1e-2)
        (by_gate,) = torch.autograd.grad(value, gates)
        assert by_gate.item() == pytest.approx(slope, rel=1e-2)


def test_large_variances_stay_finite():
    v = doubles([-3.0, 0.0, 19.0, 22.0, 1000.0], requires_grad=True)
    values = tamed_exp(v)
    steepest = math.exp(20)
    expected = [math.exp(-3), 1, math.exp(19), 3 * steepest, 981 * steepest]
    assert values.tolist() == pytest.approx(expected)
    (slopes,) = torch.autograd.grad(values.sum(), v)
    expected = [math.exp(-3), 1, math.exp(19), steepest, steepest]
    assert slopes.tolist() == pytest.approx(expected)
    batch = make_batch(TINY)
    batch = replace(batch, x=1e4 * batch.x.abs())
    weights = {name: w.abs() for name, w in initial(TINY).items()}
    assert math.isfinite(TINY.loss(weights, batch, generator()).item())


# The whole loss


def slow_logits(weights, x, z):
    """Logits of one row with the joint matrix on [x; z_k]; z is (K, L)."""
    joint = np.hstack([weights["decoder_x.weight"], weights["decoder_z.weight"]])
    logits = []
    for k, z_k in enumerate(z):
        h = np.maximum(joint @ np.r_[x, z_k] + weights["decoder_x.bias"], 0)
        h = np.maximum(weights["decoder1.weight"] @ h + weights["decoder1.bias"], 0)
        logits.append(weights["output.weight"][k] @ h + weights["output.bias"][k])
    return np.array(logits)


def slow_encoding(weights, x):
    for name in ("encoder0", "encoder1", "encoder2"):
        x = np.maximum(weights[f"{name}.weight"] @ x + weights[f"{name}.bias"], 0)
    return [
        weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]
        for name in ("mean", "log_variance")
    ]


def slow_loss(network, weights, batch, chance, noise):
    weights = {name: w.detach().numpy() for name, w in weights.items()}
    K = network.n_labels
    a = weights["gate.table"] @ weights["gate.weight"].T + weights["gate.bias"]
    soft = expit((np.log(chance / (1 - chance)) + a) / TEMPERATURE)
    gates = np.where(soft > 0.5, 1.0, network.gate_floor)
    errors, means, log_variances = 0.0, [], []
    rows = zip(batch.x.numpy(), batch.y.numpy(), batch.weight.numpy(), strict=True)
    for (x, y, weight), e in zip(rows, noise, strict=True):
        z, v = slow_encoding(weights, x)
        logits = slow_logits(weights, x, z + gates * np.exp(v / 2) * e)
        for k in range(K):
            p = expit(logits[k])
            errors -= weight * np.log(p if y[k] else 1 - p)
        means.append(z)
        log_variances.append(v)
    divergence = slow_divergence(means, log_variances, gates, batch.weight.numpy())
    return errors / len(noise) + network.beta * divergence


@pytest.mark.parametrize("n_labels", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("labels", ["random", "none", "all"])
def test_loss_is_that_of_its_slow_twin(n_labels, rows, labels):
    network = replace(TINY, n_labels=n_labels)
    weights, batch = initial(network), make_batch(network, rows)
    if labels != "random":
        batch = replace(batch, y=torch.full_like(batch.y, labels == "all"))
    loss = network.loss(weights, batch, generator(7))
    twin = slow_loss(network, weights, batch, *drawn(network, rows, seed=7))
    assert loss.item() == pytest.approx(twin, rel=1e-10)


def test_loss_with_nothing_learnt_by_hand():
    # All weights 0: z = v = 0, logits 0, soft gates s(1.5 logit(u)). Two labels cost
    # log 2 each; a gate costs 0 where open and ½ (2 log 2 - 1 + ¼) where not.
    weights = {name: torch.zeros_like(w) for name, w in initial(TINY).items()}
    batch = replace(make_batch(TINY), weight=torch.ones(3).double())
    closed = (drawn(TINY, 3)[0] <= 0.5).sum()
    cost = 0.5 * (2 * math.log(2) - 0.75)
    expected = 2 * math.log(2) + 0.3 * closed * cost / 2
    loss = TINY.loss(weights, batch, generator())
    assert loss.item() == pytest.approx(expected, abs=1e-5)


def test_gradients_but_those_of_gates():
    weights, batch = initial(TINY), make_batch(TINY)
    names = [name for name in weights if not name.startswith("gate.")]

    def loss(*values):
        new = weights | dict(zip(names, values, strict=True))
        return TINY.loss(new, batch, generator(1))

    assert torch.autograd.gradcheck(loss, [weights[name] for name in names])


def test_gradients_of_gates_are_those_of_soft_ones():
    """By finite differences: of the loss by gate, times those of the soft gate."""
    weights, batch = initial(TINY), make_batch(TINY)
    chance, noise = drawn(TINY, len(batch.x), seed=3)
    TINY.loss(weights, batch, generator(3)).backward()
    arrays = {name: w.detach().numpy() for name, w in weights.items()}
    encodings = [slow_encoding(arrays, x) for x in batch.x.numpy()]

    def soft_gates(table, weight, bias):
        a = table @ weight.T + bias
        return expit((np.log(chance / (1 - chance)) + a) / TEMPERATURE)

    def loss_of_gates(gates):
        total = 0.0
        for i, (z, v) in enumerate(encodings):
            logits = slow_logits(
                arrays, batch.x[i].numpy(), z + gates * np.exp(v / 2) * noise[i]
            )
            errors = np.logaddexp(0, logits) - batch.y[i].numpy() * logits
            total += batch.weight[i].item() * errors.sum() / len(encodings)
        means, log_variances = zip(*encodings, strict=True)
        divergence = slow_divergence(means, log_variances, gates, batch.weight.numpy())
        return total + TINY.beta * divergence

    def slope(f, at, direction, step=1e-6):
        return (f(at + step * direction) - f(at - step * direction)) / (2 * step)

    names = ("table", "weight", "bias")
    values = [arrays[f"gate.{name}"] for name in names]
    hard = np.where(soft_gates(*values) > 0.5, 1.0, 0.5)
    assert {0.5, 1.0} == set(hard.ravel())
    by_gate = np.zeros_like(hard)
    for index in np.ndindex(*hard.shape):
        unit = np.zeros_like(hard)
        unit[index] = 1
        by_gate[index] = slope(loss_of_gates, hard, unit)
    for i, name in enumerate(names):
        found = weights[f"gate.{name}"].grad.numpy()
        for index in np.ndindex(*found.shape):
            unit = np.zeros_like(found)
            unit[index] = 1
            soft_slope = slope(
                lambda v, i=i: soft_gates(*values[:i], v, *values[i + 1 :]),
                values[i],
                unit,
            )
            expected = (by_gate * soft_slope).sum()
            assert found[index] == pytest.approx(expected, abs=1e-7, rel=1e-5)


def test_integer_weights_are_repeated_rows():
    weights = initial(TINY)
    with torch.no_grad():
        # Rows draw different noise if others are repeated: so small that none is left.
        weights["log_variance.bias"].fill_(-200)
    batch, weight = make_batch(TINY), torch.tensor([1, 3, 2])
    weighted = replace(batch, weight=weight.double() / 2)
    repeated = Batch(
        batch.x.repeat_interleave(weight, dim=0),
        batch.y.repeat_interleave(weight, dim=0),
        torch.ones(6).double(),
    )
    losses = [TINY.loss(weights, b, generator()).item() for b in (weighted, repeated)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    unweighted = replace(batch, weight=torch.ones(3).double())
    assert abs(losses[0] - TINY.loss(weights, unweighted, generator()).item()) > 1e-3


def test_dropout_is_in_training_alone():
    network = replace(TINY, dropout=0.5)
    weights, batch = initial(network), make_batch(network)
    losses = [net.loss(weights, batch, generator()) for net in (TINY, network)]
    assert losses[0] != losses[1]
    assert torch.equal(network.logits(weights, batch.x), TINY.logits(weights, batch.x))


# Prediction


def test_logits_have_no_noise_and_no_gates():
    weights, batch = initial(TINY), make_batch(TINY)
    arrays = {name: w.detach().numpy() for name, w in weights.items()}
    twin = [
        slow_logits(arrays, x, np.stack([slow_encoding(arrays, x)[0]] * 2))
        for x in batch.x.numpy()
    ]
    logits = TINY.logits(weights, batch.x).detach()
    np.testing.assert_allclose(logits.numpy(), twin, rtol=1e-10)
    unused = {
        name: torch.full_like(w, torch.nan)
        for name, w in weights.items()
        if name.startswith(("gate.", "log_variance."))
    }
    assert len(unused) == 5
    torch.testing.assert_close(TINY.logits(weights | unused, batch.x), logits)


# First weights


def test_initial_weights():
    network = DELANetwork(103, 14, 50, 1.0, 0.0, 0.5)
    weights = network.initial(torch.zeros(1, 14), torch.ones(1), generator())
    D, K, L = 103, 14, 50
    relu = {n: math.sqrt(6 / n) for n in (D, 256, 512, D + L)}
    intervals = {
        "encoder0": ((256, D), relu[D]),
        "encoder1": ((512, 256), relu[256]),
        "encoder2": ((256, 512), relu[512]),
        "mean": ((L, 256), 1 / 16),
        "log_variance": ((L, 256), 1 / 16),
        "decoder_x": ((256, D), relu[D + L]),
        "decoder_z": ((256, L), relu[D + L]),
        "decoder1": ((512, 256), relu[256]),
        "output": ((K, 512), 512**-0.5),
        "gate": ((L, L), L**-0.5),
    }
    for name, (shape, bound) in intervals.items():
        w = weights[f"{name}.weight"]
        assert w.shape == shape
        assert 0.99 * bound < w.max() <= bound
        assert -bound <= w.min() < -0.99 * bound
        if name.startswith(("encoder", "decoder")) and name != "decoder_z":
            bias = weights[f"{name}.bias"]
            assert 0 <= bias.min() < 0.005 < 0.095 < bias.max() <= 0.1
    assert weights["gate.table"].shape == (K, L)
    assert 9.8 < weights["gate.table"].max() <= 10
    assert -10 <= weights["gate.table"].min() < -9.8
    assert (weights["gate.bias"] == 2).all()
    for name in ("mean", "log_variance", "output"):
        assert weights[f"{name}.bias"].min() < 0 < weights[f"{name}.bias"].max()
    encoder = (D + 1) * 256 + 257 * 512 + 513 * 256 + 2 * 257 * L
    gates = K * L + (L + 1) * L
    decoder = (D + L + 1) * 256 + 257 * 512 + 513 * K
    assert sum(w.numel() for w in weights.values()) == encoder + gates + decoder
    assert all(w.requires_grad and w.dtype == torch.float32 for w in weights.values())

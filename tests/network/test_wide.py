"""The wide network: against a twin in plain NumPy, PyTorch, and differences."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from clml.network import WideLayout, WideNetwork, WidePass
from clml.network.wide_kernels import dropout_factors

D, K, N = 5, 3, 12
SHAPES = [
    {"hidden": (7,)},
    {"hidden": (6, 4)},
    {"hidden": (6, 4, 5), "activation": "tanh"},
    {"hidden": (6, 4), "linear_path": True},
    {"hidden": (1,), "activation": "tanh", "linear_path": True, "dropout": 0.0},
]


def random_layout(**settings):
    layout = WideNetwork(**settings).build(D, K)
    generator = np.random.default_rng(3)
    theta = layout.start(generator)
    theta += 0.1 * generator.normal(size=theta.shape).astype(np.float32)
    return layout, theta


def random_rows(kind="dense", seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(N, D)).astype(np.float32)
    if kind == "dense":
        return X
    X[generator.random((N, D)) < 0.6] = 0
    X[4] = 0  # a row without an entry
    return sp.csr_array(X)


@pytest.mark.parametrize("n_inputs, units", [(1, 512), (511, 512), (512, 256)])
def test_default_widths(n_inputs, units):
    assert WideNetwork().build(n_inputs, 2).hidden == (units,)


def bits_of(key, layer, n):
    """Sixteen bits of each unit, by the integers of Python."""
    mask = 2**64 - 1
    step = 0x9E3779B97F4A7C15

    def mixed(word):
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        return word ^ (word >> 31)

    first = mixed((key + (layer + 1) * step) & mask)
    found = []
    for i in range(0, n, 4):
        word = mixed((first + i * step) & mask)
        found += [(word >> (16 * j)) & 0xFFFF for j in range(4)]
    return np.array(found[:n])


def factors_of(layout, m, key):
    """What each hidden layer's units are multiplied by."""
    found = []
    threshold = 0 if key is None else min(round(layout.dropout * 65536), 65535)
    for i, width in enumerate(layout.hidden):
        if threshold == 0:
            found.append(np.ones((m, width)))
            continue
        kept = bits_of(key, i, m * width) >= threshold
        found.append(kept.reshape(m, width) * (65536 / (65536 - threshold)))
    return found


def twin(layout, theta, X, rows, key=None):
    """Logits of rows in float64, a layer at a time."""
    X = X.toarray() if sp.issparse(X) else X
    named = layout.views(theta.astype(np.float64))
    inputs = values = X[rows].astype(np.float64)
    act = np.tanh if layout.activation == "tanh" else lambda z: np.maximum(z, 0)
    for i, factors in enumerate(factors_of(layout, len(rows), key), 1):
        values = act(values @ named[f"W{i}"] + named[f"b{i}"]) * factors
    last = len(layout.hidden) + 1
    logits = values @ named[f"W{last}"] + named[f"b{last}"]
    if layout.linear_path:
        logits += inputs @ named["linear"]
    return logits


@pytest.mark.parametrize("settings", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("key", [None, 0, 2**64 - 1])
def test_logits_are_those_of_the_twin(settings, kind, key):
    layout, theta = random_layout(**settings)
    X = random_rows(kind)
    rows = np.array([3, 0, 3, 11, 4])
    found = WidePass(layout, X, 6).forward(theta, rows, key)
    np.testing.assert_allclose(found, twin(layout, theta, X, rows, key), atol=1e-5)


@pytest.mark.parametrize("settings", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("key", [None, 12345])
def test_gradient_is_the_derivative(settings, kind, key):
    layout, theta = random_layout(**settings)
    X = random_rows(kind)
    rows = np.array([3, 0, 3, 11, 4, 7])
    slope = np.random.default_rng(5).normal(size=(6, K)).astype(np.float32)
    some = WidePass(layout, X, 6)
    some.forward(theta, rows, key)
    found = some.backward(slope)
    wide = theta.astype(np.float64)
    step = 1e-6
    for i in range(layout.size):
        up, down = wide.copy(), wide.copy()
        up[i] += step
        down[i] -= step
        change = twin(layout, up, X, rows, key) - twin(layout, down, X, rows, key)
        expected = (slope * change).sum() / (2 * step)
        assert found[i] == pytest.approx(expected, abs=2e-4, rel=2e-4), i


@pytest.mark.parametrize("linear_path", [False, True])
def test_gradient_is_that_of_pytorch(linear_path):
    torch = pytest.importorskip("torch")
    layout, theta = random_layout(hidden=(16, 8), linear_path=linear_path)
    X = random_rows()
    slope = np.random.default_rng(6).normal(size=(N, K)).astype(np.float32)
    some = WidePass(layout, X, N)
    some.forward(theta, np.arange(N))
    weights = torch.tensor(theta, requires_grad=True)
    values = inputs = torch.tensor(X)
    start = 0
    widths = [D, 16, 8, K]
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        matrix = weights[start : start + a * b].reshape(a, b)
        start += a * b
        values = values @ matrix + weights[start : start + b]
        start += b
        values = torch.relu(values) if i < 2 else values
    if linear_path:
        values = values + inputs @ weights[start:].reshape(D, K)
    (values * torch.tensor(slope)).sum().backward()
    np.testing.assert_allclose(
        some.backward(slope), weights.grad.numpy(), rtol=1e-4, atol=1e-5
    )


@given(st.integers(0, 2**64 - 1), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_dropped_units_are_those_of_the_twin(key, rows, units):
    factors = np.empty((rows, units), dtype=np.float32)
    for layer in range(3):
        dropout_factors(np.uint64(key), layer, 20_000, np.float32(2), factors)
        kept = bits_of(key, layer, rows * units) >= 20_000
        np.testing.assert_array_equal(factors.ravel(), 2.0 * kept)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_as_many_units_are_dropped_as_asked(dropout):
    n = 400_000
    factors = np.empty((1000, n // 1000), dtype=np.float32)
    shares = []
    for key in range(5):
        threshold = round(dropout * 65536)
        dropout_factors(np.uint64(key), 0, threshold, np.float32(1), factors)
        shares.append(1 - factors.mean())
        # Neither rows nor units are favoured.
        deviation = (dropout * (1 - dropout) / 400) ** 0.5
        assert abs((1 - factors.mean(axis=1)).std() / deviation - 1) < 0.15
    assert np.mean(shares) == pytest.approx(dropout, abs=0.002)
    assert len(set(shares)) == 5


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_a_row_does_not_depend_on_its_neighbours(data):
    layout, theta = random_layout(hidden=(6, 4), linear_path=True)
    X = random_rows(data.draw(st.sampled_from(["dense", "sparse"])))
    rows = data.draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=20))
    found = layout.logits(theta, X, np.array(rows))
    alone = np.concatenate([layout.logits(theta, X, np.array([r])) for r in rows])
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)


def test_many_rows_go_through_in_blocks(monkeypatch):
    layout, theta = random_layout(hidden=(6,))
    X = np.random.default_rng(0).normal(size=(1100, D)).astype(np.float32)
    found = layout.logits(theta, X)
    np.testing.assert_allclose(
        found, twin(layout, theta, X, np.arange(1100)), atol=1e-5
    )


def test_a_batch_alone_is_one_of_a_pass():
    layout, theta = random_layout(hidden=(6, 4), linear_path=True)
    X = random_rows("sparse")
    logits, memory = layout.forward(theta, X, np.random.default_rng(7))
    key = int(np.random.default_rng(7).integers(2**63))
    some = WidePass(layout, X, N)
    np.testing.assert_array_equal(logits, some.forward(theta, np.arange(N), key))
    slope = np.ones_like(logits)
    np.testing.assert_array_equal(layout.backward(slope, memory), some.backward(slope))
    np.testing.assert_array_equal(layout.forward(theta, X)[0], layout.logits(theta, X))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_outputs_have_one_size_at_the_start(activation):
    X = np.random.default_rng(0).normal(size=(400, 50)).astype(np.float32)
    network = WideNetwork((300, 300), activation=activation, linear_path=True)
    layout = network.build(50, 8)
    theta = layout.start(np.random.default_rng(1))
    assert 0.1 < layout.logits(theta, X).std() < 0.6
    named = layout.views(theta)
    assert not any(named[name].any() for name in ("b1", "b2", "b3", "linear"))


def test_no_rows():
    layout, theta = random_layout(hidden=(6,))
    some = WidePass(layout, random_rows(), 4)
    assert some.forward(theta, np.empty(0, dtype=int)).shape == (0, K)
    with pytest.raises(ValueError, match="needs a forward pass"):
        some.backward(np.empty((0, K), dtype=np.float32))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"hidden": 256}, "hidden must be a sequence of integers"),
        ({"hidden": "512"}, "hidden must be a sequence of integers"),
        ({"hidden": (8, 0)}, "positive integers"),
        ({"hidden": (True,)}, "positive integers"),
        ({"hidden": (2.5,)}, "positive integers"),
        ({"activation": "sine"}, "activation must be one of"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
        ({"dropout": np.nan}, r"dropout must be in \[0, 1\)"),
        ({"linear_path": 1}, "linear_path must be a bool"),
    ],
)
def test_descriptions_that_are_none(settings, message):
    network = WideNetwork(**settings)  # refused when it is built, as in scikit-learn
    with pytest.raises(ValueError, match=message):
        network.build(D, K)


@pytest.mark.parametrize("linear_path", [False, True])
def test_without_hidden_units_a_network_is_linear(linear_path):
    rng = np.random.default_rng(0)
    layout = WideNetwork(hidden=(), linear_path=linear_path).build(4, 3)
    assert layout.size == 15 + 12 * linear_path
    assert not layout.start(rng).any()
    theta = rng.normal(size=layout.size).astype(np.float32)
    X = rng.normal(size=(6, 4)).astype(np.float32)
    named = layout.views(theta)
    matrix = named["W1"] + (named["linear"] if linear_path else 0)
    passes = WidePass(layout, X, 6)
    logits = passes.forward(theta, np.arange(6), key=5)
    np.testing.assert_allclose(logits, X @ matrix + named["b1"], atol=1e-5)
    slope = rng.normal(size=(6, 3)).astype(np.float32)
    gradient = layout.views(passes.backward(slope))
    np.testing.assert_allclose(gradient["W1"], X.T @ slope, atol=1e-5)
    np.testing.assert_allclose(gradient["b1"], slope.sum(axis=0), atol=1e-5)


def test_arguments_that_are_none():
    layout, theta = random_layout(hidden=(6,))
    X = random_rows()
    with pytest.raises(ValueError, match="n_labels must be positive, got 0"):
        WideNetwork().build(3, 0)
    with pytest.raises(ValueError, match="X must be float32 with 5 columns"):
        WidePass(layout, X.astype(np.float64), 3)
    with pytest.raises(ValueError, match="X must be float32 with 5 columns"):
        WidePass(layout, X[:, :3], 3)
    some = WidePass(layout, X, 3)
    with pytest.raises(ValueError, match="theta must be float32"):
        some.forward(theta[1:], np.arange(2))
    with pytest.raises(ValueError, match="rows must be 3 at most"):
        some.forward(theta, np.arange(4))
    for wrong in ([-1], [N]):
        with pytest.raises(ValueError, match=r"rows must be in \[0, 12\)"):
            some.forward(theta, np.array(wrong))
    for wrong in (np.ones(3, dtype=bool), np.array([0.5]), np.zeros((2, 1), int)):
        with pytest.raises(ValueError, match="rows must be integers of one axis"):
            some.forward(theta, wrong)
    some.forward(theta, np.arange(2))
    with pytest.raises(ValueError, match="slope must be float32 of shape"):
        some.backward(np.ones((3, K), dtype=np.float32))
    with pytest.raises(ValueError, match="theta must have shape"):
        layout.views(theta[:-1])


def test_descriptions_are_values():
    network = WideNetwork((8, 4), dropout=0.25)
    assert clone(network) == network
    assert clone(network) is not network
    assert network.get_params()["hidden"] == (8, 4)
    assert network.build(D, K) == WideLayout(D, K, (8, 4), "relu", 0.25, False)
    assert WideNetwork((8, 4)) != network
    assert eval(repr(network), {"WideNetwork": WideNetwork}) == network


@pytest.mark.parametrize("sparse", [False, True])
def test_networks_one_after_another_are_each_what_they_are_alone(sparse):
    generator = np.random.default_rng(0)
    layout = WideNetwork(hidden=(7,), linear_path=True).build(5, 3)
    X = generator.normal(size=(600, 5)).astype(np.float32)
    X = sp.csr_array(X) if sparse else X
    thetas = [generator.normal(size=layout.size).astype(np.float32) for _ in range(3)]
    # More than a block, none at all, and some twice.
    rows = [np.arange(600), np.empty(0, dtype=np.intp), np.array([5, 3, 5])]
    found = layout.logits_of_each(thetas, X, rows)
    alone = [layout.forward(t, X[r])[0] for t, r in zip(thetas, rows, strict=True)]
    np.testing.assert_array_equal(found, np.concatenate(alone))
    with pytest.raises(ValueError, match=r"rows must be in \[0, 600\)"):
        layout.logits_of_each(thetas[:1], X, [np.array([600])])
    with pytest.raises(ValueError, match="theta must be float32"):
        layout.logits_of_each([thetas[0][1:]], X, [np.array([0])])

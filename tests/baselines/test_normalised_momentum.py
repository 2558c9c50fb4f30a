import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clml.baselines._normalised_momentum import NormalisedMomentum

finite = st.floats(-1e6, 1e6)


def positions(gradients, rates, dtype=torch.float64):
    """Start at 0 and take a step for each gradient, a row of numbers."""
    w = torch.zeros(len(gradients[0]), dtype=dtype, requires_grad=True)
    optimiser = NormalisedMomentum([w], lr=rates[0])
    path = []
    for gradient, rate in zip(gradients, rates, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        (w @ torch.tensor(gradient, dtype=dtype)).backward()
        optimiser.step()
        path.append(w.detach().clone().numpy())
    return np.array(path)


def slow_positions(gradients, rates):
    path = []
    for column in zip(*gradients, strict=True):
        w = d = 0.0
        r, here = abs(column[0]), []
        for g, rate in zip(column, rates, strict=True):
            r = math.sqrt(0.9 * r * r + 0.1 * g * g)
            d = 0.99 * d - rate * (g / r if r > 0 else 0.0)
            w += d
            here.append(w)
        path.append(here)
    return np.array(path).T


def test_three_steps_by_hand():
    # r: 3, then sqrt(0.9 · 9 + 0.1 · 16) = sqrt(9.7), then sqrt(0.9 · 9.7).
    second = -0.099 - 0.1 * 4 / math.sqrt(9.7)
    third = 0.99 * second
    expected = np.cumsum([-0.1, second, third])
    path = positions([[3.0], [4.0], [0.0]], [0.1] * 3)
    np.testing.assert_allclose(path[:, 0], expected, rtol=1e-12)


def test_a_new_rate_leaves_the_momentum_of_the_old_one():
    # r stays at 2: d is -0.1, then -0.099 - 0.05.
    path = positions([[2.0], [2.0]], [0.1, 0.05])
    np.testing.assert_allclose(path[:, 0], [-0.1, -0.249], rtol=1e-12)


@given(st.lists(finite.filter(lambda g: abs(g) > 1e-6), min_size=1, max_size=5))
def test_the_first_step_is_the_sign(gradient):
    for dtype in (torch.float32, torch.float64):
        path = positions([gradient], [0.25], dtype)
        np.testing.assert_allclose(path[0], -0.25 * np.sign(gradient), rtol=1e-6)


@given(
    st.lists(
        st.tuples(st.tuples(finite, finite), st.floats(1e-5, 1)),
        min_size=1,
        max_size=8,
    )
)
def test_equals_the_slow_twin(steps):
    gradients, rates = zip(*steps, strict=True)
    # Squares of what is left are normal numbers; below that see the test on small ones.
    gradients = np.where(np.abs(gradients) < 1e-100, 0.0, gradients).tolist()
    np.testing.assert_allclose(
        positions(gradients, rates),
        slow_positions(gradients, rates),
        rtol=1e-9,
        atol=1e-12,
    )


def test_equals_rmsprop_that_starts_from_the_first_gradient():
    random = np.random.default_rng(0)
    gradients = random.normal(size=(20, 4))
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    oracle = torch.optim.RMSprop([w], lr=0.01, alpha=0.9, momentum=0.99, eps=0.0)
    oracle.state[w] = {
        "step": torch.tensor(0.0),
        "square_avg": torch.tensor(gradients[0]).square(),
        "momentum_buffer": torch.zeros_like(w),
    }
    for gradient in gradients:
        w.grad = torch.tensor(gradient)
        oracle.step()
    path = positions(gradients.tolist(), [0.01] * 20)
    np.testing.assert_allclose(path[-1], w.detach().numpy(), rtol=1e-10)


def test_no_gradient_yet_means_no_step_and_then_a_long_one():
    # r is 0, then sqrt(0.1) |g|: the step is sqrt(10) times the rate.
    path = positions([[0.0], [0.0], [-7.0]], [0.1] * 3)
    np.testing.assert_allclose(path[:, 0], [0, 0, 0.1 * math.sqrt(10)], rtol=1e-12)


@pytest.mark.parametrize("size", [1e-18, 1e-20, 1e-23, 1e-30, 1e-45])
def test_gradients_whose_squares_vanish_do_not_explode(size):
    path = positions([[size]] * 3, [0.1] * 3, torch.float32)
    # With momentum, three steps of at most sqrt(10) rates each.
    assert np.isfinite(path).all()
    assert (np.abs(path) <= 0.1 * math.sqrt(10) * 6).all()
    assert (path <= 0).all()


def test_a_gradient_that_is_no_number_shows():
    assert np.isnan(positions([[1.0], [float("nan")]], [0.1] * 2)[-1]).all()


def test_moves_only_what_is_trained_and_has_a_gradient():
    trained, buffer, unused = (torch.ones(2) for _ in range(3))
    trained.requires_grad_()
    unused.requires_grad_()
    optimiser = NormalisedMomentum([trained, buffer, unused], lr=0.5)
    assert [len(group["params"]) for group in optimiser.param_groups] == [2]
    for _ in range(2):
        optimiser.zero_grad()
        (trained.sum() + buffer.sum()).backward()
        optimiser.step()
    np.testing.assert_allclose(trained.detach(), 1 - 0.5 - 0.995, rtol=1e-6)
    assert buffer.tolist() == unused.tolist() == [1, 1]
    # Its first gradient may come later.
    unused.sum().backward()
    optimiser.step()
    assert unused.tolist() == [0.5, 0.5]


def test_steps_without_any_gradient_do_nothing():
    w = torch.ones(2, requires_grad=True)
    optimiser = NormalisedMomentum([w], lr=0.5)
    optimiser.step()
    assert w.tolist() == [1, 1]
    w.sum().backward()
    optimiser.zero_grad()
    assert w.grad is None

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from clml._training.adam import Adam


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    beta1=st.sampled_from([0.0, 0.9]),
    beta2=st.sampled_from([0.5, 0.999]),
    maximize=st.booleans(),
)
def test_equals_torch(seed, beta1, beta2, maximize):
    rng = np.random.default_rng(seed)
    start, *gradients = rng.normal(size=(31, 7)).astype(np.float32)
    gradients = gradients * np.geomspace(1e-6, 1e6, 7, dtype=np.float32)
    gradients[:, 2] = 0
    oracle = torch.nn.Parameter(torch.tensor(start))
    torch_adam = torch.optim.Adam([oracle], betas=(beta1, beta2), maximize=maximize)
    theta = start.copy()
    adam = Adam(7, beta1=beta1, beta2=beta2, maximize=maximize)
    for t, gradient in enumerate(gradients):
        rate = 0.1 / (t + 1)
        torch_adam.param_groups[0]["lr"] = rate
        oracle.grad = torch.tensor(gradient)
        torch_adam.step()
        adam.step(theta, gradient, rate)
    assert_allclose(theta, oracle.detach().numpy(), 1e-4, 1e-5)
    assert theta[2] == start[2]
    assert adam.n_steps == len(gradients)


def test_by_hand():
    # Averages 0.1·4 and 0.001·16, corrected 4 and 16: a step of 0.5·4/4.
    theta = np.ones(1, dtype=np.float32)
    adam = Adam(1, learning_rate=0.5)
    adam.step(theta, np.full(1, 4, dtype=np.float32))
    assert_allclose(theta, [0.5], 1e-6)
    assert_allclose(adam.first, [0.4], 1e-6)
    assert_allclose(adam.second, [0.016], 1e-4)
    # Then 0.9·0.4 − 0.1·4 = −0.04 over 0.19, and 16 again: back by 0.5·(0.2105/4).
    adam.step(theta, np.full(1, -4, dtype=np.float32))
    assert_allclose(theta, [0.5 + 0.5 * (0.04 / 0.19) / 4], 1e-5)


def test_the_state_is_the_arrays_and_the_count():
    rng = np.random.default_rng(1)
    gradients = rng.normal(size=(6, 4)).astype(np.float32)
    theta = np.zeros(4, dtype=np.float32)
    adam = Adam(4, 0.1)
    for gradient in gradients[:3]:
        adam.step(theta, gradient)
    copy, other = theta.copy(), Adam(4, 0.1)
    other.first[:], other.second[:], other.n_steps = adam.first, adam.second, 3
    for gradient in gradients[3:]:
        adam.step(theta, gradient)
        other.step(copy, gradient)
    assert_array_equal(copy, theta)


def test_gradient_is_not_changed():
    gradient = np.arange(3, dtype=np.float32)
    Adam(3).step(np.zeros(3, dtype=np.float32), gradient)
    assert_array_equal(gradient, [0, 1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta1": 1.0}, r"beta1 must be in \[0, 1\), got 1.0"),
        ({"beta2": -0.1}, r"beta2 must be in \[0, 1\), got -0.1"),
        ({"eps": 0.0}, "eps must be positive, got 0.0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Adam(3, **arguments)


@pytest.mark.parametrize(
    ("theta", "gradient", "message"),
    [
        (np.zeros(3), np.zeros(3, "f"), "theta must be float32 of shape .3,., got flo"),
        (np.zeros(3, "f"), np.zeros(2, "f"), "gradient must be float32 of shape .3,."),
    ],
)
def test_bad_arrays(theta, gradient, message):
    with pytest.raises(ValueError, match=message):
        Adam(3).step(theta, gradient)

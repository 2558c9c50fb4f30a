import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit

from clml._maps.calibration import fit_temperatures
from clml.losses import RowTargets, loss_values


def labels_for(logits, seed):
    rng = np.random.default_rng(seed)
    return (rng.random(logits.shape) < expit(logits)).astype(int)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.05, 20.0), st.booleans())
def test_minimises_the_cross_entropy(seed, scale, weighted):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=1.5, size=(80, 3))
    Y = labels_for(logits, seed + 1)
    weight = rng.random(80) if weighted else None
    scores = logits * scale
    (temperature,) = fit_temperatures(
        scores[None], RowTargets.from_indicator(Y, weight)
    )

    def entropy(log_temperature):
        z = scores / np.exp(log_temperature)
        return loss_values(Y, z, ("binary_cross_entropy",), weight)[0]

    best = minimize_scalar(
        entropy, bounds=(-8, 8), method="bounded", options={"xatol": 1e-9}
    )
    assert entropy(np.log(temperature)) <= best.fun + 1e-9


def test_finds_the_scale_the_labels_were_drawn_with():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2.0, size=(20_000, 2))
    targets = RowTargets.from_indicator(labels_for(logits, 1))
    temperatures = fit_temperatures(np.stack([logits, 7 * logits]), targets)
    np.testing.assert_allclose(temperatures, [1.0, 7.0], rtol=0.05)


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros((5, 2)),  # nothing to scale
        np.array([[3.0, -3.0]] * 5),  # every decision right
        np.array([[-3.0, 3.0]] * 5),  # every decision wrong
        np.full((5, 2), 1e-20),
    ],
)
def test_odd_scores_give_a_positive_finite_temperature(scores):
    targets = RowTargets.from_indicator([[1, 0]] * 5)
    (temperature,) = fit_temperatures(scores[None], targets)
    assert 0 < temperature < np.inf

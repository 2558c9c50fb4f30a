import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from clml._maps import label_calibration as _label_calibration
from clml._maps.label_calibration import LabelCalibration, fit_label_calibration
from clml._maps.platt import fit_platt
from clml.losses import RowTargets


def make_labels(seed, n=200, n_labels=3, gain=1.0, bias=0.0):
    generator = np.random.default_rng(seed)
    z = generator.normal(-0.5, 2, size=(n, n_labels))
    return z, (generator.random(z.shape) < expit(gain * z + bias)).astype(int)


def slow_twin(z, Y, weight, spread):
    """The maximum of the posterior, label by label, by a general optimiser."""
    shared, height = fit_platt(z, RowTargets.from_indicator(Y, weight))
    q = shared * z + height
    unit = weight / weight.mean()
    gains, biases = [], []
    for k in range(z.shape[1]):

        def minus_log_posterior(own, k=k):
            logits = (1 + own[0]) * q[:, k] + own[1]
            cross_entropy = unit @ (np.logaddexp(0, logits) - Y[:, k] * logits)
            return cross_entropy + 0.5 * np.square(own / np.array(spread)).sum()

        best = minimize(minus_log_posterior, np.zeros(2), method="BFGS", tol=1e-9).x
        gains.append((1 + best[0]) * shared)
        biases.append((1 + best[0]) * height + best[1])
    return np.array(gains), np.array(biases)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    spread=st.tuples(st.sampled_from([0.1, 0.4]), st.sampled_from([0.1, 1.6])),
    weighted=st.booleans(),
)
def test_is_the_maximum_of_the_posterior(seed, spread, weighted):
    z, Y = make_labels(seed)
    generator = np.random.default_rng(seed)
    weight = generator.uniform(0.1, 3, len(z)) if weighted else np.ones(len(z))
    found = fit_label_calibration(z, RowTargets.from_indicator(Y, weight), spread)
    gain, bias = slow_twin(z, Y, weight, spread)
    assert found.gain == pytest.approx(gain, abs=1e-4)
    assert found.bias == pytest.approx(bias, abs=1e-4)
    assert found.spread == spread


def test_rows_of_weight_0_are_absent():
    z, Y = make_labels(0)
    weight = np.r_[np.ones(150), np.zeros(50)]
    some = fit_label_calibration(z[:150], RowTargets.from_indicator(Y[:150]))
    all_rows = fit_label_calibration(z, RowTargets.from_indicator(Y, weight))
    assert all_rows.gain == pytest.approx(some.gain)
    assert all_rows.bias == pytest.approx(some.bias)


def test_labels_that_differ_are_believed_to_differ():
    z, Y = make_labels(1, n=2000, bias=np.array([-1.5, 0.0, 1.5]))
    found = fit_label_calibration(z, RowTargets.from_indicator(Y))
    assert found.bias == pytest.approx([-1.5, 0.0, 1.5], abs=0.3)
    alike = fit_label_calibration(*_alike())
    assert alike.spread[1] < found.spread[1]
    assert np.ptp(alike.bias) < 0.3


def _alike():
    z, Y = make_labels(2, n=100)
    return z, RowTargets.from_indicator(Y)


@pytest.mark.parametrize(
    ("z", "Y"),
    [
        (np.zeros((5, 2)), [[1, 0]] * 5),  # nothing to learn from
        (np.arange(10.0).reshape(5, 2), [[0, 0]] * 5),  # never positive
        (np.arange(10.0).reshape(5, 2), [[1, 1]] * 5),  # always
        (np.array([[1e6, -1e6], [-1e6, 1e6]]), [[1, 0], [0, 1]]),  # large, and right
        (np.array([[1e6, -1e6], [-1e6, 1e6]]), [[0, 1], [1, 0]]),  # large, and wrong
        (np.array([[0.5]]), [[1]]),  # one row, one label
    ],
)
def test_corner_cases_are_finite_and_keep_the_order(z, Y):
    found = fit_label_calibration(z, RowTargets.from_indicator(Y))
    assert isinstance(found, LabelCalibration)
    assert (found.gain > 0).all()
    assert np.isfinite(found.gain).all() and np.isfinite(found.bias).all()


def test_labels_at_the_least_scale_have_the_best_bias():
    """Scores that are worse than none: the slope is held, and the bias is right."""
    generator = np.random.default_rng(3)
    z = generator.normal(-1, 2, size=(400, 6))
    rates = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.5])
    Y = generator.random(z.shape) < np.where(np.arange(6) < 5, rates, expit(3 * z))
    spread = (0.8, 1.6)
    found = fit_label_calibration(z, RowTargets.from_indicator(Y), spread)
    shared, height = fit_platt(z, RowTargets.from_indicator(Y))
    q = shared * z + height
    scale = found.gain / shared
    assert scale[:5].min() < 0.3 < scale[5]
    for k in range(6):

        def minus_log_posterior(own, k=k):
            logits = (1 + own[0]) * q[:, k] + own[1]
            cross_entropy = (np.logaddexp(0, logits) - Y[:, k] * logits).sum()
            return cross_entropy + 0.5 * np.square(own / np.array(spread)).sum()

        best = minimize(
            minus_log_posterior,
            np.zeros(2),
            method="L-BFGS-B",
            bounds=[(_label_calibration._LEAST_SCALE - 1, None), (None, None)],
            options={"ftol": 1e-14, "gtol": 1e-9},
        )
        own = np.array([scale[k] - 1, found.bias[k] - scale[k] * height])
        assert minus_log_posterior(own) <= best.fun + 1e-6


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_weights_have_no_unit(unit):
    z, Y = make_labels(0)
    weight = np.random.default_rng(1).uniform(0.1, 3, len(z))
    one = fit_label_calibration(z, RowTargets.from_indicator(Y, weight))
    other = fit_label_calibration(z, RowTargets.from_indicator(Y, unit * weight))
    assert other.gain == pytest.approx(one.gain)
    assert other.bias == pytest.approx(one.bias)
    assert other.spread == one.spread


def test_many_rows_share_what_some_of_them_chose(monkeypatch):
    z, Y = make_labels(0, n=500)
    whole = fit_label_calibration(z, RowTargets.from_indicator(Y))
    monkeypatch.setattr(_label_calibration, "_MOST_SCORES", 600)
    some = fit_label_calibration(z, RowTargets.from_indicator(Y))
    assert some.gain == pytest.approx(whole.gain, rel=0.3)
    assert some.bias == pytest.approx(whole.bias, abs=0.3)

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.calibration import calibration_curve as sklearn_curve

from clml.plots import CalibrationCurvesDisplay
from clml.plots._calibration import calibration_curve


def test_curve_by_hand():
    curve = calibration_curve([0, 1, 1, 1], [0.1, 0.3, 0.6, 1.0], 2)
    assert_allclose(curve, [[0.2, 0.8], [0.5, 1.0]])


def test_empty_bins_are_undefined():
    curve = calibration_curve([0, 1], [0.1, 0.9], 3)
    assert_array_equal(np.isnan(curve), [[False, True, False]] * 2)


def test_curve_equals_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**2
    share, mean = sklearn_curve(y, p, n_bins=10)
    assert_allclose(calibration_curve(y, p, 10), [mean, share])


def test_draws_both_curves(artifact, texts):
    display = CalibrationCurvesDisplay.from_artifact(artifact).plot(title="A run")
    drawn = texts(display.figure_)
    assert {"before training", "after training", "perfect", "A run"} <= set(drawn)
    assert len(display.ax_.lines) == 3
    assert display.ax_.figure is display.figure_


def test_from_estimator(fitted, small_data):
    display = CalibrationCurvesDisplay.from_estimator(fitted, *small_data, n_bins=4)
    assert display.after.shape == (2, 4)
    assert display.before is None
    assert len(display.plot().ax_.lines) == 3


def test_the_curve_of_an_estimator_is_without_its_temperature(fitted, small_data):
    X, Y = small_data
    display = CalibrationCurvesDisplay.from_estimator(fitted, X, Y)
    logits = fitted.decision_function(X) * fitted.temperature_
    assert_allclose(display.after, calibration_curve(Y, expit(logits), 10))
    calibrated = calibration_curve(Y, fitted.predict_proba(X), 10)
    assert_allclose(display.calibrated, calibrated)
    assert not np.array_equal(display.after, calibrated, equal_nan=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d([1, 2]), r"after must have the shape \(2, any\)"),
        (lambda d: d(np.ones((2, 2)), [1]), r"before must have the shape \(2, any\)"),
        (lambda d: d.from_probabilities([0], [0.1, 0.2]), "Y must have the shape"),
        (lambda d: d.from_probabilities([0], [-0.1]), "must be probabilities"),
        (lambda d: d.from_artifact({}), "must hold calibration/after"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(CalibrationCurvesDisplay)

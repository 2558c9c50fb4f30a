import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import expit
from sklearn.base import clone

from clml.plots import LabelProbabilityDisplay


def test_counts_by_hand():
    display = LabelProbabilityDisplay.from_probabilities(
        [[0.1, 0.9], [0.2, 1.0]], before=[[0.5, 0.5], [0.4, 0.6]], n_bins=2
    )
    assert_array_equal(display.bins, [0, 0.5, 1])
    assert_array_equal(display.after, [2, 2])
    assert_array_equal(display.before, [1, 3])


def test_correct_labels_apart():
    display = LabelProbabilityDisplay.from_probabilities(
        [[0.1, 0.9], [0.5, 0.7]], [[1, 1], [0, 0]], n_bins=2
    )
    # 0.5 predicts no label, which is correct, and lies in the upper bin.
    assert_array_equal(display.after, [[0, 2], [1, 1]])


def test_two_panels_with_shares(artifact, texts):
    display = LabelProbabilityDisplay.from_artifact(artifact).plot(title="A run")
    assert len(display.ax_) == 2
    drawn = set(texts(display.figure_))
    assert {"before training", "after training", "A run"} <= drawn
    assert {"correct", "incorrect"} <= drawn
    for panel in display.ax_:
        outlines = [patch.get_data().values.sum() for patch in panel.patches]
        assert sum(outlines[::2]) == pytest.approx(1)


def test_counts_without_correctness_are_one_outline(artifact):
    artifact["probability/before"] = artifact["probability/before"].sum(axis=0)
    artifact["probability/after"] = artifact["probability/after"].sum(axis=0)
    display = LabelProbabilityDisplay.from_artifact(artifact).plot()
    for panel in display.ax_:
        assert panel.patches[0].get_data().values.sum() == pytest.approx(1)
        assert panel.get_legend() is None


def test_a_third_panel_of_calibrated_ones(artifact, texts):
    artifact["probability/calibrated"] = artifact["probability/before"]
    display = LabelProbabilityDisplay.from_artifact(artifact).plot()
    assert len(display.ax_) == 3
    assert "after training, calibrated" in texts(display.figure_)


def test_one_panel_without_before(artifact):
    del artifact["probability/before"]
    assert len(LabelProbabilityDisplay.from_artifact(artifact).plot().ax_) == 1


def test_from_estimator_is_without_the_temperature(fitted, small_data):
    X, Y = small_data
    assert fitted.temperature_ != 1
    logits = fitted.decision_function(X) * fitted.temperature_
    display = LabelProbabilityDisplay.from_estimator(fitted, X, Y, before=fitted)
    expected = LabelProbabilityDisplay.from_probabilities(
        expit(logits), Y, calibrated=fitted.predict_proba(X)
    )
    assert display.after.shape == (2, 50)
    assert_array_equal(display.after, expected.after)
    assert_array_equal(display.before, expected.after)
    assert_array_equal(display.calibrated, expected.calibrated)
    assert display.after.sum() == display.calibrated.sum() == Y.size
    assert (display.after != display.calibrated).any()


def test_from_an_estimator_without_a_temperature(fitted, small_data):
    X, Y = small_data
    plain = clone(fitted).set_params(calibrate=False).fit(X, Y)
    assert LabelProbabilityDisplay.from_estimator(plain, X).calibrated is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d([0, 1], [1, 2]), r"after must have the shape \(1,\)"),
        (lambda d: d([1, 0], [1]), "bins must be increasing edges"),
        (lambda d: d([0, 1], [-1]), "after must be counts"),
        (lambda d: d([0, 1], [1], [np.nan]), "before must be counts"),
        (lambda d: d([0, 1], [[1], [1], [1]]), r"after must have the shape \(2, 1\)"),
        (
            lambda d: d.from_probabilities([0.5], [[1]]),
            "Y must have the shape of after",
        ),
        (lambda d: d.from_probabilities([1.2]), r"after must be probabilities in \[0"),
        (lambda d: d.from_probabilities([0.5], n_bins=0), "n_bins must be at least 1"),
        (lambda d: d.from_artifact({}), "must hold probability/bins, probability/aft"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(LabelProbabilityDisplay)

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clml.plots import LabelProbabilityDisplay


def test_counts_by_hand():
    display = LabelProbabilityDisplay.from_probabilities(
        [[0.1, 0.9], [0.2, 1.0]], before=[[0.5, 0.5], [0.4, 0.6]], n_bins=2
    )
    assert_array_equal(display.bins, [0, 0.5, 1])
    assert_array_equal(display.after, [2, 2])
    assert_array_equal(display.before, [1, 3])


def test_two_panels_with_shares(artifact, texts):
    display = LabelProbabilityDisplay.from_artifact(artifact).plot(title="A run")
    assert len(display.ax_) == 2
    assert {"before training", "after training", "A run"} <= set(texts(display.figure_))
    for panel in display.ax_:
        outline = panel.patches[0].get_data()
        assert outline.values.sum() == pytest.approx(1)


def test_one_panel_without_before(artifact):
    del artifact["probability/before"]
    assert len(LabelProbabilityDisplay.from_artifact(artifact).plot().ax_) == 1


def test_from_estimator_counts_every_label(fitted, small_data):
    X, Y = small_data
    display = LabelProbabilityDisplay.from_estimator(fitted, X, before=fitted)
    assert display.after.sum() == display.before.sum() == Y.size


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d([0, 1], [1, 2]), r"after must have the shape \(1,\)"),
        (lambda d: d([1, 0], [1]), "bins must be increasing edges"),
        (lambda d: d([0, 1], [-1]), "after must be counts"),
        (lambda d: d([0, 1], [1], [np.nan]), "before must be counts"),
        (lambda d: d.from_probabilities([1.2]), r"after must be probabilities in \[0"),
        (lambda d: d.from_probabilities([0.5], n_bins=0), "n_bins must be at least 1"),
        (lambda d: d.from_artifact({}), "must hold probability/bins, probability/aft"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(LabelProbabilityDisplay)

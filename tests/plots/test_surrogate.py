import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clml.plots import SurrogateDisplay

LOSSES = [[0.5, 0.1], [0.4, 0.2], [0.3, 0.3]]


def test_correlations_by_hand():
    display = SurrogateDisplay([3, 2, 1], LOSSES, ["hamming", "lrap"])
    assert display.correlations.tolist() == [1, -1]


def test_correlation_of_a_constant_is_undefined():
    display = SurrogateDisplay([3, 3, 3], LOSSES, ["hamming", "lrap"])
    assert np.isnan(display.correlations).all()
    display.plot()


def test_undefined_epochs_are_left_out():
    display = SurrogateDisplay([9, 2, np.nan, 1], [[1], [2], [0], [1]], ["hamming"])
    assert display.correlations[0] == pytest.approx(0)


def test_from_artifact(artifact, texts):
    display = SurrogateDisplay.from_artifact(artifact)
    name = "history/incumbent_binary_cross_entropy_train"
    assert_array_equal(display.surrogate, artifact[name])
    assert_array_equal(display.losses, artifact["history/incumbent_train"])
    assert len(display.plot(title="A run").ax_) == 2
    drawn = texts(display.figure_)
    assert {"binary cross-entropy (dashed)", "loss on training rows"} <= set(drawn)
    assert any(words.startswith("1 - LRAP: +") for words in drawn)


def test_from_estimator(fitted):
    display = SurrogateDisplay.from_estimator(fitted, rows="validation")
    assert display.losses.shape == (8, 3)
    assert display.rows == "validation"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2, 3], LOSSES, ["hamming"]), r"losses must have the shape \(3, 1\)"),
        (([1, 2], LOSSES, ["a", "b"]), r"losses must have the shape \(2, 2\)"),
        (([1], [[0.5]], ["a"]), "at least 2 epochs, got 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        SurrogateDisplay(*arguments)

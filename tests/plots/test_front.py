from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clml import ParetoFront
from clml.lebesgue import nondominated
from clml.plots import FrontDisplay
from clml.plots._front import lower_staircase

NAMES = ("hamming", "lrap", "micro_f1")
LOSSES = np.array([[0.1, 0.9, 0.4], [0.2, 0.3, 0.5], [0.8, 0.25, 0.3]])


def test_staircase_by_hand():
    points = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 5.0], [3.0, 1.0]])
    assert_array_equal(lower_staircase(points), [[1, 2], [3, 1]])


def test_staircase_is_the_nondominated_set():
    points = np.random.default_rng(0).integers(0, 9, (40, 2)).astype(float)
    expected = np.unique(points[nondominated(points)], axis=0)
    assert_array_equal(lower_staircase(points), expected)


def test_one_panel_for_each_pair(texts):
    display = FrontDisplay(LOSSES, NAMES, chosen=1).plot(title="A front")
    assert len(display.ax_) == 3
    drawn = texts(display.figure_)
    assert {"predicts", "member", "A front", "1 - LRAP (validation)"} <= set(drawn)
    star = display.ax_[2].lines[-1]
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (0.3, 0.5)


@pytest.mark.parametrize(("n_losses", "n_panels"), [(2, 1), (4, 6), (5, 10)])
def test_any_number_of_losses(n_losses, n_panels):
    losses = np.random.default_rng(0).random((6, n_losses))
    display = FrontDisplay(losses, [f"loss_{i}" for i in range(n_losses)]).plot()
    assert len(display.ax_) == len(display.figure_.axes) == n_panels


def test_from_artifact(artifact):
    display = FrontDisplay.from_artifact(artifact, rows="test")
    assert_array_equal(display.losses, artifact["front/test"])
    assert_array_equal(display.chosen, artifact["front/test"][2])
    artifact["front/chosen"] = np.array(-1)
    assert FrontDisplay.from_artifact(artifact).chosen is None


def test_from_estimator(fitted):
    display = FrontDisplay.from_estimator(fitted)
    assert_array_equal(display.losses, fitted.front_.losses)
    # The final incumbent need not be a member.
    assert_array_equal(display.chosen, fitted.history_["incumbent_validation"][-1])
    selected = FrontDisplay.from_estimator(fitted.select("hamming"))
    assert selected.chosen[0] == fitted.front_.losses[:, 0].min()


def test_the_default_is_marked_and_errors_are_bars():
    errors = 0.1 * np.asarray(LOSSES)
    front = ParetoFront(
        np.asarray(LOSSES), NAMES, LOSSES, standard_error=errors, default=1
    )
    estimator = SimpleNamespace(front_=front, incumbent_="mean", history_={})
    display = FrontDisplay.from_estimator(estimator).plot()
    assert_array_equal(display.chosen, LOSSES[1])
    bars = display.ax_[0].containers[0]
    assert bars.has_xerr
    assert bars.has_yerr
    with pytest.raises(ValueError, match="errors must not be negative and have"):
        FrontDisplay(LOSSES, NAMES, errors=-errors)


def test_model_outside_the_front_without_losses_is_not_marked():
    front = ParetoFront(np.asarray(LOSSES), NAMES, LOSSES)
    estimator = SimpleNamespace(front_=front, incumbent_="mean", history_={})
    assert FrontDisplay.from_estimator(estimator).chosen is None


@pytest.mark.parametrize(
    ("losses", "names", "chosen", "message"),
    [
        (LOSSES, ("a", "b"), None, r"losses must have the shape \(any, 2\)"),
        (LOSSES[:, :1], ("a",), None, "loss_names must be at least 2"),
        (LOSSES[:0], NAMES, None, "at least one member"),
        (LOSSES, NAMES, 3, "chosen must be a member from 0 to 2, got 3"),
        (LOSSES, NAMES, [0.1], r"chosen must have the shape \(3,\)"),
    ],
)
def test_bad_input(losses, names, chosen, message):
    with pytest.raises(ValueError, match=message):
        FrontDisplay(losses, names, chosen=chosen)

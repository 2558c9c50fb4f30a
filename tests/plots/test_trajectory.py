import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clml.plots import TrajectoryDisplay
from clml.plots._trajectory import moving_average

NAMES = ("hamming", "lrap", "micro_f1")


def test_moving_average_by_hand():
    values = np.array([[0.0], [3.0], [6.0], [3.0]])
    assert_allclose(moving_average(values, 3).ravel(), [1.5, 3, 4, 4.5])


@pytest.mark.parametrize("window", [1, 2, 5, 8, 30])
def test_moving_average_equals_the_slow_one(window):
    values = np.random.default_rng(0).random((12, 3))
    half = window // 2
    slow = [
        values[max(i - half, 0) : i + half + 1].mean(axis=0) for i in range(len(values))
    ]
    assert_allclose(moving_average(values, window), slow)


def test_from_artifact(artifact, texts):
    display = TrajectoryDisplay.from_artifact(artifact, window=5)
    assert_array_equal(display.losses, artifact["history/incumbent_train"])
    log_loss = artifact["history/incumbent_row_log_loss_train"]
    assert_array_equal(display.cross_entropy, log_loss)
    assert display.plot(title="A run") is display
    assert len(display.ax_) == 2
    drawn = texts(display.figure_)
    for words in ("All 40 epochs", "The last 10 epochs (the box)", "A run"):
        assert words in drawn
    assert drawn.count("1 - micro-F1") == 2  # each panel names its axes
    assert "log-loss of rows" in drawn


def test_second_panel_is_the_box_of_the_last_epochs(artifact):
    display = TrajectoryDisplay.from_artifact(artifact, zoom=0.5).plot()
    last = display.losses[20:]
    low, high = display.ax_[1].get_xlim()
    inside = (last[:, 0] >= low) & (last[:, 0] <= high)
    assert inside.mean() > 0.9
    assert high - low < np.diff(display.ax_[0].get_xlim())[0]


def test_from_estimator(fitted):
    display = TrajectoryDisplay.from_estimator(
        fitted, cross_entropy="binary_cross_entropy", rows="validation"
    )
    assert display.losses.shape == (8, 3)
    assert display.cross_entropy_name == "binary_cross_entropy"
    display.plot()


def test_constant_losses_draw():
    TrajectoryDisplay(np.full((4, 3), 0.5), NAMES, np.ones(4)).plot()


def test_given_axes(artifact):
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 2, subplot_kw={"projection": "3d"})
    display = TrajectoryDisplay.from_artifact(artifact).plot(axes)
    assert display.ax_[1] is axes[1]
    with pytest.raises(ValueError, match="ax must be None or 2 axes"):
        display.plot(axes[0])


@pytest.mark.parametrize(
    ("losses", "options", "message"),
    [
        (np.ones((4, 2)), {}, r"losses must have the shape \(any, 3\), got \(4, 2\)"),
        (np.ones((1, 3)), {}, "at least 2 epochs, got 1"),
        (np.full((4, 3), np.nan), {}, "losses must be finite"),
        (np.ones((4, 3)), {"window": 0}, "window must be at least 1"),
        (np.ones((4, 3)), {"zoom": 0}, "zoom must be above 0"),
    ],
)
def test_bad_input(losses, options, message):
    with pytest.raises(ValueError, match=message):
        TrajectoryDisplay(losses, NAMES, np.ones(len(losses)), **options)


def test_missing_history_is_named(artifact):
    del artifact["history/incumbent_train"]
    with pytest.raises(ValueError, match="must hold incumbent_train"):
        TrajectoryDisplay.from_artifact(artifact)
    with pytest.raises(TypeError, match="artifact must be a mapping"):
        TrajectoryDisplay.from_artifact(None)

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clml.experiments import PAPER_RESULTS
from clml.lebesgue import lebesgue_contributions, lebesgue_measure
from clml.plots import ContributionsDisplay, MeasureDisplay
from clml.plots._volume import NOBODY, SEVERAL, covering, drawn_cells

NAMES = ("hamming", "lrap", "micro_f1")
BOTH = pytest.mark.parametrize("display", [ContributionsDisplay, MeasureDisplay])


def volumes(edges, cells):
    """Return the total volume of some cells of a grid."""
    size = np.diff(edges[0])
    for cuts in edges[1:]:
        size = np.multiply.outer(size, np.diff(cuts))
    return size[cells].sum()


@pytest.mark.parametrize("n_losses", [2, 3])
def test_cells_have_the_volumes_of_the_measure(n_losses):
    rng = np.random.default_rng(n_losses)
    # Copies, dominated members, one on the reference and one beyond it.
    losses = np.round(rng.random((12, n_losses)), 1)
    losses[-2:] = losses[0], np.full(n_losses, 1.2)
    reference = np.full(n_losses, 1.0)
    edges, owner = covering(losses, reference)
    alone = [volumes(edges, owner == i) for i in range(len(losses))]
    assert_allclose(alone, lebesgue_contributions(losses), atol=1e-12)
    assert max(alone) > 0
    covered = volumes(edges, owner != NOBODY)
    assert_allclose(covered, lebesgue_measure(losses))
    assert covered - sum(alone) == pytest.approx(volumes(edges, owner == SEVERAL))


def test_many_cells_are_drawn_coarser_and_cover_about_as_much():
    rng = np.random.default_rng(0)
    losses = np.column_stack([np.linspace(0, 0.9, 60), np.linspace(0.9, 0, 60) ** 2])
    losses = np.column_stack([losses, rng.random(60) * 0.1])
    cells = covering(losses, np.ones(3))
    assert len(cells[0][0]) == 61
    fewer = drawn_cells(*cells, 25)
    assert [len(cuts) for cuts in fewer[0]] == [25, 25, 25]
    covered = volumes(fewer[0], fewer[1] != NOBODY)
    assert covered == pytest.approx(lebesgue_measure(losses), rel=0.03)
    assert drawn_cells(*cells, 61)[1] is cells[1]


def test_a_plane_is_filled_with_the_areas():
    losses = [[0.2, 0.5], [0.4, 0.1], [0.5, 0.5]]
    display = ContributionsDisplay(losses, NAMES[:2], names=["a", "b", "c"]).plot()
    areas = {}
    for patch in display.ax_[0].patches:
        colour = patch.get_facecolor()
        area = patch.get_width() * patch.get_height()
        areas[colour] = areas.get(colour, 0) + area
    assert_allclose(sorted(areas.values()), sorted(display.contributions)[1:])
    bars = [patch.get_width() for patch in display.ax_[1].patches]
    assert_allclose(bars, display.contributions)
    assert [t.get_text() for t in display.ax_[1].get_yticklabels()] == ["a", "b", "c"]


def test_the_plane_of_a_set_has_its_measure(texts):
    display = MeasureDisplay([[0.2, 0.5], [0.4, 0.1]], NAMES[:2]).plot(title="Two")
    area = sum(p.get_width() * p.get_height() for p in display.ax_.patches)
    assert area == pytest.approx(display.measure) == pytest.approx(0.64)
    assert "Two\nmeasure 0.640" in texts(display.figure_)


@BOTH
def test_three_losses_are_drawn_in_space(display, texts):
    losses = np.random.default_rng(0).random((8, 3))
    drawn = display(losses, NAMES).plot(title="A set")
    space = np.atleast_1d(drawn.ax_)[0]
    assert space.name == "3d"
    assert len(space.collections) > 0
    words = " ".join(texts(drawn.figure_))
    assert "A set" in words
    assert "1 - LRAP" in words


@BOTH
def test_from_estimator_takes_the_front(display, fitted):
    found = display.from_estimator(fitted)
    assert_array_equal(found.losses, fitted.front_.losses)
    assert found.loss_names == list(NAMES)


@BOTH
def test_from_artifact(display, artifact):
    assert_array_equal(
        display.from_artifact(artifact, rows="test").losses, artifact["front/test"]
    )


def test_from_results_are_the_methods(results):
    found = ContributionsDisplay.from_results(results, "emotions")
    assert found.names == ["CLML-paper", "other"]
    assert_allclose(found.losses, [[0.1, 0.2, 0.3], [0.11, 0.21, 0.31]])
    assert_allclose(found.contributions[1], 0)


def test_the_printed_contributions_of_emotions():
    found = ContributionsDisplay.from_results(PAPER_RESULTS, "emotions")
    shown = dict(zip(found.names, found.contributions.round(4), strict=True))
    assert shown["CLML"] == pytest.approx(0.0214, abs=0.0012)
    assert shown["DELA"] == pytest.approx(0.0051, abs=0.0012)
    assert found.measure == pytest.approx(0.420, abs=5e-4)


@BOTH
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.1]], ["a"]), "two or three names, got 1"),
        ((np.ones((2, 4)), list("abcd")), "two or three names, got 4"),
        ((np.ones((0, 2)), ["a", "b"]), "must have 1 to 200 members"),
        ((np.ones((201, 2)), ["a", "b"]), "must have 1 to 200 members"),
        (([[0.1, np.nan]], ["a", "b"]), "must be finite"),
    ],
)
def test_bad_input(display, arguments, message):
    with pytest.raises(ValueError, match=message):
        display(*arguments)


def test_bad_names(results):
    with pytest.raises(ValueError, match="names must be 1"):
        MeasureDisplay([[0.1, 0.2]], ["a", "b"], names=["x", "y"])
    with pytest.raises(ValueError, match="dataset must be one of"):
        MeasureDisplay.from_results(results, "nowhere")

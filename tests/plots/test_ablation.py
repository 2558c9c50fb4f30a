import numpy as np
import pytest
from numpy.testing import assert_allclose

from clml.plots import AblationDisplay

NAMES = ("hamming", "lrap", "micro_f1")


def test_curves_and_losses_are_drawn(texts):
    display = AblationDisplay(
        [20, 40],
        [[0.2, 0.3], [0.25, 0.31]],
        ["hamming", "lrap"],
        {40: [0.1, 0.3], 20: [0.1, 0.4]},
        printed_dimensions=[20, 60],
        printed=[[0.21, 0.3], [0.22, np.nan]],
    ).plot(title="Widths")
    left, right = display.ax_
    assert [line.get_label() for line in left.lines] == ["20", "40"]
    assert len(right.lines) == 4
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["20", "40", "60"]
    assert {"ours", "printed", "Widths", "Hamming loss"} <= set(texts(display.figure_))


def test_without_curves_and_without_printed_ones(texts):
    display = AblationDisplay([20], [[0.2]], ["hamming"]).plot()
    drawn = texts(display.figure_)
    assert "no curves" in drawn
    assert "printed" not in drawn


def test_from_results_puts_the_printed_ones_beside(results):
    display = AblationDisplay.from_results(results, "emotions")
    assert display.dimensions == [20, 40]
    assert display.rows == "test"  # the runs had no losses on validation rows
    assert_allclose(display.losses, [[0.1, 0.2, 0.3], [0.12, 0.22, 0.32]])
    assert list(display.measures) == [20, 40]
    assert display.printed_dimensions == list(range(20, 161, 20))
    # Hamming loss, 1 - LRAP, 1 - micro-F1: the paper's headings exchange the last two.
    assert_allclose(display.printed[0], [0.187, 0.178, 0.283])


def test_from_results_of_a_dataset_that_the_paper_has_not(results):
    display = AblationDisplay.from_results(results, "a b/c")
    assert len(display.printed) == 0
    display.plot()


def test_validation_rows_are_preferred(results):
    for record in results.records:
        record["losses"]["validation"] = dict.fromkeys(NAMES, 0.5)
    display = AblationDisplay.from_results(results, "emotions")
    assert display.rows == "validation"
    assert (display.losses == 0.5).all()


def test_results_without_an_ablation(results):
    results.plan["ablation"] = None
    with pytest.raises(ValueError, match="must have an ablation over embedding_dim"):
        AblationDisplay.from_results(results, "emotions")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([40, 20], [[1], [1]], ["a"]), {}, "dimensions must be increasing"),
        (([], np.empty((0, 1)), ["a"]), {}, "at least one of them"),
        (([20], [[1, 2]], ["a"]), {}, r"losses must have the shape \(1, 1\)"),
        (([20], [[1]], ["a"]), {"printed": [[1]]}, r"printed must have the shape \(0"),
        (([20], [[1]], ["a"], {20: 1.0}), {}, r"measures must have the shape \(any,"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        AblationDisplay(*arguments, **options)

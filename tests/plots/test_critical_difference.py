import numpy as np
import pytest

from clml.experiments import PAPER_RESULTS
from clml.plots import CriticalDifferenceDisplay


def test_three_methods_by_hand(texts):
    display = CriticalDifferenceDisplay([1.5, 2.0, 2.5], ["A", "B", "C"], 0.8)
    assert display.groups == [[0, 1], [1, 2]]
    assert display.plot(title="Ranks") is display
    assert display.ax_.figure is display.figure_
    drawn = texts(display.figure_)
    assert {"A  1.50 ", "B  2.00 ", " 2.50  C", "Ranks", "  CD = 0.80"} <= set(drawn)


def test_printed_hamming_loss_against_clml(texts):
    display = CriticalDifferenceDisplay.from_table(
        PAPER_RESULTS.hamming, PAPER_RESULTS.methods, control="CLML"
    )
    assert display.critical_difference == pytest.approx(2.686, abs=1e-3)
    assert display.groups == []
    differ = np.array(PAPER_RESULTS.methods)[display.differs]
    assert differ.tolist() == ["GNB-BR", "C2AE"]
    display.plot()
    drawn = texts(display.figure_)
    assert "  CD = 2.69     * differs from CLML" in drawn
    assert " 5.33  C2AE*" in drawn


def test_bar_of_the_control_ends_at_the_critical_difference():
    display = CriticalDifferenceDisplay([1.5, 2, 4.5, 2], list("abcd"), 1, control=0)
    display.plot()
    thick = [line for line in display.ax_.lines if line.get_linewidth() > 3]
    assert [list(line.get_xdata()) for line in thick] == [[1.0, 2.5]]


def test_groups_are_bars():
    display = CriticalDifferenceDisplay([1, 2, 3], list("abc"), 0.5, groups=[[0, 2]])
    display.plot()
    (bar,) = [line for line in display.ax_.lines if line.get_linewidth() > 3]
    assert bar.get_xdata() == pytest.approx([1, 3], abs=0.05)


@pytest.mark.parametrize("n_methods", [2, 3, 7, 14, 20])
def test_names_never_overlap(n_methods, overlaps):
    rng = np.random.default_rng(n_methods)
    names = [f"a method of number {i}" for i in range(n_methods)]
    # Equal ranks are the worst case for names.
    ranks = np.round(1 + (n_methods - 1) * rng.random(n_methods))
    display = CriticalDifferenceDisplay(ranks, names, 1.0).plot()
    assert overlaps(display.ax_) == []
    box = display.figure_.bbox
    for text in display.ax_.texts:
        extent = text.get_window_extent()
        assert extent.x0 >= box.x0 and extent.x1 <= box.x1, text.get_text()


def test_from_results_needs_two_complete_datasets(results):
    display = CriticalDifferenceDisplay.from_results(results, "lrap", control="other")
    assert display.names == ["CLML-paper", "other"]
    assert display.mean_ranks.tolist() == [1, 2]
    results.records.pop(0)
    with pytest.raises(ValueError, match=r"at least 2 datasets .* got 1"):
        CriticalDifferenceDisplay.from_results(results, "lrap")


def test_draws_in_given_axes():
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 2)
    display = CriticalDifferenceDisplay([1, 2], ["a", "b"], 0.5).plot(axes[1])
    assert display.ax_ is axes[1]
    assert not axes[0].lines


def test_leaves_the_users_style():
    import matplotlib

    before = dict(matplotlib.rcParams)
    CriticalDifferenceDisplay([1, 2], ["a", "b"], 0.5).plot()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], ["a"], 1), {}, "names and mean_ranks must have the same length"),
        (([1], ["a"], 1), {}, "at least 2, got 1 and 1"),
        (([[1, 2]], ["a", "b"], 1), {}, r"mean_ranks must have the shape \(any,\)"),
        (([1, np.nan], ["a", "b"], 1), {}, "mean_ranks must be finite"),
        (([1, 2], ["a", "b"], 0), {}, "critical_difference must be a positive"),
        (([1, 2], ["a", "b"], 1), {"control": "c"}, "control must be one of"),
        (([1, 2], ["a", "b"], 1), {"control": 2}, "from 0 to 1, got 2"),
        (([1, 2], ["a", "b"], 1), {"groups": [[0, 5]]}, "from 0 to 1, got 5"),
        (([1, 2], ["a", "b"], 1), {"groups": [], "control": 0}, "groups must be None"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        CriticalDifferenceDisplay(*arguments, **options)

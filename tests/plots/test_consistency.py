import numpy as np
import pytest
from numpy.testing import assert_allclose

from clml.experiments.consistency import ConsistencyRecord, write_consistency
from clml.plots import ConsistencyDisplay


@pytest.fixture
def records():
    return [
        ConsistencyRecord(
            learner, rows, epochs, seed, loss, 0.1 + 10 / rows + seed, 0.1
        )
        for learner in ("CLML", "CLML, selected", "network")
        for rows, epochs in ((50, 9), (100, 9), (100, 3))
        for seed in (0, 1)
        for loss in ("hamming", "lrap")
    ]


def test_curves_are_means_over_seeds_at_the_most_of_the_other(records):
    display = ConsistencyDisplay(records)
    where, mean, spread = display.curve("CLML", "lrap", "rows")
    assert where.tolist() == [50, 100]
    assert_allclose(mean, [0.8, 0.7])
    assert_allclose(spread, np.sqrt(0.5))
    where, mean, _ = display.curve("network", "lrap", "epochs")
    assert where.tolist() == [3, 9]
    assert_allclose(mean, [0.7, 0.7])


def test_panels_have_the_bayes_value(records, texts):
    display = ConsistencyDisplay(records).plot(title="A study")
    assert display.ax_.shape == (2, 2)
    for panel in display.ax_.ravel():
        flat = [line for line in panel.lines if line.get_label() == "Bayes value"]
        assert [line.get_ydata()[0] for line in flat] == [pytest.approx(0.1)]
    drawn = texts(display.figure_)
    assert {"training rows (9 epochs)", "epochs (100 rows)", "A study"} <= set(drawn)


def test_variants_share_the_colour(records):
    panel = ConsistencyDisplay(records).plot().ax_[0, 0]
    handles, labels = panel.get_legend_handles_labels()
    lines = {
        label: handle[0]
        for handle, label in zip(handles, labels, strict=True)
        if label != "Bayes value"
    }
    assert lines["CLML"].get_color() == lines["CLML, selected"].get_color()
    assert lines["CLML"].get_color() != lines["network"].get_color()
    assert lines["CLML, selected"].get_linestyle() == "--"


def test_one_record_draws():
    record = ConsistencyRecord("CLML", 50, 5, 0, "hamming", 0.2, 0.1)
    assert ConsistencyDisplay([record]).plot().ax_.shape == (2, 1)


def test_from_file(records, tmp_path):
    write_consistency(records, tmp_path / "consistency.csv")
    display = ConsistencyDisplay.from_file(tmp_path / "consistency.csv")
    assert display.learners == ["CLML", "CLML, selected", "network"]
    assert display.losses == ["hamming", "lrap"]


@pytest.mark.parametrize(
    ("records", "message"),
    [([], "at least one record"), ([{"learner": "a"}], "lacks .*'rows'")],
)
def test_bad_input(records, message):
    with pytest.raises(ValueError, match=message):
        ConsistencyDisplay(records)

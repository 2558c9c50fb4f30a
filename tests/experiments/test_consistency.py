import numpy as np
import pytest

from clml.experiments import consistency as module
from clml.experiments.consistency import (
    LEARNERS,
    ConsistencyRecord,
    consistency_study,
    read_consistency,
    write_consistency,
)

HEADER = "learner,rows,epochs,seed,loss,value,bayes\n"


@pytest.fixture
def fits(monkeypatch):
    """Replace the fits by random scores, and note what was fitted."""
    done = []

    def scores(X, Y, X_test, n_epochs, seed):
        done.append((len(X), n_epochs, seed))
        drawn = np.random.default_rng(len(X)).normal(size=(len(X_test), Y.shape[1]))
        return {name: dict.fromkeys(module.LOSSES, drawn) for name in LEARNERS}

    monkeypatch.setattr(module, "_scores", scores)
    monkeypatch.setattr(module, "TEST_ROWS", 50)
    return done


def test_each_axis_is_studied_at_the_most_of_the_other(fits):
    said = []
    records = consistency_study([40, 20], [3, 1], [5], progress=said.append)
    assert fits == [(20, 3, 5), (40, 1, 5), (40, 3, 5)]
    assert said[0] == "20 rows, 3 epochs, seed 5"
    assert len(records) == 3 * len(LEARNERS) * 3
    assert all(record.value >= record.bayes for record in records)


def test_a_stopped_study_goes_on_where_it_was(fits, tmp_path):
    path = tmp_path / "consistency.csv"
    whole = consistency_study([20, 40], [1, 3], [0, 1], path=tmp_path / "whole.csv")
    fits.clear()

    def stop(words):
        if words == "40 rows, 1 epochs, seed 0":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consistency_study([20, 40], [1, 3], [0, 1], path=path, progress=stop)
    assert fits == [(20, 3, 0)]
    assert consistency_study([20, 40], [1, 3], [0, 1], path=path) == whole
    assert fits.count((20, 3, 0)) == 1
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert read_consistency(path) == whole


@pytest.mark.parametrize("learner", ["=1+1", "'=1+1", "-1", "a\rb", '"x", y'])
def test_names_come_back_and_are_no_formulas(learner, tmp_path):
    path = tmp_path / "consistency.csv"
    records = [ConsistencyRecord(learner, 20, 1, -1, "@loss", -0.5, 0.25)]
    write_consistency(records, path)
    assert read_consistency(path) == records
    line = path.read_bytes().decode().removeprefix(HEADER)
    assert line.startswith(("'", "-1,", '"'))
    assert line.endswith(",20,1,-1,'@loss,-0.5,0.25\n")


def test_a_file_of_other_data_is_refused(fits, tmp_path):
    path = tmp_path / "consistency.csv"
    consistency_study([20], [1], [0], path=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="a new file or one of the same study"):
        consistency_study([20], [1], [0], path=path, random_state=1)
    assert path.read_bytes() == before


def test_learners_come_nearer_with_more_epochs():
    records = consistency_study([80], [1, 12], [0])
    loss = {
        (r.learner, r.epochs): r.value - r.bayes for r in records if r.loss == "lrap"
    }
    for learner in LEARNERS:
        assert 0 < loss[learner, 12] < loss[learner, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: the columns must be"),
        ("learner,rows\n", r"line 1: the columns must be"),
        (HEADER + "CLML,20,1,0,lrap,0.2\n", "line 2: expected 7 values, got 6"),
        (HEADER + "CLML,x,1,0,lrap,0.2,0.1\n", "line 2: invalid literal"),
        (HEADER + "CLML,20,1,0,lrap,nan,0.1\n", "line 2: expected positive counts"),
        (HEADER + "CLML,0,1,0,lrap,0.2,0.1\n", "line 2: expected positive counts"),
        (HEADER + "C" * 2000 + ",2,1,0,lrap,0.2,0.1\n", "line 2: a name is too long"),
        (HEADER + '"CLML', "unexpected end of data"),
        (HEADER + "C" * 200_000, "field larger than field limit"),
    ],
)
def test_damaged_files_are_refused(text, message, tmp_path):
    path = tmp_path / "consistency.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_consistency(path)


def test_too_many_records_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "consistency.csv"
    monkeypatch.setattr(module, "_MOST_RECORDS", 2)
    record = ConsistencyRecord("CLML", 20, 1, 0, "lrap", 0.25, 0.125)
    write_consistency([record] * 2, path)
    assert read_consistency(path) == [record] * 2
    write_consistency([record] * 3, path)
    with pytest.raises(ValueError, match="more than 2 records"):
        read_consistency(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": [5]}, "rows must be numbers of at least 20, one or more"),
        ({"rows": []}, "rows must be numbers"),
        ({"epochs": [0]}, "epochs must be numbers of at least 1"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        consistency_study(**options)

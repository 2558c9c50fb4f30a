"""The benchmark of forests and boosters: its threshold, its jobs, its page."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier

import clml
from clml.datasets import iterative_train_test_split
from clml.losses import loss_values

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


@pytest.fixture
def script(import_benchmark, monkeypatch, tmp_path):
    script = import_benchmark("field")
    # The same module for all tests, which must not write where results are.
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    return script


# The threshold for all labels


def test_a_threshold_that_can_be_checked_by_hand(script):
    scores = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.2]])
    Y = np.array([[1, 0], [1, 1], [0, 0]])
    assert script.best_threshold(scores, Y) == pytest.approx(0.35)


def product(scores, Y, threshold):
    losses = loss_values(Y, scores, ("hamming", "micro_f1"), threshold=threshold)
    return np.maximum(losses, 0.5 / Y.size).prod()


@pytest.mark.parametrize("seed", range(20))
def test_no_other_threshold_is_better_out_of_fold(script, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (15, 3)) / 6.0  # many are equal
    Y = (rng.random((15, 3)) < scores * 0.8).astype(int)
    Y[0, 0] = 1
    found = product(scores, Y, script.best_threshold(scores, Y))
    steps = np.arange(-1, 8) / 6.0 - 1 / 12
    assert found == pytest.approx(min(product(scores, Y, t) for t in steps))


@pytest.mark.parametrize("value", [0, 1])
def test_thresholds_beyond_all_scores(script, value):
    scores = np.array([[0.2, 0.4], [0.6, 0.8]])
    decided = scores > script.best_threshold(scores, np.full((2, 2), value))
    np.testing.assert_array_equal(decided, np.full((2, 2), bool(value)))


# Jobs


@pytest.fixture
def small(script, monkeypatch, tmp_path):
    """Return data under the name of a dataset; forests are small."""
    X, Y = make_multilabel_classification(60, 8, n_labels=3, random_state=0)
    data = type("Data", (), {"X": sp.csr_array(X), "Y": Y})

    def forest(order, seed):
        assert order["name"] == "RandomForest"
        return RandomForestClassifier(5, random_state=seed)

    monkeypatch.setattr(script, "load_dataset", lambda name: data)
    monkeypatch.setattr(script, "build_estimator", forest)
    return data


def test_one_learner_gives_three_variants(script, small, tmp_path):
    rows = script.quietly("flags", "RandomForest", 1, str(tmp_path))
    assert [row["variant"] for row in rows] == list(script.VARIANTS)
    assert all(set(row) == set(script.FIELDS) for row in rows)
    # Six fits, whose scores the tuned variant reads again.
    assert len(list(tmp_path.glob("*.npy"))) == 6
    X, X_test, Y, Y_test = iterative_train_test_split(
        small.X, small.Y, test_size=0.3, refine=False, random_state=1
    )
    forest = RandomForestClassifier(5, random_state=1)
    plain = np.column_stack(
        [p[:, 1] for p in forest.fit(X.toarray(), Y).predict_proba(X_test.toarray())]
    )
    tuned = clml.LebesgueTunedClassifier(forest, random_state=1).fit(X.toarray(), Y)
    for row, scores in (
        (rows[0], plain - 0.5),
        (rows[2], tuned.decision_function(X_test.toarray())),
    ):
        expected = loss_values(Y_test, scores, script.ALL_LOSSES)
        found = [float(row[name]) for name in script.ALL_LOSSES]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    # A shift of all scores changes no ranking.
    assert rows[1]["lrap"] == rows[0]["lrap"]
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds[0] <= seconds[1]
    # What is kept is read: nothing is fitted again.
    again = script.quietly("flags", "RandomForest", 1, str(tmp_path))
    assert [r["lrap"] for r in again] == [r["lrap"] for r in rows]
    assert len(list(tmp_path.glob("*.npy"))) == 6


def test_jobs_are_those_that_no_file_has(script, monkeypatch):
    known = [{"dataset": "flags", "method": "CLML", "split": "0"}]
    monkeypatch.setattr(script, "known_rows", lambda: known)
    monkeypatch.setattr(script, "installed_learners", lambda: ["XGBoost"])
    jobs = script.jobs_of(["flags"], [], 2, "cache")
    assert [job[:3] for job in jobs] == [
        ("flags", "XGBoost", 0),
        ("flags", "Stacking", 0),
        ("flags", "XGBoost", 1),
        ("flags", "CLML", 1),
        ("flags", "Stacking", 1),
    ]
    # By its name a method is run here, whatever the other files have.
    jobs = script.jobs_of(["flags"], ["CLML"], 1, "cache")
    assert jobs == [("flags", "CLML", 0, "cache")]


# The page


def row(dataset, method, split, variant="plain", loss="0.1"):
    return {
        "dataset": dataset,
        "method": method,
        "split": str(split),
        "variant": variant,
        "hamming": loss,
        "lrap": loss,
        "micro_f1": loss,
        "macro_f1": "",
        "test_decisions": "100",
        "seconds": "2",
    }


def test_a_dataset_has_the_splits_that_all_its_learners_have(script):
    rows = [row("flags", "XGBoost", s, "tuned") for s in (0, 1, 3)]
    rows += [row("flags", "LightGBM", s) for s in range(4)]
    rows += [row("flags", "CLML", s) for s in range(10)]
    rows += [row("flags", "Stacking", 0)]
    rows += [row("emotions", "CLML", s) for s in range(10)]  # without any learner
    found = script.reported(rows)
    assert {key: len(given) for key, given in found.items()} == {
        ("flags", "XGBoost, tuned"): 2,
        ("flags", "LightGBM"): 2,
        ("flags", "CLML"): 2,
    }
    assert script.values(found, "flags", "CLML") == pytest.approx([0.1, 0.1])
    assert script.values(found, "flags", "CLML", "macro_f1") == []


def test_ranks_and_ratios(script):
    losses = {"XGBoost": "0.2", "LightGBM": "0.4", "CLML": "0.1"}
    rows = [
        row(dataset, method, 0, loss=loss)
        for dataset in ("flags", "emotions", "genbase")
        for method, loss in losses.items()
    ]
    text = script.ranks_section(script.reported(rows), list(losses))
    assert text.startswith("3 methods on 3 datasets (flags, emotions, genbase).")
    lines = [line.split("|")[1:3] for line in text.splitlines() if "|" in line][2:]
    ranked = [(name.strip(), float(rank)) for name, rank in lines]
    assert ranked == [("CLML", 1.0), ("XGBoost", 2.0), ("LightGBM", 3.0)]
    ratios = [line.split("|")[-2].strip() for line in text.splitlines()[-3:]]
    assert ratios == ["1.000", "2.000", "4.000"]


def test_the_page_is_made_of_the_records(script, tmp_path):
    script.write_table()
    made = (tmp_path / "field.md").read_text(encoding="utf-8")
    assert made == (RESULTS / "field.md").read_text(encoding="utf-8")


def test_every_learner_has_all_its_variants(script):
    rows = script.read(script.ROWS)
    jobs = {tuple(r[name] for name in script.KEY) for r in rows}
    found = {(*(r[name] for name in script.KEY), r["variant"]) for r in rows}
    assert len(found) == len(rows)
    for dataset, method, split in jobs:
        variants = script.VARIANTS if method in script.LEARNERS else ("plain",)
        assert all((dataset, method, split, v) in found for v in variants)
        assert 0 <= int(split) < script.SPLITS[dataset]

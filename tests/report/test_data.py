"""The page of an experiment."""

import json

import numpy as np
import pytest

from clml.experiments.results import Results
from clml.report import build_page, experiment_data, write_report


def titles(data):
    return [one["title"] for one in data["groups"]]


def texts(shown):
    return [[cell["text"] for cell in row] for row in shown["rows"]]


def tables(data):
    return {t["id"]: t for one in data["groups"] for t in one["tables"]}


def record(dataset, method, hamming, split=0, **changes):
    losses = {"hamming": hamming, "lrap": hamming, "micro_f1": hamming}
    return {
        "key": f"{dataset}{method}{split}",
        "dataset": dataset,
        "method": method,
        "split": split,
        "seed": 0,
        "status": "done",
        "losses": {"test": losses},
        **changes,
    }


def small(*records):
    plan = {
        "datasets": ["d", "e"],
        "methods": ["a", "b"],
        "losses": ["hamming", "lrap", "micro_f1"],
    }
    return Results(plan, list(records))


def test_tables_by_hand():
    results = small(
        record("d", "a", 0.1, 0),
        record("d", "a", 0.3, 1),
        record("d", "b", 0.2, 0),
        record("d", "b", 0.3, 1),
        record("e", "a", 0.5),
        record("e", "b", 0.4, seconds={"fit": 1.5, "predict": None}),
    )
    shown = tables(experiment_data(results))
    assert texts(shown["loss-0"]) == [
        ["d", "0.2000", "0.2500"],
        ["e", "0.5000", "0.4000"],
    ]
    assert shown["loss-0"]["rows"][0][1]["spread"] == "±0.1414"
    assert [row[1:3] for row in texts(shown["winners"])] == [
        ["a 0.2000", "a 0.2000"],
        ["b 0.4000", "b 0.4000"],
    ]
    assert [row[1] for row in texts(shown["mean-ranks"])] == ["1.50", "1.50"]
    # On d only a covers anything alone: 0.8³ − 0.75³.
    assert texts(shown["contribution"])[0] == [
        "d",
        f"{0.8**3 - 0.75**3:.5f}",
        "0.00000",
    ]
    assert texts(shown["normalised-contribution"])[0] == ["d", "1.0000", "0.0000"]
    assert texts(shown["cost-fit"])[1] == ["e", "\u2013", "1.50"]
    assert "cost-predict" not in shown


def test_means_over_some_splits_are_not_compared():
    results = small(
        record("d", "a", 0.1, 0),
        record("d", "a", 0.3, 1),
        record("d", "b", 0.1, 0),
        record("d", "b", 0.0, 1, status="failed", losses=None),
    )
    data = experiment_data(results)
    shown = tables(data)
    ((_, a, b), _) = shown["loss-0"]["rows"]
    assert (a["text"], a["best"]) == ("0.2000", True)
    assert (b["text"], b["best"]) == ("0.1000*", False)
    assert "some splits are missing" in shown["loss-0"]["note"]
    assert texts(shown["winners"])[0][1] == "a 0.2000"
    assert "mean-ranks" not in shown


def test_all_sections(results):
    data = experiment_data(results)
    assert titles(data) == [
        "Overview",
        "Losses",
        "All losses together",
        "Critical differences",
        "Time and memory",
        "Failures",
        "How it was made",
    ]
    assert data["runs"][0]["name"] == "emotions, CLML, split 0"
    assert texts(tables(data)["failed"])[0][-1] == "time-out after 60 s"
    json.dumps(data, allow_nan=False)


def test_diagrams_have_the_ranks_of_the_statistics(results):
    from clml.experiments import bonferroni_dunn, nemenyi

    data = experiment_data(results)
    (section,) = [one for one in data["groups"] if one["id"] == "significance"]
    every, against = section["diagrams"][:2]
    test = nemenyi(results.table("hamming"))
    assert every["critical_difference"] == test.critical_difference
    assert np.array_equal(every["mean_ranks"], test.mean_ranks)
    dunn = bonferroni_dunn(results.table("hamming"), control=0)
    assert against["critical_difference"] == dunn.critical_difference
    assert against["control"] == 0


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([], "Nothing has finished yet."),
        ([record("d", "a", 0.2)], "at least two methods"),
        ([record("d", m, 0.2) for m in "ab"], "at least two datasets"),
    ],
)
def test_too_little_to_compare_is_said(records, sentence):
    assert sentence in build_page(experiment_data(small(*records)))


def test_incomplete_datasets_are_named():
    results = small(*(record(d, m, 0.2) for d in "de" for m in "ab"))
    results.plan["datasets"].append("f")
    results.plan["methods"].append("c")
    results.records.append(record("f", "a", 0.1))
    data = experiment_data(results)
    (section,) = [one for one in data["groups"] if one["id"] == "significance"]
    assert section["text"][1:] == [
        "Left out, for want of some results: f.",
        "Without any results: c.",
    ]


def test_write_from_a_folder(tmp_path, write_results):
    folder = write_results(tmp_path / "results", datasets=["d", "e"])
    path = write_report(folder, tmp_path / "page.html")
    assert path == tmp_path / "page.html"
    assert path.read_text(encoding="utf-8") == build_page(experiment_data(str(folder)))
    assert {p.name for p in tmp_path.iterdir()} == {"results", "page.html"}


def test_damaged_artifact_costs_its_run_alone(tmp_path, write_results):
    folder = write_results(tmp_path / "results", datasets=["d", "e"])
    (folder / "artifacts" / "0-0-0.npz").write_bytes(b"no arrays")
    data = experiment_data(folder)
    assert [run["name"] for run in data["runs"]] == ["e, CLML, split 0"]
    assert data["notes"][0].startswith("d, CLML, split 0: ")


@pytest.mark.parametrize("results", [None, 3, {"records": []}])
def test_what_are_no_results_is_refused(results, tmp_path):
    with pytest.raises(TypeError, match="results must be Results"):
        write_report(results, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_folder_without_results(tmp_path):
    with pytest.raises(FileNotFoundError, match="no results of an experiment"):
        write_report(tmp_path, tmp_path / "page.html")

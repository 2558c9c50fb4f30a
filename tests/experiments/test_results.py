import json

import numpy as np
import pytest

from clml.experiments._schedule import cells_of
from clml.experiments.plan import Plan
from clml.experiments.results import Results


def record(method, split, hamming, *, dataset="d", seed=0, key=None, **more):
    return {
        "key": key or f"{dataset}-{method}-{split}-{seed}",
        "dataset": dataset,
        "method": method,
        "split": split,
        "seed": seed,
        "status": "done",
        "losses": {"train": {"hamming": 0.0}, "test": {"hamming": hamming}},
        **more,
    }


def failed(method, split):
    return {
        **record(method, split, 0.0),
        "status": "failed",
        "losses": None,
        "reason": "time-out after 60 s",
    }


PLAN = {"datasets": ["d", "e"], "methods": ["a", "b"], "losses": ["hamming"]}


def write(folder, plan, records):
    (folder / "plan.json").write_text(json.dumps(plan))
    lines = "".join(json.dumps(r) + "\n" for r in records)
    (folder / "records.jsonl").write_text(lines)


def test_tables_by_hand(tmp_path):
    records = [
        record("a", 1, 0.3),
        record("a", 0, 0.9),
        record("a", 0, 0.1),  # the last of a key counts
        failed("b", 0),
        record("b", 1, 0.5),
    ]
    write(tmp_path, PLAN, records)
    results = Results.read(tmp_path)
    assert results.datasets == ["d", "e"]
    assert results.methods == ["a", "b"]
    assert results.losses == ["hamming"]
    assert results.values("d", "a", "hamming") == [0.1, 0.3]
    nan = np.nan
    assert np.allclose(
        results.table("hamming"), [[0.2, 0.5], [nan, nan]], equal_nan=True
    )
    spread = [[np.std([0.1, 0.3], ddof=1), nan], [nan, nan]]
    assert np.allclose(results.spread("hamming"), spread, equal_nan=True)
    assert results.table("hamming", "train")[0, 0] == 0
    assert np.isnan(results.table("hamming", "validation")).all()
    assert [r["reason"] for r in results.failed] == ["time-out after 60 s"]
    assert results.record("d", "b", 0)["status"] == "failed"
    assert results.artifact("d", "a") is None


def test_names_come_from_the_records_where_the_plan_has_none():
    results = Results({}, [record("a", 0, 0.1), record("b", 0, 0.2)])
    assert (results.datasets, results.methods) == (["d"], ["a", "b"])
    assert results.losses == ["hamming"]
    assert results.ablation == {}


def test_entries_of_a_plan_may_be_none(tmp_path):
    empty = {"datasets": None, "methods": None, "ablation": {"setting": "s"}}
    write(tmp_path, empty, [record("a", 0, 0.1)])
    results = Results.read(tmp_path)
    assert (results.datasets, results.methods) == (["d"], ["a"])
    assert results.ablation == {}


def test_records_of_another_plan_are_left_out(tmp_path):
    plan = Plan(["synthetic"], ["GNB-BR"], splits=1).as_dict()
    plan["datasets"][0]["data_hash"] = "0"
    (cell,) = cells_of(plan)
    own = record("GNB-BR", 0, 0.1, dataset="synthetic", key=cell.key)
    before = record("GNB-BR", 0, 0.9, dataset="synthetic", key="other")
    write(tmp_path, plan, [own, before])
    assert Results.read(tmp_path).values("synthetic", "GNB-BR", "hamming") == [0.1]


def test_the_variants_of_an_ablation_are_apart():
    plan = Plan(
        ["synthetic"],
        ["CLML-paper"],
        ablation={
            "method": "CLML-paper",
            "setting": "network__embedding_dim",
            "values": [20, 40],
            "datasets": ["synthetic"],
        },
    ).as_dict()
    results = Results(plan, [])
    assert results.methods == ["CLML-paper"]
    assert results.ablation == {20: "CLML-paper", 40: "CLML-paper embedding_dim=40"}
    assert results.all_methods == list(results.ablation.values())


def test_artifacts_are_arrays(tmp_path):
    (tmp_path / "artifacts").mkdir()
    np.savez(tmp_path / "artifacts" / "k.npz", **{"history/sigma": np.arange(3.0)})
    write(tmp_path, PLAN, [record("a", 0, 0.1, artifact="artifacts/k.npz")])
    found = Results.read(tmp_path).artifact("d", "a")
    assert found["history/sigma"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "name", ["../secret.npz", "/etc/passwd", "artifacts/../k.npz", 3]
)
def test_artifacts_stay_in_the_folder(tmp_path, name):
    write(tmp_path, PLAN, [record("a", 0, 0.1, artifact=name)])
    with pytest.raises(ValueError, match="artifact must be in"):
        Results.read(tmp_path).artifact("d", "a")


@pytest.mark.parametrize("pickled", [True, False])
def test_artifacts_are_not_trusted(tmp_path, pickled):
    (tmp_path / "artifacts").mkdir()
    path = tmp_path / "artifacts" / "k.npz"
    if pickled:
        np.savez(path, a=np.array([{}], dtype=object))
    else:
        path.write_bytes(b"nonsense")
    write(tmp_path, PLAN, [record("a", 0, 0.1, artifact="artifacts/k.npz")])
    with pytest.raises(ValueError, match="not a file of arrays"):
        Results.read(tmp_path).artifact("d", "a")


@pytest.mark.parametrize(
    ("content", "message"),
    [("[]", "expected a JSON object"), ("{", "expected a JSON object")],
)
def test_damaged_plans_are_refused(tmp_path, content, message):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        Results.read(tmp_path)


def test_other_folders_and_parts_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no results"):
        Results.read(tmp_path)
    with pytest.raises(ValueError, match="part must be one of"):
        Results(PLAN, []).table("hamming", "all")


NAMED = {"datasets": [{"name": "d"}], "methods": [{"name": "a"}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": 10**12}, "at most 1,000,000 jobs"),
        ({"splits": 1000, "seeds": list(range(1001))}, "at most 1,000,000 jobs"),
        ({"splits": "5"}, "splits must be an integer"),
        ({"seeds": 3}, "seeds must be a list"),
        ({"seeds": ["x"]}, "seeds must hold int"),
        ({"datasets": 3}, "datasets must be a list"),
        ({"datasets": [{"path": "x"}]}, "names or tables with a name"),
        ({"methods": [{"name": ["x"]}]}, "names or tables with a name"),
        ({"methods": [{"name": "a", "datasets": 3}]}, "datasets must be a list"),
        ({"datasets": ["d", "d"]}, "must be distinct"),
        ({"losses": [1]}, "losses must hold str"),
        ({"ablation": 3}, "ablation must be a table"),
        ({"ablation": {"values": [1], "names": []}}, "as many names as values"),
        ({"test_size": float("nan")}, "no number of JSON"),
    ],
)
def test_plans_of_another_shape_are_refused(tmp_path, changes, message):
    write(tmp_path, {**NAMED, **changes}, [])
    with pytest.raises(ValueError, match=message) as caught:
        Results.read(tmp_path)
    assert "plan.json" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"losses": {"test": [0.1]}},
        {"losses": {"test": {"hamming": "0.1"}}},
        {"losses": {"test": {"hamming": True}}},
        {"seconds": 3},
        {"seconds": {"fit": "long"}},
        {"peak_memory_mb": "much"},
        {"versions": ["1.0"]},
        {"versions": {"clml": {}}},
    ],
)
def test_records_of_another_shape_are_refused(tmp_path, changes):
    write(tmp_path, PLAN, [record("a", 0, 0.1) | changes])
    with pytest.raises(ValueError, match=r"the record 'd-a-0-0' must be") as caught:
        Results.read(tmp_path)
    assert "records.jsonl" in str(caught.value)


def test_an_ablation_may_vary_lists():
    ablation = {"values": [[1, 2], 3], "names": ["a", "b"]}
    assert Results({"ablation": ablation}, []).ablation == {"[1,2]": "a", 3: "b"}


def test_results_of_several_versions_are_told_about():
    old = record("a", 0, 0.1, versions={"clml": "0.1"})
    new = record("a", 1, 0.1, versions={"clml": "0.2"})
    Results(PLAN, [old, old, failed("a", 2)])
    with pytest.warns(UserWarning, match=r"several versions of clml, 0\.1, 0\.2"):
        Results(PLAN, [old, new])


def test_a_table_goes_over_the_records_once():
    """However many cells it has: it would take the square of the records."""

    class Counted(list):
        times = 0

        def __iter__(self):
            self.times += 1
            return super().__iter__()

    names = [f"d{i}" for i in range(12)]
    records = Counted(
        {
            "key": f"{d}{m}",
            "dataset": d,
            "method": m,
            "split": 0,
            "seed": 0,
            "status": "done",
            "losses": {"test": {"hamming": 0.1}},
        }
        for d in names
        for m in "abcd"
    )
    plan = {"datasets": names, "methods": list("abcd"), "losses": ["hamming"]}
    results = Results(plan, records)
    records.times = 0
    assert (results.table("hamming") == 0.1).all()
    assert records.times == 1

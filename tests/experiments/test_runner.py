"""Running plans: jobs are faked, but for those of the cluster."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from clml.experiments import _cluster
from clml.experiments import runner as _runner
from clml.experiments._limits import Outcome, Stopped
from clml.experiments.builtin import built_in_entries, is_present, reproduce_plan
from clml.experiments.plan import Plan
from clml.experiments.results import Results
from clml.experiments.runner import run_experiment

METHODS = ("GNB-BR", "GNB-CC", "kNN")


def small_plan(methods=METHODS, splits=2, **more):
    data = {"tiny": {"synthetic": {"n_samples": 40}}}
    return Plan(data, list(methods), splits=splits, **more)


def fake(job, data, limits, stop):
    value = (len(job["method"]["name"]) + job["split"]) / 100
    assert os.path.isfile(data)
    losses = {"test": dict.fromkeys(job["losses"], value)}
    return Outcome({"status": "done", "losses": losses})


def run(plan, folder, execute=fake, **options):
    return run_experiment(plan, folder, progress=False, execute=execute, **options)


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_job_is_run_once(tmp_path, jobs):
    results = run(small_plan(), tmp_path, jobs=jobs)
    assert np.allclose(results.table("lrap"), [[0.065, 0.065, 0.035]])
    assert len(results.records) == 6
    assert results.plan["datasets"][0]["n_labels"] == 6
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert not list((tmp_path / "claims").iterdir())
    expected = {"key", "settings", "plan_hash", "data_hash", "finished", "artifact"}
    assert expected <= json.loads(lines[0]).keys()


def test_a_package_that_is_absent_is_told_before_anything_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    plan = small_plan(["kNN", "LightGBM"])
    with pytest.raises(ImportError, match=r"^methods\.LightGBM needs .* lightgbm: pip"):
        run(plan, tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.fixture
def boosters(tmp_path, monkeypatch):
    """Install empty packages; return what takes one away."""
    site = tmp_path / "site-packages"
    for package in ("lightgbm", "catboost"):
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").touch()
        about = site / f"{package}-4.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: {package}\nVersion: 4.0\n")
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(site)

    def remove(package):
        monkeypatch.setitem(sys.modules, package, None)

    return remove


def content(folder):
    """Return the files of a folder, and what they hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refuse_to_run(job, *rest):
    raise AssertionError(f"{job['method']['name']} is run again")


@pytest.mark.parametrize(
    ("name", "package"), [("LightGBM", "lightgbm"), ("CatBoost", "catboost")]
)
def test_a_finished_plan_opens_again_without_a_package(
    tmp_path, boosters, name, package
):
    folder = tmp_path / "results"
    plan = small_plan(["kNN", name])
    first = run(plan, folder)
    assert first.plan["methods"][1]["packages"][package] == "4.0"
    before = content(folder)
    boosters(package)
    again = run(plan, folder, refuse_to_run)
    assert again.plan == first.plan
    assert len(again.records) == 4
    assert content(folder) == before
    assert run(plan, folder, refuse_to_run, retry_failed=True).plan == first.plan


def test_what_needs_no_absent_package_goes_on(tmp_path, boosters):
    folder = tmp_path / "results"
    methods = {"LightGBM": {"datasets": ["tiny"]}}
    data = {"tiny": {"synthetic": {"n_samples": 40}}}
    run(Plan(data, methods, splits=1), folder)
    boosters("lightgbm")
    ran = []

    def execute(job, *rest):
        ran.append(job["method"]["name"])
        return fake(job, *rest)

    data |= {"other": {"synthetic": {"n_samples": 50}}}
    results = run(Plan(data, {**methods, "kNN": None}, splits=1), folder, execute)
    assert ran == ["kNN", "kNN"]
    assert len(results.records) == 3


@pytest.mark.parametrize(
    "change", ["nothing", "splits", "settings", "failed", "records", "plan"]
)
def test_an_unfinished_plan_is_refused_before_anything_is_written(
    tmp_path, boosters, change
):
    folder = tmp_path / "results"
    plan = small_plan(["kNN", "LightGBM"])

    def execute(job, *rest):
        if change == "nothing" and job["method"]["name"] == "LightGBM":
            raise KeyboardInterrupt
        if change == "failed" and job["split"] == 1:
            return Outcome({"status": "failed", "reason": "no luck"})
        return fake(job, *rest)

    if change == "nothing":
        with pytest.raises(KeyboardInterrupt):
            run(plan, folder, execute)
    else:
        run(plan, folder, execute)
    boosters("lightgbm")
    if change == "splits":
        plan = small_plan(["kNN", "LightGBM"], splits=3)
    elif change == "settings":
        methods = {"kNN": None, "LightGBM": {"settings": {"n_estimators": 3}}}
        plan = Plan({"tiny": {"synthetic": {"n_samples": 40}}}, methods, splits=2)
    elif change == "failed":
        assert len(run(plan, folder, refuse_to_run).failed) == 2
    elif change == "records":
        (folder / "records.jsonl").unlink()
    elif change == "plan":
        (folder / "plan.json").write_text("nonsense")
    before = content(folder)
    with pytest.raises(ImportError, match=r"^methods\.LightGBM needs .* lightgbm: pip"):
        run(plan, folder, refuse_to_run, retry_failed=change == "failed")
    assert content(folder) == before


def test_what_is_finished_is_not_run_again(tmp_path):
    run(small_plan(["kNN"]), tmp_path)
    ran = []

    def execute(job, *rest):
        ran.append((job["method"]["name"], job["split"]))
        return fake(job, *rest)

    results = run(small_plan(["kNN", "GNB-BR"], splits=3), tmp_path, execute)
    assert sorted(ran) == [("GNB-BR", 0), ("GNB-BR", 1), ("GNB-BR", 2), ("kNN", 2)]
    assert len(results.records) == 6
    # Another setting is another job; the first plan still has its own.
    other = Plan(
        {"tiny": {"synthetic": {"n_samples": 40}}},
        {"kNN": {"settings": {"n_neighbors": 3}}},
        splits=1,
    )
    ran.clear()
    assert len(run(other, tmp_path, execute).records) == 1
    assert ran == [("kNN", 0)]


def test_failed_jobs_stay_failed_until_they_are_retried(tmp_path):
    def failing(job, *rest):
        if job["split"] == 0:
            return Outcome({"status": "failed", "reason": "no luck"})
        return fake(job, *rest)

    assert len(run(small_plan(["kNN"]), tmp_path, failing).failed) == 1
    (failed,) = run(small_plan(["kNN"]), tmp_path).failed
    assert failed["reason"] == "no luck"
    results = run(small_plan(["kNN"]), tmp_path, retry_failed=True)
    assert not results.failed
    assert len(results.records) == 2


def test_an_interrupt_leaves_a_folder_to_go_on_with(tmp_path):
    def interrupted(job, data, limits, stop):
        if job["split"] == 1:
            raise KeyboardInterrupt
        return fake(job, data, limits, stop)

    with pytest.raises(KeyboardInterrupt):
        run(small_plan(), tmp_path, interrupted, jobs=2)
    assert len(Results.read(tmp_path).records) >= 1
    assert not list((tmp_path / "claims").iterdir())
    assert len(run(small_plan(), tmp_path).records) == 6


def test_arrays_are_data(tmp_path, small_data):
    plan = Plan({"mine": small_data}, ["kNN"], splits=1)
    results = run(plan, tmp_path)
    assert results.datasets == ["mine"]
    assert results.plan["datasets"][0]["n_instances"] == 120


def test_progress_is_told(tmp_path, capsys):
    run_experiment(small_plan(["kNN"]), tmp_path, execute=fake)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("1/2 tiny, kNN, split 0, seed 0: done")
    assert last.endswith("about 0 s left")


@pytest.mark.parametrize("jobs", [0, 1.5, True])
def test_bad_jobs(tmp_path, jobs):
    with pytest.raises(ValueError, match="jobs must be an integer"):
        run_experiment(small_plan(), tmp_path, jobs=jobs)


# Forks runners of a small plan; one alone imports the library, which takes its time.
DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
from clml.experiments._limits import Outcome
from clml.experiments.plan import Plan
from clml.experiments.runner import run_experiment

folder = Path(sys.argv[1])
plan = Plan({"tiny": {"synthetic": {"n_samples": 40}}}, ["kNN", "GNB-BR"], splits=6)


def execute(job, data, limits, stop):
    with open(folder / "log", "a") as log:
        log.write(f"{job['method']['name']} {job['split']}\\n")
    time.sleep(0.04)
    value = (len(job["method"]["name"]) + job["split"]) / 100
    losses = {"test": dict.fromkeys(job["losses"], value)}
    return Outcome({"status": "done", "losses": losses}, b"x" * 100_000)


def fork(name):
    pid = os.fork()
    if pid == 0:
        run_experiment(plan, folder / name, jobs=2, progress=False, execute=execute)
        os._exit(0)
    return pid


def ended(pid):
    return os.waitpid(pid, 0)[1]


assert ended(fork("whole")) == 0
random.seed(int(sys.argv[2]))
killed = 0
for attempt in range(8):
    pid = fork("killed")
    time.sleep(random.uniform(0.02, 0.12))
    os.kill(pid, signal.SIGKILL)
    killed += ended(pid) != 0
assert ended(fork("killed")) == 0
(folder / "log").unlink()
pids = [fork("shared") for _ in range(3)]
assert [ended(pid) for pid in pids] == [0, 0, 0]
print(json.dumps({"killed": killed}))
"""
TIMES = ("seconds", "peak_memory_mb", "finished")


def lasting(folder):
    """Return the records by key, without what differs from run to run."""
    return {
        record["key"]: {k: v for k, v in record.items() if k not in TIMES}
        for record in Results.read(folder).records
    }


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driven")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(folder), "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
def test_killed_runners_leave_what_an_unharmed_one_does(driven):
    folder, told = driven
    assert told["killed"] >= 2
    assert lasting(folder / "killed") == lasting(folder / "whole")
    assert len(lasting(folder / "whole")) == 12
    lines = (folder / "killed" / "records.jsonl").read_text().splitlines()
    assert len(lines) == 12
    for name in ("whole", "killed"):
        artifacts = list((folder / name / "artifacts").glob("*.npz"))
        assert {path.stat().st_size for path in artifacts} == {100_000}
        assert len(artifacts) == 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
def test_runners_share_a_folder(driven):
    folder, _ = driven
    assert lasting(folder / "shared") == lasting(folder / "whole")
    ran = (folder / "log").read_text().splitlines()
    assert len(ran) == len(set(ran)) == 12
    assert len((folder / "shared" / "records.jsonl").read_text().splitlines()) == 12


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_cluster_gives_the_same(tmp_path, client):
    plan = small_plan(["GNB-BR"], splits=1)
    here = run_experiment(plan, tmp_path / "here", progress=False)
    there = run_experiment(plan, tmp_path / "there", dask=client, progress=False)
    assert lasting(there.folder) == lasting(here.folder)
    assert here.done[0]["seconds"]["fit"] > 0


def test_a_stopped_run_ends_its_jobs_on_the_cluster(tmp_path, client, monkeypatch):
    started, ended = threading.Event(), threading.Event()

    def endless(job, data, limits, stop):
        started.set()
        while not stop.is_set():
            time.sleep(0.01)
        ended.set()
        raise Stopped

    monkeypatch.setattr(_cluster, "run_cell", endless)
    monkeypatch.setattr(_cluster, "_ASK_SECONDS", 0.05)
    stop = threading.Event()
    (tmp_path / "rows").write_bytes(b"rows")

    def stop_soon():
        started.wait(10)
        stop.set()

    threading.Thread(target=stop_soon).start()
    with _cluster.cluster(client) as (execute, _):
        with pytest.raises(Stopped):
            execute({}, str(tmp_path / "rows"), {}, stop)
    assert ended.wait(10)


def lose_workers(client):
    """Have all workers die at once, and others come."""
    cluster = client.cluster
    gone = list(cluster.workers.values())
    cluster.scale(len(gone) + 1)
    client.wait_for_workers(len(gone) + 1, timeout=20)
    for worker in gone:
        cluster.sync(worker.close, nanny=False)


def test_rows_that_died_with_a_worker_are_sent_again(tmp_path, client, monkeypatch):
    seen = []

    def run_there(job, data, limits, stop):
        seen.append(bytes(data))
        return Outcome({"status": "done"})

    monkeypatch.setattr(_cluster, "run_cell", run_there)
    (tmp_path / "rows").write_bytes(b"rows")
    with _cluster.cluster(client) as (execute, _):
        job = ({}, str(tmp_path / "rows"), {}, threading.Event())
        assert execute(*job).result["status"] == "done"
        lose_workers(client)
        with monkeypatch.context() as patch:
            patch.setattr(_cluster, "_ATTEMPTS", 1)
            failed = execute(*job).result
        assert failed["reason"] == "the cluster lost the rows of the job 1 times"
        assert execute(*job).result["status"] == "done"
    assert seen == [b"rows"] * 2


def test_a_client_that_is_closed_ends_the_run(tmp_path, monkeypatch):
    """And no job is said to have failed: it can be run again."""
    distributed = pytest.importorskip("distributed")
    started = threading.Event()

    def endless(job, data, limits, stop):
        started.set()
        time.sleep(1)

    monkeypatch.setattr(_cluster, "run_cell", endless)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:
        client = distributed.Client(cluster, set_as_default=False)

        def close_soon():
            started.wait(10)
            client.close()

        threading.Thread(target=close_soon).start()
        plan = small_plan(["GNB-BR"], splits=2)
        with pytest.raises(RuntimeError, match="client was closed while"):
            run_experiment(plan, tmp_path, dask=client, progress=False)
        with pytest.raises(RuntimeError, match="dask is a dask client that is closed"):
            run_experiment(plan, tmp_path, dask=client, progress=False)
    assert lasting(tmp_path) == {}


def test_a_cluster_must_be_one(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(TypeError, match="dask must be the address"):
        run(small_plan(), tmp_path, dask=3)


def test_the_built_in_plans(monkeypatch, tmp_path):
    for name in ("CLML_DATA", "CLML_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    assert not is_present("emotions")
    plan, messages = reproduce_plan()
    assert [d.name for d in plan.datasets] == ["synthetic"]
    assert len(messages) == 9
    assert plan.ablation is None
    whole, messages = reproduce_plan(download=True)
    assert not messages
    assert len(whole.datasets) == 10
    assert len(whole.ablation["names"]) == 8
    quick, _ = reproduce_plan(
        quick=True, datasets=["Emotions"], splits=1, download=True
    )
    assert (len(quick.methods), quick.splits) == (12, 1)
    assert "not those of the full settings" in quick.notes[0]
    with pytest.raises(ValueError, match="none of the datasets is here"):
        reproduce_plan(datasets=["flags"])
    with pytest.raises(ValueError, match="methods must be of"):
        reproduce_plan(methods=["nothing"])


def test_the_quick_plan_has_all_methods_of_the_whole_one():
    quick, whole = built_in_entries("quick"), built_in_entries("reproduce")
    assert list(quick["methods"]) == list(whole["methods"])
    assert quick["losses"] == whole["losses"]


def test_threads_stop_when_one_cannot_go_on(tmp_path):
    started, stopped = threading.Event(), threading.Event()

    def execute(job, data, limits, stop):
        if job["split"] == 0:
            started.wait(5)
            raise OSError("the disk is full")
        started.set()
        if stop.wait(5):
            stopped.set()
        return fake(job, data, limits, stop)

    with pytest.raises(OSError, match="the disk is full"):
        run(small_plan(["kNN"]), tmp_path, execute, jobs=2)
    assert stopped.is_set()


def test_a_job_that_ends_unasked_is_an_error(tmp_path):
    def execute(job, data, limits, stop):
        if job["split"] == 1:
            raise Stopped
        return fake(job, data, limits, stop)

    with pytest.raises(RuntimeError, match="although the run goes on"):
        run(small_plan(["kNN"]), tmp_path, execute)
    assert not list((tmp_path / "claims").iterdir())


def test_no_job_is_missing_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_runner._Run, "_try", lambda self, cell, execute: None)
    with pytest.raises(RuntimeError, match=r"2 of 2 jobs .* tiny, kNN, split 0"):
        run(small_plan(["kNN"]), tmp_path)


def test_claims_are_kept_fresh(tmp_path, monkeypatch):
    monkeypatch.setattr(_runner, "BEAT_SECONDS", 0.01)
    ages = []

    def execute(job, data, limits, stop):
        (claim,) = (tmp_path / "claims").iterdir()
        os.utime(claim, (1.0, 1.0))
        deadline = time.monotonic() + 10
        while claim.stat().st_mtime == 1.0 and time.monotonic() < deadline:
            time.sleep(0.01)
        ages.append(time.time() - claim.stat().st_mtime)
        return fake(job, data, limits, stop)

    run(small_plan(["kNN"], splits=1), tmp_path, execute)
    assert ages[0] < 60


def test_another_plan_in_the_folder_changes_nothing(tmp_path):
    def execute(job, data, limits, stop):
        if job["split"] == 0:
            run(small_plan(["GNB-BR"], splits=1), tmp_path)
        return fake(job, data, limits, stop)

    results = run(small_plan(["kNN"]), tmp_path, execute)
    assert results.methods == ["kNN"]
    assert {r["method"] for r in results.records} == {"kNN"}
    assert len(results.records) == 2
    assert results.folder == tmp_path


@pytest.mark.parametrize("damage", [b"", b"nonsense", "half", "other"])
def test_damaged_data_are_written_again(tmp_path, damage, small_data):
    run(small_plan(["kNN"], splits=1), tmp_path)
    (path,) = (tmp_path / "data").iterdir()
    whole = path.read_bytes()
    if damage == "half":
        damage = whole[: len(whole) // 2]
    elif damage == "other":
        run(Plan({"mine": small_data}, ["kNN"], splits=1), tmp_path / "other")
        (other,) = (tmp_path / "other" / "data").iterdir()
        damage = other.read_bytes()
    path.write_bytes(damage)
    run(small_plan(["kNN"], splits=2), tmp_path)
    assert path.read_bytes() == whole

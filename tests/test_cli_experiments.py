import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from clml._commands import _experiments
from clml.experiments import runner as _runner
from clml.experiments._limits import Outcome
from clml.experiments.results import Results

PLAN = """
datasets = [{name = "tiny", synthetic = {n_samples = 40}}]
methods = ["GNB-BR", "kNN"]
splits = 2
"""


def fake(job, data, limits, stop):
    if job["method"]["name"] == "kNN" and job["split"] == 1:
        return Outcome({"status": "failed", "reason": "no luck"})
    losses = {"test": dict.fromkeys(job["losses"], 0.25)}
    return Outcome({"status": "done", "losses": losses})


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return str(path)


@pytest.fixture(autouse=True)
def _faked(monkeypatch):
    monkeypatch.setattr(_runner, "run_cell", fake)


def invoke(command, *arguments):
    return CliRunner().invoke(getattr(_experiments, command), list(arguments))


def test_bench_prints_means_and_failures(plan, tmp_path):
    out = str(tmp_path / "out")
    result = invoke("bench", plan, "-o", out, "--jobs", "1")
    assert result.exit_code == 1, result.output
    assert "hamming, mean over the splits" in result.stdout
    assert "failed: tiny, kNN, split 1: no luck" in result.stdout
    assert f"3 done, 1 failed: {out}" in result.stdout
    assert "4/4" in result.stderr
    again = invoke("bench", plan, "-o", out, "--json", "--quiet")
    told = json.loads(again.stdout)
    assert told["done"] == 3
    assert told["failed"][0]["reason"] == "no luck"
    assert told["means"]["lrap"]["tiny"] == {"GNB-BR": 0.25, "kNN": 0.25}
    assert again.stderr == ""


def test_bench_says_what_is_wrong_with_a_plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("methods = []")
    result = invoke("bench", str(path), "-o", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "a plan needs the entry 'datasets'" in result.output
    assert invoke("bench", str(tmp_path / "none.toml"), "-o", "x").exit_code == 2
    assert invoke("bench", str(path)).exit_code == 2


def test_an_interrupt_tells_how_to_go_on(plan, tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_runner, "run_cell", interrupt)
    result = invoke("bench", plan, "-o", str(tmp_path / "out"))
    assert result.exit_code == 130
    assert "run the same command again to go on" in result.stderr


def test_reproduce_writes_everything(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        _experiments,
        "_write_everything",
        lambda results, folder, quick: asked.append(results) or ["Written."],
    )
    monkeypatch.setenv("CLML_DATA", str(tmp_path))
    monkeypatch.setenv("CLML_CACHE", str(tmp_path))
    out = str(tmp_path / "out")
    names = ["--datasets", "synthetic,flags", "--methods", "GNB-BR"]
    result = invoke("reproduce", "--quick", "-o", out, *names, "--splits", "1")
    assert result.exit_code == 0, result.output
    assert "flags is left out: its files are not here" in result.stderr
    assert "Written." in result.stderr
    assert asked[0].datasets == ["synthetic"]
    assert len(asked[0].done) == 1
    bad = invoke("reproduce", "-o", out, "--methods", "nothing")
    assert bad.exit_code == 1
    assert "methods must be of" in bad.output


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
def test_ctrl_c_ends_the_children(plan, tmp_path):
    out = tmp_path / "out"
    code = "from clml._commands._experiments import bench; bench()"
    run = subprocess.Popen(
        [sys.executable, "-c", code, plan, "-o", str(out), "--jobs", "1", "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    claims = out / "claims"
    while not (claims.is_dir() and list(claims.iterdir())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    assert "again to go on" in errors
    assert not list(claims.iterdir())
    assert len(Results.read(out).records) < 4


def test_values_of_the_wrong_kind_are_told_without_a_traceback(
    plan, tmp_path, monkeypatch
):
    def refuse(*arguments, **options):
        raise TypeError("settings must be something else")

    monkeypatch.setattr(_runner, "run_experiment", refuse)
    result = invoke("bench", plan, "-o", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "Error: settings must be something else" in result.output

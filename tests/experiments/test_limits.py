"""What is watched of a child; whole jobs are run in test_cell."""

import json
import os
import subprocess
import sys
import threading

import pytest

from clml.experiments._limits import (
    _end,
    _environment,
    _outcome,
    _watch,
    group_mb,
    resident_mb,
)

# A small process that starts a large one.
FAMILY = """
import subprocess, sys
code = "x = b'1' * (80 << 20); print(flush=True); input()"
subprocess.run([sys.executable, "-S", "-c", code])
"""
linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="others do not tell"
)


@pytest.fixture
def family():
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", FAMILY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    child.stdout.readline()
    yield child
    _end(child)
    child.stdout.close()


@linux
def test_memory_is_that_of_all_processes_of_a_job(family):
    assert resident_mb(family.pid) < 60
    assert group_mb(family.pid) > 80
    limits = {"memory_mb": 70, "seconds": 20}
    reason, peak = _watch(family, limits, None)
    assert reason == "used more than 70 MB of memory"
    assert peak > 80


def test_a_group_that_is_gone_has_no_memory():
    assert group_mb(2**22 + 1) == 0


@linux
def test_pages_that_processes_share_count_once(tmp_path):
    code = """
import os, sys
x = b"1" * (80 << 20)
for _ in range(3):
    if os.fork() == 0:
        break
print(flush=True)
input()
"""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        for _ in range(4):
            child.stdout.readline()
        assert 80 < group_mb(child.pid) < 160
    finally:
        _end(child)
        child.stdout.close()


@pytest.mark.parametrize(
    ("own", "watched", "limit", "status"),
    [
        (90.0, 20.0, 100, "done"),
        (150.0, 20.0, 100, "failed"),  # between two looks of the watch
        (150.0, 20.0, None, "done"),
        (None, 20.0, 100, "done"),
    ],
)
def test_a_short_peak_counts_as_well(tmp_path, own, watched, limit, status):
    told = {"status": "done", "reason": None, "peak_memory_mb": own}
    (tmp_path / "result.json").write_text(json.dumps(told))
    result = _outcome(tmp_path, 0, None, watched, limit).result
    assert result["status"] == status
    assert result["peak_memory_mb"] == max(own or 0, watched)
    if status == "failed":
        assert result["reason"] == "used more than 100 MB of memory"


def test_children_import_from_the_folder_of_a_notebook(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/elsewhere"])
    paths = _environment(1)["PYTHONPATH"].split(os.pathsep)
    assert paths == [os.getcwd(), "/elsewhere"]


def test_a_stop_ends_the_watch(family):
    from clml.experiments._limits import Stopped

    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        _watch(family, {"memory_mb": None, "seconds": None}, stop)


def test_losses_that_were_there_before_the_time_was_up_count(tmp_path):
    from clml.experiments._cell import RESULT

    late = "time-out after 5 s"
    assert _outcome(tmp_path, -9, late, 1.0, None).result["status"] == "failed"
    (tmp_path / RESULT).write_text('{"status": "done", "losses": {}}')
    kept = _outcome(tmp_path, -9, late, 1.0, None)
    assert kept.result["status"] == "done"
    assert kept.result["note"] == f"without an artifact: {late}"
    too_much = _outcome(tmp_path, -9, "more than 10 MB of memory", 1.0, None)
    assert too_much.result["status"] == "failed"

"""The end of a job's process when its parent dies; jobs are run in test_cell."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clml.experiments import _child

# In place of a job: compiled code that never gives the interpreter's lock back.
HOLDING = """
import collections, itertools, os, runpy, sys, threading
program = runpy.run_path(sys.argv[1])
program["_end_soon_after_parent"]()
end = program["_end_with_parent"]
threading.Thread(target=end, args=(sys.argv[2],), daemon=True).start()
print(os.getpid(), flush=True)
if sys.argv[3] == "holds":
    collections.deque(itertools.repeat(None), 0)
threading.Event().wait(60)
"""
PARENT = """
import subprocess, sys
subprocess.Popen(
    [sys.executable, "-S", "-c", *sys.argv[1:]],
    stdin=subprocess.PIPE,
    start_new_session=True,
).wait()
"""


def cpu_ticks(pid):
    text = Path(f"/proc/{pid}/stat").read_text()
    return int(text.rpartition(")")[2].split()[11])


def is_running(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells it")
@pytest.mark.parametrize("lock", ["holds", "leaves"])
def test_a_job_ends_with_its_parent(tmp_path, lock):
    place = tmp_path / "job"
    place.mkdir()
    job = [HOLDING, _child.__file__, str(place), lock]
    parent = subprocess.Popen(
        [sys.executable, "-S", "-c", PARENT, *job], stdout=subprocess.PIPE
    )
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    # It has said its number before it takes the lock: until it computes.
    began, deadline = cpu_ticks(pid), time.monotonic() + 15
    while lock == "holds" and cpu_ticks(pid) < began + 20:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 15
    try:
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not is_running(pid)
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
    # The thread, if it runs, has the time to clear up.
    assert place.exists() == (lock == "holds")

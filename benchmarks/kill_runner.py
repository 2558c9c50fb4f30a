"""Runners that are killed at random moments leave what an unharmed one does.

A small plan is run once as it is, and once by runners of which each is killed (SIGKILL,
no time to tidy up) after a random while, until the last may finish. Then the records
of both must be equal but for times and memory, and no process may be left over.

    python benchmarks/kill_runner.py --kills 10
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clml.experiments import Plan, Results, run_experiment

TIMES = ("seconds", "peak_memory_mb", "finished")
RUN = "import sys; sys.path.insert(0, {!r}); import kill_runner; kill_runner.go({!r})"


def small_plan() -> Plan:
    return Plan(
        {"tiny": {"synthetic": {"n_samples": 100}}},
        {"CLML": {"settings": {"max_epochs": 5}}, "GNB-BR": None, "kNN": None},
        splits=4,
    )


def go(folder: str) -> None:
    run_experiment(small_plan(), folder, jobs=2, progress=False)


def start(folder: Path) -> subprocess.Popen[bytes]:
    code = RUN.format(str(Path(__file__).parent), str(folder))
    return subprocess.Popen([sys.executable, "-c", code])


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, where the system tells."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return found


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def lasting(folder: Path) -> dict[str, Any]:
    """Return the records by key, without what differs from run to run."""
    return {
        record["key"]: {k: v for k, v in record.items() if k not in TIMES}
        for record in Results.read(folder).records
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        whole, killed = Path(name, "whole"), Path(name, "killed")
        began = time.monotonic()
        assert start(whole).wait() == 0
        seconds = time.monotonic() - began
        print(f"unharmed: {len(lasting(whole))} records in {seconds:.1f} s", flush=True)
        for n in range(arguments.kills):
            runner = start(killed)
            try:
                runner.wait(moments.uniform(0.1, 0.25) * seconds)
            except subprocess.TimeoutExpired:
                children = children_of(runner.pid)
                os.kill(runner.pid, signal.SIGKILL)
                runner.wait()
                time.sleep(1.0)
                left = [pid for pid in children if is_alive(pid)]
                assert not left, f"processes {left} outlive their runner"
            done = (killed / "records.jsonl").exists() and len(lasting(killed))
            print(f"kill {n + 1}: {done or 0} records", flush=True)
        assert start(killed).wait() == 0
        assert lasting(killed) == lasting(whole), "the records differ"
        n_lines = len((killed / "records.jsonl").read_text().splitlines())
        assert n_lines == len(lasting(whole)), "some jobs have two records"
        print("after the last run: the same records, each once")


if __name__ == "__main__":
    main()

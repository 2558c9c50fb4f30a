"""A job in a child process, which may take so long, use so much, and crash."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_PROGRAM = Path(__file__).with_name("_child.py")
_POLL_SECONDS = 0.05
# The processes of a job are looked for among all of the machine, which costs more.
_GROUP_SECONDS = 0.5
# After a polite request to end.
_PATIENCE_SECONDS = 2.0
_TIME_OUT = "time-out after"
_LONGEST_TAIL = 300
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class Flag(Protocol):
    """What tells that a job is to be ended, such as a `threading.Event`."""

    def is_set(self) -> bool: ...


class Stopped(Exception):
    """The job was ended because the experiment is."""


@dataclass(frozen=True)
class Outcome:
    """What came out of a job.

    Attributes
    ----------
    result : dict
        ``status``, ``reason`` and what else the child said.
    artifact : bytes or None
        Of an npz file.
    """

    result: dict[str, Any]
    artifact: bytes | None = None


def run_cell(
    job: Mapping[str, Any],
    data: bytes | str,
    limits: Mapping[str, Any],
    stop: Flag | None = None,
) -> Outcome:
    """Run a job in a fresh process and wait for it.

    Whatever the job does, this returns: a crash, a time-out or too much memory are
    outcomes. If this process dies, so does the child.

    Parameters
    ----------
    job : mapping
        As `compute_cell` takes it, without the path of the data.
    data : bytes or str
        The arrays as an npz file, or the path of one.
    limits : mapping
        ``seconds``, ``memory_mb``, ``threads``.
    stop : threading.Event or alike, optional
        When set, the child is ended and `Stopped` raised.
    """
    with tempfile.TemporaryDirectory(
        prefix="clml-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        if isinstance(data, bytes):
            path = folder / "data.npz"
            path.write_bytes(data)
            data = str(path)
        order = {
            **job,
            "data": data,
            "memory_mb": limits["memory_mb"],
        }
        with (folder / "output").open("wb") as output:
            child = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM), str(folder)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(limits["threads"]),
                start_new_session=True,  # Ctrl-C is for this process to deal with
            )
        try:
            _tell(child, order)
            reason, peak = _watch(child, limits, stop)
        finally:
            _end(child)
        return _outcome(folder, child.returncode, reason, peak, limits["memory_mb"])


def _environment(threads: int) -> dict[str, str]:
    numbers = dict.fromkeys(_THREAD_VARIABLES, str(threads))
    # What can be imported here can be imported there; "" is the folder we are in.
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return {**os.environ, **numbers, "PYTHONPATH": paths}


def _tell(child: subprocess.Popen[bytes], order: Mapping[str, Any]) -> None:
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(order).encode() + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        pass  # it is dead already, as the watch will find


def _watch(
    child: subprocess.Popen[bytes],
    limits: Mapping[str, Any],
    stop: Flag | None,
) -> tuple[str | None, float]:
    """Wait until the child ends or is to be ended; return why, and its peak memory."""
    began = looked = time.monotonic()
    peak = 0.0
    while True:
        try:
            child.wait(_POLL_SECONDS)
            return None, peak
        except subprocess.TimeoutExpired:
            pass
        if stop is not None and stop.is_set():
            raise Stopped
        peak = max(peak, resident_mb(child.pid))
        if time.monotonic() - looked > _GROUP_SECONDS:
            peak = max(peak, group_mb(child.pid))
            looked = time.monotonic()
        memory_mb, seconds = limits["memory_mb"], limits["seconds"]
        if memory_mb is not None and peak > memory_mb:
            return _too_much(memory_mb), peak
        if seconds is not None and time.monotonic() - began > seconds:
            return f"{_TIME_OUT} {seconds:g} s", peak


def _too_much(memory_mb: float) -> str:
    return f"used more than {memory_mb:g} MB of memory"


def group_mb(group: int) -> float:
    """Return the memory that the processes of a group hold together.

    Where the system does not tell who is in the group: that of its first process. Pages
    that several share, as after a fork, count once if the system says so.
    """
    members = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                text = Path("/proc", name, "stat").read_text("ascii", "replace")
                if int(text.rpartition(")")[2].split()[2]) == group:
                    members.append(int(name))
            except (OSError, IndexError, ValueError):
                continue  # it has just ended
    if len(members) < 2:
        return resident_mb(group)
    return sum(map(_share_mb, members))


def _share_mb(pid: int) -> float:
    """Return the memory of a process; what n processes share counts for 1/n."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        return int(text.partition("\nPss:")[2].split()[0]) / 1024
    except (OSError, IndexError, ValueError):
        return resident_mb(pid)


def resident_mb(pid: int) -> float:
    """Return the memory that a process holds; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError, ValueError):
        pass
    try:
        psutil: Any = importlib.import_module("psutil")
    except ImportError:
        return 0.0
    try:
        return float(psutil.Process(pid).memory_info().rss / 2**20)
    except psutil.Error:
        return 0.0


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child and whatever it started: first ask, then kill."""
    if child.poll() is None:
        _signal(child, "SIGTERM")
        try:
            child.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
    _signal(child, "SIGKILL")
    child.wait()
    if child.stdin is not None:
        try:
            child.stdin.close()
        except BrokenPipeError:
            pass


def _signal(child: subprocess.Popen[bytes], name: str) -> None:
    if not hasattr(os, "killpg"):  # Windows
        child.kill()
        return
    try:
        os.killpg(child.pid, getattr(signal, name))
    except (ProcessLookupError, PermissionError):
        pass


def _outcome(
    folder: Path,
    returncode: int,
    reason: str | None,
    peak: float,
    memory_mb: float | None,
) -> Outcome:
    from ._cell import ARTIFACT, RESULT, versions

    late = reason is not None and reason.startswith(_TIME_OUT)
    if (reason is None or late) and (folder / RESULT).is_file():
        # What came late is what figures need: the losses are there already.
        result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        if late:
            result["note"] = f"without an artifact: {reason}"
        # The child knows its own peak, however short; the watch those it started.
        peak = max(peak, result.get("peak_memory_mb") or 0.0)
        if memory_mb is None or peak <= memory_mb or result["status"] != "done":
            result["peak_memory_mb"] = peak or None
            artifact = folder / ARTIFACT
            content = artifact.read_bytes() if artifact.is_file() else None
            return Outcome(result, content)
        reason = _too_much(memory_mb)
    if reason is None:
        reason = _words_of(returncode, folder / "output")
    return Outcome(
        {
            "status": "failed",
            "reason": reason,
            "peak_memory_mb": peak or None,
            "versions": versions(),
        }
    )


def _words_of(returncode: int, output: Path) -> str:
    """Return how a child ended that left no result."""
    if returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = "unknown"
        return f"killed by signal {-returncode} ({name})"
    with output.open("rb") as file:
        file.seek(max(output.stat().st_size - _LONGEST_TAIL, 0))
        tail = file.read().decode("utf-8", errors="replace").strip()
    return f"ended with exit code {returncode} and no result: {tail}".strip(": ")

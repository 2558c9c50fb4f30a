"""A folder of results that survives its writers: records, artifacts, claims.

Everything that several runners could do at once happens under one lock of the folder.
A record is one line, written and synchronised before the lock is given back; a line
that a killed writer left unfinished is cut off by the next one.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from .._support.atomic import (
    ABANDONED,
    atomic_file,
    atomic_texts,
    sweep_unfinished,
    sync_folder,
)
from .._support.json_text import check_json_size
from .._support.paths import fail, open_regular

RECORDS, PLAN, ARTIFACTS, CLAIMS = "records.jsonl", "plan.json", "artifacts", "claims"
DATA, _LOCK = "data", ".lock"
# What is written to: this folder, those within, and those of reports about it.
_WRITTEN = (".", ARTIFACTS, DATA, "tables", "figures")
_LONGEST_LINE = 2**20
_LEAST_OF_RECORD = 2**16
_LARGEST_FILE = 2**30
# A link would have another file grow, wherever that is.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
# Runners show this often that they are at a job still.
BEAT_SECONDS = 20.0
# A runner of another machine that has not for this long is gone.
_SILENCE_SECONDS = 180.0

Claim = Literal["mine", "finished", "taken"]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; the system gives it back if the process dies."""
    with open_regular(path, _APPEND) as file:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            file.seek(0)
            while True:
                try:
                    msvcrt.locking(  # type: ignore[attr-defined,unused-ignore]
                        file.fileno(),
                        msvcrt.LK_LOCK,  # type: ignore[attr-defined,unused-ignore]
                        1,
                    )
                    break
                except OSError:  # it gives up after ten seconds
                    continue
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def read_lines(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the records from a place on, and the place after the last whole line.

    Whole lines that are no records, as a failing disk leaves them, are passed over with
    a warning: their jobs count as not run.

    Parameters
    ----------
    path : Path
        A missing file has no records.
    offset : int
        Where a line begins.
    """
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_FILE:
                raise fail(path, f"records have at most {_LARGEST_FILE:,} bytes.")
            file.seek(offset)
            content = file.read()
    except FileNotFoundError:
        return [], offset
    end = content.rfind(b"\n") + 1  # what follows was never finished
    records, bad = [], []
    for number, line in enumerate(content[:end].splitlines(), 1):
        try:
            records.append(_record_of(path, line, number if offset == 0 else None))
        except ValueError as error:
            bad.append(str(error))
    if bad:
        others = f" (and {len(bad) - 1} more lines)" if len(bad) > 1 else ""
        warnings.warn(f"passed over: {bad[0]}{others}", stacklevel=2)
    return records, offset + end


def _record_of(path: Path, line: bytes, number: int | None) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise fail(path, f"a record has at most {_LONGEST_LINE:,} bytes.", number)
    try:
        # The records of a file are all kept.
        check_json_size(line, len(line), least=_LEAST_OF_RECORD)
        record = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise fail(path, f"expected a JSON object, {error}", number) from None
    return _check_record(path, record, number)


def _check_record(path: Path, record: Any, line: int | None) -> dict[str, Any]:
    kinds = {"key": str, "dataset": str, "method": str, "split": int, "seed": int}
    if not isinstance(record, dict):
        raise fail(path, f"expected a JSON object, got {record!r}", line)
    for name, kind in kinds.items():
        if not isinstance(record.get(name), kind):
            raise fail(
                path, f"{name} must be {kind.__name__}, got {record.get(name)!r}", line
            )
    if record.get("status") not in ("done", "failed"):
        raise fail(
            path, f"status must be done or failed, got {record.get('status')!r}", line
        )
    if record["status"] == "done" and not isinstance(record.get("losses"), dict):
        raise fail(path, "a record that is done must have losses", line)
    return record


def _start_time(pid: int) -> str | None:
    """Return when a process started, in the system's own unit; None: not known."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[19]


def _is_alive(pid: int, started: str | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    # The number may have gone to another process since.
    return started is None or _start_time(pid) == started


class Store:
    """The results of an experiment in a folder.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    retry_failed : bool
        Whether what has failed before counts as not finished.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from clml.experiments._store import Store
    >>> record = {"key": "a", "dataset": "d", "method": "m", "split": 0, "seed": 0,
    ...           "status": "failed", "reason": "time-out", "losses": None}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     first = store.claim("a")
    ...     store.finish(record)
    ...     first, store.claim("a")
    ('mine', 'finished')
    """

    def __init__(self, folder: Path, retry_failed: bool = False) -> None:
        self.folder = folder
        for name in (ARTIFACTS, CLAIMS, DATA):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in _WRITTEN:
            sweep_unfinished(folder / name, ABANDONED)
        self._offset = 0
        self._status: dict[str, str] = {}
        self._to_retry: set[str] = set()
        # Of the jobs that are claimed here: what tells our claim from a later one.
        self._tokens: dict[str, str] = {}
        self._tokens_lock = threading.Lock()
        with self._lock():
            self._refresh()
        if retry_failed:
            failed = (k for k, status in self._status.items() if status == "failed")
            self._to_retry = set(failed)

    def _lock(self) -> Any:
        return _locked(self.folder / _LOCK)

    def _refresh(self) -> None:
        """Take in what other runners have finished."""
        records, self._offset = read_lines(self.folder / RECORDS, self._offset)
        for record in records:
            self._status[record["key"]] = record["status"]
            self._to_retry.discard(record["key"])

    def is_finished(self, key: str) -> bool:
        """Whether a job needs not be run, as far as this object knows."""
        return key in self._status and key not in self._to_retry

    def _claim_path(self, key: str) -> Path:
        return self.folder / CLAIMS / f"{key}.json"

    def claim(self, key: str) -> Claim:
        """Take a job unless it is finished, or another runner is at it.

        Who has taken one calls :meth:`beat` now and then.

        Returns
        -------
        {"mine", "finished", "taken"}
        """
        path = self._claim_path(key)
        with self._lock():
            self._refresh()
            if self.is_finished(key):
                return "finished"
            if path.exists():
                if not _is_stale(path, self.folder / _LOCK):
                    return "taken"
                path.unlink(missing_ok=True)
            pid, token = os.getpid(), secrets.token_hex(16)
            owner = {
                "pid": pid,
                "started": _start_time(pid),
                "host": socket.gethostname(),
                "token": token,
            }
            # "x" refuses a file that is there: for systems whose locks do nothing.
            try:
                with path.open("x", encoding="utf-8") as file:
                    json.dump(owner, file)
            except FileExistsError:
                return "taken"
            with self._tokens_lock:
                self._tokens[key] = token
        return "mine"

    def beat(self) -> None:
        """Show that the jobs claimed here are being worked at."""
        with self._tokens_lock:
            claims = dict(self._tokens)
        for key, token in claims.items():
            path = self._claim_path(key)
            try:
                if _read_claim(path).get("token") == token:
                    os.utime(path)
            except (OSError, ValueError):
                continue  # finished meanwhile, or being taken over

    def _unclaim(self, key: str) -> None:
        """Remove our claim, under the lock; one of who took the job over stays."""
        with self._tokens_lock:
            token = self._tokens.pop(key, None)
        path = self._claim_path(key)
        try:
            is_ours = token is not None and _read_claim(path).get("token") == token
        except (OSError, ValueError):
            return
        if is_ours:
            path.unlink(missing_ok=True)

    def release(self, key: str) -> None:
        """Give a job back that was not finished."""
        with self._lock():
            self._unclaim(key)

    def finish(self, record: Mapping[str, Any], artifact: bytes | None = None) -> None:
        """Keep what came out of a job: first its artifact, then its record.

        A failure is not kept if another runner, who took the job over, has done it.
        """
        record = dict(record)
        if artifact is not None:
            name = f"{ARTIFACTS}/{record['key']}.npz"
            with atomic_file(self.folder / name) as file:
                file.write(artifact)
            record["artifact"] = name
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        with self._lock():
            self._refresh()
            if record["status"] == "done" or self._status.get(record["key"]) != "done":
                _append(self.folder / RECORDS, line, self._offset)
                self._refresh()
            self._unclaim(record["key"])

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Keep the resolved plan."""
        with self._lock(), atomic_texts(self.folder / PLAN) as [file]:
            json.dump(plan, file, indent=1, allow_nan=False)
            file.write("\n")


def _append(path: Path, line: bytes, end: int) -> None:
    """Write a line after the last whole one, and wait until it is on the disk."""
    is_new = not path.exists()
    with open_regular(path, _APPEND) as file:
        if file.tell() > end:
            file.truncate(end)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)


def _read_claim(path: Path) -> dict[str, Any]:
    with open_regular(path) as file:
        content = file.read(10_000)
    try:
        owner = json.loads(content)
    except RecursionError as error:
        raise ValueError(f"a claim must be a JSON object: {error}") from None
    if not isinstance(owner, dict):
        raise ValueError(f"a claim must be a JSON object, got {type(owner).__name__}.")
    return owner


def _is_stale(path: Path, clock: Path) -> bool:
    """Whether who claimed a job is gone.

    Parameters
    ----------
    path : Path
        Of the claim.
    clock : Path
        A file beside it that may be touched: machines that share a folder need not
        agree on the time, but the folder's own is one.
    """
    try:
        owner = _read_claim(path)
        pid, started, host = owner["pid"], owner["started"], owner["host"]
    except FileNotFoundError:
        return False  # just given back, on a system whose locks do nothing
    except (ValueError, KeyError):
        return True  # its writer was killed in the act, under the lock
    is_number = type(pid) is int and 0 < pid < 2**31
    if host == socket.gethostname() and is_number:
        return not _is_alive(pid, started)
    os.utime(clock)
    silence = clock.stat().st_mtime - path.stat().st_mtime
    return silence > _SILENCE_SECONDS

"""One reader, many inputs: each is read, refused with a good message, or a finding."""

from __future__ import annotations

import faulthandler
import json
import resource
import shutil
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _fuzz_bytes import Generator

_MIB = 2**20
# Memory that may be reserved beyond what the process has; most of it is never used.
_ADDRESS_SPACE = 2 * 2**30
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Reader:
    """What reads files of one kind, and how such files are made and damaged.

    Attributes
    ----------
    name : str
    suffix : str
        Of its files.
    seeds : callable
        Makes the sound files.
    read : callable
        Reads a file and uses what it read. Whatever is none of ``refusals`` is a
        finding, and so is a refusal that does not name the folder of the file.
    damage : callable
        Makes an input of the sound files, (seeds, generator) to bytes.
    refusals : tuple of exception types
    names_file : bool
        False for readers that are given text or values and know of no file.
    most_mib : int
        Memory that an input may take.
    """

    name: str
    suffix: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], Any]
    damage: Callable[[Sequence[bytes], Generator], bytes]
    refusals: tuple[type[BaseException], ...] = (ValueError,)
    names_file: bool = True
    most_mib: int = 64


@dataclass
class Tally:
    """What became of the inputs so far.

    Attributes
    ----------
    reader : str
    inputs, accepted, refused, other : int
    slowest_ms : float
        The most time of a processor that an input took.
    peak_mib : float
        The most memory that an input took beyond what the process had.
    findings : list of str
    """

    reader: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    other: int = 0
    slowest_ms: float = 0.0
    peak_mib: float = 0.0
    findings: list[str] = field(default_factory=list)

    def add(self, later: Tally) -> None:
        """Add what became of later inputs."""
        for name in ("inputs", "accepted", "refused", "other"):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.slowest_ms = max(self.slowest_ms, later.slowest_ms)
        self.peak_mib = max(self.peak_mib, later.peak_mib)
        self.findings += later.findings


def make_seeds(reader: Reader) -> list[bytes]:
    """Return the sound files, whatever those who make them warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return reader.seeds()


def input_of(reader: Reader, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """Return an input by its number; it depends on nothing else."""
    stream = zlib.crc32(reader.name.encode())
    return reader.damage(seeds, np.random.default_rng([seed, stream, number]))


def _memory(name: str) -> float:
    """Return a figure of /proc/self/status in MiB; 0 where there is no such file."""
    try:
        text = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    return int(text.partition(f"{name}:")[2].split()[0]) / 1024


def _forget_peak() -> None:
    try:
        _RESET.write_text("5", encoding="ascii")
    except OSError:  # not Linux: the peak is that of the process
        pass


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Make a request for much more memory an error, also if it is never touched."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    size = int(_memory("VmSize") * _MIB)
    try:
        if size:  # else there is nothing to count from
            resource.setrlimit(resource.RLIMIT_AS, (size + _ADDRESS_SPACE, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _verdict(reader: Reader, path: Path) -> str:
    """Return "accepted", "refused", or what is wrong."""
    try:
        reader.read(path)
    except reader.refusals as error:
        if reader.names_file and str(path.parent) not in str(error):
            return f"the file is not named: {type(error).__name__}: {str(error)[:300]}"
        return "refused"
    except Exception as error:  # whatever it is, it is wrong
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {str(error)[:300]}"
        return f"{reason} ({Path(where.filename).name}, {where.name})"
    return "accepted"


def run_inputs(
    reader: Reader,
    seeds: Sequence[bytes],
    folder: Path,
    numbers: Iterator[int] | range,
    *,
    seed: int = 0,
    hang_seconds: float = 60.0,
    budget_seconds: float = float("inf"),
    least: int = 0,
    progress: Path | None = None,
) -> Tally:
    """Read inputs in this process until there are no more or the time is up.

    An input that hangs ends the process, after its stack went to ``hang.txt``.

    Parameters
    ----------
    reader : Reader
    seeds : sequence of bytes
        What ``reader.seeds`` made.
    folder : Path
        For the file that is read, and for those that were findings.
    numbers : iterable of int
        Of the inputs.
    seed : int
    hang_seconds : float
        What an input may take.
    budget_seconds : float
        What all of them may take.
    least : int
        Inputs that are read in any case.
    progress : Path or None
        A file that always tells the number of the input and what was found before.
    """
    tally = Tally(reader.name)
    path = folder / "input" / f"f{reader.suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    _warm_up(reader, seeds, path)
    # Of this process: on a busy machine it would try too little.
    end = time.process_time() + budget_seconds
    with (
        open(folder / "hang.txt", "wb") as stack,
        _limited_memory(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for number in numbers:
            if tally.inputs >= least and time.process_time() > end:
                break
            # Some file systems wait for the disk where a file is written over.
            path.unlink(missing_ok=True)
            path.write_bytes(input_of(reader, seeds, seed, number))
            if progress is not None:
                state = {"number": number, "tally": asdict(tally)}
                progress.write_text(json.dumps(state), encoding="utf-8")
            _forget_peak()
            before = _memory("VmRSS")
            faulthandler.dump_traceback_later(hang_seconds, exit=True, file=stack)
            began = time.process_time()
            try:
                verdict = _verdict(reader, path)
            finally:
                faulthandler.cancel_dump_traceback_later()
            took = 1e3 * (time.process_time() - began)
            tally.slowest_ms = max(tally.slowest_ms, took)
            taken = max(0.0, _memory("VmHWM") - before)
            tally.peak_mib = max(tally.peak_mib, taken)
            if taken > reader.most_mib:
                verdict = f"it takes {taken:.0f} MiB, more than {reader.most_mib}"
            tally.inputs += 1
            if verdict in ("accepted", "refused"):
                setattr(tally, verdict, getattr(tally, verdict) + 1)
            else:
                tally.other += 1
                tally.findings.append(
                    f"{reader.name}, input {number}, kept in "
                    f"{keep(path, folder, number)}: {verdict}"
                )
    return tally


def _warm_up(reader: Reader, seeds: Sequence[bytes], path: Path) -> None:
    """Read the sound files: what compiles or is imported does so before the clock."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in seeds:
            path.write_bytes(data)
            try:
                reader.read(path)
            except reader.refusals:
                # Some seeds are hostile themselves; one must be sound.
                if data is seeds[0]:
                    raise


def keep(path: Path, folder: Path, number: int) -> Path:
    """Copy an input to where it stays; return its path there."""
    kept = folder / f"finding-{number}{path.suffix}"
    shutil.copyfile(path, kept)
    return kept

"""Inputs are read in processes of their own: one that crashes or hangs is seen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _fuzz_run import Reader, Tally, keep, make_seeds, run_inputs

_PROGRESS, _SEEDS = "progress.json", "seeds"


def run_in_children(
    reader: Reader,
    folder: Path,
    n_inputs: int,
    *,
    script: Path,
    seed: int = 0,
    batch: int = 5000,
    hang_seconds: float = 60.0,
) -> Tally:
    """Read inputs in one process after another; a crash ends one of them.

    Parameters
    ----------
    reader : Reader
    folder : Path
        For seeds, inputs and findings.
    n_inputs : int
    script : Path
        A Python file that calls ``serve`` with its readers if its first argument is
        "--child".
    seed : int
    batch : int
        Inputs of one process.
    hang_seconds : float
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_seeds(reader, folder / _SEEDS)
    tally = Tally(reader.name)
    number = 0
    while number < n_inputs:
        stop = min(number + batch, n_inputs)
        order = [reader.name, folder, number, stop, seed, hang_seconds]
        done = subprocess.run(
            [sys.executable, script, "--child", *map(str, order)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        reached = _read_progress(folder / _PROGRESS)
        if reached is None or (done.returncode == 0 and reached["number"] != stop):
            raise RuntimeError(f"{reader.name}: no input was read.\n{done.stderr}")
        tally.add(Tally(**reached["tally"]))
        if done.returncode != 0:
            path = folder / "input" / f"f{reader.suffix}"
            kept = keep(path, folder, reached["number"])
            tally.inputs += 1
            tally.other += 1
            tally.findings.append(
                f"{reader.name}, input {reached['number']}, kept in {kept}: the "
                f"process ended with {_named(done.returncode)}.\n"
                f"{(folder / 'hang.txt').read_text()[-2000:]}{done.stderr[-2000:]}"
            )
        number = reached["number"] + (done.returncode != 0)
        (folder / _PROGRESS).unlink()
    return tally


def serve(find: Callable[[str], Reader], order: list[str]) -> None:
    """Read one batch in this process, as ``run_in_children`` ordered it."""
    name, place, start, stop, seed, hang_seconds = order
    folder = Path(place)
    progress = folder / _PROGRESS
    tally = run_inputs(
        find(name),
        _read_seeds(folder / _SEEDS),
        folder,
        range(int(start), int(stop)),
        seed=int(seed),
        hang_seconds=float(hang_seconds),
        progress=progress,
    )
    state = {"number": int(stop), "tally": vars(tally)}
    progress.write_text(json.dumps(state), encoding="utf-8")


def _write_seeds(reader: Reader, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for number, content in enumerate(make_seeds(reader)):
        (folder / f"{number:04d}").write_bytes(content)


def _read_seeds(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def _read_progress(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _named(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"

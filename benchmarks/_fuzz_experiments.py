"""Plans and the folders of results, which may come from anywhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _fuzz_archives import damaged_archive
from _fuzz_bytes import Generator, damaged, pick
from _fuzz_json import damaged_json
from _fuzz_run import Reader

PLAN = """
name = "trial"
notes = ["a note"]
datasets = ["flags", {name = "own", path = "own.arff", labels = "own.xml"},
            {name = "made", synthetic = {n_samples = 50, random_state = 0}}]
splits = 2
seeds = [0, 1]
losses = ["hamming", "micro_f1"]
test_size = 0.3
limits = {seconds = 60.0, memory_mb = 500, threads = 1}
[methods.CLML.settings]
max_epochs = 20
search = {kind = "ascent", smoothing = 0.25}
network = {kind = "paper", embedding_dim = 8}
[methods.forest]
estimator = "sklearn.ensemble:RandomForestClassifier"
scale = false
datasets = ["flags"]
[ablation]
method = "CLML"
setting = "network__n_layers"
values = [1, 2]
datasets = ["made"]
"""
CONSISTENCY = b"""learner,rows,epochs,seed,loss,value,bayes
CLML,100,5,0,hamming,0.25,0.125
"cross-entropy",100,5,0,micro_f1,0.5,0.375
"""
_RESULTS_PLAN = {
    "name": "trial",
    "notes": ["a note"],
    "datasets": [{"name": "d"}, {"name": "e"}],
    "methods": [
        {"name": "a", "datasets": None, "group": "main"},
        {"name": "b", "datasets": ["d"], "group": "ablation"},
    ],
    "splits": 2,
    "seeds": [0, 1],
    "losses": ["hamming", "micro_f1"],
    "ablation": {
        "method": "a",
        "setting": "s",
        "values": [1, [2]],
        "datasets": ["d"],
        "names": ["a", "b"],
    },
}


def _record(dataset: str, method: str, split: int, seed: int) -> dict[str, Any]:
    key = f"{dataset}{method}{split}{seed}"
    return {
        "key": key,
        "dataset": dataset,
        "method": method,
        "split": split,
        "seed": seed,
        "status": "done" if (split, seed) != (1, 1) else "failed",
        "losses": {"test": {"hamming": 0.1, "micro_f1": 0.5}, "train": None},
        "seconds": {"fit": 1.5, "total": 2},
        "peak_memory_mb": 100.0,
        "artifact": f"artifacts/{key}.npz",
        "versions": {"clml": "0.1"},
        "reason": None,
    }


_RECORDS = [
    _record(dataset, method, split, seed)
    for dataset, method in (("d", "a"), ("d", "b"), ("e", "a"))
    for split in (0, 1)
    for seed in (0, 1)
]


def _lines(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _artifact() -> list[bytes]:
    from clml.experiments._cell_data import packed

    arrays = {
        "labels": np.array(["x", "yz"]),
        "history/measure": np.linspace(0, 1, 5),
        "history/loss_names": np.array(["hamming"]),
        "front/test": np.ones((3, 1)),
        "front/chosen": np.asarray(-1),
        "front/hits": np.zeros((3, 2), dtype=np.int64),
    }
    return [packed(arrays), packed({"probability/after": np.arange(20)})]


# --- damage ----------------------------------------------------------------------


def _as_toml(value: Any) -> str:
    """Return a value of JSON as TOML writes it within a line."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(k)} = {_as_toml(v)}" for k, v in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_toml, value))}]"
    # There is no null in TOML; 1e308 and long integers are written alike.
    return '"none"' if value is None else json.dumps(value)


def _damaged_plan(seeds: Sequence[bytes], generator: Generator) -> bytes:
    """Return a plan whose text or whose entries are damaged."""
    import tomllib

    if generator.random() < 0.4:
        return damaged(seeds[0], seeds, generator)
    entries = tomllib.loads(seeds[0].decode())
    try:
        tree = json.loads(damaged_json(json.dumps(entries), generator))
        if not isinstance(tree, dict):
            tree = {"datasets": tree, "methods": tree}
        lines = [f"{json.dumps(k)} = {_as_toml(v)}" for k, v in tree.items()]
    except (ValueError, RecursionError):
        return damaged(seeds[0], seeds, generator)
    return "\n".join(lines).encode()


def _damaged_text_or_json(seeds: Sequence[bytes], generator: Generator) -> bytes:
    seed = pick(generator, seeds)
    if generator.random() < 0.3:
        return damaged(seed, seeds, generator)
    return damaged_json(seed, generator)


def _damaged_lines(seeds: Sequence[bytes], generator: Generator) -> bytes:
    if generator.random() < 0.3:
        return damaged(pick(generator, seeds), seeds, generator)
    lines = list(pick(generator, seeds).splitlines())
    for _ in range(int(generator.geometric(0.4))):
        place = int(generator.integers(len(lines)))
        try:
            lines[place] = damaged_json(lines[place], generator)
        except (ValueError, RecursionError):  # by an earlier change
            continue
    return b"\n".join(lines) + b"\n"


# --- reading ---------------------------------------------------------------------


def _read_plan(path: Path) -> Any:
    from clml.experiments import read_plan

    plan = read_plan(path)
    repr(plan)
    return json.dumps(plan.as_dict())


def _use_results(folder: Path) -> None:
    """Read a folder and make the tables and the page of it."""
    from clml.experiments import Results, all_tables
    from clml.report import experiment_data

    results = Results.read(folder)
    repr(results)
    all_tables(results)
    json.dumps(experiment_data(results))
    _ = results.ablation, results.all_methods, results.failed
    for loss in results.losses[:5]:
        results.table(loss)
        results.spread(loss)
    for dataset in results.datasets[:3]:
        for method in results.methods[:3]:
            results.artifact(dataset, method)


def _with(name: str) -> Callable[[Path], None]:
    """Return what reads a folder in which one file is the input."""

    def read(path: Path) -> None:
        folder = path.parent
        artifacts = folder / "artifacts"
        artifacts.mkdir(exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(_RESULTS_PLAN))
        (folder / "records.jsonl").write_bytes(_lines(_RECORDS))
        path.replace(folder / name)
        try:
            _use_results(folder)
        finally:
            (folder / name).replace(path)

    return read


def _read_study(path: Path) -> Any:
    from clml.experiments import read_consistency

    return repr(read_consistency(path))


def _claim(path: Path) -> None:
    """Ask for a job that somebody has claimed, whatever that claim says."""
    from clml.experiments._store import Store

    store = Store(path.parent)
    claim = path.parent / "claims" / "job.json"
    # By the system, which takes none of this process's memory for it.
    shutil.copyfile(path, claim)
    if store.claim("job") == "taken":
        raise ValueError(f"{path}: somebody is at it")
    # Somebody writes over ours.
    shutil.copyfile(path, claim)
    store.beat()
    store.release("job")


def _claims() -> list[bytes]:
    import os
    import socket

    owner = {"pid": os.getpid(), "started": "1", "host": socket.gethostname()}
    return [json.dumps({**owner, "token": "a" * 32}).encode()]


def experiment_readers() -> list[Reader]:
    """Return the readers of ``clml.experiments``."""
    plan = json.dumps(_RESULTS_PLAN).encode()
    loose = json.dumps({**_RESULTS_PLAN, "datasets": ["d"], "methods": ["a", "b"]})
    return [
        Reader("plans", ".toml", lambda: [PLAN.encode()], _read_plan, _damaged_plan),
        Reader(
            "plans of results",
            ".json",
            lambda: [plan, loose.encode()],
            _with("plan.json"),
            _damaged_text_or_json,
        ),
        Reader(
            "records",
            ".jsonl",
            lambda: [_lines(_RECORDS)],
            _with("records.jsonl"),
            _damaged_lines,
        ),
        Reader(
            "artifacts", ".npz", _artifact, _with("artifacts/da00.npz"), damaged_archive
        ),
        Reader(
            "consistency studies",
            ".csv",
            lambda: [CONSISTENCY],
            _read_study,
            lambda seeds, generator: damaged(seeds[0], seeds, generator),
        ),
        Reader("claims", ".json", _claims, _claim, _damaged_text_or_json),
    ]

"""Files that are sound and mean harm: places, threads, towers, numbers, pipes.

The other inputs are damaged. These are what somebody would write who knows the format:
learners that name folders and clusters or ask for thousands of threads, one that is
held without number, weights that are none, and pipes where files should be.
"""

from __future__ import annotations

import copy
import io
import json
import os
import shutil
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _fuzz_archives import Members, resealed, unzipped, zipped
from _fuzz_bytes import Generator, pick
from _fuzz_models import (
    baselines,
    classifiers,
    deep_baselines,
    forests,
    own_tuned,
    predicted,
    saved,
    tuned,
)
from _fuzz_npy import saved_array
from _fuzz_run import Reader

_PLACES = ("checkpoint", "client", "memory")
_THREADS = ("n_jobs", "_n_threads", "n_threads")
_TEXTS = ["tcp://127.0.0.1:1", "/proc/harm", "../harm", "", "\0", "C:\\harm"]
_COUNTS = [20_000, 2**31 - 1, 2**70, -(2**40), -20_000, 0, 1.5, True, "many"]
_NAMES = [
    "predict", "decision_function", "_logits", "fit", "_search", "_restore",
    "_validate_params", "_parameter_constraints", "__class__", "transform", "input",
    "pre_dispatch", "shapes", "_skl_callbacks", "_not_saved",
]  # fmt: skip
_LARGEST_HELD = 20_000
_NO_NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


# --- the files of this library ---------------------------------------------------


def _estimators(tree: Any) -> list[dict[str, Any]]:
    return [
        node["value"]
        for node in _nodes(tree)
        if node.get("type") == "estimator" and isinstance(node.get("value"), dict)
    ]


def _set_entry(entries: list[Any], name: str, value: Any) -> None:
    entries[:] = [entry for entry in entries if entry[0] != name] + [[name, value]]


def _own_place(state: Any, generator: Generator) -> None:
    estimator: Any = pick(generator, _estimators(state))
    _set_entry(
        estimator["parameters"], pick(generator, _PLACES), pick(generator, _TEXTS)
    )


def _own_threads(state: Any, generator: Generator) -> None:
    estimator: Any = pick(generator, _estimators(state))
    _set_entry(estimator["parameters"], "n_jobs", pick(generator, _COUNTS))


def _own_name(state: Any, generator: Generator) -> None:
    estimator: Any = pick(generator, _estimators(state))
    _set_entry(estimator["attributes"], pick(generator, _NAMES), 1)


def _own_tower(state: Any, generator: Generator) -> None:
    """Put stacks around the model, each of which holds the one below it often."""
    node = state["content"]
    first = len(_estimators(node)) + sum(n.get("type") == "skops" for n in _nodes(node))
    width = int(generator.integers(1, 12))
    # Mostly low: what may still be loaded is shown, which takes its time.
    for level in range(min(int(generator.geometric(0.4)), 12)):
        again = {"type": "same", "value": first - 1 + level}
        held = [node, *[again] * (width - 1)]
        node = {
            "type": "estimator",
            "value": {
                "class": "LebesgueStackingClassifier",
                "parameters": [["estimators", held]],
                "attributes": [],
            },
        }
    state["content"] = node


def _own_number(state: Any, generator: Generator) -> None:
    """Replace one of the floats that stand in the text."""
    places: list[tuple[Any, Any]] = []
    for node in _nodes(state["content"]):
        for value in node.values():
            for entry in value if isinstance(value, list) else ():
                if isinstance(entry, list) and len(entry) == 2:
                    places += [(entry, 1)] * (type(entry[1]) is float)
    if places:
        parent, key = pick(generator, places)
        bad = float(pick(generator, _NO_NUMBERS))
        written = {"type": "float", "value": repr(bad)}
        parent[key] = bad if np.isfinite(bad) else written
    scalars = [n for n in _nodes(state["content"]) if n.get("type") == "scalar"]
    if scalars:
        node: Any = pick(generator, scalars)
        if node["value"][0] == "<f8":
            content = struct.pack("<d", float(pick(generator, _NO_NUMBERS)))
            node["value"][1] = content.hex()


# --- what skops writes -----------------------------------------------------------


def _json_node(value: Any) -> dict[str, Any]:
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def _objects(schema: Any) -> list[dict[str, Any]]:
    """Return the attributes of each object."""
    found = []
    for node in _nodes(schema):
        content = node.get("content")
        if node.get("__loader__") == "ObjectNode" and isinstance(content, dict):
            if isinstance(content.get("content"), dict):
                found.append(content)
    return found


def _give(attributes: dict[str, Any], name: str, value: dict[str, Any]) -> None:
    if name not in attributes["content"]:
        text = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
        attributes["key_types"]["content"].append(text)
    attributes["content"][name] = value


def _foreign_value(names: Sequence[str], values: Sequence[Any]) -> Any:
    def change(schema: Any, generator: Generator) -> None:
        attributes: Any = pick(generator, _objects(schema))
        value = _json_node(pick(generator, values))
        _give(attributes, str(pick(generator, names)), value)

    return change


def _foreign_tower(schema: Any, generator: Generator) -> None:
    """Have objects hold each other often, on some levels."""
    objects = _objects(schema)
    number = 1
    for _ in range(int(generator.integers(1, 24))):
        number += 1
        owner: Any = pick(generator, objects)
        held: Any = pick(generator, objects)
        if len(json.dumps(held)) > _LARGEST_HELD:  # or the file would be what is large
            continue
        held = copy.deepcopy(held)
        node = {
            "__class__": "dict",
            "__module__": "builtins",
            "__loader__": "DictNode",
            "__id__": number,
            "content": held["content"],
            "key_types": held["key_types"],
        }
        for place in range(int(generator.integers(1, 12))):
            _give(owner, f"more{place}_", node if not place else {"__id__": number})


# --- both ------------------------------------------------------------------------


_OF_STATE = [_own_place, _own_threads, _own_name, _own_tower, _own_number]
_OF_SCHEMA = [
    _foreign_value(_PLACES, _TEXTS),
    _foreign_value(_THREADS, _COUNTS),
    _foreign_value(_NAMES, ["filename", 1, None, "print('harm')"]),
    _foreign_tower,
]


def _other_numbers(content: bytes, generator: Generator) -> bytes:
    """Return an array of floats with one that is none, or must not be."""
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype.kind != "f" or not array.size:
        return content
    changed = array.copy()
    changed.flat[int(generator.integers(array.size))] = pick(generator, _NO_NUMBERS)
    return saved_array(changed)


def _hostile_schema(content: bytes, generator: Generator) -> bytes:
    """Return what skops wrote after an attack or a few."""
    members, comment = unzipped(content)
    named = dict(members)
    schema = json.loads(named["schema.json"])
    for _ in range(int(generator.geometric(0.6))):
        pick(generator, _OF_SCHEMA)(schema, generator)  # type: ignore[operator]
    named["schema.json"] = json.dumps(schema).encode()
    return zipped(list(named.items()), comment)


def hostile_archive(seeds: Sequence[bytes], generator: Generator) -> bytes:
    """Return one of the files after some attacks, its checksums put right."""
    sound, comment = unzipped(pick(generator, seeds))  # type: ignore[arg-type]
    named = dict(sound)
    for _ in range(int(generator.geometric(0.7))):
        _attack(named, generator)
    members: Members = list(named.items())
    return zipped(*resealed(members, sound, comment))


def _attack(named: dict[str, bytes], generator: Generator) -> None:
    inner = [n for n, c in named.items() if n != "state.json" and b"PK\x03\x04" in c]
    arrays = [n for n in named if n.endswith(".npy") and n not in inner]
    choice = generator.random()
    if inner and choice < 0.5:
        name = str(pick(generator, inner))
        start = named[name].find(b"PK\x03\x04")
        changed = _hostile_schema(named[name][start:], generator)
        named[name] = saved_array(np.frombuffer(changed, dtype=np.uint8))
    elif arrays and choice > 0.7:
        name = str(pick(generator, arrays))
        named[name] = _other_numbers(named[name], generator)
    else:
        state = json.loads(named["state.json"])
        pick(generator, _OF_STATE)(state, generator)  # type: ignore[operator]
        named["state.json"] = json.dumps(state).encode()


def _check_harmless(model: Any) -> None:
    """Raise AssertionError, which is a finding, if a place or a crowd came out."""
    import joblib

    from clml.persistence._within import objects_within

    for node in objects_within(model):
        attributes = getattr(node, "__dict__", {})
        for name in _PLACES:
            assert attributes.get(name) is None, f"{type(node)} has {name}"
        for name in _THREADS:
            assert (attributes.get(name) or 1) <= joblib.cpu_count(), name


def _load_own(path: Path) -> None:
    """Load a model of this library alone: its predictions are numbers."""
    from clml.persistence import load

    model = load(path)
    _check_harmless(model)
    for scores in predicted(model, path):
        assert np.isfinite(scores).all(), "it predicts what is no number"


def _load_learners(path: Path) -> None:
    """Load a model with learners of others, which raise what they like."""
    from clml.persistence import load

    model = load(path)
    _check_harmless(model)
    try:
        list(predicted(model, path))
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: {error!r}") from error


# --- folders ---------------------------------------------------------------------


_FILES = ["plan.json", "records.jsonl", ".lock", "artifacts/a.npz", "claims/a.json"]
_STATES = ["checkpoint-0000000001.clml", "checkpoint-0000000002.clml"]
_KINDS = ["file", "pipe", "link to a pipe", "link to a device", "socket", "folder"]


def _folders() -> list[bytes]:
    names = [*_FILES, *_STATES]
    return [json.dumps([[name, "file"] for name in names]).encode()]


def _other_folder(seeds: Sequence[bytes], generator: Generator) -> bytes:
    files = json.loads(seeds[0])
    for _ in range(int(generator.geometric(0.5))):
        pick(generator, files)[1] = pick(generator, _KINDS)  # type: ignore[index]
    return json.dumps(files).encode()


def _make(place: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link to a pipe":
        os.mkfifo(f"{place}.pipe")
        place.symlink_to(f"{place.name}.pipe")
    elif kind == "link to a device":
        place.symlink_to("/dev/zero")
    elif kind == "socket":
        # Their paths are short.
        before = Path.cwd()
        os.chdir(place.parent)
        try:
            with socket.socket(socket.AF_UNIX) as file:
                file.bind(place.name)
        finally:
            os.chdir(before)
    elif kind == "folder":
        place.mkdir()


def _content(name: str) -> bytes:
    record = {"key": "a", "dataset": "d", "method": "m", "split": 0, "seed": 0}
    record |= {"status": "done", "losses": {"test": {"hamming": 0.5}}}
    record |= {"artifact": "artifacts/a.npz"}
    if name == "plan.json":
        plan = {"datasets": ["d"], "methods": ["m"], "losses": ["hamming"]}
        return json.dumps(plan).encode()
    if name == "records.jsonl":
        return json.dumps(record).encode() + b"\n"
    if name == "artifacts/a.npz":
        stream = io.BytesIO()
        np.savez(stream, a=np.arange(3))
        return stream.getvalue()
    return b""


def _use_folder(path: Path) -> None:
    """Make the folder that an input tells of; read, claim and go on in it."""
    from clml.experiments import Results
    from clml.experiments._store import Store
    from clml.persistence.checkpoint import Checkpoint

    files = json.loads(path.read_bytes())
    folder = path.parent / "results"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("artifacts", "claims"):
        (folder / name).mkdir(parents=True)
    states = Checkpoint(folder, 0, {"settings": {}})
    for name, kind in files:
        if kind != "file":
            _make(folder / name, kind)
        elif name in _STATES:
            states.offer(lambda: {"epoch": 1})
        else:
            (folder / name).write_bytes(_content(name))
    try:
        Results.read(folder).artifact("d", "m")
        Store(folder).claim("b")
        Checkpoint(folder, 0, {"settings": {}}).newest()
    except OSError as error:
        # A folder where a file should be, or a link where nothing is written.
        raise ValueError(f"{path}: {error}") from error


def hostile_readers() -> list[Reader]:
    """Return the readers of files that mean harm."""

    def reader(
        name: str, models: Callable[[], Iterator[Any]], read: Callable[[Path], None]
    ) -> Reader:
        return Reader(name, ".clml", partial(saved, models), read, hostile_archive)

    def own() -> Iterator[Any]:
        yield from classifiers()
        yield from baselines()
        yield from own_tuned()

    def learners() -> Iterator[Any]:
        yield from tuned()
        yield from forests()

    return [
        reader("hostile models", own, _load_own),
        reader("hostile networks", deep_baselines, _load_own),
        reader("hostile learners", learners, _load_learners),
        Reader("hostile folders", ".json", _folders, _use_folder, _other_folder),
    ]

"""Regular files alone are opened; what else has a name is not waited for."""

import os
import socket

import pytest

from clml._support.atomic import atomic_texts
from clml._support.paths import open_regular
from clml.datasets import (
    load_dataset,
    read_arff,
    read_csv,
    read_parquet,
    read_partitions,
    read_svmlight,
)
from clml.datasets._cache import recall
from clml.experiments import Results, read_consistency, read_plan
from clml.experiments._store import Store
from clml.persistence import load

pytestmark = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="this system has no pipes with names"
)
KIND = "expected a regular file, got a pipe"


def test_worked_example(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with open_regular(path) as file:
        assert file.read() == b"content"
    with open_regular(str(path), os.O_WRONLY | os.O_APPEND) as file:
        file.write(b" and more")
    (tmp_path / "link").symlink_to(path)
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"content and more"


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)


def pipe(path):
    os.mkfifo(path)


def link_to_a_pipe(path):
    os.mkfifo(f"{path}.pipe")
    path.symlink_to(f"{path}.pipe")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as file:
        file.bind(str(path))


def link_to_a_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (pipe, "a pipe"),
        (link_to_a_pipe, "a pipe"),
        (bound_socket, "a socket"),
        (link_to_a_device, "a device"),
    ],
)
def test_what_is_no_regular_file(make, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # paths of sockets are short
    path = tmp_path / "it"
    make(path if make is not bound_socket else path.relative_to(tmp_path))
    with pytest.raises(ValueError, match=f"it: expected a regular file, got {kind}"):
        open_regular(path)


def test_a_name_that_becomes_a_pipe_at_the_last_moment(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"")
    was_regular = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda path: was_regular)
    with pytest.raises(ValueError, match=KIND):
        open_regular(path)


READERS = {
    "model": ("m.clml", load),
    "arff": ("d.arff", lambda path: read_arff(path, ["y"])),
    "csv": ("d.csv", lambda path: read_csv(path, "y")),
    "parquet": ("d.parquet", lambda path: read_parquet(path, "y")),
    "svmlight": ("d.svm", read_svmlight),
    "plan": ("plan.toml", read_plan),
    "study": ("study.csv", read_consistency),
    "plan of results": ("plan.json", lambda path: Results.read(path.parent)),
    "records": ("records.jsonl", lambda path: Store(path.parent)),
    "lock": (".lock", lambda path: Store(path.parent)),
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_waits_for_a_pipe(name, tmp_path):
    file, read = READERS[name]
    os.mkfifo(tmp_path / file)
    with pytest.raises(ValueError, match=f"{file}: {KIND}"):
        read(tmp_path / file)


def test_records_that_are_a_pipe(tmp_path):
    with atomic_texts(tmp_path / "plan.json") as [file]:
        file.write('{"datasets": ["d"], "methods": ["m"]}')
    os.mkfifo(tmp_path / "records.jsonl")
    with pytest.raises(ValueError, match=f"records.jsonl: {KIND}"):
        Results.read(tmp_path)


def test_partitions_that_become_pipes(tmp_path):
    """Also between the time that they are found and that they are read."""
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    import numpy as np

    np.savez(tmp_path / "part.npz", X=np.ones((2, 3)), Y=np.ones((2, 1)))
    pq.write_table(pa.table({"a": [1.0], "y": [True]}), tmp_path / "part.parquet")
    arrays = read_partitions(tmp_path / "part.npz")
    table = read_partitions(tmp_path / "part.parquet", labels=["y"])
    for partitions, name in ((arrays, "part.npz"), (table, "part.parquet")):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        with pytest.raises(ValueError, match=f"{name}: {KIND}"):
            partitions.load(0)


def test_copies_and_datasets_that_are_pipes(tmp_path):
    os.mkfifo(tmp_path / "key.npz")
    assert recall(tmp_path, "key", "source") is None
    (tmp_path / "flags").mkdir()
    os.mkfifo(tmp_path / "flags" / "flags.arff")
    with pytest.raises((ValueError, FileNotFoundError), match="flags"):
        load_dataset("flags", data_home=tmp_path, download=False)


def test_claims_that_are_pipes_are_nobodys(tmp_path):
    store = Store(tmp_path)
    os.mkfifo(tmp_path / "claims" / "job.json")
    assert store.claim("job") == "mine"


@pytest.mark.parametrize("name", [".lock", "records.jsonl"])
def test_nothing_is_written_through_a_link(name, tmp_path):
    record = {"key": "a", "dataset": "d", "method": "m", "split": 0, "seed": 0}
    target = tmp_path / "elsewhere"
    target.write_bytes(b"")
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(OSError, match=name):
        Store(folder).finish({**record, "status": "failed", "losses": None})
    assert target.read_bytes() == b""

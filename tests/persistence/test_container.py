"""The archive: whole or not at all, and nothing but what belongs in it."""

import hashlib
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from clml.persistence import _container
from clml.persistence._container import Container, write_container


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def test_worked_example(path):
    write_container(path, {"a": [1, 0.5]}, [np.arange(3), np.array("x")])
    with open(path, "rb") as file:
        container = Container(file)
        assert container.has_checksums
        assert container.state() == {"a": [1, 0.5]}
        assert container.take(1).tolist() == "x"
        with pytest.raises(ValueError, match="array 0 belongs to nothing"):
            container.check_all_taken()
        assert container.take(0).tolist() == [0, 1, 2]
        container.check_all_taken()
        for index in (0, 2, -1, True, "0", None, []):
            with pytest.raises(ValueError, match="there is no array"):
                container.take(index)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("moment", ["write_array", "fsync", "replace"])
def test_interrupted_write_leaves_what_was_there(error, moment, path, monkeypatch):
    path.write_bytes(b"before")

    def interrupt(*arguments, **keywords):
        raise error

    place = _container if moment == "write_array" else os
    monkeypatch.setattr(place, moment, interrupt)
    with pytest.raises(error):
        write_container(path, {}, [np.zeros(3)])
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]


def test_file_is_on_the_disk_before_it_has_its_name(path, monkeypatch):
    events = []
    for name in ("fsync", "replace"):
        plain = getattr(os, name)

        def noted(*arguments, name=name, plain=plain):
            events.append((name, path.exists()))
            return plain(*arguments)

        monkeypatch.setattr(os, name, noted)
    write_container(path, {}, [])
    assert events[:2] == [("fsync", False), ("replace", False)]


def test_long_state_is_refused_both_ways(path, monkeypatch):
    write_container(path, {"a": "x" * 100}, [])
    monkeypatch.setattr(_container, "_LONGEST_STATE", 50)
    with open(path, "rb") as file, pytest.raises(ValueError, match="more than 50"):
        Container(file).state()
    with pytest.raises(ValueError, match="more than the 50 that a file may hold"):
        write_container(path, {"a": "x" * 100}, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ('{"a": 1, "a": 2}', "a key twice"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("1e999", "too large for a float"),
        ("9" * 5000, "Exceeds the limit"),
        ("é", "codec can't decode"),
    ],
    ids=range(8),
)
def test_bad_json(text, message, write_zip):
    with (
        open(write_zip({"state.json": text}), "rb") as file,
        pytest.raises(ValueError, match=message),
    ):
        Container(file).state()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "'state.json' is missing"),
        (["array0.npy"], "'array0.npy' is unknown"),
        (["array0.npy", "array1.npy"], "'array1.npy' is unknown"),
        (["state.json", "array1.npy"], "'array1.npy' is unknown"),
        (["state.json", "array00.npy"], "'array00.npy' is unknown"),
        (["state.json", "../array0.npy"], "'../array0.npy' is unknown"),
        (["/state.json"], "'/state.json' is unknown"),
        (["state.json", "folder/"], "'folder/' is unknown"),
        (["state.json", "x" * 1000], "unknown"),
        (["state.json", "\N{BOMB}"], "unknown"),
    ],
    ids=range(10),
)
def test_members(names, message, write_zip):
    path = write_zip([(name, b"") for name in names])
    with open(path, "rb") as file, pytest.raises(ValueError, match=message):
        Container(file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["state.json", "array0.npy"])
def test_member_that_is_there_twice(name, write_zip):
    path = write_zip([("state.json", b"{}"), ("array0.npy", b""), (name, b"")])
    with open(path, "rb") as file, pytest.raises(ValueError, match="is missing"):
        Container(file)


@pytest.mark.parametrize("method", ["ZIP_DEFLATED", "ZIP_BZIP2", "ZIP_LZMA"])
def test_compressed_members(method, write_zip):
    """A bomb is refused by what it says of itself."""
    content = {"state.json": b"0" * 10**7}
    path = write_zip(content, compression=getattr(zipfile, method))
    assert path.stat().st_size < 20_000
    with open(path, "rb") as file, pytest.raises(ValueError, match="is compressed"):
        Container(file)


def test_members_larger_than_the_file(write_zip):
    """Two entries of the directory point to the same bytes."""
    path = write_zip({"state.json": b"x" * 1000, "array0.npy": b"x" * 1000})
    content = path.read_bytes()
    directory = content[content.index(b"PK\x01\x02") :]
    # The second member is cut out, and its entry says to begin where the first does.
    first = content[: content.index(b"PK\x03\x04", 4)]
    offset = len(first).to_bytes(4, "little")
    assert directory.count(offset) == 1
    directory = directory.replace(offset, b"\0" * 4)
    start = len(content) - len(directory)
    directory = directory.replace(
        start.to_bytes(4, "little"), len(first).to_bytes(4, "little")
    )
    path.write_bytes(first + directory)
    with open(path, "rb") as file, pytest.raises(ValueError, match="larger than"):
        Container(file)


def test_json_that_would_take_much_more_memory_than_its_text(write_zip):
    """It is refused before it is parsed."""
    text = b'{"format": [' + b"[]," * 10**6 + b"0]}"
    digest = hashlib.sha256(text).hexdigest()
    path = write_zip(
        {"state.json": text}, comment=f"sha256 of state.json: {digest}".encode()
    )
    tracemalloc.start()
    try:
        with open(path, "rb") as file, pytest.raises(ValueError, match="would take"):
            Container(file).state()
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


def test_what_is_written_can_be_read(tmp_path):
    """Names of very many labels; and what could not be read is not written."""
    path = tmp_path / "file"
    names = [f"label number {i}" for i in range(300_000)]
    write_container(path, {"names": names}, [])
    with open(path, "rb") as file:
        assert Container(file).state() == {"names": names}
    with pytest.raises(ValueError, match="its JSON would take"):
        write_container(path, {"lists": [[]] * 10**6}, [])
    with open(path, "rb") as file:
        assert Container(file).state() == {"names": names}

"""Disks that are full, folders that are not there, processes that are killed."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from clml.baselines import MLkNNClassifier
from clml.persistence import load, save


@pytest.fixture(scope="module")
def model(small_data):
    return MLkNNClassifier(n_neighbors=3).fit(*small_data)


@pytest.fixture
def path(model, tmp_path):
    """A model that is there already."""
    where = tmp_path / "model.clml"
    save(model, where)
    return where


def assert_untouched(path, before):
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_disk_that_fails(code, moment, model, path, monkeypatch):
    before = path.read_bytes()

    def fails(*arguments):
        raise OSError(code, os.strerror(code), "somewhere")

    monkeypatch.setattr(os, moment, fails)
    with pytest.raises(OSError, match=os.strerror(code)) as found:
        model.save(path)
    assert found.value.errno == code
    assert found.value.filename == str(path)
    assert "The model could not be written" in str(found.value)
    assert_untouched(path, before)


@contextmanager
def files_no_longer_than(n_bytes):
    resource = pytest.importorskip("resource", reason="of POSIX")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("n_bytes", [0, 1, 1000, 12_000])
def test_file_that_may_not_grow(n_bytes, model, path):
    """The system itself refuses a write, at its beginning or in its middle."""
    before = path.read_bytes()
    assert len(before) > n_bytes
    with files_no_longer_than(n_bytes), pytest.raises(OSError) as found:
        model.save(path)
    assert found.value.errno == errno.EFBIG
    assert found.value.filename == str(path)
    assert_untouched(path, before)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 16 KB, where this process may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        done = None
    if done is None or done.returncode:
        pytest.skip("this process may not mount a file system")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_full_disk(small_data, small_disk):
    X, Y = small_data
    path = small_disk / "model.clml"
    MLkNNClassifier(n_neighbors=3).fit(X[:20], Y[:20]).save(path)
    before = path.read_bytes()
    with pytest.raises(OSError, match="No space left") as found:
        MLkNNClassifier(n_neighbors=3).fit(np.tile(X, (9, 1)), np.tile(Y, (9, 1))).save(
            path
        )
    assert found.value.errno == errno.ENOSPC
    assert_untouched(path, before)
    assert load(path).n_labels_ == 4


@contextmanager
def an_ordinary_user():
    """Permissions do not hold root back."""
    if os.name != "posix" or os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_folder_that_may_not_be_written(model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.clml")
        save(model, path)
        before = path.read_bytes()
        Path(folder).chmod(0o555)
        try:
            with an_ordinary_user():
                if os.access(folder, os.W_OK, effective_ids=os.name == "posix"):
                    pytest.skip("permissions do not hold here")
                with pytest.raises(PermissionError, match="could not be written") as e:
                    model.save(path)
        finally:
            Path(folder).chmod(0o700)
        assert e.value.filename == str(path)
        assert_untouched(path, before)


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("absent/model.clml", FileNotFoundError, "No such folder: .*absent"),
        (".", IsADirectoryError, "is a folder, expected the path of a file"),
        ("model.clml/more.clml", FileNotFoundError, "No such folder: .*model.clml"),
    ],
)
def test_places_that_cannot_be(place, error, message, model, path):
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        model.save(path.parent / place)
    assert_untouched(path, before)


def test_folder_that_is_read(tmp_path):
    with pytest.raises(OSError):  # IsADirectoryError, or PermissionError on Windows
        load(tmp_path)


CHILD = """
import os, sys
from clml.baselines import MLkNNClassifier

def wait(*arguments):
    print("written", flush=True)
    sys.stdin.read()

os.fsync = wait
MLkNNClassifier().save(sys.argv[1])
"""


def test_killed_before_the_file_has_its_name(path):
    before = path.read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout.readline() == b"written\n"
        child.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    assert path.read_bytes() == before
    assert load(path).n_labels_ == 4
    # What is left cannot be taken for a model, and is no longer than one.
    (left,) = [each for each in path.parent.iterdir() if each != path]
    assert left.suffix == ".part"

"""A folder of states: which one is read, what is left behind, what is refused."""

import errno
import os
import stat
import time

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from clml.persistence import checkpoint as _checkpoint
from clml.persistence.checkpoint import KIND, Checkpoint
from clml.persistence.file import FileKind, write_file

IDENTITY = {"settings": {"max_epochs": 100, "ties": None}, "data": {"X": "9f86"}}


def checkpoint(folder, every=0, **changes):
    return Checkpoint(folder, every, {**IDENTITY, **changes})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_state_is_read(tmp_path):
    folder = tmp_path / "made" / "anew"
    first = checkpoint(folder)
    assert first.newest() is None
    first.offer(lambda: {"epoch": 1, "theta": np.arange(3.0)})
    first.offer(lambda: {"epoch": 2, "theta": np.arange(4.0)})
    found = checkpoint(folder).newest()
    assert found["epoch"] == 2
    np.testing.assert_array_equal(found["theta"], np.arange(4.0))


def test_two_generations_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    kept = checkpoint(tmp_path)
    for epoch in range(5):
        kept.offer(lambda epoch=epoch: {"epoch": epoch})
    assert names(tmp_path) == [
        "checkpoint-0000000004.clml",
        "checkpoint-0000000005.clml",
        "notes.txt",
    ]
    # Another run in the folder counts on.
    checkpoint(tmp_path).offer(lambda: {"epoch": 9})
    assert names(tmp_path)[-2] == "checkpoint-0000000006.clml"


def test_states_are_made_only_when_it_is_time(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    kept = checkpoint(tmp_path, every=60)
    made = []

    def state():
        made.append(now[0])
        return {}

    for seconds in (10, 59, 61, 100, 121.5):
        now[0] = 100 + seconds
        kept.offer(state)
    assert made == [161, 221.5]
    kept.offer(state, now=True)
    assert len(made) == 3


def test_a_clock_that_is_set_back_changes_nothing(tmp_path, monkeypatch):
    kept = checkpoint(tmp_path, every=0)
    kept.offer(lambda: {"epoch": 1})
    monkeypatch.setattr(time, "time", lambda: -1e9)
    old = next(tmp_path.iterdir())
    os.utime(old, (2e9, 2e9))  # as if written long after what follows
    kept.offer(lambda: {"epoch": 2})
    assert checkpoint(tmp_path).newest() == {"epoch": 2}


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_state_gives_way_to_the_one_before(tmp_path, damage):
    kept = checkpoint(tmp_path)
    for epoch in (1, 2):
        kept.offer(lambda epoch=epoch: {"epoch": epoch, "theta": np.ones(99)})
    newest = tmp_path / names(tmp_path)[-1]
    content = bytearray(newest.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
    else:
        content.clear()
    newest.write_bytes(content)
    with pytest.warns(UserWarning, match="goes on from the one before it, number 1"):
        assert checkpoint(tmp_path).newest()["epoch"] == 1
    # Nothing was removed, and the next state has a number of its own.
    checkpoint(tmp_path).offer(lambda: {"epoch": 2})
    assert names(tmp_path)[-1] == "checkpoint-0000000003.clml"


def test_the_last_good_state_outlives_a_damaged_one(tmp_path):
    kept = checkpoint(tmp_path)
    for epoch in (1, 2):
        kept.offer(lambda epoch=epoch: {"epoch": epoch})
    (tmp_path / names(tmp_path)[-1]).write_bytes(b"")
    again = checkpoint(tmp_path)
    with pytest.warns(UserWarning, match="number 1"):
        again.newest()
    again.offer(lambda: {"epoch": 2})
    assert names(tmp_path) == [
        "checkpoint-0000000001.clml",
        "checkpoint-0000000003.clml",
    ]


def test_states_hold_no_objects(tmp_path):
    path = tmp_path / "checkpoint-0000000001.clml"
    write_file(path, KIND, {"identity": IDENTITY, "state": GaussianNB()})
    with pytest.raises(ValueError, match="values of type 'estimator' are unknown"):
        checkpoint(tmp_path).newest()


def test_the_order_of_keys_does_not_matter(tmp_path):
    before, now = {"a": 1, "b": [2.0]}, {"b": [2.0], "a": 1}
    checkpoint(tmp_path, settings={"sigma0": before}).offer(lambda: {"epoch": 1})
    assert checkpoint(tmp_path, settings={"sigma0": now}).newest() == {"epoch": 1}


def test_one_row_is_not_all_rows(tmp_path):
    """Where an integer is a number of rows, a float is a share of them."""
    checkpoint(tmp_path, settings={"epoch_rows": 1}).offer(lambda: {"epoch": 1})
    with pytest.raises(ValueError, match=r"epoch_rows was 1 there and is 1\.0 here"):
        checkpoint(tmp_path, settings={"epoch_rows": 1.0}).newest()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"settings": {"n_neighbors": 5}}, "estimator.n_neighbors was 3 there and is"),
        ({"code": "cd"}, "estimator has other code"),
        ({"state": "cd"}, "estimator holds other values"),
        ({"class": "C"}, "estimator.class was 'A:B' there and is 'C' here"),
        ({"more": 1}, "estimator was {.* there and is {.* here"),
    ],
)
def test_it_is_said_where_an_estimator_differs(tmp_path, part, message):
    estimator = {
        "class": "A:B",
        "settings": {"n_neighbors": 3, "p": 2},
        "code": "ab",
        "state": "ab",
    }
    kept = checkpoint(tmp_path, settings={"estimator": estimator})
    kept.offer(lambda: {"epoch": 1})
    now = {**estimator, **part}
    now["settings"] = {**estimator["settings"], **now["settings"]}
    with pytest.raises(ValueError, match=message) as caught:
        checkpoint(tmp_path, settings={"estimator": now}).newest()
    assert "; " not in str(caught.value)


def test_no_state_that_can_be_read(tmp_path):
    (tmp_path / "checkpoint-0000000007.clml").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="holds no state that can be read"):
        checkpoint(tmp_path).newest()


def test_a_state_of_a_newer_version(tmp_path):
    newer = FileKind(KIND.name, KIND.version + 1)
    path = tmp_path / "checkpoint-0000000001.clml"
    write_file(path, newer, {"identity": IDENTITY, "state": {}})
    with pytest.raises(ValueError, match=rf"version {KIND.version + 1}.*reads up to"):
        checkpoint(tmp_path).newest()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"settings": {"max_epochs": 200, "ties": None}},
            "max_epochs was 100 there and is 200 here",
        ),
        (
            {"settings": {"max_epochs": 100, "ties": "depth"}},
            "ties was None there and is 'depth' here",
        ),
        ({"data": {"X": "ab12"}}, "X holds other values"),
        (
            {"data": {"X": "9f86", "sample_weight": "1"}},
            "sample_weight was not given there and is here",
        ),
        ({"data": {}}, "X was given there and is not here"),
    ],
)
def test_another_fit_is_named(tmp_path, changes, message):
    checkpoint(tmp_path).offer(lambda: {})
    with pytest.raises(ValueError, match="belongs to another fit") as caught:
        checkpoint(tmp_path, **changes).newest()
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"state": {}},
        {"identity": 3, "state": {}},
        {"identity": {"settings": 3}, "state": {}},
        {"identity": {}, "state": {}, "more": 1},
    ],
)
def test_files_that_hold_something_else(tmp_path, content):
    write_file(tmp_path / "checkpoint-0000000001.clml", KIND, content)
    with pytest.raises(ValueError, match="it holds no state of a fit"):
        checkpoint(tmp_path).newest()


def test_an_identity_of_anything(tmp_path):
    odd = {"settings": {"max_epochs": np.arange(3), "ties": None}, "data": {}}
    path = tmp_path / "checkpoint-0000000001.clml"
    write_file(path, KIND, {"identity": odd, "state": {}})
    with pytest.raises(ValueError, match="belongs to another fit"):
        checkpoint(tmp_path).newest()


# Faults


def test_a_full_disk_is_a_warning_and_loses_nothing(tmp_path, monkeypatch):
    kept = checkpoint(tmp_path)
    kept.offer(lambda: {"epoch": 1})

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(UserWarning, match="No space left on device"):
            kept.offer(lambda: {"epoch": 2})
        kept.offer(lambda: {"epoch": 3})  # told once
    assert names(tmp_path) == ["checkpoint-0000000001.clml"]
    assert checkpoint(tmp_path).newest() == {"epoch": 1}
    # There is room again.
    kept.offer(lambda: {"epoch": 4})
    assert checkpoint(tmp_path).newest() == {"epoch": 4}


def test_what_a_kill_left_is_swept(tmp_path):
    (tmp_path / f".{'0f' * 8}.part").write_bytes(b"half a state")
    (tmp_path / ".hidden.part").write_bytes(b"not ours")
    checkpoint(tmp_path)
    assert names(tmp_path) == [".hidden.part"]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    kept = checkpoint(tmp_path)
    kept.offer(lambda: {"epoch": 1})

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kept.offer(lambda: {"epoch": 2})
    assert names(tmp_path) == ["checkpoint-0000000001.clml"]


def test_old_states_that_cannot_be_removed(tmp_path, monkeypatch):
    kept = checkpoint(tmp_path)
    monkeypatch.setattr(_checkpoint.Path, "unlink", _refuse)
    for epoch in range(4):
        kept.offer(lambda epoch=epoch: {"epoch": epoch})
    assert len(names(tmp_path)) == 4
    assert checkpoint(tmp_path).newest() == {"epoch": 3}


def _refuse(path, missing_ok=False):
    if path.suffix == ".clml":
        raise PermissionError(path)


def test_a_file_in_the_place_of_the_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(NotADirectoryError, match="checkpoint must be a folder"):
        checkpoint(path)
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):  # an administrator may write anywhere
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="checkpoint must be a folder that can"):
        checkpoint(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_passed_over_and_not_waited_for(tmp_path):
    Checkpoint(tmp_path, 0, IDENTITY).offer(lambda: 1)
    os.mkfifo(tmp_path / "checkpoint-0000000002.clml")
    with pytest.warns(UserWarning, match=r"number 1: .*regular file, got a pipe"):
        assert Checkpoint(tmp_path, 0, IDENTITY).newest() == 1
    (tmp_path / "checkpoint-0000000001.clml").unlink()
    with pytest.raises(ValueError, match=r"no state that can be read.*got a pipe"):
        Checkpoint(tmp_path, 0, IDENTITY).newest()

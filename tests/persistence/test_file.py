"""Files of a kind, in a version."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from clml._version import __version__
from clml.persistence.file import FileKind, read_file, untrusted_types, write_file

KIND = FileKind("clml example", version=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.clml"


def test_worked_example(path):
    write_file(path, KIND, {"a": (1, None), "b": np.arange(3)})
    found = read_file(path, KIND)
    assert found["a"] == (1, None)
    assert found["b"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(path) as archive:
        state = json.loads(archive.read("state.json"))
        assert archive.namelist() == ["array0.npy", "state.json"]
        assert archive.testzip() is None
    assert state.pop("content")["type"] == "dict"
    assert [len(digest) for digest in state.pop("sha256")] == [64]
    assert state == {"format": "clml example", "version": 1, "clml": __version__}


def renamed(node):
    """Version 1 called it old, version 2 calls it new."""
    (_, value) = node["value"][0]
    return {"type": "dict", "value": [["new", value]]}


def doubled(node):
    """Version 3 counts in halves."""
    (name, value) = node["value"][0]
    return {"type": "dict", "value": [[name, 2 * value]]}


def test_older_versions_are_brought_up_to_date_step_by_step(path):
    newest = FileKind(KIND.name, version=3, migrations={1: renamed, 2: doubled})
    write_file(path, KIND, {"old": 21})
    assert read_file(path, newest) == {"new": 42}
    write_file(path, FileKind(KIND.name, version=2), {"new": 21})
    assert read_file(path, newest) == {"new": 42}
    write_file(path, newest, {"new": 42})
    assert read_file(path, newest) == {"new": 42}


def test_versions_that_cannot_be_read(path):
    write_file(path, FileKind(KIND.name, version=2), [])
    newer = r"written by clml .* in version 2 of the format, .* reads up to 1"
    with pytest.raises(ValueError, match=f"no example could be read: .*{newer}"):
        read_file(path, KIND)
    with pytest.raises(ValueError, match="version 2 of the format is no longer read"):
        read_file(path, FileKind(KIND.name, version=3, migrations={1: renamed}))
    # A migration knows what its version wrote; a file may hold anything.
    broken = FileKind(KIND.name, version=3, migrations={2: renamed})
    with pytest.raises(ValueError, match="content is not one of version 2: TypeError"):
        read_file(path, broken)


def test_another_kind(path):
    write_file(path, KIND, [])
    with pytest.raises(ValueError, match=r"is not 'clml other' but 'clml example'"):
        read_file(path, FileKind("clml other", 1))


def test_content_that_cannot_be_saved(path):
    path.write_bytes(b"before")
    for content, error in ((len, TypeError), ({1, 2}, TypeError)):
        with pytest.raises(error, match="The example cannot be saved: an object of"):
            write_file(path, KIND, content)
    assert path.read_bytes() == b"before"


def test_one_estimator_in_two_places_is_one_again(path):
    from clml.baselines import GaussianNBRelevance

    ours, other = GaussianNBRelevance(), LogisticRegression(C=3.0)
    write_file(path, KIND, [ours, other, {"a": other, "b": ours}])
    a, b, again = read_file(path, KIND)
    assert type(a) is GaussianNBRelevance
    assert b.C == 3.0
    assert again["a"] is b
    assert again["b"] is a
    assert untrusted_types(path, KIND) == []


def test_trusted_is_a_list(path):
    write_file(path, KIND, [])
    with pytest.raises(TypeError, match="trusted must be a list of names"):
        read_file(path, KIND, trusted="os.system")


def test_absent_file(path):
    with pytest.raises(FileNotFoundError, match=r"file\.clml"):
        read_file(path, KIND)

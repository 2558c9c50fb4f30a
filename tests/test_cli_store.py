"""Models of the command line: one kind of file, and those of skops from before."""

import sys
import types
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from clml import LebesgueTunedClassifier
from clml._commands._store import load_model, strangers_in
from clml.persistence import load, save

skops = pytest.importorskip("skops.io", reason="other learners are kept by skops")


def tuned(small_data, learner):
    X, Y = small_data
    settings = {"max_epochs": 2, "shrinkage": 0.5, "cv": 2, "random_state": 0}
    return LebesgueTunedClassifier(learner, **settings).fit(X, Y)


@pytest.fixture
def stranger():
    """A class of a module that is none of the packages."""
    module = types.ModuleType("stranger")
    kind = type("Mine", (KNeighborsClassifier,), {"__module__": "stranger"})
    module.Mine = kind
    sys.modules["stranger"] = module
    yield kind
    del sys.modules["stranger"]


def test_a_model_comes_back(small_data, tmp_path):
    X, _ = small_data
    model = tuned(small_data, KNeighborsClassifier())
    save(model, tmp_path / "m")
    assert strangers_in(tmp_path / "m") == []
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(
        loaded.select("lrap").predict(X), model.select("lrap").predict(X)
    )
    assert type(load(tmp_path / "m")) is LebesgueTunedClassifier


def test_a_model_of_skops_comes_back(small_data, tmp_path):
    """As tuned models were written before they had the library's own format."""
    X, _ = small_data
    model = tuned(small_data, KNeighborsClassifier())
    skops.dump(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("write", [save, skops.dump])
def test_other_types_must_be_named(small_data, tmp_path, stranger, write):
    model = tuned(small_data, stranger())
    write(model, tmp_path / "m")
    if write is save:
        assert strangers_in(tmp_path / "m") == ["stranger.Mine"]
    with pytest.raises(ValueError, match=r"m: it holds .* --trust stranger\.Mine$"):
        load_model(tmp_path / "m")
    with pytest.raises(ValueError, match=r"--trust stranger\.Mine$"):
        load_model(tmp_path / "m", trust=["stranger.Other"])
    loaded = load_model(tmp_path / "m", trust=["stranger.Mine"])
    assert isinstance(loaded.estimator_, stranger)


def test_a_model_of_another_library_is_refused(small_data, tmp_path):
    X, Y = small_data
    skops.dump(LogisticRegression().fit(X, Y[:, 0]), tmp_path / "m")
    with pytest.raises(ValueError, match="no model of clml but a LogisticRegression"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", b"{}"])
def test_files_that_are_no_models(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match="no model could be read"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("schema", [b"", b"{}", b"[]", b'{"__loader__": "x"}'])
def test_damaged_archives(tmp_path, schema):
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("schema.json", schema)
    with pytest.raises(ValueError, match=r"m: no model could be read: what skops"):
        load_model(tmp_path / "m")


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such model"):
        load_model(tmp_path / "absent")

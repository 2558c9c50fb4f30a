"""A saved model, and files made by hand."""

import copy
import json
import zipfile

import pytest

from clml import CLMLClassifier, _member_fit
from clml.persistence import save


@pytest.fixture(scope="session")
def fitted(small_data):
    """A small fitted classifier; tests do not change it."""
    return CLMLClassifier(
        search="cma",
        n_members=1,
        embedding_dim=2,
        max_epochs=2,
        population_size=4,
        random_state=0,
    ).fit(*small_data)


@pytest.fixture(scope="session")
def fitted_members(small_data):
    """One of three members that climbed; tests do not change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_member_fit, "_MAP_EPOCHS", 5)
        return CLMLClassifier(
            search="ascent",
            n_members=3,
            embedding_dim=2,
            max_epochs=2,
            shrinkage=1.0,
            random_state=0,
        ).fit(*small_data)


@pytest.fixture(scope="session")
def saved(fitted, tmp_path_factory):
    """The path of its file."""
    path = tmp_path_factory.mktemp("saved") / "model.clml"
    save(fitted, path)
    return path


@pytest.fixture(scope="session")
def members(saved):
    """The members of that file as bytes."""
    with zipfile.ZipFile(saved) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def write_zip(tmp_path):
    """Write a zip of (name, bytes) pairs or a dict, with correct checksums."""

    def write(content, compression=zipfile.ZIP_STORED):
        path = tmp_path / "made.clml"
        pairs = content.items() if isinstance(content, dict) else content
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, value in pairs:
                archive.writestr(zipfile.ZipInfo(name), value, compression)
        return path

    return write


@pytest.fixture
def edited(members, write_zip):
    """Write the saved model with its JSON changed in place by a function."""

    def write(edit):
        state = copy.deepcopy(json.loads(members["state.json"]))
        edit(state)
        text = json.dumps(state)
        return write_zip({**members, "state.json": text})

    return write

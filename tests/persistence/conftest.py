"""A saved model, and files made by hand."""

import copy
import hashlib
import json
import zipfile

import pytest
from short_maps import shorten_maps

from clml import CMA, CLMLClassifier
from clml.network import PaperNetwork
from clml.persistence import save


@pytest.fixture(scope="session")
def fitted(small_data):
    """A small fitted classifier; tests do not change it."""
    return CLMLClassifier(
        search=CMA(population_size=4),
        n_members=1,
        network=PaperNetwork(embedding_dim=2),
        max_epochs=2,
        random_state=0,
    ).fit(*small_data)


@pytest.fixture(scope="session")
def fitted_members(small_data):
    """One of three members that after_epoch; tests do not change it."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_maps(patch, 5)
        return CLMLClassifier(
            search="ascent",
            n_members=3,
            network=PaperNetwork(embedding_dim=2),
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


def sealed(content):
    """Return members with their checksums made right, and the archive's comment.

    For what is wrong with a file apart from them.
    """
    content = {k: v.encode() if isinstance(v, str) else v for k, v in content.items()}
    state = json.loads(content["state.json"])
    if isinstance(state, dict) and "sha256" in state:
        arrays = [content[f"array{i}.npy"] for i in range(len(content) - 1)]
        state["sha256"] = [hashlib.sha256(array).hexdigest() for array in arrays]
    text = json.dumps(state).encode()
    comment = f"sha256 of state.json: {hashlib.sha256(text).hexdigest()}"
    return {**content, "state.json": text}, comment.encode()


@pytest.fixture
def write_zip(tmp_path):
    """Write a zip of (name, bytes) pairs or a dict, with correct checksums of zip."""

    def write(content, compression=zipfile.ZIP_STORED, comment=b""):
        path = tmp_path / "made.clml"
        pairs = content.items() if isinstance(content, dict) else content
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, value in pairs:
                archive.writestr(zipfile.ZipInfo(name), value, compression)
            archive.comment = comment
        return path

    return write


@pytest.fixture
def write_sealed(write_zip):
    """Write members with all checksums right."""

    def write(content):
        content, comment = sealed(content)
        return write_zip(content, comment=comment)

    return write


@pytest.fixture
def edited(members, write_sealed):
    """Write the saved model with its JSON changed in place by a function."""

    def write(edit):
        state = copy.deepcopy(json.loads(members["state.json"]))
        edit(state)
        return write_sealed({**members, "state.json": json.dumps(state)})

    return write

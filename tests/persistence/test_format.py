"""Files that were written once, and what they must stay."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import Bunch

from clml import CMA, CLMLClassifier
from clml._base.multilabel import LabelClasses
from clml.baselines import MLkNNClassifier
from clml.network import Layout
from clml.persistence import file as _file
from clml.persistence import load, save
from clml.persistence.file import FileKind, read_file, write_file
from clml.persistence.models import MODEL_FILE

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
# The first version that is read.
FIRST = 3
MODELS = {"model": CLMLClassifier, "members": CLMLClassifier, "mlknn": MLkNNClassifier}


@pytest.mark.parametrize("version", range(FIRST, MODEL_FILE.version + 1))
@pytest.mark.parametrize("name", MODELS)
def test_models_of_every_version_predict_what_they_did(name, version):
    found = load(FILES / f"{name}-{version}.clml")
    assert type(found) is MODELS[name]
    assert found.n_labels_ == 4
    for method, values in EXPECTED[name].items():
        # Written on another machine, whose products may round differently.
        np.testing.assert_allclose(
            getattr(found, method)(EXPECTED["rows"]), values, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("version", range(1, FIRST))
def test_models_of_versions_without_values_are_refused(version):
    expected = rf"model-{version}.clml.*version {version} of the format is no longer"
    with pytest.raises(ValueError, match=expected):
        load(FILES / f"model-{version}.clml")


def everything():
    """One of each value that a file can hold."""
    return {
        "json": [None, True, 3, 0.1, "ä"],
        "float": [float("nan"), float("inf"), -float("inf")],
        "tuple": (1, (2,)),
        "map": {0.5: 1, "identity": 2, 3: 4},
        "bunch": Bunch(a=1),
        "classes": LabelClasses([np.array([0, 1])]),
        "numpy": [np.str_("x"), np.float32(0.1), np.int64(-3), np.bool_(True)],
        "arrays": [
            np.arange(6.0).reshape(2, 3),
            np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3)),
            np.array(["a", "ä"]),
            np.array(["a", "bc"], dtype=object),
        ],
        "sparse": [sp.csr_array(np.eye(2)), sp.csr_matrix(np.eye(2, dtype=np.float32))],
        "random": np.random.RandomState(3),
        "estimator": GaussianNB(var_smoothing=0.5),
        "dataclass": Layout(3, 2, 4, 1),
        "value": CMA(population_size=None, sigma0=0.5),
    }


VALUES = FileKind("clml values", version=3)
HINT = (
    "The bytes of a file are others than those of the committed one. If older code "
    "would misread it: raise the version, write a migration, and keep the old files."
)


def test_the_format_changes_only_with_its_version(tmp_path, monkeypatch):
    """Else clml of before would misread a file and take it for one of its own."""
    monkeypatch.setattr(_file, "__version__", "0.1.0")
    write_file(tmp_path / "values", VALUES, everything())
    committed = FILES / f"values-{MODEL_FILE.version}.clml"
    assert (tmp_path / "values").read_bytes() == committed.read_bytes(), HINT
    found = read_file(committed, VALUES)
    assert list(found) == list(everything())
    assert repr(found["map"]) == repr(everything()["map"])


def test_a_model_is_written_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(_file, "__version__", "0.1.0")
    newest = FILES / f"mlknn-{MODEL_FILE.version}.clml"
    for version in range(FIRST, MODEL_FILE.version + 1):
        save(load(FILES / f"mlknn-{version}.clml"), tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == newest.read_bytes(), HINT


def test_every_older_version_has_a_migration():
    assert set(MODEL_FILE.migrations) == set(range(FIRST, MODEL_FILE.version))

"""The public files themselves, where CLML_DATA names a folder that has them."""

import bz2
import lzma
import os
import time
from pathlib import Path

import arff
import numpy as np
import pytest
from scipy import sparse

from clml.datasets import read_arff

HOME = os.environ.get("CLML_DATA")
pytestmark = pytest.mark.skipif(HOME is None, reason="CLML_DATA names no folder")

# instances, features, labels, cardinality, columns of X, sparse
FIGURES = {
    "flags/flags": (194, 19, 7, 3.391753, 43, False),
    "cal500/cal500": (502, 68, 174, 26.043825, 68, False),
    "emotions/emotions": (593, 72, 6, 1.868465, 72, False),
    "genbase/genbase": (662, 1186, 27, 1.252266, 1185, False),
    "enron/enron": (1702, 1001, 53, 3.378378, 1001, True),
    "yeast/yeast": (2417, 103, 14, 4.237071, 103, False),
    "tmc2007-500/tmc2007-500": (28596, 500, 22, 2.157924, 500, True),
    "imdb-f/imdb-f": (120919, 1001, 28, 1.999669, 1001, True),
    "mediamill-reduced/mediamill-reduced-train": (1500, 120, 101, 4.437333, 120, False),
    "mediamill-reduced/mediamill-reduced-test": (500, 120, 101, 4.264, 120, False),
    "birds/birds": (645, 260, 19, 1.013953, 271, False),
    "medical/medical": (978, 1449, 45, 1.245399, 1449, True),
    "scene/scene": (2407, 294, 6, 1.073951, 294, False),
    "foodtruck/foodtruck": (407, 21, 12, 2.289926, 31, False),
    "chd49/chd49": (555, 49, 6, 2.58018, 49, False),
    "water-quality/water-quality": (1060, 16, 14, 5.072642, 16, False),
    "plant-go/plant-go": (978, 3091, 12, 1.078732, 3091, True),
    "virus-go/virus-go": (207, 749, 6, 1.217391, 749, True),
    "gnegative-go/gnegative-go": (1392, 1717, 8, 1.045977, 1717, True),
    "human-go/human-go": (3106, 9844, 14, 1.185126, 9844, True),
}


def path_of(name):
    for suffix in (".arff.xz", ".arff.bz2"):
        path = Path(HOME, name + suffix)
        if path.is_file():
            return path
    pytest.skip(f"{name} is not in the folder")


@pytest.fixture(scope="module")
def read():
    """Read each file once."""
    known = {}

    def reading(name):
        if name not in known:
            known[name] = read_arff(path_of(name))
        return known[name]

    return reading


@pytest.mark.parametrize("name", FIGURES)
def test_figures(read, name):
    data = read(name)
    n_instances, n_features, n_labels, cardinality, n_columns, is_sparse = FIGURES[name]
    assert data.n_instances == n_instances
    assert data.n_features == n_features
    assert data.n_labels == n_labels
    assert round(data.cardinality, 6) == cardinality
    assert data.X.shape == (n_instances, n_columns)
    assert data.Y.shape == (n_instances, n_labels)
    assert sparse.issparse(data.X) == is_sparse
    assert len(data.feature_names) == n_columns
    assert len(data.label_names) == n_labels


def test_every_file_of_the_folder_is_in_the_table():
    found = {
        str(path.relative_to(HOME)).partition(".arff")[0]
        for path in Path(HOME).rglob("*.arff*")
    }
    folders = {name.partition("/")[0] for name in FIGURES}
    if not {name.partition("/")[0] for name in found} <= folders:
        pytest.skip("the folder has other files too")
    assert found <= set(FIGURES)


def liac(name):
    path = path_of(name)
    opened = {".xz": lzma.open, ".bz2": bz2.open}[path.suffix]
    with opened(path, "rt", encoding="utf-8") as stream:
        kind = arff.LOD if FIGURES[name][-1] else arff.DENSE
        return arff.load(stream, return_type=kind)


@pytest.mark.parametrize(
    "name", ["flags/flags", "genbase/genbase", "yeast/yeast", "enron/enron"]
)
def test_every_value_is_that_of_another_reader(read, name):
    data, other = read(name), liac(name)
    columns = {}
    for number, (attribute, values) in enumerate(other["attributes"]):
        first = values[0] if isinstance(values, list) else 0.0
        if isinstance(other["data"][0], dict):
            column = [row.get(number, first) for row in other["data"]]
        else:
            column = [row[number] for row in other["data"]]
        columns[attribute] = column
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    meaning = {"YES": 1.0, "NO": 0.0}
    for number, feature in enumerate(data.feature_names):
        attribute, equals, value = feature.partition("=")
        column = columns[attribute]
        if equals:
            column = [float(cell == value) for cell in column]
        expected = [float(meaning.get(cell, cell)) for cell in column]
        np.testing.assert_array_equal(X[:, number], expected, err_msg=feature)
    for number, label in enumerate(data.label_names):
        assert data.Y[:, number].tolist() == [int(cell) for cell in columns[label]]


def test_flags(read):
    data = read("flags/flags")
    landmass = [n for n in data.feature_names if n.startswith("landmass=")]
    assert landmass == [f"landmass={code}" for code in range(1, 7)]
    assert {"crescent", "triangle", "icon", "animate", "text"} <= set(
        data.feature_names
    )
    assert data.categorical.sum() == 43 - 10
    assert (data.Y.sum(axis=1) == 7).sum() == 2


def test_cal500(read):
    data = read("cal500/cal500")
    counts = data.Y.sum(axis=0)
    assert (counts < 10).sum() == 28
    assert counts.min() == 5
    assert data.n_label_sets == 502
    assert sum(name.startswith("NOT-") for name in data.label_names) == 30


def test_emotions(read):
    data = read("emotions/emotions")
    assert (round(data.X.min()), round(data.X.max())) == (-99, 237)


def test_genbase(read):
    data = read("genbase/genbase")
    assert list(data.dropped) == ["protein"]
    assert len(set(data.dropped["protein"])) == 662
    assert "'protein' was left out" in data.notes[0]
    # YES is declared first, and is 1 all the same: most motifs never occur.
    assert set(np.unique(data.X)) == {0.0, 1.0}
    assert (data.X.max(axis=0) == 0).sum() == 1073
    assert len(np.unique(data.X, axis=0)) == 206
    assert (data.Y.sum(axis=0) < 5).sum() == 8
    kept = read_arff(path_of("genbase/genbase"), drop_identifiers=False)
    assert kept.X.shape == (662, 1185 + 662)
    codes = read_arff(path_of("genbase/genbase"), nominals="codes")
    np.testing.assert_array_equal(codes.X, 1 - data.X)


def test_enron(read):
    data = read("enron/enron")
    assert data.label_names[:2] == ["A.A8", "C.C9"]  # in the XML file A.A1 is first
    assert (np.diff(data.X.indptr) == 0).sum() == 8
    assert set(data.X.data) == {1.0}
    assert (data.Y.sum(axis=0) < 5).sum() == 4
    assert {"-", "--", "0", "00"} & set(data.feature_names)


def test_yeast(read):
    data = read("yeast/yeast")
    assert data.label_names == [f"Class{number}" for number in range(1, 15)]
    assert data.Y[:, 13].sum() == 34


def test_tmc2007_500(read):
    data = read("tmc2007-500/tmc2007-500")
    assert (np.diff(data.X.indptr) == 0).sum() == 11


def test_imdb_f(read):
    data = read("imdb-f/imdb-f")
    assert data.label_names[:2] == ["Sci-Fi", "Crime"]  # the first attributes
    assert (np.diff(data.X.indptr) == 0).sum() == 24
    assert set(data.X.data) == {1.0}
    by_xml = read_arff(path_of("imdb-f/imdb-f"), Path(HOME, "imdb-f/imdb-f.xml"))
    np.testing.assert_array_equal(by_xml.Y, data.Y)


def test_mediamill_reduced(read):
    parts = [
        read(f"mediamill-reduced/mediamill-reduced-{p}") for p in ("train", "test")
    ]
    Y = np.vstack([part.Y for part in parts])
    X = np.vstack([part.X for part in parts])
    assert round(Y.sum() / len(Y), 6) == 4.394
    assert (Y.sum(axis=1) == 0).sum() == 75
    never = [parts[0].label_names[k] for k in np.flatnonzero(Y.sum(axis=0) == 0)]
    assert set(never) == {"Class8", "Class31", "Class47", "Class73", "Class100"}
    assert (round(X.min(), 3), round(X.max(), 3)) == (0.003, 0.770)


def test_a_large_file_is_read_several_times_faster_than_by_liac_arff(read):
    name = "tmc2007-500/tmc2007-500"
    read(name)  # compiles
    began = time.perf_counter()
    liac(name)
    theirs = time.perf_counter() - began
    ours = []
    for _ in range(3):
        began = time.perf_counter()
        read_arff(path_of(name))
        ours.append(time.perf_counter() - began)
    assert theirs > 2.5 * min(ours)

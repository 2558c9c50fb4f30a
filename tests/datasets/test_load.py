import hashlib
import io
import lzma
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from clml.datasets import _download, _load
from clml.datasets import registry as _registry
from clml.datasets._load import load_dataset
from clml.datasets.registry import DatasetEntry, Variant, get_entry

HEADER = """@relation toy
@attribute size numeric
@attribute colour {red, green, blue}
@attribute round {0,1}
@attribute sweet {0,1}
@data
"""
TRAIN_ROWS = "1,red,1,0\n2,blue,0,1\n3,red,1,1\n"
TEST_ROWS = "4,green,0,0\n"
XML = """<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="round"></label><label name="sweet"></label></labels>"""
CONTENTS = {
    "all": HEADER + TRAIN_ROWS + TEST_ROWS,
    "train": HEADER + TRAIN_ROWS,
    "test": HEADER + TEST_ROWS,
    "labels": XML,
}
NAMES = {
    "all": "toy.arff",
    "train": "toy-train.arff",
    "test": "toy-test.arff",
    "labels": "toy.xml",
}


def variant_of(kind):
    content = CONTENTS[kind].encode()
    url = f"https://files.example/{NAMES[kind]}"
    return Variant(hashlib.sha256(content).hexdigest(), len(content), (url,))


def toy_entry(kinds=tuple(CONTENTS), **changes):
    values = {
        "name": "toy",
        "title": "Fruit",
        "citation": "A. Author, On Fruit, 2020.",
        "n_instances": 4,
        "n_features": 2,
        "n_labels": 2,
        "cardinality": 1.0,
        "figures_from": "file",
        "files": {kind: (variant_of(kind),) for kind in kinds},
        "split": "mulan",
    }
    return DatasetEntry(**{**values, **changes})


@pytest.fixture(autouse=True)
def toy(monkeypatch, tmp_path):
    """A registry with one dataset, folders of our own, and no network.

    Returns a function that puts files into a folder.
    """

    def refuse(url):
        raise AssertionError(f"{url} was opened")

    monkeypatch.delenv("CLML_DATA", raising=False)
    monkeypatch.setenv("CLML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_registry, "registry", lambda: {"toy": toy_entry()})
    monkeypatch.setattr(_download, "_open", refuse)

    def put(home, *kinds):
        folder = Path(home) / "toy"
        folder.mkdir(parents=True, exist_ok=True)
        for kind in kinds:
            (folder / NAMES[kind]).write_text(CONTENTS[kind])
        return folder

    return put


@pytest.fixture
def network(monkeypatch):
    """Serves every toy file; returns the addresses that were opened."""
    opened = []

    def open_url(url):
        opened.append(url)
        kind = next(k for k, name in NAMES.items() if url.endswith("/" + name))
        return io.BytesIO(CONTENTS[kind].encode())

    monkeypatch.setattr(_download, "_open", open_url)
    return opened


def use(monkeypatch, entry):
    monkeypatch.setattr(_registry, "registry", lambda: {entry.name: entry})


def test_worked_example(toy, tmp_path):
    toy(tmp_path, "all", "labels")
    data = load_dataset("Toy", data_home=tmp_path)
    assert_array_equal(data.X, [[1, 1, 0, 0], [2, 0, 0, 1], [3, 1, 0, 0], [4, 0, 1, 0]])
    assert_array_equal(data.Y, [[1, 0], [0, 1], [1, 1], [0, 0]])
    assert data.label_names == ["round", "sweet"]
    assert (data.n_instances, data.n_features, data.n_labels) == (4, 2, 2)
    assert (data.name, data.subset) == ("toy", "all")
    assert data.source == str(tmp_path / "toy" / "toy.arff")
    assert data.citation == "A. Author, On Fruit, 2020."
    assert data.DESCR.splitlines()[0] == "toy: Fruit (all rows)."
    assert (
        "4 rows, 2 features (4 columns of X), 2 labels, 1.000 labels a row."
        in data.DESCR
    )
    assert "Please cite: A. Author" in data.DESCR


def test_options_reach_the_reader(toy, tmp_path):
    toy(tmp_path, "all", "labels")
    codes = load_dataset("toy", data_home=tmp_path, nominals="codes")
    assert_array_equal(codes.X, [[1, 0], [2, 2], [3, 0], [4, 1]])
    for option in ("nominals", "drop_identifiers", "missing_labels"):
        with pytest.raises((TypeError, ValueError), match=f"{option} must be"):
            load_dataset("toy", data_home=tmp_path, **{option: "other"})


@pytest.mark.parametrize("subset, n_rows", [("train", 3), ("test", 1)])
def test_official_parts(toy, tmp_path, subset, n_rows):
    toy(tmp_path, "train", "test", "labels")
    data = load_dataset("toy", data_home=tmp_path, subset=subset)
    assert data.n_instances == n_rows
    assert data.subset == subset
    assert f"the {subset} rows of the official division" in data.DESCR


def test_compressed_files(toy, tmp_path):
    folder = toy(tmp_path, "labels")
    (folder / "toy.arff.xz").write_bytes(lzma.compress(CONTENTS["all"].encode()))
    data = load_dataset("toy", data_home=tmp_path)
    assert data.n_instances == 4
    assert data.source.endswith("toy.arff.xz")


def test_joined_set_is_the_train_rows_then_the_test_rows(toy, tmp_path, monkeypatch):
    use(monkeypatch, toy_entry(("train", "test", "labels"), joined=True, split=None))
    toy(tmp_path, "train", "test", "labels")
    data = load_dataset("toy", data_home=tmp_path)
    parts = [
        load_dataset("toy", data_home=tmp_path, subset=s) for s in ("train", "test")
    ]
    assert_array_equal(data.X, np.vstack([part.X for part in parts]))
    assert_array_equal(data.Y, [[1, 0], [0, 1], [1, 1], [0, 0]])
    assert data.cardinality == 1.0
    assert data.source == " + ".join(part.source for part in parts)
    assert data.sha256 == " + ".join(part.sha256 for part in parts)


def test_joining_sparse_rows_and_other_columns():
    options = {"notes": ["n"], "dropped": {}, "label_parents": None}
    first, second = (
        _load.make_bunch(
            sparse.csr_array(np.eye(2)[:n]),
            np.ones((n, 1), dtype=int),
            sample_weight=np.full(n, 2.0),
            relation="r",
            sha256="s",
            source="f",
            **options,
        )
        for n in (2, 1)
    )
    data = _load._join(first, second)
    assert data.X.format == "csr"
    assert_array_equal(data.X.toarray(), [[1, 0], [0, 1], [1, 0]])
    assert_array_equal(data.sample_weight, [2, 2, 2])
    assert data.notes == ["n"]
    second.feature_names = ["x", "y"]
    with pytest.raises(ValueError, match="must have the same feature_names"):
        _load._join(first, second)


def test_missing_files_are_downloaded_once(tmp_path, network):
    for _ in range(2):
        assert load_dataset("toy", data_home=tmp_path).n_instances == 4
    assert network == [
        "https://files.example/toy.arff",
        "https://files.example/toy.xml",
    ]
    assert sorted(p.name for p in (tmp_path / "toy").iterdir()) == [
        "toy.arff",
        "toy.xml",
    ]


def test_only_the_missing_file_is_downloaded(toy, tmp_path, network):
    toy(tmp_path, "all")
    load_dataset("toy", data_home=tmp_path)
    assert network == ["https://files.example/toy.xml"]


def test_download_goes_to_the_first_folder(tmp_path, network, monkeypatch):
    load_dataset("toy")
    assert (tmp_path / "cache/datasets/toy/toy.arff").is_file()
    monkeypatch.setenv("CLML_DATA", str(tmp_path / "data"))
    load_dataset("toy", subset="test")
    assert (tmp_path / "data/toy/toy-test.arff").is_file()
    # What the cache has is still found.
    network.clear()
    load_dataset("toy")
    assert network == []


def read_only(monkeypatch, folder):
    """Have a folder that cannot be written, whoever runs the tests."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != folder and access(path, mode)
    )


def test_read_only_folder_sends_downloads_to_the_cache(
    toy, tmp_path, network, monkeypatch
):
    home = tmp_path / "data"
    folder = toy(home, "labels")
    monkeypatch.setenv("CLML_DATA", str(home))
    read_only(monkeypatch, folder)
    with pytest.warns(UserWarning, match=r"data cannot be written: toy\.arff is "):
        data = load_dataset("toy")
    assert data.source == str(tmp_path / "cache/datasets/toy/toy.arff")
    assert network == ["https://files.example/toy.arff"]
    assert load_dataset("toy").source == data.source  # found there, no warning


def test_read_only_argument_is_an_error(tmp_path, monkeypatch):
    read_only(monkeypatch, tmp_path)
    with pytest.raises(PermissionError, match="none of these folders can be written"):
        load_dataset("toy", data_home=tmp_path)


def test_without_download(tmp_path):
    with pytest.raises(FileNotFoundError, match="download=False") as caught:
        load_dataset("toy", data_home=tmp_path, download=False)
    for part in (
        "https://files.example/toy.arff",
        str(tmp_path / "toy" / "toy.arff"),
        variant_of("all").sha256,
    ):
        assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_failed_download_leaves_nothing(tmp_path, monkeypatch):
    def fail(url):
        raise TimeoutError("timed out")

    monkeypatch.setattr(_download, "_open", fail)
    with pytest.raises(OSError, match=r"timed out.*by hand, save\n  https://files"):
        load_dataset("toy", data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("kind", ["all", "labels"])
def test_wrong_content_is_refused(toy, tmp_path, kind, cache):
    folder = toy(tmp_path, "all", "labels")
    changed = CONTENTS[kind] + "\n"
    (folder / NAMES[kind]).write_text(changed)
    for _ in range(2):  # a parsed copy must not get round it
        with pytest.raises(ValueError, match="is not the known") as caught:
            load_dataset("toy", data_home=tmp_path, cache=cache)
        text = str(caught.value)
        assert hashlib.sha256(changed.encode()).hexdigest() in text
        assert variant_of(kind).sha256 in text
        assert "Delete it" in text


def test_other_variant_is_accepted(toy, tmp_path, monkeypatch):
    other = CONTENTS["all"].replace("@relation toy", "@relation fruit")
    variant = Variant(hashlib.sha256(other.encode()).hexdigest(), len(other), ())
    files = toy_entry().files
    use(monkeypatch, toy_entry(files={**files, "all": (variant_of("all"), variant)}))
    folder = toy(tmp_path, "labels")
    (folder / "toy.arff").write_text(other)
    assert load_dataset("toy", data_home=tmp_path).relation == "fruit"


def test_file_without_a_known_hash_is_read_with_a_warning(toy, tmp_path, monkeypatch):
    use(monkeypatch, toy_entry(("labels", "test"), split=None))
    toy(tmp_path, "all", "labels")
    with pytest.warns(UserWarning, match=r"No verified hash of toy\.arff is known"):
        data = load_dataset("toy", data_home=tmp_path)
    assert data.n_instances == 4


def test_warnings_point_at_the_caller(toy, tmp_path, monkeypatch):
    use(monkeypatch, toy_entry(("labels",), split=None))
    toy(tmp_path, "all", "labels")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_dataset("toy", data_home=tmp_path)
    assert [Path(w.filename).name for w in caught] == ["test_load.py"]


def test_nothing_to_download(tmp_path, monkeypatch):
    use(monkeypatch, toy_entry(("labels", "test"), split=None))
    with pytest.raises(
        FileNotFoundError, match=r"no public copy .* can be downloaded: \['test'\]"
    ):
        load_dataset("toy", data_home=tmp_path, subset="train")


def test_a_set_that_was_made_of_others(tmp_path, monkeypatch):
    use(monkeypatch, toy_entry(("labels", "all"), split=None, made_of="rows of two"))
    with pytest.raises(FileNotFoundError, match=r"its rows are rows of two.*sha256"):
        load_dataset("toy", data_home=tmp_path)


def test_labels_that_the_relation_tells(toy, tmp_path, monkeypatch, network):
    text = CONTENTS["all"].replace("@relation toy", "@relation 'toy: -C -2'")
    variant = Variant(hashlib.sha256(text.encode()).hexdigest(), len(text), ())
    files = {**toy_entry().files, "all": (variant,)}
    use(monkeypatch, toy_entry(files=files))
    folder = toy(tmp_path)
    (folder / "toy.arff").write_text(text)
    data = load_dataset("toy", data_home=tmp_path)
    assert data.label_names == ["round", "sweet"]
    assert network == []
    # The parts do not tell it.
    assert load_dataset("toy", data_home=tmp_path, subset="test").n_instances == 1
    assert network[-1] == "https://files.example/toy.xml"


def test_parsed_copy_is_kept_only_if_wanted(toy, tmp_path):
    toy(tmp_path, "all", "labels")
    load_dataset("toy", data_home=tmp_path, cache=False)
    assert not (tmp_path / "cache").exists()
    first, second = (load_dataset("toy", data_home=tmp_path) for _ in range(2))
    assert len(list((tmp_path / "cache" / "parsed").iterdir())) == 1
    assert set(first) == set(second)
    assert_array_equal(first.X, second.X)
    assert first.DESCR == second.DESCR


@pytest.mark.parametrize(
    "arguments, exception, message",
    [
        ({"name": "tyo"}, ValueError, "name must be one of list_datasets.*'toy'"),
        ({"name": 1}, TypeError, "name must be the name of a dataset"),
        ({"subset": "validation"}, ValueError, r"subset must be one of \['all',"),
        ({"subset": None}, ValueError, "subset must be one of .* got None"),
        ({"download": "no"}, TypeError, "download must be a bool, got 'no'"),
        ({"cache": "/tmp"}, TypeError, "cache must be a bool, got '/tmp'"),
    ],
)
def test_bad_arguments(arguments, exception, message):
    with pytest.raises(exception, match=message):
        load_dataset(**{"name": "toy", **arguments})


REAL = os.environ.get("CLML_DATA")
REAL_NAMES = [
    "cal500",
    "emotions",
    "enron",
    "flags",
    "genbase",
    "imdb-f",
    "mediamill-reduced",
    "tmc2007-500",
    "yeast",
    "birds",
    "medical",
    "scene",
    "foodtruck",
    "chd49",
    "water-quality",
    "plant-go",
    "virus-go",
    "gnegative-go",
    "human-go",
]


@pytest.mark.skipif(not REAL, reason="CLML_DATA is not set")
@pytest.mark.parametrize("name", REAL_NAMES)
def test_real_files_have_the_known_hash_and_figures(name, monkeypatch):
    monkeypatch.undo()
    if not (Path(REAL) / name).is_dir():
        pytest.skip(f"{name} is not in CLML_DATA")
    data = load_dataset(name, data_home=REAL, download=False, cache=False)
    entry = get_entry(name)
    assert data.Y.shape == (entry.n_instances, entry.n_labels)
    assert data.n_features == entry.n_features
    assert data.cardinality == pytest.approx(entry.cardinality, abs=5e-7)

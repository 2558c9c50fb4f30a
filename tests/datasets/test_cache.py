import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clml.datasets._arff import read_arff, read_checked_arff
from clml.datasets._cache import _sealed

TEXT = """@relation 'r: -C 2'
@attribute a {0,1}
@attribute 'b c' {0,1}
@attribute x numeric
@attribute s {red,green,blue}
@attribute t string
@data
"""
DENSE = TEXT + "0,1,1.5,red,hello\n1,1,?,blue,'ä, b', {2}\n"
SPARSE = TEXT + "{1 1,2 1.5,4 hello}\n{0 1,3 blue}\n"


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "data.arff", tmp_path / "cache"


def same(one, other):
    assert one.keys() == other.keys()
    for key in one:
        a, b = one[key], other[key]
        if sparse.issparse(a):
            assert type(a) is type(b)
            a, b = a.toarray(), b.toarray()
        if key == "dropped":
            assert a.keys() == b.keys()
            assert all(list(a[name]) == list(b[name]) for name in a)
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b or (a != a and b != b), key


@pytest.mark.parametrize("text", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_a_copy_is_the_same_as_a_reading(folders, text, monkeypatch):
    path, cache = folders
    path.write_text(text)
    read = read_arff(path)
    same(read, read_arff(path, cache=cache))
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr("clml.datasets._arff._parse", None)  # no parsing any more
    same(read, read_arff(path, cache=cache))


def test_content_labels_and_options_make_the_key(folders):
    path, cache = folders
    path.write_text(DENSE)
    read_arff(path, cache=cache)
    read_arff(path, cache=cache, nominals="codes")
    read_arff(path, ["a"], cache=cache)
    path.write_text(DENSE.replace("hello", "world"))
    assert read_arff(path, cache=cache).dropped["t"][0] == "world"
    assert len(list(cache.iterdir())) == 4


def test_an_xml_file_beside_is_part_of_the_key(folders):
    path, cache = folders
    path.write_text(DENSE.replace("'r: -C 2'", "r"))
    path.with_suffix(".xml").write_text('<labels><label name="a"/></labels>')
    assert read_arff(path, cache=cache).label_names == ["a"]
    path.with_suffix(".xml").write_text('<labels><label name="b c"/></labels>')
    assert read_arff(path, cache=cache).label_names == ["b c"]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "pickle"])
def test_a_damaged_copy_is_read_anew(folders, damage):
    path, cache = folders
    path.write_text(DENSE)
    read = read_arff(path, cache=cache)
    (copy,) = cache.iterdir()
    data = copy.read_bytes()
    middle = len(data) // 2
    if damage == "pickle":
        np.savez(copy, Y=np.array([{}], dtype=object), texts=np.array([{}]))
    else:
        copy.write_bytes(
            {
                "empty": b"",
                "cut": data[:middle],
                "flipped": data[:80]
                + bytes(b ^ 255 for b in data[80:200])
                + data[200:],
                "text": b"no archive",
            }[damage]
        )
    same(read, read_arff(path, cache=cache))
    same(read, read_arff(path, cache=cache))


def test_a_folder_that_cannot_be_made_is_no_error(folders):
    path, cache = folders
    path.write_text(DENSE)
    cache.write_text("a file in the way")
    assert read_arff(path, cache=cache).n_labels == 2


def test_nothing_half_written_stays(folders, monkeypatch):
    path, cache = folders
    path.write_text(DENSE)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_arff(path, cache=cache)
    assert list(cache.iterdir()) == []


def test_the_hash_is_checked_before_parsing_and_of_copies(folders):
    path, cache = folders
    path.write_text("no ARFF file")

    def refuse(sha256):
        raise ValueError(f"refused {sha256[:4]}")

    options = {
        "nominals": "onehot",
        "drop_identifiers": True,
        "missing_labels": "error",
    }
    with pytest.raises(ValueError, match="refused"):
        read_checked_arff(path, check=refuse, **options)
    path.write_text(DENSE)
    read_checked_arff(path, cache=cache, **options)
    with pytest.raises(ValueError, match="refused"):
        read_checked_arff(path, check=refuse, cache=cache, **options)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (DENSE, {"X": np.full((2, 4), "x")}),
        (DENSE, {"X": np.zeros((2, 5))}),
        (DENSE, {"Y_shape": np.array([2, 10**12])}),
        (DENSE, {"Y_shape": np.array([2, -2])}),
        (DENSE, {"Y": np.zeros((2, 2), dtype=np.uint8)}),
        (DENSE, {"categorical": np.zeros(4)}),
        (DENSE, {"n_features": np.zeros(2)}),
        (DENSE, {"sample_weight": np.ones(3)}),
        (DENSE, {"texts": np.frombuffer(b"[" * 5000, dtype=np.uint8)}),
        (DENSE, {"texts": np.frombuffer(b"{}", dtype=np.uint8)}),
        (SPARSE, {"X_indices": np.array([0, 0, 99], dtype=np.int32)}),
        # Of these SciPy sees nothing: see check_csr_parts.
        (SPARSE, {"X_indptr": np.array([0, 1, -(2**31)], dtype=np.int32)}),
        (SPARSE, {"X_shape": np.array([2, 2**62])}),
    ],
    ids=range(13),
)
def test_a_copy_that_does_not_fit_together_is_read_anew(folders, text, changes):
    path, cache = folders
    path.write_text(text)
    read = read_arff(path, cache=cache)
    (copy,) = cache.iterdir()
    with np.load(copy) as content:
        arrays = dict(content)
    assert set(changes) - {"sample_weight"} <= set(arrays)
    del arrays["checksum"]
    # Whoever can write there can write a checksum that is right.
    np.savez(copy, **_sealed(arrays | changes, copy.stem))
    same(read, read_arff(path, cache=cache))


def without_checksum(arrays):
    return {name: array for name, array in arrays.items() if name != "checksum"}


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays | {"X": arrays["X"] + 1.0},
        lambda arrays: arrays | {"X": arrays["X"].astype(np.float32)},
        lambda arrays: arrays | {"Y": arrays["Y"] ^ 128},
        lambda arrays: arrays | {"categorical": ~arrays["categorical"]},
        lambda arrays: arrays | {"n_features": arrays["n_features"] + 1},
        lambda arrays: arrays | {"sample_weight": np.ones(2)},
        lambda arrays: arrays | {"texts": arrays["texts"][::-1]},
        lambda arrays: arrays | {"checksum": arrays["checksum"][:-1]},
        without_checksum,
        lambda arrays: _sealed(without_checksum(arrays), "another"),
    ],
    ids=range(10),
)
def test_a_copy_that_was_changed_is_read_anew_and_written_again(folders, change):
    path, cache = folders
    path.write_text(DENSE)
    read = read_arff(path, cache=cache)
    (copy,) = cache.iterdir()
    whole = copy.read_bytes()
    with np.load(copy) as content:
        arrays = dict(content)
    np.savez(copy, **change(arrays))
    same(read, read_arff(path, cache=cache))
    assert copy.read_bytes() == whole


def test_a_copy_under_the_name_of_another_is_none(folders):
    path, cache = folders
    path.write_text(DENSE)
    read_arff(path, cache=cache)
    (copy,) = cache.iterdir()
    content = copy.read_bytes()
    path.write_text(DENSE.replace("1.5", "2.5"))
    read_arff(path, cache=cache)
    (other,) = set(cache.iterdir()) - {copy}
    other.write_bytes(content)
    assert read_arff(path, cache=cache).X[0, 0] == 2.5


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_byte_of_a_copy_can_change_what_is_read(data):
    with tempfile.TemporaryDirectory() as place:
        path, cache = Path(place, "data.arff"), Path(place, "cache")
        path.write_text(DENSE)
        read = read_arff(path, cache=cache)
        (copy,) = cache.iterdir()
        content = bytearray(copy.read_bytes())
        where = data.draw(st.integers(0, len(content) - 1))
        content[where] ^= data.draw(st.integers(1, 255))
        copy.write_bytes(content)
        same(read, read_arff(path, cache=cache))

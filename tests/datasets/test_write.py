import bz2
import gzip
import lzma
import os

import arff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.utils import Bunch

from clml._support import atomic as _atomic
from clml._support.atomic import atomic_texts
from clml.datasets._arff import read_arff
from clml.datasets._spelling import labels_xml
from clml.datasets._write import write_arff, write_csv
from clml.datasets.csv import read_csv

FORMATS = ["mulan", "meka"]
OPENERS = {"": open, ".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
CLML_DATA = os.environ.get("CLML_DATA")


def assert_same_numbers(found, expected):
    """Equal to the bit, but for the bits of NaN."""
    found, expected = (np.asarray(a, dtype=np.float64) for a in (found, expected))
    assert_array_equal(found, expected)
    assert_array_equal(
        np.signbit(found) & (found == 0), np.signbit(expected) & (expected == 0)
    )


# --- worked examples ---------------------------------------------------------------


def test_worked_example_of_mulan(tmp_path):
    X = [[1.0, 0.1], [np.nan, -np.inf]]
    write_arff(
        tmp_path / "some data.arff",
        X,
        [[1, 0], [0, 1]],
        feature_names=["a", "it's"],
        label_names=["l", "p&q"],
        label_parents={"p&q": "l"},
    )
    assert (tmp_path / "some data.arff").read_text() == (
        "@relation 'some data'\n\n"
        "@attribute a numeric\n"
        '@attribute "it\'s" numeric\n'
        "@attribute l {0,1}\n"
        "@attribute 'p&q' {0,1}\n\n"
        "@data\n"
        "1,0.1,1,0\n"
        "?,-inf,0,1\n"
    )
    assert (tmp_path / "some data.xml").read_text() == (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<labels xmlns="http://mulan.sourceforge.net/labels">\n'
        '  <label name="l">\n'
        '    <label name="p&amp;q"/>\n'
        "  </label>\n"
        "</labels>\n"
    )


def test_worked_example_of_sparse_rows(tmp_path):
    X = sparse.csr_array([[7, 0.5], [0, 0], [np.nan, 2]])
    X.data[0] = 0  # a stored zero
    write_arff(tmp_path / "s.arff", X, [[0, 1], [0, 0], [1, 1]], format="meka")
    assert (tmp_path / "s.arff").read_text().split("@data\n")[1] == (
        "{1 1,3 0.5}\n{}\n{0 1,1 1,2 ?,3 2}\n"
    )
    assert os.listdir(tmp_path) == ["s.arff"]


def test_worked_example_of_csv(tmp_path):
    path = tmp_path / "d.csv"
    X = [[1e300, np.nan], [-0.0, 2.5]]
    write_csv(path, X, [[1], [0]], feature_names=["a;b", 'c"d'], delimiter=";")
    assert path.read_text() == '"a;b";"c""d";y0\n1e+300;;1\n-0;2.5;0\n'


# --- round trips -------------------------------------------------------------------

NASTY = [
    "'",
    '"',
    ",",
    "{a}",
    "%",
    " a ",
    "a b",
    "\\",
    "\\n",
    "a\nb",
    "\t",
    "\r",
    "é\u2028ß",
    "\ufeffmark",
    "=1+1",
    "'=1+1",
    "日本",
    "-",
    "--",
    "0",
    "00",
    "?",
    "nan",
    "numeric",
    "@data",
    "@attribute",
    "a'b\"c",
    "<&>",
    "x=1",
    "-C 3",
    "\x85",
]
names = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1, max_size=6),
)
numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1.0, np.nan, 1e16, 5e-324, 0.1 + 0.2]),
    st.integers(-5, 5).map(float),
)


@st.composite
def datasets(draw):
    n_rows, n_features, n_labels = (draw(st.integers(1, n)) for n in (5, 4, 3))
    X = draw(hnp.arrays(np.float64, (n_rows, n_features), elements=numbers))
    Y = draw(hnp.arrays(np.int64, (n_rows, n_labels), elements=st.integers(0, 1)))
    count = n_features + n_labels
    words = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    return X, Y, words[:n_features], words[n_features:]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@settings(max_examples=100)
@given(data=datasets())
def test_arff_comes_back_exactly(tmp_path_factory, format, container, data):
    X, Y, feature_names, label_names = data
    assume(not any(bad in n for n in label_names for bad in "\ufffe\uffff"))
    path = tmp_path_factory.mktemp("arff") / "data.arff"
    write_arff(
        path,
        container(X),
        container(Y),
        feature_names=feature_names,
        label_names=label_names,
        format=format,
    )
    found = read_arff(path)
    if container is np.array:
        assert_same_numbers(found.X, X)
    else:
        assert_array_equal(found.X.toarray(), X)
    assert_array_equal(found.Y, Y)
    assert found.feature_names == feature_names
    assert found.label_names == label_names


@settings(max_examples=100)
@given(data=datasets(), delimiter=st.sampled_from([",", ";", "\t", "|", ":"]))
def test_csv_comes_back_exactly(tmp_path_factory, data, delimiter):
    X, Y, feature_names, label_names = data
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    write_csv(
        path,
        X,
        Y,
        feature_names=feature_names,
        label_names=label_names,
        delimiter=delimiter,
    )
    found = read_csv(path, label_names, delimiter=delimiter)
    assert_same_numbers(found.X, X)
    assert_array_equal(found.Y, Y)
    assert found.feature_names == feature_names
    assert found.label_names == label_names


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("format", FORMATS)
def test_nasty_names_of_features_and_labels(tmp_path, name, format):
    for features, labels in (([name], ["l"]), (["x"], [name])):
        path = tmp_path / "n.arff"
        options = {"feature_names": features, "label_names": labels}
        write_arff(path, [[1.5]], [[1]], format=format, **options)
        found = read_arff(path)
        assert (found.feature_names, found.label_names) == (features, labels)
        write_csv(path, [[1.5]], [[1]], **options)
        found = read_csv(path, labels)
        assert (found.feature_names, found.label_names) == (features, labels)


def test_empty_name_in_arff(tmp_path):
    write_arff(tmp_path / "e.arff", [[1.0]], [[1]], feature_names=[""])
    assert read_arff(tmp_path / "e.arff").feature_names == [""]


@pytest.mark.parametrize("suffix", OPENERS)
def test_compression_by_suffix(tmp_path, suffix):
    arff_path, csv_path = (tmp_path / f"d.{kind}{suffix}" for kind in ("arff", "csv"))
    X, Y = np.arange(6.0).reshape(3, 2), np.eye(3, 2, dtype=int)
    write_arff(arff_path, X, Y)
    write_csv(csv_path, X, Y)
    for path in (arff_path, csv_path):
        with OPENERS[suffix](path, "rb") as file:
            assert b"x1" in file.read()
    for found in (read_arff(arff_path), read_csv(csv_path, label_prefix="y")):
        assert_array_equal(found.X, X)
        assert_array_equal(found.Y, Y)
    assert (tmp_path / "d.xml").is_file()


def test_the_same_data_give_the_same_bytes(tmp_path):
    written = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / "d.csv.gz", [[1]], [[1]])
        written.append((tmp_path / folder / "d.csv.gz").read_bytes())
    assert written[0] == written[1]
    assert written[0][4:8] == bytes(4)  # where gzip has the time


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_more_rows_than_one_block(tmp_path, container):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((2500, 3)) < 0.5, rng.normal(size=(2500, 3)), 0)
    Y = (rng.random((2500, 2)) < 0.3).astype(int)
    write_arff(tmp_path / "d.arff", container(X), sparse.csr_array(Y))
    write_csv(tmp_path / "d.csv", container(X), sparse.csr_array(Y))
    found = read_arff(tmp_path / "d.arff").X
    assert_array_equal(found.toarray() if sparse.issparse(found) else found, X)
    found = read_csv(tmp_path / "d.csv", label_prefix="y")
    assert_array_equal(found.X, X)
    assert_array_equal(found.Y, Y)


# --- a Bunch -----------------------------------------------------------------------


def test_a_bunch_comes_back_whole(tmp_path):
    (tmp_path / "a.arff").write_text(
        "@relation a\n@attribute x numeric\n@attribute c {r,g,b}\n"
        "@attribute b {YES,NO}\n@attribute p {0,1}\n@attribute q {0,1}\n@data\n"
        "1.5,r,YES,1,0,{0.5}\n?,?,?,0,1,{2}\n-7,b,NO,1,1\n"
    )
    (tmp_path / "a.xml").write_text(
        '<labels><label name="q"><label name="p"/></label></labels>'
    )
    first = read_arff(tmp_path / "a.arff")
    write_arff(tmp_path / "b.arff", first)
    again = read_arff(tmp_path / "b.arff")
    assert again.label_parents == {"q": None, "p": "q"}
    for key in ("X", "Y", "categorical", "sample_weight", "imbalance_ratios"):
        assert_array_equal(again[key], first[key])
    assert (again.feature_names, again.label_names) == (
        first.feature_names,
        first.label_names,
    )
    write_csv(tmp_path / "b.csv", first)
    other = read_csv(tmp_path / "b.csv", first.label_names)
    assert_array_equal(other.X, first.X)


def test_weights_in_sparse_rows(tmp_path):
    write_arff(
        tmp_path / "w.arff",
        sparse.csr_array([[1.0], [0.0]]),
        [[0], [1]],
        sample_weight=[0.25, 3],
    )
    assert_array_equal(read_arff(tmp_path / "w.arff").sample_weight, [0.25, 3])


def test_minus_zero_of_a_category_is_zero(tmp_path):
    bunch = Bunch(X=np.array([[-0.0], [1]]), Y=[[1], [0]], categorical=[True])
    write_arff(tmp_path / "z.arff", bunch)
    found = read_arff(tmp_path / "z.arff")
    assert_array_equal(found.X, [[0], [1]])
    assert found.categorical.all()


def test_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1, 2], "t": ["u", "v"]})
    Y = pd.DataFrame({"l": [True, False]})
    write_arff(tmp_path / "f.arff", X, Y)
    found = read_arff(tmp_path / "f.arff")
    assert found.feature_names == ["a", "t=v"] and found.label_names == ["l"]
    assert_array_equal(found.X, [[1, 0], [2, 1]])


# --- other readers -----------------------------------------------------------------


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_liac_arff_reads_what_we_write(tmp_path, container):
    X = np.array([[0.1, 0, -3], [1e-7, 2, 0]])
    path = tmp_path / "d.arff"
    options = {"feature_names": ["a b", "5%", "it's"], "label_names": ["l,m", "n"]}
    write_arff(path, container(X), [[1, 0], [0, 1]], **options)
    with open(path, encoding="utf-8") as file:
        data = arff.load(file)
    attributes = [name for name, _ in data["attributes"]]
    assert attributes == options["feature_names"] + options["label_names"]
    rows = np.array(data["data"], dtype=np.float64)
    assert_array_equal(rows, np.hstack([X, [[1, 0], [0, 1]]]))


def test_pandas_reads_what_we_write(tmp_path):
    pd = pytest.importorskip("pandas")
    X = np.array([[0.1, np.nan], [1e-7, np.inf]])
    write_csv(tmp_path / "d.csv", X, [[1], [0]], feature_names=["a,b", "c\nd"])
    frame = pd.read_csv(tmp_path / "d.csv")
    assert list(frame.columns) == ["a,b", "c\nd", "y0"]
    assert_array_equal(frame.to_numpy(), np.hstack([X, [[1], [0]]]))


@pytest.mark.skipif(not CLML_DATA, reason="CLML_DATA is not set")
@pytest.mark.parametrize("name", ["flags", "emotions", "enron", "genbase"])
@pytest.mark.parametrize("format", FORMATS)
def test_real_data_come_back_exactly(tmp_path, name, format):
    first = read_arff(f"{CLML_DATA}/{name}/{name}.arff.xz")
    write_arff(tmp_path / "d.arff", first, format=format)
    again = read_arff(tmp_path / "d.arff")
    assert sparse.issparse(again.X) == sparse.issparse(first.X)
    dense = [d.X.toarray() if sparse.issparse(d.X) else d.X for d in (first, again)]
    assert_array_equal(*dense)
    assert_array_equal(again.Y, first.Y)
    assert_array_equal(again.categorical, first.categorical)
    assert again.feature_names == first.feature_names
    assert again.label_names == first.label_names


# --- all or nothing ------------------------------------------------------------------


@pytest.mark.parametrize("suffix", OPENERS)
def test_after_an_error_the_old_file_is_as_it_was(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), atomic_texts(path) as [file]:
        file.write("new" * 10000)
        raise KeyError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("n_good", [0, 1])
def test_nothing_is_left_of_a_pair_of_files(tmp_path, monkeypatch, n_good):
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > n_good:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(_atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_arff(tmp_path / "a.arff", [[1]], [[1]])
    assert os.listdir(tmp_path) == []


def test_files_have_the_permissions_of_others(tmp_path):
    (tmp_path / "plain").write_text("")
    write_csv(tmp_path / "d.csv", [[1]], [[1]])
    modes = {os.stat(tmp_path / name).st_mode for name in ("plain", "d.csv")}
    assert len(modes) == 1


# --- refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (([[1]], [[2]]), {}, "the label 'y0' must be 0 or 1, got 2"),
        (([[1]],), {}, "Y must be given unless X is a Bunch"),
        ((Bunch(X=[[1]], Y=[[1]]), [[1]]), {}, "Y must be None where X is a Bunch"),
        ((Bunch(X=[[1]]),), {}, "X must be a Bunch with X and Y"),
        (([[1]], [[1], [0]]), {}, "same number of rows; got 1 in X and 2 in Y"),
        (([[1]], [[1]]), {"feature_names": ["y0"]}, "are both named 'y0'"),
        (([[1]], [[1]]), {"feature_names": ["\ud800"]}, "text that can be encoded"),
        (([[1]], [[1]]), {"label_names": ["a", "b"]}, "label_names must name each"),
    ],
    ids=range(8),
)
@pytest.mark.parametrize("write", [write_arff, write_csv])
def test_bad_data(tmp_path, write, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "d.arff", *arguments, **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "options, message",
    [
        ({"format": "weka"}, r"format must be one of \['mulan', 'meka'\], got 'weka'"),
        ({"relation": "a -C 3"}, r"relation must not count labels.*got 'a -C 3'"),
        ({"relation": "\ud800"}, "relation must be text that can be encoded"),
        ({"label_names": ["a\0"]}, "characters that XML knows"),
        ({"label_parents": {"y0": "z"}}, "label_parents must hold names .* got 'z'"),
        ({"label_parents": {"z": None}}, "label_parents must hold names .* got 'z'"),
        ({"label_parents": {"y0": "y0"}}, "got a circle"),
        ({"sample_weight": [1, 2]}, "sample_weight must hold 1 numbers"),
        ({"sample_weight": [-1]}, "sample_weight must hold 1 numbers, finite"),
        ({"sample_weight": [np.nan]}, "sample_weight must hold 1 numbers, finite"),
    ],
    ids=range(10),
)
def test_bad_options_of_arff(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        write_arff(tmp_path / "d.arff", [[1]], [[1]], **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["d", "d.csv", "d.arff.zip", ".arff", "d.xz"])
def test_bad_names_of_arff_files(tmp_path, name):
    with pytest.raises(ValueError, match=r"path must end in \.arff"):
        write_arff(tmp_path / name, [[1]], [[1]])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"delimiter": "\n"}, "delimiter must be one of"),
        ({"feature_names": [""]}, "must not be empty or hold zero bytes, got ''"),
        ({"label_names": ["a\0"]}, "must not be empty or hold zero bytes"),
    ],
    ids=range(3),
)
def test_bad_options_of_csv(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        write_csv(tmp_path / "d.csv", [[1]], [[1]], **options)


def test_bad_places(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such folder"):
        write_csv(tmp_path / "none" / "d.csv", [[1]], [[1]])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_csv(tmp_path, [[1]], [[1]])


def test_hierarchies_deeper_than_readers_accept():
    labels = [str(n) for n in range(100)]
    parents = dict(zip(labels[1:], labels, strict=False))
    with pytest.raises(ValueError, match="must not nest deeper than 99"):
        labels_xml(labels, parents)
    assert labels_xml(labels[:99], {k: parents[k] for k in labels[1:99]})


def test_inputs_are_not_modified(tmp_path):
    X, Y = np.array([[-0.0, np.nan]]), np.array([[1]])
    X.flags.writeable = Y.flags.writeable = False
    bunch = Bunch(X=X, Y=Y, categorical=np.array([True, False]))
    write_arff(tmp_path / "d.arff", bunch)
    write_csv(tmp_path / "d.csv", bunch)
    assert np.signbit(X[0, 0])

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from clml.datasets._arff import read_arff
from clml.datasets._frames import as_dataset
from clml.datasets._write import write_arff
from clml.datasets.csv import read_csv

TRAIN = """,size,sky,windy,key,rain,snow
r0,1.5,grey,yes,k0,1,0
r1,2,blue,no,k1,0,0
r2,,grey,Yes,k2,1,1
r3,-999,black,,k3,0,1
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def train(written):
    # Enough rows for the key to be an identifier.
    more = "".join(f"r{n},{n},blue,no,k{n},0,1\n" for n in range(4, 12))
    path = written(TRAIN + more, "train.csv")
    return read_csv(path, ["rain", "snow"], missing_values=["-999"])


def test_worked_example(written, train):
    assert train.schema == {
        "features": ["size", "sky", "windy"],
        "values": {"sky": ["black", "blue", "grey"], "windy": ["False", "True"]},
        "dropped": ["", "key"],
        "labels": ["rain", "snow"],
        "nominals": "onehot",
        "missing_values": ["-999"],
    }
    text = "snow,windy,sky,rain,size\n1,NO,blue,0,7\n0,y,grey,1,-999.0\n"
    test = read_csv(written(text), like=train)
    names = ["size", "sky=black", "sky=blue", "sky=grey", "windy"]
    assert test.feature_names == train.feature_names == names
    assert test.label_names == ["rain", "snow"]
    assert_array_equal(test.X, [[7, 0, 1, 0, 0], [np.nan, 0, 0, 1, 1]])
    assert_array_equal(test.Y, [[0, 1], [1, 0]])
    assert_array_equal(test.categorical, train.categorical)
    assert test.schema == train.schema and test.notes == []


def test_a_schema_survives_a_file(written, train):
    schema = json.loads(json.dumps(train.schema))
    path = written(TRAIN.replace("r3", "q"))
    from_file, from_data = read_csv(path, like=schema), read_csv(path, like=train)
    assert_array_equal(from_file.X, from_data.X)
    assert from_file.schema == train.schema
    assert schema == train.schema  # not modified


def test_what_was_left_out_is_left_out_and_more_is_named(written, train):
    text = "extra,key,size,sky,windy,rain,snow\n5.5,z,1,grey,no,1,0\n"
    test = read_csv(written(text), like=train)
    assert test.feature_names == train.feature_names
    assert {name: words.tolist() for name, words in test.dropped.items()} == {
        "extra": ["5.5"],
        "key": ["z"],
    }
    assert test.notes == [
        "'extra' was left out: like does not have it.",
        "'key' was left out: like leaves it out too.",
    ]
    assert test.n_features == 5
    assert test.schema["dropped"] == ["", "key", "extra"]


def test_identifiers_are_those_of_the_first_file(written):
    few = read_csv(written("key,l\nc,1\na,0\nb,1\n"), "l")
    rows = "".join(f"{'abc'[n % 3]},1\n" for n in range(20))
    assert read_csv(written("key,l\n" + rows), like=few).X.shape == (20, 3)
    kept = read_csv(written("key,l\n" + rows), "l")
    alone = "".join(f"k{n},1\n" for n in range(20))
    ignored = read_csv(written("key,l\n" + alone), like=kept, unknown="ignore")
    assert_array_equal(ignored.X, np.zeros((20, 3)))


@pytest.mark.parametrize(
    "nominals, expected",
    [
        ("onehot", [[0, 0, 1, 1], [0, 0, 0, np.nan], [0, 0, 0, np.nan]]),
        ("codes", [[2, 1], [np.nan, np.nan], [np.nan, np.nan]]),
    ],
)
def test_unknown_values(written, nominals, expected):
    like = read_csv(written("a,b,l\nx,u,1\ny,v,0\nz,u,1\n"), "l", nominals=nominals)
    path = written("b,a,l\nv,z,1\n,,1\nw,q,1\n", "test.csv")
    with pytest.raises(ValueError) as error:
        read_csv(path, like=like)
    assert str(error.value) == (
        f"{path}, line 4: the column 'a' must have values of like, ['x', 'y', 'z'], "
        "got 'q'; unknown='ignore' takes others as missing."
    )
    data = read_csv(path, like=like, unknown="ignore")
    assert_array_equal(data.X, expected)
    assert data.notes == [
        "'a' has values that like does not have, taken as missing: ['q'].",
        "'b' has values that like does not have, taken as missing: ['w'].",
    ]


def test_numeric_stays_numeric(written):
    like = read_csv(written("a,b,l\n1,2,1\n"), "l")
    path = written("b,a,l\n1,1,1\n,x1,0\n2,y,0\n")
    for unknown in ("error", "ignore"):
        with pytest.raises(
            ValueError,
            match="line 3: the column 'a' must be numeric, as in like, got 'x1'; see",
        ):
            read_csv(path, like=like, unknown=unknown)
    data = read_csv(path, like=like, missing_values=["x1", "y"])
    assert_array_equal(data.X, [[1, 1], [np.nan, np.nan], [np.nan, 2]])
    assert data.schema["missing_values"] == ["x1", "y"]
    path = written("b;a;l\n1,5;1;1\n;unknown;0\n")
    with pytest.raises(ValueError, match=r"line 3: the column 'a' .* got 'unknown'"):
        read_csv(path, like=like, delimiter=";", decimal=",")


def test_numbers_are_values_of_a_nominal_by_their_value(written):
    like = read_csv(written("a,l\n1,1\n02,0\nb,1\n"), "l", nominals="codes")
    assert like.schema["values"] == {"a": ["02", "1", "b"]}
    data = read_csv(written("a,l\n2,1\n1.0,0\n,0\n"), like=like)
    assert_array_equal(data.X, [[0], [1], [np.nan]])
    both = read_csv(written("a,l\n1,1\n01,0\nb,1\n"), "l")
    with pytest.raises(ValueError, match=r"line 2: .* got '1'"):  # which of them?
        read_csv(written("a,l\n1,1\n"), like=both)


def test_yes_and_no_by_their_meaning(written):
    like = read_csv(written("a,l\nyes,1\nno,0\n"), "l")
    for words in (["Yes", "NO"], ["1", "0"], ["True", "f"]):
        data = read_csv(
            written("a,l\n" + "".join(f"{w},1\n" for w in words)), like=like
        )
        assert data.feature_names == ["a"]
        assert_array_equal(data.X, [[1], [0]])


@pytest.mark.parametrize(
    "text, message",
    [
        ("size,rain,snow\n1,1,0\n", r"no columns for the features \['sky', 'windy'\]"),
        ("size,sky,windy,rain\n1,grey,no,1\n", "no column for the label 'snow'"),
        ("size;sky;windy\n1;grey;no\n", "there is only one column, 'size;sky;windy'"),
    ],
)
def test_columns_that_are_not_there(written, train, text, message):
    path = written(text)
    with pytest.raises(ValueError, match=message) as error:
        read_csv(path, like=train)
    assert str(error.value).startswith(str(path))


def test_other_labels_may_be_named(written, train):
    path = written(TRAIN)
    data = read_csv(path, "snow", like=train)
    assert data.label_names == ["snow"] and data.feature_names == train.feature_names
    assert_array_equal(data.dropped["rain"], ["1", "0", "1", "0"])
    with pytest.raises(ValueError, match=r"for the features \['windy'\] of like"):
        read_csv(path, "windy", like=train)


@given(st.data())
@settings(max_examples=40)
def test_parts_of_a_file_are_coded_as_the_whole(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("parts")
    words = st.sampled_from(["a", "b", "c", "", "NA"])
    numbers = st.sampled_from(["1", "2.5", "", "-3e2"])
    kinds = data.draw(
        st.lists(st.sampled_from([words, numbers]), min_size=1, max_size=4)
    )
    n_rows = data.draw(st.integers(1, 14))
    columns = {
        f"x{n}": [data.draw(kind) for _ in range(n_rows)]
        for n, kind in enumerate(kinds)
    }
    columns["l"] = ["1"] * n_rows

    def write(name, order, rows):
        lines = [order, *([columns[c][row] for c in order] for row in rows)]
        path = folder / name
        path.write_text("\n".join(",".join(line) for line in lines))
        return path

    options = {"nominals": data.draw(st.sampled_from(["onehot", "codes"]))}
    whole = read_csv(write("whole.csv", list(columns), range(n_rows)), "l", **options)
    order = data.draw(st.permutations(list(columns)))
    rows = data.draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=5))
    part = read_csv(write("part.csv", order, rows), like=whole)
    assert part.feature_names == whole.feature_names
    assert part.schema == whole.schema
    assert_array_equal(part.X, whole.X[rows])


# --- frames and arrays -------------------------------------------------------------


def test_a_frame_like_a_file(train):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "windy": [True, None],
            "sky": pd.Categorical(["blue", "grey"], ["pink", "grey", "blue"]),
            "size": [-999, 3],
            "snow": [0, 1],
            "rain": [1, 1],
        }
    )
    nan = np.nan
    expected = [[nan, 0, 1, 0, 1], [3, 0, 0, 1, nan]]
    data = as_dataset(frame, like=train)
    assert data.feature_names == train.feature_names
    assert_array_equal(data.X, expected)
    assert_array_equal(data.Y, [[1, 0], [1, 1]])
    apart = as_dataset(
        frame[["size", "sky", "windy"]], frame[["snow", "rain"]], like=train
    )
    assert_array_equal(apart.X, expected)
    assert_array_equal(apart.Y, data.Y)
    assert apart.label_names == apart.schema["labels"] == ["rain", "snow"]
    frame["sky"] = ["blue", "pink"]
    with pytest.raises(ValueError, match=r"X: the column 'sky' .* 'pink'.*\(row 1\)"):
        as_dataset(frame, like=train)


def test_arrays_like_arrays():
    like = as_dataset([[1, "a"], [2, "b"]], [[1, 0], [0, 1]], label_names=["p", "q"])
    assert like.schema["features"] == ["x0", "x1"]
    data = as_dataset([[5, "b"]], [[1, 1]], like=like)
    assert data.label_names == ["p", "q"]
    assert_array_equal(data.X, [[5, 1]])
    swapped = as_dataset(
        [["b", 5]],
        [[1, 0]],
        feature_names=["x1", "x0"],
        label_names=["q", "p"],
        like=like,
    )
    assert_array_equal(swapped.X, data.X)
    assert_array_equal(swapped.Y, [[0, 1]])
    numbers = as_dataset([[1.0, 2.0]], [[1, 0]])
    assert numbers.schema["features"] == ["x0", "x1"]
    assert_array_equal(as_dataset(np.eye(2), np.eye(2), like=numbers).X, np.eye(2))


def test_sparse_like_sparse():
    X, Y = (
        sparse.csr_array([[0, 2.0, 3.0], [1, 0, 0]]),
        sparse.coo_matrix([[1, 0], [0, 1]]),
    )
    like = as_dataset(X, Y, feature_names=["a", "b", "c"], label_names=["p", "q"])
    test = as_dataset(
        X, Y, feature_names=["c", "a", "b"], label_names=["q", "p"], like=like
    )
    assert test.feature_names == ["a", "b", "c"] and test.label_names == ["p", "q"]
    assert_array_equal(test.X.toarray(), X.toarray()[:, [1, 2, 0]])
    assert test.X.has_canonical_format and test.X.indices.dtype == np.int32
    assert_array_equal(test.Y.toarray(), [[0, 1], [1, 0]])
    wide = sparse.hstack([X, X]).tocsr()
    more = as_dataset(wide, Y, feature_names=list("abcdef"), like=like)
    assert_array_equal(more.X.toarray(), X.toarray())
    assert more.notes == [f"{n!r} was left out: like does not have it." for n in "def"]


@pytest.mark.parametrize(
    "X, Y, options, message",
    [
        ([[1]], [[1]], {}, r"for the features \['x1'\] of like; the columns are"),
        ([[1, 2]], [[1, 0]], {}, "label_names must name each of the 2"),
        ([[1, 2]], [[1]], {"label_names": ["z"]}, r"Y must have the labels of like"),
        (sparse.csr_array([[1]]), [[1]], {}, r"for the features \['x1'\] of like"),
        ([[1, 2]], sparse.csr_array([[1, 0]]), {}, "label_names must name each"),
        ([[1, "a"]], [[1]], {}, r"'x1' must be numeric, as in like, got 'a' \(row 0\)"),
    ],
    ids=range(6),
)
def test_data_that_do_not_follow(X, Y, options, message):
    like = as_dataset([[1.0, 2.0]], [[1]])
    with pytest.raises(ValueError, match=message):
        as_dataset(X, Y, like=like, **options)


def test_sparse_data_have_no_nominals():
    like = as_dataset([["a"], ["b"]], [[1], [0]])
    with pytest.raises(ValueError, match=r"X must be dense .* nominals \['x0'\]"):
        as_dataset(sparse.csr_array([[1]]), [[1]], like=like)


# --- refused -----------------------------------------------------------------------


def test_data_of_other_readers_have_no_schema(written, tmp_path):
    write_arff(tmp_path / "d.arff", [[1.0]], [[1]])
    with pytest.raises(ValueError, match="the entry 'features' of a schema is absent"):
        read_csv(written(TRAIN), like=read_arff(tmp_path / "d.arff"))


@pytest.mark.parametrize(
    "change, exception, message",
    [
        (lambda schema: "schema", TypeError, "like must be data from .* got str"),
        (lambda schema: {"schema": 3}, TypeError, "like must have a schema, got int"),
        (lambda schema: {**schema, "features": [1]}, ValueError, "'features'"),
        (lambda schema: {**schema, "values": {"a": 1}}, ValueError, "'values'"),
        (lambda schema: {**schema, "features": ["a", "a"]}, ValueError, "'features'"),
        (lambda schema: {**schema, "values": {"a": ["1", "1"]}}, ValueError, "'value"),
        (lambda schema: {**schema, "nominals": "x"}, ValueError, "'nominals'"),
        (lambda schema: {"features": []}, ValueError, "'values' of a schema is absent"),
    ],
    ids=range(8),
)
def test_bad_schemas(written, train, change, exception, message):
    with pytest.raises(exception, match=message):
        read_csv(written(TRAIN), like=change(train.schema))


def test_options_that_contradict(written, train):
    with pytest.raises(ValueError, match="nominals must be 'onehot', as in like"):
        read_csv(written(TRAIN), like=train, nominals="codes")
    with pytest.raises(ValueError, match=r"unknown must be one of .* got 'drop'"):
        as_dataset([[1]], [[1]], unknown="drop")

"""What DATA and --labels stand for."""

import click
import numpy as np
import pytest

from clml._commands._data import Data, LabelChoice, find_source, parse_labels, read_data
from clml._commands._rows import match_features, match_labels, take_part

SOURCE = find_source("emotions")


@pytest.mark.parametrize(
    ("name", "kind", "delimiter"),
    [
        ("a.arff", "arff", ","),
        ("a.arff.xz", "arff", ","),
        ("a.CSV", "csv", ","),
        ("a.tsv.gz", "csv", "\t"),
        ("a.b.parquet", "parquet", ","),
        ("a.libsvm", "svmlight", ","),
        ("rows.txt", "svmlight", ","),
        ("counts.txt", "xc", ","),
    ],
)
def test_the_suffix_tells_the_format(tmp_path, name, kind, delimiter):
    path = tmp_path / name
    path.write_text("2 3 4\n" if name == "counts.txt" else "1 1:2\n")
    source = find_source(str(path))
    assert (source.kind, source.delimiter) == (kind, delimiter)


def test_a_suffix_that_tells_nothing(tmp_path):
    path = tmp_path / "a.data"
    path.touch()
    with pytest.raises(click.BadParameter, match="--format"):
        find_source(str(path))
    assert find_source(str(path), "csv", "semicolon").delimiter == ";"


def test_known_datasets_in_any_case():
    assert find_source("Emotions").kind == "dataset"
    with pytest.raises(click.BadParameter, match="are known"):
        read_data(find_source("flags"), LabelChoice(count=3))


def test_labels_from_a_list_in_a_file(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("rain, heavy\n\nwind\n")
    assert parse_labels(str(path)).names == ("rain, heavy", "wind")


def test_a_list_that_is_no_text(tmp_path):
    path = tmp_path / "names.txt"
    path.write_bytes(b"rain\n\xff\n")
    with pytest.raises(click.BadParameter, match=r"names\.txt: this is no UTF-8"):
        parse_labels(str(path))


@pytest.mark.parametrize("text", ["0", ",", ""])
def test_labels_that_are_none(text):
    with pytest.raises(click.BadParameter):
        parse_labels(text)


@pytest.mark.parametrize(
    ("labels", "names"),
    [("2", ["a", "b"]), ("-1", ["d"]), ("b,a", ["b", "a"]), ("a*", ["a"])],
)
def test_labels_of_a_file(tmp_path, labels, names):
    path = tmp_path / "x.csv"
    path.write_text("a;b;c;d\n0;1;5;0\n1;0;6;1\n")
    source = find_source(str(path), delimiter="semicolon")
    assert read_data(source, parse_labels(labels)).label_names == names


def test_sparse_rows_have_no_prefix(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("0 1:1\n1 1:2\n")
    source = find_source(str(path))
    with pytest.raises(click.BadParameter, match="labels of sparse rows are numbers"):
        read_data(source, parse_labels("y*"))
    named = read_data(source, parse_labels("rain,wind,sun"))
    assert named.label_names == ["rain", "wind", "sun"]
    assert named.Y.tolist() == [[1, 0, 0], [0, 1, 0]]


def example():
    X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return Data(X, np.array([[0, 1], [1, 1]]), ["a", "b", "c"], ["y", "z"])


def test_columns_are_matched_by_name():
    assert match_features(SOURCE, example(), ["c", "a"], 2).X.tolist() == [
        [3.0, 1.0],
        [6.0, 4.0],
    ]
    with pytest.raises(ValueError, match=r"no columns for the features \['d'\]"):
        match_features(SOURCE, example(), ["a", "d"], 2)


def test_columns_without_names_are_matched_by_place():
    found = match_features(SOURCE, example(), None, 2, labels=["b"])
    assert found.feature_names == ["a", "c"]
    with pytest.raises(ValueError, match="takes 4 features, got 3"):
        match_features(SOURCE, example(), None, 4)


def test_labels_are_matched_by_name():
    assert match_labels(SOURCE, example(), ["z", "y"]).Y.tolist() == [[1, 0], [1, 1]]
    # Labels of a model that knows no names are those of the file.
    assert match_labels(SOURCE, example(), ["label0", "label1"]).Y is not None
    for wanted in (["y"], ["y", "z", "w"], ["y", "w"]):
        with pytest.raises(ValueError, match="the model predicts the labels"):
            match_labels(SOURCE, example(), wanted)


def test_parts_hold_every_row_once():
    Y = np.arange(20)[:, None] % 2
    data = Data(np.arange(20.0)[:, None], Y, None, ["y"], sample_weight=np.arange(20.0))
    train, test = (take_part(data, part, seed=3) for part in ("train", "test"))
    assert (len(train.X), len(test.X)) == (14, 6)
    assert sorted([*train.X[:, 0], *test.X[:, 0]]) == list(range(20))
    np.testing.assert_array_equal(test.sample_weight, test.X[:, 0])

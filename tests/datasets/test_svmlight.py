import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from clml.datasets import _pair_rows
from clml.datasets._svmlight import read_svmlight, read_xc


@pytest.fixture
def written(tmp_path):
    def write(text, name="rows.svm"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_worked_example(written):
    text = "\n".join(
        [
            "# a line of its own",
            "3,7 1:0.5 9:2 # comment 4:4",
            " 2:-1e3",
            "4:7",
            "",
            "+7.0 qid:12 1:1",
            "-2",
        ]
    )
    data = read_svmlight(written(text))
    expected = np.zeros((5, 9))
    expected[0, [0, 8]] = [0.5, 2]
    expected[1, 1] = -1000
    expected[2, 3] = 7
    expected[3, 0] = 1
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.dtype == np.float64 and data.X.indices.dtype == np.int32
    assert_array_equal(data.X.toarray(), expected)
    assert data.label_names == ["-2", "3", "7"]
    assert data.Y.dtype == np.int64
    assert_array_equal(data.Y, [[0, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]])
    assert data.n_features == 9 and data.cardinality == 0.8
    assert data.feature_names[8] == "x8"


def test_worked_example_of_the_extreme_format(written):
    data = read_xc(written("3 4 5\n4,0 0:1 3:2.5\n\n 1:3\n"))
    assert_array_equal(data.X.toarray(), [[1, 0, 0, 2.5], [0, 0, 0, 0], [0, 3, 0, 0]])
    assert_array_equal(data.Y, [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    assert data.label_names == ["0", "1", "2", "3", "4"]


def test_empty_lines_at_the_end_of_the_extreme_format(written):
    assert read_xc(written("1 1 1\n0 0:1\n\n\n")).X.shape == (1, 1)
    assert read_xc(written("2 1 1\n0 0:1\n\n\n")).X.shape == (2, 1)


# --- against scikit-learn --------------------------------------------------------


def shown(value):
    return f"{value:.16g}"


@st.composite
def sparse_data(draw):
    n_rows = draw(st.integers(1, 6))
    n_columns = draw(st.integers(1, 7))
    values = st.one_of(
        st.just(0.0),
        st.floats(-1e300, 1e300),
        st.integers(-3, 3).map(float),
    )
    X = np.array(
        draw(
            st.lists(
                st.lists(values, min_size=n_columns, max_size=n_columns),
                min_size=n_rows,
                max_size=n_rows,
            )
        )
    )
    X = np.array([[float(shown(v)) for v in row] for row in X])
    Y = np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, 1), min_size=3, max_size=3),
                min_size=n_rows,
                max_size=n_rows,
            )
        )
    )
    # scikit-learn's reader drops rows that have neither labels nor features.
    Y[~X.any(axis=1), 0] = 1
    return X, Y


@settings(max_examples=60)
@given(sparse_data(), st.booleans())
def test_files_of_scikit_learn_read_as_it_reads_them(
    tmp_path_factory, data, zero_based
):
    X, Y = data
    path = tmp_path_factory.mktemp("svmlight") / "rows.svm"
    dump_svmlight_file(
        sparse.csr_array(X), Y, str(path), multilabel=True, zero_based=zero_based
    )
    theirs, label_sets = load_svmlight_file(
        str(path), multilabel=True, n_features=X.shape[1], zero_based=zero_based
    )
    ours = read_svmlight(path, n_features=X.shape[1], n_labels=3, zero_based=zero_based)
    assert_array_equal(ours.X.toarray(), theirs.toarray())
    assert_array_equal(ours.X.toarray(), X)
    assert [tuple(np.flatnonzero(row)) for row in ours.Y] == label_sets
    again = read_svmlight(
        path,
        n_features=X.shape[1],
        n_labels=3,
        zero_based=zero_based,
        sparse_labels=True,
    )
    assert again.Y.format == "csr" and again.Y.indices.dtype == np.int32
    assert_array_equal(again.Y.toarray(), ours.Y)


@pytest.mark.parametrize(
    "text, zero_based",
    [
        ("1 0:1 2:2\n0 1:5\n", True),
        ("1 0:1 2:2\n0 1:5\n", "auto"),
        ("1 1:1 2:2\n0 3:5\n", True),
        ("1 1:1 2:2\n0 3:5\n", False),
        ("1 1:1 2:2\n0 3:5\n", "auto"),
    ],
)
def test_where_indices_begin_is_guessed_as_scikit_learn_does(written, text, zero_based):
    path = written(text)
    theirs = load_svmlight_file(str(path), zero_based=zero_based)[0]
    ours = read_svmlight(path, zero_based=zero_based)
    assert_array_equal(ours.X.toarray(), theirs.toarray())


def test_a_row_with_nothing_is_a_row(written):
    # dump_svmlight_file writes a space for it, and the labels must stay in step.
    stream = io.BytesIO()
    X, Y = np.array([[1.0], [0.0], [2.0]]), np.array([[1, 0], [0, 0], [0, 1]])
    dump_svmlight_file(X, Y, stream, multilabel=True)
    data = read_svmlight(written(stream.getvalue()))
    assert_array_equal(data.X.toarray(), X)
    assert_array_equal(data.Y, Y)


# --- properties ------------------------------------------------------------------


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
@settings(max_examples=50)
def test_values_come_back_exactly(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("values") / "rows.svm"
    body = " ".join(f"{n}:{v!r}" for n, v in enumerate(values))
    path.write_text(f"1 {body}\n")
    data = read_svmlight(path, n_features=len(values))
    assert_array_equal(data.X.toarray()[0], values)


def test_unsorted_indices_are_sorted_and_zeros_dropped(written):
    data = read_svmlight(written("1 9:9 2:2 5:0 1:1\n1 4:4 3:3"))
    assert data.X.has_canonical_format
    assert_array_equal(data.X.indices, [0, 1, 8, 2, 3])
    assert_array_equal(data.X.data, [1, 2, 9, 3, 4])


def test_more_long_numbers_than_one_call_notes(written, monkeypatch):
    monkeypatch.setattr(_pair_rows, "_MOST_NOTES", 3)
    value = 0.1234567890123456789
    rows = [
        " ".join(f"{n}:{value * (r + n)!r}" for n in range(1, size + 1))
        for r, size in enumerate([1, 2, 3, 20, 1, 0, 4])
    ]
    data = read_svmlight(written("".join(f"1 {row}\n" for row in rows)))
    for r, size in enumerate([1, 2, 3, 20, 1, 0, 4]):
        expected = [value * (r + n) for n in range(1, size + 1)]
        assert_array_equal(data.X[[r]].data, expected)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ends_of_lines(written, ending, last, mark):
    text = mark + ending.join(["1 1:1", "", " 2:2", "2,1 1:3"])
    data = read_svmlight(written(text + (ending if last else "")))
    assert_array_equal(data.X.toarray(), [[1, 0], [0, 2], [3, 0]])
    assert_array_equal(data.Y, [[1, 0], [0, 0], [1, 1]])


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed(written, compress):
    data = read_svmlight(written(compress(b"1 1:2\n"), "rows.svm.z"))
    assert_array_equal(data.X.toarray(), [[2]])
    assert_array_equal(read_xc(written(compress(b"1 1 1\n0 0:2\n"))).X.toarray(), [[2]])


def test_names_and_numbers_of_labels(written):
    path = written("2 1:1\n0,2 1:1\n")
    assert read_svmlight(path).label_names == ["0", "2"]
    data = read_svmlight(path, n_labels=4, label_names=list("abcd"))
    assert data.label_names == list("abcd")
    assert_array_equal(data.Y, [[0, 0, 1, 0], [1, 0, 1, 0]])


def test_no_features_at_all(written):
    assert read_svmlight(written("1\n2\n")).X.shape == (2, 0)
    assert read_svmlight(written("1\n2\n"), n_features=3).X.shape == (2, 3)


def test_given_counts_allow_what_the_size_of_the_file_does_not(written):
    path = written("1 2000000:1\n")
    with pytest.raises(ValueError, match="line 1: the index at '2000000:1' is above"):
        read_svmlight(path)
    assert read_svmlight(path, n_features=2_000_000).X.shape == (1, 2_000_000)


def test_dense_labels_only_where_they_fit(written):
    n_rows, n_labels = 100, 900_000
    path = written(f"{n_rows} 1 {n_labels}\n" + "5 0:1\n" * n_rows)
    with pytest.raises(
        ValueError, match=r"1,800,000,000 bytes.*Pass sparse_labels=True"
    ):
        read_xc(path)
    Y = read_xc(path, sparse_labels=True).Y
    assert Y.shape == (n_rows, n_labels) and Y.nnz == n_rows


# --- refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "there are no rows"),
        ("# nothing\n\n", "there are no rows"),
        (" 1:1\n", "no row has a label"),
        ("1 1:1\n2 1:1 1:2\n", "line 2: the index 1 stands twice"),
        ("1 1:1\n2 3:1 1:2 3:4\n", "line 2: the index 3 stands twice"),
        ("#\n\n1 1:1\n2,2 1:1\n", "line 4: the label 2 stands twice"),
        ("1 1:1\n1.5 1:1\n", r"line 2: expected labels.*got '1\.5 1:1'"),
        ("1,,2 1:1\n", "line 1: expected labels"),
        ("1, 1:1\n", "line 1: expected labels"),
        (",1 1:1\n", "line 1: expected labels"),
        ("a 1:1\n", "line 1: expected labels"),
        ("nan 1:1\n", "line 1: expected labels"),
        ("inf 1:1\n", "line 1: expected labels"),
        ("99999999999999999999 1:1\n", "line 1: expected labels"),
        ("1 1:1 2\n", "line 1: expected a feature as index:value, got '2'"),
        ("1 2 1:1\n", "line 1: expected a feature as index:value, got '2 1:1'"),
        ("1 1:\n", "line 1: the value at '1:' is no number"),
        ("1 1:1:2\n", "line 1: the value at '1:1:2' is no number"),
        ("1 1:x\n", "line 1: the value at '1:x' is no number"),
        ("1 :1\n", "line 1: the index at ':1' is no number"),
        ("1 -1:1\n", "line 1: the index at '-1:1' is no number"),
        ("1 1.5:1\n", r"line 1: the index at '1\.5:1' is no number"),
        ("1 x:1\n", "line 1: the index at 'x:1' is no number"),
        ("1 1:1\n\n1 1000000000000:1\n", "line 3: the index at '1000000000000:1'"),
        ("1 99999999999999999999999:1\n", "line 1: the index at"),
        ("1 1:1\n1 1000001:1\n0 0:1", "line 2: the index 1000001|line 2: the index at"),
        ("\0\0\0", "line 1: expected labels"),
    ],
)
def test_bad_files(written, text, message):
    path = written(text)
    with pytest.raises(ValueError, match=message) as error:
        read_svmlight(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: expected the numbers of samples, features and labels, got ''"),
        ("1 2\n0 0:1\n", "line 1: expected the numbers"),
        ("1 2 x\n0 0:1\n", "line 1: expected the numbers"),
        ("1 2 -3\n0 0:1\n", "line 1: expected the numbers"),
        ("0 0:1 1:2\n", "line 1: expected the numbers"),
        ("9" * 300, "line 1: expected the numbers"),
        ("2 2 2\n0 0:1\n", "says 2 samples, got 1 rows"),
        ("1 2 2\n0 0:1\n1 0:1\n", "says 1 samples, got 2 rows"),
        ("0 2 2\n", "says 0 samples, got 0 rows"),
        ("999999999999999999999 2 2\n0 0:1\n", "samples, got 1 rows"),
        ("1 2 2\n0 2:1\n", "line 2: the index at '2:1' is above 1"),
        ("2 2 2\n0 0:1\n2 0:1\n", "line 3: expected labels from 0 to 1, got 2"),
        ("1 2 2\n-1 0:1\n", "line 2: expected labels from 0 to 1, got -1"),
        ("1 999999999999 2\n0 0:1\n", "line 1: the number of features must lie"),
        ("1 2 999999999999\n0 0:1\n", "line 1: the number of labels must lie"),
        ("1 0 2\n0 0:1\n", "line 1: the number of features must lie"),
        (
            "1 2 2\n0 0:1 # no\n",
            "line 2: expected a feature as index:value, got '# no'",
        ),
        ("1 2 2\n0 qid:1 0:1\n", "line 2: the index at 'qid:1 0:1' is no number"),
        ("2 2 2\n0 0:1\n0 1:1 1:1\n", "line 3: the index 1 stands twice"),
    ],
    ids=range(19),
)
def test_bad_extreme_files(written, text, message):
    path = written(text)
    with pytest.raises(ValueError, match=message) as error:
        read_xc(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "options, exception, message",
    [
        ({"n_features": 0}, ValueError, "n_features must be None or an integer"),
        ({"n_features": 2**31}, ValueError, "n_features must be None or an integer"),
        ({"n_features": 2.0}, ValueError, r"got 2\.0"),
        ({"n_labels": True}, ValueError, "n_labels must be .* got True"),
        ({"zero_based": "yes"}, ValueError, "zero_based must be .* got 'yes'"),
        ({"sparse_labels": 1}, TypeError, "sparse_labels must be a bool, got 1"),
        ({"label_names": ["a"]}, ValueError, "label_names must name each of the 2"),
        ({"label_names": ["a", "a"]}, ValueError, "label_names: the columns 1 and 2"),
        ({"n_labels": 2}, ValueError, "line 2: expected labels from 0 to 1, got 2"),
        ({"n_features": 2}, ValueError, "line 1: the index at '3:1' is above 2"),
        (
            {"n_features": 3, "zero_based": True},
            ValueError,
            "line 1: the index at '3:1' is above 2",
        ),
    ],
)
def test_bad_arguments(written, options, exception, message):
    path = written("1 1:2 3:1\n2 1:1\n")
    with pytest.raises(exception, match=message):
        read_svmlight(path, **options)


def test_indices_from_zero_where_they_must_not_be(written):
    path = written("1 1:1\n1 0:1 3:1\n")
    with pytest.raises(ValueError, match=r"line 2: indices begin at 1.*got 0"):
        read_svmlight(path, zero_based=False)
    # The 0 in line 2 shows that they begin there; then 3 is the fourth.
    with pytest.raises(ValueError, match="line 2: the index 3 is not below 3"):
        read_svmlight(path, n_features=3)


def test_missing_file(tmp_path):
    for reader in (read_svmlight, read_xc):
        with pytest.raises(FileNotFoundError, match="No such file"):
            reader(tmp_path / "none.svm")


@given(st.binary(max_size=60))
@settings(max_examples=150)
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "rows.svm"
    path.write_bytes(content)
    for reader in (read_svmlight, read_xc):
        try:
            data = reader(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            data.X.check_format(full_check=True)


@given(st.text("01239:,. #-\n", max_size=50))
@settings(max_examples=300)
def test_nearly_right_text_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("text") / "rows.svm"
    for header, reader in (("", read_svmlight), ("3 4 5\n", read_xc)):
        path.write_text(header + content)
        try:
            data = reader(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            data.X.check_format(full_check=True)
            assert data.X.shape[0] == data.Y.shape[0]

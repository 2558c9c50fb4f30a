import datetime
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from clml.datasets._frames import as_dataset


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


def test_worked_example():
    X = np.array([[1, 2.5], [np.nan, 4]])
    data = as_dataset(X, [[1, 0, 1], [0, 0, 1]])
    assert_array_equal(data.X, X)
    assert data.X.dtype == np.float64 and data.Y.dtype == np.int64
    assert data.X is not X
    assert data.feature_names == ["x0", "x1"]
    assert data.label_names == ["y0", "y1", "y2"]
    assert data.cardinality == 1.5 and data.n_label_sets == 2
    assert data.source == "arrays"


def test_worked_example_of_a_frame(pd):
    frame = pd.DataFrame(
        {
            "size": [1, 2, 3],
            "sky": ["grey", None, "blue"],
            "windy": [True, False, True],
            "rain": ["yes", "no", "yes"],
            "snow": [0.0, 0.0, 1.0],
        }
    )
    data = as_dataset(frame, labels=["snow", "rain"])
    assert data.feature_names == ["size", "sky=grey", "windy"]
    assert_array_equal(data.X, [[1, 1, 1], [2, np.nan, 0], [3, 0, 1]])
    assert_array_equal(data.categorical, [False, True, True])
    assert data.label_names == ["snow", "rain"]
    assert_array_equal(data.Y, [[0, 1], [0, 0], [1, 1]])
    assert data.n_features == 3


@pytest.mark.parametrize("options", [{"labels": "l_a"}, {"label_prefix": "l_"}])
def test_labels_among_the_columns(pd, options):
    frame = pd.DataFrame({"l_a": [0, 1], "x": [5.0, 6.0]})
    data = as_dataset(frame, **options)
    assert data.label_names == ["l_a"] and data.feature_names == ["x"]
    assert_array_equal(data.Y, [[0], [1]])


def test_frames_of_features_and_of_labels(pd):
    X = pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}, index=[7, 9])
    Y = pd.DataFrame({"l": [True, False], "m": ["n", "y"]}, index=[7, 9])
    data = as_dataset(X, Y)
    assert data.feature_names == ["a", "b=v"] and data.label_names == ["l", "m"]
    assert_array_equal(data.Y, [[1, 0], [0, 1]])
    renamed = as_dataset(X, Y, feature_names=["p", "q"], label_names=["r", "s"])
    assert renamed.feature_names == ["p", "q=v"] and renamed.label_names == ["r", "s"]


def test_categoricals_keep_the_order_of_their_categories(pd):
    sizes = pd.Categorical(["m", "s", None, "m"], categories=["s", "m", "l"])
    frame = pd.DataFrame({"size": sizes, "l": [1, 0, 1, 0]})
    assert as_dataset(frame, labels="l").feature_names == ["size=s", "size=m", "size=l"]
    codes = as_dataset(frame, labels="l", nominals="codes").X
    assert_array_equal(codes, [[1], [0], [np.nan], [1]])


def test_kinds_of_columns(pd):
    frame = pd.DataFrame(
        {
            "int8": np.array([1, -2], dtype=np.int8),
            "float32": np.array([0.1, np.inf], dtype=np.float32),
            "nullable": pd.array([1, None], dtype="Int64"),
            "flag": pd.array([True, None], dtype="boolean"),
            "time": pd.to_datetime(["1970-01-02", None]),
            "zone": pd.to_datetime(["1970-01-01T01:00+01:00"] * 2, utc=True),
            "span": pd.to_timedelta(["1s", "1h"]),
            "decimal": [Decimal("0.5"), None],
            "object": [3, 4.5],
            "flags": np.array([True, False], dtype=object),
            "text": pd.array(["b", "a"], dtype="string"),
        }
    )
    data = as_dataset(frame, [[1], [0]])
    assert data.feature_names == [*frame.columns[:-1], "text=b"]
    nan = np.nan
    first = [1, np.float32(0.1), 1, 1, 86400, 0, 1, 0.5, 3, 1, 1]
    second = [-2, np.inf, nan, nan, nan, 0, 3600, nan, 4.5, 0, 0]
    assert_array_equal(data.X, np.array([first, second], dtype=np.float64))


def test_arrays_of_text():
    X = np.array([["red", 1], ["blue", 2.5], [None, np.nan]], dtype=object)
    data = as_dataset(X, [[1], [0], [1]], feature_names=["colour", "size"])
    assert data.feature_names == ["colour=red", "size"]
    assert_array_equal(data.X, [[1, 1], [0, 2.5], [np.nan, np.nan]])
    mixed = as_dataset([[5, "a"], [6.5, "b"]], [[1], [0]])
    assert_array_equal(mixed.X, [[5, 0], [6.5, 1]])
    words = as_dataset([["a"], ["b"], ["c"]], [[1], [0], [1]])
    assert words.feature_names == ["x0=a", "x0=b", "x0=c"]


def test_identifiers(pd):
    frame = pd.DataFrame({"key": [f"r{n}" for n in range(12)], "x": range(12)})
    data = as_dataset(frame, np.eye(12, 2, dtype=int))
    assert data.feature_names == ["x"] and list(data.dropped) == ["key"]
    assert data.n_features == 2 and len(data.notes) == 1
    kept = as_dataset(frame, np.eye(12, 2, dtype=int), drop_identifiers=False)
    assert kept.X.shape == (12, 13)


def test_a_stray_word_among_numbers_draws_a_warning(pd):
    values = pd.Series([*range(15), "bad", *range(20, 30)])
    frame = pd.DataFrame({"a": 1.0, "x": values, "l": 1})
    expected = (
        "X: 'x' is taken as text: 25 of its values are numbers, 1 not, first 'bad'"
    )
    with pytest.warns(UserWarning, match=f"{expected} in row 15") as caught:
        data = as_dataset(frame, labels="l")
    assert caught[0].filename == __file__
    assert data.X.shape == (26, 27) and data.dropped == {} and len(data.notes) == 1
    with pytest.warns(UserWarning, match=expected) as caught:
        assert as_dataset(frame[["x"]], frame[["l"]]).notes == data.notes
    assert caught[0].filename == __file__
    declared = frame.assign(x=frame["x"].astype("category"))
    options = {"nominals": "codes", "drop_identifiers": False}
    assert as_dataset(declared, labels="l", **options).notes == []


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.coo_matrix])
def test_sparse(container):
    X = np.array([[0, 1.5], [0, 0]])
    data = as_dataset(container(X), container([[0, 1], [0, 0]]), label_names=["a", "b"])
    assert isinstance(data.X, sparse.csr_array) and isinstance(data.Y, sparse.csr_array)
    assert data.X.indices.dtype == np.int32
    assert_array_equal(data.X.toarray(), X)
    assert_array_equal(data.Y.toarray(), [[0, 1], [0, 0]])
    assert data.label_names == ["a", "b"]


def test_repeated_entries_are_added_and_the_input_is_as_it_was():
    X = sparse.csr_array(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3]), shape=(1, 2))
    kept = X.data.copy(), X.indices.copy()
    data = as_dataset(X, [[1]])
    assert_array_equal(data.X.toarray(), [[2, 4]])
    assert data.X.has_canonical_format
    assert_array_equal(X.data, kept[0])
    assert_array_equal(X.indices, kept[1])


class Series:
    """What polars offers of a column."""

    def __init__(self, values):
        self._values = np.array(values)
        self.dtype = "not of numpy"

    @property
    def cat(self):
        return object()

    def to_numpy(self):
        return self._values


class Frame:
    """What polars offers of a frame: names in a list, columns by number."""

    def __init__(self, **columns):
        self._columns = columns
        self.columns = list(columns)
        self.dtypes = ["?"] * len(columns)

    def __getitem__(self, key):
        rows, number = key
        assert rows == slice(None)
        return Series(self._columns[self.columns[number]])


def test_frames_of_other_libraries():
    frame = Frame(
        a=[1, 2], t=["x", "y"], when=np.array([0, 1], "M8[D]"), l=[True, False]
    )
    data = as_dataset(frame, labels="l")
    assert data.feature_names == ["a", "t=y", "when"]
    assert_array_equal(data.X, [[1, 0, 0], [2, 1, 86400]])
    assert_array_equal(data.Y, [[1], [0]])


def test_optional_packages_are_not_needed():
    code = (
        "import sys;"
        "sys.modules.update(dict.fromkeys(['pandas', 'pyarrow', 'polars']));"
        "from clml.datasets import csv, parquet, _svmlight, _write;"
        "from clml.datasets._frames import as_dataset;"
        "print(as_dataset([[5, 'a'], [6, 'b']], [[1], [0]]).feature_names)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.stderr) == ("['x0', 'x1=b']", "")


@given(st.permutations(["b", "a", "c", "a", None, "d"]))
@settings(max_examples=30)
def test_codes_follow_the_rows(values):
    X = np.array(values, dtype=object)[:, None]
    data = as_dataset(X, np.ones((6, 1)), nominals="codes")
    expected = [np.nan if v is None else "abcd".index(v) for v in values]
    assert_array_equal(data.X[:, 0], expected)


def test_inputs_are_not_modified(pd):
    frame = pd.DataFrame({"t": ["b", "a"], "x": [1.0, 2.0], "l": [1, 0]})
    copy = frame.copy()
    as_dataset(frame, labels="l")
    pd.testing.assert_frame_equal(frame, copy)
    X, Y = np.eye(2), np.eye(2, dtype=int)
    X.flags.writeable = Y.flags.writeable = False
    data = as_dataset(X, Y)
    data.X[0, 0] = data.Y[0, 0] = 5  # copies
    assert_array_equal(X, np.eye(2))


def test_missing_labels():
    Y = [[1.0, np.nan]]
    with pytest.raises(ValueError, match="the value of the label 'y1' is missing"):
        as_dataset([[1]], Y)
    assert_array_equal(as_dataset([[1]], Y, missing_labels="negative").Y, [[1, 0]])


@pytest.mark.parametrize(
    "arguments, exception, message",
    [
        (([[1]],), ValueError, "Y must be given where X is no data frame"),
        (([[1]], [[1]], "a"), ValueError, "either Y or the names of its columns"),
        (([1, 2], [[1], [0]]), ValueError, r"X must be two-dimensional.*\(2,\)"),
        (([[1], [2]], [1, 0]), ValueError, r"Y must be two-dimensional.*\(2,\)"),
        (([[1], [2]], [[1]]), ValueError, "same number of rows; got 2 in X and 1"),
        (([[1]], [[2]]), ValueError, "the label 'y0' must be 0 or 1, got 2"),
        (([[1]], [["maybe"]]), ValueError, "the label 'y0' must be numeric or have"),
        (([[1j]], [[1]]), TypeError, "must hold numbers, .* got the type complex128"),
        ((sparse.csr_array([[1j]]), [[1]]), TypeError, "X must hold real numbers"),
        (
            ([[1]], sparse.csr_array([[2]])),
            ValueError,
            "Y must contain only 0 and 1; got 2 at",
        ),
        (
            (np.empty((0, 2)), np.empty((0, 1))),
            ValueError,
            "X must have at least one row",
        ),
        ((np.empty((2, 0)), [[1], [0]]), ValueError, "X must have at least one column"),
    ],
    ids=range(12),
)
def test_bad_data(arguments, exception, message):
    with pytest.raises(exception, match=message):
        as_dataset(*arguments)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"feature_names": ["a"]}, "feature_names must name each of the 2"),
        ({"feature_names": ["a", "a"]}, "feature_names: the columns 1 and 2"),
        ({"label_names": ["a", "b"]}, "label_names must name each of the 1"),
        ({"nominals": "x"}, "nominals must be one of"),
    ],
)
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_bad_options(container, options, message):
    with pytest.raises(ValueError, match=message):
        as_dataset(container([[1.0, 2.0]]), container([[1]]), **options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "got neither"),
        ({"labels": "z"}, "X: there is no column for the label 'z'"),
        ({"labels": "a", "feature_names": ["a"]}, "are both named 'a'"),
        ({"label_prefix": "z"}, "no column begins with"),
    ],
)
def test_bad_options_of_frames(pd, options, message):
    with pytest.raises(ValueError, match=message):
        as_dataset(pd.DataFrame({"a": [1, 0], "b": [1, 2]}), **options)


def test_names_that_stand_twice(pd):
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="X: the columns 1 and 2 are both named 'a'"):
        as_dataset(frame, [[1]])


FAR = ["1970-01-02", "9999-12-31"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "D", "h", "M", "Y"])
def test_times_that_nanoseconds_do_not_reach(unit):
    times = np.array(FAR, dtype=f"datetime64[{unit}]")
    X = as_dataset(times[:, None], np.eye(2, dtype=int)).X
    expected = times.astype("datetime64[s]").astype(np.int64).astype(float)
    np.testing.assert_array_equal(X[:, 0], expected)


def test_times_of_frames_and_of_python(pd):
    dates = [datetime.date(1970, 1, 2), None, datetime.date(9999, 12, 31)]
    expected = [86400.0, np.nan, 253402214400.0]
    frame = pd.DataFrame(
        {
            "plain": pd.to_datetime(pd.Series(dates)).astype("datetime64[s]"),
            "zone": pd.to_datetime(pd.Series(dates))
            .astype("datetime64[s]")
            .dt.tz_localize("UTC"),
            "object": pd.Series(dates, dtype=object),
            "l": [0, 1, 1],
        }
    )
    data = as_dataset(frame, labels="l")
    for number in range(3):
        np.testing.assert_array_equal(data.X[:, number], expected)
    long = np.array([[400 * 365], [1]], dtype="timedelta64[D]")
    np.testing.assert_array_equal(
        as_dataset(long, np.eye(2, dtype=int)).X[:, 0], [400 * 365 * 86400.0, 86400.0]
    )

import datetime
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from clml.datasets.parquet import read_parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def written(tmp_path):
    def write(columns, **options):
        path = tmp_path / "data.parquet"
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        pq.write_table(table, path, **options)
        return path

    return write


def test_worked_example(written):
    path = written(
        {
            "size": [1.5, None, -3.0],
            "sky": ["grey", "blue", None],
            "windy": [True, None, False],
            "rain": [1, 0, 1],
            "snow": ["no", "yes", "no"],
        }
    )
    data = read_parquet(path, ["snow", "rain"])
    nan = np.nan
    assert data.feature_names == ["size", "sky=grey", "windy"]
    assert_array_equal(data.X, [[1.5, 1, 1], [nan, 0, nan], [-3, nan, 0]])
    assert_array_equal(data.Y, [[0, 1], [1, 0], [0, 1]])
    assert_array_equal(data.categorical, [False, True, True])
    assert data.label_names == ["snow", "rain"] and data.source == str(path)


day = datetime.date(1970, 1, 3)
noon = datetime.datetime(1970, 1, 1, 12)


@pytest.mark.parametrize(
    "values, kind, expected",
    [
        ([1, -2, None], pa.int8(), [1, -2, np.nan]),
        ([2**64 - 1, 0, None], pa.uint64(), [2.0**64, 0, np.nan]),
        ([2**53 + 1, None, 1], pa.int64(), [2.0**53, np.nan, 1]),
        ([0.5, np.inf, np.nan], pa.float64(), [0.5, np.inf, np.nan]),
        ([0.5, None, 2.0], pa.float16(), [0.5, np.nan, 2]),
        ([Decimal("1.25"), None, 0], pa.decimal128(10, 2), [1.25, np.nan, 0]),
        ([day, None, day], pa.date32(), [172800, np.nan, 172800]),
        ([day, None, day], pa.date64(), [172800, np.nan, 172800]),
        ([noon, None, noon], pa.timestamp("s"), [43200, np.nan, 43200]),
        ([noon, None, noon], pa.timestamp("ns"), [43200, np.nan, 43200]),
        ([1, None, 2], pa.timestamp("us", "UTC"), [1e-6, np.nan, 2e-6]),
        ([5, None, 6], pa.time32("s"), [5, np.nan, 6]),
        ([5, None, 6], pa.time64("us"), [5e-6, np.nan, 6e-6]),
        ([5, None, 6], pa.duration("ms"), [0.005, np.nan, 0.006]),
        ([None, None, None], pa.null(), [np.nan] * 3),
        (["b", None, "a"], pa.string(), [1, np.nan, 0]),
        (["b", None, "a"], pa.large_string(), [1, np.nan, 0]),
        (["b", None, "a"], pa.dictionary(pa.int8(), pa.string()), [1, np.nan, 0]),
        ([True, None, False], pa.bool_(), [1, np.nan, 0]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_types(written, values, kind, expected):
    path = written({"x": pa.array(values, type=kind), "l": [1, 0, 1]})
    data = read_parquet(path, "l", nominals="codes")
    assert_array_equal(data.X[:, 0], expected)


def test_ordered_dictionaries_keep_their_order(written):
    sizes = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 2], pa.int8()), ["s", "m", "l"], ordered=True
    )
    data = read_parquet(written({"size": sizes, "l": [1, 0, 1, 0]}), "l")
    assert data.feature_names == ["size=s", "size=m", "size=l"]
    assert_array_equal(data.X, [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]])


def test_order_of_values_does_not_depend_on_rows_or_row_groups(written):
    values = ["c", "a", "b", "a", "c", "d"]
    results = []
    for rows, size in ((values, 1), (values[::-1], 2), (values, 6)):
        path = written({"t": rows, "l": [1] * 6}, row_group_size=size)
        data = read_parquet(path, "l")
        assert data.feature_names == ["t=a", "t=b", "t=c", "t=d"]
        results.append(data.X)
    assert_array_equal(results[0], results[1][::-1])
    assert_array_equal(results[0], results[2])


def test_frames_of_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"c": pd.Categorical(["u", "v"]), "x": [1, 2], "l": [True, False]},
        index=["first", "second"],
    )
    frame.to_parquet(tmp_path / "data.parquet")
    data = read_parquet(tmp_path / "data.parquet", "l")
    assert data.feature_names == ["c=v", "x"]
    assert_array_equal(data.dropped["__index_level_0__"], ["first", "second"])


def test_a_stray_word_among_numbers_draws_a_warning(written):
    words = ["bad", *map(str, range(20)), None]
    path = written({"x": words, "l": [1] * 22})
    expected = "'x' is taken as text: 20 of its values are numbers, 1 not, first 'bad'"
    with pytest.warns(UserWarning, match=f"{expected} in row 0; make it numeric"):
        data = read_parquet(path, "l", nominals="codes")
    assert data.feature_names == ["x"] and data.dropped == {}
    # A declared category is what it says, and so is text that is nothing but numbers.
    category = pa.array(words).dictionary_encode()
    columns = {"x": category, "id": [f"{n:05d}" for n in range(22)], "l": [1] * 22}
    data = read_parquet(written(columns), "l", nominals="codes")
    assert data.feature_names == ["x"] and list(data.dropped) == ["id"]
    assert len(data.notes) == 1 and "identifier" in data.notes[0]


def test_text_without_any_value(written):
    path = written({"x": pa.array([None, None], pa.string()), "l": [1, 0]})
    assert read_parquet(path, "l").X.shape == (2, 0)


def test_like_an_earlier_file(written):
    train = read_parquet(
        written({"t": ["b", "a", "c"], "x": [1, 2, 3], "l": [1, 0, 1]}), "l"
    )
    path = written({"l": [0, 1], "x": [7.5, None], "t": ["c", "d"]})
    with pytest.raises(
        ValueError, match=r"'t' must have .* got 'd'.*\(row 1\)"
    ) as error:
        read_parquet(path, like=train)
    assert str(error.value).startswith(str(path))
    test = read_parquet(path, like=train, unknown="ignore")
    assert test.feature_names == train.feature_names == ["t=a", "t=b", "t=c", "x"]
    assert_array_equal(test.X, [[0, 0, 1, 7.5], [0, 0, 0, np.nan]])
    assert_array_equal(test.Y, [[0], [1]])


def test_prefix_identifiers_and_missing_labels(written):
    path = written(
        {
            "key": [f"k{n}" for n in range(12)],
            "l_a": [1] * 12,
            "l_b": [None, *[0] * 11],
        }
    )
    with pytest.raises(ValueError, match="the value of the label 'l_b' is missing"):
        read_parquet(path, label_prefix="l_")
    data = read_parquet(path, label_prefix="l_", missing_labels="negative")
    assert data.X.shape == (12, 0) and list(data.dropped) == ["key"]
    assert data.Y.sum() == 12


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"x": [[1]], "l": [1]}, "the column 'x' is of the type list"),
        ({"x": [{"a": 1}], "l": [1]}, "the column 'x' is of the type struct"),
        ({"x": [b"1"], "l": [1]}, "the column 'x' is of the type binary"),
        ({"x": [1], "l": [3]}, "the label 'l' must be 0 or 1, got 3"),
        ({"x": [1], "k": [3]}, "there is no column for the label 'l'"),
        ({"x": pa.array([], pa.int8()), "l": pa.array([], pa.int8())}, "no rows"),
        (pa.table([[1], [2], [1]], names=["x", "x", "l"]), "both named 'x'"),
    ],
    ids=range(7),
)
def test_bad_tables(written, columns, message):
    path = written(columns)
    with pytest.raises(ValueError, match=message) as error:
        read_parquet(path, "l")
    assert str(error.value).startswith(str(path))


def test_a_small_file_may_not_become_huge(written):
    path = written({"x": np.zeros(10_000_000, dtype=np.int8), "l": [1] * 10_000_000})
    with pytest.raises(
        ValueError, match=r"160,000,000 bytes, more than the .*accepted"
    ):
        read_parquet(path, "l")
    with pytest.raises(ValueError, match="more than the 10 that"):
        read_parquet(path, "l", max_bytes=10)


def test_nor_may_its_coded_features(written):
    # 20,000 rows of 2,000 categories that alternate compress well.
    columns = {f"c{n}": pa.array([str(i) for i in range(2000)] * 10) for n in range(3)}
    path = written({**columns, "l": [1] * 20_000}, compression="zstd")
    with pytest.raises(ValueError, match=r"6,000 columns .*Pass nominals=.codes"):
        read_parquet(path, "l")
    assert read_parquet(path, "l", nominals="codes").X.shape == (20_000, 3)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 9, b"x,l\n1,1\n"])
def test_files_that_are_none(tmp_path, content):
    path = tmp_path / "data.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="no Parquet file") as error:
        read_parquet(path, "l")
    assert str(error.value).startswith(str(path))


@given(st.data())
@settings(max_examples=60)
def test_damaged_files_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "data.parquet"
    pq.write_table(pa.table({"x": [1.5, 2.5], "t": ["a", "b"], "l": [1, 0]}), path)
    content = bytearray(path.read_bytes())
    cut = data.draw(st.integers(0, len(content)))
    if data.draw(st.booleans()):
        del content[cut : cut + data.draw(st.integers(1, 30))]
    else:
        for place in range(cut, min(cut + 3, len(content))):
            content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        found = read_parquet(path, "l")
    except ValueError as error:
        assert str(error).startswith(str(path))
    else:
        assert found.Y.shape[1] == 1


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install clml\[datasets\]"):
        read_parquet(tmp_path / "data.parquet", "l")


def test_missing_file_and_bad_options(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        read_parquet(tmp_path / "none.parquet", "l")
    with pytest.raises(ValueError, match="nominals must be one of"):
        read_parquet(tmp_path / "none.parquet", "l", nominals="x")

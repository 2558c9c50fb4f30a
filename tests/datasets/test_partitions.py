import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from clml.datasets import RowPartitions, as_partitions, read_partitions
from clml.datasets._array_rows import MappedPiece
from clml.datasets._partition_paths import natural_order

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def assert_rows(found, X, Y, weight=None):
    """Compare a partition, its types included."""
    found_X, found_Y, found_weight = found
    dense = found_X.toarray() if sparse.issparse(found_X) else found_X
    assert_array_equal(dense, X)
    assert_array_equal(found_Y, Y)
    assert found_Y.dtype == np.uint8
    if weight is None:
        assert found_weight is None
    else:
        assert_array_equal(found_weight, weight)
        assert found_weight.dtype == np.float64


def resent(partitions):
    """Return partitions as another process gets them."""
    return pickle.loads(pickle.dumps(partitions))


@pytest.fixture
def tables(tmp_path):
    """Write tables as Parquet files part-0, part-1, ..."""

    def write(*columns, **options):
        for number, one in enumerate(columns):
            table = one if isinstance(one, pa.Table) else pa.table(one)
            pq.write_table(table, tmp_path / f"part-{number}.parquet", **options)
        return tmp_path

    return write


# --- Parquet


def test_worked_example_of_parquet(tables):
    folder = tables(
        {"a": [1.5, None, 3.0], "rain": [1, 0, 1], "b": [True, False, None]},
        {"a": [4.0], "rain": [0], "b": [True]},
        row_group_size=2,
    )
    rows = resent(read_partitions(folder, ["rain"]))
    assert len(rows) == 3
    assert rows.feature_names == ("a", "b") and rows.label_names == ("rain",)
    assert repr(rows) == "RowPartitions(3 partitions, 2 named features, 1 named label)"
    assert_rows(rows.load(0), [[1.5, 1], [np.nan, 0]], [[1], [0]])
    assert_rows(rows.load(1), [[3.0, np.nan]], [[1]])
    assert_rows(rows.load(2), [[4.0, 1]], [[0]])


def test_labels_come_in_their_order_and_weights_are_no_feature(tables):
    folder = tables({"w": [2, 3], "u": [1, 0], "x": [5, 6], "v": [False, True]})
    rows = read_partitions(folder, ["v", "u"], weight="w", n_features=1, n_labels=2)
    assert_rows(rows.load(0), [[5], [6]], [[0, 1], [1, 0]], [2, 3])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((pa.float32(), pa.float32()), np.float32),
        ((pa.float32(), pa.float64()), np.float64),
        ((pa.float16(), pa.float16()), np.float64),
        ((pa.int8(), pa.uint64()), np.float64),
        ((pa.bool_(), pa.decimal128(5, 2)), np.float64),
    ],
    ids=str,
)
def test_type_of_features_in_parquet(tables, kinds, expected):
    columns = [pa.array([0, 1], pa.int8()).cast(kind) for kind in kinds]
    rows = read_partitions(tables({"a": columns[0], "b": columns[1], "y": [0, 1]}), "y")
    X, _, _ = rows.load(0)
    assert X.dtype == expected and X.flags.c_contiguous
    assert_array_equal(X, [[0, 0], [1, 1]])


def test_all_partitions_have_one_type(tables):
    single = pa.array([1.0], pa.float32())
    rows = read_partitions(tables({"a": single, "y": [1]}, {"a": [0.1], "y": [1]}), "y")
    assert {rows.load(number)[0].dtype for number in range(2)} == {np.dtype(float)}


def test_row_names_of_frames_are_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]}, index=[7, 9])
    frame.to_parquet(tmp_path / "part.parquet")
    rows = read_partitions(tmp_path, "y")
    assert rows.feature_names == ("x",)
    assert_rows(rows.load(0), [[1], [2]], [[0], [1]])


def test_a_row_group_without_rows(tables):
    rows = read_partitions(
        tables(
            {"x": [1.0], "y": [1]},
            pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}),
        ),
        "y",
    )
    assert_rows(rows.load(1), np.empty((0, 1)), np.empty((0, 1)))


def test_wide_and_long_tables_keep_their_cells(tables):
    X = np.arange(5000 * 300, dtype=np.float32).reshape(5000, 300)
    columns = {f"x{number}": X[:, number] for number in range(300)}
    rows = read_partitions(tables({**columns, "y": X[:, 0] > 9}), "y")
    assert_rows(rows.load(0), X, X[:, :1] > 9)


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ([{"x": [1], "y": [1]}], {}, "labels must name the columns"),
        (
            [{"x": [1], "y": [1]}],
            {"labels": "z"},
            "part-0.*no column for the label 'z'",
        ),
        ([{"x": [1], "y": [1]}], {"labels": "y", "weight": "w"}, "weight='w'"),
        ([{"x": [1], "y": [1]}], {"labels": "y", "weight": "y"}, "among the labels"),
        ([{"x": [1], "y": [1]}], {"labels": "y", "n_features": 2}, "n_features=2"),
        ([{"x": [1], "y": [1]}], {"labels": "y", "n_labels": 2}, "n_labels=2"),
        ([{"y": [1]}], {"labels": "y"}, "no column left"),
        (
            [{"x": ["a"], "y": [1]}],
            {"labels": "y"},
            "part-0.*'x' is of the type string",
        ),
        (
            [{"x": [1], "y": [1]}, {"z": [1], "y": [1]}],
            {"labels": "y"},
            r"part-1.*columns \['x'\] of .*part-0.*missing",
        ),
        (
            [{"x": [1], "y": [1]}, {"x": [1], "z": [1], "y": [1]}],
            {"labels": "y"},
            r"part-1.*\['z'\] are not in",
        ),
        (
            [{"x": [1], "y": [1]}, {"y": [1], "x": [1]}],
            {"labels": "y"},
            "part-1.*another order",
        ),
    ],
)
def test_parquet_files_that_cannot_be_opened(tables, columns, arguments, message):
    with pytest.raises(ValueError, match=message):
        read_partitions(tables(*columns), **arguments)


@pytest.mark.parametrize("values", [[1, None], [1, 2.5], [0, -1], [0, 256]])
def test_labels_that_would_change_as_bytes(tables, values):
    rows = read_partitions(tables({"x": [1, 2], "y": values}), "y")
    with pytest.raises(ValueError, match=r"part-0.*column 'y' must be a binary"):
        rows.load(0)


def test_a_parquet_file_that_changed(tables):
    rows = read_partitions(tables({"x": [1.0], "y": [1]}), "y")
    tables({"z": [1.0, 2.0], "y": [1, 0]})
    with pytest.raises(ValueError, match=r"part-0.*has changed"):
        rows.load(0)


def test_parquet_that_claims_too_much(tables):
    # One value, millions of times: a few bytes that would become 168 MB.
    constant = np.ones(2**22)
    columns = {f"x{number}": constant for number in range(4)}
    folder = tables({**columns, "y": constant}, row_group_size=2**22)
    assert os.path.getsize(folder / "part-0.parquet") < 100_000
    with pytest.raises(ValueError, match=r"part-0.* write smaller row groups"):
        read_partitions(folder, "y")


def test_damaged_parquet_names_the_file(tables):
    folder = tables({"x": np.arange(1000.0), "y": np.ones(1000)}, compression="snappy")
    path = folder / "part-0.parquet"
    rows = read_partitions(folder, "y")
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(400) + content[404:])
    with pytest.raises(ValueError, match=r"part-0.parquet: the Parquet data are dam"):
        rows.load(0)
    path.write_bytes(content[:-6])
    with pytest.raises(ValueError, match=r"part-0.parquet: this is no Parquet file"):
        rows.load(0)


def test_checksums_of_pages_are_looked_at(tables):
    X = np.random.default_rng(0).normal(size=1000)
    folder = tables(
        {"x": X, "y": X > 0},
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    rows = read_partitions(folder, "y")
    assert_rows(rows.load(0), X[:, None], X[:, None] > 0)
    content = bytearray((folder / "part-0.parquet").read_bytes())
    content[4000] ^= 1  # in the middle of a number: nothing else would show it
    (folder / "part-0.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"part-0.parquet: .*damaged .*CRC"):
        rows.load(0)


# --- files of arrays


def test_worked_example_of_npz(tmp_path):
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    np.savez(tmp_path / "a.npz", X=X, Y=[[1], [0]], weight=[1, 2])
    np.savez_compressed(tmp_path / "b.npz", X=X[:0], Y=np.empty((0, 1)), weight=[])
    rows = resent(read_partitions(tmp_path, ["rain"]))
    assert rows.label_names == ("rain",) and rows.feature_names is None
    assert_rows(rows.load(0), X, [[1], [0]], [1, 2])
    assert rows.load(0)[0].dtype == np.float32
    assert_rows(rows.load(1), X[:0], np.empty((0, 1)), [])


def test_sparse_features_in_npz(tmp_path):
    X = sparse.csr_array(np.array([[0, 2.5, 0], [1, 0, 0]]))
    np.savez(
        tmp_path / "a.npz",
        X_data=X.data,
        X_indices=X.indices,
        X_indptr=X.indptr,
        X_shape=X.shape,
        Y=np.eye(2),
    )
    rows = read_partitions(tmp_path / "a.npz", n_features=3)
    assert rows.load(0)[0].format == "csr"
    assert_rows(rows.load(0), X.toarray(), np.eye(2))


ONE = {"X": np.ones((2, 3)), "Y": np.eye(2)}
CSR = {"X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1, 1], "Y": np.eye(2)}


@pytest.mark.parametrize(
    ("arrays", "arguments", "message"),
    [
        ([{"X": np.ones((2, 3))}], {}, "0.npz: there is no array 'Y'"),
        ([{"Y": np.eye(2)}], {}, "0.npz: there is no array 'X_data'"),
        ([CSR], {}, "0.npz: there is no array 'X_shape'"),
        ([{**CSR, "X_shape": [2, 3, 4]}], {}, "0.npz.*two integers"),
        ([{**CSR, "X_shape": [2.0, 3.0]}], {}, "0.npz.*two integers"),
        ([{"X": np.ones(2), "Y": np.eye(2)}], {}, "0.npz.*'X' must be numbers of 2"),
        ([{"X": [["a"]], "Y": np.eye(1)}], {}, "0.npz.*'X' must be numbers"),
        ([ONE], {"n_features": 4}, "0.npz: expected 4 features, got 3"),
        ([ONE], {"n_labels": 3}, "0.npz: expected 3 labels, got 2"),
        ([ONE], {"labels": ["a"]}, "labels must name each of the 2 labels"),
        ([ONE], {"labels": ["a", "a"]}, "both named 'a'"),
        ([ONE], {"weight": "w"}, "weight must be None for npz"),
        ([ONE, {**ONE, "X": np.ones((2, 4))}], {}, "1.npz: expected 3 features, got 4"),
        ([ONE, {**ONE, "weight": [1, 1]}], {}, "1.npz has an array 'weight'.*0.npz"),
    ],
)
def test_npz_files_that_cannot_be_opened(tmp_path, arrays, arguments, message):
    for number, one in enumerate(arrays):
        np.savez(tmp_path / f"{number}.npz", **one)
    with pytest.raises(ValueError, match=message):
        read_partitions(tmp_path, **arguments)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((2, 3)), "Y": np.eye(3)}, "as many rows, got 2 and 3"),
        ({**ONE, "weight": [1.0]}, "a weight for each of 2 rows, got 1"),
        ({**ONE, "weight": [[1.0, 1.0]]}, "one number a row"),
        ({**ONE, "Y": [[0.5, 1], [0, 0]]}, "Y must be a binary"),
        ({**CSR, "X_shape": [2, 3], "X_indices": [7]}, "columns.*must be below 3"),
        ({**CSR, "X_shape": [2, 3], "X_indptr": [0, 9, 1]}, "do not follow"),
    ],
)
def test_npz_files_that_cannot_be_read(tmp_path, arrays, message):
    path = tmp_path / "part.npz"
    np.savez(path, **arrays)
    rows = read_partitions(path)
    with pytest.raises(ValueError, match=f"part.npz: .*{message}"):
        rows.load(0)


def test_npz_that_is_damaged_names_the_file(tmp_path):
    path = tmp_path / "part.npz"
    np.savez(path, X=np.ones((100, 3)), Y=np.ones((100, 1)))
    rows = read_partitions(path)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"part.npz: .*CRC"):
        rows.load(0)
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"part.npz: this is no file of arrays"):
        read_partitions(path)


def test_npz_that_unfolds_to_much(tmp_path):
    path = tmp_path / "part.npz"
    np.savez(path, **ONE)
    rows = read_partitions(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("X.npy", "Y.npy"):
            with archive.open(name, "w") as file:
                header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 1), }"
                text = (header % 70_000_000).ljust(117) + b"\n"
                file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
                for _ in range(70):
                    file.write(bytes(1_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"part.npz: .*are more than"):
            rows.load(0)
        assert tracemalloc.get_traced_memory()[1] < 1e7
    finally:
        tracemalloc.stop()


# --- svmlight


def test_worked_example_of_svmlight(tmp_path):
    (tmp_path / "a.svm").write_text("0,1 1:0.5 3:2\n 2:1\n")
    (tmp_path / "b.svm").write_text("1 1:4\n")
    (tmp_path / "c.svm").write_text("")
    rows = resent(read_partitions(tmp_path, ["u", "v"], n_features=4, n_labels=2))
    assert_rows(rows.load(0), [[0.5, 0, 2, 0], [0, 1, 0, 0]], [[1, 1], [0, 0]])
    assert_rows(rows.load(1), [[4, 0, 0, 0]], [[0, 1]])
    assert_rows(rows.load(2), np.empty((0, 4)), np.empty((0, 2)))
    assert all(rows.load(number)[0].format == "csr" for number in range(3))


def test_where_indices_begin_is_the_same_in_every_file(tmp_path):
    # Read on its own, the second file would seem to begin at 1.
    (tmp_path / "a.svm").write_text("0 0:1\n")
    (tmp_path / "b.svm").write_text("0 1:1\n")
    sizes = {"n_features": 2, "n_labels": 1}
    rows = read_partitions(tmp_path, zero_based=True, **sizes)
    assert_rows(rows.load(1), [[0, 1]], [[1]])
    rows = read_partitions(tmp_path, **sizes)
    assert_rows(rows.load(1), [[1, 0]], [[1]])
    with pytest.raises(ValueError, match=r"a.svm.*begin at 1"):
        rows.load(0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_labels": 2}, ValueError, "n_features must be given"),
        ({"n_features": 2}, ValueError, "n_labels must be given"),
        ({"n_features": 0, "n_labels": 1}, ValueError, "n_features must be None or an"),
        ({"n_features": 2, "n_labels": True}, ValueError, "n_labels must be None or"),
        ({"n_features": 2, "n_labels": 1, "zero_based": "auto"}, TypeError, "a bool"),
        ({"n_features": 2, "n_labels": 1, "weight": "w"}, ValueError, "for svmlight"),
        (
            {"n_features": 2, "n_labels": 1, "labels": "u"},
            TypeError,
            "sequence of names",
        ),
    ],
)
def test_arguments_of_svmlight(tmp_path, arguments, error, message):
    (tmp_path / "a.svm").write_text("0 1:1\n")
    with pytest.raises(error, match=message):
        read_partitions(tmp_path, **arguments)


# --- which files


def names_of(rows):
    return [os.path.basename(loader.path) for loader in rows.loaders]


@pytest.fixture
def folder(tmp_path):
    for number in (10, 9, 1):
        np.savez(tmp_path / f"part-{number}.npz", **ONE)
    (tmp_path / "notes.md").write_text("no data")
    (tmp_path / "_part-0.npz").write_text("not finished")
    return tmp_path


def test_files_are_found_in_their_natural_order(folder, monkeypatch):
    expected = ["part-1.npz", "part-9.npz", "part-10.npz"]
    assert names_of(read_partitions(folder)) == expected
    assert names_of(read_partitions(str(folder / "part-*.npz"))) == expected
    given = [folder / "part-10.npz", str(folder / "part-1.npz")]
    assert names_of(read_partitions(given)) == ["part-10.npz", "part-1.npz"]
    monkeypatch.chdir(folder)
    rows = read_partitions("part-9.npz")
    monkeypatch.chdir(folder.parent)
    assert_rows(rows.load(0), **ONE)


def test_a_name_that_looks_like_a_pattern(tmp_path):
    np.savez(tmp_path / "[a].npz", **ONE)
    assert names_of(read_partitions(tmp_path / "[a].npz")) == ["[a].npz"]


@given(st.lists(st.integers(0, 10**6), max_size=8, unique=True))
def test_natural_order_is_that_of_numbers(numbers):
    names = sorted((f"d/part-{n}.b2" for n in numbers), key=natural_order)
    assert names == [f"d/part-{n}.b2" for n in sorted(numbers)]


@pytest.mark.parametrize(
    ("paths", "error", "message"),
    [
        ("none.npz", FileNotFoundError, "No such file"),
        ("none-*.npz", FileNotFoundError, "No file has a name like"),
        ("notes.md", ValueError, r"notes.md: its suffix must be one of .parquet"),
        (["part-1.npz", "rows.svm"], ValueError, "one format"),
        (".", ValueError, r"one of the suffixes .* got .npz and .svm"),
        ("empty", ValueError, "got none"),
        ([], ValueError, "at least one file"),
        (3, TypeError, "a path or a sequence"),
        (["part-1.npz", None], TypeError, "a path or a sequence"),
        (["empty"], ValueError, "regular file"),
    ],
)
def test_paths_that_name_no_partitions(folder, monkeypatch, paths, error, message):
    (folder / "empty").mkdir()
    (folder / "rows.svm").write_text("0 1:1\n")
    monkeypatch.chdir(folder)
    with pytest.raises(error, match=message):
        read_partitions(paths)


def test_opening_reads_next_to_nothing(tmp_path):
    X = np.ones((50_000, 20))
    np.savez(tmp_path / "a.npz", X=X, Y=X[:, :2])
    np.save(tmp_path / "a.npy", X)
    tracemalloc.start()
    try:
        read_partitions(tmp_path / "a.npz")
        as_partitions(np.load(tmp_path / "a.npy", mmap_mode="r"), X[:, :2], rows=1000)
        assert tracemalloc.get_traced_memory()[1] < X.nbytes / 10
    finally:
        tracemalloc.stop()


# --- arrays


@given(n=st.integers(1, 30), rows=st.integers(1, 31), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_partitions_together_are_the_whole(n, rows, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 3)), rng.integers(0, 2, size=(n, 2))
    X[X < 0] = 0
    weight = rng.random(n)
    for features in (X, np.asfortranarray(X), sparse.csr_array(X), sparse.coo_array(X)):
        for labels in (Y, sparse.csr_array(Y)):
            parts = resent(as_partitions(features, labels, weight, rows=rows))
            assert len(parts) == -(-n // rows)
            found = [parts.load(number) for number in range(len(parts))]
            assert all(len(part[1]) == rows for part in found[:-1])
            stack = sparse.vstack if sparse.issparse(features) else np.concatenate
            assert_rows(
                (
                    stack([part[0] for part in found]),
                    np.concatenate([part[1] for part in found]),
                    np.concatenate([part[2] for part in found]),
                ),
                X,
                Y,
                weight,
            )


@pytest.mark.parametrize("kind", ["float32", ">f4", "float16", "int8", "bool", ">f8"])
def test_type_of_features_in_memory(kind):
    X = np.array([[0, 1], [1, 0]], dtype=kind)
    expected = np.float32 if kind in ("float32", ">f4") else np.float64
    for features in (X, pd.DataFrame(X.astype(X.dtype.newbyteorder("=")))):
        found, _, _ = as_partitions(features, np.eye(2)).load(0)
        assert found.dtype == expected and found.dtype.isnative
        assert_array_equal(found, [[0, 1], [1, 0]])


def test_frames_keep_their_names_and_missing_values():
    X = pd.DataFrame({"a": [1, 2, 3], 7: pd.array([True, None, False], "boolean")})
    Y = pd.DataFrame({"u": [True, False, True], "v": pd.array([0, 1, 1], "Int8")})
    weight = pd.Series([1, 2, 3], dtype="Int64")
    rows = resent(as_partitions(X, Y, weight, rows=2))
    assert rows.feature_names == ("a", "7") and rows.label_names == ("u", "v")
    assert_rows(rows.load(0), [[1, 1], [2, np.nan]], [[1, 0], [0, 1]], [1, 2])
    assert_rows(rows.load(1), [[3, 0]], [[1, 1]], [3])


def test_a_slice_that_is_sent_holds_no_more_than_its_rows():
    X = np.ones((10_000, 10))
    for features in (X, sparse.csr_array(X), pd.DataFrame(X)):
        rows = as_partitions(features, X[:, :2], rows=10)
        assert len(pickle.dumps(rows.loaders[0])) < 10_000


# --- memory maps


VIEWS = {
    "whole": lambda X: X,
    "later rows": lambda X: X[3:],
    "columns": lambda X: X[:, 1:3],
    "every other": lambda X: X[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1],
    "plain array": np.asarray,
    "of a view": lambda X: X[2:][1:, 1:],
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_maps_are_read_from_their_file(tmp_path, order, view):
    X = np.arange(40, dtype=np.float32).reshape(10, 4)
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    mapped = view(np.load(tmp_path / "X.npy", mmap_mode="r"))
    rows = resent(as_partitions(mapped, np.eye(len(mapped), 2), rows=3))
    assert all(isinstance(loader.X, MappedPiece) for loader in rows.loaders)
    found = [rows.load(number)[0] for number in range(len(rows))]
    assert_array_equal(np.concatenate(found), view(X))
    for part in found:  # a copy of its own, no page of the file
        assert part.dtype == np.float32 and part.flags.writeable
        assert not isinstance(part, np.memmap) and not isinstance(part.base, np.memmap)


def test_maps_with_an_offset_labels_and_weights(tmp_path):
    path = tmp_path / "all.bin"
    X, Y, weight = np.arange(8.0).reshape(4, 2), np.eye(4, 3, dtype="u1"), np.ones(4)
    path.write_bytes(b"head" + X.tobytes() + Y.tobytes() + weight.tobytes())
    parts = (
        np.memmap(path, "f8", "r", offset=4, shape=(4, 2)),
        np.memmap(path, "u1", "r", offset=4 + 64, shape=(4, 3)),
        np.memmap(path, "f8", "r", offset=4 + 64 + 12, shape=(4,)),
    )
    rows = as_partitions(*parts, rows=3)
    loader = rows.loaders[1]
    assert all(isinstance(p, MappedPiece) for p in (loader.X, loader.Y, loader.weight))
    assert len(pickle.dumps(loader)) < 1000
    assert_rows(rows.load(1), X[3:], Y[3:], weight[3:])


def test_sparse_features_over_maps(tmp_path):
    X = sparse.random_array(
        (20, 7), density=0.3, format="csr", rng=np.random.default_rng(0)
    )
    parts = {}
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        parts[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    mapped = sparse.csr_array(
        (parts["data"], parts["indices"], parts["indptr"]), shape=X.shape
    )
    rows = resent(as_partitions(mapped, np.eye(20, 2), rows=6))
    assert isinstance(rows.loaders[1].X.data, MappedPiece)
    assert_array_equal(rows.load(1)[0].toarray(), X.toarray()[6:12])


@pytest.mark.parametrize("why", ["changed in memory", "no file"])
def test_maps_whose_file_does_not_tell_are_sent_as_slices(tmp_path, why):
    path = tmp_path / "X.npy"
    np.save(path, np.zeros((4, 2)))
    mapped = np.load(path, mmap_mode="c" if why == "changed in memory" else "r")
    if why == "changed in memory":
        mapped[:] = 5
    else:
        path.unlink()
    rows = resent(as_partitions(mapped, np.eye(4, 2), rows=2))
    assert_array_equal(rows.load(1)[0], np.asarray(mapped)[2:])


def test_changes_of_a_writable_map_are_seen(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", "f8", (4, 2))
    rows = as_partitions(mapped, np.eye(4, 2), rows=2)
    mapped[:] = 7
    assert_array_equal(rows.load(1)[0], np.full((2, 2), 7))


@pytest.mark.parametrize("view", ["whole", "columns"])
def test_a_map_whose_file_became_short(tmp_path, view):
    np.save(tmp_path / "X.npy", np.zeros((4000, 3)))
    mapped = VIEWS[view](np.load(tmp_path / "X.npy", mmap_mode="r"))
    rows = as_partitions(mapped, np.eye(4000, 2), rows=2000)
    os.truncate(tmp_path / "X.npy", 10_000)
    with pytest.raises(ValueError, match=r"X.npy: the mapped array is not there"):
        rows.load(1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones(3), np.eye(3)), ValueError, "X must have two axes"),
        ((np.ones((3, 0)), np.eye(3)), ValueError, "X must have two axes and at least"),
        ((np.ones((3, 2)), np.ones(3)), ValueError, "Y must have two axes"),
        ((np.ones((3, 2)), np.eye(4)), ValueError, "as many rows, got 3 and 4"),
        ((np.ones((0, 2)), np.ones((0, 2))), ValueError, "at least one row"),
        ((np.eye(3), np.eye(3), np.ones(2)), ValueError, r"shape \(3,\), got \(2,\)"),
        ((np.eye(3), np.eye(3), 1.0), ValueError, "sample_weight: .*one number a row"),
        ((np.array([["a"]]), np.eye(1)), TypeError, "X must hold numbers, got .*U1"),
        ((pd.DataFrame({"a": ["u"]}), np.eye(1)), ValueError, r"X: .*\['a \("),
    ],
)
def test_arrays_that_are_no_partitions(arguments, error, message):
    with pytest.raises(error, match=message):
        as_partitions(*arguments)


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, None])
def test_rows_must_be_a_count(rows):
    with pytest.raises(ValueError, match="rows must be an integer of at least 1"):
        as_partitions(np.eye(2), np.eye(2), rows=rows)


def test_own_loaders():
    rows = RowPartitions([lambda: (np.eye(2), np.eye(2, dtype="u1"), None)], [1, 2])
    assert rows.feature_names == ("1", "2") and isinstance(rows.loaders, tuple)
    assert_rows(rows.load(0), np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="at least one partition"):
        RowPartitions(())
    with pytest.raises(TypeError, match="loaders must be callable, got int"):
        RowPartitions((3,))

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from clml._base.partitions import is_dask
from clml._distributed.dask_inputs import delayed_partitions

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

X = np.arange(20.0).reshape(10, 2)
Y = (np.arange(30).reshape(10, 3) % 4 == 0).astype(np.uint8)
WEIGHT = np.linspace(1, 2, 10)


def computed(rows):
    return dask.compute(*rows.delayed, scheduler="synchronous")


def assert_whole(rows, X=X, Y=Y, weight=None, dtype=np.float64):
    """Compare all partitions, one after the other, with the rows of arrays."""
    found = computed(rows)
    dense = [p[0].toarray() if sparse.issparse(p[0]) else p[0] for p in found]
    assert all(part.dtype == dtype for part in dense)
    assert all(part[1].dtype == np.uint8 for part in found)
    assert_array_equal(np.concatenate(dense), X)
    assert_array_equal(np.concatenate([part[1] for part in found]), Y)
    if weight is None:
        assert all(part[2] is None for part in found)
    else:
        assert all(part[2].dtype == np.float64 for part in found)
        assert_array_equal(np.concatenate([part[2] for part in found]), weight)


def never():
    raise AssertionError("this was computed")


# --- what is dask


def test_what_is_dask():
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    one = dask.delayed(never)()
    for value in (da.ones(3), frame, frame[0], one, [one, one], (one,)):
        assert is_dask(value)
    for value in (X, [[1, 2]], [], (), None, "X", pd.DataFrame(X), sparse.eye_array(2)):
        assert not is_dask(value)


def test_asking_does_not_import_dask():
    code = """
import sys
from clml._base.partitions import is_dask
assert not is_dask([1]) and not is_dask(object())
assert not {name.partition(".")[0] for name in sys.modules} & {"dask", "distributed"}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# --- arrays


def test_worked_example_of_arrays():
    rows = delayed_partitions(
        da.from_array(X, chunks=(4, 1)),
        da.from_array(Y, chunks=(5, 2)),
        da.from_array(WEIGHT, chunks=3),
    )
    assert len(rows) == 3
    assert rows.feature_names is None and rows.label_names is None
    first = computed(rows)[0]
    assert_array_equal(first[0], X[:4])
    assert_array_equal(first[1], Y[:4])
    assert_array_equal(first[2], WEIGHT[:4])
    assert_whole(rows, weight=WEIGHT)


@pytest.mark.parametrize("kind", ["float32", "int16", "bool"])
def test_types_of_arrays(kind):
    values = (X > 3).astype(kind)
    rows = delayed_partitions(
        da.from_array(values, chunks=5), da.from_array(Y == 1, chunks=5)
    )
    dtype = np.float32 if kind == "float32" else np.float64
    assert_whole(rows, X=values, dtype=dtype)


def csr_blocks(values, chunks, kind):
    return da.from_array(values, chunks=chunks).map_blocks(
        kind, dtype=values.dtype, meta=kind((0, 0), dtype=values.dtype)
    )


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_blocks_of_sparse_rows(kind):
    features = csr_blocks(X, (4, 2), kind)
    rows = delayed_partitions(features, da.from_array(Y, chunks=(5, 3)))
    assert all(part[0].format == "csr" for part in computed(rows))
    assert_whole(rows)
    labels = csr_blocks(Y, (4, 3), kind)
    assert_whole(delayed_partitions(features, labels))


def test_sparse_blocks_of_columns_are_joined():
    features = csr_blocks(X, (4, 1), sparse.csr_matrix)
    rows = delayed_partitions(features, da.from_array(Y, chunks=(4, 3)))
    assert all(part[0].format == "csr" for part in computed(rows))
    assert_whole(rows)


def unknown(values, rows):
    """Return an array that does not know how many rows its blocks have."""
    array = da.from_array(values, chunks={0: rows})
    return array[da.from_array(np.ones(len(values), bool), chunks=(rows,))]


def test_unknown_sizes_of_blocks():
    known = da.from_array(Y, chunks=(4, 1))
    for labels in (unknown(Y, 4), known):
        assert_whole(
            delayed_partitions(unknown(X, 4), labels, unknown(WEIGHT, 4)), weight=WEIGHT
        )
    columns = da.concatenate(
        [unknown(X[:, :1], 4), unknown(X[:, 1:], 4)],
        axis=1,
        allow_unknown_chunksizes=True,
    )
    assert columns.numblocks == (3, 2)
    assert_whole(delayed_partitions(columns, known))


def test_unknown_sizes_that_differ_are_found_in_the_task():
    first = delayed_partitions(unknown(X, (4, 6)), unknown(Y, (5, 5))).delayed[0]
    with pytest.raises(ValueError, match=r"partition 0: .*as many rows, got 4 and 5"):
        first.compute(scheduler="synchronous")


def test_blocks_without_rows():
    array = da.from_array(X, chunks=5)
    few = array[array[:, 0] > 12]
    labels = da.from_array(Y, chunks=5)[array[:, 0] > 12]
    rows = delayed_partitions(few, labels)
    assert [len(part[1]) for part in computed(rows)] == [0, 3]


# --- frames


def frame_of(npartitions=3):
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame[["u", "v", "w"]] = Y
    frame["weight"] = WEIGHT
    return dd.from_pandas(frame, npartitions=npartitions)


def test_worked_example_of_a_frame():
    frame = frame_of()
    rows = delayed_partitions(frame, ["u", "v", "w"], "weight")
    assert len(rows) == 3
    assert rows.feature_names == ("a", "b") and rows.label_names == ("u", "v", "w")
    assert_whole(rows, weight=WEIGHT)
    rows = delayed_partitions(frame.drop(columns="weight"), ("w", "u"), frame["weight"])
    assert rows.feature_names == ("a", "b", "v")
    assert_whole(rows, np.c_[X, Y[:, 1]], Y[:, [2, 0]], WEIGHT)


@pytest.mark.parametrize("names", [pd.Index, np.array, tuple])
def test_names_in_other_forms(names):
    frame = frame_of()
    given = names(["u", "w"])
    assert delayed_partitions(frame, given).label_names == ("u", "w")
    assert delayed_partitions(frame, "w").label_names == ("w",)


def test_numbers_are_no_names():
    frame = frame_of().rename(columns={"a": 0})
    assert delayed_partitions(frame, ["u"]).feature_names is None


def test_two_frames():
    frame = frame_of()
    rows = delayed_partitions(frame[["a", "b"]], frame[["u", "v", "w"]])
    assert rows.feature_names == ("a", "b") and rows.label_names == ("u", "v", "w")
    assert_whole(rows)


def test_frames_of_other_types_than_those_of_numpy():
    frame = pd.DataFrame(
        {"a": pd.array([1, None, 3], "Int64"), "y": pd.array([True, False, True])}
    )
    rows = delayed_partitions(dd.from_pandas(frame, npartitions=1), ["y"])
    assert_whole(rows, [[1], [np.nan], [3]], [[1], [0], [1]])
    single = pd.DataFrame({"a": np.float32([1, 2]), "y": [1, 0]})
    rows = delayed_partitions(dd.from_pandas(single, npartitions=1), ["y"])
    assert_whole(rows, [[1], [2]], [[1], [0]], dtype=np.float32)


# --- delayed values


def test_lists_of_delayed():
    cuts = [slice(0, 3), slice(3, 3), slice(3, 10)]
    forms = [np.asarray, sparse.csr_array, np.asarray]
    parts = [dask.delayed(form(X[cut])) for form, cut in zip(forms, cuts, strict=True)]
    labels = [dask.delayed(Y[cut]) for cut in cuts]
    weights = tuple(dask.delayed(WEIGHT[cut]) for cut in cuts)
    assert_whole(delayed_partitions(parts, labels))
    assert_whole(delayed_partitions(parts, labels, weights), weight=WEIGHT)
    frames = [dask.delayed(pd.DataFrame(X[cut])) for cut in cuts]
    assert_whole(delayed_partitions(frames, labels))


def test_delayed_tuples():
    cuts = [slice(0, 3), slice(3, 10)]
    pairs = [dask.delayed((X[cut], Y[cut])) for cut in cuts]
    assert_whole(delayed_partitions(pairs, None))
    triples = [dask.delayed((X[cut], Y[cut], WEIGHT[cut])) for cut in cuts]
    assert_whole(delayed_partitions(triples, None), weight=WEIGHT)
    assert_whole(delayed_partitions(dask.delayed((X, Y)), None))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X, r"partition 0: expected \(X, Y\) or \(X, Y, weight\)"),
        ((X, Y, WEIGHT, 1), "partition 0: expected"),
        ((X, Y[:4]), "partition 0: X and Y must have as many rows"),
        ((X, Y, WEIGHT[:4]), "partition 0: expected a weight for each of 10 rows"),
        ((X, Y[:, 0]), "partition 0: Y must be an indicator"),
        ((X, Y * 0.5), "partition 0: Y must be a binary"),
        ((X.astype(str), Y), "partition 0: X must hold real numbers"),
    ],
)
def test_delayed_values_that_do_not_fit(value, message):
    rows = delayed_partitions([dask.delayed(lambda: value)()], None)
    with pytest.raises(ValueError, match=message):
        computed(rows)


# --- all of them


def test_nothing_is_computed_while_building():
    block = dask.delayed(never)()
    features = da.from_delayed(block, (4, 2), float)
    labels = da.from_delayed(block, (4, 3), np.uint8)
    delayed_partitions(features.rechunk((2, 1)), labels, labels[:, 0])
    meta = pd.DataFrame({"a": [1.0], "y": [1]})
    frame = dd.from_delayed([block], meta=meta, verify_meta=False)
    delayed_partitions(frame, ["y"])
    delayed_partitions([block], [block], [block])
    delayed_partitions([block], None)


def test_persisted_blocks_are_taken_as_they_are():
    features = da.from_array(X, chunks=(5, 2)).persist(scheduler="synchronous")
    labels = da.from_array(Y, chunks=(5, 3)).persist(scheduler="synchronous")
    blocks = dask.compute(*features.to_delayed().ravel(), scheduler="synchronous")
    found = computed(delayed_partitions(features, labels))
    for block, part in zip(blocks, found, strict=True):
        assert np.shares_memory(block, part[0])


ARRAY, LABELS = da.from_array(X, chunks=5), da.from_array(Y, chunks=5)
FRAME = frame_of()
PART = dask.delayed(X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, LABELS), TypeError, "X must be a dask array.* got ndarray"),
        ((FRAME["a"], LABELS), TypeError, "X must be a dask array.* got dask Series"),
        ((ARRAY, None), ValueError, "y must be a dask array.* got None"),
        ((ARRAY, Y), TypeError, "y must be a dask array.* got ndarray"),
        ((ARRAY, FRAME), TypeError, "y must be a dask array.* got dask DataFrame"),
        ((ARRAY, LABELS[:, 0]), ValueError, r"y must have the shape \(rows, columns\)"),
        ((ARRAY[:, 0], LABELS), ValueError, "X must have the shape"),
        (
            (ARRAY, LABELS[:4]),
            ValueError,
            "y must have as many rows as X, got 4 and 10",
        ),
        ((ARRAY, LABELS[:, :0]), ValueError, "y must have a known number of columns"),
        ((ARRAY, LABELS, WEIGHT), TypeError, "sample_weight must be a dask array"),
        (
            (ARRAY, LABELS, ARRAY),
            ValueError,
            r"sample_weight must have the shape \(rows,",
        ),
        ((ARRAY, LABELS, ARRAY[:3, 0]), ValueError, "sample_weight must have as many"),
        ((unknown(X, 5), unknown(Y, 2)), ValueError, "as many blocks of rows.*5 and 2"),
        ((FRAME, None), ValueError, "y must be a dask DataFrame.* got None"),
        ((FRAME, "x"), ValueError, "y must name columns of X, got .*x"),
        ((FRAME, 3), TypeError, "y must be a dask DataFrame or a list.* got int"),
        ((FRAME, []), ValueError, "y must name columns of X"),
        ((FRAME, ["u", "z"]), ValueError, r"y must name columns of X, got \['z'\]"),
        ((FRAME, ["u", "u"]), ValueError, "each column once"),
        ((FRAME, FRAME["u"]), ValueError, "dask Series, which has one axis"),
        ((FRAME, LABELS), TypeError, "y must be a dask DataFrame.* got dask array"),
        ((FRAME, frame_of(2)), ValueError, "as many partitions as X, got 2 and 3"),
        ((FRAME, ["u"], "z"), ValueError, "sample_weight='z' is no column"),
        ((FRAME, ["u"], "u"), ValueError, "among the labels"),
        ((FRAME, ["u"], WEIGHT), TypeError, "sample_weight must be a dask Series"),
        ((FRAME[["u"]], ["u"]), ValueError, "at least one column of features"),
        ((FRAME.astype({"a": str}), ["u"]), ValueError, r"X: .*numbers.*\['a \("),
        ((FRAME[["a"]], FRAME[["u"]].astype(str)), ValueError, r"y: .*numbers"),
        (([PART, 3], [PART, PART]), TypeError, "X must be a list of Delayed.* got int"),
        (([PART], [Y]), TypeError, "y must be a list of Delayed.* got ndarray"),
        (([PART], LABELS), TypeError, "y must be a list of Delayed.* got Array"),
        (([PART, PART], [PART]), ValueError, "y must have as many Delayed.* 1 and 2"),
        (([PART], [PART], [PART] * 2), ValueError, "sample_weight must have as many"),
        (([PART], None, [PART]), ValueError, "sample_weight must be None where y is"),
    ],
    ids=range(34),
)
def test_collections_that_do_not_fit(arguments, error, message):
    with pytest.raises(error, match=message):
        delayed_partitions(*arguments)


def test_frames_that_are_divided_otherwise():
    frame = frame_of()
    other = frame[["u"]].repartition(divisions=(0, 2, 5, 9))
    assert other.npartitions == frame.npartitions
    with pytest.raises(ValueError, match="y must be divided as X is"):
        delayed_partitions(frame[["a"]], other)
    assert_whole(
        delayed_partitions(frame[["a"]], other.repartition(divisions=frame.divisions)),
        X[:, :1],
        Y[:, :1],
    )

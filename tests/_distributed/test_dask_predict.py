"""Predictions for rows in partitions: shapes, types, names, and the model sent once."""

import sys

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from clml import dask_predict
from clml.baselines import GaussianNBRelevance, MLkNNClassifier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

METHODS = ("predict", "predict_proba", "decision_function")
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def fitted(small_data):
    return GaussianNBRelevance().fit(*small_data)


@pytest.fixture(scope="module")
def of_one_label(small_data):
    X, Y = small_data
    return GaussianNBRelevance().fit(X, np.where(Y[:, 0], "yes", "no"))


@pytest.fixture(scope="module")
def frames(small_data):
    """Rows and labels as frames, and a model of them."""
    X, Y = small_data
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    X.index = pd.Index(np.arange(120) * 2, name="row")
    Y = pd.DataFrame(Y, columns=list("abcd"), index=X.index)
    return X, GaussianNBRelevance().fit(X, Y)


def test_by_hand():
    """The one feature is the label."""
    clf = GaussianNBRelevance().fit([[0.0], [0.1], [0.9], [1.0]], [[0], [0], [1], [1]])
    X = da.from_array(np.array([[0.05], [0.95], [0.1]]), chunks=(2, 1))
    found = dask_predict(clf, X)
    assert found.chunks == ((2, 1), (1,))
    assert_array_equal(found.compute(), [[0], [1], [0]])


@each_method
@settings(max_examples=15)
@given(data=st.data())
def test_arrays_of_any_chunks(fitted, small_data, method, data):
    X, _ = small_data
    cuts = st.lists(st.integers(0, 120), max_size=4).map(sorted)
    rows = np.diff([0, *data.draw(cuts), 120]).tolist()  # some of no rows
    columns = data.draw(st.sampled_from([(8,), (3, 5), (1, 6, 1)]))
    found = dask_predict(
        fitted, da.from_array(X, chunks=(tuple(rows), columns)), method
    )
    expected = getattr(fitted, method)(X)
    assert found.chunks == (tuple(rows), (4,))
    assert found.dtype == expected.dtype
    assert type(found._meta) is np.ndarray
    computed = found.compute(scheduler="sync")
    assert computed.dtype == expected.dtype
    assert_array_equal(computed, expected)


@each_method
def test_lengths_may_be_unknown(fitted, small_data, method):
    X, _ = small_data
    rows = da.from_array(X, chunks=(50, 3))
    few = rows[rows[:, 0] > 5]
    assert np.isnan(few.shape[0])
    found = dask_predict(fitted, few, method)
    assert found.numblocks == (3, 1)
    assert found.shape[1] == 4
    expected = getattr(fitted, method)(X[X[:, 0] > 5])
    assert_array_equal(found.compute(), expected)


@each_method
def test_sparse_chunks(fitted, small_data, method):
    X, _ = small_data
    rows = da.from_array(X, chunks=(40, 8)).map_blocks(sp.csr_array)
    model = MLkNNClassifier(n_neighbors=3).fit(*small_data)
    found = dask_predict(model, rows, method)
    assert_array_equal(found.compute(), getattr(model, method)(X))
    # Also one of no rows, whose kind is then that of the others.
    found = dask_predict(model, rows[:0], method)
    assert found.compute().shape == (0, 4)


@pytest.mark.parametrize(
    ("method", "shape"),
    [("predict", ()), ("decision_function", ()), ("predict_proba", (2,))],
)
def test_two_classes(of_one_label, small_data, method, shape):
    X, _ = small_data
    expected = getattr(of_one_label, method)(X)
    found = dask_predict(of_one_label, da.from_array(X, chunks=(50, 8)), method)
    assert found.shape == (120, *shape)
    assert found.dtype == expected.dtype
    assert_array_equal(found.compute(), expected)
    frame = pd.DataFrame(X)
    found = dask_predict(of_one_label, dd.from_pandas(frame, npartitions=3), method)
    computed = found.compute()
    assert_array_equal(computed, expected)
    if shape:
        assert list(computed.columns) == ["no", "yes"]
    else:
        assert computed.name == found.name == "label0"


@each_method
def test_frames(frames, method):
    X, model = frames
    found = dask_predict(model, dd.from_pandas(X, npartitions=4), method)
    assert isinstance(found, dd.DataFrame)
    assert found.npartitions == 4
    expected = getattr(model, method)(X)
    expected = pd.DataFrame(expected, index=X.index, columns=list("abcd"))
    assert (found.dtypes == expected.dtypes).all()
    pd.testing.assert_frame_equal(found.compute(), expected)
    # Kept where it is computed: dask then hashes all that it knows of the model.
    pd.testing.assert_frame_equal(found.persist().compute(), expected)


def test_partitions_of_a_frame_may_be_empty(frames):
    X, model = frames
    rows = dd.from_pandas(X, npartitions=4)
    found = dask_predict(model, rows[rows["x0"] < 0]).compute()
    assert found.shape == (0, 4)
    assert list(found.columns) == list("abcd")
    assert (found.dtypes == np.int64).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_delayed_partitions(fitted, small_data, form):
    X, _ = small_data
    parts = [X[:50], X[50:50], X[50:]]
    found = dask_predict(fitted, [dask.delayed(form)(part) for part in parts])
    assert [part.shape for part in dask.compute(*found)] == [(50, 4), (0, 4), (70, 4)]
    assert_array_equal(np.concatenate(dask.compute(*found)), fitted.predict(X))
    assert dask_predict(fitted, []) == []


def test_learners_of_scikit_learn(small_data):
    X, Y = small_data
    model = KNeighborsClassifier().fit(X, Y)
    rows = da.from_array(X, chunks=(50, 8))
    assert_array_equal(dask_predict(model, rows).compute(), model.predict(X))
    frame = dask_predict(model, dd.from_dask_array(rows)).compute()
    assert list(frame.columns) == [0, 1, 2, 3]
    assert_array_equal(frame, model.predict(X))
    of_classes = LinearDiscriminantAnalysis().fit(X, Y.sum(axis=1))
    frame = dask_predict(of_classes, dd.from_dask_array(rows), "predict_proba")
    assert list(frame.columns) == of_classes.classes_.tolist()


def test_sparse_predictions(small_data):
    X, Y = small_data
    model = OneVsRestClassifier(LinearSVC()).fit(X, sp.csr_array(Y))
    rows = da.from_array(X, chunks=(50, 8))
    found = dask_predict(model, rows)
    assert sp.issparse(found._meta)
    expected = model.predict(X).toarray()
    assert_array_equal(found.blocks[1].compute().toarray(), expected[50:100])
    frame = dask_predict(model, dd.from_dask_array(rows)).compute()
    assert_array_equal(frame, expected)


class Counted(GaussianNBRelevance):
    """Counts how often it is asked about rows, and how often it is sent."""

    asked = 0
    sent = 0

    def predict(self, X):
        Counted.asked += len(X) > 2  # a row or two tell shape and type
        return super().predict(X)

    def __getstate__(self):
        Counted.sent += 1
        return super().__getstate__()


@pytest.mark.parametrize(
    "form",
    [
        lambda X: da.from_array(X, chunks=(10, 8)),
        lambda X: dd.from_pandas(pd.DataFrame(X), npartitions=12),
        lambda X: [dask.delayed(X[i : i + 10]) for i in range(0, 120, 10)],
    ],
    ids=["array", "frame", "delayed"],
)
def test_nothing_is_computed_and_the_model_is_sent_once(small_data, form, monkeypatch):
    X, Y = small_data
    monkeypatch.setattr(Counted, "asked", 0)
    monkeypatch.setattr(Counted, "sent", 0)
    found = dask_predict(Counted().fit(X, Y), form(X))
    found = found if isinstance(found, list) else [found]
    assert (Counted.asked, Counted.sent) == (0, 0)
    graph = {}
    for part in dask.optimize(*found):
        graph |= dict(part.__dask_graph__())
    assert len(graph) > 12
    for node in graph.values():
        cloudpickle.dumps(node)
    assert Counted.sent == 1
    assert Counted.asked == 0
    dask.compute(*found, scheduler="sync")
    assert Counted.asked == 12


BAD = [
    (
        np.zeros((3, 8)),
        "predict",
        TypeError,
        "got ndarray.*GaussianNBRelevance.predict",
    ),
    ([np.zeros((3, 8))], "predict", TypeError, "a list of Delayed, got list"),
    (da.zeros(3), "predict", ValueError, r"two dimensions.*got shape \(3,\)"),
    (da.zeros((3, 7)), "predict", ValueError, "7 features"),
    (da.zeros((3, 8)), "transform", ValueError, "method must be one of .*'transform'"),
]


@pytest.mark.parametrize(("X", "method", "error", "match"), BAD)
def test_bad_input(fitted, X, method, error, match):
    with pytest.raises(error, match=match):
        dask_predict(fitted, X, method)


def test_bad_estimators(small_data):
    X = da.zeros((3, 8))
    with pytest.raises(NotFittedError):
        dask_predict(GaussianNBRelevance(), X)
    with pytest.raises(TypeError, match="LinearSVC has no method predict_proba"):
        dask_predict(LinearSVC().fit(*_one(small_data)), X, "predict_proba")
    neighbours = KNeighborsClassifier().fit(*small_data)
    with pytest.raises(TypeError, match="must return one array, got list"):
        dask_predict(neighbours, X, "predict_proba")


def _one(data):
    return data[0], data[1][:, 0]


def test_without_dask(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"the package dask: .*'clml\[dask\]'"):
        dask_predict(fitted, [])

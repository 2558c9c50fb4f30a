"""Graphs that predict what the classifier does."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from nested_settings import nested
from onnx.reference import ReferenceEvaluator
from scipy.special import expit
from short_maps import shorten_maps
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import clml
from clml import CLMLClassifier, LebesgueTunedClassifier, ParetoFront
from clml.baselines._naive_bayes import GaussianNBRelevance
from clml.network import Layout, Scaling
from clml.persistence import load, save
from clml.persistence import onnx as _onnx
from clml.persistence._onnx_graph import model_of
from clml.persistence._onnx_model import OPSETS
from clml.persistence.onnx import export_onnx

QUICK = {"embedding_dim": 4, "max_epochs": 2, "random_state": 0}
# What single and double precision must keep, of probabilities and decisions.
CLOSE = {"float32": 1e-5, "float64": 1e-12}


@pytest.fixture(autouse=True)
def short_search_for_maps(monkeypatch):
    shorten_maps(monkeypatch, 5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def opened(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def session_of(classifier, dtype="float32"):
    """A session without a file."""
    return opened(model_of(classifier, dtype, 18, {}).SerializeToString())


def classifier_of(layout, thetas, scaling=None, temperature=1.0):
    """A classifier with networks of one's own, as if fitted to an indicator."""
    clf = CLMLClassifier()
    clf.layout_, clf.theta_ = layout, np.asarray(thetas, dtype=np.float32)
    clf.scaling_ = scaling or Scaling.identity(layout.n_features)
    clf.temperature_, clf.incumbent_ = temperature, "mean"
    clf.n_features_in_, clf.n_labels_ = layout.n_features, layout.n_labels
    clf.classes_ = [np.array([0, 1])] * layout.n_labels
    clf.label_names_ = np.array([f"label{k}" for k in range(layout.n_labels)], object)
    clf.front_ = ParetoFront(np.zeros((1, 1)), ("hamming",), np.zeros((1, 1)))
    return clf


def assert_equal_scores(session, classifier, X, dtype="float32"):
    """Compare with the classifier on the rows that the graph is given."""
    rows = X.toarray() if sp.issparse(X) else np.asarray(X)
    rows = rows.astype(dtype)
    logits, probabilities, labels = session.run(None, {"features": rows})
    expected = classifier.decision_function(rows).reshape(logits.shape)
    limit = CLOSE[dtype]
    assert logits.dtype == probabilities.dtype == dtype
    size = max(np.abs(expected).max(), 1.0)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=limit * size)
    np.testing.assert_allclose(probabilities, expit(expected), rtol=0, atol=limit)
    assert labels.dtype == np.int64
    clear = np.abs(expected) >= limit * size
    np.testing.assert_array_equal(labels[clear], (expected > 0)[clear])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_worked_example(dtype, path):
    """One feature of mean 1; two units that see x − 1 and 1 − x."""
    layout = Layout(n_features=1, n_labels=1, embedding_dim=2)
    theta = np.zeros(layout.size)
    weights = layout.views(theta)
    weights["E"][:] = [[1, -1]]
    weights["L1"][:] = np.eye(2)
    weights["Dec"][:] = [[1], [-1]]
    scaling = Scaling(np.array([1.0]), np.array([2.0]))
    clf = classifier_of(layout, theta, scaling, temperature=2.0)
    export_onnx(clf, path, dtype=dtype)
    # Two units, standardised, are 1 and -1, in both layers; at the mean both are 0,
    # and a logit of 0 is no label.
    logit = (expit(1) - expit(-1)) / 2
    rows = np.array([[3.0], [-50.0], [1.0]], dtype=dtype)
    for run in (opened(path).run, ReferenceEvaluator(str(path)).run):
        logits, probabilities, labels = run(None, {"features": rows})
        np.testing.assert_allclose(logits, [[logit], [-logit], [0]], atol=1e-6)
        np.testing.assert_allclose(probabilities, expit(logits), atol=1e-6)
        assert labels.tolist() == [[1], [0], [0]]
    assert_equal_scores(opened(path), clf, rows, dtype)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "settings",
    [
        {"search": "ascent", "n_members": 1, "n_layers": 3},
        {"search": "ascent", "n_members": 3, "n_layers": 2},
        {"search": "ascent", "n_members": 2, "standardize": False},
        {"search": "cma", "n_members": 1, "standardize": False},
        {"search": "cma", "n_members": 1, "n_layers": 3, "calibrate": False},
        {"search": "cma", "n_members": 2, "evolve": "last"},
        {"search": "rank_gradient", "n_members": 1, "n_layers": 2},
        {"search": "rank_gradient", "n_members": 2},
    ],
    ids=lambda s: "-".join(str(v) for v in s.values()),
)
def test_fitted(settings, kind, small_data, path):
    X = kind(small_data[0])
    clf = CLMLClassifier(**nested(QUICK | settings)).fit(X, small_data[1])
    for dtype in CLOSE:
        export_onnx(clf, path, dtype=dtype)
        onnx.checker.check_model(path, full_check=True)
        assert_equal_scores(opened(path), clf, X, dtype)


@pytest.mark.parametrize("model", ["fitted", "fitted_members"])
@pytest.mark.parametrize("which", ["hamming", "lrap", "knee", "final", 0], ids=str)
def test_selected(which, model, small_data, path, request):
    chosen = request.getfixturevalue(model).select(which)
    export_onnx(chosen, path)
    assert_equal_scores(opened(path), chosen, small_data[0])
    (found,) = (p.value for p in onnx.load(path).metadata_props if p.key == "incumbent")
    assert json.loads(found) == chosen.incumbent_


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 7], [False, True], [-1.0, 2.0]])
def test_two_classes(classes, small_data, path):
    X, Y = small_data
    y = np.array(classes)[Y[:, 0]]
    clf = CLMLClassifier(**nested(QUICK), n_members=2).fit(X, y)
    export_onnx(clf, path)
    session = opened(path)
    assert_equal_scores(session, clf, X)
    # What predict and predict_proba return, from the outputs and the metadata.
    rows = X.astype(np.float32)
    _, probabilities, labels = session.run(None, {"features": rows})
    known = np.array(json.loads(session.get_modelmeta().custom_metadata_map["classes"]))
    assert labels.shape == (120, 1)
    np.testing.assert_array_equal(known[labels[:, 0]], clf.predict(rows))
    both = np.hstack([1 - probabilities, probabilities])
    np.testing.assert_allclose(both, clf.predict_proba(rows), rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*labels are constant in the training rows")
def test_constant_columns_and_labels(small_data, path):
    X, Y = small_data[0].copy(), small_data[1].copy()
    X[:, 0], X[:, 1], Y[:, 0], Y[:, 2] = 0, 1e12, 0, 1
    clf = CLMLClassifier(**nested(QUICK), n_members=2).fit(X, Y)
    export_onnx(clf, path)
    assert_equal_scores(opened(path), clf, X)


def test_one_feature_and_one_label(small_data, path):
    X, Y = small_data[0][:, :1], small_data[1][:, :1]
    clf = CLMLClassifier(**nested(QUICK), n_members=2).fit(X, Y)
    export_onnx(clf, path)
    assert_equal_scores(opened(path), clf, X)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(
        st.integers(1, 30), st.integers(1, 6), st.integers(2, 20), st.integers(1, 3)
    ),
    n_members=st.integers(1, 5),
    size=st.sampled_from([1e-10, 1e-3, 1.0, 1e3]),
)
def test_random_networks(seed, shape, n_members, size):
    """Any weights, means from 0 to 10⁵, deviations from 10⁻⁶ to 10⁶."""
    rng = np.random.default_rng(seed)
    layout = Layout(*shape)
    d = layout.n_features
    mean = rng.normal(size=d) * 10.0 ** rng.integers(-3, 6, size=d)
    scaling = Scaling(mean, 10.0 ** rng.uniform(-6, 6, size=d))
    thetas = size * rng.normal(size=(n_members, layout.size))
    # Probabilities of logits much larger than 1 would say nothing.
    clf = classifier_of(layout, thetas, scaling, temperature=5 * size)
    X = scaling.mean + scaling.scale * rng.normal(size=(6, d))
    for dtype in CLOSE:
        assert_equal_scores(session_of(clf, dtype), clf, X, dtype)


def random_classifier(scaling=None, n_members=3, n_layers=1):
    layout = Layout(n_features=3, n_labels=4, embedding_dim=8, n_layers=n_layers)
    thetas = np.random.default_rng(0).normal(size=(n_members, layout.size))
    return classifier_of(layout, thetas, scaling)


@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000])
@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("dtype", CLOSE)
def test_batches(n_rows, n_members, n_layers, scale, dtype):
    """None at all included: what a runtime makes of a graph may not bear that."""
    scaling = Scaling(np.zeros(3), np.full(3, scale))
    clf = random_classifier(scaling, n_members, n_layers)
    rows = np.random.default_rng(1).normal(size=(n_rows, 3)).astype(dtype)
    session = session_of(clf, dtype)
    if n_rows:
        assert_equal_scores(session, clf, rows, dtype)
    shapes = [found.shape for found in session.run(None, {"features": rows})]
    assert shapes == [(n_rows, 4)] * 3


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e25, 1e36])
@pytest.mark.parametrize("dtype", CLOSE)
def test_features_of_any_size(size, dtype):
    """Rows that are not standardised, of sizes whose squares leave float32."""
    layout = Layout(n_features=3, n_labels=4, embedding_dim=8)
    thetas = np.random.default_rng(0).normal(size=(3, layout.size))
    layout.views(thetas)["b_E"][:] = 0
    clf = classifier_of(layout, thetas)
    X = size * np.random.default_rng(1).normal(size=(50, 3))
    assert_equal_scores(session_of(clf, dtype), clf, X, dtype)


def test_large_mean_and_small_deviation():
    """What float32 rows still tell is kept; what they lost needs float64 rows."""
    scaling = Scaling(np.array([1e6, -1e7, 0.0]), np.ones(3))
    clf = random_classifier(scaling=scaling)
    X = scaling.mean + np.random.default_rng(1).normal(size=(200, 3))
    assert_equal_scores(session_of(clf), clf, X)
    assert_equal_scores(session_of(clf, "float64"), clf, X, "float64")
    lost = np.abs(clf.predict_proba(X) - clf.predict_proba(X.astype(np.float32)))
    assert lost.max() > 0.01


@pytest.mark.parametrize("scale", [1e-300, 1e-45, 1e45, 1e300])
def test_deviations_beyond_float32(scale):
    scaling = Scaling(np.zeros(3), np.full(3, scale))
    clf = random_classifier(scaling=scaling)
    X = scale * np.random.default_rng(1).normal(size=(20, 3))
    assert_equal_scores(session_of(clf, "float64"), clf, X, "float64")


def test_equal_units_are_not_told_apart():
    """Their deviation is 0; rounding must not become a difference of 1."""
    layout = Layout(n_features=3, n_labels=2, embedding_dim=7)
    theta = np.random.default_rng(0).normal(size=layout.size)
    weights = layout.views(theta)
    weights["E"][:] = weights["E"][:, :1]
    weights["b_E"][:] = weights["b_E"][:1]
    clf = classifier_of(layout, theta)
    X = 1e4 * np.random.default_rng(1).normal(size=(20, 3))
    for dtype in CLOSE:
        assert_equal_scores(session_of(clf, dtype), clf, X, dtype)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("scale", [0.5, 1.0])
@pytest.mark.parametrize("dtype", CLOSE)
def test_rows_that_cannot_be_read_have_no_probabilities(value, scale, dtype):
    """Nor do they touch their neighbours'."""
    clf = random_classifier(scaling=Scaling(np.zeros(3), np.full(3, scale)))
    rows = np.random.default_rng(1).normal(size=(9, 3)).astype(dtype)
    session = session_of(clf, dtype)
    before = session.run(None, {"features": rows})
    rows[4, 1] = value
    found = session.run(None, {"features": rows})
    assert_refused(found, 4)
    others = np.arange(9) != 4
    for one, other in zip(found, before, strict=True):
        np.testing.assert_array_equal(one[others], other[others])


def assert_refused(found, row):
    logits, probabilities, labels = found
    assert np.isnan(logits[row]).all()
    assert np.isnan(probabilities[row]).all()
    assert not labels[row].any()


@pytest.mark.parametrize("exponent", [-150, -101, -99, -60, -20, 0, 20, 300])
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("dtype", CLOSE)
def test_large_features_are_predicted_or_refused_as_in_python(
    exponent, n_layers, dtype
):
    """Deviations of 10 to that power: features are as far from 1 once scaled."""
    scaling = Scaling(np.array([0.0, 1.0, -2.0]), np.full(3, 10.0**exponent))
    clf = random_classifier(scaling, n_layers=n_layers)
    session = session_of(clf, dtype)
    sizes = [1e-30, 1.0, 1e15, 1e30, 3e38, 1e99, 1e101, 1e180, 1e308]
    for size in sizes if dtype == "float64" else sizes[:5]:
        for place in (0, slice(None)):
            row = np.array([[0.5, 1.5, -1.0]], dtype=dtype)
            row[0, place] = size
            try:
                clf.predict(row)
            except ValueError:
                assert_refused(session.run(None, {"features": row}), 0)
            else:
                assert_equal_scores(session, clf, row, dtype)


def test_a_large_row_among_others():
    """Nor does one that is made smaller touch its neighbours."""
    clf = random_classifier(Scaling(np.zeros(3), np.full(3, 1e-20)))
    rows = (1e-20 * np.random.default_rng(1).normal(size=(9, 3))).astype(np.float32)
    session = session_of(clf)
    before = session.run(None, {"features": rows})
    rows[4] = [1.0, -1e38, 3e38]
    assert_equal_scores(session, clf, rows)
    after = session.run(None, {"features": rows})
    others = np.arange(9) != 4
    for one, other in zip(after, before, strict=True):
        np.testing.assert_array_equal(one[others], other[others])


@pytest.mark.parametrize("opset", OPSETS)
def test_file(opset, fitted_members, small_data, path):
    export_onnx(fitted_members, path, opset=opset)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", opset)]
    # The newest of the oldest onnx and onnxruntime that the extra allows.
    assert model.ir_version <= 10
    assert (model.producer_name, model.producer_version) == ("clml", clml.__version__)
    assert {node.domain for node in model.graph.node} == {""}
    session = opened(path)
    assert_equal_scores(session, fitted_members, small_data[0])
    (features,) = session.get_inputs()
    assert (features.name, features.type) == ("features", "tensor(float)")
    assert features.shape == ["N", 8]
    found = [(o.name, o.type, o.shape) for o in session.get_outputs()]
    assert found == [
        ("logits", "tensor(float)", ["N", 4]),
        ("probabilities", "tensor(float)", ["N", 4]),
        ("labels", "tensor(int64)", ["N", 4]),
    ]
    assert {p.key: json.loads(p.value) for p in model.metadata_props} == {
        "label_names": ["label0", "label1", "label2", "label3"],
        "loss_names": ["hamming", "lrap", "micro_f1"],
        "incumbent": fitted_members.incumbent_,
    }


def test_names_of_data_frames(small_data, path):
    X = pd.DataFrame(small_data[0], columns=[f"größe {i}" for i in range(8)])
    # Half of a character, too: JSON escapes it.
    names = pd.Index(["a", "b", "c", "d\ud800"], dtype=object)
    Y = pd.DataFrame(small_data[1], columns=names)
    export_onnx(CLMLClassifier(**nested(QUICK), n_members=2).fit(X, Y), path)
    found = opened(path).get_modelmeta().custom_metadata_map
    assert json.loads(found["feature_names"]) == X.columns.tolist()
    assert json.loads(found["label_names"]) == names.tolist()


@pytest.mark.parametrize("rows", [np.zeros((2, 7), "f4"), np.zeros((2, 8), "f8")])
def test_runtime_refuses_other_rows(rows, fitted):
    with pytest.raises(Exception, match=r"invalid dimensions|Unexpected input data"):
        session_of(fitted).run(None, {"features": rows})


def test_same_model_same_bytes(fitted_members, tmp_path):
    before = dict(vars(fitted_members))
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    export_onnx(fitted_members, paths[0])
    save(fitted_members, tmp_path / "model.clml")
    export_onnx(load(tmp_path / "model.clml"), str(paths[1]))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert all(vars(fitted_members)[name] is value for name, value in before.items())
    assert len(list(tmp_path.iterdir())) == 3


class Other(CLMLClassifier):
    """It might predict otherwise."""


def not_finite():
    clf = random_classifier()
    clf.theta_[1, 5] = np.nan
    return clf


@pytest.mark.parametrize(
    ("classifier", "options", "error", "message"),
    [
        (CLMLClassifier(), {}, NotFittedError, "not fitted"),
        (Other(), {}, TypeError, "Only a CLMLClassifier .*Other"),
        (
            LebesgueTunedClassifier(LogisticRegression()),
            {},
            TypeError,
            "Only a CLMLClassifier .*LebesgueTunedClassifier",
        ),
        (GaussianNBRelevance(), {}, TypeError, "Only a CLMLClassifier"),
        (GaussianNB(), {}, TypeError, r"got sklearn\.naive_bayes\.GaussianNB"),
        (None, {}, TypeError, r"got builtins\.NoneType"),
        (CLMLClassifier, {}, TypeError, r"got builtins\.type|got abc\.ABCMeta"),
        (not_finite(), {}, ValueError, "weights that are not finite"),
        (random_classifier(), {"dtype": "float16"}, ValueError, "dtype must be one of"),
        (random_classifier(), {"dtype": np.float32}, ValueError, "dtype must be one"),
        (random_classifier(), {"opset": 17}, ValueError, "from 18 to 21, got 17"),
        (random_classifier(), {"opset": 22}, ValueError, "from 18 to 21, got 22"),
        (random_classifier(), {"opset": 18.0}, ValueError, "from 18 to 21, got 18.0"),
        (random_classifier(), {"opset": None}, ValueError, "from 18 to 21, got None"),
    ],
    ids=range(14),
)
def test_what_is_not_exported(classifier, options, error, message, path):
    path.write_bytes(b"before")
    with pytest.raises(error, match=message):
        export_onnx(classifier, path, **options)
    assert path.read_bytes() == b"before"
    assert len(list(path.parent.iterdir())) == 1


def test_model_that_one_file_cannot_hold(monkeypatch, path):
    clf = random_classifier()
    # Three members of 140 weights, and names.
    monkeypatch.setattr(_onnx, "LARGEST_FILE", 3 * 140 * 4 + 200)
    export_onnx(clf, path)
    with pytest.raises(ValueError, match=r"420 weights, .* bytes as float64"):
        export_onnx(clf, path, dtype="float64")


@pytest.mark.parametrize(
    ("place", "error"),
    [("absent/model.onnx", FileNotFoundError), (".", IsADirectoryError)],
)
def test_places_that_cannot_be_written(place, error, tmp_path):
    with pytest.raises(error, match=r"No such folder|is a folder"):
        export_onnx(random_classifier(), tmp_path / place)


def test_failed_write_leaves_what_was_there(monkeypatch, path):
    def full_disk(_):
        raise OSError(28, "No space left on device")

    path.write_bytes(b"before")
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        export_onnx(random_classifier(), path)
    assert path.read_bytes() == b"before"
    assert len(list(path.parent.iterdir())) == 1


def test_without_the_package(monkeypatch, path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'clml\[onnx\]'"):
        export_onnx(random_classifier(), path)
    assert not path.exists()

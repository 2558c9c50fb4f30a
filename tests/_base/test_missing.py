"""Missing values in X: who takes them, in which forms, and what they come to."""

import tracemalloc

import dask.array as da
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from clml import Ascent, CLMLClassifier, dask_predict
from clml._base.missing import checked_rows, has_missing
from clml.baselines import GaussianNBRelevance
from clml.losses import loss_values
from clml.network import WideNetwork
from clml.persistence import load, save

LOSSES = ("hamming", "lrap", "micro_f1")


def wide(**settings):
    defaults = {
        "network": WideNetwork((16,)),
        "n_members": 6,
        "max_epochs": 4,
        "shrinkage": 0.5,
        "random_state": 0,
    }
    return CLMLClassifier(**(defaults | settings))


def rows(n=120):
    return make_multilabel_classification(
        n, n_features=8, n_classes=4, n_labels=2, random_state=0
    )


def with_holes(X, share=0.15, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


@pytest.fixture(scope="module")
def data():
    X, Y = rows()
    return with_holes(X), Y


@pytest.fixture(scope="module")
def fitted(data):
    return wide().fit(*data)


# Who takes them


def test_the_tag_says_who():
    assert get_tags(wide()).input_tags.allow_nan
    assert get_tags(CLMLClassifier(network="wide")).input_tags.allow_nan
    assert not get_tags(CLMLClassifier(search="cma")).input_tags.allow_nan
    assert not get_tags(GaussianNBRelevance()).input_tags.allow_nan


@pytest.mark.parametrize(
    "estimator",
    [CLMLClassifier(search="cma", n_members=1, max_epochs=1), GaussianNBRelevance()],
    ids=["paper", "baseline"],
)
def test_others_say_who_does(estimator, data):
    X, Y = data
    told = r"X contains NaN.*CLMLClassifier\(network='wide'\) does"
    forms = [X, sp.csr_array(X), X.tolist(), pd.DataFrame(X).astype(object)]
    for form in forms:
        with pytest.raises(ValueError, match=told):
            clone(estimator).fit(form, Y)
    known = clone(estimator).fit(np.nan_to_num(X), Y)
    with pytest.raises(ValueError, match=told):
        known.predict(X)


def test_validation_rows_are_named(data):
    X, Y = data
    clf = CLMLClassifier(search="cma", n_members=1, max_epochs=1)
    with pytest.raises(ValueError, match=r"^X_val contains NaN"):
        clf.fit(np.nan_to_num(X), Y, X_val=X, y_val=Y)


def test_the_model_decides_what_it_predicts_for(fitted, data):
    """Not what its parameters were set to since."""
    X, _ = data
    changed = clone(fitted).fit(*data).set_params(network="paper")
    np.testing.assert_array_equal(changed.predict(X), fitted.predict(X))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_infinity_is_refused(fitted, data, value, form):
    X, Y = data
    bad = X.copy()
    bad[3, 2] = value
    for given in (form(bad), form(bad.astype(np.float32))):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            wide().fit(given, Y)
        with pytest.raises(ValueError, match="Input X_val contains infinity"):
            wide().fit(form(X), Y, X_val=given, y_val=Y)
    predicting = fitted if form is not sp.csr_array else wide().fit(form(X), Y)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            getattr(predicting, method)(form(bad))


def test_numbers_beyond_float32(data):
    """Which an encoding takes as they are."""
    X, Y = data
    X = X * [1e30, *np.ones(7)]
    assert np.isfinite(wide(max_epochs=1).fit(X, Y).decision_function(X)).all()


# What they come to


def test_what_is_missing_is_learnt_from():
    """A column whose values say nothing, and whose gaps say all."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 3))
    Y = (generator.random((300, 2)) < 0.5).astype(int)
    X[:, :2][Y == 1] = np.nan
    clf = wide(max_epochs=25, search=Ascent(learning_rate=0.01)).fit(X[:200], Y[:200])
    assert (clf.predict(X[200:]) == Y[200:]).mean() > 0.97


def test_values_that_were_never_missing_in_training():
    """They stand for the median, in every encoding."""
    X, Y = rows(300)
    clf = wide(max_epochs=20, search=Ascent(learning_rate=0.01)).fit(X[:200], Y[:200])
    median = np.median(X[:200], axis=0)
    holes = with_holes(X[200:])
    np.testing.assert_array_equal(
        clf.decision_function(holes),
        clf.decision_function(np.where(np.isnan(holes), median, holes)),
    )
    losses = loss_values(Y[200:], clf.decision_function(holes), LOSSES)
    nothing = loss_values(Y[200:], np.full(Y[200:].shape, -1.0), LOSSES)
    assert (losses[[0, 2]] < nothing[[0, 2]]).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_of_every_kind(form):
    X, Y = rows()
    special = np.column_stack(
        [
            np.full(len(X), np.nan),  # never there
            np.where(X[:, 0] > 3, 7.0, np.nan),  # constant where it is
            np.where(X[:, 1] > 3, 1.0, 0.0),  # an indicator,
            np.where(X[:, 2] > 3, -2.0, 5.0),  # two values
            np.full(len(X), 3.0),  # constant
        ]
    )
    special[::7, 2:4] = np.nan
    both = np.hstack([X, special])
    clf = wide().fit(form(both), Y)
    assert np.isfinite(clf.decision_function(form(both))).all()
    # Columns that say nothing say nothing later, either.
    other = both.copy()
    other[:, [8, 12]] = [[3.0, np.nan]]
    np.testing.assert_array_equal(
        clf.decision_function(form(both)), clf.decision_function(form(other))
    )


def test_nothing_but_missing_values():
    Y = rows()[1]
    with pytest.raises(ValueError, match="X must have a column that differs"):
        wide().fit(np.full((120, 3), np.nan), Y)


def test_rows_without_any_value(fitted):
    found = fitted.predict_proba(np.full((2, 8), np.nan))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0], found[1])


def test_the_input_is_not_changed(data):
    X, Y = data
    copy, weight = X.copy(), np.linspace(0, 1, len(X))
    wide(max_epochs=1).fit(copy, Y, sample_weight=weight).predict(copy)
    np.testing.assert_array_equal(copy, X)


# The forms they come in


def test_frames(data, fitted):
    """Of pandas' own types, of objects, and of both."""
    X, Y = data
    expected = fitted.decision_function(X)
    whole = pd.DataFrame(X)
    own = whole.astype("Int64")
    objects = whole.astype(object).where(whole.notna(), pd.NA)
    nones = whole.astype(object).where(whole.notna(), None)
    parts = own.iloc[:, :3], objects.iloc[:, 3:6], nones.iloc[:, 6:]
    mixed = pd.concat(parts, axis=1)
    arrays = [objects.to_numpy(), nones.to_numpy(), nones.to_numpy().tolist()]
    for form in (whole, own, objects, nones, mixed, *arrays):
        np.testing.assert_array_equal(fitted.decision_function(form), expected)
        if form is mixed:
            assert form.isna().to_numpy().sum() == np.isnan(X).sum()
    np.testing.assert_array_equal(
        wide().fit(mixed, Y).decision_function(mixed), expected
    )


def test_names_of_columns_stay(data):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("abcdefgh")).astype(object)
    frame = frame.where(frame.notna(), pd.NA)
    clf = wide(max_epochs=1).fit(frame, Y)
    assert clf.feature_names_in_.tolist() == list("abcdefgh")


def test_booleans():
    X, Y = rows()
    frame = pd.DataFrame(X > 5)
    known = wide(max_epochs=1).fit(frame.astype(float), Y)
    for form in ("boolean", object):
        holes = frame.astype(form)
        holes.iloc[::5, 0] = pd.NA
        numbers = (X > 5).astype(float)
        numbers[::5, 0] = np.nan
        np.testing.assert_array_equal(
            known.decision_function(holes), known.decision_function(numbers)
        )


def test_text_is_still_refused(fitted, data):
    frame = pd.DataFrame(data[0]).astype(object)
    frame.iloc[0, 0], frame.iloc[1, 1] = "old", pd.NA
    with pytest.raises(ValueError, match="old"):
        fitted.predict(frame)


def test_sparse_rows(data):
    X, Y = data
    X = np.where(np.nan_to_num(X, nan=9.0) > 4, X, 0.0)
    clf = wide().fit(sp.csr_array(X), Y)
    expected = clf.decision_function(sp.csr_array(X))
    for form in (sp.csr_matrix, sp.csc_array, sp.coo_matrix, np.asarray):
        np.testing.assert_allclose(clf.decision_function(form(X)), expected, atol=1e-6)


def test_validation_rows(data):
    X, Y = data
    clf = wide().fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    front = clf.front_
    for member in range(len(front)):
        scores = clf.select(member).decision_function(X[80:])
        off = np.abs(front.losses[member] - loss_values(Y[80:], scores, LOSSES))
        assert (off <= 3 * front.standard_error[member] + 1e-6).all()


def test_checked_rows_of_an_estimator_that_takes_none():
    class Plain(CLMLClassifier):
        """As its parent."""

    found = checked_rows(Plain(), [[1.0, None]], missing=True, dtype=np.float64)
    np.testing.assert_array_equal(found, [[1.0, np.nan]])
    with pytest.raises(ValueError, match="rows contains NaN, and Plain takes no"):
        checked_rows(Plain(), [[1.0, np.nan]], missing=False, name="rows")


# Everything else that reads rows


def test_files_copies_and_pipelines(fitted, data, tmp_path):
    X, Y = data
    save(fitted, tmp_path / "model.clml")
    again = load(tmp_path / "model.clml")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert np.isfinite(fitted.select("lrap").predict_proba(X)).all()
    assert fitted.score(X, Y) == again.score(X, Y)
    piped = make_pipeline("passthrough", wide()).fit(X, Y)
    np.testing.assert_array_equal(piped.predict(X), fitted.predict(X))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx(fitted, data, tmp_path, dtype):
    X = data[0].astype(dtype)
    X[0], X[1, 0] = np.nan, np.inf
    fitted.to_onnx(tmp_path / "model.onnx", dtype=dtype)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found = session.run(["probabilities"], {"features": X})[0]
    assert np.isnan(found[1]).all()
    X[1, 0] = np.nan
    others = np.arange(len(X)) != 1
    np.testing.assert_allclose(
        found[others], fitted.predict_proba(X)[others], atol=1e-5
    )


def test_dask(fitted, data):
    parts = da.from_array(data[0], chunks=(50, 8))
    found = dask_predict(fitted, parts, "predict_proba").compute()
    np.testing.assert_array_equal(found, fitted.predict_proba(data[0]))


def test_checkpoints_and_warm_starts(fitted, data, tmp_path):
    X, Y = data
    settings = {"checkpoint": tmp_path / "run", "checkpoint_every": 0}
    clf = wide(**settings).fit(X, Y)
    again = wide(**settings).fit(X, Y)  # which finds a run that ended
    for one in (clf, again):
        np.testing.assert_array_equal(one.predict_proba(X), fitted.predict_proba(X))
    with pytest.raises(ValueError, match="X"):
        wide(**settings).fit(with_holes(X, seed=1), Y)
    warm = wide(warm_start=True, max_epochs=2).fit(X, Y).fit(X, Y)
    assert warm.n_epochs_ == 4


def test_a_long_text_takes_no_more_memory_than_it_has():
    texts = ["a b"] * 20_000 + ["x" * 1_000_000]
    tracemalloc.start()
    assert not has_missing(texts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6

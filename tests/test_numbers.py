"""Numbers of a whole fit: features of any size, and the same bits for any threads."""

import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from nested_settings import nested
from numpy.testing import assert_allclose, assert_array_equal
from short_maps import shorten_maps
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from clml import CLMLClassifier, LebesgueStackingClassifier, LebesgueTunedClassifier
from clml._maps import score_engine as _score_engine
from clml.engine import NumpyEngine, _numpy
from clml.network import _predict

SEARCHES = ["ascent", "cma", "rank_gradient"]
FORMS = [np.asarray, sp.csr_matrix]


@pytest.fixture(autouse=True)
def short_searches_of_maps(monkeypatch):
    shorten_maps(monkeypatch, 3)


def quick(search, n_members=1, **settings):
    """Return a classifier that is fitted in a moment."""
    settings = {"max_epochs": 2, "embedding_dim": 4, "random_state": 0} | settings
    settings |= {"search": search, "n_members": n_members}
    return CLMLClassifier(**nested(settings))


# Features of all sizes, made of ordinary ones, and what fit says of them without
# standardisation. With it all of these are ordinary features.
SIZES = {
    "tiny": (lambda X: X * 1e-30, "differ by .* at most, beside numbers of size 1,"),
    "small": (lambda X: X * 1e-3, None),
    "large": (lambda X: X * 1e10, None),
    "huge": (lambda X: X * 1e30, ValueError),
    "beyond float32": (lambda X: X * 1e300, ValueError),
    "one huge column": (lambda X: X * [1e200, 1, 1, 1, 1, 1, 1, 1], ValueError),
    "all sizes": (lambda X: X * np.logspace(-12, 12, 8), None),
    "far away": (lambda X: X * 1e-2 + 1e8, "beside numbers of size 1e"),
    "a constant far away": (
        lambda X: np.c_[X[:, 1:], np.full(len(X), 1e10)],
        "beside numbers of size 1e",
    ),
    "constants": (lambda X: np.c_[X[:, :4], np.ones((len(X), 4))], None),
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", SIZES)
def test_features_of_any_size(small_data, name, search):
    X, Y = small_data
    make, said = SIZES[name]
    # Each of the three reads dense and sparse rows by the same code.
    X = (sp.csr_matrix if search == "rank_gradient" else np.asarray)(make(X))
    clf = quick(search, calibrate=False).fit(X, Y)  # a warning would be an error
    scores = clf.decision_function(X)
    assert np.isfinite(scores).all()
    assert np.ptp(scores, axis=0).max() > 1e-6  # rows are told apart
    raw = quick(search, standardize=False, calibrate=False)
    if said is ValueError:
        with pytest.raises(ValueError, match=r"X must stay finite .* float32, got"):
            raw.fit(X, Y)
    elif said is not None:
        with pytest.warns(UserWarning, match=said):
            raw.fit(X, Y)
        assert np.isfinite(raw.decision_function(X)).all()
    else:
        scores = raw.fit(X, Y).decision_function(X)
        assert (np.ptp(scores, axis=0) > 0).any()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(
    "constant", [np.ones((120, 8)), np.random.default_rng(0).random((120, 8)) * 1e-310]
)
def test_features_that_say_nothing(small_data, constant, standardize):
    with pytest.warns(UserWarning, match="all predictions will be the same"):
        clf = quick("ascent", standardize=standardize).fit(constant, small_data[1])
    scores = clf.decision_function(constant)
    assert_allclose(scores, scores[:1].repeat(120, axis=0), atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_members", [1, 2])
def test_rows_of_other_sizes_than_trained_on(small_data, n_members, form):
    X, Y = small_data
    clf = quick("cma", n_members).fit(X, Y)
    for size in (1e-300, 1e-30, 1e30, 1e90):
        assert np.isfinite(clf.decision_function(form(X * size))).all()
        assert clf.predict(form(X[:3] * size)).shape == (3, 4)
    for rows in (X * 1e300, X[:2] * 1e300):
        with pytest.raises(ValueError, match=r"X must stay finite .* float64, got"):
            clf.predict(form(rows))


def without_seconds(history):
    return {name: value for name, value in history.items() if name != "seconds"}


def assert_same_model(found, expected, X):
    """Not a bit differs in what was found, how, and what it predicts."""
    assert_array_equal(found.theta_, expected.theta_)
    assert_array_equal(found.front_.theta, expected.front_.theta)
    assert_array_equal(found.front_.losses, expected.front_.losses)
    assert_array_equal(found.front_.temperature, expected.front_.temperature)
    one, other = (without_seconds(clf.history_) for clf in (found, expected))
    assert one.keys() == other.keys()
    for name, values in other.items():
        assert_array_equal(one[name], values, err_msg=name)
    assert_array_equal(found.decision_function(X), expected.decision_function(X))
    assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def base():
    return MultiOutputClassifier(GaussianNB())


MODELS = {
    **{f"{search}, members": quick(search, 2) for search in SEARCHES},
    **{f"{search}, one": quick(search) for search in SEARCHES},
    "functions": quick("cma", losses=("hamming", lambda Y, S: np.mean(Y != (S > 0)))),
    "tuned": LebesgueTunedClassifier(base(), cv=2, max_epochs=3, random_state=0),
    "stacking": LebesgueStackingClassifier(
        [
            ("nb", base()),
            ("lr", MultiOutputClassifier(LogisticRegression(max_iter=200))),
        ],
        cv=2,
        max_epochs=3,
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_for_any_number_of_threads(small_data, monkeypatch, name):
    for module in (_numpy, _score_engine):  # tiny data would stay in one thread
        monkeypatch.setattr(module, "_SMALL_WORK", 0)
    X, Y = small_data
    model = MODELS[name]
    expected = model.set_params(n_jobs=1).fit(X, Y)
    expected = expected.__copy__()
    for n_jobs in (2, 3, 4, 7):
        # Base learners would start processes, which takes seconds.
        with joblib.parallel_config(backend="threading"):
            found = model.set_params(n_jobs=n_jobs).fit(X, Y)
        assert_same_model(found, expected, X)


@pytest.mark.parametrize("search", ["cma", "rank_gradient"])
def test_the_same_model_where_memory_runs_out(small_data, monkeypatch, search):
    X, Y = small_data
    clf = quick(search, population_size=70)
    expected = clf.fit(X, Y).__copy__()
    inner = NumpyEngine._laid_out

    def laid_out(self, thetas):
        if len(thetas) > 20:
            raise MemoryError("no room")
        return inner(self, thetas)

    monkeypatch.setattr(NumpyEngine, "_laid_out", laid_out)
    with pytest.warns(UserWarning) as caught:
        found = clf.fit(X, Y)
    (only,) = caught  # of both engines, one warning a fit
    assert "candidates instead of 7" in str(only.message)
    assert_same_model(found, expected, X)


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_predictions_are_the_same_bits_in_any_blocks(small_data, monkeypatch, rows):
    X, Y = small_data
    clf = quick("ascent", 2).fit(X, Y)
    expected = clf.decision_function(X)
    monkeypatch.setattr(_predict, "_ROWS_AT_A_TIME", rows)
    with warnings.catch_warnings(action="error"):
        assert_array_equal(clf.decision_function(X), expected)

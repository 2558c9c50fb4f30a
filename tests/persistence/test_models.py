"""Estimators that come back as they were."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from short_maps import shorten_maps
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import clml
from clml import CMA, CLMLClassifier, LebesgueTunedClassifier
from clml.baselines._mlknn import MLkNNClassifier
from clml.baselines._naive_bayes import GaussianNBChain, GaussianNBRelevance
from clml.losses import AbsentLoss, Loss, Statistic, get_loss, loss_values
from clml.losses.definitions import PrecisionAtK
from clml.network import PaperNetwork, WideNetwork
from clml.persistence import load, save
from clml.persistence._encode import Encoder

QUICK = {
    "search": CMA(population_size=6),
    "network": PaperNetwork(embedding_dim=3),
    "n_members": 1,
    "max_epochs": 3,
    "random_state": 0,
}
MEMBERS = QUICK | {"n_members": 4, "shrinkage": 1.0}

ESTIMATORS = [
    CLMLClassifier(**QUICK),
    CLMLClassifier(
        **QUICK | {"network": PaperNetwork(3, n_layers=2)}, validation_fraction=0
    ),
    CLMLClassifier(
        **QUICK | {"network": PaperNetwork(3, standardize=False)}, calibrate=False
    ),
    GaussianNBRelevance(),
    GaussianNBChain(order=[2, 0, 3, 1]),
    GaussianNBChain(order="random", random_state=0, chain_method="predict_proba"),
    MLkNNClassifier(n_neighbors=3),
    MLkNNClassifier(n_neighbors=3, probability="joint", algorithm="brute"),
    CLMLClassifier(**MEMBERS | {"search": "ascent"}),
    CLMLClassifier(**MEMBERS | {"search": CMA(6, evolve="last")}, incumbent="knee"),
    CLMLClassifier(**MEMBERS | {"search": "ascent", "n_members": 1}),
]
WITH_MEMBERS = ESTIMATORS[-3:]


@pytest.fixture(autouse=True)
def short_search_for_maps(monkeypatch):
    shorten_maps(monkeypatch, 5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.clml"


def sent_through(estimator, path):
    save(estimator, path)
    return load(path)


def assert_same_predictions(found, expected, X):
    for method in ("predict", "predict_proba", "decision_function"):
        a, b = getattr(found, method)(X), getattr(expected, method)(X)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def assert_same_attributes(found, expected):
    left_out = set(getattr(expected, "_not_saved", ())) - set(vars(found))
    assert set(vars(found)) == set(vars(expected)) - left_out


def test_worked_example(path):
    """One feature: rows at 0 and 1 lack the label, rows at 4 and 5 have it."""
    X, Y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([[0], [0], [1], [1]])
    clf = GaussianNBRelevance().fit(X, Y)
    found = sent_through(clf, path)
    assert found.estimators_[0].theta_.tolist() == [[0.5], [4.5]]
    assert found.predict([[2.0], [3.0]]).tolist() == [[0], [1]]
    with zipfile.ZipFile(path) as archive:
        state = json.loads(archive.read("state.json"))
        assert state["format"] == "clml model"
        assert state["version"] == 3
        assert state["clml"] == clml.__version__
        assert archive.testzip() is None
    # The arrays are there for anyone who has numpy.
    with np.load(path) as arrays:
        names = [name for name in arrays if name.startswith("array")]
        assert [[0.5], [4.5]] in [arrays[name].tolist() for name in names]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=range(len(ESTIMATORS)))
def test_indicator(estimator, kind, small_data, path):
    X, Y = kind(small_data[0]), small_data[1]
    clf = clone(estimator).fit(X, Y)
    found = sent_through(clf, path)
    assert type(found) is type(clf)
    assert found.get_params() == clf.get_params()
    assert_same_attributes(found, clf)
    assert_same_predictions(found, clf, X)
    assert_same_predictions(clone(found).fit(X, Y), clf, X)


@pytest.mark.parametrize("estimator", [*ESTIMATORS[:4], *WITH_MEMBERS], ids=range(7))
@pytest.mark.parametrize("dtype", ["<U3", object], ids=str)
def test_two_classes_by_name(estimator, dtype, small_data, path):
    X, Y = small_data
    y = np.where(Y[:, 0], "yes", "no").astype(dtype)
    clf = clone(estimator).fit(X, y)
    found = sent_through(clf, path)
    assert found.classes_.dtype == y.dtype
    assert found.classes_.tolist() == ["no", "yes"]
    assert_same_predictions(found, clf, X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=range(len(ESTIMATORS)))
def test_names_of_data_frames(estimator, small_data, path):
    X = pd.DataFrame(small_data[0], columns=[f"größe {i}" for i in range(8)])
    Y = pd.DataFrame(small_data[1], columns=list("abcd"))
    clf = clone(estimator).fit(X, Y)
    found = sent_through(clf, path)
    assert found.feature_names_in_.tolist() == X.columns.tolist()
    assert found.label_names_.tolist() == list("abcd")
    assert_same_predictions(found, clf, X)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(X.rename(columns={"größe 0": "other"}))


@pytest.mark.filterwarnings("ignore:.*labels are constant in the training rows")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=range(len(ESTIMATORS)))
def test_labels_never_and_always_positive(estimator, small_data, path):
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 0], Y[:, 2] = 0, 1
    clf = clone(estimator).fit(X, Y)
    assert_same_predictions(sent_through(clf, path), clf, X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=range(len(ESTIMATORS)))
def test_not_fitted(estimator, small_data, path):
    found = sent_through(estimator, path)
    assert found.get_params() == estimator.get_params()
    assert vars(found) == vars(estimator)
    with pytest.raises(NotFittedError):
        found.predict(small_data[0])


@pytest.mark.parametrize("model", ["fitted", "fitted_members"])
@pytest.mark.parametrize("which", ["hamming", "knee", "final", "mean", 0], ids=str)
def test_selection(which, model, small_data, path, request):
    fitted = request.getfixturevalue(model)
    chosen = fitted.select(which)
    found = sent_through(chosen, path)
    assert found.incumbent_ == chosen.incumbent_
    assert_same_predictions(found, chosen, small_data[0])
    # The whole front came along.
    again = sent_through(fitted, path).select(which)
    assert_same_predictions(again, chosen, small_data[0])


def test_members(fitted_members, path):
    found = sent_through(fitted_members, path)
    for name in ("networks_", "theta_"):
        a, b = getattr(found, name), getattr(fitted_members, name)
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    assert found.theta_.shape == (3, found.layout_.size)
    assert (found.shrinkage_, found.shift_) == (1.0, fitted_members.shift_)
    for name, (theta, temperature) in fitted_members._alternatives.items():
        np.testing.assert_array_equal(found._alternatives[name][0], theta)
        assert found._alternatives[name][1] == temperature


@pytest.mark.parametrize("model", ["fitted", "fitted_members"])
def test_history_and_front(model, path, request):
    fitted = request.getfixturevalue(model)
    found = sent_through(fitted, path)
    assert list(found.history_) == list(fitted.history_)
    for name, values in fitted.history_.items():
        np.testing.assert_array_equal(found.history_[name], values)
    for name in ("losses", "theta", "temperature"):
        a, b = getattr(found.front_, name), getattr(fitted.front_, name)
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    assert found.front_.loss_names == fitted.front_.loss_names
    assert found.layout_ == fitted.layout_


@pytest.mark.parametrize("settings", [QUICK, MEMBERS, MEMBERS | {"search": "ascent"}])
def test_warm_start_begins_anew(settings, small_data, path):
    clf = CLMLClassifier(**settings, warm_start=True).fit(*small_data)
    found = sent_through(clf, path)
    assert_same_predictions(found, clf, small_data[0])
    assert found.fit(*small_data).n_epochs_ == 3
    assert_same_predictions(found, clf, small_data[0])
    # What the loaded one began, it continues, and that can be saved again.
    assert found.fit(*small_data).n_epochs_ == 6
    assert_same_predictions(sent_through(found, path), found, small_data[0])


def test_callbacks_stay_behind(small_data, path):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9")
    clf = CLMLClassifier(**QUICK).set_callbacks(callback.ScoringMonitor(scoring=None))
    save(clf, path)
    assert "_skl_callbacks" in vars(clf)
    assert "_skl_callbacks" not in vars(load(path))


def test_metadata_requests_stay_behind(small_data, path):
    with config_context(enable_metadata_routing=True):
        clf = CLMLClassifier(**QUICK).set_fit_request(sample_weight=True)
        save(clf, path)
    assert "_metadata_request" in vars(clf)
    assert "_metadata_request" not in vars(load(path))


def test_random_state_goes_on_where_it_was(small_data, path):
    clf = CLMLClassifier(**{**QUICK, "random_state": np.random.RandomState(5)})
    clf.random_state.normal(size=3)
    found = sent_through(clf, path)
    assert_same_predictions(found.fit(*small_data), clf.fit(*small_data), small_data[0])
    assert found.random_state.randint(10**9) == clf.random_state.randint(10**9)


def test_parameters_keep_their_types(path):
    parameters = {
        "losses": np.array(["hamming", "lrap"]),
        "max_epochs": np.int16(3),
        "max_seconds": 0.1 + 0.2,
    }
    found = sent_through(CLMLClassifier(**parameters), path)
    for name, value in parameters.items():
        assert type(getattr(found, name)) is type(value)
        np.testing.assert_array_equal(getattr(found, name), value)
    search = CMA(sigma0=np.float32(0.1), population_size=None)
    found = sent_through(CLMLClassifier(search=search), path)
    assert found.search == search
    assert type(found.search.sigma0) is np.float32
    found = sent_through(CLMLClassifier(losses=["hamming"]), path)
    assert found.losses == ["hamming"]


@pytest.mark.parametrize("model", ["fitted", "fitted_members"])
def test_same_model_same_bytes(model, tmp_path, request):
    fitted = request.getfixturevalue(model)
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        save(fitted, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    save(load(paths[0]), paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_saving_changes_nothing(fitted, path):
    before = dict(vars(fitted))
    save(fitted, str(path))
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())


class Other(CLMLClassifier):
    """What it adds would be lost."""


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (LogisticRegression(), TypeError, "one of this library, got sklearn"),
        (GaussianNB(), TypeError, "one of this library, got sklearn"),
        (None, TypeError, "one of this library, got builtins.NoneType"),
        (CLMLClassifier, TypeError, "one of this library, got builtins.type"),
        (Other(), TypeError, "Other is not a class of this library"),
        (
            CLMLClassifier(random_state=np.random.RandomState(np.random.PCG64())),
            TypeError,
            "random_state of CLMLClassifier: a RandomState on MT19937",
        ),
        (CLMLClassifier(search=CMA(sigma0=-1.0)), ValueError, "'sigma0' parameter"),
        (
            CLMLClassifier(random_state=np.random.default_rng(0)),
            ValueError,
            "'random_state' parameter",
        ),
    ],
    ids=range(8),
)
def test_what_is_not_saved(estimator, error, message, path):
    path.write_bytes(b"before")
    with pytest.raises(error, match=message):
        save(estimator, path)
    assert path.read_bytes() == b"before"
    assert len(list(path.parent.iterdir())) == 1


def test_estimator_fitted_in_part(fitted, small_data, path):
    clf = clone(fitted)
    clf.n_features_in_ = 8
    with pytest.raises(ValueError, match=r"cannot be saved: .* n_labels_ is missing"):
        save(clf, path)
    assert not path.exists()


def test_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        load(tmp_path / "absent.clml")


@pytest.mark.parametrize("place", ["absent/model.clml", "."], ids=["folder", "itself"])
def test_places_that_cannot_be_written(place, fitted, tmp_path):
    with pytest.raises(OSError, match=r"No such folder|is a folder"):
        save(fitted, tmp_path / place)


# Losses of one's own, of which files hold no code


def misses(Y, scores):
    return float(((scores <= 0) & (Y == 1)).mean())


class Share(Loss):
    name = "share"
    statistics = (Statistic("above", lambda Y, s, t: (s > t).mean(axis=-1)),)

    def close(self, sums, weight, n_labels):
        return sums["above"] / weight


@pytest.mark.parametrize("kind", ["members", "wide", "population", "tuned"])
@pytest.mark.parametrize("own", [misses, Share, Share()], ids=["f", "class", "object"])
def test_models_with_losses_of_ones_own(small_data, path, kind, own):
    X, Y = small_data
    losses = ("hamming", own)
    clf = {
        "members": CLMLClassifier(losses, max_epochs=2, n_members=2),
        "wide": CLMLClassifier(
            losses, max_epochs=2, n_members=2, network=WideNetwork((8,))
        ),
        "population": CLMLClassifier(losses, search="cma", max_epochs=2),
        "tuned": LebesgueTunedClassifier(
            GaussianNBRelevance(), losses, cv=2, max_epochs=2, population_size=8
        ),
    }[kind].set_params(random_state=0)
    if kind != "population":
        clf.set_params(shrinkage=0.5)
    clf.fit(X, Y)
    save(clf, path)
    loaded = load(path)
    name = clf.front_.loss_names[1]
    assert loaded.front_.loss_names == ("hamming", name)
    for one, other in ((clf, loaded), (clf.select(name), loaded.select(name))):
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    asks = rf"The loss '{name}' was not saved .*set_params\(losses="
    for unfit in (loaded, clone(loaded)):
        with pytest.raises(ValueError, match=asks):
            unfit.fit(X, Y)
    with pytest.raises(ValueError, match=asks):
        loss_values(Y, loaded.decision_function(X), loaded.losses)
    save(loaded, path)  # and once more
    assert repr(load(path).losses) == f"('hamming', AbsentLoss('{name}'))"
    again = load(path).set_params(losses=losses).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_losses_of_the_library_as_objects_are_saved_by_name(path):
    clf = CLMLClassifier(losses=[get_loss("hamming"), PrecisionAtK(2), "lrap"])
    save(clf, path)
    assert load(path).losses == ["hamming", "precision_at_2", "lrap"]


@pytest.mark.parametrize("name", [3, None, ["a"]])
def test_names_of_losses_are_not_trusted(path, name):
    save(CLMLClassifier(losses=("hamming", misses)), path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clml.persistence._encode.AbsentLoss", type("Other", (), {}))
        patch.setattr(Encoder, "_encode", _with_name(Encoder._encode, name))
        save(CLMLClassifier(losses=("hamming", misses)), path)
    with pytest.raises(ValueError, match="no model could be read"):
        load(path)


def _with_name(encode, name):
    def encoded(self, value):
        if isinstance(value, AbsentLoss):
            return {"type": "absent_loss", "value": name}
        return encode(self, value)

    return encoded

"""Every public estimator by every way out of memory, fitted and not."""

import copy
import io
import pickle

import joblib
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

import clml
from clml import (
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
    baselines,
)
from clml._training import own_losses as _own_losses
from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    GaussianNBChain,
    GaussianNBRelevance,
    LIFTClassifier,
    LLSFClassifier,
    MLkNNClassifier,
    MLPRelevanceClassifier,
    MPVAEClassifier,
)
from clml.evolution import _place
from clml.network import PaperNetwork
from clml.persistence import load

skops = pytest.importorskip("skops.io", reason="one of the ways")

QUICK = {"max_epochs": 2, "random_state": 0}
NETWORK = QUICK | {"network": PaperNetwork(embedding_dim=2)}
MAPPED = QUICK | {"cv": 2, "shrinkage": 0.5}
NEAREST = KNeighborsClassifier(3)
ESTIMATORS = {
    "cma": CLMLClassifier(search="cma", n_members=1, **NETWORK),
    "cma members": CLMLClassifier(search="cma", n_members=2, shrinkage=1.0, **NETWORK),
    "rank_gradient": CLMLClassifier(search="rank_gradient", n_members=1, **NETWORK),
    "rank_gradient members": CLMLClassifier(
        search="rank_gradient", n_members=2, shrinkage=1.0, **NETWORK
    ),
    "ascent": CLMLClassifier(search="ascent", n_members=1, **NETWORK),
    "ascent members": CLMLClassifier(
        search="ascent", n_members=2, shrinkage=1.0, **NETWORK
    ),
    "tuned": LebesgueTunedClassifier(NEAREST, **MAPPED),
    "tuned, mixing": LebesgueTunedClassifier(NEAREST, mapping="mixing", **MAPPED),
    "tuned, thresholds": LebesgueTunedClassifier(
        MLkNNClassifier(n_neighbors=3), mapping="thresholds", **MAPPED
    ),
    "stacking": LebesgueStackingClassifier(
        [
            ("near", NEAREST),
            ("linear", MultiOutputClassifier(LogisticRegression())),
            ("bayes", GaussianNBRelevance()),
        ],
        **MAPPED,
    ),
    "C2AE": C2AEClassifier(**QUICK),
    "CLIF": CLIFClassifier(**QUICK),
    "DELA": DELAClassifier(**QUICK),
    "GaussianNBChain": GaussianNBChain(order="random", random_state=0),
    "GaussianNBRelevance": GaussianNBRelevance(),
    "LIFT": LIFTClassifier(random_state=0),
    "LLSF": LLSFClassifier(),
    "MLPRelevance": MLPRelevanceClassifier(**QUICK),
    "MPVAE": MPVAEClassifier(n_samples=5, **QUICK),
    "MLkNN": MLkNNClassifier(n_neighbors=3),
}


def by_file(estimator, folder):
    estimator.save(folder / "model.clml")
    return load(folder / "model.clml")


def by_pickle(estimator, folder):
    return pickle.loads(pickle.dumps(estimator))


def by_joblib(estimator, folder):
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return joblib.load(file)


def by_skops(estimator, folder):
    content = skops.dumps(estimator)
    types = skops.get_untrusted_types(data=content)
    return skops.loads(content, trusted=types)


WAYS = [by_file, by_pickle, by_joblib, by_skops]


def assert_same_predictions(found, expected, X):
    for method in ("predict", "predict_proba", "decision_function"):
        a, b = getattr(found, method)(X), getattr(expected, method)(X)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@pytest.fixture(scope="module")
def fitted_models(small_data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_own_losses, "FULL", _own_losses.MapBudget(5, 64))
        return {k: clone(v).fit(*small_data) for k, v in ESTIMATORS.items()}


def test_every_public_estimator_is_here():
    public = [getattr(clml, name) for name in clml.__all__]
    public += [getattr(baselines, name) for name in baselines.__all__]
    kinds = {kind for kind in public if hasattr(kind, "fit")}
    assert kinds == {type(estimator) for estimator in ESTIMATORS.values()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted(name, way, fitted_models, small_data, tmp_path):
    model = fitted_models[name]
    found = way(model, tmp_path)
    assert type(found) is type(model)
    assert_same_predictions(found, model, small_data[0])
    if hasattr(model, "select"):
        which = model.front_.loss_names[0]
        assert_same_predictions(found.select(which), model.select(which), small_data[0])
    # What came back goes the same way again.
    assert_same_predictions(way(found, tmp_path), model, small_data[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_not_fitted(name, way, small_data, tmp_path):
    estimator = ESTIMATORS[name]
    found = way(estimator, tmp_path)
    assert str(found.get_params()) == str(estimator.get_params())
    with pytest.raises(NotFittedError):
        found.predict(small_data[0])


def by_copy(estimator, folder):
    return copy.deepcopy(estimator)


@pytest.mark.parametrize("way", [by_pickle, by_joblib, by_skops, by_copy])
@pytest.mark.parametrize("search", ["cma", "rank_gradient", "ascent"])
@pytest.mark.parametrize("n_members", [1, 2])
def test_warm_start_goes_on(search, n_members, way, small_data, monkeypatch):
    monkeypatch.setattr(_own_losses, "FULL", _own_losses.MapBudget(5, 64))
    settings = NETWORK | {"search": search, "n_members": n_members}
    if n_members > 1:
        settings["shrinkage"] = 1.0
    model = CLMLClassifier(**settings, warm_start=True).fit(*small_data)
    found = way(model, None)
    assert_same_predictions(found, model, small_data[0])
    assert found.fit(*small_data).n_epochs_ == 4
    assert_same_predictions(found, model.fit(*small_data), small_data[0])


@pytest.mark.parametrize("search", ["cma", "rank_gradient"])
@pytest.mark.parametrize("n_members", [1, 2])
def test_a_model_of_a_gpu_where_there_is_none(
    search, n_members, small_data, tmp_path, monkeypatch
):
    """It predicts, is saved and copied; only to go on it needs the device."""
    monkeypatch.setattr(_own_losses, "FULL", _own_losses.MapBudget(5, 64))
    settings = NETWORK | {"search": search, "n_members": n_members}
    if n_members > 1:
        settings["shrinkage"] = 1.0
    model = CLMLClassifier(**settings, engine="torch", warm_start=True)
    content = pickle.dumps(model.fit(*small_data))

    def find_none(name):
        raise ValueError(f"device={name!r} was asked for, but PyTorch sees 0 GPUs.")

    with monkeypatch.context() as patch:
        patch.setattr(_place, "find_device", find_none)
        found = pickle.loads(content)
        for way in WAYS[:3]:
            assert_same_predictions(way(found, tmp_path), model, small_data[0])
        with pytest.raises(ValueError, match="PyTorch sees 0 GPUs"):
            found.fit(*small_data)
        assert_same_predictions(found, model, small_data[0])
        content = pickle.dumps(found)
    again = pickle.loads(content).fit(*small_data)
    assert_same_predictions(again, model.fit(*small_data), small_data[0])


def test_one_learner_is_not_saved_twice(fitted_models, tmp_path):
    found = by_file(fitted_models["stacking"], tmp_path)
    assert list(found.named_estimators_) == ["near", "linear", "bayes"]
    for learner, named in zip(
        found.estimators_, found.named_estimators_.values(), strict=True
    ):
        assert learner is named

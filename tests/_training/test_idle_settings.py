"""Settings without effect."""

import pytest
from sklearn.datasets import make_multilabel_classification

from clml import CMA, Ascent, CLMLClassifier, RankGradient
from clml._training.idle_settings import say_where
from clml.datasets import as_partitions
from clml.encoding import Bins
from clml.network import PaperNetwork

X, Y = make_multilabel_classification(60, 6, n_classes=3, random_state=0)
DROPPED = PaperNetwork(4, dropout=0.2)


def half(Y, scores):
    return 0.5


ONE = {"search": "cma", "n_members": 1}
REFUSED = [
    ({"encoding": Bins(), "network": "paper"}, "encoding is how columns enter"),
    ({"encoding": [Bins()], **ONE}, r"got encoding=\[Bins\(\)\] with network='auto'"),
    ({"network": DROPPED, **ONE}, "dropout of PaperNetwork is of steps"),
    ({"network": DROPPED, "search": "rank_gradient"}, "dropout of PaperNetwork"),
    (
        {"network": DROPPED, "losses": ("lrap", half), "search": "cma"},
        "dropout of PaperNetwork",
    ),
    ({"shrinkage": 0.5, **ONE}, r"shrinkage is of the map .* got shrinkage=0.5 with"),
    (
        {"shrinkage": 0.5, "losses": ("lrap", half), "search": "cma"},
        "shrinkage is of the map",
    ),
    ({"search": CMA(reference="archive")}, "reference='archive' is for one network"),
    (
        {"search": RankGradient(reference="archive"), "n_members": 2},
        "got n_members=2 and search=RankGradient",
    ),
    ({"validation_fraction": 0.3}, "validation_fraction is the share .* got|Got"),
    ({"validation_fraction": 0, "n_members": 4}, r"with n_members=4\."),
    (
        {"validation_fraction": 0, "incumbent": "lrap", **ONE},
        "validation_fraction=0 leaves none: incumbent='mean' predicts",
    ),
    (
        {"validation_fraction": 0, "incumbent": "final", "n_members": 1},
        "got incumbent='final'",
    ),
    ({"client": "tcp://127.0.0.1:1", "engine": "numpy"}, "cluster of engine='dask'"),
    ({"client": "tcp://127.0.0.1:1", "engine": "torch", **ONE}, "got engine='torch'"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_was_set_in_vain_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CLMLClassifier(max_epochs=1, **settings).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shrinkage": 0.5}, "shrinkage is of the map"),
        ({"encoding": Bins()}, "encoding is how columns enter"),
        ({"network": DROPPED}, "dropout of PaperNetwork"),
        ({"validation_fraction": 0, "incumbent": "knee"}, "got incumbent='knee'"),
    ],
)
def test_rows_in_partitions(settings, message):
    rows = as_partitions(X, Y, rows=30)
    with pytest.raises(ValueError, match=message):
        CLMLClassifier(max_epochs=1, **settings).fit(rows)


EFFECTIVE = [
    {"network": DROPPED, "n_members": 1},
    {"network": DROPPED, "search": CMA(init="surrogate"), "n_members": 1},
    {"shrinkage": 0.5, "n_members": 1, "search": "ascent"},
    {"shrinkage": 0.5, "n_members": 2, "search": "cma"},
    {"validation_fraction": 0.3, "n_members": 1, "search": Ascent()},
    {"validation_fraction": 0, "calibrate": False, **ONE},
    {"search": CMA(reference="archive"), "n_members": 1},
    # Limits, and what goes with what may come and go.
    {"memory_mb": 64, "n_jobs": 2, "checkpoint_every": 1, **ONE},
]


@pytest.mark.parametrize("settings", EFFECTIVE, ids=str)
def test_what_has_an_effect_is_taken(settings):
    clf = CLMLClassifier(max_epochs=1, random_state=0, **settings).fit(X, Y)
    assert clf.predict(X).shape == Y.shape


def test_validation_rows_stand_for_those_that_would_be_drawn():
    for settings in (
        {"validation_fraction": 0.3, **ONE},
        {"validation_fraction": 0, "incumbent": "lrap", **ONE},
    ):
        clf = CLMLClassifier(max_epochs=1, random_state=0, **settings)
        clf.fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:])
        assert clf.predict(X).shape == Y.shape


def test_where_parameters_are():
    assert say_where("max_epochs") is None
    assert say_where("init").endswith("search__init, as Ascent(init=...)")
    assert say_where("dropout").endswith("as PaperNetwork(dropout=...)")

"""Searches as values."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GridSearchCV

from clml import CMA, PAPER_SETTINGS, Ascent, CLMLClassifier, RankGradient
from clml._training.searches import SEARCHES, as_search
from clml.network import PaperNetwork, WideNetwork

KINDS = [Ascent, CMA, RankGradient]


def rows():
    return make_multilabel_classification(
        60, n_features=6, n_classes=3, n_labels=2, random_state=0
    )


def quick(**settings):
    defaults = {"n_members": 1, "max_epochs": 1, "random_state": 0}
    return CLMLClassifier(**{**defaults, **settings})


@pytest.mark.parametrize("kind", KINDS)
def test_a_value(kind):
    plain, other = kind(), kind(init="surrogate")
    assert repr(plain) == f"{kind.__name__}()"
    assert repr(other) == f"{kind.__name__}(init='surrogate')"
    assert plain == kind() != other
    assert other.get_params()["init"] == "surrogate"
    for twin in (clone(other), copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
        assert twin == other
        assert twin is not other
    plain.check()
    assert set(kind._parameter_constraints) == set(plain.get_params())


def test_searches_of_other_kinds_differ():
    assert CMA() != RankGradient()
    assert [as_search(name) for name in SEARCHES] == [kind() for kind in KINDS]
    assert as_search("auto") is None
    given = CMA(sigma0=2.0)
    assert as_search(given) is given


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_stands_for_the_defaults(kind):
    X, Y = rows()
    named, given = (quick(search=s).fit(X, Y) for s in (kind.kind, kind()))
    np.testing.assert_array_equal(named.theta_, given.theta_)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (CMA(population_size=1), r"'population_size' parameter of CMA .*\[2, inf\)"),
        (CMA(population_size="many"), "'population_size' parameter of CMA"),
        (CMA(covariance="dense"), "'covariance' parameter of CMA"),
        (CMA(sigma0=0), "'sigma0' parameter of CMA .* Got 0 instead"),
        (CMA(ties="deep"), "'ties' parameter of CMA"),
        (CMA(reference="best"), "'reference' parameter"),
        (CMA(lebesgue="guess"), "'lebesgue' parameter"),
        (CMA(n_samples=0), "'n_samples' parameter"),
        (CMA(lebesgue="exact", n_samples=5), "n_samples is of Monte Carlo contribut"),
        (CMA(epoch_rows=0), "'epoch_rows' parameter"),
        (CMA(epoch_rows=1.5), "'epoch_rows' parameter"),
        (CMA(init="zero"), "'init' parameter of CMA"),
        (CMA(evolve="first"), "'evolve' parameter"),
        (RankGradient(learning_rate=0), "'learning_rate' parameter of RankGradient"),
        (RankGradient(n_samples=5, lebesgue="exact"), "n_samples is of Monte Carlo"),
        (Ascent(learning_rate=-1.0), "'learning_rate' parameter of Ascent"),
        (Ascent(batch_size=0), "'batch_size' parameter"),
        (Ascent(smoothing=0.0), "'smoothing' parameter"),
        (Ascent(weight_decay=-0.1), "'weight_decay' parameter"),
        (Ascent(init=None), "'init' parameter of Ascent"),
        ("swarm", "'search' parameter"),
        (CMA, "'search' parameter"),
        (None, "'search' parameter"),
        (WideNetwork(), "'search' parameter"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_at_fit(search, message):
    with pytest.raises(ValueError, match=message):
        quick(search=search).fit(*rows())


def test_parameters_are_set_within():
    clf = CLMLClassifier(search=CMA(population_size=8))
    assert clf.get_params()["search__population_size"] == 8
    assert clf.set_params(search__sigma0=0.5).search == CMA(8, sigma0=0.5)
    clf.set_params(search="rank_gradient", search__learning_rate=0.1)
    assert clf.search == RankGradient(learning_rate=0.1)
    clf = CLMLClassifier(search="ascent", network="wide")
    clf.set_params(search__smoothing=1.0, network__hidden=(8,))
    assert (clf.search, clf.network) == (Ascent(smoothing=1.0), WideNetwork((8,)))
    assert clone(clf).get_params() == clf.get_params()


def test_a_value_that_is_shared_stays_as_it_is():
    before = copy.deepcopy(PAPER_SETTINGS)
    clf = CLMLClassifier(**PAPER_SETTINGS)
    clf.set_params(search__sigma0=3.0, network__embedding_dim=3)
    assert (clf.search.sigma0, clf.network.embedding_dim) == (3.0, 3)
    assert before == PAPER_SETTINGS
    twin = clone(CLMLClassifier(**PAPER_SETTINGS))
    twin.search.sigma0 = 3.0
    assert before == PAPER_SETTINGS


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sigma0": 2.0}, r"no parameter 'sigma0'.*search__sigma0.*CMA\(sigma0=...\)"),
        ({"smoothing": 2.0}, r"search__smoothing, as Ascent\(smoothing=...\)"),
        ({"embedding_dim": 3}, r"network__embedding_dim.*PaperNetwork\(embedding_dim"),
        ({"search__sigma0": 2.0}, "search='auto' has no parameters to set"),
        ({"network__dropout": 0.1}, "network='auto' has no parameters to set"),
        ({"encoding__n_bins": 3}, "encoding='auto' has no parameters to set"),
        ({"search": "cma", "search__smoothing": 1.0}, "CMA has no parameter 'smooth"),
        ({"max_epochs": 3, "depth": 2}, "Invalid parameter 'depth'"),
    ],
    ids=str,
)
def test_parameters_that_are_not_there(params, message):
    clf = CLMLClassifier()
    with pytest.raises(ValueError, match=message):
        clf.set_params(**params)
    assert clf.get_params() == CLMLClassifier().get_params()


def test_a_grid():
    X, Y = rows()
    clf = quick(search=CMA(population_size=4), network=PaperNetwork(2))
    grid = {"search__sigma0": [0.5, 2.0], "network__n_layers": [1, 2]}
    found = GridSearchCV(clf, grid, cv=2, refit=False, error_score="raise").fit(X, Y)
    assert len(found.cv_results_["params"]) == 4
    assert clf.search == CMA(population_size=4)
    searches = {"search": ["cma", CMA(sigma0=0.1)]}
    GridSearchCV(quick(), searches, cv=2, error_score="raise").fit(X, Y)


def test_there_are_few_parameters():
    """What belongs to one way of searching is in its value."""
    assert len(CLMLClassifier().get_params()) == 24


def test_pages_and_texts():
    clf = CLMLClassifier(search=CMA(sigma0=0.5), network=PaperNetwork(8))
    assert "search=CMA(sigma0=0.5)" in repr(clf)
    assert "PaperNetwork(embedding_dim=8)" in clf._repr_html_()

"""What settings come to."""

import numpy as np
import pytest

from clml import CMA, Ascent, RankGradient, evolution
from clml._training.ascent import AscentState
from clml._training.recipe import (
    TrainingSettings,
    as_network,
    default_epochs,
    default_members,
    default_width,
)
from clml._training.training_rows import NetworkRows
from clml.losses import RowTargets
from clml.network import Layout, PaperNetwork, Scaling, WideNetwork

LAYOUT = Layout(n_features=3, n_labels=2, embedding_dim=4)


def recipe(search=None, **settings):
    settings = {"n_epochs": 50, "horizon": 50} | settings
    return TrainingSettings(search=search or Ascent(), **settings)


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(40, 3))
    targets = RowTargets.from_indicator((X[:, :2] > 0).astype(int))
    return NetworkRows.prepared(X, Scaling.identity(3), LAYOUT), targets


def test_defaults_by_the_number_of_rows():
    assert (default_members(9_999), default_members(10_000)) == (16, 8)
    assert (default_width(9_999), default_width(10_000)) == (20, 64)
    assert default_epochs("ascent", 500) == 100
    assert default_epochs("ascent", 20_000) == 60
    assert default_epochs("ascent", 60_000) == 20
    assert default_epochs("ascent", 10**7) == 10
    assert default_epochs("cma", 500) == 750
    assert default_epochs("rank_gradient", 500) == 2000


@pytest.mark.parametrize(
    "n_rows, size", [(1, 32), (400, 40), (5_000, 141), (10**6, 256)]
)
def test_batches_grow_with_the_root_of_the_rows(n_rows, size):
    assert recipe().ascent(n_rows).batch_size == size
    assert recipe(Ascent(batch_size=7)).ascent(n_rows).batch_size == 7


def test_plan_of_a_surrogate_start():
    assert recipe(Ascent(init="surrogate")).ascent(100).surrogate_epochs == 15
    plain = recipe().ascent(100)
    assert plain.surrogate_epochs == 0
    assert plain.learning_rate == 0.01


def test_steps_of_wide_networks_are_smaller_and_decay():
    plain, wide = recipe().ascent(100), recipe(wide=True).ascent(100)
    assert (plain.learning_rate, plain.weight_decay) == (0.01, 0.0)
    assert (wide.learning_rate, wide.weight_decay) == (0.002, 1e-4)
    given = Ascent(learning_rate=0.5, weight_decay=0.0, smoothing=2.0)
    plan = recipe(given, wide=True, dropout=0.25).ascent(100)
    assert (plan.learning_rate, plan.weight_decay) == (0.5, 0.0)
    assert (plan.smoothing, plan.dropout) == (2.0, 0.25)


def test_names_of_networks():
    for ascends in (True, False):
        assert as_network("paper", ascends) == PaperNetwork()
        assert as_network("wide", ascends) == WideNetwork()
    assert as_network("auto", ascends=False) == PaperNetwork()
    own = object()
    assert as_network(own, ascends=True) is own


def test_only_rank_gradients_of_many_rows_evaluate_some_of_them():
    assert recipe(CMA()).rows_of_an_epoch(10**5, (0,)) is None
    assert recipe(RankGradient()).rows_of_an_epoch(5_000, (0,)) is None
    some = recipe(RankGradient()).rows_of_an_epoch(20_000, (0,))
    assert (some.n_rows, some.share) == (20_000, 0.25)
    given = recipe(CMA(epoch_rows=0.5)).rows_of_an_epoch(10, (0,))
    assert given.share == 0.5


@pytest.mark.parametrize(
    "search, kind, sigma, size",
    [
        (CMA(), evolution.RankOneCMA, 1.0, 64),
        (CMA(covariance="separable"), evolution.SeparableCMA, 1.0, 64),
        (CMA(covariance="full"), evolution.FullCMA, 1.0, 64),
        (CMA(population_size=6), evolution.RankOneCMA, 1.0, 6),
        (CMA(population_size=None), evolution.RankOneCMA, 1.0, 15),
        (CMA(init="surrogate"), evolution.RankOneCMA, 0.05, 64),
        (RankGradient(sigma0=2.0), evolution.RankGradient, 0.2, 256),
    ],
    ids=str,
)
def test_strategies(rows, search, kind, sigma, size):
    strategy, expand = recipe(search).strategy(*rows, np.random.SeedSequence(0))
    assert type(strategy) is kind
    assert strategy.sigma == pytest.approx(sigma)
    assert strategy.population_size == size
    assert strategy.n_parameters == LAYOUT.size
    assert expand(np.zeros((2, LAYOUT.size))).shape == (2, LAYOUT.size)


def test_the_last_layer_alone_is_moved(rows):
    seed = np.random.SeedSequence(0)
    last = recipe(RankGradient(evolve="last"))
    strategy, expand = last.strategy(*rows, seed)
    assert strategy.n_parameters == 5 * 2
    whole = expand(strategy.mean.astype(np.float32)[None])[0]
    start_seed, _ = np.random.SeedSequence(0).spawn(2)
    np.testing.assert_array_equal(whole, AscentState.start(LAYOUT, start_seed).theta)


def test_the_rate_of_a_rank_gradient_falls_over_its_horizon(rows):
    seed = np.random.SeedSequence(0)
    falling, _ = recipe(RankGradient()).strategy(*rows, seed)
    seed = np.random.SeedSequence(0)
    level, _ = recipe(RankGradient(), horizon=None).strategy(*rows, seed)
    for strategy in (falling, level):
        for _ in range(25):
            strategy.ask()
            strategy.tell(np.arange(256))
    assert falling.learning_rate == pytest.approx(0.01, rel=0.1)
    assert level.learning_rate == 0.02

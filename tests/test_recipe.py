"""What settings come to."""

import numpy as np
import pytest

from clml._ascent import Climber, NetworkRows
from clml._recipe import Recipe, default_epochs, default_members, default_width
from clml.evolution import RankGradient, RankOneCMA, SeparableCMA
from clml.losses import RowTargets
from clml.network import Layout, Scaling

LAYOUT = Layout(n_features=3, n_labels=2, embedding_dim=4)
SETTINGS = {
    "kind": "ascent",
    "n_epochs": 50,
    "horizon": 50,
    "init": "random",
    "evolve": "all",
    "learning_rate": None,
    "batch_size": None,
    "smoothing": 0.5,
    "dropout": 0.0,
    "epoch_rows": "auto",
    "population_size": "auto",
    "covariance": "rank_one",
    "sigma0": 1.0,
}


def recipe(**settings):
    return Recipe(**{**SETTINGS, **settings})


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
    assert recipe().ascent(n_rows, LAYOUT).batch_size == size
    assert recipe(batch_size=7).ascent(n_rows, LAYOUT).batch_size == 7


def test_plan_of_a_surrogate_start_and_of_the_last_layer():
    plan = recipe(init="surrogate", evolve="last").ascent(100, LAYOUT)
    assert plan.surrogate_epochs == 15
    assert plan.first_trained == LAYOUT.size - 5 * 2
    plain = recipe().ascent(100, LAYOUT)
    assert (plain.surrogate_epochs, plain.first_trained) == (0, 0)
    assert plain.learning_rate == 0.01


def test_only_rank_gradients_of_many_rows_evaluate_some_of_them():
    assert recipe(kind="cma").rows_of_an_epoch(10**5, (0,)) is None
    assert recipe(kind="rank_gradient").rows_of_an_epoch(5_000, (0,)) is None
    some = recipe(kind="rank_gradient").rows_of_an_epoch(20_000, (0,))
    assert (some.n_rows, some.share) == (20_000, 0.25)
    given = recipe(kind="cma", epoch_rows=0.5).rows_of_an_epoch(10, (0,))
    assert given.share == 0.5


@pytest.mark.parametrize(
    "settings, kind, sigma, size",
    [
        ({"kind": "cma"}, RankOneCMA, 1.0, 64),
        ({"kind": "cma", "covariance": "separable"}, SeparableCMA, 1.0, 64),
        ({"kind": "cma", "population_size": 6}, RankOneCMA, 1.0, 6),
        ({"kind": "cma", "init": "surrogate"}, RankOneCMA, 0.05, 64),
        ({"kind": "rank_gradient", "sigma0": 2.0}, RankGradient, 0.2, 256),
    ],
)
def test_strategies(rows, settings, kind, sigma, size):
    strategy, expand = recipe(**settings).strategy(*rows, np.random.SeedSequence(0))
    assert type(strategy) is kind
    assert strategy.sigma == pytest.approx(sigma)
    assert strategy.population_size == size
    assert strategy.n_parameters == LAYOUT.size
    assert expand(np.zeros((2, LAYOUT.size))).shape == (2, LAYOUT.size)


def test_the_last_layer_alone_is_moved(rows):
    seed = np.random.SeedSequence(0)
    settings = recipe(kind="rank_gradient", evolve="last")
    strategy, expand = settings.strategy(*rows, seed)
    assert strategy.n_parameters == 5 * 2
    whole = expand(strategy.mean.astype(np.float32)[None])[0]
    start_seed, _ = np.random.SeedSequence(0).spawn(2)
    np.testing.assert_array_equal(whole, Climber.start(LAYOUT, start_seed).theta)


def test_the_rate_of_a_rank_gradient_falls_over_its_horizon(rows):
    seed = np.random.SeedSequence(0)
    falling, _ = recipe(kind="rank_gradient").strategy(*rows, seed)
    seed = np.random.SeedSequence(0)
    level, _ = recipe(kind="rank_gradient", horizon=None).strategy(*rows, seed)
    for strategy in (falling, level):
        for _ in range(25):
            strategy.ask()
            strategy.tell(np.arange(256))
    assert falling.learning_rate == pytest.approx(0.01, rel=0.1)
    assert level.learning_rate == 0.02

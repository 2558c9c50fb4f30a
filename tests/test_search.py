import numpy as np
import pytest

from clml._archive import Archive
from clml._search import Fitness, Search
from clml.engine import NumpyEngine
from clml.evolution import RankOneCMA
from clml.lebesgue import fitness_order, lebesgue_contributions, nondominated
from clml.losses import RowTargets
from clml.network import Layout


def make_fitness(**settings):
    arguments = {
        "ties": "depth",
        "method": "exact",
        "n_samples": 1000,
        "generator": np.random.default_rng(0),
        "references": np.ones((1, 2)),
        "archived": False,
    }
    return Fitness(**{**arguments, **settings})


LOSSES = np.array([[0.2, 0.6], [0.6, 0.2], [0.7, 0.7], [0.4, 0.4]])


def test_order_is_the_fitness_order():
    for ties in ("depth", "layer", None):
        np.testing.assert_array_equal(
            make_fitness(ties=ties).order(LOSSES), fitness_order(LOSSES, ties=ties)
        )


def test_unit_reference_stays():
    fitness = make_fitness()
    fitness.remember(LOSSES)
    np.testing.assert_array_equal(fitness.references, [[1.0, 1.0]])


def test_archived_references_are_what_no_vector_so_far_dominates():
    fitness = make_fitness(archived=True)
    fitness.remember(LOSSES)
    # The unit vector and (0.7, 0.7) are dominated.
    expected = [[0.2, 0.6], [0.4, 0.4], [0.6, 0.2]]
    np.testing.assert_array_equal(fitness.references, expected)
    fitness.remember(np.array([[0.3, 0.3], [0.9, 0.1]]))
    expected = [[0.2, 0.6], [0.3, 0.3], [0.6, 0.2], [0.9, 0.1]]
    np.testing.assert_array_equal(fitness.references, expected)


def test_against_archived_references_only_progress_scores():
    """Algorithm 1 to the letter: who dominates no archived vector contributes 0."""
    fitness = make_fitness(archived=True)
    fitness.remember(LOSSES)
    population = np.array([[0.5, 0.5], [0.35, 0.35], [0.1, 0.9]])
    contributions = lebesgue_contributions(population, reference=fitness.references)
    np.testing.assert_allclose(contributions, [0.0, 0.05**2, 0.0])
    assert fitness.order(population)[0] == 1


def test_monte_carlo_draws_go_on_and_can_be_repeated():
    first, again = (make_fitness(method="monte_carlo", ties=None) for _ in range(2))
    orders = [f.order(LOSSES).tolist() for f in (first, again)]
    assert orders[0] == orders[1]
    assert first.generator.bit_generator.state == again.generator.bit_generator.state
    fresh = np.random.default_rng(0).bit_generator.state
    assert first.generator.bit_generator.state != fresh


@pytest.fixture
def search():
    rng = np.random.default_rng(0)
    layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 2))
    rows = [
        NumpyEngine(
            layout, X[part], RowTargets.from_indicator(Y[part]), ("hamming", "lrap")
        )
        for part in (slice(30), slice(30, 40))
    ]
    found = Search(
        RankOneCMA(np.zeros(layout.size), 1.0, population_size=6, seed=0),
        make_fitness(),
        Archive(2, layout.size, 10),
    )
    found.attach(*rows)
    return found


def test_epoch(search):
    mean = search.strategy.mean
    population = search.strategy.ask()
    record = search.epoch()
    train, judged = search._train, search._validation
    order = fitness_order(train.losses(population))
    best = population[order[0]].astype(np.float32)
    np.testing.assert_array_equal(search.incumbent, best)
    np.testing.assert_array_equal(
        record["incumbent_train"], train.losses(best[None])[0]
    )
    np.testing.assert_array_equal(record["mean_train"], train.losses(mean[None])[0])
    np.testing.assert_array_equal(
        record["mean_validation"], judged.losses(mean[None])[0]
    )
    assert search.n_epochs == search.strategy.epoch == 1
    validation = judged.losses(population)
    np.testing.assert_array_equal(
        search.archived_losses[0], validation.astype(np.float32)
    )
    np.testing.assert_array_equal(
        search.archive.front()[0],
        np.unique(validation[nondominated(validation)], axis=0),
    )


def test_attaching_again_judges_the_members_on_the_new_rows(search):
    for _ in range(5):
        search.epoch()
    train = search._train
    search.attach(train, None)
    assert search.rows is train
    losses, thetas = search.archive.front()
    np.testing.assert_array_equal(losses, train.losses(thetas))
    search.detach()
    assert not hasattr(search, "_train")

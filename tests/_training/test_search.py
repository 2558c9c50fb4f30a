import sys

import numpy as np
import pytest

from clml._training import search as _search
from clml._training.archive import Archive
from clml._training.init import LastLayer, n_before_last
from clml._training.search import EpochRows, Fitness, Search, history_arrays
from clml.engine import NumpyEngine
from clml.evolution import RankGradient, RankOneCMA
from clml.lebesgue import fitness_order, lebesgue_contributions, nondominated
from clml.losses import RowTargets
from clml.network import Layout


def make_fitness(**settings):
    arguments = {
        "ties": "depth",
        "method": "exact",
        "n_samples": 1000,
        "seed": (0,),
        "archived": False,
    }
    return Fitness(**{**arguments, **settings})


UNIT = np.ones((1, 2))
LOSSES = np.array([[0.2, 0.6], [0.6, 0.2], [0.7, 0.7], [0.4, 0.4]])


def test_order_is_the_fitness_order():
    for ties in ("depth", "layer", None):
        np.testing.assert_array_equal(
            make_fitness(ties=ties).order(LOSSES, UNIT, 0),
            fitness_order(LOSSES, ties=ties),
        )


def test_unit_reference_stays():
    np.testing.assert_array_equal(make_fitness().next_references(UNIT, LOSSES), UNIT)


def test_archived_references_are_what_no_vector_so_far_dominates():
    fitness = make_fitness(archived=True)
    references = fitness.next_references(UNIT, LOSSES)
    # The unit vector and (0.7, 0.7) are dominated.
    np.testing.assert_array_equal(references, [[0.2, 0.6], [0.4, 0.4], [0.6, 0.2]])
    references = fitness.next_references(references, np.array([[0.3, 0.3], [0.9, 0.1]]))
    expected = [[0.2, 0.6], [0.3, 0.3], [0.6, 0.2], [0.9, 0.1]]
    np.testing.assert_array_equal(references, expected)


def test_against_archived_references_only_progress_scores():
    """Algorithm 1 to the letter: who dominates no archived vector contributes 0."""
    fitness = make_fitness(archived=True)
    references = fitness.next_references(UNIT, LOSSES)
    population = np.array([[0.5, 0.5], [0.35, 0.35], [0.1, 0.9]])
    contributions = lebesgue_contributions(population, reference=references)
    np.testing.assert_allclose(contributions, [0.0, 0.05**2, 0.0])
    assert fitness.order(population, references, 1)[0] == 1


@pytest.mark.parametrize("ties", ["depth", "layer", None])
def test_monte_carlo_serves_every_rule_and_draws_anew_each_epoch(ties):
    rng = np.random.default_rng(0)
    losses = 0.1 + 0.8 * rng.random((40, 2))
    sampled = make_fitness(method="monte_carlo", ties=ties, n_samples=200)
    orders = [sampled.order(losses, UNIT, epoch).tolist() for epoch in (0, 0, 1)]
    assert orders[0] == orders[1]  # an epoch repeated
    assert orders[0] != orders[2]
    assert orders[0] != make_fitness(ties=ties).order(losses, UNIT, 0).tolist()


@pytest.fixture
def make_search():
    return new_search


@pytest.fixture
def search():
    return new_search()


def new_search(strategy=RankOneCMA, last=False, **settings):
    rng = np.random.default_rng(0)
    layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 2))
    rows = [
        NumpyEngine(
            layout, X[part], RowTargets.from_indicator(Y[part]), ("hamming", "lrap")
        )
        for part in (slice(30), slice(30, 40))
    ]
    first = n_before_last(layout) if last else 0
    if last:
        settings["expand"] = LastLayer(np.linspace(-1, 1, first, dtype=np.float32))
    found = Search(
        strategy(np.zeros(layout.size - first), 1.0, population_size=6, seed=0),
        make_fitness(method="monte_carlo", n_samples=50),
        Archive.empty(2, layout.size, 10),
        **settings,
    )
    found.attach(*rows)
    return found


def test_epoch(search):
    mean = search.strategy.mean
    population = search.strategy.ask()
    record = search.epoch()
    train, judged = search._train, search._validation
    order = search.fitness.order(train.losses(population), np.ones((1, 2)), 0)
    best = population[order[0]].astype(np.float32)
    progress = search.progress
    np.testing.assert_array_equal(progress.incumbent, best)
    np.testing.assert_array_equal(
        record["incumbent_train"], train.losses(best[None])[0]
    )
    np.testing.assert_array_equal(record["mean_train"], train.losses(mean[None])[0])
    np.testing.assert_array_equal(
        record["mean_validation"], judged.losses(mean[None])[0]
    )
    assert progress.epoch == search.strategy.epoch == len(progress.history) == 1
    validation = judged.losses(population)
    np.testing.assert_array_equal(
        progress.archived_losses[0], validation.astype(np.float32)
    )
    np.testing.assert_array_equal(
        progress.archive.front()[0],
        np.unique(validation[nondominated(validation)], axis=0),
    )


def test_attaching_again_judges_the_members_on_the_new_rows(search):
    for _ in range(5):
        search.epoch()
    train = search._train
    search.attach(train, None)
    assert search.rows is train
    losses, thetas = search.progress.archive.front()
    np.testing.assert_array_equal(losses, train.losses(thetas))
    search.detach()
    assert not hasattr(search, "_train")


def interrupt_at_line(search, n):
    """Run an epoch and raise KeyboardInterrupt at the n-th line of this module."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename != _search.__file__:
            return None
        if event == "line":
            seen += 1
            if seen == n:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        search.epoch()
    finally:
        sys.settrace(before)


def test_an_interrupt_at_any_line_leaves_whole_epochs(make_search):
    whole = make_search()
    for _ in range(4):
        whole.epoch()
    n_interrupts = 0
    for line in range(1, 200):
        search = make_search()
        search.epoch()
        try:
            interrupt_at_line(search, line)
        except KeyboardInterrupt:
            n_interrupts += 1
        progress = search.progress
        assert progress.epoch == search.strategy.epoch == len(progress.history)
        while search.progress.epoch < 4:
            search.epoch()
        np.testing.assert_array_equal(
            search.progress.incumbent, whole.progress.incumbent
        )
        np.testing.assert_array_equal(
            search.progress.archive.losses, whole.progress.archive.losses
        )
        if n_interrupts < line:
            break
    assert n_interrupts > 20


def test_history_with_missing_quantities():
    history = (
        {"sigma": 1.0, "mean_validation": np.array([0.1, 0.2])},
        {"sigma": 2.0},
    )
    arrays = history_arrays(history)
    np.testing.assert_array_equal(arrays["sigma"], [1.0, 2.0])
    np.testing.assert_array_equal(
        arrays["mean_validation"], [[0.1, 0.2], [np.nan, np.nan]]
    )


# Some of the rows, some of the weights


def test_epochs_draw_their_own_rows():
    rows = EpochRows(n_rows=50, share=0.3, seed=(1, 2))
    first = rows.draw(0)
    assert len(first) == len(np.unique(first)) == 15
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(rows.draw(0), first)
    assert first.tolist() != rows.draw(1).tolist()
    assert first.tolist() != EpochRows(50, 0.3, (1, 3)).draw(0).tolist()
    counts = np.bincount(np.concatenate([rows.draw(e) for e in range(400)]))
    assert (abs(counts - 120) < 5 * (400 * 0.3 * 0.7) ** 0.5).all()


@pytest.mark.parametrize(("share", "size"), [(1e-9, 1), (0.5, 4), (1.0, 7)])
def test_sizes_of_epochs(share, size):
    drawn = EpochRows(7, share, (0,)).draw(3)
    assert len(drawn) == size
    assert drawn.min() >= 0
    assert drawn.max() < 7


@pytest.mark.parametrize("validation", [True, False])
def test_a_fitness_of_some_rows(validation):
    epoch_rows = EpochRows(30, 0.2, (5,))
    search = new_search(epoch_rows=epoch_rows)
    train = search._train
    if not validation:
        search.attach(train, None)
    population = search.strategy.ask()
    search.epoch()
    few = train.take(epoch_rows.draw(0))
    order = search.fitness.order(few.losses(population), UNIT, 0)
    best = population[order[0]].astype(np.float32)
    np.testing.assert_array_equal(search.progress.incumbent, best)
    # Whatever the fitness saw, the archive holds losses of all rows.
    judged = search._validation if validation else train
    np.testing.assert_array_equal(
        search.progress.archived_losses[0],
        judged.losses(population).astype(np.float32),
    )


def test_candidates_are_completed():
    search = new_search(last=True)
    first = len(search.expand.before)
    population = search.strategy.ask().astype(np.float32)
    assert population.shape[1] == search._train.layout.size - first
    mean = search.mean
    search.epoch()
    thetas = search.progress.archive.thetas
    assert mean.shape == search.progress.incumbent.shape == thetas[0].shape
    for theta in (*thetas, mean, search.mean, search.progress.incumbent):
        np.testing.assert_array_equal(theta[:first], search.expand.before)
    assert search.progress.incumbent[first:].tolist() in population.tolist()


def test_the_mean_of_a_gradient_is_its_average():
    search = new_search(RankGradient)
    np.testing.assert_array_equal(search.mean, search.strategy.mean.astype(np.float32))
    search.epoch()
    search.epoch()
    average = search.strategy.average.astype(np.float32)
    np.testing.assert_array_equal(search.mean, average)
    assert (average != search.strategy.mean.astype(np.float32)).any()

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from clml import ParetoFront
from clml._maps import map_search as _map_search
from clml._maps import score_engine as _score_engine
from clml._maps.map_search import (
    MapSearch,
    Shrinkage,
    evolve_map,
    find_shift,
    log_geometric_mean,
    mean_choice,
    simplest,
)
from clml._maps.score_engine import ScoreEngine
from clml._maps.score_map import MapSpace, apply_map
from clml._maps.thresholds import threshold_front
from clml.lebesgue import nondominated
from clml.losses import RowTargets, loss_values

LOSSES = ("hamming", "lrap", "micro_f1")
SETTINGS = {
    "transform": "affine",
    "max_epochs": 8,
    "population_size": 12,
    "ties": "depth",
    "max_front": 50,
    "seed": (0, 1),
}


def make_scores(n=150, m=1, k=3, offset=0.0, noise=0.7, seed=0):
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(n, k)) - 0.5
    scores = truth[:, None] + noise * generator.normal(size=(n, m, k)) + offset
    return scores, (truth > 0).astype(int)


def evolve(scores, Y, weight=None, shrinkage="auto", **changes):
    targets = RowTargets.from_indicator(Y, weight)
    losses = changes.pop("losses", LOSSES)
    return evolve_map(
        scores, targets, losses, shrinkage=shrinkage, **(SETTINGS | changes)
    )


def geometric_mean(Y, logits):
    values = loss_values(Y, logits, LOSSES)
    return np.exp(np.log(np.maximum(values, 0.5 / Y.size)).mean())


@pytest.mark.parametrize(
    "transform, m",
    [("affine", 1), ("bias", 1), ("mixing", 1), ("thresholds", 1), ("weights", 3)],
)
@pytest.mark.parametrize("shrinkage", ["auto", 0.5, 1])
def test_front_holds_maps_of_which_none_dominates_another(transform, m, shrinkage):
    scores, Y = make_scores(m=m)
    found = evolve(scores, Y, shrinkage=shrinkage, transform=transform)
    front, default = found.front, found.default
    assert front.maps.dtype == np.float64
    assert len(np.unique(front.losses, axis=0)) == len(front.losses)
    others = np.delete(front.losses, [] if default is None else default, axis=0)
    assert nondominated(others).all()
    assert (np.diff(front.losses[:, 0]) >= 0).all()
    assert (front.standard_error > 0).all()
    if found.mean_map is None:
        assert default is None
        return
    np.testing.assert_array_equal(front.maps[default], found.mean_map)
    np.testing.assert_array_equal(front.difference_error[default], 0)


@pytest.mark.parametrize("transform", ["affine", "thresholds"])
def test_losses_of_a_front_are_those_of_rows_without_a_part_in_it(transform):
    """Of labels that are noise, apparent losses are too good; these are not.

    Of what is selected some is left: it is the best of several.
    """
    generator = np.random.default_rng(0)

    def draw(n):
        return generator.normal(size=(n, 1, 6)), (generator.random((n, 6)) < 0.3) * 1

    fresh = draw(5_000)
    runs, of_default = [], []
    for seed in range(40):
        rows = draw(60)
        found = evolve(*rows, transform=transform, shrinkage=1.0, seed=(seed,))
        front = ParetoFront(
            found.front.losses,
            LOSSES,
            found.front.maps,
            difference_error=found.front.difference_error,
            default=found.default,
        )
        best = [front.choice(name)[0] for name in LOSSES], range(len(LOSSES))
        of_rows, of_fresh = (
            loss_values(
                Y, np.stack([apply_map(t, scores) for t in front.theta]), LOSSES
            )
            for scores, Y in (rows, fresh)
        )
        of_maps = front.losses, of_rows, of_fresh
        runs.append([losses[best] for losses in of_maps])
        if front.default is not None:
            of_default.append([losses[front.default] for losses in of_maps])
    stated, apparent, expected = np.mean(runs, axis=0)
    off, too_good = np.abs(stated - expected), expected - apparent
    assert off[0] < 0.01  # no decision is better at noise than none at all
    assert off.sum() < 0.5 * too_good.sum()
    if of_default:  # which is not the best of anything
        stated, apparent, expected = np.mean(of_default, axis=0)
        off, too_good = np.abs(stated - expected), expected - apparent
        assert off.sum() < 0.2 * too_good.sum()


def test_ends_of_a_front_are_better_in_their_losses():
    scores, Y = make_scores(n=600, offset=-0.7, noise=1.5)
    front = evolve(scores, Y, shrinkage=0.5).front
    fresh, truth = make_scores(n=20_000, offset=-0.7, noise=1.5, seed=1)
    logits = np.stack([apply_map(theta, fresh) for theta in front.maps])
    losses = loss_values(truth, logits, LOSSES)
    # Hamming loss is on the one side, micro-F1 on the other.
    assert losses[0, 0] < losses[-1, 0]
    assert losses[0, 2] > losses[-1, 2]
    assert np.abs(losses - front.losses).max() < 3 * front.standard_error.max()


def test_rows_of_one_label_are_found_by_a_rule():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(300, 1, 6))
    Y = np.eye(6, dtype=int)[(scores[:, 0] + generator.normal(size=(300, 6))).argmax(1)]
    losses = ("subset_zero_one", "example_f1", "lrap")
    front = evolve(scores, Y, losses=losses).front
    assert front.rules[front.losses[:, 0].argmin()] == "top_1"
    assert front.losses[:, 0].min() < 0.9 * front.losses[front.rules.index(None), 0]
    # The only loss: its own map, and what rules make of probabilities.
    alone = evolve(scores, Y, losses=losses[:1])
    assert alone.front.rules[alone.default] is None
    assert alone.front.rules[alone.front.losses[:, 0].argmin()] == "top_1"
    # Losses that no rule can help cost nothing further, nor do maps without a search.
    assert evolve(scores, Y, losses=("hamming", "lrap")).front.rules == ()
    cuts = evolve(scores, Y, losses=losses, transform="thresholds")
    assert cuts.front.rules == ()


def test_a_shift_that_all_labels_need_is_found():
    scores, Y = make_scores(n=400, offset=-1.5)
    found = evolve(scores, Y)
    before = geometric_mean(Y, scores[:, 0])
    assert geometric_mean(Y, apply_map(found.mean_map, scores)) < 0.7 * before
    assert found.shift > 0
    assert list(found.path) == ["identity", 0.0, 0.25, 0.5, 0.75, 1.0]
    assert found.path["identity"] > 1.3 * min(found.path.values())


def test_what_one_label_needs_is_evolved():
    scores, Y = make_scores(n=400)
    scores[:, :, 0] -= 2.0
    found = evolve(scores, Y)
    assert found.strength > 0
    shifted = apply_map(evolve(scores, Y, shrinkage=0).mean_map, scores)
    after = geometric_mean(Y, apply_map(found.mean_map, scores))
    assert after < 0.95 * geometric_mean(Y, shifted)
    assert found.history == ()  # nothing was evolved


def test_noise_is_not_believed():
    """Honest probabilities: what labels deviate by on a few rows is chance."""
    generator = np.random.default_rng(1)
    scores = 2 * generator.normal(size=(60, 1, 20)) - 1.0
    Y = (generator.random((60, 20)) < 1 / (1 + np.exp(-scores[:, 0]))).astype(int)
    found = evolve(scores, Y, max_epochs=60, population_size=24)
    assert found.path[1.0] > 1.03 * found.path["identity"]
    assert (found.strength, found.shift) == (0, 0)
    np.testing.assert_array_equal(
        apply_map(found.mean_map, scores) > 0, scores[:, 0] > 0
    )


def test_strength_scales_the_deviations_alone():
    scores, Y = make_scores(offset=-1.0)
    none, half, full = (
        evolve(scores, Y, shrinkage=s, transform="bias").mean_map for s in (0, 0.5, 1)
    )
    np.testing.assert_allclose(half - none, 0.5 * (full - none), atol=1e-9)
    # Without deviations all labels have one factor and one bias.
    assert np.ptp(none[:3]) == np.ptp(none[3:]) == 0


def test_of_strength_0_the_model_is_a_shift_and_the_front_a_choice():
    scores, Y = make_scores(offset=-1.0)
    found = evolve(scores, Y, shrinkage=0)
    assert found.shift > 0
    np.testing.assert_array_equal(found.final_map, found.mean_map)
    bias = found.mean_map[-Y.shape[1] :]
    np.testing.assert_array_equal(bias, found.shift)
    assert len(found.front.maps) > 1


def test_of_strength_0_nothing_is_evolved(monkeypatch):
    """What would be multiplied by 0: maps and front are those with it."""
    scores, Y = make_scores()
    n_calls = []

    def wrong(Y, scores):
        n_calls.append(None)
        return float(((scores > 0) != Y).mean())

    settings = {"losses": ("lrap", wrong), "shrinkage": 0.0, "max_epochs": 5}
    found = evolve(scores, Y, **settings)
    quick = len(n_calls)
    choose = _map_search.MapSearch.choose

    def barely(self, shrinkage):
        return replace(choose(self, shrinkage), strength=5e-324)

    monkeypatch.setattr(_map_search.MapSearch, "choose", barely)
    evolved = evolve(scores, Y, **settings)
    assert len(n_calls) - quick > quick
    assert len(evolved.history) == 5
    assert found.history == ()
    np.testing.assert_array_equal(found.mean_map, evolved.mean_map)
    np.testing.assert_array_equal(found.final_map, evolved.final_map)
    np.testing.assert_array_equal(found.front.maps, evolved.front.maps)
    np.testing.assert_array_equal(found.front.losses, evolved.front.losses)


def test_average_is_left_alone():
    scores, Y = make_scores(m=3, offset=-1.0)
    found = evolve(scores, Y, transform="average")
    space = MapSpace.fit(scores, RowTargets.from_indicator(Y), "average")
    np.testing.assert_array_equal(found.front.maps, space.identity()[None])
    assert (found.strength, found.shift, dict(found.path)) == (0, 0, {})
    assert found.mean_map is None


def test_thresholds_of_full_strength_are_the_exact_ones():
    scores, Y = make_scores()
    found = evolve(scores, Y, transform="thresholds", shrinkage=1.0)
    best = threshold_front(scores[:, 0], Y).losses
    assert found.mean_map is None
    run = MapSearch(
        scores,
        RowTargets.from_indicator(Y),
        LOSSES,
        **SETTINGS | {"transform": "thresholds"},
    )
    losses = run.rows.losses(run._cuts(run.rows, run.choose(1.0)))
    assert losses[0, 0] == pytest.approx(best[0, 0])
    assert losses[-1, 2] == pytest.approx(best[-1, 1])


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(_score_engine, "_SMALL_WORK", 0)
    scores, Y = make_scores()
    with ThreadPoolExecutor(3) as executor:
        threaded = evolve(scores, Y, executor=executor)
    alone = evolve(scores, Y)
    np.testing.assert_array_equal(threaded.front.maps, alone.front.maps)
    np.testing.assert_array_equal(threaded.front.losses, alone.front.losses)
    assert threaded.path == alone.path


def test_another_seed_finds_another_map():
    scores, Y = make_scores()
    own = (lambda Y, S: float(((S > 0) != Y).mean()),)
    targets = RowTargets.from_indicator(Y)
    a, b = (
        evolve_map(scores, targets, own, shrinkage=1, **SETTINGS | {"seed": (seed,)})
        for seed in (0, 1)
    )
    assert (a.final_map != b.final_map).any()
    assert len(a.history) == SETTINGS["max_epochs"]


def test_rows_without_weight_do_not_count():
    scores, Y = make_scores()
    weight = np.r_[np.zeros(50), np.ones(100)]
    weighted = evolve(scores, Y, weight, shrinkage=0)
    # The grid of shifts has the unit of all scores, so it is compared by losses.
    assert find_shift(
        ScoreEngine(
            MapSpace.fit(scores, RowTargets.from_indicator(Y, weight), "bias"),
            scores,
            RowTargets.from_indicator(Y, weight),
            LOSSES,
        )
    ) == pytest.approx(weighted.shift)
    Y[:50] = 1 - Y[:50]
    again = evolve(scores, Y, weight, shrinkage=0)
    np.testing.assert_array_equal(again.mean_map, weighted.mean_map)


def test_many_rows_are_searched_in_part(monkeypatch):
    monkeypatch.setattr(_map_search, "_MOST_ROWS", 40)
    scores, Y = make_scores(n=150)
    run = MapSearch(scores, RowTargets.from_indicator(Y), LOSSES, **SETTINGS)
    assert run.rows.n_rows == 40
    found = evolve(scores, Y, shrinkage=1)
    assert np.isfinite(found.front.losses).all()


@pytest.mark.parametrize(
    "n, pairs", [(1_999, 5), (2_000, 2), (8_000, 2), (8_001, 1)], ids=str
)
def test_number_of_halves(n, pairs, monkeypatch):
    scores, Y = make_scores(n=n, k=2)
    run = MapSearch(scores, RowTargets.from_indicator(Y), LOSSES, **SETTINGS)
    seen = []

    def remember(engines, shifts, seeds):
        seen.extend(engine.n_rows for engine in engines)
        return [np.zeros(run.space.n_deviations)] * len(engines)

    monkeypatch.setattr(run, "_learnt", remember)
    run.choose("auto")
    assert len(seen) == 2 * pairs
    assert max(seen) - min(seen) <= 1


def test_many_labels_choose_by_fewer_halves():
    """With thousands of labels evolutions took most of a fit."""
    scores, Y = make_scores(n=120, k=2000)
    targets = RowTargets.from_indicator(Y)
    settings = SETTINGS | {"max_epochs": 120, "population_size": 64}
    own = (lambda Y, S: float(((S > 0) != Y).mean()),)
    assert MapSearch(scores, targets, own, **settings)._n_repeats() == 1
    # An ascent has no candidates, and neither have thresholds.
    assert MapSearch(scores, targets, LOSSES, **settings)._n_repeats() == 5
    settings["transform"] = "thresholds"
    assert MapSearch(scores, targets, own, **settings)._n_repeats() == 5


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("transform", ["affine", "thresholds"])
def test_hardly_any_rows(n, transform):
    scores, Y = make_scores(n=n)
    found = evolve(scores, Y, transform=transform)
    assert len(found.front.maps)


@pytest.mark.parametrize("value", [0, 1])
def test_constant_labels_and_scores(value):
    found = evolve(np.zeros((20, 1, 2)), np.full((20, 2), value))
    assert np.isfinite(found.front.maps).all()


def test_undefined_losses_lose():
    """A loss that is undefined for every map leaves the identity."""
    scores, Y = make_scores()
    run = MapSearch(
        scores,
        RowTargets.from_indicator(Y),
        (lambda Y, S: np.nan,),
        **SETTINGS,
    )
    assert run.choose("auto").strength == 0
    assert run.choose("auto").shift == 0
    maps = run.space.identity()[None]
    assert log_geometric_mean(run.judge, maps) == np.inf


@pytest.mark.parametrize(
    "values, expected",
    [
        # The best is ahead by more than a standard error of the difference.
        ([[1.0, 0.9, 0.8], [1.0, 0.9, 0.7]], 2),
        # It is not: the first that is as good wins, here the second.
        ([[1.0, 0.6, 0.5], [1.0, 0.6, 0.7]], 1),
        ([[0.5, 0.5, 0.5], [0.6, 0.6, 0.6]], 0),
        # A candidate without defined losses is never as good.
        ([[np.inf, 0.5], [0.2, 0.5]], 1),
        ([[np.inf, np.inf], [np.inf, np.inf]], 0),
    ],
)
def test_the_simplest_that_is_as_good_as_the_best_wins(values, expected):
    assert simplest(np.array(values)) == expected


@pytest.mark.parametrize(
    "choices, expected",
    [
        ([0, 0], (0.0, 0.0)),
        ([0, 1], (0.5, 0.0)),
        ([5, 5], (1.0, 1.0)),
        ([0, 3, 5, 1], (0.75, 0.375)),
    ],
)
def test_pairs_of_halves_that_disagree_are_averaged(choices, expected):
    values = np.ones((2 * len(choices), 6))
    for pair, chosen in enumerate(choices):
        # One half may be against it: the mean of both decides.
        values[2 * pair : 2 * pair + 2, chosen] = 0.2, 1.1
    assert mean_choice(values) == pytest.approx(expected)


def test_undefined_losses_choose_the_identity():
    assert mean_choice(np.full((4, 6), np.inf)) == (0.0, 0.0)


def test_an_averaged_choice_lies_between():
    scores, Y = make_scores()
    targets = RowTargets.from_indicator(Y)
    run = MapSearch(scores, targets, LOSSES, averages=True, **SETTINGS)
    chosen = run.choose("auto")
    assert 0 <= chosen.strength <= 1
    assert abs(chosen.shift) <= abs(find_shift(run.rows))
    given = run.choose(0.5)
    assert (given.strength, given.shift) == (0.5, find_shift(run.rows))


def test_shift_of_equals_is_that_nearest_to_0():
    """Scores far from the grid's steps: many shifts decide alike."""
    scores = np.array([[[-4.0]], [[4.0]], [[4.0]]])
    targets = RowTargets.from_indicator([[0], [1], [1]])
    space = MapSpace("bias", 1, np.ones(1), np.zeros(1))
    assert find_shift(ScoreEngine(space, scores, targets, ("hamming",))) == 0
    # All three rows are positive: the least shift that lifts the lowest.
    targets = RowTargets.from_indicator([[1], [1], [1]])
    engine = ScoreEngine(space, scores, targets, ("hamming",))
    grid = np.arange(31) / 20 * scores.std()
    assert find_shift(engine) == pytest.approx(grid[grid > 4].min())


def test_interrupted_before_the_first_epoch():
    scores, Y = make_scores()
    run = MapSearch(scores, RowTargets.from_indicator(Y), LOSSES, **SETTINGS)
    search = run.search(0.1)
    found = run.found(search, Shrinkage(1.0, 0.1, {}))
    begun = loss_values(Y, apply_map(run.space.identity(0.1), scores), LOSSES)
    ended = loss_values(Y, apply_map(found.mean_map, scores), LOSSES)
    assert np.prod(1 - ended) > np.prod(1 - begun)
    assert len(found.front.maps)


def test_interrupted_before_the_first_epoch_with_a_function():
    scores, Y = make_scores()
    own = (lambda Y, S: float(((S > 0) != Y).mean()),)
    run = MapSearch(scores, RowTargets.from_indicator(Y), own, **SETTINGS)
    search = run.search(0.1)
    found = run.found(search, Shrinkage(1.0, 0.1, {}))
    np.testing.assert_allclose(found.mean_map, run.space.identity(0.1))


def test_scores_that_are_not_finite_are_refused():
    scores, Y = make_scores()
    scores[3, 0, 1] = np.nan
    with pytest.raises(ValueError, match="got nan at row 3, learner 0, label 1"):
        evolve(scores, Y)

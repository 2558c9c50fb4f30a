import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clml.evolution import RankGradient, RankOneCMA, rank_by_fitness
from clml.evolution._rank_gradient import _gradient

NAN, INF = float("nan"), float("inf")

# Nothing at its default.
OPTIONS = {
    "learning_rate": 0.05,
    "horizon": 40,
    "scale": np.array([1.0, 0.5, 20.0, 3.0]),
    "beta1": 0.8,
    "beta2": 0.95,
    "averaging": 0.7,
}


def minimise(strategy, function, n_epochs):
    for _ in range(n_epochs):
        strategy.tell(rank_by_fitness(function(strategy.ask())))
    return strategy


def sphere(X):
    return np.sum(X**2, axis=1)


def gradient_of_all(directions, order):
    """The definition: every candidate's utility times its own signed direction."""
    signed = [*directions.astype(float), *-directions.astype(float)]
    total = np.zeros(directions.shape[1])
    for rank, candidate in enumerate(order):
        total += (0.5 - rank / (len(order) - 1)) * signed[candidate]
    return total / len(order)


def test_gradient_by_hand():
    directions = np.array([[1, 2], [3, -1]], dtype=np.float32)
    # Rows are +a, +b, −a, −b with utilities 1/6, −1/6, 1/2, −1/2 in this order, so
    # the gradient is (−1/3·a + 1/3·b) / 4.
    g = _gradient(directions, np.array([2, 0, 1, 3]))
    np.testing.assert_allclose(g, [1 / 6, -1 / 4], rtol=1e-6)
    assert g.dtype == np.float64


def test_two_epochs_by_hand():
    strategy = RankGradient(
        [10.0, -5.0], 1.0, 4, seed=0, scale=[1, 100], beta1=0.5, beta2=0.75
    )
    first, second = [], []
    for order in ([2, 0, 1, 3], [0, 1, 3, 2]):
        directions = (strategy.ask()[:2] - strategy.mean) / [1, 100]
        g = gradient_of_all(directions, order)
        first.append(g)
        second.append(g**2)
        strategy.tell(order)
    # The first step goes by the sign alone. The averages then weigh the gradients
    # 1 : 2 and their squares 3 : 4.
    expected = np.array([10.0, -5.0]) + 0.02 * np.array([1, 100]) * (
        np.sign(first[0])
        + (first[0] + 2 * first[1]) / 3 / np.sqrt((3 * second[0] + 4 * second[1]) / 7)
    )
    np.testing.assert_allclose(strategy.mean, expected, rtol=1e-5)


@given(st.data(), st.integers(1, 20), st.integers(1, 7))
@settings(max_examples=60)
def test_pairs_suffice_for_the_gradient(data, half, n):
    order = np.array(data.draw(st.permutations(range(2 * half))))
    seed = data.draw(st.integers(0, 2**32))
    directions = np.random.default_rng(seed).normal(size=(half, n)).astype(np.float32)
    np.testing.assert_allclose(
        _gradient(directions, order), gradient_of_all(directions, order), atol=1e-6
    )


@given(st.permutations(range(12)))
def test_the_reverse_order_is_the_opposite_gradient(order):
    directions = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    order = np.array(order)
    forward = _gradient(directions, order)
    np.testing.assert_allclose(_gradient(directions, order[::-1]), -forward, atol=1e-7)
    # So is taking every plus for its minus.
    mirrored = (order + 6) % 12
    np.testing.assert_allclose(_gradient(directions, mirrored), -forward, atol=1e-7)


@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["defaults", "options"])
def test_steps_are_those_of_adam(options):
    torch = pytest.importorskip("torch")
    scale = options.get("scale", np.ones(4))
    start = np.array([1.0, -2.0, 30.0, 0.5])
    strategy = RankGradient(start, 0.3, 10, seed=5, **options)
    position = torch.tensor(start / scale, requires_grad=True)
    betas = options.get("beta1", 0.9), options.get("beta2", 0.999)
    adam = torch.optim.Adam([position], betas=betas, maximize=True)
    for _ in range(60):
        order = rank_by_fitness(sphere(strategy.ask()))
        g = _gradient(strategy._state.pending.directions, order)
        adam.param_groups[0]["lr"] = strategy.learning_rate
        position.grad = torch.from_numpy(g)
        adam.step()
        strategy.tell(order)
        expected = position.detach().numpy() * scale
        np.testing.assert_allclose(strategy.mean, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {0: 0.02, 1: 0.02, 30: 0.02}),
        ({"decay": 0.5}, {0: 0.02, 1: 0.01, 3: 0.0025}),
        ({"horizon": 4}, {0: 0.02, 2: 0.01, 4: 0.0002, 30: 0.0002}),
        ({"horizon": 4}, {1: 0.01 * (1 + 0.5**0.5), 3: 0.01 * (1 - 0.5**0.5)}),
        ({"horizon": 1}, {0: 0.02, 1: 0.0002}),
        ({"horizon": 40, "learning_rate": 1.0}, {20: 0.5, 39: 0.01, 41: 0.01}),
    ],
    ids=repr,
)
def test_learning_rate_by_epoch(options, expected):
    strategy = RankGradient([0.0, 0.0], seed=0, **options)
    rates = []
    for _ in range(max(expected) + 1):
        rates.append(strategy.learning_rate)
        minimise(strategy, sphere, 1)
    found = [rates[epoch] for epoch in expected]
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize("averaging", [0.0, 0.5, 0.98])
def test_average_of_the_means(averaging):
    strategy = RankGradient([1.0, 2.0, 3.0], seed=0, averaging=averaging)
    np.testing.assert_array_equal(strategy.average, [1.0, 2.0, 3.0])
    means = []
    for _ in range(30):
        minimise(strategy, sphere, 1)
        means.append(strategy.mean)
        weights = averaging ** np.arange(len(means))[::-1]
        expected = np.average(means, axis=0, weights=weights)
        np.testing.assert_allclose(strategy.average, expected, rtol=1e-12)
    same = np.array_equal(strategy.average, strategy.mean)
    assert same == (averaging == 0)
    strategy.average[:] = 7  # the caller's array is the caller's
    np.testing.assert_allclose(strategy.average, expected, rtol=1e-12)


@pytest.mark.parametrize("population_size", [2, 4, 40])
@pytest.mark.parametrize("scale", [None, [1.0, 2.0, 3.0, 4.0, 5.0, 600.0]])
def test_candidates_come_in_pairs(population_size, scale):
    strategy = RankGradient(np.arange(6.0), 0.5, population_size, seed=0, scale=scale)
    X = strategy.ask()
    assert X.shape == (population_size, 6)
    assert X.dtype == np.float32
    assert X.flags.writeable and X.flags.c_contiguous
    assert len(np.unique(X)) == X.size
    plus, minus = np.split(X - np.arange(6), 2)
    np.testing.assert_allclose(plus, -minus, rtol=1e-3)


def test_candidates_spread_by_sigma_and_scale():
    scale = np.array([1.0, 1e-3, 50.0])
    strategy = RankGradient(np.zeros(3), 0.2, 40_000, seed=0, scale=scale)
    deviations = strategy.ask()[:20_000].std(axis=0)
    np.testing.assert_allclose(deviations, 0.2 * scale, rtol=0.03)


def test_directions_are_the_single_precision_draws_of_the_seed():
    drawn = np.random.default_rng(3).standard_normal((4, 5), dtype=np.float32)
    X = RankGradient(np.zeros(5), 1.0, 8, seed=3).ask()
    assert np.array_equal(X, np.vstack([drawn, -drawn]))


@pytest.mark.parametrize(("n", "expected"), [(1, 4), (5, 8), (6, 10), (24_707, 34)])
def test_default_population_is_even(n, expected):
    assert RankGradient(np.zeros(n)).population_size == expected


def test_a_pair_moves_towards_its_better_half():
    strategy = RankGradient(np.zeros(3), 1.0, population_size=2, seed=0)
    X = strategy.ask()
    strategy.tell([1, 0])
    np.testing.assert_allclose(strategy.mean, 0.02 * np.sign(X[1]), rtol=1e-6)
    assert strategy.sigma == 1.0


def test_converges_on_the_sphere():
    strategy = RankGradient(np.ones(50), 0.1, 40, seed=0, horizon=300)
    minimise(strategy, sphere, 300)
    assert np.sum(strategy.mean**2) < 0.02  # of 50


@pytest.mark.parametrize("known", [False, True], ids=["unknown scale", "known scale"])
def test_converges_on_an_ill_scaled_quadratic(known):
    curvature = 1e4 ** np.linspace(0, 1, 50)
    scale = curvature**-0.5 if known else None
    start = curvature**-0.5 if known else np.ones(50)
    strategy = RankGradient(start, 0.1, 40, seed=0, horizon=500, scale=scale)
    minimise(strategy, lambda X: X**2 @ curvature, 500)
    before, after = (x**2 @ curvature for x in (start, strategy.mean))
    assert after < (1e-3 if known else 1e-2) * before


def test_finds_its_way_on_a_wide_problem():
    strategy = RankGradient(np.ones(5_000), 0.03, 64, seed=0)
    minimise(strategy, sphere, 200)
    assert np.mean(strategy.mean**2) < 0.6


def test_does_not_wait_for_the_step_size():
    # From a step size three times too small, which CMA-ES would first have to grow.
    n = 2_000
    ours = minimise(RankGradient(np.ones(n), 0.03, 64, seed=0), sphere, 100)
    theirs = minimise(RankOneCMA(np.ones(n), 0.03, 64, seed=0), sphere, 100)
    progress, other = (1 - np.mean(s.mean**2) for s in (ours, theirs))
    assert progress > 1.5 * other > 0


def test_step_size_does_not_matter_where_the_function_is_smooth():
    narrow, wide = (RankGradient(np.ones(500), s, 32, seed=0) for s in (1e-3, 0.1))
    for strategy in (narrow, wide):
        minimise(strategy, lambda X: np.asarray(X, float).sum(axis=1), 20)
    np.testing.assert_allclose(narrow.mean, wide.mean, atol=1e-3)


def test_ties_add_no_bias():
    # All equal: every plus comes before every minus.
    n = 20_000
    strategy = RankGradient(np.zeros(n), population_size=16, seed=0, beta1=0)
    minimise(strategy, lambda X: np.zeros(16), 1)
    signs = np.sign(strategy.mean)
    assert signs.all()
    assert abs(signs.mean()) < 4 / np.sqrt(n)


def test_memory_is_one_population_and_half_its_directions():
    strategy = RankGradient(np.zeros(2_000), population_size=256, seed=0)
    population = 256 * 2_000 * 4
    tracemalloc.start()
    try:
        strategy.ask()
        held, peak = tracemalloc.get_traced_memory()
        assert peak < 1.6 * population
        assert held < 0.6 * population
        strategy.tell(np.arange(256))
        held, peak = tracemalloc.get_traced_memory()
        assert peak < 1.6 * population
        assert held < 0.1 * population
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("options", [OPTIONS, {"decay": 0.9}], ids=["horizon", "decay"])
@pytest.mark.parametrize("asked", [False, True], ids=["after tell", "after ask"])
@pytest.mark.parametrize("epochs_before", [0, 1, 35])
def test_resumed_equals_uninterrupted(through_files, options, asked, epochs_before):
    strategy = RankGradient(np.ones(4), 0.3, 6, seed=1, **options)
    minimise(strategy, sphere, epochs_before)
    if asked:
        strategy.ask()
    state = strategy.state()
    stored = through_files(state)
    minimise(strategy, sphere, 20)
    # Also the live dict: going on must not have changed it.
    for saved in (stored, state):
        resumed = minimise(RankGradient.from_state(saved), sphere, 20)
        assert resumed.epoch == epochs_before + 20
        assert resumed.learning_rate == strategy.learning_rate
        assert np.array_equal(resumed.mean, strategy.mean)
        assert np.array_equal(resumed.average, strategy.average)
        assert np.array_equal(resumed.ask(), strategy.ask())


def test_states_are_not_shared():
    scale = np.ones(4)
    strategy = RankGradient(np.ones(4), seed=0, scale=scale)
    expected = minimise(RankGradient(np.ones(4), seed=0), sphere, 6).state()
    minimise(strategy, sphere, 3)
    state = strategy.state()
    resumed = RankGradient.from_state(state)
    for value in [scale, *state.values()]:
        if isinstance(value, np.ndarray):
            value[:] = 7
    for continued in (strategy, resumed):
        found = minimise(continued, sphere, 3).state()
        assert all(np.array_equal(found[key], expected[key]) for key in expected)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4))
@settings(max_examples=10)
def test_any_chain_of_restarts_changes_nothing(pieces):
    whole, parts = (RankGradient(np.ones(4), seed=2, **OPTIONS) for _ in range(2))
    for n_epochs in pieces:
        minimise(whole, sphere, n_epochs)
        parts = RankGradient.from_state(minimise(parts, sphere, n_epochs).state())
    first, second = whole.state(), parts.state()
    assert first.keys() == second.keys()
    for key in first:
        assert np.array_equal(first[key], second[key]), key


@pytest.mark.parametrize("n", [1, 2, 70])
def test_stays_finite_for_ever(n):
    # Long after convergence, and with an order that says nothing.
    generator = np.random.default_rng(0)
    strategy = RankGradient(np.full(n, 1e3), 1.0, 6, seed=0, decay=0.5)
    for epoch in range(1_500):
        X = strategy.ask()
        order = generator.permutation(6) if epoch % 500 > 400 else np.arange(6)
        strategy.tell(order)
        assert np.isfinite(X).all()
    assert np.isfinite(strategy.mean).all()
    assert np.isfinite(strategy.average).all()
    RankGradient.from_state(strategy.state())


def test_candidates_stay_in_the_range_of_float32():
    strategy = RankGradient([0.0, 1e37], 1e36, seed=0, learning_rate=3e36)
    for _ in range(20):
        strategy.tell(rank_by_fitness(-strategy.ask()[:, 0]))
    assert strategy.mean[0] == 1e37
    assert np.isfinite(strategy.ask()).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": [0.0, 1e38]}, "mean to lie between.*float32. Got 1e"),
        ({"sigma": 1e38}, "sigma times scale to lie.* Got 1e"),
        ({"sigma": 1e-38}, "sigma times scale to lie.* Got 1e-38"),
        ({"sigma": 1e300, "scale": [1.0, 1e300]}, "sigma times scale"),
        ({"learning_rate": 1e300}, "learning_rate times scale"),
        ({"population_size": 3}, "population_size to be even.* Got 3"),
        ({"learning_rate": 0}, "learning_rate to be a positive.* Got 0"),
        ({"learning_rate": NAN}, "learning_rate.* Got nan"),
        ({"learning_rate": "fast"}, "learning_rate.* Got 'fast'"),
        ({"horizon": 0}, "horizon to be None or a positive integer. Got 0"),
        ({"horizon": 10.0}, "horizon.* Got 10.0"),
        ({"horizon": 10, "decay": 0.9}, "not both.* horizon=10 and decay=0.9"),
        ({"decay": 0.0}, "decay to be a positive.* at most 1. Got 0.0"),
        ({"decay": 1.1}, "decay.* at most 1. Got 1.1"),
        ({"scale": [1.0]}, r"2 positive finite numbers. Got .* shape \(1,\)"),
        ({"scale": 1.0}, r"2 positive finite numbers. Got .* shape \(\)"),
        ({"scale": [1.0, 0.0]}, "2 positive.* Got 0.0 at index 1"),
        ({"scale": [NAN, 1.0]}, "2 positive.* Got nan at index 0"),
        ({"scale": [1.0, INF]}, "2 positive.* Got inf at index 1"),
        ({"scale": ["a", "b"]}, "2 positive finite numbers. Got"),
        ({"beta1": 1.0}, "beta1 to be a number of at least 0 and below 1. Got 1.0"),
        ({"beta1": -0.1}, "beta1.* Got -0.1"),
        ({"beta2": NAN}, "beta2.* Got nan"),
        ({"beta2": None}, "beta2.* Got None"),
        ({"averaging": 1}, "averaging.* Got 1"),
    ],
    ids=repr,
)
def test_refuses_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        RankGradient(**{"mean": [0.0, 0.0], **arguments})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"population_size": 7}, "even"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": 1.5}, "epoch"),
        ({"mean": np.full(4, 1e38)}, "mean"),
        ({"sigma": 0.0}, "sigma"),
        ({"scale": np.ones(3)}, "scale"),
        ({"scale": np.zeros(4)}, "scale"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"horizon": 2.5}, "horizon"),
        ({"decay": 0.5}, "not both"),
        ({"beta1": 1.0}, "beta1"),
        ({"beta2": "much"}, "beta2"),
        ({"averaging": NAN}, "averaging"),
        ({"average": np.zeros((4, 1))}, "average"),
        ({"first_moment": np.full(4, NAN)}, "first_moment"),
        ({"second_moment": -np.ones(4)}, "second moment is negative"),
        ({"second_moment": np.full(4, INF)}, "second_moment"),
        ({"generator": {}}, "generator"),
        ({"generator": 5}, "generator"),
    ],
    ids=repr,
)
def test_refuses_damaged_states(damage, message):
    state = RankGradient(np.ones(4), seed=0, **OPTIONS).state()
    with pytest.raises(ValueError, match=message):
        RankGradient.from_state(state | damage)


@pytest.mark.parametrize("key", sorted(RankGradient([0.0], seed=0).state()))
def test_every_entry_of_a_state_is_needed(key):
    state = RankGradient(np.ones(4), seed=0, **OPTIONS).state()
    del state[key]
    with pytest.raises(ValueError):
        RankGradient.from_state(state)

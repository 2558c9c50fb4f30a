import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import ndtr

from clml._support.compiled import compiled
from clml._support.simd import LANES, address
from clml.losses import (
    STATISTICS,
    LossSet,
    RowTargets,
    StatisticWeights,
    get_loss,
    get_losses,
    list_losses,
    measure_gradient,
    smoothed_gradient,
)
from clml.losses._gaussian import normal_lanes
from clml.losses._smoothed import smoothed_statistics
from clml.losses.smooth_kernels import add_smoothed_row, smoothing_room
from clml.losses.statistics import built_in_statistic

SCALARS = [name for name, s in STATISTICS.items() if not s.per_label]
ADDITIVE = [name for name in list_losses() if get_loss(name).additive]
#: Statistics that have a value with noise on all outputs, and that are smooth.
EXPECTED = ["wrong", "hits", "predicted", "relevant", "subset", "jaccard", "example_f1"]
EXPECTED += ["lrap", "ranking", "cross_entropy", "row_log_loss"]
#: Statistics that are smoothed along one output at a time.
SINGLE = ["coverage", "one_error", "top_hits_1", "top_hits_2", "top_hits_3"]


def loss_set_for(n_labels, threshold=0.0):
    """Every additive loss, and the hits among the k highest for up to three k."""
    ks = [f"precision_at_{k}" for k in range(1, min(n_labels, 3) + 1)]
    names = [n for n in ADDITIVE if not n.startswith("precision_at_")] + ks
    return LossSet(get_losses(names), n_labels, threshold)


def column_of(name):
    if name.startswith("top_hits_"):
        return len(SCALARS) + int(name[9:]) - 1
    return SCALARS.index(name)


def price_of(loss_set, name, price=1.0):
    """One statistic has a price, the others none."""
    columns = np.zeros(loss_set.new_totals(1).columns.shape[1])
    labels = np.zeros((3, loss_set.n_labels))
    columns[column_of(name)] = price
    return StatisticWeights(columns, labels)


def random_prices(rng, loss_set):
    n_columns = loss_set.new_totals(1).columns.shape[1]
    labels = rng.normal(size=(3, loss_set.n_labels))
    return StatisticWeights(rng.normal(size=n_columns), labels)


def gradient_of(z, y, prices, sigma=0.7, cells=None, threshold=0.0):
    """Gradient of one row of weight 1."""
    z = np.asarray(z, dtype=np.float32)[None]
    targets = RowTargets.from_indicator(np.asarray(y, dtype=int)[None])
    cells = None if cells is None else np.asarray(cells, dtype=np.float32)[None]
    loss_set = loss_set_for(z.shape[1], threshold)
    if isinstance(prices, str):
        prices = price_of(loss_set, prices)
    here = np.array([0])
    return smoothed_gradient(z, targets, here, sigma, prices, loss_set, cells)[0][0]


def phi(x):
    """Φ by the error function of the standard library."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def slow_statistics(z, y, sigma, c, threshold):
    """The smoothed statistics of one row, label by label and pair by pair."""
    labels = [k for k in range(len(z)) if c[k] > 0]
    own = [k for k in labels if y[k]]
    others = [k for k in labels if not y[k]]
    p = {k: phi((z[k] - threshold) / sigma) for k in labels}
    hits = sum(c[k] * p[k] for k in own)
    predicted = sum(c[k] * p[k] for k in labels)
    relevant = sum(c[k] for k in own)
    found = {
        "wrong": sum(c[k] * (1 - p[k]) for k in own) + sum(c[k] * p[k] for k in others),
        "hits": hits,
        "predicted": predicted,
        "relevant": relevant,
        "subset": 1 - math.prod([p[k] for k in own] + [1 - p[k] for k in others]),
        "jaccard": hits / (predicted + relevant - hits) if own else 0.0,
        "example_f1": 2 * hits / (predicted + relevant) if own else 0.0,
        "lrap": 1.0,
        "ranking": 0.0,
    }
    if own and others:
        lrap, swapped = 0.0, 0.0
        for j in own:
            up = {i: phi((z[i] - z[j]) / (sigma * math.sqrt(2))) for i in labels}
            q = c[j] + sum(c[i] * up[i] for i in own if i != j)
            r = c[j] + sum(c[i] * up[i] for i in labels if i != j)
            lrap += c[j] * q / r
            swapped += sum(c[j] * c[i] * up[i] for i in others)
        found["lrap"] = lrap / relevant
        found["ranking"] = swapped / (relevant * sum(c[k] for k in others))
    log_p = {k: -math.log1p(math.exp(-z[k])) for k in labels}
    log_q = {k: -math.log1p(math.exp(z[k])) for k in labels}
    found["cross_entropy"] = -sum(c[k] * log_p[k] for k in own) - sum(
        c[k] * log_q[k] for k in others
    )
    mass = math.log(sum(math.exp(log_p[k]) for k in labels)) if labels else 0.0
    found["row_log_loss"] = -sum(c[k] * (log_p[k] - mass) for k in own)
    for k in labels:
        found[f"label_hits {k}"] = c[k] * p[k] * y[k]
        found[f"label_predicted {k}"] = c[k] * p[k]
    return found


def slow_derivatives(z, y, sigma, c, threshold):
    """The derivative of each of them in each output, by central differences."""
    z = [float(x) for x in z]
    step = 1e-5 * sigma
    found = {}
    for k in range(len(z)):
        up, down = (
            slow_statistics([*z[:k], z[k] + s, *z[k + 1 :]], y, sigma, c, threshold)
            for s in (step, -step)
        )
        for name in up:
            slope = (up[name] - down[name]) / (2 * step)
            found.setdefault(name, np.zeros(len(z)))[k] = slope
    return found


def hard_statistic(name, z, y):
    """A statistic of outputs (candidates, K) by its definition."""
    return built_in_statistic(name).define(np.array([y], bool), z[:, None], 0.0)[:, 0]


def integrated_derivative(name, z, y, sigma, k):
    """The derivative in z_k of the expectation with noise on output k, integrated."""
    moved = np.array(z, dtype=np.float64)

    def integrand(t):
        moved[k] = t
        u = (t - z[k]) / sigma
        density = math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
        return hard_statistic(name, moved[None], y)[0] * u * density / sigma**2

    ends = z[k] - 9 * sigma, z[k] + 9 * sigma
    cuts = sorted({*ends, *(x for x in np.delete(z, k) if ends[0] < x < ends[1])})
    pieces = pairwise(cuts)
    return sum(quad(integrand, a, b, epsabs=1e-11)[0] for a, b in pieces)


@st.composite
def cases(draw, most=9):
    """Outputs with ties, truths that are mixed, empty or full, weights, a deviation."""
    k = draw(st.integers(1, most))
    z = draw(arrays(np.int8, k, elements=st.integers(-8, 8))) / 4
    y = draw(
        arrays(np.uint8, k, elements=st.integers(0, 1))
        | st.sampled_from([np.zeros(k, np.uint8), np.ones(k, np.uint8)])
    )
    c = draw(arrays(np.int8, k, elements=st.integers(0, 4)) | st.just(np.ones(k))) / 2
    sigma = draw(st.sampled_from([0.25, 0.5, 1.0, 3.0]))
    threshold = draw(st.sampled_from([0.0, 0.75, -1.5]))
    return z, y, c, sigma, threshold


def in_arrays(z, y, c):
    targets = RowTargets.from_indicator(np.asarray(y)[None])
    return np.float32(z)[None], targets, np.array([0]), np.float32(c)[None]


def test_normal_distribution():
    half = np.linspace(0, 7, 1000 * LANES, dtype=np.float32)
    half[-1] = np.inf
    x = np.concatenate([-half[::-1], half])
    probability, density = np.empty_like(x), np.empty_like(x)

    @compiled
    def run(x, probability, density):
        here = address(probability, 0), address(density, 0)
        normal_lanes(
            address(x, 0), len(x) // LANES, np.float32(0), np.float32(1), *here
        )

    run(x, probability, density)
    wide = x.astype(np.float64)
    assert np.abs(probability - ndtr(wide)).max() < 7e-7
    peak = 1 / math.sqrt(2 * math.pi)
    assert np.abs(peak * (density - np.exp(-(wide**2) / 2))).max() < 4e-7
    assert probability[len(half)] == 0.5 and density[len(half)] == 1
    assert probability[0] == 0 and probability[-1] == 1
    assert density[0] == density[-1] == 0
    assert_array_equal(density, density[::-1])
    assert_allclose(probability, 1 - probability[::-1], 0, 1e-7)
    # Nowhere does it fall by more than the error.
    assert np.diff(probability.astype(np.float64)).min() > -3e-7


@settings(max_examples=150)
@given(case=cases())
def test_values_equal_the_slow_twin(case):
    z, y, c, sigma, threshold = case
    scores, targets, here, cells = in_arrays(z, y, c)
    loss_set = loss_set_for(len(z), threshold)
    found = smoothed_statistics(scores, targets, here, sigma, loss_set, cells)[0]
    expected = slow_statistics(z, y, sigma, c, threshold)
    for name in EXPECTED:
        assert_allclose(found[column_of(name)], expected[name], 2e-6, 5e-6, name)


@settings(max_examples=100)
@given(case=cases())
def test_gradient_is_the_derivative_of_the_slow_twin(case):
    z, y, c, sigma, threshold = case
    derivatives = slow_derivatives(z, y, sigma, c, threshold)
    for name in EXPECTED:
        found = gradient_of(z, y, name, sigma, c, threshold)
        assert_allclose(found, derivatives[name], 2e-5, 2e-5 / sigma, err_msg=name)
    rng = np.random.default_rng(len(z))
    prices = StatisticWeights(
        np.zeros(13 + min(len(z), 3)), rng.normal(size=(3, len(z)))
    )
    expected = sum(
        prices.labels[0, k] * derivatives[f"label_hits {k}"]
        + prices.labels[1, k] * derivatives[f"label_predicted {k}"]
        for k in range(len(z))
        if c[k] > 0
    )
    found = gradient_of(z, y, prices, sigma, c, threshold)
    assert_allclose(found, expected, 2e-5, 2e-5 / sigma)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("seed", range(6))
def test_one_output_at_a_time_is_the_integral(name, seed):
    rng = np.random.default_rng(seed)
    k = 4 + seed % 3
    # Multiples of 1/4, so that there are ties; one relevant label, two, all but one.
    z = rng.integers(-6, 7, size=k) / 4
    y = rng.permutation(np.arange(k) < (1, 2, k - 1)[seed % 3])
    sigma = (0.3, 0.8)[seed % 2]
    found = gradient_of(z, y, name, sigma)
    expected = [integrated_derivative(name, z, y, sigma, i) for i in range(k)]
    assert_allclose(found, expected, 1e-5, 5e-6)


def derivative_by_jumps(name, z, y, sigma):
    """The same for all outputs, from what lies between the outputs of the others."""
    found = np.zeros(len(z))
    for k in range(len(z)):
        jumps = np.unique(np.delete(z, k))
        between = (jumps[1:] + jumps[:-1]) / 2
        tries = np.repeat(z[None], len(jumps) + 1, axis=0)
        if len(jumps):
            tries[:, k] = [jumps[0] - 1, *between, jumps[-1] + 1]
        steps = np.diff(hard_statistic(name, tries, y).astype(float))
        u = (jumps - z[k]) / sigma
        density = np.exp(-(u**2) / 2) / (sigma * math.sqrt(2 * math.pi))
        found[k] = (steps * density).sum()
    return found


@settings(max_examples=60)
@given(case=cases(most=6))
def test_one_output_at_a_time_by_jumps(case):
    z, y, _, sigma, _ = case
    for name in SINGLE[: 2 + min(len(z), 3)]:
        found = gradient_of(z, y, name, sigma)
        expected = derivative_by_jumps(name, z, y, sigma)
        assert_allclose(found, expected, 1e-5, 5e-6, err_msg=name)


@pytest.mark.parametrize("n_labels", [16, 17, 45])
def test_more_labels_than_a_vector_holds(n_labels):
    rng = np.random.default_rng(n_labels)
    z = rng.integers(-8, 9, n_labels) / 4
    y, c = rng.random(n_labels) < 0.3, rng.integers(0, 4, n_labels) / 2
    derivatives = slow_derivatives(z, y, 0.5, c, 0.25)
    for name in EXPECTED:
        found = gradient_of(z, y, name, 0.5, c, 0.25)
        assert_allclose(found, derivatives[name], 2e-5, 2e-5, err_msg=name)
    for name in SINGLE:
        found = gradient_of(z, y, name, 0.5)
        expected = derivative_by_jumps(name, z, y, 0.5)
        assert_allclose(found, expected, 2e-5, 2e-5, err_msg=name)


def noisy(rng, z, sigma, draws):
    return z + sigma * rng.standard_normal((draws, len(z)))


@pytest.mark.parametrize("n_labels", [1, 5, 21])
def test_expectations_by_monte_carlo(n_labels):
    rng = np.random.default_rng(n_labels)
    z, y = rng.normal(size=n_labels), rng.random(n_labels) < 0.4
    y[0] = True
    z += np.where(y, 1, -1)
    sigma, draws = 0.6, 40_000
    scores, targets, here, _ = in_arrays(z, y, y)
    loss_set = loss_set_for(n_labels)
    found = smoothed_statistics(scores, targets, here, sigma, loss_set)[0]
    sample = noisy(rng, z, sigma, draws)
    for name in ("wrong", "hits", "predicted", "subset", "ranking"):
        values = hard_statistic(name, sample, y).astype(np.float64)
        error = values.std() / math.sqrt(draws)
        expected = found[column_of(name)]
        assert abs(values.mean() - expected) < 4.5 * error + 2e-6, name


@pytest.mark.parametrize(
    ("name", "furthest"), [("lrap", 0.08), ("example_f1", 0.08), ("jaccard", 0.08)]
)
def test_formulas_of_expected_counts_are_near_the_expectation(name, furthest):
    rng = np.random.default_rng(5)
    differences = []
    for _ in range(30):
        y = rng.random(14) < 0.3
        y[0] = True
        z = 1.5 * rng.normal(size=14) + np.where(y, 1, -1)
        scores, targets, here, _ = in_arrays(z, y, y)
        loss_set = loss_set_for(14)
        found = smoothed_statistics(scores, targets, here, 0.5, loss_set)[0]
        mean = hard_statistic(name, noisy(rng, z, 0.5, 4000), y).mean()
        differences.append(found[column_of(name)] - mean)
    assert np.abs(differences).max() < furthest
    assert abs(np.mean(differences)) < furthest / 3


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 99), several=st.booleans())
def test_totals_are_those_of_the_scores(case, seed, several):
    z, y, _, sigma, threshold = case
    rng = np.random.default_rng(seed)
    loss_set = loss_set_for(len(z), threshold)
    Y = np.stack([y, rng.permutation(y), 1 - y]) if several else y[None]
    targets = RowTargets.from_indicator(Y, rng.integers(0, 3, len(Y)))
    rows = rng.integers(0, len(Y), 5)
    scores = rng.permuted(np.float32(np.tile(z, (5, 1))), axis=1)
    prices = random_prices(rng, loss_set)
    plain = loss_set.accumulate_plain(scores[None], targets.take(rows))
    for cells in (None, np.ones_like(scores)):
        _, totals = smoothed_gradient(
            scores, targets, rows, sigma, prices, loss_set, cells
        )
        found = loss_set.statistics(totals, plain.weight)
        for name, total in plain.sums.items():
            assert_allclose(found.sums[name], total, 1e-11, 1e-11, err_msg=name)


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 99))
def test_totals_with_weighted_cells(case, seed):
    # The smoothed statistics with next to no noise, where nothing is tied.
    z, y, c, _, _ = case
    z = np.random.default_rng(seed).permutation(len(z)) - len(z) / 2 + 0.25
    scores, targets, here, cells = in_arrays(z, y, c)
    loss_set = loss_set_for(len(z))
    prices = random_prices(np.random.default_rng(1), loss_set)
    _, totals = smoothed_gradient(scores, targets, here, 1, prices, loss_set, cells)
    expected = smoothed_statistics(scores, targets, here, 1e-3, loss_set, cells)
    assert_allclose(totals.columns, expected, 1e-6, 1e-6)
    decided = c * (z > 0)
    assert_allclose(totals.labels[0], [decided * y, decided, c * y], 1e-6)


@settings(max_examples=100)
@given(case=cases(), seed=st.integers(0, 99))
def test_missing_cells_are_as_if_dropped(case, seed):
    z, y, c, sigma, threshold = case
    rng = np.random.default_rng(seed)
    loss_set = loss_set_for(len(z), threshold)
    prices = random_prices(rng, loss_set)
    there = c > 0
    z = np.where(there, z, np.nan)
    scores, targets, here, cells = in_arrays(z, y, c)
    found, totals = smoothed_gradient(
        scores, targets, here, sigma, prices, loss_set, cells
    )
    values = smoothed_statistics(scores, targets, here, sigma, loss_set, cells)
    assert not found[0, ~there].any()
    assert np.isfinite(found).all()
    if not there.any():
        return
    few = loss_set_for(there.sum(), threshold)
    # Among fewer labels there are fewer k; the others have all labels among them.
    n_columns = few.new_totals(1).columns.shape[1]
    prices = StatisticWeights(prices.columns[:n_columns], prices.labels[:, there])
    scores, targets, here, cells = in_arrays(z[there], y[there], c[there])
    same, same_totals = smoothed_gradient(
        scores, targets, here, sigma, prices, few, cells
    )
    assert_array_equal(found[0, there], same[0])
    same_values = smoothed_statistics(scores, targets, here, sigma, few, cells)
    assert_array_equal(values[:, :n_columns], same_values)
    assert_array_equal(totals.columns[:, :n_columns], same_totals.columns)
    assert_array_equal(totals.labels[..., there], same_totals.labels)


@settings(max_examples=100)
@given(case=cases(), weight=st.sampled_from([0.25, 1.0, 3.0, 0.7]))
def test_equal_cells_are_as_none(case, weight):
    z, y, _, sigma, threshold = case
    for name in [*EXPECTED, *SINGLE[: 2 + min(len(z), 3)]]:
        cells = np.full(len(z), weight)
        with_cells = gradient_of(z, y, name, sigma, cells, threshold)
        without = gradient_of(z, y, name, sigma, None, threshold)
        is_sum = name in SCALARS[:4] or name in ("cross_entropy", "row_log_loss")
        factor = np.float32(weight if is_sum else 1)
        if weight == 1:
            assert_array_equal(with_cells, without, err_msg=name)
        assert_allclose(with_cells, factor * without, 1e-5, 1e-6 / sigma, err_msg=name)


@settings(max_examples=60)
@given(case=cases(most=40), seed=st.integers(0, 99))
def test_order_of_labels_does_not_matter(case, seed):
    z, y, c, sigma, threshold = case
    rng = np.random.default_rng(seed)
    prices = random_prices(rng, loss_set_for(len(z)))
    order = rng.permutation(len(z))
    there = StatisticWeights(prices.columns, prices.labels[:, order])
    found = gradient_of(z, y, prices, sigma, c, threshold)
    moved = gradient_of(z[order], y[order], there, sigma, c[order], threshold)
    assert np.isfinite(found).all()
    assert_allclose(moved, found[order], 1e-4, 3e-5 / sigma)


@settings(max_examples=100)
@given(
    z=arrays(
        np.float32,
        st.integers(1, 20),
        elements=st.floats(width=32, allow_nan=False) | st.sampled_from([0, 1e-3]),
    ),
    sigma=st.sampled_from([1e-30, 1e-9, 0.5, 1e9, 1e30]),
    seed=st.integers(0, 9),
)
def test_gradients_are_finite(z, sigma, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, len(z))
    cells = rng.integers(0, 3, len(z))
    prices = random_prices(rng, loss_set_for(len(z)))
    assert np.isfinite(gradient_of(z, y, prices, sigma)).all()
    assert np.isfinite(gradient_of(z, y, prices, sigma, cells)).all()


def test_infinite_outputs_are_as_far_ones():
    z, far = np.array([0.3, np.inf, -np.inf, 0.1, -0.4]), np.array([0, 99, -99, 0, 0])
    y = [1, 0, 1, 0, 1]
    for name in EXPECTED + SINGLE:
        found = gradient_of(z, y, name)
        expected = gradient_of(np.where(far, far, z), y, name)
        assert_allclose(found, expected, 1e-6, 1e-7, err_msg=name)
        assert name == "relevant" or np.isfinite(found).all()


def test_noise_of_no_size_and_of_any_size():
    z, y = np.array([1.0, -0.5, 0.25]), [1, 0, 0]
    scores, targets, here, _ = in_arrays(z, y, np.ones(3))
    loss_set = loss_set_for(3)
    hard = loss_set.new_totals(1)
    loss_set.accumulate(hard, scores[None], targets)
    found = smoothed_statistics(scores, targets, here, 1e-9, loss_set)
    assert_allclose(found, hard.columns, 1e-6)
    found = smoothed_statistics(scores, targets, here, 1e9, loss_set)[0]
    for name, value in {"wrong": 1.5, "subset": 7 / 8, "lrap": 0.5}.items():
        assert_allclose(found[column_of(name)], value, 1e-5, err_msg=name)
    for name in EXPECTED[:9]:
        assert np.abs(gradient_of(z, y, name, 1e9)).max() < 1e-8


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1], [1], [0]])
def test_rows_that_cannot_be_ordered(y):
    z = np.linspace(-1, 1, len(y))
    for name in ("lrap", "ranking", "one_error", "coverage"):
        assert not gradient_of(z, y, name).any()
    scores, targets, here, _ = in_arrays(z, y, y)
    loss_set = loss_set_for(len(y))
    found = smoothed_statistics(scores, targets, here, 1.0, loss_set)[0]
    hard = loss_set.new_totals(1)
    loss_set.accumulate(hard, scores[None], targets)
    for name in ("lrap", "ranking", "one_error", "coverage", "top_hits_1"):
        assert found[column_of(name)] == hard.columns[0, column_of(name)]


def test_subset_with_many_labels_does_not_divide():
    # Three decisions are certainly wrong: the product of all others is 0 for each.
    z, y = np.full(700, -9.0), np.zeros(700)
    y[:3] = 1
    assert not gradient_of(z, y, "subset").any()
    y[:3] = 0
    z[5] = 0.2
    found = gradient_of(z, y, "subset")
    density = math.exp(-((0.2 / 0.7) ** 2) / 2) / (0.7 * math.sqrt(2 * math.pi))
    assert_allclose(found[5], density, 1e-5)


def test_by_hand():
    # Two labels at the same height, one of them relevant: it is second with
    # probability 1/2 and LRAP is 1/1.5. It falls by φ(0)/(σ√2)/1.5² a step of the
    # other; the hits, one decision, by φ(0)/σ.
    peak, sigma = 1 / math.sqrt(2 * math.pi), 0.5
    slope = peak / (sigma * math.sqrt(2)) / 1.5**2
    found = gradient_of([0.0, 0.0], [1, 0], "lrap", sigma)
    assert_allclose(found, [slope, -slope], 1e-6)
    found = gradient_of([0.0, 0.0], [1, 0], "hits", sigma)
    assert_allclose(found, [peak / sigma, 0], 1e-6)


def test_row_weights_and_repeated_rows():
    rng = np.random.default_rng(8)
    targets = RowTargets.from_indicator(rng.integers(0, 2, (3, 20)), [2.0, 0.0, 0.5])
    loss_set = loss_set_for(20)
    prices = random_prices(rng, loss_set)
    rows = np.array([2, 0, 1, 0])
    scores = rng.normal(size=(4, 20)).astype(np.float32)
    found, _ = smoothed_gradient(scores, targets, rows, 0.5, prices, loss_set)
    for z, row, gradient in zip(scores, rows, found, strict=True):
        alone = gradient_of(z, targets.dense[row], prices, 0.5)
        assert_allclose(gradient, targets.weight[row] * alone, 1e-6)


def test_prices_add_up():
    rng = np.random.default_rng(9)
    z, y = rng.normal(size=30), rng.random(30) < 0.3
    loss_set = loss_set_for(30)
    prices = random_prices(rng, loss_set)
    prices.labels[:] = 0
    found = gradient_of(z, y, prices)
    alone = [
        price * gradient_of(z, y, name)
        for name in EXPECTED + SINGLE
        for price in [prices.columns[column_of(name)]]
    ]
    assert_allclose(found, sum(alone), 1e-4, 1e-5)


def test_a_row_with_nan_has_no_gradient_and_spoils_the_totals():
    loss_set = loss_set_for(3)
    targets = RowTargets.from_indicator([[1, 0, 0], [0, 1, 1]])
    scores = np.array([[0.1, np.nan, 0.2], [-0.1, 0.3, -np.inf]], dtype=np.float32)
    prices = random_prices(np.random.default_rng(3), loss_set)
    for cells in (None, np.ones_like(scores)):
        found, totals = smoothed_gradient(
            scores, targets, np.arange(2), 1.0, prices, loss_set, cells
        )
        assert not found[0].any()
        assert found[1].any()
        assert np.isfinite(found).all()
        assert np.isnan(totals.columns).all()
        assert np.isnan(totals.labels).all()
    values = smoothed_statistics(scores, targets, np.arange(2), 1.0, loss_set)
    assert np.isnan(values[0]).all()


@pytest.mark.parametrize("name", ADDITIVE)
def test_climbing_lowers_each_loss(name):
    # Gradient steps on free outputs bring every loss nearer to the least there is.
    rng = np.random.default_rng(4)
    Y = rng.random((40, 7)) < 0.4
    Y[:, 0] |= ~Y.any(axis=1)
    targets, rows = RowTargets.from_indicator(Y), np.arange(40)
    loss_set = LossSet(get_losses((name,)), 7)

    def look(scores):
        totals = loss_set.new_totals(1)
        loss_set.accumulate(totals, scores[None], targets)
        return totals, loss_set.close(loss_set.statistics(totals, 40.0))[0, 0]

    least = look(np.where(Y, 20.0, -20.0))[1]
    scores = rng.normal(size=Y.shape).astype(np.float32)
    first = look(scores)[1]
    for _ in range(60):
        prices = measure_gradient(loss_set, look(scores)[0], 40.0)
        step, _ = smoothed_gradient(scores, targets, rows, 0.7, prices, loss_set)
        scores += step / max(np.abs(step).max(), 1e-9) * np.float32(0.2)
    assert look(scores)[1] - least < 0.75 * (first - least)


def test_the_kernel_of_a_row_adds():
    rng = np.random.default_rng(2)
    z = rng.normal(size=10).astype(np.float32)
    y = (rng.random(10) < 0.4).astype(np.uint8)
    loss_set = loss_set_for(10)
    prices = random_prices(rng, loss_set)
    gradient = np.ones(10, dtype=np.float32)
    values = np.empty(len(prices.columns))
    add_smoothed_row(
        z,
        y,
        np.empty(0, dtype=np.float32),
        2.0,
        np.float32(0),
        0.5,
        prices.columns,
        prices.labels,
        True,
        loss_set._ks,
        smoothing_room(10),
        gradient,
        values,
    )
    assert_allclose(gradient, 1 + 2 * gradient_of(z, y, prices, 0.5), 1e-6, 1e-6)
    assert values[column_of("wrong")] > 0


def test_inputs_are_not_changed():
    rng = np.random.default_rng(4)
    targets = RowTargets.from_indicator(rng.integers(0, 2, (5, 4)), rng.random(5))
    loss_set = loss_set_for(4)
    prices = random_prices(rng, loss_set)
    scores, cells = rng.random((2, 5, 4), dtype=np.float32)
    held = scores, cells, prices.columns, prices.labels, targets.weight
    for array in (scores, cells):
        array.setflags(write=False)
    before = [array.copy() for array in held]
    smoothed_gradient(scores, targets, np.arange(5), 0.5, prices, loss_set, cells)
    for array, copy in zip(held, before, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros((2, 3))}, "scores must be float32 of shape .2, 3."),
        ({"cells": np.zeros((1, 3), "f")}, "cells must be float32 of shape .2, 3."),
        ({"cells": np.full((2, 3), -1, "f")}, "not negative, got values from -1"),
        ({"cells": np.full((2, 3), np.inf, "f")}, "cells must hold finite weights"),
        ({"cells": np.full((2, 3), np.nan, "f")}, "cells must hold finite weights"),
        ({"smoothing": 0.0}, "smoothing must be between 1e-30 and 1e.30, got 0"),
        ({"smoothing": math.nan}, "smoothing must be between"),
        ({"smoothing": math.inf}, "smoothing must be between"),
    ],
)
def test_bad_arguments(change, message):
    loss_set = LossSet(get_losses(("hamming",)), 3)
    targets = RowTargets.from_indicator(np.eye(3, dtype=int))
    given_ = {"scores": np.zeros((2, 3), "f"), "smoothing": 1.0, "cells": None}
    with pytest.raises(ValueError, match=message):
        smoothed_gradient(
            **(given_ | change),
            targets=targets,
            rows=np.arange(2),
            weights=StatisticWeights(np.zeros(13), np.zeros((3, 3))),
            loss_set=loss_set,
        )


def test_losses_without_row_statistics_are_refused():
    loss_set = LossSet(get_losses(("hamming", "macro_auc")), 3)
    targets = RowTargets.from_indicator(np.eye(3, dtype=int))
    weights = StatisticWeights(np.zeros(13), np.zeros((3, 3)))
    scores = np.zeros((3, 3), "f")
    with pytest.raises(ValueError, match=r"built-in row statistics .* \['macro_auc"):
        smoothed_gradient(scores, targets, np.arange(3), 1.0, weights, loss_set)

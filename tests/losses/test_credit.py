import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from clml.losses import (
    STATISTICS,
    Loss,
    LossSet,
    RowTargets,
    Statistic,
    StatisticWeights,
    get_loss,
    get_losses,
    list_losses,
    measure_gradient,
    output_gradient,
    supports_gradient,
)
from clml.losses.credit import affine_slope, is_affine

SCALARS = [name for name, s in STATISTICS.items() if not s.per_label]
LABELS = [name for name, s in STATISTICS.items() if s.per_label]
ADDITIVE = [name for name in list_losses() if get_loss(name).additive]
OBJECTIVES = [name for name in ADDITIVE if get_loss(name).role == "objective"]


def losses_for(n_labels):
    """Every registered additive loss that so few labels allow, and some more k."""
    more = [f"precision_at_{k}" for k in range(1, n_labels + 1)]
    return get_losses([n for n in ADDITIVE if not n.startswith("precision_at_")] + more)


def named_weights(loss_set, weights):
    """The weight of each statistic that the losses need, by name."""
    names = {s.name for loss in loss_set.losses for s in loss.resolved_statistics()}
    found = {}
    for name in sorted(names):
        if name in LABELS:
            found[name] = weights.labels[LABELS.index(name)]
        elif name in SCALARS:
            found[name] = weights.columns[SCALARS.index(name)]
        else:
            ks = sorted(int(n[9:]) for n in names if n.startswith("top_hits_"))
            found[name] = weights.columns[len(SCALARS) + ks.index(int(name[9:]))]
    return found


def slow_credit(scores, targets, rows, shifts, gains, weights, loss_set):
    """One output at a time, from the definitions of the statistics."""
    credit = np.zeros(scores.shape)
    n_labels = scores.shape[1]
    prices = named_weights(loss_set, weights)
    for i, row in enumerate(rows):
        alone = RowTargets.from_indicator(targets.dense[[row]])
        step = np.diag(shifts[i])
        moved = np.concatenate([scores[i] + step, scores[i] - step])
        sums = loss_set.accumulate_plain(moved[:, None], alone).sums
        value = sum(
            np.reshape(sums[name] * price, (2 * n_labels, -1)).sum(axis=1)
            for name, price in prices.items()
        )
        difference = value[:n_labels] - value[n_labels:]
        credit[i] = targets.weight[row] * gains[i] * difference
    return credit


def random_weights(rng, loss_set):
    """Weights of any sign; statistics that no loss needs have none."""
    names = {s.name for loss in loss_set.losses for s in loss.resolved_statistics()}
    columns = rng.normal(size=loss_set.new_totals(1).columns.shape[1])
    columns[: len(SCALARS)] *= [name in names for name in SCALARS]
    labels = rng.normal(size=(3, loss_set.n_labels))
    return StatisticWeights(columns, labels * ("label_hits" in names))


@st.composite
def batches(draw):
    """Targets with empty and full rows and weights; tied scores; repeated rows."""
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    labels = draw(arrays(np.uint8, (n, k), elements=st.integers(0, 1)))
    kinds = draw(st.lists(st.sampled_from("as is|empty|full".split("|")), max_size=n))
    for i, kind in enumerate(kinds):
        labels[i] = {"as is": labels[i], "empty": 0, "full": 1}[kind]
    weight = draw(st.none() | arrays(np.int8, n, elements=st.integers(0, 3)))
    targets = RowTargets.from_indicator(labels, None if weight is None else weight / 2)
    rows = np.array(draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8)))
    shape = (len(rows), k)
    scores = draw(arrays(np.int8, shape, elements=st.integers(-3, 3)))
    shifts = draw(arrays(np.int8, shape, elements=st.integers(0, 5)))
    threshold = draw(st.sampled_from([0.0, 1.0, -2.5]))
    return targets, rows, (scores / 2).astype("f"), (shifts / 2).astype("f"), threshold


@settings(max_examples=60)
@given(batch=batches(), seed=st.integers(0, 99))
@pytest.mark.parametrize("few", [False, True])
def test_equals_the_slow_twin(few, batch, seed):
    targets, rows, scores, shifts, threshold = batch
    rng = np.random.default_rng(seed)
    names = ("hamming", "lrap", "micro_f1")
    losses = get_losses(names) if few else losses_for(targets.n_labels)
    loss_set = LossSet(losses, targets.n_labels, threshold)
    weights = random_weights(rng, loss_set)
    gains = rng.random(scores.shape, dtype=np.float32)
    arguments = scores, targets, rows, shifts, gains, weights, loss_set
    credit, totals = output_gradient(*arguments)
    assert credit.dtype == np.float32
    assert_allclose(credit, slow_credit(*arguments), 1e-5, 2e-5)
    assert not credit[targets.weight[rows] == 0].any()
    here = RowTargets.from_indicator(targets.dense[rows], targets.weight[rows])
    plain = loss_set.accumulate_plain(scores[None], here)
    found = loss_set.statistics(totals, plain.weight)
    for name, total in plain.sums.items():
        assert_allclose(found.sums[name], total, 1e-12, 1e-12, err_msg=name)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("n_labels", "share"), [(6, 0.4), (60, 0.3)])
def test_each_loss_alone(name, n_labels, share):
    rng = np.random.default_rng(1)
    shape = (12, n_labels)
    targets = RowTargets.from_indicator(rng.random(shape) < share, rng.random(12))
    scores = rng.normal(size=shape).round(1).astype(np.float32)
    # Mostly right, so that every loss has something to gain and to lose.
    scores += targets.dense - np.float32(0.5)
    loss_set = LossSet(get_losses((name,)), n_labels)
    totals = loss_set.new_totals(1)
    loss_set.accumulate(totals, scores[None], targets)
    weights = measure_gradient(loss_set, totals, float(targets.weight.sum()))
    shifts = np.abs(rng.normal(size=shape)).astype(np.float32)
    arguments = scores, targets, np.arange(12), shifts, shifts, weights, loss_set
    credit, _ = output_gradient(*arguments)
    assert_allclose(credit, slow_credit(*arguments), 2e-4, 1e-6)
    if name != "subset_zero_one" or n_labels == 6:
        assert credit.any()


def test_by_hand():
    # Scores 2, 1, 0.5; only the second is relevant: rank 2, precision 1/2.
    loss_set = LossSet(get_losses(("lrap",)), 3)
    targets = RowTargets.from_indicator([[0, 1, 0]])
    scores = np.array([[2, 1, 0.5]], dtype=np.float32)
    shifts = np.array([[1, 2, 0.5]], dtype=np.float32)
    columns = np.zeros(13)
    columns[SCALARS.index("lrap")] = 6.0
    weights = StatisticWeights(columns, np.zeros((3, 3)))
    credit, totals = output_gradient(
        scores, targets, np.array([0]), shifts, np.ones_like(shifts), weights, loss_set
    )
    # First: at 1 it ties, and ties count against: no change. Second: up to rank 1,
    # down to rank 3. Third: at 1 it ties, which makes rank 3; below it is rank 2.
    assert_allclose(credit, [[0, 6 * (1 - 1 / 3), 6 * (1 / 3 - 1 / 2)]], 1e-6)
    assert loss_set.statistics(totals, 1.0).sums["lrap"] == 0.5


def test_a_shift_that_rounds_away_on_one_side():
    # In float32 1 + 5e-8 is 1, and 1 − 5e-8 is less.
    loss_set = LossSet(losses_for(3), 3)
    targets = RowTargets.from_indicator([[1, 0, 1]])
    scores = np.ones((1, 3), dtype=np.float32)
    shifts = np.full_like(scores, 5e-8)
    assert (scores + shifts == scores).all() and (scores - shifts < scores).all()
    weights = random_weights(np.random.default_rng(6), loss_set)
    arguments = scores, targets, np.array([0]), shifts, scores, weights, loss_set
    credit, _ = output_gradient(*arguments)
    assert_allclose(credit, slow_credit(*arguments), 1e-5, 1e-6)


def test_mean_over_draws_is_the_smoothed_derivative():
    # A score z decides with probability Φ(z/σ), so that the derivative of the
    # smoothed number of wrong decisions is ∓φ(z/σ)/σ.
    rng = np.random.default_rng(2)
    z, sigma, draws = np.array([-1.2, -0.3, 0.0, 0.4, 1.5]), 0.7, 40_000
    truth = np.array([1, 0, 1, 0, 1])
    targets = RowTargets.from_indicator(truth[None])
    loss_set = LossSet(get_losses(("hamming",)), 5)
    columns = np.zeros(13)
    columns[SCALARS.index("wrong")] = -1.0
    xi = np.abs(rng.standard_normal((draws, 5), dtype=np.float32))
    credit, _ = output_gradient(
        np.tile(z.astype(np.float32), (draws, 1)),
        targets,
        np.zeros(draws, dtype=np.int64),
        np.float32(sigma) * xi,
        xi / np.float32(2 * sigma),
        StatisticWeights(columns, np.zeros((3, 5))),
        loss_set,
    )
    expected = np.where(truth, 1, -1) * norm.pdf(z, scale=sigma)
    error = credit.std(axis=0) / np.sqrt(draws)
    assert (np.abs(credit.mean(axis=0) - expected) < 4.5 * error).all()
    assert error.max() < 0.005


def test_a_row_with_nan_has_no_credit_and_spoils_the_totals():
    loss_set = LossSet(losses_for(3), 3)
    targets = RowTargets.from_indicator([[1, 0, 0], [0, 1, 1]])
    scores = np.array([[0.1, np.nan, 0.2], [-0.1, 0.3, -np.inf]], dtype=np.float32)
    ones = np.ones_like(scores)
    weights = random_weights(np.random.default_rng(3), loss_set)
    credit, totals = output_gradient(
        scores, targets, np.arange(2), ones, ones, weights, loss_set
    )
    assert not credit[0].any()
    assert credit[1].any()
    assert np.isfinite(credit).all()
    assert np.isnan(totals.columns).all()


def test_inputs_are_not_changed():
    rng = np.random.default_rng(4)
    targets = RowTargets.from_indicator(rng.integers(0, 2, (5, 4)), rng.random(5))
    loss_set = LossSet(losses_for(4), 4)
    weights = random_weights(rng, loss_set)
    scores, shifts, gains = rng.random((3, 5, 4), dtype=np.float32)
    held = scores, shifts, gains, weights.columns, weights.labels, targets.weight
    before = [array.copy() for array in held]
    output_gradient(scores, targets, np.arange(5), shifts, gains, weights, loss_set)
    for array, copy in zip(held, before, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros((2, 3))}, "scores must be float32 of shape .2, 3."),
        ({"shifts": np.zeros((2, 2), "f")}, "shifts must be float32 of shape .2, 3."),
        ({"gains": np.zeros((1, 3), "f")}, "gains must be float32 of shape .2, 3."),
        ({"shifts": np.full((2, 3), -1, "f")}, "shifts must not be negative, got -1"),
        ({"shifts": np.full((2, 3), np.nan, "f")}, "shifts must not be negative"),
    ],
)
def test_bad_arrays(change, message):
    loss_set = LossSet(get_losses(("hamming",)), 3)
    targets = RowTargets.from_indicator(np.eye(3, dtype=int))
    given_ = dict.fromkeys(("scores", "shifts", "gains"), np.zeros((2, 3), "f"))
    weights = StatisticWeights(np.zeros(13), np.zeros((3, 3)))
    with pytest.raises(ValueError, match=message):
        output_gradient(
            **(given_ | change),
            targets=targets,
            rows=np.arange(2),
            weights=weights,
            loss_set=loss_set,
        )


def totals_of(loss_set, seed=0, n=200):
    """Totals of random scores that are right more often than not."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, loss_set.n_labels)) < 0.3
    targets = RowTargets.from_indicator(Y, rng.random(n))
    totals = loss_set.new_totals(1)
    scores = rng.normal(size=(1, *Y.shape)) + Y - 0.5
    loss_set.accumulate(totals, scores, targets)
    return totals, float(targets.weight.sum())


def test_weights_are_the_analytic_derivatives():
    loss_set = LossSet(get_losses(("hamming", "lrap", "micro_f1")), 7)
    totals, weight = totals_of(loss_set)
    sums = {k: v[0] for k, v in loss_set.statistics(totals, weight).sums.items()}
    hamming, lrap, micro = loss_set.close(loss_set.statistics(totals, weight))[0]
    size = sums["predicted"] + sums["relevant"]
    by_size = -2 * sums["hits"] / size**2 / (2 - micro)
    expected = {
        "wrong": -1 / (weight * 7) / (2 - hamming),
        "lrap": 1 / weight / (2 - lrap),
        "hits": 2 / size / (2 - micro),
        "predicted": by_size,
        "relevant": by_size,
    }
    weights = measure_gradient(loss_set, totals, weight)
    for i, name in enumerate(SCALARS):
        found = weights.columns[i]
        assert_allclose(found, expected.get(name, 0.0), 1e-6, err_msg=name)
    assert not weights.labels.any()


@pytest.mark.parametrize("name", ADDITIVE)
def test_weights_are_the_change_of_the_log_measure(name):
    # Along a random direction in all sums at once.
    loss_set = LossSet(get_losses(sorted({name, "hamming"})), 7)
    totals, weight = totals_of(loss_set, seed=1)
    weights = measure_gradient(loss_set, totals, weight)
    rng = np.random.default_rng(5)
    columns = rng.random(totals.columns.shape) * totals.columns
    labels = rng.random(totals.labels.shape) * totals.labels

    def log_measure(step):
        moved = loss_set.new_totals(1)
        moved.columns += totals.columns + step * columns
        moved.labels += totals.labels + step * labels
        losses = loss_set.close(loss_set.statistics(moved, weight))[0]
        return np.log(2 - np.clip(losses, 0, 1)).sum()

    losses = loss_set.close(loss_set.statistics(totals, weight))[0]
    expected = (weights.columns * columns).sum()
    if labels.size:
        expected += (weights.labels * labels[0]).sum()
    assert expected != 0
    if (losses < 1).all():  # beyond it the price is that of 1, whatever the loss
        change = (log_measure(1e-5) - log_measure(-1e-5)) / 2e-5
        assert_allclose(expected, change, 1e-5)


def test_weights_of_macro_f1_by_hand():
    # Label 0: 2·1 / (1 + 2), label 1: nothing relevant, nothing predicted.
    loss_set = LossSet(get_losses(("macro_f1",)), 2)
    totals = loss_set.new_totals(1)
    totals.labels[0] = [[1, 0], [1, 0], [2, 0]]
    weights = measure_gradient(loss_set, totals, 3.0)
    slope = 1 / (2 - 2 / 3)  # of ln(2 − L), with 1 − L = 1/3
    expected = [[slope / 3, 0], [-slope / 9, 0], [-slope / 9, 0]]
    assert_allclose(weights.labels, expected, 1e-6, 1e-12)


def test_weights_stay_finite():
    # Everything wrong: that of what lies below the worst losses would be 0.
    loss_set = LossSet(losses_for(3), 3)
    totals = loss_set.new_totals(1)
    targets = RowTargets.from_indicator([[1, 0, 0], [0, 1, 0]])
    wrong = np.array([[[-1.0, 1, 1], [1, -1, 1]]])
    loss_set.accumulate(totals, wrong, targets)
    weights = measure_gradient(loss_set, totals, 2.0)
    assert np.isfinite(weights.columns).all()
    assert weights.columns[SCALARS.index("hits")] > 0
    assert weights.columns[SCALARS.index("wrong")] < 0
    totals.columns[:] = np.nan
    totals.labels[:] = np.nan
    weights = measure_gradient(loss_set, totals, 2.0)
    assert not weights.columns.any()
    assert not weights.labels.any()


class OwnFormula(Loss):
    name = "own_formula"
    statistics = ("hits", "relevant")


class OwnStatistic(Loss):
    name = "own_statistic"
    statistics = (
        "hits",
        Statistic("highest", lambda Y, scores, threshold: scores.max(-1)),
    )


@pytest.mark.parametrize(
    ("losses", "supported"),
    [
        (ADDITIVE, True),
        (("hamming", "precision_at_4"), True),
        ((OwnFormula,), True),
        (("hamming", OwnStatistic), False),
        (("hamming", "macro_auc"), False),
        ((lambda Y, scores: 0.5,), False),
    ],
)
def test_supports_credit(losses, supported):
    assert supports_gradient(losses) is supported


@pytest.mark.parametrize("loss", [OwnStatistic, "macro_auc"])
def test_losses_without_credit_are_refused(loss):
    loss_set = LossSet(get_losses(("hamming", loss)), 3)
    name = get_loss(loss).name
    with pytest.raises(ValueError, match=rf"built-in row statistics .* got \['{name}"):
        measure_gradient(loss_set, loss_set.new_totals(1), 1.0)


@pytest.mark.parametrize("name", [n for n in list_losses() if get_loss(n).affine])
@pytest.mark.parametrize("n_labels", [2, 7])
def test_slopes_of_affine_losses_are_those_of_differences(name, n_labels):
    loss = get_loss(name)
    (statistic,) = loss.resolved_statistics()
    rng = np.random.default_rng(0)
    for weight in (1.0, 37.5):
        total = rng.uniform(0.2, 0.8) * weight
        sums = {statistic.name: np.array([total - 1e-6, total + 1e-6])}
        low, high = loss.close(sums, weight, n_labels)
        expected = (high - low) / 2e-6
        slope = affine_slope(loss, statistic.name, weight, n_labels)
        assert slope == pytest.approx(expected, rel=1e-6)


def test_a_subclass_with_another_formula_is_not_affine():
    class Squared(type(get_loss("hamming"))):
        def close(self, sums, weight, n_labels):
            return super().close(sums, weight, n_labels) ** 2

    assert is_affine(get_loss("hamming")) and not is_affine(Squared())
    loss_set = LossSet((Squared(),), n_labels=2)
    totals = loss_set.new_totals(1)
    targets = RowTargets.from_indicator([[1, 0], [0, 1]])
    loss_set.accumulate(totals, np.array([[[1.0, -1.0], [1.0, 1.0]]]), targets)
    # A quarter of the decisions is wrong: L = 1/16, dL/dwrong = 2 · 1/4 · 1/4.
    price = measure_gradient(loss_set, totals, 2.0).columns[0]
    assert price == pytest.approx(-0.125 / (2 - 1 / 16))

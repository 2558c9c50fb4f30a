from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import f1_score, hamming_loss

from clml._maps.thresholds import threshold_front
from clml.losses import loss_values

LOSSES = ("hamming", "micro_f1")
LARGEST = np.finfo(float).max
SMALLEST = 5e-324


def make_problem(n, K, seed=0):
    """Scores that rank noisily, labels of unequal frequency, weights."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=1.5, size=(n, K)) - rng.uniform(0, 4, size=K)
    Y = (rng.random((n, K)) < 1 / (1 + np.exp(-logits))).astype(int)
    return logits + rng.normal(size=(n, K)), Y, rng.random(n)


def sums(decided, Y, weight):
    """P, TP and R of decisions (..., n, K)."""
    predicted = np.einsum("...nk,n->...", decided.astype(float), weight)
    hits = np.einsum("...nk,n->...", (decided & (Y == 1)).astype(float), weight)
    return predicted, hits, float(weight @ Y.sum(axis=1))


def all_decisions(scores):
    """What every combination of thresholds decides: (combinations, n, K)."""
    cuts = [np.append(np.unique(column), -np.inf) for column in scores.T]
    return np.stack([scores > np.array(t) for t in product(*cuts)])


def losses_of(predicted, hits, relevant, total):
    size = predicted + relevant
    f1 = np.where(size > 0, 2 * hits / np.where(size > 0, size, 1), 0.0)
    return np.stack([(predicted + relevant - 2 * hits) / total, 1 - f1], axis=-1)


@st.composite
def tiny_problems(draw):
    n, K = draw(st.integers(1, 5)), draw(st.integers(1, 3))

    def matrix(values):
        return np.array(draw(st.lists(values, min_size=n * K, max_size=n * K)))

    scores = matrix(st.integers(-2, 2)).reshape(n, K) / 2
    Y = matrix(st.integers(0, 1)).reshape(n, K)
    weights = st.lists(st.sampled_from([0, 0.25, 1, 3]), min_size=n, max_size=n)
    weight = np.array(draw(weights.filter(any)), dtype=float)
    return scores, Y, weight


def test_worked_example():
    # Shares of positives from the highest score down: label 0 has 1 | 1/4, label 1
    # has 2/5. R = 4.
    scores = np.array([[5.0, 5.0], [4.0, 4.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    Y = np.array([[1, 0], [0, 0], [0, 1], [0, 0], [1, 1]])
    front = threshold_front(scores, Y)
    # Share 1: P = 1, TP = 1, 3 wrong of 10, F1 = 2/5. Share 2/5 is above F1/2 = 1/5:
    # P = 6, TP = 3, 4 wrong, F1 = 6/10. Share 1/4 is below F1/2 = 3/10.
    np.testing.assert_allclose(front.losses, [[0.3, 0.6], [0.4, 0.4]])
    np.testing.assert_array_equal(front.thresholds, [[4.5, 7.0], [4.5, -1.0]])
    assert len(front) == 2


@settings(max_examples=150)
@given(tiny_problems())
def test_members_are_the_corners_among_all_combinations(problem):
    scores, Y, weight = problem
    front = threshold_front(scores, Y, weight)
    P, TP, R = sums(all_decisions(scores), Y, weight)
    reachable = losses_of(P, TP, R, weight.sum() * Y.shape[1])
    mine_P, mine_TP, _ = sums(scores > front.thresholds[:, None], Y, weight)

    # Every combination is worse than each member in a loss, or its equal.
    for member in front.losses:
        no_worse = (reachable <= member + 1e-12).all(axis=1)
        np.testing.assert_allclose(
            reachable[no_worse], np.tile(member, (no_worse.sum(), 1)), atol=1e-12
        )
    np.testing.assert_allclose(front.losses.min(axis=0), reachable.min(axis=0))

    # The best of any price between the losses is a member. The best value is convex
    # and piecewise linear in the price: to agree at its kinks is to agree.
    rise, run = TP - TP[:, None], P - P[:, None]
    kinks = np.unique(rise[run > 0] / run[run > 0])
    lowest = (1 - front.losses[-1, 1]) / 2
    prices = [lowest, 0.5, *kinks[(kinks > lowest) & (kinks < 0.5)]]
    for price in prices:
        best = (TP - price * P).max()
        assert (mine_TP - price * mine_P).max() == pytest.approx(best, abs=1e-12)

    # And none is to spare: slopes fall strictly between 1/2 and F1 / 2.
    slopes = [0.5, *(np.diff(mine_TP) / np.diff(mine_P)), lowest]
    assert all(a > b for a, b in pairwise(slopes[:-1]))
    assert len(front) == 1 or slopes[-2] > slopes[-1]


@settings(max_examples=60)
@given(tiny_problems())
def test_thresholds_reproduce_the_losses(problem):
    scores, Y, weight = problem
    front = threshold_front(scores, Y, weight)
    for thresholds, member in zip(front.thresholds, front.losses, strict=True):
        decided = scores > thresholds
        np.testing.assert_array_equal(decided, scores - thresholds > 0)
        expected = loss_values(Y, scores - thresholds, LOSSES, weight)
        np.testing.assert_array_equal(member, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_scikit_learn(weighted):
    scores, Y, weight = make_problem(120, 4)
    sample_weight = weight if weighted else None
    front = threshold_front(scores, Y, sample_weight)
    assert len(front) > 3
    for thresholds, (hamming, f1) in zip(front.thresholds, front.losses, strict=True):
        decided = (scores > thresholds).astype(int)
        assert hamming == pytest.approx(
            hamming_loss(Y, decided, sample_weight=sample_weight)
        )
        assert 1 - f1 == pytest.approx(
            f1_score(Y, decided, average="micro", sample_weight=sample_weight)
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [1, 12])
def test_members_are_cuts_of_isotonic_probabilities(weighted, decimals):
    scores, Y, weight = make_problem(400, 5, seed=1)
    scores = scores.round(decimals)
    weight = weight if weighted else np.ones(len(Y))
    front = threshold_front(scores, Y, weight)
    shares = np.stack(
        [
            IsotonicRegression().fit_transform(s, y, sample_weight=weight)
            for s, y in zip(scores.T, Y.T, strict=True)
        ],
        axis=1,
    ).round(10)
    half_f1 = (1 - front.losses[-1, 1]) / 2
    between = np.unique(shares[(shares > half_f1) & (shares < 0.5)])[::-1]
    cuts = np.array([0.5, *between])
    expected = [
        loss_values(Y, shares - cut + 1e-11, LOSSES, weight if weighted else None)
        for cut in cuts
    ]
    np.testing.assert_allclose(front.losses, expected, rtol=1e-12)
    np.testing.assert_array_equal(
        scores > front.thresholds[:, None], shares >= cuts[:, None, None]
    )


def test_no_single_threshold_does_better():
    scores, Y, weight = make_problem(300, 4, seed=2)
    front = threshold_front(scores, Y, weight)
    common = np.unique(scores)[:, None, None]
    shared = loss_values(Y, scores - common, LOSSES, weight)
    assert (front.losses.min(axis=0) <= shared.min(axis=0) + 1e-12).all()


@pytest.mark.parametrize(
    ("Y", "losses", "thresholds"),
    [
        # Never and always positive; range 2, so beyond the ends by 1.
        ([[0, 1], [0, 1], [0, 1]], [[0.0, 0.0]], [[4.0, 0.0]]),
        # Nothing is positive: F1 is 0 whatever is predicted.
        ([[0, 0], [0, 0], [0, 0]], [[0.0, 1.0]], [[4.0, 4.0]]),
        ([[1, 1], [1, 1], [1, 1]], [[0.0, 0.0]], [[0.0, 0.0]]),
        # A share of exactly 1/2 is taken: the same Hamming loss, better F1.
        ([[0, 0], [1, 0], [0, 0]], [[1 / 6, 1 / 3]], [[1.5, 4.0]]),
        # F1 = 2/3 with label 0 alone; the share 1/3 of label 1 would leave it there.
        ([[1, 0], [0, 0], [0, 1]], [[1 / 6, 1 / 3]], [[2.5, 4.0]]),
    ],
)
def test_corner_cases_of_labels(Y, losses, thresholds):
    scores = np.array([[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    front = threshold_front(scores, Y)
    np.testing.assert_allclose(front.losses, losses)
    np.testing.assert_array_equal(front.thresholds, thresholds)


def test_equal_shares_of_several_labels_enter_together():
    # Every label: share 1/3 above share 0; F1 starts at 0.
    scores = np.tile([[4.0], [3.0], [2.0], [1.0]], 3)
    Y = np.tile([[0], [0], [1], [0]], 3)
    front = threshold_front(scores, Y)
    np.testing.assert_array_equal(front.thresholds, [[5.5] * 3, [1.5] * 3])


def test_shares_equal_but_for_rounding_enter_together():
    # 0.3 of 0.1 + 0.2 + 0.3 is 1/2, and 0.49999999999999994 in floats.
    scores, Y = [[3.0], [2.0], [1.0]], [[0], [0], [1]]
    front = threshold_front(scores, Y, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(front.thresholds, [[0.0]])

    # 1/3 in both labels, and 0.3 / (0.3 + 0.6) is more in floats than 1 / (1 + 2).
    scores = np.array([[3.0, 1.0], [4.0, 2.0], [2.0, 3.0], [1.0, 4.0]])
    Y = [[1, 0], [0, 0], [0, 1], [0, 0]]
    front = threshold_front(scores, Y, [0.3, 0.6, 1.0, 2.0])
    np.testing.assert_array_equal(front.thresholds, [[5.5, 5.5], [2.5, 2.5]])


def test_one_row_and_one_label():
    assert threshold_front([[2.0]], [[1]]).thresholds.tolist() == [[1.0]]
    assert threshold_front([[2.0]], [[0]]).thresholds.tolist() == [[3.0]]


def test_rows_of_weight_zero_are_absent():
    scores, Y, weight = make_problem(60, 3, seed=3)
    weight[::3] = 0
    scores[0] = np.nan
    scores[3] = 1e6
    front = threshold_front(scores, Y, weight)
    used = weight > 0
    alone = threshold_front(scores[used], Y[used], weight[used])
    np.testing.assert_array_equal(front.thresholds, alone.thresholds)
    np.testing.assert_array_equal(front.losses, alone.losses)


def test_integer_weights_are_repeated_rows():
    scores, Y, _ = make_problem(60, 3, seed=4)
    times = np.arange(60) % 4
    weighted = threshold_front(scores, Y, times)
    repeated = threshold_front(np.repeat(scores, times, 0), np.repeat(Y, times, 0))
    np.testing.assert_array_equal(weighted.thresholds, repeated.thresholds)
    np.testing.assert_array_equal(weighted.losses, repeated.losses)


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 1e9])
def test_the_scale_of_weights_does_not_matter(factor):
    scores, Y, weight = make_problem(100, 4, seed=5)
    front = threshold_front(scores, Y, weight)
    scaled = threshold_front(scores, Y, factor * weight)
    np.testing.assert_array_equal(scaled.thresholds, front.thresholds)
    np.testing.assert_allclose(scaled.losses, front.losses)


def test_weights_too_small_to_change_a_loss_add_no_member():
    scores, Y, weight = make_problem(100, 4, seed=6)
    weight[50:] *= 1e-25
    front = threshold_front(scores, Y, weight)
    assert len(front) > 1
    assert (np.diff(front.losses[:, 0]) > 0).all()
    assert (np.diff(front.losses[:, 1]) < 0).all()


@settings(max_examples=200)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    st.data(),
)
@example([1.0, np.nextafter(1.0, 2.0)], None)
@example([1e16, 1e16 + 2], None)
@example([SMALLEST, 0.0, -SMALLEST], None)
@example([LARGEST, -LARGEST], None)
@example([LARGEST, np.nextafter(LARGEST, 0.0)], None)
@example([-LARGEST], None)
@example([0.0, -0.0], None)
def test_decisions_survive_rounding(values, data):
    # Rows as drawn and, by hand, every way to label them with the highest first.
    scores = np.array(values)[:, None]
    if data is None:
        by_rank = np.argsort(np.argsort(-scores[:, 0]))
        truths = [(by_rank < count).astype(int) for count in range(len(values) + 1)]
    else:
        bits = st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))
        truths = [np.array(data.draw(bits))]
    for truth in truths:
        Y = truth[:, None]
        front = threshold_front(scores, Y)
        for thresholds, member in zip(front.thresholds, front.losses, strict=True):
            with np.errstate(over="ignore"):
                moved = scores - thresholds
            np.testing.assert_array_equal(moved > 0, scores > thresholds)
            np.testing.assert_array_equal(loss_values(Y, moved, LOSSES), member)
        # Unless a tie stands in the way, the labels themselves are a cut.
        if data is None and len(set(values)) == len(values):
            np.testing.assert_array_equal(scores > front.thresholds[0], Y)


def test_float32_scores_are_parted_in_float64():
    scores, Y, _ = make_problem(200, 3, seed=7)
    scores = scores.astype(np.float32)
    front = threshold_front(scores, Y)
    assert front.thresholds.dtype == np.float64
    for thresholds, member in zip(front.thresholds, front.losses, strict=True):
        np.testing.assert_array_equal(
            loss_values(Y, scores - thresholds, LOSSES), member
        )


@pytest.mark.parametrize("max_members", [2, 3, 7, 10_000])
def test_thinning_keeps_both_ends_and_even_steps(max_members):
    scores, Y, _ = make_problem(400, 5, seed=1)
    full = threshold_front(scores, Y)
    thin = threshold_front(scores, Y, max_members=max_members)
    assert len(thin) == min(max_members, len(full))
    places = [int(np.flatnonzero((full.losses == x).all(1))[0]) for x in thin.losses]
    np.testing.assert_array_equal(thin.thresholds, full.thresholds[places])
    assert places[0] == 0
    assert places[-1] == len(full) - 1
    assert np.ptp(np.diff(places)) <= 1


def test_a_single_member_is_both_ends():
    front = threshold_front([[1.0], [0.0]], [[1], [0]], max_members=2)
    np.testing.assert_array_equal(front.losses, [[0.0, 0.0]])


def test_row_order_does_not_matter_and_inputs_stay():
    scores, Y, weight = make_problem(80, 3, seed=8)
    scores = scores.round(1)
    for array in (scores, Y, weight):
        array.setflags(write=False)
    front = threshold_front(scores, Y, weight)
    shuffled = np.random.default_rng(0).permutation(80)
    other = threshold_front(scores[shuffled], Y[shuffled], weight[shuffled])
    np.testing.assert_array_equal(other.thresholds, front.thresholds)
    sparse = threshold_front(scores.tolist(), sp.csr_array(Y), weight.tolist())
    np.testing.assert_array_equal(sparse.thresholds, front.thresholds)


GOOD = [[0.5, 1.0], [0.0, 2.0]]
LABELS = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("scores", "Y", "options", "message"),
    [
        ([[0.5, 1.0], [np.nan, 2.0]], LABELS, {}, "finite, got nan at row 1, column 0"),
        ([[0.5, np.inf], [0.0, 2.0]], LABELS, {}, "finite, got inf at row 0, column 1"),
        (
            [[0.0, 0.0], [0.5, -np.inf]],
            LABELS,
            {"weight": [0, 1]},
            "got -inf at row 1, column 1",
        ),
        ([[0.5, 1.0]], LABELS, {}, r"shape \(2, 2\), as Y has, got \(1, 2\)"),
        ([["a", "b"], ["c", "d"]], LABELS, {}, "scores must be numbers, got dtype"),
        (GOOD, [[2, 0], [0, 1]], {}, r"0 and 1 only, got the values \[0, 1, 2\]"),
        (np.empty((0, 2)), np.empty((0, 2)), {}, "got 0 rows"),
        (GOOD, LABELS, {"weight": [0, 0]}, "got 2 rows and none of positive weight"),
        (GOOD, LABELS, {"weight": [1]}, r"one weight a row, got \(1,\)"),
        (GOOD, LABELS, {"weight": [1, -1]}, "not negative"),
        (GOOD, LABELS, {"weight": [1, np.nan]}, "finite weights"),
        (GOOD, LABELS, {"max_members": 1}, "at least 2, for the two ends, got 1"),
        (GOOD, LABELS, {"max_members": 2.5}, "got 2.5"),
        (GOOD, LABELS, {"max_members": True}, "got True"),
    ],
)
def test_bad_arguments_are_refused(scores, Y, options, message):
    with pytest.raises(ValueError, match=message):
        threshold_front(scores, Y, **options)

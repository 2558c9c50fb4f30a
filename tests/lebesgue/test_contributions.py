import csv
from pathlib import Path

import moocore
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.lebesgue import (
    dominance_depth,
    lebesgue_contributions,
    lebesgue_measure,
    nondominated,
)

NAN, INF = np.nan, np.inf

GRID = [-0.25, 0.0, 0.25, 0.5, 0.75, 1.0, INF, NAN]
REFERENCE_GRID = [-0.5, 0.25, 0.5, 0.75, 1.0]


@st.composite
def problems(draw, max_references=4):
    """Losses and references on a coarse grid, where volumes are exact."""
    o = draw(st.integers(1, 4))
    m = draw(st.integers(0, 7))
    r = draw(st.integers(1, max_references))
    L = draw(hnp.arrays(np.float64, (m, o), elements=st.sampled_from(GRID)))
    R = draw(hnp.arrays(np.float64, (r, o), elements=st.sampled_from(REFERENCE_GRID)))
    return L, R


def converged(rng, m, o, n_front):
    """A population near convergence: a front, and the rest close behind it."""
    front = np.abs(rng.normal(size=(n_front, o)))
    front = 1 - 0.9 * front / np.linalg.norm(front, axis=1, keepdims=True)
    behind = front[rng.integers(n_front, size=m - n_front)]
    return np.vstack((front, behind + 0.05 * rng.random(behind.shape)))


@pytest.mark.parametrize(
    ("L", "reference", "expected"),
    [
        ([[0.5, 0.25], [0.25, 0.5]], 1.0, [0.125, 0.125]),
        # The dominated member takes its box from its only dominator ...
        ([[0.0, 0.0], [0.5, 0.5]], 1.0, [0.75, 0.0]),
        # ... and nothing from two of them.
        ([[0.5, 0.25], [0.25, 0.5], [0.5, 0.5]], 1.0, [0.125, 0.125, 0.0]),
        # Copies cover for each other, and shadow like any other member.
        ([[0.5, 0.25], [0.25, 0.5], [0.5, 0.25]], 1.0, [0.0, 0.125, 0.0]),
        ([[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]], 1.0, [0.0, 0.75, 0.0]),
        # On or outside the box: nothing covered, nobody shadowed.
        ([[0.5, 0.5], [0.5, 1.0], [-1.0, 2.0]], 1.0, [0.25, 0.0, 0.0]),
        ([[0.5, 0.5], [-1.0, INF], [-INF, 1.0]], 1.0, [0.25, 0.0, 0.0]),
        ([[0.5, 0.5], [NAN, 0.0], [0.0, NAN]], 1.0, [0.25, 0.0, 0.0]),
        ([[0.0, 0.0]], [2.0, 3.0], [6.0]),
        ([[0.25], [0.5]], 1.0, [0.25, 0.0]),
        ([[0.25], [0.25]], 1.0, [0.0, 0.0]),
        ([[0.25], [0.5]], [[0.5], [2.0]], [0.25, 0.0]),
        ([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5]], 1.0, [0.875, 0.0]),
        ([[0.0, 0.0]], [[1.0, 0.5], [0.5, 1.0]], [0.75]),
        ([[0.0, 0.0], [0.5, 0.0]], [[1.0, 0.5], [0.5, 1.0]], [0.5, 0.0]),
        ([[0.0, 0.5], [0.5, 0.0]], [[1.0, 0.5], [0.5, 1.0]], [0.25, 0.25]),
        ([[0.5, 0.5], [0.0, 0.75]], [[1.0, 0.5], [0.5, 1.0]], [0.0, 0.125]),
        (np.empty((0, 3)), 1.0, []),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_worked_examples(L, reference, expected, order):
    contributions = lebesgue_contributions(np.asarray(L)[::order], reference)
    assert contributions.dtype == np.float64
    np.testing.assert_allclose(
        contributions, np.asarray(expected)[::order], rtol=0, atol=1e-15
    )


@given(problem=problems())
def test_equals_slow_twin(slow, problem):
    L, R = problem
    expected = slow.contributions(L, R)
    contributions = lebesgue_contributions(L, R)
    np.testing.assert_allclose(contributions, expected, rtol=0, atol=1e-12)
    # Volumes on this grid have no rounding: what should be zero is exactly that.
    np.testing.assert_array_equal(contributions == 0.0, expected == 0.0)


@given(problem=problems(max_references=1))
def test_set_of_one_equals_vector(problem):
    L, R = problem
    np.testing.assert_array_equal(
        lebesgue_contributions(L, R), lebesgue_contributions(L, R[0])
    )


@pytest.mark.parametrize("o", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda rng, o: rng.random((40, o)), id="scattered"),
        pytest.param(lambda rng, o: 1.3 * rng.random((40, o)), id="some-outside"),
        pytest.param(lambda rng, o: rng.random((40, o)).round(1), id="grid"),
        pytest.param(lambda rng, o: converged(rng, 40, o, 12), id="converged"),
        pytest.param(lambda rng, o: converged(rng, 30, o, 30), id="all-front"),
    ],
)
def test_equals_moocore(make, o):
    L = make(np.random.default_rng(o), o)
    np.testing.assert_allclose(
        lebesgue_contributions(L),
        moocore.hv_contributions(L, ref=1.0, ignore_dominated=False),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("o", [2, 3, 4])
def test_set_equals_difference_of_measures(o):
    rng = np.random.default_rng(o)
    L = 0.8 * converged(rng, 20, o, 10)
    R = 1 - 0.5 * converged(rng, 8, o, 8)
    measure = lebesgue_measure(L, R)
    expected = [
        measure - lebesgue_measure(np.delete(L, i, axis=0), R) for i in range(len(L))
    ]
    contributions = lebesgue_contributions(L, R)
    np.testing.assert_allclose(contributions, expected, rtol=0, atol=1e-13)
    assert (contributions > 0).sum() >= 2


def test_ignoring_dominated_members_would_be_another_quantity():
    L = converged(np.random.default_rng(0), 40, 3, 12)
    ignorant = moocore.hv_contributions(L, ref=1.0, ignore_dominated=True)
    assert (lebesgue_contributions(L) < 0.9 * ignorant).any()


@given(problem=problems(), seed=st.integers(0, 100))
def test_permutation_of_members_permutes_contributions(problem, seed):
    L, R = problem
    permutation = np.random.default_rng(seed).permutation(len(L))
    np.testing.assert_array_equal(
        lebesgue_contributions(L[permutation], R),
        lebesgue_contributions(L, R)[permutation],
    )


@pytest.mark.parametrize("o", [2, 3, 4])
def test_permutation_does_not_change_the_last_bit(o):
    rng = np.random.default_rng(o)
    L = converged(rng, 50, o, 20)
    permutation = rng.permutation(len(L))
    np.testing.assert_array_equal(
        lebesgue_contributions(L[permutation]), lebesgue_contributions(L)[permutation]
    )


@given(problem=problems(), k=st.integers(0, 6), step=st.sampled_from([0.0, 0.25]))
def test_a_dominated_newcomer_raises_no_contribution(problem, k, step):
    L, R = problem
    if len(L) == 0:
        return
    newcomer = L[k % len(L)] + step
    before = lebesgue_contributions(L, R)
    after = lebesgue_contributions(np.vstack((L, newcomer)), R)
    assert after[-1] == 0.0
    assert (after[:-1] <= before + 1e-12).all()


@given(problem=problems())
def test_bounds(problem):
    L, R = problem
    contributions = lebesgue_contributions(L, R)
    assert (contributions >= 0.0).all()
    # What members cover alone is disjoint.
    assert contributions.sum() <= lebesgue_measure(L, R) + 1e-12
    assert (contributions[~nondominated(L)] == 0.0).all()


@pytest.mark.parametrize("o", [2, 3, 4])
def test_never_negative_where_rounding_bites(o):
    # Members that differ in the last bits of their losses.
    rng = np.random.default_rng(o)
    L = 0.3 + 1e-15 * rng.integers(0, 9, size=(40, o))
    contributions = lebesgue_contributions(L)
    assert (contributions >= 0.0).all()
    assert (contributions[dominance_depth(L) > 0] == 0.0).all()


def test_negative_zero_is_zero():
    np.testing.assert_array_equal(
        lebesgue_contributions([[0.0, 0.5], [-0.0, 0.5]]), [0.0, 0.0]
    )


def test_inputs_are_left_alone(immutable_call):
    L = np.random.default_rng(0).random((20, 3)).round(1)
    R = np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 1.0]])
    for method in ("exact", "monte_carlo"):
        for reference in (np.ones(3), R):
            immutable_call(lebesgue_contributions, L, reference, method=method)
    L.setflags(write=False)
    R.setflags(write=False)
    lebesgue_contributions(L, R)


# The paper's main table: losses with three digits, contributions with six. Any value
# within half a digit of a printed loss may have been behind it.

HALF_LOSS_DIGIT = 0.5e-3
HALF_RESULT_DIGIT = 0.5e-6
LOSSES = ("hamming_loss", "one_minus_micro_f1", "one_minus_lrap")


def paper_table():
    """Return {dataset: (methods, losses (7, 3), contributions, shares, means)}."""
    path = Path(__file__).parents[1] / "paper_results.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        chosen = [row for row in rows if row["dataset"] == dataset]
        table[dataset] = tuple(
            np.array([[float(row[name]) for name in names] for row in chosen]).squeeze()
            for names in (
                LOSSES,
                ["hv_contribution"],
                ["normalised_contribution"],
                ["geometric_mean"],
            )
        )
    return table


PAPER = paper_table()


def loss_intervals(L):
    return (
        np.clip(L - HALF_LOSS_DIGIT, 0.0, 1.0),
        np.clip(L + HALF_LOSS_DIGIT, 0.0, 1.0),
    )


def contribution_intervals(L):
    """Return the smallest and largest contributions that the printed losses allow.

    A contribution falls with each loss of its member and rises with each loss of
    the others, so that its extremes lie at the corners of the intervals.
    """

    def extreme(own, others, i):
        L = others.copy()
        L[i] = own[i]
        return lebesgue_contributions(L)[i]

    low, high = loss_intervals(L)
    members = range(len(L))
    return (
        np.array([extreme(high, low, i) for i in members]),
        np.array([extreme(low, high, i) for i in members]),
    )


def within(printed, lower, upper, half_digit=HALF_RESULT_DIGIT):
    slack = half_digit + 1e-12  # the binary fractions of decimal digits
    return (lower - slack <= printed) & (printed <= upper + slack)


def test_paper_table_is_whole():
    assert len(PAPER) == 9
    assert sum(len(losses) for losses, *_ in PAPER.values()) == 63


@pytest.mark.parametrize("dataset", PAPER)
def test_paper_contributions(dataset):
    L, printed, _, _ = PAPER[dataset]
    lower, upper = contribution_intervals(L)
    assert within(printed, lower, upper).all()
    assert within(lebesgue_contributions(L), lower, upper, 0.0).all()


@pytest.mark.parametrize("dataset", PAPER)
def test_paper_normalised_contributions(dataset):
    L, printed, shares, _ = PAPER[dataset]
    lower, upper = contribution_intervals(L)
    # What the printed contribution says narrows what the printed losses allow.
    lower = np.maximum(lower, printed - HALF_RESULT_DIGIT)
    upper = np.minimum(upper, printed + HALF_RESULT_DIGIT)
    share_lower = lower / (lower + upper.sum() - upper)
    share_upper = upper / (upper + lower.sum() - lower)
    assert within(shares, share_lower, share_upper).all()


@pytest.mark.parametrize("dataset", PAPER)
def test_paper_geometric_means(dataset):
    L, _, _, printed = PAPER[dataset]
    lower, upper = (np.cbrt(np.prod(corner, axis=1)) for corner in loss_intervals(L))
    assert within(printed, lower, upper).all()


def test_paper_intervals_refuse_the_other_quantity():
    """The table holds contributions in which dominated members count."""
    refused = []
    for L, *_ in PAPER.values():
        other = moocore.hv_contributions(L, ref=1.0, ignore_dominated=True)
        refused.extend(~within(other, *contribution_intervals(L)))
    assert np.sum(refused) >= 1


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4096, 2), "exact"),
        ((4096, 3), "exact"),
        ((4097, 3), "monte_carlo"),
        ((256, 5), "exact"),
        ((257, 4), "monte_carlo"),
        ((3, 6), "monte_carlo"),
    ],
)
def test_auto_is_exact_where_that_is_quick(shape, expected, caplog):
    L = np.random.default_rng(0).random(shape)
    with caplog.at_level("INFO", logger="clml"):
        found = lebesgue_contributions(L, method="auto", random_state=0)
    assert bool(caplog.records) == (expected == "monte_carlo")
    same = lebesgue_contributions(L, method=expected, random_state=0)
    np.testing.assert_array_equal(found, same)


def test_the_standard_error_is_what_is_stated():
    L = np.array([[0.2, 0.5], [0.5, 0.2]])
    exact = lebesgue_contributions(L)
    estimates = [
        lebesgue_contributions(L, method="monte_carlo", n_samples=500, random_state=i)
        for i in range(400)
    ]
    stated = np.sqrt(exact * (1 - exact) / 500)
    np.testing.assert_allclose(np.std(estimates, axis=0), stated, rtol=0.15)

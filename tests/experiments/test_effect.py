import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml.experiments import cliffs_delta, rank_biserial, vargha_delaney
from clml.experiments._effect import paired_differences

samples = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=12)


def test_rank_biserial_worked_example():
    # Differences −1, 2, 3, 4 have the ranks 1 to 4: (2 + 3 + 4 − 1) / 10.
    assert rank_biserial([1, 4, 5, 6], [2, 2, 2, 2]) == pytest.approx(0.8)


def test_rank_biserial_leaves_equal_pairs_out():
    assert rank_biserial([1, 4, 5, 6, 9], [2, 2, 2, 2, 9]) == pytest.approx(0.8)
    assert rank_biserial([1, 2], [1, 2]) == 0


def test_cliffs_delta_worked_example():
    # Of six comparisons one is above, one equal, four below.
    assert cliffs_delta([1, 3], [2, 3, 4]) == pytest.approx((1 - 4) / 6)
    assert vargha_delaney([1, 3], [2, 3, 4]) == pytest.approx(1.5 / 6)


@given(samples, samples)
def test_cliffs_delta_counts_comparisons(first, second):
    slow = np.mean([np.sign(a - b) for a in first for b in second])
    assert cliffs_delta(first, second) == pytest.approx(slow, abs=1e-12)
    assert cliffs_delta(second, first) == pytest.approx(-slow, abs=1e-12)
    assert vargha_delaney(first, second) == pytest.approx((slow + 1) / 2, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_rank_biserial_is_antisymmetric_and_bounded(pairs):
    first, second = zip(*pairs, strict=True)
    effect = rank_biserial(first, second)
    assert -1 <= effect <= 1
    assert rank_biserial(second, first) == pytest.approx(-effect, abs=1e-12)


def test_differences_forget_the_last_digits():
    assert 0.3 - 0.2 != 0.2 - 0.1
    found = paired_differences([0.3, 0.2, 0.1], [0.2, 0.1, 0.1])
    assert found[0] == found[1]
    assert found[2] == 0
    np.testing.assert_array_equal(paired_differences([0.0], [0.0]), [0.0])


@pytest.mark.parametrize("function", [rank_biserial, cliffs_delta, vargha_delaney])
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([], [1.0], "first must be a list of at least one finite number"),
        ([1.0], [np.nan], "second must be a list of at least one finite number"),
        ([[1.0]], [1.0], "first must be a list"),
        ([1.0], [np.inf], "second must be"),
    ],
)
def test_bad_samples(function, first, second, message):
    with pytest.raises(ValueError, match=message):
        function(first, second)


def test_pairs_of_different_length():
    with pytest.raises(ValueError, match=r"same length, .* got 1 and 2"):
        rank_biserial([1.0], [1.0, 2.0])

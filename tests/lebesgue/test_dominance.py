import moocore
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.lebesgue import dominance_depth, dominates, nondominated

NAN, INF = np.nan, np.inf

# A coarse grid makes copies and dominated members common.
populations = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(
        np.float64, shape, elements=st.sampled_from([-INF, 0.0, 1.0, 2.0, 3.0, INF])
    )
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2], [1, 3], True),
        ([1, 2], [2, 3], True),
        ([1, 3], [1, 2], False),
        ([1, 2], [1, 2], False),
        ([1, 3], [2, 2], False),
        ([1], [2], True),
        ([1, 2, 3, 4], [1, 2, 3, 5], True),
        ([1, 2], [1, INF], True),
        ([INF, 2], [INF, 3], True),
        ([NAN, 1], [2, 2], False),
        ([1, 1], [2, NAN], False),
    ],
)
def test_dominates_worked_examples(a, b, expected):
    assert dominates(a, b) is expected


def test_nondominated_worked_example():
    L = [[1, 3], [2, 2], [2, 3], [3, 1], [2, 2], [4, 1]]
    np.testing.assert_array_equal(
        nondominated(L), [True, True, False, True, True, False]
    )


def test_depth_worked_example():
    L = [[3, 3], [1, 2], [2, 1], [2, 2], [3, 3], [1, 2], [1, 4]]
    np.testing.assert_array_equal(dominance_depth(L), [2, 0, 0, 1, 2, 0, 1])


def test_single_loss_keeps_every_copy_of_the_best():
    L = [[2.0], [1.0], [3.0], [1.0]]
    np.testing.assert_array_equal(nondominated(L), [False, True, False, True])
    np.testing.assert_array_equal(dominance_depth(L), [1, 0, 2, 0])


def test_infinite_losses_are_ordinary_losses():
    # moocore alone calls the second row non-dominated.
    L = [[-1.0, INF, INF, INF], [INF, INF, INF, INF], [-INF, 0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(nondominated(L), [False, False, True])
    np.testing.assert_array_equal(dominance_depth(L), [1, 2, 0])


def test_nan_rows_are_out_and_shadow_nobody():
    L = [[NAN, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, NAN]]
    np.testing.assert_array_equal(nondominated(L), [False, True, False, False])
    np.testing.assert_array_equal(dominance_depth(L), [2, 0, 1, 2])


def test_nothing_but_nan():
    L = [[NAN, 0.0], [NAN, NAN]]
    assert not nondominated(L).any()
    assert dominance_depth(L).shape == (2,)


def test_empty_population():
    for function, kind in ((nondominated, np.bool_), (dominance_depth, np.int64)):
        result = function(np.empty((0, 3)))
        assert result.shape == (0,)
        assert result.dtype == kind


@given(L=populations)
def test_depth_equals_slow_twin(slow, L):
    expected = slow.depth(L)
    depth = dominance_depth(L)
    assert depth.dtype == np.int64
    np.testing.assert_array_equal(depth, expected)
    np.testing.assert_array_equal(nondominated(L), expected == 0)


@given(L=populations)
def test_dominates_agrees_with_nondominated(slow, L):
    for a in L:
        for b in L:
            assert dominates(a, b) == slow.dominates(a, b)
            assert dominates(a, b) == (not nondominated([a, b])[1])


def test_depth_equals_moocore():
    L = np.random.default_rng(0).random((200, 3)).round(1)
    np.testing.assert_array_equal(dominance_depth(L), moocore.pareto_rank(L))


@pytest.mark.parametrize("function", [nondominated, dominance_depth])
def test_input_is_left_alone(function, immutable_call):
    L = np.array([[1.0, NAN], [2.0, 1.0], [2.0, 1.0], [3.0, 3.0]])
    immutable_call(function, L)
    L.setflags(write=False)
    function(L)


def test_any_memory_layout():
    L = np.random.default_rng(1).random((30, 3)).round(1)
    expected = dominance_depth(L)
    np.testing.assert_array_equal(dominance_depth(np.asfortranarray(L)), expected)
    np.testing.assert_array_equal(dominance_depth(L[::-1])[::-1], expected)
    np.testing.assert_array_equal(dominance_depth(L.tolist()), expected)


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        ([1, 2], [1, 2, 3], ValueError, r"b must be as long as a.*2.*length 3"),
        (1.0, [1.0], ValueError, r"a must be one loss vector.*shape \(\)"),
        ([1.0], [[1.0]], ValueError, r"b must be one loss vector.*\(1, 1\)"),
        ([], [], ValueError, r"a must be one loss vector.*\(0,\)"),
        (["x"], [1.0], TypeError, r"a must hold real numbers.*<U1"),
    ],
)
def test_dominates_refuses(a, b, error, message):
    with pytest.raises(error, match=message):
        dominates(a, b)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml.evolution import rank_by_fitness

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 1.0, 2.0], [1, 2, 0]),
        ([1, 1, 0, 1], [2, 0, 1, 3]),
        ([NAN, 1.0], [1, 0]),
        ([NAN, INF, -INF, NAN, 0.0], [2, 4, 1, 0, 3]),
        ([NAN, NAN], [0, 1]),
        ([0.0, -0.0], [0, 1]),
        ([True, False], [1, 0]),
        (np.array([2.0, 1.0], dtype=np.float32), [1, 0]),
        (np.zeros(0), []),
    ],
)
def test_worked_examples(values, expected):
    assert rank_by_fitness(values).tolist() == expected


@given(st.lists(st.floats(allow_nan=True, width=16), max_size=30))
def test_equals_a_python_sort(values):
    slow = sorted(
        range(len(values)),
        key=lambda i: (np.isnan(values[i]), 0.0 if np.isnan(values[i]) else values[i]),
    )
    assert rank_by_fitness(np.array(values, dtype=float)).tolist() == slow


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        (1.0, r"shape \(\)"),
        (["a", "b"], "type <U1"),
        ([1j], "type complex128"),
        ([None, 1.0], "type object"),
    ],
)
def test_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        rank_by_fitness(values)

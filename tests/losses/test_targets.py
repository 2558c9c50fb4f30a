import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from clml.losses import RowTargets

Y = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
def test_both_forms_hold_the_same_labels(form):
    targets = RowTargets.from_indicator(form(Y))
    np.testing.assert_array_equal(targets.dense, Y)
    np.testing.assert_array_equal(targets.indptr, [0, 2, 2, 5, 6])
    np.testing.assert_array_equal(targets.indices, [1, 2, 0, 1, 2, 0])
    assert targets.dense.dtype == np.uint8
    assert targets.indptr.dtype == targets.indices.dtype == np.int32
    assert (targets.n_rows, targets.n_labels) == (4, 3)


def test_without_weights_every_row_weighs_one():
    targets = RowTargets.from_indicator(Y)
    assert not targets.weighted
    np.testing.assert_array_equal(targets.weight, np.ones(4))


@pytest.mark.parametrize("weights", [[1, 0, 2, 3], np.float32([0.5, 1, 0, 2])])
def test_weights_are_float64(weights):
    targets = RowTargets.from_indicator(Y, weights)
    assert targets.weighted
    assert targets.weight.dtype == np.float64
    np.testing.assert_array_equal(targets.weight, weights)


def test_no_rows_and_no_relevant_label():
    empty = RowTargets.from_indicator(np.zeros((0, 2)), [])
    assert (empty.n_rows, empty.n_labels) == (0, 2)
    np.testing.assert_array_equal(empty.indptr, [0])
    nothing = RowTargets.from_indicator(np.zeros((3, 2)))
    np.testing.assert_array_equal(nothing.indptr, [0, 0, 0, 0])
    assert nothing.indices.size == 0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1], r"shape \(4,\), one weight a row, got \(2,\)"),
        (np.ones((4, 1)), r"got \(4, 1\)"),
        ([1, 1, 1, np.nan], r"finite weights that are not negative.*nan"),
        ([1, 1, 1, np.inf], r"finite weights that are not negative.*1\.0 to inf"),
        ([1, 1, -0.5, 1], r"not negative, got values from -0\.5 to 1\.0"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=f"sample_weight must .*{message}"):
        RowTargets.from_indicator(Y, weights)


@given(
    seed=st.integers(0, 20),
    rows=st.lists(st.integers(0, 5), max_size=9),
    weighted=st.booleans(),
)
def test_rows_are_taken_in_any_order(seed, rows, weighted):
    rng = np.random.default_rng(seed)
    labels = rng.random((6, 4)) < rng.choice([0.0, 0.5, 1.0], size=(6, 1))
    weight = rng.random(6) if weighted else None
    rows = np.array(rows, dtype=np.int64)
    targets = RowTargets.from_indicator(labels, weight)
    taken = targets.take(rows)
    expected = RowTargets.from_indicator(
        labels[rows], None if weight is None else weight[rows]
    )
    for name in ("dense", "indptr", "indices", "weight"):
        found, wanted = getattr(taken, name), getattr(expected, name)
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        assert found.dtype == wanted.dtype, name
    assert taken.weighted == expected.weighted
    np.testing.assert_array_equal(targets.dense, labels)

"""The kernels of both orders against hand-worked cases and a slow twin."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import sparse

from clml.splits.stratify import dealt_parts, stratified_parts


class Numbers:
    """A generator that returns what it was given and leaves the rows in order."""

    def __init__(self, n_rows, label_priority, tie_breaks, pair_priority=()):
        orders = np.arange(n_rows), np.asarray(label_priority), pair_priority
        self.orders = [np.asarray(order) for order in orders]
        self.tie_breaks = np.asarray(tie_breaks, dtype=float)

    def permutation(self, n):
        order = self.orders.pop(0)
        assert len(order) == n
        return order

    def random(self, n):
        assert len(self.tie_breaks) == n
        return self.tie_breaks


def parts_of(Y, label_priority, tie_breaks, capacities, pair_priority=None):
    numbers = Numbers(len(Y), label_priority, tie_breaks, pair_priority)
    return dealt_parts(
        sparse.csr_array(np.asarray(Y, dtype=bool)),
        np.asarray(capacities, dtype=np.int64),
        numbers,
        order=1 if pair_priority is None else 2,
    )


def slow_parts(Y, label_priority, tie_breaks, capacities, pair_priority=None):
    """Plain twin of the kernels, counting everything anew at every row."""
    n_rows, n_labels = Y.shape
    parts = [None] * n_rows
    labels = [(label,) for label in range(n_labels)]
    pairs = [
        pair for pair in combinations(range(n_labels), 2) if Y[:, pair].all(1).any()
    ]

    def carries(row, key):
        return all(Y[row, label] for label in key)

    def members(part):
        return [row for row in range(n_rows) if parts[row] == part]

    def room(part):
        return capacities[part] - len(members(part))

    def desire(part, key):
        wanted = capacities[part] * sum(carries(row, key) for row in range(n_rows))
        return wanted - n_rows * sum(carries(row, key) for row in members(part))

    def give(row, key):
        def keenness(part):
            return 0 if key is None else desire(part, key), room(part)

        open_parts = [part for part in range(len(capacities)) if room(part) > 0]
        best = max(keenness(part) for part in open_parts)
        tied = [part for part in open_parts if keenness(part) == best]
        parts[row] = tied[int(tie_breaks[row] * len(tied))]

    def left(key):
        return [
            row for row in range(n_rows) if carries(row, key) and parts[row] is None
        ]

    def deal(keys, priority):
        while any(left(key) for key in keys):
            rarest = min(
                (number for number, key in enumerate(keys) if left(key)),
                key=lambda number: (len(left(keys[number])), priority[number]),
            )
            for row in left(keys[rarest]):
                give(row, keys[rarest])

    if pair_priority is not None:
        deal(pairs, pair_priority)
    deal(labels, label_priority)
    for row in range(n_rows):
        if parts[row] is None:
            give(row, None)
    return np.array(parts)


def n_pairs_of(Y):
    together = Y.T.astype(int) @ Y
    return np.count_nonzero(np.triu(together, 1))


def test_first_order_by_hand():
    # Six rows, parts of 4 and 2 (shares 2/3 and 1/3).
    Y = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]])
    # Label 0 (3 rows) is rarer than label 1 (4 rows). Wanted of label 0: 2 and 1.
    #   row 0: 2 against 1 -> part 0, leaves 1 and 1.
    #   row 1: level, and it has no other label; room 3 against 2 -> part 0.
    #   row 2: 0 against 1 -> part 1, which now has label 1 once as well.
    # Wanted of label 1: 8/3 and 4/3 - 1 = 1/3.
    #   row 3 -> part 0, leaves 5/3 and 1/3.
    #   row 4 -> part 0, leaves 2/3 and 1/3; part 0 is now full.
    #   row 5 -> part 1, though part 0 would want it more.
    parts = parts_of(Y, [0, 1], [0.0] * 6, [4, 2])
    assert_array_equal(parts, [0, 0, 1, 0, 0, 1])


def test_second_order_by_hand():
    # Parts of 3. Pairs: (0, 1) in row 0, (1, 2) in rows 1 and 2.
    Y = np.array([[1, 1, 0], [0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    # (0, 1) is rarer. Row 0: all level -> part 0 (tie break 0).
    # (1, 2): level. Row 1: room 2 against 3 -> part 1.
    #   row 2: part 0 still wants the pair -> part 0.
    # Label 2, in one row more: level, and room 1 against 2 -> part 1.
    # Rows without labels: level -> part 0, then part 1 alone has room.
    parts = parts_of(Y, [0, 1, 2], [0.0] * 6, [3, 3], pair_priority=[0, 1])
    assert_array_equal(parts, [0, 1, 0, 1, 0, 1])


def test_ties_follow_the_random_numbers():
    # Two labels of two rows each, two parts of two: every choice but the last
    # of each label is a tie.
    Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    low = parts_of(Y, [0, 1], [0.0] * 4, [2, 2])
    high = parts_of(Y, [0, 1], [0.9] * 4, [2, 2])
    assert_array_equal(low, [0, 1, 0, 1])
    assert_array_equal(high, [1, 0, 1, 0])


@pytest.mark.parametrize("capacities", [[7, 3], [5, 5], [4, 3, 3], [9, 1], [2] * 5])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", [1, 2])
def test_kernels_equal_slow_twin(capacities, density, seed, order):
    rng = np.random.default_rng(seed)
    Y = (rng.random((10, 4)) < density).astype(int)
    pair_priority = rng.permutation(n_pairs_of(Y)) if order == 2 else None
    numbers = rng.permutation(4), rng.random(10), capacities, pair_priority
    parts = parts_of(Y, *numbers)
    assert_array_equal(parts, slow_parts(Y, *numbers))
    assert_array_equal(np.bincount(parts, minlength=len(capacities)), capacities)


@pytest.mark.parametrize("order", [1, 2])
def test_kernels_equal_slow_twin_on_a_wider_case(order):
    rng = np.random.default_rng(0)
    Y = (rng.random((50, 7)) < 0.3 * rng.random(7) + 0.1).astype(int)
    pair_priority = rng.permutation(n_pairs_of(Y)) if order == 2 else None
    numbers = rng.permutation(7), rng.random(50), [20, 18, 12], pair_priority
    assert_array_equal(parts_of(Y, *numbers), slow_parts(Y, *numbers))


@settings(max_examples=60)
@given(
    Y=hnp.arrays(
        bool, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.booleans()
    ),
    n_parts=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_second_order_equals_slow_twin_on_anything(Y, n_parts, seed):
    rng = np.random.default_rng(seed)
    capacities = np.bincount(rng.integers(n_parts, size=len(Y)), minlength=n_parts)
    numbers = (
        rng.permutation(Y.shape[1]),
        rng.random(len(Y)),
        capacities,
        rng.permutation(n_pairs_of(Y)),
    )
    assert_array_equal(parts_of(Y, *numbers), slow_parts(Y, *numbers))


@pytest.mark.parametrize("order", [1, 2])
def test_without_a_generator_rows_labels_and_parts_stand_in_order(order):
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 5)) < 0.4).astype(int)
    capacities = np.array([12, 10, 8])
    parts = dealt_parts(sparse.csr_array(Y == 1), capacities, None, order)
    pair_priority = range(n_pairs_of(Y)) if order == 2 else None
    expected = slow_parts(Y, range(5), [0.0] * 30, capacities, pair_priority)
    assert_array_equal(parts, expected)


def test_pairs_are_equal_to_labels_where_no_row_has_two():
    Y = np.eye(4, dtype=bool)[np.random.default_rng(0).integers(4, size=60)]
    capacities = np.array([40, 20])
    first, second = (
        dealt_parts(sparse.csr_array(Y), capacities, np.random.default_rng(0), order)
        for order in (1, 2)
    )
    assert_array_equal(first, second)


def test_many_labels_need_memory_for_the_pairs_that_occur_only():
    # All pairs of 20,000 labels would be 200 million.
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(2_000), 4)
    labels = rng.integers(20_000, size=len(rows))
    Y = sparse.csr_array((np.ones(len(rows), dtype=bool), (rows, labels)))
    Y.sum_duplicates()
    capacities = np.full(5, 400)
    parts = dealt_parts(Y, capacities, rng, 2)
    assert_array_equal(np.bincount(parts), capacities)


# --- exchanging ----------------------------------------------------------------


def unevenness(Y, parts, capacities):
    """Chi-squared: squared differences from the shares, over the shares."""
    total = 0.0
    for part, capacity in enumerate(capacities):
        share = Y.sum(axis=0) * capacity / len(Y)
        found = Y[parts == part].sum(axis=0)
        total += ((found - share)[share > 0] ** 2 / share[share > 0]).sum()
    return total


def columns_of(Y, order, capacities):
    """Labels, and pairs of which the smallest part has a share of half a row."""
    if order == 1:
        return Y
    pairs = [Y[:, a] * Y[:, b] for a, b in combinations(range(Y.shape[1]), 2)]
    least = min(capacities) / len(Y)
    return np.column_stack([Y, *(pair for pair in pairs if pair.sum() * least >= 0.5)])


@settings(max_examples=80)
@given(
    Y=hnp.arrays(
        np.int64,
        st.tuples(st.integers(1, 25), st.integers(1, 5)),
        elements=st.integers(0, 1),
    ),
    n_parts=st.integers(1, 4),
    order=st.sampled_from([1, 2]),
    seed=st.integers(0, 1000),
)
def test_exchanging_is_never_less_even_and_keeps_sizes(Y, n_parts, order, seed):
    capacities = np.bincount(
        np.random.default_rng(seed).integers(n_parts, size=len(Y)), minlength=n_parts
    )
    before, after = (
        divide(sparse.csr_array(Y == 1), capacities, np.random.default_rng(seed), order)
        for divide in (dealt_parts, stratified_parts)
    )
    assert_array_equal(np.bincount(after, minlength=n_parts), capacities)
    columns = columns_of(Y, order, capacities)
    dealt = unevenness(columns, before, capacities)
    exchanged = unevenness(columns, after, capacities)
    assert exchanged <= dealt + 1e-9
    if not np.array_equal(before, after):
        assert exchanged < dealt


@pytest.mark.parametrize("order", [1, 2])
def test_no_swap_of_two_rows_is_left_that_helps_much(order):
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 6)) < 0.3).astype(np.int64)
    capacities = np.array([28, 12])
    columns = columns_of(Y, order, capacities)
    parts = stratified_parts(sparse.csr_array(Y == 1), capacities, rng, order)
    reached = unevenness(columns, parts, capacities)
    swapped = []
    for a, b in combinations(range(40), 2):
        other = parts.copy()
        other[[a, b]] = other[[b, a]]
        swapped.append(unevenness(columns, other, capacities))
    dealt = dealt_parts(
        sparse.csr_array(Y == 1), capacities, np.random.default_rng(0), order
    )
    gain = unevenness(columns, dealt, capacities) - reached
    assert reached - min(swapped) <= 0.2 * gain


def test_a_pair_of_which_there_is_too_little_does_not_hold_its_row():
    # Every row has a pair of its own; none must keep its row out of the small part.
    n = 60
    Y = sparse.csr_array(
        np.hstack([np.eye(n, dtype=bool), np.ones((n, 1), dtype=bool)])
    )
    capacities = np.array([42, 18])
    tested = np.zeros(n)
    for seed in range(40):
        tested += stratified_parts(Y, capacities, np.random.default_rng(seed), 2)
    assert tested.min() > 0


@pytest.mark.parametrize("shape, n_parts", [((600, 600), 2), ((40, 400), 2000)])
def test_too_many_pairs_are_refused(shape, n_parts):
    Y = sparse.csr_array(np.ones(shape, dtype=bool))
    capacities = np.bincount(np.arange(shape[0]) % n_parts, minlength=n_parts)
    with pytest.raises(ValueError, match="use order=1"):
        stratified_parts(Y, capacities, None, 2)

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.lebesgue import dominance_depth, fitness_order, lebesgue_contributions

NAN, INF = np.nan, np.inf
TIES = ["depth", "layer", None]

populations = st.tuples(st.integers(0, 15), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(
        np.float64,
        shape,
        elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, INF, NAN]),
    )
)

WORKED = [
    [0.75, 0.75],  # 0: dominated, layer 2
    [0.25, 0.50],  # 1: front, 0.5 · 0.5 less 0.25 · 0.375 shadowed by 3
    [0.75, 0.50],  # 2: dominated, layer 1, a copy there
    [0.50, 0.625],  # 3: dominated, layer 1, alone there on 0.25 · 0.375
    [0.75, 0.25],  # 4: front, 0.25 · 0.25
    [0.75, 0.50],  # 5: the copy of 2
]


def slow_order(slow, L, ties):
    """Order rows by tuples, with contributions and depth of the slow twin."""
    unit = [[1.0] * L.shape[1]]
    whole = [i for i in range(len(L)) if not np.isnan(L[i]).any()]
    depth = dict(zip(whole, slow.depth(L[whole]), strict=True))
    contribution = dict(enumerate(slow.contributions(L, unit)))
    within = {}
    for layer in set(depth.values()):
        members = [i for i in whole if depth[i] == layer]
        within.update(zip(members, slow.contributions(L[members], unit), strict=True))
    keys = {
        None: lambda i: (-contribution[i], i),
        "depth": lambda i: (-contribution[i], depth[i], -within[i], i),
        "layer": lambda i: (depth[i], -within[i], i),
    }
    return sorted(whole, key=keys[ties]) + [i for i in range(len(L)) if i not in whole]


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        (None, [1, 4, 0, 2, 3, 5]),
        ("depth", [1, 4, 3, 2, 5, 0]),
        ("layer", [1, 4, 3, 2, 5, 0]),
    ],
)
def test_worked_example(ties, expected):
    order = fitness_order(WORKED, ties=ties)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, expected)


def test_members_without_contribution_follow_by_depth():
    # Copies on the front contribute nothing, a member outside the box neither.
    L = [[0.5, 0.5], [0.0, 2.0], [0.5, 0.25], [0.25, 0.5], [0.25, 0.5]]
    np.testing.assert_array_equal(fitness_order(L, ties=None), [2, 0, 1, 3, 4])
    np.testing.assert_array_equal(fitness_order(L, ties="depth"), [2, 1, 3, 4, 0])


def test_layer_overlooks_the_shadow_of_other_layers():
    # 2 leaves 0 with 0.5 · 0.0625, less than the 0.25 · 0.25 of 1; without 2 member
    # 0 has 0.5 · 0.5.
    L = [[0.25, 0.5], [0.75, 0.25], [0.25, 0.5625]]
    np.testing.assert_array_equal(fitness_order(L, ties=None), [1, 0, 2])
    np.testing.assert_array_equal(fitness_order(L, ties="depth"), [1, 0, 2])
    np.testing.assert_array_equal(fitness_order(L, ties="layer"), [0, 1, 2])


def test_layers_are_measured_alone():
    # 1 and 2 are dominated by 0 and share a layer, in which 2 covers more alone.
    L = [[0.0, 0.0], [0.75, 0.5], [0.25, 0.625]]
    np.testing.assert_array_equal(fitness_order(L, ties=None), [0, 1, 2])
    np.testing.assert_array_equal(fitness_order(L, ties="depth"), [0, 2, 1])


@given(L=populations)
@pytest.mark.parametrize("ties", TIES)
def test_equals_slow_twin(slow, ties, L):
    np.testing.assert_array_equal(
        fitness_order(L, ties=ties), slow_order(slow, L, ties)
    )


@given(L=populations)
@pytest.mark.parametrize("method", ["exact", "monte_carlo"])
def test_tie_rule_never_reorders_different_contributions(method, L):
    settings = {"method": method, "n_samples": 50, "random_state": 0}
    contributions = lebesgue_contributions(L, **settings)
    for ties in ("depth", None):
        order = fitness_order(L, ties=ties, **settings)
        whole = order[~np.isnan(L[order]).any(axis=1)]
        assert (np.diff(contributions[whole]) <= 0).all()


@given(L=populations)
def test_tie_rule_refines_by_depth(L):
    contributions = lebesgue_contributions(L)
    depth = dominance_depth(L)
    order = fitness_order(L)
    order = order[~np.isnan(L[order]).any(axis=1)]
    for a, b in pairwise(order):
        assert contributions[a] > contributions[b] or depth[a] <= depth[b]


@given(L=populations)
@pytest.mark.parametrize("ties", TIES)
def test_nan_rows_come_last_by_index(ties, L):
    order = fitness_order(L, ties=ties)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(L)))
    nan = np.flatnonzero(np.isnan(L).any(axis=1))
    np.testing.assert_array_equal(order[len(L) - len(nan) :], nan)


@given(L=populations, seed=st.integers(0, 100))
@pytest.mark.parametrize("ties", TIES)
def test_permutation_of_members_keeps_the_ranked_losses(ties, L, seed):
    permuted = np.random.default_rng(seed).permutation(L)

    def ranked_contributions(L):
        whole = L[~np.isnan(L).any(axis=1)]
        order = fitness_order(whole, ties=ties)
        return lebesgue_contributions(whole)[order], dominance_depth(whole)[order]

    contributions, depth = ranked_contributions(L)
    permuted_contributions, permuted_depth = ranked_contributions(permuted)
    if ties != "layer":
        np.testing.assert_array_equal(contributions, permuted_contributions)
    if ties is not None:
        np.testing.assert_array_equal(depth, permuted_depth)


def test_known_contributions_are_used():
    L = [[0.5, 0.25], [0.25, 0.5], [0.75, 0.75], [0.5, 0.5]]
    np.testing.assert_array_equal(
        fitness_order(L, contributions=[0, 0, 0, 1.0]), [3, 0, 1, 2]
    )
    np.testing.assert_array_equal(
        fitness_order(L, ties=None, contributions=[0, 0.5, 0, 1.0]), [3, 1, 0, 2]
    )
    np.testing.assert_array_equal(
        fitness_order(L, contributions=lebesgue_contributions(L)), fitness_order(L)
    )


def test_nan_rows_come_last_whatever_their_known_contribution():
    L = [[NAN, 0.5], [0.25, 0.5]]
    np.testing.assert_array_equal(fitness_order(L, contributions=[9.0, 0.1]), [1, 0])


def test_reference_decides():
    L = [[0.2, 0.5], [0.5, 0.1]]
    np.testing.assert_array_equal(fitness_order(L), [1, 0])
    np.testing.assert_array_equal(fitness_order(L, reference=[0.5, 1.0]), [0, 1])
    np.testing.assert_array_equal(
        fitness_order(L, reference=[[0.5, 1.0], [0.4, 2.0]]), [0, 1]
    )


def test_monte_carlo_repeats_with_its_seed():
    L = np.random.default_rng(0).random((20, 3))
    for ties in TIES:
        a, b = (
            fitness_order(L, ties=ties, method="monte_carlo", random_state=3)
            for _ in range(2)
        )
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("ties", TIES)
def test_empty_population(ties):
    order = fitness_order(np.empty((0, 3)), ties=ties)
    assert order.shape == (0,)
    assert order.dtype == np.int64


def test_inputs_are_left_alone(immutable_call):
    L = np.random.default_rng(0).random((20, 3)).round(1)
    for ties in TIES:
        immutable_call(
            fitness_order, L, ties=ties, contributions=lebesgue_contributions(L)
        )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ties": "rank"}, ValueError, "ties must be one of 'depth', 'layer', None"),
        ({"ties": False}, ValueError, "ties must be one of.*Got False"),
        ({"contributions": [1.0]}, ValueError, r"contributions must have shape \(2,\)"),
        ({"contributions": [[1.0, 2.0]]}, ValueError, r"Got shape \(1, 2\)"),
        ({"contributions": [1.0, NAN]}, ValueError, "contributions must not hold NaN"),
        ({"contributions": ["a", "b"]}, TypeError, "contributions must hold real"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        fitness_order([[0.5, 0.5], [0.25, 0.75]], **arguments)


@pytest.mark.parametrize("ties", TIES)
def test_auto_orders_as_what_it_stands_for(ties, caplog):
    rng = np.random.default_rng(0)
    few, many = rng.random((30, 4)), rng.random((300, 4))
    with caplog.at_level("INFO", logger="clml"):
        found = fitness_order(few, ties=ties, method="auto")
    assert not caplog.records
    np.testing.assert_array_equal(found, fitness_order(few, ties=ties))
    with caplog.at_level("INFO", logger="clml"):
        found = fitness_order(many, ties=ties, method="auto", random_state=0)
    assert len(caplog.records) == 1
    sampled = fitness_order(many, ties=ties, method="monte_carlo", random_state=0)
    np.testing.assert_array_equal(found, sampled)

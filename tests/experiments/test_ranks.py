import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.experiments import (
    PAPER_RESULTS,
    bonferroni_dunn_difference,
    mean_ranks,
    nemenyi_difference,
    rank_groups,
)

NAN = float("nan")

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 6)),
    elements=st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4]),
)


def test_worked_example():
    # Ranks 1, 2, 3 and, with a tie of the first two, 1.5, 1.5, 3.
    table = [[0.1, 0.2, 0.3], [0.2, 0.2, 0.9]]
    np.testing.assert_array_equal(mean_ranks(table), [1.25, 1.75, 3.0])


@given(tables)
def test_ranks_add_up(table):
    k = table.shape[1]
    ranks = mean_ranks(table)
    assert ranks.sum() == pytest.approx(k * (k + 1) / 2)
    np.testing.assert_allclose(mean_ranks(-table), k + 1 - ranks)


def test_aggregate_ranks_of_the_paper():
    measures = (
        PAPER_RESULTS.hamming,
        PAPER_RESULTS.lrap,
        PAPER_RESULTS.micro_f1,
        -PAPER_RESULTS.contribution,
        PAPER_RESULTS.geometric_mean,
    )
    found = np.mean([mean_ranks(table) for table in measures], axis=0)
    expected = {
        "GNB-BR": 6.01,
        "GNB-CC": 5.18,
        "MLkNN": 3.91,
        "C2AE": 4.54,
        "CLIF": 3.01,
        "DELA": 2.83,  # printed as 2.90
        "CLML": 2.51,
    }
    assert dict(zip(PAPER_RESULTS.methods, found.round(2), strict=True)) == expected
    others = [i for i, name in enumerate(PAPER_RESULTS.methods) if name != "DELA"]
    np.testing.assert_allclose(
        found[others], PAPER_RESULTS.aggregate_ranks[others], atol=0.012
    )


# J. Demšar (2006), Table 5: quantiles for 2 to 10 methods at 0.05.
NEMENYI = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
DUNN = [1.960, 2.241, 2.394, 2.498, 2.576, 2.638, 2.690, 2.724, 2.773]


@pytest.mark.parametrize("n_methods", range(2, 11))
def test_critical_differences_are_those_of_the_textbook(n_methods):
    deviation = np.sqrt(n_methods * (n_methods + 1) / (6 * 12))
    nemenyi = nemenyi_difference(n_methods, 12) / deviation
    assert nemenyi == pytest.approx(NEMENYI[n_methods - 2], abs=0.0011)
    # The table's 2.724 for nine methods is a slip: 2.734.
    dunn = bonferroni_dunn_difference(n_methods, 12) / deviation
    assert dunn == pytest.approx(DUNN[n_methods - 2], abs=0.0105)


def test_critical_difference_of_the_paper():
    found = bonferroni_dunn_difference(7, 9)
    assert found == pytest.approx(PAPER_RESULTS.critical_difference, abs=0.001)
    assert np.sqrt(7 * 8 / (6 * 9)) * 2.638 == pytest.approx(2.686, abs=0.0005)


@pytest.mark.parametrize(
    ("ranks", "difference", "expected"),
    [
        ([1.0, 2.0, 3.0], 0.5, []),
        ([1.0, 2.0, 3.0], 9.0, [(0, 1, 2)]),
        ([3.0, 1.0, 2.0], 1.5, [(1, 2), (2, 0)]),
        ([2.0, 2.0], 0.1, [(0, 1)]),
        ([1.0, 2.0], 1.0, []),  # exactly as far apart as it takes
        ([], 1.0, []),
    ],
)
def test_groups(ranks, difference, expected):
    assert rank_groups(ranks, difference) == expected


@given(st.lists(st.floats(1, 8), min_size=2, max_size=8), st.floats(0.1, 5))
def test_groups_join_exactly_the_pairs_that_are_near(ranks, difference):
    groups = rank_groups(ranks, difference)
    for a in range(len(ranks)):
        for b in range(a):
            near = abs(ranks[a] - ranks[b]) < difference
            assert near == any({a, b} <= set(group) for group in groups)
    for group in groups:
        assert not any(set(group) < set(other) for other in groups)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ([[0.1, NAN], [0.1, 0.2]], ValueError, r"NaN in rows \[0\].*isnan\(table\)"),
        ([0.1, 0.2], ValueError, r"shape \(n_datasets, n_methods\).*got shape \(2,\)"),
        ([[0.1], [0.2]], ValueError, "2 methods, got shape"),
        (np.empty((0, 3)), ValueError, "at least 1 dataset"),
        ([["a", "b"]], TypeError, "table must hold numbers"),
    ],
)
def test_bad_tables(table, error, message):
    with pytest.raises(error, match=message):
        mean_ranks(table)


@pytest.mark.parametrize("function", [nemenyi_difference, bonferroni_dunn_difference])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1, 9), ValueError, "n_methods must be at least 2, got 1"),
        ((7, 0), ValueError, "n_datasets must be at least 1, got 0"),
        ((7, 9, 1.0), ValueError, r"alpha must lie between 0 and 1, got 1\.0"),
        ((7, 9, "a"), TypeError, "alpha must be a number"),
    ],
)
def test_bad_arguments(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(*arguments)


def test_bad_groups():
    with pytest.raises(ValueError, match="mean_ranks must be a list of numbers"):
        rank_groups([1.0, NAN], 1.0)

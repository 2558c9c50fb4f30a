import numpy as np
import pytest
import scikit_posthocs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from clml.experiments import (
    PAPER_RESULTS,
    bonferroni_dunn,
    holm,
    nemenyi,
    wilcoxon_holm,
)

CLML = PAPER_RESULTS.methods.index("CLML")

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 7), st.integers(2, 3)),
    elements=st.integers(0, 100).map(lambda n: n / 100),
)


def test_bonferroni_dunn_worked_example():
    # Mean ranks 1, 2, 3 on ten datasets; 2.2414 · sqrt(12 / 60) = 1.0024.
    test = bonferroni_dunn([[0.1, 0.2, 0.3]] * 10)
    np.testing.assert_array_equal(test.mean_ranks, [1, 2, 3])
    assert test.critical_difference == pytest.approx(1.0024, abs=1e-4)
    np.testing.assert_array_equal(test.significant, [False, False, True])
    assert test.control == 0


def test_bonferroni_dunn_of_the_paper():
    test = bonferroni_dunn(PAPER_RESULTS.geometric_mean, control=CLML)
    assert test.critical_difference == pytest.approx(2.686, abs=0.001)
    different = np.flatnonzero(test.significant)
    assert [PAPER_RESULTS.methods[i] for i in different] == ["GNB-BR", "GNB-CC"]
    again = bonferroni_dunn(PAPER_RESULTS.geometric_mean, control=-1)
    assert again.control == CLML


def test_nemenyi_worked_example():
    test = nemenyi([[0.1, 0.2, 0.3]] * 6)
    # 2.3437 · sqrt(12 / 36) = 1.353.
    assert test.critical_difference == pytest.approx(1.353, abs=1e-3)
    assert test.groups == [(0, 1), (1, 2)]
    np.testing.assert_array_equal(
        test.significant,
        [[False, False, True], [False, False, False], [True, False, False]],
    )


@pytest.mark.parametrize("measure", ["hamming", "lrap", "geometric_mean"])
def test_nemenyi_agrees_with_scikit_posthocs(measure):
    table = PAPER_RESULTS.table(measure)
    expected = scikit_posthocs.posthoc_nemenyi_friedman(np.array(table)).to_numpy()
    test = nemenyi(table)
    np.testing.assert_allclose(test.pvalues, expected, atol=1e-6)
    np.testing.assert_array_equal(test.significant, expected < 0.05)


def test_holm_worked_example():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    np.testing.assert_array_equal(holm([0.9, 0.8]), [1, 1])
    assert len(holm([])) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_properties(pvalues):
    corrected = holm(pvalues)
    assert (corrected >= pvalues).all()
    assert corrected.max() <= 1
    order = np.argsort(pvalues, kind="stable")
    assert (np.diff(corrected[order]) >= 0).all()
    assert corrected.min() <= min(pvalues) * len(pvalues) + 1e-15


def test_wilcoxon_worked_example():
    # Six wins in six: the smallest p-value is 2 / 2^6.
    first = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    table = np.stack([first, 1.1 * first], axis=1)
    tests = wilcoxon_holm(table)
    assert tests.pairs.tolist() == [[0, 1]]
    assert tests.pvalues == pytest.approx([2 / 64])
    np.testing.assert_array_equal(tests.corrected, tests.pvalues)
    assert tests.effect == pytest.approx([-1])
    assert tests.wins.tolist() == [[6, 0, 0]]
    assert tests.significant.tolist() == [True]


def test_wilcoxon_agrees_with_scikit_posthocs():
    table = np.array(PAPER_RESULTS.geometric_mean)
    tests = wilcoxon_holm(table)
    expected = scikit_posthocs.posthoc_wilcoxon(
        table.T, p_adjust="holm", zero_method="wilcox"
    ).to_numpy()
    assert len(tests.pairs) == 21
    found = [expected[a, b] for a, b in tests.pairs]
    np.testing.assert_allclose(tests.corrected, found, atol=1e-12)


def test_wilcoxon_of_the_paper():
    table = PAPER_RESULTS.geometric_mean
    # 21 · 2 / 2^9 is above 0.05: no pair of all can be significant.
    assert not wilcoxon_holm(table).significant.any()
    tests = wilcoxon_holm(table, control=CLML)
    better = [PAPER_RESULTS.methods[b] for _, b in tests.pairs[tests.significant]]
    assert better == ["GNB-BR", "GNB-CC"]
    assert (tests.effect[tests.significant] < 0).all()


def test_equal_methods():
    tests = wilcoxon_holm([[0.1, 0.1], [0.2, 0.2]])
    assert tests.pvalues.tolist() == [1.0]
    assert tests.effect.tolist() == [0.0]
    assert tests.wins.tolist() == [[0, 2, 0]]


def test_equal_differences_are_ties_whatever_their_last_digits():
    first = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    table = np.stack([first, first - [0.1, 0.1, 0.1, 0.1, -0.1, -0.1, -0.1, 0.2]], 1)
    whole = np.stack([first * 10, [0, 1, 2, 3, 6, 7, 8, 6]], axis=1)
    assert wilcoxon_holm(table).pvalues == wilcoxon_holm(np.round(whole)).pvalues


@given(tables)
@settings(max_examples=20)
def test_wilcoxon_properties(table):
    tests = wilcoxon_holm(table)
    assert (tests.wins.sum(axis=1) == len(table)).all()
    assert ((tests.pvalues > 0) & (tests.pvalues <= 1)).all()
    mirrored = wilcoxon_holm(1 - table)
    np.testing.assert_allclose(mirrored.effect, -tests.effect, atol=1e-12)
    np.testing.assert_allclose(mirrored.pvalues, tests.pvalues, atol=1e-12)


def test_wilcoxon_agrees_with_scipy_on_whole_numbers():
    rng = np.random.default_rng(0)
    table = rng.permutation(100).reshape(20, 5).astype(float)
    tests = wilcoxon_holm(table)
    for (a, b), p in zip(tests.pairs, tests.pvalues, strict=True):
        assert p == pytest.approx(stats.wilcoxon(table[:, a], table[:, b]).pvalue)


TABLE = [[0.1, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bonferroni_dunn(TABLE, control=2), ValueError, "2 columns .* got 2"),
        (lambda: bonferroni_dunn(TABLE, control="a"), TypeError, "control must be"),
        (lambda: bonferroni_dunn(TABLE, control=True), TypeError, "got True"),
        (lambda: bonferroni_dunn(TABLE, alpha=2), ValueError, "alpha must lie"),
        (lambda: nemenyi([[0.1, np.nan]]), ValueError, r"NaN in rows \[0\]"),
        (lambda: nemenyi(TABLE, alpha=0), ValueError, "alpha must lie"),
        (lambda: wilcoxon_holm(TABLE, control=-3), ValueError, "got -3"),
        (lambda: wilcoxon_holm([[1, np.inf]]), ValueError, "finite losses"),
        (lambda: wilcoxon_holm(TABLE, alpha=None), TypeError, "alpha must be"),
        (lambda: holm([1.5]), ValueError, r"numbers in \[0, 1\]"),
        (lambda: holm([np.nan]), ValueError, "pvalues must be"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_ties_are_left_out_before_the_test_is_chosen():
    differences = np.r_[np.arange(1, 9) / 100, np.zeros(60)]
    table = np.column_stack([np.full(68, 0.5), 0.5 + differences])
    tests = wilcoxon_holm(table)
    # Eight datasets that all point one way, by the exact distribution.
    assert tests.pvalues.tolist() == [2 / 2**8]

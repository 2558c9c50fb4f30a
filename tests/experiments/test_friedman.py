import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from clml.experiments import PAPER_RESULTS, friedman_test

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(3, 6)),
    elements=st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
)


def test_worked_example():
    # Every dataset ranks the three alike: 12·4 / (3·4) · (1 + 4 + 9 − 12) = 8.
    test = friedman_test([[0.1, 0.2, 0.3]] * 4)
    assert test.statistic == pytest.approx(8)
    assert test.df == 2
    assert test.pvalue == pytest.approx(np.exp(-4))  # chi-square of 2 d.o.f.
    assert test.critical_value == pytest.approx(-2 * np.log(0.05))
    np.testing.assert_array_equal(test.mean_ranks, [1, 2, 3])
    assert test.significant
    assert test.iman_davenport == np.inf
    assert test.iman_davenport_pvalue == 0


def test_textbook_example():
    # J. Demšar (2006), section 3.2.2: mean ranks 3.143, 2.000, 2.893, 1.964 of four
    # methods on 14 datasets give 9.28. The last but one row is printed with two equal
    # numbers and different ranks.
    table = 1 - np.array(
        [
            [0.763, 0.768, 0.771, 0.798],
            [0.599, 0.591, 0.590, 0.569],
            [0.954, 0.971, 0.968, 0.967],
            [0.628, 0.661, 0.654, 0.657],
            [0.882, 0.888, 0.886, 0.898],
            [0.936, 0.931, 0.916, 0.931],
            [0.661, 0.668, 0.609, 0.685],
            [0.583, 0.583, 0.563, 0.625],
            [0.775, 0.838, 0.866, 0.875],
            [1.000, 1.000, 1.000, 1.000],
            [0.940, 0.962, 0.965, 0.962],
            [0.619, 0.666, 0.614, 0.669],
            [0.972, 0.981, 0.975, 0.9749],
            [0.957, 0.978, 0.946, 0.970],
        ]
    )
    test = friedman_test(table)
    np.testing.assert_allclose(
        test.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=0.0005
    )
    # The textbook does not correct for ties: here one whole row and some pairs.
    n, k = table.shape
    plain = 12 * n / (k * (k + 1)) * ((test.mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert plain == pytest.approx(9.28, abs=0.005)
    assert test.statistic > plain
    assert test.significant


@given(tables)
def test_agrees_with_scipy(table):
    test = friedman_test(table)
    if (table == table[:, :1]).all():
        assert (test.statistic, test.pvalue) == (0.0, 1.0)
        return
    expected = stats.friedmanchisquare(*table.T)
    assert test.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert test.pvalue == pytest.approx(expected.pvalue, abs=1e-9)


@given(tables)
def test_transposed_is_the_test_of_the_other_table(table):
    a, b = friedman_test(table, transposed=True), friedman_test(table.T)
    assert a.statistic == b.statistic
    assert a.df == len(table) - 1
    np.testing.assert_array_equal(a.mean_ranks, b.mean_ranks)


@given(tables)
def test_larger_is_better_gives_the_same_statistic(table):
    found = friedman_test(-table).statistic
    assert found == pytest.approx(friedman_test(table).statistic, abs=1e-9)


CORRECTED = {
    "hamming": 30.65,
    "micro_f1": 19.95,
    "lrap": 24.38,
    "geometric_mean": 25.48,
    "contribution": 16.21,
}


@pytest.mark.parametrize("measure", CORRECTED)
def test_both_readings_of_the_paper(measure):
    table = PAPER_RESULTS.table(measure)
    if measure == "contribution":
        table = -table
    methods = friedman_test(table)
    assert methods.statistic == pytest.approx(CORRECTED[measure], abs=0.005)
    assert methods.critical_value == pytest.approx(12.59, abs=0.005)
    assert methods.significant
    printed = PAPER_RESULTS.friedman[measure]
    datasets = friedman_test(table, transposed=True)
    # Hamming alone is a little off, whichever way ties are treated.
    tolerance = 0.08 if measure == "hamming" else 0.006
    assert datasets.statistic == pytest.approx(printed.statistic, abs=tolerance)
    assert datasets.critical_value == pytest.approx(printed.critical_value, abs=0.005)
    if measure == "hamming":
        assert datasets.statistic == pytest.approx(35.69, abs=0.005)


def test_two_methods():
    # Four to nothing: 4 · (1.5 − 1)² · 2 / 0.5 = 4.
    assert friedman_test([[1, 2]] * 4).statistic == pytest.approx(4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1, 2, 3]],), ValueError, "at least 2 datasets, got 1"),
        (([[1, np.nan], [1, 2]],), ValueError, r"To leave these datasets out"),
        (([[1, 2], [1, 2]], "yes"), TypeError, "transposed must be a bool, got 'yes'"),
        (([[1, 2], [1, 2]], False, 0), ValueError, "alpha must lie between 0 and 1"),
        (([[1, 2], [1, 2]], False, True), TypeError, "alpha must be a number"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        friedman_test(*arguments)

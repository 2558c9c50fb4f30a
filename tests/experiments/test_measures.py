import numpy as np
import pytest

from clml.experiments import (
    PAPER_RESULTS,
    Results,
    label_dispersion,
    measure_table,
)
from clml.experiments.measures import (
    collect,
    contributions_of,
    loss_geometric_mean,
    normalise,
    ranked_table,
    whole_cells,
)

NAN = float("nan")
NAMES = ("hamming", "lrap", "micro_f1")


def record(dataset, method, split, losses, status="done"):
    values = dict(zip(NAMES, losses, strict=True)) if losses else None
    return {
        "key": f"{dataset}-{method}-{split}",
        "dataset": dataset,
        "method": method,
        "split": split,
        "seed": 0,
        "status": status,
        "reason": None,
        "losses": values and {"train": values, "validation": None, "test": values},
    }


@pytest.fixture
def results():
    plan = {"datasets": ["a", "b"], "methods": ["M", "N"], "losses": list(NAMES)}
    return Results(
        plan,
        [
            record("a", "M", 0, (0.1, 0.2, 0.4)),  # geometric mean 0.2
            record("a", "M", 1, (0.2, 0.4, 0.8)),  # 0.4
            record("a", "N", 0, (0.5, 0.5, 0.5)),
            record("b", "M", 0, (0.0, 0.5, 0.5)),  # 0
            record("b", "N", 0, None, "failed"),
        ],
    )


def test_geometric_mean_of_a_cell_then_mean_over_splits(results):
    np.testing.assert_allclose(
        measure_table(results, "geometric_mean"), [[0.3, 0.5], [0, NAN]]
    )


def test_losses_are_means_over_splits(results):
    np.testing.assert_allclose(measure_table(results, "lrap"), [[0.3, 0.5], [0.5, NAN]])
    np.testing.assert_allclose(measure_table(results, "lrap", ["N"]), [[0.5], [NAN]])


def test_contributions_are_of_mean_losses(results):
    results.records.append(record("a", "N", 1, (0.5, 0.5, 0.5)))
    # On a: M at (0.15, 0.3, 0.6), N at (0.5, 0.5, 0.5), together (0.5, 0.5, 0.6).
    both = 0.5 * 0.5 * 0.4
    expected = [[0.85 * 0.7 * 0.4 - both, 0.5**3 - both], [1 * 0.5 * 0.5, NAN]]
    found = measure_table(results, "contribution")
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(ranked_table(results, "contribution"), -found)
    np.testing.assert_allclose(
        measure_table(results, "normalised_contribution")[1], [1, NAN]
    )
    # Alone, N covers all that it covers.
    alone = measure_table(results, "contribution", ["N"])
    np.testing.assert_allclose(alone, [[0.125], [NAN]])


def test_a_method_without_all_splits_is_not_compared(results):
    # N has one of the two splits of a: its mean is over other rows than that of M.
    np.testing.assert_array_equal(whole_cells(results), [[True, False], [True, False]])
    np.testing.assert_allclose(ranked_table(results, "lrap"), [[0.3, NAN], [0.5, NAN]])
    np.testing.assert_allclose(measure_table(results, "lrap")[0], [0.3, 0.5])
    np.testing.assert_allclose(
        measure_table(results, "contribution")[0], [0.85 * 0.7 * 0.4, NAN]
    )
    assert whole_cells(PAPER_RESULTS).all()


def test_the_papers_measures_are_the_printed_ones():
    for measure in ("hamming", "contribution", "normalised_contribution"):
        np.testing.assert_array_equal(
            measure_table(PAPER_RESULTS, measure), PAPER_RESULTS.table(measure)
        )
    fewer = measure_table(PAPER_RESULTS, "normalised_contribution", ["DELA", "CLML"])
    np.testing.assert_allclose(fewer.sum(axis=1), 1)


def test_contributions_with_nobody_there():
    found = contributions_of([[[NAN, 0.1], [0.2, NAN]]])
    np.testing.assert_array_equal(found, [[NAN, NAN]])


def test_normalise_leaves_gaps_and_zeros():
    found = normalise([[0.1, NAN, 0.3], [0.0, 0.0, NAN]])
    np.testing.assert_allclose(found, [[0.25, NAN, 0.75], [0, 0, NAN]])


def test_geometric_mean_of_a_zero():
    np.testing.assert_allclose(loss_geometric_mean([0.0, 0.5, 0.5]), 0)
    np.testing.assert_allclose(loss_geometric_mean([[0.1, 0.4]]), [0.2])


def test_unknown_method(results):
    with pytest.raises(ValueError, match=r"methods must be among .* got \['X'\]"):
        measure_table(results, "hamming", ["M", "X"])


def test_label_dispersion_worked_example():
    # Counts 12, 3, 0: ratios 1 and 4 in the three rows that have both.
    Y = np.zeros((13, 3), dtype=int)
    Y[:12, 0] = 1
    Y[:3, 1] = 1
    found = label_dispersion(Y)
    assert found.rare_share == pytest.approx(2 / 3)
    assert (found.mean_imbalance, found.max_imbalance) == (2.5, 4.0)
    assert found.concurrence == pytest.approx(3 / 13 * (1 - 2 / 2.5))


def test_label_dispersion_of_sparse_labels():
    from scipy import sparse

    rng = np.random.default_rng(0)
    Y = (rng.random((40, 5)) < 0.3).astype(np.int64)
    np.testing.assert_allclose(
        label_dispersion(sparse.csr_array(Y)), label_dispersion(Y)
    )


def test_label_dispersion_without_any_label():
    found = label_dispersion(np.zeros((3, 2), dtype=int))
    assert found.rare_share == 1
    assert np.isnan(found.mean_imbalance)
    assert np.isnan(found.max_imbalance)
    assert found.concurrence == 0


@pytest.mark.parametrize("Y", [np.zeros((0, 2)), np.zeros(3), np.zeros((3, 0))])
def test_label_dispersion_of_nothing(Y):
    with pytest.raises(ValueError, match="Y must have shape"):
        label_dispersion(Y)


def test_means_do_not_depend_on_the_order_of_completion():
    plan = {"datasets": ["a"], "methods": ["M", "N"], "losses": list(NAMES)}
    values = [0.1, 0.2, 0.3, 0.7, 0.9]
    orders = {"M": range(5), "N": (3, 1, 4, 0, 2)}
    records = [
        record("a", method, split, (values[split],) * 3)
        for method, order in orders.items()
        for split in order
    ]
    results = Results(plan, records)
    cells = collect(results, lambda r: r["losses"]["test"]["lrap"])
    assert cells == {("a", "M"): values, ("a", "N"): values}
    found = measure_table(results, "geometric_mean")
    assert found[0, 0] == found[0, 1]


def test_the_last_bits_decide_no_rank():
    plan = {"datasets": ["a"], "methods": ["M", "N"], "losses": list(NAMES)}
    above = np.nextafter(0.3, 1)
    records = [
        record("a", "M", 0, (0.3, 0.3, 0.3)),
        record("a", "N", 0, (above, 0.3, 0.3)),
    ]
    ((one, other),) = ranked_table(Results(plan, records), "hamming")
    assert one == other == 0.3

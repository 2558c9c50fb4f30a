import csv
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

import clml.experiments
from clml.evolution import RankOneCMA
from clml.experiments import PAPER_RESULTS, friedman_test
from clml.lebesgue import dominates, lebesgue_contributions
from clml.losses import loss_values

MEASURES = (
    "hamming",
    "micro_f1",
    "lrap",
    "contribution",
    "normalised_contribution",
    "geometric_mean",
)


@pytest.mark.parametrize(
    ("dataset", "method", "expected"),
    [
        ("CAL500", "GNB-BR", (0.547, 0.713, 0.647, 0, 0, 0.631976)),
        ("emotions", "CLML", (0.205, 0.328, 0.224, 0.021444, 0.808736, 0.246669)),
        ("mediamill", "CLIF", (0.027, 0.364, 0.216, 0.035504, 1, 0.128975)),
    ],
)
def test_printed_numbers_are_in_their_places(dataset, method, expected):
    row = PAPER_RESULTS.datasets.index(dataset)
    column = PAPER_RESULTS.methods.index(method)
    found = [getattr(PAPER_RESULTS, measure)[row, column] for measure in MEASURES]
    assert found == list(expected)


def test_the_file_beside_the_tests_says_the_same():
    with (Path(__file__).parents[1] / "paper_results.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found = PAPER_RESULTS.value(row["dataset"], row["method"], "hamming")
            assert found == float(row["hamming_loss"])


def test_shapes_and_names():
    assert len(PAPER_RESULTS.datasets) == 9
    assert PAPER_RESULTS.methods[-1] == "CLML"
    for measure in MEASURES:
        assert PAPER_RESULTS.table(measure).shape == (9, 7)
    assert set(PAPER_RESULTS.dataset_figures) == set(PAPER_RESULTS.datasets)
    assert PAPER_RESULTS.dataset_figures["IMDB-F"].n_instances == 120_900
    assert PAPER_RESULTS.critical_difference == 2.686
    assert repr(PAPER_RESULTS) == "PaperResults(9 datasets, 7 methods)"


def test_printed_statistics_go_by_our_names():
    assert {name: test.statistic for name, test in PAPER_RESULTS.friedman.items()} == {
        "contribution": 2.88,
        "geometric_mean": 21.37,
        "hamming": 35.62,
        "micro_f1": 25.64,
        "lrap": 17.75,
    }
    ranks = dict(zip(PAPER_RESULTS.methods, PAPER_RESULTS.aggregate_ranks, strict=True))
    assert (ranks["CLML"], ranks["DELA"], ranks["GNB-BR"]) == (2.5, 2.9, 6.0)


def test_medians_are_those_of_the_geometric_means():
    np.testing.assert_allclose(
        np.median(PAPER_RESULTS.geometric_mean, axis=0),
        PAPER_RESULTS.geometric_mean_medians,
        atol=0.0005001,
    )


def test_the_second_and_third_loss_are_exchanged_in_print_in_the_ablation_too():
    row = next(r for r in PAPER_RESULTS.ablation if r.dataset == "emotions")
    assert (row.embedding_dim, row.micro_f1, row.lrap) == (20, 0.283, 0.178)
    # With uniform scores this loss is cardinality · ln K: 3.35 on emotions.
    assert row.row_log_loss == pytest.approx(3.4, abs=0.01)
    assert len(PAPER_RESULTS.ablation) == 16


@pytest.mark.parametrize("row", range(9))
def test_contributions_follow_from_the_losses(row):
    losses = np.stack(
        [PAPER_RESULTS.table(name)[row] for name in ("hamming", "lrap", "micro_f1")],
        axis=-1,
    )
    np.testing.assert_allclose(
        lebesgue_contributions(losses), PAPER_RESULTS.contribution[row], atol=0.0012
    )
    np.testing.assert_allclose(
        losses.prod(axis=1) ** (1 / 3), PAPER_RESULTS.geometric_mean[row], atol=0.0008
    )


def test_nothing_can_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        PAPER_RESULTS.hamming[0, 0] = 0
    with pytest.raises(FrozenInstanceError):
        PAPER_RESULTS.hamming = None
    with pytest.raises(TypeError):
        PAPER_RESULTS.friedman["hamming"] = None


def test_datasets_are_found_in_any_case():
    assert PAPER_RESULTS.find_dataset("cal500") == 0
    assert PAPER_RESULTS.find_dataset("imdb-f") == PAPER_RESULTS.datasets.index(
        "IMDB-F"
    )
    assert PAPER_RESULTS.find_dataset("bibtex") is None
    assert np.isnan(PAPER_RESULTS.value("bibtex", "CLML", "hamming"))
    assert np.isnan(PAPER_RESULTS.value("flags", "forest", "hamming"))


def test_unknown_measure():
    with pytest.raises(ValueError, match=r"measure must be one of .* got 'f1'"):
        PAPER_RESULTS.table("f1")


def printed(name):
    folder = Path(clml.experiments.__file__).parent / "paper"
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def impossible_rows(one_minus_f1):
    """Rows whose Hamming loss and micro-F1 no dataset of their density can have.

    They fix the share of correct positive decisions, and the density lies between
    that and that plus the Hamming loss; three printed digits leave some room.
    """
    density = [float(r["cardinality"]) / float(r["K"]) for r in printed("datasets")]
    names = [r["dataset"] for r in printed("datasets")]
    found = []
    for i, dataset in enumerate(PAPER_RESULTS.datasets):
        share = density[[n.lower() for n in names].index(dataset.lower())]
        for j in range(len(PAPER_RESULTS.methods)):
            f1 = 1 - one_minus_f1[i, j]
            if f1 == 1:
                continue
            hamming = PAPER_RESULTS.hamming[i, j]
            hits = f1 / (2 * (1 - f1)) * hamming
            room = 0.002 + 0.0005 * (hits / max(hamming, 1e-3) + 1 / (1 - f1) ** 2 / 2)
            if not hits - room <= share <= hits + hamming + room:
                found.append(dataset)
    return found


def test_columns_in_the_order_of_the_text_contradict_the_datasets():
    assert set(impossible_rows(PAPER_RESULTS.micro_f1)) == {"IMDB-F"}
    as_named = impossible_rows(PAPER_RESULTS.lrap)
    assert len(as_named) >= 15
    assert len(set(as_named)) >= 6


def test_the_fourth_loss_has_the_scale_of_the_log_loss_of_rows():
    # A network that knows nothing: labels times ln K against ln 2.
    for dataset, n_labels, cardinality in (
        ("emotions", 6, 1.869),
        ("CAL500", 174, 26.044),
    ):
        n_rows = 1000
        Y = np.zeros((n_rows, n_labels), dtype=np.int64)
        Y.ravel()[: round(n_rows * cardinality)] = 1
        Y = np.random.default_rng(0).permuted(Y, axis=None)
        log_loss, cross_entropy = loss_values(
            Y, np.zeros(Y.shape), ("row_log_loss", "binary_cross_entropy")
        )
        assert log_loss == pytest.approx(cardinality * np.log(n_labels), rel=1e-3)
        assert cross_entropy == pytest.approx(np.log(2))
        printed = [
            r.row_log_loss for r in PAPER_RESULTS.ablation if r.dataset == dataset
        ]
        # From the value of equal scores to twice it; averaged cross-entropy of 3.2
        # would be four times what knowing nothing costs.
        assert 0.95 * log_loss < min(printed) <= max(printed) < 2 * log_loss
        assert min(printed) > 4 * cross_entropy


def test_a_contribution_of_zero_is_not_being_dominated_by_all():
    yeast = PAPER_RESULTS.datasets.index("yeast")
    losses = np.stack(
        [PAPER_RESULTS.table(name)[yeast] for name in ("hamming", "lrap", "micro_f1")],
        axis=1,
    )
    mlknn = PAPER_RESULTS.methods.index("MLkNN")
    assert PAPER_RESULTS.contribution[yeast, mlknn] == 0
    assert lebesgue_contributions(losses)[mlknn] == 0
    above = [
        method
        for method, vector in zip(PAPER_RESULTS.methods, losses, strict=True)
        if dominates(vector, losses[mlknn])
    ]
    assert above == ["CLML"]


def test_clif_and_clml_do_not_tie_in_hamming_loss():
    ranks = friedman_test(PAPER_RESULTS.hamming).mean_ranks
    by_method = dict(zip(PAPER_RESULTS.methods, ranks.round(2), strict=True))
    assert (by_method["CLIF"], by_method["CLML"]) == (2.56, 2.61)


def test_the_average_of_all_candidates_selects_nothing():
    # Algorithm 1 moves the mean there, the appendix to the weighted best.
    strategy = RankOneCMA(np.ones(6), sigma=0.5, population_size=40, seed=0)
    population = strategy.ask()
    best_first, worst_first = (
        np.argsort(sign * (population**2).sum(axis=1)) for sign in (1, -1)
    )
    averages = [population[order].mean(axis=0) for order in (best_first, worst_first)]
    np.testing.assert_allclose(*averages)
    other = RankOneCMA.from_state(strategy.state())
    other.ask()
    strategy.tell(best_first)
    other.tell(worst_first)
    assert np.linalg.norm(strategy.mean) < np.sqrt(6) < np.linalg.norm(other.mean)


def test_the_sum_of_the_best_candidates_themselves_doubles_the_mean():
    # As the appendix prints it; of their steps it is the update of CMA-ES.
    strategy = RankOneCMA(np.full(50, 3.0), sigma=0.01, seed=0)
    X = strategy.ask()
    weights = np.full(len(X) // 2, 2 / (len(X) // 2 * 2))
    printed = strategy.mean + 1.0 * weights @ X[: len(weights)]
    assert np.linalg.norm(printed) == pytest.approx(2 * np.sqrt(50) * 3.0, rel=0.01)


def test_the_f1_of_rows_and_micro_f1_prefer_different_predictions():
    # One row has four labels, three have one each: the risk of the proof is a mean over
    # rows, in which each counts the same; micro-F1 counts labels.
    Y = np.zeros((4, 4), dtype=int)
    Y[0] = 1
    Y[1:, 0] = 1
    only_first, all_but_first = -np.ones(Y.shape), -np.ones(Y.shape)
    only_first[0] = 1
    all_but_first[1:, 0] = 1
    names = ("example_f1", "micro_f1")
    of_first = loss_values(Y, only_first, names)
    of_others = loss_values(Y, all_but_first, names)
    assert of_first[0] > of_others[0]
    assert of_first[1] < of_others[1]

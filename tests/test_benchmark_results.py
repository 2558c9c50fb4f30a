"""The committed reproduction holds what the README says of it."""

import csv
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SPLITS = {"emotions": 20, "flags": 20, "yeast": 5, "cal500": 5, "enron": 5}


@pytest.fixture(scope="module")
def script(import_benchmark):
    return import_benchmark("reproduce_paper")


@pytest.fixture(scope="module")
def rows():
    with (BENCHMARKS / "results" / "reproduction.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("dataset", SPLITS)
def test_final_incumbent_against_print(script, rows, dataset):
    means = script.split_means(rows, dataset, "exact", "final")
    printed = script.PRINTED[dataset]
    assert len(means) == SPLITS[dataset]
    assert means.mean() <= 1.12 * printed
    assert means.mean() - printed <= 2 * means.std(ddof=1)
    assert {r["epochs"] for r in rows} == {"750"}


def test_printed_values_are_the_papers(script):
    with (Path(__file__).parent / "paper_results.csv").open(newline="") as file:
        printed = {
            r["dataset"].lower(): float(r["geometric_mean"])
            for r in csv.DictReader(file)
            if r["method"] == "CLML"
        }
    for dataset, value in script.PRINTED.items():
        assert printed[dataset] == value


def test_half_an_error_stands_for_a_loss_of_zero(script):
    row = {"hamming": "0", "lrap": "0.25", "micro_f1": "0.5", "test_decisions": "100"}
    expected = (0.005 * 0.25 * 0.5) ** (1 / 3)
    assert np.isclose(script.geometric_mean(row), expected)


@pytest.fixture(scope="module")
def printed_update(import_benchmark):
    return import_benchmark("printed_update")


def test_the_page_of_the_printed_update_is_made_of_the_measurements(printed_update):
    measured = printed_update.read()
    assert printed_update.PAGE.read_text(encoding="utf-8") == printed_update.page(
        measured
    )
    places = {
        tuple(row[name] for name in printed_update.COLUMNS[:4]) for row in measured
    }
    assert len(places) == len(measured)
    # Every split of a dataset in all four ways.
    splits = {place[:2] for place in places}
    assert len(places) == 4 * len(splits)


def test_the_update_beside_the_printed_one_is_that_of_the_reproduction(
    printed_update, rows
):
    reproduced = {
        (r["dataset"], r["split"], r["settings"]): [r[n] for n in printed_update.LOSSES]
        for r in rows
        if r["model"] == "final"
    }
    for row in printed_update.read():
        # Where points are random, a last digit of another machine can change a rank.
        if (row["covariance"], row["contributions"]) == ("rank_one", "exact"):
            found = [row[name] for name in printed_update.LOSSES]
            place = (row["dataset"], row["split"], row["contributions"])
            assert found == reproduced[place]

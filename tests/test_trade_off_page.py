"""The page on trade-offs holds the figures that were measured."""

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def measured():
    path = ROOT / "benchmarks" / "results" / "front_optimism.csv"
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_measured_figure_stands_on_the_page(measured):
    page = (ROOT / "docs" / "trade-off.md").read_text(encoding="utf-8")
    table = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]]
        for line in page.splitlines()
        if line.startswith("|")
    ][2:]
    expected = {}
    for row in measured:
        place = (row["labels"], row["classifier"], row["rows"])
        expected.setdefault(place, []).append(f"{row['stated']} → {row['fresh']}")
    assert {tuple(cells[:3]): cells[3:] for cells in table} == expected


def test_the_script_compares_what_the_page_says(import_benchmark, measured):
    script = import_benchmark("front_optimism")
    assert {row["classifier"] for row in measured} == set(script.classifiers(0))
    assert {int(row["rows"]) for row in measured} == set(script.ROWS)
    one = {"labels": "noise", "classifier": "c", "rows": 60, "loss": "lrap"}
    numbers = [(0.1, 0.2), (0.3, 0.6)]
    runs = [one | {"stated": a, "fresh": b} for a, b in numbers]
    (line,) = script.summary(runs)
    assert (line["stated"], line["fresh"], line["seeds"]) == ("0.200", "0.400", 2)
    assert (line["worst_stated"], line["worst_fresh"]) == ("0.300", "0.600")

"""The page on trade-offs holds the figures that were measured."""

import csv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def measured(name):
    path = ROOT / "benchmarks" / "results" / name
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tables():
    """Return the cells of each table of the page, without heads."""
    page = (ROOT / "docs" / "trade-off.md").read_text(encoding="utf-8")
    blocks = [block for block in page.split("\n\n") if block.startswith("|")]
    return [
        [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines[2:]]
        for lines in map(str.splitlines, blocks)
    ]


def test_every_stated_loss_stands_on_the_page(tables):
    expected = {}
    for row in measured("front_honesty.csv"):
        if row["model"] == row["loss"]:
            share = row["within_two_errors"]
            beside = f" ({float(share):.0%})".replace("%", " %") if share else ""
            cells = expected.setdefault((row["labels"], row["classifier"]), [])
            cells.append(f"{row['stated']} → {row['fresh']}{beside}")
    assert {tuple(cells[:2]): cells[2:] for cells in tables[1]} == expected


def test_every_choice_stands_on_the_page(tables, import_benchmark):
    script = import_benchmark("front_select")
    counts = script.summary(measured("front_select.csv"))
    expected = [[cell.strip("`") for cell in line.values()] for line in counts]
    assert tables[0] == expected


def test_the_page_of_choices_is_made_of_the_measurements(import_benchmark):
    script = import_benchmark("front_select")
    page = "\n".join(script.page(measured("front_select.csv"))) + "\n"
    assert (script.RESULTS / "front_select.md").read_text() == page


def test_what_rules_are_worth_stands_on_the_page(import_benchmark):
    script = import_benchmark("row_rules")
    page = (ROOT / "docs" / "trade-off.md").read_text(encoding="utf-8")
    assert "\n".join(script.table(measured("row_rules.csv"))) in page
    assert script.FILE.name == "row_rules.csv"


def test_the_scripts_measure_what_the_page_says(import_benchmark):
    script = import_benchmark("front_honesty")
    rows = measured("front_honesty.csv")
    runs = {row["classifier"]: int(row["runs"]) for row in rows}
    assert runs == script.RUNS
    assert script.ROWS == 200
    one = {"labels": "noise", "classifier": "c", "model": "lrap", "loss": "lrap"}
    numbers = [(0.1, 0.2, 0.06), (0.3, 0.6, 0.1)]
    (line,) = script.summary(
        [one | {"stated": a, "fresh": b, "error": e} for a, b, e in numbers]
    )
    assert (line["stated"], line["fresh"], line["runs"]) == ("0.200", "0.400", 2)
    assert (line["error"], line["within_two_errors"]) == ("0.080", "0.500")
    (line,) = script.summary([one | {"stated": 0.1, "fresh": 0.2, "error": np.nan}])
    assert line["error"] == line["within_two_errors"] == ""


def test_choices_are_counted(import_benchmark):
    script = import_benchmark("front_select")

    def line(dataset, split, selected):
        default = {f"default_{loss}": "0.2" for loss in script.LOSSES}
        found = zip(script.LOSSES, selected, strict=True)
        return {
            "classifier": "CLMLClassifier",
            "dataset": dataset,
            "split": str(split),
            **default,
            **{f"selected_{loss}": str(value) for loss, value in found},
        }

    lines = [
        line("flags", 0, (0.2, 0.21, 0.1)),
        line("flags", 1, (0.2, 0.19, 0.2)),  # the mean over splits counts
        line("yeast", 0, (0.19, 0.2016, 0.2)),
    ]
    counts = [
        (one["datasets"], one["worse"], one["better"], one["mean change"])
        for one in script.summary(lines)[:3]
    ]
    assert counts == [
        ("2", "0", "1", "-2.50 %"),
        ("2", "1", "0", "+0.40 %"),
        ("2", "0", "1", "-12.50 %"),
    ]

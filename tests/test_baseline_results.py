"""The committed comparison is complete and says of the deep methods what it should."""

import csv
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
# Printed losses that no method reaches: `benchmarks/tmc_ceiling.py` says why.
OUT_OF_REACH = "tmc2007-500"


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def script(import_benchmark):
    return import_benchmark("compare_baselines")


@pytest.fixture(scope="module")
def rows():
    return read(BENCHMARKS / "results" / "baselines.csv")


TARGETS = read(BENCHMARKS / "baseline_targets.csv")


@pytest.mark.parametrize(
    "target", TARGETS, ids=lambda t: f"{t['dataset']}-{t['method']}"
)
def test_no_deep_method_is_crippled(script, rows, target):
    """Within two deviations of what is known of it, or better."""
    chosen = script.select(rows, target["dataset"], target["method"])
    beyond = [script.excess(chosen, target, loss) for loss in script.LOSSES]
    if target["dataset"] == OUT_OF_REACH:
        assert min(beyond) > 2  # else it would be in reach, and this entry wrong
    else:
        assert max(beyond) < 2


def test_every_method_on_every_split(script, rows):
    expected = {
        (dataset, method, str(split))
        for dataset in script.DATASETS
        for method in script.METHODS
        for split in range(5)
    } | {
        (dataset, method, str(split))
        for method, datasets in script.FURTHER_DATASETS.items()
        for dataset in datasets
        for split in range(5)
    }
    jobs = [(r["dataset"], r["method"], r["split"]) for r in rows]
    assert len(jobs) == len(expected)
    assert set(jobs) == expected


@pytest.mark.parametrize(
    ("dataset", "prototype"),
    [("tmc2007-500", 0.142), ("enron", 0.185), ("yeast", 0.249)],
)
def test_plain_network_is_as_good_as_its_prototype(script, rows, dataset, prototype):
    chosen = script.select(rows, dataset, "plain network")
    means = [script.geometric_mean(r) for r in chosen]
    assert np.mean(means) - prototype < 2 * np.std(means, ddof=1)


def test_what_is_said_of_the_rows_out_of_reach():
    """A network that has seen the test rows is nearer to print than the others."""
    rows = read(BENCHMARKS / "results" / "tmc_ceiling.csv")
    found = {r["what"]: r for r in rows}
    seen = found.pop("plain network that has seen the test rows")
    honest = [
        r for what, r in found.items() if what.startswith(("DELA", "CLIF", "plain"))
    ]
    assert len(honest) == 5
    for loss in ("hamming", "lrap", "micro_f1"):
        printed = [float(t[loss]) for t in TARGETS if t["dataset"] == OUT_OF_REACH]
        whole = [r for r in honest if "test rows" not in r["what"]]
        assert min(float(r[loss]) for r in whole) > float(seen[loss]) > min(printed)
    (least,) = (r for what, r in found.items() if what.startswith("least possible"))
    assert float(least["hamming"]) > 0.041  # print has 0.040 and 0.041


def test_times():
    """On two cores the deep methods fit yeast within minutes, ML-kNN tmc2007-500."""
    rows = read(BENCHMARKS / "results" / "baselines_two_cores.csv")
    seconds = {(r["dataset"], r["method"]): float(r["seconds"]) for r in rows}
    assert seconds["yeast", "DELA"] < 300
    assert seconds["yeast", "CLIF"] < 300
    assert seconds["tmc2007-500", "MLkNN"] < 60


def test_targets_of_the_paper_are_the_papers():
    printed = {
        (r["dataset"].lower(), r["method"]): r
        for r in read(Path(__file__).parent / "paper_results.csv")
    }
    names = {
        "hamming": "hamming_loss",
        "lrap": "one_minus_lrap",
        "micro_f1": "one_minus_micro_f1",
    }
    checked = [t for t in TARGETS if t["source"] == "the CLML paper"]
    assert len(checked) == 9
    for target in checked:
        row = printed[target["dataset"], target["method"]]
        assert all(float(target[a]) == float(row[b]) for a, b in names.items())

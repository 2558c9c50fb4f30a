"""The ways that docs/scale.md shows work, and its figures are those of the tables."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clml.datasets import read_partitions

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
TABLE = ROOT / "benchmarks" / "results" / "cluster_epoch.csv"
LABELS = ["rain", "wind", "snow"]


@pytest.fixture(scope="module")
def model(import_benchmark):
    return import_benchmark("_scale_model")


@pytest.fixture(scope="module")
def page(import_benchmark):
    return import_benchmark("_scale_page")


@pytest.fixture(scope="module")
def measured(model):
    return model.read(TABLE)


def blocks_of(text):
    """Return the Python code of a page; one in a list is indented."""
    found = re.findall(r"^( *)```python\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", code, flags=re.M) for indent, code in found]


# Dask's own use of pandas, as of its release of 2026.8.
@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
def test_the_ways_that_are_shown(tmp_path, monkeypatch, small_data):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    X, Y = small_data[0], small_data[1][:, :3]
    frame = pd.DataFrame(X, columns=[f"sensor {i}" for i in range(8)])
    frame[LABELS] = Y
    (tmp_path / "rows").mkdir()
    for i in range(4):
        path = tmp_path / "rows" / f"part-{i}.parquet"
        frame[30 * i : 30 * (i + 1)].to_parquet(path, index=False)
    monkeypatch.chdir(tmp_path)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        names = {"address": cluster.scheduler_address, "X": X, "Y": Y}
        try:
            for code in blocks_of(PAGE):
                exec(code, names)
            found = names["found"].compute()
        finally:
            names["client"].close()
    assert list(found.columns) == LABELS
    assert found.shape == (120, 3)
    assert len(read_partitions("rows/*.parquet", LABELS)) == 4
    assert_array_equal(names["clf"].front_.theta, names["there"].front_.theta)
    assert len(names["members"].networks_) > 1
    assert names["one"].theta_.ndim == 1
    assert len(names["scores"]["test_score"]) == 2


def test_links():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE)
    assert len(targets) > 5
    for target in targets:
        assert (ROOT / "docs" / target).exists(), target


def test_figures_are_those_of_the_table(page, measured):
    # python benchmarks/_scale_page.py writes them
    assert page.filled(PAGE, page.sections(measured)) == PAGE
    report = ROOT / "benchmarks" / "results" / "cluster_epoch.md"
    assert report.read_text(encoding="utf-8") == page.report(measured)


def test_bytes_do_not_depend_on_rows(measured):
    of_setting = {}
    for one in measured:
        # Dask may move a partition away from its neighbours: that is another answer.
        key = replace(one.epoch, rows=0, weights=0), one.placement, one.answer
        of_setting.setdefault(key, []).append(one)
    several = [
        group
        for group in of_setting.values()
        if len({one.epoch.rows for one in group}) > 2
    ]
    assert several
    for group in several:
        assert len({one.letter for one in group}) == 1
        # The longer an epoch, the more of what a cluster says that waits is in it.
        chatter = max(one.idle * one.total / 1e3 for one in group)
        wires = [one.wire for one in group]
        assert max(wires) < 1.15 * min(wires) + chatter


def test_what_is_said_of_letters_and_of_rows_in_no_order(measured):
    for one in measured:
        assert one.letter == 2 * one.epoch.population + 32  # order, and four numbers
    lying = {
        (one.epoch.workers, one.epoch.partitions, one.placement): one.answer
        for one in measured
        if one.epoch.workers > 1 and one.epoch.population == 64
    }
    compared = [key for key in lying if key[2] == "scattered"]
    assert compared
    for workers, partitions, placement in compared:
        in_order = lying[workers, partitions, "neighbours"]
        assert lying[workers, partitions, placement] >= in_order


def made_up(model, coefficients, workers=(1, 2, 4)):
    """Return what would have been measured if a model were true."""
    truth = model.Model(*coefficients)
    found = []
    for n_workers in workers:
        for rows in (20_000, 80_000):
            for population in (32, 128):
                for weights in (570, 1650):
                    for partitions in (16, 64):
                        epoch = model.Epoch(
                            n_workers, rows, population, weights, partitions
                        )
                        parts = {name: truth.part(name, epoch) for name in model.PARTS}
                        answer = truth.answer * epoch.candidates * epoch.sums()
                        found.append(
                            model.Measured(
                                epoch,
                                20,
                                "neighbours",
                                parts,
                                sum(parts.values()),
                                1.0,
                                100,
                                answer,
                                truth.wire_bytes(epoch)
                                + truth.wire[3] * sum(parts.values()) / 1e3,
                                100,
                                rows / n_workers * 500 / 2**20,
                                2,
                            )
                        )
    return truth, found


COEFFICIENTS = (
    {
        "compute": np.array([5e-8, 1e-5, 2e-4, 6.0]),
        "network": np.array([4.0, 2.0, 0.05]),
        "update": np.array([8.0, 1e-6, 1e-7]),
    },
    np.array([5000.0, 2.0, 300.0, 4000.0]),
    80.0,
)


def test_a_model_that_is_true_is_found(model):
    truth, found = made_up(model, COEFFICIENTS)
    fitted = model.fit(found)
    for name in model.PARTS:
        assert_allclose(fitted.parts[name], truth.parts[name], rtol=1e-6)
    assert_allclose(fitted.wire, truth.wire, rtol=1e-6)
    assert_allclose(model.relative_errors(fitted, found), 0, atol=1e-9)
    largest, errors = model.unseen_errors(found)
    assert largest == 4
    assert_allclose(errors, 0, atol=1e-9)
    assert_allclose(model.row_bytes(found), 500)


def test_no_coefficient_is_negative(model, measured):
    fitted = model.fit(measured)
    assert all((values >= 0).all() for values in fitted.parts.values())
    assert fitted.parts["compute"][0] > 0
    assert fitted.parts["network"][1] > 0
    assert 200 < fitted.wire[2] < 400  # "some 300 bytes each"


@pytest.mark.parametrize("rows", [10**6, 10**9])
def test_the_best_number_of_workers(model, rows):
    truth = model.Model(*COEFFICIENTS)
    epoch = model.Epoch(1, rows, 64, 1650, model.PARTITIONS)
    best = truth.best_workers(epoch)

    def milliseconds(workers):
        here = replace(epoch, workers=workers, partitions=workers * model.PARTITIONS)
        return truth.total(here) + truth.sent(here)

    assert milliseconds(best) < milliseconds(round(0.8 * best))
    assert milliseconds(best) < milliseconds(round(1.25 * best))


@pytest.mark.parametrize(
    ("partitions", "workers", "sums"), [(16, 1, 1), (16, 4, 1), (6, 2, 2), (5, 5, 1)]
)
def test_sums_that_a_worker_hands_on(model, partitions, workers, sums):
    # Of six: 0 and 1, 2; 3, 4 and 5.
    assert model.Epoch(workers, 10, 8, 10, partitions).sums() == sums


@pytest.mark.parametrize("text", ["no mark", 2 * "<!-- epochs -->\n<!-- / -->\n"])
def test_a_page_without_the_place_of_a_figure(page, text):
    with pytest.raises(ValueError, match="must have one <!-- epochs -->"):
        page.filled(text, {"epochs": "a table"})


def test_filled(page):
    text = "a\n<!-- epochs -->\nold\nlines\n<!-- / -->\nb"
    once = page.filled(text, {"epochs": "new"})
    assert once == "a\n<!-- epochs -->\nnew\n<!-- / -->\nb"
    assert page.filled(once, {"epochs": "new"}) == once


def table(name):
    with open(ROOT / "benchmarks" / "results" / name, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_is_said_of_rows_on_disk():
    runs = table("out_of_core.csv")
    by_kind = {
        kind: [run for run in runs if run["kind"] == kind]
        for kind in ("disk", "memory")
    }

    def cells(kind, name, unit=1.0):
        return ", ".join(f"{float(run[name]) / unit:.1f}" for run in by_kind[kind])

    rows = [
        line.split("|")[2:5]
        for line in PAGE.splitlines()
        if line.startswith(("| files, `memory_mb", "| one array"))
    ]
    for kind, found in zip(by_kind, rows, strict=True):
        assert [cell.strip() for cell in found] == [
            cells(kind, "first_epoch_s"),
            cells(kind, "epoch_s"),
            cells(kind, "peak_mb", 1024),
        ]
    for run in runs:
        assert (run["rows"], run["features"]) == ("5000000", "200")
    # A budget of 2 GB, Python and libraries included.
    for run in by_kind["disk"]:
        assert float(run["peak_mb"]) < 2048
        assert float(run["peak_mb"]) - float(run["start_mb"]) < float(run["budget_mb"])
        assert f"`memory_mb={run['budget_mb']}`" in PAGE
    disk, memory = (
        np.mean([float(run["epoch_s"]) for run in by_kind[kind]]) for kind in by_kind
    )
    assert f"takes {disk / memory:.2f} times as long" in " ".join(PAGE.split())
    assert disk < 1.3 * memory


def test_what_is_said_of_killed_workers():
    fits = table("kill_workers.csv")
    assert len(fits) == 4
    for fit in fits:
        assert (fit["kills"], fit["epochs"], fit["same_model"]) == ("10", "150", "True")


def test_what_is_said_of_cores_that_share(measured):
    compute = {
        one.epoch.workers: one.parts["compute"]
        for one in measured
        if (one.epoch.rows, one.epoch.population, one.epoch.weights)
        == (320_000, 64, 1650)
    }
    assert round(compute[1] / compute[16]) == 10

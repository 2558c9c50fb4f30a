"""Fit after fit in one process: neither memory nor threads nor files may pile up.

``benchmarks/memory_growth.py`` does the same ten thousand times.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "memory_growth.csv"
# In a hundred fits; the first thousand fill some tables of the packages.
MOST_MB = 2
# A model of the tests has some ten thousand bytes: leaving each behind is ten times
# as much as this.
MOST_BYTES = 1_000


@pytest.fixture(scope="module")
def script(import_benchmark):
    return import_benchmark("memory_growth")


def sample(script, fits, memory_mb, threads=2, files=6):
    return script.Sample(fits, 0.0, memory_mb, 3 * fits, threads, files)


def test_a_line_through_what_comes_after_the_warm_up(script):
    found = [sample(script, 10, 900.0), sample(script, 20, 100.0, 3, 7)]
    found += [sample(script, n, 100.0 + (n - 20) / 2**10) for n in range(30, 110, 10)]
    seen = script.growth(found, warm_up=0.15)
    assert seen.bytes_a_fit == pytest.approx(1024)
    assert seen.error == pytest.approx(0, abs=1e-6)
    assert seen.blocks_a_fit == pytest.approx(3)
    assert (seen.threads, seen.files) == (-1, -1)


def test_a_leak_is_seen(script):
    kept = []
    found = script.samples(lambda _: kept.append(np.ones(100_000)), 100, every=10)
    assert script.growth(found).bytes_a_fit == pytest.approx(800_000, rel=0.2)


def test_files_left_open_are_seen(script, tmp_path):
    files = []

    def leave_open(number):
        files.append((tmp_path / str(number)).open("w"))

    try:
        assert script.growth(script.samples(leave_open, 8, every=2)).files == 6
    finally:
        for file in files:
            file.close()


def test_fits_leave_nothing_behind(script, tmp_path):
    """The memory after the last fits is that after the first, give or take."""
    found = script.samples(script.all_kinds(str(tmp_path)), 100, every=10)
    seen = script.growth(found, warm_up=0.25)
    assert (seen.threads, seen.files) == (0, 0)
    memory = np.array([s.memory_mb for s in found[3:]])
    assert np.median(memory[-4:]) - np.median(memory[:4]) < MOST_MB


def test_ten_thousand_fits_left_nothing_behind(script):
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = [
        script.Sample(
            fits=int(row["fits"]),
            seconds=float(row["seconds"]),
            memory_mb=float(row["memory_mb"]),
            blocks=int(row["blocks"]),
            threads=int(row["threads"]),
            files=int(row["files"]),
        )
        for row in rows
    ]
    assert found[-1].fits >= 10_000
    seen = script.growth(found)
    assert seen.bytes_a_fit < MOST_BYTES
    assert seen.blocks_a_fit < 0.5  # not one object a fit
    assert (seen.threads, seen.files) == (0, 0)

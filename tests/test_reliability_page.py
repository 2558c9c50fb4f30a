"""The figures of docs/reliability.md are those of the committed tables."""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def rows_of(name):
    path = ROOT / "benchmarks" / "results" / name
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_kills():
    (row,) = rows_of("soak.csv")
    assert row["kills"] == "200"
    assert row["unreadable"] == row["differing"] == "0"
    assert (
        f"{row['in fit']} kills in fits, {row['in checkpoint']} in states, "
        f"{row['in save']} in models, {row['in cache']} in copies; "
        f"{row['rounds']} runs, 0 differ"
    ) in PAGE


def test_fuzzing():
    rows = rows_of("fuzz.csv")
    assert all(row["other"] == "0" for row in rows)
    n_inputs = sum(int(row["inputs"]) for row in rows)
    assert n_inputs >= 100_000
    most = max(int(row["peak_mib"]) for row in rows)
    slowest = max(int(row["slowest_ms"]) for row in rows) / 1000
    assert f"{len(rows)} readers, 4,000 changed inputs each" in PAGE
    assert f"{n_inputs:,} inputs, nothing but values and refusals" in PAGE
    assert f"{most} MiB and {slowest:.1f} s at most" in PAGE


def test_memory():
    rows = rows_of("memory_growth.csv")
    first, last = rows[0], rows[-1]
    assert (first["fits"], last["fits"]) == ("100", "10000")
    late = next(row for row in rows if row["fits"] == "6000")
    before, after, end = (float(row["memory_mb"]) for row in (first, late, last))
    assert f"{before:.0f} MB after 100 fits, {end:.0f} MB after 10,000" in PAGE
    assert f"of which {end - after:.1f} MB in the last 4,000" in PAGE
    assert first["threads"] == last["threads"]
    assert first["files"] == last["files"]

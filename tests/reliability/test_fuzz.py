"""Damaged and hostile files: a minute of the fuzzer, and whether it would see harm."""

import csv
import hashlib
import io
import itertools
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    import _fuzz_archives
    import _fuzz_json
    from _fuzz_children import run_in_children
    from _fuzz_run import Reader, input_of, make_seeds, run_inputs
    from fuzz_readers import readers
finally:
    sys.path.remove(str(BENCHMARKS))

READERS = readers()
# Seconds for all readers together, what makes their sound files not counted.
BUDGET = 38.0


@pytest.mark.parametrize("name", READERS)
def test_every_input_is_read_or_refused(name, tmp_path):
    reader = READERS[name]
    tally = run_inputs(
        reader,
        make_seeds(reader),
        tmp_path,
        itertools.count(),
        seed=1,
        budget_seconds=BUDGET / len(READERS),
        least=60,
    )
    assert tally.findings == []
    # Both happen, or the inputs would show nothing.
    assert tally.accepted > 0
    assert tally.refused > 0


def test_the_long_run_found_nothing():
    with open(BENCHMARKS / "results" / "fuzz.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["reader"] for row in rows] == list(READERS)
    assert sum(int(row["inputs"]) for row in rows) >= 100_000
    assert all(int(row["other"]) == 0 for row in rows)
    for row in rows:
        assert int(row["accepted"]) + int(row["refused"]) == int(row["inputs"])


# --- would it be seen? -----------------------------------------------------------


def planted(read, **options):
    return Reader(
        "planted",
        ".txt",
        lambda: [b"sound"],
        read,
        lambda seeds, generator: seeds[0] + bytes([65 + int(generator.integers(3))]),
        **options,
    )


def raise_(error):
    raise error


@pytest.mark.parametrize(
    ("harm", "finding"),
    [
        (lambda path: raise_(KeyError("x")), "KeyError: 'x'"),
        (lambda path: raise_(RecursionError("deep")), "RecursionError: deep"),
        (lambda path: raise_(ValueError("wrong")), "the file is not named"),
        (lambda path: np.ones(30_000_000).sum(), "MiB, more than 64"),
        (lambda path: np.empty(10**10, dtype=np.uint8), "Memory"),
    ],
    ids=["exception", "recursion", "not named", "memory", "address space"],
)
def test_harm_is_a_finding(harm, finding, tmp_path):
    def read(path):
        if path.read_bytes() == b"soundB":
            harm(path)
        if path.read_bytes() == b"soundC":
            raise ValueError(f"{path}: wrong")

    tally = run_inputs(planted(read), [b"sound"], tmp_path, range(12))
    assert tally.inputs == 12
    assert min(tally.accepted, tally.refused, tally.other) > 0
    assert tally.accepted + tally.refused + tally.other == 12
    assert len(tally.findings) == tally.other
    for text in tally.findings:
        assert finding in text
        kept = Path(text.partition("kept in ")[2].partition(":")[0])
        assert kept.read_bytes() == b"soundB"


CHILD = """
import ctypes, sys, time
sys.path.insert(0, {benchmarks!r})
from _fuzz_children import serve
from _fuzz_run import Reader

def read(path):
    content = path.read_bytes()
    if content == b"soundB":
        ctypes.string_at(0)
    if content == b"soundC":
        time.sleep(60)

def damage(seeds, generator):
    return seeds[0] + bytes([65 + int(generator.integers(3))])

reader = Reader("planted", ".txt", lambda: [b"sound"], read, damage)
serve(lambda name: reader, sys.argv[2:])
"""


def test_crashes_and_hangs_are_findings(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(benchmarks=str(BENCHMARKS)), encoding="utf-8")
    tally = run_in_children(
        planted(None), tmp_path, 5, script=script, seed=3, hang_seconds=0.5
    )
    assert tally.inputs == 5
    assert tally.accepted + tally.other == 5
    crashed = [text for text in tally.findings if "SIGSEGV" in text]
    hung = [text for text in tally.findings if "Timeout" in text and "in read" in text]
    assert crashed
    assert hung
    assert len(crashed) + len(hung) == tally.other < 5


# --- are the inputs any good? ----------------------------------------------------


def test_inputs_depend_on_their_number_alone():
    reader = READERS["csv"]
    seeds = make_seeds(reader)
    first = [input_of(reader, seeds, 0, number) for number in range(20)]
    again = [input_of(reader, seeds, 0, number) for number in reversed(range(20))]
    assert first == again[::-1]
    assert len(set(first)) > 15
    assert first != [input_of(reader, seeds, 1, number) for number in range(20)]


def has_right_checksums(content):
    """Whether all checksums of a file of this library are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
            told = archive.comment.rpartition(b" ")[2].decode()
            digests = json.loads(members["state.json"])["sha256"]
    except Exception:
        return False
    found = [
        hashlib.sha256(members.get(f"array{number}.npy", b"")).hexdigest()
        for number in range(len(members) - 1)
    ]
    return (
        hashlib.sha256(members["state.json"]).hexdigest() == told and found == digests
    )


def test_half_of_the_models_have_right_checksums_and_other_content():
    """Or the checksums would refuse them, and the decoder were never tried."""
    reader = READERS["models of baselines"]
    seeds = make_seeds(reader)
    assert all(map(has_right_checksums, seeds))
    inputs = [input_of(reader, seeds, 0, number) for number in range(200)]
    changed = [content for content in inputs if content not in seeds]
    assert sum(map(has_right_checksums, changed)) > 100


def test_changes_of_json_are_mostly_json():
    text = json.dumps({"a": [1, 2.5, None], "b": {"type": "x", "value": "y"}}).encode()
    parsed = 0
    for number in range(300):
        changed = _fuzz_json.damaged_json(text, np.random.default_rng(number))
        try:
            parsed += json.loads(changed) != json.loads(text)
        except (ValueError, RecursionError):
            pass
    assert parsed > 200


def test_archives_within_archives_are_changed():
    inner = _fuzz_archives.zipped([("schema.json", b'{"a": [1, 2]}')])
    array = _fuzz_archives.saved_array(np.frombuffer(inner, dtype=np.uint8))
    outer = _fuzz_archives.zipped([("state.json", b"{}"), ("array0.npy", array)])
    opened = 0
    for number in range(200):
        generator = np.random.default_rng(number)
        content = _fuzz_archives.damaged_archive([outer], generator)
        start = content.find(b"PK\x03\x04", content.find(b"\x93NUMPY"))
        try:
            members, _ = _fuzz_archives.unzipped(content)
            within = dict(members)["array0.npy"]
            start = within.index(b"PK\x03\x04")
            members, _ = _fuzz_archives.unzipped(within[start:])
            opened += members != [("schema.json", b'{"a": [1, 2]}')]
        except Exception:
            continue
    assert opened > 20

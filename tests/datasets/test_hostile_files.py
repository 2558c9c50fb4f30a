"""Whatever a file holds, a reader returns data or says what is wrong and where."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    import fuzz_readers
finally:
    sys.path.remove(str(BENCHMARKS))

READERS = fuzz_readers.readers()


@st.composite
def damaged(draw, sound):
    """Return a sound file with pieces of it replaced by pieces of grammar."""
    data = draw(st.sampled_from(sound))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.integers(begin, min(len(data), begin + 20)))
        piece = draw(st.one_of(st.sampled_from(fuzz_readers.PIECES), st.binary()))
        data = data[:begin] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(tmp_path, name):
    suffix, sound, read = READERS[name]
    path = tmp_path / f"f{suffix}"

    @settings(max_examples=150)
    @given(damaged(sound))
    def check(data):
        path.write_bytes(data)
        try:
            read(path)
        except ValueError as error:
            assert str(error).startswith(str(tmp_path))

    check()


def test_the_fuzzer_finds_nothing(tmp_path):
    output = tmp_path / "counts.csv"
    script = BENCHMARKS / "fuzz_readers.py"
    command = [sys.executable, script, "--inputs", "1400", "--seed", "1"]
    result = subprocess.run(
        [*command, "--output", output], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    counts = [line.split(",") for line in output.read_text().splitlines()[1:]]
    assert [line[0] for line in counts] == list(READERS)
    # Both happen, or the inputs would show nothing.
    assert all(int(read) > 0 and int(refused) > 0 for _, _, read, refused, *_ in counts)

"""Whatever a file holds, a reader returns data or says what is wrong and where."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    from _fuzz_bytes import PIECES
    from _fuzz_data import data_readers
finally:
    sys.path.remove(str(BENCHMARKS))

READERS = {reader.name: reader for reader in data_readers() if reader.names_file}


@st.composite
def damaged(draw, sound):
    """Return a sound file with pieces of it replaced by pieces of grammar."""
    data = draw(st.sampled_from(sound))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.integers(begin, min(len(data), begin + 20)))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary()))
        data = data[:begin] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(tmp_path, name):
    reader = READERS[name]
    path = tmp_path / f"f{reader.suffix}"

    @settings(max_examples=150)
    @given(damaged(reader.seeds()))
    def check(data):
        path.write_bytes(data)
        try:
            reader.read(path)
        except ValueError as error:
            assert str(error).startswith(str(tmp_path))

    check()

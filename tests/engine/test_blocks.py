import numpy as np
import pytest

from clml.engine import blocks as _blocks
from clml.engine.blocks import BLOCK_CANDIDATES, cut, rows_per_block


@pytest.mark.parametrize("n_candidates", [0, 1, 15, 16, 17, 47])
@pytest.mark.parametrize("n_rows", [1, 9, 10, 11, 35])
def test_every_candidate_meets_every_row_once(monkeypatch, n_candidates, n_rows):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 10)
    met = np.zeros((n_candidates, n_rows), dtype=int)
    for task in cut(n_candidates, n_rows):
        met[task.first : task.last, task.start : task.stop] += 1
        assert task.first % BLOCK_CANDIDATES == 0
        assert task.start == 10 * task.shard
    np.testing.assert_array_equal(met, 1)


def test_canonical_order(monkeypatch):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 10)
    found = [(t.first, t.last, t.shard, t.start, t.stop) for t in cut(17, 12)]
    assert found == [
        (0, 16, 0, 0, 10),
        (0, 16, 1, 10, 12),
        (16, 17, 0, 0, 10),
        (16, 17, 1, 10, 12),
    ]


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("n_labels", [1, 6, 174, 10**5])
def test_blocks_are_powers_of_two_within_the_cache(n_labels, itemsize):
    rows = rows_per_block(20, n_labels, itemsize)
    assert rows in {32, 64, 128, 256, 512}
    row_bytes = BLOCK_CANDIDATES * (20 + n_labels) * itemsize
    assert rows == 32 or rows * row_bytes <= 2**20
    assert rows == 512 or 2 * rows * row_bytes > 2**20


def test_wider_rows_make_smaller_blocks():
    assert rows_per_block(20, 6, 4) > rows_per_block(20, 1000, 4)
    assert rows_per_block(20, 174, 4) > rows_per_block(20, 174, 8)

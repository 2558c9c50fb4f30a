"""Partitions on disk: what does not fit the budget is read again, to the same bits."""

import os
import tempfile
import threading

import numpy as np
import pytest
from held_partitions import cut, make_rows, population

from clml.engine.local import LocalHolders


def holders_of(held, memory_mb, loads):
    def load(i):
        loads.append(i)
        return held[i]

    return LocalHolders(load, len(held), memory_mb)


def sums(holders, thetas):
    from clml.engine.partitioned import Request

    (found,) = holders.evaluate(thetas, (Request("train"),))
    return found.sums


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_budget_changes_no_bit(monkeypatch, tmp_path, sparse, weighted):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held = cut(make_rows(1000, sparse=sparse, weighted=weighted), [100] * 10)
    size = max(h.nbytes for h in held) / 2**20
    thetas = population(5)
    loads = []
    with holders_of(held, 100, loads) as everything:
        expected = sums(everything, thetas)
        assert everything.n_kept == 10
        assert everything._scratch is None
    for room in (1.5, 2.5, 7.5):
        loads.clear()
        with holders_of(held, room * size / 0.9, loads) as some:
            for _ in range(3):
                found = sums(some, thetas)
                for name, values in expected.items():
                    np.testing.assert_array_equal(found[name], values)
            assert some.n_kept == max(0, int(room) - 4)
            # From the second pass on the copies are read, not the source.
            assert loads == list(range(10))
            assert some.n_read == 3 * 10 - 2 * some.n_kept
            assert len(some._scratch._copies) == 10 - some.n_kept
            file = some._scratch._file
            # A process that is killed now leaves nothing: there is no name to leave.
            assert os.name != "posix" or not list(tmp_path.iterdir())
            assert os.fstat(file.fileno()).st_size > 0
        assert file.closed
        assert not list(tmp_path.iterdir())


def test_an_interrupt_leaves_no_reader():
    """Not even while somebody holds on to the interrupt, and so to its frames."""
    from clml.engine.partitioned import Request

    class Interrupts:
        index, nbytes = 0, 8

        def evaluate(self, *arguments):
            raise KeyboardInterrupt

    readers = set(threading.enumerate())
    with LocalHolders(lambda i: Interrupts(), 3, 100) as holders:
        try:
            holders.evaluate(population(5), (Request("train"),))
        except KeyboardInterrupt as interrupt:
            held_on_to = interrupt
        assert held_on_to.__traceback__ is not None
        assert set(threading.enumerate()) <= readers


def test_a_partition_larger_than_the_budget():
    held = cut(make_rows(1000), [1000])
    with (
        holders_of(held, 0.01, []) as holders,
        pytest.raises(ValueError, match=r"memory_mb must hold a partition.*0\.01"),
    ):
        sums(holders, population(2))


def test_a_larger_partition_makes_room_for_itself():
    held = cut(make_rows(1300), [100] * 4 + [800] + [100])
    unit = held[0].nbytes / 2**20
    with holders_of(held, 35 * unit / 0.9, []) as holders:
        first = sums(holders, population(3))
        assert holders.n_kept < 4
        second = sums(holders, population(3))
    for name, values in first.items():
        np.testing.assert_array_equal(second[name], values)


def test_a_full_disk_is_told(monkeypatch):
    held = cut(make_rows(300), [100] * 3)

    def full(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    size = held[0].nbytes / 2**20
    with (
        holders_of(held, 1.5 * size / 0.9, []) as holders,
        pytest.raises(OSError, match="TMPDIR"),
    ):
        sums(holders, population(2))
    assert holders._scratch._file.closed


def test_an_error_while_reading_is_raised():
    def load(i):
        raise ValueError("part-3.npz is damaged")

    with (
        LocalHolders(load, 3, 100) as holders,
        pytest.raises(ValueError, match="part-3"),
    ):
        sums(holders, population(2))

"""What a fit keeps of itself, and when it stops."""

import time

import pytest

from clml._training.run_checkpoint import Clock, RunCheckpoint, Stopping
from clml.persistence.checkpoint import Checkpoint


def test_without_a_checkpoint_nothing_is_kept():
    keeper = RunCheckpoint()
    keeper.settle(seed=[1])
    keeper.offer(lambda: pytest.fail("no state is asked for"), now=True)
    assert keeper.saved == {}


def test_settled_parts_are_written_with_those_that_change(tmp_path):
    keeper = RunCheckpoint(Checkpoint(tmp_path, 0, {}))
    keeper.settle(seed=[1, 2])
    keeper.offer()
    assert RunCheckpoint(Checkpoint(tmp_path, 0, {})).saved == {"seed": [1, 2]}
    keeper.offer(lambda: {"run": {"epoch": 3}})
    saved = RunCheckpoint(Checkpoint(tmp_path, 0, {})).saved
    assert saved == {"seed": [1, 2], "run": {"epoch": 3}}


def test_no_state_knows_less_than_the_one_before(tmp_path):
    keeper = RunCheckpoint(Checkpoint(tmp_path, 0, {}))
    keeper.settle(seed=[1])
    keeper.offer(lambda: {"run": {"epoch": 3}})
    again = RunCheckpoint(Checkpoint(tmp_path, 0, {}))
    again.settle(folds={})
    again.offer()
    saved = RunCheckpoint(Checkpoint(tmp_path, 0, {})).saved
    assert saved == {"seed": [1], "run": {"epoch": 3}, "folds": {}}


def test_a_state_without_parts(tmp_path):
    Checkpoint(tmp_path, 0, {}).offer(lambda: [1, 2])
    with pytest.raises(ValueError, match="it has no parts"):
        RunCheckpoint(Checkpoint(tmp_path, 0, {}))


def test_patience():
    stopping = Stopping(patience=2, max_seconds=None)
    stopping.begin(0.5)
    assert [stopping.after(m) for m in (0.4, 0.6, 0.6, 0.6)] == [0, 0, 0, 1]


def test_patience_of_a_run_that_goes_on():
    stopping = Stopping(patience=2, max_seconds=None)
    stopping.begin(0.0, [0.4, 0.6, 0.6])
    assert stopping.after(0.6)


def test_a_run_whose_patience_had_run_out_has_nothing_more_to_do():
    stopping = Stopping(2, None, {"seconds": 1.0, "finished": False})
    stopping.begin(0.0, [0.4, 0.4, 0.4])
    assert stopping.done


def test_no_reason_to_stop():
    stopping = Stopping(patience=None, max_seconds=None)
    stopping.begin(0.0)
    assert not any(stopping.after(0.0) for _ in range(1000))


def test_seconds_of_a_run_that_goes_on(monkeypatch):
    now = [50.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    first = Stopping(patience=None, max_seconds=10)
    first.begin(0.0)
    now[0] += 6
    assert not first.after(0.1)
    state = first.state()
    assert state == {"seconds": 6.0, "finished": False}
    now[0] = 1.0  # another process, another clock
    second = Stopping(None, 10, state)
    second.begin(0.0, [0.1])
    now[0] += 3
    assert not second.after(0.2)
    now[0] += 1
    assert second.after(0.2)


@pytest.mark.parametrize("saved", [3, {}, {"seconds": "1"}, {"seconds": 1.0}])
def test_a_damaged_state(saved):
    with pytest.raises(ValueError, match="damaged"):
        Stopping(None, None, saved)


def test_time_before_the_first_epoch_counts_once():
    clock = Clock(10)
    clock.before = 9.0
    assert 0.9 < clock.left() <= 1.0
    assert not Stopping(None, 10, None, clock).after(0.0)
    clock.before = 11.0
    assert Stopping(None, 10, None, clock).after(0.0)
    # A run whose epochs had begun has counted it.
    saved = {"seconds": 9.0, "finished": False}
    assert not Stopping(None, 10, saved, clock).after(0.0)
    assert Clock(None).left() > 1e9

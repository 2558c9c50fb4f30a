"""States of runs: what is read of them, and what is refused."""

import numpy as np
import pytest

from clml._training.run_state import (
    entry,
    read_float,
    read_floats,
    read_history,
    read_whole,
)


def history(**changes):
    arrays = {
        "archive_measure": np.array([0.1, 0.2]),
        "incumbent_train": np.zeros((2, 3)),
        "undefined": np.zeros((2, 3), dtype=np.int64),
        "sigma": np.ones(2),
    }
    return {"history": arrays | changes}


def test_a_history_becomes_records_again():
    records = read_history(history(), 2, 3, "incumbent_train")
    assert [record["archive_measure"] for record in records] == [0.1, 0.2]
    assert records[1]["incumbent_train"].shape == (3,)


@pytest.mark.parametrize(
    "changes",
    [
        {"sigma": np.ones(3)},
        {"sigma": np.ones((2, 3))},
        {"sigma": [1.0, 1.0]},
        {"sigma": np.array(["a", "b"])},
        {"incumbent_train": np.zeros(2)},
        {"incumbent_train": np.zeros((2, 3), dtype=np.float32)},
        {"undefined": np.zeros((2, 3))},
        {"archive_measure": np.zeros(2, dtype=np.int64)},
    ],
)
def test_a_history_of_another_kind(changes):
    with pytest.raises(ValueError, match="The state of a run is damaged"):
        read_history(history(**changes), 2, 3, "incumbent_train")


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_float, "1"),
        (read_float, True),
        (read_float, None),
        (read_whole, 1.0),
        (read_whole, -1),
        (read_whole, True),
        (read_whole, 2**60),
        (lambda s, n: read_floats(s, n, (2,)), np.zeros(3)),
        (lambda s, n: read_floats(s, n, (None, 2)), np.zeros(2)),
        (lambda s, n: read_floats(s, n, (2,)), np.zeros(2, dtype=np.float32)),
        (lambda s, n: read_floats(s, n, (2,)), [0.0, 0.0]),
    ],
)
def test_values_of_another_kind(read, value):
    with pytest.raises(ValueError, match="damaged: a is no"):
        read({"a": value}, "a")
    with pytest.raises(ValueError, match="damaged: b is missing"):
        read({"a": value}, "b")


@pytest.mark.parametrize("state", [None, [], 3])
def test_no_state_at_all(state):
    with pytest.raises(ValueError, match="a is missing"):
        entry(state, "a")

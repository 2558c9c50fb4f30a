"""Entries of states."""

import numpy as np
import pytest

from clml.encoding._state import read_array, read_flag, read_number


def test_what_is_read():
    state = {"a": np.arange(6.0)[::2], "b": np.True_, "c": np.float32(2), "d": 3}
    array = read_array(state, "a", np.float64, 3)
    assert array.flags.c_contiguous
    assert array.tolist() == [0.0, 2.0, 4.0]
    assert read_flag(state, "b") is True
    assert read_number(state, "c", 0, 5) == 2.0
    assert read_number(state, "d", 0, 5) == 3.0


def test_what_is_refused():
    with pytest.raises(ValueError, match="'a' must be an array"):
        read_array({"a": 1}, "a", np.float64)
    with pytest.raises(ValueError, match="'a' must be True or False, got None"):
        read_flag({}, "a")
    with pytest.raises(ValueError, match="'a' must be a number from 0 to 1, got 2"):
        read_number({"a": 2}, "a", 0, 1)

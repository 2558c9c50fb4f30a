import enum
import functools
import os
import subprocess
import sys
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import FunctionTransformer

import clml
from clml._fingerprint import (
    as_json,
    canonical,
    data_digest,
    is_plain,
)

# The modules alone: the package takes a while to import.
PROGRAM = """
import sys, types
import numpy as np
from functools import partial
sys.modules["clml"] = package = types.ModuleType("clml")
package.__path__ = [{path!r}]
from clml._fingerprint import as_json, canonical
scale = 3
class Odd:
    def __init__(self): self.names = set("abcd")
def twice(x): return twice(x - 1) if x in {{"k", "l", "m"}} else scale
print(canonical(as_json([lambda x: x * scale, twice, Odd(), partial(max, key=len),
                         np.random.RandomState(1), set("pqr")])))
"""


def times(factor):
    return lambda x: x * factor


def with_names(names):
    class Odd:
        pass

    odd = Odd()
    odd.names = names
    return odd


class Own:
    def method(self):
        return 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x.sum(), lambda x: x.max()),
        (lambda x: x, lambda x, y=1: x),
        (times(2), times(3)),
        (FunctionTransformer(lambda x: x + 1), FunctionTransformer(lambda x: x + 2)),
        (np.random.RandomState(1), np.random.RandomState(2)),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (with_names(["a"]), with_names(["b"])),
        (
            functools.partial(np.dot, np.arange(5000.0)),
            functools.partial(np.dot, np.r_[np.arange(4999.0), 0.0]),
        ),
        (float("inf"), -float("inf")),
        (float("nan"), "nan"),
        (b"a", "a"),
        ({1, 2}, {1, 3}),
        (1 + 2j, 1 + 3j),
        (PurePosixPath("a"), PurePosixPath("b")),
        (np.log1p, np.expm1),
        (min, max),
    ],
)
def test_what_differs_is_described_differently(one, other):
    assert canonical(as_json(one)) == canonical(as_json(one))
    assert canonical(as_json(one)) != canonical(as_json(other))


def test_equal_values_are_described_equally():
    assert as_json(times(2)) == as_json(times(2))
    assert as_json(with_names({"a", "b"})) == as_json(with_names({"b", "a"}))
    assert as_json(Own().method) == as_json(Own().method)
    assert as_json(np.random.RandomState(1)) == as_json(np.random.RandomState(1))


def test_descriptions_do_not_depend_on_the_process():
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM.format(path=os.path.dirname(clml.__file__))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_plain_values_are_themselves():
    plain = {"a": [1, 0.5, None, True, "x"], "b": {"c": []}}
    assert as_json(plain) == plain
    assert is_plain(plain)
    assert as_json({"c": np.float32(0.5), "d": np.int64(3)}) == {"c": 0.5, "d": 3}
    assert as_json(np.array([1.0, np.nan])) == [1.0, {"float": "nan"}]


def test_what_cannot_be_described_is_refused():
    with pytest.raises(TypeError, match="settings must be values that can be told"):
        as_json({"a": (i for i in range(3))})


class Colour(enum.StrEnum):
    RED = "red"


def test_members_of_enumerations_are_what_they_equal():
    assert as_json([Colour.RED, np.str_("a"), np.True_]) == ["red", "a", True]
    assert type(as_json(Colour.RED)) is str


def test_large_arrays_are_described_by_a_digest():
    rows = np.arange(2000)
    found = as_json(rows)
    assert found["array"] == [2000]
    assert found == as_json(rows.copy())
    assert found != as_json(rows[::-1])


def test_frames_are_known_by_their_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1, 2]})
    again = pd.DataFrame({"a": [1.0, 2.0]})
    again["b"] = ["x", "y"]
    again["c"] = [1, 2]
    assert data_digest(frame) == data_digest(again) == data_digest(frame.copy())
    assert data_digest(frame) != data_digest(frame.rename(columns={"a": "d"}))
    assert data_digest(frame) != data_digest(frame.assign(b=["x", "z"]))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_matrices_are_known_by_their_entries(kind):
    dense = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert data_digest(kind(dense)) == data_digest(sp.csr_matrix(dense))
    assert data_digest(kind(dense)) != data_digest(kind(2 * dense))


def test_a_mask_counts():
    data = np.ma.array([1.0, 2.0], mask=[False, True])
    assert data_digest(data) != data_digest(np.ma.array([1.0, 2.0], mask=False))

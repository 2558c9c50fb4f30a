import enum
import functools
import os
import platform
import subprocess
import sys
import time
import tracemalloc
from collections import defaultdict
from pathlib import PurePosixPath
from types import ModuleType

import numba
import numpy as np
import own_fit
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import clml
from clml._support.fingerprint import (
    Describer,
    as_json,
    canonical,
    data_digest,
    is_plain,
)

SCALER = StandardScaler().fit([[0.0], [1.0]])
OTHER_SCALER = StandardScaler().fit([[0.0], [3.0]])


class OwnText(str):
    """Text that is more than text."""


class Record:
    def __init__(self, value):
        self.value = value


def requesting(weight):
    with sklearn.config_context(enable_metadata_routing=True):
        return LogisticRegression().set_fit_request(sample_weight=weight)


def times(factor):
    return lambda x: x * factor


def jitted(body, **options):
    return numba.njit(eval(f"lambda x: {body}"), **options)


def vectorised(body):
    return numba.vectorize(eval(f"lambda x: {body}"))


# The modules alone: the package takes a while to import.
PROGRAM = """
import sys, types
sys.modules["clml"] = package = types.ModuleType("clml")
package.__path__ = [{path!r}]
sys.path.append({support!r})
from clml._support.fingerprint import as_json, canonical
import own_fit
class Patch:
    setitem = dict.__setitem__
own = own_fit.imported(Patch)
print(canonical(as_json([own_fit.learner(own), own.made(0.0)])))
"""


def told(own):
    return canonical(as_json([own_fit.learner(own), own.made(0.0)]))


@pytest.fixture(scope="module")
def before():
    with pytest.MonkeyPatch.context() as patch:
        return told(own_fit.imported(patch))


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


def test_descriptions_do_not_depend_on_the_process(before):
    package = os.path.dirname(clml.__file__)
    support = os.path.dirname(own_fit.__file__)
    seeds = {"1", "2"} - {os.environ.get("PYTHONHASHSEED")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(path=package, support=support)],
        env={**os.environ, "PYTHONHASHSEED": seeds.pop()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == before


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


@pytest.mark.parametrize("edit", own_fit.EDITS)
def test_other_code_is_described_differently(before, monkeypatch, edit):
    assert told(own_fit.imported(monkeypatch, own_fit.EDITS[edit])) != before


@pytest.mark.parametrize("edit", own_fit.NO_EDITS)
def test_other_text_of_the_same_code_is_described_equally(before, monkeypatch, edit):
    assert told(own_fit.imported(monkeypatch, own_fit.NO_EDITS[edit])) == before


def test_code_changes_while_it_is_loaded(before, monkeypatch):
    own = own_fit.imported(monkeypatch)
    monkeypatch.setattr(own, "FACTOR", 7.0)
    assert told(own) != before


def test_code_is_described_in_no_time(monkeypatch):
    own = own_fit.imported(monkeypatch)
    told(own)
    times = []
    for _ in range(5):
        began = time.process_time()
        as_json([LogisticRegression(), own.shift, ("hamming", "lrap"), KFold(3)])
        times.append(time.process_time() - began)
    assert min(times) < 0.05


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({1: "a"}, {"1": "a"}),
        (np.zeros((0, 2)), np.zeros((0, 3))),
        (np.float32([0.5]), np.float64([0.5])),
        (defaultdict(int), defaultdict(list)),
        (OwnText("a"), "a"),
        (FrozenEstimator(SCALER), FrozenEstimator(OTHER_SCALER)),
        ([("a", FrozenEstimator(SCALER))], [("a", FrozenEstimator(OTHER_SCALER))]),
        ({"a": SCALER}, {"a": OTHER_SCALER}),
        (SCALER.transform, OTHER_SCALER.transform),
        (functools.partial(len, SCALER), functools.partial(len, OTHER_SCALER)),
        (
            FunctionTransformer(SCALER.transform),
            FunctionTransformer(OTHER_SCALER.transform),
        ),
        (lambda: SCALER, lambda: OTHER_SCALER),
        (requesting(True), requesting(False)),
        (StandardScaler().set_output(transform="pandas"), StandardScaler()),
        (jitted("x + 1"), jitted("x + 2")),
        (jitted("x + 1"), jitted("x + 1", fastmath=True)),
        (vectorised("x + 1"), vectorised("x + 2")),
        (np.vectorize(lambda x: x + 1), np.vectorize(lambda x: x + 2)),
        (sp.csr_array([[1.0]]), sp.csr_array([[2.0]])),
        (pd.Series([1.0], name="a"), pd.Series([1.0], name="b")),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
        (lambda x=(1, 2): x, lambda x=[1, 2]: x),
        (times(np.float32(0.5)), times(0.5)),
        (functools.lru_cache(lambda x: x), functools.lru_cache(lambda x: x + 1)),
        (Record(1), Record(2)),
        (torch.ones(3), torch.zeros(3)),
    ],
    ids=range(26),
)
def test_what_differs_little_is_described_differently(one, other):
    assert canonical(as_json(one)) == canonical(as_json(one))
    assert canonical(as_json(one)) != canonical(as_json(other))


def test_what_a_clone_forgets_does_not_count():
    assert as_json(SCALER) == as_json(StandardScaler())
    assert as_json([SCALER]) == as_json([OTHER_SCALER])
    describer = Describer()
    assert describer.of(SCALER, cloned=False) != as_json(SCALER)
    assert describer.of(StandardScaler(), cloned=False) == as_json(StandardScaler())


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_to_be_asked_changes_nobody(algorithm):
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    frozen = FrozenEstimator(KNeighborsClassifier(algorithm=algorithm).fit(X, y))
    told = as_json(frozen)
    frozen.predict(X)
    assert as_json(frozen) == told


def test_a_forest_that_is_grown_again_is_the_same():
    """Between the fields of a node there are bytes that nobody sets."""
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    forests = [RandomForestClassifier(5, random_state=seed) for seed in (0, 0, 1)]
    told = [as_json(FrozenEstimator(forest.fit(X, y))) for forest in forests]
    assert told[0] == told[1] != told[2]


def test_what_holds_itself_is_described():
    one, other = Record(1), Record(1)
    one.next, other.next = [one, {"again": one}], [other, {"again": other}]
    assert as_json(one) == as_json(other)
    other.next.append(other)
    assert as_json(one) != as_json(other)
    nodes = [Record(i) for i in range(60)]
    for node in nodes:
        node.next = nodes  # everybody knows everybody
    as_json(nodes[0])


def test_versions_of_packages_are_told(monkeypatch):
    describer = Describer()
    describer.of([StandardScaler(), np.log1p, len])
    assert describer.packages["sklearn"] == sklearn.__version__
    assert describer.packages["numpy"] == np.__version__
    assert describer.packages["python"] == platform.python_version()
    assert Describer().of(own_fit.imported(monkeypatch).helper)["code"]


def test_an_installed_decorator_hides_no_function(monkeypatch):
    """A wrapped transform is of scikit-learn, and has the name of what it wraps."""
    told = set()
    for factor in (1, 2, 1):
        text = f"""
from sklearn.base import BaseEstimator, TransformerMixin
class Own(TransformerMixin, BaseEstimator):
    def transform(self, X):
        return X * {factor}
"""
        module = ModuleType("own_wrapped")
        monkeypatch.setitem(sys.modules, "own_wrapped", module)
        exec(text, vars(module))
        assert module.Own.transform.__globals__["__name__"].startswith("sklearn.")
        told.add(canonical(as_json(module.Own())))
    assert len(told) == 2


def test_modules_that_are_handed_on_count_whole(monkeypatch):
    told = []
    for value in (1, 2):
        helpers = ModuleType("own_handed")
        helpers.value = value
        monkeypatch.setitem(sys.modules, "own_handed", helpers)
        scope = {"own_handed": helpers, "__name__": "own_main"}
        exec("def f(): return getattr(own_handed, 'val' + 'ue')", scope)
        exec("def g():\n    import own_handed as h\n    return h.value", scope)
        told.append([as_json(scope["f"]), as_json(scope["g"])])
    assert told[0][0] != told[1][0]
    assert told[0][1] != told[1][1]


def test_frames_are_known_by_types_and_index():
    frame = pd.DataFrame({"a": ["x", "y"]})
    others = [
        frame.astype("category"),
        frame.astype(pd.CategoricalDtype(["y", "x"])),
        frame.astype(pd.CategoricalDtype(["y", "x"], ordered=True)),
        frame.set_axis([1, 2]),
        frame.rename(columns={"a": 1}),
        frame.rename(columns={"a": "1"}),
        frame["a"],
    ]
    digests = [data_digest(data) for data in (frame, *others)]
    assert len(set(digests)) == len(digests)
    assert data_digest(frame["a"]) == data_digest(frame.copy()["a"])


@settings(max_examples=50)
@given(
    arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.uint8, bool]),
        array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5),
        elements=st.integers(0, 1),
    ),
    st.data(),
)
def test_any_entry_changes_a_digest_and_no_layout_does(rows, data):
    for same in (np.asfortranarray(rows), rows[::-1][::-1], rows.copy()):
        assert data_digest(same) == data_digest(rows)
    where = tuple(data.draw(st.integers(0, size - 1)) for size in rows.shape)
    changed = rows.copy()
    changed[where] = 1 - changed[where].astype(int)
    assert data_digest(changed) != data_digest(rows)


@pytest.mark.parametrize("kind", ["F", "sparse", "strided"])
def test_a_digest_copies_little(kind):
    rows = np.zeros((60_000, 20))
    if kind == "F":
        rows = np.asfortranarray(rows)
    elif kind == "strided":
        rows = rows[:, 1:]
    else:
        rows = sp.csr_array(np.ones((50_000, 20)))
    size = rows.data.nbytes if kind == "sparse" else rows.nbytes
    data_digest(rows[:2])
    tracemalloc.start()
    try:
        data_digest(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 3

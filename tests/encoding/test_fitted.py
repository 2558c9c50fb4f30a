"""States of fitted encodings: the same bits again, or refused."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from encoding_twins import ENCODINGS
from hypothesis import given
from hypothesis import strategies as st

from clml.encoding import Bins, FittedEncoding, Quantiles, Robust, Standardized

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 5))
X[:, 1] = X[:, 1] > 0
X[::5, 2] = np.nan
X[:, 3] = 1
X[:, 4] = np.round(X[:, 4])


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
def test_round_trip(encoding, sparse, tmp_path):
    rows = sp.csr_array(X) if sparse else X
    fitted = encoding.fit(rows)
    state = fitted.state()
    assert {type(value) for value in state.values()} <= {
        np.ndarray,
        str,
        int,
        float,
        bool,
    }
    arrays = {k: v for k, v in state.items() if isinstance(v, np.ndarray)}
    np.savez(tmp_path / "state.npz", **arrays)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        state.update(file)
    again = FittedEncoding.from_state(state)
    for name, value in fitted.state().items():
        np.testing.assert_array_equal(again.state()[name], value)
    assert again.names() == fitted.names()
    for copied in (again, pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        a, b = copied.apply(rows), fitted.apply(rows)
        if sparse:
            a, b = a.toarray(), b.toarray()
        assert a.tobytes() == b.tobytes()


def test_states_are_copies():
    fitted = Bins().fit(X)
    state = fitted.state()
    state["scale"][:] = 7
    assert not (fitted.scale == 7).any()
    state = fitted.state()
    again = FittedEncoding.from_state(state)
    state["scale"][:] = 7
    assert not (again.scale == 7).any()
    with pytest.raises(FrozenInstanceError):
        fitted.limit = 5.0


def with_entry(name, place, value):
    def damage(state):
        state[name][place] = value

    return damage


def replaced(name, value):
    def damage(state):
        state[name] = value(state[name]) if callable(value) else value

    return damage


DAMAGE = [
    (replaced("kind", "network"), "must be that of an encoding"),
    (replaced("version", 1), "must be of version 2, got 1"),
    (replaced("more", 1), "holds what no encoding has: 'more'"),
    (lambda state: state.pop("scale"), "'scale' must be an array of float64.*None"),
    (replaced("scale", [1.0] * 5), "'scale' must be an array.*got list"),
    (replaced("scale", lambda a: a.astype(np.float32)), "float64.*got one of float32"),
    (replaced("scale", lambda a: a.astype(">f8")), "'scale' must be an array"),
    (replaced("scale", lambda a: a.astype(object)), "'scale' must be an array"),
    (replaced("scale", lambda a: a[:, None]), "one dimension"),
    (replaced("scale", lambda a: a[:-1]), "'scale' must have 5 entries, got 4"),
    (replaced("missing", lambda a: a.astype(np.uint8)), "'missing' must be an array"),
    (replaced("code", lambda a: a.astype(np.int64)), "'code' must be an array"),
    (replaced("code", lambda a: a[:-1]), "'missing' must have 4 entries"),
    (with_entry("code", 0, 99), "'code' must hold numbers up to 6"),
    (with_entry("code", 0, 2), "'offsets' must give tables"),
    (with_entry("code", 1, 6), "'offsets' must give tables"),
    (with_entry("scale", 0, 0.0), "'scale' must hold positive"),
    (with_entry("scale", 0, -1.0), "'scale' must hold positive"),
    (with_entry("scale", 0, 5e-324), "'scale' must hold positive"),
    (with_entry("scale", 0, np.nan), "'scale' must hold finite"),
    (with_entry("shift", 0, np.inf), "'shift' must hold finite"),
    (with_entry("knots", 3, np.nan), "'knots' must hold finite"),
    (with_entry("knots", 3, 1e9), "'knots' must ascend"),
    (lambda s: with_entry("knots", 3, s["knots"][2])(s), "'knots' must ascend"),
    (replaced("knots", lambda a: a[:-1]), "'levels' must have"),
    (with_entry("levels", 3, 1e7), "'levels' must be at most 1e\\+06"),
    (with_entry("levels", 3, -1.0), "'levels' must not descend"),
    (with_entry("offsets", 0, 1), "'offsets' must ascend from 0"),
    (with_entry("offsets", -1, 10**6), "'offsets' must ascend"),
    (with_entry("offsets", 2, -5), "'offsets' must ascend"),
    (with_entry("offsets", 2, np.iinfo(np.int64).min), "'offsets' must ascend"),
    (with_entry("offsets", 1, 1), "'offsets' must give tables"),
    (replaced("limit", 0.0), "'limit' must be a number from 0.001"),
    (replaced("limit", np.nan), "'limit' must be a number"),
    (replaced("limit", True), "'limit' must be a number"),
    (replaced("limit", "3"), "'limit' must be a number.*got str"),
    (replaced("centred", 1), "'centred' must be True or False, got 1"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_damaged_states_are_refused(damage, message):
    state = Bins().fit(X).state()
    damage(state)
    with pytest.raises(ValueError, match=message):
        FittedEncoding.from_state(state)


@pytest.mark.parametrize("state", [None, [], "encoding", {}, {"kind": "encoding"}])
def test_what_is_no_state(state):
    with pytest.raises(ValueError, match="The state must be"):
        FittedEncoding.from_state(state)


@given(st.data())
def test_whatever_is_accepted_can_be_applied(data):
    """Any entry, changed to anything: refused, or the result is finite."""
    encoding = data.draw(st.sampled_from([Bins(3), Quantiles(4), Robust()]))
    state = encoding.fit(X).state()
    arrays = [k for k, v in state.items() if isinstance(v, np.ndarray) and v.size]
    array = state[data.draw(st.sampled_from(arrays))]
    place = data.draw(st.integers(0, array.size - 1))
    anything = {
        "f": st.floats(),
        "u": st.integers(0, 255),
        "b": st.booleans(),
        "i": st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 20),
    }
    array[place] = data.draw(anything[array.dtype.kind])
    try:
        fitted = FittedEncoding.from_state(state)
    except ValueError:
        return
    assert len(fitted.names()) == fitted.n_columns
    assert np.isfinite(fitted.apply(X)).all()


def test_names_stand_for_columns():
    fitted = Bins(2).fit(X)
    assert fitted.names(list("abcde"))[:1] == ["a"]
    assert len(fitted.names()) == fitted.n_columns == fitted.apply(X).shape[1]
    assert "d" not in fitted.names(list("abcde"))  # constant
    assert "c is missing" in fitted.names(list("abcde"))
    assert Standardized().fit(X).names() == ["x0", "x1", "x2", "x2 is missing", "x4"]

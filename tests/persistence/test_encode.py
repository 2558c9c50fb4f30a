"""Values to JSON and back."""

import json
import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import Bunch

from clml._base.multilabel import LabelClasses
from clml.network import Layout
from clml.persistence._decode import Decoder
from clml.persistence._encode import DEEPEST, Encoder


def round_trip(value):
    encoder = Encoder()
    text = json.dumps(encoder.encode(value), allow_nan=False)
    return Decoder(encoder.arrays.__getitem__).decode(json.loads(text))


def assert_same(found, expected):
    """Compare types, dtypes, shapes, orders and bits."""
    assert type(found) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, dict):
        assert list(map(repr, found)) == list(map(repr, expected))
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.dtype.byteorder == expected.dtype.byteorder
        assert found.shape == expected.shape
        assert found.tolist() == expected.tolist() or found.dtype.kind == "f"
        if found.dtype != object:
            assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, np.generic):
        assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, float):
        assert repr(found) == repr(expected)
    else:
        assert found == expected


def test_worked_example():
    encoder = Encoder()
    node = encoder.encode(
        {"a": [None, True, 3, 0.1, "x"], "b": (np.arange(2), -math.inf)}
    )
    assert node == {
        "type": "dict",
        "value": [
            ["a", [None, True, 3, 0.1, "x"]],
            [
                "b",
                {
                    "type": "tuple",
                    "value": [
                        {"type": "array", "value": 0},
                        {"type": "float", "value": "-inf"},
                    ],
                },
            ],
        ],
    }
    assert [array.tolist() for array in encoder.arrays] == [[0, 1]]


NUMBERS = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
ARRAYS = st.one_of(
    hnp.arrays(NUMBERS, SHAPES),
    hnp.arrays(hnp.unicode_string_dtypes(endianness="?", max_len=4), SHAPES),
    hnp.arrays(object, SHAPES, elements=st.text(max_size=4)),
)
SCALARS = NUMBERS.flatmap(
    lambda dtype: hnp.arrays(dtype.newbyteorder("="), ()).map(lambda a: a[()])
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    # Lone surrogates too: names of columns may have come from anywhere.
    st.text(st.characters(), max_size=4),
    st.text(max_size=4).map(np.str_),
    SCALARS,
    ARRAYS,
)
KEYS = st.one_of(
    st.text(max_size=3), st.integers(), st.floats(allow_nan=False), st.just(-0.0)
)


def bunch(values):
    found = Bunch()
    found.update(values)
    return found


VALUES = st.recursive(
    LEAVES,
    lambda values: st.one_of(
        st.lists(values, max_size=3),
        st.lists(values, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), values, max_size=3),
        st.dictionaries(KEYS, values, max_size=3),
        st.dictionaries(st.text(max_size=3), values, max_size=3).map(bunch),
        st.lists(hnp.arrays(np.int64, 2), max_size=3).map(LabelClasses),
    ),
    max_leaves=8,
)


@given(VALUES)
@example(np.str_("0\x00"))
def test_values_return_exactly(value):
    assert_same(round_trip(value), value)


@given(VALUES)
def test_nan_infinity_and_keys_are_json(value):
    """What the text is made of is JSON to the letter."""
    text = json.dumps(Encoder().encode([value, math.nan, math.inf]), allow_nan=False)
    json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "kind", [sp.csr_matrix, sp.csr_array], ids=lambda k: k.__name__
)
@pytest.mark.parametrize("index", [np.int32, np.int64], ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.int8, np.bool_], ids=lambda t: t.__name__
)
def test_sparse_arrays(kind, index, dtype):
    matrix = kind(np.array([[0, 1, 0], [0, 0, 0], [1, 0, 1]], dtype=dtype))
    matrix.indices = matrix.indices.astype(index)
    matrix.indptr = matrix.indptr.astype(index)
    found = round_trip(matrix)
    assert type(found) is kind
    for name in ("data", "indices", "indptr"):
        assert_same(getattr(found, name), getattr(matrix, name))
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (1, 1)], ids=str)
def test_empty_sparse_arrays(shape):
    found = round_trip(sp.csr_array(shape))
    assert found.shape == shape
    assert found.nnz == 0


def test_order_in_memory_is_kept():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = round_trip([array])[0]
    assert found.flags.f_contiguous
    assert not found.flags.c_contiguous


def test_dataclass():
    layout = Layout(n_features=3, n_labels=np.int64(2), embedding_dim=4)
    found = round_trip(layout)
    assert found == layout
    assert type(found.n_labels) is np.int64


def test_scikit_learn_model():
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    model = GaussianNB().fit(X, [0, 0, 1, 1])
    found = round_trip(model)
    assert found.get_params() == model.get_params()
    assert list(vars(found)) == list(vars(model))
    np.testing.assert_array_equal(
        found.predict_joint_log_proba(X), model.predict_joint_log_proba(X)
    )


class Dict(dict):
    """Any subclass."""


class SubLayout(Layout):
    """Any subclass."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (len, "builtin_function_or_method cannot be saved"),
        (object(), "builtins.object cannot be saved"),
        ({1}, "builtins.set cannot be saved"),
        (b"x", "builtins.bytes cannot be saved"),
        (1j, "builtins.complex cannot be saved"),
        (Dict(), "Dict cannot be saved"),
        (SubLayout(1, 1), "SubLayout cannot be saved"),
        ({(1,): 2}, "the keys of a dict must be str or numbers, got (1,)"),
        ({math.nan: 2}, "the keys of a dict must be str or numbers, got nan"),
        ({True: 2}, "the keys of a dict must be str or numbers, got True"),
        (np.array([1, "a", None], dtype=object), "objects that are not str"),
        (np.zeros(1, dtype=complex), "an array of type complex128"),
        (np.zeros(1, dtype=[("a", int)]), "an array of type"),
        (np.zeros(1, dtype="M8[s]"), "an array of type datetime64"),
        (np.array(b"abc"), "an array of type |S3"),
        (np.ma.masked_array([1]), "MaskedArray cannot be saved"),
        (np.complex64(1), "a number of type complex64"),
        (np.datetime64("2020"), "a number of type datetime64"),
        (sp.csr_array(np.eye(2) * 1j), "a sparse array of type complex128"),
        (sp.csc_array(np.eye(2)), "csc_array cannot be saved"),
        (np.random.default_rng(0), "Generator cannot be saved"),
    ],
    ids=lambda v: v[:40] if isinstance(v, str) else type(v).__name__,
)
def test_what_cannot_be_saved(value, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        Encoder().encode(value)


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_bounded():
    assert round_trip(nested(DEEPEST)) == nested(DEEPEST)
    with pytest.raises(TypeError, match="nested more than 50 deep"):
        Encoder().encode(nested(DEEPEST + 1))
    endless = []
    endless.append(endless)
    with pytest.raises(TypeError, match="nested more than 50 deep"):
        Encoder().encode(endless)


def test_arrays_are_not_modified():
    array = np.arange(3.0)
    array.setflags(write=False)
    round_trip({"a": array})
    assert array.tolist() == [0, 1, 2]

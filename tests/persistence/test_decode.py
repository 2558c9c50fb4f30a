"""JSON that is not that of a value."""

import numpy as np
import pytest

from clml.persistence._decode import Decoder
from clml.persistence._encode import DEEPEST

ARRAYS = {
    "data": np.ones(2),
    "three": np.ones(3),
    "three_indices": np.array([0, 1, 0]),
    "text": np.array(["a", "b"]),
    "indices": np.array([0, 1]),
    "narrow": np.array([0, 1], dtype=np.int8),
    "floats": np.array([0.0, 1.0]),
    "negative": np.array([0, -1]),
    "far": np.array([0, 2]),
    "indptr": np.array([0, 1, 2]),
    "decreasing": np.array([0, 3, 2]),
    "short": np.array([0, 2]),
    "bytes": np.frombuffer(b"PK", dtype=np.uint8),
}


def take(name):
    if name not in ARRAYS:
        raise ValueError("no such array")
    return ARRAYS[name].copy()


def typed(name, value):
    return {"type": name, "value": value}


def csr(shape=(2, 2), data="data", indices="indices", indptr="indptr"):
    parts = {"data": data, "indices": indices, "indptr": indptr}
    content = {name: typed("array", part) for name, part in parts.items()}
    return typed("csr_array", {"shape": list(shape), **content})


def test_worked_example():
    found = Decoder(take).decode(csr())
    assert found.toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({}, "keys"),
        ({"type": "tuple"}, "keys"),
        ({"type": "tuple", "value": [], "more": 1}, "keys"),
        (typed("set", []), "values of type 'set' are unknown"),
        (typed(3, []), "expected a JSON string"),
        (typed([], []), "expected a JSON string"),
        (typed("tuple", 3), "expected a JSON array"),
        (typed("float", "1.0"), "'1.0' is not a float"),
        (typed("float", 1.0), "expected a JSON string"),
        (typed("dict", {"a": 1}), "expected a JSON array"),
        (typed("dict", [["a"]]), "pairs"),
        (typed("dict", [[1, 2]]), "expected a JSON string"),
        (typed("dict", [["a", 1], ["a", 2]]), "the key 'a' is there twice"),
        (typed("map", [[1, 2], [1, 3]]), "the key 1 is there twice"),
        (typed("map", [[1, 2], [1.0, 3]]), "the key 1.0 is there twice"),
        (typed("map", [[None, 2]]), "a key cannot be of NoneType"),
        (typed("map", [[[], 2]]), "a key cannot be of list"),
        (typed("map", [[True, 2]]), "a key cannot be of bool"),
        (typed("map", [1]), "expected a JSON array"),
        (typed("bunch", [[1, 2]]), "expected a JSON string"),
        (typed("same", 0), "there is no estimator 0 before"),
        (typed("same", -1), "there is no estimator -1 before"),
        (typed("same", "0"), "there is no estimator '0' before"),
        (typed("skops", "data"), "what skops wrote must be bytes"),
        (typed("skops", "bytes"), "what skops wrote is damaged"),
        (typed("classes", [1]), "must be an array"),
        (typed("numpy_str", 1), "expected a JSON string"),
        (typed("scalar", ["<f8"]), "a type and a value"),
        (typed("scalar", ["<f8", "00"]), "must have 8 bytes"),
        (typed("scalar", ["<f8", "zz"]), "hex"),
        (typed("scalar", ["<f16", "00"]), "not a type of numbers"),
        (typed("scalar", ["|O", "00" * 8]), "not a type of numbers"),
        (typed("scalar", ["<U1", "00" * 4]), "must have 4 bytes"),
        (typed("scalar", [["<f8"], "00"]), "not a type of numbers"),
        (typed("scalar", ["|b1", "02"]), "0 or 1"),
        (typed("array", "absent"), "no such array"),
        (typed("str_array", {"shape": [1]}), "keys"),
        (typed("str_array", {"shape": [2], "values": ["a"]}), "cannot hold 1"),
        (typed("str_array", {"shape": [-1], "values": []}), "lengths"),
        (typed("str_array", {"shape": [True], "values": ["a"]}), "lengths"),
        (typed("str_array", {"shape": [1.0], "values": ["a"]}), "lengths"),
        (typed("str_array", {"shape": [1], "values": [1]}), "a JSON string"),
        (typed("str_array", {"shape": [1] * 70, "values": ["a"]}), "dim"),
        (typed("str_array", {"shape": [0, 2**62, 2**62], "values": []}), "too big"),
        (csr(shape=(2,)), "two axes"),
        (csr(shape=(2**63, 2)), "lengths"),
        (csr(shape=(2**62, 2)), "pointer size 3 should be"),
        (csr(data="text"), "arrays of numbers"),
        (csr(indices="floats"), "integer indices"),
        (csr(indices="narrow"), "integer indices"),
        (csr(indices="negative"), "indices must be >= 0"),
        (csr(indices="far"), "indices must be < 2"),
        (csr(indptr="decreasing"), "non-decreasing"),
        (csr(indptr="short"), "pointer size 2 should be 3"),
        (typed("estimator", {"class": "CLMLClassifier"}), "keys"),
        (typed("dataclass", {"class": "Popen", "fields": []}), "'Popen' is not one"),
        (typed("dataclass", {"class": ["Layout"], "fields": []}), "is not one"),
        (typed("random_state", []), "not complete"),
    ],
    ids=str,
)
def test_bad_values(node, message):
    with pytest.raises(ValueError, match=message):
        Decoder(take).decode(node)


def test_sparse_array_with_room_to_spare():
    found = Decoder(take).decode(csr(data="three", indices="three_indices"))
    assert found.toarray().tolist() == [[1, 0], [0, 1]]
    assert len(found.data) == len(found.indices) == 3


def test_depth_is_bounded():
    node = []
    for _ in range(DEEPEST):
        node = [node]
    with pytest.raises(ValueError, match="nested more than 50 deep"):
        Decoder(take).decode(node)
    Decoder(take).decode(node[0])


def test_estimators_that_are_held_too_often():
    """A small file would have predictions that never end."""
    value = {"class": "GaussianNB", "parameters": [], "attributes": []}
    node, same = {"type": "estimator", "value": value}, {"type": "same", "value": 0}
    decoded = Decoder([].pop).decode([node, *[same] * 500])
    assert len({id(each) for each in decoded}) == 1
    with pytest.raises(ValueError, match="its 1 objects are held 1,033 times"):
        Decoder([].pop).decode([node, *[same] * 2000])

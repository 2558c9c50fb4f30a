"""Sums over trees that are exact in single precision."""

import math
from fractions import Fraction

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from sklearn.tree import DecisionTreeRegressor

from clml.persistence._onnx_forest import _trees_of
from clml.persistence._onnx_parts import PartsGraph
from clml.persistence._onnx_trees import _digits_of, _single_below, add_trees

NUMBERS = st.floats(-1.0, 1.0, allow_subnormal=False).filter(
    lambda v: v == 0 or abs(v) > 1e-2
)


@given(values=st.lists(NUMBERS, min_size=1, max_size=20), n_bits=st.integers(8, 24))
def test_digits_say_exactly_what_values_are(values, n_bits):
    digits = _digits_of(np.array(values), n_bits)
    for place, value in enumerate(values):
        total = sum(
            Fraction(digit[place]) / Fraction(2) ** (n_bits * (i + 1))
            for i, digit in enumerate(digits)
        )
        assert total == Fraction(value)
    assert all((np.abs(digit) <= 2**n_bits).all() for digit in digits)
    assert all((digit == np.trunc(digit)).all() for digit in digits)


def test_leaves_of_0_and_1_take_one_digit():
    assert len(_digits_of(np.array([0.0, 1.0, 1.0]), 15)) == 1


LARGEST = 2.0**100


@given(
    value=st.floats(-LARGEST, LARGEST, width=32),
    others=st.lists(st.floats(-LARGEST, LARGEST), max_size=5),
)
def test_the_same_rows_are_below_a_single_threshold(value, others):
    near = [np.nextafter(value, end) for end in (-np.inf, value, np.inf)]
    thresholds = np.array([*near, *others])
    single = _single_below(thresholds)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(np.float32(value) <= single, value <= thresholds)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_trees=st.integers(1, 40))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_exact(dtype, seed, n_trees):
    """As close as the correctly rounded sum, whatever the order and the precision."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    models = [
        DecisionTreeRegressor(max_depth=4, random_state=i).fit(
            X, rng.normal(size=(60, 2)) * [1, 1e3]
        )
        for i in range(n_trees)
    ]
    found = [model.tree_ for model in models]
    graph = PartsGraph(np.float64, 18)
    trees = _trees_of(found, [tree.value[:, :, 0] for tree in found])
    total = add_trees(graph, trees, "rows", dtype)
    (sums,) = run(graph, total, X.astype(dtype))
    each = np.stack([model.predict(X) for model in models])
    exact = [[math.fsum(each[:, i, k]) for k in range(2)] for i in range(60)]
    unit = np.abs(each).max()
    np.testing.assert_allclose(sums, exact, rtol=4e-16, atol=n_trees * unit * 2**-58)


def run(graph, output, rows):
    kind = helper.np_dtype_to_tensor_dtype(rows.dtype)
    inputs = [helper.make_tensor_value_info("rows", kind, ["N", rows.shape[1]])]
    outputs = [helper.make_tensor_value_info(output, TensorProto.DOUBLE, ["N", "K"])]
    made = helper.make_graph(graph.nodes, "sums", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"rows": rows})

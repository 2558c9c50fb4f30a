"""Graphs that are put together from others."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from clml.persistence._onnx_parts import PartsGraph


def running_sums(name):
    """Nodes that scan rows, with a body that reads a constant around it.

    The names of their own are given, and one of the body's is that of an outer node.
    """
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["row", "factor"], [f"{name}_scaled"], f"{name}_m"),
            helper.make_node("Add", ["sum", f"{name}_scaled"], ["twice"], f"{name}_a"),
            helper.make_node("Identity", ["twice"], ["told"], f"{name}_i"),
        ],
        name,
        [
            helper.make_tensor_value_info("sum", TensorProto.DOUBLE, [2]),
            helper.make_tensor_value_info("row", TensorProto.DOUBLE, [2]),
        ],
        [
            helper.make_tensor_value_info("twice", TensorProto.DOUBLE, [2]),
            helper.make_tensor_value_info("told", TensorProto.DOUBLE, [2]),
        ],
    )
    nodes = [
        helper.make_node("Add", ["given", "given"], ["twice"], name),
        helper.make_node(
            "Scan", ["start", "twice"], ["last", "sums"], body=body, num_scan_inputs=1
        ),
    ]
    constants = [
        numpy_helper.from_array(np.array([10.0, 100.0]), "factor"),
        numpy_helper.from_array(np.zeros(2), "start"),
    ]
    return nodes, constants


def assembled(*names):
    """Several of them, one after another, on the features."""
    graph = PartsGraph(np.float64, 18)
    rows = "features"
    for name in names:
        rows = graph.embed(*running_sums(name), {"given": rows})["sums"]
    made = helper.make_graph(
        graph.nodes,
        "sums",
        [helper.make_tensor_value_info("features", TensorProto.DOUBLE, ["N", 2])],
        [helper.make_tensor_value_info(rows, TensorProto.DOUBLE, ["N", 2])],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def test_parts_do_not_meddle_with_each_other():
    X = np.arange(6.0).reshape(3, 2)
    session = onnxruntime.InferenceSession(assembled("a", "b"))
    expected = X
    for _ in range(2):
        expected = np.cumsum(2 * expected * [10, 100], axis=0)
    np.testing.assert_array_equal(session.run(None, {"features": X})[0], expected)


def test_names_inside_do_not_matter():
    assert assembled("a", "b") == assembled("0x7f11", "0x7f22")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [True, False])
def test_rows_that_are_refused(dtype, missing):
    graph = PartsGraph(np.float64, 18)
    rows = graph.finite("features", 2, dtype, missing=missing)
    assert graph.finite("features", 2, dtype, missing=missing) == rows
    graph.cast(rows, np.float64, output="seen")
    graph.node("Identity", graph.nan_where_refused("scores"), output="told")
    described = helper.make_tensor_value_info
    made = helper.make_graph(
        graph.nodes,
        "refused",
        [
            described("features", TensorProto.DOUBLE, ["N", 2]),
            described("scores", TensorProto.DOUBLE, ["N", 1]),
        ],
        [
            described("seen", TensorProto.DOUBLE, ["N", 2]),
            described("told", TensorProto.DOUBLE, ["N", 1]),
        ],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    session = onnxruntime.InferenceSession(model.SerializeToString())
    X = np.array([[1, 2], [np.nan, 3], [-np.inf, 4], [5, 1e39]])
    seen, told = session.run(None, {"features": X, "scores": np.ones((4, 1))})
    large = 1e39 if dtype is np.float64 else 0
    nan = np.nan if missing else 0
    np.testing.assert_array_equal(seen, [[1, 2], [nan, 3], [0, 4], [5, large]])
    single = dtype is np.float32
    refused = [False, not missing, True, single]
    np.testing.assert_array_equal(np.isnan(told[:, 0]), refused)


def test_names_after_nodes_are_dropped_are_new():
    graph = PartsGraph(np.float64, 18)
    graph.node("Abs", "features")
    zero = graph.number(0, np.float64)
    graph.node("Add", "features", zero)
    graph.table([1.0])
    graph.node("Identity", graph.node("Neg", "features"), output="logits")
    graph.keep_what_gives("logits")
    assert not graph.constants
    # What was dropped and is asked for again is there again.
    last = graph.node("Neg", graph.node("Add", "logits", graph.number(0, np.float64)))
    graph.node("Add", last, graph.table([1.0]))
    assert len(graph.constants) == 2
    given = [name for node in graph.nodes for name in node.output]
    given += [constant.name for constant in graph.constants]
    assert len(given) == len(set(given))
    read = {name for node in graph.nodes for name in node.input}
    assert read <= {"features", *given}

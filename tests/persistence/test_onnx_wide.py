"""Graphs of wide networks that predict what the library does."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from scipy.special import expit

import clml
from clml._training.ensemble import MIXED_NUMBERS as MIXED
from clml._training.ensemble import Ensemble
from clml.encoding import Bins, GaussianKernel, Quantiles, Robust, Standardized
from clml.encoding.kinds import Code
from clml.network import WideNetwork
from clml.persistence._onnx_encoding import EncodingNodes
from clml.persistence._onnx_model import OPSETS, Graph
from clml.persistence._onnx_wide import bytes_of_ensemble, model_of_ensemble

CLOSE = {"float32": 1e-5, "float64": 1e-9}
ENCODINGS = {
    "standardized": Standardized(),
    "standardized-scaled": Standardized(indicators="scaled"),
    "robust": Robust(),
    "robust-limit": Robust(0.5, indicators="scaled"),
    "quantiles": Quantiles(),
    "quantiles-few": Quantiles(3, indicators="scaled"),
    "quantiles-two": Quantiles(2),
    "bins": Bins(),
    "bins-scaled": Bins(3, indicators="scaled"),
    "ramps": Bins(5, numbers=False),
}
SMALL = WideNetwork(hidden=(6, 5))


def columns_of_all_kinds(seed=0, n=150, repeats=1):
    """Constant, 0/1, two values, ties, few values, large mean, heavy tails, tiny."""
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(repeats):
        columns += [
            np.full(n, 3.0),
            rng.integers(0, 2, n),
            rng.choice([-2.0, 5.0], n),
            rng.integers(0, 4, n),
            rng.normal(size=n),
            1e4 + rng.normal(size=n),
            rng.standard_cauchy(size=n),
            1e-9 * rng.exponential(size=n),
            np.zeros(n),
        ]
    return np.column_stack(columns).astype(np.float64)


class Model:
    """An ensemble with random weights, and what follows its members."""

    def __init__(
        self,
        X,
        encodings,
        network=SMALL,
        n_labels=3,
        n_members=None,
        seed=0,
        temperature=1.7,
    ):
        rng = np.random.default_rng(seed)
        n_members = n_members or len(encodings)
        chosen = [m % len(encodings) for m in range(n_members)]
        self.ensemble = Ensemble.fit(X, None, n_labels, network, encodings, chosen)
        self.networks = []
        for i in self.ensemble.chosen:
            theta = self.ensemble.layouts[i].start(rng)
            # Biases and linear paths begin at 0.
            theta[theta == 0] = 0.3 * rng.normal(size=(theta == 0).sum())
            self.networks.append(theta)
        self.scale = rng.uniform(0.3, 3.0, n_members)
        self.mapping = np.r_[rng.uniform(0.5, 2, n_labels), rng.normal(size=n_labels)]
        self.temperature = temperature

    def proto(self, dtype="float32", opset=18, two_classes=False, metadata=None):
        return model_of_ensemble(
            self.ensemble,
            self.networks,
            self.scale,
            self.mapping,
            self.temperature,
            two_classes=two_classes,
            dtype=dtype,
            opset=opset,
            metadata=metadata or {},
        )

    def logits(self, X, dtype):
        """As the library computes them; in float64 from the same encoded rows."""
        ensemble, total = self.ensemble, 0
        for i, theta, scale in zip(
            ensemble.chosen, self.networks, self.scale, strict=True
        ):
            rows, layout = ensemble.encodings[i].apply(X), ensemble.layouts[i]
            found = layout.logits(theta, rows)
            if dtype == "float64":
                found = slow_logits(layout, theta, rows.astype(np.float64))
            total = total + scale * found
        a, b = np.split(self.mapping, 2)
        return (a * total / len(self.networks) + b) / self.temperature


def slow_logits(layout, theta, rows):
    weights = layout.views(theta.astype(np.float64))
    activate = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}[layout.activation]
    entries, last = rows, len(layout.hidden) + 1
    for i in range(1, last):
        entries = activate(entries @ weights[f"W{i}"] + weights[f"b{i}"])
    logits = entries @ weights[f"W{last}"] + weights[f"b{last}"]
    return logits + rows @ weights["linear"] if layout.linear_path else logits


def runtime(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run


def assert_same(model, X, dtype="float32", run=None):
    """Compare with the library on the rows that the graph is given."""
    rows = np.asarray(X).astype(dtype)
    run = run or runtime(model.proto(dtype))
    logits, probabilities, labels = run(None, {"features": rows})
    expected = model.logits(rows, dtype)
    size = max(np.abs(expected).max(), 1.0)
    assert logits.dtype == probabilities.dtype == dtype
    assert labels.dtype == np.int64
    np.testing.assert_allclose(logits, expected, rtol=0, atol=CLOSE[dtype] * size)
    np.testing.assert_allclose(
        probabilities, expit(expected), rtol=0, atol=CLOSE[dtype]
    )
    clear = np.abs(expected) >= CLOSE[dtype] * size
    np.testing.assert_array_equal(labels[clear], (expected > 0)[clear])


def encoded(fitted, rows):
    """What a graph makes of rows, in the order of the library; whether it has them."""
    graph = Graph()
    name, order = EncodingNodes(graph, fitted.n_inputs).add(fitted)
    kind = onnx.helper.np_dtype_to_tensor_dtype(rows.dtype)
    describe = onnx.helper.make_tensor_value_info
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "encoding",
            [describe("features", kind, ["N", fitted.n_inputs])],
            [describe(name, onnx.TensorProto.FLOAT, ["N", len(order)])],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", 18)],
        ir_version=8,
    )
    found = np.zeros((len(rows), fitted.n_columns), dtype=np.float32)
    assert len(set(order.tolist())) == len(order)
    with np.errstate(over="ignore"):  # what overflows is bounded next
        results = [
            run(None, {"features": rows})[0]
            for run in (runtime(proto), ReferenceEvaluator(proto).run)
        ]
    np.testing.assert_array_equal(*results)
    found[:, order] = results[0]
    return found


def assert_encoded(fitted, rows):
    """The bits of float32: but for numbers that are nearly 0, others are far apart."""
    np.testing.assert_allclose(
        encoded(fitted, rows), fitted.apply(rows), rtol=0, atol=1e-15
    )


def test_worked_example():
    """One unit: relu(x − 2 of a column of mean 2 and deviation 1), doubled."""
    X = np.array([[1.0], [2.0], [3.0]])
    model = Model(X, [Standardized()], WideNetwork(hidden=(1,)), n_labels=1)
    deviation = np.sqrt(2 / 3)
    model.networks = [np.array([deviation, 0, 2, 0.5], dtype=np.float32)]
    model.scale, model.mapping = np.array([3.0]), np.array([1.0, -4.5])
    model.temperature = 2.0
    rows = np.array([[5.0], [-7.0], [3.0]], dtype=np.float64)
    # 3 · (2 · relu(x − 2) + 0.5) − 4.5, halved.
    for run in (
        runtime(model.proto("float64")),
        ReferenceEvaluator(model.proto("float64")).run,
    ):
        logits, probabilities, labels = run(None, {"features": rows})
        np.testing.assert_allclose(logits, [[7.5], [-1.5], [1.5]], rtol=1e-6)
        np.testing.assert_allclose(probabilities, expit(logits))
        assert labels.tolist() == [[1], [0], [1]]


def rows_around(X):
    """Training rows, values at, beside and beyond them, and very large ones."""
    spread = np.abs(X).max(axis=0) + 1
    return np.vstack(
        [
            X,
            np.nextafter(X, np.inf),
            np.nextafter(X, -np.inf),
            X + 0.37 * X.std(axis=0),
            X[:20] - 3 * spread,
            X[:20] + 3 * spread,
            np.full((1, X.shape[1]), 1e30),
            np.full((1, X.shape[1]), -1e30),
            np.zeros((1, X.shape[1])),
            np.ones((1, X.shape[1])),
        ]
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("dtype", CLOSE)
def test_encoded_bit_for_bit(encoding, kind, dtype):
    """Rounded to float32, as the library's are; ties at knots included."""
    X = columns_of_all_kinds()
    X[::3, 4:] = 0
    fitted = encoding.fit(kind(X))
    assert fitted.centred == (kind is np.asarray)
    rows = rows_around(X).astype(dtype)
    assert_encoded(fitted, rows)


def test_largest_and_smallest_numbers():
    X = np.array([[-1.7e308, 1e-200], [0.0, 2e-200], [1.7e308, 3e-200], [5, 0]])
    rows = np.vstack([X, [[1e308, 1.79e308], [-1e308, 5e-324], [1e-308, -1e-308]]])
    for encoding in ENCODINGS.values():
        fitted = encoding.fit(X)
        assert_encoded(fitted, rows)


def test_one_table_of_each_kind():
    """States may hold what no single encoding makes: levels and ramps."""
    X = columns_of_all_kinds()
    codes = [
        [Quantiles(), Bins(), Bins(2, numbers=False), Robust()][j % 4] for j in range(9)
    ]
    columns = [one.fit(X[:, j : j + 1]) for j, one in enumerate(codes)]
    states = [one.state() for one in columns]
    state = states[0] | {
        name: np.concatenate([one[name] for one in states])
        for name in ("code", "missing", "shift", "scale", "knots", "levels", "neutral")
    }
    counts = [one.knots.size for one in columns]
    state["offsets"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    state["limit"] = 3.0
    fitted = type(columns[0]).from_state(state)
    assert set(fitted.code) == set(Code)
    rows = rows_around(X)
    assert_encoded(fitted, rows)


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("dtype", CLOSE)
def test_every_encoding(encoding, dtype):
    X = columns_of_all_kinds()
    model = Model(X, [encoding], n_members=2)
    near = np.vstack([X, X + 0.1, np.nextafter(X, np.inf)])
    near[:, 6] = np.clip(near[:, 6], -20, 20)  # what float32 adds up is still known
    assert_same(model, near, dtype)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("linear_path", [False, True])
@pytest.mark.parametrize(
    "hidden", [(1,), (7,), (6, 4), (5, 3, 8), (2, 2, 2, 2)], ids=str
)
@pytest.mark.parametrize("n_labels", [1, 4])
def test_every_network(activation, linear_path, hidden, n_labels):
    network = WideNetwork(hidden, activation=activation, linear_path=linear_path)
    X = np.random.default_rng(1).normal(size=(60, 5))
    model = Model(X, MIXED, network, n_labels, n_members=5)
    for dtype in CLOSE:
        assert_same(model, X + 0.2, dtype)


@pytest.mark.parametrize("n_members", range(1, 7))
@pytest.mark.parametrize("n_rows", [0, 1, 7, 500])
@pytest.mark.parametrize("hidden", [(4,), (4, 3)], ids=str)
@pytest.mark.parametrize("dtype", CLOSE)
def test_batches(n_members, n_rows, hidden, dtype):
    """None at all included: what a runtime makes of a graph may not bear that."""
    network = WideNetwork(hidden, linear_path=n_members % 2 == 1)
    X = np.random.default_rng(1).normal(size=(60, 5))
    model = Model(X, MIXED, network, n_members=n_members)
    rows = np.random.default_rng(2).normal(size=(n_rows, 5)).astype(dtype)
    run = runtime(model.proto(dtype))
    shapes = [found.shape for found in run(None, {"features": rows})]
    assert shapes == [(n_rows, 3)] * 3
    if n_rows:
        assert_same(model, rows, dtype, run)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    chosen=st.lists(st.sampled_from(sorted(ENCODINGS)), min_size=1, max_size=4),
    n_members=st.integers(1, 6),
    hidden=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    activation=st.sampled_from(["relu", "tanh"]),
    linear_path=st.booleans(),
    n_labels=st.integers(1, 5),
    sparse=st.booleans(),
)
def test_mixtures(
    seed, chosen, n_members, hidden, activation, linear_path, n_labels, sparse
):
    X = columns_of_all_kinds(seed, n=40)
    X[:, 6] = np.clip(X[:, 6], -20, 20)
    if sparse:
        X[:, 5] -= 1e4  # without centring float32 would not tell it
    network = WideNetwork(hidden, activation=activation, linear_path=linear_path)
    encodings = [ENCODINGS[name] for name in chosen]
    train = sp.csr_array(X) if sparse else X
    model = Model(train, encodings, network, n_labels, n_members, seed)
    for dtype in CLOSE:
        assert_same(model, X, dtype)


@pytest.mark.parametrize("dtype", CLOSE)
def test_values_far_outside(dtype):
    """Bounded numbers, of 1e6 at most: what single precision keeps is relative."""
    X = columns_of_all_kinds()
    model = Model(X, [*MIXED, Standardized()])
    rows = rows_around(X)[-44:].astype(dtype)
    logits, probabilities, labels = runtime(model.proto(dtype))(
        None, {"features": rows}
    )
    expected = model.logits(rows, dtype)
    size = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1)
    assert np.isfinite(probabilities).all()
    assert (np.abs(logits - expected) <= CLOSE[dtype] * size).all()
    clear = np.abs(expected) >= CLOSE[dtype] * size
    np.testing.assert_array_equal(labels[clear], (expected > 0)[clear])


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", CLOSE)
def test_file(opset, dtype):
    X = columns_of_all_kinds()
    X[:, 6] = np.clip(X[:, 6], -20, 20)
    network = WideNetwork((6, 5), activation="tanh", linear_path=True)
    model = Model(X, list(ENCODINGS.values()), network, n_members=12)
    proto = model.proto(dtype, opset, metadata={"label_names": json.dumps(["a"])})
    onnx.checker.check_model(proto, full_check=True)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", opset)]
    assert proto.ir_version <= 10
    assert (proto.producer_name, proto.producer_version) == ("clml", clml.__version__)
    assert {node.domain for node in proto.graph.node} == {""}
    assert {p.key: p.value for p in proto.metadata_props} == {"label_names": '["a"]'}
    assert "12 network(s), 3 label(s)" in proto.doc_string
    names = [constant.name for constant in proto.graph.initializer]
    assert len(set(names)) == len(names)
    used = {name for node in proto.graph.node for name in node.input}
    assert used >= set(names)
    for run in (runtime(proto), ReferenceEvaluator(proto).run):
        assert_same(model, X, dtype, run)


def test_two_classes():
    X = columns_of_all_kinds()
    model = Model(X, MIXED, n_labels=1)
    proto = model.proto(two_classes=True)
    texts = [output.doc_string for output in proto.graph.output]
    assert all("classes[1]" in text for text in texts)
    assert (
        proto.SerializeToString() == model.proto(two_classes=True).SerializeToString()
    )


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 1, 3, 4])
@pytest.mark.parametrize("dtype", CLOSE)
def test_rows_that_cannot_be_read_have_no_probabilities(value, column, dtype):
    """In columns that no network reads, too; neighbours are not touched."""
    X = columns_of_all_kinds()
    X[::5, 4] = np.nan
    model = Model(X, MIXED, WideNetwork((6, 5), linear_path=True))
    rows = columns_of_all_kinds(1)[:9].astype(dtype)
    proto = model.proto(dtype)
    for run in (runtime(proto), ReferenceEvaluator(proto).run):
        before = run(None, {"features": rows})
        changed = rows.copy()
        changed[4, column] = value
        found = run(None, {"features": changed})
        logits, probabilities, labels = found
        assert np.isnan(logits[4]).all()
        assert np.isnan(probabilities[4]).all()
        assert not labels[4].any()
        others = np.arange(9) != 4
        for one, other in zip(found, before, strict=True):
            np.testing.assert_array_equal(one[others], other[others])


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_columns_that_are_missing_at_times(encoding):
    X = columns_of_all_kinds()
    complete = X.copy()
    complete[:, 6] = np.clip(complete[:, 6], -20, 20)
    some = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, complete)
    for holes in (slice(0), slice(None, None, 4)):  # never and at times
        X[holes] = np.nan
        model = Model(X, [encoding], n_members=2)
        assert model.ensemble.encodings[0].missing.all() == (holes.stop is None)
        assert_encoded(model.ensemble.encodings[0], some)
        for dtype in CLOSE:
            assert_same(model, complete, dtype)
            assert_same(model, some, dtype)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize(
    "encoding",
    [GaussianKernel(n_landmarks=40), GaussianKernel(Quantiles(), width=0.5)],
    ids=repr,
)
def test_features_of_a_kernel(encoding, dtype):
    X = columns_of_all_kinds()
    model = Model(X, [encoding, Robust(), encoding], n_members=3)
    assert_same(model, X[::-1], dtype)
    linear = WideNetwork(hidden=(), linear_path=True)
    assert_same(Model(X, [Robust()], linear, n_members=2), X, dtype)
    X[::4, ::2] = np.nan
    assert_same(Model(X, [encoding], n_members=2), X, dtype)


def test_columns_that_are_missing_in_sparse_rows():
    X = columns_of_all_kinds()
    X[np.abs(X) < 1] = 0
    X[::4, ::2] = np.nan
    fitted = Robust().fit(sp.csr_array(X))
    assert not fitted.centred
    assert_encoded(fitted, X[::-1])


def test_nothing_but_indicators_of_missing_values():
    X = np.array([[1.0, 2.0], [np.nan, 2.0], [1.0, np.nan]])
    model = Model(X, [Robust()], WideNetwork((4,), linear_path=True), n_members=2)
    assert not model.ensemble.encodings[0].code.any()
    for dtype in CLOSE:
        assert_same(model, np.array([[1.0, 2.0], [7.0, np.nan], [np.nan, 1.0]]), dtype)


def test_size_is_bounded_and_does_not_grow_with_columns():
    few, many = (
        Model(columns_of_all_kinds(repeats=repeats), MIXED, n_members=6)
        for repeats in (1, 20)
    )
    assert len(few.proto().graph.node) == len(many.proto().graph.node) < 300
    for dtype in CLOSE:
        for model in (few, many):
            n_nodes = 20_000  # bytes of nodes and names
            length = len(model.proto(dtype).SerializeToString())
            assert length <= bytes_of_ensemble(model.ensemble, dtype) + n_nodes
    assert bytes_of_ensemble(many.ensemble, "float32") <= 2 * length

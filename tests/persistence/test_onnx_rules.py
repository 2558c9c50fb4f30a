"""Graphs of rules that decide whole rows."""

import json
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from clml import CLMLClassifier, LebesgueStackingClassifier, LebesgueTunedClassifier
from clml._maps.row_rules import shifted_rows
from clml.persistence._onnx_model import OPSETS, Graph, finished_model
from clml.persistence._onnx_rules import rule_logits

RULES = ("at_least_one", "top_1", "top_2", "top_5", "best_prefix")
LOSSES = ("subset_zero_one", "example_f1", "lrap")


def model_of(rule, n_labels=5, dtype="float64", temperature=1.0, opset=18):
    """Return a graph whose features are logits."""
    graph, kind = Graph(), np.dtype(dtype).type
    graph.node("Identity", "features", output="logits")
    rule_logits(graph, rule, temperature, n_labels, kind)
    return finished_model(
        graph,
        n_features=n_labels,
        n_labels=n_labels,
        text="",
        two_classes=False,
        dtype=dtype,
        opset=opset,
        metadata={},
    )


def run(model, logits):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"features": logits})


@pytest.fixture(scope="module")
def graphs():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return {
        rule: onnxruntime.InferenceSession(model_of(rule).SerializeToString(), options)
        for rule in RULES
    }


@given(seed=st.integers(0, 10_000), rule=st.sampled_from(RULES))
def test_a_graph_decides_as_the_library_does(seed, rule, graphs):
    generator = np.random.default_rng(seed)
    logits = generator.normal(-1, 2, size=(6, 5))
    logits[::2] = logits[::2].round()  # with ties
    found, _, labels = graphs[rule].run(None, {"features": logits})
    expected = shifted_rows(rule, logits)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_array_equal(labels, expected > 0)


@pytest.mark.parametrize("rule", RULES)
def test_any_number_of_rows_and_what_is_no_number(rule):
    logits = np.array([[np.nan] * 5, [0.0] * 5])  # rows that are refused have none
    found, _, labels = run(model_of(rule), logits)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(logits))
    np.testing.assert_array_equal(labels[1], shifted_rows(rule, logits)[1] > 0)
    for shape in ((0, 5), (1, 5)):
        assert run(model_of(rule), np.zeros(shape))[2].shape == shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("opset", [OPSETS[0], OPSETS[-1]])
@pytest.mark.parametrize("rule", ["at_least_one", "top_2", "best_prefix"])
def test_precisions_and_versions(rule, opset, dtype):
    logits = np.random.default_rng(0).normal(-2, 2, size=(20, 30)).astype(dtype)
    model = model_of(rule, 30, dtype, 1.7, opset)
    onnx.checker.check_model(model, full_check=True)
    expected = shifted_rows(rule, logits.astype(float), 1.7) > 0
    np.testing.assert_array_equal(run(model, logits)[2], expected)
    slowly = ReferenceEvaluator(model).run(None, {"features": logits[:5]})
    np.testing.assert_array_equal(slowly[2], expected[:5])


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 6)).astype(np.float32).astype(float)
    label = (X + 1.5 * generator.normal(size=X.shape)).argmax(axis=1)
    return X, (np.arange(6) == label[:, None]).astype(int)


CLML = CLMLClassifier(LOSSES, max_epochs=2, n_members=2, random_state=0)
TREE = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
MODELS = {
    "clml": CLML,
    "paper": CLMLClassifier(
        LOSSES, max_epochs=2, n_members=2, network="paper", random_state=0
    ),
    "tuned": LebesgueTunedClassifier(TREE, LOSSES, random_state=0),
    # A learner that has a rule itself.
    "stacked": LebesgueStackingClassifier(
        [
            ("clml", CLML.__class__(**CLML.get_params(deep=False))),
            ("tree", TREE),
        ],
        LOSSES,
        cv=2,
        random_state=0,
    ),
}
MODELS["stacked"].set_params(clml__incumbent="subset_zero_one")


@pytest.mark.parametrize("kind", MODELS)
def test_models_with_rules_are_written(kind, rows, tmp_path):
    X, Y = rows
    clf = MODELS[kind].fit(X, Y)
    ruled = [i for i, rule in enumerate(clf.front_.rules) if rule is not None]
    assert ruled
    for i in ruled:
        model = clf.select(i)
        model.to_onnx(tmp_path / "m.onnx", dtype="float64")
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
        logits, _, labels = session.run(None, {"features": X})
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_allclose(logits, model.decision_function(X), atol=1e-5)
        known = session.get_modelmeta().custom_metadata_map
        assert json.loads(known["rule"]) == model.rule_
    clf.select(clf.front_.default).to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert "rule" not in session.get_modelmeta().custom_metadata_map


@pytest.mark.parametrize("rule", ["at_least_one", "top_1", "best_prefix"])
def test_rules_after_a_learner_of_which_nodes_are_dropped(rule, rows, tmp_path):
    """What skl2onnx writes of neighbours has outputs that nobody reads."""
    pytest.importorskip("skl2onnx")
    X, Y = rows
    # With 5 labels, numbers of nodes that were dropped would be given again.
    Y = (np.arange(5) == Y[:, :5].argmax(axis=1)[:, None]).astype(int)
    clf = LebesgueTunedClassifier(KNeighborsClassifier(), LOSSES, cv=2, random_state=0)
    front = clf.fit(X, Y).front_
    clf.front_ = replace(front, rules=(rule,) * len(front))
    model = clf.select(0)
    assert model.rule_ == rule
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path in paths:
        model.to_onnx(path, dtype="float64")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    onnx.checker.check_model(paths[0], full_check=True)
    *_, labels = onnxruntime.InferenceSession(paths[0]).run(None, {"features": X})
    np.testing.assert_array_equal(labels, model.predict(X))

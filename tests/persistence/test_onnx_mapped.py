"""Graphs that predict what tuned and stacked classifiers do, learners and all."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from short_maps import shorten_maps
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import clml
from clml import CLMLClassifier, LebesgueStackingClassifier, LebesgueTunedClassifier
from clml._learners.scale_columns import ScaleNonIndicators
from clml._stacking import default_learners
from clml.baselines import MLkNNClassifier, MLPRelevanceClassifier
from clml.network import PaperNetwork
from clml.persistence import load, save
from clml.persistence import onnx_mapped as _onnx_mapped
from clml.persistence.onnx_mapped import export_mapped

# What single and double precision must keep, of probabilities and decisions.
CLOSE = {"float32": 1e-5, "float64": 1e-11}
QUICK = {"cv": 2, "shrinkage": 0.5, "max_epochs": 3, "random_state": 0}
constant_labels = pytest.mark.filterwarnings(
    "ignore:.*labels are constant in the training rows",
    "ignore:Label .* is present in all training examples",
    "ignore:Label not .* is present in all training examples",
)


@pytest.fixture(autouse=True)
def short_search_for_maps(monkeypatch):
    shorten_maps(monkeypatch, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def tuned(learner, **changes):
    return LebesgueTunedClassifier(learner, **(QUICK | changes))


def stacked(*learners, **changes):
    named = [(f"learner{i}", learner) for i, learner in enumerate(learners)]
    return LebesgueStackingClassifier(named, **(QUICK | changes))


def opened(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def rows_like(X, seed=1):
    """Training rows, and others near them."""
    rng = np.random.default_rng(seed)
    return np.concatenate([X, X + 0.5 * rng.normal(size=X.shape)])


def assert_same(clf, X, path, close=None, **options):
    """Write the graph; compare it with the classifier on the rows that it is given."""
    for dtype, limit in CLOSE.items():
        clf.to_onnx(path, dtype=dtype, **options)
        onnx.checker.check_model(path, full_check=True)
        assert_equal_scores(opened(path), clf, X, dtype, close or limit)


def assert_equal_scores(session, clf, X, dtype, limit):
    rows = np.asarray(X.toarray() if sp.issparse(X) else X).astype(dtype)
    given = rows.astype(np.float64)
    if sp.issparse(X):
        given = sp.csr_array(given)
    elif isinstance(X, pd.DataFrame):
        given = pd.DataFrame(given, columns=X.columns)
    logits, probabilities, labels = session.run(None, {"features": rows})
    expected = clf.decision_function(given).reshape(logits.shape)
    assert logits.dtype == probabilities.dtype == dtype
    assert labels.dtype == np.int64
    size = max(np.abs(expected).max(), 1.0)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=limit * size)
    np.testing.assert_allclose(probabilities, expit(expected), rtol=0, atol=limit)
    clear = np.abs(expected) >= limit * size
    np.testing.assert_array_equal(labels[clear], (expected > 0)[clear])


NATIVE = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "extra-tree": ExtraTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(11, random_state=0),
    "forest-of-impure-leaves": RandomForestClassifier(
        12, min_samples_leaf=4, class_weight="balanced", random_state=0
    ),
    "extra-trees": ExtraTreesClassifier(7, random_state=0),
    "ridge": RidgeClassifier(),
    "perceptron": MLPClassifier((6, 5), tol=9, n_iter_no_change=2, random_state=0),
    "perceptron-tanh": MLPClassifier(
        (6,), activation="tanh", tol=9, n_iter_no_change=2, random_state=0
    ),
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "one-vs-rest-of-trees": OneVsRestClassifier(DecisionTreeClassifier(max_depth=3)),
    "one-vs-rest-of-pipelines": OneVsRestClassifier(
        make_pipeline(StandardScaler(), LinearSVC())
    ),
    "discriminants": OneVsRestClassifier(LinearDiscriminantAnalysis()),
    "machines": OneVsRestClassifier(SVC()),
    "machines-poly": OneVsRestClassifier(SVC(kernel="poly", coef0=1.0)),
    "machines-sigmoid": OneVsRestClassifier(SVC(kernel="sigmoid", gamma=0.01)),
    "machines-linear": MultiOutputClassifier(SVC(kernel="linear")),
    "machines-nu": MultiOutputClassifier(NuSVC(nu=0.2)),
    "outputs": MultiOutputClassifier(LogisticRegression()),
    "outputs-of-forests": MultiOutputClassifier(RandomForestClassifier(5)),
    "outputs-that-decide": MultiOutputClassifier(LinearSVC()),
    "boosted": OneVsRestClassifier(GradientBoostingClassifier(n_estimators=5)),
    "boosted-from-zero": MultiOutputClassifier(
        GradientBoostingClassifier(n_estimators=5, init="zero")
    ),
    "histograms": MultiOutputClassifier(HistGradientBoostingClassifier(max_iter=5)),
    "bagging": OneVsRestClassifier(
        BaggingClassifier(n_estimators=4, max_features=0.5, random_state=0)
    ),
    "bagging-that-decides": OneVsRestClassifier(
        BaggingClassifier(LogisticRegression(), n_estimators=4, random_state=0)
    ),
    "calibrated": MultiOutputClassifier(CalibratedClassifierCV(LinearSVC(), cv=2)),
    "chain": ClassifierChain(LogisticRegression(), order="random", random_state=3),
    "chain-of-probabilities": ClassifierChain(
        LogisticRegression(), order=[2, 0, 3, 1], chain_method="predict_proba"
    ),
    "chain-of-trees": ClassifierChain(DecisionTreeClassifier(max_depth=3)),
    "search": GridSearchCV(RidgeClassifier(), {"alpha": [1.0, 10.0]}, cv=2),
    "clml": CLMLClassifier(n_members=5, max_epochs=2, random_state=0),
    "clml-paper": CLMLClassifier(
        network=PaperNetwork(embedding_dim=4), n_members=2, max_epochs=2, random_state=0
    ),
    "tuned": tuned(RidgeClassifier()),
    "stacked": stacked(RidgeClassifier(), DecisionTreeClassifier(max_depth=3)),
    "network": make_pipeline(
        ScaleNonIndicators(),
        MLPRelevanceClassifier(n_units=8, max_epochs=2, random_state=0),
    ),
}
# The library computes its wide networks in single precision.
SINGLE = {"clml"}
CONVERTED = {
    "neighbours": KNeighborsClassifier(),
    "neighbours-manhattan": KNeighborsClassifier(4, metric="manhattan"),
    "outputs-of-neighbours": MultiOutputClassifier(KNeighborsClassifier(3)),
    "normal-bayes": OneVsRestClassifier(GaussianNB()),
    "bernoulli-bayes": OneVsRestClassifier(BernoulliNB(binarize=0.1)),
    "adaboost": OneVsRestClassifier(AdaBoostClassifier(n_estimators=5)),
}
# These are converted in single precision.
SINGLE |= {"bernoulli-bayes", "adaboost"}


@pytest.fixture(scope="module")
def without_ties(small_data):
    """Rows of which no two are as far from a third."""
    X, Y = small_data
    return X + 0.1 * np.random.default_rng(7).normal(size=X.shape), Y


@pytest.mark.parametrize("name", [*NATIVE, *CONVERTED])
def test_learners(name, without_ties, path):
    if name in CONVERTED:
        pytest.importorskip("skl2onnx")
    X, Y = without_ties
    clf = tuned((NATIVE | CONVERTED)[name]).fit(X, Y)
    assert_same(clf, rows_like(X), path, 1e-5 if name in SINGLE else None)


NATIVE_STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    MinMaxScaler((-1, 2)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    ScaleNonIndicators(),
    SimpleImputer(),
    VarianceThreshold(0.5),
    FunctionTransformer(),
    "passthrough",
    Nystroem(n_components=20, random_state=0),
    FrozenEstimator(StandardScaler().fit(np.eye(8))),
    make_pipeline(StandardScaler(), "passthrough", MinMaxScaler()),
    ColumnTransformer(
        [
            ("wide", StandardScaler(), [5, 1]),
            ("none", StandardScaler(), []),
            ("gone", "drop", [0]),
            ("plain", "passthrough", slice(2, 4)),
        ],
        remainder=MinMaxScaler(),
        transformer_weights={"wide": 0.5},
    ),
]
CONVERTED_STEPS = [
    Normalizer(),
    PCA(3),
    PCA(whiten=True),
    TruncatedSVD(3, random_state=0),
    QuantileTransformer(n_quantiles=20),
    PowerTransformer(),
    PolynomialFeatures(),
]


@pytest.mark.parametrize("step", [*NATIVE_STEPS, *CONVERTED_STEPS], ids=str)
def test_steps_of_pipelines(step, small_data, path):
    if step in CONVERTED_STEPS:
        pytest.importorskip("skl2onnx")
    X, Y = small_data
    clf = tuned(make_pipeline(step, RidgeClassifier())).fit(X, Y)
    single = isinstance(step, PowerTransformer | PolynomialFeatures)
    assert_same(clf, rows_like(X), path, 1e-5 if single else None)


def small_default_learners():
    """The default stack, with less of everything."""
    learners = dict(default_learners(0))
    learners["forest"].set_params(n_estimators=9)
    learners["extra_trees"].set_params(n_estimators=9)
    learners["clml"].set_params(max_epochs=2, n_members=2)
    return list(learners.items())


@pytest.fixture(scope="module")
def default_stack(small_data):
    X, Y = small_data
    X = np.column_stack([X, X[:, 0] > 0])
    with pytest.MonkeyPatch.context() as patch:
        shorten_maps(patch, 3)
        return LebesgueStackingClassifier(small_default_learners(), **QUICK).fit(X, Y)


def test_default_stack(default_stack, small_data, path):
    X = np.column_stack([small_data[0], small_data[0][:, 0] > 0])
    rows = rows_like(X)
    rows[:, -1] = rows[:, -1] > 0.5
    # Networks compute in float32, in graphs of float64 too.
    assert_same(default_stack, rows, path, 1e-5)


def test_default_stack_needs_no_other_package(default_stack, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    default_stack.to_onnx(path)


@pytest.mark.parametrize("which", ["hamming", "micro_f1", "mean", "knee", 0], ids=str)
def test_selected(which, default_stack, small_data, path):
    chosen = default_stack.select(which)
    chosen.to_onnx(path)
    X = np.column_stack([small_data[0], small_data[0][:, 0] > 0])
    assert_equal_scores(opened(path), chosen, X, "float32", 1e-5)
    (found,) = (p.value for p in onnx.load(path).metadata_props if p.key == "incumbent")
    assert json.loads(found) == chosen.incumbent_


@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000])
def test_batches(n_rows, default_stack, path):
    rows = np.random.default_rng(1).normal(size=(n_rows, 9)).astype(np.float32)
    default_stack.to_onnx(path)
    session = opened(path)
    if n_rows:
        assert_equal_scores(session, default_stack, rows, "float32", 1e-5)
    shapes = [found.shape for found in session.run(None, {"features": rows})]
    assert shapes == [(n_rows, 4)] * 3


@pytest.mark.parametrize("name", [*CONVERTED, "pca", "quantiles"])
def test_batches_of_converted_learners(name, without_ties, path):
    pytest.importorskip("skl2onnx")
    steps = {
        "pca": make_pipeline(PCA(2), RidgeClassifier()),
        "quantiles": make_pipeline(
            QuantileTransformer(n_quantiles=20), RidgeClassifier()
        ),
    }
    X, Y = without_ties
    clf = tuned((CONVERTED | steps)[name]).fit(X, Y)
    clf.to_onnx(path)
    session = opened(path)
    assert_equal_scores(session, clf, X[:1], "float32", 1e-5)
    none = session.run(None, {"features": X[:0].astype(np.float32)})
    assert [found.shape for found in none] == [(0, 4)] * 3


@pytest.mark.parametrize("mapping", ["affine", "bias", "mixing", "thresholds"])
@pytest.mark.parametrize("calibrate", [True, False])
def test_maps_of_one_learner(mapping, calibrate, small_data, path):
    X, Y = small_data
    learner = DecisionTreeClassifier(max_depth=3, random_state=0)
    clf = tuned(learner, mapping=mapping, calibrate=calibrate).fit(X, Y)
    assert_same(clf, rows_like(X), path)


@pytest.mark.parametrize("mapping", ["weights", "affine", "average"])
def test_maps_of_several_learners(mapping, small_data, path):
    X, Y = small_data
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    clf = stacked(RidgeClassifier(), tree, mapping=mapping).fit(X, Y)
    assert_same(clf, rows_like(X), path)


@pytest.mark.parametrize("shape", ["column", "classes"])
@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(5, random_state=0),
        LogisticRegression(),
        SVC(),
        LinearDiscriminantAnalysis(),
        GradientBoostingClassifier(n_estimators=4),
        HistGradientBoostingClassifier(max_iter=4),
        BaggingClassifier(n_estimators=3),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        MLPClassifier((4,), tol=9, n_iter_no_change=2, random_state=0),
        OneVsRestClassifier(LogisticRegression()),
        CLMLClassifier(n_members=2, max_epochs=2, random_state=0),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_one_label(learner, shape, small_data, path):
    X, Y = small_data
    y = Y[:, :1] if shape == "column" else np.array(["no", "yes"])[Y[:, 0]]
    if shape == "column":  # which some learners of one label warn of
        learner = MultiOutputClassifier(learner)
    clf = tuned(learner).fit(X, y)
    rows = rows_like(X)
    assert_same(clf, rows, path, 1e-5)
    session = opened(path)
    *_, labels = session.run(None, {"features": rows})
    if shape == "classes":
        metadata = session.get_modelmeta().custom_metadata_map
        known = np.array(json.loads(metadata["classes"]))
        np.testing.assert_array_equal(known[labels[:, 0]], clf.predict(rows))
    else:
        np.testing.assert_array_equal(labels, clf.predict(rows))


@constant_labels
@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(5, random_state=0),
        DecisionTreeClassifier(max_depth=3),
        OneVsRestClassifier(LogisticRegression()),
        OneVsRestClassifier(DecisionTreeClassifier(max_depth=3)),
        make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
        MultiOutputClassifier(DecisionTreeClassifier(max_depth=3)),
        MultiOutputClassifier(make_pipeline(StandardScaler(), GaussianNB())),
        RidgeClassifier(),
        CLMLClassifier(n_members=2, max_epochs=2, random_state=0),
    ],
    ids=str,
)
def test_constant_labels(learner, small_data, path):
    if "GaussianNB" in str(learner):
        pytest.importorskip("skl2onnx")
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 1], Y[:, 2] = 0, 1
    assert_same(tuned(learner).fit(X, Y), rows_like(X), path, 1e-5)


@constant_labels
@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize(
    "learner",
    [
        OneVsRestClassifier(RandomForestClassifier(5, random_state=0)),
        OneVsRestClassifier(GaussianNB()),
        make_pipeline(StandardScaler(), OneVsRestClassifier(GaussianNB())),
        OneVsRestClassifier(LinearSVC()),
        OneVsRestClassifier(GradientBoostingClassifier(n_estimators=3)),
    ],
    ids=str,
)
def test_one_vs_rest_with_a_constant_label(learner, place, constant, small_data, path):
    """Where it is the first, it decides, even if the others have no decisions."""
    if "GaussianNB" in str(learner):
        pytest.importorskip("skl2onnx")
    X, Y = small_data[0].astype(np.float32).astype(np.float64), small_data[1].copy()
    Y[:, place] = constant
    clf = tuned(learner).fit(X, Y)
    assert_same(clf, rows_like(X), path)
    clf.to_onnx(path)
    *_, labels = opened(path).run(None, {"features": X.astype(np.float32)})
    np.testing.assert_array_equal(labels, clf.predict(X))


@constant_labels
def test_nothing_but_constant_labels(small_data, path):
    X, Y = small_data[0], np.tile([0, 1], (120, 1))
    forest = RandomForestClassifier(3, random_state=0)
    trees = OneVsRestClassifier(DecisionTreeClassifier())
    assert_same(stacked(forest, trees).fit(X, Y), rows_like(X), path)


@constant_labels
def test_fitted_one_vs_rest_with_constant_labels(small_data, path):
    """Labels that never varied are as certain as in one that is fitted here."""
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 1], Y[:, 2] = 0, 1
    frozen = FrozenEstimator(OneVsRestClassifier(LogisticRegression()).fit(X, Y))
    assert_same(tuned(frozen).fit(X, Y), rows_like(X), path)


def with_missing(X):
    X = X.copy()
    X[np.random.default_rng(5).random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(5, random_state=0),
        ExtraTreesClassifier(5, random_state=0),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        MultiOutputClassifier(HistGradientBoostingClassifier(max_iter=5)),
        make_pipeline(SimpleImputer(strategy="median"), RidgeClassifier()),
        make_pipeline(StandardScaler(), SimpleImputer(), RidgeClassifier()),
        CLMLClassifier(n_members=5, max_epochs=2, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("when", ["fitted", "predicted"])
def test_missing_values(learner, when, small_data, path):
    X, Y = small_data
    clf = tuned(learner).fit(with_missing(X) if when == "fitted" else X, Y)
    assert_same(clf, with_missing(rows_like(X)), path, 1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "learner",
    [
        RidgeClassifier(),
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        make_pipeline(
            ScaleNonIndicators(), MLPClassifier((3,), tol=9, n_iter_no_change=2)
        ),
        OneVsRestClassifier(SVC()),
        MultiOutputClassifier(HistGradientBoostingClassifier(max_iter=3)),
        ClassifierChain(LogisticRegression()),
        CLMLClassifier(n_members=1, network="paper", max_epochs=2, random_state=0),
    ],
    ids=str,
)
def test_rows_are_refused_where_predict_refuses_them(value, learner, small_data, path):
    """Nor do they touch their neighbours'."""
    X, Y = small_data
    clf = tuned(learner).fit(X, Y)
    clf.to_onnx(path)
    session = opened(path)
    rows = X[:5].astype(np.float32)
    before = session.run(None, {"features": rows})
    rows[2, 1] = value
    logits, probabilities, labels = session.run(None, {"features": rows})
    try:
        expected = clf.decision_function(rows.astype(np.float64))
    except ValueError:
        assert np.isnan(logits[2]).all()
        assert np.isnan(probabilities[2]).all()
        assert not labels[2].any()
    else:
        np.testing.assert_allclose(logits[2], expected[2], rtol=1e-5, atol=1e-5)
    others = np.arange(5) != 2
    for one, other in zip((logits, probabilities, labels), before, strict=True):
        np.testing.assert_array_equal(one[others], other[others])


def test_data_frames(small_data, path):
    X = pd.DataFrame(small_data[0], columns=[f"größe {i}" for i in range(8)])
    Y = pd.DataFrame(small_data[1], columns=list("abcd"))
    forest = RandomForestClassifier(5, random_state=0)
    clml_ = CLMLClassifier(n_members=2, max_epochs=2, random_state=0)
    scaled = make_pipeline(ScaleNonIndicators(), RidgeClassifier())
    names = X.columns
    parts = make_column_transformer(
        (StandardScaler(), [names[4], names[2]]), remainder="passthrough"
    )
    by_name = make_pipeline(parts, RidgeClassifier())
    clf = stacked(forest, clml_, scaled, by_name).fit(X, Y)
    assert_same(clf, X, path, 1e-5)
    found = opened(path).get_modelmeta().custom_metadata_map
    assert json.loads(found["feature_names"]) == X.columns.tolist()
    assert json.loads(found["label_names"]) == list("abcd")


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(5, random_state=0),
        OneVsRestClassifier(LogisticRegression()),
        OneVsRestClassifier(SVC()),
        make_pipeline(
            ScaleNonIndicators(),
            Nystroem(n_components=20, random_state=0),
            RidgeClassifier(),
        ),
        make_pipeline(MaxAbsScaler(), MLPClassifier((4,), tol=9, n_iter_no_change=2)),
        CLMLClassifier(n_members=2, max_epochs=2, random_state=0),
    ],
    ids=str,
)
def test_models_of_sparse_rows(learner, small_data, path):
    """They take dense ones: of the same numbers the same scores."""
    X = small_data[0] * (small_data[0] > 0.3)
    clf = tuned(learner).fit(sp.csr_array(X), small_data[1])
    assert_same(clf, sp.csr_array(X), path, 1e-5)


def test_values_beyond_single_precision(small_data, path):
    """A forest takes its rows to single precision, a graph of doubles does not."""
    X, Y = small_data
    clf = tuned(RandomForestClassifier(3, random_state=0)).fit(X, Y)
    clf.to_onnx(path, dtype="float64")
    rows = X[:3].copy()
    rows[1, 0] = 1e39
    logits, *_ = opened(path).run(None, {"features": rows})
    assert np.isnan(logits[1]).all()
    assert np.isfinite(logits[[0, 2]]).all()


def test_votes_that_equal_a_threshold(small_data, path):
    """Half of the trees say yes: the logit is exactly 0, and no label."""
    X, Y = small_data
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    clf = tuned(forest, mapping="bias", shrinkage=0.0, calibrate=False).fit(X, Y)
    clf.theta_ = np.r_[np.ones(4), np.zeros(4)]
    for dtype in CLOSE:
        clf.to_onnx(path, dtype=dtype)
        rows = rows_like(X).astype(dtype)
        *_, labels = opened(path).run(None, {"features": rows})
        np.testing.assert_array_equal(labels, clf.predict(rows))


@pytest.mark.parametrize("opset", [18, 19, 20, 21])
def test_file(opset, default_stack, path):
    default_stack.to_onnx(path, opset=opset)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [
        ("", opset),
        ("ai.onnx.ml", 3),
    ]
    assert model.ir_version <= 10
    assert (model.producer_name, model.producer_version) == ("clml", clml.__version__)
    session = opened(path)
    (features,) = session.get_inputs()
    assert (features.name, features.type) == ("features", "tensor(float)")
    assert features.shape == ["N", 9]
    found = [(o.name, o.type, o.shape) for o in session.get_outputs()]
    assert found == [
        ("logits", "tensor(float)", ["N", 4]),
        ("probabilities", "tensor(float)", ["N", 4]),
        ("labels", "tensor(int64)", ["N", 4]),
    ]
    assert {p.key: json.loads(p.value) for p in model.metadata_props} == {
        "label_names": ["label0", "label1", "label2", "label3"],
        "loss_names": ["hamming", "lrap", "micro_f1"],
        "incumbent": default_stack.incumbent_,
    }


def test_nothing_is_written_that_is_not_read(small_data, path):
    pytest.importorskip("skl2onnx")
    clf = tuned(make_pipeline(PCA(3), KNeighborsClassifier())).fit(*small_data)
    clf.to_onnx(path)
    graph = onnx.load(path).graph
    read = {name for node in graph.node for name in node.input}
    read |= {output.name for output in graph.output}
    for node in graph.node:
        for attribute in node.attribute:
            read |= {name for inner in attribute.g.node for name in inner.input}
    assert all(read.intersection(node.output) for node in graph.node)
    assert {constant.name for constant in graph.initializer} <= read


def test_same_model_same_bytes(default_stack, tmp_path):
    pytest.importorskip("skops")
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    default_stack.to_onnx(paths[0])
    save(default_stack, tmp_path / "model.clml")
    load(tmp_path / "model.clml").to_onnx(str(paths[1]))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_same_converted_model_same_bytes(small_data, tmp_path):
    pytest.importorskip("skl2onnx")
    X, Y = small_data
    learner = make_pipeline(PCA(3), KNeighborsClassifier())
    clf = stacked(learner, OneVsRestClassifier(GaussianNB())).fit(X, Y)
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for each in paths:
        clf.to_onnx(each)
    assert paths[0].read_bytes() == paths[1].read_bytes()


class OwnForest(RandomForestClassifier):
    """It might predict otherwise."""


class OwnStep(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class OwnClassifier(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        return self

    def predict(self, X):
        return np.zeros((len(X), len(self.classes_)), dtype=int)

    def decision_function(self, X):
        return np.zeros((len(X), len(self.classes_)))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (OwnForest(3), "'learner1', OwnForest, .*OwnForest has no ONNX graph"),
        (OwnClassifier(), "'learner1', OwnClassifier, "),
        (make_pipeline(OwnStep(), RidgeClassifier()), r"Pipeline, .*step OwnStep\(\)"),
        (DummyClassifier(), "'learner1', DummyClassifier, "),
        (MLkNNClassifier(3), "'learner1', MLkNNClassifier, "),
        (OneVsRestClassifier(OwnForest(3)), "OneVsRestClassifier, .*OwnForest has no"),
        (tuned(DummyClassifier()), "learner 'estimator', DummyClassifier"),
        (KNeighborsClassifier(weights="distance"), "weights to be one of .*'distance'"),
        (KNeighborsClassifier(metric="cosine"), "effective_metric_ .* 'cosine'"),
        (
            MultiOutputClassifier(GradientBoostingClassifier(loss="exponential")),
            "loss must be 'log_loss', got 'exponential'",
        ),
        (
            MultiOutputClassifier(
                HistGradientBoostingClassifier(max_iter=3, categorical_features=[0])
            ),
            "columns as categories",
        ),
        (
            MultiOutputClassifier(
                CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2)
            ),
            "method must be 'sigmoid', got 'isotonic'",
        ),
    ],
    ids=str,
)
def test_learners_without_a_graph(learner, message, small_data, path):
    X, Y = np.round(np.abs(small_data[0])), small_data[1]
    clf = stacked(RidgeClassifier(), learner, cv=2).fit(X, Y)
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match=message):
        clf.to_onnx(path)
    assert path.read_bytes() == b"before"


@constant_labels
def test_converted_learners_with_constant_labels(small_data, path):
    pytest.importorskip("skl2onnx")
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 1] = 1
    clf = tuned(KNeighborsClassifier()).fit(X, Y)
    with pytest.raises(TypeError, match="1 of its labels never varied in training"):
        clf.to_onnx(path)
    for copied in (OneVsRestClassifier, MultiOutputClassifier):
        clf = tuned(copied(KNeighborsClassifier())).fit(X, Y)
        clf.to_onnx(path)
        *_, labels = opened(path).run(None, {"features": X.astype(np.float32)})
        assert labels[:, 1].all()


def test_without_the_package(monkeypatch, small_data, path):
    clf = tuned(KNeighborsClassifier()).fit(*small_data)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"skl2onnx.*pip install 'clml\[onnx\]'"):
        clf.to_onnx(path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"onnx.*pip install 'clml\[onnx\]'"):
        clf.to_onnx(path)
    assert not path.exists()


def test_text(path):
    words = ["a b", "b c", "a c", "c", "a", "b"] * 5
    Y = np.array([[w.count("a"), w.count("b")] for w in words])
    clf = tuned(make_pipeline(CountVectorizer(token_pattern="."), RidgeClassifier()))
    with pytest.raises(ValueError, match="without a number of columns, such as text"):
        clf.fit(words, Y).to_onnx(path)


class OwnTuned(LebesgueTunedClassifier):
    """It might predict otherwise."""


@pytest.mark.parametrize(
    ("classifier", "options", "error", "message"),
    [
        (tuned(RidgeClassifier()), {}, NotFittedError, "not fitted"),
        (OwnTuned(RidgeClassifier()), {}, TypeError, "no subclass, .*OwnTuned"),
        (CLMLClassifier(), {}, TypeError, "Only a LebesgueTuned.*CLMLClassifier"),
        (None, {}, TypeError, r"got builtins\.NoneType"),
        (tuned(RidgeClassifier()), {"dtype": "float16"}, ValueError, "dtype must be"),
        (tuned(RidgeClassifier()), {"opset": 17}, ValueError, "from 18 to 21, got 17"),
    ],
    ids=range(6),
)
def test_what_is_not_exported(classifier, options, error, message, path):
    with pytest.raises(error, match=message):
        export_mapped(classifier, path, **options)
    assert not path.exists()


def test_model_that_one_file_cannot_hold(monkeypatch, default_stack, path):
    monkeypatch.setattr(_onnx_mapped, "LARGEST_FILE", 1000)
    with pytest.raises(ValueError, match=r"takes [\d,]+ bytes, .* holds 1,000 at most"):
        default_stack.to_onnx(path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("place", "error"),
    [("absent/model.onnx", FileNotFoundError), (".", IsADirectoryError)],
)
def test_places_that_cannot_be_written(place, error, default_stack, tmp_path):
    with pytest.raises(error, match=r"No such folder|is a folder"):
        default_stack.to_onnx(tmp_path / place)

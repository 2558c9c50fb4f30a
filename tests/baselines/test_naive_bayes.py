import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from clml.baselines import _gaussian_labels
from clml.baselines._naive_bayes import GaussianNBChain, GaussianNBRelevance
from clml.datasets import load_dataset

BOTH = [
    pytest.param(GaussianNBRelevance(), id="relevance"),
    pytest.param(GaussianNBChain(), id="chain"),
    pytest.param(GaussianNBChain(chain_method="predict_proba"), id="soft-chain"),
]
METHODS = ["predict", "predict_proba"]


def labelled_rows(seed, n=60, n_labels=4, n_features=5):
    """Rows whose labels depend on features and on the labels before them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, n_features))
    Y = np.zeros((n, n_labels), int)
    for k in range(n_labels):
        Y[:, k] = X[:, k] + Y[:, :k].sum(axis=1) + generator.normal(size=n) > 0.5
    return X, Y


def test_relevance_by_hand():
    X = np.array([[0.0], [2], [4], [6]])
    Y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    clf = GaussianNBRelevance().fit(X, Y)
    # Label 0: means 1 and 5, variances 1; label 1: means 2 and 4, variances 4.
    x = np.array([2.0, 3.5, 7])
    logits = clf.decision_function(x[:, None])
    np.testing.assert_allclose(logits[:, 0], 4 * x - 12, rtol=1e-7)
    np.testing.assert_allclose(logits[:, 1], (x - 3) / 2, rtol=1e-7)
    assert clf.predict(x[:, None]).tolist() == [[0, 0], [1, 1], [1, 1]]


CHAIN_X = np.array([[0.0], [2], [4], [6], [0], [2], [4], [6]])
CHAIN_Y = np.array([[0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 0, 1]]).T


@pytest.mark.parametrize(("method", "fed"), [("predict", 1), ("predict_proba", None)])
def test_chain_by_hand(method, fed):
    clf = GaussianNBChain(chain_method=method).fit(CHAIN_X, CHAIN_Y)
    # Label 0: means 1 and 5, variances 1. Label 1: means of x 1.5 and 4.5, variances
    # 2.75; means of label 0 are 0.25 and 0.75, variances 0.1875.
    first, second = clf.decision_function([[3.5]])[0]
    assert first == pytest.approx(2, rel=1e-7)
    fed = expit(2) if fed is None else fed
    assert second == pytest.approx(3 / 5.5 + (fed - 0.5) / 0.375, rel=1e-7)


def test_chain_in_the_other_order_by_hand():
    clf = GaussianNBChain(order=[1, 0]).fit(CHAIN_X, CHAIN_Y)
    # Label 1 now has x alone, and label 0 sees label 1: in its two classes means
    # 0.25 and 0.75, variances 0.1875.
    first, second = clf.decision_function([[3.5]])[0]
    assert second == pytest.approx(3 / 5.5, rel=1e-7)
    assert first == pytest.approx(2 + 0.5 / 0.375, rel=1e-7)
    assert clf.order_.tolist() == [1, 0]
    assert [m.n_features_in_ for m in clf.estimators_] == [2, 1]


@pytest.mark.parametrize("seed", range(4))
def test_relevance_is_multi_output_naive_bayes(seed):
    X, Y = labelled_rows(seed)
    new = np.random.default_rng(seed + 100).normal(size=(50, 5))
    ours = GaussianNBRelevance().fit(X, Y)
    theirs = MultiOutputClassifier(GaussianNB()).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    probability = np.column_stack([p[:, 1] for p in theirs.predict_proba(new)])
    np.testing.assert_allclose(ours.predict_proba(new), probability, rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]], ids=["natural", "custom"])
def test_chain_is_classifier_chain(seed, method, order):
    X, Y = labelled_rows(seed)
    new = np.random.default_rng(seed + 100).normal(size=(50, 5))
    ours = GaussianNBChain(order=order, chain_method=method).fit(X, Y)
    theirs = ClassifierChain(GaussianNB(), order=order, chain_method=method).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    np.testing.assert_allclose(
        ours.predict_proba(new), theirs.predict_proba(new), rtol=1e-9
    )


@given(st.permutations(range(4)), st.sampled_from(METHODS))
def test_results_are_in_label_order(order, method):
    """A chain in some order is the natural chain of labels sorted that way."""
    X, Y = labelled_rows(0)
    chain = GaussianNBChain(order=order, chain_method=method).fit(X, Y)
    natural = GaussianNBChain(chain_method=method).fit(X, Y[:, order])
    np.testing.assert_array_equal(
        chain.decision_function(X)[:, order], natural.decision_function(X)
    )


def test_order_matters():
    X, Y = labelled_rows(0)
    logits = [
        GaussianNBChain(order=order).fit(X, Y).decision_function(X)
        for order in (None, [3, 2, 1, 0])
    ]
    assert (logits[0] != logits[1]).any(axis=0).all()


def test_random_order():
    X, Y = labelled_rows(0)
    orders = [
        tuple(GaussianNBChain(order="random", random_state=s).fit(X, Y).order_)
        for s in (0, 0, 1, 2, 3)
    ]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert orders[0] == orders[1]
    assert len(set(orders)) > 1


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2], r"the 4 label numbers once each, got an array of shape \(3,\)"),
        ([[0, 1, 2, 3]], r"got an array of shape \(1, 4\)"),
        ([0, 1, 2, 2], r"permutation .* 0 to 3, got \[0, 1, 2, 2\], which lacks \[3\]"),
        ([1, 2, 3, 4], r"which lacks \[0\]"),
        ([0, 1, 2, -1], r"which lacks \[3\]"),
        ([0.0, 1, 2, 3], "order must hold integers, got dtype float64"),
        ("natural", "'order' parameter of GaussianNBChain"),
    ],
)
def test_bad_order(order, message):
    with pytest.raises(ValueError, match=message):
        GaussianNBChain(order=order).fit(*labelled_rows(0))


@pytest.mark.parametrize("clf", BOTH)
@pytest.mark.parametrize("value", [0, -1e-9])
def test_smoothing_must_be_positive(clf, value):
    with pytest.raises(ValueError, match="var_smoothing"):
        type(clf)(var_smoothing=value).fit(*labelled_rows(0))


@pytest.mark.parametrize("clf", BOTH)
@given(weight=st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_weights_are_repetitions(clf, weight):
    X, Y = labelled_rows(1, n=40)
    # A feature that is constant in a class makes the smoothing matter.
    X[:, 4] = Y[:, 0]
    repeated = np.repeat(np.arange(40), weight)
    assume(len(repeated) > 0 and (np.ptp(Y[repeated], axis=0) == 1).all())
    weighted = type(clf)(**clf.get_params()).fit(X, Y, sample_weight=weight)
    expected = type(clf)(**clf.get_params()).fit(X[repeated], Y[repeated])
    for a, b in zip(weighted.estimators_, expected.estimators_, strict=True):
        np.testing.assert_allclose(a.theta_, b.theta_, atol=1e-12)
        np.testing.assert_allclose(a.var_, b.var_, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(a.class_prior_, b.class_prior_, rtol=1e-12)


@pytest.mark.parametrize("clf", BOTH)
def test_the_unit_of_weights_does_not_matter(clf):
    X, Y = labelled_rows(2)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    expected = clf.fit(X, Y, sample_weight=weight).decision_function(X)
    for unit in (1e-15, 1e15):
        logits = clf.fit(X, Y, sample_weight=unit * weight).decision_function(X)
        np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("clf", BOTH)
def test_constant_labels(clf):
    X, Y = labelled_rows(3)
    expected = clf.fit(X, Y[:, [0, 3]]).decision_function(X)
    Y[:, 1], Y[:, 2] = 0, 1
    with pytest.warns(UserWarning, match="2 of 4 labels are constant"):
        clf.fit(X, Y)
    logits = clf.decision_function(X)
    assert (logits[:, 1] == -1e30).all()
    assert (logits[:, 2] == 1e30).all()
    assert clf.constant_.tolist() == [-1, 0, 1, -1]
    assert [m is None for m in clf.estimators_] == [False, True, True, False]
    np.testing.assert_array_equal(clf.predict(X)[:, 1:3], Y[:, 1:3])
    np.testing.assert_array_equal(clf.predict_proba(X)[:, 1:3], Y[:, 1:3])
    # A constant that is fed says nothing about the other labels.
    np.testing.assert_allclose(logits[:, [0, 3]], expected, rtol=1e-9)


@pytest.mark.parametrize("clf", BOTH)
def test_one_row(clf):
    with pytest.warns(UserWarning, match="3 of 3 labels are constant"):
        clf.fit([[1.0, 2]], np.array([[0, 1, 1]]))
    assert clf.predict([[5.0, 5], [0, 0]]).tolist() == [[0, 1, 1]] * 2


@pytest.mark.parametrize("clf", BOTH)
@pytest.mark.parametrize("value", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, [1, 1, 1, 1, 1, 1]])
def test_without_a_feature_that_varies_frequencies_decide(clf, value, weight):
    X = np.full((6, 2), value)
    y = np.array([0, 1, 1, 1, 1, 0])
    clf.fit(X, y[:, None], sample_weight=weight)
    np.testing.assert_allclose(
        clf.decision_function([[value, value], [3, -2]]), np.log(2), rtol=1e-9
    )


@pytest.mark.parametrize("clf", BOTH)
def test_contradicting_duplicates(clf):
    X = np.array([[0.0], [0], [1], [1]])
    y = np.array([[0], [1], [0], [1]])
    # Both classes look the same: even odds, which predict nothing.
    assert clf.fit(X, y).decision_function(X).tolist() == [[0]] * 4
    assert not clf.predict(X).any()


@pytest.mark.parametrize("clf", BOTH)
def test_far_off_rows_have_finite_logits(clf):
    logits = clf.fit(*labelled_rows(4)).decision_function(
        np.array([[1e100], [1e200], [-1e300]]) * np.ones(5)
    )
    assert np.isfinite(logits).all()
    assert (np.abs(logits) <= 1e30).all()


@pytest.mark.parametrize("clf", BOTH)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_and_dense_agree_exactly(clf, kind):
    # So many features that the order in which they are summed shows.
    X, Y = labelled_rows(5, n_features=40)
    X[X < 0] = 0
    expected = clf.fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(clf.decision_function(kind(X)), expected)
    clf.fit(kind(X), Y)
    np.testing.assert_array_equal(clf.decision_function(kind(X)), expected)
    clf.fit(np.asfortranarray(X), Y)
    np.testing.assert_array_equal(clf.decision_function(np.asfortranarray(X)), expected)


@pytest.mark.parametrize("clf", BOTH)
@pytest.mark.parametrize("block", [1, 1000])
def test_blocks_do_not_matter(clf, block, monkeypatch):
    X, Y = labelled_rows(6)
    expected = clf.fit(X, Y).decision_function(X)
    monkeypatch.setattr(_gaussian_labels, "_BLOCK_BYTES", block)
    np.testing.assert_array_equal(clf.decision_function(X), expected)


def test_blocks_stay_in_their_bound():
    blocks = list(_gaussian_labels.row_blocks(30_000, 1000))
    assert max(b.stop - b.start for b in blocks) * 8000 <= 64 * 2**20
    assert [b.start for b in blocks] == [0, *(b.stop for b in blocks[:-1])]
    assert blocks[-1].stop == 30_000


@pytest.mark.parametrize("clf", BOTH)
def test_single_precision_rows(clf):
    X, Y = labelled_rows(7)
    X = X.astype(np.float32)
    logits = clf.fit(X, Y).decision_function(X)
    assert logits.dtype == np.float64
    X = X.astype(np.float64)
    np.testing.assert_array_equal(clf.fit(X, Y).decision_function(X), logits)


@pytest.mark.parametrize("clf", BOTH)
def test_two_classes_are_one_label(clf):
    X, Y = labelled_rows(8)
    expected = clf.fit(X, Y[:, :1]).predict_proba(X)[:, 0]
    clf.fit(X, np.where(Y[:, 0], "yes", "no"))
    np.testing.assert_array_equal(clf.predict_proba(X)[:, 1], expected)
    np.testing.assert_array_equal(clf.predict(X) == "yes", expected > 0.5)
    np.testing.assert_array_equal(
        clf.predict(X), GaussianNB().fit(X, np.where(Y[:, 0], "yes", "no")).predict(X)
    )


@pytest.mark.parametrize("clf", BOTH)
def test_nan_is_refused(clf):
    X, Y = labelled_rows(9)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        clf.fit(X, Y)


@pytest.mark.parametrize("clf", BOTH)
@pytest.mark.parametrize("scale", [1e160, 1e-170])
def test_variances_beyond_floats_are_refused(clf, scale):
    X, Y = labelled_rows(9)
    with pytest.raises(ValueError, match=r"variances that float64 can hold.*Scale X"):
        clf.fit(X * scale, Y)


@pytest.mark.parametrize("clf", BOTH)
def test_only_ratios_of_weights_matter(clf):
    X, Y = labelled_rows(9)
    weight = np.linspace(1, 2, len(X))
    expected = clf.fit(X, Y, sample_weight=weight).predict_proba(X)
    for scale in (1e-300, 0.8e308):
        got = clf.fit(X, Y, sample_weight=weight * scale).predict_proba(X)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    weight[0] = 1e-310
    with pytest.raises(ValueError, match="sample_weight must not span more than 300"):
        clf.fit(X, Y, sample_weight=weight)


# Hamming loss, micro F1, and LRAP of the probabilities, in which saturated labels tie.
CHECK_VALUES = [
    pytest.param("emotions", None, (0.2706, 0.6547, 0.7266), id="emotions-relevance"),
    pytest.param("emotions", "predict", (0.2640, 0.6476, 0.7222), id="emotions-hard"),
    pytest.param(
        "emotions", "predict_proba", (0.2591, 0.6488, 0.7271), id="emotions-soft"
    ),
    pytest.param("yeast", None, (0.3006, 0.5472, 0.6625), id="yeast-relevance"),
    pytest.param("yeast", "predict", (0.3134, 0.5288, 0.5890), id="yeast-hard"),
    pytest.param("yeast", "predict_proba", (0.3207, 0.4924, 0.5844), id="yeast-soft"),
]


def standardised_official_split(name):
    data = load_dataset(name)
    first = {"emotions": 391, "yeast": 917}[name]
    parts = [(data.X[:first], data.Y[:first]), (data.X[first:], data.Y[first:])]
    (X, Y), (X_test, Y_test) = parts if name == "emotions" else parts[::-1]
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), Y, scaler.transform(X_test), Y_test


@pytest.mark.skipif(not os.environ.get("CLML_DATA"), reason="CLML_DATA is not set")
@pytest.mark.parametrize(("name", "method", "expected"), CHECK_VALUES)
def test_check_values(name, method, expected):
    X, Y, X_test, Y_test = standardised_official_split(name)
    clf = GaussianNBChain(chain_method=method) if method else GaussianNBRelevance()
    predicted = clf.fit(X, Y).predict(X_test)
    values = (
        hamming_loss(Y_test, predicted),
        f1_score(Y_test, predicted, average="micro"),
        label_ranking_average_precision_score(Y_test, clf.predict_proba(X_test)),
    )
    assert np.round(values, 4).tolist() == list(expected)

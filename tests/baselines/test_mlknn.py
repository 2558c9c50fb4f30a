import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
)
from sklearn.preprocessing import StandardScaler

from clml.baselines._mlknn import MLkNNClassifier, _log_odds
from clml.datasets import load_dataset

pytestmark = pytest.mark.filterwarnings("ignore:.*labels are constant")


def nearest(training, x, k, leave_out=None):
    """The k nearest rows, those with lower numbers of equally distant ones."""

    def squared_distance(j):
        pairs = zip(x, training[j], strict=True)
        return sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in pairs)

    rows = [j for j in range(len(training)) if j != leave_out]
    return sorted(rows, key=lambda j: (squared_distance(j), j))[:k]


def slow_posteriors(X, Y, X_new, k, s, include_self):
    """Exact posterior probabilities, and the joint ones, as the paper writes them."""
    n, n_labels = Y.shape
    posterior = np.empty((len(X_new), n_labels), dtype=object)
    joint = np.empty((2, len(X_new), n_labels), dtype=object)
    own = [nearest(X, X[i], k, None if include_self else i) for i in range(n)]
    new = [nearest(X, x, k) for x in X_new]
    for label in range(n_labels):
        with_label = int(Y[:, label].sum())
        prior = [None, Fraction(s + with_label) / (2 * s + n)]
        prior[0] = 1 - prior[1]
        seen = [[0] * (k + 1) for _ in range(2)]
        for i in range(n):
            seen[Y[i, label]][sum(int(Y[j, label]) for j in own[i])] += 1
        for i, rows in enumerate(new):
            count = sum(int(Y[j, label]) for j in rows)
            for h in range(2):
                likelihood = (s + seen[h][count]) / (s * (k + 1) + sum(seen[h]))
                joint[h, i, label] = prior[h] * likelihood
            posterior[i, label] = joint[1, i, label] / joint[:, i, label].sum()
    return posterior, joint


def assert_same_as_slow(X, Y, X_new, k, s, include_self):
    posterior, joint = slow_posteriors(X, Y, X_new, k, s, include_self)
    clf = MLkNNClassifier(k, smoothing=float(s), include_self=include_self).fit(X, Y)
    logits = clf.decision_function(X_new)
    half = Fraction(1, 2)
    sign = np.array([[(p > half) - (p < half) for p in row] for row in posterior])
    np.testing.assert_array_equal(np.sign(logits), sign)
    expected = posterior.astype(float)
    np.testing.assert_allclose(clf.predict_proba(X_new), expected, rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(X_new), posterior > half)
    clf.set_params(probability="joint")
    expected = joint[1].astype(float)
    np.testing.assert_allclose(clf.predict_proba(X_new), expected, rtol=1e-12)
    np.testing.assert_array_equal(clf.decision_function(X_new), logits)


LINE = np.array([[0.0], [1], [3], [6]])
LINE_Y = np.array([1, 1, 0, 0])


def test_by_hand():
    clf = MLkNNClassifier(n_neighbors=1).fit(LINE, LINE_Y[:, None])
    # Nearest others are rows 1, 0, 1, 2. Of the rows with the label 2 of 2 see it
    # there, of those without it 1 of 2. With one added to each count the likelihoods
    # of seeing it are 3/4 and 2/4, of not seeing it 1/4 and 2/4; the prior is 1/2.
    np.testing.assert_allclose(clf.log_odds_, [[np.log(1 / 2), np.log(3 / 2)]])
    np.testing.assert_allclose(clf.predict_proba([[-1], [7]]), [[3 / 5], [1 / 3]])
    assert clf.predict([[-1], [7]]).tolist() == [[1], [0]]
    clf.set_params(probability="joint")
    np.testing.assert_allclose(clf.predict_proba([[-1], [7]]), [[3 / 8], [1 / 8]])


def test_by_hand_with_own_rows():
    clf = MLkNNClassifier(n_neighbors=1, include_self=True).fit(LINE, LINE_Y[:, None])
    # Every row sees itself: 3/4 and 1/4.
    np.testing.assert_allclose(clf.log_odds_, [[-np.log(3), np.log(3)]])


def test_two_classes_by_hand():
    y = np.where(LINE_Y, "in", "out")
    # Sorted, "out" is the second class, and now the label.
    clf = MLkNNClassifier(n_neighbors=1).fit(LINE, y)
    np.testing.assert_allclose(
        clf.predict_proba([[-1], [7]]), [[3 / 5, 2 / 5], [1 / 3, 2 / 3]]
    )
    assert clf.predict([[-1], [7]]).tolist() == ["in", "out"]
    clf.set_params(probability="joint")
    np.testing.assert_allclose(
        clf.predict_proba([[-1], [7]]), [[3 / 8, 1 / 4], [1 / 8, 1 / 4]]
    )
    assert clf.score([[-1], [7]], ["in", "out"]) == 1


def test_even_odds_are_no_prediction():
    # Twins, one with the label and one without: every count is seen as often by rows
    # with the label as by rows without it.
    X = np.array([[0.0], [0], [5], [5]])
    clf = MLkNNClassifier(n_neighbors=2, include_self=True)
    clf.fit(X, np.array([[0], [1], [1], [0]]))
    assert clf.decision_function(X).tolist() == [[0]] * 4
    assert clf.predict_proba(X).tolist() == [[0.5]] * 4
    assert not clf.predict(X).any()


def test_even_odds_of_uneven_counts():
    # 9 rows with the label, of which 6 see a count of 0, and 19 without, of which 5
    # do: 10 · 7 · (5 + 19) = 20 · 6 · (5 + 9), though not so by logarithms.
    histograms = np.array([[[5.0, 14, 0, 0, 0]], [[6.0, 3, 0, 0, 0]]])
    assert np.log([10.0, 7, 24]).sum() != np.log([20.0, 6, 14]).sum()
    assert _log_odds(histograms, 1.0)[0, 0] == 0


def bits(n, n_labels):
    return arrays(np.int64, (n, n_labels), elements=st.integers(0, 1))


@st.composite
def tied_problems(draw):
    n = draw(st.integers(3, 12))
    elements = st.integers(0, 2)
    X = draw(arrays(np.float64, (n, 2), elements=elements))
    X_new = draw(arrays(np.float64, (4, 2), elements=elements))
    return X, draw(bits(n, 3)), X_new, draw(st.integers(1, min(n - 1, 5)))


@given(
    tied_problems(),
    st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2)]),
    st.booleans(),
)
def test_slow_twin_on_ties_and_duplicates(problem, s, include_self):
    X, Y, X_new, k = problem
    assert_same_as_slow(X, Y, X_new, k, s, include_self)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("include_self", [False, True])
def test_slow_twin_on_real_values(seed, include_self):
    generator = np.random.default_rng(seed)
    X, X_new = generator.normal(size=(40, 4)), generator.normal(size=(15, 4))
    Y = (X[:, :3] + generator.normal(size=(40, 3)) > 0.3).astype(int)
    assert_same_as_slow(X, Y, X_new, 6, Fraction(1), include_self)


def tied_rows(n=80):
    generator = np.random.default_rng(3)
    X = generator.integers(0, 3, size=(n, 3)).astype(float)
    return X, (X + generator.integers(0, 3, size=X.shape) > 2).astype(int)


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("include_self", [False, True])
def test_algorithm_and_jobs_do_not_matter(algorithm, n_jobs, include_self):
    X, Y = tied_rows()
    expected = MLkNNClassifier(5, include_self=include_self).fit(X, Y)
    clf = MLkNNClassifier(
        5, include_self=include_self, algorithm=algorithm, n_jobs=n_jobs
    ).fit(X, Y)
    np.testing.assert_array_equal(clf.log_odds_, expected.log_odds_)
    np.testing.assert_array_equal(
        clf.decision_function(X), expected.decision_function(X)
    )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_sparse_is_dense(metric):
    X, Y = tied_rows()
    dense = MLkNNClassifier(5, metric=metric).fit(X, Y)
    sparse = MLkNNClassifier(5, metric=metric).fit(sp.csr_matrix(X), Y)
    np.testing.assert_array_equal(sparse.log_odds_, dense.log_odds_)
    for rows in (X, sp.csr_array(X)):
        expected = dense.decision_function(X)
        np.testing.assert_array_equal(sparse.decision_function(rows), expected)
        np.testing.assert_array_equal(dense.decision_function(rows), expected)


def test_metric_matters():
    X = np.random.default_rng(0).normal(size=(80, 4))
    Y = (X > 0).astype(int)
    tables = {
        MLkNNClassifier(5, metric=metric).fit(X, Y).log_odds_.tobytes()
        for metric in ("euclidean", "manhattan")
    }
    assert len(tables) == 2


@pytest.mark.parametrize("value", [0, 1])
def test_constant_labels(value):
    X, Y = tied_rows()
    Y[:, 1] = value
    with pytest.warns(UserWarning, match="1 of 3 labels are constant"):
        clf = MLkNNClassifier(5).fit(X, Y)
    assert (clf.predict(X)[:, 1] == value).all()
    assert np.isfinite(clf.log_odds_).all()


@pytest.mark.parametrize("value", [0, 1])
def test_empty_and_full_label_sets(value):
    X, Y = tied_rows(30)
    clf = MLkNNClassifier(3).fit(X, np.full_like(Y, value))
    assert (clf.predict(X) == value).all()


@pytest.mark.parametrize("s", [1e-320, 1e-200, 1e-12, 1e12, 1e99])
def test_any_smoothing_gives_finite_odds(s):
    X, Y = tied_rows()
    Y[:, 1] = 0
    clf = MLkNNClassifier(5, smoothing=s).fit(X, Y)
    assert np.isfinite(clf.log_odds_).all()
    assert np.isfinite(clf.joint_).all()


def test_odds_far_from_even_are_not_rounded():
    # 400 rows without the label, in a place of their own, and 20 with it.
    X = np.repeat([[0.0], [9]], [400, 20], axis=0)
    clf = MLkNNClassifier(3).fit(X, (X > 5).astype(int))
    odds = Fraction(21 * 1 * 404, 401 * 401 * 24)
    assert clf.predict_proba([[0.0]])[0, 0] == pytest.approx(
        float(odds / (1 + odds)), rel=1e-14
    )


def test_as_few_rows_as_possible():
    clf = MLkNNClassifier(4, include_self=True).fit(LINE, LINE_Y)
    assert clf.log_odds_.shape == (1, 5)
    clf = MLkNNClassifier(3).fit(LINE, LINE_Y)
    assert clf.predict_proba([[0.0]]).shape == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"n_neighbors": 4},
            "n_neighbors=4 with include_self=False needs at least 5 training rows, "
            "got n_samples=4",
        ),
        (
            {"n_neighbors": 5, "include_self": True},
            "needs at least 5 training rows, got n_samples=4",
        ),
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"smoothing": 0.0}, "'smoothing' parameter"),
        ({"probability": "prior"}, "'probability' parameter"),
        ({"metric": "hamming"}, "'metric' parameter"),
        ({"algorithm": "magic"}, "'algorithm' parameter"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        MLkNNClassifier(**arguments).fit(LINE, LINE_Y)


def test_nan_is_refused():
    X, Y = tied_rows()
    with pytest.raises(ValueError, match="contains NaN"):
        MLkNNClassifier().fit(np.where(X == 1, np.nan, X), Y)


def test_changing_the_given_arrays_does_not_change_the_model():
    X, Y = tied_rows()
    X, Y = np.ascontiguousarray(X), Y.astype(np.uint8)
    new = X.copy()
    clf = MLkNNClassifier(5, algorithm="brute").fit(X, Y)
    expected = clf.decision_function(new)
    X[:], Y[:] = X[::-1].copy(), 1 - Y
    np.testing.assert_array_equal(clf.decision_function(new), expected)


def test_parameters_set_after_the_fit_do_not_change_it():
    X, Y = tied_rows()
    clf = MLkNNClassifier(5).fit(X, Y)
    expected = clf.decision_function(X)
    clf.set_params(n_neighbors=7, metric="manhattan")
    np.testing.assert_array_equal(clf.decision_function(X), expected)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_arrays_and_parameters_are_all_there_is(kind):
    X, Y = tied_rows()
    clf = MLkNNClassifier(5).fit(kind(X), Y)
    expected = clf.decision_function(X)
    restored = pickle.loads(pickle.dumps(clf))
    del restored.neighbors_
    restored._restore()
    assert vars(restored).keys() == vars(clf).keys()
    np.testing.assert_array_equal(restored.decision_function(X), expected)
    np.testing.assert_array_equal(restored.predict_proba(X), expit(expected))


def official_split(name):
    data = load_dataset(name)
    first = {"emotions": 391, "yeast": 917}[name]
    parts = [(data.X[:first], data.Y[:first]), (data.X[first:], data.Y[first:])]
    (X, Y), (X_test, Y_test) = parts if name == "emotions" else parts[::-1]
    return X, Y, X_test, Y_test


# Hamming loss, micro F1, LRAP of the probabilities.
CHECK_VALUES = {
    ("emotions", "raw"): (0.2937, 0.4573, 0.6938),
    ("emotions", "own rows"): (0.3036, 0.4773, 0.6988),
    ("emotions", "joint"): (0.3036, 0.4773, 0.6731),
    ("emotions", "standardised"): (0.2153, 0.6390, 0.7839),
    ("yeast", "raw"): (0.1980, 0.6250, 0.7585),
    ("yeast", "own rows"): (0.2092, 0.6153, 0.7517),
    ("yeast", "joint"): (0.2092, 0.6153, 0.7000),
    ("yeast", "standardised"): (0.2000, 0.6254, 0.7594),
}
SETTINGS = {
    "own rows": {"include_self": True},
    "joint": {"include_self": True, "probability": "joint"},
}


@pytest.mark.skipif(not os.environ.get("CLML_DATA"), reason="CLML_DATA is not set")
@pytest.mark.parametrize(("name", "setting"), CHECK_VALUES)
def test_check_values(name, setting):
    X, Y, X_test, Y_test = official_split(name)
    if setting == "standardised":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    clf = MLkNNClassifier(**SETTINGS.get(setting, {})).fit(X, Y)
    predicted = clf.predict(X_test)
    values = (
        hamming_loss(Y_test, predicted),
        f1_score(Y_test, predicted, average="micro"),
        label_ranking_average_precision_score(Y_test, clf.predict_proba(X_test)),
    )
    assert np.round(values, 4).tolist() == list(CHECK_VALUES[name, setting])

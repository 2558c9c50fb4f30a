"""LIFT: clusters, distances, and the whole against its parts and its authors."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import hamming_loss, label_ranking_average_precision_score

from clml.baselines import LIFTClassifier
from clml.baselines._lift import n_clusters
from clml.datasets import load_dataset

pytestmark = pytest.mark.filterwarnings("ignore:.*labels are constant")


@pytest.mark.parametrize(
    ("ratio", "n_present", "n_absent", "expected"),
    [
        (0.1, 1, 99, 1),
        (0.1, 10, 90, 1),
        (0.1, 11, 90, 2),
        (0.1, 90, 11, 2),
        # In floats a tenth of these is a little more than 7 and than 14.
        (0.1, 70, 700, 7),
        (0.1, 140, 700, 14),
        (0.3, 5, 5, 2),
        (1.0, 4, 9, 4),
        (1e-6, 4, 9, 1),
    ],
)
def test_numbers_of_clusters(ratio, n_present, n_absent, expected):
    assert n_clusters(ratio, n_present, n_absent) == expected


def test_by_hand():
    # One cluster each: the means 1 and 10 of the rows with the label and without it.
    X = np.array([[0.0], [2], [9], [11]])
    y = np.array([1, 1, 0, 0])
    clf = LIFTClassifier(C=1e6, random_state=0).fit(X, y[:, None])
    assert clf.centres_.tolist() == [[1], [10]]
    assert clf.first_centre_.tolist() == [0, 2]
    # Distances to both: (1, 10), (1, 8) of rows with it, (8, 1), (10, 1) of others.
    # The nearest of them are (1, 8) and (8, 1): the margin is (d2 - d1) / 7.
    np.testing.assert_allclose(clf.coef_, [-1 / 7, 1 / 7], rtol=1e-6)
    np.testing.assert_allclose(clf.intercept_, 0, atol=1e-6)
    # A row at 4 is 3 and 6 away.
    margin = 3 / 7
    expected = clf.slope_ * margin + clf.offset_
    np.testing.assert_allclose(clf.decision_function([[4.0]])[0], expected, rtol=1e-5)


def problem(n=150, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 4))
    Y = np.stack([X[:, 0] > 0.3, np.abs(X[:, 1]) > 1, X[:, 2] > 1.5], axis=1)
    return X, Y.astype(int)


def test_slow_twin():
    """Every prediction from the centres, one row and one label at a time."""
    X, Y = problem()
    clf = LIFTClassifier(random_state=0).fit(X, Y)
    for k in range(3):
        m = n_clusters(0.1, Y[:, k].sum(), (1 - Y[:, k]).sum())
        begin, end = clf.first_centre_[k : k + 2]
        assert end - begin == 2 * m
        for i in range(20):
            margin = clf.intercept_[k]
            for j in range(begin, end):
                distance = np.sqrt(((X[i] - clf.centres_[j]) ** 2).sum())
                margin += clf.coef_[j] * distance
            expected = clf.slope_[k] * margin + clf.offset_[k]
            assert clf.decision_function(X[[i]])[0, k] == pytest.approx(expected)


def test_centres_are_means_of_rows_of_their_kind():
    X, Y = problem()
    clf = LIFTClassifier(random_state=0).fit(X, Y)
    for k in range(3):
        centres = clf.centres_[clf.first_centre_[k] : clf.first_centre_[k + 1]]
        for kind, own in zip((1, 0), np.split(centres, 2), strict=True):
            rows = X[Y[:, k] == kind]
            nearest = ((rows[:, None] - own) ** 2).sum(axis=2).argmin(axis=1)
            means = [rows[nearest == j].mean(axis=0) for j in range(len(own))]
            np.testing.assert_allclose(own, means)


def test_distances_tell_what_no_line_in_the_features_does():
    """The second label is that of rows far from 0 on either side."""
    X, Y = problem(400)
    X_test, Y_test = problem(400, seed=1)
    predicted = LIFTClassifier(random_state=0).fit(X, Y).predict(X_test)
    majority = max(Y_test[:, 1].mean(), 1 - Y_test[:, 1].mean())
    assert (predicted[:, 1] == Y_test[:, 1]).mean() > majority + 0.1


def test_parameters_matter():
    X, Y = problem()
    base = LIFTClassifier(random_state=0).fit(X, Y)
    finer = LIFTClassifier(ratio=0.3, random_state=0).fit(X, Y)
    assert len(finer.centres_) > 2 * len(base.centres_)
    softer = LIFTClassifier(C=1e-3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(softer.centres_[:2], base.centres_[:2])
    assert np.abs(softer.coef_).max() < np.abs(base.coef_).max()


def test_blocks_of_rows_do_not_matter(monkeypatch):
    X, Y = problem()
    clf = LIFTClassifier(random_state=0).fit(X, Y)
    expected = clf.decision_function(X)
    monkeypatch.setattr("clml.baselines._gaussian_labels._BLOCK_BYTES", 8 * 40 * 7)
    np.testing.assert_allclose(clf.decision_function(X), expected, rtol=1e-12)


@pytest.mark.parametrize("value", [0, 1])
def test_constant_labels(value):
    X, Y = problem()
    Y[:, 1] = value
    with pytest.warns(UserWarning, match="1 of 3 labels are constant"):
        clf = LIFTClassifier(random_state=0).fit(X, Y)
    assert clf.first_centre_[1] == clf.first_centre_[2]
    assert clf.constant_.tolist() == [-1, value, -1]
    assert (clf.predict(X)[:, 1] == value).all()
    assert (clf.predict_proba(X)[:, 1] == value).all()


def test_nothing_but_constant_labels():
    X, Y = problem()
    clf = LIFTClassifier().fit(X, np.zeros_like(Y))
    assert clf.centres_.shape == (0, 4)
    assert not clf.predict(X).any()


def test_one_row_with_a_label_and_equal_rows():
    X = np.repeat([[0.0, 1], [1, 0]], 10, axis=0)
    Y = np.zeros((20, 2), int)
    Y[0, 0] = 1
    Y[10:, 1] = 1
    clf = LIFTClassifier(random_state=0).fit(X, Y)
    assert np.isfinite(clf.decision_function(X)).all()
    assert (clf.predict(X)[:, 1] == Y[:, 1]).all()


def test_sparse_is_dense():
    X, Y = problem()
    X = np.where(X > 0, X, 0.0)
    dense = LIFTClassifier(random_state=0).fit(X, Y)
    sparse = LIFTClassifier(random_state=0).fit(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_array_equal(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X)
    )


def test_values_whose_squares_are_no_numbers():
    X, Y = problem()
    with pytest.raises(ValueError, match="Scale X first"):
        LIFTClassifier(random_state=0).fit(X * 1e200, Y)
    clf = LIFTClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="Scale X first"):
        clf.predict(X * 1e200)


@pytest.mark.parametrize(
    "arguments",
    [{"ratio": 0.0}, {"ratio": 1.1}, {"C": 0.0}, {"random_state": "x"}],
)
def test_bad_arguments(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        LIFTClassifier(**arguments).fit(*problem())


def test_no_weights():
    with pytest.raises(TypeError, match="sample_weight"):
        LIFTClassifier().fit(*problem(), sample_weight=np.ones(150))


@pytest.mark.skipif(not os.environ.get("CLML_DATA"), reason="CLML_DATA is not set")
def test_scene_is_what_its_authors_report():
    """Hamming loss 0.077 and average precision 0.886 in ten folds; here one of three.

    A third of the rows less than in theirs, so a little worse.
    """
    data = load_dataset("scene")
    order = np.random.default_rng(0).permutation(len(data.Y))
    train, test = order[:1600], order[1600:]
    clf = LIFTClassifier(random_state=0).fit(data.X[train], data.Y[train])
    Y = data.Y[test]
    precision = label_ranking_average_precision_score(
        Y, clf.decision_function(data.X[test])
    )
    assert hamming_loss(Y, clf.predict(data.X[test])) < 0.09
    assert precision > 0.86

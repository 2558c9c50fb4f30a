import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import f1_score

from clml.datasets import _bayes_truth, make_bayes_multilabel
from clml.datasets._bayes_risk import LOSS_NAMES
from clml.datasets._bayes_truth import BayesTruth
from clml.losses import loss_values
from clml.network import Layout, forward


def make(n_labels=5, n_rows=40, seed=0, **settings):
    truth = make_bayes_multilabel(
        1, n_labels, n_features=4, random_state=seed, **settings
    ).truth
    return truth, truth.sample(n_rows, seed + 100)[0]


def two_labels(p, q, opposed, dependence):
    """Two labels of known probabilities, whatever the features."""
    bias = np.log([p / (1 - p), q / (1 - q)])
    return BayesTruth(
        first=np.zeros((2, 2)),
        second=np.zeros((3, 2)),
        last=np.vstack([np.zeros((2, 2)), bias]),
        opposed=np.array([False, opposed]),
        dependence=dependence,
    )


@pytest.mark.parametrize(
    ("opposed", "dependence", "expected"),
    [
        # Columns: neither, the first, the second, both.
        (False, 0.0, [0.28, 0.42, 0.12, 0.18]),
        (False, 1.0, [0.4, 0.3, 0.0, 0.3]),  # the rarer comes with the other
        (True, 1.0, [0.1, 0.6, 0.3, 0.0]),  # never both: 0.6 + 0.3 < 1
        (True, 0.5, [0.19, 0.51, 0.21, 0.09]),  # halfway
    ],
)
def test_two_labels_by_hand(opposed, dependence, expected):
    truth = two_labels(0.6, 0.3, opposed, dependence)
    assert_allclose(truth.joint([[0.0]]), [expected], atol=1e-12)
    assert_allclose(truth.marginals([[0.0]]), [[0.6, 0.3]])


def test_losses_by_hand():
    # Label 0 at 0.6 and label 1 at 0.3, never both, neither with 0.1. Hamming loss
    # predicts label 0 and is wrong with 0.4 and 0.3; label 0 first is wrong for LRAP
    # by 1/2 when label 1 comes; micro-F1 of label 0 alone is 2·0.6 / (1 + 0.9).
    truth = two_labels(0.6, 0.3, True, 1.0)
    expected = [0.35, 0.15, 1 - 1.2 / 1.9]
    assert_allclose(truth.bayes_losses([[0.0], [1.0]]), expected)
    # A tie gives both labels the rank 2.
    tied = truth.expected_losses([[0.0]], [[1.0, 1.0]])
    assert_allclose(tied, [0.55, 0.45, 1 - 1.8 / 2.9])
    nothing = truth.expected_losses([[0.0]], [[-1.0, -2.0]])
    assert_allclose(nothing, [0.45, 0.15, 1])


@settings(max_examples=25)
@given(
    n_labels=st.integers(1, 7),
    dependence=st.floats(0, 1),
    noise=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_joint_is_a_distribution_with_these_marginals(
    n_labels, dependence, noise, seed
):
    truth, X = make(n_labels, 5, seed, dependence=dependence, noise=noise)
    joint = truth.joint(X)
    assert joint.shape == (5, 2**n_labels)
    assert (joint >= 0).all()
    assert_allclose(joint.sum(axis=1), 1)
    assert_allclose(joint @ truth.label_sets, truth.marginals(X), atol=1e-12)


def conditional_covariance(truth, X):
    """Mean over rows of the labels' covariance given the row."""
    joint, sets = truth.joint(X), truth.label_sets.astype(float)
    second = np.einsum("is,sj,sk->ijk", joint, sets, sets)
    p = truth.marginals(X)
    return (second - p[:, :, None] * p[:, None, :]).mean(axis=0)


def test_independent_without_dependence():
    truth, X = make(dependence=0.0)
    p = truth.marginals(X)[:, None, :]
    product = np.where(truth.label_sets, p, 1 - p).prod(axis=2)
    assert_allclose(truth.joint(X), product, atol=1e-15)
    covariance = conditional_covariance(truth, X)
    assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-15)


@pytest.mark.parametrize("dependence", [0.3, 1.0])
def test_dependence_joins_one_side_and_parts_the_two(dependence):
    truth, X = make(dependence=dependence)
    covariance = conditional_covariance(truth, X)
    same = truth.opposed[:, None] == truth.opposed
    off_diagonal = ~np.eye(5, dtype=bool)
    assert (covariance[same & off_diagonal] > 0.01 * dependence).all()
    assert (covariance[~same] < -0.01 * dependence).all()


def test_dependence_leaves_marginals_and_their_losses():
    truths = [make(dependence=d)[0] for d in (0.0, 0.5, 1.0)]
    X = make()[1]
    losses = np.array([truth.bayes_losses(X) for truth in truths])
    for truth in truths:
        assert_array_equal(truth.marginals(X), truths[0].marginals(X))
    assert_allclose(losses[:, [0, 2]], losses[[0, 0, 0]][:, [0, 2]])
    assert np.ptp(losses[:, 1]) > 0.01


@pytest.mark.parametrize("dependence", [0.0, 0.6, 1.0])
def test_labels_are_drawn_from_the_joint(dependence):
    truth, X = make(4, 3, dependence=dependence)
    n = 20_000
    for x, probability in zip(X, truth.joint(X), strict=True):
        labels = truth.sample_labels(np.tile(x, (n, 1)), 0)
        counts = np.bincount(labels @ (1 << np.arange(4)), minlength=16)
        error = np.sqrt(probability * (1 - probability) / n)
        # 5 standard errors, and never a label set of probability 0.
        assert (np.abs(counts / n - probability) <= 5 * error + 1e-12).all()


@pytest.mark.parametrize("embedding_dim", [4, 20])
def test_the_network_represents_the_log_odds(embedding_dim):
    truth, X = make()
    theta = truth.theta(embedding_dim)
    logits = forward(theta, X, Layout(4, 5, embedding_dim))
    assert_allclose(logits, truth.log_odds(X), rtol=1e-9)
    assert_allclose(expit(logits), truth.marginals(X), rtol=1e-9)


@pytest.mark.parametrize("embedding_dim", [0, 2, 21])
def test_the_network_needs_whole_copies(embedding_dim):
    with pytest.raises(ValueError, match="multiple of the 4 units"):
        make()[0].theta(embedding_dim)


def test_expected_losses_against_drawn_labels():
    truth, X = make(n_rows=60)
    scores = np.random.default_rng(0).normal(size=(60, 5)).round(1)  # some ties
    drawn = [truth.sample_labels(X, seed) for seed in range(300)]
    expected = truth.expected_losses(X, scores)
    metrics = np.array([loss_values(Y, scores) for Y in drawn])
    error = metrics.std(axis=0) / np.sqrt(len(drawn))
    assert (error < 0.003).all()
    # The mean of ratios is biased by about the variance of the denominator, here
    # below a standard error.
    assert (np.abs(metrics.mean(axis=0) - expected) < [4, 4, 5] * error).all()
    # Of all draws together micro-F1 is the ratio itself.
    together = f1_score(
        np.vstack(drawn), np.tile(scores > 0, (300, 1)), average="micro"
    )
    assert abs(1 - together - expected[2]) < 4 * error[2]


def test_expected_losses_against_every_label_set():
    truth, X = make(4, 6)
    scores = np.random.default_rng(1).normal(size=(6, 4)).round(1)
    every = np.zeros(2)
    for x_joint, row in zip(truth.joint(X), scores, strict=True):
        for probability, labels in zip(x_joint, truth.label_sets, strict=True):
            every += probability * loss_values(
                labels[None], row[None], ("hamming", "lrap")
            )
    assert_allclose(truth.expected_losses(X, scores)[:2], every / 6, rtol=1e-10)


@pytest.mark.parametrize("dependence", [0.0, 1.0])
@pytest.mark.parametrize("n_labels", [1, 2, 6])
def test_bayes_values_are_reached_and_not_beaten(n_labels, dependence):
    truth, X = make(n_labels, dependence=dependence)
    bayes = truth.bayes_losses(X)
    rng = np.random.default_rng(0)
    for i, name in enumerate(LOSS_NAMES):
        reached = truth.expected_losses(X, truth.bayes_scores(X, name))
        assert_allclose(reached[i], bayes[i])
    p = truth.marginals(X)
    for spread in (0.0, 0.01, 0.1, 1.0):
        for threshold in (0.3, 0.4, 0.5):
            rivals = p - threshold + spread * rng.normal(size=p.shape)
            assert (truth.expected_losses(X, rivals) >= bayes - 1e-12).all()


def test_ranking_scores_have_no_ties():
    truth, X = make(noise=1.0)  # all marginals are equal
    scores = truth.bayes_scores(X, "lrap")
    assert (np.diff(np.sort(scores, axis=1), axis=1) > 0).all()


def test_bayes_predictors_differ():
    truth = make_bayes_multilabel(random_state=0).truth
    X = truth.sample(1000, 1)[0]
    bayes = truth.bayes_losses(X)
    for name, other, least in [
        ("hamming", "micro_f1", 1.02),
        ("micro_f1", "hamming", 1.02),
        ("lrap", "hamming", 1.02),
        ("hamming", "lrap", 1.2),
    ]:
        i = LOSS_NAMES.index(name)
        others = truth.expected_losses(X, truth.bayes_scores(X, other))
        assert others[i] > least * bayes[i], (name, other)


def test_sorted_marginals_lose_under_dependence():
    truth = make_bayes_multilabel(random_state=1).truth
    X = truth.sample(1000, 1)[0]
    losses = np.array(
        [
            truth.expected_losses(x[None], scores[None])[1]
            for s in (truth.marginals(X), truth.bayes_scores(X, "lrap"))
            for x, scores in zip(X, s, strict=True)
        ]
    ).reshape(2, -1)
    difference = losses[0] - losses[1]
    assert (difference >= -1e-12).all()
    # On one row in twenty by 0.05 of LRAP and more; 8 % of the loss over all rows.
    assert (difference > 0.05).mean() > 0.05
    assert losses[0].mean() > 1.08 * losses[1].mean()


def test_sorted_marginals_are_best_without_dependence():
    # Then the expected products order labels as the marginals do.
    truth, X = make(dependence=0.0)
    by_marginals = truth.expected_losses(X, truth.marginals(X))[1]
    assert_allclose(by_marginals, truth.bayes_losses(X)[1], rtol=1e-12)


def test_chunks_change_nothing(monkeypatch):
    truth, X = make()
    whole = truth.bayes_losses(X), truth.bayes_scores(X, "lrap")
    monkeypatch.setattr(_bayes_truth, "_JOINT_ENTRIES", 7 * 2**5)
    assert_allclose(truth.bayes_losses(X), whole[0], rtol=1e-13)
    assert_array_equal(truth.bayes_scores(X, "lrap"), whole[1])


def test_joint_is_never_held_whole(monkeypatch):
    truth, X = make(n_rows=50)
    sizes = []
    joint = BayesTruth._joint
    monkeypatch.setattr(_bayes_truth, "_JOINT_ENTRIES", 10 * 2**5)
    monkeypatch.setattr(
        BayesTruth, "_joint", lambda self, p: sizes.append(len(p)) or joint(self, p)
    )
    truth.bayes_losses(X)
    assert max(sizes) == 10


@pytest.mark.parametrize("noise", [0.2, 0.4])
def test_standard_errors_of_the_risk(noise):
    truth, _ = make(noise=noise)
    small = [truth.bayes_risk(200, seed) for seed in range(60)]
    large = truth.bayes_risk(20_000, 1000)
    spread = np.std([risk.value for risk in small], axis=0, ddof=1)
    claimed = np.mean([risk.standard_error for risk in small], axis=0)
    # The deviation of 60 draws is itself uncertain by 1/√118 ≈ 9 %.
    assert_allclose(spread / claimed, 1, atol=0.3)
    mean = np.mean([risk.value for risk in small], axis=0)
    error = np.hypot(spread / np.sqrt(60), large.standard_error)
    # Fitting the threshold to 200 rows favours them by a little.
    assert (np.abs(mean - large.value) < 4 * error + [0, 0, 5e-4]).all()


def test_risk_is_the_mean_over_its_rows():
    truth, _ = make()
    X = np.random.default_rng(3).normal(size=(500, 4))
    risk = truth.bayes_risk(500, np.random.default_rng(3))
    assert_allclose(risk.value, truth.bayes_losses(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, X: t.marginals(X[:, :2]), "X must have 4 features, got 2"),
        (lambda t, X: t.joint(X * np.nan), "X contains NaN"),
        (lambda t, X: t.bayes_scores(X, "f1"), "loss must be one of .* got 'f1'"),
        (
            lambda t, X: t.expected_losses(X, np.zeros((3, 5))),
            r"scores must have shape \(40, 5\), got \(3, 5\)",
        ),
        (
            lambda t, X: t.expected_losses(X, np.full((40, 5), np.nan)),
            "scores must be numbers, got NaN",
        ),
        (lambda t, X: t.bayes_risk(1), "n_samples must be at least 2, got 1"),
        (lambda t, X: t.sample(0), "n_samples must be at least 1, got 0"),
    ],
    ids=["width", "nan", "loss", "shape", "nan scores", "risk of one", "no rows"],
)
def test_bad_input(call, message):
    truth, X = make()
    with pytest.raises(ValueError, match=message):
        call(truth, X)


def test_is_a_value():
    truth, X = make()
    again = pickle.loads(pickle.dumps(truth))
    assert_array_equal(again.joint(X), truth.joint(X))
    with pytest.raises(ValueError, match="read-only"):
        truth.last[0] = 0
    with pytest.raises(AttributeError):
        truth.dependence = 0.0


def test_fresh_rows_repeat_with_a_seed_and_leave_the_global_state():
    truth, X = make()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for seed in (0, np.random.default_rng(0), np.random.RandomState(0)):
        rows, labels = truth.sample(7, seed)
        assert rows.shape == (7, 4) and labels.dtype == np.int64
    assert_array_equal(truth.sample(7, 5)[1], truth.sample(7, 5)[1])
    truth.sample(3)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    before = X.copy()
    truth.bayes_losses(X)
    assert_array_equal(X, before)


def test_risk_where_no_label_is_possible():
    truth = make_bayes_multilabel(
        1, 1, 0, 0, n_features=4, density=1e-12, random_state=1
    ).truth
    value, error = truth.bayes_risk(500)
    assert_allclose(value, [0, 0, 1], atol=1e-6)
    assert np.isfinite(error).all()

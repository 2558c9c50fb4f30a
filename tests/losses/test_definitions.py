from math import exp, log, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics

from clml.losses import get_loss, list_losses, loss_values
from clml.losses.definitions import PrecisionAtK

# The worked example: a tie, an empty row, a full row.
#
#           labels   scores       decided   wrong  hits
#   row 0   1 0 1    2  2 -1      1 1 0     2      1
#   row 1   0 0 0    1 -1 -2      1 0 0     1      0
#   row 2   1 1 1    1  2  3      1 1 1     0      3
Y = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]])
SCORES = np.array([[2.0, 2.0, -1.0], [1.0, -1.0, -2.0], [1.0, 2.0, 3.0]])


def softplus(z):
    return log1p(exp(z))


def sigmoid(z):
    return 1 / (1 + exp(-z))


WORKED = {
    # 3 wrong of 9 decisions.
    "hamming": 3 / 9,
    # Row 0: label 0 has rank 2 (its tie counts), 1 relevant: 1/2; label 2 has rank 3,
    # 2 relevant: 2/3; mean 7/12. Empty and full rows: 1.
    "lrap": 1 - (7 / 12 + 1 + 1) / 3,
    # 4 hits, 6 predicted, 5 relevant: 8/11.
    "micro_f1": 1 - 8 / 11,
    # Labels: 2 hits of 3 predicted and 2 relevant: 4/5; 1 of 2 and 1: 2/3; 1 of 1
    # and 2: 2/3.
    "macro_f1": 1 - (4 / 5 + 2 / 3 + 2 / 3) / 3,
    # Rows: 2·1/(2 + 2), 0/(1 + 0), 2·3/(3 + 3).
    "example_f1": 1 - (1 / 2 + 0 + 1) / 3,
    # Rows: 1/3, 0/1, 3/3.
    "jaccard": 1 - (1 / 3 + 0 + 1) / 3,
    # Rows 0 and 1 hold a mistake.
    "subset_zero_one": 2 / 3,
    # Row 0: tied with an irrelevant label; row 1: no relevant label.
    "one_error": 2 / 3,
    # Last relevant rank: 3, none (0), 3; mean 2; (2 − 1)/(3 − 1).
    "coverage": 1 / 2,
    # Row 0: both of its pairs are wrong, the tied one too. The other rows have none.
    "ranking_loss": 1 / 3,
    # The tie puts label 1 first in row 0: hits 0, 0, 1.
    "precision_at_1": 1 - (0 + 0 + 1) / 3,
    # Row 0 keeps labels 1 and 0.
    "precision_at_2": 1 - (1 / 2 + 0 + 1) / 3,
    "precision_at_3": 1 - (2 / 3 + 0 + 1) / 3,
    # Σ ln(1 + e^∓z), minus for a relevant label.
    "binary_cross_entropy": (
        (softplus(-2) + softplus(2) + softplus(1))
        + (softplus(1) + softplus(-1) + softplus(-2))
        + (softplus(-1) + softplus(-2) + softplus(-3))
    )
    / 9,
    "row_log_loss": -(
        log(sigmoid(2) / (2 * sigmoid(2) + sigmoid(-1)))
        + log(sigmoid(-1) / (2 * sigmoid(2) + sigmoid(-1)))
        + sum(log(sigmoid(z) / sum(map(sigmoid, (1, 2, 3)))) for z in (1, 2, 3))
    )
    / 3,
    # Pairs of rows, a tie is half a pair. Label 0: 2 over 1, 1 beside 1: 1.5 of 2.
    # Label 1: 2 beside 2, 2 over −1: 1.5 of 2. Label 2: −1 and 3 over −2: 2 of 2.
    "macro_auc": 1 - (3 / 4 + 3 / 4 + 1) / 3,
    # Label 0: half its recall at precision 1, half at 2/3. Label 1: all at 1/2.
    # Label 2: all at 1.
    "macro_average_precision": 1 - (5 / 6 + 1 / 2 + 1) / 3,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", WORKED)
def test_worked_example(name, dtype):
    [value] = loss_values(Y, SCORES.astype(dtype), losses=(name,))
    assert value == pytest.approx(WORKED[name], rel=1e-14, abs=1e-15)


def test_every_listed_loss_has_a_worked_example():
    assert set(list_losses()) - set(WORKED) == {"precision_at_5"}  # K is 3 here


@pytest.mark.parametrize("name", WORKED)
def test_weights_are_repetitions(name):
    times = np.array([4, 1, 2])
    weighted = loss_values(Y, SCORES, losses=(name,), sample_weight=times)
    repeated = loss_values(
        np.repeat(Y, times, axis=0), np.repeat(SCORES, times, axis=0), losses=(name,)
    )
    np.testing.assert_allclose(weighted, repeated, rtol=1e-13)
    assert abs(weighted - WORKED[name]) > 1e-3


@pytest.mark.parametrize("name", WORKED)
def test_a_row_of_weight_zero_is_absent(name):
    without = loss_values(Y[:2], SCORES[:2], losses=(name,))
    np.testing.assert_allclose(
        loss_values(Y, SCORES, losses=(name,), sample_weight=[1, 1, 0]), without
    )


@pytest.mark.parametrize("cardinality", [0, 1, 2, 5])
@pytest.mark.parametrize("score", [-3.0, 0.0, 8.0])
def test_row_log_loss_of_uniform_scores(cardinality, score):
    # Every label has the share 1/K: each relevant one costs ln K.
    labels = np.zeros((4, 6))
    labels[:, :cardinality] = 1
    [value] = loss_values(labels, np.full((4, 6), score), losses=("row_log_loss",))
    assert value == pytest.approx(cardinality * log(6), abs=1e-12)


@pytest.mark.parametrize(
    ("cardinality", "n_labels", "printed"), [(1.868, 6, 3.35), (26.04, 174, 134)]
)
def test_row_log_loss_has_the_printed_scale(cardinality, n_labels, printed):
    labels = np.zeros((1000, n_labels))
    share, whole = cardinality % 1, int(cardinality)
    labels[:, :whole] = 1
    labels[: round(1000 * share), whole] = 1
    scores = np.zeros(labels.shape, dtype=np.float32)
    [value] = loss_values(labels, scores, losses=("row_log_loss",))
    assert value == pytest.approx(cardinality * log(n_labels), rel=1e-12)
    assert value == pytest.approx(printed, rel=5e-3)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        # Nothing predicted, nothing true: F1 and Jaccard are 0, the rest is right.
        (("micro_f1", "macro_f1", "example_f1", "jaccard"), [1, 1, 1, 1]),
        (("hamming", "subset_zero_one", "lrap", "ranking_loss"), [0, 0, 0, 0]),
        (("coverage", "one_error", "precision_at_2"), [0, 1, 1]),
    ],
)
def test_nothing_predicted_and_nothing_true(losses, expected):
    values = loss_values(np.zeros((3, 4)), np.full((3, 4), -1.0), losses=losses)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        (("hamming", "micro_f1", "macro_f1", "example_f1", "jaccard"), [0] * 5),
        (("lrap", "ranking_loss", "one_error", "precision_at_4"), [0] * 4),
        (("coverage",), [1]),  # the last of K relevant labels has rank K
    ],
)
def test_all_predicted_and_all_true(losses, expected):
    scores = np.arange(12.0).reshape(3, 4) + 1
    values = loss_values(np.ones((3, 4)), scores, losses=losses)
    np.testing.assert_allclose(values, expected, atol=1e-15)


def test_coverage_is_not_negative():
    # Rows without a relevant label bring scikit-learn's mean below 1.
    labels = [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    scores = [[3.0, 1.0, 1.0]] * 3
    assert metrics.coverage_error(labels, scores) == pytest.approx(1 / 3)
    assert loss_values(labels, scores, losses=("coverage",)) == [0.0]


@pytest.mark.parametrize("score", [-2.0, 0.0, 2.0])
def test_a_single_label_has_no_ranking(score):
    labels = [[1], [0], [1], [1]]
    losses = ("lrap", "ranking_loss", "coverage")
    values = loss_values(labels, np.full((4, 1), score), losses=losses)
    np.testing.assert_array_equal(values, [0, 0, 0])


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0, 3.0]])
def test_decisions_on_a_single_label_are_binary_classification(weights):
    labels = np.array([[1], [0], [1], [0]])
    scores = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    losses = ("hamming", "subset_zero_one", "micro_f1", "macro_f1")
    plain = {"y_true": labels[:, 0], "y_pred": scores[:, 0] > 0}
    wrong = metrics.zero_one_loss(**plain, sample_weight=weights)
    f1 = metrics.f1_score(**plain, sample_weight=weights)
    np.testing.assert_allclose(
        loss_values(labels, scores, losses=losses, sample_weight=weights),
        [wrong, wrong, 1 - f1, 1 - f1],
    )
    # Rows: a hit, a false alarm, a miss, nothing: 1, 0, 0, 0.
    w = np.ones(4) if weights is None else np.array(weights)
    np.testing.assert_allclose(
        loss_values(
            labels, scores, losses=("example_f1", "jaccard"), sample_weight=weights
        ),
        1 - w[0] / w.sum(),
    )
    np.testing.assert_allclose(
        loss_values(
            labels, scores, losses=("one_error", "precision_at_1"), sample_weight=w
        ),
        (w[1] + w[3]) / w.sum(),
    )


@st.composite
def tables(draw):
    """Indicator with empty and full rows, tied scores, weights or none."""
    n, k = draw(st.integers(1, 12)), draw(st.integers(2, 8))
    labels = draw(arrays(np.int8, (n, k), elements=st.integers(0, 1)))
    kinds = draw(st.lists(st.sampled_from("as is|empty|full".split("|")), max_size=n))
    for i, kind in enumerate(kinds):
        labels[i] = {"as is": labels[i], "empty": 0, "full": 1}[kind]
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    scores = draw(arrays(np.int8, (n, k), elements=st.integers(-3, 3))).astype(dtype)
    weights = arrays(np.int8, n, elements=st.integers(0, 4)).filter(np.any)
    weight = draw(st.none() | weights.map(lambda w: w / 2))
    return labels, scores, weight


def _cross_entropy(labels, scores, sample_weight):
    p = 1 / (1 + np.exp(-scores.astype(np.float64)))
    columns = [
        metrics.log_loss(y, q, labels=[0, 1], sample_weight=sample_weight)
        for y, q in zip(labels.T, p.T, strict=True)
    ]
    return np.mean(columns)


def _row_log_loss(labels, scores, sample_weight):
    p = 1 / (1 + np.exp(-scores.astype(np.float64)))
    rows = -(labels * np.log(p / p.sum(axis=1, keepdims=True))).sum(axis=1)
    return np.average(rows, weights=sample_weight)


def _coverage(labels, scores, sample_weight):
    depth = metrics.coverage_error(labels, scores, sample_weight=sample_weight)
    return max(0, depth - 1) / (labels.shape[1] - 1)


def _of_scores(metric, sign=1):
    def value(labels, scores, sample_weight):
        offset = 0 if sign == 1 else 1
        return offset + sign * metric(labels, scores, sample_weight=sample_weight)

    return value


def _of_decisions(metric, sign=1, **options):
    def value(labels, scores, sample_weight):
        found = metric(labels, scores > 0, sample_weight=sample_weight, **options)
        return found if sign == 1 else 1 - found

    return value


SKLEARN = {
    "hamming": _of_decisions(metrics.hamming_loss),
    "subset_zero_one": _of_decisions(metrics.zero_one_loss),
    "micro_f1": _of_decisions(metrics.f1_score, -1, average="micro", zero_division=0),
    "macro_f1": _of_decisions(metrics.f1_score, -1, average="macro", zero_division=0),
    "example_f1": _of_decisions(
        metrics.f1_score, -1, average="samples", zero_division=0
    ),
    "jaccard": _of_decisions(
        metrics.jaccard_score, -1, average="samples", zero_division=0
    ),
    "lrap": _of_scores(metrics.label_ranking_average_precision_score, -1),
    "ranking_loss": _of_scores(metrics.label_ranking_loss),
    "coverage": _coverage,
    "binary_cross_entropy": _cross_entropy,
    "row_log_loss": _row_log_loss,
}


@settings(deadline=None, max_examples=150)
@given(table=tables())
def test_equal_to_scikit_learn(table):
    labels, scores, weight = table
    values = loss_values(labels, scores, losses=tuple(SKLEARN), sample_weight=weight)
    expected = [oracle(labels, scores, weight) for oracle in SKLEARN.values()]
    for name, value, oracle in zip(SKLEARN, values, expected, strict=True):
        assert value == pytest.approx(oracle, rel=1e-10, abs=1e-12), name


@settings(deadline=None, max_examples=100)
@given(table=tables())
def test_curves_equal_to_scikit_learn(table):
    labels, scores, weight = table
    present = slice(None) if weight is None else weight > 0
    y, s = labels[present], scores[present]
    w = None if weight is None else weight[present]
    some = [k for k in range(y.shape[1]) if y[:, k].any()]
    both = [k for k in some if not y[:, k].all()]
    area = [metrics.roc_auc_score(y[:, k], s[:, k], sample_weight=w) for k in both]
    precision = [
        metrics.average_precision_score(y[:, k], s[:, k], sample_weight=w) for k in some
    ]
    np.testing.assert_allclose(
        loss_values(
            labels,
            scores,
            losses=("macro_auc", "macro_average_precision"),
            sample_weight=weight,
        ),
        [
            1 - np.mean(area) if both else np.nan,
            1 - np.mean(precision) if some else np.nan,
        ],
        rtol=1e-10,
        atol=1e-12,
    )


@settings(deadline=None, max_examples=100)
@given(table=tables())
def test_objectives_stay_between_0_and_1(table):
    labels, scores, weight = table
    k = labels.shape[1]
    losses = [n for n in list_losses(role="objective") if n != "precision_at_5"]
    losses = [n for n in losses if n != "precision_at_3" or k >= 3]
    values = loss_values(labels, scores, losses=losses, sample_weight=weight)
    assert (values >= -1e-12).all()
    assert (values <= 1 + 1e-12).all()


def test_a_loss_is_reached_when_every_row_is_perfect_or_hopeless():
    labels = np.array([[1, 0, 0, 0, 0], [0, 1, 1, 1, 1]] * 5)
    scores = np.where(labels == 1, 1.0, -1.0)
    decided = [
        n for n in list_losses(role="objective") if not n.startswith("precision_at_")
    ]
    best = dict.fromkeys(decided, 0.0)
    # Rank of the last of four relevant labels, tied: 4. Mean depth (1 + 4)/2.
    best["coverage"] = (2.5 - 1) / 4
    np.testing.assert_allclose(
        loss_values(labels, scores, losses=decided), list(best.values()), atol=1e-15
    )
    worst = dict.fromkeys(decided, 1.0)
    # Rows: the rank of each relevant label is K: 1/5 and 4/5.
    worst["lrap"] = 1 - (1 / 5 + 4 / 5) / 2
    np.testing.assert_allclose(
        loss_values(labels, -scores, losses=decided), list(worst.values()), atol=1e-15
    )


@pytest.mark.parametrize("k", [0, -1])
def test_precision_needs_a_positive_k(k):
    with pytest.raises(ValueError, match=f"k of at least 1, got {k}"):
        PrecisionAtK(k)


def test_precision_beyond_the_labels():
    with pytest.raises(ValueError, match=r"'precision_at_4' needs at least 4 labels"):
        loss_values(Y, SCORES, losses=("hamming", "precision_at_4"))


def test_additive_losses_say_so():
    not_sums = {n for n in list_losses() if not get_loss(n).additive}
    assert not_sums == {"macro_auc", "macro_average_precision"}
    assert not_sums == set(list_losses(role="evaluation"))

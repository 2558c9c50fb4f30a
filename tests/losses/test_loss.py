import numpy as np
import pytest
from sklearn.metrics import label_ranking_loss

from clml.losses import (
    CallableLoss,
    Loss,
    MatrixLoss,
    Statistic,
    get_loss,
    loss_values,
)

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, (15, 4))
SCORES = rng.integers(-3, 3, (3, 15, 4)).astype(float)
WEIGHT = rng.random(15)


class OwnHamming(Loss):
    name = "own_hamming"
    statistics = (
        Statistic("own_wrong", lambda Y, scores, t: ((scores > t) != Y).sum(-1)),
    )

    def close(self, sums, weight, n_labels):
        return sums["own_wrong"] / (weight * n_labels)


class OwnMacroF1(Loss):
    name = "own_macro_f1"
    statistics = (
        Statistic("own_hits", lambda Y, scores, t: (scores > t) & Y, per_label=True),
        Statistic(
            "own_size",
            lambda Y, scores, t: (scores > t).astype(float) + Y,
            per_label=True,
        ),
    )

    def close(self, sums, weight, n_labels):
        assert sums["own_hits"].shape[1:] == (n_labels,)
        return 1 - (2 * sums["own_hits"] / sums["own_size"]).mean(axis=1)


class Recombined(Loss):
    """Micro-F1 from a built-in statistic and one that is not."""

    name = "recombined"
    statistics = (
        "hits",
        Statistic("own_both", lambda Y, scores, t: (scores > t).sum(-1) + Y.sum(-1)),
    )

    def close(self, sums, weight, n_labels):
        return 1 - 2 * sums["hits"] / sums["own_both"]


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("threshold", [0.0, 1.0])
@pytest.mark.parametrize(
    ("own", "built_in"),
    [(OwnHamming, "hamming"), (OwnMacroF1, "macro_f1"), (Recombined, "micro_f1")],
)
@pytest.mark.parametrize("as_instance", [False, True])
def test_own_statistics_give_the_built_in_loss(
    own, built_in, threshold, weight, as_instance
):
    values = loss_values(
        Y,
        SCORES,
        losses=(own() if as_instance else own, built_in),
        sample_weight=weight,
        threshold=threshold,
    )
    assert values.shape == (3, 2)
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-12)


@pytest.mark.parametrize("own", [OwnHamming, OwnMacroF1])
def test_own_statistics_of_a_nan_candidate(own):
    spoiled = SCORES.copy()
    spoiled[1, 3, 2] = np.nan
    values = loss_values(Y, spoiled, losses=(own,))[:, 0]
    assert np.isnan(values[1])
    kept = loss_values(Y, SCORES, losses=(own,))[:, 0]
    np.testing.assert_array_equal(values[[0, 2]], kept[[0, 2]])


def with_statistic(name, define, per_label=False):
    class Made(Loss):
        statistics = (Statistic(name, define, per_label),)

        def close(self, sums, weight, n_labels):
            return sums[name] / weight

    Made.name = f"made_{define(Y[:1].astype(bool), SCORES[:1, :1], 0.0).sum()}"
    return Made


def ones(Y, scores, threshold):
    return np.ones(scores.shape[:2])


def zeros(Y, scores, threshold):
    return np.zeros(scores.shape[:2])


@pytest.mark.parametrize(
    ("define", "per_label", "message"),
    [
        (lambda Y, s, t: s, False, r"'mine' must return shape \(3, 15\), got .*15, 4"),
        (lambda Y, s, t: s[..., 0], True, r"return shape \(3, 15, 4\), got \(3, 15\)"),
        (lambda Y, s, t: Y.sum(-1), False, r"return shape \(3, 15\), got \(15,\)"),
    ],
)
def test_wrong_shape_of_a_statistic(define, per_label, message):
    class Bad(Loss):
        name = "bad"
        statistics = (Statistic("mine", define, per_label),)

    with pytest.raises(ValueError, match=message):
        loss_values(Y, SCORES, losses=(Bad,))


@pytest.mark.parametrize("name", ["wrong", "label_hits", "top_hits_2"])
def test_own_statistic_never_silently_gives_way_to_a_built_in(name):
    # Computed as defined, or refused: never the built-in sum under that name.
    try:
        values = loss_values(Y, SCORES, losses=(with_statistic(name, ones),))
    except ValueError as error:
        assert name in str(error)
    else:
        np.testing.assert_array_equal(values, np.ones((3, 1)))


def test_two_statistics_of_one_name_are_never_mixed_up():
    losses = (with_statistic("mine", ones), with_statistic("mine", zeros))
    try:
        values = loss_values(Y, SCORES, losses=losses)
    except ValueError as error:
        assert "mine" in str(error)
    else:
        np.testing.assert_array_equal(values, [[1, 0]] * 3)


def test_losses_may_share_a_statistic():
    shared = Statistic("shared", ones)

    class First(Loss):
        name = "first"
        statistics = (shared,)

        def close(self, sums, weight, n_labels):
            return sums["shared"] / weight

    class Second(First):
        name = "second"

        def close(self, sums, weight, n_labels):
            return sums["shared"] / weight / 2

    values = loss_values(Y, SCORES, losses=(First, Second))
    np.testing.assert_array_equal(values, [[1, 0.5]] * 3)


def test_unknown_statistic():
    class Bad(Loss):
        name = "bad"
        statistics = ("hitz",)

    with pytest.raises(ValueError, match=r"'bad' names the statistic 'hitz'.*'hits'"):
        loss_values(Y, SCORES, losses=(Bad,))


def test_a_loss_without_a_name_is_refused():
    class Nameless(Loss):
        statistics = ("wrong",)

        def close(self, sums, weight, n_labels):
            return sums["wrong"]

    with pytest.raises((TypeError, ValueError), match=r"Nameless.*name"):
        loss_values(Y, SCORES, losses=(Nameless,))


def test_a_closing_formula_must_give_one_number_a_candidate():
    class Bad(Loss):
        name = "bad"
        statistics = ("wrong",)

        def close(self, sums, weight, n_labels):
            return float(sums["wrong"].sum())

    with pytest.raises(ValueError, match=r"'?bad'?.*\(3,\).*got.*\(\)"):
        loss_values(Y, SCORES, losses=("hamming", Bad))


@pytest.mark.parametrize(
    ("base", "method"), [(Loss, r"close\(\)"), (MatrixLoss, r"evaluate\(\)")]
)
def test_missing_formula(base, method):
    class Unfinished(base):
        name = "unfinished"
        statistics = ("wrong",)

    with pytest.raises(TypeError, match=f"Unfinished must define {method}"):
        loss_values(Y, SCORES, losses=(Unfinished,))


def share_of_negative_scores(Y, scores):
    assert Y.shape == scores.shape == (15, 4)
    return (scores < 0).mean()


def test_a_function():
    values = loss_values(Y, SCORES, losses=("hamming", share_of_negative_scores))
    np.testing.assert_allclose(values[:, 1], (SCORES < 0).mean(axis=(1, 2)))
    np.testing.assert_array_equal(values[:, [0]], loss_values(Y, SCORES, ("hamming",)))
    single = loss_values(Y, SCORES[1], losses=(share_of_negative_scores,))
    assert single == [(SCORES[1] < 0).mean()]


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_function_that_takes_weights(weight):
    values = loss_values(
        Y, SCORES, losses=(label_ranking_loss, "ranking_loss"), sample_weight=weight
    )
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-12)


def test_keywords_take_weights():
    seen = []

    def loss(Y, scores, **keywords):
        seen.append(keywords)
        return 0.5

    loss_values(Y, SCORES[0], losses=(loss,))
    loss_values(Y, SCORES[0], losses=(loss,), sample_weight=WEIGHT)
    assert seen[0] == {}
    np.testing.assert_array_equal(seen[1]["sample_weight"], WEIGHT)


def test_weights_need_a_function_that_takes_them():
    with pytest.raises(ValueError, match=r"'share_of_negative_scores' takes no sample"):
        loss_values(Y, SCORES, losses=(share_of_negative_scores,), sample_weight=WEIGHT)


@pytest.mark.parametrize(
    ("returned", "kind"),
    [(None, "NoneType"), ([0.1, 0.2], "list"), (1j, "complex"), ("a", "str")],
)
def test_a_function_must_return_a_number(returned, kind):
    def loss(Y, scores):
        return returned

    with pytest.raises(TypeError, match=f"'loss' must return a number, got {kind}"):
        loss_values(Y, SCORES, losses=(loss,))


def test_an_error_in_a_function_is_its_own():
    def loss(Y, scores):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        loss_values(Y, SCORES, losses=(loss,))


def test_a_function_never_sees_nan():
    def loss(Y, scores):
        assert not np.isnan(scores).any()
        return 0.25

    spoiled = SCORES.copy()
    spoiled[0, 0, 0] = np.nan
    values = loss_values(Y, spoiled, losses=(loss, "macro_auc"))
    assert np.isnan(values[0]).all()
    np.testing.assert_array_equal(values[1:, 0], [0.25, 0.25])


def test_a_builtin_without_a_signature_is_a_loss():
    class Called:
        def __call__(self, Y, scores):
            return 0.75

    loss = get_loss(Called())
    assert isinstance(loss, CallableLoss)
    assert loss.name == "Called"
    assert loss_values(Y, SCORES[0], losses=(loss,)) == [0.75]


def test_representations():
    assert repr(get_loss("hamming")) == "Hamming()"
    assert repr(get_loss("precision@4")) == "PrecisionAtK(4)"
    assert repr(get_loss(share_of_negative_scores)) == (
        "CallableLoss(share_of_negative_scores)"
    )

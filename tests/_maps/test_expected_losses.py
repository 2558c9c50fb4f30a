import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from clml._maps import expected_losses as _expected_losses
from clml._maps.expected_losses import best_shifts, expects_decisions
from clml.losses import CallableLoss, get_loss, get_losses, list_losses, loss_values

SHIFTS = _expected_losses._SHIFTS


def make_logits(seed, n=30, n_labels=3):
    return np.random.default_rng(seed).normal(-1, 2, size=(n, n_labels))


def expectation(name, logits, shift, weight, n_draws=400):
    """The loss on many sets of labels, drawn and pooled: the slow twin."""
    generator = np.random.default_rng(1)
    Y = generator.random((n_draws, *logits.shape)) < expit(logits)
    scores = np.tile(logits + shift, (n_draws, 1))
    Y = Y.reshape(scores.shape).astype(int)
    return loss_values(Y, scores, (name,), sample_weight=np.tile(weight, n_draws))[0]


@settings(max_examples=10, deadline=None)
@given(
    name=st.sampled_from(["hamming", "micro_f1", "example_f1", "subset_zero_one"]),
    seed=st.integers(0, 100),
    weighted=st.booleans(),
)
def test_no_shift_is_expected_to_be_better(name, seed, weighted):
    logits = make_logits(seed)
    weight = np.ones(len(logits))
    if weighted:
        weight = np.random.default_rng(seed).uniform(0.2, 2, len(logits))
    ((shift, *others),) = best_shifts(get_losses((name,)), logits, weight)
    assert others == [shift] * 2
    values = [expectation(name, logits, s, weight) for s in SHIFTS[::3]]
    found = expectation(name, logits, shift, weight)
    assert found <= min(values) + 0.02


def test_each_label_has_its_own_shift_in_macro_f1():
    logits = make_logits(0, 2000) + np.array([-2.0, 0.0, 2.0])
    weight = np.ones(len(logits))
    (found,) = best_shifts(get_losses(("macro_f1",)), logits, weight)
    for k in range(3):
        (alone,) = best_shifts(get_losses(("micro_f1",)), logits[:, [k]], weight)
        assert found[k] == alone[0]
    assert found[0] > found[1] > found[2]


def test_macro_f1_is_that_of_half_the_f1():
    """Predicting what is likelier than F/2 is best, where F is what is attained."""
    logits = make_logits(0, 5000, 1)
    (shift,) = best_shifts(get_losses(("macro_f1",)), logits, np.ones(len(logits)))
    p = expit(logits)
    predicted = logits + shift > 0
    f1 = 2 * p[predicted].sum() / (predicted.sum() + p.sum())
    assert expit(-shift[0]) == pytest.approx(f1 / 2, abs=0.02)


def test_rows_of_weight_0_are_absent():
    logits = make_logits(0)
    weight = np.r_[np.ones(20), np.zeros(10)]
    losses = get_losses(("micro_f1", "macro_f1"))
    for a, b in zip(
        best_shifts(losses, logits, weight),
        best_shifts(losses, logits[:20], np.ones(20)),
        strict=True,
    ):
        assert a == pytest.approx(b)


@pytest.mark.parametrize("name", ["lrap", "ranking_loss", "coverage", "precision_at_3"])
def test_ranks_do_not_depend_on_shifts(name):
    assert best_shifts(get_losses((name,)), make_logits(0), np.ones(30)) == [None]
    assert not expects_decisions(name)


def test_a_function_is_not_asked():
    def own(Y, scores):
        raise AssertionError("asked")

    loss = CallableLoss(own)
    assert best_shifts((loss,), make_logits(0), np.ones(30)) == [None]
    assert not expects_decisions("own")


@pytest.mark.parametrize("name", sorted(list_losses()))
def test_what_expects_decisions_gets_a_shift(name):
    if get_loss(name).name in ("macro_auc", "macro_average_precision"):
        assert not expects_decisions(name)
        return
    (shift,) = best_shifts(get_losses((name,)), make_logits(0), np.ones(30))
    assert expects_decisions(name) == (shift is not None)


@pytest.mark.parametrize("logit", [-800.0, 0.0, 800.0])
def test_labels_that_are_certain(logit):
    logits = np.full((4, 2), logit)
    for shift in best_shifts(
        get_losses(("hamming", "micro_f1", "macro_f1", "example_f1")),
        logits,
        np.ones(4),
    ):
        assert np.isfinite(shift).all()

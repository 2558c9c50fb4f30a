import numpy as np
import pytest
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
    log_loss,
)

from clml.baselines._criteria import cross_entropy, f1_sum, ranking_first
from clml.baselines._training import better


@pytest.fixture(scope="module")
def scored():
    generator = np.random.default_rng(0)
    Y = generator.integers(2, size=(40, 5))
    return generator.normal(size=(40, 5)) + Y, Y


def test_ranking_first_against_scikit_learn(scored):
    logits, Y = scored
    criteria = ranking_first(logits, Y)
    assert list(criteria) == ["lrap", "hamming", "binary_cross_entropy"]
    lrap = label_ranking_average_precision_score(Y, logits)
    assert criteria["lrap"] == pytest.approx(1 - lrap)
    assert criteria["hamming"] == pytest.approx(hamming_loss(Y, logits > 0))


def test_ranking_order_is_that_of_labelled_rows_alone(scored):
    """The authors leave rows without labels out: that scales, and does not reorder."""
    logits, Y = scored
    Y = Y.copy()
    Y[::4] = 0
    other = logits + np.random.default_rng(1).normal(size=logits.shape)
    labelled = Y.any(axis=1)
    full = [ranking_first(s, Y)["lrap"] for s in (logits, other)]
    part = [ranking_first(s[labelled], Y[labelled])["lrap"] for s in (logits, other)]
    np.testing.assert_allclose(np.array(full), np.array(part) * labelled.mean())


def test_cross_entropy_against_scikit_learn(scored):
    logits, Y = scored
    p = 1 / (1 + np.exp(-logits))
    expected = log_loss(Y.ravel(), p.ravel())
    assert cross_entropy(logits, Y) == {"binary_cross_entropy": pytest.approx(expected)}


def test_f1_sum_against_scikit_learn(scored):
    logits, Y = scored
    f1 = [f1_score(Y, logits > 0, average=a) for a in ("micro", "macro")]
    (value,) = f1_sum(logits, Y).values()
    assert value == pytest.approx(2 - sum(f1))


@pytest.mark.parametrize("criterion", [ranking_first, cross_entropy, f1_sum])
def test_weights_are_repetitions(scored, criterion):
    logits, Y = scored
    weight = np.arange(40) % 3 + 1
    weighted = criterion(logits, Y, weight.astype(float))
    repeated = criterion(np.repeat(logits, weight, 0), np.repeat(Y, weight, 0))
    assert weighted == pytest.approx(repeated)


def test_first_difference_decides():
    old = {"a": 0.5, "b": 0.5}
    assert better({"a": 0.4, "b": 0.9}, old)
    assert not better({"a": 0.6, "b": 0.1}, old)
    assert better({"a": 0.5 + 1e-6, "b": 0.4}, old)
    assert not better(old, old)
    # A hundred-thousandth is equal, ten of them are not.
    assert not better({"a": 0.5 - 9e-6, "b": 0.6}, old)
    assert better({"a": 0.5 - 1e-4, "b": 0.6}, old)
    assert not better({"a": 0.4, "b": np.nan}, old)

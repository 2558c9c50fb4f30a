"""Shares of kinds of members, chosen by held-out rows."""

import numpy as np
import pytest

from clml._training.kind_shares import kind_shares, simplex_grid
from clml.losses import MatrixLoss, RowTargets

LOSSES = ("hamming", "lrap", "micro_f1")


def kinds(noise, n=300, k=4, seed=0):
    """Return logits of kinds that see the truth through their own noise."""
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(n, k))
    seen = [truth + s * generator.normal(size=truth.shape) for s in noise]
    return np.stack(seen), RowTargets.from_indicator(truth > 0)


def test_a_grid_has_all_shares_once_and_equal_ones_first():
    grid = simplex_grid(3, 4)
    assert grid.shape == (1 + 15, 3)
    np.testing.assert_allclose(grid.sum(axis=1), 1.0)
    np.testing.assert_allclose(grid[0], 1 / 3)
    assert len(np.unique(grid[1:], axis=0)) == 15


def test_a_kind_that_guesses_has_nothing():
    by_kind, targets = kinds([0.3, 50.0, 0.3])
    shares = kind_shares(by_kind, targets, LOSSES)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[1] < 0.05
    assert shares[0] == pytest.approx(shares[2], abs=0.35)


def test_kinds_that_cannot_be_told_apart_share():
    by_kind, targets = kinds([1.0, 1.0], n=60)
    assert kind_shares(by_kind, targets, LOSSES).min() > 0.25


def test_kinds_that_are_the_same_share_equally():
    by_kind, targets = kinds([0.5], n=50)
    both = np.concatenate([by_kind, by_kind])
    np.testing.assert_allclose(kind_shares(both, targets, LOSSES), 0.5)


def test_rows_of_weight_count_for_more():
    """Each kind knows half of the rows."""
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(200, 3))
    guess = generator.normal(size=truth.shape)
    first = np.arange(200) < 100
    by_kind = np.stack(
        [np.where(first[:, None], truth, guess), np.where(first[:, None], guess, truth)]
    )
    weight = np.where(first, 20.0, 1.0)
    targets = RowTargets.from_indicator(truth > 0, weight)
    assert kind_shares(by_kind, targets, LOSSES)[0] > 0.7


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_rows(n):
    by_kind, targets = kinds([0.1, 0.1], n=n)
    shares = kind_shares(by_kind, targets, LOSSES)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()


def test_functions_are_called_once_for_each_point_of_the_grid():
    calls = []

    class Wrong(MatrixLoss):
        name = "wrong"

        def evaluate(self, Y, scores, sample_weight=None, threshold=0.0):
            calls.append(len(Y))
            return float(((scores > threshold) != Y).mean())

    by_kind, targets = kinds([0.1, 20.0])
    shares = kind_shares(by_kind, targets, ("hamming", Wrong()))
    assert calls == [300] * len(simplex_grid(2, 4))
    np.testing.assert_allclose(shares, [0.75, 0.25])  # halfway to the same for all


def test_losses_that_are_undefined_choose_nothing():
    class Undefined(MatrixLoss):
        name = "undefined"

        def evaluate(self, Y, scores, sample_weight=None, threshold=0.0):
            return np.nan

    by_kind, targets = kinds([0.1, 0.1])
    shares = kind_shares(by_kind, targets, (Undefined(),))
    np.testing.assert_allclose(shares, 0.5)

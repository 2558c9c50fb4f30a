"""Gradients of maps, and where an ascent of them ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from clml._maps.map_ascent import ascended_deviations, can_ascend
from clml._maps.score_engine import ScoreEngine
from clml._maps.score_map import MapSpace
from clml.losses import RowTargets, loss_values

LOSSES = ("hamming", "lrap", "micro_f1")


def make_engine(transform, n_learners=1, losses=LOSSES, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(80, 4))
    scores = truth[:, None] + rng.normal(0.3, 0.7, size=(80, n_learners, 4))
    targets = RowTargets.from_indicator(truth > 0.5, rng.random(80))
    space = MapSpace(
        transform,
        4,
        scale=rng.uniform(0.5, 2.0, n_learners),
        offset=rng.normal(size=n_learners),
    )
    return ScoreEngine(space, scores, targets, losses)


@pytest.mark.parametrize(
    ("transform", "n_learners"),
    [
        ("bias", 1),
        ("bias", 3),
        ("affine", 1),
        ("affine", 2),
        ("weights", 3),
        ("mixing", 1),
    ],
)
def test_derivatives_are_those_of_differences(transform, n_learners):
    engine = make_engine(transform, n_learners)
    rng = np.random.default_rng(1)
    deviations = rng.normal(scale=0.3, size=engine.space.n_deviations)
    slope = rng.normal(size=(80, 4))

    def value(at):
        return float((engine.scores(engine.space.maps(at[None], 0.2))[0] * slope).sum())

    found = engine.space.pulled_back(deviations, *engine.slopes_of_map(slope))
    h = 1e-6 * np.eye(len(deviations))
    expected = [(value(deviations + e) - value(deviations - e)) / 2e-6 for e in h]
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("transform", "n_learners"), [("affine", 1), ("weights", 3), ("mixing", 1)]
)
def test_losses_fall(transform, n_learners):
    engine = make_engine(transform, n_learners)
    found = ascended_deviations(engine, 0.0)
    begun = engine.losses(engine.space.identity()[None])[0]
    ended = engine.losses(engine.space.maps(found[None]))[0]
    assert np.prod(1 - ended) > np.prod(1 - begun) + 0.02
    assert_array_equal(found, ascended_deviations(engine, 0.0))


def test_a_label_that_is_always_the_same_leaves_numbers():
    engine = make_engine("affine")
    for constant in (0, 1):
        Y = engine.targets.dense.copy()
        Y[:, 1] = constant
        one = ScoreEngine(
            engine.space, engine._scores, RowTargets.from_indicator(Y), LOSSES
        )
        assert np.isfinite(ascended_deviations(one, 0.0)).all()


def test_functions_have_no_gradient():
    def own(Y, scores):
        return float(loss_values(Y, scores, ("hamming",))[0])

    assert can_ascend(make_engine("affine"))
    assert not can_ascend(make_engine("affine", losses=(own, "hamming")))

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml._maps.score_map import MapSpace, apply_map, apply_maps, split_maps
from clml.losses import RowTargets

TRANSFORMS = ("affine", "average", "bias", "mixing", "thresholds", "weights")


def make_space(transform, n_labels=3, n_learners=2, seed=0):
    generator = np.random.default_rng(seed)
    m = 1 if transform == "mixing" else n_learners
    return MapSpace(
        transform, n_labels, generator.uniform(0.5, 2, m), generator.normal(size=m)
    )


def slow_logits(space, deviation, scores, shift, strength):
    """The formulas, one label of one row at a time."""
    k_labels, m_learners = space.n_labels, space.n_learners
    d = strength * deviation
    out = np.empty((len(scores), k_labels))
    for i, row in enumerate(scores):
        z = row * space.scale[:, None] + space.offset[:, None]
        mean = z.mean(axis=0)
        for k in range(k_labels):
            own = d[len(d) - k_labels + k]
            if space.transform == "affine":
                value = np.exp(d[k]) * mean[k]
            elif space.transform == "weights":
                w = d[: m_learners * k_labels].reshape(m_learners, k_labels)
                value = mean[k] + sum(w[m, k] * z[m, k] for m in range(m_learners))
            elif space.transform == "mixing":
                mixed = d[: k_labels**2].reshape(k_labels, k_labels) / k_labels
                value = mean[k] + sum(mixed[j, k] * z[0, j] for j in range(k_labels))
            else:
                value = mean[k]
            out[i, k] = value + own + shift
    return out


@pytest.mark.parametrize("transform", TRANSFORMS)
@given(
    seed=st.integers(0, 10_000),
    n_labels=st.integers(1, 4),
    n_learners=st.integers(1, 4),
    strength=st.floats(0, 1),
)
def test_maps_are_the_formulas(transform, seed, n_labels, n_learners, strength):
    space = make_space(transform, n_labels, n_learners, seed)
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(3, space.n_learners, n_labels))
    deviations = generator.normal(size=(2, space.n_deviations))
    maps = space.maps(deviations, 0.3, strength)
    for theta, deviation in zip(maps, deviations, strict=True):
        np.testing.assert_allclose(
            apply_map(theta, scores, mixing=space.mixing),
            slow_logits(space, deviation, scores, 0.3, strength),
            atol=1e-12,
        )


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_identity_is_no_deviation_and_strength_none(transform):
    space = make_space(transform)
    deviations = np.random.default_rng(0).normal(size=(1, space.n_deviations))
    np.testing.assert_allclose(space.maps(deviations, 0.5, 0.0)[0], space.identity(0.5))


@pytest.mark.parametrize("transform", ["affine", "bias", "mixing", "thresholds"])
def test_identity_of_one_learner_keeps_its_decisions(transform):
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(50, 1, 4)) - 1.0
    scores[:5, 0, 0] = 0.0
    targets = RowTargets.from_indicator(generator.integers(0, 2, (50, 4)))
    space = MapSpace.fit(scores, targets, transform)
    logits = apply_map(space.identity(), scores, mixing=space.mixing)
    np.testing.assert_array_equal(logits > 0, scores[:, 0] > 0)
    np.testing.assert_allclose(logits, space.scale[0] * scores[:, 0], atol=1e-12)


def test_several_learners_are_brought_to_one_unit():
    """The same scores in another unit are the same learner."""
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(200, 3))
    one = truth + generator.normal(size=truth.shape)
    scores = np.stack([one, 100 * one + 50], axis=1)
    targets = RowTargets.from_indicator(truth > 0)
    space = MapSpace.fit(scores, targets, "weights")
    z = scores * space.scale[:, None] + space.offset[:, None]
    np.testing.assert_allclose(z[:, 0], z[:, 1], atol=1e-6)


@given(st.integers(1, 5), st.integers(1, 40), st.booleans())
def test_logits_do_not_depend_on_what_is_computed_together(p, n, mixing):
    generator = np.random.default_rng(p * n)
    scores = generator.normal(size=(n, 1, 3))
    maps = generator.normal(size=(p, 12 if mixing else 6))
    weights, bias = split_maps(maps, 3)
    together = apply_maps(weights, bias, scores, mixing)
    for i, theta in enumerate(maps):
        for row in range(n):
            alone = apply_map(theta, scores[row : row + 1], mixing=mixing)
            np.testing.assert_array_equal(together[i, row : row + 1], alone)


def test_a_score_equal_to_its_threshold_is_not_above_it():
    threshold = 0.1
    scores = np.array([[[threshold]], [[np.nextafter(threshold, 1)]]])
    logits = apply_map(np.array([1.0, -threshold]), scores)
    assert logits[0, 0] == 0
    assert logits[1, 0] > 0


@pytest.mark.parametrize(
    "transform, n_learners, message",
    [
        ("rotation", 1, "transform must be one of .* got 'rotation'"),
        ("mixing", 2, "maps the scores of one learner, got those of 2"),
    ],
)
def test_bad_spaces(transform, n_learners, message):
    with pytest.raises(ValueError, match=message):
        MapSpace(transform, 2, np.ones(n_learners), np.zeros(n_learners))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_deviations_that_ran_away_stay_finite(transform):
    """Where a scale changes no loss a search drifts, as far as it is let."""
    space = make_space(transform)
    for far in (1e3, -1e3, 1e150, -1e150):
        maps = space.maps(np.full((1, space.n_deviations), far), 0.5, 1.0)
        assert np.isfinite(maps.astype(np.float32)).all()

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clml._training.archive import Archive as ArchiveValue
from clml.lebesgue import lebesgue_contributions, lebesgue_measure, nondominated


class Archive:
    """The value in a variable, as a run holds it."""

    def __init__(self, n_losses, n_parameters, capacity):
        self.value = ArchiveValue.empty(n_losses, n_parameters, capacity)

    def __getattr__(self, name):
        return getattr(self.value, name)

    def update(self, losses, thetas):
        self.value = self.value.updated(losses, thetas)


def thetas_for(losses, offset=0):
    """Weights that tell which candidate they belong to."""
    return np.arange(offset, offset + len(losses), dtype=np.float32)[:, None]


def test_keeps_what_nothing_dominates_and_the_first_of_equals():
    archive = Archive(n_losses=2, n_parameters=1, capacity=10)
    first = np.array([[0.5, 0.5], [0.2, 0.8], [0.6, 0.6]])
    archive.update(first, thetas_for(first))
    second = np.array([[0.5, 0.5], [0.1, 0.9], [0.4, 0.4]])
    archive.update(second, thetas_for(second, offset=10))
    losses, thetas = archive.front()
    np.testing.assert_array_equal(losses, [[0.1, 0.9], [0.2, 0.8], [0.4, 0.4]])
    np.testing.assert_array_equal(thetas[:, 0], [11, 1, 12])
    assert archive.measure == pytest.approx(lebesgue_measure(losses))


@settings(max_examples=60, deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.just(3)),
        elements=st.integers(0, 6).map(lambda v: v / 8),
    ),
    st.integers(1, 7),
)
def test_stream_equals_all_at_once(losses, chunk):
    archive = Archive(n_losses=3, n_parameters=1, capacity=1000)
    thetas = thetas_for(losses)
    for start in range(0, len(losses), chunk):
        archive.update(losses[start : start + chunk], thetas[start : start + chunk])
    expected = np.unique(losses[nondominated(losses)], axis=0)
    found, found_thetas = archive.front()
    np.testing.assert_array_equal(found, expected)
    # Weights still belong to their losses, and to the first candidate with them.
    for vector, theta in zip(found, found_thetas, strict=True):
        assert theta[0] == np.flatnonzero((losses == vector).all(axis=1))[0]


def test_candidates_with_nan_are_left_out():
    archive = Archive(n_losses=2, n_parameters=1, capacity=10)
    losses = np.array([[np.nan, 0.1], [0.3, 0.3]])
    archive.update(losses, thetas_for(losses))
    np.testing.assert_array_equal(archive.losses, [[0.3, 0.3]])


def test_capacity_keeps_the_largest_contributions_and_the_best_of_each_loss():
    x = np.linspace(0.05, 0.95, 41)
    losses = np.stack([x, 1 - x], axis=1)
    archive = Archive(n_losses=2, n_parameters=1, capacity=7)
    archive.update(losses, thetas_for(losses))
    front, thetas = archive.front()
    assert len(front) == 7
    for k in range(2):
        assert front[:, k].min() == losses[:, k].min()
    products = losses.prod(axis=1)
    assert front.prod(axis=1).min() == products.min()
    np.testing.assert_array_equal(losses[thetas[:, 0].astype(int)], front)


def test_capacity_prefers_contributions():
    # Two clusters: the lonely member contributes most and must survive.
    losses = np.array([[0.1, 0.9], [0.11, 0.89], [0.12, 0.88], [0.5, 0.3], [0.9, 0.1]])
    archive = Archive(n_losses=2, n_parameters=1, capacity=3)
    archive.update(losses, thetas_for(losses))
    front, _ = archive.front()
    assert lebesgue_contributions(losses).argmax() == 3
    assert [0.5, 0.3] in front.tolist()


def test_new_losses_for_the_members():
    archive = Archive(n_losses=2, n_parameters=1, capacity=10)
    losses = np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]])
    archive.update(losses, thetas_for(losses))
    before = archive.value
    again = before.judged_anew(np.array([[0.2, 0.2], [0.3, 0.3], [0.9, 0.1]]))
    front, thetas = again.front()
    assert again.measure == pytest.approx(lebesgue_measure(front))
    np.testing.assert_array_equal(before.losses, losses)  # a value
    np.testing.assert_array_equal(front, [[0.2, 0.2], [0.9, 0.1]])
    np.testing.assert_array_equal(thetas[:, 0], [0, 2])


def test_the_measure_never_falls():
    archive = Archive(n_losses=2, n_parameters=1, capacity=3)
    x = np.random.default_rng(0).permutation(np.linspace(0.05, 0.95, 60))
    largest = 0.0
    for i in range(0, 60, 4):
        losses = np.stack([x[i : i + 4], 1 - x[i : i + 4]], axis=1)
        archive.update(losses, thetas_for(losses))
        assert len(archive.losses) <= 6
        assert archive.measure >= largest
        assert archive.measure >= lebesgue_measure(archive.losses)
        largest = archive.measure

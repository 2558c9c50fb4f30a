import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clml.lebesgue import fitness_order, lebesgue_contributions
from clml.lebesgue._inputs import check_reference
from clml.lebesgue._monte_carlo import SampledBox

SET = [[1.0, 0.5, 0.75], [0.5, 1.0, 1.0]]


def slow_counts(samples, L, references):
    """Count the samples that each member alone covers, one by one."""
    counts = np.zeros(len(L))
    for z in samples:
        covering = [i for i, row in enumerate(L) if (row <= z).all()]
        if len(covering) == 1 and any((z <= r).all() for r in references):
            counts[covering[0]] += 1
    return counts


@pytest.mark.parametrize("n_references", [1, 3])
@pytest.mark.parametrize("o", [1, 2, 3, 4])
def test_equals_slow_count(o, n_references):
    rng = np.random.default_rng(o)
    L = 1.2 * rng.random((8, o)).round(1) - 0.2
    L[0] = L[1]
    references = 0.7 + 0.5 * rng.random((n_references, o))
    box = SampledBox(L, references, 300, 0)
    expected = box.volume * slow_counts(box.samples, L, references) / 300
    np.testing.assert_allclose(box.contributions(L), expected, rtol=1e-14)
    assert expected.any()


@pytest.mark.parametrize(
    ("shift", "reference"),
    [
        (0.0, 1.0),
        (0.0, [0.9, 0.8, 1.5]),
        (0.0, SET),
        (-0.4, 1.0),
        (-2.0, -0.5),
    ],
)
def test_within_five_standard_errors_of_exact(shift, reference):
    L = np.random.default_rng(0).random((10, 3)).round(1) + shift
    n_samples = 20_000
    volume = SampledBox(L, check_reference(reference, 3), 1, 0).volume
    exact = lebesgue_contributions(L, reference)
    estimate = lebesgue_contributions(
        L, reference, method="monte_carlo", n_samples=n_samples, random_state=0
    )
    share = exact / volume
    error = volume * np.sqrt(share * (1 - share) / n_samples)
    assert (np.abs(estimate - exact) <= 5 * error + 1e-12).all()
    assert (exact > 0).sum() >= 2


def test_ordinary_box_is_the_unit_cube():
    box = SampledBox(np.full((2, 3), 0.5), np.ones((1, 3)), 1000, 0)
    assert box.volume == 1.0
    assert box.samples.shape == (1000, 3)
    assert box.samples.min() < 0.01
    assert box.samples.max() > 0.99


def test_zeros_are_exact():
    nan, inf = np.nan, np.inf
    L = [[0.2, 0.2], [0.5, 0.5], [0.5, 0.5], [-1.0, 1.0], [nan, 0.0], [inf, -5.0]]
    estimate = lebesgue_contributions(L, method="monte_carlo", random_state=0)
    np.testing.assert_array_equal(estimate > 0, [True] + [False] * 5)
    # Those outside must not have widened the box: a share of [0, 1]² to 4 digits.
    assert (estimate[0] * 10_000) == pytest.approx(round(estimate[0] * 10_000))


@pytest.mark.parametrize("reference", [1.0, -1.0, [[1.0, -1.0], [-1.0, 1.0]]])
@pytest.mark.parametrize("m", [0, 2])
def test_nothing_covered(reference, m):
    estimate = lebesgue_contributions(
        np.full((m, 2), 2.0), reference, method="monte_carlo"
    )
    np.testing.assert_array_equal(estimate, np.zeros(m))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_same_seed_same_result(seed):
    L = np.random.default_rng(1).random((10, 3))

    def estimate(random_state):
        return lebesgue_contributions(
            L, method="monte_carlo", n_samples=200, random_state=random_state
        )

    np.testing.assert_array_equal(estimate(seed), estimate(seed))
    np.testing.assert_array_equal(estimate(seed), estimate(np.random.default_rng(seed)))
    np.testing.assert_array_equal(
        estimate(np.random.RandomState(seed)), estimate(np.random.RandomState(seed))
    )


def test_generator_moves_on():
    L = np.random.default_rng(1).random((10, 3))
    generator = np.random.default_rng(0)
    first, second = (
        lebesgue_contributions(L, method="monte_carlo", random_state=generator)
        for _ in range(2)
    )
    assert (first != second).any()


def test_known_contributions_need_no_samples():
    generator = np.random.default_rng(0)
    L = [[0.5, 0.25], [0.25, 0.5]]
    order = fitness_order(
        L,
        ties=None,
        method="monte_carlo",
        contributions=[0.0, 1.0],
        random_state=generator,
    )
    np.testing.assert_array_equal(order, [1, 0])
    assert generator.random() == np.random.default_rng(0).random()

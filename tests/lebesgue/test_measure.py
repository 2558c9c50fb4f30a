import moocore
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.lebesgue import lebesgue_measure
from clml.lebesgue._measure import region_volume

NAN, INF = np.nan, np.inf

GRID = [-0.25, 0.0, 0.25, 0.5, 0.75, 1.0, INF, NAN]
REFERENCE_GRID = [-0.5, 0.25, 0.5, 0.75, 1.0]


@st.composite
def problems(draw, max_references=4):
    """Losses and references on a coarse grid, where volumes are exact."""
    o = draw(st.integers(1, 4))
    m = draw(st.integers(0, 6))
    r = draw(st.integers(1, max_references))
    L = draw(hnp.arrays(np.float64, (m, o), elements=st.sampled_from(GRID)))
    R = draw(hnp.arrays(np.float64, (r, o), elements=st.sampled_from(REFERENCE_GRID)))
    return L, R


@pytest.mark.parametrize(
    ("L", "reference", "expected"),
    [
        ([[0.5, 0.5]], 1.0, 0.25),
        ([[0.5, 0.25], [0.25, 0.5]], 1.0, 0.5),
        ([[0.5, 0.25], [0.5, 0.25], [0.75, 0.75]], 1.0, 0.375),
        ([[0.0, 0.0]], [2.0, 3.0], 6.0),
        ([[-1.0, 0.0]], 1.0, 2.0),
        ([[0.25], [0.5]], 1.0, 0.75),
        ([[0.25], [0.5]], [[0.5], [2.0]], 1.75),
        ([[0.5, 0.5, 0.5]], 1.0, 0.125),
        ([[0.5] * 5], 1.0, 2.0**-5),
        ([[1.0, 0.0]], 1.0, 0.0),
        ([[INF, 0.0], [0.5, 0.5]], 1.0, 0.25),
        ([[NAN, 0.0], [0.5, 0.5]], 1.0, 0.25),
        ([[-INF, 1.0]], 1.0, 0.0),
        ([[0.0, 0.0]], [[1.0, 0.5], [0.5, 1.0]], 0.75),
        ([[0.0, 0.0]], [[1.0, 0.5], [0.5, 0.5]], 0.5),
        ([[0.25, 0.0], [0.0, 0.75]], [[1.0, 0.5], [0.5, 1.0]], 0.5625),
        ([[0.0] * 3], [[1.0, 1.0, 0.5], [0.5, 0.5, 1.0]], 0.625),
        (np.empty((0, 3)), 1.0, 0.0),
        (np.empty((0, 1)), [[1.0], [2.0]], 0.0),
    ],
)
def test_worked_examples(L, reference, expected):
    measure = lebesgue_measure(L, reference)
    assert isinstance(measure, float)
    assert measure == pytest.approx(expected, abs=1e-15)


@given(problem=problems())
def test_equals_slow_twin(slow, problem):
    L, R = problem
    assert lebesgue_measure(L, R) == pytest.approx(slow.measure(L, R), abs=1e-12)


@given(problem=problems(max_references=1))
def test_set_of_one_equals_vector(problem):
    L, R = problem
    assert lebesgue_measure(L, R) == lebesgue_measure(L, R[0])


@pytest.mark.parametrize("o", [2, 3, 4, 5])
def test_number_equals_moocore(o):
    L = np.random.default_rng(o).random((40, o)) * 1.2
    assert lebesgue_measure(L) == pytest.approx(moocore.hypervolume(L, ref=1.0))


@pytest.mark.parametrize("o", [2, 3, 4])
def test_slices_equal_moocore(o):
    rng = np.random.default_rng(o)
    L = rng.random((15, o))
    L = L[np.argsort(L[:, 0])]
    volume = region_volume(L, np.empty((0, o)), np.ones((1, o)), o)
    assert volume == pytest.approx(moocore.hypervolume(L, ref=1.0), rel=1e-12)


@pytest.mark.parametrize("o", [2, 3, 4])
def test_set_equals_inclusion_and_exclusion_of_two_references(o):
    rng = np.random.default_rng(o)
    L = rng.random((20, o)) * 0.7
    a, b = R = 0.5 + 0.5 * rng.random((2, o))
    expected = (
        moocore.hypervolume(L, ref=a)
        + moocore.hypervolume(L, ref=b)
        - moocore.hypervolume(L, ref=np.minimum(a, b))
    )
    assert lebesgue_measure(L, R) == pytest.approx(expected, rel=1e-12)


@given(problem=problems(), seed=st.integers(0, 100))
def test_order_of_rows_does_not_matter(problem, seed):
    L, R = problem
    rng = np.random.default_rng(seed)
    assert lebesgue_measure(rng.permutation(L), rng.permutation(R)) == lebesgue_measure(
        L, R
    )


@given(problem=problems())
def test_more_members_or_references_never_cover_less(problem):
    L, R = problem
    measure = lebesgue_measure(L, R)
    assert lebesgue_measure(L[1:], R) <= measure + 1e-12
    assert lebesgue_measure(L, R[:1]) <= measure + 1e-12


def test_inputs_are_left_alone(immutable_call):
    L = np.random.default_rng(0).random((10, 3))
    for reference in (np.ones(3), np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 1.0]])):
        immutable_call(lebesgue_measure, L, reference)

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml.evolution import default_population_size
from clml.evolution._constants import Constants


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 4), (2, 6), (10, 10), (2_000, 26), (24_707, 34)]
)
def test_default_population_size(n, expected):
    assert default_population_size(n) == expected


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None])
def test_default_population_size_refuses(n):
    with pytest.raises(ValueError, match="positive integer"):
        default_population_size(n)


def test_by_hand_for_the_smallest_population():
    constants = Constants.default(n=4, population_size=4)
    first, second = math.log(2.5), math.log(2.5) - math.log(2)
    total = first + second
    np.testing.assert_allclose(constants.weights, [first / total, second / total])
    mu_eff = total**2 / (first**2 + second**2)
    assert constants.mu_eff == pytest.approx(mu_eff)
    assert constants.c_sigma == pytest.approx((mu_eff + 2) / (mu_eff + 9))
    assert constants.d_sigma == pytest.approx(1 + constants.c_sigma)
    assert constants.c_c == pytest.approx((4 + mu_eff / 4) / (8 + mu_eff / 2))
    assert constants.c_1 == pytest.approx(2 / (5.3**2 + mu_eff))


@given(st.integers(1, 300), st.integers(2, 2_000))
def test_rates_stay_in_range(n, population_size):
    constants = Constants.default(n, population_size)
    assert constants.weights.sum() == pytest.approx(1)
    assert (constants.weights > 0).all()
    assert (np.diff(constants.weights) < 0).all()
    assert 1 <= constants.mu_eff * (1 + 1e-12)
    assert constants.mu_eff <= population_size // 2 * (1 + 1e-12)
    for rate in (constants.c_sigma, constants.c_c, constants.c_1):
        assert 0 < rate < 1
    assert 0 <= constants.c_mu <= 1 - constants.c_1
    assert constants.d_sigma > 1


@pytest.mark.parametrize("n", [1, 2, 5, 50, 5_000])
def test_expected_norm(n):
    exact = math.sqrt(2) * math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2))
    assert Constants.default(n, 10).chi_n == pytest.approx(exact, rel=1e-3)

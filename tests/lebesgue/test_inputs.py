import numpy as np
import pytest

from clml.lebesgue import (
    dominance_depth,
    fitness_order,
    lebesgue_contributions,
    lebesgue_measure,
    nondominated,
)

PAIR = [[0.5, 0.5], [0.25, 0.75]]

OF_LOSSES = [
    nondominated,
    dominance_depth,
    lebesgue_measure,
    lebesgue_contributions,
    fitness_order,
]
OF_REFERENCE = [lebesgue_measure, lebesgue_contributions, fitness_order]
OF_METHOD = [lebesgue_contributions, fitness_order]


@pytest.mark.parametrize("function", OF_LOSSES)
@pytest.mark.parametrize(
    ("L", "error", "message"),
    [
        (0.5, ValueError, r"L must have shape \(m, o\).*Got shape \(\)"),
        ([0.5, 0.5], ValueError, r"L must have shape \(m, o\).*Got shape \(2,\)"),
        ([], ValueError, r"L must have shape \(m, o\).*Got shape \(0,\)"),
        (np.empty((3, 0)), ValueError, r"at least one column.*Got shape \(3, 0\)"),
        (np.zeros((2, 32)), ValueError, r"L must have at most 31 columns.*\(2, 32\)"),
        (np.zeros((1, 2, 3)), ValueError, r"Got shape \(1, 2, 3\)"),
        ([[0.5, 0.5], [0.5]], ValueError, r"L must be a rectangular array"),
        ([["a", "b"]], TypeError, r"L must hold real numbers.*list of dtype <U1"),
        ([[0.5, 1j]], TypeError, r"L must hold real numbers.*complex"),
        ([[0.5, None]], TypeError, r"L must hold real numbers.*object"),
        (None, TypeError, r"L must hold real numbers.*NoneType"),
    ],
)
def test_bad_losses(function, L, error, message):
    with pytest.raises(error, match=message):
        function(L)


@pytest.mark.parametrize("function", OF_REFERENCE)
@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        ([1.0, 1.0, 1.0], ValueError, r"reference must be.*length 2.*shape \(3,\)"),
        ([[1.0], [1.0]], ValueError, r"reference must be.*\(r, 2\).*\(2, 1\)"),
        (np.empty((0, 2)), ValueError, r"non-empty set.*Got shape \(0, 2\)"),
        (np.ones((1, 1, 2)), ValueError, r"Got shape \(1, 1, 2\)"),
        (np.nan, ValueError, r"reference must be finite. Got nan"),
        ([1.0, np.inf], ValueError, r"reference must be finite. Got \[1.0, inf\]"),
        ([[1.0, 1.0], [1.0, np.nan]], ValueError, r"reference must be finite"),
        ("one", TypeError, r"reference must hold real numbers.*str"),
        (None, TypeError, r"reference must hold real numbers.*NoneType"),
        ([[1.0, 1.0], [1.0]], ValueError, r"reference must be a rectangular"),
    ],
)
def test_bad_reference(function, reference, error, message):
    with pytest.raises(error, match=message):
        function(PAIR, reference=reference)


@pytest.mark.parametrize("method", ["exact", "monte_carlo"])
@pytest.mark.parametrize("function", OF_METHOD)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, r"n_samples must be at least 1. Got 0"),
        ({"n_samples": -3}, ValueError, r"n_samples must be at least 1. Got -3"),
        ({"n_samples": 2.5}, TypeError, r"n_samples must be an integer. Got 2.5"),
        ({"n_samples": True}, TypeError, r"n_samples must be an integer. Got True"),
        ({"random_state": "a"}, TypeError, r"random_state must be None.*Got 'a'"),
        ({"random_state": 1.5}, TypeError, r"random_state must be None.*Got 1.5"),
        ({"random_state": True}, TypeError, r"random_state must be None.*Got True"),
        ({"random_state": -1}, ValueError, r"random_state must not be.*Got -1"),
    ],
)
def test_bad_sampling(function, method, arguments, error, message):
    with pytest.raises(error, match=message):
        function(PAIR, method=method, **arguments)


@pytest.mark.parametrize("function", OF_METHOD)
@pytest.mark.parametrize("method", ["Exact", None, 1, np.ones(2)])
def test_bad_method(function, method):
    with pytest.raises(ValueError, match=r"method must be one of 'exact', 'monte_c"):
        function(PAIR, method=method)


@pytest.mark.parametrize("function", OF_REFERENCE)
def test_unbounded_volume_is_refused(function):
    with pytest.raises(ValueError, match=r"L must span a finite volume.*-inf"):
        function([[-np.inf, 0.5], [0.5, 0.25]])
    with pytest.raises(ValueError, match="L must span a finite volume"):
        function([[-1e200, 0.5], [0.5, -1e200]])


@pytest.mark.parametrize("function", OF_LOSSES)
def test_as_many_losses_as_allowed(function):
    L = np.vstack((np.zeros(31), np.full(31, 0.5)))
    if function in (nondominated, dominance_depth, fitness_order):
        np.testing.assert_array_equal(function(L), function(L[:, :2]))
    else:
        np.testing.assert_allclose(np.max(function(L)), 1.0, atol=1e-9)


@pytest.mark.parametrize("function", OF_LOSSES)
def test_integers_and_narrow_floats_are_numbers(function):
    L = np.array([[0, 1], [1, 0], [-1, 0]])
    expected = function(L.astype(np.float64))
    np.testing.assert_array_equal(function(L), expected)
    np.testing.assert_array_equal(function(L.astype(np.float32)), expected)
    np.testing.assert_array_equal(function(L.tolist()), expected)

import numpy as np
import pytest

from clml import ParetoFront

NAMES = ("hamming", "lrap", "micro_f1")


def make_front(losses, names=NAMES):
    losses = np.asarray(losses, dtype=float)
    theta = np.zeros((len(losses), 4), dtype=np.float32)
    return ParetoFront(losses=losses, loss_names=names, theta=theta)


# Extremes in each loss, and member 3 near all three best values at once.
FRONT = make_front([[0.1, 0.9, 0.8], [0.9, 0.1, 0.8], [0.8, 0.9, 0.1], [0.2, 0.2, 0.2]])


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("hamming", 0),
        ("lrap", 1),
        ("micro_f1", 2),
        ("knee", 3),
        ("geometric_mean", 3),
        (2, 2),
        (-1, 3),
    ],
)
def test_select_by_rule(which, expected):
    assert FRONT.select(which) == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"hamming": 1}, 0),
        ({"hamming": 1, "lrap": 1, "micro_f1": 1}, 3),
        ({"micro_f1": 100, "lrap": 1}, 2),
    ],
)
def test_select_by_weights(weights, expected):
    assert FRONT.select(weights=weights) == expected


def test_weights_are_relative():
    small = FRONT.select(weights={"lrap": 1e-6, "hamming": 2e-6})
    assert small == FRONT.select(weights={"lrap": 1, "hamming": 2})


def test_ties_go_to_the_smaller_geometric_mean_then_index():
    front = make_front([[0.1, 0.9, 0.9], [0.1, 0.8, 0.95], [0.1, 0.95, 0.8]])
    # Products: 0.081, 0.076, 0.076: the first of the two equal ones.
    assert front.select("hamming") == 1


def test_a_loss_of_zero_is_the_best_geometric_mean():
    front = make_front([[0.2, 0.2, 0.2], [0.0, 0.9, 0.9]])
    assert front.select("geometric_mean") == 1


def test_a_single_member_is_always_chosen():
    front = make_front([[0.3, 0.3, 0.3]])
    for which in (*NAMES, "knee", "geometric_mean", 0):
        assert front.select(which) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either a rule or weights"),
        ({"which": "knee", "weights": {"lrap": 1}}, "either a rule or weights"),
        ({"which": "haming"}, "Did you mean 'hamming'"),
        ({"which": 4}, "4 members, got index 4"),
        ({"which": None, "weights": {}}, "not all zero"),
        ({"weights": {"lrap": -1.0}}, "not negative"),
        ({"weights": {"lrap": float("nan")}}, "finite"),
        ({"weights": {"lrp": 1.0}}, "Did you mean 'lrap'"),
    ],
)
def test_bad_choices_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FRONT.select(**arguments)


def test_temperatures_are_one_if_not_given():
    np.testing.assert_array_equal(FRONT.temperature, np.ones(4))


@pytest.mark.parametrize(
    ("shape", "n_names", "n_thetas"), [((2, 3), 2, 2), ((2, 3), 3, 1), ((0, 3), 3, 0)]
)
def test_shapes_must_fit(shape, n_names, n_thetas):
    with pytest.raises(ValueError, match="A front needs losses"):
        ParetoFront(np.ones(shape), NAMES[:n_names], np.ones((n_thetas, 4)))


def test_weights_must_be_a_mapping():
    with pytest.raises(TypeError, match="weights must map loss names to numbers"):
        FRONT.select(weights=[1, 1, 1])

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from clml import ParetoFront

NAMES = ("hamming", "lrap", "micro_f1")


def make_ruled():
    losses = np.array([[0.1, 0.9], [0.2, 0.3], [0.3, 0.25]])
    rules = (None, "top_2", "best_prefix")
    return ParetoFront(losses, ("a", "b"), np.zeros((3, 1)), default=0, rules=rules)


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
        ({"which": 4}, "4 models, got index 4"),
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


# What is known of how far off losses are


def make_doubtful(default=0, error=0.1):
    losses = np.array([[0.3, 0.3], [0.2, 0.5], [0.5, 0.2]])
    difference = np.full((3, 2), error)
    difference[default] = 0
    return ParetoFront(
        losses,
        ("hamming", "lrap"),
        np.zeros((3, 4)),
        standard_error=np.full((3, 2), 0.05),
        difference_error=difference,
        default=default,
    )


@pytest.mark.parametrize(
    ("loss", "least", "index"),
    [("hamming", 0.5, 1), ("lrap", 1.5, 2)],  # of decisions, and of ranks
)
@pytest.mark.parametrize("weighted", [False, True])
def test_in_doubt_the_default_is_selected(loss, least, index, weighted):
    rule = {"weights": {loss: 2}} if weighted else {"which": loss}
    # Ahead by 0.1.
    in_doubt = make_doubtful(error=0.1 / least + 0.01)
    with pytest.warns(UserWarning, match=rf"clearly better for .*{loss}"):
        assert in_doubt.select(**rule) == 0
    assert in_doubt.choice(**rule) == (0, True)
    clear = make_doubtful(error=0.1 / least - 0.01)
    assert clear.select(**rule) == index
    assert clear.choice(**rule) == (index, False)


def test_the_best_of_those_that_are_clearly_better_is_selected():
    """The best of all may be in doubt where the next is not."""
    front = ParetoFront(
        np.array([[0.3], [0.2], [0.1]]),
        ("hamming",),
        np.zeros((3, 4)),
        difference_error=np.array([[0.0], [0.1], [0.9]]),
        default=0,
    )
    assert front.choice("hamming") == (1, False)


def test_a_loss_that_nobody_registered_needs_a_clear_lead():
    front = ParetoFront(
        np.array([[0.3], [0.2]]),
        ("my_own",),
        np.zeros((2, 4)),
        difference_error=np.array([[0.0], [0.08]]),
        default=0,
    )
    assert front.choice("my_own") == (0, True)


def test_a_default_that_is_best_is_not_in_doubt():
    assert make_doubtful(default=1).choice("hamming") == (1, False)


def test_rules_and_indices_are_not_in_doubt():
    front = make_doubtful()
    assert front.choice("knee") == (0, False)
    assert front.choice(2) == (2, False)


def test_without_a_default_the_best_is_selected():
    assert FRONT.default is None
    assert np.isnan(FRONT.standard_error).all()
    assert FRONT.choice("hamming") == (0, False)


@pytest.mark.parametrize(
    ("rule", "at_most", "expected"),
    [
        ({"which": "hamming"}, {"lrap": 0.5}, 3),
        ({"which": "hamming"}, {"lrap": 0.9}, 0),
        ({"which": "lrap"}, {"hamming": 0.85, "micro_f1": 0.5}, 3),
        ({"which": "micro_f1"}, {"hamming": 0.8}, 2),
        ({"which": "knee"}, {"lrap": 0.15}, 1),
        ({"weights": {"hamming": 1}}, {"hamming": 0.2, "lrap": 0.2}, 3),
    ],
)
def test_limits(rule, at_most, expected):
    assert FRONT.select(**rule, at_most=at_most) == expected


def test_a_default_beyond_the_limits_does_not_stand_in():
    front = make_doubtful(error=1.0)
    assert front.select("hamming", at_most={"hamming": 0.25}) == 1


def test_impossible_limits_name_the_nearest_model():
    message = (
        r"keeps to at_most={'hamming': 0.15, 'lrap': 0.15}. The nearest is "
        r"3: hamming 0.2, lrap 0.2, micro_f1 0.2"
    )
    with pytest.raises(ValueError, match=message):
        FRONT.select("micro_f1", at_most={"hamming": 0.15, "lrap": 0.15})


@pytest.mark.parametrize(
    ("which", "at_most", "error", "message"),
    [
        ("lrap", {"haming": 0.2}, ValueError, "Did you mean 'hamming'"),
        ("lrap", {"hamming": "0.2"}, ValueError, r"at_most\['hamming'\] must be a"),
        ("lrap", {"hamming": float("nan")}, ValueError, "must be a number, got nan"),
        ("lrap", 0.2, TypeError, "at_most must map loss names to limits"),
        (1, {"hamming": 0.2}, ValueError, "at_most goes with a rule"),
    ],
)
def test_bad_limits_are_refused(which, at_most, error, message):
    with pytest.raises(error, match=message):
        FRONT.select(which, at_most=at_most)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"standard_error": np.ones((4, 2))}, "standard_error must have the shape"),
        ({"difference_error": np.ones(4)}, "difference_error must have the shape"),
        ({"default": 4}, "default must be the index of one of 4 models, got 4"),
        ({"default": -1}, "default must be the index"),
    ],
)
def test_errors_and_default_must_fit(changed, message):
    with pytest.raises(ValueError, match=message):
        ParetoFront(FRONT.losses, NAMES, FRONT.theta, **changed)


# How it is shown


def test_text():
    assert repr(make_doubtful(default=1)).splitlines() == [
        "ParetoFront of 3 models (losses ± standard errors; * predicts by default)",
        "           hamming           lrap",
        "0    0.300 ± 0.050  0.300 ± 0.050",
        "1 *  0.200 ± 0.050  0.500 ± 0.050",
        "2    0.500 ± 0.050  0.200 ± 0.050",
    ]


def test_a_long_front_is_cut_short():
    losses = np.column_stack([np.arange(30), 30 - np.arange(30)]) / 30
    lines = repr(make_front(losses, NAMES[:2])).splitlines()
    assert len(lines) == 1 + 1 + 20 + 1
    assert lines[-1] == "... and 10 more"


@pytest.mark.parametrize("n_losses", [1, 2, 3, 4])
def test_html(n_losses):
    losses = np.random.default_rng(0).random((5, n_losses))
    names = ("<script>", "b", "c", "d")[:n_losses]
    front = ParetoFront(losses, names, np.zeros((5, 2)), default=2)
    page = front._repr_html_()
    root = ElementTree.fromstring(page)
    plots = root.findall("svg")
    assert len(plots) == min(n_losses * (n_losses - 1) // 2, 3)
    for plot in plots:
        circles = plot.findall("circle")
        assert [c.get("fill") for c in circles].index("currentColor") == 2
        assert all(0 <= float(c.get("cx")) <= 230 for c in circles)
        assert all(0 <= float(c.get("cy")) <= 220 for c in circles)
    assert len(root.findall("table/tbody/tr")) == 5
    assert "<script>" not in page


def test_frame():
    frame = make_doubtful().to_frame()
    assert list(frame) == [
        "hamming",
        "lrap",
        "hamming_error",
        "lrap_error",
        "is_default",
    ]
    np.testing.assert_array_equal(frame["lrap"], [0.3, 0.5, 0.2])
    assert frame["is_default"].tolist() == [True, False, False]
    assert frame.index.name == "model"
    assert list(FRONT.to_frame()) == [*NAMES, "is_default"]


def test_frames_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        FRONT.to_frame()


def test_losses_that_are_not_asked_for_may_be_undefined():
    losses = np.array([[0.3, np.nan], [0.1, np.nan]])
    front = ParetoFront(losses, ("hamming", "mine"), np.zeros((2, 1)))
    assert front.select("hamming") == 1
    assert front.select(weights={"hamming": 2.0}) == 1


@pytest.mark.parametrize(("hamming", "expected"), [(0.3, 0), (0.25, 1)])
def test_limits_alone_keep_the_default_if_they_can(hamming, expected):
    assert make_doubtful().select(at_most={"hamming": hamming}) == expected
    assert make_doubtful().choice(at_most={"hamming": hamming}) == (expected, False)


def test_limits_alone_without_a_default_take_the_smallest_product():
    assert FRONT.select(at_most={"hamming": 1}) == FRONT.select("geometric_mean")


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"which": "hamming", "at_most": {"knee": 0.1}}, "at_most"),
        ({"weights": {"knee": 1}}, "weights"),
    ],
)
def test_limits_and_weights_are_of_losses(arguments, argument):
    message = rf"{argument} must name optimised losses, some of \['hamming'.*'knee'\.$"
    with pytest.raises(ValueError, match=message):
        FRONT.select(**arguments)


def test_rules_are_shown():
    front = make_ruled()
    assert str(front).splitlines()[1:] == [
        "         a      b         rule",
        "0 *  0.100  0.900",
        "1    0.200  0.300        top_2",
        "2    0.300  0.250  best_prefix",
    ]
    page = front._repr_html_()
    assert "<th>rule</th>" in page
    assert "<td>0.250</td><td>best_prefix</td>" in page
    assert "b 0.3000, top_2</title>" in page
    pytest.importorskip("pandas")
    frame = front.to_frame()
    assert list(frame) == ["a", "b", "rule", "is_default"]
    assert frame["rule"].tolist() == [None, "top_2", "best_prefix"]


def test_a_front_without_rules_does_not_speak_of_them():
    assert FRONT.rules == (None,) * 4
    assert "rule" not in str(FRONT) + FRONT._repr_html_()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ((None,), r"one for each of 2 models, got \(None,\)"),
        ([None, "top_1"], "must be a tuple"),
        ((None, "top_0"), "'top_k' with a number"),
        ((None, 1), "'at_least_one'"),
        ("ab", "must be a tuple"),
    ],
)
def test_rules_that_are_none_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        ParetoFront(np.ones((2, 1)), ("a",), np.zeros((2, 1)), rules=rules)

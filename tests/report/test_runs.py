"""Runs and fronts as values for a page."""

import json

import numpy as np
import pytest

from clml import ParetoFront
from clml.report._run_tables import (
    comparison_table,
    label_scores,
    labels_table,
    members_table,
)
from clml.report._runs import MOST_EPOCHS, front_of, run_of_artifact, trajectory_of

NAMES = ["hamming", "lrap"]
LOSSES = [[0.1, 0.9], [0.2, 0.3], [0.8, 0.25]]
DEFAULT = {"name": "default", "index": 1}


def test_front_by_hand():
    front = front_of(LOSSES, NAMES, default=DEFAULT)
    chosen = {preset["name"]: preset["index"] for preset in front["presets"]}
    assert chosen == {
        "best Hamming loss": 0,
        "best 1 \u2212 LRAP": 2,
        "knee": 1,
        "geometric mean": 1,
    }
    # Products 0.09, 0.06 and 0.20.
    assert front["tie_rank"] == [1, 0, 2]
    assert front["start"] == 1


def test_rules_stand_beside_losses():
    rules = [None, "top_2", "best_prefix"]
    front = front_of(LOSSES, NAMES, default=DEFAULT, row_rules=rules)
    assert front["row_rules"] == rules
    table = members_table("t", front)
    assert table["columns"][-1] == {"name": "rule", "numeric": False}
    assert [row[-1]["text"] for row in table["rows"]] == ["\u2013", *rules[1:]]
    plain = front_of(LOSSES, NAMES, default=DEFAULT, row_rules=[None] * 3)
    assert plain["row_rules"] is None
    with pytest.raises(ValueError, match="rules must be"):
        front_of(LOSSES, NAMES, default=DEFAULT, row_rules=["<script>"] * 3)


@pytest.mark.parametrize("seed", range(3))
def test_ties_go_as_the_front_has_them(seed):
    """The order that the page is given decides ties as ParetoFront does."""
    rng = np.random.default_rng(seed)
    losses = rng.permutation(np.array([[a, 8 - a, 1 + a % 2] for a in range(1, 8)]) / 8)
    names = ("a", "b", "c")
    theta = np.zeros((len(losses), 1), dtype=np.float32)
    rank = front_of(losses, names, default={"name": "-", "index": None})["tie_rank"]
    for weights in ([1, 1, 0], [1, 1, 1], [0, 0, 1]):
        expected = ParetoFront(losses, names, theta).select(
            weights=dict(zip(names, weights, strict=True))
        )
        sums = losses @ np.array(weights, dtype=float)
        assert min(range(len(losses)), key=lambda i: (sums[i], rank[i])) == expected


def test_errors_of_a_front():
    losses = [[0.3, 0.3], [0.2, 0.5], [0.5, 0.2]]
    error = [[0.01, 0.02], [0.03, np.nan], [0.05, 0.06]]
    front = front_of(
        losses,
        ("hamming", "lrap"),
        default={"name": "d", "index": 0},
        standard_error=error,
        difference_error=[[0, 0], [0.24, 0], [0, 0.04]],
        compared_with=0,
    )
    assert front["standard_error"][1] == [0.03, None]
    assert front["compared_with"] == 0
    assert np.allclose(front["clear_lead"], [[0, 0], [0.12, 0], [0, 0.06]])
    # Hamming loss is 0.1 less, which is not clear; LRAP as much, which is.
    assert [preset["index"] for preset in front["presets"][:2]] == [0, 2]
    rows = members_table("t", front)["rows"]
    assert [cell["spread"] for cell in rows[1]] == ["", "±0.0300", ""]
    unknown = front_of(
        losses, ("hamming", "lrap"), default={"name": "d", "index": None}
    )
    assert unknown["standard_error"] is unknown["clear_lead"] is None


def test_front_keeps_its_losses_to_the_last_bit(made_up_front):
    losses = made_up_front()["front/validation"]
    front = front_of(losses, ["a", "b", "c"], default=DEFAULT)
    assert np.array_equal(json.loads(json.dumps(front["validation"])), losses)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"losses": [[0.1, np.nan]] * 2}, "finite array"),
        ({"losses": [0.1, 0.2]}, "finite array"),
        ({"losses": np.zeros((0, 2))}, "finite array"),
        ({"losses": np.full((501, 2), 0.5)}, "at most 500 members"),
        ({"test": [[0.1, 0.2]]}, "test must have shape"),
        ({"default": {"name": "d", "index": 3}}, "default index of 3"),
        ({"default": {"name": "d", "test": [0.1]}}, "default test must have shape"),
        ({"default": {"name": "d", "hits": [1, 2]}}, "default hits must have shape"),
        ({"hits": [[1], [1], [-1]]}, "hits must hold counts"),
        ({"predicted": [[1, 2]] * 3}, "predicted must have shape"),
        ({"labels": ["a", "b"]}, "labels must name the 1 labels"),
    ],
)
def test_bad_fronts_are_refused(changes, message):
    counts = {"relevant": [2], "hits": [[1]] * 3, "predicted": [[1]] * 3}
    arguments = {"losses": LOSSES, "default": DEFAULT, **counts, **changes}
    with pytest.raises(ValueError, match=message):
        front_of(arguments.pop("losses"), NAMES, **arguments)


def test_trajectory_is_thinned_and_keeps_both_ends():
    values = np.linspace(1, 0, 5000)[:, None] * [1.0, 0.5]
    found = trajectory_of({"incumbent_train": values}, NAMES)
    assert len(found["epochs"]) == MOST_EPOCHS
    assert (found["epochs"][0], found["epochs"][-1]) == (1, 5000)
    assert found["colour"]["name"] == "epoch"


@pytest.mark.parametrize(
    "history",
    [
        {},
        {"incumbent_train": np.empty((0, 2))},
        {"incumbent_train": np.zeros((4, 3))},
        {"sigma": np.zeros(4)},
    ],
)
def test_no_trajectory_without_losses(history):
    assert trajectory_of(history, NAMES) is None


def test_what_is_not_finite_becomes_null():
    values = np.array([[0.5, np.nan], [0.25, 0.125]])
    found = trajectory_of({"incumbent_train": values}, NAMES)
    assert found["series"][0]["values"] == [[0.5, None], [0.25, 0.125]]


def test_artifact_whose_model_is_no_member_has_the_losses_of_its_record(made_up_front):
    artifact = made_up_front() | {"front/chosen": np.array(-1)}
    artifact["default/hits"] = np.arange(6)
    losses = {"hamming": 0.1, "lrap": 0.2, "micro_f1": 0.3}
    run, trouble = run_of_artifact("r", artifact, {"losses": {"test": losses}})
    assert not trouble
    assert run["front"]["default"]["test"] == [0.1, 0.2, 0.3]
    assert run["front"]["default"]["validation"] is None
    assert run["front"]["default"]["hits"] == [0, 1, 2, 3, 4, 5]
    assert run["front"]["default"]["predicted"] is None


def test_damaged_artifact_is_left_out_with_a_word(made_up_front, made_up_history):
    artifact = made_up_history() | made_up_front()
    artifact["front/hits"] = artifact["front/hits"][:3]
    run, (sentence,) = run_of_artifact("emotions, CLML", artifact, {})
    assert run["front"] is None and run["trajectory"] is not None
    assert sentence.startswith("emotions, CLML: hits must have shape")


def test_tables_of_a_run_by_hand():
    front = front_of(
        LOSSES,
        NAMES,
        default={"name": "d", "index": None, "test": [0.2, 0.2], "hits": [1]}
        | {"predicted": [2]},
        test=LOSSES,
        labels=["sad"],
        relevant=[4],
        hits=[[1], [3], [4]],
        predicted=[[1], [4], [8]],
    )
    texts = [[c["text"] for c in row] for row in comparison_table("c", front)["rows"]]
    assert texts == [
        ["Hamming loss, validation", "0.2000", "\u2013", "\u2013"],
        ["1 \u2212 LRAP, validation", "0.3000", "\u2013", "\u2013"],
        ["Hamming loss, test", "0.2000", "0.2000", "+0.0000"],
        ["1 \u2212 LRAP, test", "0.3000", "0.2000", "+0.1000"],
    ]
    # The default has F1 2/6, member 1 has 6/8.
    ((*_, f1, change),) = labels_table("l", front)["rows"]
    assert (f1["value"], change["text"]) == (0.75, "+0.417")


@pytest.mark.parametrize(
    ("counts", "scores"),
    [((3, 4, 6), (0.75, 0.5, 0.6)), ((0, 2, 0), (0.0, np.nan, 0.0))],
)
def test_label_scores(counts, scores):
    assert np.array_equal(label_scores(*counts), scores, equal_nan=True)

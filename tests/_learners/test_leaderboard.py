import re
from dataclasses import replace

import numpy as np
import pytest

from clml._learners import leaderboard as _leaderboard
from clml._learners import learner_worth as _learner_worth
from clml._learners.leaderboard import Leaderboard
from clml._learners.learner_worth import judge_learners
from clml._maps.platt import fit_platt
from clml._maps.score_engine import ScoreEngine
from clml._maps.score_map import MapSpace
from clml._maps.shares import fit_shares
from clml.losses import RowTargets, loss_values

LOSSES = ("hamming", "lrap", "micro_f1")


@pytest.fixture(scope="module")
def rows():
    """Scores of three learners: one knows, one knows less, one guesses."""
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(500, 4))
    noise = generator.normal(size=(500, 3, 4))
    knows = np.array([1.0, 0.5, 0.0])[:, None]
    scores = 2 * truth[:, None] * knows + noise
    Y = (truth + 0.3 * generator.normal(size=truth.shape) > 0.2).astype(int)
    return scores, Y


def judged(rows, transform="weights"):
    scores, Y = rows
    targets = RowTargets.from_indicator(Y)
    space = MapSpace.fit(scores, targets, transform)
    engine = ScoreEngine(space, scores, targets, LOSSES)
    return judge_learners(["a", "b", "c"], LOSSES, engine, [1.0, 2.0, 3.0])


def test_losses_are_those_of_each_learner_alone(rows):
    scores, Y = rows
    board = judged(rows)
    assert board.names == ("a", "b", "c")  # the best first
    for m in range(3):
        np.testing.assert_allclose(board.losses[m], loss_values(Y, scores[:, m]))
    assert board.seconds.tolist() == [1.0, 2.0, 3.0]
    turned = judged((scores[:, ::-1], Y))
    assert turned.names == ("c", "b", "a")
    np.testing.assert_array_equal(turned.losses, board.losses)
    assert turned.seconds.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("transform", ["weights", "average"])
def test_costs_are_of_shares_chosen_anew(transform, rows):
    scores, Y = rows
    targets = RowTargets.from_indicator(Y)
    board = judged(rows, transform)
    fits = [fit_platt(scores[:, m], targets) for m in range(3)]
    logits = np.stack([a * scores[:, m] + b for m, (a, b) in enumerate(fits)], axis=1)

    def losses_of(learners):
        own = logits[:, learners]
        shares = np.full(len(learners), 1 / len(learners))
        if transform == "weights":
            shares = fit_shares(own, targets)
        return loss_values(Y, np.einsum("nmk,m->nk", own, shares))

    together = losses_of([0, 1, 2])
    np.testing.assert_allclose(board.together, together)
    for m in range(3):
        others = [i for i in range(3) if i != m]
        np.testing.assert_allclose(
            board.cost_without[m], losses_of(others) - together, atol=1e-12
        )
    assert (board.cost_without[0] > 0.02).all()
    assert (board.cost_without[2] < 0.01).all()


def test_shares_are_chosen_on_some_of_many_rows(rows, monkeypatch):
    exact = judged(rows)
    monkeypatch.setattr(_learner_worth, "_MOST_SCORES", 600)
    some = judged(rows)
    np.testing.assert_array_equal(some.losses, exact.losses)
    np.testing.assert_allclose(some.cost_without, exact.cost_without, atol=0.02)


def test_one_learner_has_no_cost(rows):
    scores, Y = rows
    targets = RowTargets.from_indicator(Y)
    space = MapSpace.fit(scores[:, :1], targets, "weights")
    engine = ScoreEngine(space, scores[:, :1], targets, LOSSES)
    board = judge_learners(["a"], LOSSES, engine, [1.0])
    assert np.isnan(board.cost_without).all()
    assert "Leaderboard of 1 learner (" in repr(board)
    assert "nan" not in repr(board)


def test_it_can_be_read(rows):
    board = judged(rows)
    lines = repr(board).splitlines()
    assert lines[1].split()[:4] == ["hamming", "lrap", "micro_f1", "hamming"]
    assert re.match(r"a +0\.\d{3} .* \+0\.\d{4} .* 1\.0$", lines[2])
    assert lines[-1].startswith("together")
    page = replace(board, names=("<a>", "b", "c"))._repr_html_()
    assert "&lt;a&gt;" in page and "<a>" not in page
    assert page.count("<tr>") == 5


def test_frame(rows):
    pytest.importorskip("pandas")
    board = judged(rows)
    frame = board.to_frame()
    assert frame.index.tolist() == ["a", "b", "c"]
    assert list(frame) == [*LOSSES, *(f"{n}_without" for n in LOSSES), "seconds"]
    np.testing.assert_array_equal(frame["lrap_without"], board.cost_without[:, 1])


def test_frame_needs_pandas(rows, monkeypatch):
    board = judged(rows)

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(_leaderboard, "import_module", absent)
    with pytest.raises(ImportError, match="pip install pandas"):
        board.to_frame()


@pytest.mark.parametrize("field", ["losses", "together", "cost_without", "seconds"])
def test_shapes_are_checked(field, rows):
    with pytest.raises(ValueError, match=rf"^{field} must be an array of shape"):
        replace(judged(rows), **{field: np.zeros(7)})
    assert isinstance(judged(rows), Leaderboard)

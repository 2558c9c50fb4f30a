"""Several members: who leaves out what, who judges, what an interrupt leaves."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from clml._training import left_out as _left_out
from clml._training.ascent import AscentState, after_epoch
from clml._training.holdout import HeldOutScorer
from clml._training.init import LastLayer, n_before_last
from clml._training.left_out import left_out
from clml._training.members import (
    AscendingMembers,
    EvolvedMembers,
    MemberProgress,
    MemberRun,
    _log_mean,
    _mean_of_defined,
)
from clml._training.search import EpochRows, Fitness
from clml._training.steps import AscentPlan
from clml._training.training_rows import NetworkRows
from clml.engine import NumpyEngine
from clml.evolution import RankGradient, RankOneCMA
from clml.losses import LossSet, RowTargets, get_losses, loss_values
from clml.network import Layout, Scaling, forward

LOSSES = ("hamming", "lrap")
LAYOUT = Layout(n_features=4, n_labels=3, embedding_dim=4)


def stepped(members):
    """Train for an epoch; return what is recorded of it."""
    members.step(None)
    return members.record()


# Who leaves out which rows


@given(
    n=st.integers(1, 60),
    k=st.integers(1, 4),
    n_members=st.integers(1, 17),
    seed=st.integers(0, 5),
)
def test_every_row_is_left_out_equally_often(n, k, n_members, seed):
    Y = np.random.default_rng(seed).integers(0, 2, (n, k), dtype=np.uint8)
    out = left_out(Y, n_members, seed)
    assert out.shape == (n_members, n)
    expected = 2 if n_members >= 4 else 1
    if n_members == 1 or n < max(3, n_members):
        expected = 0
    assert (out.sum(axis=0) == expected).all()
    # Everybody is left with something to learn from.
    assert (~out).any(axis=1).all()
    assert_array_equal(out, left_out(Y, n_members, seed))


def test_neighbouring_members_share_a_part():
    Y = np.random.default_rng(0).integers(0, 2, (80, 3), dtype=np.uint8)
    out = left_out(Y, 8, 0)
    assert_array_equal(out.sum(axis=1), np.full(8, 20))
    shared = (out[:, None] & out[None]).sum(axis=2)
    for i in range(8):
        assert shared[i, (i + 1) % 8] == 10
        assert shared[i, (i + 2) % 8] == 0
    assert (out != left_out(Y, 8, 1)).any()


def test_rare_labels_are_dealt_to_all():
    Y = np.zeros((90, 2), dtype=np.uint8)
    Y[:9, 0] = 1
    Y[9:45, 1] = 1
    out = left_out(Y, 3, 0)
    assert_array_equal([Y[rows, 0].sum() for rows in out], [3, 3, 3])
    assert_array_equal([Y[rows, 1].sum() for rows in out], [12, 12, 12])


def test_of_many_rows_each_is_left_out_once(monkeypatch):
    monkeypatch.setattr(_left_out, "_MANY_ROWS", 50)
    Y = np.random.default_rng(0).integers(0, 2, (50, 2), dtype=np.uint8)
    assert (left_out(Y, 8, 0).sum(axis=0) == 1).all()
    assert (left_out(Y[:49], 8, 0).sum(axis=0) == 2).all()


# Outputs


@given(seed=st.integers(0, 50), members=st.integers(1, 3))
def test_logits_are_scaled_and_shifted(seed, members):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(members, LAYOUT.size)).astype(np.float32)
    X = rng.normal(size=(5, 4))
    scale, bias = rng.uniform(0.1, 3, 3), rng.normal(size=3)
    before = theta.copy()
    changed = LAYOUT.mapped(theta, scale, bias)
    expected = scale * forward(theta.astype(float), X, LAYOUT) + bias
    assert_allclose(forward(changed.astype(float), X, LAYOUT), expected, 1e-5, 1e-5)
    assert_array_equal(theta, before)
    one = LAYOUT.mapped(theta[0], 2.0)  # exact: a power of two
    assert_array_equal(
        forward(one.astype(float), X, LAYOUT),
        2 * forward(theta[0].astype(float), X, LAYOUT),
    )


def constant_network(logits):
    """A network that says the same of every row."""
    theta = np.zeros(LAYOUT.size, dtype=np.float32)
    LAYOUT.matrices(theta)[-1][-1] = logits
    return theta


def jury_of(held_out, validation=None):
    rows = NetworkRows.prepared(np.zeros((4, 4)), Scaling.identity(4), LAYOUT)
    held_out = np.asarray(held_out, dtype=bool)
    if validation is not None:
        validation = [validation] * len(held_out)
    return HeldOutScorer([rows] * len(held_out), held_out, validation)


# Root mean squares 2 and 3: scaled they say (1, −1, 1) and (−1, −1, 1).
NETWORKS = np.stack([constant_network([2, -2, 2]), constant_network([-3, -3, 3])])


def test_a_jury_by_hand():
    together = jury_of([[1, 1, 0, 0], [0, 1, 1, 0]]).score(NETWORKS, None)
    one, two, both = [1, -1, 1], [-1, -1, 1], [0, -1, 1]
    assert_array_equal(together.networks, NETWORKS)
    assert_allclose(together.sizes, [2, 3])
    # Nobody was trained on row 1; nobody left row 3 out, so it does not judge.
    assert_allclose(together.seen, [two, [0, 0, 0], one, both])
    assert_allclose(together.unseen, [one, both, two])


def test_rows_of_validation_are_judged_by_all():
    beyond = NetworkRows.prepared(np.ones((2, 4)), Scaling.identity(4), LAYOUT)
    jury = jury_of([[0] * 4, [0] * 4], beyond)
    together = jury.score(NETWORKS, None)
    assert jury.judged is None
    assert jury.impartial
    assert_allclose(together.unseen, [[0, -1, 1]] * 2)
    assert_allclose(together.seen, [[0, -1, 1]] * 4)


def test_a_jury_that_left_nothing_out_judges_what_it_saw():
    jury = jury_of([[0] * 4, [0] * 4])
    assert jury.judged.all()
    assert not jury.impartial
    together = jury.score(NETWORKS, None)
    assert_array_equal(together.unseen, together.seen)


def test_a_network_that_says_nothing_stays():
    networks = np.stack([constant_network([0, 0, 0])] * 2)
    together = jury_of([[1, 0, 1, 0], [0, 1, 0, 1]]).score(networks, None)
    assert_array_equal(together.networks, networks)
    assert not together.unseen.any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_threads_hear_the_same(form):
    rng = np.random.default_rng(0)
    rows = NetworkRows.prepared(
        form(rng.normal(size=(9, 4))), Scaling.identity(4), LAYOUT
    )
    jury = HeldOutScorer([rows] * 3, rng.random((3, 9)) < 0.4, None)
    networks = rng.normal(size=(3, LAYOUT.size)).astype(np.float32)
    alone = jury.score(networks, None)
    with ThreadPoolExecutor(2) as executor:
        threaded = jury.score(networks, executor)
    for name in ("sizes", "seen", "unseen"):
        assert_array_equal(getattr(alone, name), getattr(threaded, name))


# Training


@pytest.fixture
def task():
    """Rows, targets, and which rows each of three members leaves out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    Y = (X[:, :3] + rng.normal(scale=0.5, size=(30, 3)) > 0).astype(np.uint8)
    return X, RowTargets.from_indicator(Y), left_out(Y, 3, 0)


def own_targets(targets, held_out):
    return [
        replace(targets, weight=targets.weight * ~out, weighted=True)
        for out in held_out
    ]


def ascending(task, n_epochs=4):
    X, targets, held_out = task
    rows = NetworkRows.prepared(X, Scaling.identity(4), LAYOUT)
    seeds = np.random.SeedSequence(0).spawn(3)
    return AscendingMembers(
        [AscentState.start(LAYOUT, seed) for seed in seeds],
        [rows] * 3,
        own_targets(targets, held_out),
        LossSet(get_losses(LOSSES), 3),
        AscentPlan(0.05, n_epochs, 8, 0.5),
    )


def evolved(
    task, kind=RankOneCMA, losses=LOSSES, epoch_rows=None, last=False, weight=None
):
    X, targets, held_out = task
    if weight is not None:
        targets = replace(targets, weight=weight, weighted=True)
    first = n_before_last(LAYOUT) if last else 0
    before = np.linspace(-1, 1, first, dtype=np.float32)
    return EvolvedMembers(
        [kind(np.zeros(LAYOUT.size - first), 0.5, 6, seed=i) for i in range(3)],
        [LastLayer(before) if last else np.asarray] * 3,
        NumpyEngine(LAYOUT, X, targets, losses),
        own_targets(targets, held_out),
        Fitness("depth", "exact", 1, (0,), False),
        epoch_rows,
    )


def test_ascending_members_are_climbers_side_by_side(task):
    members = ascending(task)
    X, targets, held_out = task
    begun = members.climbers
    first, second = stepped(members), stepped(members)
    assert members.epoch == 2
    assert (first["sigma"], second["sigma"]) == (
        0.05,
        pytest.approx(0.025 * (1 + 0.5**0.5)),
    )
    assert first["members_train"].shape == (3, 2)
    rows = NetworkRows.prepared(X, Scaling.identity(4), LAYOUT)
    for i, (climber, own) in enumerate(
        zip(begun, own_targets(targets, held_out), strict=True)
    ):
        for _ in range(2):
            loss_set, plan = LossSet(get_losses(LOSSES), 3), members._one_epoch.plan
            (climber,) = after_epoch([climber], rows, [own], loss_set, plan, 0)
        assert_array_equal(members.networks()[i], climber.average)
        assert_array_equal(second["members_train"][i], climber.losses)


def test_a_run_that_goes_on_begins_its_plan_anew(task):
    members = ascending(task)
    for _ in range(4):
        members.step(None)
    before = ascending(task)._one_epoch
    again = AscendingMembers(
        members.state(), before.rows, before.targets, before.loss_set, before.plan, 4
    )
    assert stepped(again)["sigma"] == 0.05
    assert again.epoch == 5


@pytest.mark.parametrize("weighted", [False, True])
def test_evolved_members_see_their_own_rows_alone(task, weighted):
    X, targets, held_out = task
    weight = np.linspace(1, 2, 30) if weighted else None
    members = evolved(task, weight=weight)
    asked = [strategy.ask().copy() for strategy in members.strategies]
    record = stepped(members)
    for i, population in enumerate(asked):
        used = ~held_out[i]
        losses = loss_values(
            targets.dense[used],
            forward(population.astype(np.float32).astype(float), X[used], LAYOUT),
            LOSSES,
            sample_weight=None if weight is None else weight[used],
        )
        assert_allclose(record["members_train"][i], losses.min(axis=0), atol=1e-12)


def test_losses_without_weights_serve_evolved_members(task):
    def miss_rate(Y, scores):
        return 1 - ((scores > 0) & (Y == 1)).sum() / Y.sum()

    record = stepped(evolved(task, losses=("hamming", miss_rate)))
    assert np.isfinite(record["members_train"]).all()


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_epochs_of_few_rows(task, share):
    """One row a draw: a member that left it out takes its own."""
    members = evolved(task, epoch_rows=EpochRows(30, share, (1,)))
    for _ in range(5):
        assert np.isfinite(stepped(members)["members_train"]).all()
    other = evolved(task)
    for _ in range(5):
        other.step(None)
    assert (np.stack(other.networks()) != np.stack(members.networks())).any()


def test_undefined_losses_do_not_spoil_the_record(task):
    def undefined(Y, scores):
        return np.nan

    record = stepped(evolved(task, losses=("hamming", undefined)))
    assert np.isfinite(record["members_train"][:, 0]).all()
    assert np.isnan(record["members_train"][:, 1]).all()


@pytest.mark.parametrize("kind", [RankOneCMA, RankGradient])
@pytest.mark.parametrize("last", [False, True])
def test_networks_are_the_centres(task, kind, last):
    members = evolved(task, kind, last=last)
    before = np.stack(members.networks())
    assert before.shape == (3, LAYOUT.size)
    assert before.dtype == np.float32
    members.step(None)
    members.step(None)
    centres = np.array(
        [s.average if kind is RankGradient else s.mean for s in members.strategies],
        dtype=np.float32,
    )
    first = n_before_last(LAYOUT) if last else 0
    assert_array_equal(np.stack(members.networks())[:, first:], centres)
    assert_array_equal(np.stack(members.networks())[:, :first], before[:, :first])
    assert (np.stack(members.networks())[:, first:] != before[:, first:]).any()


@pytest.mark.parametrize("at", range(3))
def test_an_interrupt_between_members_repeats_nothing(task, at):
    whole, members = evolved(task), evolved(task)
    for _ in range(3):
        whole.step(None)
    members.step(None)
    order, calls = members._one_epoch.fitness, []

    class Interrupting:
        def order(self, *arguments):
            calls.append(None)
            if len(calls) == at + 1:
                raise KeyboardInterrupt
            return order.order(*arguments)

    members._one_epoch = replace(members._one_epoch, fitness=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        members.step(None)
    assert members.epoch == 1
    assert [s.epoch for s in members.strategies] == [2] * at + [1] * (3 - at)
    assert stepped(members)["members_train"].shape == (3 - at, 2)
    assert members.epoch == 2
    members.step(None)
    assert_array_equal(members.networks(), whole.networks())


# A run


def run_of(task, members, progress=None):
    X, targets, held_out = task
    rows = NetworkRows.prepared(X, Scaling.identity(4), LAYOUT)
    jury = HeldOutScorer([rows] * len(held_out), held_out, None)
    return MemberRun(members, jury, targets, targets, LOSSES, None, progress)


@pytest.mark.parametrize("make", [ascending, evolved])
def test_an_epoch_of_a_run(task, make):
    members = make(task)
    run = run_of(task, members)
    records = [run.epoch() for _ in range(3)]
    progress = run.progress
    assert progress.epoch == 3
    assert progress.history == tuple(records)
    together = run.jury.score(members.networks(), None)
    truth = task[1].dense
    assert_array_equal(
        records[-1]["incumbent_train"], loss_values(truth, together.seen, LOSSES)
    )
    judged = loss_values(truth, together.unseen, LOSSES)
    assert_array_equal(records[-1]["incumbent_validation"], judged)
    assert_array_equal(progress.archived_losses[-1], judged[None])
    measures = [np.prod(1 - r["incumbent_validation"]) for r in records]
    assert_allclose(
        [r["archive_measure"] for r in records], np.maximum.accumulate(measures)
    )
    # What the jury liked best, its earlier opinions counting too.
    values = [np.log(r["incumbent_validation"]).mean() for r in records]
    smooth = [values[0]]
    for value in values[1:]:
        smooth.append(0.8 * smooth[-1] + 0.2 * value)
    assert progress.value == pytest.approx(smooth[-1])
    assert progress.best_value == pytest.approx(min(smooth))
    found = loss_values(truth, progress.best.unseen, LOSSES)
    assert_array_equal(found, records[np.argmin(smooth)]["incumbent_validation"])


def test_judging_before_any_epoch(task):
    run = run_of(task, ascending(task))
    run.judge_now()
    assert run.progress.epoch == 0
    assert run.progress.best.unseen.shape == (30, 3)
    assert np.isfinite(run.progress.best_value)


def test_a_continued_run_has_the_whole_history(task):
    members = ascending(task)
    first = run_of(task, members)
    first.epoch()
    first.epoch()
    left = first.progress.to_continue()
    assert left.best is None
    second = run_of(task, members, left)
    second.epoch()
    assert second.progress.epoch == len(second.progress.history) == 3
    assert second.progress.best is not None
    assert second.progress.measure >= first.progress.measure


def test_an_undefined_judgement_is_forgotten(task):
    run = run_of(task, ascending(task))
    judged = iter([[np.nan, 0.5], [0.5, 0.5], [0.25, 0.25]])
    judge = run._judged

    def spoilt(said):
        train, of_judges, _ = judge(said)
        of_judges[:2] = next(judged)
        return train, of_judges, np.array([_log_mean(of_judges[:2], run.judge)])

    run._judged = spoilt
    run.epoch()
    assert run.progress.value == np.inf
    assert run.progress.best is not None
    assert run.progress.measure == 0
    run.epoch()
    assert run.progress.value == pytest.approx(np.log(0.5))
    run.epoch()
    assert run.progress.value == pytest.approx(np.log(0.5) - 0.2 * np.log(2))


def test_a_progress_begins_with_nothing():
    progress = MemberProgress()
    assert (progress.epoch, progress.measure, progress.best) == (0, 0.0, None)
    assert progress.archived_losses == ()


def test_mean_logarithm_by_hand():
    targets = RowTargets.from_indicator(np.zeros((5, 2)))
    # No error counts as half of one in ten decisions.
    value = _log_mean(np.array([0.0, 0.5]), targets)
    assert value == pytest.approx(np.log(0.05 * 0.5) / 2)
    assert _log_mean(np.array([np.nan, 0.5]), targets) == np.inf


def test_mean_of_what_is_defined():
    losses = np.array([[1.0, np.nan, np.nan], [2.0, 4.0, np.nan]])
    assert_array_equal(_mean_of_defined(losses), [1.5, 4.0, np.nan])

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clml._maps import score_engine as _score_engine
from clml._maps.row_rules import shifted_rows
from clml._maps.score_engine import ScoreEngine
from clml._maps.score_map import MapSpace, apply_map
from clml.losses import LossSet, RowTargets, loss_values

LOSSES = ("hamming", "lrap", "micro_f1", "macro_f1")


def count_predictions(Y, scores):
    return float((scores > 0).mean())


def make_engine(n=30, m=2, k=3, losses=LOSSES, seed=0, weighted=False, **keywords):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(n, m, k)).round(1)  # with ties
    Y = generator.integers(0, 2, (n, k))
    weight = generator.integers(0, 3, n).astype(float) if weighted else None
    if weighted:
        weight[0] = 1.0
    space = MapSpace("weights" if m > 1 else "mixing", k, np.ones(m), np.zeros(m))
    targets = RowTargets.from_indicator(Y, weight)
    return ScoreEngine(space, scores, targets, losses, **keywords), scores, Y, weight


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    m=st.integers(1, 3),
    k=st.integers(1, 4),
    weighted=st.booleans(),
)
def test_losses_are_those_of_the_mapped_scores(seed, n, m, k, weighted):
    losses = (*LOSSES, count_predictions)
    engine, scores, Y, weight = make_engine(n, m, k, LOSSES, seed, weighted)
    if not weighted:
        engine = engine.with_losses(losses)
    size = len(engine.space.identity())
    maps = np.random.default_rng(seed).normal(size=(10, size))
    mixing = engine.space.mixing
    logits = np.stack([apply_map(theta, scores, mixing=mixing) for theta in maps])
    names = LOSSES if weighted else losses
    np.testing.assert_allclose(
        engine.losses(maps), loss_values(Y, logits, names, sample_weight=weight)
    )
    np.testing.assert_array_equal(engine.scores(maps), logits)


def test_candidates_may_be_deviations():
    engine, *_ = make_engine()
    deviations = np.random.default_rng(1).normal(size=(5, engine.space.n_deviations))
    np.testing.assert_array_equal(
        engine.of_deviations(0.2).losses(deviations),
        engine.losses(engine.space.maps(deviations, shift=0.2)),
    )


def test_some_rows():
    engine, scores, Y, _ = make_engine()
    rows = np.array([7, 3, 12])
    identity = engine.space.identity()
    np.testing.assert_allclose(
        engine.take(rows).losses(identity[None])[0],
        loss_values(Y[rows], apply_map(identity, scores[rows]), LOSSES),
    )
    assert engine.take(rows).n_rows == 3
    assert engine.n_rows == 30


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(_score_engine, "_SMALL_WORK", 0)
    losses = ("hamming", "lrap", count_predictions)
    with ThreadPoolExecutor(3) as executor:
        threaded, *_ = make_engine(n=5_000, losses=losses, executor=executor)
        alone, *_ = make_engine(n=5_000, losses=losses)
        maps = np.random.default_rng(0).normal(size=(20, 9))
        np.testing.assert_array_equal(threaded.losses(maps), alone.losses(maps))


def test_memory_of_all_logits_is_bounded(monkeypatch):
    engine, *_ = make_engine(losses=(count_predictions,))
    maps = np.random.default_rng(0).normal(size=(20, 9))
    before = engine.losses(maps)
    monkeypatch.setattr(_score_engine, "_LOGIT_BYTES", 1)
    sizes = []
    inner = engine._logits
    monkeypatch.setattr(
        engine, "_logits", lambda w, b: (sizes.append(len(b)), inner(w, b))[1]
    )
    np.testing.assert_array_equal(engine.losses(maps), before)
    assert sizes == [16, 4]


@pytest.mark.parametrize("most", [1, 5, 16, 20])
def test_fewer_candidates_at_once_where_memory_runs_out(monkeypatch, most):
    engine, *_ = make_engine(losses=(*LOSSES, count_predictions))
    maps = np.random.default_rng(0).normal(size=(40, 9))
    expected = engine.losses(maps)
    inner = LossSet.evaluate_matrix_losses

    def limited(self, scores, targets):
        if len(scores) > most:
            raise MemoryError("no room")
        return inner(self, scores, targets)

    monkeypatch.setattr(LossSet, "evaluate_matrix_losses", limited)
    with pytest.warns(UserWarning, match="candidates' scores instead of 40"):
        np.testing.assert_array_equal(engine.losses(maps), expected)
    np.testing.assert_array_equal(engine.losses(maps), expected)  # not said again


def test_a_helper_without_memory_loses_nobodys_work(monkeypatch):
    monkeypatch.setattr(_score_engine, "_SMALL_WORK", 0)
    maps = np.random.default_rng(0).normal(size=(40, 9))
    expected = make_engine(n=5_000)[0].losses(maps)
    inner, failed = ScoreEngine._sum_rows_in_lanes, []

    def crowded(self, weights, bias, task):
        if task.shard == 2 and task not in failed:
            failed.append(task)
            raise MemoryError("no room")
        return inner(self, weights, bias, task)

    monkeypatch.setattr(ScoreEngine, "_sum_rows_in_lanes", crowded)
    with ThreadPoolExecutor(2) as executor:
        engine, *_ = make_engine(n=5_000, executor=executor)
        with pytest.warns(UserWarning, match="once: 32 candidates instead of 40"):
            np.testing.assert_array_equal(engine.losses(maps), expected)
    assert len(failed) == 3


@given(seed=st.integers(0, 10_000), transform=st.sampled_from(["weights", "mixing"]))
def test_a_sick_candidate_is_alone(seed, transform):
    m = 1 if transform == "mixing" else 2
    engine, *_ = make_engine(m=m, seed=seed)
    generator = np.random.default_rng(seed)
    deviations = generator.normal(size=(20, engine.space.n_deviations))
    engine = engine.of_deviations(0.1)
    spoiled, sick = deviations.copy(), generator.random(20) < 0.4
    spoiled[sick, 0] = generator.choice([np.nan, np.inf, -np.inf, 1e308])
    well = ~sick
    np.testing.assert_array_equal(
        engine.losses(spoiled)[well], engine.losses(deviations)[well]
    )


def test_nan_is_an_undefined_loss():
    engine, *_ = make_engine()
    maps = np.zeros((2, 9))
    maps[1, -1] = np.nan
    losses = engine.losses(maps)
    assert np.isfinite(losses[0]).all()
    assert np.isnan(losses[1]).all()


def test_scores_of_another_shape_are_refused():
    engine, scores, *_ = make_engine()
    with pytest.raises(ValueError, match=r"shape \(30, 2, 3\) .* got \(30, 1, 3\)"):
        ScoreEngine(engine.space, scores[:, :1], engine.targets, LOSSES)


@pytest.mark.parametrize("m", [1, 2])
def test_each_candidate_has_its_rule(m):
    losses = (*LOSSES, "subset_zero_one")
    engine, scores, Y, weight = make_engine(m=m, losses=losses, weighted=True)
    generator = np.random.default_rng(0)
    maps = engine.space.maps(generator.normal(size=(5, engine.space.n_deviations)))
    rules = ("top_1", None, "best_prefix", "top_1", "at_least_one")
    mixing = engine.space.mixing
    logits = [apply_map(one, scores, mixing=mixing) for one in maps]
    decided = [shifted_rows(*one) for one in zip(rules, logits, strict=True)]
    expected = loss_values(Y, np.stack(decided), losses, weight)
    np.testing.assert_allclose(engine.losses(maps, rules), expected)
    np.testing.assert_array_equal(engine.losses(maps, (None,) * 5), engine.losses(maps))
    ruled = engine.ruled_by("top_1")
    np.testing.assert_array_equal(ruled.scores(maps)[0], decided[0])
    np.testing.assert_array_equal(
        ruled.losses(maps[:1]), engine.losses(maps, rules)[:1]
    )


def test_functions_are_told_what_rules_decide():
    engine, *_ = make_engine(losses=(count_predictions, "hamming"))
    maps = np.tile(engine.space.identity(), (3, 1))
    found = engine.losses(maps, ("top_2", None, "top_1"))[:, 0]
    plain = engine.losses(maps)[1, 0]
    np.testing.assert_allclose(found, [2 / 3, plain, 1 / 3])

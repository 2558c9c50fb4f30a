"""The engine of a device against the CPU's, plain and fused.

Without a GPU the fused kernels run in Triton's interpreter (see ``conftest``), slowly.
"""

import os

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from clml.engine import NumpyEngine, TorchEngine, _torch
from clml.engine._row_statistics import ordered_sums
from clml.engine.blocks import SHARD_ROWS
from clml.losses import Loss, RowTargets, Statistic
from clml.network import Layout, Scaling

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DECISIONS = ("hamming", "lrap", "micro_f1")
ORDERS = ("ranking_loss", "coverage", "one_error")
ROWS = ("example_f1", "jaccard", "subset_zero_one")
LABELS = ("macro_f1",)
HOST = ("precision_at_3", "hamming")
FAMILIES = [DECISIONS, ORDERS, ROWS, LABELS, HOST]
# Exact families, whose sums do not depend on a logarithm of the device.
PATHS = ["plain", "fused"]


def worst_score(Y, scores, sample_weight=None):
    return float(np.tanh(scores.max()) / 2 + 0.5)


class OwnHits(Loss):
    name = "own_hits"
    statistics = (
        Statistic("own_hits", lambda Y, scores, t: ((scores > t) & Y).sum(axis=-1)),
    )

    def close(self, sums, weight, n_labels):
        return 1 - sums["own_hits"] / (weight * n_labels)


def make(n=70, d=5, k=4, c=3, layers=1, population=3, seed=0):
    rng = np.random.default_rng(seed)
    layout = Layout(d, k, c, layers)
    X = rng.normal(size=(n, d))
    Y = (rng.random((n, k)) < 0.4).astype(int)
    Y[:2] = [[0], [1]]
    thetas = rng.normal(size=(population, layout.size)).astype(np.float32)
    return layout, X, Y, thetas


def engine_on(path, layout, X, targets, losses=DECISIONS, **options):
    fused = path == "fused"
    return TorchEngine(
        layout, X, targets, losses, device=DEVICE, fused=fused, **options
    )


def statistics_of_logits(engine, logits):
    """What the host counts in logits (population, rows, K), shard by shard."""
    totals = engine.loss_set.new_totals(len(logits))
    for start in range(0, logits.shape[1], SHARD_ROWS):
        shard = engine.loss_set.new_totals(len(logits))
        scores = np.ascontiguousarray(logits[:, start : start + SHARD_ROWS])
        engine.loss_set.accumulate(shard, scores, engine.targets, start)
        totals.add(shard)
    return engine.loss_set.statistics(totals, 1.0).sums


def assert_same_sums(engine, thetas):
    found = engine.evaluate(thetas).sums
    expected = statistics_of_logits(engine, engine.scores(thetas))
    assert found.keys() == expected.keys()
    for name in expected:
        assert_array_equal(found[name], expected[name], err_msg=name)


def test_the_interpreter_runs_where_there_is_no_gpu():
    assert DEVICE == "cuda" or os.environ["TRITON_INTERPRET"] == "1"


@pytest.mark.parametrize("losses", FAMILIES, ids=lambda names: names[0])
@pytest.mark.parametrize("path", PATHS)
def test_the_same_logits_give_the_same_sums(path, losses):
    layout, X, Y, thetas = make()
    weight = np.random.default_rng(1).random(len(X))
    weight[5:9] = 0
    targets = RowTargets.from_indicator(Y, weight)
    engine = engine_on(path, layout, X, targets, losses)
    assert_same_sums(engine, thetas)
    expected = NumpyEngine(layout, X, targets, losses).losses(thetas)
    assert_allclose(engine.losses(thetas), expected, atol=1e-12)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n", [1, SHARD_ROWS, SHARD_ROWS + 1])
def test_shards_end_anywhere(path, n):
    rng = np.random.default_rng(0)
    layout = Layout(2, 3, 2)
    X, Y = rng.normal(size=(n, 2)), rng.integers(0, 2, (n, 3))
    thetas = rng.normal(size=(2, layout.size)).astype(np.float32)
    targets = RowTargets.from_indicator(Y, rng.random(n))
    assert_same_sums(engine_on(path, layout, X, targets), thetas)


@pytest.mark.parametrize("path", PATHS)
def test_logits_are_the_cpus(path):
    layout, X, Y, thetas = make(layers=2, c=6)
    targets = RowTargets.from_indicator(Y)
    scaling = Scaling.fit(X)
    cpu = NumpyEngine(layout, X, targets, scaling=scaling)
    engine = engine_on(path, layout, X, targets, scaling=scaling)
    assert_allclose(engine.scores(thetas), cpu.scores(thetas), atol=2e-5)


@pytest.mark.parametrize("path", PATHS)
def test_smooth_losses_agree_to_rounding(path):
    layout, X, Y, thetas = make()
    targets = RowTargets.from_indicator(Y, np.arange(len(Y)) % 3)
    losses = ("binary_cross_entropy", "row_log_loss")
    cpu = NumpyEngine(layout, X, targets, losses)
    engine = engine_on(path, layout, X, targets, losses)
    assert_allclose(engine.losses(thetas), cpu.losses(thetas), rtol=1e-5)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_sparse_rows(path, share):
    layout, _, Y, thetas = make(d=40)
    rng = np.random.default_rng(2)
    X = sp.random(len(Y), 40, share, format="csr", rng=rng)
    X = sp.vstack([sp.csr_matrix((1, 40)), X[1:]]).tocsr()  # a row without entries
    targets = RowTargets.from_indicator(Y)
    scaling = Scaling.fit(X)
    cpu = NumpyEngine(layout, X, targets, scaling=scaling)
    engine = engine_on(path, layout, X, targets, scaling=scaling)
    assert (engine._rows.sparse is not None) == (share < 0.1)
    assert_allclose(engine.scores(thetas), cpu.scores(thetas), atol=2e-5)
    assert_same_sums(engine, thetas)


@pytest.mark.parametrize("path", PATHS)
def test_sparse_rows_far_from_zero_keep_their_digits(path):
    layout, _, Y, thetas = make(d=30, n=50)
    dense = np.random.default_rng(0).normal(size=(50, 30)) + 1e6
    dense[:, 1:] *= np.random.default_rng(1).random((50, 29)) < 0.05
    X = sp.csr_matrix(dense)
    scaling = Scaling(np.r_[1e6, np.zeros(29)], np.r_[1.0, np.full(29, 1e6)])
    targets = RowTargets.from_indicator(Y)
    cpu = NumpyEngine(layout, dense, targets, scaling=scaling)
    engine = engine_on(path, layout, X, targets, scaling=scaling)
    assert engine._rows.sparse.values.dtype == torch.float64
    assert_allclose(engine.scores(thetas), cpu.scores(thetas), atol=1e-4)


@pytest.mark.parametrize("path", PATHS)
def test_corner_cases(path):
    """Equal scores, NaN, constant rows, one label."""
    for k in (1, 4):
        layout, X, Y, thetas = make(n=20, k=k)
        X[3] = 0
        thetas[0] = 0  # every logit is 0: all labels are tied
        thetas[1, 0] = np.nan
        targets = RowTargets.from_indicator(Y)
        engine = engine_on(path, layout, X, targets)
        losses = engine.losses(thetas)
        assert np.isnan(losses[1]).all()
        expected = NumpyEngine(layout, X, targets).losses(thetas)
        assert_allclose(losses, expected, atol=1e-12)
        assert_same_sums(engine, thetas[[0, 2]])


@pytest.mark.parametrize("path", PATHS)
def test_more_labels_than_a_block_holds(path):
    layout, X, Y, thetas = make(n=9, k=70, population=2)
    targets = RowTargets.from_indicator(Y)
    assert_same_sums(engine_on(path, layout, X, targets), thetas)


def test_thousands_of_labels():
    layout, X, Y, thetas = make(n=5, k=3000, population=2)
    thetas[:, -3000:] += 3  # nearly every label is decided for
    targets = RowTargets.from_indicator(Y)
    engine = engine_on("plain", layout, X, targets)
    assert_same_sums(engine, thetas)
    expected = NumpyEngine(layout, X, targets).losses(thetas)
    assert_allclose(engine.losses(thetas), expected, atol=1e-3)


def test_no_candidates_and_arrays_that_cannot_be_written():
    layout, X, Y, thetas = make()
    engine = engine_on("plain", layout, X, RowTargets.from_indicator(Y))
    assert engine.losses(thetas[:0]).shape == (0, 3)
    assert engine.scores(thetas[:0]).shape == (0, len(Y), 4)
    thetas.flags.writeable = False
    assert engine.losses(thetas).shape == (3, 3)


def test_functions_and_own_statistics():
    layout, X, Y, thetas = make()
    targets = RowTargets.from_indicator(Y)
    losses = (worst_score, OwnHits, "hamming")
    cpu = NumpyEngine(layout, X, targets, losses)
    engine = engine_on("plain", layout, X, targets, losses)
    assert_allclose(engine.losses(thetas), cpu.losses(thetas), atol=1e-6)


def test_double_precision():
    layout, X, Y, thetas = make()
    targets = RowTargets.from_indicator(Y)
    cpu = NumpyEngine(layout, X, targets, dtype=np.float64)
    engine = engine_on("plain", layout, X, targets, dtype=np.float64)
    scores = engine.scores(thetas)
    assert scores.dtype == np.float64
    assert_allclose(scores, cpu.scores(thetas), atol=1e-12)
    with pytest.raises(ValueError, match="do not serve"):
        engine_on("fused", layout, X, targets, dtype=np.float64)


def test_parts_of_the_rows():
    layout, X, Y, thetas = make()
    targets = RowTargets.from_indicator(Y)
    rows = np.array([4, 1, 30, 65])
    for form in (np.asarray, lambda x: sp.csr_matrix(x * (np.abs(x) > 2))):
        engine = engine_on("plain", layout, form(X), targets)
        alone = engine_on("plain", layout, form(X)[rows], targets.take(rows))
        taken = engine.take(rows)
        assert taken.n_rows == 4
        assert_allclose(taken.losses(thetas), alone.losses(thetas), atol=1e-12)
    other = engine.with_losses(ROWS)
    assert other.losses(thetas).shape == (3, 3)
    lighter = engine.with_targets(RowTargets.from_indicator(1 - Y))
    assert not np.array_equal(lighter.losses(thetas), engine.losses(thetas))


def test_candidates_in_several_blocks(monkeypatch):
    layout, X, Y, thetas = make(population=7)
    engine = engine_on("plain", layout, X, RowTargets.from_indicator(Y))
    whole = engine.losses(thetas)
    monkeypatch.setattr(_torch, "_BLOCK_CANDIDATES", 3)
    assert_allclose(engine.losses(thetas), whole, atol=1e-12)
    assert engine.scores(thetas).shape == (7, len(Y), 4)


def test_rows_in_several_chunks(monkeypatch):
    layout, X, Y, thetas = make(n=2 * SHARD_ROWS + 7)
    engine = engine_on("plain", layout, X, RowTargets.from_indicator(Y))
    whole = engine.evaluate(thetas).sums
    monkeypatch.setattr(_torch, "_BLOCK_BYTES", 1)
    assert len(list(engine._chunks(3, logits=True))) == 3
    for name, sums in engine.evaluate(thetas).sums.items():
        assert_array_equal(sums, whole[name])


def test_tensors_and_arrays_are_the_same_candidates():
    layout, X, Y, thetas = make()
    engine = engine_on("plain", layout, X, RowTargets.from_indicator(Y))
    tensor = torch.as_tensor(thetas, dtype=torch.float64, device=DEVICE)
    assert_array_equal(engine.losses(tensor), engine.losses(thetas))


def test_shapes_are_checked():
    layout, X, Y, _ = make()
    with pytest.raises(ValueError, match="X must have shape"):
        TorchEngine(layout, X[:, 1:], RowTargets.from_indicator(Y), device="cpu")
    with pytest.raises(ValueError, match="targets must have 4 labels"):
        TorchEngine(layout, X, RowTargets.from_indicator(Y[:, 1:]), device="cpu")


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), st.integers(1, 50))
def test_sums_are_taken_in_order(values, together):
    expected = []
    for start in range(0, len(values), together):
        total = 0.0
        for value in values[start : start + together]:
            total += value
        expected.append(total)
    given_values = torch.tensor(values, dtype=torch.float64)
    found = ordered_sums(given_values, together).numpy()
    assert_array_equal(found, expected)


@pytest.mark.parametrize("together", [4, 100])
def test_fused_sums_are_taken_in_order(together):
    from clml.engine import _triton

    rng = np.random.default_rng(0)
    values = torch.as_tensor(rng.normal(size=(3, 37)), device=DEVICE)
    found = _triton.ordered_sums(values, together).cpu().numpy()
    assert_array_equal(found, ordered_sums(values.cpu(), together).numpy())

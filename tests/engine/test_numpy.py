import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info

from clml.engine import NumpyEngine, single_threaded_blas
from clml.engine import blocks as _blocks
from clml.losses import (
    Loss,
    LossSet,
    RowTargets,
    Statistic,
    get_loss,
    list_losses,
    loss_values,
)
from clml.network import Layout, Scaling, forward

ADDITIVE = tuple(name for name in list_losses() if get_loss(name).additive)
# A rounding error moves these a little and not by a whole decision.
SMOOTH = ("binary_cross_entropy", "row_log_loss")
FORMS = [np.asarray, sp.csr_matrix]


def worst_score(Y, scores, sample_weight=None):
    return float(np.tanh(scores.max()) / 2 + 0.5)


class OwnMacroF1(Loss):
    name = "own_macro_f1"
    statistics = (
        Statistic("own_hits", lambda Y, scores, t: (scores > t) & Y, per_label=True),
        Statistic(
            "own_size",
            lambda Y, scores, t: (scores > t).astype(float) + Y,
            per_label=True,
        ),
    )

    def close(self, sums, weight, n_labels):
        return 1 - (2 * sums["own_hits"] / sums["own_size"]).mean(axis=1)


EVERY_KIND = (*list_losses(), OwnMacroF1, worst_score)


def make(n=60, d=7, k=5, c=3, layers=1, population=13, seed=0):
    rng = np.random.default_rng(seed)
    layout = Layout(d, k, c, layers)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6) + 0.1
    Y = rng.integers(0, 2, (n, k))
    Y[:2] = [[0], [1]]
    return layout, X, Y, rng.normal(size=(population, layout.size)), rng.random(n)


def same_statistics(found, expected):
    """Not a bit differs."""
    assert found.weight == expected.weight
    assert found.sums.keys() == expected.sums.keys()
    for name, total in expected.sums.items():
        assert_array_equal(found.sums[name], total, err_msg=name)
    assert found.matrix_losses.keys() == expected.matrix_losses.keys()
    for name, value in expected.matrix_losses.items():
        assert_array_equal(found.matrix_losses[name], value, err_msg=name)


@pytest.fixture(autouse=True)
def one_blas_thread():
    with single_threaded_blas():
        yield


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layers", [1, 2])
def test_equals_the_losses_of_the_forward_pass(form, scaled, weighted, layers):
    layout, X, Y, thetas, weight = make(layers=layers)
    weight = weight if weighted else None
    scaling = Scaling.fit(X) if scaled else None
    X = form(X)
    targets = RowTargets.from_indicator(Y, weight)
    logits = forward(thetas, X, layout, scaling)
    expected = loss_values(Y, logits, losses=EVERY_KIND, sample_weight=weight)
    assert len(np.unique(expected[:, 0])) > 3

    double = NumpyEngine(
        layout, X, targets, EVERY_KIND, scaling=scaling, dtype=np.float64
    )
    assert_allclose(double.scores(thetas), logits, 0, 1e-12)
    assert_allclose(double.losses(thetas), expected, 1e-10, 1e-12)

    single = NumpyEngine(layout, X, targets, EVERY_KIND, scaling=scaling)
    scores = single.scores(thetas)
    assert scores.dtype == np.float32
    assert_allclose(scores, logits, 0, 5e-5)
    assert_array_equal(
        single.losses(thetas),
        loss_values(Y, scores, losses=EVERY_KIND, sample_weight=weight),
    )
    assert_allclose(
        single.with_losses(SMOOTH).losses(thetas),
        loss_values(Y, logits, losses=SMOOTH, sample_weight=weight),
        rtol=1e-4,
    )


@pytest.mark.parametrize("population", [1, 5, 8, 19, 24])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_threads_and_memory(monkeypatch, form, population, dtype):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 16)
    layout, X, Y, thetas, weight = make(n=75, population=population)
    X = form(X)
    targets = RowTargets.from_indicator(Y, weight)
    scaling = Scaling.fit(X)

    def engine(executor, memory_mb):
        return NumpyEngine(
            layout,
            X,
            targets,
            EVERY_KIND,
            scaling=scaling,
            executor=executor,
            memory_mb=memory_mb,
            dtype=dtype,
        )

    plain = engine(None, 512)
    statistics, scores = plain.evaluate(thetas), plain.scores(thetas)
    assert_allclose(
        plain.losses(thetas),
        loss_values(Y, scores, losses=EVERY_KIND, sample_weight=weight),
        rtol=1e-10,
        atol=1e-12,
    )
    same_statistics(plain.evaluate(thetas), statistics)
    for memory_mb in (1e-3, 1, 512):
        same_statistics(engine(None, memory_mb).evaluate(thetas), statistics)
        for n_threads in (1, 2, 5):
            with ThreadPoolExecutor(n_threads) as executor:
                found = engine(executor, memory_mb)
                same_statistics(found.evaluate(thetas), statistics)
                assert_array_equal(found.scores(thetas), scores)


@pytest.mark.parametrize("form", FORMS)
def test_same_bits_for_more_rows_than_a_shard(form):
    layout, X, Y, thetas, weight = make(n=_blocks.SHARD_ROWS + 700, population=11)
    X = form(X)
    targets = RowTargets.from_indicator(Y, weight)
    plain = NumpyEngine(layout, X, targets, ADDITIVE)
    expected = plain.evaluate(thetas)
    with ThreadPoolExecutor(3) as executor:
        threaded = NumpyEngine(
            layout, X, targets, ADDITIVE, executor=executor, memory_mb=1e-3
        )
        same_statistics(threaded.evaluate(thetas), expected)
    scores = plain.scores(thetas)
    assert scores.shape == (11, plain.n_rows, 5)
    assert_allclose(
        plain.losses(thetas),
        loss_values(Y, scores, losses=ADDITIVE, sample_weight=weight),
        rtol=1e-11,
    )


@pytest.mark.parametrize("form", FORMS)
def test_place_in_the_population_does_not_matter(form):
    layout, X, Y, thetas, _ = make(population=20)
    targets = RowTargets.from_indicator(Y)
    engine = NumpyEngine(layout, form(X), targets, ADDITIVE, dtype=np.float64)
    losses = engine.losses(thetas)
    order = np.random.default_rng(1).permutation(20)
    assert_allclose(engine.losses(thetas[order]), losses[order], 1e-10, 1e-12)
    alone = np.vstack([engine.losses(theta[None]) for theta in thetas])
    assert_allclose(alone, losses, 1e-10, 1e-12)


def test_statistics_of_disjoint_rows_add_up():
    layout, X, Y, thetas, weight = make()
    engines = [
        NumpyEngine(
            layout,
            X[part],
            RowTargets.from_indicator(Y[part], weight[part]),
            ADDITIVE,
            dtype=np.float64,
        )
        for part in (slice(0, 23), slice(23, 60), slice(0, 60))
    ]
    first, second, whole = (engine.evaluate(thetas) for engine in engines)
    assert_allclose(
        engines[2].loss_set.close(first + second),
        engines[2].loss_set.close(whole),
        1e-11,
        1e-12,
    )


def test_whole_matrix_losses_see_all_rows_once(monkeypatch):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 16)
    layout, X, Y, thetas, weight = make(n=40)
    seen = []

    def loss(labels, scores, sample_weight=None):
        assert_array_equal(labels, Y)
        assert_array_equal(sample_weight, weight)
        seen.append(scores.copy())
        return 0.125 * len(seen)

    targets = RowTargets.from_indicator(Y, weight)
    engine = NumpyEngine(layout, X, targets, (loss, "hamming"), memory_mb=1e-3)
    losses = engine.losses(thetas)
    assert_array_equal(losses[:, 0], 0.125 * np.arange(1, 14))
    assert_array_equal(seen, engine.scores(thetas))


def test_with_losses_shares_the_rows():
    layout, X, Y, thetas, _ = make()
    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y), ("hamming", "lrap"))
    before = engine.losses(thetas)
    other = engine.with_losses(("macro_f1", "macro_auc", "hamming"))
    assert np.shares_memory(other._rows.dense, engine._rows.dense)
    assert other.targets is engine.targets
    assert other.loss_set.names == ("macro_f1", "macro_auc", "hamming")
    assert engine.loss_set.names == ("hamming", "lrap")
    assert_array_equal(other.losses(thetas)[:, 2], before[:, 0])
    assert_array_equal(engine.losses(thetas), before)


@pytest.mark.parametrize("later", [False, True])
def test_scores_of_whole_matrix_losses_stay_in_the_budget(monkeypatch, later):
    # Weights of 24 candidates fit into 10 kB; the scores of 16 already do not.
    layout, X, Y, thetas, _ = make(n=512, d=2, k=3, c=2, population=24)
    sizes = []
    evaluate = LossSet.evaluate_matrix_losses

    def spy(self, scores, targets):
        sizes.append(len(scores))
        return evaluate(self, scores, targets)

    monkeypatch.setattr(LossSet, "evaluate_matrix_losses", spy)
    first = ("hamming",) if later else ("macro_auc",)
    targets = RowTargets.from_indicator(Y)
    engine = NumpyEngine(layout, X, targets, first, memory_mb=0.01)
    engine.with_losses(("macro_auc",)).losses(thetas)
    assert sizes == [16, 8]


def test_a_nan_candidate_is_alone():
    layout, X, Y, thetas, _ = make()
    targets = RowTargets.from_indicator(Y)
    engine = NumpyEngine(layout, X, targets, EVERY_KIND)
    expected = engine.losses(thetas)
    spoiled = thetas.copy()
    spoiled[4, 0] = np.nan
    found = engine.losses(spoiled)
    assert np.isnan(found[4]).all()
    others = np.arange(13) != 4
    assert_array_equal(found[others], expected[others])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_are_left_alone(form, dtype):
    layout, X, Y, thetas, weight = make()
    X, thetas = form(X.astype(dtype)), thetas.astype(dtype)
    arrays = [X.data if sp.issparse(X) else X, thetas, weight]
    before = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y, weight), dtype=dtype)
    assert engine.losses(thetas).shape == (13, 3)
    assert engine.scores(thetas).dtype == dtype
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


def test_no_candidates():
    layout, X, Y, thetas, _ = make()
    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y), EVERY_KIND)
    assert engine.losses(thetas[:0]).shape == (0, len(EVERY_KIND))
    assert engine.scores(thetas[:0]).shape == (0, 60, 5)


class Failing(Loss):
    """Its statistic fails on some rows while another task is at work."""

    name = "failing"

    def __init__(self):
        self.statistics = (Statistic("fails", self.define),)
        self.lock = threading.Lock()
        self.calls = self.running = 0
        self.another_runs = threading.Event()

    def define(self, Y, scores, threshold):
        with self.lock:
            self.calls += 1
            self.running += 1
            first = self.calls == 1
        try:
            if first:
                assert self.another_runs.wait(10)
                raise ZeroDivisionError("on purpose")
            self.another_runs.set()
            threading.Event().wait(0.1)  # still at work when the first one fails
        finally:
            with self.lock:
                self.running -= 1
        return np.zeros(scores.shape[:2])

    def close(self, sums, weight, n_labels):
        return sums["fails"]


def test_an_error_in_a_thread_comes_out_and_nothing_goes_on(monkeypatch):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 4)
    layout, X, Y, thetas, _ = make()
    targets = RowTargets.from_indicator(Y)
    loss = Failing()
    with ThreadPoolExecutor(2) as executor:
        engine = NumpyEngine(layout, X, targets, (loss,), executor=executor)
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            engine.evaluate(thetas)
        assert loss.running == 0
        calls = loss.calls
        assert calls < 30  # 2 blocks of candidates on 15 shards: the rest is cancelled
        healthy = engine.with_losses(("hamming",))
        expected = NumpyEngine(layout, X, targets, ("hamming",)).losses(thetas)
        assert_array_equal(healthy.losses(thetas), expected)
        assert loss.calls == calls


def test_an_error_without_threads_comes_out():
    layout, X, Y, thetas, _ = make()

    def loss(Y, scores):
        raise KeyError("mine")

    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y), (loss,))
    with pytest.raises(KeyError, match="mine"):
        engine.losses(thetas)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(60, 6), (59, 7), (60, 8)])
def test_features_of_another_shape(form, shape):
    layout, _, Y, _, _ = make()
    with pytest.raises(ValueError, match=r"X must have shape \(60, 7\) .*, got"):
        NumpyEngine(layout, form(np.ones(shape)), RowTargets.from_indicator(Y))


@pytest.mark.parametrize("n_labels", [4, 6])
def test_labels_of_another_number(n_labels):
    # The kernels index scores by label: they must never see such a pair.
    layout, X, _, _, _ = make()
    targets = RowTargets.from_indicator(np.ones((60, n_labels)))
    with pytest.raises(ValueError, match=f"5 labels.*{n_labels}|{n_labels}.*5"):
        NumpyEngine(layout, X, targets)


def test_thetas_of_another_length():
    layout, X, Y, thetas, _ = make()
    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y))
    for function in (engine.evaluate, engine.losses, engine.scores):
        with pytest.raises(ValueError, match="theta must have"):
            function(thetas[:, 1:])


@pytest.mark.parametrize(
    ("losses", "error", "message"),
    [
        ("hamming", TypeError, "losses must be a sequence"),
        (("haming",), ValueError, "Did you mean 'hamming'"),
        (("precision_at_6",), ValueError, "at least 6 labels, got 5"),
    ],
)
def test_bad_losses(losses, error, message):
    layout, X, Y, _, _ = make()
    targets = RowTargets.from_indicator(Y)
    with pytest.raises(error, match=message):
        NumpyEngine(layout, X, targets, losses)
    with pytest.raises(error, match=message):
        NumpyEngine(layout, X, targets).with_losses(losses)


def blas_threads():
    return [
        pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
    ]


def test_single_threaded_blas_nests():
    assert set(blas_threads()) == {1}
    with single_threaded_blas():
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {1}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [[3], [0, 5, 7, 59], [9, 2, 2, 40], range(60)])
def test_some_rows_alone(form, weighted, rows):
    layout, X, Y, thetas, weight = make()
    rows = np.array(rows)
    scaling = Scaling.fit(X)

    def engine(part):
        targets = RowTargets.from_indicator(Y[part], weight[part] if weighted else None)
        return NumpyEngine(layout, form(X[part]), targets, EVERY_KIND, scaling=scaling)

    whole = engine(slice(None))
    before = whole.evaluate(thetas)
    taken = whole.take(rows)
    same_statistics(taken.evaluate(thetas), engine(rows).evaluate(thetas))
    assert_array_equal(taken.scores(thetas), engine(rows).scores(thetas))
    same_statistics(whole.evaluate(thetas), before)


def test_other_targets_on_the_same_rows():
    layout, X, Y, thetas, weight = make()
    engine = NumpyEngine(layout, X, RowTargets.from_indicator(Y), ADDITIVE)
    before = engine.evaluate(thetas)
    other = RowTargets.from_indicator(1 - Y, weight)
    found = engine.with_targets(other).evaluate(thetas)
    same_statistics(found, NumpyEngine(layout, X, other, ADDITIVE).evaluate(thetas))
    same_statistics(engine.evaluate(thetas), before)

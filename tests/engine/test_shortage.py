"""Engines where memory runs out: the same losses, in smaller portions, as is said."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from clml._support.memory import warn_once
from clml.engine import NumpyEngine, TorchEngine
from clml.engine import blocks as _blocks
from clml.engine._device_rows import DeviceRows
from clml.engine.blocks import SHARD_ROWS
from clml.losses import LossSet, RowTargets
from clml.network import Layout, Scaling

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FORMS = [np.asarray, sp.csr_matrix]


def mean_score(Y, scores, sample_weight=None):
    return float(np.tanh(scores.mean()) / 2 + 0.5)


LOSSES = ("hamming", "lrap", "macro_f1", mean_score)


def make(n=60, d=5, k=4, c=3, population=75, seed=0):
    rng = np.random.default_rng(seed)
    layout = Layout(d, k, c)
    X = rng.normal(size=(n, d))
    targets = RowTargets.from_indicator(rng.integers(0, 2, (n, k)), rng.random(n))
    thetas = rng.normal(size=(population, layout.size)).astype(np.float32)
    return layout, X, targets, thetas


def fail_above(monkeypatch, owner, name, most, size=len, error=MemoryError):
    """Let a function run out of memory when its first argument is larger."""
    inner, sizes = getattr(owner, name), []

    def limited(self, first, *rest):
        sizes.append(size(first))
        if sizes[-1] > most:
            raise error("no room")
        return inner(self, first, *rest)

    monkeypatch.setattr(owner, name, limited)
    return sizes


def test_by_hand(monkeypatch):
    # 75 candidates do not fit, nor 48 (half, in blocks of 16), nor 32; 16 do.
    layout, X, targets, thetas = make()
    engine = NumpyEngine(layout, X, targets)
    expected = engine.losses(thetas)
    sizes = fail_above(monkeypatch, NumpyEngine, "_laid_out", 20)
    with pytest.warns(UserWarning, match=r"3 times: 16 candidates instead of 75 are"):
        assert_array_equal(engine.losses(thetas), expected)
    assert sizes == [75, 48, 32, 16, 16, 16, 16, 11]
    sizes.clear()
    # Kept, also by engines made from this one: nothing fails again, nothing is said.
    other = engine.take(np.arange(30)).with_losses(("hamming",))
    assert other.losses(thetas).shape == (75, 1)
    assert max(sizes) == 16


@pytest.mark.parametrize("most", [16, 17, 31, 33, 50])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_threads", [0, 3])
def test_the_same_bits_in_any_portion(monkeypatch, most, form, n_threads):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 16)
    layout, X, targets, thetas = make()
    with ThreadPoolExecutor(max(n_threads, 1)) as executor:
        engine = NumpyEngine(
            layout,
            form(X),
            targets,
            LOSSES,
            scaling=Scaling.fit(X),
            executor=executor if n_threads else None,
        )
        expected, scores = engine.losses(thetas), engine.scores(thetas)
        additive = engine.with_losses(LOSSES[:3])
        fail_above(monkeypatch, NumpyEngine, "_laid_out", most)
        with pytest.warns(UserWarning, match="instead of 75"):
            assert_array_equal(engine.losses(thetas), expected)
        assert_array_equal(engine.scores(thetas), scores)
        assert_array_equal(additive.begin(thetas)(), expected[:, :3])


@pytest.mark.parametrize("most", [1, 3, 16, 20])
@pytest.mark.parametrize("path", ["numpy", "torch"])
def test_scores_of_fewer_candidates_at_once(monkeypatch, most, path):
    layout, X, targets, thetas = make(population=40)
    if path == "numpy":
        engine = NumpyEngine(layout, X, targets, LOSSES)
    else:
        engine = TorchEngine(layout, X, targets, LOSSES, device=DEVICE)
    expected = engine.losses(thetas)
    sizes = fail_above(monkeypatch, LossSet, "evaluate_matrix_losses", most)
    with pytest.warns(UserWarning, match="instead of 40"):
        assert_array_equal(engine.losses(thetas), expected)
    assert min(size for size in sizes if size > 1) <= max(most, 3)


def test_the_smallest_portion_raises(monkeypatch):
    layout, X, targets, thetas = make()
    engine = NumpyEngine(layout, X, targets)
    fail_above(monkeypatch, NumpyEngine, "_laid_out", 15)
    with pytest.raises(MemoryError, match="with 16 candidates at once, and fewer"):
        engine.losses(thetas)
    engine = TorchEngine(layout, X, targets, device=DEVICE)
    fail_above(monkeypatch, DeviceRows, "lay_out", 0, error=torch.OutOfMemoryError)
    with pytest.raises(MemoryError, match="with 1 candidates at once") as caught:
        engine.losses(thetas)
    assert isinstance(caught.value.__cause__, torch.OutOfMemoryError)


class Crowded:
    """Tasks that run out of memory on their first attempt, in whatever thread."""

    def __init__(self, monkeypatch, n_failures, always=False):
        self.lock, self.left, self.threads = threading.Lock(), n_failures, set()
        self.running = self.calls = 0
        inner = NumpyEngine._sum_rows

        def sum_rows(engine, weights, task):
            with self.lock:
                self.calls += 1
                self.running += 1
                fails = self.left > 0
                self.left -= not always
                self.threads.add(threading.get_ident())
            try:
                if fails:
                    raise MemoryError("no room for a task")
                threading.Event().wait(0.002)  # so that helpers get their share
                return inner(engine, weights, task)
            finally:
                with self.lock:
                    self.running -= 1

        monkeypatch.setattr(NumpyEngine, "_sum_rows", sum_rows)


@pytest.mark.parametrize("begun", [False, True])
def test_a_helper_without_memory_loses_nobodys_work(monkeypatch, begun):
    monkeypatch.setattr(_blocks, "SHARD_ROWS", 4)
    layout, X, targets, thetas = make()
    expected = NumpyEngine(layout, X, targets).losses(thetas)
    crowded = Crowded(monkeypatch, n_failures=4)
    with ThreadPoolExecutor(3) as executor:
        engine = NumpyEngine(layout, X, targets, executor=executor)
        with pytest.warns(UserWarning, match="once: 48 candidates instead of 75"):
            losses = engine.begin(thetas)() if begun else engine.losses(thetas)
    assert_array_equal(losses, expected)
    assert len(crowded.threads) > 1
    # 5 blocks on 15 shards, and the four that failed once more.
    assert crowded.calls == 5 * 15 + 4


@pytest.mark.parametrize("begun", [False, True])
def test_helpers_that_never_have_memory_raise_and_do_not_hang(monkeypatch, begun):
    layout, X, targets, thetas = make()
    crowded = Crowded(monkeypatch, n_failures=1, always=True)
    with ThreadPoolExecutor(3) as executor, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = NumpyEngine(layout, X, targets, executor=executor)
        with pytest.raises(MemoryError, match=r"16 candidates .* no room for a"):
            engine.begin(thetas)() if begun else engine.losses(thetas)
        assert crowded.running == 0
        monkeypatch.undo()
        assert np.isfinite(engine.losses(thetas)).all()


# Triton's interpreter takes minutes for so many rows.
@pytest.mark.parametrize("path", ["plain", "fused"][: 1 + (DEVICE == "cuda")])
@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_a_device_cuts_rows_and_then_candidates(monkeypatch, path, error):
    layout, X, targets, thetas = make(n=2 * SHARD_ROWS + 7, d=2, k=2, population=6)
    engine = TorchEngine(layout, X, targets, device=DEVICE, fused=path == "fused")
    expected = engine.losses(thetas)
    calls, inner = [], DeviceRows.product

    def product(self, weights, start, stop, kernels):
        calls.append((weights.n_candidates, stop - start))
        if calls[-1][0] * calls[-1][1] > 3 * SHARD_ROWS:
            raise error("no room")
        return inner(self, weights, start, stop, kernels)

    monkeypatch.setattr(DeviceRows, "product", product)
    message = r"3 times: 1024 rows instead of 2055 and 3 candidates instead of 6 are"
    with pytest.warns(UserWarning, match=message), warn_once():
        engine = TorchEngine(layout, X, targets, device=DEVICE, fused=path == "fused")
        found = engine.losses(thetas)
    assert_allclose(found, expected, rtol=0, atol=2 / len(X))
    assert calls[:3] == [(6, 2055), (6, 2048), (6, 1024)]
    assert calls[3:] == [(3, 1024), (3, 1024), (3, 7)] * 2


def test_candidates_that_do_not_fit_the_device_go_there_by_and_by(monkeypatch):
    layout, X, targets, thetas = make(population=8)
    engine = TorchEngine(layout, X, targets, device=DEVICE)
    expected = engine.losses(thetas)
    sizes = fail_above(
        monkeypatch, TorchEngine, "_put", 3, error=torch.OutOfMemoryError
    )
    with pytest.warns(UserWarning, match="2 times: 2 candidates instead of 8"):
        found = engine.losses(thetas)
    assert_allclose(found, expected, rtol=0, atol=2 / len(X))
    assert sizes == [8, 4, 2, 2, 2, 2]


def test_rows_that_do_not_fit_the_device(monkeypatch):
    layout, X, targets, _ = make()

    def put(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(DeviceRows, "put", put)
    with pytest.raises(MemoryError, match=r"X must fit .*, got 60 rows of 5 features"):
        TorchEngine(layout, X, targets, device=DEVICE)


CHILD = """
import resource, warnings
import numpy as np
import torch
from clml.engine import NumpyEngine, TorchEngine
from clml.losses import RowTargets
from clml.network import Layout, Predictor, Scaling

torch.set_num_threads(1)
rng = np.random.default_rng(0)


def rows(layout, n):
    X = rng.normal(size=(n, layout.n_features)).astype(np.float32)
    return X, RowTargets.from_indicator(rng.integers(0, 2, (n, layout.n_labels)))


def check(work, mb, tolerance=0):
    '''Compare with what comes of it where only so much more may be had.'''
    expected = work()
    unlimited = (resource.RLIM_INFINITY,) * 2
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (mb << 20), unlimited[1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    resource.setrlimit(resource.RLIMIT_AS, unlimited)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    print(*(w.message for w in caught))


layout = Layout(1000, 3, 8)
engine = NumpyEngine(layout, *rows(layout, 20), memory_mb=4096)
thetas = np.repeat(rng.normal(size=(64, layout.size)).astype(np.float32), 32, axis=0)
check(lambda: engine.losses(thetas), 60)

predictor = Predictor(
    rng.normal(size=(2, layout.size)), layout, Scaling.identity(1000)
)
X = np.broadcast_to(rng.normal(size=1000), (8192, 1000))
check(lambda: predictor.logits(X), 30)

layout = Layout(4, 3, 16)
few = rng.normal(size=(256, layout.size)).astype(np.float32)
device_engine = TorchEngine(layout, *rows(layout, 4096), device="cpu")
check(lambda: device_engine.losses(few), 40, tolerance=1e-3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")
def test_a_process_that_may_not_have_more():
    """Memory is really refused here, also to the kernels."""
    result = subprocess.run(
        [sys.executable, "-c", CHILD],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed is really gone
        },
    )
    assert result.returncode == 0, result.stderr
    told = result.stdout.splitlines()
    assert len(told) == 3, told
    units = "candidates instead of 2048", "rows instead of 8192", "rows instead of 4096"
    for line, unit in zip(told, units, strict=True):
        assert unit in line, told

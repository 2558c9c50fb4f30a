"""Losses of fixed weights, the same on every platform, engine and device.

``fixed_theta.json`` holds losses that float64 gives. Weights and rows come from the raw
stream of PCG64, which NumPy keeps as it is, and plain arithmetic. No logit of the table
is nearer than a margin to 0 or to another one of its row, and the errors of float32 are
far below it: no decision and no rank may differ, wherever this runs. To write the table
anew after a loss was added: ``python tests/engine/test_fixed_theta.py``.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose

from clml.engine import NumpyEngine, TorchEngine
from clml.losses import RowTargets, loss_values
from clml.network import Layout, Scaling

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TABLE = Path(__file__).with_name("fixed_theta.json")
MARGIN = 2e-4
# Made of decisions and ranks alone: exact but for the rounding of a sum.
EXACT = (
    "hamming",
    "lrap",
    "micro_f1",
    "macro_f1",
    "ranking_loss",
    "coverage",
    "one_error",
    "example_f1",
    "jaccard",
    "subset_zero_one",
)
SMOOTH = ("binary_cross_entropy", "row_log_loss")
# (rows, features, labels, embedding, layers, candidates), and a seed with the margin.
SHAPES = {
    "plain": (24, 5, 4, 3, 1, 6),
    "deep": (20, 6, 3, 4, 3, 5),
    "one label": (30, 4, 1, 3, 1, 5),
    "two blocks": (12, 3, 3, 3, 1, 18),
    "one network": (40, 7, 5, 4, 1, 1),
}


def uniform(seed, *shape):
    """Numbers in [-1, 1), from the 53 highest bits of each word of the stream."""
    raw = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    return ((raw >> np.uint64(11)) * 2.0**-52 - 1).reshape(shape)


def case(name, seed):
    n, d, k, c, layers, population = SHAPES[name]
    layout = Layout(d, k, c, layers)
    X = np.round(uniform([seed, 0], n, d) * 64) / 8  # exact in any precision
    X[np.abs(X) < 4] = 0
    Y = (uniform([seed, 1], n, k) > 0.2).astype(int)
    thetas = uniform([seed, 2], population, layout.size) * 2
    scaling = Scaling(np.full(d, 0.5), np.linspace(1, 2, d))
    return layout, X, Y, thetas, scaling


def slow_logits(theta, X, layout, scaling):
    """One network, layer by layer, in float64."""
    values = (X - scaling.mean) / scaling.scale
    first, *later = layout.matrices(theta)
    values = values @ first[:-1] + first[-1]
    for matrix in later:
        spread = values.std(axis=1, keepdims=True) + 1e-10
        z = (values - values.mean(axis=1, keepdims=True)) / spread
        values = (1 / (1 + np.exp(-z))) @ matrix[:-1] + matrix[-1]
    return values


def slow_losses(name, seed):
    layout, X, Y, thetas, scaling = case(name, seed)
    logits = np.stack([slow_logits(t, X, layout, scaling) for t in thetas])
    return logits, loss_values(Y, logits, losses=EXACT + SMOOTH)


def margin(logits):
    """How far the logits are from 0, and from each other within a row."""
    ordered = np.sort(logits, axis=-1)
    return min(np.abs(logits).min(), np.diff(ordered, axis=-1).min(initial=np.inf))


def write_table():
    table = {}
    for name in SHAPES:
        seeds = (s for s in range(10_000) if margin(slow_losses(name, s)[0]) > MARGIN)
        seed = next(seeds)
        losses = slow_losses(name, seed)[1]
        table[name] = {"seed": seed, "losses": losses.round(12).tolist()}
    lines = (f'"{name}": {json.dumps(entry)}' for name, entry in table.items())
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def table():
    return json.loads(TABLE.read_text(encoding="utf-8"))


def test_the_stream_is_the_one_that_was_written_with():
    # The first words of PCG64(0), as NumPy documents that they stay.
    words = np.random.PCG64(0).random_raw(2)
    assert words.tolist() == [11749869230777074271, 4976686463289251617]


@pytest.mark.parametrize("name", SHAPES)
def test_the_table_is_what_float64_gives(table, name):
    entry = table[name]
    logits, losses = slow_losses(name, entry["seed"])
    assert margin(logits) > MARGIN
    assert_allclose(losses, entry["losses"], rtol=1e-9, atol=1e-11)
    assert len(np.unique(losses[:, 0])) > 1 or len(losses) == 1


ENGINES = {
    "numpy": lambda *a, **k: NumpyEngine(*a, **k),
    "numpy, double": lambda *a, **k: NumpyEngine(*a, dtype=np.float64, **k),
    "torch": lambda *a, **k: TorchEngine(*a, device=DEVICE, fused=False, **k),
    "torch, double": lambda *a, **k: TorchEngine(
        *a, device=DEVICE, fused=False, dtype=np.float64, **k
    ),
    "fused": lambda *a, **k: TorchEngine(*a, device=DEVICE, fused=True, **k),
}
# Without a GPU the fused kernels are interpreted: a small case is enough there.
PAIRS = [
    (engine, name)
    for engine in ENGINES
    for name in SHAPES
    if engine != "fused" or DEVICE == "cuda" or name == "plain"
]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("engine", "name"), PAIRS)
def test_engines_agree_with_the_table(table, engine, name, form):
    entry = table[name]
    layout, X, Y, thetas, scaling = case(name, entry["seed"])
    targets = RowTargets.from_indicator(Y)
    build = ENGINES[engine]
    expected = np.array(entry["losses"])
    n = len(EXACT)
    exact = build(layout, form(X), targets, EXACT, scaling=scaling)
    assert_allclose(exact.losses(thetas), expected[:, :n], rtol=0, atol=1e-11)
    smooth = exact.with_losses(SMOOTH)
    tolerance = 1e-9 if "double" in engine else 1e-4
    assert_allclose(smooth.losses(thetas), expected[:, n:], tolerance, 1e-11)


if __name__ == "__main__":
    write_table()

"""Several wide networks at once are each what the compiled passes compute."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from clml.engine import MemberRows, wide_logits
from clml.engine import _wide_trainer as trainer
from clml.engine._dropout import DropoutMasks
from clml.engine._wide_batches import WideWeights, backward, forward
from clml.network import WideLayout, WidePass

LAYOUTS = [
    WideLayout(5, 3, (8,), "relu", 0.5),
    WideLayout(5, 3, (8, 6), "relu", 0.25, linear_path=True),
    WideLayout(5, 3, (7, 5, 4), "tanh", 0.5),
    WideLayout(5, 3, (6,), "tanh", 0.0, linear_path=True),
]


def members(layout, n=3, seed=0):
    rng = np.random.default_rng(seed)
    thetas = np.stack([layout.start(rng) for _ in range(n)])
    # Biases and the linear path start at 0, and would show nothing.
    return (thetas + 0.1 * rng.normal(size=thetas.shape)).astype(np.float32)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_equals_the_compiled_passes(layout):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 5)).astype(np.float32)
    rows = rng.permuted(np.tile(np.arange(20), (3, 1)), axis=1)[:, :9]
    keys = rng.integers(2**63, size=(1, 3)).astype(np.uint64)
    slope = rng.normal(size=(3, 9, 3)).astype(np.float32)
    thetas = members(layout)
    dropped = round(layout.dropout * 2**16)
    kept, scale = [], 2**16 / (2**16 - dropped)
    if dropped:
        masks = DropoutMasks(layout.hidden, 9, dropped, "cpu")
        (kept,) = masks.of(masks.starts(keys))
    weights = WideWeights.of(torch.tensor(thetas), layout)
    gradient = torch.full(thetas.shape, torch.nan)
    x = torch.tensor(X[rows])
    dropping = layout.activation, kept, scale
    logits, outputs = forward(weights, x, *dropping)
    into = WideWeights.of(gradient, layout)
    backward(torch.tensor(slope), weights, into, x, outputs, *dropping)
    for m in range(3):
        one = WidePass(layout, X, most_rows=9)
        known = one.forward(thetas[m], rows[m], int(keys[0, m]))
        assert_allclose(logits[m].numpy(), known, rtol=1e-4, atol=1e-5)
        known = one.backward(slope[m])
        assert_allclose(gradient[m].numpy(), known, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_logits_of_all_rows(layout, monkeypatch):
    X = np.random.default_rng(1).normal(size=(20, 5)).astype(np.float32)
    rows = MemberRows.put(X, torch.device("cpu"))
    theta = members(layout)[0]
    known = layout.logits(theta, X)
    found = wide_logits(torch.tensor(theta), layout, rows)
    assert_allclose(found, known, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(trainer, "_BLOCK", 7)
    found = wide_logits(torch.tensor(theta), layout, rows)
    assert_allclose(found, known, rtol=1e-4, atol=1e-5)

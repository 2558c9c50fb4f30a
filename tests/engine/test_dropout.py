"""Units that a device drops are those that the compiled kernels drop."""

import numpy as np
import pytest

from clml.engine import _dropout
from clml.engine._dropout import DropoutMasks
from clml.network.wide_kernels import dropout_factors


def keys_of(n_steps, n_members, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.integers(2**63, size=(n_steps, n_members)).astype(np.uint64)
    keys[0, 0] = 2**64 - 1  # wraps around
    return keys


def expected(key, layer, threshold, shape):
    factors = np.empty(shape, dtype=np.float32)
    dropout_factors(np.uint64(key), layer, threshold, np.float32(1), factors)
    return factors == 1


@pytest.mark.parametrize("threshold", [1, 13_000, 2**15, 2**16 - 1])
@pytest.mark.parametrize("rows, hidden", [(7, (8, 12)), (5, (3, 7, 1)), (1, (1,))])
def test_equals_the_kernels(rows, hidden, threshold):
    keys = keys_of(3, 2)
    masks = DropoutMasks(hidden, rows, threshold, "cpu")
    for step, layers in enumerate(masks.of(masks.starts(keys))):
        assert len(layers) == len(hidden)
        for layer, kept in enumerate(layers):
            for member in range(2):
                one = expected(
                    keys[step, member], layer, threshold, (rows, hidden[layer])
                )
                np.testing.assert_array_equal(kept[member].numpy(), one)
    assert step == 2


def test_rows_that_are_padded_change_nothing():
    """A batch with a row less is the front of a longer one."""
    both = [DropoutMasks((9,), rows, 2**15, "cpu") for rows in (6, 5)]
    (longer,), (shorter,) = (next(m.of(m.starts(keys_of(1, 3)))) for m in both)
    np.testing.assert_array_equal(longer[:, :5].numpy(), shorter.numpy())


def test_the_same_whatever_is_decided_at_once(monkeypatch):
    keys = keys_of(5, 2)
    masks = DropoutMasks((6, 5), 4, 2**15, "cpu")
    starts = masks.starts(keys)
    together = [[kept.clone() for kept in layers] for layers in masks.of(starts)]
    monkeypatch.setattr(_dropout, "_MOST_UNITS", 1)
    for one, other in zip(masks.of(starts), together, strict=True):
        for kept, known in zip(one, other, strict=True):
            np.testing.assert_array_equal(kept.numpy(), known.numpy())


def test_the_share_that_is_dropped():
    masks = DropoutMasks((512,), 256, round(0.3 * 2**16), "cpu")
    ((kept,),) = masks.of(masks.starts(keys_of(1, 1)))
    assert abs(kept.float().mean().item() - 0.7) < 0.005

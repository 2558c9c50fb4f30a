import numpy as np
import pytest
import scipy.sparse as sp
import torch

from clml._base.rows import Part
from clml.baselines._batches import Features, TrainingRows

CPU = torch.device("cpu")


def part(n=7, weight=None):
    X = np.arange(2.0 * n).reshape(n, 2)
    return Part(X, (np.arange(n) % 2).astype(np.uint8)[:, None], weight)


def batches(rows, size, seed=0, equal=False):
    return list(rows.batches(size, np.random.default_rng(seed), equal=equal))


def test_every_row_once_with_its_label():
    got = batches(TrainingRows(part(), CPU), 3)
    assert [len(b.x) for b in got] == [3, 3, 1]
    x, y = torch.cat([b.x for b in got]), torch.cat([b.y for b in got])
    assert sorted(x[:, 0].tolist()) == list(range(0, 14, 2))
    assert (x[:, 0] / 2 % 2 == y[:, 0]).all()
    assert x.dtype == y.dtype == torch.float32


def test_equal_batches_are_topped_up_from_the_beginning_of_the_order():
    got = batches(TrainingRows(part(), CPU), 3, equal=True)
    assert [len(b.x) for b in got] == [3, 3, 3]
    assert torch.equal(got[2].x[1:], got[0].x[:2])
    assert len(batches(TrainingRows(part(6), CPU), 3, equal=True)) == 2
    # A batch larger than the data is the data.
    assert [len(b.x) for b in batches(TrainingRows(part(), CPU), 500, equal=True)] == [
        7
    ]


def test_order_comes_from_the_generator():
    rows = TrainingRows(part(), CPU)
    a, b, c = (batches(rows, 7, seed)[0].x for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_weights_have_mean_one():
    rows = TrainingRows(part(4, np.array([1.0, 1.0, 2.0, 4.0])), CPU)
    assert rows.weight.tolist() == [0.5, 0.5, 1.0, 2.0]
    assert TrainingRows(part(), CPU).weight.tolist() == [1.0] * 7


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_sparse_features_become_dense_a_block_at_a_time(kind):
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    features = Features(kind(X), CPU, torch.float64)
    assert len(features) == 3
    np.testing.assert_array_equal(features.rows(np.array([2, 0])), X[[2, 0]])
    blocks = list(features.blocks(2))
    assert [tuple(b.shape) for b in blocks] == [(2, 2), (1, 2)]
    np.testing.assert_array_equal(torch.cat(blocks), X)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_what_float32_cannot_hold_is_refused(kind):
    X = np.array([[1e300, 0.0]])
    for dtype in (torch.float32, torch.float64):
        with pytest.raises(ValueError, match="X must hold values that float32 can"):
            Features(kind(X), CPU, dtype)


def test_features_are_not_changed_through_the_tensor():
    X = np.zeros((2, 2), dtype=np.float32)
    Features(X, CPU, torch.float32).rows(slice(0, 1)).add_(1)
    assert (X == 0).all()

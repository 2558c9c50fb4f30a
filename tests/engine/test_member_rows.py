"""Batches of rows and labels on a device."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal

from clml.engine import MemberRows
from clml.engine._member_rows import MemberLabels
from clml.losses import RowTargets


def sparse_rows(n=20, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    X[3] = 0  # a row without entries
    X[5] = 1  # and one that has all
    return X.astype(np.float32)


@pytest.mark.parametrize("form", [np.array, sp.csr_array, sp.csr_matrix])
def test_batches(form):
    X = sparse_rows()
    rows = MemberRows.put(form(X), torch.device("cpu"))
    assert rows.n_rows == 20
    chosen = np.array([[5, 3, 0], [19, 19, 1]])
    longest = int(rows.lengths[chosen].max())
    found = rows.batch(torch.as_tensor(chosen), longest)
    assert_array_equal(found.numpy(), X[chosen])
    assert_array_equal(rows.block(4, 20).numpy(), X[4:20])


def test_rows_without_any_entry():
    rows = MemberRows.put(sp.csr_array((4, 3), dtype=np.float32), torch.device("cpu"))
    assert_array_equal(rows.block(0, 4).numpy(), np.zeros((4, 3)))
    assert_array_equal(
        rows.batch(torch.tensor([[3, 0]]), 0).numpy(), np.zeros((1, 2, 3))
    )


def test_entries_that_are_given_twice_are_added():
    X = sp.csr_array(
        (np.ones(3, dtype=np.float32), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2)
    )
    rows = MemberRows.put(X, torch.device("cpu"))
    assert_array_equal(rows.block(0, 2).numpy(), [[0, 2], [1, 0]])
    assert X.nnz == 3  # the caller's is as it was


def test_dense_rows_are_a_copy():
    X = sparse_rows()
    rows = MemberRows.put(X, torch.device("cpu"))
    before = X.copy()
    X[:] = 0
    assert_array_equal(rows.block(0, 20).numpy(), before)


def test_rows_that_do_not_fit(monkeypatch):
    def short(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "tensor", short)
    with pytest.raises(MemoryError, match=r"X must fit .* device 'cpu', got 20 rows"):
        MemberRows.put(sparse_rows(), torch.device("cpu"))


def test_labels():
    Y = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    labels = MemberLabels.put(RowTargets.from_indicator(Y), torch.device("cpu"))
    chosen = torch.tensor([[0, 1], [2, 3]])
    batch = labels.batch(chosen, torch.ones((2, 2), dtype=torch.float64))
    assert_array_equal(batch.truth.numpy(), Y[chosen.numpy()])
    assert_array_equal(batch.n_relevant.numpy(), [[2, 0], [3, 1]])
    assert_array_equal(batch.valid.sum(dim=2).numpy(), [[2, 0], [3, 1]])
    assert_array_equal(batch.relevant[0, 0].numpy(), [0, 2, 0])
    assert_array_equal(batch.place[0].numpy(), [[0, 3, 1], [3, 3, 3]])


def test_no_row_has_a_label():
    targets = RowTargets.from_indicator(np.zeros((3, 2), dtype=int))
    labels = MemberLabels.put(targets, torch.device("cpu"))
    batch = labels.batch(torch.tensor([[0, 2]]), torch.ones((1, 2)))
    assert batch.relevant.shape == (1, 2, 1)
    assert not batch.valid.any()

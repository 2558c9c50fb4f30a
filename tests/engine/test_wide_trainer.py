"""An epoch on a device as a function of values."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal
from torch.utils._python_dispatch import TorchDispatchMode

from clml.engine import (
    EpochSteps,
    MemberLabels,
    MemberRows,
    WideGroup,
    WideTrainer,
    _wide_trainer,
    wide_logits,
)
from clml.losses import LossSet, RowTargets, get_loss, get_losses, list_losses
from clml.network import WideLayout

CPU = torch.device("cpu")
DEFAULT = ("hamming", "lrap", "micro_f1")
ALL = [n for n in list_losses() if get_loss(n).additive and n != "precision_at_5"]
# What waits for the device, what depends on the order in which threads come, and what
# is decided by values on the host.
UNWANTED = {
    "local_scalar_dense",
    "is_nonzero",
    "nonzero",
    "masked_select",
    "unique",
    "bincount",
    "histc",
    "cumsum",
    "index_add",
    "index_put",
    "put",
    "scatter_add",
    "scatter_reduce",
    "repeat_interleave",
}


class Calls(TorchDispatchMode):
    """Notes the name of every operation."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def built(losses=DEFAULT, is_sparse=False, n=24, device=CPU, activation="relu"):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.5)).astype(np.float32)
    Y = rng.integers(0, 2, size=(n, 4))
    loss_set = LossSet(get_losses(losses), 4)
    labels = MemberLabels.put(RowTargets.from_indicator(Y), device)
    groups, weights = [], []
    for n_members, columns in ((3, slice(6)), (2, slice(4))):  # two encodings
        some = np.ascontiguousarray(X[:, columns])
        rows = MemberRows.put(sp.csr_array(some) if is_sparse else some, device)
        layout = WideLayout(some.shape[1], 4, (8, 5), activation, 0.5, True)
        groups.append(WideGroup(layout, rows, n_members))
        rngs = [np.random.default_rng(m) for m in range(n_members)]
        thetas = np.stack([layout.start(rng) for rng in rngs])
        zeros = np.zeros_like(thetas)
        named = {"theta": thetas, "average": thetas, "first": zeros, "second": zeros}
        weights.append(named)
    trainer = WideTrainer(groups, labels, loss_set, 0.5, device)
    return trainer, trainer.put(weights, None, None)


def steps_of(n_members=5, n_steps=6, n=24, **changed):
    rng = np.random.default_rng(1)
    rows = np.stack(
        [[rng.permutation(n)[:7] for _ in range(n_members)] for _ in range(n_steps)]
    )
    rows[-1, 0, -1] = -1
    shape = (n_steps, n_members)
    rates = np.empty((4, *shape))
    rates[:] = np.array([-0.01, 1.0, 1e-6, 0.5])[:, None, None]
    settings = {
        "rows": rows,
        "weight": np.where(rows < 0, 0.0, 1.0),
        "keys": rng.integers(2**63, size=shape).astype(np.uint64),
        "rates": rates,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "kept_sums": 0.9,
        "price_every": 4,
        "cross_entropy": False,
    }
    return EpochSteps(**settings | changed)


def arrays(state):
    return [tensor.numpy().copy() for tensor in state.tensors]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)


def assert_close(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("surrogate", [False, True])
def test_steps_never_wait_and_never_race(is_sparse, surrogate):
    """No value is read back while an epoch runs, and no sum has an order of chance."""
    trainer, state = built(ALL, is_sparse)
    steps = steps_of(cross_entropy=surrogate)
    after, _, _ = trainer.after_epoch(state, steps)
    with Calls() as calls:
        trainer._epoch(state, after, steps, slice(0, 5))
    assert "bmm" in calls.names
    assert not {name.strip("_") for name in calls.names} & UNWANTED


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("surrogate", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_everything_is_on_one_device(is_sparse, surrogate, activation):
    """Tensors without values: those of the CPU do not mix with them."""
    meta = torch.device("meta")
    trainer, state = built(ALL, is_sparse, device=meta, activation=activation)
    steps = steps_of(cross_entropy=surrogate)
    columns, labels = trainer._epoch(state, state.empty_like(), steps, slice(0, 5))
    assert columns.device == labels.device == meta
    assert columns.shape == (5, 15)
    for group in trainer._groups:
        theta = state.groups[0].theta[0]
        with pytest.raises(NotImplementedError, match="meta"):  # sent to the host
            wide_logits(theta[: group.layout.size], group.layout, group.rows)


def test_an_epoch_leaves_what_it_was_given():
    trainer, state = built()
    before = arrays(state)
    first = trainer.after_epoch(state, steps_of())
    assert not state.begun and first[0].begun
    assert_same(arrays(state), before)
    again = trainer.after_epoch(state, steps_of())
    assert_same(arrays(first[0]), arrays(again[0]))
    assert_array_equal(first[1], again[1])


def test_members_do_not_touch_each_other():
    """One alone comes to the same, up to rounding of products of other shapes."""
    trainer, state = built()
    steps = steps_of()
    together, columns, _ = trainer.after_epoch(state, steps)
    for m in range(5):
        one = slice(m, m + 1)
        own = steps_of(
            rows=steps.rows[:, one],
            weight=steps.weight[:, one],
            keys=steps.keys[:, one],
            rates=steps.rates[..., one],
        )
        alone, own_columns, _ = trainer.after_epoch(state.at(one), own)
        for name in ("theta", "average", "second", "columns"):
            assert_close([alone.array(name, 0)], [together.array(name, m)])
        np.testing.assert_allclose(own_columns[0], columns[m])


@pytest.mark.parametrize("fails_above", [4, 2, 1])
def test_less_memory_trains_fewer_members_at_once(fails_above, monkeypatch):
    trainer, state = built()
    steps = steps_of()
    known, columns, labels = trainer.after_epoch(state, steps)
    sizes = []
    epoch = WideTrainer._epoch

    def short(self, before, now, steps, where):
        found = epoch(self, before, now, steps, where)
        sizes.append(where.stop - where.start)
        if sizes[-1] > fails_above:
            # Late: what a half-done epoch has written must not count.
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    monkeypatch.setattr(WideTrainer, "_epoch", short)
    with pytest.warns(UserWarning, match="members instead of 5 are worked on at once"):
        found, own_columns, own_labels = trainer.after_epoch(state, steps)
    assert sum(size for size in sizes if size <= fails_above) == 5
    assert_close(arrays(found), arrays(known))
    np.testing.assert_allclose(own_columns, columns)
    np.testing.assert_allclose(own_labels, labels)
    sizes.clear()
    trainer.after_epoch(state, steps)  # tries no more than that again, and says nothing
    assert max(sizes) <= fails_above


def test_no_memory_for_one_member(monkeypatch):
    def short(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    trainer, state = built()
    monkeypatch.setattr(WideTrainer, "_epoch", short)
    with pytest.raises(MemoryError, match="with 1 members at once"):
        trainer.after_epoch(state, steps_of())


def test_no_memory_for_the_networks(monkeypatch):
    def short(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    trainer, state = built()
    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty_like", short)
        with pytest.raises(MemoryError, match=r"networks must fit .* got 5 members"):
            trainer.after_epoch(state, steps_of())
    assert trainer.after_epoch(state, steps_of())[0].begun


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("losses", [DEFAULT, ALL])
def test_recorded_steps_are_those_taken_one_by_one(is_sparse, losses, monkeypatch):
    device = torch.device("cuda")
    steps = steps_of(n_steps=14)
    states = []
    for recorded in (True, False):
        if not recorded:
            monkeypatch.setattr(_wide_trainer, "_WORTH_RECORDING", 99)
        trainer, state = built(losses, is_sparse, device=device)
        for _ in range(3):
            state, columns, _ = trainer.after_epoch(state, steps)
        assert bool(trainer._graphs) == recorded
        if recorded:
            assert None not in trainer._graphs.values()
        states.append([tensor.cpu().numpy() for tensor in state.tensors] + [columns])
    assert_close(*states)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_what_cannot_be_recorded_is_trained_all_the_same(monkeypatch, caplog):
    def fails(*given):
        raise torch.OutOfMemoryError("no room for a graph")

    device, steps = torch.device("cuda"), steps_of(n_steps=14)
    trainer, state = built(device=device)
    known, _, _ = trainer.after_epoch(state, steps)
    monkeypatch.setattr(_wide_trainer, "_Recorded", fails)
    trainer, state = built(device=device)
    with caplog.at_level("INFO", "clml"):
        found, _, _ = trainer.after_epoch(state, steps)
    assert "not recorded" in caplog.text
    for one, other in zip(found.tensors, known.tensors, strict=True):
        np.testing.assert_allclose(one.cpu(), other.cpu(), rtol=1e-4, atol=1e-5)

"""Members on a device: what the CPU computes, in one batch. The device is the CPU."""

import copy
import pickle
import warnings
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

import clml._classifier
from clml import CLMLClassifier
from clml._training.ascent import AscentState
from clml._training.device_members import DeviceMembers, HeldClimber, MemberDevice
from clml._training.holdout import HeldOutScorer
from clml._training.members import AscendingMembers, MemberRun
from clml._training.steps import AscentPlan
from clml._training.training_rows import WideRows
from clml.encoding import Bins, Quantiles, Robust
from clml.engine import WideTrainer
from clml.losses import Loss, LossSet, RowTargets, get_loss, get_losses, list_losses
from clml.network import WideNetwork
from clml.persistence import load, save

DEFAULT = ("hamming", "lrap", "micro_f1")
ADDITIVE = [n for n in list_losses() if get_loss(n).additive and n != "precision_at_5"]
PLAN = AscentPlan(
    learning_rate=0.002,
    n_epochs=4,
    batch_size=10,
    smoothing=0.5,
    weight_decay=1e-3,
    closed_form=True,
)


class MissRate(Loss):
    name = "miss_rate"
    statistics = ("hits", "relevant")

    def close(self, sums, weight, n_labels):
        missed = sums["relevant"] - sums["hits"]
        return missed / np.maximum(sums["relevant"], 1e-12)


def problem(form=np.asarray, n=53, n_labels=4, seed=0):
    """Rows in two encodings, and what five members see of them: 44 to 47 rows each."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 9)) * (rng.random((n, 9)) < 0.7)).astype(np.float32)
    Y = (X[:, :n_labels] + rng.normal(size=(n, n_labels)) > 0.3).astype(int)
    Y[0], Y[1] = 0, 1
    network = WideNetwork((16, 12), dropout=0.25, linear_path=True)
    other = WideNetwork((16, 12), dropout=0.25, linear_path=True)
    rows = [
        WideRows(form(X), network.build(9, n_labels)),
        WideRows(form(X[:, :7].copy()), other.build(7, n_labels)),
    ]
    weight = np.ones((5, n)) * rng.uniform(0.5, 1.5, size=n)
    for m in range(5):
        weight[m, rng.permutation(n)[: 6 + (m + 3) % 4]] = 0
    targets = RowTargets.from_indicator(Y)
    own = [replace(targets, weight=one, weighted=True) for one in weight]
    return [rows[m % 2] for m in range(5)], own


def begun(rows):
    seeds = np.random.SeedSequence(0).spawn(len(rows))
    return [
        AscentState.start(one.layout, seed)
        for one, seed in zip(rows, seeds, strict=True)
    ]


def trained(
    rows, targets, losses=DEFAULT, plan=PLAN, n_epochs=1, device=None, begin=()
):
    """Return members after some epochs; on a device if there is one."""
    loss_set = LossSet(get_losses(losses), targets[0].n_labels)
    climbers = begin or begun(rows)
    if device is None:
        members = AscendingMembers(climbers, rows, targets, loss_set, plan, 0)
    else:
        rows = device.rows(rows)
        members = DeviceMembers(device, climbers, rows, targets, loss_set, plan, 0)
    for _ in range(n_epochs):
        members.step(None)
    return members


def cpu(memory_mb=512):
    return MemberDevice("cpu", memory_mb)


def assert_close(members, others, tolerance=1e-4):
    for one, other in zip(members.climbers, others.climbers, strict=True):
        scale = np.abs(other.theta).max()
        assert_allclose(one.theta, other.theta, atol=tolerance * scale)
        assert_allclose(one.average, other.average, atol=tolerance * scale)
        # The CPU also keeps statistics that no loss needs.
        loss_set = members._one_epoch.loss_set
        sums, known = (loss_set.statistics(x.sums, 1.0).sums for x in (one, other))
        for name, value in known.items():
            assert_allclose(sums[name], value, rtol=0.01, atol=0.01)
        assert_allclose(one.losses, other.losses, rtol=1e-3, atol=1e-6)
        assert one.epoch == other.epoch
        assert one.generator == other.generator
        assert one.adam.n_steps == other.adam.n_steps


def assert_same_members(members, others):
    for one, other in zip(members.climbers, others.climbers, strict=True):
        for name in ("theta", "average", "losses"):
            assert_array_equal(getattr(one, name), getattr(other, name))
        assert_array_equal(one.adam.second, other.adam.second)
        assert_array_equal(one.sums.columns, other.sums.columns)
        assert one.generator == other.generator


FAMILIES = [DEFAULT, *((name,) for name in ADDITIVE), ("hamming", MissRate())]


@pytest.mark.parametrize("losses", FAMILIES, ids=str)
def test_an_epoch_is_that_of_the_cpu(losses):
    rows, targets = problem()
    members = trained(rows, targets, losses, device=cpu())
    others = trained(rows, targets, losses)
    assert_close(members, others)
    for one, start in zip(members.climbers, begun(rows), strict=True):
        assert isinstance(one, HeldClimber)
        assert np.abs(one.theta - start.theta).max() > 0.005


def test_epochs_are_those_of_the_cpu():
    rows, targets = problem()
    members = trained(rows, targets, n_epochs=3, device=cpu())
    others = trained(rows, targets, n_epochs=3)
    assert members.epochs == others.epochs == (3,) * 5
    assert_close(members, others, 1e-3)
    found, known = members.record(), others.record()
    assert found["sigma"] == known["sigma"]
    assert_allclose(found["members_train"], known["members_train"], rtol=1e-3)


def test_a_start_on_cross_entropy():
    plan = replace(PLAN, surrogate_epochs=1)
    rows, targets = problem()
    members = trained(rows, targets, plan=plan, n_epochs=2, device=cpu())
    others = trained(rows, targets, plan=plan, n_epochs=2)
    assert_close(members, others, 1e-3)


def test_sparse_rows_are_dense_ones():
    dense, targets = problem()
    sparse, _ = problem(sp.csr_array)
    members = trained(sparse, targets, n_epochs=2, device=cpu())
    assert_same_members(members, trained(dense, targets, n_epochs=2, device=cpu()))


def test_many_labels_in_little_memory():
    rows, targets = problem(n_labels=9)
    members = trained(rows, targets, ADDITIVE, device=cpu(0.01))
    assert_same_members(members, trained(rows, targets, ADDITIVE, device=cpu()))


def test_the_same_bits_again():
    rows, targets = problem()
    members = trained(rows, targets, n_epochs=2, device=cpu())
    assert_same_members(members, trained(rows, targets, n_epochs=2, device=cpu()))


def test_another_run_goes_on_bit_for_bit_and_elsewhere():
    rows, targets = problem()
    whole = trained(rows, targets, n_epochs=3, device=cpu())
    half = trained(rows, targets, n_epochs=1, device=cpu())
    state = half.state()
    assert all(type(one) is AscentState for one in state)
    rest = trained(rows, targets, n_epochs=2, device=cpu(), begin=state)
    assert_same_members(rest, whole)
    assert_close(trained(rows, targets, n_epochs=2, begin=state), whole, 1e-3)


def test_copies_are_plain():
    rows, targets = problem()
    members = trained(rows, targets, device=cpu())
    for twin in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        one = twin(members.climbers[0])
        assert type(one) is AscentState
        assert_array_equal(one.theta, members.climbers[0].theta)
        assert one.adam.n_steps == members.climbers[0].adam.n_steps


def test_nothing_is_copied_before_it_is_asked_for():
    rows, targets = problem()
    members = trained(rows, targets, n_epochs=2, device=cpu())
    with patch.object(torch.Tensor, "cpu", side_effect=AssertionError):
        assert members.epoch == 2
        members.record()


def test_an_interrupt_leaves_all_members_before_the_epoch():
    rows, targets = problem()
    members = trained(rows, targets, device=cpu())
    known = trained(rows, targets, n_epochs=2, device=cpu())
    before = members.climbers
    with (
        patch("clml.engine._wide_trainer.smoothed_gradient", interrupted_after(2)),
        pytest.raises(KeyboardInterrupt),
    ):
        members.step(None)
    assert members.climbers is before
    members.step(None)
    assert_same_members(members, known)


def interrupted_after(n):
    """Return a gradient that Ctrl-C ends after so many steps."""
    from clml.engine._smooth_rows import smoothed_gradient

    left = [n]

    def gradient(*arguments):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return smoothed_gradient(*arguments)

    return gradient


def test_a_jury_hears_the_same():
    rows, targets = problem()
    held_out = np.stack([one.weight == 0 for one in targets])
    device = cpu()
    there = device.rows(rows)
    assert there[0] is there[2] is there[4]  # on the device once
    members = trained(rows, targets, device=device)
    networks = members.networks()
    sent = []

    def counted(theta, device):
        sent.append(theta)
        return torch.as_tensor(theta)

    with patch("torch.tensor", counted):
        said = HeldOutScorer(there, held_out, there).score(networks, None)
        assert not sent  # they are there
        again = HeldOutScorer(there, held_out, there).score(
            [n.copy() for n in networks], None
        )
        assert len(sent) == 10
    known = HeldOutScorer(rows, held_out, rows).score(networks, None)
    for name in ("sizes", "seen", "unseen"):
        assert_allclose(getattr(said, name), getattr(known, name), rtol=1e-4, atol=1e-5)
        assert_array_equal(getattr(said, name), getattr(again, name))


def test_members_of_other_numbers_of_batches():
    """44 to 47 rows are four or five batches of ten."""
    rows, targets = problem()
    counts = [np.count_nonzero(own.weight) for own in targets]
    assert len({round(n / 10) for n in counts}) == 2
    device = cpu()
    members = trained(rows, targets, device=device)
    assert len({id(one.held) for one in members.climbers}) == 2


# Of fits.
def rows_to_fit(n=120):
    return make_multilabel_classification(
        n, n_features=8, n_classes=4, n_labels=2, random_state=0
    )


def wide(**settings):
    quick = {"network": WideNetwork((16,)), "n_members": 6, "max_epochs": 4}
    quick |= {"encoding": [Robust(), Bins(), Quantiles()]}
    quick |= {"shrinkage": 0.5, "engine": "torch", "random_state": 0}
    return CLMLClassifier(**quick | settings)


@pytest.fixture(scope="module")
def fitted():
    return wide().fit(*rows_to_fit())


def assert_same(one, other):
    X, _ = rows_to_fit()
    assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert_array_equal(one.front_.losses, other.front_.losses)
    for mine, others in zip(one.networks_, other.networks_, strict=True):
        assert_array_equal(mine, others)


def test_a_fit_is_that_of_the_cpu(fitted):
    X, Y = rows_to_fit()
    known = wide(engine="auto").fit(X, Y)
    for one, other in zip(fitted.networks_, known.networks_, strict=True):
        assert type(one) is np.ndarray
        assert_allclose(one, other, atol=1e-4)
    for name in ("incumbent_validation", "incumbent_train", "sigma"):
        assert_allclose(fitted.history_[name], known.history_[name], atol=0.01)
    assert (fitted.predict(X) == known.predict(X)).mean() > 0.98


@pytest.mark.parametrize("settings", [{"n_jobs": 2}, {"memory_mb": 0.01}, {}], ids=str)
def test_what_changes_nothing(fitted, settings):
    assert_same(wide(**settings).fit(*rows_to_fit()), fitted)


def test_auto_is_the_cpu_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    X, Y = rows_to_fit()
    with patch("clml._training.builder.DeviceMembers", side_effect=AssertionError):
        wide(engine="auto", device="auto").fit(X, Y)


def test_a_gpu_trains_members_without_a_warning(monkeypatch):
    """The name of a GPU reaches what trains; here that is the CPU."""
    X, Y = rows_to_fit()
    monkeypatch.setattr(clml._classifier, "find_device", lambda name: name)
    names = []

    def here(name, memory_mb):
        names.append(name)
        return MemberDevice("cpu", memory_mb)

    monkeypatch.setattr("clml._training.builder.MemberDevice", here)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = wide(engine="auto", device="cuda:1").fit(X, Y)
    assert names == ["cuda:1"]
    assert_same(clf, wide().fit(X, Y))


@pytest.mark.parametrize(
    "device, message",
    [("abacus", "device must be 'auto', 'cpu'"), ("cuda:99", "PyTorch sees .* GPUs")],
)
def test_devices_that_are_not_there(device, message):
    with pytest.raises(ValueError, match=message):
        wide(device=device).fit(*rows_to_fit())


@pytest.mark.parametrize(
    "settings",
    [
        {"encoding": [Robust(), Bins(4)]},
        {"network": WideNetwork((8, 6), activation="tanh", linear_path=True)},
        {"network": WideNetwork((8,), dropout=0.0)},
        {"losses": ("macro_f1", "coverage")},
        {"n_members": 1},
        {"patience": 1},
        {"max_seconds": 1e-9},
    ],
    ids=str,
)
def test_settings(settings):
    X, Y = rows_to_fit()
    clf, known = (wide(engine=e, **settings).fit(X, Y) for e in ("torch", "numpy"))
    if "max_seconds" in settings:
        assert clf.n_epochs_ == 1
    if "patience" not in settings:
        found, expected = clf.history_, known.history_
        assert_allclose(found["mean_train"], expected["mean_train"], atol=0.01)


@pytest.mark.filterwarnings("ignore::UserWarning")  # labels that are constant
def test_rows_of_all_kinds():
    X, Y = rows_to_fit()
    weight = np.ones(len(X))
    weight[60:] = 0
    assert_same(wide().fit(X, Y, sample_weight=weight), wide().fit(X[:60], Y[:60]))
    sparse = wide(encoding=Bins(4)).fit(sp.csr_array(X), Y)
    assert_same(sparse, wide(encoding=Bins(4)).fit(sp.csc_array(X), Y))
    clf = wide().fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    assert clf.predict(X).shape == Y.shape
    for n in (2, 3, 7):
        assert wide(max_epochs=2).fit(X[:n], Y[:n]).predict(X).shape == Y.shape
    one = wide(max_epochs=2).fit(X, np.where(Y[:, 0], "yes", "no"))
    assert set(one.predict(X)) <= {"yes", "no"}


class StopError(Exception):
    """Stands for whatever ends a process."""


def stopping(at):
    class Stopped(MemberRun):
        def epoch(self):
            if self.progress.epoch == at:
                raise StopError
            return super().epoch()

    return Stopped


def test_a_run_that_is_broken_off_goes_on(fitted, tmp_path):
    settings = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    for at in (1, 3):
        with (
            patch("clml._training.builder.MemberRun", stopping(at)),
            pytest.raises(StopError),
        ):
            wide(**settings).fit(*rows_to_fit())
    with pytest.raises(ValueError, match="device"):  # other devices, other bits
        wide(**settings, engine="numpy").fit(*rows_to_fit())
    assert_same(wide(**settings).fit(*rows_to_fit()), fitted)


def test_warm_starts():
    X, Y = rows_to_fit()
    clf = wide(max_epochs=2, warm_start=True).fit(X, Y)
    assert all(type(one) is AscentState for one in clf._search[0])
    twin = copy.deepcopy(clf)
    assert_same(clf.fit(X, Y), twin.fit(X, Y))
    assert clf.n_epochs_ == 4
    with pytest.raises(ValueError, match="warm_start continues a search with device"):
        clf.set_params(engine="numpy").fit(X, Y)


def test_a_file(fitted, tmp_path):
    """It holds nothing of a device, and predicts without one."""
    save(fitted, tmp_path / "m.clml")
    X, _ = rows_to_fit()
    loaded = load(tmp_path / "m.clml")
    with patch("clml.engine.wide_logits", side_effect=AssertionError):
        assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert_same(pickle.loads(pickle.dumps(fitted)), fitted)
    assert_same(loaded.select("lrap"), fitted.select("lrap"))
    assert clone(loaded).engine == "torch"


@pytest.mark.parametrize("keep", [True, False])
def test_ctrl_c(fitted, keep):
    X, Y = rows_to_fit()
    clf = wide(keep_on_interrupt=keep)
    # Three steps of all members an epoch: in the middle of the third.
    gradient = interrupted_after(2 * 3 + 1)
    with patch("clml.engine._wide_trainer.smoothed_gradient", gradient):
        if keep:
            clf.fit(X, Y)
        else:
            with pytest.raises(KeyboardInterrupt):
                clf.fit(X, Y)
    assert clf.interrupted_
    assert clf.n_epochs_ == 2
    known = fitted.history_["incumbent_validation"]
    assert_array_equal(clf.history_["incumbent_validation"], known[:2])


def test_memory_that_runs_out_is_told_once(fitted, monkeypatch):
    epoch = WideTrainer._epoch

    def short(self, before, now, steps, where):
        if where.stop - where.start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return epoch(self, before, now, steps, where)

    monkeypatch.setattr(WideTrainer, "_epoch", short)
    X, Y = rows_to_fit()
    with pytest.warns(UserWarning, match="Memory ran out") as told:
        clf = wide().fit(X, Y)
    assert len(told) == 1
    assert "3 members instead of 6 are worked on at once" in str(told[0].message)
    for one, other in zip(clf.networks_, fitted.networks_, strict=True):
        assert_allclose(one, other, atol=1e-4)


class Layered:
    """A network of one's own: the wide one under another type."""

    def build(self, n_inputs, n_labels):
        return Own(WideNetwork((8,)).build(n_inputs, n_labels))


class Own:
    def __init__(self, layout):
        self.layout, self.size = layout, layout.size
        self.start, self.forward = layout.start, layout.forward
        self.backward = layout.backward


def test_networks_of_ones_own():
    X, Y = rows_to_fit()
    with pytest.raises(ValueError, match=r"a device trains WideNetwork alone.*torch"):
        wide(network=Layered()).fit(X, Y)
    clf = wide(network=Layered(), device="auto", engine="auto")
    clf._population_device = lambda: "cpu"  # as where there is a GPU
    assert clf.fit(X, Y).predict(X).shape == Y.shape

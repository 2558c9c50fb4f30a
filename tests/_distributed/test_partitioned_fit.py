"""Fits on rows in partitions: the model of the same rows in memory, bit for bit."""

import copy
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from partitioned_fits import assert_same_fit, make
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from clml import CLMLClassifier
from clml._distributed import partition_sources as _partition_sources
from clml._distributed import partitioned_fit as _partitioned_fit
from clml.datasets import RowPartitions, as_partitions, read_partitions
from clml.engine.local import LocalHolders
from clml.engine.partitioned import Held
from clml.losses import Loss, Statistic
from clml.persistence import load, save
from clml.persistence._objects import build_estimator, estimator_parts
from clml.persistence.checkpoint import Checkpoint

# Memory for some of these partitions alone.
SMALL = 0.033
# Sums of whole numbers, whose order does not matter.
EXACT = ("hamming", "micro_f1")


@dataclass
class Loads:
    """A partition in memory that counts how often it is asked for."""

    rows: tuple[Any, Any, Any]
    calls: list[int] = field(default_factory=list)

    def __call__(self):
        self.calls.append(1)
        return self.rows


def cut(rows, sizes):
    """Cut X, Y and weights or None into partitions of so many rows."""
    X, Y, weight = (*rows, None)[:3]
    assert sum(sizes) == X.shape[0]
    loaders, start = [], 0
    for size in sizes:
        here = slice(start, start + size)
        own = None if weight is None else weight[here]
        loaders.append(Loads((X[here], Y[here], own)))
        start += size
    return RowPartitions(tuple(loaders))


def n_loads(partitions):
    return sum(len(loader.calls) for loader in partitions.loaders)


@pytest.fixture
def holders(monkeypatch):
    """Return those who held partitions in the fits of a test."""
    found = []

    class Noted(LocalHolders):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            found.append(self)

        def __exit__(self, *error):
            self.n_kept_at_the_end = self.n_kept
            super().__exit__(*error)

    monkeypatch.setattr(_partition_sources, "LocalHolders", Noted)
    return found


# The same bits as rows in memory


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"covariance": "separable", "reference": "archive"},
        {"covariance": "full", "embedding_dim": 2},
        {"covariance": "cma"},
        {"validation_fraction": 0.0},
        {"init": "surrogate", "evolve": "last"},
        {"incumbent": "knee", "calibrate": False, "standardize": False},
        {"lebesgue": "monte_carlo", "n_samples": 50},
        {"search": "rank_gradient"},
        {"engine": "numpy", "n_jobs": 2},
        {"patience": 1, "max_epochs": 20, "sigma0": 1e-3},
    ],
    ids=lambda settings: ", ".join(map(str, settings.values())) or "default",
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_one_partition_is_rows_in_memory(small_data, settings, form):
    X, Y = form(small_data[0]), small_data[1]
    clf = make(**settings)
    assert_same_fit(clone(clf).fit(X, Y), clf.fit(cut((X, Y), [120])))


def test_one_partition_with_weights(small_data):
    """Rows of weight 0 are left out, before anything is drawn."""
    X, Y = small_data
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    clf = make()
    in_memory = clone(clf).fit(X, Y, sample_weight=weight)
    assert_same_fit(in_memory, clf.fit(cut((X, Y, weight), [120])))


CUTS = {
    "halves": [60, 60],
    "one row": [1, 99, 20],
    "empty ones": [0, 50, 0, 0, 70, 0],
    "many": [7] * 17 + [1],
}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("settings", [{}, {"init": "surrogate", "evolve": "last"}])
def test_whole_sums_are_those_of_rows_in_memory(small_data, name, form, settings):
    """However rows are cut, if validation rows are given and columns are not scaled."""
    X, Y = form(small_data[0][:90]), small_data[1][:90]
    X_val, Y_val = form(small_data[0][90:]), small_data[1][90:]
    clf = make(losses=EXACT, standardize=False, **settings)
    in_memory = clone(clf).fit(X, Y, X_val=X_val, y_val=Y_val)
    sizes = [min(size, 90 - done) for size, done in _with_sums(CUTS[name], 90)]
    judges = cut((X_val, Y_val), [11, 0, 19])
    assert_same_fit(in_memory, clf.fit(cut((X, Y), sizes), X_val=judges))


def _with_sums(sizes, most):
    done = 0
    for size in sizes:
        if done < most:
            yield size, done
        done = min(done + size, most)


@pytest.mark.parametrize("name", CUTS)
def test_losses_are_those_of_rows_in_memory(small_data, name):
    """Sums of fractions are rounded otherwise; nothing else is different."""
    X, Y = small_data
    clf = make(losses=("hamming", "lrap"), validation_fraction=0.0, max_epochs=1)
    in_memory = clone(clf).fit(X, Y)
    clf.fit(cut(small_data, CUTS[name]))
    np.testing.assert_allclose(clf.scaling_.mean, in_memory.scaling_.mean, rtol=1e-12)
    np.testing.assert_allclose(clf.scaling_.scale, in_memory.scaling_.scale, rtol=1e-12)
    np.testing.assert_allclose(
        clf.archive_losses_, in_memory.archive_losses_, atol=1e-5
    )


def test_a_partition_without_weight_is_none(small_data):
    X, Y = small_data
    weight = np.repeat([1.0, 0.0, 2.0], 40)
    clf = make()
    without = cut((X, Y, weight), [40, 40, 40])
    empty = RowPartitions(
        (without.loaders[0], Loads((X[:0], Y[:0], weight[:0])), without.loaders[2])
    )
    assert_same_fit(clone(clf).fit(without), clf.fit(empty))


def test_each_partition_is_split(small_data):
    clf = make().fit(cut(small_data, [10, 1, 59, 50]))
    judged = clf.history_["incumbent_validation"]
    assert judged.shape == (4, 3)
    # 2, 0 or 1, 11 or 12 and 10 rows of four labels judge: the Hamming loss tells.
    whole = [
        n
        for n in range(20, 30)
        if np.allclose(judged[:, 0] * n * 4, np.round(judged[:, 0] * n * 4), atol=1e-6)
    ]
    assert len(whole) == 1
    assert 23 <= whole[0] <= 25


@pytest.mark.parametrize("given", [{}, {"X_val": True}], ids=["share", "X_val"])
def test_nobody_is_left_to_judge(small_data, given):
    X, Y = small_data
    if given:
        given = {"X_val": RowPartitions((Loads((X[:0], Y[:0], None)),))}
        rows = cut((X, Y), [120])
    else:
        rows = cut((X[:2], Y[:2]), [1, 1])
    with pytest.raises(ValueError, match=r"No row is left to judge.*validation_fract"):
        make(validation_fraction=1e-9).fit(rows, **given)


def test_a_source_that_gives_other_rows_the_second_time(small_data):
    X, Y = small_data

    class Turning(Loads):
        def __call__(self):
            self.calls.append(1)
            turn = 1 if len(self.calls) % 2 else -1
            return X[60:][::turn], Y[60:][::turn], None

    rows = RowPartitions((Loads((X[:60], Y[:60], None)), Turning(None)))
    with pytest.raises(ValueError, match="Partition 1 is not what it was"):
        make().fit(rows)


def test_rows_that_would_be_gathered_are_not_predicted(small_data):
    da = pytest.importorskip("dask.array")
    clf = make().fit(*small_data)
    with pytest.raises(TypeError, match="dask_predict"):
        clf.predict(da.from_array(small_data[0], chunks=(50, 8)))
    with pytest.raises(TypeError, match="one by one"):
        clf.predict_proba(cut(small_data, [60, 60]))


def test_arguments_of_two_kinds(small_data):
    da = pytest.importorskip("dask.array")
    X, Y = small_data
    with pytest.raises(TypeError, match=r"X must be in partitions.*got ndarray"):
        make().fit(X, da.from_array(Y, chunks=(50, 4)))


def test_a_sample_of_many_features_has_fewer_rows(small_data, monkeypatch):
    monkeypatch.setattr(_partitioned_fit, "_SAMPLE_NUMBERS", 12 * 8)
    seen = []
    run = _partitioned_fit._run
    monkeypatch.setattr(
        _partitioned_fit, "_run", lambda *a: seen.append(a[4]) or run(*a)
    )
    make().fit(cut(small_data, [60, 60]))
    assert len(seen[0].train.Y) == 12


def test_rows_of_an_epoch_are_drawn_in_each_partition(small_data):
    clf = make(search="rank_gradient", epoch_rows=0.5, losses=EXACT)
    some = clone(clf).fit(cut(small_data, [60, 60]))
    again = clone(clf).fit(cut(small_data, [60, 60]))
    assert_same_fit(some, again)
    # 24 of 48 rows, twice, of four labels.
    in_cells = some.history_["mean_train"][:, 0] * (48 * 4)
    np.testing.assert_allclose(in_cells, np.round(in_cells), atol=1e-9)
    everything = clf.set_params(search__epoch_rows=1.0).fit(cut(small_data, [60, 60]))
    assert (everything.history_["mean_train"] != some.history_["mean_train"]).any()


def test_few_rows_judge_where_few_are_looked_at(small_data, monkeypatch):
    monkeypatch.setattr(_partitioned_fit, "SAMPLE_ROWS", 12)
    rows = cut(small_data, [60, 60])
    some = make(epoch_rows=0.5, losses=EXACT).fit(rows)
    # Half of the 12 that judge, twice, of four labels.
    in_cells = some.archive_losses_[:, 0] * (12 * 4)
    np.testing.assert_allclose(in_cells, np.round(in_cells), atol=1e-5)
    everything = make(losses=EXACT).fit(rows)
    in_cells = everything.archive_losses_[:, 0] * (24 * 4)
    np.testing.assert_allclose(in_cells, np.round(in_cells), atol=1e-5)
    assert (np.round(in_cells) % 2).any()
    # As many rows are sampled for what needs scores.
    assert (everything.temperature_, some.temperature_) != (1.0, 1.0)


def test_many_weights_choose_the_rank_gradient(small_data, monkeypatch):
    clf = make(search="auto", n_members=None, embedding_dim=None, max_epochs=1)
    rows = cut(small_data, [60, 60])
    few = clone(clf).fit(rows)
    assert few.population_size_ == 64
    assert few.layout_.embedding_dim == 20
    monkeypatch.setattr(_partitioned_fit, "MANY_WEIGHTS", few.layout_.size)
    assert clf.fit(rows).population_size_ == 256


class Missed(Loss):
    """A loss of one's own, with a statistic of its own."""

    name = "missed"
    statistics = (
        Statistic("missed_sum", lambda Y, s, t: ((s <= 0) & (Y > 0)).sum(axis=-1)),
    )

    def close(self, sums, weight, n_labels):
        return sums["missed_sum"] / (weight * n_labels)


def test_a_loss_of_ones_own(small_data):
    X, Y = small_data
    clf = make(losses=("hamming", Missed), validation_fraction=0.0, standardize=False)
    assert_same_fit(clone(clf).fit(X, Y), clf.fit(cut(small_data, [50, 70])))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_neither_memory_nor_threads_change_a_bit(small_data, holders, form, engine):
    rows = form(small_data[0]), small_data[1]
    clf = make(engine=engine)
    fits = [
        clone(clf).set_params(**changed).fit(cut(rows, [20] * 6))
        for changed in (
            {},
            {"memory_mb": SMALL},
            {"n_jobs": 2, "memory_mb": 0.9 * SMALL},
        )
    ]
    for other in fits[1:]:
        assert_same_fit(fits[0], other)
    kept = [one.n_kept_at_the_end for one in holders]
    assert kept[0] == 6
    assert max(kept[1:]) < 6
    assert holders[0].n_read == 6
    assert holders[1].n_read == 6 + 3 * (6 - kept[1])


# Files


def write_npz(folder, X, Y, sizes):
    start = 0
    for number, size in enumerate(sizes):
        here = slice(start, start + size)
        np.savez(folder / f"part-{number}.npz", X=X[here], Y=Y[here])
        start += size
    return read_partitions(folder)


def write_parquet(folder, X, Y, sizes):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    labels = [f"y{i}" for i in range(Y.shape[1])]
    frame[labels] = Y
    start = 0
    for number, size in enumerate(sizes):
        frame[start : start + size].to_parquet(folder / f"part-{number}.parquet")
        start += size
    return read_partitions(folder, labels)


def write_svmlight(folder, X, Y, sizes):
    start = 0
    for number, size in enumerate(sizes):
        here = slice(start, start + size)
        dump_svmlight_file(
            X[here],
            sp.csr_matrix(Y[here]),
            str(folder / f"part-{number}.svm"),
            multilabel=True,
            zero_based=False,
        )
        start += size
    return read_partitions(folder, n_features=X.shape[1], n_labels=Y.shape[1])


@pytest.mark.parametrize("write", [write_npz, write_parquet, write_svmlight])
def test_files_give_the_model_of_their_rows(small_data, tmp_path, write):
    X, Y = small_data  # of whole numbers: text holds them exactly
    sizes = [50, 30, 40]
    files = write(tmp_path, X, Y, sizes)
    if write is write_svmlight:
        X = sp.csr_array(X)
    clf = make()
    of_files = clone(clf).fit(files)
    clf.fit(cut((X, Y), sizes))
    if write is write_parquet:
        assert list(of_files.feature_names_in_) == [f"x{i}" for i in range(8)]
        assert list(of_files.label_names_) == [f"y{i}" for i in range(4)]
        clf.label_names_ = of_files.label_names_
    assert_same_fit(of_files, clf)


def test_maps_of_memory(small_data, tmp_path):
    X, Y = small_data
    np.save(tmp_path / "X.npy", X)
    mapped = as_partitions(np.load(tmp_path / "X.npy", mmap_mode="r"), Y, rows=50)
    clf = make(memory_mb=SMALL)
    assert_same_fit(clone(clf).fit(mapped), clf.fit(cut(small_data, [50, 50, 20])))


# Breaking off


class BrokenOffError(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture
def breaks_off(monkeypatch):
    """Break fits off after every second state that is written."""
    written = []
    offer = Checkpoint.offer

    def offered(self, *arguments, **keywords):
        offer(self, *arguments, **keywords)
        written.append(None)
        if len(written) % 2 == 0:
            raise BrokenOffError

    monkeypatch.setattr(Checkpoint, "offer", offered)
    return written


@pytest.mark.parametrize(
    "settings",
    [{}, {"search": "rank_gradient", "epoch_rows": 0.5}, {"evolve": "last"}],
    ids=["cma", "rank gradient", "last layer"],
)
def test_a_run_goes_on_bit_for_bit(small_data, tmp_path, breaks_off, settings):
    rows = cut(small_data, [50, 0, 70])
    clf = make(max_epochs=5, **settings)
    whole = clone(clf).fit(rows)
    clf.set_params(checkpoint=tmp_path, checkpoint_every=0)
    for i in range(2):
        with pytest.raises(BrokenOffError):
            # What results do not depend on may change.
            clone(clf).set_params(memory_mb=SMALL + i, n_jobs=1 + i).fit(rows)
    assert_same_fit(whole, clf.fit(rows))


def test_other_partitions_are_refused(small_data, tmp_path):
    clf = make(checkpoint=tmp_path)
    clf.fit(cut(small_data, [50, 70]))
    X, Y = small_data
    others = {
        "cut elsewhere": cut(small_data, [60, 60]),
        "other labels": cut((X, 1 - Y), [50, 70]),
        "weights": cut((X, Y, np.ones(120)), [50, 70]),
        "other order": RowPartitions(cut(small_data, [50, 70]).loaders[::-1]),
    }
    for other in others.values():
        with pytest.raises(ValueError, match="partitions"):
            clone(clf).fit(other)


def test_which_partitions_judge_is_part_of_a_fit(small_data, tmp_path):
    loaders = cut(small_data, [50, 40, 30]).loaders
    train, judge = RowPartitions(loaders[:2]), RowPartitions(loaders[2:])
    clf = make(checkpoint=tmp_path).fit(train, X_val=judge)
    with pytest.raises(ValueError, match="partitions of X_val was given there"):
        clone(clf).fit(RowPartitions(loaders))
    with pytest.raises(ValueError, match="partitions holds other values"):
        clone(clf).fit(RowPartitions(loaders[:1]), X_val=RowPartitions(loaders[1:]))


def test_a_seed_that_was_drawn_is_kept(small_data, tmp_path, breaks_off, monkeypatch):
    seeds = []
    draw = CLMLClassifier._draw_seed

    def noted(self, keeper):
        seeds.append(draw(self, keeper))
        return seeds[-1]

    monkeypatch.setattr(CLMLClassifier, "_draw_seed", noted)
    rows = cut(small_data, [50, 70])
    clf = make(random_state=None, checkpoint=tmp_path, checkpoint_every=0)
    for _ in range(2):
        with pytest.raises(BrokenOffError):
            clone(clf).fit(rows)
    finished = clone(clf).fit(rows)
    assert seeds == seeds[:1] * 3
    again = make(random_state=0)
    again._draw_seed = lambda keeper: seeds[0]
    assert_same_fit(finished, again.fit(rows))


def test_a_run_ends_when_its_time_is_over(small_data, tmp_path):
    rows = cut(small_data, [50, 70])
    clf = make(max_seconds=1e-9, checkpoint=tmp_path).fit(rows)
    assert clf.n_epochs_ == 1
    assert_same_fit(clf, make(max_epochs=1).fit(rows))


@pytest.fixture
def interrupt_at(monkeypatch):
    """Return what has the partition of a number, counted over passes, interrupt."""
    evaluate = Held.evaluate
    seen = []

    def set_to(number):
        def counted(self, *arguments):
            seen.append(self.index)
            if len(seen) == number:
                raise KeyboardInterrupt
            return evaluate(self, *arguments)

        monkeypatch.setattr(Held, "evaluate", counted)

    return set_to


@pytest.mark.parametrize("memory_mb", [512, SMALL])
def test_an_interrupt_in_the_middle_of_a_pass(
    small_data, tmp_path, interrupt_at, memory_mb
):
    rows = cut(small_data, [40, 40, 40])
    whole = make().fit(rows)
    clf = make(checkpoint=tmp_path, checkpoint_every=1000, memory_mb=memory_mb)
    # Two parts of three partitions are a pass; this is in the third one.
    interrupt_at(2 * 6 + 4)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows)
    assert clf.interrupted_
    assert clf.n_epochs_ == 2
    two = make(max_epochs=2).fit(rows)
    assert_array_equal(clf.theta_, two.theta_)
    assert clf.temperature_ == two.temperature_
    assert_same_fit(whole, clone(clf).fit(rows))


def test_an_interrupt_before_the_first_epoch_is_over(small_data, interrupt_at):
    interrupt_at(2)
    clf = make(keep_on_interrupt=True).fit(cut(small_data, [40, 80]))
    assert clf.interrupted_
    assert clf.n_epochs_ == 0
    assert clf.front_.losses.shape == (1, 3)
    assert clf.predict(small_data[0]).shape == (120, 4)


@pytest.mark.parametrize("n_before", [0, 1, 2, 3])
def test_an_interrupt_while_rows_are_read(small_data, n_before):
    """In the pass that surveys, in the one that samples, in the first epoch."""

    class Interrupts(Loads):
        def __call__(self):
            if len(self.calls) == n_before:
                raise KeyboardInterrupt
            return super().__call__()

    rows = cut(small_data, [40, 80])
    last = Interrupts(rows.loaders[1].rows)
    clf = make()
    given = RowPartitions((rows.loaders[0], last))
    if n_before == 3:
        assert_same_fit(clf.fit(given), make().fit(rows))
        return
    with pytest.raises(KeyboardInterrupt):
        clf.fit(given)


# What a fitted model is


@pytest.fixture(scope="module")
def fitted(small_data):
    names = {"feature_names": list("abcdefgh"), "label_names": ["p", "q", "r", "s"]}
    return make().fit(RowPartitions(cut(small_data, [70, 50]).loaders, **names))


def test_names_of_columns(small_data, fitted):
    assert list(fitted.feature_names_in_) == list("abcdefgh")
    assert list(fitted.label_names_) == ["p", "q", "r", "s"]
    assert fitted.n_features_in_ == 8
    assert [list(one) for one in fitted.classes_] == [[0, 1]] * 4
    unnamed = clone(fitted).fit(cut(small_data, [70, 50]))
    assert not hasattr(unnamed, "feature_names_in_")
    # And names of a fit before are forgotten.
    named = make(max_epochs=1).fit(
        pd.DataFrame(small_data[0]).add_prefix("x"), small_data[1]
    )
    assert hasattr(named, "feature_names_in_")
    assert not hasattr(named.fit(cut(small_data, [70, 50])), "feature_names_in_")


def test_predictions_are_of_rows_in_memory(small_data, fitted):
    X = pd.DataFrame(small_data[0], columns=list("abcdefgh"))
    proba = fitted.predict_proba(X)
    assert_array_equal(fitted.predict(X), (proba > 0.5).astype(int))
    for which in ("final", "mean", "lrap", "knee", 0):
        chosen = fitted.select(which)
        assert chosen.incumbent_ == which or isinstance(which, str)
        assert chosen.predict_proba(X).shape == (120, 4)
    assert_array_equal(fitted.select("mean").predict_proba(X), proba)


def test_it_is_saved_and_read(small_data, fitted, tmp_path):
    X = pd.DataFrame(small_data[0], columns=list("abcdefgh"))
    save(fitted, tmp_path / "model.clml")
    for other in (load(tmp_path / "model.clml"), pickle.loads(pickle.dumps(fitted))):
        assert_same_fit(other, fitted)
        assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


class Connected:
    """What the parameter takes for a client, and what cannot be copied."""

    def submit(self):
        """Do nothing."""

    scatter = submit

    def __deepcopy__(self, memo):
        raise TypeError("of this process alone")

    def __reduce__(self):
        raise TypeError("of this process alone")


def test_a_client_is_shared_by_clones_and_not_written(fitted, tmp_path):
    client = Connected()
    there = copy.copy(fitted).set_params(client=client)
    assert clone(there).client is client
    assert pickle.loads(pickle.dumps(there)).client is None
    save(there, tmp_path / "model.clml")
    assert load(tmp_path / "model.clml").client is None
    address = clone(fitted).set_params(client="tcp://127.0.0.1:1")
    assert pickle.loads(pickle.dumps(address)).client == "tcp://127.0.0.1:1"


def test_a_file_with_a_client_is_refused(fitted):
    parts = estimator_parts(fitted)
    assert "client" not in parts["parameters"]
    parameters = parts["parameters"] | {"client": "tcp://elsewhere:8786"}
    with pytest.raises(ValueError, match="no parameter 'client'"):
        build_estimator("CLMLClassifier", parameters, parts["attributes"])


# What is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"losses": ("hamming", lambda Y, S: 0.5)}, "sums of row statistics"),
        ({"losses": ("hamming", "macro_auc")}, "macro_auc"),
        ({"losses": ("hamming", "binary_cross_entropy")}, "no upper bound"),
        ({"search": "ascent"}, "search='ascent' steps through batches"),
        ({"n_members": 4}, "n_members=4 judge each other"),
        ({"warm_start": True}, "warm_start=True goes on with rows in memory"),
        ({"engine": "dask"}, "client is None, and there is no client"),
        ({"client": 3}, "client"),
        ({"client": Connected()}, r"client must be a distributed\.Client"),
        ({"engine": "numpy", "device": "cuda"}, "cuda"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"incumbent": "best"}, "incumbent must be one of"),
        ({"max_front": 3}, "max_front must be greater"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_are_refused_before_a_row_is_read(small_data, settings, message):
    rows = cut(small_data, [50, 70])
    with pytest.raises((ValueError, TypeError), match=message):
        make(**settings).fit(rows)
    assert n_loads(rows) == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": 1}, ValueError, "X is RowPartitions.*leave y and sample_weight out"),
        ({"sample_weight": 1}, ValueError, "X is RowPartitions"),
        ({"X_val": 0}, TypeError, "X_val must be in partitions.*got ndarray"),
        ({"y_val": 1}, TypeError, "X_val must be in partitions.*got NoneType"),
        ({"X_val": "self", "y_val": 1}, ValueError, "X_val is RowPartitions"),
        ({"X_val": "delayed"}, TypeError, "both be RowPartitions, got RowPartitions"),
        ({"X_val": "names"}, ValueError, "X_val must have the labels of X"),
    ],
)
def test_arguments_that_do_not_fit(small_data, change, error, message):
    rows = RowPartitions(cut(small_data, [50, 70]).loaders, label_names=list("pqrs"))
    other = RowPartitions(rows.loaders, label_names=list("qprs"))
    delayed = pytest.importorskip("dask").delayed
    kinds = {"self": rows, "names": other, "delayed": [delayed(small_data)]}
    given = {
        name: kinds[which] if isinstance(which, str) else small_data[which]
        for name, which in change.items()
    }
    with pytest.raises(error, match=message):
        make().fit(rows, **given)
    assert n_loads(rows) == 0


def _with_nan(X):
    X = X.copy()
    X[3, 2] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, Y, w: (_with_nan(X), Y, w),
            "Partition 3 is no rows.*X contains NaN",
        ),
        (lambda X, Y, w: (X, Y * 2, w), "Partition 3 is no rows.*y must"),
        (lambda X, Y, w: (X[1:], Y, w), "Partition 3.*X has 29 rows and y has 30"),
        (lambda X, Y, w: (X[:, 0], Y, w), "Partition 3.*2D array"),
        (lambda X, Y, w: (X, Y, w[1:]), "Partition 3.*29 weights for 30 rows"),
        (lambda X, Y, w: (X, Y, -w), "Partition 3.*weights must be finite"),
        (lambda X, Y, w: (X,), "Partition 3.*unpack"),
        (lambda X, Y, w: (X[:, 1:], Y, w), "8 features and 4 labels in one and 7 and"),
        (lambda X, Y, w: (X, Y[:, 1:], w), "and 4 labels in one and 8 and 3 in"),
        (lambda X, Y, w: (X, Y, None), "Some partitions have row weights and others"),
    ],
)
def test_partitions_that_are_no_rows(small_data, change, message):
    weight = np.linspace(1, 2, 120)
    rows = list(cut((*small_data, weight), [30] * 4).loaders)
    rows[3] = Loads(change(*rows[3].rows))
    with pytest.raises(ValueError, match=message):
        make().fit(RowPartitions(tuple(rows)))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"feature_names": ["a"]}, "have 8 features, but 1 names"),
        ({"label_names": ["a", "b"]}, "have 4 labels, but 2 names"),
    ],
)
def test_names_that_are_too_few(small_data, names, message):
    with pytest.raises(ValueError, match=message):
        make().fit(RowPartitions(cut(small_data, [120]).loaders, **names))


@pytest.mark.parametrize("weight", [None, 0.0])
def test_no_rows_at_all(small_data, weight):
    X, Y = small_data
    rows = (X[:0], Y[:0]) if weight is None else (X, Y, np.zeros(120))
    with pytest.raises(ValueError, match="at least one row of positive weight"):
        make().fit(cut(rows, [0, 0] if weight is None else [60, 60]))


def test_a_partition_that_does_not_fit(small_data):
    X, Y = (np.tile(part, (20, 1)) for part in small_data)
    message = r"memory_mb must hold a partition, got memory_mb=0\.1, .* partition 1"
    with pytest.raises(ValueError, match=message):
        make(memory_mb=0.1).fit(cut((X, Y), [100, 2300]))


def test_labels_that_no_row_has_are_told(small_data):
    X, Y = small_data
    none = Y.copy()
    none[:, 1] = 0
    with pytest.warns(UserWarning, match="y1|label"):
        make().fit(cut((X, none), [60, 60]))


def test_a_column_of_two_classes_is_for_rows_in_memory(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match="Partition 0 is no rows to fit: y"):
        make().fit(cut((X, Y[:, 0]), [60, 60]))

"""CLMLClassifier with a network of its own: wide members that differ in encoding."""

import copy
import pickle
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml import Ascent, CLMLClassifier, LebesgueTunedClassifier, _classifier
from clml._training import ensemble as _ensemble
from clml._training import recipe as _recipe
from clml._training.builder import followed_rows
from clml._training.ensemble import (
    MIXED,
    MIXED_INDICATORS,
    MIXED_MANY,
    MIXED_NUMBERS,
    Ensemble,
    default_encodings,
)
from clml._training.left_out import (
    encodings_in_turn,
    folds_left_out,
    kinds_left_out,
    members_of_kinds,
)
from clml._training.members import MemberRun
from clml._training.recipe import MANY_ROWS, default_members
from clml.datasets import as_partitions
from clml.encoding import Bins, GaussianKernel, Quantiles, Robust, Standardized
from clml.losses import loss_values
from clml.network import PaperNetwork, WideNetwork
from clml.persistence import load, save

LOSSES = ("hamming", "lrap", "micro_f1")
SMALL = WideNetwork((16,))
FAST = Ascent(learning_rate=0.01)


def rows(n=120, seed=0):
    return make_multilabel_classification(
        n, n_features=8, n_classes=4, n_labels=2, random_state=seed
    )


def wide(**settings):
    # A shrinkage that is given need not be chosen, which takes longest here.
    quick = {"network": SMALL, "n_members": 6, "max_epochs": 4, "shrinkage": 0.5}
    settings = quick | settings
    return CLMLClassifier(random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    X, Y = rows()
    return wide(max_epochs=12).fit(X, Y)


def assert_same(one, other, X):
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.front_.losses, other.front_.losses)


def test_shapes(fitted):
    X, Y = rows()
    assert fitted.predict(X).shape == Y.shape
    assert fitted.predict_proba(X).shape == Y.shape
    assert len(fitted.networks_) == len(fitted.member_scale_) == 6
    assert fitted.theta_.shape == (8,)
    assert not hasattr(fitted, "layout_")
    assert not hasattr(fitted, "scaling_")
    assert fitted.history_["incumbent_validation"].shape == (12, 3)
    assert fitted.n_epochs_ == 12


def test_it_learns():
    X, Y = rows(600)
    clf = wide(network=WideNetwork((64, 64)), n_members=10, max_epochs=40)
    clf.fit(X[:400], Y[:400])
    found = loss_values(Y[400:], clf.decision_function(X[400:]), LOSSES)
    before = loss_values(Y[400:], np.tile(Y[:400].mean(0) - 0.5, (200, 1)), LOSSES)
    assert (found < 0.75 * before).all()


def test_rows_are_judged_by_members_that_left_them_out():
    """Labels of pure noise: who has seen a row knows it, the others cannot."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 8)), rng.integers(0, 2, size=(60, 4))
    network = WideNetwork((128,), dropout=0.0)
    clf = wide(network=network, max_epochs=60, search=FAST).fit(X, Y)
    assert clf.history_["incumbent_train"][-1, 0] < 0.2
    assert clf.history_["incumbent_validation"][-1, 0] > 0.35


def test_members_of_a_fold_differ_in_encoding(fitted):
    ensemble = fitted.ensemble_
    # Five encodings over five folds, and others for the second round.
    assert ensemble.chosen == (0, 1, 2, 3, 4, 1)
    assert len(MIXED_NUMBERS) == len(ensemble.encodings) == 5
    # Members on features of a kernel need no hidden units.
    hidden = [layout.hidden for layout in ensemble.layouts]
    assert hidden == [(16,), (16,), (), (), ()]
    turns = np.reshape(encodings_in_turn(15, 3), (3, 5))
    assert (np.sort(turns, axis=0) == [[0], [1], [2]]).all()
    assert encodings_in_turn(2, 3) == [0, 1]
    assert encodings_in_turn(1, 3) == [0]


def test_encodings_by_default():
    """Absolute differences are for few dense rows of numbers."""
    X, few = np.random.default_rng(0).normal(size=(20, 3)), MANY_ROWS // 20
    assert default_encodings(X) == MIXED_NUMBERS
    assert default_encodings(np.where(X > 0, X, np.nan)) == MIXED_NUMBERS
    assert default_encodings(sp.csr_array(X)) == MIXED
    for many in (np.tile(X, (few, 1)), np.tile(X > 0, (few, 1))):
        assert default_encodings(many) == MIXED_MANY
    indicators = (X > 0).astype(float)
    for other in (indicators, sp.csr_array(indicators)):
        assert default_encodings(other) == MIXED_INDICATORS
    assert [default_members(n, True) for n in (9_999, 10_000)] == [20, 5]


def test_each_encoding_has_members_for_all_rows_by_default():
    X, Y = rows()
    clf = wide(encoding="auto", n_members=None, max_epochs=1).fit(X, Y)
    # Ten of each of three kernels, which are quickly trained.
    assert np.bincount(clf.ensemble_.chosen).tolist() == [5, 5, 10, 10, 10]
    assert np.bincount(members_of_kinds([False, True], 1000)).tolist() == [5, 5]
    some = wide(encoding=[Robust(), Bins()], n_members=None, max_epochs=1).fit(X, Y)
    assert len(some.networks_) == 20


def test_as_many_members_as_folds_and_encodings():
    X, Y = rows()
    clf = CLMLClassifier(max_epochs=1, random_state=0)
    assert len(clf.fit(X, Y).networks_) == 40
    assert len(clf.fit((X > 0).astype(float), Y).networks_) == 25
    assert len(clf.set_params(encoding=Robust()).fit(X, Y).networks_) == 20


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(fitted, n_jobs):
    X, Y = rows()
    assert_same(wide(max_epochs=12, n_jobs=n_jobs).fit(X, Y), fitted, X)


def test_a_refit_is_the_same(fitted):
    X, Y = rows()
    again = clone(fitted).fit(X, Y)
    assert_same(again, fitted, X)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_array])
def test_sparse_rows(form):
    rng = np.random.default_rng(0)
    X = (rng.random((100, 30)) < 0.1).astype(float)
    Y = np.stack([X[:, :10].any(1), X[:, 10:20].any(1)], axis=1).astype(int)
    clf = wide(max_epochs=60, search=FAST).fit(form(X), Y)
    # Columns of 0 and 1 are one and the same in all but kernels of other widths.
    assert len(clf.ensemble_.encodings) == 3
    np.testing.assert_allclose(
        clf.predict_proba(form(X)), clf.predict_proba(X), rtol=1e-5
    )
    assert (clf.predict(form(X)) == Y).mean() > 0.8


def test_sparse_rows_after_dense_ones(fitted, monkeypatch):
    X, _ = rows()
    expected = fitted.predict_proba(X)
    np.testing.assert_array_equal(fitted.predict_proba(sp.csr_array(X)), expected)
    monkeypatch.setattr("clml._training.predictor._BLOCK", 50)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "encoding, n_kinds",
    [(Standardized(), 1), ([Robust(), Bins(4)], 2), ((Quantiles(),), 1)],
)
def test_encodings(encoding, n_kinds):
    X, Y = rows()
    clf = wide(n_members=10, encoding=encoding).fit(X, Y)
    assert len(clf.ensemble_.encodings) == n_kinds


def test_validation_rows_that_are_given():
    X, Y = rows()
    clf = wide().fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    assert clf.predict(X).shape == Y.shape


@pytest.mark.filterwarnings("ignore::UserWarning")  # labels that are constant
def test_one_member_and_few_rows():
    X, Y = rows(40)
    assert wide(n_members=1).fit(X, Y).predict(X).shape == Y.shape
    for n in (2, 3, 4, 7):
        assert wide().fit(X[:n], Y[:n]).predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="column that differs from row to row"):
        wide().fit(np.ones((10, 3)), Y[:10])


def test_one_label_and_names_of_classes():
    X, Y = rows()
    clf = wide().fit(X, np.where(Y[:, 0], "yes", "no"))
    assert set(clf.predict(X)) <= {"yes", "no"}
    assert clf.predict_proba(X).shape == (len(X), 2)


def test_weights_of_rows():
    X, Y = rows()
    weight = np.ones(len(X))
    weight[60:] = 0
    assert_same(wide().fit(X, Y, sample_weight=weight), wide().fit(X[:60], Y[:60]), X)


def test_select(fitted):
    X, _ = rows()
    chosen = fitted.select("hamming")
    assert chosen.front_ is fitted.front_
    place = chosen.incumbent_
    assert place in (fitted.front_.losses[:, 0].argmin(), fitted.front_.default)
    assert chosen.predict(X).shape == (len(X), 4)


def test_what_predicts_is_the_average_mapped(fitted):
    X, _ = rows()
    clf = fitted.select(0)
    np.testing.assert_array_equal(clf.theta_, fitted.front_.theta[0])
    scale, bias = np.split(fitted.front_.theta[0].astype(float), 2)
    members = zip(fitted.ensemble_.rows(X), fitted.networks_, strict=True)
    logits = np.stack([rows.logits(network) for rows, network in members])
    # Each has a root mean square of 1 on the training rows that are followed.
    some = logits[:, followed_rows(len(X))].astype(float)
    sizes = np.sqrt(np.square(some).mean(axis=(1, 2)))
    np.testing.assert_allclose(fitted.member_scale_, 1 / sizes, rtol=1e-5)
    average = (logits / sizes[:, None, None]).mean(axis=0)
    np.testing.assert_allclose(
        clf.decision_function(X) * clf.temperature_, scale * average + bias, atol=1e-5
    )


def test_a_file(fitted, tmp_path):
    X, _ = rows()
    save(fitted, tmp_path / "m.clml")
    loaded = load(tmp_path / "m.clml")
    assert_same(loaded, fitted, X)
    assert loaded.network == fitted.network
    assert_same(loaded.select("lrap"), fitted.select("lrap"), X)
    assert clone(loaded).get_params()["network__hidden"] == (16,)


@pytest.mark.parametrize("encoding", [Bins(4), [Robust(2.0), Standardized()]])
def test_a_file_of_settings(encoding, tmp_path):
    save(wide(encoding=encoding), tmp_path / "m.clml")
    assert load(tmp_path / "m.clml").encoding == encoding


def test_files_that_do_not_fit_together(fitted, tmp_path):
    """Kernels trust their arrays: whatever is out of place is not written."""
    ensemble, networks = fitted.ensemble_, fitted.networks_
    turned = (*ensemble.encodings[1:], ensemble.encodings[0])
    wrong = [
        ("theta_", fitted.theta_[:-1]),
        ("theta_", np.full_like(fitted.theta_, np.nan)),
        ("member_scale_", fitted.member_scale_[1:]),
        ("member_scale_", -fitted.member_scale_),
        ("networks_", networks[:-1]),
        ("networks_", (networks[0][:-1], *networks[1:])),
        ("networks_", (networks[0].astype(float), *networks[1:])),
        ("networks_", tuple(np.full_like(one, np.nan) for one in networks)),
        ("networks_", list(networks)),
        ("ensemble_", replace(ensemble, n_labels=3)),
        ("ensemble_", replace(ensemble, chosen=(0,) * 5 + (7,))),
        ("ensemble_", replace(ensemble, chosen=())),
        ("ensemble_", replace(ensemble, layouts=ensemble.layouts[:1])),
        ("ensemble_", replace(ensemble, encodings=turned)),
        ("ensemble_", replace(ensemble, encodings=(None, None))),
        (
            "ensemble_",
            replace(
                ensemble,
                layouts=tuple(replace(x, dropout=2.0) for x in ensemble.layouts),
            ),
        ),
        ("ensemble_", None),
        ("front_", replace(fitted.front_, theta=fitted.front_.theta[:, 1:])),
    ]
    for name, value in wrong:
        broken = copy.copy(fitted)
        setattr(broken, name, value)
        with pytest.raises((ValueError, TypeError)):
            save(broken, tmp_path / "m.clml")


def test_members_without_a_share(fitted, tmp_path):
    """They are kept, and need not be computed."""
    X, _ = rows()
    some = copy.copy(fitted)
    some.member_scale_ = fitted.member_scale_ * np.array([0, 1, 1] * 2)
    expected = some.predict_proba(X)
    save(some, tmp_path / "m.clml")
    np.testing.assert_array_equal(load(tmp_path / "m.clml").predict_proba(X), expected)
    some.networks_ = tuple(
        np.zeros_like(one) if scale == 0 else one
        for one, scale in zip(some.networks_, some.member_scale_, strict=True)
    )
    np.testing.assert_array_equal(some.predict_proba(X), expected)


def test_what_predicts_is_not_part_of_a_model(fitted):
    X, _ = rows()
    one = pickle.loads(pickle.dumps(fitted))
    before = pickle.dumps(one)
    expected = one.predict_proba(X)
    assert len(pickle.dumps(one)) == len(before)
    np.testing.assert_array_equal(copy.deepcopy(one).predict_proba(X), expected)
    # Other weights in their place are those that predict.
    one.networks_ = tuple(2 * network for network in one.networks_)
    assert (one.predict_proba(X) != expected).any()


def test_a_run_that_is_broken_off_goes_on(fitted, tmp_path):
    X, Y = rows()

    class Stop(Exception):
        pass

    def stopping(at):
        class Stopped(MemberRun):
            def epoch(self):
                if self.progress.epoch == at:
                    raise Stop
                return super().epoch()

        return Stopped

    settings = {"max_epochs": 12, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    for at in (1, 5, 11):
        with (
            patch("clml._training.builder.MemberRun", stopping(at)),
            pytest.raises(Stop),
        ):
            wide(**settings).fit(X, Y)
    assert_same(wide(**settings).fit(X, Y), fitted, X)


def test_a_state_of_another_network_is_refused(tmp_path):
    X, Y = rows()
    folder = tmp_path / "c"
    wide(checkpoint=folder).fit(X, Y)
    with pytest.raises(ValueError, match="network"):
        wide(checkpoint=folder, network=WideNetwork((17,))).fit(X, Y)
    with pytest.raises(ValueError, match="encoding"):
        wide(checkpoint=folder, encoding=Bins()).fit(X, Y)


def test_warm_starts(fitted):
    X, Y = rows()
    clf = wide(max_epochs=3, warm_start=True).fit(X, Y).fit(X, Y)
    assert clf.n_epochs_ == 6
    with pytest.raises(ValueError, match="warm_start continues a search with network"):
        clf.set_params(network=WideNetwork((8,))).fit(X, Y)


@pytest.mark.filterwarnings("ignore:warm_start goes on with other rows")
@pytest.mark.parametrize("sizes", [(110, 90), (90, 110), (110, 20)])
def test_a_warm_start_with_more_or_fewer_rows_has_the_same_members(sizes, monkeypatch):
    for module in (_classifier, _ensemble, _recipe):
        monkeypatch.setattr(module, "MANY_ROWS", 100)
    clf = CLMLClassifier(
        network=SMALL, max_epochs=1, shrinkage=0.5, warm_start=True, random_state=0
    )
    chosen = []
    for n in sizes:
        X, Y = rows(n)
        chosen.append(clf.fit(X, Y).ensemble_.chosen)
        assert np.isfinite(clf.decision_function(X)).all()
    assert clf.n_epochs_ == 2
    assert chosen[0] == chosen[1]


def test_weights_that_predict_cannot_be_written_to(fitted):
    with pytest.raises(ValueError, match="read-only"):
        fitted.networks_[0][:] = 0


def test_warm_starts_notice_a_network_that_was_changed():
    X, Y = rows()
    clf = wide(warm_start=True, network=WideNetwork((16,))).fit(X, Y)
    clf.network.hidden = (32,)
    with pytest.raises(ValueError, match="warm_start continues a search with network"):
        clf.fit(X, Y)


def test_encodings_that_differ_in_one_number():
    X, Y = rows()
    clf = wide(encoding=[Robust(2.0), Robust(5.0)], max_epochs=1).fit(X, Y)
    assert [one.limit for one in clf.ensemble_.encodings] == [2.0, 5.0]


@pytest.mark.parametrize("index", [50_000_000, -7, 8])
def test_sparse_rows_with_indices_out_of_range(fitted, index):
    """Kernels trust indices: they would read, and write, memory that is not theirs."""
    X, Y = rows()
    bad = sp.csr_array(X)
    bad.indices = bad.indices.copy()
    bad.indices[3] = index
    for clf in (fitted, CLMLClassifier(max_epochs=1, n_members=2)):
        with pytest.raises(ValueError, match="X is no sound sparse matrix"):
            clone(clf).fit(bad, Y)
    with pytest.raises(ValueError, match="X is no sound sparse matrix"):
        fitted.predict(bad)
    with pytest.raises(ValueError, match="X is no sound sparse matrix"):
        Bins().fit(bad)


def test_dense_rows_that_sparse_ones_judge():
    X, Y = rows()
    dense = wide().fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    sparse = wide().fit(X[:80], Y[:80], X_val=sp.csr_array(X[80:]), y_val=Y[80:])
    assert_same(dense, sparse, X)


def test_a_pipeline_inside_a_tuned_one(tmp_path):
    pytest.importorskip("skops")
    X, Y = rows()
    inner = make_pipeline(StandardScaler(), wide(max_epochs=1, encoding=[Bins(4)]))
    tuned = LebesgueTunedClassifier(inner, cv=2, max_epochs=1, random_state=0)
    tuned.fit(X, Y)
    save(tuned, tmp_path / "m.clml")
    loaded = load(tmp_path / "m.clml")
    np.testing.assert_array_equal(loaded.predict_proba(X), tuned.predict_proba(X))


def test_a_network_of_another_kind_afterwards(fitted):
    X, Y = rows()
    clf = wide().fit(X, Y)
    clf.set_params(network="paper", n_members=2).fit(X, Y)
    assert not hasattr(clf, "ensemble_")
    assert clf.networks_.shape == (2, clf.layout_.size)
    clf.set_params(network=SMALL).fit(X, Y)
    assert not hasattr(clf, "layout_")


def test_a_name_for_the_wide_network():
    X, Y = rows(40)
    pairs = [("wide", WideNetwork()), ("paper", PaperNetwork())]
    for pair in pairs:
        named, given = (
            wide(network=network, n_members=2, max_epochs=1).fit(X, Y)
            for network in pair
        )
        assert_same(named, given, X)


def test_setting_a_parameter_copies_the_network():
    network = WideNetwork((16,))
    expected = WideNetwork((16,), dropout=0.1)
    clf = CLMLClassifier(network=network).set_params(network__dropout=0.1)
    assert clf.network == expected
    clf = CLMLClassifier().set_params(network=network, network__dropout=0.1)
    assert clf.network == expected
    assert network == WideNetwork((16,))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"search": "cma"}, "is trained by search='ascent'"),
        ({"search": "rank_gradient"}, "trained by search='ascent'"),
        ({"encoding": []}, "encoding must be 'auto' or encodings"),
        ({"encoding": [1]}, "encoding must be 'auto' or encodings"),
        ({"encoding": "bins"}, "'encoding' parameter"),
        ({"network": "deep"}, "'network' parameter"),
        ({"network": WideNetwork(4)}, "hidden must be a sequence of integers"),
        ({"network": None}, "'network' parameter"),
        ({"network": WideNetwork}, r"such as WideNetwork\(\), got the class itself"),
        ({"network": "paper", "encoding": Bins()}, "encoding is how columns enter"),
    ],
)
def test_settings_without_effect_or_sense(settings, message):
    X, Y = rows()
    with pytest.raises(ValueError, match=message):
        wide(**settings).fit(X, Y)


def test_rows_in_partitions_are_refused():
    X, Y = rows()
    with pytest.raises(ValueError, match="one network of the paper's kind"):
        wide().fit(as_partitions(X, Y, rows=50))


@pytest.mark.parametrize("which", ["mean", "hamming"])
def test_onnx(fitted, tmp_path, which):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, _ = rows()
    X = X.astype(np.float32)
    clf = fitted.select(which)
    clf.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    _, probabilities, labels = session.run(None, {"features": X})
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(labels, clf.predict(X))


def test_networks_of_ones_own_are_no_onnx_graphs(tmp_path):
    pytest.importorskip("onnx")
    clf = wide(network=Linear(), max_epochs=1).fit(*rows())
    with pytest.raises(ValueError, match="cannot be written as an ONNX graph"):
        clf.to_onnx(tmp_path / "m.onnx")


def test_a_surrogate_start():
    X, Y = rows()
    clf = wide(search=Ascent(init="surrogate"), max_epochs=10).fit(X, Y)
    assert clf.predict(X).shape == Y.shape


def test_folds_by_hand():
    Y = np.tile(np.eye(2, dtype=np.uint8), (10, 1))
    out = folds_left_out(Y, 12, 0)
    assert (out.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(out[:5], out[5:10])
    np.testing.assert_array_equal(out[:2], out[10:])
    assert (out[:5].sum(axis=0) == 1).all()
    assert (folds_left_out(Y, 3, 0).sum(axis=0) == 1).all()
    assert not folds_left_out(Y, 1, 0).any()
    assert not folds_left_out(Y[:2], 4, 0).any()
    assert (folds_left_out(Y[:3], 4, 0).sum(axis=1) == 1).all()


def test_parts_that_kinds_leave_out():
    Y = np.tile(np.eye(2, dtype=np.uint8), (20, 1))
    kinds = members_of_kinds([False, True, False], len(Y))
    out = kinds_left_out(Y, kinds, 0)
    assert out.sum(axis=1).tolist() == 5 * [8] + 10 * [4] + 5 * [8]
    for kind in range(3):
        assert (out[np.equal(kinds, kind)].sum(axis=0) == 1).all()
    np.testing.assert_array_equal(out[:5], out[15:])
    np.testing.assert_array_equal(out[0], out[5] | out[6])
    assert (out != kinds_left_out(Y, kinds, 1)).any()


@pytest.mark.parametrize("n", [3, 4, 7, 12])
def test_fewer_rows_than_parts(n):
    Y = np.tile(np.eye(2, dtype=np.uint8), (6, 1))[:n]
    out = kinds_left_out(Y, members_of_kinds([False, True], n), 0)
    assert out.any(axis=1).all() and not out.all(axis=1).any()
    for own in (out[:5], out[5:]):
        assert own.any(axis=0).all()
    assert not kinds_left_out(Y[:2], [0, 0, 1, 1], 0).any()


def test_equal_encodings_are_one():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    encodings = (Robust(), Bins(), Quantiles())
    ensemble = Ensemble.fit(X, None, 2, SMALL, encodings, [0, 1, 2])
    assert len(ensemble.encodings) == 1
    assert ensemble.chosen == (0, 0, 0)
    first, second, _ = ensemble.rows(X)
    assert first is second


# --- networks of one's own ----------------------------------------------------------


class LinearLayout:
    """Weights (D + 1, K), and noise on the inputs while it is trained."""

    def __init__(self, n_inputs, n_labels):
        self.shape = (n_inputs + 1, n_labels)
        self.size = (n_inputs + 1) * n_labels

    def start(self, generator):
        return generator.normal(scale=0.1, size=self.size).astype(np.float32)

    def forward(self, theta, X, generator=None):
        if generator is not None:
            X = X + generator.normal(scale=0.1, size=X.shape).astype(np.float32)
        matrix = theta.reshape(self.shape)
        return X @ matrix[:-1] + matrix[-1], X

    def backward(self, slope, memory):
        return np.vstack([memory.T @ slope, slope.sum(axis=0)]).ravel()


class Linear:
    def build(self, n_inputs, n_labels):
        return LinearLayout(n_inputs, n_labels)


def test_a_network_of_ones_own():
    X, Y = rows(300)
    clf = wide(network=Linear(), max_epochs=40, search=Ascent(learning_rate=0.03))
    clf.fit(X[:200], Y[:200])
    found = loss_values(Y[200:], clf.decision_function(X[200:]), LOSSES)
    before = loss_values(Y[200:], np.tile(Y[:200].mean(0) - 0.5, (100, 1)), LOSSES)
    assert (found < before).all()
    assert_same(clone(clf).fit(X[:200], Y[:200]), clf, X)
    chosen = clf.select("micro_f1")
    assert chosen.predict(X).shape == Y.shape


def test_a_network_of_ones_own_is_not_saved(tmp_path):
    X, Y = rows()
    clf = wide(network=Linear(), max_epochs=1).fit(X, Y)
    with pytest.raises(ValueError, match="got a layout of LinearLayout"):
        save(clf, tmp_path / "m.clml")


@pytest.mark.parametrize(
    "method, result, message",
    [
        (
            "forward",
            lambda *_: (np.zeros((3, 4)), None),
            "forward must return a float32",
        ),
        ("forward", lambda *_: ([1], None), "forward must return a float32 array"),
        (
            "backward",
            lambda *_: np.zeros(3, np.float32),
            "backward must return a float",
        ),
    ],
)
def test_networks_that_return_nonsense(method, result, message, monkeypatch):
    monkeypatch.setattr(LinearLayout, method, result)
    with pytest.raises(ValueError, match=message):
        wide(network=Linear()).fit(*rows())


# --- kinds of members -----------------------------------------------------------------


def test_each_kind_keeps_the_epoch_that_it_was_best_at():
    """A kind that is spoilt after its second epoch stays as it was then."""
    X, Y = rows()
    clf = wide(n_members=10, max_epochs=6, encoding=[Robust(), GaussianKernel()])
    seen = []
    original = MemberRun.epoch

    def epoch(run):
        record = original(run)
        assert len(run.progress.best.by_kind) == 2
        seen.append([a.copy() for a in run.progress.best.networks])
        if len(seen) >= 2:  # what kernels learn from here on is wrong
            run.members.climbers = tuple(
                replace(one, theta=-one.theta, average=-one.average) if kind else one
                for one, kind in zip(
                    run.members.climbers, run.jury.kind_of, strict=True
                )
            )
        return record

    with patch.object(MemberRun, "epoch", epoch):
        clf.fit(X, Y)
    kinds = clf.ensemble_.chosen
    for before, after, kind in zip(seen[1], clf.networks_, kinds, strict=True):
        assert np.array_equal(before, after) == (kind == 1)


def test_shares_of_kinds():
    X, Y = rows()
    clf = wide(n_members=10, encoding=[Robust(), GaussianKernel()]).fit(X, Y)
    kinds = np.array(clf.ensemble_.chosen)
    members = zip(clf.ensemble_.rows(X), clf.networks_, strict=True)
    logits = np.stack([own.logits(network) for own, network in members])
    some = logits[:, followed_rows(len(X))].astype(float)
    sizes = np.sqrt(np.square(some).mean(axis=(1, 2)))
    shares = clf.member_scale_ * sizes / 10
    found = [shares[kinds == kind].sum() for kind in range(2)]
    np.testing.assert_allclose(sum(found), 1.0, rtol=1e-5)
    # The mean of what fifty halves chose, each a half or quarters.
    assert np.isclose(found[0] * 200 % 1, [0, 1], atol=1e-3).any()
    assert 0 <= found[0] <= 1


@pytest.mark.parametrize(
    "given, units",
    [(None, [(512,), (256,), ()]), ((32,), [(32,), (32,), ()])],
)
def test_widths_of_networks(given, units):
    """Encodings have a say where nobody else has; features of kernels always do."""
    X, Y = rows()
    clf = wide(
        network=WideNetwork(hidden=given),
        encoding=[Robust(), Bins(), GaussianKernel()],
        n_members=3,
        max_epochs=1,
    ).fit(X, Y)
    assert [layout.hidden for layout in clf.ensemble_.layouts] == units


def test_landmarks_are_judged_as_rows_that_come_later():
    """What a member says of a landmark that it left out is worth what it says later."""
    generator = np.random.default_rng(0)
    X = (generator.random((600, 150)) < 0.06).astype(float)
    truth = X @ generator.normal(size=(150, 5)) + 0.3 * generator.normal(size=(600, 5))
    Y = (truth > np.quantile(truth, 0.7, axis=0)).astype(int)
    clf = CLMLClassifier(
        ("lrap",),
        encoding=GaussianKernel(width=3.0),
        n_members=10,
        max_epochs=30,
        random_state=0,
    ).fit(X[:300], Y[:300])
    judged = clf.archive_losses_.min()
    (later,) = loss_values(Y[300:], clf.decision_function(X[300:]), ("lrap",))
    assert 0.8 < judged / later < 1.25  # 2.2 with a direction of their own


def test_kinds_that_do_not_judge_every_row_are_one():
    X, Y = rows()
    clf = wide(n_members=6).fit(X, Y)
    logits = [
        own.logits(network)[followed_rows(len(X))]
        for own, network in zip(clf.ensemble_.rows(X), clf.networks_, strict=True)
    ]
    sizes = [np.sqrt(np.square(z, dtype=float).mean()) for z in logits]
    np.testing.assert_allclose(clf.member_scale_, 1 / np.array(sizes), rtol=1e-5)


def test_one_column(tmp_path):
    """Which is contiguous either way: it must not be sorted in place."""
    X = np.random.default_rng(0).normal(size=(60, 1))
    Y = np.column_stack([X[:, 0] > 0, X[:, 0] < 0.5]).astype(int)
    before = X.copy()
    clf = wide(max_epochs=40, search=FAST).fit(X, Y)
    np.testing.assert_array_equal(X, before)
    assert (clf.predict(X) == Y).mean() > 0.9
    assert_same(wide(max_epochs=40, search=FAST).fit(X.tolist(), Y), clf, X)


def test_threads_of_blas_change_nothing():
    """Rows of which many are the same: eigenvectors are free to turn."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    X = np.kron(np.eye(30), np.ones((4, 1)))
    Y = np.column_stack([X[:, :10].any(1), X[:, 5:20].any(1)]).astype(int)
    found = []
    for n in (1, 2):
        with threadpoolctl.threadpool_limits(n):
            found.append(wide(encoding=GaussianKernel()).fit(X, Y).predict_proba(X))
    np.testing.assert_array_equal(*found)


def test_threads_predict_the_same_bits(fitted):
    X = np.tile(rows()[0], (30, 1))
    assert len(X) > 2000
    expected = fitted.decision_function(X)
    with_threads = copy.deepcopy(fitted).set_params(n_jobs=2)
    np.testing.assert_array_equal(with_threads.decision_function(X), expected)
    np.testing.assert_array_equal(fitted.decision_function(X[:7]), expected[:7])

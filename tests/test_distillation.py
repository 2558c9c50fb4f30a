"""What learns from a stack, and how."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from clml import CLMLClassifier, LebesgueStackingClassifier, _stacking
from clml._maps.teacher import Teacher, soft_targets
from clml._training.ascent import AscentState, after_epoch
from clml._training.members import MemberRun
from clml._training.recipe import TrainingSettings
from clml._training.run_checkpoint import Clock
from clml._training.steps import AscentPlan, PlainSteps
from clml._training.training_rows import WideRows
from clml.losses import LossSet, RowTargets, get_losses
from clml.losses.kernels import CROSS_ENTROPY
from clml.losses.smooth_kernels import add_smoothed_rows
from clml.network import WideNetwork
from clml.persistence import load

THREE = ("hamming", "lrap", "micro_f1")


def make_stack(**changes):
    # A tree is a quick learner, and one that takes weights and missing values.
    learners = [
        ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
        ("stump", DecisionTreeClassifier(max_depth=1, random_state=0)),
    ]
    given = {"estimators": learners, "cv": 3, "shrinkage": 0.5, "random_state": 0}
    return LebesgueStackingClassifier(**(given | {"distil": True} | changes))


def teacher_of(soft):
    return Teacher(np.asarray(soft, dtype=np.float32), Clock(None))


@pytest.fixture
def quick(monkeypatch):
    """Let students be five networks, of four epochs."""
    new_student = _stacking.new_student

    def few(*given):
        return new_student(*given).set_params(n_members=5, max_epochs=4)

    monkeypatch.setattr(_stacking, "new_student", few)


def test_a_step_descends_the_cross_entropy_of_shares():
    # Its derivative in a logit of 0 is 1/2 minus the share.
    columns = np.zeros(13)
    columns[CROSS_ENTROPY] = -1.0
    gradient = np.zeros((1, 3), dtype=np.float32)
    add_smoothed_rows(
        np.zeros((1, 3), dtype=np.float32),
        np.array([[0.7, 0.5, 0.0]], dtype=np.float32),
        np.empty((1, 0), dtype=np.float32),
        np.ones(1),
        np.float32(0),
        0.5,
        columns,
        np.zeros((3, 3)),
        False,
        np.empty(0, dtype=np.int64),
        gradient,
        np.empty((1, 13)),
    )
    assert_allclose(gradient, [[0.2, 0.0, -0.5]], atol=1e-7)


@pytest.mark.parametrize("slow", [False, True])
def test_networks_learn_the_shares_that_they_are_told(slow):
    # All rows are alike, and their labels say 1 and 0: so the weights say the shares.
    rows = WideRows(np.ones((32, 1), np.float32), WideNetwork(()).build(1, 2))
    targets = RowTargets.from_indicator(np.tile([1, 0], (32, 1)))
    shares = np.tile([[0.8, 0.3]], (32, 1)).astype(np.float32)
    loss_set = LossSet(get_losses(THREE), 2)
    plan = AscentPlan(0.05, 80, 8, 0.5, closed_form=True, surrogate_epochs=80)
    if slow:
        rows = SlowRows(rows.X, rows.layout)
    members = [AscentState.start(rows.layout, np.random.SeedSequence(0))]
    for _ in range(80):
        given = [replace(targets, soft=shares)]
        members = after_epoch(members, rows, given, loss_set, plan, 0)
    found = 1 / (1 + np.exp(-rows.logits(members[0].theta)[0]))
    assert_allclose(found, [0.8, 0.3], atol=0.01)


class SlowRows(WideRows):
    def steps(self, most_rows, *given):
        return PlainSteps(Passes(self), *given)


class Passes:
    def __init__(self, rows):
        self._rows = rows

    def forward(self, theta, batch, generator):
        self._batch = batch
        return np.ascontiguousarray(self._rows.logits(theta, batch), np.float32)

    def backward(self, slope):
        X = self._rows.X[self._batch]
        return np.concatenate([(X.T @ slope).ravel(), slope.sum(axis=0)])


@pytest.mark.parametrize("network", ["wide", "paper"])
def test_shares_that_are_labels_change_no_bit(network, small_data, monkeypatch):
    X, Y = small_data
    clf = CLMLClassifier(network=network, n_members=5, max_epochs=4, random_state=0)
    taught = clone(clf)._fit_to(teacher_of(Y), X, Y, None)
    ascent = TrainingSettings.ascent
    monkeypatch.setattr(
        TrainingSettings,
        "ascent",
        lambda recipe, n: ascent(replace(recipe, soft=True), n),
    )
    clf.fit(X, Y)
    assert_array_equal(
        np.concatenate(list(taught.networks_)), np.concatenate(list(clf.networks_))
    )
    assert_array_equal(taught.decision_function(X), clf.decision_function(X))
    assert_array_equal(taught.front_.losses, clf.front_.losses)
    softer = clone(clf)._fit_to(teacher_of(0.2 + 0.6 * Y), X, Y, None)
    assert np.abs(softer.networks_[0] - clf.networks_[0]).max() > 1e-3


def test_targets_are_probabilities_mixed_with_labels(small_data):
    _, Y = small_data
    targets = RowTargets.from_indicator(Y)
    logits = np.random.default_rng(0).normal(size=Y.shape) + 2.0 * Y
    soft = soft_targets(logits, targets, share=0.3)
    assert soft.dtype == np.float32
    assert (soft[Y == 1] >= 0.7).all()
    assert (soft[Y == 0] <= 0.3).all()
    # Whatever moved the logits away from those of probabilities is taken back.
    assert_allclose(soft_targets(5 * logits - 3, targets, 0.3), soft, atol=0.01)
    assert_array_equal(soft_targets(logits, targets, share=0.0), Y)
    p = soft_targets(logits, targets, share=1.0)
    assert_allclose(p.mean(axis=0), Y.mean(axis=0), atol=0.05)


def test_what_is_distilled_is_a_classifier_of_its_own(small_data, tmp_path):
    pd = pytest.importorskip("pandas")
    X, Y = small_data
    X = pd.DataFrame(X, columns=[f"column {j}" for j in range(8)])
    named = pd.DataFrame(Y, columns=list("abcd"))
    stack = make_stack().fit(X, named)
    clf = stack.distilled_
    assert type(clf) is CLMLClassifier
    assert clf.predict(X).shape == Y.shape
    assert clf.label_names_.tolist() == list("abcd")
    assert clf.feature_names_in_.tolist() == X.columns.tolist()
    assert clf.front_.loss_names == THREE
    assert clf.select("lrap").predict_proba(X).shape == Y.shape
    assert clf.score(X, named[list("dcba")]) > 0.3
    assert clone(clf).get_params() == CLMLClassifier(random_state=0).get_params()
    # The stack is what it is without.
    alone = make_stack(distil=False).fit(X, named)
    assert_array_equal(alone.decision_function(X), stack.decision_function(X))
    assert not hasattr(alone, "distilled_")
    assert not hasattr(stack.set_params(distil=False).fit(X, named), "distilled_")


def test_files(quick, small_data, tmp_path):
    X, Y = small_data
    stack = make_stack(checkpoint=tmp_path / "run").fit(X, Y)
    logits = stack.distilled_.decision_function(X)
    pytest.importorskip("skops")
    stack.save(tmp_path / "stack.clml")
    loaded = load(tmp_path / "stack.clml")
    assert_array_equal(loaded.distilled_.decision_function(X), logits)
    stack.distilled_.save(tmp_path / "student.clml")
    loaded = load(tmp_path / "student.clml")
    assert_array_equal(loaded.decision_function(X), logits)
    runtime = pytest.importorskip("onnxruntime")
    stack.distilled_.to_onnx(tmp_path / "student.onnx")
    session = runtime.InferenceSession(tmp_path / "student.onnx")
    found = session.run(["logits"], {"features": X.astype(np.float32)})[0]
    assert_allclose(found, logits, atol=1e-4 * np.abs(logits).max())


@pytest.mark.parametrize(
    "student, message",
    [
        (DecisionTreeClassifier(), "distilled_ is no fitted CLMLClassifier"),
        (CLMLClassifier(), "distilled_ is no fitted CLMLClassifier"),
        ("others", "label_names_ of distilled_ is another"),
    ],
)
def test_files_hold_no_other_student(student, message, quick, small_data, tmp_path):
    X, Y = small_data
    stack = make_stack().fit(X, Y)
    if student == "others":
        stack.distilled_.label_names_ = stack.label_names_[::-1]
    else:
        stack.distilled_ = student
    with pytest.raises(ValueError, match=message):
        stack.save(tmp_path / "stack.clml")


@pytest.mark.parametrize("form", [sp.csr_array, "missing", "1-D"])
def test_rows_and_labels_of_many_forms(form, quick, small_data):
    X, Y = small_data
    if form == "1-D":
        y = np.where(Y[:, 0], "yes", "no")
        clf = make_stack().fit(X, y).distilled_
        assert clf.predict(X).shape == y.shape
        assert set(clf.predict(X)) <= {"yes", "no"}
        assert clf.predict_proba(X).shape == (len(y), 2)
        return
    given = np.where(X > 12, np.nan, X) if form == "missing" else form(X)
    learner = make_pipeline(SimpleImputer(), DecisionTreeClassifier(max_depth=3))
    clf = make_stack(estimators=[("tree", learner)]).fit(given, Y).distilled_
    assert clf.predict(given).shape == Y.shape
    if form is sp.csr_array:
        assert_array_equal(clf.predict(X), clf.predict(given))


def test_text_is_refused_before_any_fit(small_data, monkeypatch):
    monkeypatch.setattr(CountVectorizer, "fit_transform", None)  # it must not be called
    learner = make_pipeline(CountVectorizer(), DecisionTreeClassifier())
    stack = make_stack(estimators=[("words", learner)])
    texts = ["a word", "two words"] * 60
    with pytest.raises(ValueError, match="distil=True trains a CLMLClassifier on X"):
        stack.fit(texts, small_data[1])


def test_the_number_of_jobs_changes_no_bit(quick, small_data):
    X, Y = small_data
    alone = make_stack().fit(X, Y).distilled_
    with parallel_config(backend="threading"):
        beside = make_stack(n_jobs=2).fit(X, Y).distilled_
    assert_array_equal(alone.decision_function(X), beside.decision_function(X))
    assert_array_equal(alone.front_.losses, beside.front_.losses)
    other = make_stack(random_state=1).fit(X, Y).distilled_
    assert not np.array_equal(alone.decision_function(X), other.decision_function(X))


def test_weights(quick, small_data):
    X, Y = small_data
    weight = np.random.default_rng(0).integers(3, size=len(X)).astype(float)
    used = weight > 0
    found = make_stack().fit(X, Y, sample_weight=weight).distilled_
    same = make_stack().fit(X[used], Y[used], sample_weight=weight[used]).distilled_
    assert_array_equal(found.decision_function(X), same.decision_function(X))
    plain = make_stack().fit(X[used], Y[used]).distilled_
    assert not np.array_equal(plain.decision_function(X), found.decision_function(X))


def test_labels_that_do_not_vary_are_told_once(quick, small_data):
    X, Y = small_data
    Y = np.column_stack([Y, np.ones(len(Y), dtype=int)])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stack = make_stack().fit(X, Y)
    assert sum("labels are constant" in str(one.message) for one in told) == 1
    assert stack.distilled_.predict(X)[:, 4].all()


def test_learners_that_are_fitted_already_teach(quick, small_data):
    X, Y = small_data
    near = KNeighborsClassifier(5).fit(X[:60], Y[:60])
    stack = make_stack(estimators=[("near", near)], prefit=True).fit(X[60:], Y[60:])
    assert stack.distilled_.predict(X).shape == Y.shape


def stop_after(monkeypatch, n_epochs):
    """Have members interrupted once, when they are to begin another epoch."""
    epoch = MemberRun.epoch

    def one(run):
        if run.progress.epoch == n_epochs:
            monkeypatch.setattr(MemberRun, "epoch", epoch)
            raise KeyboardInterrupt
        return epoch(run)

    monkeypatch.setattr(MemberRun, "epoch", one)


def test_an_interrupted_run_goes_on(quick, small_data, tmp_path, monkeypatch):
    X, Y = small_data
    expected = make_stack().fit(X, Y).distilled_
    stack = make_stack(checkpoint=tmp_path)
    stop_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        stack.fit(X, Y)
    assert stack.interrupted_
    assert stack.distilled_.n_epochs_ == 2
    # The stack does not depend on it: what is kept of one without goes on with one.
    make_stack(checkpoint=tmp_path, distil=False).fit(X, Y)
    found = stack.fit(X, Y).distilled_
    assert not stack.interrupted_
    assert found.n_epochs_ == 4
    assert found.checkpoint is None
    assert_array_equal(found.decision_function(X), expected.decision_function(X))
    assert_array_equal(
        found.history_["incumbent_train"], expected.history_["incumbent_train"]
    )


def test_an_interrupt_can_be_an_end(quick, small_data, monkeypatch):
    X, Y = small_data
    stop_after(monkeypatch, 3)
    stack = make_stack(keep_on_interrupt=True).fit(X, Y)
    assert stack.interrupted_
    assert stack.distilled_.n_epochs_ == 3
    assert stack.predict(X).shape == stack.distilled_.predict(X).shape


@pytest.mark.parametrize("where", ["soft_targets", "teach"])
def test_an_interrupt_before_it_has_begun_leaves_the_stack(
    where, small_data, monkeypatch
):
    def interrupted(*given):
        raise KeyboardInterrupt

    X, Y = small_data
    monkeypatch.setattr(_stacking, where, interrupted)
    stack = make_stack()
    with pytest.raises(KeyboardInterrupt):
        stack.fit(X, Y)
    for clf in (stack, make_stack(keep_on_interrupt=True).fit(X, Y)):
        assert clf.interrupted_
        assert clf.predict(X).shape == Y.shape
        assert not hasattr(clf, "distilled_")


def test_time_that_is_over_leaves_one_epoch(quick, small_data):
    X, Y = small_data
    with pytest.warns(UserWarning) as told:
        stack = make_stack(max_seconds=1e-9).fit(X, Y)
    assert any("distilled_ is trained for one epoch" in str(w.message) for w in told)
    assert stack.distilled_.n_epochs_ == 1
    assert stack.distilled_.max_seconds is None


def test_a_line_says_how_long_it_took(quick, small_data, capsys):
    make_stack(verbose=1).fit(*small_data)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("distilled in 4 epochs")


def test_what_is_said_at_the_end_costs_no_model(small_data, quick):
    stack = make_stack(max_seconds=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "max_seconds=1e-09 was over")
        with pytest.raises(UserWarning, match="was over before distil=True"):
            stack.fit(*small_data)
    assert stack.distilled_.predict(small_data[0]).shape == small_data[1].shape


@pytest.mark.parametrize("prefit", [False, True])
def test_copies_that_the_stack_keeps_together_are_told(prefit, quick):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 6)), 4, axis=0)
    Y = np.repeat(rng.integers(0, 2, (30, 3)), 4, axis=0)
    cv = list(GroupKFold(3).split(X, Y, np.repeat(np.arange(30), 4)))
    learners = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
    if prefit:
        learners = [("tree", learners[0][1].fit(X, Y))]
    given = {"estimators": learners, "prefit": prefit, "cv": 5 if prefit else cv}
    with pytest.warns(UserWarning, match="distil=True trains networks"):
        make_stack(**given).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_stack(**given, distil=False).fit(X, Y)

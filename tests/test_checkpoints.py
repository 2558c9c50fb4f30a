"""Fits that are broken off and go on: the same bits as if nothing had happened."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import own_fit
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from clml import (
    CMA,
    Ascent,
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
    RankGradient,
)
from clml._learners.scores import label_logits
from clml.network import PaperNetwork
from clml.persistence.checkpoint import KIND, Checkpoint
from clml.persistence.file import read_file, write_file

SMALL = {"network": PaperNetwork(embedding_dim=4)}
EVOLVED = SMALL | {"search": CMA(population_size=8), "n_members": 1}
CLIMBING = SMALL | {"search": "ascent", "shrinkage": 0.5}
RUNS = {
    "rank one": EVOLVED,
    "full": EVOLVED | {"search": CMA(8, covariance="full")},
    "separable, archive": EVOLVED
    | {"search": CMA(8, covariance="separable", reference="archive")},
    "cma": EVOLVED | {"search": CMA(8, covariance="cma")},
    "all rows": EVOLVED | {"validation_fraction": 0.0},
    "sampled": EVOLVED | {"search": CMA(8, lebesgue="monte_carlo", n_samples=50)},
    "last layer": EVOLVED
    | {"search": RankGradient(8, epoch_rows=0.5, evolve="last", init="surrogate")},
    "gradient": EVOLVED | {"search": RankGradient(8)},
    "torch": EVOLVED | {"engine": "torch"},
    "evolved members": EVOLVED
    | {"search": CMA(8, init="surrogate"), "n_members": 3, "shrinkage": 0.5},
    "members": CLIMBING | {"n_members": 3},
    "one member": CLIMBING | {"n_members": 1},
    "dropout": CLIMBING
    | {"search": Ascent(init="surrogate"), "network": PaperNetwork(4, dropout=0.2)}
    | {"n_members": 2},
}


class BrokenOffError(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture(scope="module")
def data():
    return make_multilabel_classification(
        n_samples=60, n_features=6, n_classes=3, random_state=0
    )


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


def fit_until_it_ends(estimator, *data, **keywords):
    """Return a fitted copy, and how often it began."""
    for n_begun in range(1, 100):
        try:
            return clone(estimator).fit(*data, **keywords), n_begun
        except BrokenOffError:
            continue
    raise AssertionError("It never ends.")


def assert_same_run(one, other):
    np.testing.assert_array_equal(one.theta_, other.theta_)
    for name in ("losses", "theta", "temperature"):
        np.testing.assert_array_equal(
            getattr(one.front_, name), getattr(other.front_, name)
        )
    assert one.history_.keys() == other.history_.keys()
    for name, values in one.history_.items():
        if name != "seconds":
            np.testing.assert_array_equal(values, other.history_[name])
    np.testing.assert_array_equal(one.archive_losses_, other.archive_losses_)
    for name in ("n_epochs_", "temperature_", "incumbent_", "interrupted_"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_bit_for_bit(data, tmp_path, breaks_off, name):
    clf = CLMLClassifier(max_epochs=7, random_state=0, **RUNS[name])
    whole = clone(clf).fit(*data)
    clf.set_params(checkpoint=tmp_path, checkpoint_every=0)
    broken, n_begun = fit_until_it_ends(clf, *data)
    assert n_begun == 4
    assert_same_run(whole, broken)
    assert (broken.history_["seconds"] > 0).all()


@pytest.mark.parametrize("name", ["rank one", "members"])
def test_a_finished_run_is_read_and_not_run(data, tmp_path, monkeypatch, name):
    clf = CLMLClassifier(max_epochs=3, random_state=0, **RUNS[name])
    clf.set_params(checkpoint=tmp_path)
    once = clone(clf).fit(*data)
    run = "members.MemberRun" if name == "members" else "search.Search"
    monkeypatch.delattr(f"clml._training.{run}.epoch")
    # What results do not depend on may change.
    again = clf.set_params(n_jobs=2, memory_mb=1, verbose=1).fit(*data)
    assert_same_run(once, again)


@pytest.mark.parametrize(
    "estimator",
    [
        LebesgueTunedClassifier(
            DecisionTreeClassifier(random_state=0), cv=3, max_epochs=4
        ),
        LebesgueTunedClassifier(KNeighborsClassifier(), cv=3, mapping="thresholds"),
        LebesgueStackingClassifier(
            [("near", KNeighborsClassifier()), ("nearer", KNeighborsClassifier(1))],
            cv=2,
            max_epochs=3,
            shrinkage=0.5,
        ),
    ],
    ids=["tuned", "thresholds", "stacked"],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_tuning_goes_on_bit_for_bit(data, tmp_path, breaks_off, estimator, sparse):
    X, Y = data
    X = sp.csr_matrix(X) if sparse else X
    estimator = clone(estimator).set_params(random_state=0, population_size=8)
    whole = clone(estimator).fit(X, Y)
    estimator.set_params(checkpoint=tmp_path, checkpoint_every=0)
    broken, n_begun = fit_until_it_ends(estimator, X, Y)
    assert n_begun > 2
    assert_same_run(whole, broken)
    assert whole.shrinkage_path_ == broken.shrinkage_path_
    np.testing.assert_array_equal(whole.predict_proba(X), broken.predict_proba(X))


def test_folds_are_not_fitted_twice(data, tmp_path, breaks_off, monkeypatch):
    fitted = []
    fit = KNeighborsClassifier.fit

    def counted(self, X, y):
        fitted.append(len(X))
        return fit(self, X, y)

    # In the package: a class of one's own that counts is another one at every fit.
    monkeypatch.setattr(KNeighborsClassifier, "fit", counted)
    clf = LebesgueTunedClassifier(
        KNeighborsClassifier(),
        cv=4,
        max_epochs=2,
        shrinkage=0.0,
        random_state=0,
        checkpoint=tmp_path,
        checkpoint_every=0,
    )
    fit_until_it_ends(clf, *data)
    assert sum(n < 60 for n in fitted) == 4


def test_a_splitter_that_draws_other_folds_every_time(data, tmp_path, breaks_off):
    X, Y = data
    clf = LebesgueTunedClassifier(
        KNeighborsClassifier(),
        cv=KFold(4, shuffle=True),
        max_epochs=2,
        shrinkage=0.0,
        random_state=0,
        checkpoint=tmp_path,
        checkpoint_every=0,
    )
    broken, _ = fit_until_it_ends(clf, X, Y)
    (_, newest) = sorted(tmp_path.iterdir())
    state = read_file(newest, KIND)["state"]
    # The scores that were kept are those of the folds that were kept.
    for i, (train, test) in enumerate(state["folds"]):
        learner = KNeighborsClassifier().fit(X[train], Y[train])
        expected = label_logits(learner, X[test], Y.shape[1])
        np.testing.assert_array_equal(state["scores"][f"0/{i}"], expected)
    assert not broken.interrupted_


def test_an_interrupt_keeps_the_folds_so_far(data, tmp_path):
    fitted = []

    class Interrupted(KNeighborsClassifier):
        def fit(self, X, y):
            fitted.append(None)
            if len(fitted) == 4:
                raise KeyboardInterrupt
            return super().fit(X, y)

    clf = LebesgueTunedClassifier(
        Interrupted(), cv=5, max_epochs=2, random_state=0, checkpoint=tmp_path
    )
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*data)
    (path,) = tmp_path.iterdir()
    assert len(read_file(path, KIND)["state"]["scores"]) == 3


def test_an_interrupt_at_the_very_end(data, tmp_path, monkeypatch):
    """Patience has run out, and the last state is being written."""
    clf = CLMLClassifier(max_epochs=60, patience=3, random_state=0, **EVOLVED)
    whole = clone(clf).fit(*data)
    assert whole.n_epochs_ < 60
    offer = Checkpoint.offer

    def interrupted(self, state, now=False):
        if now and not interrupts:
            interrupts.append(None)
            raise KeyboardInterrupt
        offer(self, state, now)

    interrupts = []
    monkeypatch.setattr(Checkpoint, "offer", interrupted)
    clf.set_params(checkpoint=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*data)
    assert_same_run(whole, clf.fit(*data))


def test_a_folder_that_is_removed_meanwhile(data, tmp_path, monkeypatch):
    folder = tmp_path / "states"
    offer = Checkpoint.offer

    def removed(self, *arguments, **keywords):
        shutil.rmtree(folder, ignore_errors=True)
        offer(self, *arguments, **keywords)

    monkeypatch.setattr(Checkpoint, "offer", removed)
    clf = CLMLClassifier(max_epochs=3, random_state=0, checkpoint=folder, **EVOLVED)
    with pytest.warns(UserWarning, match="could not be written"):
        clf.set_params(checkpoint_every=0).fit(*data)
    assert clf.n_epochs_ == 3


@pytest.mark.filterwarnings("error")
def test_a_warning_costs_no_model(data):
    calls = []

    def sometimes_undefined(Y, scores):
        calls.append(None)
        return np.nan if len(calls) % 3 == 0 else float((Y != (scores > 0)).mean())

    clf = CLMLClassifier(("hamming", sometimes_undefined), max_epochs=2, **EVOLVED)
    with pytest.raises(UserWarning, match="was NaN or infinite"):
        clf.fit(*data)
    assert clf.predict(data[0]).shape == data[1].shape


def test_weights_validation_rows_and_one_label(data, tmp_path, breaks_off):
    X, Y = data
    clf = CLMLClassifier(max_epochs=5, random_state=0, **EVOLVED)
    given = {
        "sample_weight": np.linspace(0, 2, 40),
        "X_val": X[40:],
        "y_val": Y[40:, 0],
    }
    whole = clone(clf).fit(X[:40], Y[:40, 0], **given)
    clf.set_params(checkpoint=tmp_path, checkpoint_every=0)
    broken, n_begun = fit_until_it_ends(clf, X[:40], Y[:40, 0], **given)
    assert n_begun == 3
    assert_same_run(whole, broken)


def test_a_seed_that_was_not_given_is_kept(data, tmp_path, breaks_off):
    clf = CLMLClassifier(
        max_epochs=6, checkpoint=tmp_path, checkpoint_every=0, **EVOLVED
    )
    broken, n_begun = fit_until_it_ends(clf, *data)
    assert n_begun == 4
    (_, newest) = sorted(tmp_path.iterdir())
    assert read_file(newest, KIND)["state"]["seed"] == broken._seed


def test_a_generator_moves_on_alike(data, tmp_path, breaks_off):
    clf = CLMLClassifier(
        max_epochs=4, checkpoint=tmp_path, checkpoint_every=0, **EVOLVED
    )
    draws = []
    for _ in range(2):
        random = np.random.RandomState(5)
        fit_until_it_ends(clf.set_params(random_state=random), *data)
        draws.append(random.randint(1000))
    assert draws[0] == draws[1]


@pytest.mark.parametrize("name", ["rank one", "members"])
def test_patience_counts_on(data, tmp_path, breaks_off, name):
    clf = CLMLClassifier(max_epochs=60, patience=3, random_state=0, **RUNS[name])
    whole = clone(clf).fit(*data)
    assert whole.n_epochs_ < 60
    clf.set_params(checkpoint=tmp_path, checkpoint_every=0)
    assert_same_run(whole, fit_until_it_ends(clf, *data)[0])


def test_seconds_count_on(data, tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    offer = Checkpoint.offer

    def offered(self, *arguments, **keywords):
        now[0] += 10
        offer(self, *arguments, **keywords)
        if now[0] == 30:
            raise BrokenOffError

    monkeypatch.setattr(Checkpoint, "offer", offered)
    clf = CLMLClassifier(
        max_epochs=20, max_seconds=45, checkpoint=tmp_path, checkpoint_every=0
    ).set_params(**EVOLVED)
    with pytest.raises(BrokenOffError):
        clf.fit(*data)
    now[0] = 1000.0
    assert clf.fit(*data).n_epochs_ == 6


def test_an_interrupt_writes_a_state(data, tmp_path, monkeypatch):
    from clml._training.search import Search

    epoch = Search.epoch

    def interrupted(self):
        if self.progress.epoch == 3:
            raise KeyboardInterrupt
        return epoch(self)

    clf = CLMLClassifier(max_epochs=6, random_state=0, **EVOLVED)
    whole = clone(clf).fit(*data)
    clf.set_params(checkpoint=tmp_path)  # the next state is due in a minute
    with monkeypatch.context() as patch:
        patch.setattr(Search, "epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(*data)
    assert clf.n_epochs_ == 3
    (path,) = tmp_path.iterdir()
    assert read_file(path, KIND)["state"]["run"]["epoch"] == 3
    assert_same_run(whole, clf.fit(*data))


def test_members_that_were_interrupted_within_an_epoch(data, tmp_path, monkeypatch):
    from clml.evolution import RankOneCMA

    tell = RankOneCMA.tell
    calls = []

    def interrupted(self, order):
        calls.append(None)
        if len(calls) == 8:  # the second of three members, in the third epoch
            raise KeyboardInterrupt
        tell(self, order)

    clf = CLMLClassifier(max_epochs=5, random_state=0, **(EVOLVED | {"n_members": 3}))
    whole = clone(clf).fit(*data)
    clf.set_params(checkpoint=tmp_path, checkpoint_every=0)
    with monkeypatch.context() as patch:
        patch.setattr(RankOneCMA, "tell", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(*data)
    assert_same_run(whole, clf.fit(*data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"network__embedding_dim": 5},
            "network.embedding_dim was 4 there and is 5 here",
        ),
        ({"search__sigma0": 2.0}, "search.sigma0 was 1.0 there and is 2.0 here"),
        ({"search": RankGradient()}, r"search.class was '.*CMA' there"),
        ({"random_state": 1}, "random_state was 0 there and is 1 here"),
        ({"losses": ("hamming", "lrap")}, "losses was"),
        ({"max_epochs": 3}, "max_epochs was 2 there and is 3 here"),
        ({"engine": "torch"}, "device was None there and is 'cpu' here"),
    ],
)
def test_other_settings_are_an_error(data, tmp_path, change, message):
    clf = CLMLClassifier(
        max_epochs=2, random_state=0, checkpoint=tmp_path, **EVOLVED
    ).fit(*data)
    with pytest.raises(ValueError, match=message):
        clf.set_params(**change).fit(*data)


def test_other_data_are_an_error(data, tmp_path):
    X, Y = data
    clf = CLMLClassifier(
        max_epochs=2, random_state=0, checkpoint=str(tmp_path), **EVOLVED
    ).fit(X, Y)
    for changed in ((X + 1, Y), (X, 1 - Y), (X[1:], Y[1:])):
        with pytest.raises(ValueError, match="holds other values"):
            clf.fit(*changed)
    with pytest.raises(ValueError, match="X_val was not given there"):
        clf.fit(X, Y, X_val=X, y_val=Y)
    tuned = LebesgueTunedClassifier(KNeighborsClassifier(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"class was '.*CLMLClassifier'"):
        tuned.fit(X, Y)


def test_a_learner_that_was_fitted_before_is_part_of_the_data(data, tmp_path):
    X, Y = data

    def wrong(Y, scores):  # without a gradient: epochs are what is kept
        return ((scores > 0) != Y).mean()

    clf = LebesgueTunedClassifier(
        KNeighborsClassifier().fit(X, Y),
        losses=("hamming", wrong),
        prefit=True,
        max_epochs=2,
        random_state=0,
        checkpoint=tmp_path,
    ).fit(X, Y)
    theta = clf.theta_
    np.testing.assert_array_equal(clf.fit(X, Y).theta_, theta)
    clf.set_params(estimator=KNeighborsClassifier().fit(X[:50], Y[:50]))
    with pytest.raises(ValueError, match="estimator holds other values"):
        clf.fit(X, Y)


def own_clf(own, folder, learner=None, **settings):
    """Return what tunes a learner by a loss, both with code of one's own."""
    settings = {
        "cv": KFold(2, shuffle=True, random_state=0),
        "max_epochs": 1,
        "shrinkage": 0.0,
        "random_state": 0,
        "checkpoint": folder,
    } | settings
    learner = own_fit.learner(own) if learner is None else learner
    losses = ("hamming", own.made(0.0))
    return LebesgueTunedClassifier(learner, **({"losses": losses} | settings))


@pytest.fixture(scope="module")
def own_run(tmp_path_factory):
    """A finished run, and what it predicts."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        clf = own_clf(own_fit.imported(patch), folder)
        X, Y = own_fit.rows()
        return folder, clf.fit(X, Y).predict_proba(X)


def follows(clf, expected, X, Y, **given):
    """Whether a fit takes the answer of the run that is there."""
    before = sorted(Path(clf.checkpoint).iterdir())
    try:
        np.testing.assert_array_equal(clf.fit(X, Y, **given).predict_proba(X), expected)
    except ValueError as error:
        assert "belongs to another fit" in str(error)
        return False
    assert sorted(Path(clf.checkpoint).iterdir()) == before
    return True


@pytest.mark.parametrize("edit", own_fit.EDITS)
def test_a_fit_with_other_code_is_another_fit(own_run, monkeypatch, edit):
    folder, expected = own_run
    own = own_fit.imported(monkeypatch, own_fit.EDITS[edit])
    assert not follows(own_clf(own, folder), expected, *own_fit.rows())


@pytest.mark.parametrize("edit", own_fit.NO_EDITS)
def test_a_fit_with_other_text_goes_on(own_run, monkeypatch, edit):
    folder, expected = own_run
    own = own_fit.imported(monkeypatch, own_fit.NO_EDITS[edit])
    assert follows(own_clf(own, folder), expected, *own_fit.rows())


def nested(name, value):
    return lambda own: {"learner": own_fit.learner(own).set_params(**{name: value})}


@pytest.mark.parametrize(
    "changed",
    [
        lambda own: {"learner": own_fit.learner(own, scale=2.0)},
        nested("learner__n_neighbors", 4),
        nested("learner__power", 2),
        nested("learner__power", 1.0),
        nested("shift__kw_args", {"by": 2.0}),
        nested("frozen", StandardScaler()),
        lambda own: {"learner": clone(own_fit.learner(own))[1:]},
        lambda own: {"cv": KFold(2, shuffle=True, random_state=1)},
        lambda own: {"cv": KFold(3, shuffle=True, random_state=0)},
        lambda own: {"cv": 2},
        lambda own: {"random_state": 1},
        lambda own: {"max_epochs": 2},
        lambda own: {"shrinkage": 0.5},
        lambda own: {"losses": ("hamming", own.made(0.1))},
        lambda own: {"losses": (own.made(0.0), "hamming")},
        lambda own: {"losses": ("hamming", "lrap")},
    ],
    ids=range(16),
)
def test_a_fit_with_other_settings_is_another_fit(own_run, monkeypatch, changed):
    folder, expected = own_run
    own = own_fit.imported(monkeypatch)
    clf = own_clf(own, folder, **changed(own))
    assert not follows(clf, expected, *own_fit.rows())


def changed_cell(rows, where, value):
    rows = rows.copy()
    rows[where] = value
    return rows


@pytest.mark.parametrize(
    "changed",
    [
        lambda X, Y: {"X": changed_cell(X, (3, 2), np.nextafter(X[3, 2], 9))},
        lambda X, Y: {"Y": changed_cell(Y, (3, 2), 1 - Y[3, 2])},
        lambda X, Y: {"X": X[:, ::-1]},
        lambda X, Y: {"X": X[::-1]},
        lambda X, Y: {"X": X.astype(np.float32)},
        lambda X, Y: {"Y": Y[:, ::-1]},
        lambda X, Y: {"X": sp.csr_array(X)},
    ],
    ids=range(7),
)
def test_a_fit_of_other_data_is_another_fit(own_run, monkeypatch, changed):
    folder, expected = own_run
    X, Y = own_fit.rows()
    rows = {"X": X, "Y": Y} | changed(X, Y)
    clf = own_clf(own_fit.imported(monkeypatch), folder)
    assert not follows(clf, expected, **rows)


@pytest.mark.parametrize(
    ("settings", "layout"),
    [
        ({"n_jobs": 2}, np.asarray),
        ({"verbose": 1}, np.asarray),
        ({"checkpoint_every": 0}, np.asarray),
        ({}, np.asfortranarray),
        ({}, lambda X: np.repeat(X, 2, axis=0)[::2]),
    ],
    ids=range(5),
)
def test_what_results_do_not_depend_on(own_run, monkeypatch, settings, layout):
    folder, expected = own_run
    X, Y = own_fit.rows()
    clf = own_clf(own_fit.imported(monkeypatch), folder, **settings)
    assert follows(clf, expected, layout(X), Y)


def test_weights_are_data(data, tmp_path):
    X, Y = data
    clf = CLMLClassifier(max_epochs=1, random_state=0, checkpoint=tmp_path, **EVOLVED)
    weight = np.linspace(1, 2, len(X))
    clf.fit(X, Y, sample_weight=weight)
    for other in (None, weight[::-1], np.nextafter(weight, 9)):
        with pytest.raises(ValueError, match="sample_weight"):
            clf.fit(X, Y, sample_weight=other)


def test_a_registered_loss_is_known_by_its_code(data, tmp_path, monkeypatch):
    from clml.losses import Loss, _registry, register_loss

    monkeypatch.setattr(_registry, "_REGISTRY", dict(_registry._REGISTRY))
    names = ("hamming", "own_share")
    for factor in (1.0, 0.5):

        class Share(Loss):
            name = "own_share"
            statistics = ("wrong",)
            by = factor

            def close(self, sums, weight, n_labels):
                return self.by * sums["wrong"] / (weight * n_labels)

        register_loss(Share)
        clf = CLMLClassifier(
            names, max_epochs=1, random_state=0, checkpoint=tmp_path, **EVOLVED
        )
        if factor == 1.0:
            clf.fit(*data)
            clf.fit(*data)
    with pytest.raises(ValueError, match="losses was"):
        clf.fit(*data)


def test_a_subclass_is_known_by_its_code(data, tmp_path):
    for width in (4, 5):

        class Own(CLMLClassifier):
            wide = width

            def _width(self, train):
                return self.wide

        clf = Own(max_epochs=1, random_state=0, checkpoint=tmp_path, **EVOLVED)
        if width == 4:
            clf.fit(*data)
            clf.fit(*data)
    with pytest.raises(ValueError, match="class has other code"):
        clf.fit(*data)


def test_another_version_of_a_package_is_another_fit(data, tmp_path, monkeypatch):
    clf = LebesgueTunedClassifier(
        KNeighborsClassifier(), cv=2, max_epochs=1, random_state=0, checkpoint=tmp_path
    ).fit(*data)
    clf.fit(*data)
    monkeypatch.setattr("sklearn.__version__", "99.0")
    with pytest.raises(ValueError, match=r"sklearn was '.*' there and is '99\.0' here"):
        clf.fit(*data)


def test_what_cannot_be_told_apart_is_an_error_at_the_start(data, tmp_path):
    steps = (step for step in ())

    def loss(Y, scores):
        return float((Y != (scores > 0)).mean()) + len(list(steps))

    clf = CLMLClassifier(("hamming", loss), checkpoint=tmp_path, **EVOLVED)
    with pytest.raises(TypeError, match=r"told apart.*cannot pickle 'generator'"):
        clf.fit(*data)
    assert not list(tmp_path.iterdir())


def test_a_warm_start_is_another_thing(data, tmp_path):
    clf = CLMLClassifier(warm_start=True, checkpoint=tmp_path, **EVOLVED)
    with pytest.raises(ValueError, match="use one of the two"):
        clf.fit(*data)


WRONG = [None, -1, "text", {}, [], np.ones((2, 2)), float("nan")]


def _leaves(node, path=()):
    items = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from _leaves(value, (*path, key))


def _replaced(node, path, value):
    if not path:
        return value
    copy = node.copy()
    copy[path[0]] = _replaced(node[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("rank one", wrong) for wrong in WRONG),
        *(("last layer", wrong) for wrong in WRONG[::2]),
        *(("members", wrong) for wrong in WRONG[::3]),
    ],
)
def test_a_state_with_something_else_in_it(data, tmp_path, name, wrong):
    """Whatever stands in the place of a part: an error, or a run to its end."""
    clf = CLMLClassifier(
        max_epochs=2, random_state=0, checkpoint=tmp_path, **RUNS[name]
    ).fit(*data)
    (path,) = tmp_path.iterdir()
    content = read_file(path, KIND)
    refused = 0
    for leaf in _leaves(content["state"]):
        state = _replaced(content["state"], leaf, wrong)
        write_file(path, KIND, {"identity": content["identity"], "state": state})
        try:
            clf.fit(*data)
        except ValueError as error:
            assert str(tmp_path) in str(error), leaf
            refused += 1
    assert refused > 10


CHILD = """
import sys
from sklearn.datasets import make_multilabel_classification
from clml import CMA, Ascent, CLMLClassifier
from clml.network import PaperNetwork
X, Y = make_multilabel_classification(
    n_samples=60, n_features=6, n_classes=3, random_state=0
)
CLMLClassifier(**{settings!r}, checkpoint={folder!r}, checkpoint_every=0).fit(X, Y)
"""


@pytest.mark.parametrize("search", [Ascent(), CMA(population_size=8)], ids=str)
def test_a_process_that_is_killed_again_and_again(data, tmp_path, search):
    settings = SMALL | {
        "search": search,
        "n_members": 2,
        "max_epochs": 400,
        "shrinkage": 0.5,
        "random_state": 0,
    }
    code = CHILD.format(settings=settings, folder=str(tmp_path))
    for n_states in (1, 8, 30):
        until = f"checkpoint-{n_states:010d}.clml"
        with subprocess.Popen([sys.executable, "-c", code]) as child:
            while child.poll() is None and max(names(tmp_path), default="") < until:
                time.sleep(0.001)
            child.kill()
        assert child.returncode == -9, "it should not have come to its end"
        assert all(read_file(path, KIND) for path in tmp_path.glob("*.clml"))
    clf = CLMLClassifier(**settings)
    whole = clone(clf).fit(*data)
    assert_same_run(whole, clf.set_params(checkpoint=tmp_path).fit(*data))


def names(folder):
    return [path.name for path in folder.glob("*.clml")]

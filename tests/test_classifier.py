"""The learner: what fit finds, what select gives, how a run ends and goes on."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from nested_settings import nested
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import clml._classifier
import clml._lebesgue_estimator
import clml.engine._numpy
from clml import CMA, PAPER_SETTINGS, CLMLClassifier
from clml.evolution import RankOneCMA
from clml.lebesgue import fitness_order, nondominated
from clml.losses import Loss, list_losses, loss_values
from clml.network import PaperNetwork, Scaling, forward

LOSSES = ("hamming", "lrap", "micro_f1")


def quick(**settings):
    """One network whose weights are evolved, as in the paper."""
    defaults = {
        "search": "cma",
        "n_members": 1,
        "max_epochs": 15,
        "embedding_dim": 20,
        "random_state": 0,
    }
    return CLMLClassifier(**nested({**defaults, **settings}))


@pytest.fixture(scope="module")
def fitted(small_data):
    return quick(max_epochs=60).fit(*small_data)


def assert_same_model(a, b):
    np.testing.assert_array_equal(a.theta_, b.theta_)
    assert a.temperature_ == b.temperature_
    np.testing.assert_array_equal(a.front_.losses, b.front_.losses)
    np.testing.assert_array_equal(a.front_.theta, b.front_.theta)
    np.testing.assert_array_equal(a.front_.temperature, b.front_.temperature)
    np.testing.assert_array_equal(a.archive_losses_, b.archive_losses_)
    for name in a.history_.keys() - {"seconds"}:
        np.testing.assert_array_equal(a.history_[name], b.history_[name])


# What fit computes


def test_fit_is_the_algorithm_written_out(small_data):
    """The paper's settings against the loop built from the public pieces."""
    X, Y = small_data
    X_val, Y_val, X, Y = X[:30], Y[:30], X[30:], Y[30:]
    settings = PAPER_SETTINGS | {"max_epochs": 25}
    clf = CLMLClassifier(**settings, random_state=3).fit(X, Y, X_val=X_val, y_val=Y_val)

    n = clf.layout_.size
    start, seed, _ = np.random.SeedSequence([*clf._seed, 1]).spawn(3)
    mean = np.random.default_rng(start).normal(scale=n**-0.5, size=n)
    strategy = RankOneCMA(mean, 1.0, seed=seed)
    assert strategy.population_size == 4 + math.floor(3 * math.log(n))
    scaling = Scaling.fit(X)
    archived = []
    for epoch in range(25):
        population = strategy.ask().astype(np.float32).astype(np.float64)
        train = loss_values(Y, forward(population, X, clf.layout_, scaling))
        np.testing.assert_array_equal(
            clf.history_["mean_train"][epoch],
            loss_values(
                Y, forward(strategy.mean.astype(np.float32), X, clf.layout_, scaling)
            ),
        )
        order = fitness_order(train, ties=None)
        np.testing.assert_array_equal(
            clf.history_["incumbent_train"][epoch], train[order[0]]
        )
        archived.append(
            loss_values(Y_val, forward(population, X_val, clf.layout_, scaling))
        )
        final = population[order[0]]
        strategy.tell(order)
    np.testing.assert_array_equal(clf.theta_, final)
    assert clf.incumbent_ == "final"
    archived = np.concatenate(archived)
    np.testing.assert_allclose(clf.archive_losses_, archived, atol=1e-7)
    front = np.unique(archived[nondominated(archived)], axis=0)
    np.testing.assert_array_equal(clf.front_.losses, front)


def test_it_learns(small_data, fitted):
    X, Y = small_data
    rate = Y.mean(axis=0)
    guess = loss_values(Y, np.broadcast_to(rate - 0.5, Y.shape))
    found = loss_values(Y, fitted.decision_function(X))
    assert (found < guess).all()
    measure = fitted.history_["archive_measure"]
    assert (np.diff(measure) >= 0).all()
    assert measure[-1] > 1.5 * measure[0]


def test_front_holds_validation_losses_of_its_members(small_data):
    X, Y = small_data
    clf = quick(max_front=6).fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    front = clf.front_
    assert 1 <= len(front) <= 6
    assert front.loss_names == LOSSES
    assert front.theta.dtype == np.float32
    assert nondominated(front.losses).all()
    assert len(np.unique(front.losses, axis=0)) == len(front)
    for member in range(len(front)):
        scores = clf.select(member).decision_function(X[80:])
        np.testing.assert_array_equal(front.losses[member], loss_values(Y[80:], scores))


def test_incumbent_of_each_loss_is_the_best_candidate_of_the_run(fitted):
    for k, name in enumerate(LOSSES):
        best = fitted.archive_losses_[:, k].min()
        member = fitted.select(name).incumbent_
        assert np.float32(fitted.front_.losses[member, k]) == best


def test_history(fitted):
    history = fitted.history_
    assert fitted.n_epochs_ == 60
    rows = ("train", "validation")
    per_loss = {f"{who}_{where}" for who in ("incumbent", "mean") for where in rows}
    per_loss |= {"undefined"}
    tracked = {
        f"incumbent_{name}_{where}"
        for name in ("binary_cross_entropy", "row_log_loss")
        for where in rows
    }
    scalars = {"sigma", "measure", "archive_measure", "seconds"}
    assert history.keys() == per_loss | tracked | scalars
    for name, values in history.items():
        assert values.shape == ((60, 3) if name in per_loss else (60,))
        assert np.isfinite(values).all()
    assert history["sigma"][0] == 1.0
    assert fitted.archive_losses_.shape == (60 * 64, 3)


def test_history_of_the_final_incumbent(small_data):
    X, Y = small_data
    clf = quick(calibrate=False, incumbent="final")
    clf.fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
    scores = clf.decision_function(X[80:])
    np.testing.assert_array_equal(
        clf.history_["incumbent_validation"][-1], loss_values(Y[80:], scores)
    )
    tracked = loss_values(Y[80:], scores, ("binary_cross_entropy", "row_log_loss"))
    for name, value in zip(
        ("binary_cross_entropy", "row_log_loss"), tracked, strict=True
    ):
        found = clf.history_[f"incumbent_{name}_validation"][-1]
        assert found == pytest.approx(value, rel=1e-5)


# Reproducibility


@pytest.mark.parametrize("sparse", [False, True])
def test_threads_and_memory_change_no_bit(small_data, sparse, monkeypatch):
    monkeypatch.setattr(clml.engine._numpy, "_SMALL_WORK", 0)  # use the threads
    X, Y = small_data
    X = sp.csr_matrix(np.where(X > 4, X, 0)) if sparse else X
    one = quick().fit(X, Y)
    for settings in ({"n_jobs": 2}, {"n_jobs": 3, "memory_mb": 1e-3}, {"memory_mb": 1}):
        assert_same_model(one, quick(**settings).fit(X, Y))


def test_random_state_instance_and_int_agree_with_themselves(small_data):
    a = quick(random_state=np.random.RandomState(7)).fit(*small_data)
    b = quick(random_state=7).fit(*small_data)
    assert_same_model(a, b)


def test_fit_leaves_the_global_generator_alone(small_data):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    quick().fit(*small_data)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


# Choosing


@pytest.mark.parametrize(
    "which", [*LOSSES, "knee", "geometric_mean", "final", "mean", 0]
)
def test_select_gives_a_copy_that_predicts_with_the_choice(small_data, fitted, which):
    X, _ = small_data
    before = fitted.decision_function(X)
    chosen = fitted.select(which)
    assert chosen is not fitted
    expected = forward(chosen.theta_.astype(float), X, chosen.layout_, chosen.scaling_)
    np.testing.assert_allclose(
        chosen.decision_function(X) * chosen.temperature_, expected
    )
    if which not in ("final", "mean"):
        np.testing.assert_array_equal(
            chosen.theta_, fitted.front_.theta[fitted.front_.select(which)]
        )
    np.testing.assert_array_equal(fitted.decision_function(X), before)


def test_select_by_weights(fitted):
    weights = {"hamming": 3.0, "micro_f1": 1.0}
    assert fitted.select(weights=weights).incumbent_ == fitted.front_.select(
        weights=weights
    )


@pytest.mark.parametrize("incumbent", ["final", "mean", "knee", "lrap"])
def test_incumbent_chooses_at_fit(small_data, incumbent):
    clf = quick(incumbent=incumbent).fit(*small_data)
    np.testing.assert_array_equal(clf.theta_, clf.select(incumbent).theta_)


def test_calibration_changes_no_decision_and_no_ranking(small_data):
    X, Y = small_data
    scaled, plain = (quick(calibrate=c).fit(X, Y) for c in (True, False))
    assert plain.temperature_ == 1.0
    assert scaled.temperature_ != 1.0
    np.testing.assert_array_equal(scaled.theta_, plain.theta_)
    np.testing.assert_array_equal(scaled.predict(X), plain.predict(X))
    order_of = [np.argsort(m.decision_function(X), axis=1) for m in (scaled, plain)]
    np.testing.assert_array_equal(*order_of)
    bce = [
        loss_values(Y, m.decision_function(X), ("binary_cross_entropy",))[0]
        for m in (scaled, plain)
    ]
    assert bce[0] < bce[1]


# Rows


def test_no_validation_rows_return_the_mean(small_data):
    X, Y = small_data
    clf = quick(validation_fraction=0).fit(X, Y)
    assert clf.incumbent_ == "mean"
    np.testing.assert_array_equal(clf.theta_, clf.select("mean").theta_)
    assert not any("validation" in name for name in clf.history_)
    for member in range(len(clf.front_)):
        scores = clf.select(member).decision_function(X)
        np.testing.assert_array_equal(clf.front_.losses[member], loss_values(Y, scores))


def test_scaling_is_that_of_the_training_rows(small_data):
    X, Y = small_data
    clf = quick().fit(X[:80], Y[:80], X_val=X[80:] + 100, y_val=Y[80:])
    np.testing.assert_allclose(clf.scaling_.mean, X[:80].mean(axis=0))
    np.testing.assert_allclose(clf.scaling_.scale, X[:80].std(axis=0))
    plain = quick(standardize=False).fit(X, Y)
    np.testing.assert_array_equal(plain.scaling_.mean, np.zeros(8))
    np.testing.assert_array_equal(plain.scaling_.scale, np.ones(8))


def test_rows_of_weight_zero_are_as_if_absent(small_data):
    X, Y = small_data
    weight = np.tile([0.0, 1.0, 2.0], 40)
    used = weight > 0
    assert_same_model(
        quick().fit(X, Y, sample_weight=weight),
        quick().fit(X[used], Y[used], sample_weight=weight[used]),
    )


def test_weights_matter_and_their_scale_does_not(small_data):
    X, Y = small_data
    weight = np.linspace(0.5, 8.0, len(X))
    a = quick().fit(X, Y, sample_weight=weight)
    b = quick().fit(X, Y, sample_weight=4 * weight)
    np.testing.assert_array_equal(a.theta_, b.theta_)
    assert (a.theta_ != quick().fit(X, Y).theta_).any()


def test_weights_as_repetition_without_validation_split(small_data):
    X, Y = small_data
    weight = np.arange(len(X)) % 3 + 1
    repeated = np.repeat(np.arange(len(X)), weight)
    # One epoch: sums in another order differ in their last bits, and whole runs may
    # part ways where two candidates are all but tied.
    a = quick(validation_fraction=0, max_epochs=1).fit(X, Y, sample_weight=weight)
    b = quick(validation_fraction=0, max_epochs=1).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(a.archive_losses_, b.archive_losses_, atol=1e-6)


# Targets


def test_one_dimensional_target_has_the_shapes_of_a_binary_classifier(small_data):
    X, Y = small_data
    y = np.where(Y[:, 0] == 1, "yes", "no")
    clf = quick().fit(X, y)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert clf.predict(X).shape == clf.decision_function(X).shape == (120,)
    assert set(clf.predict(X)) == {"no", "yes"}
    probability = clf.predict_proba(X)
    assert probability.shape == (120, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(
        clf.predict(X), clf.classes_[(probability[:, 1] > 0.5).astype(int)]
    )
    column = quick().fit(X, Y[:, :1])
    np.testing.assert_array_equal(column.theta_, clf.theta_)


def test_single_column_has_no_ranking_loss(small_data):
    X, Y = small_data
    clf = quick().fit(X, Y[:, :1])
    assert clf.predict(X).shape == (120, 1)
    assert (clf.front_.losses[:, 1] == 0).all()


@pytest.mark.parametrize(
    "form",
    [
        sp.csr_matrix,
        sp.coo_array,
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(float),
        lambda Y: Y.tolist(),
        lambda Y: pd.DataFrame(Y),
    ],
)
def test_forms_of_the_same_target(small_data, form):
    X, Y = small_data
    assert_same_model(quick().fit(X, Y), quick().fit(X, form(Y)))


def test_names_of_frames_are_kept(small_data):
    X, Y = small_data
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    labels = pd.DataFrame(Y, columns=["a", "b", "c", "d"])
    clf = quick().fit(frame, labels)
    assert clf.label_names_.tolist() == ["a", "b", "c", "d"]
    assert clf.feature_names_in_.tolist() == frame.columns.tolist()
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[frame.columns[::-1]])


def test_constant_labels_are_named(small_data):
    X, Y = small_data
    labels = pd.DataFrame(Y, columns=["a", "b", "c", "d"]).assign(b=1, d=0)
    with pytest.warns(UserWarning, match="2 of 4 labels are constant.*: b, d"):
        clf = quick().fit(X, labels)
    assert clf.predict(X).shape == (120, 4)


# Settings


@pytest.mark.parametrize(
    "settings",
    [
        {"ties": "layer"},
        {"ties": None},
        {"reference": "archive"},
        {"lebesgue": "monte_carlo", "n_samples": 500},
        {"reference": "archive", "lebesgue": "monte_carlo", "n_samples": 500},
        {"covariance": "separable"},
        {"covariance": "full"},
        {"covariance": "cma"},
        {"n_layers": 3},
        {"embedding_dim": 2},
        {"population_size": 2},
        {"population_size": None},
        {"sigma0": 0.1},
        {"losses": ("hamming",)},
        {"losses": ("macro_f1", "one_error", "coverage", "jaccard")},
    ],
    ids=str,
)
def test_settings_fit_and_repeat(small_data, settings):
    a, b = (quick(max_epochs=8, **settings).fit(*small_data) for _ in range(2))
    assert_same_model(a, b)
    assert np.isfinite(a.front_.losses).all()


@pytest.mark.parametrize("name", list_losses(role="objective"))
def test_every_loss_can_be_optimised(small_data, name):
    X, Y = small_data
    if name == "precision_at_5":
        Y = np.hstack([Y, Y[:, :2]])
    losses = ("hamming", name) if name != "hamming" else ("lrap", name)
    clf = quick(max_epochs=20, losses=losses).fit(X, Y)
    column = clf.archive_losses_[:, 1].reshape(20, -1)
    assert column.min() < column[0].mean()


def miss_rate(Y, scores):
    return 1 - ((scores > 0) & (Y == 1)).sum() / Y.sum()


class MissRate(Loss):
    name = "miss_rate"
    statistics = ("hits", "relevant")

    def close(self, sums, weight, n_labels):
        return 1 - sums["hits"] / sums["relevant"]


def test_a_function_and_a_class_are_the_same_loss(small_data):
    a = quick(losses=("hamming", miss_rate)).fit(*small_data)
    b = quick(losses=("hamming", MissRate)).fit(*small_data)
    assert a.front_.loss_names == b.front_.loss_names == ("hamming", "miss_rate")
    np.testing.assert_array_equal(a.theta_, b.theta_)


def test_a_candidate_with_undefined_losses_is_worst(small_data):
    calls = []

    def sometimes_undefined(Y, scores):
        calls.append(None)
        return np.nan if len(calls) % 3 == 0 else miss_rate(Y, scores)

    clf = quick(losses=("hamming", sometimes_undefined))
    with pytest.warns(UserWarning, match="was NaN or infinite for") as caught:
        clf.fit(*small_data)
    assert np.isfinite(clf.front_.losses).all()
    assert np.isnan(clf.archive_losses_).any()
    # Told once, with how many: each candidate counts once, on whichever rows.
    n_undefined = clf.history_["undefined"].sum(axis=0)
    assert n_undefined[0] == 0 < n_undefined[1]
    assert [str(w.message) for w in caught] == [
        f"The loss 'sometimes_undefined' was NaN or infinite for {n_undefined[1]} "
        f"candidates in {clf.n_epochs_} of {clf.n_epochs_} epochs. They were ranked "
        "last."
    ]


def test_paper_settings():
    assert PAPER_SETTINGS.keys() <= CLMLClassifier().get_params().keys()
    assert not PAPER_SETTINGS.keys() & {"random_state", "n_jobs", "verbose"}
    assert PAPER_SETTINGS["max_epochs"] == 750
    assert PAPER_SETTINGS["network"] == PaperNetwork(embedding_dim=20)
    search = CMA(population_size=None, ties=None, lebesgue="exact")
    assert PAPER_SETTINGS["search"] == search
    clf = CLMLClassifier(**PAPER_SETTINGS).set_params(search__sigma0=2.0)
    assert clf.search.sigma0 == 2.0
    assert PAPER_SETTINGS["search"] == search


# How a run ends


def test_patience(small_data):
    clf = quick(max_epochs=2000, patience=5).fit(*small_data)
    measure = clf.history_["archive_measure"]
    assert len(measure) < 2000
    assert measure[-1] == measure[-6]
    # Nowhere before did it wait that long.
    assert (measure[5:-1] > measure[:-6]).all()


def test_max_seconds(small_data):
    clf = quick(max_epochs=100_000, max_seconds=0.3).fit(*small_data)
    assert clf.n_epochs_ < 100_000
    assert clf.history_["seconds"].sum() < 3


class InterruptAt:
    """A loss that is interrupted like a user would, at its n-th evaluation."""

    def __init__(self, n):
        self.n, self.calls = n, 0
        self.__name__ = "interrupted"

    def __call__(self, Y, scores):
        self.calls += 1
        if self.calls == self.n:
            raise KeyboardInterrupt
        return miss_rate(Y, scores)


@pytest.mark.parametrize(("at", "n_epochs"), [(1, 0), (1000, 7)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_model(small_data, at, n_epochs, n_jobs, monkeypatch):
    monkeypatch.setattr(clml.engine._numpy, "_SMALL_WORK", 0)  # use the threads
    X, Y = small_data
    # 65 evaluations a set of rows and epoch: 64 candidates and the mean.
    clf = quick(losses=("hamming", InterruptAt(at)), n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    assert clf.interrupted_
    assert clf.n_epochs_ == n_epochs
    assert clf.predict(X).shape == Y.shape
    assert np.isfinite(clf.front_.losses).all()
    kept = quick(losses=("hamming", InterruptAt(at)), keep_on_interrupt=True)
    assert_same_model(kept.fit(X, Y), clf)
    assert kept.interrupted_
    if n_epochs:
        whole = quick(losses=("hamming", miss_rate), max_epochs=n_epochs).fit(X, Y)
        assert not whole.interrupted_
        np.testing.assert_array_equal(whole.theta_, clf.theta_)


def test_warm_start_continues_as_if_never_stopped(small_data):
    clf = quick(max_epochs=9, warm_start=True, lebesgue="monte_carlo", n_samples=200)
    clf.fit(*small_data)
    first = clf.theta_.copy()
    clf.set_params(max_epochs=13).fit(*small_data)
    assert clf.n_epochs_ == 22
    assert (first != clf.theta_).any()
    whole = quick(max_epochs=22, lebesgue="monte_carlo", n_samples=200)
    assert_same_model(clf, whole.fit(*small_data))


def test_warm_start_after_an_interrupt(small_data):
    X, Y = small_data
    clf = quick(
        losses=("hamming", InterruptAt(1000)), warm_start=True, keep_on_interrupt=True
    ).fit(X, Y)
    clf.fit(X, Y)
    whole = quick(losses=("hamming", miss_rate), max_epochs=7 + 15).fit(X, Y)
    np.testing.assert_array_equal(clf.theta_, whole.theta_)


def test_a_selected_copy_does_not_disturb_a_warm_start(small_data):
    clf = quick(max_epochs=5, warm_start=True).fit(*small_data)
    clf.select("mean").fit(*small_data)
    assert_same_model(clf.fit(*small_data), quick(max_epochs=10).fit(*small_data))


def test_warm_start_survives_pickling(small_data):
    clf = quick(max_epochs=5, warm_start=True).fit(*small_data)
    clf = pickle.loads(pickle.dumps(clf))
    assert_same_model(clf.fit(*small_data), quick(max_epochs=10).fit(*small_data))


def test_fit_without_warm_start_starts_anew(small_data):
    clf = quick().fit(*small_data)
    again = pickle.loads(pickle.dumps(clf))
    assert_same_model(again.fit(*small_data), clf)
    assert not hasattr(clf, "_search")


def test_verbose_prints_a_line_an_epoch(small_data, capsys):
    quick(max_epochs=4, verbose=1).fit(*small_data)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["epoch", str(i)] for i in range(1, 5)
    ]
    quick(max_epochs=4).fit(*small_data)
    assert capsys.readouterr().out == ""


# Among scikit-learn's tools


def test_pipeline_search_and_routing(small_data):
    X, Y = small_data
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), quick(max_epochs=5)),
        {"clmlclassifier__network__embedding_dim": [3, 6]},
        cv=2,
    ).fit(X, Y)
    assert search.best_estimator_.predict(X).shape == Y.shape
    with config_context(enable_metadata_routing=True):
        routed = cross_validate(
            quick(max_epochs=5)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True),
            X,
            Y,
            params={"sample_weight": np.ones(len(X))},
            cv=2,
            error_score="raise",
        )
    assert np.isfinite(routed["test_score"]).all()


def test_clone_and_pickle(small_data, fitted):
    X, _ = small_data
    assert clone(fitted).get_params() == fitted.get_params()
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    assert_same_model(copy, fitted)


# Bad input

X_OK = np.arange(40.0).reshape(10, 4)
Y_OK = np.tile([[1, 0, 1], [0, 1, 0]], (5, 1))


@pytest.mark.parametrize(
    ("settings", "X", "y", "message"),
    [
        ({}, X_OK, Y_OK * 2, r"y must be a binary indicator.*values \[0, 2\]"),
        ({}, X_OK, np.where(Y_OK, 0.5, 0), r"values \[0.0, 0.5\]"),
        ({}, X_OK, np.where(Y_OK, "a", "b"), r"values \['a', 'b'\]"),
        ({}, X_OK, np.arange(10) % 3, "Only binary.*1-D y with 3 classes"),
        ({}, X_OK, np.ones(10), "two classes, got one class"),
        ({}, X_OK, np.linspace(0, 1, 10), "continuous"),
        ({}, X_OK, np.zeros((10, 0)), "at least one label"),
        ({}, X_OK, Y_OK[:9], "inconsistent"),
        ({}, X_OK, np.where(Y_OK, np.nan, 0), "y contains NaN"),
        ({}, np.where(X_OK > 5, np.nan, X_OK), Y_OK, "X contains NaN"),
        ({}, np.where(X_OK > 5, np.inf, X_OK), Y_OK, "X contains inf"),
        ({}, X_OK[:0], Y_OK[:0], "0 sample"),
        ({}, X_OK[:, :0], Y_OK, "0 feature"),
        ({}, X_OK[:1], Y_OK[:1], "at least 2 rows.*n_samples=1"),
        ({"embedding_dim": 1}, X_OK, Y_OK, "embedding_dim .* at least 2, got 1"),
        ({"n_layers": 0}, X_OK, Y_OK, "n_layers .* at least 1, got 0"),
        ({"n_layers": True}, X_OK, Y_OK, "n_layers .* at least 1, got True"),
        ({"dropout": 1.0}, X_OK, Y_OK, r"dropout .* in \[0, 1\), got 1.0"),
        ({"standardize": "no"}, X_OK, Y_OK, "standardize .* a bool, got 'no'"),
        ({"max_epochs": 0}, X_OK, Y_OK, "'max_epochs'"),
        ({"max_epochs": 1.5}, X_OK, Y_OK, "'max_epochs'"),
        ({"population_size": 1}, X_OK, Y_OK, "'population_size' parameter of CMA"),
        ({"sigma0": 0.0}, X_OK, Y_OK, r"'sigma0'.*\(0.0, inf\). Got 0.0"),
        ({"validation_fraction": 1.0}, X_OK, Y_OK, "'validation_fraction'"),
        ({"validation_fraction": -0.1}, X_OK, Y_OK, "'validation_fraction'"),
        ({"patience": 0}, X_OK, Y_OK, "'patience'"),
        ({"max_seconds": 0}, X_OK, Y_OK, "'max_seconds'"),
        ({"memory_mb": 0}, X_OK, Y_OK, "'memory_mb'"),
        ({"n_samples": 0}, X_OK, Y_OK, "'n_samples'"),
        ({"max_front": 0}, X_OK, Y_OK, "'max_front'"),
        ({"max_front": 3}, X_OK, Y_OK, "max_front must be greater .* 3.*Got 3"),
        ({"losses": {"lrap", "hamming"}}, X_OK, Y_OK, "'losses'"),
        ({"n_jobs": 0}, X_OK, Y_OK, "n_jobs must be"),
        ({"ties": "deep"}, X_OK, Y_OK, "'ties'.*'depth'"),
        ({"covariance": "dense"}, X_OK, Y_OK, "'covariance'"),
        ({"incumbent": "best"}, X_OK, Y_OK, "incumbent must be one of"),
        ({"losses": ("haming",)}, X_OK, Y_OK, "Did you mean 'hamming'"),
        ({"losses": ()}, X_OK, Y_OK, "at least one loss"),
        ({"losses": ("lrap", "lrap")}, X_OK, Y_OK, "distinct"),
        ({"losses": ("macro_auc",)}, X_OK, Y_OK, "cannot be optimised"),
        ({"losses": ("binary_cross_entropy",)}, X_OK, Y_OK, "cannot be optimised"),
        (
            {"losses": ("precision_at_5", "lrap")},
            X_OK,
            Y_OK,
            "at least 5 labels, got 3",
        ),
    ],
)
def test_bad_input_is_refused(settings, X, y, message):
    with pytest.raises(ValueError, match=message):
        quick(max_epochs=settings.pop("max_epochs", 2), **settings).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X_val": X_OK}, "y_val is None"),
        ({"y_val": Y_OK}, "X_val is None"),
        ({"X_val": X_OK[:, :3], "y_val": Y_OK}, "3 features"),
        ({"X_val": X_OK, "y_val": Y_OK[:, :2]}, "y_val must have the 3 labels.*got 2"),
        ({"X_val": X_OK, "y_val": Y_OK + 1}, r"y_val must be .*values \[1, 2\]"),
        ({"sample_weight": np.ones(9)}, "sample_weight"),
        ({"sample_weight": -np.ones(10)}, "sample_weight"),
        ({"sample_weight": np.zeros(10)}, "at least one"),
        ({"sample_weight": np.full(10, np.nan)}, "NaN"),
    ],
)
def test_bad_fit_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        quick(max_epochs=2).fit(X_OK, Y_OK, **arguments)


def test_unknown_class_among_validation_rows():
    y = np.arange(10) % 2
    with pytest.raises(
        ValueError, match=r"y_val must hold the classes \[0, 1\].*\[2\]"
    ):
        quick(max_epochs=2).fit(X_OK, y, X_val=X_OK, y_val=y * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network__embedding_dim": 5}, r"got network=PaperNetwork\(embedding_dim=5"),
        ({"search__sigma0": 2.0}, r"search=CMA\(\), got search=CMA\(sigma0=2.0\)"),
        ({"losses": ("hamming", "lrap")}, "got losses="),
    ],
)
def test_warm_start_refuses_another_search(small_data, change, message):
    clf = quick(max_epochs=2, warm_start=True).fit(*small_data)
    with pytest.raises(ValueError, match=message):
        clf.set_params(**change).fit(*small_data)


def test_warm_start_refuses_other_shapes(small_data):
    X, Y = small_data
    clf = quick(max_epochs=2, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        clf.fit(X[:, :5], Y)
    with pytest.raises(ValueError, match="must have the 4 labels"):
        clf.fit(X, Y[:, :2])


def test_warm_start_with_and_without_validation_rows(small_data):
    clf = quick(max_epochs=3, warm_start=True).fit(*small_data)
    clf.set_params(validation_fraction=0).fit(*small_data)
    validation = clf.history_["mean_validation"]
    assert np.isfinite(validation[:3]).all()
    assert np.isnan(validation[3:]).all()
    assert np.isfinite(clf.history_["mean_train"]).all()


def test_an_error_during_a_warm_start_leaves_no_rows_behind(small_data):
    calls = []

    def failing(Y, scores):
        calls.append(None)
        if len(calls) > 700:
            raise RuntimeError("no more")
        return miss_rate(Y, scores)

    clf = quick(max_epochs=4, losses=("hamming", failing), warm_start=True, n_jobs=2)
    clf.fit(*small_data)
    with pytest.raises(RuntimeError, match="no more"):
        clf.fit(*small_data)
    pickle.loads(pickle.dumps(clf._search.strategy))
    assert not hasattr(clf._search, "_train")


def test_a_second_interrupt_keeps_the_model(small_data, monkeypatch):
    """While temperatures are fitted, after the last epoch."""

    def interrupted(scores, targets):
        raise KeyboardInterrupt

    monkeypatch.setattr(clml._lebesgue_estimator, "fit_temperatures", interrupted)
    X, Y = small_data
    clf = quick()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    assert clf.interrupted_
    assert clf.temperature_ == 1.0
    plain = quick(calibrate=False).fit(X, Y)
    np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("factor", [1e-170, 1e-30, 1e30, 1e170])
def test_feature_scales_do_not_matter(small_data, factor):
    X, Y = small_data
    a, b = quick().fit(X, Y), quick().fit(X * factor, Y)
    np.testing.assert_allclose(
        b.decision_function(X * factor), a.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_features_beyond_float32_are_refused(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match=r"must stay finite .*float32"):
        quick(standardize=False).fit(X * 1e40, Y)


def test_losses_that_are_never_defined_are_an_error(small_data):
    def undefined(Y, scores):
        return np.nan

    with pytest.raises(
        ValueError, match="No candidate of the first epoch had defined losses"
    ):
        quick(max_epochs=2, losses=("hamming", undefined)).fit(*small_data)


def test_a_loss_may_not_have_the_name_of_a_rule(small_data):
    def knee(Y, scores):
        return 0.5

    with pytest.raises(ValueError, match="named 'knee'"):
        quick(losses=("hamming", knee)).fit(*small_data)


def test_a_loss_function_cannot_change_the_data(small_data):
    def vandal(Y, scores):
        Y[:] = 0
        return 0.5

    with pytest.raises(ValueError, match="read-only"):
        quick(losses=("hamming", vandal)).fit(*small_data)


def test_copies_do_not_share_a_search(small_data):
    clf = quick(max_epochs=4, warm_start=True).fit(*small_data)
    twin = copy.copy(clf)
    assert twin.fit(*small_data).n_epochs_ == 4
    assert clf.fit(*small_data).n_epochs_ == 8


def test_the_warning_points_at_the_caller(small_data):
    X, Y = small_data
    with pytest.warns(UserWarning, match="constant") as caught:
        quick(max_epochs=1).fit(X, Y * [[1, 0, 1, 1]])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cross_val_predict(small_data, method):
    X, Y = small_data
    found = cross_val_predict(quick(max_epochs=3), X, Y, cv=3, method=method)
    assert found.shape == Y.shape
    one = cross_val_predict(quick(max_epochs=3), X, Y[:, 0], cv=3, method=method)
    assert one.shape == ((120, 2) if method == "predict_proba" else (120,))


def test_a_loss_outside_its_range_is_named(small_data):
    def too_large(Y, scores):
        return 5.0

    with pytest.warns(UserWarning, match="'too_large' takes values from 5 to 5"):
        quick(max_epochs=2, losses=("hamming", too_large)).fit(*small_data)


def test_losses_as_one_string():
    with pytest.raises(TypeError, match=r"such as \('hamming', 'lrap'\)"):
        quick(losses="hamming").fit(X_OK, Y_OK)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"covariance": "separable"},
        {"covariance": "full", "embedding_dim": 3},
        {"evolve": "last", "init": "surrogate"},
        {"n_members": 2},
        {"search": "rank_gradient", "population_size": 20},
    ],
    ids=str,
)
def test_populations_in_pytorch(settings):
    X, Y = make_multilabel_classification(80, 6, n_classes=3, random_state=0)
    settings = {"search": "cma", "n_members": 1, "max_epochs": 4, **settings}
    full = settings.get("covariance") == "full"
    settings = nested({**settings, "random_state": 0})
    clf = CLMLClassifier(**settings, engine="torch").fit(X, Y)
    twin = CLMLClassifier(**settings, engine="torch", device="cpu").fit(X, Y)
    assert np.array_equal(clf.theta_, twin.theta_)
    assert clf.predict(X).shape == Y.shape
    if full:  # drawn on the host in either case
        on_cpu = CLMLClassifier(**settings).fit(X, Y)
        np.testing.assert_allclose(clf.theta_, on_cpu.theta_, atol=1e-6)


def test_engine_and_device_must_agree():
    X, Y = make_multilabel_classification(40, 5, n_classes=3, random_state=0)
    for settings in (PAPER_SETTINGS, {}):
        clf = CLMLClassifier(**settings, device="abacus")
        with pytest.raises(ValueError, match="device must be"):
            clf.fit(X, Y)


def test_a_device_without_use_is_not_silent(monkeypatch):
    X, Y = make_multilabel_classification(40, 5, n_classes=3, random_state=0)
    monkeypatch.setattr(clml._classifier, "find_device", lambda name: name)
    small = {"network": "paper", "max_epochs": 2, "n_members": 2}
    clf = CLMLClassifier(**small, device="cuda", random_state=0)
    with pytest.warns(UserWarning, match="trained on the CPU"):
        clf.fit(X, Y)
    with pytest.raises(ValueError, match="engine='numpy' computes on the CPU"):
        clf.set_params(engine="numpy").fit(X, Y)


def test_a_warm_start_stays_where_its_populations_are():
    X, Y = make_multilabel_classification(40, 5, n_classes=3, random_state=0)
    settings = {**PAPER_SETTINGS, "max_epochs": 2, "random_state": 0}
    clf = CLMLClassifier(**settings, engine="torch", warm_start=True).fit(X, Y)
    assert clf.fit(X, Y).n_epochs_ == 4
    with pytest.raises(ValueError, match="warm_start continues a search with device"):
        clf.set_params(engine="numpy").fit(X, Y)


def test_report_is_a_page_of_the_run(tmp_path):
    X, Y = make_multilabel_classification(n_samples=80, random_state=0)
    clf = CLMLClassifier(**{**PAPER_SETTINGS, "max_epochs": 3}, random_state=0)
    with pytest.raises(NotFittedError):
        clf.report(tmp_path / "fit.html")
    found = clf.fit(X, Y).report(tmp_path / "fit.html", X, Y)
    assert found == tmp_path / "fit.html"
    assert found.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")

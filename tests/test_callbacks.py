"""scikit-learn's callback protocol: one task for the fit, one below it an epoch."""

import numpy as np
import pytest
from nested_settings import nested
from sklearn.model_selection import GridSearchCV

from clml import CLMLClassifier
from clml._training import own_losses as _own_losses

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on"
)


class Recorder:
    def __init__(self, stop_after=None):
        self.events, self.models, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name, context.task_id))
        self.seen = X, y, metadata

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        self.models.append(fitted_estimator)
        return self.stop_after is not None and context.task_id + 1 >= self.stop_after


def quick(**settings):
    defaults = {"search": "cma", "n_members": 1, "max_epochs": 3, "random_state": 0}
    return CLMLClassifier(**{**defaults, **settings})


def test_order_of_events(small_data):
    X, Y = small_data
    recorder = Recorder()
    clf = quick().set_callbacks(recorder)
    weight = np.ones(len(X))
    clf.fit(X, Y, sample_weight=weight)
    epochs = [(kind, "epoch", i) for i in range(3) for kind in ("begin", "end")]
    assert recorder.events == [
        "setup",
        ("begin", "fit", 0),
        *epochs,
        ("end", "fit", 0),
        "teardown",
    ]
    assert recorder.seen[0] is X
    assert recorder.seen[1] is Y
    assert recorder.seen[2]["sample_weight"] is weight


def test_callbacks_see_a_fitted_estimator_each_epoch(small_data):
    X, Y = small_data
    recorder = Recorder()
    clf = quick().set_callbacks(recorder).fit(X, Y)
    for n_epochs, model in enumerate(recorder.models[:3], 1):
        alone = quick(max_epochs=n_epochs).fit(X, Y)
        assert model.n_epochs_ == n_epochs == len(model.history_["sigma"])
        np.testing.assert_array_equal(
            model.decision_function(X), alone.decision_function(X)
        )
    np.testing.assert_array_equal(recorder.models[-1].theta_, clf.theta_)


def test_a_callback_stops_the_fit(small_data):
    recorder = Recorder(stop_after=2)
    clf = quick(max_epochs=50).set_callbacks(recorder).fit(*small_data)
    assert clf.n_epochs_ == 2
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]


def test_teardown_after_an_interrupt(small_data):
    def interrupted(Y, scores):
        raise KeyboardInterrupt

    recorder = Recorder()
    clf = quick(losses=("hamming", interrupted), incumbent="mean")
    with pytest.raises(KeyboardInterrupt):
        clf.set_callbacks(recorder).fit(*small_data)
    assert recorder.events[-1] == "teardown"


def test_without_callbacks_the_model_is_the_same(small_data):
    watched = quick().set_callbacks(Recorder()).fit(*small_data)
    np.testing.assert_array_equal(watched.theta_, quick().fit(*small_data).theta_)


def test_progress_bar(small_data, capsys):
    quick().set_callbacks(callback.ProgressBar()).fit(*small_data)
    shown = capsys.readouterr().out
    assert "CLMLClassifier - fit" in shown
    assert "100%" in shown


def test_progress_bar_of_a_search_reaches_its_fits(small_data, capsys):
    search = GridSearchCV(
        quick(network="paper"), {"network__embedding_dim": [3, 4]}, cv=2
    )
    search.set_callbacks(callback.ProgressBar()).fit(*small_data)
    assert "CLMLClassifier" in capsys.readouterr().out


def test_scoring_monitor_scores_every_epoch(small_data):
    X, Y = small_data
    monitor = callback.ScoringMonitor(scoring="accuracy")
    quick().set_callbacks(monitor).fit(X, Y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "epoch"]
    expected = [quick(max_epochs=n).fit(X, Y).score(X, Y) for n in (1, 2, 3)]
    assert [row["accuracy"] for row in rows] == expected


# Members


@pytest.fixture
def short_search_for_maps(monkeypatch):
    monkeypatch.setattr(_own_losses, "FULL", _own_losses.MapBudget(5, 64))


def members(**settings):
    defaults = {"n_members": 4, "embedding_dim": 4}
    if settings.get("search") in ("cma", "rank_gradient"):
        defaults["population_size"] = 6
    if settings.get("search") == "ascent" or settings.get("n_members") != 1:
        defaults["shrinkage"] = 1.0
    return quick(**nested({**defaults, **settings}))


SEARCHES = pytest.mark.parametrize("search", ["ascent", "cma", "rank_gradient"])


@SEARCHES
@pytest.mark.usefixtures("short_search_for_maps")
def test_callbacks_see_members_each_epoch(small_data, search):
    X, Y = small_data
    recorder = Recorder()
    clf = members(search=search).set_callbacks(recorder).fit(X, Y)
    assert [event[1] for event in recorder.events if event[0] == "end"] == [
        "epoch",
        "epoch",
        "epoch",
        "fit",
    ]
    for n_epochs, model in enumerate(recorder.models[:3], 1):
        assert model.n_epochs_ == n_epochs == len(model.history_["sigma"])
        # Their plain average: the search for maps comes after the last epoch.
        assert len(model.front_) == 1
        assert model.theta_.shape == clf.theta_.shape
        np.testing.assert_allclose(model.theta_, model.networks_)
        assert model.predict(X).shape == Y.shape
    np.testing.assert_array_equal(recorder.models[-1].theta_, clf.theta_)
    plain = members(search=search).fit(X, Y)
    np.testing.assert_array_equal(plain.theta_, clf.theta_)


@SEARCHES
@pytest.mark.usefixtures("short_search_for_maps")
def test_a_callback_stops_members(small_data, search):
    recorder = Recorder(stop_after=2)
    clf = members(search=search, max_epochs=50).set_callbacks(recorder).fit(*small_data)
    assert clf.n_epochs_ == 2
    assert not clf.interrupted_
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]


@SEARCHES
@pytest.mark.parametrize("n_members", [1, 4])
@pytest.mark.usefixtures("short_search_for_maps")
def test_an_interrupt_from_a_callback(small_data, search, n_members):
    class Impatient(Recorder):
        def on_fit_task_end(self, estimator, context, **arguments):
            super().on_fit_task_end(estimator, context, **arguments)
            if context.task_id == 1:
                raise KeyboardInterrupt

    X, Y = small_data
    recorder = Impatient()
    clf = members(search=search, n_members=n_members, max_epochs=9)
    with pytest.raises(KeyboardInterrupt):
        clf.set_callbacks(recorder).fit(X, Y)
    assert recorder.events[-1] == "teardown"
    assert clf.interrupted_
    assert clf.n_epochs_ == 2
    assert np.isfinite(clf.decision_function(X)).all()
    kept = members(
        search=search, n_members=n_members, max_epochs=9, keep_on_interrupt=True
    )
    kept.set_callbacks(Impatient()).fit(X, Y)
    np.testing.assert_array_equal(kept.theta_, clf.theta_)


@pytest.mark.usefixtures("short_search_for_maps")
def test_members_and_scikit_learns_own_callbacks(small_data, capsys):
    X, Y = small_data
    monitor = callback.ScoringMonitor(scoring="accuracy")
    members(search="ascent").set_callbacks(monitor, callback.ProgressBar()).fit(X, Y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "epoch"]
    assert len(rows) == 3
    assert "100%" in capsys.readouterr().out

"""Jobs are known again by what they do: no plan gets the results of another."""

import json
import sys
import textwrap

import numpy as np
import own_fit
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from clml.experiments._limits import Outcome
from clml.experiments._methods import MethodSpec, build_estimator
from clml.experiments.plan import Plan
from clml.experiments.results import Results
from clml.experiments.runner import run_experiment
from clml.losses import Loss, _registry, register_loss


def keys(methods, folder, data=None, **more):
    """Return the keys of the jobs that a folder did not have."""
    ran = []

    def execute(job, data, limits, stop):
        ran.append(job["method"]["name"])
        losses = {"test": dict.fromkeys(job["losses"], 0.5)}
        return Outcome({"status": "done", "losses": losses})

    data = own_fit.rows() if data is None else data
    plan = Plan({"own": data}, methods, splits=1, **more)
    results = run_experiment(plan, folder, progress=False, execute=execute)
    # What was read back is what was run, by the keys of the plan in the folder.
    assert len(Results.read(folder).records) == len(results.records) == len(methods)
    return ran


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        own = own_fit.imported(patch)
        assert keys({"m": own_fit.learner(own)}, folder) == ["m"]
    return folder


# The loss is not among the methods.
EDITS = {k: v for k, v in own_fit.EDITS.items() if k != "closure"}


@pytest.mark.parametrize("edit", EDITS)
def test_other_code_is_another_job(own_folder, monkeypatch, edit):
    own = own_fit.imported(monkeypatch, EDITS[edit])
    assert keys({"m": own_fit.learner(own)}, own_folder) == ["m"]


@pytest.mark.parametrize("edit", own_fit.NO_EDITS)
def test_other_text_is_the_same_job(own_folder, monkeypatch, edit):
    own = own_fit.imported(monkeypatch, own_fit.NO_EDITS[edit])
    assert keys({"m": own_fit.learner(own)}, own_folder) == []


@pytest.mark.parametrize(
    "other",
    [
        lambda own: own_fit.learner(own, scale=2.0),
        lambda own: own_fit.learner(own).set_params(learner__power=2),
        lambda own: own_fit.learner(own).set_params(learner__power=1.0),
        lambda own: own_fit.learner(own).set_params(shift__kw_args={"by": 2.0}),
        lambda own: own_fit.learner(own).set_params(frozen=StandardScaler()),
    ],
    ids=range(5),
)
def test_another_learner_is_another_job(own_folder, monkeypatch, other):
    assert keys({"m": other(own_fit.imported(monkeypatch))}, own_folder) == ["m"]


def test_frozen_estimators_are_different_methods(tmp_path):
    X, Y = own_fit.rows()
    one, other, again = (
        FrozenEstimator(GaussianNB().fit(X, y)) for y in (Y[:, 0], Y[:, 1], Y[:, 0])
    )
    assert keys({"m": one}, tmp_path) == ["m"]
    assert keys({"m": other}, tmp_path) == ["m"]
    assert keys({"m": again}, tmp_path) == []
    # Settings are not cloned: what is among them stays fitted.
    path = "sklearn.pipeline:Pipeline"
    for fitted in (X, 2 * X):
        scaler = StandardScaler().fit(fitted)
        settings = {"steps": [("a", FunctionTransformer(scaler.transform))]}
        method = {"estimator": path, "settings": settings}
        assert keys({"m": method}, tmp_path) == ["m"]


@pytest.mark.parametrize(
    "changed",
    [
        lambda X, Y: (X + 1e-12, Y),
        lambda X, Y: (X, 1 - Y),
        lambda X, Y: (X.astype(np.float32), Y),
        lambda X, Y: (X[:, ::-1], Y),
    ],
    ids=range(4),
)
def test_other_data_are_other_jobs(own_folder, monkeypatch, changed):
    methods = {"m": own_fit.learner(own_fit.imported(monkeypatch))}
    assert keys(methods, own_folder, changed(*own_fit.rows())) == ["m"]


def test_another_version_of_a_package_is_another_job(tmp_path, monkeypatch):
    methods = {"path": "sklearn.naive_bayes:GaussianNB", "object": GaussianNB()}
    assert len(keys(methods, tmp_path)) == 2
    assert keys(methods, tmp_path) == []
    monkeypatch.setattr("sklearn.__version__", "99.0")
    assert len(keys(methods, tmp_path)) == 2


def test_a_registered_loss_is_known_by_its_code(tmp_path, monkeypatch):
    monkeypatch.setattr(_registry, "_REGISTRY", dict(_registry._REGISTRY))
    ran = []
    for factor in (1.0, 0.5, 1.0):

        class Share(Loss):
            name = "own_share"
            statistics = ("wrong",)
            by = factor

            def close(self, sums, weight, n_labels):
                return self.by * sums["wrong"] / (weight * n_labels)

        register_loss(Share)
        losses = ["hamming", "own_share"]
        ran.append(len(keys(["GNB-BR"], tmp_path, losses=losses)))
    assert ran == [1, 1, 0]


MODULE = """
    import os
    from sklearn.dummy import DummyClassifier

    class Own(DummyClassifier):
        share = {share}
"""


def write(folder, share):
    text = textwrap.dedent(MODULE).format(share=share)
    (folder / "own_methods.py").write_text(text)


@pytest.fixture
def own_path(tmp_path, monkeypatch):
    """The path of a class in a file that may change."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own_methods", raising=False)
    write(tmp_path, 0.5)
    yield "own_methods:Own"
    sys.modules.pop("own_methods", None)


def test_a_class_of_a_path_is_known_by_its_code(tmp_path, own_path):
    inside = {"class": own_path}
    methods = {
        "path": own_path,
        "inner": {"estimator": "Tuned-forest", "settings": {"estimator": inside}},
    }
    assert len(keys(methods, tmp_path / "results")) == 2
    assert keys(methods, tmp_path / "results") == []
    del sys.modules["own_methods"]
    write(tmp_path, 0.25)
    assert len(keys(methods, tmp_path / "results")) == 2


def test_a_class_that_is_not_there_is_left_to_its_job():
    description = MethodSpec.of("m", "no_such_module:Thing").description()
    assert description["code"] == {"no_such_module:Thing": "not there"}


def test_a_job_has_the_code_that_its_plan_was_made_with(tmp_path, own_path):
    order = json.loads(json.dumps(MethodSpec.of("m", own_path).order()))
    build_estimator(order, 0)
    write(tmp_path, 0.25)
    del sys.modules["own_methods"]  # as in a process that begins now
    with pytest.raises(ValueError, match="own_methods:Own is not that of the process"):
        build_estimator(order, 0)

import json

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import clml
from clml import CMA, PAPER_SETTINGS, Ascent, CLMLClassifier
from clml.encoding import Bins, Robust
from clml.experiments._methods import build_estimator
from clml.experiments.plan import Limits, Plan, read_plan
from clml.network import PaperNetwork, WideNetwork

SMALL = {"datasets": ["synthetic"], "methods": ["CLML"]}


def test_a_plan_counts_its_jobs_and_says_what_it_is():
    plan = Plan(
        ["flags", "synthetic"],
        ["CLML", "GNB-BR"],
        splits=2,
        seeds=[0, 7],
        limits={"seconds": 60},
    )
    assert repr(plan) == "Plan(2 datasets, 2 methods, 2 splits, 2 seeds: 16 jobs)"
    resolved = plan.as_dict()
    assert [d["name"] for d in resolved["datasets"]] == ["flags", "synthetic"]
    assert resolved["methods"][1] == {
        "name": "GNB-BR",
        "estimator": "clml.baselines:GaussianNBRelevance",
        "settings": {},
        "one_vs_rest": False,
        "scale": True,
        "packages": {"clml": clml.__version__},
        "datasets": None,
        "group": "main",
    }
    assert resolved["limits"] == {"seconds": 60, "memory_mb": None, "threads": 1}
    assert resolved["losses"] == ["hamming", "lrap", "micro_f1"]


def test_a_plan_of_objects(small_data):
    plan = Plan({"mine": small_data}, {"naive": GaussianNB(var_smoothing=1e-3)})
    assert np.array_equal(plan.datasets[0].load().X, small_data[0])
    assert plan.as_dict()["methods"][0]["estimator"] == "sklearn.naive_bayes:GaussianNB"
    assert plan.as_dict()["methods"][0]["settings"]["var_smoothing"] == 1e-3


def test_an_ablation_adds_variants_of_a_method():
    plan = Plan(
        ["emotions", "flags"],
        ["CLML-paper", "GNB-BR"],
        ablation={
            "method": "CLML-paper",
            "setting": "network__embedding_dim",
            "values": [20, 40],
            "datasets": ["emotions"],
        },
        splits=1,
    )
    variant = plan.methods[-1]
    assert variant.name == "CLML-paper embedding_dim=40"
    assert variant.settings["network__embedding_dim"] == 40
    built = build_estimator(variant.order(), 0)
    assert built.network == PaperNetwork(embedding_dim=40)
    assert built.search == PAPER_SETTINGS["search"]
    assert variant.datasets == ("emotions",)
    # The paper's own width is the method itself.
    assert plan.ablation["names"] == ["CLML-paper", variant.name]
    assert repr(plan).endswith("5 jobs)")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"datasets": []}, ValueError, "datasets must not be empty"),
        ({"datasets": "flags"}, TypeError, "datasets must be a list"),
        ({"datasets": [3]}, TypeError, "datasets must hold names"),
        ({"datasets": ["a", "a"]}, ValueError, "datasets must be distinct"),
        ({"datasets": {"a": {"file": "x"}}}, ValueError, r"datasets\.a must be"),
        ({"datasets": {"a": {"labels": []}}}, ValueError, "either path or synthetic"),
        ({"datasets": {"a": {"synthetic": 3}}}, TypeError, "must be a table"),
        ({"methods": []}, ValueError, "methods must not be empty"),
        ({"methods": ["clml"]}, ValueError, "Did you mean 'CLML'"),
        ({"methods": {"a": {"estimator": "os system"}}}, ValueError, "registered"),
        ({"methods": {"a": {"class": "b:C"}}}, ValueError, r"methods\.a may have"),
        ({"methods": {"a": GaussianNB}}, TypeError, "an estimator with get_params"),
        ({"methods": {"CLML": {"settings": 3}}}, TypeError, r"CLML\.settings must"),
        ({"methods": {"CLML": {"scale": 1}}}, TypeError, r"scale must be true"),
        ({"methods": {"CLML": {"datasets": ["b"]}}}, ValueError, "of the plan"),
        ({"splits": 0}, ValueError, "splits must be an integer of at least 1"),
        ({"splits": 1001}, ValueError, "splits must be at most 1000"),
        ({"seeds": 0}, TypeError, "seeds must be a list"),
        ({"seeds": [-1]}, ValueError, "seeds must be from 0"),
        ({"seeds": [0.5]}, TypeError, "seeds must be integers"),
        ({"losses": ["haming"]}, ValueError, "Did you mean 'hamming'"),
        ({"losses": [min]}, TypeError, "losses must be text"),
        ({"test_size": 1}, ValueError, r"test_size must lie in \(0, 1\)"),
        ({"limits": {"minutes": 1}}, ValueError, "limits may have"),
        ({"limits": {"seconds": -1}}, ValueError, "limits.seconds must be a positive"),
        ({"limits": {"seconds": float("inf")}}, ValueError, "a positive number"),
        ({"limits": {"memory_mb": float("nan")}}, ValueError, "a positive number"),
        ({"limits": {"memory_mb": 10**400}}, ValueError, "a positive number"),
        ({"limits": {"threads": 0}}, ValueError, "limits.threads must be"),
        ({"ablation": {"method": "CLML"}}, ValueError, "ablation must have"),
        ({"name": 3}, TypeError, "name must be text"),
        ({"notes": "one"}, TypeError, "notes must be a list"),
    ],
)
def test_bad_plans_name_the_entry(changes, error, message):
    with pytest.raises(error, match=message):
        Plan(**{**SMALL, **changes})


def test_a_plan_is_read_with_paths_beside_it(tmp_path):
    (tmp_path / "mine.csv").write_text("x0,y0,y1\n0.5,0,1\n1.5,1,0\n")
    path = tmp_path / "plan.toml"
    path.write_text(
        """
        name = "mine"
        datasets = ["synthetic", {name = "m", path = "mine.csv", labels = ["y0", "y1"]}]
        splits = 1
        [limits]
        memory_mb = 500
        [methods.GNB-BR]
        [methods.trees]
        estimator = "sklearn.ensemble:ExtraTreesClassifier"
        scale = false
        settings = { n_estimators = 7 }
        """
    )
    plan = read_plan(path)
    assert plan.limits == Limits(memory_mb=500)
    assert plan.datasets[1].load().Y.tolist() == [[0, 1], [1, 0]]
    assert plan.methods[1].settings == {"n_estimators": 7}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"datasets = [", "not a TOML file"),
        (b"\xff", "not a TOML file"),
        (b"splits = " + b"9" * 5000, "not a TOML file"),
        (b"methods = ['CLML']", "needs the entry 'datasets'"),
        (b"datasets = ['flags']\nmethods = ['CLML']\nsplit = 3", r"got \['split'\]"),
        (b"datasets = ['flags']\nmethods = ['CLML']\nsplits = 'x'", "splits must be"),
        (b"#" * (2**20 + 1), "at most 1,048,576 bytes"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    path = tmp_path / "plan.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_plan(path)
    assert str(path) in str(caught.value)


def test_numbers_of_an_ablation_are_those_of_json():
    plan = Plan(
        **SMALL,
        ablation={
            "method": "CLML",
            "setting": "max_seconds",
            "values": [np.float64(0.5), float("inf")],
            "datasets": ["synthetic"],
        },
    )
    json.dumps(plan.as_dict(), allow_nan=False)
    assert plan.ablation["values"] == [0.5, {"float": "inf"}]


def test_an_ablation_of_values():
    """Each is a table, given as one or as the value itself."""
    ablation = {
        "method": "CLML",
        "setting": "search",
        "values": [CMA(sigma0=0.5), {"kind": "ascent", "smoothing": 1.0}],
        "datasets": ["synthetic"],
    }
    plan = Plan(**SMALL, ablation=ablation)
    assert [value["kind"] for value in plan.ablation["values"]] == ["cma", "ascent"]
    built = [build_estimator(m.order(), 0).search for m in plan.methods[-2:]]
    assert built == [CMA(sigma0=0.5), Ascent(smoothing=1.0)]


def test_values_in_a_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        """
datasets = ["synthetic"]
[methods.CLML.settings]
search = {kind = "ascent", smoothing = 0.25}
network = {kind = "wide", hidden = [32, 16]}
encoding = [{kind = "bins", n_bins = 8}, {kind = "robust"}]
[methods.CLML-paper.settings]
search__sigma0 = 0.5
[methods.inner]
estimator = "clml:LebesgueTunedClassifier"
[methods.inner.settings.estimator]
class = "clml:CLMLClassifier"
settings = {network = "wide", search = {kind = "ascent"}}
"""
    )
    plain, paper, inner = read_plan(path).methods
    found = build_estimator(plain.order(), 0)
    assert found.search == Ascent(smoothing=0.25)
    assert found.network == WideNetwork([32, 16])
    assert found.encoding == [Bins(8), Robust()]
    found = build_estimator(paper.order(), 0)
    expected = CLMLClassifier(**PAPER_SETTINGS).set_params(search__sigma0=0.5)
    assert found.search == expected.search
    assert found.network == expected.network
    assert build_estimator(inner.order(), 0)[-1].estimator.search == Ascent()
    assert all("pickled" not in method.order() for method in (plain, paper, inner))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            '{kind = "swarm"}',
            r"settings\.search: kind must be one of \['ascent', 'cma'",
        ),
        ("{kind = 3}", "kind must be one of .* got 3"),
        (
            '{kind = "cma", sigma = 1}',
            r"has the parameters \['population_size'.*'sigma'",
        ),
        ('{kind = "cma", sigma0 = {a = 1}}', "sigma0 of kind = 'cma' must be a number"),
        ('[{kind = "os:system"}]', "kind must be one of .* got 'os:system'"),
    ],
)
def test_tables_that_stand_for_no_value(tmp_path, value, message):
    path = tmp_path / "plan.toml"
    start = 'datasets = ["synthetic"]\n[methods.CLML.settings]\nsearch = '
    path.write_text(start + value)
    with pytest.raises(ValueError, match=r"plan\.toml: methods\.CLML\..*" + message):
        read_plan(path)


PLACES = {
    "own": 'settings = {client = "tcp://127.0.0.1:1"}',
    "folder": 'settings = {checkpoint = "/somewhere"}',
    "inner": 'settings = {a = [{class = "x:Y", settings = {memory = "/somewhere"}}]}',
    "grid": 'settings = {param_grid = {clf__client = ["tcp://127.0.0.1:1"]}}',
}


@pytest.mark.parametrize("name", PLACES)
def test_a_file_names_no_places(name, tmp_path):
    """A fit would send rows to a cluster of whoever wrote it."""
    path = tmp_path / "plan.toml"
    path.write_text(f'datasets = ["synthetic"]\n[methods.CLML]\n{PLACES[name]}\n')
    message = r"plan\.toml: methods\.CLML\.settings must not name a folder or a cluster"
    with pytest.raises(ValueError, match=message):
        read_plan(path)


def test_an_ablation_names_no_places(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        'datasets = ["synthetic"]\nmethods = ["CLML"]\n[ablation]\nmethod = "CLML"\n'
        'setting = "client"\nvalues = ["tcp://127.0.0.1:1"]\ndatasets = ["synthetic"]\n'
    )
    with pytest.raises(ValueError, match="must not name a folder or a cluster"):
        read_plan(path)


def test_a_method_may_have_the_name_of_a_place(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('datasets = ["synthetic"]\n[methods.client]\nestimator = "MLkNN"\n')
    assert [method.name for method in read_plan(path).methods] == ["client"]


def test_whoever_writes_python_names_what_he_likes():
    settings = {"checkpoint": "/somewhere"}
    plan = Plan(["synthetic"], {"CLML": {"settings": settings}})
    assert plan.methods[0].settings["checkpoint"] == "/somewhere"

"""Train, tune, predict, evaluate, front: as a user types them, on tiny files."""

import csv
import dataclasses
import json
import os

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone

from clml import CMA, PAPER_SETTINGS, CLMLClassifier
from clml._commands import _models, _train
from clml.baselines import MLkNNClassifier
from clml.cli import main
from clml.datasets import read_csv
from clml.encoding import Bins, Robust
from clml.losses import loss_values
from clml.network import PaperNetwork, WideNetwork
from clml.persistence import load, save

# One evolved network: what takes the least time.
QUICK = ["--epochs", "3", "--set", "search=cma", "--set", "n_members=1"]
COLUMNS = ["size", "sky", "heat", "y_rain", "y_wind"]


def run(*arguments, code=0, **settings):
    result = CliRunner().invoke(main, [str(a) for a in arguments], **settings)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def weather(n=60):
    random = np.random.default_rng(0)
    for _ in range(n):
        size, heat = random.normal(size=2).round(3)
        sky = random.choice(["blue", "grey", "red"])
        yield {
            "size": size,
            "sky": sky,
            "heat": heat,
            "y_rain": int(size + (sky == "grey") > 0.5),
            "y_wind": int(heat > 0),
            "more": "x",
        }


def write(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def table(text):
    header, *rows = csv.reader(text.splitlines())
    return header, np.array(rows, dtype=float)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A training file, a model of it, and new rows whose columns stand elsewhere."""
    folder = tmp_path_factory.mktemp("weather")
    rows = list(weather())
    write(folder / "train.csv", COLUMNS, rows)
    write(folder / "new.csv", ["heat", "more", "sky", "size"], rows[:5])
    run(
        "train",
        folder / "train.csv",
        "--labels",
        "y_*",
        "-o",
        folder / "m.clml",
        *QUICK,
    )
    return folder


# --- train -----------------------------------------------------------------------


def test_train_gives_the_model_that_python_gives(folder):
    data = read_csv(folder / "train.csv", label_prefix="y_")
    clf = CLMLClassifier(max_epochs=3, search="cma", n_members=1, random_state=0)
    clf.fit(data.X, data.Y)
    loaded = load(folder / "m.clml")
    np.testing.assert_array_equal(loaded.theta_, clf.theta_)
    assert loaded.label_names_.tolist() == ["y_rain", "y_wind"]
    assert loaded.feature_names_in_.tolist() == data.feature_names


def test_train_reports_as_json(folder, tmp_path):
    result = run(
        *("train", folder / "train.csv", "--labels", "-2", "-o", tmp_path / "m"),
        *(*QUICK, "--json", "--losses", "hamming,macro_f1", "--jobs", "2"),
    )
    report = json.loads(result.stdout)
    assert (report["rows"], report["features"]) == (60, 5)
    assert report["labels"] == ["y_rain", "y_wind"]
    assert list(report["best"]) == ["hamming", "macro_f1"]
    assert "Training on 60 rows" in result.stderr


def test_train_takes_the_settings_of_the_paper(folder, tmp_path):
    where = tmp_path / "m.clml"
    run(
        *("train", folder / "train.csv", "--labels", "y_rain,y_wind", "-o", where),
        *("--paper", "--epochs", "2", "--set", "search.ties=depth"),
    )
    model = load(where)
    assert model.search == clone(PAPER_SETTINGS["search"]).set_params(ties="depth")
    assert model.network == PAPER_SETTINGS["network"]
    assert PAPER_SETTINGS["search"].ties is None
    assert (model.n_members, model.n_epochs_) == (1, 2)


def test_settings_of_searches_networks_and_encodings(folder, tmp_path):
    where = tmp_path / "m.clml"
    train = ("train", folder / "train.csv", "--labels", "y_rain,y_wind", "-o", where)
    run(
        *(*train, *QUICK, "--set", "search.sigma0=0.5", "--set", "network=paper"),
        *("--set", "network.embedding_dim=3", "--set", "search.population_size=none"),
    )
    model = load(where)
    assert model.search == CMA(sigma0=0.5, population_size=None)
    assert model.network == PaperNetwork(embedding_dim=3)
    run(
        *(*train, "--force", "--epochs", "1", "--set", "n_members=2"),
        *("--set", "network={'kind': 'wide', 'hidden': [4]}"),
        *("--set", "encoding=[{'kind': 'bins', 'n_bins': 3}, {'kind': 'robust'}]"),
        *("--set", "network__dropout=0.1"),
    )
    model = load(where)
    assert model.network == WideNetwork([4], dropout=0.1)
    assert model.encoding == [Bins(3), Robust()]


WRONG_TRAINING = [
    ([], "must say which columns are labels"),
    (["--labels", "y_*", "--losses", "haming"], "Did you mean 'hamming'"),
    (["--labels", "y_*", "--set", "n_member=2"], "Did you mean 'n_members'"),
    (["--labels", "y_*", "--set", "n_members"], "expected NAME=VALUE"),
    (["--labels", "y_*", "--set", "sigma0=2"], "sigma0 is a parameter of searches"),
    (["--labels", "y_*", "--set", "search.sigma0=2"], "search='auto' has no param"),
    (["--labels", "y_*", "--set", "search={'kind': 'swarm'}"], "kind must be one of"),
    (
        ["--labels", "y_*", "--set", "search=cma", "--set", "search.depth=2"],
        "CMA has no parameter 'depth'",
    ),
    (["--labels", "y_*", "--set", "encoding.n_bins=2"], "encoding='auto' has no par"),
    (["--labels", "y_*", "--set", "max_epochs=3"], "option of its own, --epochs"),
    (["--labels", "5"], "cannot hold 5 labels"),
    (["--labels", "0"], "--labels"),
    (["--labels", "z_*"], "begins with 'z_'"),
    (["--labels", "y_*", "--epochs", "0"], "--epochs"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_TRAINING)
def test_wrong_usage_of_train(folder, tmp_path, arguments, message):
    where = tmp_path / "m"
    result = run("train", folder / "train.csv", "-o", where, *arguments, code=2)
    assert message in result.stderr
    assert not result.stdout
    assert not list(tmp_path.iterdir())


WRONG_DATA = [
    (["--labels", "rain"], "there is no column for the label 'rain'"),
    (["--labels", "y_*", "--set", "n_members=0"], "n_members"),
    (["--labels", "y_*", "--losses", "row_log_loss"], "cannot be optimised"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_DATA)
def test_wrong_data_and_settings(folder, tmp_path, arguments, message):
    where = tmp_path / "m"
    result = run("train", folder / "train.csv", "-o", where, *arguments, code=1)
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_data_that_are_not_there(tmp_path):
    result = run("train", "emotion", "-o", tmp_path / "m", code=2)
    assert "Did you mean 'emotions'?" in result.stderr


def test_missing_values_are_named(folder, tmp_path):
    rows = [{**row, "heat": ""} if n == 3 else row for n, row in enumerate(weather())]
    path = write(tmp_path / "gaps.csv", COLUMNS, rows)
    given = ["train", path, "--labels", "y_*", "--set", "network=paper"]
    result = run(*given, "-o", tmp_path / "m", code=1)
    assert "values are missing (1, in the columns ['heat'])" in result.stderr
    assert "--set network=wide" in result.stderr


def test_wide_networks_take_missing_values(tmp_path):
    rows = [{**row, "heat": ""} if n % 3 else row for n, row in enumerate(weather())]
    path, model = write(tmp_path / "gaps.csv", COLUMNS, rows), tmp_path / "m.clml"
    settings = ["--set", "n_members=2", "--epochs", "2"]
    run("train", path, "--labels", "y_*", "-o", model, *settings)
    assert len(table(run("predict", model, path).stdout)[1]) == 60
    assert "60 rows" in run("evaluate", model, path).stdout


def test_losses_that_were_given_as_code_are_not_evaluated(tmp_path, small_data):
    def own(Y, scores):
        return float(((scores > 0) != Y).mean())

    X, Y = small_data
    losses = ("lrap", own)
    clf = CLMLClassifier(losses, n_members=2, max_epochs=1, shrinkage=0.5).fit(X, Y)
    clf.save(tmp_path / "m.clml")
    columns = [f"x{i}" for i in range(8)] + [f"label{k}" for k in range(4)]
    rows = [dict(zip(columns, row, strict=True)) for row in np.hstack([X, Y]).tolist()]
    data = write(tmp_path / "rows.csv", columns, rows)
    result = run("evaluate", tmp_path / "m.clml", data, "--labels", "label*")
    assert "Left out: own, which the model was given as code." in result.stderr
    assert "lrap" in result.stdout
    assert "own" not in result.stdout
    assert "own" in run("front", tmp_path / "m.clml").stdout


def test_an_existing_model_is_kept(folder, tmp_path):
    where = tmp_path / "m.clml"
    where.write_text("mine")
    arguments = ["train", folder / "train.csv", "--labels", "y_*", "-o", where, *QUICK]
    assert "--force replaces it" in run(*arguments, code=2).stderr
    assert where.read_text() == "mine"
    run(*arguments, "--force")
    assert load(where).n_labels_ == 2


def test_an_interrupt_leaves_nothing(folder, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(CLMLClassifier, "fit", interrupt)
    where = tmp_path / "m"
    arguments = ("--labels", "y_*", "-o", where)
    result = run("train", folder / "train.csv", *arguments, code=130)
    assert "Interrupted." in result.stderr
    assert not list(tmp_path.iterdir())


# --- predict ---------------------------------------------------------------------


def test_predict_finds_columns_by_their_names(folder):
    data = read_csv(folder / "train.csv", label_prefix="y_")
    names, values = table(run("predict", folder / "m.clml", folder / "new.csv").stdout)
    model = load(folder / "m.clml")
    del model.feature_names_in_
    assert names == ["y_rain", "y_wind"]
    np.testing.assert_array_equal(values, model.predict(data.X[:5]))


@pytest.mark.parametrize(
    ("option", "method"),
    [("--proba", "predict_proba"), ("--scores", "decision_function")],
)
def test_predict_writes_numbers_exactly(folder, tmp_path, option, method):
    where = tmp_path / "out.csv"
    arguments = (
        "predict",
        folder / "m.clml",
        folder / "train.csv",
        option,
        "-o",
        where,
    )
    assert not run(*arguments, "--select", "hamming=1,lrap=2").stdout
    _, values = table(where.read_text(encoding="utf-8"))
    data = read_csv(folder / "train.csv", label_prefix="y_")
    model = load(folder / "m.clml").select(weights={"hamming": 1, "lrap": 2})
    del model.feature_names_in_
    np.testing.assert_array_equal(values, getattr(model, method)(data.X))


@pytest.fixture
def appears(tmp_path, monkeypatch):
    """A file that somebody else writes while this command works."""
    path = tmp_path / "out.x"

    def meanwhile(module, name):
        work = getattr(module, name)

        def slow(*arguments, **settings):
            path.write_text("theirs")
            return work(*arguments, **settings)

        monkeypatch.setattr(module, name, slow)
        return path

    return meanwhile


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_model_whose_name_is_taken_meanwhile_has_another(
    command, folder, tmp_path, appears
):
    if command == "tune":
        pytest.importorskip("skops")
    path = appears(_train, "_fit")
    (tmp_path / "out-2.x").touch()
    quick = QUICK if command == "train" else ["--epochs", "1", "--set", "cv=2"]
    given = [command, folder / "train.csv", "--labels", "y_*", "-o", path, *quick]
    result = run(*given, "--json", code=1)
    kept = tmp_path / "out-3.x"
    assert json.loads(result.stdout)["model"] == str(kept)
    assert f"{path} appeared during the training" in result.stderr
    assert f"the model is in {kept}" in result.stderr
    assert path.read_text() == "theirs"
    assert load(kept).label_names_.tolist() == ["y_rain", "y_wind"]
    run(*given, "--force")
    assert load(path).n_labels_ == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out-2.x", "out-3.x", "out.x"]


def test_predictions_whose_name_is_taken_meanwhile_are_refused(folder, appears):
    path = appears(_models, "read_rows")
    given = ["predict", folder / "m.clml", folder / "new.csv", "-o", path]
    assert "is not to be replaced" in run(*given, code=1).stderr
    assert path.read_text() == "theirs"
    run(*given, "--force")
    assert path.read_text().startswith("y_rain")


@pytest.mark.skipif(os.name != "posix", reason="of POSIX")
@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("command", ["train", "tune", "predict"])
def test_outputs_that_are_no_files_are_refused_at_once(
    command, force, folder, tmp_path
):
    os.mkfifo(tmp_path / "pipe")
    data = [folder / "m.clml"] if command == "predict" else []
    given = [command, *data, folder / "new.csv", "-o", tmp_path / "pipe", *force]
    assert "is a named pipe, expected the path of" in run(*given, code=2).stderr


def test_predict_as_json(folder, tmp_path):
    model, new, where = folder / "m.clml", folder / "new.csv", tmp_path / "out.csv"
    shown = json.loads(run("predict", model, new, "--json").stdout)
    assert (shown["rows"], shown["kind"]) == (5, "labels")
    assert np.shape(shown["values"]) == (5, 2)
    written = json.loads(run("predict", model, new, "--json", "-o", where).stdout)
    assert written["output"] == str(where)
    assert where.exists()


WRONG_PREDICTION = [
    (["--select", "haming"], 2, "Did you mean 'hamming'?"),
    (["--select", "hamming=a"], 2, "weights are written as"),
    (["--select", "999"], 2, "got index 999"),
    (["-o", "absent/out.csv"], 2, "existing folder that can be written"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG_PREDICTION)
def test_wrong_usage_of_predict(folder, arguments, code, message):
    new = folder / "new.csv"
    result = run("predict", folder / "m.clml", new, *arguments, code=code)
    assert message in result.stderr


WRONG_ROWS = [
    ("sky,size\ngrey,1\n", "no columns for the features ['heat']"),
    ("sky,size,heat\npink,1,1\n", "must have values of like"),
    ("sky,size,heat\ngrey,,1\n", "values are missing"),
    ("sky,size,heat\n", "no rows"),
    ("", "empty"),
]


@pytest.mark.parametrize(("text", "message"), WRONG_ROWS)
def test_rows_that_do_not_fit_the_model(folder, tmp_path, text, message):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    result = run("predict", folder / "m.clml", path, code=1)
    assert message in result.stderr
    assert not result.stdout


def test_unknown_words_can_be_left_out(folder, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("sky,size,heat\npink,1,1\n")
    result = run("predict", folder / "m.clml", path, "--unknown", "ignore")
    assert table(result.stdout)[1].shape == (1, 2)


# --- evaluate, front -------------------------------------------------------------


def test_evaluate_gives_the_losses_of_python(folder):
    data = read_csv(folder / "train.csv", label_prefix="y_")
    model = load(folder / "m.clml")
    del model.feature_names_in_
    names = ["hamming", "macro_f1", "row_log_loss"]
    expected = loss_values(data.Y, model.decision_function(data.X), names)
    result = run(
        *("evaluate", folder / "m.clml", folder / "train.csv"),
        *("--losses", ",".join(names), "--json"),
    )
    found = json.loads(result.stdout)["losses"]
    assert found == dict(zip(names, expected.tolist(), strict=True))
    assert "was trained on these rows" in result.stderr


def test_evaluate_parts_of_a_division(folder, tmp_path):
    where, train = tmp_path / "m", folder / "train.csv"
    run("train", train, "--labels", "y_*", "-o", where, *QUICK, "--part", "train")
    result = run("evaluate", where, train, "--part", "test")
    assert result.stdout.startswith("18 rows, 2 labels\nhamming ")
    assert not result.stderr
    for arguments in (["--part", "train"], ["--part", "test", "--split-seed", "1"], []):
        warned = run("evaluate", where, train, *arguments).stderr
        assert "was trained on these rows" in warned


def test_evaluate_needs_the_labels(folder):
    result = run("evaluate", folder / "m.clml", folder / "new.csv", code=1)
    assert "no column for the label 'y_rain'" in result.stderr


def test_front_lists_its_members(folder):
    front = load(folder / "m.clml").front_
    lines = run("front", folder / "m.clml").stdout.splitlines()
    assert len(lines) == len(front) + 2
    assert lines[-1].startswith("Predicts: 'mean'")
    best = front.select("lrap")
    lines = run("front", folder / "m.clml", "--select", "lrap").stdout.splitlines()
    assert lines[best + 1].startswith("*")
    assert "lrap" in lines[best + 1]
    found = json.loads(run("front", folder / "m.clml", "--json").stdout)
    assert [
        list(m["losses"].values()) for m in found["members"]
    ] == front.losses.tolist()


def test_front_shows_errors_and_the_default(folder, tmp_path):
    data = read_csv(folder / "train.csv", label_prefix="y_")
    clf = CLMLClassifier(network="paper", max_epochs=3, random_state=0)
    front = clf.fit(data.X, data.Y).front_
    save(clf, tmp_path / "m")
    lines = run("front", tmp_path / "m").stdout.splitlines()
    assert lines[-1].startswith(f"Predicts: member {front.default}, marked with *")
    assert lines[front.default + 1].startswith("*")
    loss, error = front.losses[0, 0], front.standard_error[0, 0]
    assert f"{loss:.4f} ±{error:.4f}" in lines[1]
    found = json.loads(run("front", tmp_path / "m", "--json").stdout)
    errors = [list(m["standard_errors"].values()) for m in found["members"]]
    assert errors == front.standard_error.tolist()


def test_front_shows_what_decides_rows(folder, tmp_path):
    data = read_csv(folder / "train.csv", label_prefix="y_")
    clf = CLMLClassifier(n_members=2, max_epochs=2, random_state=0)
    clf.fit(data.X, data.Y)
    m = len(clf.front_)
    rules = ("best_prefix", *[None] * (m - 1))
    clf.front_ = dataclasses.replace(clf.front_, rules=rules)
    save(clf, tmp_path / "m")
    lines = run("front", tmp_path / "m").stdout.splitlines()
    assert "rows by" in lines[0] and "best_prefix" in lines[1]
    assert not any("best_prefix" in line for line in lines[2:])
    found = json.loads(run("front", tmp_path / "m", "--json").stdout)
    assert [member["rule"] for member in found["members"]] == list(rules)


# --- models from Python, other formats -------------------------------------------


def test_a_baseline_of_python_without_names(folder, tmp_path):
    data = read_csv(folder / "train.csv", label_prefix="y_")
    clf = MLkNNClassifier().fit(data.X, data.Y)
    save(clf, tmp_path / "m")
    # Its columns are those in the file's order, labels left out by --labels alone.
    result = run(
        *("evaluate", tmp_path / "m", folder / "train.csv", "--labels", "y_*", "--json")
    )
    expected = loss_values(data.Y, clf.decision_function(data.X), ("hamming",))
    assert json.loads(result.stdout)["losses"]["hamming"] == expected[0]
    assert "no front" in run("front", tmp_path / "m", code=1).stderr
    arguments = ("predict", tmp_path / "m", folder / "new.csv", "--select", "knee")
    assert "no front" in run(*arguments, code=2).stderr


def test_a_model_of_one_label_with_classes(tmp_path):
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.where(X[:, 0] > 0, "yes", "no")
    save(
        CLMLClassifier(max_epochs=2, n_members=2, random_state=0).fit(X, y),
        tmp_path / "m",
    )
    path = tmp_path / "rows.csv"
    path.write_text("x\n-1\n1\n")
    lines = run("predict", tmp_path / "m", path).stdout.splitlines()
    assert lines[0] == "label0"
    assert set(lines[1:]) <= {"yes", "no"}
    assert table(run("predict", tmp_path / "m", path, "--proba").stdout)[1].shape == (
        2,
        1,
    )


@pytest.fixture(scope="module")
def strange_names(tmp_path_factory):
    """A model whose labels are called what spreadsheets and files do not take."""
    folder = tmp_path_factory.mktemp("strange")
    X = np.linspace(-1, 1, 40)[:, None]
    Y = pd.DataFrame(np.hstack([X > 0, X > 0.3, X < 0.2]).astype(int))
    Y.columns = pd.Index(["=1+1", "-1", "a\ud800"], dtype=object)
    clf = CLMLClassifier(max_epochs=2, n_members=2, random_state=0).fit(X, Y)
    save(clf, folder / "m")
    assert list(load(folder / "m").label_names_) == list(Y.columns)
    (folder / "rows.csv").write_text("x\n-1\n1\n")
    return folder


def test_predictions_hold_no_formulas(strange_names, tmp_path):
    arguments = ("predict", strange_names / "m", strange_names / "rows.csv")
    header, values = table(run(*arguments, "--scores").stdout)
    assert header == ["'=1+1", "-1", r"a\ud800"]
    assert (values < 0).any()
    run(*arguments, "--scores", "-o", tmp_path / "out.csv")
    found = table((tmp_path / "out.csv").read_text(encoding="utf-8"))
    assert found[0] == header
    assert (found[1] == values).all()


def test_names_in_json_are_as_they_are(strange_names):
    arguments = ("predict", strange_names / "m", strange_names / "rows.csv", "--json")
    labels = json.loads(run(*arguments).stdout)["labels"]
    assert labels == ["=1+1", "-1", "a\ud800"]


def test_predicted_classes_are_no_formulas(tmp_path):
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.where(X[:, 0] > 0, "@yes", "=no")
    save(
        CLMLClassifier(max_epochs=2, n_members=2, random_state=0).fit(X, y),
        tmp_path / "m",
    )
    (tmp_path / "rows.csv").write_text("x\n-1\n1\n")
    lines = run("predict", tmp_path / "m", tmp_path / "rows.csv").stdout.splitlines()
    assert set(lines[1:]) <= {"'@yes", "'=no"}


def test_svmlight_indices_begin_where_those_of_training_did(tmp_path):
    labels = [",".join(["3"] * (n % 2) + ["7"] * (n % 5 > 2)) for n in range(40)]
    lines = [f"{labels[n]} 0:{n % 5} 2:{n % 3}" for n in range(40)]
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "test.svm").write_text(" 1:1 2:1\n7 2:2\n")
    run("train", tmp_path / "train.svm", "-o", tmp_path / "m", *QUICK)
    result = run("predict", tmp_path / "m", tmp_path / "test.svm", "--scores")
    names, values = table(result.stdout)
    assert names == ["3", "7"]
    expected = load(tmp_path / "m").decision_function([[0, 1, 1], [0, 0, 2]])
    np.testing.assert_allclose(values, expected)
    # The label 3 does not occur in the second file.
    found = run("evaluate", tmp_path / "m", tmp_path / "test.svm", "--json")
    assert json.loads(found.stdout)["labels"] == ["3", "7"]


def test_arff_with_and_without_labels(tmp_path):
    head = "@relation w\n@attribute a numeric\n@attribute sky {blue,grey,red}\n"
    label = "@attribute rain {0,1}\n@attribute wind {0,1}\n"
    rows = [
        (n % 7, ["blue", "grey", "red"][n % 3], n % 2, n % 5 // 3) for n in range(40)
    ]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "w.arff").write_text(f"{head}{label}@data\n{text}\n")
    names = '<labels><label name="rain"/><label name="wind"/></labels>'
    (tmp_path / "labels.xml").write_text(names)
    (tmp_path / "new.arff").write_text(f"{head}@data\n1,red\n2,blue\n")
    xml, where = tmp_path / "labels.xml", tmp_path / "m"
    run("train", tmp_path / "w.arff", "--labels", xml, "-o", where, *QUICK)
    assert load(where).label_names_.tolist() == ["rain", "wind"]
    _, values = table(run("predict", where, tmp_path / "new.arff").stdout)
    assert values.shape == (2, 2)
    assert run("evaluate", where, tmp_path / "w.arff").stdout.startswith("40 rows")


def test_parquet_reads_as_csv_does(folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.read_csv(folder / "new.csv").to_parquet(tmp_path / "new.parquet")
    outputs = {
        run("predict", folder / "m.clml", path, "--scores").stdout
        for path in (folder / "new.csv", tmp_path / "new.parquet")
    }
    assert len(outputs) == 1


# --- tune ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "setting"),
    [
        ("random_forest", "n_estimators=5"),
        ("extra_trees", "n_estimators=5"),
        ("logistic_regression", "C=0.5"),
        ("sklearn.neighbors:KNeighborsClassifier", "n_neighbors=3"),
        ("sklearn.naive_bayes:GaussianNB", "var_smoothing=0.1"),
    ],
)
def test_tune_and_use(folder, tmp_path, estimator, setting):
    where = tmp_path / "m.skops"
    run(
        *("tune", folder / "train.csv", "--labels", "y_*", "--estimator", estimator),
        *("-o", where, "--epochs", "3", "--set", "cv=2", "--set", "shrinkage=0.5"),
        *("--set", f"estimator__{setting}"),
    )
    result = run("evaluate", where, folder / "train.csv", "--json")
    assert json.loads(result.stdout)["losses"]["hamming"] < 0.5
    names, _ = table(run("predict", where, folder / "new.csv").stdout)
    assert names == ["y_rain", "y_wind"]
    assert "best for" in run("front", where).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--estimator", "forest"], "Did you mean 'random_forest'?"),
        (["--estimator", "absent:Class"], "No module named 'absent'"),
        (["--estimator", "os:system"], "no estimator"),
        (["--set", "estimator__trees=3"], "no setting 'estimator__trees'"),
        (["--set", "estimator=3"], "option of its own"),
    ],
)
def test_wrong_usage_of_tune(folder, tmp_path, arguments, message):
    where = tmp_path / "m"
    base = ("tune", folder / "train.csv", "--labels", "y_*", "-o", where)
    assert message in run(*base, *arguments, code=2).stderr

"""The page of one fitted estimator."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from clml import (
    PAPER_SETTINGS,
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
)
from clml.losses import loss_values
from clml.report import build_page, estimator_data, report_of

PAPER = PAPER_SETTINGS | {"max_epochs": 8, "random_state": 0}
LEARNER = MultiOutputClassifier(LogisticRegression())
SHORT = {"max_epochs": 5, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(small_data):
    X, Y = small_data
    return CLMLClassifier(**PAPER | {"incumbent": "knee"}).fit(X, Y)


def test_every_member_is_judged(fitted, small_data):
    X, Y = small_data
    (run,) = estimator_data(fitted, X, Y)["runs"]
    front = run["front"]
    for i, member in enumerate(range(len(fitted.front_))):
        model = fitted.select(member)
        scores = model.decision_function(X)
        assert front["test"][i] == pytest.approx(loss_values(Y, scores))
        decided = model.predict(X) == 1
        assert front["predicted"][i] == decided.sum(axis=0).tolist()
        assert front["hits"][i] == (decided & (Y == 1)).sum(axis=0).tolist()
    assert front["relevant"] == Y.sum(axis=0).tolist()
    assert front["default"]["index"] == fitted.incumbent_ == front["start"]
    assert len(run["trajectory"]["epochs"]) == 8


def test_model_that_is_no_member_is_judged_too(small_data):
    X, Y = small_data
    clf = CLMLClassifier(**PAPER).fit(X, Y)
    default = estimator_data(clf, X, Y)["runs"][0]["front"]["default"]
    assert default["index"] is None
    expected = loss_values(Y, clf.decision_function(X))
    assert default["test"] == pytest.approx(expected)
    assert default["predicted"] == clf.predict(X).sum(axis=0).tolist()
    last = clf.history_["incumbent_validation"][-1]
    assert default["validation"] == pytest.approx(last)


@pytest.mark.parametrize(
    "estimator",
    [
        CLMLClassifier(n_members=2, **SHORT),
        CLMLClassifier(losses=("hamming",), search="cma", n_members=1, **SHORT),
        LebesgueTunedClassifier(LEARNER, cv=2, **SHORT),
        LebesgueStackingClassifier([("a", LEARNER), ("b", LEARNER)], cv=2, **SHORT),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.losses[-1]}",
)
def test_other_estimators(estimator, small_data, tmp_path):
    X, Y = small_data
    clf = estimator.fit(X, Y)
    page = report_of(clf, tmp_path / "fit.html", X, Y).read_text(encoding="utf-8")
    assert f"A fitted {type(clf).__name__}" in page
    assert ">precision<" in page


def test_without_rows_there_are_no_test_losses(fitted):
    data = estimator_data(fitted)
    assert data["runs"][0]["front"]["test"] is None
    assert "Hamming loss, test" not in build_page(data)


def test_label_names_of_a_frame(small_data):
    X, Y = small_data
    frame = pd.DataFrame(Y, columns=["<b>one</b>", "two", "three", "four"])
    clf = CLMLClassifier(**PAPER).fit(X, frame)
    page = build_page(estimator_data(clf, X, frame))
    assert "&lt;b&gt;one&lt;/b&gt;" in page and "<b>one" not in page


def test_names_may_hold_halves_of_characters(small_data, tmp_path):
    X, Y = small_data[0], pd.DataFrame(small_data[1])
    # pandas keeps such names as objects only.
    Y.columns = pd.Index(["l0\ud800", "two", "three", "four"], dtype=object)
    clf = CLMLClassifier(**PAPER).fit(X, Y)
    page = clf.report(tmp_path / "page.html", X, Y).read_text(encoding="utf-8")
    assert r">l0\ud800</th>" in page


def test_two_classes(small_data):
    X, Y = small_data
    y = np.where(Y[:, 0] == 1, "yes", "no")
    clf = CLMLClassifier(("hamming", "micro_f1"), search="cma", n_members=1, **SHORT)
    front = estimator_data(clf.fit(X, y), X, y)["runs"][0]["front"]
    assert front["relevant"] == [int((y == "yes").sum())]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, Y: (X, None), ValueError, "X and Y go together, but Y is None"),
        (lambda X, Y: (None, Y), ValueError, "X and Y go together, but X is None"),
        (lambda X, Y: (X, Y[:, :2]), ValueError, "Y must have the 4 labels"),
        (lambda X, Y: (X, Y[:9]), ValueError, "as many rows, got 120 and 9"),
    ],
)
def test_bad_rows_are_refused(fitted, small_data, change, error, message):
    with pytest.raises(error, match=message):
        estimator_data(fitted, *change(*small_data))


@pytest.mark.parametrize(
    "estimator", ["clf", LogisticRegression().fit([[0], [1]], [0, 1])]
)
def test_what_has_no_front_is_refused(estimator):
    with pytest.raises(TypeError, match="estimator must"):
        estimator_data(estimator)

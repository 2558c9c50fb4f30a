import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml import PAPER_SETTINGS, CLMLClassifier
from clml._learners.scores import label_scores
from clml.experiments._artifacts import artifacts_of, shown_members, validation_losses
from clml.losses import loss_values
from clml.plots import CalibrationCurvesDisplay, LabelProbabilityDisplay

NAMES = np.array(["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def parts(small_data):
    X, Y = small_data
    return X[:80], X[80:], Y[:80], Y[80:]


@pytest.fixture(scope="module")
def paper_model(parts):
    settings = {**PAPER_SETTINGS, "max_epochs": 8}
    return CLMLClassifier(**settings, random_state=0).fit(parts[0], parts[2])


def test_the_arrays_of_a_front(paper_model, parts):
    X_test, Y_test = parts[1], parts[3]
    found = artifacts_of(paper_model, parts, NAMES, 0)
    m, k = len(paper_model.front_), 4
    assert found["front/validation"].shape == found["front/test"].shape == (m, 3)
    assert found["front/hits"].shape == found["front/predicted"].shape == (m, k)
    assert found["front/relevant"].tolist() == Y_test.sum(axis=0).tolist()
    assert (found["front/hits"] <= found["front/predicted"]).all()
    assert found["front/loss_names"].tolist() == ["hamming", "lrap", "micro_f1"]
    member = paper_model.select(0)
    assert (
        found["front/predicted"][0].tolist() == member.predict(X_test).sum(0).tolist()
    )
    losses = loss_values(Y_test, label_scores(member, X_test, k))
    assert np.allclose(found["front/test"][0], losses)
    assert found["front/chosen"] == -1  # the final incumbent predicts
    assert found["labels"].tolist() == NAMES.tolist()


def test_the_arrays_of_a_run(paper_model, parts):
    found = artifacts_of(paper_model, parts, NAMES, 0)
    assert found["history/incumbent_train"].shape == (8, 3)
    assert found["history/sigma"].shape == (8,)
    X_test, Y_test = parts[1], parts[3]
    for when in ("before", "after", "calibrated"):
        assert found[f"probability/{when}"].shape == (2, 50)
        assert found[f"probability/{when}"].sum() == Y_test.size
        mean, share = found[f"calibration/{when}"]
        counts = found[f"probability/{when}"].sum(axis=0).reshape(10, 5).sum(axis=1)
        empty = counts == 0
        assert np.array_equal(np.isnan(mean), empty)
        edges = np.linspace(0, 1, 11)
        assert (mean[~empty] >= edges[:-1][~empty]).all()
        assert (mean[~empty] <= edges[1:][~empty]).all()
        assert ((share[~empty] >= 0) & (share[~empty] <= 1)).all()
    display = LabelProbabilityDisplay.from_estimator(paper_model, X_test, Y_test)
    assert np.array_equal(found["probability/after"], display.after)
    assert np.array_equal(found["probability/calibrated"], display.calibrated)
    curves = CalibrationCurvesDisplay.from_estimator(paper_model, X_test, Y_test)
    assert np.allclose(found["calibration/after"], curves.after, equal_nan=True)
    wrong = found["probability/after"][1].sum() / Y_test.size
    assert wrong == loss_values(Y_test, label_scores(paper_model, X_test, 4))[0]


def test_the_arrays_are_plain(paper_model, parts):
    found = artifacts_of(paper_model, parts, NAMES, 0)
    assert all(np.asarray(a).dtype.kind in "biufU" for a in found.values())


def test_a_pipeline_is_looked_into(parts):
    settings = {**PAPER_SETTINGS, "max_epochs": 3, "incumbent": "lrap"}
    model = CLMLClassifier(**settings, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(parts[0], parts[2])
    found = artifacts_of(pipeline, parts, NAMES, 0)
    chosen = int(found["front/chosen"])
    losses = loss_values(parts[3], label_scores(pipeline, parts[1], 4))
    assert np.allclose(found["front/test"][chosen], losses, atol=1e-6)
    judged = validation_losses(pipeline)
    assert list(judged.values()) == found["front/validation"][chosen].tolist()


def test_validation_losses_of_the_final_incumbent(paper_model):
    expected = paper_model.history_["incumbent_validation"][-1]
    found = validation_losses(paper_model)
    followed = paper_model.history_["incumbent_row_log_loss_validation"][-1]
    assert found.pop("row_log_loss") == followed
    assert list(found.values()) == expected.tolist()


def test_others_have_none(parts):
    model = GaussianNB().fit(parts[0], parts[2][:, 0])
    assert artifacts_of(model, parts, NAMES, 0) == {}
    assert validation_losses(model) is None


def test_long_fronts_are_thinned():
    losses = np.random.default_rng(0).random((50, 3))
    shown = shown_members(losses, 10, chosen=7)
    assert len(shown) <= 14
    assert {7, *losses.argmin(axis=0)} <= set(shown)
    assert np.array_equal(shown_members(losses, 50), np.arange(50))


def test_the_final_one_of_several_members_has_no_validation_losses(parts):
    # Its output map came after the history, whose last line is of the plain mean.
    model = CLMLClassifier(n_members=2, max_epochs=1, incumbent="final", random_state=0)
    model.fit(parts[0], parts[2])
    assert hasattr(model, "networks_")
    assert validation_losses(model) is None

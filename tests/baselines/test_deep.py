"""What every network here does as an estimator, shown on the plain one."""

import os
import signal
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    MLPRelevanceClassifier,
)
from clml.baselines._deep import DeepClassifier
from clml.baselines._training import Training


def quick(**parameters):
    defaults = {"n_units": 8, "max_epochs": 6, "random_state": 0}
    return MLPRelevanceClassifier(**{**defaults, **parameters})


@pytest.fixture(scope="module")
def data(small_data):
    X, Y = small_data
    return (X - X.mean(axis=0)) / X.std(axis=0), Y


def test_history(data):
    mlp = quick().fit(*data)
    assert set(mlp.history_) == {
        "train_loss",
        "validation_binary_cross_entropy",
        "seconds",
    }
    assert all(values.shape == (6,) for values in mlp.history_.values())
    assert mlp.n_epochs_ == 6
    validation = mlp.history_["validation_binary_cross_entropy"]
    assert mlp.best_epoch_ == validation.argmin() + 1


def test_weights_of_the_best_epoch_are_kept(data):
    """A fit that ends with the best epoch gives the same model as one that went on."""
    overfits = {"n_units": 64, "dropout": 0.0, "learning_rate": 0.01}
    long = quick(max_epochs=60, **overfits).fit(*data)
    assert 1 < long.best_epoch_ < 60
    short = quick(max_epochs=long.best_epoch_, **overfits).fit(*data)
    for name, array in long.weights_.items():
        np.testing.assert_array_equal(array, short.weights_[name])


def test_patience(data):
    mlp = quick(max_epochs=200, learning_rate=0.05, patience=3).fit(*data)
    assert mlp.n_epochs_ == mlp.best_epoch_ + 3


def test_given_validation_rows_decide(data):
    X, Y = data
    long = quick(max_epochs=30, patience=None)
    a = clone(long).fit(X, Y, X_val=X[:40], y_val=Y[:40])
    b = clone(long).fit(X, Y, X_val=X[:40], y_val=1 - Y[:40])
    assert b.best_epoch_ < a.best_epoch_
    # All rows train: the same batches, whatever judges.
    np.testing.assert_array_equal(a.history_["train_loss"], b.history_["train_loss"])
    with pytest.raises(ValueError, match="but y_val is None"):
        quick().fit(X, Y, X_val=X)
    with pytest.raises(ValueError, match="the 4 labels that were fitted, got 3"):
        quick().fit(X, Y, X_val=X, y_val=Y[:, :3])


def test_no_validation_rows(data):
    mlp = quick(validation_fraction=0).fit(*data)
    assert set(mlp.history_) == {"train_loss", "seconds"}
    assert mlp.best_epoch_ == 6


def test_sample_weight_leaves_rows_out(data):
    X, Y = data
    weight = (np.arange(len(X)) < 60).astype(float)
    a = quick().fit(X, Y, sample_weight=weight)
    b = quick().fit(X[:60], Y[:60])
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


def test_sample_weight_moves_the_model(data):
    X, Y = data
    weight = np.where(Y[:, 0] == 1, 20.0, 1.0)
    plain, weighted = (
        quick(max_epochs=30).fit(X, Y, sample_weight=w).predict_proba(X)[:, 0].mean()
        for w in (None, weight)
    )
    assert weighted > plain


def test_rows_do_not_depend_on_their_neighbours(data):
    X, Y = data
    mlp = quick().fit(X, Y)
    together = mlp.decision_function(X)
    alone = np.vstack([mlp.decision_function(x[None]) for x in X[:5]])
    np.testing.assert_allclose(alone, together[:5], rtol=1e-12)


def test_blocks_of_rows_give_the_same(data, monkeypatch):
    X, Y = data
    mlp = quick().fit(X, Y)
    whole = mlp.decision_function(X)
    monkeypatch.setattr("clml.baselines._training._EVALUATION_BYTES", 1)
    np.testing.assert_allclose(mlp.decision_function(X), whole, rtol=1e-12)


def test_global_random_state_is_left_alone(data):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    legacy = np.random.get_state()[1].copy()  # noqa: NPY002
    quick().fit(*data)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], legacy)  # noqa: NPY002


def test_verbose(data, capsys):
    quick(verbose=1, max_epochs=2).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("epoch    2  train loss 0.")
    assert "validation binary cross entropy" in lines[1]


@pytest.mark.parametrize("max_epochs", [1, 3])
def test_divergence_in_the_first_epoch_is_an_error(data, max_epochs):
    """Also if its last step does it, which no training loss has seen."""
    mlp = quick(learning_rate=1e29, max_epochs=max_epochs)
    with pytest.raises(ValueError, match=r"diverged in epoch 1.*scale it.*1e\+29"):
        mlp.fit(*data)


def test_divergence_later_keeps_the_best(data, monkeypatch):
    real = Training._pass

    def fails_in_third(self):
        loss = real(self)
        return loss if len(self.history) < 2 else float("nan")

    monkeypatch.setattr(Training, "_pass", fails_in_third)
    with pytest.warns(UserWarning, match="diverged in epoch 3"):
        mlp = quick().fit(*data)
    assert mlp.n_epochs_ == 3
    assert mlp.best_epoch_ <= 2
    assert np.isfinite(mlp.predict_proba(data[0])).all()


def test_a_refit_that_fails_leaves_the_model(data):
    mlp = quick().fit(*data)
    before = mlp.predict_proba(data[0])
    with pytest.raises(ValueError, match="diverged"):
        mlp.set_params(n_layers=3, learning_rate=1e29).fit(*data)
    np.testing.assert_array_equal(mlp.predict_proba(data[0]), before)


def test_interrupt_before_the_first_epoch_is_said(data, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Training, "_pass", interrupted)
    with pytest.warns(UserWarning, match="the weights are random"):
        mlp = quick(keep_on_interrupt=True).fit(*data)
    assert mlp.best_epoch_ == mlp.n_epochs_ == 0


def test_unscaled_features_are_said(data):
    X, Y = data
    for kind in (np.asarray, sp.csr_array):
        with pytest.warns(
            UserWarning, match=r"column 2 has a standard deviation of 49\.9"
        ):
            quick(max_epochs=1).fit(kind(X * np.array([1, 1, 50] + [1] * 5)), Y)


def test_number_of_threads_is_that_of_n_jobs(data, monkeypatch):
    """Whatever PyTorch is set to, before and after."""
    seen = []
    real = Training._pass

    def spy(self):
        seen.append(torch.get_num_threads())
        return real(self)

    monkeypatch.setattr(Training, "_pass", spy)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        a = quick(max_epochs=1).fit(*data)
        b = quick(max_epochs=1, n_jobs=2).fit(*data)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 2]
    np.testing.assert_allclose(a.predict_proba(data[0]), b.predict_proba(data[0]))
    with pytest.raises(ValueError, match="n_jobs must be a number of threads"):
        quick(n_jobs=0).fit(*data)


@pytest.mark.parametrize(
    "estimator",
    [
        quick(max_epochs=1),
        C2AEClassifier(n_units=8, max_epochs=1),
        CLIFClassifier(embedding_dim=8, max_epochs=1),
        DELAClassifier(latent_dim=4, max_epochs=1),
    ],
    ids=lambda e: type(e).__name__,
)
def test_settings_of_pytorch_do_not_matter(data, estimator):
    expected = clone(estimator).set_params(random_state=0).fit(*data)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.device("meta"):
            got = clone(estimator).set_params(random_state=0).fit(*data)
            logits = got.decision_function(data[0])
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(logits, expected.decision_function(data[0]))


def test_frames_and_read_only_arrays_bring_no_warning():
    """In a process of its own: PyTorch warns once."""
    code = """
import numpy as np
from clml.baselines import MLPRelevanceClassifier
X = np.random.default_rng(0).normal(size=(20, 3))
X.setflags(write=False)
mlp = MLPRelevanceClassifier(max_epochs=1).fit(X, X > 0)
mlp.predict(X), mlp.predict(X.astype(np.float32))
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("keep", [True, False])
def test_interrupt(data, monkeypatch, keep):
    """Ctrl-C in the fourth epoch leaves the best of the first three."""
    real = Training._pass

    def interrupted(self):
        if len(self.history) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self)

    monkeypatch.setattr(Training, "_pass", interrupted)
    mlp = quick(keep_on_interrupt=keep)
    if keep:
        mlp.fit(*data)
    else:
        with pytest.raises(KeyboardInterrupt):
            mlp.fit(*data)
    assert mlp.interrupted_
    assert mlp.n_epochs_ == 3
    monkeypatch.setattr(Training, "_pass", real)
    same = quick(max_epochs=3).fit(*data)
    np.testing.assert_array_equal(
        mlp.decision_function(data[0]), same.decision_function(data[0])
    )


def test_callbacks(data):
    """One task an epoch, with a model that predicts; a callback can end the fit."""
    shapes = []

    class StopsAfterFour:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name == "epoch":
                shapes.append(fitted_estimator.predict(data[0]).shape)
            return len(shapes) >= 4

    mlp = quick().set_callbacks(StopsAfterFour()).fit(*data)
    assert shapes == [data[1].shape] * 4
    assert mlp.n_epochs_ == 4


class Preset(DeepClassifier):
    PRESETS: ClassVar = {"here": {"max_epochs": 3, "batch_size": 4}}

    def __init__(self, *, max_epochs=1, batch_size=2):
        self.max_epochs = max_epochs
        self.batch_size = batch_size


def test_presets():
    assert Preset.from_preset("here", batch_size=8).get_params() == {
        "max_epochs": 3,
        "batch_size": 8,
    }
    with pytest.raises(ValueError, match=r"no preset 'there'\. There are: here"):
        Preset.from_preset("there")
    assert Preset.from_preset("Here").max_epochs == 3
    assert MLPRelevanceClassifier.PRESETS == {}


def test_docstring_holds_the_shared_parameters():
    doc = MLPRelevanceClassifier.__doc__
    assert "{" not in doc
    assert "    max_epochs : int, default=200\n        Passes" in doc
    assert "    weights_ : dict of str to float32 array\n        The" in doc
    assert "Scaled features" in MLPRelevanceClassifier.fit.__doc__


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"batch_size": 0}, "'batch_size' parameter"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
        ({"patience": 0}, "'patience' parameter"),
        ({"dropout": 1.0}, "'dropout' parameter"),
        ({"device": 3}, "'device' parameter"),
        ({"device": "meta"}, "device must be 'auto', 'cpu'"),
    ],
)
def test_bad_parameters(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(*data)


def test_clone_of_a_fitted_one_fits_the_same(data):
    a = quick().fit(*data)
    b = clone(a).fit(*data)
    for name in a.weights_:
        np.testing.assert_array_equal(a.weights_[name], b.weights_[name])

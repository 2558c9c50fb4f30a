"""Every baseline to a file and back."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    GaussianNBChain,
    GaussianNBRelevance,
    LIFTClassifier,
    LLSFClassifier,
    MLkNNClassifier,
    MLPRelevanceClassifier,
    MPVAEClassifier,
)
from clml.persistence import load, save

ESTIMATORS = [
    GaussianNBRelevance(),
    GaussianNBChain(order=[2, 0, 1, 3]),
    MLkNNClassifier(3, probability="joint"),
    LIFTClassifier(ratio=0.2, random_state=0),
    LLSFClassifier(beta=8.0),
    C2AEClassifier(n_units=8, max_epochs=2, random_state=0),
    CLIFClassifier(embedding_dim=4, max_epochs=2, threshold=0.3, random_state=0),
    DELAClassifier(latent_dim=3, max_epochs=2, random_state=0),
    MLPRelevanceClassifier(n_units=8, max_epochs=2, random_state=0),
    MPVAEClassifier(latent_dim=4, max_epochs=2, threshold=0.3, random_state=0),
]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_indicator(estimator, kind, small_data, tmp_path):
    X, Y = kind(small_data[0]), small_data[1]
    fitted = clone(estimator).fit(X, Y)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is type(fitted)
    assert repr(loaded.get_params()) == repr(fitted.get_params())
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(loaded, method)(X), getattr(fitted, method)(X)
        )
    again = clone(loaded).fit(X, Y)
    np.testing.assert_array_equal(
        again.decision_function(X), fitted.decision_function(X)
    )


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_two_classes(estimator, small_data, tmp_path):
    X, Y = small_data
    y = np.where(Y[:, 0], "yes", "no")
    fitted = clone(estimator)
    if "order" in fitted.get_params():
        fitted.set_params(order=None)
    fitted.fit(X, y)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_loading_fits_nothing(small_data, tmp_path):
    """Not even quietly: a warning of the fit does not come again."""
    X, Y = small_data[0] * 30, small_data[1]
    with pytest.warns(UserWarning, match="X is not scaled"):
        mlp = MLPRelevanceClassifier(n_units=8, max_epochs=1).fit(X, Y)
    save(mlp, tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "model").predict(X)

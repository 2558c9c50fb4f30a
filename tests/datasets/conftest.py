"""Fixtures of the tests of data."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def correlated_labels():
    """Labels that share three latent causes and differ in frequency."""

    def draw(n_samples, n_labels, density, seed):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(n_samples, 3)) @ rng.normal(size=(3, n_labels))
        scores += 0.5 * rng.normal(size=scores.shape)
        threshold = np.quantile(scores, 1 - density) + 0.5 * rng.normal(size=n_labels)
        return (scores > threshold).astype(int)

    return draw

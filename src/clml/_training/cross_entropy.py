"""The network of the method, trained the usual way: cross-entropy and gradients.

For comparison. Layout, row standardisation, sigmoids and feature scaling are those of
``CLMLClassifier``; the loss is mean binary cross-entropy and the optimiser Adam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..network import Layout, Scaling, backward_pass, forward, forward_pass
from ..splits import iterative_train_test_split
from .adam import Adam
from .training_rows import NetworkRows

Floats = NDArray[np.float64]


def cross_entropy(logits: Floats, targets: NDArray) -> float:
    """Mean binary cross-entropy of logits; targets may be probabilities."""
    return float((np.logaddexp(0, logits) - targets * logits).mean())


@dataclass(frozen=True, eq=False)
class CrossEntropyNetwork:
    """A trained network.

    Attributes
    ----------
    theta : float64 array (n,)
    layout : Layout
    scaling : Scaling
    curve : float64 array (epochs, 2)
        Cross-entropy on training and on validation rows after each epoch.
    best_epoch : int
        The one whose weights these are, from 0.
    f1_threshold : float
        The logit above which labels are predicted for the best micro-F1 on the
        validation rows.
    """

    theta: Floats
    layout: Layout
    scaling: Scaling
    curve: Floats
    best_epoch: int
    f1_threshold: float

    def decision_function(self, X: Any) -> Floats:
        """Logits (rows, K)."""
        return forward(self.theta, X, self.layout, self.scaling)


def fit_cross_entropy(
    X: Any,
    Y: NDArray,
    *,
    embedding_dim: int = 20,
    batch_size: int = 64,
    max_epochs: int = 300,
    patience: int = 30,
    learning_rate: float = 0.01,
    validation_fraction: float = 0.2,
    random_state: int = 0,
) -> CrossEntropyNetwork:
    """Train by Adam on mean binary cross-entropy, stopping early.

    Parameters
    ----------
    X, Y : array or CSR matrix (rows, D) and array (rows, K)
        Training rows; those for validation come out of them, stratified.
    embedding_dim : int, default=20
    batch_size : int, default=64
    max_epochs : int, default=300
        Passes over the rows.
    patience : int, default=30
        Stop after so many epochs without a smaller validation cross-entropy.
    learning_rate : float, default=0.01
    validation_fraction : float, default=0.2
    random_state : int, default=0

    Returns
    -------
    CrossEntropyNetwork
        With the weights of the best epoch on the validation rows.
    """
    generator = np.random.default_rng(random_state)
    X, X_val, Y, Y_val = iterative_train_test_split(
        X, Y, test_size=validation_fraction, random_state=generator
    )
    scaling = Scaling.fit(X)
    layout = Layout(X.shape[1], Y.shape[1], embedding_dim)
    rows, rows_val = (
        NetworkRows.prepared(part, scaling, layout) for part in (X, X_val)
    )
    theta = _initial_weights(layout, generator)
    adam = Adam(layout.size, learning_rate)
    curve: list[tuple[float, float]] = []
    best, best_epoch, least = theta.copy(), 0, np.inf
    for epoch in range(max_epochs):
        order = generator.permutation(len(Y))
        for start in range(0, len(Y), batch_size):
            batch = order[start : start + batch_size]
            logits, cache = forward_pass(theta, rows.X[batch], layout, rows.scaling)
            error = (expit(logits) - Y[batch]) / logits.size
            adam.step(theta, backward_pass(error, cache))
        train, validation = (
            cross_entropy(part.logits(theta), labels)
            for part, labels in ((rows, Y), (rows_val, Y_val))
        )
        curve.append((train, validation))
        if validation < least:
            best, best_epoch, least = theta.copy(), epoch, validation
        elif epoch - best_epoch >= patience:
            break
    chosen = best.astype(np.float64)
    threshold = best_f1_threshold(forward(chosen, X_val, layout, scaling), Y_val)
    return CrossEntropyNetwork(
        chosen, layout, scaling, np.array(curve), best_epoch, threshold
    )


def best_f1_threshold(logits: Floats, Y: NDArray) -> float:
    """Return the threshold, between two logits, with the largest micro-F1.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._training.cross_entropy import best_f1_threshold
    >>> best_f1_threshold(np.array([[3.0, 1.0], [-1.0, -2.0]]), np.eye(2)[::-1])
    -1.5
    """
    order = np.argsort(-logits.ravel(), kind="stable")
    ranked = logits.ravel()[order]
    hits = np.cumsum(Y.ravel()[order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + max(hits[-1], 1))
    # Only where the next logit is smaller can a threshold lie.
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0
    best = int(f1.argmax())
    below = ranked[best + 1] if best + 1 < len(ranked) else ranked[best] - 2.0
    return float((ranked[best] + below) / 2)


def _initial_weights(
    layout: Layout, generator: np.random.Generator
) -> NDArray[np.float32]:
    """Weights of variance 1/inputs, biases 0."""
    theta = np.zeros(layout.size, dtype=np.float32)
    for matrix in layout.matrices(theta):
        inputs = len(matrix) - 1
        matrix[:-1] = generator.normal(
            scale=inputs**-0.5, size=(inputs, matrix.shape[1])
        )
    return theta

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

from .datasets import iterative_train_test_split
from .network import Layout, Scaling, forward

Floats = NDArray[np.float64]

_TINY = 1e-10  # the method's, added to the deviation of a row
_BATCH = 64
_DECAYS = (0.9, 0.999)


def cross_entropy(logits: Floats, targets: NDArray) -> float:
    """Mean binary cross-entropy of logits; targets may be probabilities."""
    return float((np.logaddexp(0, logits) - targets * logits).mean())


def loss_and_gradient(
    theta: Floats, X: Floats, targets: NDArray, layout: Layout
) -> tuple[float, Floats]:
    """Mean binary cross-entropy of a network at these rows, and its gradient.

    Parameters
    ----------
    theta : array (n,)
    X : array (rows, D)
    targets : array (rows, K)
        Labels or probabilities.
    layout : Layout

    Returns
    -------
    loss : float
    gradient : array (n,)
    """
    *hidden_layers, last = layout.matrices(theta)
    inputs = [_with_ones(X)]
    deviations, standardised = [], []
    for matrix in hidden_layers:
        values = inputs[-1] @ matrix
        values -= values.mean(axis=1, keepdims=True)
        deviations.append(values.std(axis=1, keepdims=True))
        values /= deviations[-1] + _TINY
        standardised.append(values)
        inputs.append(_with_ones(expit(values)))
    logits = inputs[-1] @ last

    gradient = np.empty_like(theta)
    *hidden_gradients, last_gradient = layout.matrices(gradient)
    error = (expit(logits) - targets) / logits.size
    last_gradient[:] = inputs[-1].T @ error
    flow = error @ last[:-1].T
    for depth in reversed(range(len(hidden_layers))):
        unit = inputs[depth + 1][:, :-1]
        flow = flow * unit * (1 - unit)
        flow = _through_standardisation(flow, standardised[depth], deviations[depth])
        hidden_gradients[depth][:] = inputs[depth].T @ flow
        flow = flow @ hidden_layers[depth][:-1].T
    return cross_entropy(logits, targets), gradient


def _with_ones(rows: Floats) -> Floats:
    return np.hstack([rows, np.ones((len(rows), 1))])


def _through_standardisation(flow: Floats, values: Floats, deviation: Floats) -> Floats:
    """Gradient before the standardisation of rows from the one after it.

    ``values`` = (z − mean) / (deviation + tiny), over each row.
    """
    along = (flow * values).mean(axis=1, keepdims=True)
    # The deviation moves with (z − mean)/deviation; a constant row does not move it.
    share = (deviation + _TINY) / np.maximum(deviation, _TINY)
    flow = flow - flow.mean(axis=1, keepdims=True) - values * along * share
    return flow / (deviation + _TINY)


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
    X: Floats,
    Y: NDArray,
    *,
    embedding_dim: int = 20,
    max_epochs: int = 300,
    patience: int = 30,
    learning_rate: float = 0.01,
    validation_fraction: float = 0.2,
    random_state: int = 0,
) -> CrossEntropyNetwork:
    """Train by Adam on mean binary cross-entropy, stopping early.

    Parameters
    ----------
    X, Y : arrays (rows, D) and (rows, K)
        Training rows; those for validation come out of them, stratified.
    embedding_dim : int, default=20
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
    X, X_val = scaling.apply(X), scaling.apply(X_val)
    layout = Layout(X.shape[1], Y.shape[1], embedding_dim)
    theta = _initial_weights(layout, generator)
    adam = _Adam(layout.size, learning_rate)
    curve: list[tuple[float, float]] = []
    best, best_epoch, least = theta, 0, np.inf
    for epoch in range(max_epochs):
        order = generator.permutation(len(X))
        for start in range(0, len(X), _BATCH):
            batch = order[start : start + _BATCH]
            theta = theta - adam.step(
                loss_and_gradient(theta, X[batch], Y[batch], layout)[1]
            )
        train, validation = (
            cross_entropy(forward(theta, rows, layout), labels)
            for rows, labels in ((X, Y), (X_val, Y_val))
        )
        curve.append((train, validation))
        if validation < least:
            best, best_epoch, least = theta, epoch, validation
        elif epoch - best_epoch >= patience:
            break
    threshold = best_f1_threshold(forward(best, X_val, layout), Y_val)
    return CrossEntropyNetwork(
        best, layout, scaling, np.array(curve), best_epoch, threshold
    )


def best_f1_threshold(logits: Floats, Y: NDArray) -> float:
    """Return the threshold, between two logits, with the largest micro-F1.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._cross_entropy import best_f1_threshold
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


def _initial_weights(layout: Layout, generator: np.random.Generator) -> Floats:
    """Weights of variance 1/inputs, biases 0."""
    theta = np.zeros(layout.size)
    for matrix in layout.matrices(theta):
        inputs = len(matrix) - 1
        matrix[:-1] = generator.normal(
            scale=inputs**-0.5, size=(inputs, matrix.shape[1])
        )
    return theta


class _Adam:
    """Steps from gradients (Kingma and Ba, 2015)."""

    def __init__(self, size: int, learning_rate: float):
        self.learning_rate = learning_rate
        self.mean = np.zeros(size)
        self.square = np.zeros(size)
        self.count = 0

    def step(self, gradient: Floats) -> Floats:
        b1, b2 = _DECAYS
        self.count += 1
        self.mean = b1 * self.mean + (1 - b1) * gradient
        self.square = b2 * self.square + (1 - b2) * gradient**2
        mean = self.mean / (1 - b1**self.count)
        square = self.square / (1 - b2**self.count)
        return self.learning_rate * mean / (np.sqrt(square) + 1e-8)

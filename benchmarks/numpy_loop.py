"""CLML with whole populations as NumPy arrays: what a careful user would write.

Batched products in float32, decisions by comparison, LRAP by counting over the
relevant labels of all rows at once, exact contributions from ``moocore``, sampling and
update by ``cma`` as in ``reference_loop.py``. None of it is the library's.
"""

from __future__ import annotations

import time

import moocore
import numpy as np
from reference_loop import EMBEDDING_DIM, n_parameters, new_strategy

# Rows that are worked on together, so that a block's logits stay in the cache.
BLOCK = 256


def _activated(H: np.ndarray) -> np.ndarray:
    H = H - H.mean(axis=-1, keepdims=True)
    H /= H.std(axis=-1, keepdims=True) + 1e-10
    return 1.0 / (1.0 + np.exp(-H))


def population_logits(thetas: np.ndarray, X: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the logits (population, rows, K) of candidates (population, n)."""
    d, c = X.shape[1], EMBEDDING_DIM
    p = len(thetas)
    shapes = [(d, c), (1, c), (c, c), (1, c), (c, n_labels), (1, n_labels)]
    ends = np.cumsum([a * b for a, b in shapes])
    pieces = np.split(thetas, ends[:-1], axis=1)
    E, b_E, L, b_L, Dec, b_D = (
        piece.reshape(p, *shape) for piece, shape in zip(pieces, shapes, strict=True)
    )
    side_by_side = np.ascontiguousarray(E.transpose(1, 0, 2)).reshape(d, p * c)
    first = np.asarray(X @ side_by_side).reshape(-1, p, c).transpose(1, 0, 2)
    H = _activated(first + b_E)
    H = _activated(H @ L + b_L)
    return H @ Dec + b_D


def population_losses(thetas: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return Hamming loss, 1 - LRAP and 1 - micro-F1, (population, 3)."""
    n, k = Y.shape
    wrong, hits, predicted, precision = np.zeros((4, len(thetas)))
    for start in range(0, n, BLOCK):
        truth = Y[start : start + BLOCK].astype(bool)
        Z = population_logits(thetas, X[start : start + BLOCK], k)
        decided = Z > 0
        wrong += (decided != truth).sum(axis=(1, 2))
        hits += (decided & truth).sum(axis=(1, 2))
        predicted += decided.sum(axis=(1, 2))
        row, label = np.nonzero(truth)
        of_relevant = Z[:, row]
        at_least = of_relevant >= Z[:, row, label][..., None]
        ratio = (at_least & truth[row]).sum(axis=2) / at_least.sum(axis=2)
        n_relevant = truth.sum(axis=1)
        trivial = (n_relevant == 0) | (n_relevant == k)
        weight = np.where(trivial, 0.0, 1.0 / np.maximum(n_relevant, 1))
        precision += ratio @ weight[row] + trivial.sum()
    f1 = 2 * hits / np.maximum(predicted + Y.sum(), 1)
    return np.stack([wrong / Y.size, 1 - precision / n, 1 - f1], axis=1)


def numpy_epochs(
    X_train: np.ndarray,
    Y_train: np.ndarray,
    X_val: np.ndarray,
    Y_val: np.ndarray,
    n_epochs: int,
    population_size: int | None = None,
    seed: int = 0,
) -> list[float]:
    """Return the seconds of each epoch; parameters as in `reference_epochs`."""
    n = n_parameters(X_train.shape[1], Y_train.shape[1])
    strategy = new_strategy(n, population_size, np.random.default_rng(seed))
    X_train, X_val = (x.astype(np.float32) for x in (X_train, X_val))
    seconds = []
    for _ in range(n_epochs):
        began = time.perf_counter()
        candidates = strategy.ask()
        thetas = np.asarray(candidates, dtype=np.float32)
        train = population_losses(thetas, X_train, Y_train)
        population_losses(thetas, X_val, Y_val)
        contributions = moocore.hv_contributions(train, ref=np.ones(3))
        strategy.tell(candidates, list(-contributions))
        seconds.append(time.perf_counter() - began)
    return seconds

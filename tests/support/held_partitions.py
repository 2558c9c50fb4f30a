"""Partitions as engines hold them, for the tests of engines."""

import numpy as np
import scipy.sparse as sp

from clml.engine import NumpyEngine
from clml.engine.partitioned import Held
from clml.losses import RowTargets
from clml.network import Layout

LOSSES = ("hamming", "lrap", "micro_f1", "macro_f1", "ranking_loss", "coverage")
LAYOUT = Layout(n_features=6, n_labels=4, embedding_dim=5)


def make_rows(n, seed=0, sparse=False, weighted=False):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 6))
    if sparse:
        X = sp.csr_array(X * (generator.random(X.shape) < 0.4))
    Y = (generator.random((n, 4)) < 0.4).astype(np.uint8)
    return X, Y, generator.random(n) + 0.1 if weighted else None


def engine_of(X, Y, weight, losses=LOSSES):
    return NumpyEngine(LAYOUT, X, RowTargets.from_indicator(Y, weight), losses)


def cut(rows, sizes):
    """Return partitions of the sizes, the last of which also judge."""
    X, Y, weight = rows
    held, start = [], 0
    for i, size in enumerate(sizes):
        stop = start + size
        here = slice(start, stop)
        engines = {}
        if size:
            own = None if weight is None else weight[here]
            engines["train"] = engine_of(X[here], Y[here], own)
        held.append(Held(i, engines))
        start = stop
    return held


def population(size, seed=1):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(size, LAYOUT.size)).astype(np.float32)

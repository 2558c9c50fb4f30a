"""Epochs that other rows choose."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from clml._training.epoch_folds import N_FOLDS, EpochChoices, EpochFolds
from clml.losses import LossSet, RowTargets, get_losses, loss_values

LOSSES = ("hamming", "lrap", "micro_f1")
KEPT = 0.8


def value_of(losses):
    return float(np.log(np.maximum(losses, 1e-3)).mean())


def make_run(n=43, n_kinds=2, n_epochs=9, seed=0):
    """Return labels, weights, and what two kinds say after each epoch."""
    generator = np.random.default_rng(seed)
    Y = (generator.random((n, 3)) < 0.4).astype(int)
    said = generator.normal(size=(n_epochs, n_kinds, n, 3))
    return Y, generator.uniform(0.5, 2, n), said


def after_all(Y, weight, said):
    targets = RowTargets.from_indicator(Y, weight)
    folds = EpochFolds(targets, LossSet(get_losses(LOSSES), 3), value_of)
    now = EpochChoices()
    for by_kind in said:
        now = folds.after(now, by_kind, KEPT)
    return now


def test_against_a_slow_twin():
    Y, weight, said = make_run()
    found = after_all(Y, weight, said)
    order = np.random.default_rng(0).permutation(len(Y))
    for fold, rows in enumerate(np.array_split(order, N_FOLDS)):
        rest = np.setdiff1d(order, rows)
        for kind in range(2):
            values = []
            for logits in said[:, kind, rest]:
                own = value_of(loss_values(Y[rest], logits, LOSSES, weight[rest]))
                values.append(
                    KEPT * values[-1] + (1 - KEPT) * own if len(values) else own
                )
            best = int(np.argmin(values))
            assert_allclose(found.best_value[fold, kind], values[best])
            assert_allclose(found.value[fold, kind], values[-1])
            assert_array_equal(found.by_kind[kind, rows], said[best, kind, rows])


def test_a_row_has_no_say_in_its_own_epoch():
    Y, weight, said = make_run(n_kinds=1)
    order = np.random.default_rng(0).permutation(len(Y))
    rows = np.array_split(order, N_FOLDS)[2]
    other = Y.copy()
    other[rows] = 1 - other[rows]
    a, b = (after_all(labels, weight, said).by_kind for labels in (Y, other))
    assert_array_equal(a[:, rows], b[:, rows])
    assert (a != b).any()  # it has one in that of others


def test_chosen_logits_are_honest_about_noise():
    """The best of many epochs is lucky on the rows that chose it, and only there."""
    stated, apparent = [], []
    for seed in range(20):
        Y, weight, said = make_run(n=60, n_kinds=1, n_epochs=30, seed=seed)
        logits = after_all(Y, weight, said).by_kind[0]
        stated.append(loss_values(Y, logits, ("hamming",))[0])
        every = loss_values(Y, said[:, 0], ("hamming",))
        apparent.append(every.min())
    assert abs(np.mean(stated) - 0.5) < 0.02
    assert np.mean(apparent) < 0.45

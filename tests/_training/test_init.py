"""Where searches start, and which weights they move."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clml._training.ascent import AscentState
from clml._training.init import LastLayer, n_before_last, pretrained
from clml._training.steps import AscentPlan
from clml._training.training_rows import NetworkRows
from clml.losses import RowTargets, loss_values
from clml.network import Layout, Scaling

LAYOUT = Layout(n_features=4, n_labels=2, embedding_dim=3)


def test_weights_before_the_output_layer():
    # (4 + 1)·3 and (3 + 1)·3 weights, then (3 + 1)·2 of the output layer.
    assert n_before_last(LAYOUT) == 15 + 12
    assert LAYOUT.size - n_before_last(LAYOUT) == 8
    deep = Layout(n_features=4, n_labels=2, embedding_dim=3, n_layers=3)
    assert n_before_last(deep) == 15 + 3 * 12


def test_output_layers_are_completed():
    before = np.arange(27, dtype=np.float32)
    last = np.arange(16, dtype=np.float32).reshape(2, 8)
    networks = LastLayer(before)(last)
    assert networks.shape == (2, LAYOUT.size)
    assert networks.dtype == np.float32
    assert_array_equal(networks[:, :27], [before, before])
    assert_array_equal(networks[:, 27:], last)
    assert LastLayer(before)(last[:0]).shape == (0, LAYOUT.size)


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(60, 4))
    rows = NetworkRows.prepared(X, Scaling.identity(4), LAYOUT)
    return rows, RowTargets.from_indicator(X[:, :2] > 0)


PLAN = AscentPlan(0.05, n_epochs=20, batch_size=20, smoothing=0.5, surrogate_epochs=20)


def test_pretrained_networks_have_a_smaller_cross_entropy(data):
    rows, targets = data
    rows = replace(rows, layout=replace(LAYOUT, embedding_dim=12))
    seed = np.random.SeedSequence(1)
    before = AscentState.start(rows.layout, seed).theta
    after = pretrained(rows, targets, PLAN, seed)
    assert after.dtype == np.float32
    entropy = [
        loss_values(targets.dense, rows.logits(theta), ("binary_cross_entropy",))[0]
        for theta in (before, after)
    ]
    assert entropy[1] < 0.6 * entropy[0]
    assert_array_equal(after, pretrained(rows, targets, PLAN, seed))


def test_no_epochs_give_the_random_start(data):
    seed = np.random.SeedSequence(1)
    found = pretrained(*data, replace(PLAN, surrogate_epochs=0), seed)
    assert_array_equal(found, AscentState.start(LAYOUT, seed).theta)

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from clml.baselines._layers import (
    default_interval,
    dropout,
    kaiming_interval,
    label_cross_entropy,
    label_outputs,
    linear,
    new_linear,
    row_mean,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_linear_by_hand():
    weights = {
        "a.weight": torch.tensor([[1.0, 2.0], [0.0, -1.0]]),
        "a.bias": torch.tensor([0.5, 0.0]),
    }
    x = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    assert linear(weights, "a", x).tolist() == [[3.5, -1.0], [4.5, -2.0]]


def test_label_outputs_use_one_row_a_label():
    weights = {
        "a.weight": torch.tensor([[1.0, 2.0], [0.0, -1.0]]),
        "a.bias": torch.tensor([0.5, 0.0]),
    }
    h = torch.tensor([[[1.0, 1.0], [3.0, 4.0]]])
    assert label_outputs(weights, "a", h).tolist() == [[3.5, -4.0]]


def test_intervals_by_hand():
    assert default_interval(4) == (-0.5, 0.5)
    assert kaiming_interval(6) == pytest.approx((-1.0, 1.0))
    # PyTorch's own: gain √(2/(1+slope²)) times √(3/n_in).
    gain = torch.nn.init.calculate_gain("leaky_relu", 0.1)
    assert kaiming_interval(10, 0.1)[1] == pytest.approx(gain * math.sqrt(3 / 10))
    assert kaiming_interval(12, 1.0)[1] == pytest.approx(math.sqrt(3 / 12))


def test_new_linear_draws_from_the_intervals():
    weights = new_linear("a", 50, 40, generator(), (-0.1, 0.2), (1.0, 2.0))
    assert {name: tuple(w.shape) for name, w in weights.items()} == {
        "a.weight": (40, 50),
        "a.bias": (40,),
    }
    assert all(w.requires_grad and w.is_leaf for w in weights.values())
    w, b = (weights[f"a.{part}"].detach().numpy() for part in ("weight", "bias"))
    assert -0.1 <= w.min() < -0.09 and 0.19 < w.max() <= 0.2
    assert 1.0 <= b.min() and b.max() <= 2.0
    again = new_linear("a", 50, 40, generator(), (-0.1, 0.2), (1.0, 2.0))
    assert torch.equal(weights["a.weight"], again["a.weight"])


def test_dropout_keeps_the_mean():
    x = torch.ones(200, 200, dtype=torch.float64)
    y = dropout(x, 0.25, generator())
    assert set(y.unique().tolist()) == {0.0, 1 / 0.75}
    assert y.mean().item() == pytest.approx(1.0, abs=0.02)
    assert dropout(x, 0.0, generator()) is x


def test_cross_entropy_against_scikit_learn():
    logits = torch.tensor([[0.3, -2.0], [4.0, 0.0]], dtype=torch.float64)
    y = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    ours = label_cross_entropy(logits, y).numpy()
    assert ours[1, 1] == pytest.approx(math.log(2))
    p = torch.sigmoid(logits).numpy().ravel()
    assert ours.mean() == pytest.approx(log_loss(y.numpy().ravel(), p))


def test_weights_are_repetitions():
    values = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    weight = np.array([1.0, 3.0, 2.0])
    mean = row_mean(values, torch.tensor(weight / weight.mean()))
    assert mean.item() == pytest.approx(np.repeat(values.numpy(), [1, 3, 2]).mean())

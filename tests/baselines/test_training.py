"""The loop itself, on a network of one weight a label that can be followed by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from clml._base.rows import Part
from clml.baselines._criteria import cross_entropy
from clml.baselines._training import Plan, Training

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Scale:
    """logits = weight · x; loss = mean of (logits - y)²; also counts its steps."""

    start: float = 0.0
    activations: int = 1

    def initial(self, y, weight, generator):
        return {
            "scale": torch.full((), self.start).requires_grad_(),
            "steps": torch.zeros(()),
        }

    def loss(self, weights, batch, generator):
        weights["steps"] += 1
        rows = (self.logits(weights, batch.x) - batch.y)[:, 0] ** 2
        return (rows * batch.weight).mean()

    def logits(self, weights, x):
        return weights["scale"] * x


def sgd(rate):
    return lambda weights: torch.optim.SGD(
        [w for w in weights.values() if w.requires_grad], lr=rate
    )


def training(plan=None, network=None, validation=None, weight=None, seed=0):
    X, Y = np.array([[1.0], [2.0]]), np.array([[1], [1]], dtype=np.uint8)
    plan = plan or Plan(2, sgd(0.1), cross_entropy)
    part = Part(X, Y, weight)
    return Training(network or Scale(), plan, part, validation, [seed], CPU)


def test_one_step_by_hand():
    run = training()
    record = run.epoch()
    # Loss (1 + 1)/2; gradient (2·(-1)·1 + 2·(-1)·2)/2 = -3; step 0.1·3.
    assert record["train_loss"] == pytest.approx(1.0)
    assert run.best.weights["scale"] == pytest.approx(0.3)
    assert run.best.weights["steps"] == 1
    assert run.best.epoch == 1
    # Without validation rows the last epoch is the best: next at 0.3 + 0.1·1.5.
    run.epoch()
    assert run.best.weights["scale"] == pytest.approx(0.45)
    assert run.best.epoch == 2 == len(run.history)


def test_row_weights():
    run = training(weight=np.array([3.0, 1.0]))
    run.epoch()
    # Weights 1.5 and 0.5: gradient (1.5·2·(-1)·1 + 0.5·2·(-1)·2)/2 = -2.5.
    assert run.best.weights["scale"] == pytest.approx(0.25)


def test_rate_follows_the_epochs_done():
    seen = []

    def rate(epochs):
        seen.append(epochs)
        return 0.0 if epochs < 1 else 1.0

    run = training(Plan(1, sgd(0.1), cross_entropy, rate=rate))
    run.epoch()
    assert run.best.weights["scale"] == 0.0
    run.epoch()
    assert run.best.weights["scale"] > 0
    assert seen == [0.0, 0.5, 1.0, 1.5]


def test_best_epoch_on_validation_rows():
    """The scale grows from -1 to 1: with validation labels 0, the first epoch wins."""
    x = np.array([[1.0]])
    zeros = Part(x, np.zeros((1, 1), dtype=np.uint8))
    run = training(network=Scale(-1.0), validation=zeros)
    for _ in range(3):
        run.epoch()
    assert run.best.epoch == 1
    # Gradient at -1: (2·(-2)·1 + 2·(-3)·2)/2 = -8; step 0.1·8.
    assert run.best.weights["scale"] == pytest.approx(-0.2)
    losses = [r["validation_binary_cross_entropy"] for r in run.history]
    assert losses == sorted(losses)
    ones = Part(x, np.ones((1, 1), dtype=np.uint8))
    run = training(network=Scale(-1.0), validation=ones)
    for _ in range(3):
        run.epoch()
    assert run.best.epoch == 3


def test_loss_of_an_epoch_is_the_mean_over_its_batches():
    run = training(Plan(1, sgd(0.0), cross_entropy), network=Scale(1.0))
    # The rows' own losses are 0 and (2 - 1)².
    assert run.epoch()["train_loss"] == pytest.approx(0.5)


@pytest.mark.parametrize("judged", [False, True])
def test_an_epoch_that_diverges_is_never_the_best(judged):
    """Also if its last step does it, which no training loss has seen."""
    validation = Part(np.array([[1.0]]), np.ones((1, 1), dtype=np.uint8))
    plan = Plan(2, sgd(1e38), cross_entropy)
    run = training(
        plan, network=Scale(100.0), validation=validation if judged else None
    )
    record = run.epoch()
    assert np.isfinite(record["train_loss"])
    assert run.diverged
    assert run.best.epoch == 0
    assert run.best.weights["scale"] == 100.0


def test_noise_and_first_weights_are_drawn_apart():
    class Drawn(Scale):
        def initial(self, y, weight, generator):
            return {"scale": torch.rand((), generator=generator).requires_grad_()}

        def loss(self, weights, batch, generator):
            noise.append(torch.rand((), generator=generator).item())
            return weights["scale"] * 0

    noise = []
    run = training(network=Drawn())
    run.epoch()
    assert noise[0] != run.best.weights["scale"]


def test_before_the_first_epoch_the_start_is_the_best():
    run = training(network=Scale(0.5))
    assert run.best.epoch == 0
    assert run.best.weights["scale"] == 0.5

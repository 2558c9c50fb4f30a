import numpy as np
import torch
from scipy.special import expit

from clml.baselines import MLPRelevanceClassifier
from clml.baselines._batches import Batch
from clml.baselines._mlp import MLPNetwork

CPU = torch.device("cpu")


def double(weights):
    return {k: w.detach().double().requires_grad_() for k, w in weights.items()}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def start(network):
    return network.initial(None, None, generator())


def test_forward_and_loss_by_hand():
    network = MLPNetwork(2, 1, 2, 1, 0.0)
    weights = {
        "hidden0.weight": torch.tensor([[1.0, 1.0], [1.0, -1.0]]),
        "hidden0.bias": torch.tensor([0.0, 1.0]),
        "output.weight": torch.tensor([[2.0, -1.0]]),
        "output.bias": torch.tensor([0.5]),
    }
    x = torch.tensor([[1.0, 0.5], [0.0, 3.0]])
    # Units (1.5, 1.5) and (3, max(0, -2)); logits 3 - 1.5 + 0.5 and 6 + 0.5.
    assert network.logits(weights, x).tolist() == [[2.0], [6.5]]
    batch = Batch(x, torch.tensor([[1.0], [0.0]]), torch.ones(2))
    loss = network.loss(weights, batch, generator())
    expected = (-np.log(expit(2.0)) - np.log(expit(-6.5))) / 2
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-6)


def test_number_of_weights():
    weights = start(MLPNetwork(7, 3, 11, 2, 0.5))
    assert sum(w.numel() for w in weights.values()) == 8 * 11 + 12 * 11 + 12 * 3


def test_gradients_by_finite_differences():
    network = MLPNetwork(3, 2, 4, 2, 0.5)
    weights = double(start(network))
    random = np.random.default_rng(0)
    batch = Batch(
        torch.tensor(random.normal(size=(5, 3))),
        torch.tensor(random.integers(2, size=(5, 2)).astype(float)),
        torch.tensor(random.uniform(size=5)),
    )

    def loss(*tensors):
        named = dict(zip(weights, tensors, strict=True))
        return network.loss(named, batch, generator(1))

    assert torch.autograd.gradcheck(loss, tuple(weights.values()))


def test_dropout_is_for_training_alone():
    network = MLPNetwork(3, 2, 50, 2, 0.5)
    weights, x = start(network), torch.ones(1, 3)
    assert torch.equal(network.logits(weights, x), network.logits(weights, x))
    batch = Batch(x, torch.ones(1, 2), torch.ones(1))
    random = generator()
    losses = {network.loss(weights, batch, random).item() for _ in range(5)}
    assert len(losses) == 5


def test_overfits_when_asked_to(small_data):
    X, Y = small_data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    mlp = MLPRelevanceClassifier(
        dropout=0.0, max_epochs=100, validation_fraction=0, random_state=0
    ).fit(X, Y)
    assert (mlp.predict(X) == Y).mean() > 0.99
    assert mlp.best_epoch_ == mlp.n_epochs_ == 100

"""Every parameter of a network reaches what it is for."""

import numpy as np
import pytest
import torch

from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    MLPRelevanceClassifier,
    MPVAEClassifier,
)
from clml.baselines._c2ae import C2AENetwork
from clml.baselines._clif import CLIFNetwork
from clml.baselines._dela import DELANetwork
from clml.baselines._mlp import MLPNetwork
from clml.baselines._mpvae_network import MPVAENetwork
from clml.baselines._normalised_momentum import NormalisedMomentum

SHARED = {
    "max_epochs": 2,
    "batch_size": 13,
    "learning_rate": 2e-3,
    "weight_decay": 3e-3,
    "random_state": 0,
}
CASES = [
    pytest.param(
        MLPRelevanceClassifier(n_units=7, n_layers=3, dropout=0.25, **SHARED),
        MLPNetwork(5, 3, 7, 3, 0.25),
        torch.optim.AdamW,
        id="plain",
    ),
    pytest.param(
        CLIFClassifier(embedding_dim=6, graph_weight=0.3, n_feature_layers=2, **SHARED),
        CLIFNetwork(5, 3, 6, 2, 0.3),
        torch.optim.Adam,
        id="CLIF",
    ),
    pytest.param(
        DELAClassifier(latent_dim=4, beta=0.2, dropout=0.1, gate_floor=0.25, **SHARED),
        DELANetwork(5, 3, 4, 0.2, 0.1, 0.25),
        torch.optim.Adam,
        id="DELA",
    ),
    pytest.param(
        C2AEClassifier(latent_ratio=0.5, n_units=6, alpha=2.0, **SHARED),
        C2AENetwork(5, 3, 0.5, 6, 2.0, 3e-3),
        NormalisedMomentum,
        id="C2AE",
    ),
    pytest.param(
        MPVAEClassifier(
            latent_dim=4,
            rank=2,
            likelihood_weight=0.2,
            ranking_weight=0.3,
            divergence_weight=0.4,
            dropout=0.1,
            n_samples=6,
            **SHARED,
        ),
        MPVAENetwork(5, 3, 4, 2, 0.2, 0.3, 0.4, 3e-3, 0.1, 6),
        torch.optim.Adam,
        id="MPVAE",
    ),
]


@pytest.mark.parametrize(("estimator", "network", "optimiser"), CASES)
def test_parameters_reach_network_and_optimiser(estimator, network, optimiser):
    X = np.random.default_rng(0).normal(size=(40, 5))
    estimator.fit(X, X[:, :3] > 0)
    assert estimator.network_ == network
    assert estimator.n_epochs_ == 2
    assert network.shapes == {k: w.shape for k, w in estimator.weights_.items()}
    plan = estimator._plan(40)
    assert plan.batch_size == 13
    weights = {"w.weight": torch.zeros(1, requires_grad=True)}
    made = plan.optimiser(weights)
    assert type(made) is optimiser
    group = made.param_groups[0]
    assert group["params"][0] is weights["w.weight"]
    assert group["lr"] == 2e-3
    # C2AE and MPVAE have their decay in the loss, and so in the network.
    of_network = getattr(network, "weight_decay", 0)
    assert group.get("weight_decay", 0) + of_network == 3e-3

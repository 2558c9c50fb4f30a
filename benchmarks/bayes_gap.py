"""How near the network of the method comes to the Bayes values of known data.

The data are those of ``make_bayes_multilabel``. Its log-odds are a network of width 20
(``truth.theta()``): Bayes predictors of Hamming loss and of micro-F1 are that network
and the same with another last bias, without any gap. The best order for LRAP is not one
of a network. Here a network of that width is fitted to it: by gradients of the exact
expected LRAP with a sigmoid in place of each comparison, at fresh rows in every step,
starting at the log-odds. What its expected LRAP at other fresh rows lacks is an upper
bound of what the architecture cannot reach: a longer fit might come nearer.

    python benchmarks/bayes_gap.py

Writes ``results/bayes_gap.csv``. Needs torch.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clml.datasets import make_bayes_multilabel
from clml.datasets._bayes_risk import LOSS_NAMES, best_micro_f1, pair_expectations
from clml.network import Layout, forward

RESULTS = Path(__file__).parent / "results"
TEST_ROWS = 20_000
BATCH = 1024


def logits_of(theta: torch.Tensor, X: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Compute the network's logits, with gradients."""
    start, hidden = 0, X
    for i, (rows, columns) in enumerate(layout.shapes):
        matrix = theta[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
        hidden = hidden @ matrix[:-1] + matrix[-1]
        if i < len(layout.shapes) - 1:
            hidden = hidden - hidden.mean(dim=1, keepdim=True)
            spread = hidden.square().mean(dim=1, keepdim=True).sqrt()
            hidden = torch.sigmoid(hidden / (spread + 1e-10))
    return hidden


def smooth_precision(
    logits: torch.Tensor, pairs: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Soften the comparisons in the expected LRAP, which leaves out empty sets."""
    above = torch.sigmoid((logits[:, None, :] - logits[:, :, None]) / temperature)
    above = above + torch.diag(torch.full((logits.shape[1],), 0.5))  # itself: 1
    return ((pairs * above).sum(dim=2) / above.sum(dim=2)).sum(dim=1).mean()


def fit_to_ranking(truth: Any, layout: Layout, steps: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 1])
    start = truth.theta(layout.embedding_dim)
    # Copies of a unit would stay copies.
    start = start + 0.05 * rng.normal(size=start.shape) * np.abs(start).mean()
    theta = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    adam = torch.optim.Adam([theta], lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for step in range(steps):
        X = rng.normal(size=(BATCH, truth.n_features))
        pairs = torch.tensor(pair_expectations(truth.joint(X)), dtype=torch.float32)
        logits = logits_of(theta, torch.tensor(X, dtype=torch.float32), layout)
        temperature = 0.5 * 0.1 ** (step / steps)
        adam.zero_grad()
        (-smooth_precision(logits, pairs, temperature)).backward()
        adam.step()
        schedule.step()
    return theta.detach().numpy().astype(np.float64)


def measure(seed: int, steps: int) -> list[dict[str, Any]]:
    truth = make_bayes_multilabel(1, random_state=seed).truth
    layout = Layout(truth.n_features, truth.n_labels)
    X = truth.sample(TEST_ROWS, np.random.default_rng([seed, 2]))[0]
    log_odds = forward(truth.theta(), X, layout)
    half = best_micro_f1(truth.marginals(X)) / 2
    fitted = forward(fit_to_ranking(truth, layout, steps, seed), X, layout)
    rows = {
        "Bayes value": truth.bayes_losses(X),
        "network: log-odds": truth.expected_losses(X, log_odds),
        "network: log-odds, bias for micro-F1": truth.expected_losses(
            X, log_odds - np.log(half / (1 - half))
        ),
        "network: fitted to LRAP": truth.expected_losses(X, fitted),
    }
    return [
        {"seed": seed, "scores": name}
        | {k: f"{v:.5f}" for k, v in zip(LOSS_NAMES, losses, strict=True)}
        for name, losses in rows.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in range(arguments.seeds):
        rows += measure(seed, arguments.steps)
        for row in rows[-4:]:
            print(*row.values(), flush=True)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "bayes_gap.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()

"""CLML as one would write it from the paper with standard packages.

The competitor of the library's own training loop: full-covariance CMA-ES from
``cma``, one candidate after the other through plain NumPy, losses from
scikit-learn, contributions by Monte Carlo. Nothing of the library's numerics is
used, only its split of the rows.

    python benchmarks/reference_loop.py emotions --epochs 10
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import cma
import numpy as np
from scipy import sparse
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
)
from threadpoolctl import threadpool_limits

from clml.datasets import load_dataset, paper_split

EMBEDDING_DIM = 20
N_MONTE_CARLO = 10_000


@dataclass(frozen=True)
class Epoch:
    """What one epoch cost and found; losses are (population, 3)."""

    seconds: float
    train_losses: np.ndarray
    validation_losses: np.ndarray
    contributions: np.ndarray


def n_parameters(n_features: int, n_labels: int) -> int:
    C = EMBEDDING_DIM
    return n_features * C + C + C * C + C + C * n_labels + n_labels


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-values))


def _standardise_rows(H: np.ndarray) -> np.ndarray:
    centred = H - H.mean(axis=1, keepdims=True)
    return centred / (H.std(axis=1, keepdims=True) + 1e-10)


def logits(theta: np.ndarray, X: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the scores, shape (n_samples, n_labels), of one candidate.

    ``theta`` is E, b_E, L, b_L, Dec, b_D, each flattened by rows. The outer
    sigmoid is left out: it changes neither the ranking nor the side of the
    threshold, and saturation would tie labels.
    """
    D, C = X.shape[1], EMBEDDING_DIM
    shapes = [(D, C), (C,), (C, C), (C,), (C, n_labels), (n_labels,)]
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    pieces = np.split(theta, ends[:-1])
    E, b_E, L, b_L, Dec, b_D = (
        piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)
    )
    H1 = _sigmoid(_standardise_rows(X @ E + b_E))
    H2 = _sigmoid(_standardise_rows(H1 @ L + b_L))
    return H2 @ Dec + b_D


def losses(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return Hamming loss, 1 - LRAP and 1 - micro-F1."""
    predicted = (scores > 0).astype(int)
    return np.array(
        [
            hamming_loss(Y, predicted),
            1.0 - label_ranking_average_precision_score(Y, scores),
            1.0 - f1_score(Y, predicted, average="micro", zero_division=0.0),
        ]
    )


def monte_carlo_contributions(L: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the share of points in the unit cube that each member alone dominates."""
    points = rng.random((N_MONTE_CARLO, L.shape[1]))
    dominates = (L[None, :, :] <= points[:, None, :]).all(axis=2)
    alone = dominates.sum(axis=1) == 1
    return dominates[alone].sum(axis=0) / N_MONTE_CARLO


def new_strategy(
    n: int, population_size: int | None, rng: np.random.Generator
) -> cma.CMAEvolutionStrategy:
    """Return CMA-ES at its start for so many weights, drawing from ``rng`` alone."""
    options = {
        "CMA_rankmu": 0,
        "CMA_active": False,
        # cma would otherwise seed, and draw from, numpy's global generator.
        "seed": np.nan,
        "randn": lambda *shape: rng.standard_normal(shape),
        "verbose": -9,
    }
    if population_size is not None:
        options["popsize"] = population_size
    start = rng.normal(scale=n**-0.5, size=n)
    return cma.CMAEvolutionStrategy(start, 1.0, options)


def reference_run(
    X_train: np.ndarray,
    Y_train: np.ndarray,
    X_val: np.ndarray,
    Y_val: np.ndarray,
    n_epochs: int,
    population_size: int | None = None,
    seed: int = 0,
) -> Iterator[Epoch]:
    """Train, and yield every epoch; parameters as in `reference_epochs`."""
    rng = np.random.default_rng(seed)
    n_labels = Y_train.shape[1]
    n = n_parameters(X_train.shape[1], n_labels)
    strategy = new_strategy(n, population_size, rng)
    for _ in range(n_epochs):
        began = time.perf_counter()
        candidates = strategy.ask()
        train = np.array(
            [losses(Y_train, logits(x, X_train, n_labels)) for x in candidates]
        )
        validation = np.array(
            [losses(Y_val, logits(x, X_val, n_labels)) for x in candidates]
        )
        contributions = monte_carlo_contributions(train, rng)
        strategy.tell(candidates, list(-contributions))
        seconds = time.perf_counter() - began
        yield Epoch(seconds, train, validation, contributions)


def reference_epochs(
    X_train: np.ndarray,
    Y_train: np.ndarray,
    X_val: np.ndarray,
    Y_val: np.ndarray,
    n_epochs: int,
    population_size: int | None = None,
    seed: int = 0,
) -> list[float]:
    """Return the seconds that each epoch of the reference takes.

    ``cma`` factorises its covariance lazily, once in about ``n / 20`` epochs for
    ``n`` weights at these settings (emotions: every 101 epochs), so one epoch in
    many costs far more than the others. A fair mean covers several such periods;
    a mean over fewer epochs than one period leaves the factorisation out and
    flatters the reference. On a busy machine a BLAS with several threads can make
    the factorisation many times slower than with one, so state the number of
    threads with the time. Setting up the strategy is not timed.

    Parameters
    ----------
    X_train, X_val : ndarray of shape (n_samples, n_features)
        Standardised features. The covariance is dense, n_weights by n_weights:
        wide data sets (genbase, enron) need gigabytes.
    Y_train, Y_val : ndarray of shape (n_samples, n_labels)
        Label indicators.
    n_epochs : int
        Number of epochs.
    population_size : int, default=None
        Candidates in an epoch; None is ``4 + floor(3 ln n_weights)``.
    seed : int, default=0
        Seed of the start, of the search and of the Monte Carlo points.

    Returns
    -------
    seconds : list of float, length n_epochs
    """
    run = reference_run(X_train, Y_train, X_val, Y_val, n_epochs, population_size, seed)
    return [epoch.seconds for epoch in run]


def protocol_data(
    X: np.ndarray, Y: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X_train, Y_train, X_val, Y_val: 56 % and 14 % of the rows, scaled.

    The remaining 30 % are the test rows. Sparse features become dense.
    """
    X = X.toarray() if sparse.issparse(X) else X
    split = paper_split(X, Y, random_state=seed)
    return split.X_train, split.Y_train, split.X_validation, split.Y_validation


def main() -> None:
    """Print the mean time of an epoch on one data set."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("dataset", help="name of a data set in $CLML_DATA")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--population-size", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--blas-threads", type=int, default=None, help="default: the BLAS's own"
    )
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error(f"--epochs must be at least 1; got {arguments.epochs}.")

    loaded = load_dataset(arguments.dataset)
    data = protocol_data(loaded.X, loaded.Y, seed=arguments.seed)
    with threadpool_limits(arguments.blas_threads, user_api="blas"):
        run = list(
            reference_run(
                *data, arguments.epochs, arguments.population_size, arguments.seed
            )
        )
    seconds = [epoch.seconds for epoch in run]
    n = n_parameters(data[0].shape[1], data[1].shape[1])
    best = np.min([epoch.validation_losses.min(axis=0) for epoch in run], axis=0)
    print(
        f"{arguments.dataset}: {len(data[1])} training rows, {n} weights, "
        f"population {len(run[0].contributions)}"
    )
    print(
        f"{np.mean(seconds):.3f} s an epoch (mean of {len(seconds)}; "
        f"least {min(seconds):.3f}, most {max(seconds):.3f})"
    )
    print("best validation losses: " + ", ".join(f"{value:.4f}" for value in best))


if __name__ == "__main__":
    main()

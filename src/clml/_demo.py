"""From nothing to a trained model and a table, on generated data."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ._classifier import CLMLClassifier
from .datasets import iterative_train_test_split
from .losses import loss_values

LOSSES = ("hamming", "lrap", "micro_f1")


def run_demo(max_epochs: int = 1000, seed: int = 0) -> None:
    """Train CLML and a logistic regression, print the test losses of both."""
    console = Console()
    X, Y = make_multilabel_classification(
        n_samples=800, n_features=20, n_classes=6, n_labels=2, random_state=seed
    )
    X_train, X_test, Y_train, Y_test = iterative_train_test_split(
        X, Y, test_size=0.3, random_state=seed
    )
    console.print(
        f"{len(X_train)} training rows, {len(X_test)} test rows, {X.shape[1]} "
        f"features, {Y.shape[1]} labels; {max_epochs} epochs."
    )
    clf = CLMLClassifier(LOSSES, max_epochs=max_epochs, n_jobs=-1, random_state=seed)
    if hasattr(clf, "set_callbacks"):
        from sklearn.callback import ProgressBar

        clf.set_callbacks(ProgressBar())
    clf.fit(X_train, Y_train)
    logistic = make_pipeline(
        StandardScaler(), MultiOutputClassifier(LogisticRegression())
    ).fit(X_train, Y_train)

    table = Table(title="Test losses, smaller is better")
    for column in ("model", *LOSSES, "geometric mean"):
        table.add_column(column, justify="left" if column == "model" else "right")
    rates = np.broadcast_to(Y_train.mean(axis=0) - 0.5, Y_test.shape)
    _add(table, "label frequencies", Y_test, rates)
    _add(table, "logistic regression", Y_test, _scores(logistic, X_test))
    _add(table, "CLML", Y_test, clf.decision_function(X_test))
    for which in LOSSES:
        scores = clf.select(which).decision_function(X_test)
        _add(table, f"CLML.select({which!r})", Y_test, scores)
    console.print(table)
    seconds = clf.history_["seconds"]
    console.print(
        f"One fit, and a front of {len(clf.front_)} models to choose from afterwards: "
        "select() gives the one for a loss or for a weighting of them. These labels "
        "are close to linear in the features, the home ground of logistic regression. "
        f"An epoch of {clf.population_size_} candidates took "
        f"{1e3 * np.median(seconds):.1f} ms."
    )


def _scores(model: Any, X: np.ndarray) -> np.ndarray:
    return np.stack([p[:, 1] - 0.5 for p in model.predict_proba(X)], axis=1)


def _add(table: Table, name: str, Y: np.ndarray, scores: np.ndarray) -> None:
    losses = loss_values(Y, scores, LOSSES)
    mean = float(np.exp(np.log(losses).mean()))
    table.add_row(name, *(f"{loss:.4f}" for loss in losses), f"{mean:.4f}")

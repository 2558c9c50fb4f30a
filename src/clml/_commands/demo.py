"""From nothing to trained models, a table and a page, on data with known truth.

All methods get the same training rows and take what they hold out from these. The test
rows decide nothing. On them the losses are given twice: expected, exact because p(y|x)
is known, and on the labels that were drawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._classifier import CLMLClassifier
from .._training.cross_entropy import fit_cross_entropy
from .._version import __version__
from ..datasets import iterative_train_test_split, make_bayes_multilabel
from ..losses import loss_values

Floats = NDArray[np.float64]

LOSSES = ("hamming", "lrap", "micro_f1")
ROWS = 1500


@dataclass(frozen=True, eq=False)
class Method:
    """What one method reached on the test rows.

    Attributes
    ----------
    name : str
    kind : {"clml", "network", "baseline"}
    expected, drawn : float64 arrays (3,)
        Losses in expectation, and on the labels drawn.
    select : str or None
        The loss that a member of the front was selected for.
    """

    name: str
    kind: str
    expected: Floats
    drawn: Floats
    select: str | None = None


@dataclass(frozen=True, eq=False)
class DemoResult:
    """All that the demonstration found, in numbers.

    Attributes
    ----------
    methods : tuple of Method
    bayes, bayes_drawn : float64 arrays (3,)
        The Bayes value of each loss on the test rows, and what its Bayes predictor
        has on the labels drawn.
    sorted_marginals : float
        Expected LRAP loss of the true marginals.
    front : float64 array (m, 3)
        Expected losses on the test rows of each member of CLML's front.
    curve : float64 array (epochs, 3)
        Validation losses of the mean of CLML's search distribution.
    settings : dict of str to str
    """

    methods: tuple[Method, ...]
    bayes: Floats
    bayes_drawn: Floats
    sorted_marginals: float
    front: Floats
    curve: Floats
    settings: dict[str, str]


def geometric_mean(losses: Floats) -> float:
    """Geometric mean of losses; 0 if one of them is 0."""
    return float(np.prod(losses) ** (1 / len(losses)))


def run_demo(
    max_epochs: int = 100, seed: int = 0, page: Path | str = "clml-demo.html"
) -> DemoResult:
    """Train everything, print the losses beside their Bayes values, write the page."""
    from ._demo_page import render_page, write_page

    console = Console()
    result = compare(max_epochs, seed, console)
    console.print(_table("Expected losses on the test rows (exact)", result))
    console.print(_table("Losses on the labels drawn for these rows", result, True))
    for sentence in verdict(result):
        console.print(sentence, highlight=False)
    path = write_page(page, render_page(result))
    # A path may have brackets, which would be taken for a style.
    console.print(f"The page: {path}", highlight=False, markup=False, soft_wrap=True)
    return result


def compare(max_epochs: int, seed: int, console: Console) -> DemoResult:
    """Train every method on the same rows and judge them on the same test rows."""
    data = make_bayes_multilabel(ROWS, random_state=seed)
    truth = data.truth
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, random_state=seed
    )
    console.print(
        f"{len(X)} training rows, {len(X_test)} test rows, {X.shape[1]} features, "
        f"{Y.shape[1]} labels, from a known distribution; {max_epochs} epochs of CLML.",
        highlight=False,
    )

    def judge(
        name: str, kind: str, scores: Floats, select: str | None = None
    ) -> Method:
        expected = truth.expected_losses(X_test, scores)
        return Method(name, kind, expected, loss_values(Y_test, scores, LOSSES), select)

    logistic = _per_label(make_pipeline(StandardScaler(), LogisticRegression()))
    naive = _per_label(GaussianNB())
    network, network_seconds = _timed(
        lambda: fit_cross_entropy(X, Y, random_state=seed)
    )
    logits = network.decision_function(X_test)
    clf, clml_seconds = _timed(lambda: _clml(max_epochs, seed).fit(X, Y))
    methods = (
        judge("logistic regression", "baseline", logistic(X, Y, X_test)),
        judge("Gaussian naive Bayes", "baseline", naive(X, Y, X_test)),
        judge("cross-entropy network", "network", logits),
        judge(
            "... tuned for micro_f1",
            "network",
            logits - network.f1_threshold,
            "micro_f1",
        ),
        judge("CLML", "clml", clf.decision_function(X_test)),
        *(
            judge(
                f"CLML.select({name!r})",
                "clml",
                clf.select(clf.front_.choice(name)[0]).decision_function(X_test),
                name,
            )
            for name in LOSSES
        ),
    )
    members = [clf.select(i).decision_function(X_test) for i in range(len(clf.front_))]
    best = [truth.bayes_scores(X_test, name) for name in LOSSES]
    return DemoResult(
        methods=methods,
        bayes=truth.bayes_losses(X_test),
        bayes_drawn=np.diagonal([loss_values(Y_test, s, LOSSES) for s in best]),
        sorted_marginals=truth.expected_losses(X_test, truth.marginals(X_test))[1],
        front=np.array([truth.expected_losses(X_test, scores) for scores in members]),
        curve=clf.history_["mean_validation"],
        settings={
            "clml": __version__,
            "seed": str(seed),
            "data": f"make_bayes_multilabel({ROWS}, random_state={seed}): {X.shape[1]} "
            f"features, {Y.shape[1]} labels, {data.cardinality:.2f} labels a row",
            "training rows": f"{len(X)}, each judged by members that left it out",
            "test rows": str(len(X_test)),
            "CLML": f"{clf.n_epochs_} epochs of {len(clf.networks_)} members, "
            f"{clf.layout_.size} weights each, {clml_seconds:.0f} s",
            "cross-entropy network": "the same shape, Adam, "
            f"best of {len(network.curve)} epochs on validation rows, "
            f"{network_seconds:.1f} s",
        },
    )


def verdict(result: DemoResult) -> list[str]:
    """Say in words who came nearest to the Bayes values, by the expected losses.

    For each loss the methods take part as they are, and with what was selected or tuned
    for that loss on validation rows; for the geometric mean as they are.
    """
    sentences = []
    wins = 0
    for i, loss in enumerate(LOSSES):
        entrants = [m for m in result.methods if m.select in (None, loss)]
        ranked = sorted(entrants, key=lambda m: m.expected[i])
        best = ranked[0]
        wins += best.kind == "clml"
        other = next(m for m in ranked if (m.kind == "clml") != (best.kind == "clml"))
        sentences.append(
            f"{loss}: {_full(best)} comes nearest to the Bayes value "
            f"{result.bayes[i]:.4f} with {best.expected[i]:.4f}; "
            f"{_full(other)} has {other.expected[i]:.4f}."
        )
    entrants = [m for m in result.methods if m.select is None]
    ranked = sorted(entrants, key=lambda m: geometric_mean(m.expected))
    sentences.append(
        "CLML, as it is or with the member selected for the loss, is nearest on "
        f"{wins} of {len(LOSSES)} losses. By the geometric mean: "
        + ", ".join(f"{m.name} {geometric_mean(m.expected):.4f}" for m in ranked)
        + f" (of the Bayes values, which no single model need reach: "
        f"{geometric_mean(result.bayes):.4f}). This is one run on one draw of the data."
    )
    above = result.sorted_marginals / result.bayes[1] - 1
    sentences.append(
        "Ranking needs more than the probability of each label: sorting the true ones "
        f"has the LRAP loss {result.sorted_marginals:.4f}, {above:.1%} above the best."
    )
    sentences.append(
        "Micro-F1 is best served by a threshold of "
        f"{(1 - result.bayes[2]) / 2:.2f} on the true probabilities. CLML looks for "
        "its own, and a second row of the cross-entropy network has one from its "
        "validation rows; the two baselines decide at 1/2."
    )
    plain = next(m for m in result.methods if m.kind == "clml" and m.select is None)
    selected = [m for m in result.methods if m.kind == "clml" and m.select]
    better = sum(
        m.expected[LOSSES.index(str(m.select))]
        < plain.expected[LOSSES.index(str(m.select))]
        for m in selected
    )
    sentences.append(
        f"One fit of CLML, and a front of {len(result.front)} models to choose from "
        "afterwards. select() picks by rows left out: here the member selected for a "
        f"loss was better at it than the default on {better} of {len(selected)} losses."
    )
    return sentences


def _full(method: Method) -> str:
    return method.name.replace("... ", "cross-entropy network ")


def _clml(max_epochs: int, seed: int) -> CLMLClassifier:
    # The kind of network that cross-entropy trains beside it.
    clf = CLMLClassifier(
        LOSSES,
        network="paper",
        max_epochs=max_epochs,
        n_jobs=-1,
        random_state=seed,
    )
    if hasattr(clf, "set_callbacks"):
        from sklearn.callback import ProgressBar

        clf.set_callbacks(ProgressBar())
    return clf


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return call(), time.perf_counter() - began


def _per_label(model: Any) -> Callable[..., Floats]:
    """Return a function of training rows and test rows: one such model a label."""

    def scores(X: Floats, Y: NDArray, X_test: Floats) -> Floats:
        fitted = MultiOutputClassifier(model).fit(X, Y)
        return np.stack([p[:, 1] - 0.5 for p in fitted.predict_proba(X_test)], axis=1)

    return scores


def _table(title: str, result: DemoResult, drawn: bool = False) -> Table:
    table = Table(title=f"{title}, smaller is better")
    for column in ("model", *LOSSES, "geometric mean"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for method in result.methods:
        _add(table, method.name, method.drawn if drawn else method.expected)
    table.add_section()
    name = "Bayes predictors" if drawn else "Bayes value"
    _add(table, name, result.bayes_drawn if drawn else result.bayes)
    return table


def _add(table: Table, name: str, losses: Floats) -> None:
    cells = (*losses, geometric_mean(losses))
    table.add_row(name, *(f"{value:.4f}" for value in cells))

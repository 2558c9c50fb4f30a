"""Whether the Lebesgue measure does the work: other objectives in its place.

    python benchmarks/measure_ablation.py run --designs paper default --splits 3
    python benchmarks/measure_ablation.py run --datasets yeast --objectives sum
    python benchmarks/measure_ablation.py table

Three designs, each with one thing changed: what candidates are ranked by, or what
members ascend. "paper" is ``CLMLClassifier(**PAPER_SETTINGS)``; "tie rule" is the same
with ``ties="depth"`` and populations of 64; "default" is ``CLMLClassifier()``, where
members alone have another objective, and the choice of epochs and the map of their
average are the default's. Nothing is tuned, for any objective.

Every fit is one line of ``results/measure_ablation.csv``: the losses on held-out rows
of what predicts, those of what predicts where nothing is chosen (the mean of a
population's distribution; the average of members before its map), and the Lebesgue
measure of the held-out losses of all models in ``front_``. What is there is not
computed again. ``table`` writes ``results/measure_ablation.md``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from _jobs import LOSSES, geometric_mean, read, run_jobs
from _significance import Difference, paired_difference, signed_rank
from default_learner import NOT_IN_MEAN, SPLITS
from direct_or_surrogate import only_cross_entropy
from numpy.typing import NDArray

from clml import PAPER_SETTINGS, CLMLClassifier
from clml._training.recipe import TrainingSettings
from clml._training.search import Fitness, Search
from clml.datasets import iterative_train_test_split, load_dataset
from clml.engine import Engine
from clml.evolution import rank_by_fitness
from clml.lebesgue import lebesgue_measure
from clml.losses import (
    Loss,
    LossSet,
    StatisticWeights,
    Totals,
    loss_values,
    measure_gradients,
)

RESULTS = Path(__file__).parent / "results"
OWN_ROWS = RESULTS / "measure_ablation.csv"
DESIGNS = ("paper", "tie rule", "default")
#: What each design has: contributions, or the measure of a member's own losses.
MEASURE = "measure"
SUM, PRODUCT, OWN_VOLUME = "sum", "geometric mean", "own volume"
CROSS_ENTROPY = "cross-entropy"
OBJECTIVES = (MEASURE, OWN_VOLUME, SUM, PRODUCT, *LOSSES, CROSS_ENTROPY)
#: A member of the default has no other volume than its own.
NOT_THERE = (("default", OWN_VOLUME),)
KEY = ("dataset", "design", "objective", "split")
PLAIN = tuple(f"plain_{name}" for name in LOSSES)
FIELDS = (*KEY, *LOSSES, *PLAIN, "models", "front_measure", "test_decisions", "seconds")
# What fits are judged by, beside each loss.
MEAN, PLAIN_MEAN, FRONT = "mean", "plain mean", "front"
ENDS = (MEAN, FRONT)
LOSS_TITLES = ("Hamming loss", "1 - LRAP", "1 - micro-F1")
TITLES = {
    "paper": "The paper's settings",
    "tie rule": "With the tie rule, populations of 64",
    "default": "The default's members",
}
HEADER = """\
# Other objectives in the place of the Lebesgue measure

Everything else is the same: networks, populations or members, epochs, rows, seeds and
what becomes of what was found. In the paper's settings candidates are ranked by their
contributions to the measure of their population, or by the volume of each one's own
box (the product of 1 - L), the sum of the losses, their geometric mean, one of them, or
cross-entropy. The default's members ascend the measure of their own losses, or these;
epochs and the map of their average are chosen as always. No objective was tuned, and
the default's learning rate is the one that was best for the measure.

Losses are on the 30 % of rows that are held out, beside those of the measure: mean
ratio over datasets with its 95 % interval; above 1 the measure is better. "Nothing
chosen" is the geometric mean of the losses of the mean of a population's distribution,
where the best candidate of the last epoch predicts otherwise, and of the members'
average without its map. The measure of the front is that of the held-out losses of all
models in `front_`, below the worst losses: mean difference; below 0 the measure is
better. p is that of Wilcoxon's signed-rank test over datasets, two-sided, not corrected
for the number of tests. Means are over the splits that both have, without genbase.
Below, each dataset, its number of splits in brackets. Made by
`benchmarks/measure_ablation.py`.
"""
Floats = NDArray[np.float64]


def values_of(objective: str, losses: Floats, least: float) -> Floats:
    """Return what candidates (m, o) are ranked by, smaller is better.

    Parameters
    ----------
    objective : {"own volume", "sum", "geometric mean"} or the name of a loss
        "own volume" is that of the box from a candidate to the worst losses, whatever
        other candidates cover of it.
    losses : float64 array (m, o)
    least : float
        What a loss counts as at least in a geometric mean: half an error.

    Examples
    --------
    >>> import numpy as np
    >>> from measure_ablation import values_of
    >>> losses = np.array([[0.1, 0.5, 0.5], [0.3, 0.4, 0.3]])
    >>> values_of("sum", losses, 0.01).round(3)
    array([1.1, 1. ])
    >>> values_of("own volume", losses, 0.01).round(3)
    array([-0.225, -0.294])
    """
    if objective == SUM:
        return losses.sum(axis=1)
    if objective == PRODUCT:
        return np.log(np.maximum(losses, least)).mean(axis=1)
    if objective == OWN_VOLUME:
        return -np.prod(1.0 - losses, axis=1)
    return losses[:, LOSSES.index(objective)]


class _WithCrossEntropy:
    """Rows whose candidates' mean cross-entropy is told, too."""

    def __init__(self, rows: Any):
        self._rows = rows.with_losses((*LOSSES, "binary_cross_entropy"))
        self.cross_entropy = np.empty(0)

    def begin(self, thetas: Any) -> Callable[[], Floats]:
        finish = self._rows.begin(thetas)

        def losses() -> Floats:
            found = finish()
            self.cross_entropy = found[:, -1]
            return found[:, :-1]

        return losses


class _Ranking:
    """A fitness that ranks candidates by a value of each, not by contributions."""

    def __init__(self, objective: str, least: float, fitness: Fitness):
        self._objective, self._least = objective, least
        self.rows: Any = None
        self.next_references = fitness.next_references

    def order(self, losses: Floats, references: Floats, epoch: int) -> NDArray:
        if self._objective == CROSS_ENTROPY:  # the last is the distribution's mean
            return rank_by_fitness(self.rows.cross_entropy[:-1])
        return rank_by_fitness(values_of(self._objective, losses, self._least))


class _RankedSearch(Search):
    """A search whose candidates are ranked by another objective."""

    def __init__(self, *args: Any, objective: str, least: float, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fitness: Any = _Ranking(objective, least, self.fitness)

    def attach(
        self, train: Engine, validation: Engine | None, helpers: Any = None
    ) -> None:
        super().attach(train, validation, helpers)
        if self.fitness._objective == CROSS_ENTROPY:
            self._train: Any = _WithCrossEntropy(train)
            self.fitness.rows = self._train


def slopes_of(objective: str, losses: Floats, least: float) -> Floats:
    """Return the derivative of what members ascend in each loss (m, o), negative."""
    if objective == SUM:
        return -np.ones_like(losses)
    if objective == PRODUCT:
        return -1.0 / np.maximum(losses, least)
    if objective == MEASURE:
        return -1.0 / (2.0 - losses)
    chosen = np.array([name == objective for name in LOSSES])
    return -np.ones_like(losses) * chosen


@lru_cache
def _alone(loss: Loss, n_labels: int) -> LossSet:
    return LossSet((loss,), n_labels)


def prices(
    objective: str, least: float, loss_set: LossSet, totals: Totals, weight: float
) -> StatisticWeights:
    """Return what a unit of each statistic is worth to an objective.

    As ``measure_gradients``, which says so of the measure, ln Π(2 − L): each loss has
    its prices from there, and another slope.
    """
    losses = loss_set.close(loss_set.statistics(totals, weight)).clip(0.0, 1.0)
    factors = slopes_of(objective, losses, least) / slopes_of(MEASURE, losses, least)
    each = [
        measure_gradients(_alone(loss, loss_set.n_labels), totals, weight)
        for loss in loss_set.losses
    ]
    return StatisticWeights(
        np.einsum("mo,omc->mc", factors, np.stack([own.columns for own in each])),
        np.einsum("mo,omsk->msk", factors, np.stack([own.labels for own in each])),
    )


@contextmanager
def trained_by(design: str, objective: str, least: float) -> Iterator[None]:
    """Give fits of a design another objective."""
    if objective == MEASURE:
        yield
    elif design != "default":
        ranked = partial(_RankedSearch, objective=objective, least=least)
        with patch("clml._training.builder.Search", ranked):
            yield
    elif objective == CROSS_ENTROPY:
        with patch.object(
            TrainingSettings, "ascent", only_cross_entropy(TrainingSettings.ascent)
        ):
            yield
    else:
        # Where members look their prices up; the map of their average does not.
        with patch(
            "clml._training.ascent.measure_gradients", partial(prices, objective, least)
        ):
            yield


def classifier(design: str, split: int) -> CLMLClassifier:
    """Return the learner of a design."""
    if design == "default":
        return CLMLClassifier(random_state=split)
    clf = CLMLClassifier(**PAPER_SETTINGS, random_state=split)
    if design == "tie rule":
        clf.set_params(search__ties="depth", search__population_size=64)
    return clf


def plain_scores(clf: CLMLClassifier, X: Any) -> NDArray:
    """Return the scores of what predicts where nothing is chosen."""
    if not hasattr(clf, "ensemble_"):
        return clf.select("mean").decision_function(X)
    return clf.ensemble_.logits(clf.networks_, clf.member_scale_, X, None)


def run_job(
    dataset: str, design: str, objective: str, split: int
) -> list[dict[str, Any]]:
    """Fit one learner on one split; return its losses on the other rows."""
    data = load_dataset(dataset)
    X, X_test, Y, Y_test = iterative_train_test_split(
        data.X, data.Y, test_size=0.3, refine=False, random_state=split
    )
    clf = classifier(design, split)
    began = time.process_time()
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        with trained_by(design, objective, 0.5 / Y.size):
            clf.fit(X, Y)
        seconds = time.process_time() - began

        def losses(scores: NDArray) -> Floats:
            return loss_values(Y_test, scores, LOSSES)

        models = [
            losses(clf.select(i).decision_function(X_test))
            for i in range(len(clf.front_))
        ]
        found = losses(clf.decision_function(X_test))
        plain = losses(plain_scores(clf, X_test))
    return [
        {
            **dict(zip(KEY, (dataset, design, objective, split), strict=True)),
            **{n: f"{v:.6f}" for n, v in zip(LOSSES, found, strict=True)},
            **{n: f"{v:.6f}" for n, v in zip(PLAIN, plain, strict=True)},
            "models": len(models),
            "front_measure": f"{lebesgue_measure(models):.6f}",
            "test_decisions": Y_test.size,
            "seconds": f"{seconds:.2f}",
        }
    ]


def quantities(row: dict[str, str]) -> dict[str, float]:
    """Return what a fit is judged by; losses as logarithms.

    A loss of exactly 0 counts as half an error.
    """
    decisions = row["test_decisions"]
    plain = {name: row[f"plain_{name}"] for name in LOSSES}
    least = 0.5 / int(decisions)
    return {
        MEAN: geometric_mean(row),
        PLAIN_MEAN: geometric_mean({**plain, "test_decisions": decisions}),
        **{name: max(float(row[name]), least) for name in LOSSES},
        FRONT: float(row["front_measure"]),
    }


Fits = dict[str, dict[int, dict[str, float]]]


def fits(rows: list[dict[str, str]], design: str, dataset: str) -> Fits:
    """Return what each objective's fits are judged by, each split's."""
    found: Fits = {}
    for row in rows:
        if (row["design"], row["dataset"]) == (design, dataset):
            own = found.setdefault(row["objective"], {})
            own[int(row["split"])] = quantities(row)
    return found


def pairs(
    rows: list[dict[str, str]], design: str, objective: str, quantity: str
) -> Floats:
    """Return a quantity (datasets, 2) of an objective and of the measure.

    Means over the splits that both were fitted on, of the datasets in the means.
    """
    found = []
    for dataset in SPLITS:
        if dataset == NOT_IN_MEAN:
            continue
        of = fits(rows, design, dataset)
        ours, theirs = of.get(MEASURE, {}), of.get(objective, {})
        both = sorted(ours.keys() & theirs.keys())
        if both:
            of_both = [[one[s][quantity] for s in both] for one in (theirs, ours)]
            found.append(np.mean(of_both, axis=1))
    return np.reshape(found, (-1, 2))


class Comparison(NamedTuple):
    """An objective beside the measure, over datasets.

    Attributes
    ----------
    change : Difference
        Of losses the mean ratio to the measure's, of the front's measure the mean
        difference; each with its 95 % interval.
    ahead : int
        On how many datasets the measure is better.
    n_datasets : int
    pvalue : float
        Of Wilcoxon's signed-rank test, two-sided.
    """

    change: Difference
    ahead: int
    n_datasets: int
    pvalue: float


def comparison(
    rows: list[dict[str, str]], design: str, objective: str, quantity: str
) -> Comparison | None:
    """Compare an objective with the measure; None if no dataset has both."""
    found = pairs(rows, design, objective, quantity)
    if not len(found):
        return None
    if quantity == FRONT:
        theirs, ours = found.T
        change = paired_difference(theirs, ours)
        ahead = int((ours > theirs).sum())
    else:
        theirs, ours = np.log(found).T
        change = Difference(*np.exp(paired_difference(theirs, ours)).tolist())
        ahead = int((ours < theirs).sum())
    return Comparison(change, ahead, len(found), signed_rank(theirs, ours, "two-sided"))


def _shown(change: Difference, sign: str = "") -> str:
    shown = [f"{value:{sign}.3f}" for value in change]
    if np.isnan(change.low):
        return shown[0]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _summary(rows: list[dict[str, str]], design: str) -> Iterator[list[str]]:
    """Yield the rows of a design's table, the head first."""
    heads = ("geometric mean", "measure ahead", "p", *LOSS_TITLES, "nothing chosen")
    yield ["instead of the measure", *heads, "measure of the front", "ahead", "p"]
    for objective in OBJECTIVES[1:]:
        every = {
            quantity: comparison(rows, design, objective, quantity)
            for quantity in (MEAN, *LOSSES, PLAIN_MEAN, FRONT)
        }
        first, front = every[MEAN], every[FRONT]
        if first is None or front is None:
            continue
        others = [one.change for q, one in every.items() if one and q not in ENDS]
        yield [
            _named(objective),
            _shown(first.change),
            f"{first.ahead} of {first.n_datasets}",
            f"{first.pvalue:.3f}",
            *(f"{change.mean:.3f}" for change in others),
            _shown(front.change, "+"),
            f"{front.ahead} of {front.n_datasets}",
            f"{front.pvalue:.3f}",
        ]


def brief(rows: list[dict[str, str]]) -> list[str]:
    """Return the table of docs/reproducing.md: of each design what matters most."""
    return _markdown(_brief_rows(rows))[:-1]


def _brief_rows(rows: list[dict[str, str]]) -> Iterator[list[str]]:
    yield ["design", "objective", "datasets", "losses", "p", "front", "p"]
    for design in DESIGNS:
        for objective in OBJECTIVES[1:]:
            losses = comparison(rows, design, objective, MEAN)
            front = comparison(rows, design, objective, FRONT)
            if losses is None or front is None:
                continue
            yield [
                design,
                _named(objective),
                str(losses.n_datasets),
                _shown(losses.change),
                f"{losses.pvalue:.2f}",
                _shown(front.change, "+"),
                f"{front.pvalue:.2f}",
            ]


def _named(objective: str) -> str:
    return f"{objective} alone" if objective in LOSSES else objective


def _each(
    rows: list[dict[str, str]], design: str, quantity: str
) -> Iterator[list[str]]:
    """Yield a quantity of each dataset and objective, the head first."""
    shown = [o for o in OBJECTIVES if (design, o) not in NOT_THERE]
    yield ["dataset", *shown]
    for dataset in SPLITS:
        of = fits(rows, design, dataset)
        if not of:
            continue
        cells = []
        for objective in shown:
            own = [found[quantity] for found in of.get(objective, {}).values()]
            cells.append(f"{np.mean(own):.4f} [{len(own)}]" if own else "")
        yield [dataset, *cells]


def _markdown(rows: Iterator[list[str]]) -> list[str]:
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return [head, "|---" * (head.count("|") - 1) + "|", *others, ""]


def write_table() -> None:
    """Write the page: each design's comparisons, then what they are made of."""
    rows = read(OWN_ROWS)
    text = [HEADER]
    for design, title in TITLES.items():
        text += [f"## {title}", "", *_markdown(_summary(rows, design))]
    for design, title in TITLES.items():
        text += [f"## {title}: each dataset", "", "Geometric mean of the losses:", ""]
        text += _markdown(_each(rows, design, MEAN))
        text += ["Lebesgue measure of the front:", ""]
        text += _markdown(_each(rows, design, FRONT))
    path = RESULTS / "measure_ablation.md"
    path.write_text("\n".join(text[:-1]) + "\n", encoding="utf-8")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--designs", nargs="+", choices=DESIGNS, default=DESIGNS)
    runs.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    runs.add_argument("--datasets", nargs="+", choices=SPLITS, default=list(SPLITS))
    runs.add_argument("--splits", type=int, default=1, help="at most, of each dataset")
    runs.add_argument("--jobs", type=int, default=1)
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "run":
        jobs = [
            (dataset, design, objective, split)
            for split in range(given.splits)
            for dataset in given.datasets
            for design in given.designs
            for objective in given.objectives
            if split < SPLITS[dataset] and (design, objective) not in NOT_THERE
        ]
        run_jobs(OWN_ROWS, FIELDS, KEY, jobs, run_job, given.jobs)
    write_table()


if __name__ == "__main__":
    main()

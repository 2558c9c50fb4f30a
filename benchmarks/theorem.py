"""The theorem of the paper in its own terms: a front's measure against the Bayes front.

    python benchmarks/theorem.py limits
    python benchmarks/theorem.py fit --rows 125 250 500 1000 2000 4000 --seeds 0 1 2
    python benchmarks/theorem.py fit --jobs 2
    python benchmarks/theorem.py table

``fit`` draws training rows from distributions of ``make_bayes_multilabel``, fits
learners to them, and adds their expected losses on 20,000 fresh rows to
``results/theorem.csv``; what is there is not computed again, and without options it
runs all that is still missing. ``limits`` writes what is known without any learner to
``results/theorem_limits.csv``: the Bayes front of those rows, and the order of the true
marginals, where cross-entropy leads. ``table`` makes ``results/theorem.md`` and the
picture of ``docs/images`` of the two. The picture needs matplotlib.

The learners are ``CLMLClassifier()``, whose members climb the Lebesgue measure of the
losses; the same members, encodings, choice of epochs and shares, map and front with
cross-entropy in the place of the measure; and the paper's own settings.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _jobs import LOSSES, mean_and_spread, read, run_jobs
from direct_or_surrogate import only_cross_entropy
from scipy.stats import linregress, t

from clml import PAPER_SETTINGS, Ascent, CLMLClassifier
from clml._maps.score_map import apply_map
from clml._training.recipe import TrainingSettings
from clml.datasets import make_bayes_multilabel
from clml.lebesgue import lebesgue_measure
from clml.network import forward

RESULTS = Path(__file__).parent / "results"
FITS = RESULTS / "theorem.csv"
LIMITS = RESULTS / "theorem_limits.csv"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "theorem.svg"
# The dependence of the labels, and the random state of the distribution. With the same
# state marginals are the same, whatever the dependence.
DISTRIBUTIONS = ((1.0, 4), (0.5, 4), (0.0, 4), (1.0, 0), (1.0, 1))
# Of wide members, and of narrow ones: the network behind the labels is one of theirs.
OBJECTIVES = ("measure", "cross-entropy", "paper")
NARROW = ("narrow measure", "narrow cross-entropy")
ROWS = (125, 250, 500, 1000, 2000, 4000, 8000, 16_000)
# Of narrow members and populations, which take several times as long.
SLOW_ROWS = ROWS[:6]
SEEDS = range(5)
# What is best for cross-entropy on the datasets of ``direct_or_surrogate.py``.
SURROGATE_RATE = 0.008
TEST_ROWS = 20_000
KEY = ("dependence", "state", "objective", "rows", "seed")
FIELDS = (*KEY, "output", *LOSSES, "lebesgue_measure", "models", "seconds")
LIMIT_FIELDS = (
    "dependence",
    "state",
    "predictor",
    *LOSSES,
    "lebesgue_measure",
    "models",
)
BAYES, MARGINALS, CUT_MARGINALS = "Bayes front", "marginals", "marginals, cut"
NAMES = {
    "measure": "CLML",
    "cross-entropy": "cross-entropy",
    "paper": "paper's settings",
    "narrow measure": "CLML, narrow",
    "narrow cross-entropy": "cross-entropy, narrow",
}
# Members are drawn by what they are trained on.
SAID = {
    "measure": "the measure",
    "cross-entropy": "cross-entropy",
    "narrow measure": "the measure, narrow",
    "narrow cross-entropy": "cross-entropy, narrow",
}
DRAWN = (
    ("measure", "#0072B2", "o-"),
    ("cross-entropy", "#D55E00", "s-"),
    ("narrow measure", "#0072B2", "^:"),
    ("narrow cross-entropy", "#D55E00", "v:"),
)
# Below, a limit is that of independent labels: none.
LEAST_LIMIT = 1e-5
HEADER = """\
# The theorem in its own terms

The paper's theorem says that the measure of a front goes to that of the Bayes front,
and that each loss then goes to its Bayes value. Here both are known: training rows come
from `make_bayes_multilabel`, and every loss is an expectation on 20,000 fresh rows
whose probabilities are known. *CLML* is `CLMLClassifier()`, whose members climb the
measure of the losses. *Cross-entropy* is the same, with cross-entropy in its place
while members are trained, at a learning rate of 0.008, which is best for it on other
data; members, encodings, and how epochs, shares, map and front are chosen are the same.
*Narrow* is both with `network="paper"`, members like the network behind the labels, and
the default's learning rate. *Paper's settings* are `CLMLClassifier(**PAPER_SETTINGS)`.
Means (standard deviations) over seeds, each with rows of its own; empty cells were not
run. Distributions are named by the dependence of their labels and their random state.
Made by `benchmarks/theorem.py`.
"""


@cache
def distribution(dependence: float, state: int) -> tuple[Any, np.ndarray]:
    """Return a distribution, and the fresh rows that all its learners are judged on."""
    truth = make_bayes_multilabel(1, dependence=dependence, random_state=state).truth
    return truth, truth.sample(TEST_ROWS, np.random.default_rng([state, 1]))[0]


def learner(objective: str, seed: int) -> CLMLClassifier:
    """Return a learner; for cross-entropy it is fitted by :func:`fit_learner`."""
    settings: dict[str, Any] = PAPER_SETTINGS if objective == "paper" else {}
    if objective == "cross-entropy":
        settings = {"search": Ascent(learning_rate=SURROGATE_RATE)}
    elif objective in NARROW:
        settings = {"network": "paper"}
    return CLMLClassifier(**settings, random_state=seed)


def fit_learner(objective: str, seed: int, X: Any, Y: Any) -> CLMLClassifier:
    """Fit a learner; cross-entropy takes the place of the measure in training alone."""
    clf = learner(objective, seed)
    with warnings.catch_warnings(category=UserWarning, action="ignore"):
        if not objective.endswith("cross-entropy"):
            return clf.fit(X, Y)
        with patch.object(
            TrainingSettings, "ascent", only_cross_entropy(TrainingSettings.ascent)
        ):
            return clf.fit(X, Y)


def average_of_members(clf: CLMLClassifier, X: np.ndarray) -> np.ndarray:
    """Return what the maps of a fitted learner are maps of, (n, K)."""
    if hasattr(clf, "ensemble_"):
        return clf.ensemble_.logits(clf.networks_, clf.member_scale_, X)
    each = [forward(theta, X, clf.layout_, clf.scaling_) for theta in clf.networks_]
    return np.mean(each, axis=0, dtype=np.float64)


def outputs(clf: CLMLClassifier, X: np.ndarray) -> Iterator[tuple[str, list[Any]]]:
    """Yield what a fitted learner offers, each as the scores (n, K) of its models.

    "default" is the model that predicts, "front" those of the front, and "selected"
    what ``select`` takes of these for each of the losses in turn. "members" is the
    average of the members without any map, which the paper's settings do not have.
    """
    front = clf.front_
    if hasattr(clf, "networks_"):
        average = average_of_members(clf, X)
        models = [apply_map(theta, average[:, None, :]) for theta in front.theta]
        yield "members", [average]
    else:
        models = [
            clf.select(i).decision_function(X).astype(np.float64)
            for i in range(len(front))
        ]
    yield "default", [clf.decision_function(X)]
    yield "front", models
    yield "selected", [models[front.choice(name)[0]] for name in LOSSES]


def run_job(
    dependence: float, state: int, objective: str, rows: int, seed: int
) -> list[dict[str, Any]]:
    """Fit a learner to rows of its own; return what it is worth on the fresh rows.

    The losses of several models are the smallest of each, for "selected" those of the
    model that was selected for the loss.
    """
    truth, X_test = distribution(dependence, state)
    X, Y = truth.sample(rows, np.random.default_rng([state, 2, seed]))
    began = time.perf_counter()
    clf = fit_learner(objective, seed, X, Y)
    seconds = time.perf_counter() - began
    job = dict(zip(KEY, (dependence, state, objective, rows, seed), strict=True))
    found = []
    for name, models in outputs(clf, X_test):
        losses = np.array([truth.expected_losses(X_test, scores) for scores in models])
        own = np.diagonal(losses) if name == "selected" else losses.min(axis=0)
        found.append(
            {
                **job,
                "output": name,
                **{loss: f"{v:.6f}" for loss, v in zip(LOSSES, own, strict=True)},
                "lebesgue_measure": f"{lebesgue_measure(losses):.6f}",
                "models": len(models),
                "seconds": f"{seconds:.1f}",
            }
        )
    return found


def all_jobs(given: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the jobs that the command line asks for, quick ones first."""
    each = itertools.product(
        given.rows or ROWS, given.seeds or SEEDS, DISTRIBUTIONS, given.objectives
    )
    return [
        (*which, objective, rows, seed)
        for rows, seed, which, objective in each
        if given.states is None or which[1] in given.states
        if given.dependences is None or which[0] in given.dependences
        if objective in OBJECTIVES[:2] or rows in SLOW_ROWS
    ]


def limits_of(dependence: float, state: int) -> list[dict[str, Any]]:
    """Return what is known without any learner: its losses on the fresh rows.

    Cross-entropy leads to the log-odds: the order of the true marginals, with labels
    predicted from 1/2 on, or from other thresholds down to that of micro-F1.
    """
    truth, X = distribution(dependence, state)
    front = truth.bayes_front(X)
    p = truth.marginals(X)
    # Scores for micro-F1 are marginals less their threshold.
    low = (p - truth.bayes_scores(X, "micro_f1"))[0, 0]
    cut = [truth.expected_losses(X, p - c) for c in np.linspace(0.5, low, 24)]
    found = {
        BAYES: front.losses,
        MARGINALS: np.array(cut[:1]),
        CUT_MARGINALS: np.array(cut),
    }
    return [
        {
            "dependence": dependence,
            "state": state,
            "predictor": name,
            **{
                loss: f"{v:.6f}"
                for loss, v in zip(LOSSES, losses.min(axis=0), strict=True)
            },
            "lebesgue_measure": f"{lebesgue_measure(losses):.6f}",
            "models": len(losses),
        }
        for name, losses in found.items()
    ]


def write_limits() -> None:
    """Write the limits of all distributions."""
    with LIMITS.open("w", newline="") as file:
        writer = csv.DictWriter(file, LIMIT_FIELDS)
        writer.writeheader()
        for which in DISTRIBUTIONS:
            writer.writerows(limits_of(*which))


Limits = dict[tuple[str, str, str], dict[str, str]]
Series = dict[int, dict[int, float]]


def read_limits() -> Limits:
    """Return the limits by dependence, state and predictor."""
    return {
        (row["dependence"], row["state"], row["predictor"]): row for row in read(LIMITS)
    }


def above_bayes(
    rows: list[dict[str, str]],
    limits: Limits,
    which: tuple[float, int],
    objective: str,
    output: str,
    figure: str,
) -> Series:
    """Return what a figure lacks to that of the Bayes front, by rows and seed.

    The figure is a loss, or the measure, of which the Bayes front has more.
    """
    own = tuple(map(str, which))
    best = float(limits[own[0], own[1], BAYES][figure])
    sign = -1 if figure == "lebesgue_measure" else 1
    found: Series = {}
    for row in rows:
        of = (row["dependence"], row["state"], row["objective"], row["output"])
        if of == (*own, objective, output):
            value = sign * (float(row[figure]) - best)
            found.setdefault(int(row["rows"]), {})[int(row["seed"])] = value
    return found


def limit_above_bayes(
    limits: Limits, which: tuple[float, int], predictor: str, figure: str
) -> float:
    """Return what the figure of a limit lacks to that of the Bayes front."""
    pair = [limits[(*map(str, which), name)] for name in (predictor, BAYES)]
    return abs(float(pair[0][figure]) - float(pair[1][figure]))


def slope(series: Series) -> tuple[float, float] | None:
    """Return the slope of the logarithms on those of the rows, and half its interval.

    All seeds of all rows are points of one line by least squares; the interval is
    Student's of 95 %.
    """
    points = [(n, v) for n, of_seeds in series.items() for v in of_seeds.values()]
    if len(series) < 3 or any(v <= 0 for _, v in points):
        return None
    line = linregress(*np.log(np.array(points)).T)
    return line.slope, t.ppf(0.975, len(points) - 2) * line.stderr


def pairs_ahead(first: Series, second: Series, n: int) -> tuple[int, int]:
    """Return in how many pairs of one seed the first is smaller, and how many are."""
    ours, theirs = first.get(n, {}), second.get(n, {})
    both = ours.keys() & theirs.keys()
    return sum(ours[seed] < theirs[seed] for seed in both), len(both)


def named(which: tuple[float, int]) -> str:
    return f"{which[0]:g}, {which[1]}"


def limits_table(limits: Limits) -> list[str]:
    """Return the Bayes front, and how far the limits of cross-entropy are from it."""
    lines = [
        "## What there is to reach\n",
        "The smallest of each loss on the Bayes front, and the front's measure. Then",
        "what the order of the true marginals lacks, where cross-entropy leads: its",
        "regret in 1 - LRAP, and in the measure, cut at all useful thresholds.\n",
        "| dependence, state | Hamming | 1 - LRAP | 1 - micro-F1 | measure "
        "| marginals: 1 - LRAP | measure |",
        "|---|---|---|---|---|---|---|",
    ]
    for which in DISTRIBUTIONS:
        best = limits[(*map(str, which), BAYES)]
        losses = [float(best[name]) for name in LOSSES]
        cells = [f"{v:.4f}" for v in losses]
        cells.append(f"{float(best['lebesgue_measure']):.4f}")
        cells.append(f"{limit_above_bayes(limits, which, MARGINALS, 'lrap'):.4f}")
        lacks = limit_above_bayes(limits, which, CUT_MARGINALS, "lebesgue_measure")
        lines.append(f"| {named(which)} | {' | '.join([*cells, f'{lacks:.4f}'])} |")
    return lines


def summary(rows: list[dict[str, str]], limits: Limits, n: int = 2000) -> list[str]:
    """Return regret in 1 - LRAP without any map: its limit, at n rows, its slope."""
    lines = [
        f"| dependence, state | marginals | CLML, {n:,} rows | cross-entropy "
        "| slope: CLML | cross-entropy |",
        "|---|---|---|---|---|---|",
    ]
    for which in DISTRIBUTIONS:
        both = [
            above_bayes(rows, limits, which, objective, "members", "lrap")
            for objective in OBJECTIVES[:2]
        ]
        cells = [f"{limit_above_bayes(limits, which, MARGINALS, 'lrap'):.4f}"]
        cells += [mean_and_spread(list(series[n].values()), 4) for series in both]
        slopes = [slope(series) for series in both]
        cells += [f"{line[0]:.2f} ± {line[1]:.2f}" for line in slopes if line]
        lines.append(f"| {named(which)} | {' | '.join(cells)} |")
    return lines


def narrow_summary(rows: list[dict[str, str]], limits: Limits) -> list[str]:
    """Return what narrow members lack in 1 - LRAP without any map, and the limit."""
    ran = sorted({int(row["rows"]) for row in rows if row["objective"] in NARROW})
    lines = [
        f"| dependence, state | marginals | trained on | {' | '.join(map(str, ran))} |",
        "|---" * (len(ran) + 3) + "|",
    ]
    for which, objective in itertools.product(DISTRIBUTIONS, NARROW):
        series = above_bayes(rows, limits, which, objective, "members", "lrap")
        if not series:
            continue
        cells = [
            f"{limit_above_bayes(limits, which, MARGINALS, 'lrap'):.4f}",
            SAID[objective].removesuffix(", narrow"),
        ]
        cells += [
            mean_and_spread(list(series[n].values()), 4) if n in series else ""
            for n in ran
        ]
        lines.append(f"| {named(which)} | {' | '.join(cells)} |")
    return lines


def rows_table(
    title: str,
    text: str,
    rows: list[dict[str, str]],
    limits: Limits,
    figure: str,
    learners: list[tuple[str, str]],
    limit: str | None,
) -> list[str]:
    """Return a figure's regret against rows: one line a distribution and learner."""
    ran = sorted({int(row["rows"]) for row in rows})
    head = ["dependence, state", "learner", *(f"{n:,}" for n in ran), "slope"]
    lines = [f"\n## {title}\n", f"{text}\n", f"| {' | '.join(head)} |"]
    lines.append("|---" * len(head) + "|")
    for which in DISTRIBUTIONS:
        for objective, output in learners:
            series = above_bayes(rows, limits, which, objective, output, figure)
            if not series:
                continue
            cells = [
                mean_and_spread(list(series[n].values()), 4) if n in series else ""
                for n in ran
            ]
            line = slope(series)
            cells.append("" if line is None else f"{line[0]:.2f} ± {line[1]:.2f}")
            lines.append(
                f"| {named(which)} | {NAMES[objective]} | {' | '.join(cells)} |"
            )
        if limit is not None:
            value = limit_above_bayes(limits, which, limit, figure)
            empty = " |" * (len(ran) + 1)
            lines.append(f"| {named(which)} | marginals: {value:.4f} |{empty}")
    return lines


def pairs_of_figure(
    rows: list[dict[str, str]], limits: Limits, output: str, figure: str, n: int
) -> tuple[int, int]:
    """Return in how many pairs with n rows CLML is ahead, and how many there are."""
    ahead, all_pairs = 0, 0
    for which in DISTRIBUTIONS:
        pair = [
            above_bayes(rows, limits, which, objective, output, figure)
            for objective in OBJECTIVES[:2]
        ]
        of_which = pairs_ahead(*pair, n)
        ahead, all_pairs = ahead + of_which[0], all_pairs + of_which[1]
    return ahead, all_pairs


def pairs_table(rows: list[dict[str, str]], limits: Limits) -> list[str]:
    """Return in how many pairs CLML is ahead of cross-entropy."""
    ran = sorted({int(row["rows"]) for row in rows})
    lines = [
        "\n## Pair by pair\n",
        "In how many pairs, of the same distribution and training rows, CLML has less",
        "than cross-entropy.\n",
        f"| figure | {' | '.join(f'{n:,}' for n in ran)} | all |",
        "|---" * (len(ran) + 2) + "|",
    ]
    for name, of in COMPARED.items():
        counts = [pairs_of_figure(rows, limits, *of, n) for n in ran]
        counts.append((sum(c[0] for c in counts), sum(c[1] for c in counts)))
        cells = [
            f"{ahead} of {n_pairs}" if n_pairs else "" for ahead, n_pairs in counts
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


COMPARED = {
    "1 - LRAP, no map": ("members", "lrap"),
    "Hamming loss, no map": ("members", "hamming"),
    "1 - micro-F1, no map": ("members", "micro_f1"),
    "1 - LRAP": ("default", "lrap"),
    "Hamming loss": ("default", "hamming"),
    "1 - micro-F1": ("default", "micro_f1"),
    "lacking measure of the front": ("front", "lebesgue_measure"),
}


def write_table() -> None:
    """Write the tables of what was run, and the picture."""
    rows, limits = read(FITS), read_limits()
    members = [(objective, "members") for objective in (*OBJECTIVES[:2], *NARROW)]
    text = [HEADER, *limits_table(limits)]
    text += rows_table(
        "1 - LRAP without any map",
        "Regret of the members' plain average, against training rows. The slope is of\n"
        "a line through logarithms, with its interval of 95 %: -1/2 halves regret\n"
        "with four times the rows. The last line of each distribution is where\n"
        "cross-entropy leads.",
        rows,
        limits,
        "lrap",
        members,
        MARGINALS,
    )
    for figure, title in (
        ("lrap", "1 - LRAP with the map"),
        ("hamming", "Hamming loss with the map"),
        ("micro_f1", "1 - micro-F1 with the map"),
    ):
        learners = [(objective, "default") for objective in NAMES]
        said = "Regret of the model that predicts."
        text += rows_table(title, said, rows, limits, figure, learners, None)
    text += rows_table(
        "Measure of the front",
        "What the measure of the front lacks to that of the Bayes front. The last\n"
        "line of each distribution is the marginals, cut at all useful thresholds.",
        rows,
        limits,
        "lebesgue_measure",
        [(objective, "front") for objective in NAMES],
        CUT_MARGINALS,
    )
    text += pairs_table(rows, limits)
    path = RESULTS / "theorem.md"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def draw(path: Path) -> None:
    """Draw regret in 1 - LRAP against rows, without any map, and the limits."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    rows, limits = read(FITS), read_limits()
    # The same numbers give the same bytes: no random names, no date, no version.
    style = {
        "svg.hashsalt": "clml",
        "svg.fonttype": "none",
        "font.size": 9,
        "legend.frameon": False,
    }
    with matplotlib.rc_context(style):
        figure, axes = plt.subplots(
            2, 3, figsize=(8.4, 5.2), sharex=True, sharey=True, layout="constrained"
        )
        for which, ax in zip(DISTRIBUTIONS, axes.flat, strict=False):
            for objective, colour, line in DRAWN:
                series = above_bayes(rows, limits, which, objective, "members", "lrap")
                n = sorted(series)
                values = [list(series[each].values()) for each in n]
                means = [np.mean(v) for v in values]
                said = f"trained on {SAID[objective]}"
                ax.plot(n, means, line, color=colour, markersize=4, label=said)
                low, high = ([f(v) for v in values] for f in (min, max))
                ax.fill_between(n, low, high, color=colour, alpha=0.2, linewidth=0)
            limit = limit_above_bayes(limits, which, MARGINALS, "lrap")
            if limit >= LEAST_LIMIT:
                ax.axhline(
                    limit,
                    color="0.3",
                    linestyle="--",
                    linewidth=1,
                    label="order of true marginals",
                )
            ax.set_title(f"dependence {which[0]:g}, state {which[1]}", fontsize=9)
            ax.set_xscale("log", base=2)
            ax.set_yscale("log")
            ax.grid(alpha=0.3)
        ticks = sorted({int(row["rows"]) for row in rows})
        axes[0, 0].set_xticks(ticks, [f"{n:,}" for n in ticks], fontsize=7)
        regrets = (0.002, 0.005, 0.01, 0.02, 0.05)
        axes[0, 0].set_yticks(regrets, [f"{v:g}" for v in regrets])
        for ax in axes.flat:
            ax.minorticks_off()
        for ax in (axes[0, 2], *axes[1, :2]):
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("training rows")
        for ax in axes[:, 0]:
            ax.set_ylabel("1 - LRAP above the Bayes value")
        axes[1, 2].set_axis_off()
        axes[1, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fit = commands.add_parser("fit")
    fit.add_argument("--rows", nargs="+", type=int, choices=ROWS)
    fit.add_argument("--seeds", nargs="+", type=int)
    every = [*OBJECTIVES, *NARROW]
    fit.add_argument("--objectives", nargs="+", choices=every, default=every)
    fit.add_argument("--dependences", nargs="+", type=float)
    fit.add_argument("--states", nargs="+", type=int)
    fit.add_argument("--jobs", type=int, default=1)
    commands.add_parser("limits")
    commands.add_parser("table")
    given = parser.parse_args()
    if given.command == "fit":
        run_jobs(FITS, FIELDS, KEY, all_jobs(given), run_job, given.jobs)
    elif given.command == "limits":
        write_limits()
    else:
        write_table()
        draw(PICTURE)


if __name__ == "__main__":
    main()

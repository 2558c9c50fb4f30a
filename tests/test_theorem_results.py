"""The page on the theorem holds what was measured."""

import re
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from clml import CLMLClassifier

ROOT = Path(__file__).parents[1]
OF_MEASURE = "lebesgue_measure"


@pytest.fixture(scope="module")
def script(import_benchmark):
    return import_benchmark("theorem")


@pytest.fixture(scope="module")
def rows(script):
    return script.read(script.FITS)


@pytest.fixture(scope="module")
def limits(script):
    return script.read_limits()


@pytest.fixture(scope="module")
def section():
    """Return the section of the page, its lines joined."""
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    found = page.split("## The theorem\n")[1].split("\n## ")[0]
    return re.sub(r"\s+", " ", found)


def test_tables_are_made_of_the_records(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    script.write_table()
    made = (tmp_path / "theorem.md").read_text(encoding="utf-8")
    kept = (ROOT / "benchmarks" / "results" / "theorem.md").read_text(encoding="utf-8")
    assert made == kept


def test_limits_are_those_of_the_distributions(script, limits):
    which = script.DISTRIBUTIONS[0]
    for row in script.limits_of(*which):
        kept = limits[(*map(str, which), row["predictor"])]
        for name in (*script.LOSSES, OF_MEASURE):
            # Rounded, and by the order of sums.
            assert_allclose(float(kept[name]), float(row[name]), atol=2e-6)


def test_nothing_has_more_than_the_bayes_front(script, rows, limits):
    assert len(rows) > 500
    for row in rows:
        best = limits[row["dependence"], row["state"], script.BAYES]
        assert float(row[OF_MEASURE]) < float(best[OF_MEASURE])
        for name in script.LOSSES:
            assert float(row[name]) > float(best[name])


def test_marginals_are_as_good_as_labels_are_independent(script, limits):
    lost = [
        script.limit_above_bayes(limits, which, script.MARGINALS, "lrap")
        for which in ((0.0, 4), (0.5, 4), (1.0, 4))
    ]
    assert lost[0] == 0 and lost[0] < lost[1] < lost[2]


def test_losses_hardly_conflict(script, limits):
    for which in script.DISTRIBUTIONS:
        best = limits[(*map(str, which), script.BAYES)]
        of_all = np.prod([1 - float(best[name]) for name in script.LOSSES])
        assert 0 <= of_all - float(best[OF_MEASURE]) < 0.00002


def test_slopes_part_where_marginals_lack_much(script, rows, limits):
    for which in script.DISTRIBUTIONS:
        ours, theirs = (
            script.slope(
                script.above_bayes(rows, limits, which, name, "members", "lrap")
            )
            for name in script.OBJECTIVES[:2]
        )
        lost = script.limit_above_bayes(limits, which, script.MARGINALS, "lrap")
        assert (theirs[0] - ours[0] > theirs[1] + ours[1]) == (lost > 0.005)


def test_summary_stands_on_the_page(script, rows, limits):
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    assert "\n".join(script.summary(rows, limits)) in page
    assert "\n".join(script.narrow_summary(rows, limits)) in page


def test_pairs_stand_on_the_page(script, rows, limits, section):
    for name, (output, figure) in script.COMPARED.items():
        counts = [
            script.pairs_of_figure(rows, limits, output, figure, n) for n in script.ROWS
        ]
        ahead, n_pairs = np.sum(counts, axis=0)
        if name not in ("Hamming loss, no map", "Hamming loss", "1 - micro-F1, no map"):
            assert f"{ahead} of {n_pairs}" in section, name


def test_measures_stand_on_the_page(script, rows, limits, section):
    means, slopes = {125: [], 2000: []}, []
    for which in script.DISTRIBUTIONS:
        series = script.above_bayes(rows, limits, which, "measure", "front", OF_MEASURE)
        slopes.append(script.slope(series)[0])
        for n, found in means.items():
            found.append(np.mean(list(series[n].values())))
    first, last = ([f"{f(v):.3f}" for f in (min, max)] for v in means.values())
    said = f"from between {first[0]} and {first[1]} to between {last[0]} and {last[1]}"
    assert said in section
    least, most = (f"{-f(slopes):.2f}" for f in (max, min))
    assert f"slopes of minus {least} to {most}" in section


def test_regrets_stand_on_the_page(script, rows, limits, section):
    strong = (1.0, 4)

    def of(objective, output, n, figure="lrap", which=strong):
        series = script.above_bayes(rows, limits, which, objective, output, figure)
        return f"{np.mean(list(series[n].values())):.4f}"

    def narrow(*asked):
        return [of(name, *asked) for name in script.NARROW]

    ours, surrogate, _ = script.OBJECTIVES
    lost = script.limit_above_bayes(limits, strong, script.MARGINALS, "lrap")
    without, hamming = narrow("members", 4000), narrow("members", 4000, "hamming")
    independent = [of(x, "members", 1000, which=(0.0, 4)) for x in script.NARROW]
    said = [
        f"it is ahead: {independent[1]} to {independent[0]} with 1,000 rows",
        f"{of(surrogate, 'members', 2000)} to {of(surrogate, 'default', 2000)}",
        f"at {without[1]}, the limit being {lost:.4f}, and",
        f"trained on the measure are at {without[0]}",
        f"cross-entropy is ahead, by {hamming[1]} to {hamming[0]}",
        f"is {of('paper', 'default', 500)}, where `CLMLClassifier()` has "
        f"{of(ours, 'default', 500)}",
        f"{of('paper', 'front', 500, OF_MEASURE)} and "
        f"{of(ours, 'front', 500, OF_MEASURE)} short of the Bayes front",
    ]
    for figure in script.LOSSES:
        mapped = narrow("default", 4000, figure)
        assert mapped[1] < mapped[0]
        said.append(f"{mapped[1]} to {mapped[0]} in")
    for words in said:
        assert words in section


def test_slope_of_a_power(script):
    series = {n: {0: 3 * n**-0.5, 1: 3 * n**-0.5} for n in (100, 200, 400)}
    value, half = script.slope(series)
    assert_allclose([value, half], [-0.5, 0], atol=1e-6)
    assert script.slope({100: {0: 1.0}, 200: {0: 0.5}}) is None
    assert script.slope({100: {0: 1.0}, 200: {0: 0.5}, 400: {0: 0.0}}) is None


def test_pairs_are_of_the_same_seeds(script):
    first, second = {10: {0: 1.0, 1: 1.0, 2: 1.0}}, {10: {1: 2.0, 2: 0.5, 3: 9.0}}
    assert script.pairs_ahead(first, second, 10) == (1, 2)
    assert script.pairs_ahead(first, second, 20) == (0, 0)


def test_jobs_are_those_that_were_asked_for(script):
    asked = Namespace(rows=[125, 16_000], seeds=[3], objectives=["measure", "paper"])
    asked.states, asked.dependences = [4], [1.0, 0.0]
    assert script.all_jobs(asked) == [
        (1.0, 4, "measure", 125, 3),
        (1.0, 4, "paper", 125, 3),
        (0.0, 4, "measure", 125, 3),
        (0.0, 4, "paper", 125, 3),
        (1.0, 4, "measure", 16_000, 3),
        (0.0, 4, "measure", 16_000, 3),
    ]


@pytest.mark.parametrize("network", ["paper", "wide"])
def test_models_of_the_front_are_those_that_are_selected(script, network, small_data):
    X, Y = small_data
    clf = CLMLClassifier(network=network, max_epochs=3, random_state=0).fit(X, Y)
    found = dict(script.outputs(clf, X))
    assert len(found["front"]) == len(clf.front_)
    for i, scores in enumerate(found["front"]):
        chosen = clf.select(i)
        assert ((scores > 0) == (chosen.decision_function(X) > 0)).all()
        own = np.argsort(chosen.decision_function(X), axis=1)
        assert (np.argsort(scores, axis=1) == own).mean() > 0.99
    assert len(found["selected"]) == len(script.LOSSES)


def test_members_are_trained_on_cross_entropy_alone(script, small_data, monkeypatch):
    X, Y = small_data
    plans = []
    ascent = script.TrainingSettings.ascent

    def recorded(self, n_rows):
        plans.append(ascent(self, n_rows))
        return plans[-1]

    monkeypatch.setattr(script.TrainingSettings, "ascent", recorded)
    quick = CLMLClassifier(max_epochs=2, n_members=5, random_state=0)
    monkeypatch.setattr(script, "learner", lambda objective, seed: quick)
    trained = {}
    for objective in script.OBJECTIVES[:2]:
        trained[objective] = script.fit_learner(objective, 0, X, Y).networks_
    assert plans  # each asked for a plan
    first, second = trained.values()
    assert any((a != b).any() for a, b in zip(first, second, strict=True))

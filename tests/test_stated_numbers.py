"""Numbers that the pages state are those of the committed results.

Each test computes a number and looks for it where the page speaks of it. It does not
mind in which words.
"""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from clml.baselines import CLIFClassifier
from clml.experiments import PAPER_RESULTS, friedman_test

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks" / "results"
RESULTS = ROOT / "docs" / "results"
LOSSES = ("hamming", "lrap", "micro_f1")
SEVEN = ("flags", "cal500", "emotions", "genbase", "enron", "yeast", "tmc2007-500")
WIDTHS = range(20, 161, 20)
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven")


def passage(page, start, end=None):
    """Return the text of a page from some words on, in one line."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert text.count(start) == 1, f"{start!r} is {text.count(start)} times in {page}"
    found = text.split(start)[1]
    if end is not None:
        assert end in found, f"{end!r} does not follow in {page}"
        found = found.split(end)[0]
    return found


def states(text, *numbers):
    """Whether all numbers are in a text, none as a part of another one."""
    missing = [
        n for n in numbers if not re.search(rf"(?<![\d.]){re.escape(n)}(?!\d)", text)
    ]
    assert not missing, f"{missing} not in {text!r}"


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def geometric_mean(losses, least=0.0):
    return np.prod(np.maximum(losses, least)) ** (1 / len(losses))


@pytest.fixture(scope="module")
def records():
    lines = (RESULTS / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def means(records):
    """Return the mean geometric means of the test losses by dataset and method."""
    found = defaultdict(list)
    for r in records:
        three = [r["losses"]["test"][name] for name in LOSSES]
        found[r["dataset"], r["method"]].append(geometric_mean(three))
    return {place: np.mean(values) for place, values in found.items()}


# The comparison of docs/reproducing.md and the README


def test_on_how_many_datasets_others_are_ahead_of_the_papers_settings(means):
    text = passage("docs/reproducing.md", "So the paper's *order*", "The paper has no")
    for method in ("CLIF", "DELA"):
        ahead = sum(means[d, method] < means[d, "CLML-paper"] for d in SEVEN)
        assert f"on {WORDS[ahead]} of the seven datasets" in text


def test_clif_with_its_authors_settings(records):
    lines = (RESULTS / "presets" / "records.jsonl").read_text(encoding="utf-8")
    presets = [json.loads(line) for line in lines.splitlines()]
    text = passage("docs/reproducing.md", "The paper ran its rivals", "So the paper's")
    for dataset in ("cal500", "yeast"):
        published = CLIFClassifier.PRESETS[dataset]
        here = [r for r in presets if r["dataset"] == dataset]
        assert all(published.items() <= r["settings"].items() for r in here)
        splits = {r["split"] for r in here}
        before = [
            r
            for r in records
            if (r["dataset"], r["method"]) == (dataset, "CLIF") and r["split"] in splits
        ]
        assert {r["data_hash"] for r in here} == {r["data_hash"] for r in before}
        assert WORDS[len(splits)] in text
        assert len(here) == len(before) == len(splits)
        for runs in (here, before):
            three = [[r["losses"]["test"][name] for name in LOSSES] for r in runs]
            states(text, f"{np.mean([geometric_mean(values) for values in three]):.3f}")
        lrap = [
            {r["split"]: r["losses"]["test"]["lrap"] for r in x} for x in (here, before)
        ]
        assert all(abs(lrap[0][s] / lrap[1][s] - 1) < 0.01 for s in splits)
        states(text, str(published["threshold"]))


@pytest.fixture(scope="module")
def reproduced():
    """Return the geometric means of what Algorithm 1 returns, by split."""
    found = defaultdict(dict)
    for row in rows_of(BENCHMARKS / "reproduction.csv"):
        if row["model"] == "final":
            three = [float(row[name]) for name in LOSSES]
            found[row["dataset"], row["settings"]][int(row["split"])] = geometric_mean(
                three
            )
    return found


def test_emotions_on_five_and_on_twenty_splits(means, reproduced):
    values = reproduced["emotions", "exact"]
    assert len(values) == 20
    mean, spread = np.mean(list(values.values())), np.std(list(values.values()), ddof=1)
    printed = PAPER_RESULTS.value("emotions", "CLML", "geometric_mean")
    above = f"{100 * (mean / printed - 1):.0f} %"
    text = passage(
        "docs/reproducing.md", "With the paper's own settings (", "enron and"
    )
    states(text, above, f"{mean:.3f}", f"{spread:.3f}", "5 %")
    assert means["emotions", "CLML-paper"] < 1.05 * printed
    first = np.mean([values[split] for split in range(5)])
    assert first == pytest.approx(means["emotions", "CLML-paper"], abs=5e-4)
    text = passage("README.md", "Better on flags", "26 % on")
    states(text, f"{100 * (first / printed - 1):.0f} %")


def test_the_readme_has_the_reproduced_means(reproduced):
    text = passage("README.md", "with the paper's settings: flags", "Better on flags")
    for dataset in SEVEN:
        mean = np.mean(list(reproduced[dataset, "exact"].values()))
        printed = PAPER_RESULTS.value(dataset, "CLML", "geometric_mean")
        states(text, f"{mean:.3f}", f"{printed:.3f}")


def test_monte_carlo_is_worse_than_exact_contributions(reproduced):
    ratio = {
        d: np.mean(list(reproduced[d, "monte_carlo"].values()))
        / np.mean(list(reproduced[d, "exact"].values()))
        for d in SEVEN
    }
    worse = [100 * (value - 1) for value in ratio.values() if value > 1]
    text = passage(
        "docs/reproducing.md", "Monte Carlo does not explain", "The rows that"
    )
    assert f"{WORDS[len(worse)]} of the seven" in text
    states(text, f"{min(worse):.0f}", f"{max(worse):.0f} %")
    assert [d for d, value in ratio.items() if value < 1] == ["flags"]
    states(text, f"{100 * (1 - ratio['flags']):.0f} %")


def test_the_printed_covariance_update_beside_the_other_one():
    found = defaultdict(list)
    for row in rows_of(BENCHMARKS / "printed_update.csv"):
        three = [float(row[name]) for name in LOSSES]
        place = row["contributions"], row["dataset"], row["covariance"]
        found[place].append(geometric_mean(three))
    text = passage(
        "docs/reproducing.md", 'CMA(covariance="printed")`:', "The rows that"
    )
    for contributions in ("exact", "monte_carlo"):
        ratios = []
        for dataset in ("flags", "emotions", "yeast"):
            printed, path = (
                found[contributions, dataset, covariance]
                for covariance in ("printed", "rank_one")
            )
            assert WORDS[len(printed)] in text
            ratios.append(np.mean(printed) / np.mean(path))
        states(text, f"{min(ratios):.2f}", f"{max(ratios):.2f}")


# The ablation


@pytest.fixture(scope="module")
def ablation(records):
    """Return what each width has on the validation rows, by dataset and loss."""
    found = defaultdict(lambda: defaultdict(list))
    for r in records:
        if r["method"].startswith("CLML-paper") and r["dataset"] in (
            "cal500",
            "emotions",
        ):
            width = int((r["method"] + "=20").split("=")[1])
            for name, value in r["losses"]["validation"].items():
                found[r["dataset"], name][width].append(value)
    return found


def test_the_ablation_has_no_trend(ablation):
    text = passage("docs/reproducing.md", "The ablation does not", "The paper's losses")
    tests, ranges = [], {"cal500": [], "emotions": []}
    for dataset, values in ranges.items():
        for name in LOSSES:
            runs = [ablation[dataset, name][width] for width in WIDTHS]
            assert {len(values) for values in runs} == {5}
            center = np.mean(runs, axis=1)
            tests.append(spearmanr(WIDTHS, center))
            values.append(np.ptp(center))
            assert np.ptp(center) < 2 * np.std(runs, axis=1, ddof=1).mean()
    states(text, f"{min(t.statistic for t in tests):.2f}".lstrip("-"))
    states(text, f"{max(t.statistic for t in tests):.2f}")
    states(text, f"{min(t.pvalue for t in tests):.2f}")
    for digits, (dataset, values) in zip((3, 2), ranges.items(), strict=True):
        assert dataset in text.lower()
        states(text, f"{min(values):.{digits}f}", f"{max(values):.{digits}f}")
    printed = [
        spearmanr(
            WIDTHS,
            [getattr(row, name) for row in PAPER_RESULTS.ablation if row.dataset == d],
        ).pvalue
        for d in ("CAL500", "emotions")
        for name in LOSSES
    ]
    assert f"{WORDS[sum(p < 0.09 for p in printed)]} of the six printed" in text


def test_every_cell_of_the_ablation_has_its_l4(ablation):
    lines = (
        (RESULTS / "tables" / "ablation.md").read_text(encoding="utf-8").splitlines()
    )
    cells = [
        line.split("|") for line in lines if re.match(r"\| (cal500|emotions)", line)
    ]
    assert len(cells) == 16
    for _, dataset, width, *_, l4, _ in cells:
        values = ablation[dataset.strip(), "row_log_loss"][int(width)]
        assert l4.strip().startswith(f"{np.mean(values):.3f}")
    ours = [np.mean(ablation["cal500", "row_log_loss"][width]) for width in WIDTHS]
    printed = [r.row_log_loss for r in PAPER_RESULTS.ablation if r.dataset == "CAL500"]
    assert (np.array(ours) > 1.5 * np.array(printed)).all()
    assert min(spearmanr(WIDTHS, values).statistic for values in (ours, printed)) > 0.7


# L4 and the losses along a run


@pytest.fixture(scope="module")
def curves():
    """Return epochs, losses and L4 on the validation rows, by dataset."""
    found = defaultdict(list)
    for row in rows_of(RESULTS / "paper" / "curves.csv"):
        if row["rows"] == "validation":
            numbers = [float(row[name]) for name in (*LOSSES, "row_log_loss")]
            found[row["dataset"]].append([int(row["epoch"]), *numbers])
    return {dataset: np.array(values) for dataset, values in found.items()}


def shown(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


@pytest.mark.parametrize("dataset", SEVEN)
def test_l4_rises_while_the_losses_fall(curves, records, dataset):
    run = curves[dataset]
    assert (run[0, 0], run[-1, 0]) == (1, 750)
    l4 = run[:, -1]
    least = l4.argmin()
    line = f"| {dataset} | {shown(l4[0])} | {shown(l4[least])} ({run[least, 0]:.0f}) | "
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    assert f"{line}{shown(l4[-1])} |" in page
    assert l4[-1] > l4[0]
    assert (run[-1, 1:4] < run[0, 1:4]).all()
    (record,) = (
        r
        for r in records
        if (r["dataset"], r["method"], r["split"]) == (dataset, "CLML-paper", 0)
    )
    kept = record["losses"]["validation"]
    ends = [kept[name] for name in (*LOSSES, "row_log_loss")]
    np.testing.assert_allclose(run[-1, 1:], ends, rtol=1e-4)


def test_the_rise_is_said_in_words(curves):
    text = passage(
        "docs/reproducing.md", "On emotions, where the paper says", "What grows"
    )
    for dataset in ("emotions", "yeast"):
        l4 = curves[dataset][:, -1]
        states(text, shown(l4[0]), shown(l4[-1]))


# The slips


def test_friedmans_statistics_stand_on_the_page():
    text = passage("docs/reproducing.md", "- **Friedman's test**", "- **")
    for name in (*LOSSES, "geometric_mean", "contribution"):
        table = PAPER_RESULTS.table(name) * (-1 if name == "contribution" else 1)
        test = friedman_test(table)
        states(text, f"{test.statistic:.2f}")
        assert test.significant
        n, k = table.shape
        ranks = test.mean_ranks
        plain = 12 * n / (k * (k + 1)) * ((ranks**2).sum() - k * (k + 1) ** 2 / 4)
        assert (plain > test.critical_value) == (name != "contribution")
    states(
        text, f"{plain:.2f}", f"{friedman_test(table, transposed=True).statistic:.2f}"
    )
    assert not friedman_test(table, transposed=True).significant


def test_what_l4_is_for_equal_scores():
    text = passage("docs/reproducing.md", "- **L4 is no cross-entropy.**", "- **")
    states(text, f"{np.log(2):.2f}")
    for dataset in ("emotions", "CAL500"):
        figures = PAPER_RESULTS.dataset_figures[dataset]
        equal = figures.cardinality * np.log(figures.n_labels)
        states(text, f"{equal:.{2 if equal < 10 else 1}f}")


def test_mean_ranks_stand_on_the_page():
    text = passage("docs/reproducing.md", "- **The tie with CLIF**", "- **")
    ranks = {
        name: dict(
            zip(
                PAPER_RESULTS.methods,
                friedman_test(
                    PAPER_RESULTS.table(name) * (-1 if name == "contribution" else 1)
                ).mean_ranks,
                strict=True,
            )
        )
        for name in (*LOSSES, "geometric_mean", "contribution")
    }
    states(text, *(f"{ranks['hamming'][m]:.2f}" for m in ("CLIF", "CLML")))
    leads = [n for n, r in ranks.items() if sorted(r, key=r.get)[0] == "CLML"]
    alone = [n for n in leads if sorted(ranks[n].values())[1] > ranks[n]["CLML"] + 1e-9]
    assert alone == ["geometric_mean", "contribution"]
    assert ranks["micro_f1"]["DELA"] == pytest.approx(ranks["micro_f1"]["CLML"])


# How it learns


def test_populations_against_one_member_and_against_sixteen():
    found = defaultdict(list)
    for row in rows_of(BENCHMARKS / "study_defaults.csv"):
        if row["predicts"] == "default":
            three = [float(row[name]) for name in LOSSES]
            found[row["dataset"], row["variant"]].append(geometric_mean(three))
    population = "one network, CMA-ES, ties by depth"

    def behind(dataset, variant):
        ratio = np.mean(found[dataset, population]) / np.mean(found[dataset, variant])
        return 100 * (ratio - 1)

    text = passage("docs/learning.md", "- *Ways of training.*", "Against the paper's")
    one, sixteen = text.split("sixteen")
    assert max(behind(d, "1 member") for d in ("emotions", "cal500", "yeast")) < 0
    for dataset in ("emotions", "cal500", "flags", "enron"):
        states(one, f"{abs(behind(dataset, '1 member')):.0f} %")
    assert abs(behind("yeast", "1 member")) < 0.5
    for group in (("flags", "emotions", "enron"), ("yeast", "cal500")):
        values = [behind(dataset, "default") for dataset in group]
        states(sixteen, f"{min(values):.0f}", f"{max(values):.0f} %")


# Speed and the field


def test_the_speed_of_the_first_epochs_and_of_a_run():
    runs = json.loads((BENCHMARKS / "epoch_time.json").read_text(encoding="utf-8"))
    text = passage("README.md", "## Is it fast?", "`device=")
    for run in runs:
        if run["dataset"] not in ("emotions", "yeast"):
            continue
        first, whole = (run["threads_2"][key] for key in ("ratio", "ratio_of_a_run"))
        states(text, f"{round(first, -1):,.0f}", f"{round(whole, -1):,.0f}")
        states(text, f"{round(run['threads_1']['ratio'], -1):,.0f}")
    states(text, "100", "750")


def test_what_tuning_takes_off_a_forest():
    found = defaultdict(list)
    for row in rows_of(BENCHMARKS / "field.csv"):
        if row["method"] == "RandomForest":
            three = [float(row[name]) for name in LOSSES]
            half_an_error = 0.5 / int(row["test_decisions"])
            value = geometric_mean(three, half_an_error)
            found[row["dataset"], row["variant"]].append(value)
    datasets = sorted({dataset for dataset, _ in found} - {"genbase"})

    def taken_off(variant):
        ratios = [
            np.mean(found[d, variant]) / np.mean(found[d, "plain"]) for d in datasets
        ]
        return 1 - np.mean(ratios)

    text = passage("README.md", '"CLML" is `CLMLClassifier()`.', "On 18 datasets")
    assert "genbase" in text
    tuned, threshold = taken_off("tuned"), taken_off("one threshold")
    states(text, f"{len(datasets)}", f"{100 * tuned:.0f} %", f"{100 * threshold:.0f} %")
    assert threshold / tuned == pytest.approx(4 / 5, abs=0.05)
    table = (BENCHMARKS / "learning_power.md").read_text(encoding="utf-8")
    (seven,) = re.findall(r"\| tuned random forest \| 7 \| \+([\d.]+)% \|", table)
    states(text, f"{float(seven):.0f} %")

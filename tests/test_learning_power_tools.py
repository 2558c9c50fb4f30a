"""The statistics, the cache and the job lists of the benchmark of learning power."""

import argparse
import csv
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from clml._learners.scores import label_scores
from clml.datasets import IterativeStratifiedKFold
from clml.experiments import holm

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def significance(import_benchmark):
    return import_benchmark("_significance")


@pytest.fixture(scope="module")
def cached(import_benchmark):
    return import_benchmark("_cached")


@pytest.fixture(scope="module")
def script(import_benchmark):
    return import_benchmark("learning_power")


# Four learners on 14 datasets (Demšar, 2006, table 6). The last but one row has equal
# figures in print, but different ranks.
DEMSAR = 1 - np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


# ---- statistics


def test_paired_difference_by_hand(significance):
    """Differences 1, 2, 3: mean 2, deviation 1, and t = 4.3027 at two degrees."""
    found = significance.paired_difference([1, 3, 5], [0, 1, 2])
    half = 4.302653 / np.sqrt(3)
    assert np.allclose(found, (2, 2 - half, 2 + half), atol=1e-6)


def test_one_pair_has_no_interval(significance):
    mean, low, high = significance.paired_difference([0.3], [0.1])
    assert np.isclose(mean, 0.2)
    assert np.isnan(low)
    assert np.isnan(high)


def test_equal_differences_have_an_interval_of_no_width(significance):
    assert significance.paired_difference([2, 3], [1, 2]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("ours", "theirs"), [([], []), ([1, 2], [1]), ([[1]], [[1]]), (1, 1)]
)
def test_unpaired_losses_are_refused(significance, ours, theirs):
    with pytest.raises(ValueError, match="same length"):
        significance.paired_difference(ours, theirs)


def test_interval_covers_the_true_mean_as_often_as_it_says(significance):
    draws = np.random.default_rng(0).normal(0.5, 1, size=(2000, 5))
    intervals = np.array(
        [significance.paired_difference(d, np.zeros(5))[1:] for d in draws]
    )
    covered = ((intervals[:, 0] < 0.5) & (intervals[:, 1] > 0.5)).mean()
    assert abs(covered - 0.95) < 0.015


@pytest.mark.parametrize(
    ("low", "base_mean", "expected"),
    [
        (0.0019, 0.01, True),  # 0.002 is more than 1 %
        (0.0021, 0.01, False),
        (0.0029, 0.30, True),
        (0.0031, 0.30, False),
        (-0.5, 0.30, True),
    ],
)
def test_not_worse(significance, low, base_mean, expected):
    difference = significance.Difference(low + 0.01, low, low + 0.02)
    assert significance.not_worse(difference, base_mean) is expected


@pytest.mark.parametrize(("mean", "expected"), [(0.0029, True), (0.0031, False)])
def test_a_single_pair_is_judged_by_its_difference(significance, mean, expected):
    difference = significance.Difference(mean, np.nan, np.nan)
    assert significance.not_worse(difference, 0.3) is expected


def test_holm_by_hand():
    """0.01 · 4; 0.02 · 3; 0.03 · 2 = 0.06 again; 0.3 · 1."""
    found = holm([0.3, 0.01, 0.03, 0.02])
    assert np.allclose(found, [0.3, 0.04, 0.06, 0.06])
    assert holm([]).size == 0


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.floats(0.001, 0.999),
)
def test_holm_rejects_what_the_procedure_rejects(pvalues, alpha):
    """Slow twin: from the smallest on, stop at the first above alpha / remaining."""
    rejected = set()
    for n_before, i in enumerate(np.argsort(pvalues)):
        if pvalues[i] * (len(pvalues) - n_before) > alpha:
            break
        rejected.add(i)
    found = holm(pvalues)
    assert set(np.flatnonzero(found <= alpha)) == rejected
    assert (found >= pvalues).all()
    assert (found <= 1).all()


@pytest.mark.parametrize("bad", [[np.nan], [-0.1], [1.1], [[0.5]]])
def test_holm_refuses_what_is_no_probability(bad):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        holm(bad)


def test_mean_ranks_of_a_published_example(significance):
    found = significance.mean_ranks(DEMSAR)
    assert np.allclose(found, [3.143, 2.000, 2.893, 1.964], atol=5e-4)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
        elements=st.integers(0, 4).map(float),
    )
)
def test_mean_ranks_count_smaller_and_equal(significance, losses):
    """Slow twin: 1 + those that are smaller + half of the others that are equal."""
    ranks = [
        [1 + sum(o < x for o in row) + (sum(o == x for o in row) - 1) / 2 for x in row]
        for row in losses
    ]
    assert np.allclose(significance.mean_ranks(losses), np.mean(ranks, axis=0))


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[1.0, np.nan]], [[]]])
def test_ranks_need_a_complete_table(significance, bad):
    with pytest.raises(ValueError, match="without gaps"):
        significance.mean_ranks(bad)


def test_friedman_by_hand(significance):
    """Rank sums 4, 8, 12: 12 / (4·3·4) · (16 + 64 + 144) − 3·4·4 = 8."""
    statistic, pvalue = significance.friedman([[1, 2, 3]] * 4)
    assert np.isclose(statistic, 8)
    assert np.isclose(pvalue, np.exp(-4))  # two degrees of freedom


def test_friedman_of_equal_methods(significance):
    assert significance.friedman(np.ones((3, 4))) == (0, 1)


@pytest.mark.parametrize(
    ("test", "quantiles"),
    [
        ("nemenyi", {2: 1.960, 3: 2.343, 4: 2.569, 6: 2.850, 8: 3.031, 10: 3.164}),
        ("bonferroni_dunn", {2: 1.960, 3: 2.241, 4: 2.394, 6: 2.576, 10: 2.773}),
    ],
)
def test_critical_differences_are_the_tabulated_ones(significance, test, quantiles):
    """Table 5 of Demšar (2006) has the quantiles to three digits."""
    critical = getattr(significance, f"{test}_difference")
    for k, q in quantiles.items():
        assert np.isclose(critical(k, 14), q * np.sqrt(k * (k + 1) / 84), atol=2e-3)


def test_critical_differences_of_the_published_example(significance):
    assert round(significance.nemenyi_difference(4, 14), 2) == 1.25
    assert round(significance.bonferroni_dunn_difference(4, 14), 2) == 1.17


@given(st.lists(st.integers(0, 12), min_size=1, max_size=7), st.integers(0, 6))
def test_rank_groups_join_exactly_what_is_close(significance, ranks, difference):
    groups = significance.rank_groups(ranks, difference)
    for a, b in itertools.combinations(ranks, 2):
        joined = any(low <= min(a, b) and max(a, b) <= high for low, high in groups)
        assert a == b or joined == (abs(a - b) <= difference)
    for (a, b), (c, d) in itertools.permutations(groups, 2):
        assert not (c <= a and b <= d)


@pytest.mark.parametrize(
    ("alternative", "expected"), [("less", 1 / 256), ("two-sided", 1 / 128)]
)
def test_signed_rank_of_a_clean_win(significance, alternative, expected):
    """One of the 2⁸ signs is as clear."""
    theirs = np.arange(1, 9) * 0.1
    found = significance.signed_rank(theirs - theirs**2 / 20, theirs, alternative)
    assert np.isclose(found, expected)


@given(
    st.permutations([1, 2, 3, 4, 5]), st.lists(st.booleans(), min_size=5, max_size=5)
)
def test_signed_rank_enumerates_signs(significance, sizes, is_negative):
    differences = np.where(is_negative, -1.0, 1.0) * sizes
    positive = differences[differences > 0].sum()
    sums = [
        sum(s for s, chosen in zip(sizes, signs, strict=True) if chosen)
        for signs in itertools.product([0, 1], repeat=5)
    ]
    found = significance.signed_rank(differences, np.zeros(5), "less")
    assert np.isclose(found, np.mean([s <= positive for s in sums]))


def test_signed_rank_of_equal_losses(significance):
    assert significance.signed_rank([1, 2], [1, 2], "less") == 1


# ---- cache


class Counting(ClassifierMixin, BaseEstimator):
    """Counts its fits; scores are the first features, as decisions."""

    n_fits = 0
    n_rows = None

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        type(self).n_fits += 1
        type(self).n_rows = len(y)
        self.n_labels_ = y.shape[1]
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, : self.n_labels_] / 3 + self.shift


@pytest.fixture
def counting():
    Counting.n_fits = 0
    return Counting


@pytest.mark.parametrize(
    ("estimator", "answer"),
    [
        (RandomForestClassifier(5, random_state=0), "predict_proba"),
        (KNeighborsClassifier(3), "predict_proba"),
        (OneVsRestClassifier(LogisticRegression()), "decision_function"),
    ],
    ids=["forest", "neighbours", "logistic"],
)
def test_scores_are_the_estimators(cached, small_data, tmp_path, estimator, answer):
    X, Y = small_data
    X = StandardScaler().fit_transform(X)
    direct = label_scores(clone(estimator).fit(X, Y), X, Y.shape[1])
    first, second = (
        clone(cached.CachedScores(estimator, tmp_path)).fit(X, Y) for _ in range(2)
    )
    assert {a for a in ("predict_proba", "decision_function") if hasattr(first, a)} == {
        answer
    }
    for model in (first, second):
        assert np.allclose(label_scores(model, X, Y.shape[1]), direct, atol=1e-15)
    a, b = (label_scores(m, X, Y.shape[1]) for m in (first, second))
    assert a.dtype == np.float64
    assert np.array_equal(a, b)
    assert np.array_equal(first.predict(X), direct > 0)


def test_delegated_tags(cached, tmp_path):
    forest = RandomForestClassifier()
    model = cached.CachedScores(forest, tmp_path)
    assert is_classifier(model)
    assert get_tags(model) == get_tags(forest)


def test_same_fit_and_rows_are_computed_once(cached, counting, small_data, tmp_path):
    X, Y = small_data
    cached.recalled_seconds.clear()
    model = cached.CachedScores(counting(), tmp_path / "new").fit(X, Y)
    assert counting.n_fits == 0
    first = model.decision_function(X)
    assert (counting.n_fits, len(cached.recalled_seconds)) == (1, 0)
    again = clone(model).fit(X.copy(), Y.astype(bool)).decision_function(X)
    assert (counting.n_fits, len(cached.recalled_seconds)) == (1, 1)
    assert cached.recalled_seconds[0] > 0
    assert np.array_equal(first, again)
    names = sorted(p.suffix for p in (tmp_path / "new").iterdir())
    assert names == [".json", ".npy"]


def test_a_fit_serves_several_questions(cached, counting, small_data, tmp_path):
    X, Y = small_data
    model = cached.CachedScores(counting(), tmp_path).fit(X, Y)
    model.decision_function(X)
    model.decision_function(X[:5])
    assert counting.n_fits == 1


@pytest.mark.parametrize("change", ["parameter", "features", "labels", "asked", "rows"])
def test_what_differs_is_computed_anew(cached, counting, small_data, tmp_path, change):
    X, Y = small_data
    base = cached.CachedScores(counting(), tmp_path)
    base.fit(X, Y).decision_function(X)
    other = clone(base)
    X_fit, Y_fit, X_asked = X.copy(), Y.copy(), X.copy()
    if change == "parameter":
        other.estimator.shift = 1.0
    elif change == "features":
        X_fit[0, 0] += 1
    elif change == "labels":
        Y_fit[0, 0] = 1 - Y_fit[0, 0]
    elif change == "asked":
        X_asked[0, 0] += 1
    else:
        other.training_rows = cached.FoldSample(len(X) + 1, 50, 0)
    other.fit(X_fit, Y_fit).decision_function(X_asked)
    assert counting.n_fits == 2
    assert counting.n_rows == (50 if change == "rows" else len(X))


def test_a_failed_fit_leaves_nothing(cached, small_data, tmp_path):
    X, Y = small_data
    model = cached.CachedScores(KNeighborsClassifier(0), tmp_path).fit(X, Y)
    with pytest.raises(ValueError, match="n_neighbors"):
        model.predict_proba(X)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_a_single_label_keeps_its_column(cached, small_data, tmp_path):
    X, Y = small_data
    model = cached.CachedScores(KNeighborsClassifier(3), tmp_path).fit(X, Y[:, :1])
    direct = KNeighborsClassifier(3).fit(X, Y[:, 0])
    assert np.allclose(label_scores(model, X, 1), label_scores(direct, X, 1))


def test_names_do_not_depend_on_the_process(cached, small_data, tmp_path):
    X, Y = small_data
    np.savez(tmp_path / "data.npz", X=X, Y=Y)
    code = (
        "import sys, numpy as np; from _cached import *\n"
        "from sklearn.ensemble import RandomForestClassifier\n"
        f"data = np.load({str(tmp_path / 'data.npz')!r})\n"
        "model = CachedScores(RandomForestClassifier(7), '', FoldSample(9, 5, 0))\n"
        "print(model.fit(data['X'], data['Y']).key_)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=True,
    )
    model = cached.CachedScores(
        RandomForestClassifier(7), tmp_path, cached.FoldSample(9, 5, 0)
    )
    assert found.stdout.strip() == model.fit(X, Y).key_


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2]]
)
def test_hash_is_of_dense_values(cached, small_data, layout):
    X, _ = small_data
    assert cached.content_hash(layout(X)) == cached.content_hash(X)
    assert cached.content_hash(X.T) != cached.content_hash(X)


def test_hash_is_of_sparse_values(cached):
    X = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    expected = cached.content_hash(sp.csr_array(X))
    unsorted = sp.csr_array(
        (np.array([1.0, 1.5, 0.5, 3.0]), np.array([2, 1, 1, 0]), np.array([0, 3, 4]))
    )
    n_stored = unsorted.nnz
    assert cached.content_hash(unsorted) == expected
    assert unsorted.nnz == n_stored  # the argument is left alone
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = (
        wide.indices.astype("int64"),
        wide.indptr.astype("int64"),
    )
    assert cached.content_hash(wide) == cached.content_hash(sp.csc_array(X)) == expected
    assert cached.content_hash(sp.csr_array(np.hstack([X, X * 0]))) != expected


def test_fold_sample(cached, small_data):
    X, Y = small_data
    sample = cached.FoldSample(n_whole=120, n_rows=40, random_state=0)
    assert sample(X, Y)[0] is X
    assert sample(X[:40], Y[:40])[0].shape == (40, X.shape[1])
    X_fold, Y_fold = sample(X[:96], Y[:96])
    assert X_fold.shape[0] == len(Y_fold) == 40
    assert np.abs(Y_fold.mean(axis=0) - Y[:96].mean(axis=0)).max() < 0.03
    assert np.array_equal(sample(X[:96], Y[:96])[0], X_fold)


# ---- jobs


@pytest.fixture
def settings(script, tmp_path):
    return script.Settings(tmp_path, "cpu", None)


@pytest.fixture
def own_members(script, monkeypatch):
    """Two members, the second one boosting."""
    monkeypatch.setattr(
        script,
        "members",
        lambda seed: {
            "forest": RandomForestClassifier(20, random_state=seed),
            "boosting": script.METHODS["gradient boosting"](seed, "cpu"),
        },
    )


def test_scores_needed(script, own_members):
    methods = [
        "CLML",
        "random forest",
        "tuned random forest",
        "stacking of five",
        "CLIF",
    ]
    needed = script.scores_needed("flags", [*methods, "plain average"])
    every = {"all", 0, 1, 2, 3, 4}
    expected = {("CLIF", "all")}
    for name in ("random forest", "member forest", "member boosting"):
        expected |= {(name, fold) for fold in every}
    assert set(needed) == expected
    assert len(needed) == len(expected)
    on_large = script.scores_needed("imdb-f", [*methods, "gradient boosting"])
    assert set(on_large) == {pair for pair in expected if "boosting" not in pair[0]}


def test_learners_of_the_largest_dataset(script, own_members, settings, small_data):
    X, _ = small_data
    large = script.learner("member forest", "imdb-f", 3, X, settings)
    assert large.estimator.n_estimators == 100
    assert large.training_rows.n_whole == len(X)
    small = script.learner("member forest", "flags", 3, X, settings)
    assert small.estimator.n_estimators == 20
    assert small.training_rows is None
    assert small.estimator.random_state == 3
    chosen = script.Settings(settings.cache, "cpu", 7)
    forest = script.learner("extra trees", "tmc2007-500", 3, X, chosen)
    assert forest.estimator.n_estimators == 7


def test_forests_grow_the_same_trees_on_dense_rows(script, settings, small_data):
    X, Y = small_data
    sparse = sp.csr_array(np.round(X))
    forest = script.learner("random forest", "flags", 3, sparse, settings)
    bare = clone(forest.estimator[-1]).fit(sparse, Y)
    expected = np.stack([p[:, 1] for p in bare.predict_proba(sparse)], axis=1)
    found = forest.fit(sparse, Y).predict_proba(sparse)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["DELA", "plain network"])
def test_networks_get_the_device(script, settings, small_data, name):
    X, _ = small_data
    on_gpu = script.Settings(settings.cache, "cuda", None)
    model = script.learner(name, "flags", 0, X, on_gpu)
    assert model.estimator[-1].device == "cuda"
    assert script.uses_device(model)
    assert not script.uses_device(script.learner("MLkNN", "flags", 0, X, on_gpu))
    assert not script.uses_device(script.OWN["CLML"](0))


@pytest.fixture
def tiny_split(script, small_data, monkeypatch):
    X, Y = small_data
    monkeypatch.setattr(
        script, "split_data", lambda *_: (X[:60], X[60:], Y[:60], Y[60:])
    )
    monkeypatch.setattr(
        script,
        "folds",
        lambda cv, X, Y, seed: list(
            IterativeStratifiedKFold(cv, random_state=seed).split(X, Y)
        ),
    )
    return X, Y


class OutOfFold(BaseEstimator):
    """Asks a learner as tuning does: fold by fold, then fitted on all rows."""

    def __init__(self, estimator, cv, random_state):
        self.estimator = estimator
        self.cv = cv
        self.random_state = random_state

    def fit(self, X, Y):
        folds = IterativeStratifiedKFold(self.cv, random_state=self.random_state)
        for train, test in folds.split(X, Y):
            model = clone(self.estimator).fit(X[train], Y[train])
            label_scores(model, X[test], Y.shape[1])
        self.estimator_ = clone(self.estimator).fit(X, Y)
        return self

    def decision_function(self, X):
        return label_scores(self.estimator_, X, len(self.estimator_.classes_))


def test_run_reads_what_warm_has_fitted(
    script, cached, settings, tiny_split, monkeypatch
):
    monkeypatch.setattr(
        script.clml, "LebesgueTunedClassifier", OutOfFold, raising=False
    )
    base = "logistic regression"
    for name, fold in script.scores_needed("flags", [f"tuned {base}"]):
        (row,) = script.scores_job("flags", name, 3, fold, "", "cpu", settings)
        assert tuple(row) == script.SCORES_FIELDS
    stored = set(settings.cache.glob("*.npy"))
    assert len(stored) == 6
    rows = {}
    for method, n_recalled in ((base, 1), (f"tuned {base}", 6)):
        (rows[method],) = script.run_job("flags", method, 3, settings)
        assert len(cached.recalled_seconds) == n_recalled
        seconds = float(rows[method]["seconds"])
        assert seconds >= round(sum(cached.recalled_seconds), 2)
    assert set(settings.cache.glob("*.npy")) == stored
    assert tuple(rows[base]) == script.FIELDS
    assert rows[base]["test_decisions"] == 240
    X, Y = tiny_split
    model = script.with_scaling(script.METHODS[base](3, "cpu"), X[:60])
    wrong = (model.fit(X[:60], Y[:60]).decision_function(X[60:]) > 0) != Y[60:]
    for row in rows.values():
        assert float(row["hamming"]) == round(wrong.mean(), 6)


# ---- tables


def loss_rows(script, losses):
    """Return rows whose three losses are equal, so their geometric mean is known."""
    return [
        {
            "dataset": dataset,
            "method": method,
            "split": str(split),
            **dict.fromkeys(script.LOSSES, str(loss)),
            "test_decisions": "1000",
        }
        for (dataset, method), values in losses.items()
        for split, loss in enumerate(values)
    ]


def cells(lines):
    return [[c.strip() for c in line.split("|")[1:-1]] for line in lines[2:]]


def test_development_splits_are_not_reported(script):
    rows = loss_rows(script, {("yeast", "CLML"): [0.2] * 7})
    rows.append({**rows[0], "split": "100"})
    assert list(script.reported_means(rows)["yeast", "CLML"]) == [0, 1, 2, 3, 4]


def test_methods_that_lack_splits_are_left_out(script, capsys):
    rows = loss_rows(
        script,
        {("yeast", "CLML"): [0.2] * 5, ("yeast", "random forest"): [0.2] * 4},
    )
    assert list(script.reported_means(rows)) == [("yeast", "CLML")]
    assert "random forest left out on yeast: 4 splits" in capsys.readouterr().out


def test_tuned_against_base_by_hand(script, monkeypatch):
    splits = {"flags": 3, "genbase": 1, "yeast": 1, "imdb-f": 1}
    monkeypatch.setattr(script, "SPLITS", splits)
    rows = loss_rows(
        script,
        {
            ("flags", "random forest"): [0.2, 0.3, 0.4],
            ("flags", "tuned random forest"): [0.1, 0.2, 0.3],
            ("imdb-f", "random forest"): [0.2],
            ("imdb-f", "tuned random forest"): [0.3],
            ("genbase", "random forest"): [0.2],
            ("genbase", "tuned random forest"): [0.002],
            ("yeast", "tuned random forest"): [0.2],
        },
    )
    means = script.reported_means(rows)
    found = cells(script.comparison_table(means, script.TUNED.items()))
    by_dataset = {row[0]: row[1:] for row in found}
    assert set(by_dataset) == {"flags", "imdb-f", "genbase"}
    assert by_dataset["flags"] == [
        "random forest",
        "0.3000",
        "0.2000",
        "-0.1000",
        "-0.1000 to -0.1000",
        "0.667",
        "not worse",
    ]
    assert by_dataset["imdb-f"][-3:] == ["one split", "1.500", "worse"]
    # Ratios 2/3 and 3/2, without genbase.
    assert cells(script.improvement_table(means)) == [
        ["tuned random forest", "2", f"{1 - (2 / 3 + 3 / 2) / 2:+.1%}"]
    ]


@pytest.fixture
def all_rows(script, monkeypatch):
    """Ours is best everywhere; boosting was not run on imdb-f."""
    monkeypatch.setattr(script, "SPLITS", dict.fromkeys(script.SPLITS, 2))
    methods = [*script.BASELINES, "CLML", "plain average", "stacking of five"]
    losses = {
        (dataset, method): [0.4 - 0.01 * place] * 2
        for dataset in script.SPLITS
        for place, method in enumerate(methods)
    }
    del losses["imdb-f", "gradient boosting"]
    return loss_rows(script, losses)


def test_ranks_say_what_is_missing(script, all_rows):
    text = "\n".join(script.ranks_section(script.reported_means(all_rows)))
    assert "No run on imdb-f: gradient boosting." in text
    assert "13 methods on 7 datasets" in text
    assert "12 methods on 8 datasets" in text
    assert text.count("| stacking of five | 1.00 | +0.00 | no |") == 2
    assert "| GNB-BR | 13.00 | +12.00 | yes |" in text


def test_rivals(script, all_rows):
    found = {
        r[0]: r[1:] for r in cells(script.rival_table(script.reported_means(all_rows)))
    }
    assert tuple(found) == script.RIVALS
    assert found["DELA"][:3] == ["8", "8", "0.008"]
    assert found["gradient boosting"][:2] == ["7", "7"]
    assert float(found["DELA"][3]) == pytest.approx(7 * 2 / 2**8, abs=5e-4)


def test_table_is_written_and_the_same_each_time(script, all_rows, tmp_path, capsys):
    results = tmp_path / "learning_power.csv"
    with results.open("w", newline="") as file:
        writer = csv.DictWriter(file, script.FIELDS, restval="")
        writer.writeheader()
        writer.writerows(all_rows)
    made = []
    for _ in range(2):
        script.table(script.argparse.Namespace(results=results))
        made.append([p.read_bytes() for p in sorted(tmp_path.glob("learning*[!v]"))])
    assert made[0] == made[1]
    assert len(made[0]) == 2
    svg = (tmp_path / "learning_power_ranks.svg").read_text()
    assert "stacking of five 1.00" in svg
    assert "matplotlib v" not in svg.lower()
    assert "{" not in (tmp_path / "learning_power.md").read_text()
    assert "stacking of five" in capsys.readouterr().out


def test_empty_results_give_empty_tables(script, tmp_path, capsys):
    script.table(script.argparse.Namespace(results=tmp_path / "learning_power.csv"))
    assert not (tmp_path / "learning_power_ranks.svg").exists()


def test_printed_figures_are_the_papers(script):
    with (Path(__file__).parent / "paper_results.csv").open(newline="") as file:
        printed = {}
        for row in csv.DictReader(file):
            by_method = printed.setdefault(row["dataset"].lower(), {})
            by_method[row["method"]] = float(row["geometric_mean"])
    targets = script.read(script.TARGETS)
    assert {t["dataset"] for t in targets} == set(script.SPLITS)
    for target in targets:
        by_method = printed[target["dataset"]]
        assert float(target["clml"]) == by_method["CLML"]
        assert float(target["best"]) == min(by_method.values())
        assert float(target["best"]) == by_method[target["best_method"]]


def write_rows(path, fields, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)


def test_adopted_are_rows_of_the_same_protocol_alone(script, tmp_path, capsys):
    def row(method, split, hamming):
        return {
            "dataset": "yeast",
            "method": method,
            "split": split,
            "hamming": hamming,
            "lrap": 0.2,
            "micro_f1": 0.3,
            "test_decisions": 10,
        }

    results, own, other = (
        tmp_path / f"{name}.csv" for name in ("here", "own", "other")
    )
    write_rows(results, script.FIELDS, [row("DELA", 0, 0.1)])
    write_rows(own, script.FIELDS, [row("CLML", 1, 0.4), row("DELA", 0, 0.9)])
    write_rows(
        other,
        script.FIELDS[:-3],
        [
            row("CLML", 2, 0.9),
            row("CLIF", 0, 0.5),
            row("CLML", 1, 0.9),
            row("CLIF", 105, 0.9),
            row("other", 0, 0.9),
        ],
    )
    arguments = argparse.Namespace(
        results=results, source=[own, other], datasets=["yeast"], methods=None
    )
    arguments.seeds = None
    script.adopt(arguments)
    assert capsys.readouterr().out == "2 rows\n"
    with results.open(newline="") as file:
        found = [(r["method"], r["split"], r["hamming"]) for r in csv.DictReader(file)]
    assert found == [("DELA", "0", "0.1"), ("CLML", "1", "0.4"), ("CLIF", "0", "0.5")]

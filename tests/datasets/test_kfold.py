import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, check_cv, cross_val_score

from clml.splits.kfold import IterativeStratifiedKFold


def fold_numbers(splitter, Y):
    folds = np.full(Y.shape[0], -1)
    for number, (train, test) in enumerate(splitter.split(Y, Y)):
        assert (folds[test] == -1).all()
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(Y.shape[0]))
        folds[test] = number
    return folds


def deviation(counts, folds_counts, sizes):
    """Mean over folds and columns of |share of the count - share of the rows|."""
    seen = counts > 0
    shares = folds_counts[:, seen] / counts[seen]
    return np.abs(shares - (sizes / sizes.sum())[:, None]).mean()


def label_deviation(Y, folds):
    found = np.array([Y[folds == fold].sum(axis=0) for fold in np.unique(folds)])
    return deviation(Y.sum(axis=0), found, np.bincount(folds))


def pair_deviation(Y, folds):
    upper = np.triu_indices(Y.shape[1], 1)
    parts = [Y[folds == fold] for fold in np.unique(folds)]
    found = np.array([(part.T @ part)[upper] for part in parts])
    return deviation((Y.T @ Y)[upper], found, np.bincount(folds))


@pytest.mark.parametrize("order", [1, 2])
def test_worked_example(order):
    # Three folds: each must get one row of each kind.
    Y = np.repeat([[1, 0], [0, 1], [1, 1], [0, 0]], 3, axis=0)
    for _, test in IterativeStratifiedKFold(3, order=order, random_state=0).split(Y, Y):
        assert_array_equal(Y[test].sum(axis=0), [2, 2])
        assert len(test) == 4


@pytest.mark.parametrize("n_samples, n_splits", [(2, 2), (10, 3), (101, 5), (23, 23)])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_row_is_tested_once_and_sizes_differ_by_one(
    n_samples, n_splits, order, shuffle, correlated_labels
):
    Y = correlated_labels(n_samples, 5, 0.3, seed=0)
    folds = fold_numbers(
        IterativeStratifiedKFold(n_splits, order=order, shuffle=shuffle), Y
    )
    sizes = np.bincount(folds, minlength=n_splits)
    assert sizes.min() >= 1
    assert np.ptp(sizes) <= 1


@settings(max_examples=40)
@given(
    Y=hnp.arrays(
        np.uint8,
        st.tuples(st.integers(2, 30), st.integers(1, 6)),
        elements=st.integers(0, 1),
    ),
    n_splits=st.integers(2, 30),
    order=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_indicator_is_partitioned(Y, n_splits, order, seed):
    n_splits = min(n_splits, len(Y))
    splitter = IterativeStratifiedKFold(n_splits, order=order, random_state=seed)
    folds = fold_numbers(splitter, Y)
    assert np.ptp(np.bincount(folds, minlength=n_splits)) <= 1
    assert_array_equal(folds, fold_numbers(splitter, sparse.csc_array(Y)))


def test_same_seed_same_folds_at_every_call(correlated_labels):
    Y = correlated_labels(100, 6, 0.3, seed=0)
    splitter = IterativeStratifiedKFold(4, random_state=0)
    first, again = (fold_numbers(splitter, Y) for _ in range(2))
    other = fold_numbers(IterativeStratifiedKFold(4, random_state=1), Y)
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
def test_generator_objects_advance(source, correlated_labels):
    Y = correlated_labels(100, 6, 0.3, seed=0)
    splitter = IterativeStratifiedKFold(4, random_state=source(0))
    first, second = (fold_numbers(splitter, Y) for _ in range(2))
    again = fold_numbers(IterativeStratifiedKFold(4, random_state=source(0)), Y)
    assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_without_a_seed_folds_are_fresh_and_global_state_untouched(correlated_labels):
    Y = correlated_labels(100, 6, 0.3, seed=0)
    saved = np.random.get_state()  # noqa: NPY002
    try:
        found = []
        for _ in range(2):
            np.random.seed(7)  # noqa: NPY002
            found.append(fold_numbers(IterativeStratifiedKFold(4), Y))
            assert np.random.random() == np.random.RandomState(7).random()  # noqa: NPY002
    finally:
        np.random.set_state(saved)  # noqa: NPY002
    assert not np.array_equal(*found)


@pytest.mark.parametrize("order", [1, 2])
def test_without_shuffling_nothing_is_random(order, correlated_labels):
    Y = correlated_labels(100, 6, 0.3, seed=0)
    splitter = IterativeStratifiedKFold(4, order=order, shuffle=False)
    assert_array_equal(fold_numbers(splitter, Y), fold_numbers(splitter, Y))


CASES = [
    (200, 6, 0.3),
    (300, 20, 0.1),
    (400, 40, 0.04),
    (200, 60, 0.15),
    (400, 14, 0.3),
]


def mean_deviation(measure, Y, splitter, n_seeds=4):
    return np.mean(
        [measure(Y, fold_numbers(splitter(seed), Y)) for seed in range(n_seeds)]
    )


def ours(order=1):
    return lambda seed: IterativeStratifiedKFold(5, order=order, random_state=seed)


def theirs(seed):
    return MultilabelStratifiedKFold(5, shuffle=True, random_state=seed)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_labels_are_divided_as_well_as_by_iterative_stratification(
    case, correlated_labels
):
    Y = correlated_labels(*case, seed=0)
    # That package lets sizes drift; its shares are held against the sizes it did
    # return, which favours it.
    limit = mean_deviation(label_deviation, Y, theirs)
    assert mean_deviation(label_deviation, Y, ours()) <= limit


@pytest.mark.parametrize("case", CASES, ids=str)
def test_second_order_divides_pairs_better(case, correlated_labels):
    Y = correlated_labels(*case, seed=0)
    first, second = (mean_deviation(pair_deviation, Y, ours(o)) for o in (1, 2))
    assert second < first


@pytest.mark.parametrize("order", [1, 2])
def test_labels_are_divided_better_than_at_random(order, correlated_labels):
    Y = correlated_labels(400, 14, 0.3, seed=0)
    at_random = mean_deviation(
        label_deviation, Y, lambda seed: KFold(5, shuffle=True, random_state=seed)
    )
    assert mean_deviation(label_deviation, Y, ours(order)) < 0.5 * at_random


@pytest.mark.skipif("CLML_DATA" not in os.environ, reason="CLML_DATA is not set")
@pytest.mark.parametrize(
    "name", ["flags", "emotions", "genbase", "enron", "yeast", "cal500"]
)
def test_real_labels_are_divided_as_well_as_by_iterative_stratification(name):
    read_arff = pytest.importorskip("clml.datasets._arff").read_arff
    folder = Path(os.environ["CLML_DATA"]) / name
    Y = read_arff(folder / f"{name}.arff.xz", folder / f"{name}.xml").Y.astype(int)
    limit = mean_deviation(label_deviation, Y, theirs)
    assert mean_deviation(label_deviation, Y, ours()) <= limit
    first, second = (mean_deviation(pair_deviation, Y, ours(o)) for o in (1, 2))
    assert second < first


@pytest.mark.parametrize("order", [1, 2])
def test_large_data_take_seconds(order):
    # The shape of imdb-f; about 0.1 s where this was written.
    Y = np.random.default_rng(0).random((120_919, 28)) < 0.07
    splitter = IterativeStratifiedKFold(5, order=order, random_state=0)
    fold_numbers(splitter, Y[:10])  # compiles
    began = time.perf_counter()
    list(splitter.split(Y, Y))
    assert time.perf_counter() - began < 2


def test_repr_clone_and_pickle(correlated_labels):
    splitter = IterativeStratifiedKFold(3, order=2, random_state=0)
    text = repr(splitter)
    assert text.startswith(
        "IterativeStratifiedKFold(n_splits=3, order=2, random_state=0"
    )
    Y = correlated_labels(50, 4, 0.3, seed=0)
    for copy in (clone(splitter, safe=False), pickle.loads(pickle.dumps(splitter))):
        assert repr(copy) == text
        assert_array_equal(fold_numbers(copy, Y), fold_numbers(splitter, Y))


def test_without_refinement_rows_stay_where_they_were_dealt(correlated_labels):
    Y = correlated_labels(200, 30, 0.15, seed=0)
    refined, dealt = (
        label_deviation(
            Y,
            fold_numbers(IterativeStratifiedKFold(refine=refine, random_state=0), Y),
        )
        for refine in (True, False)
    )
    assert refined < dealt


def test_number_of_folds():
    splitter = IterativeStratifiedKFold()
    assert splitter.get_n_splits() == 5
    assert IterativeStratifiedKFold(np.int64(3)).get_n_splits(None, None, None) == 3
    assert check_cv(splitter) is splitter


def test_in_model_selection(small_data):
    X, Y = small_data
    folds = IterativeStratifiedKFold(3, random_state=0)
    scores = cross_val_score(RidgeClassifier(), X, Y, cv=folds)
    assert scores.shape == (3,)
    by_hand = [
        RidgeClassifier().fit(X[train], Y[train]).score(X[test], Y[test])
        for train, test in folds.split(X, Y)
    ]
    assert_array_equal(scores, by_hand)
    search = GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 10.0]}, cv=folds)
    assert search.fit(X, Y).n_splits_ == 3


@pytest.mark.parametrize(
    "container", [sparse.csr_array, sparse.csc_matrix, sparse.lil_array]
)
def test_sparse_labels(container, correlated_labels):
    Y = correlated_labels(60, 5, 0.3, seed=0)
    splitter = IterativeStratifiedKFold(3, random_state=0)
    assert_array_equal(fold_numbers(splitter, container(Y)), fold_numbers(splitter, Y))


def test_frames(correlated_labels):
    pd = pytest.importorskip("pandas")
    Y = correlated_labels(60, 3, 0.3, seed=0)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"], index=np.arange(60) + 100)
    splitter = IterativeStratifiedKFold(3, random_state=0)
    for (_, test), (_, expected) in zip(
        splitter.split(frame, frame), splitter.split(Y, Y), strict=True
    ):
        assert_array_equal(test, expected)


def test_groups_are_ignored_and_input_is_not_modified(correlated_labels):
    Y = correlated_labels(30, 3, 0.3, seed=0)
    before = Y.copy()
    Y.flags.writeable = False
    splitter = IterativeStratifiedKFold(3, random_state=0)
    for with_groups, without in zip(
        splitter.split(Y, Y, groups=np.arange(30)), splitter.split(Y, Y), strict=True
    ):
        assert_array_equal(with_groups[1], without[1])
    assert_array_equal(Y, before)


@pytest.mark.parametrize(
    "arguments, exception, message",
    [
        ({"n_splits": 1}, ValueError, "n_splits must be at least 2; got 1"),
        ({"n_splits": 2.0}, TypeError, "n_splits must be an integer .* type float"),
        ({"n_splits": True}, TypeError, "n_splits must be an integer .* type bool"),
        ({"n_splits": "3"}, TypeError, "n_splits must be an integer .* type str"),
        ({"refine": 1}, TypeError, "refine must be True or False"),
        ({"order": 3}, ValueError, "order must be 1 .* or 2 .* got 3"),
        ({"shuffle": 1}, TypeError, "shuffle must be True or False; got 1"),
        (
            {"shuffle": False, "random_state": 0},
            ValueError,
            "random_state must be None if shuffle is False.* got random_state=0",
        ),
    ],
)
def test_bad_parameters(arguments, exception, message):
    with pytest.raises(exception, match=message):
        IterativeStratifiedKFold(**arguments)


Y_GOOD = np.array([[1, 0], [0, 1], [1, 1]])


@pytest.mark.parametrize(
    "X, y, message",
    [
        (Y_GOOD, None, "y must be a label indicator .* got None"),
        (Y_GOOD, Y_GOOD, "n_splits=5 must not be greater than the number of rows; got"),
        (Y_GOOD[:2], Y_GOOD, "same number of rows; got 2 in X and 3 in y"),
        (Y_GOOD, [0, 1, 1], r"y must be an indicator .* shape \(3,\)"),
        (Y_GOOD, [[0, 2], [1, 1], [0, 0]], "y must be a binary indicator"),
        (Y_GOOD, sparse.csr_array([[0, 2]] * 3), "y must contain only 0 and 1; got 2"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        next(IterativeStratifiedKFold().split(X, y))

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.model_selection import train_test_split

from clml.datasets import iterative_split_indices, iterative_train_test_split


def share_deviation(Y, test):
    """Mean over labels of |share of its positives in test - share of rows|."""
    positives = Y.sum(axis=0)
    seen = positives > 0
    share = Y[test].sum(axis=0)[seen] / positives[seen]
    return np.abs(share - len(test) / len(Y)).mean()


def assert_partition(train, test, n_samples, n_test):
    assert train.dtype == test.dtype == np.int64
    assert len(test) == n_test
    assert_array_equal(train, np.sort(train))
    assert_array_equal(test, np.sort(test))
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n_samples))


@pytest.mark.parametrize("n_samples", [2, 3, 10, 101, 250])
@pytest.mark.parametrize("test_size", [0.001, 0.07, 0.25, 0.3, 1 / 3, 0.5, 0.999])
@pytest.mark.parametrize("order", [1, 2])
def test_sizes_are_exact_and_every_row_is_used_once(
    n_samples, test_size, order, correlated_labels
):
    Y = correlated_labels(n_samples, 7, 0.3, seed=n_samples)
    train, test = iterative_split_indices(
        Y, test_size=test_size, order=order, random_state=0
    )
    n_test = min(max(ceil(test_size * n_samples), 1), n_samples - 1)
    assert_partition(train, test, n_samples, n_test)


@pytest.mark.parametrize("test_size", [0.07, 0.1, 0.29, 0.3, 0.55])
def test_sizes_are_those_of_scikit_learn(test_size, correlated_labels):
    Y = correlated_labels(100, 4, 0.3, seed=0)
    _, test = iterative_split_indices(Y, test_size=test_size, random_state=0)
    assert len(test) == len(train_test_split(Y, test_size=test_size)[1])


def test_same_seed_same_split_and_other_seed_another(correlated_labels):
    Y = correlated_labels(200, 6, 0.3, seed=0)
    first, again, other = (
        iterative_split_indices(Y, random_state=seed)[1] for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("source", [np.random.RandomState, np.random.default_rng])
def test_generator_objects_are_accepted_and_advance(source, correlated_labels):
    Y = correlated_labels(200, 6, 0.3, seed=0)
    generator = source(3)
    first = iterative_split_indices(Y, random_state=generator)[1]
    second = iterative_split_indices(Y, random_state=generator)[1]
    again = iterative_split_indices(Y, random_state=source(3))[1]
    assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_random_state_object_equals_its_seed(correlated_labels):
    Y = correlated_labels(100, 6, 0.3, seed=0)
    by_seed = iterative_split_indices(Y, random_state=5)[1]
    by_object = iterative_split_indices(Y, random_state=np.random.RandomState(5))[1]
    assert_array_equal(by_seed, by_object)


@pytest.mark.parametrize("random_state", [None, 0])
def test_global_random_state_is_neither_read_nor_changed(
    random_state, correlated_labels
):
    Y = correlated_labels(200, 6, 0.3, seed=0)
    saved = np.random.get_state()  # noqa: NPY002
    try:
        splits = []
        for _ in range(2):
            np.random.seed(7)  # noqa: NPY002
            splits.append(iterative_split_indices(Y, random_state=random_state)[1])
            drawn = np.random.random()  # noqa: NPY002
            assert drawn == np.random.RandomState(7).random()
    finally:
        np.random.set_state(saved)  # noqa: NPY002
    assert np.array_equal(*splits) == (random_state is not None)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, object])
def test_dtype_of_the_indicator_does_not_matter(dtype, correlated_labels):
    Y = correlated_labels(80, 6, 0.3, seed=0)
    _, expected = iterative_split_indices(Y, random_state=0)
    _, test = iterative_split_indices(Y.astype(dtype), random_state=0)
    assert_array_equal(test, expected)


@pytest.mark.parametrize(
    "container",
    [
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.lil_array,
        sparse.csr_matrix,
        sparse.csc_matrix,
    ],
)
def test_sparse_indicator_equals_dense(container, correlated_labels):
    Y = correlated_labels(80, 6, 0.3, seed=0)
    X = np.arange(160.0).reshape(80, 2)
    dense = iterative_train_test_split(X, Y, random_state=0)
    parts = iterative_train_test_split(container(X), container(Y), random_state=0)
    for part, expected in zip(parts, dense, strict=True):
        assert part.format == "csr"
        assert_array_equal(part.toarray(), expected)


def test_explicit_zeros_and_unsorted_indices_do_not_matter():
    Y = sparse.csr_array(
        (np.array([1, 0, 1, 1]), np.array([2, 0, 1, 0]), np.array([0, 3, 3, 4])),
        shape=(3, 3),
    )
    _, expected = iterative_split_indices(Y.toarray(), random_state=0)
    _, test = iterative_split_indices(Y, random_state=0)
    assert_array_equal(test, expected)
    assert Y.nnz == 4  # the caller's explicit zero is still there


@pytest.mark.parametrize("order", [1, 2])
def test_split_of_data_agrees_with_split_of_indices(order, correlated_labels):
    Y = correlated_labels(50, 5, 0.3, seed=0)
    X = np.arange(50)
    X_train, X_test, Y_train, Y_test = iterative_train_test_split(
        X, Y, test_size=0.2, order=order, random_state=0
    )
    train, test = iterative_split_indices(Y, test_size=0.2, order=order, random_state=0)
    assert_array_equal(X_train, train)
    assert_array_equal(X_test, test)
    assert_array_equal(Y_train, Y[train])
    assert_array_equal(Y_test, Y[test])


def test_frames_keep_columns_index_and_types(correlated_labels):
    pd = pytest.importorskip("pandas")
    Y = correlated_labels(40, 3, 0.4, seed=0)
    names = [f"row {i}" for i in range(40)]
    X_frame = pd.DataFrame(
        {"size": np.arange(40.0), "colour": ["red", "blue"] * 20}, index=names
    )
    Y_frame = pd.DataFrame(Y, columns=["a", "b", "c"], index=names)
    X_train, X_test, Y_train, Y_test = iterative_train_test_split(
        X_frame, Y_frame, random_state=0
    )
    train, test = iterative_split_indices(Y, random_state=0)
    pd.testing.assert_frame_equal(X_train, X_frame.iloc[train])
    pd.testing.assert_frame_equal(X_test, X_frame.iloc[test])
    pd.testing.assert_frame_equal(Y_train, Y_frame.iloc[train])
    pd.testing.assert_frame_equal(Y_test, Y_frame.iloc[test])


def test_nullable_frame_of_labels_is_accepted(correlated_labels):
    pd = pytest.importorskip("pandas")
    Y = correlated_labels(40, 3, 0.4, seed=0)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).astype("Int64")
    _, expected = iterative_split_indices(Y, random_state=0)
    _, test = iterative_split_indices(frame, random_state=0)
    assert_array_equal(test, expected)


def test_input_is_not_modified_and_output_is_a_copy(correlated_labels):
    Y = correlated_labels(40, 3, 0.4, seed=0)
    X = np.arange(80.0).reshape(40, 2)
    X_before, Y_before = X.copy(), Y.copy()
    X.flags.writeable = Y.flags.writeable = False
    parts = iterative_train_test_split(X, Y, random_state=0)
    for part in parts:
        part[:] = -1
    assert_array_equal(X, X_before)
    assert_array_equal(Y, Y_before)


CASES = [
    (200, 6, 0.3),
    (300, 20, 0.1),
    (400, 40, 0.04),
    (200, 60, 0.15),
    (400, 14, 0.3),
]


@pytest.mark.parametrize("n_samples, n_labels, density", CASES)
def test_labels_are_divided_better_than_at_random(
    n_samples, n_labels, density, correlated_labels
):
    ours, random = [], []
    for seed in range(4):
        Y = correlated_labels(n_samples, n_labels, density, seed)
        _, test = iterative_split_indices(Y, random_state=seed)
        ours.append(share_deviation(Y, test))
        shuffled = np.random.default_rng(seed).permutation(n_samples)
        random.append(share_deviation(Y, shuffled[: len(test)]))
    assert np.mean(ours) < 0.5 * np.mean(random)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_labels_are_divided_as_well_as_by_iterative_stratification(
    case, correlated_labels
):
    ours, theirs = [], []
    for seed in range(4):
        Y = correlated_labels(*case, seed)
        _, test = iterative_split_indices(Y, random_state=seed)
        ours.append(share_deviation(Y, test))
        splitter = MultilabelStratifiedShuffleSplit(
            n_splits=1, test_size=0.3, random_state=seed
        )
        # That package lets the size drift; its shares are held against the
        # size it did return, which favours it.
        _, test = next(splitter.split(Y, Y))
        theirs.append(share_deviation(Y, test))
    assert np.mean(ours) <= np.mean(theirs)


def pair_deviation(Y, test):
    """Mean over pairs of labels of |share of their rows in test - share of rows|."""
    upper = np.triu_indices(Y.shape[1], 1)
    together = (Y.T @ Y)[upper]
    seen = together > 0
    share = (Y[test].T @ Y[test])[upper][seen] / together[seen]
    return np.abs(share - len(test) / len(Y)).mean()


@pytest.mark.parametrize("n_samples, n_labels, density", CASES)
def test_second_order_divides_pairs_better(
    n_samples, n_labels, density, correlated_labels
):
    deviations = {1: [], 2: []}
    for seed in range(4):
        Y = correlated_labels(n_samples, n_labels, density, seed)
        for order, found in deviations.items():
            _, test = iterative_split_indices(Y, order=order, random_state=seed)
            found.append(pair_deviation(Y, test))
    assert np.mean(deviations[2]) < np.mean(deviations[1])


def test_second_order_divides_a_pair_exactly():
    # Each label alone could be divided exactly without dividing the pair so.
    Y = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], 10, axis=0)
    _, test = iterative_split_indices(Y, test_size=0.3, order=2, random_state=0)
    assert_array_equal(np.bincount(Y[test] @ [1, 2], minlength=4), [3, 3, 3, 3])


def test_rows_without_labels_fill_up():
    Y = np.zeros((20, 3), dtype=int)
    Y[:4] = 1
    train, test = iterative_split_indices(Y, test_size=0.5, random_state=0)
    assert_partition(train, test, 20, 10)
    assert Y[train].sum() == Y[test].sum()


def test_one_label_is_divided_exactly():
    Y = np.zeros((100, 1), dtype=int)
    Y[:40] = 1
    train, test = iterative_split_indices(Y, test_size=0.3, random_state=0)
    assert_partition(train, test, 100, 30)
    assert Y[test].sum() == 12


@pytest.mark.parametrize("value", [0, 1])
def test_constant_indicator(value):
    Y = np.full((10, 4), value)
    train, test = iterative_split_indices(Y, random_state=0)
    assert_partition(train, test, 10, 3)
    # With nothing to tell rows apart the split must still be random.
    tests = {tuple(iterative_split_indices(Y, random_state=s)[1]) for s in range(10)}
    assert len(tests) > 5


def test_label_never_positive_changes_no_share(correlated_labels):
    Y = correlated_labels(60, 4, 0.4, seed=0)
    padded = np.hstack([Y, np.zeros((60, 2), dtype=int)])
    train, test = iterative_split_indices(padded, random_state=0)
    assert_partition(train, test, 60, 18)
    assert share_deviation(padded, test) < 0.05


def test_duplicate_rows_are_divided():
    Y = np.repeat([[1, 0, 1], [0, 1, 1]], 10, axis=0)
    _, test = iterative_split_indices(Y, test_size=0.3, random_state=0)
    assert_array_equal(Y[test].sum(axis=0), [3, 3, 6])


@pytest.mark.parametrize("test_size", [0.01, 0.5, 0.99])
def test_two_rows(test_size):
    Y = np.array([[1, 0], [0, 1]])
    train, test = iterative_split_indices(Y, test_size=test_size, random_state=0)
    assert_partition(train, test, 2, 1)


@settings(max_examples=80, deadline=None)
@given(
    Y=hnp.arrays(
        np.uint8,
        st.tuples(st.integers(2, 30), st.integers(1, 6)),
        elements=st.integers(0, 1),
    ),
    test_size=st.floats(0.0, 1.0, exclude_min=True, exclude_max=True),
    seed=st.integers(0, 2**32 - 1),
    order=st.sampled_from([1, 2]),
)
def test_any_indicator_is_partitioned(Y, test_size, seed, order):
    n_samples = len(Y)
    options = {"test_size": test_size, "random_state": seed, "order": order}
    train, test = iterative_split_indices(Y, **options)
    n_test = min(max(ceil(test_size * n_samples), 1), n_samples - 1)
    assert_partition(train, test, n_samples, n_test)
    _, again = iterative_split_indices(sparse.csc_array(Y), **options)
    assert_array_equal(test, again)


Y_GOOD = np.array([[1, 0], [0, 1], [1, 1]])


@pytest.mark.parametrize(
    "arguments, exception, message",
    [
        ({"test_size": 0.0}, ValueError, r"test_size must lie in \(0, 1\); got 0.0"),
        ({"test_size": 1}, ValueError, r"test_size must lie in \(0, 1\); got 1\."),
        ({"test_size": -0.2}, ValueError, r"test_size must lie .* got -0.2"),
        ({"test_size": np.nan}, ValueError, r"test_size must lie .* got nan"),
        ({"test_size": "0.3"}, TypeError, r"test_size must be a number .* type str"),
        ({"test_size": True}, TypeError, r"test_size must be a number .* type bool"),
        ({"Y": Y_GOOD[:1]}, ValueError, r"Y must have at least 2 rows .* got 1 row"),
        ({"Y": Y_GOOD[:0]}, ValueError, r"Y must have at least 2 rows .* got 0 row"),
        ({"Y": [0, 1, 1]}, ValueError, r"Y must be an indicator .* shape \(3,\)"),
        ({"Y": np.zeros((3, 0))}, ValueError, r"at least one label, .* \(3, 0\)"),
        (
            {"Y": sparse.csr_array((3, 0))},
            ValueError,
            r"at least one label; .* \(3, 0\)",
        ),
        (
            {"Y": sparse.coo_array(np.array([0, 1, 1]))},
            ValueError,
            r"Y must be a label indicator .* shape \(3,\)",
        ),
        (
            {"Y": [[1, 0], [0, 2]]},
            ValueError,
            r"0 and 1 only, got the values \[0, 1, 2\]",
        ),
        ({"Y": [[1, -1], [0, 1]]}, ValueError, r"got the values \[-1, 0, 1\]"),
        ({"Y": [[1, 0.5], [0, 1]]}, ValueError, r"values \[0.0, 0.5, 1.0\]"),
        ({"Y": [[1, np.nan], [0, 1]]}, ValueError, r"values \[0.0, 1.0, nan\]"),
        ({"Y": [["a", "b"], ["c", "d"]]}, ValueError, r"values \['a', 'b', 'c', 'd'\]"),
        (
            {"Y": np.array([[1, None], [0, "x"]], dtype=object)},
            ValueError,
            r"values \['x', 0, 1, None\]",
        ),
        (
            {"Y": sparse.csr_array([[0, 0], [1, 0], [0, 3]])},
            ValueError,
            "Y must contain only 0 and 1; got 3 at row 2, column 1",
        ),
        ({"random_state": "seed"}, ValueError, "seed"),
        ({"order": 3}, ValueError, r"order must be 1 .* or 2 .*; got 3"),
        ({"order": 0}, ValueError, r"order must be 1 .* or 2 .*; got 0"),
        ({"order": True}, ValueError, r"order must be 1 .* or 2 .*; got True"),
        ({"order": "2"}, ValueError, r"order must be 1 .* or 2 .*; got '2'"),
    ],
)
def test_bad_arguments(arguments, exception, message):
    arguments = {"Y": Y_GOOD, **arguments}
    with pytest.raises(exception, match=message):
        iterative_split_indices(arguments.pop("Y"), **arguments)


def test_lengths_differ():
    with pytest.raises(ValueError, match="same number of rows; got 2 in X and 3 in Y"):
        iterative_train_test_split(np.zeros((2, 2)), Y_GOOD)

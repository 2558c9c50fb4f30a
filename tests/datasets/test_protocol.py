import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from clml.datasets import iterative_split_indices
from clml.datasets._protocol import paper_split

PARTS = ("train", "validation", "test")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 5.0, size=(200, 4))
    X[:, 2] = 7.0
    Y = (rng.random((200, 5)) < [0.05, 0.2, 0.3, 0.5, 0.9]).astype(int)
    return X, Y


def test_worked_example():
    # 100 rows: 30 for the test, 20 % of the other 70 for validation.
    X = np.arange(100.0)[:, None]
    Y = np.zeros((100, 1), dtype=int)
    Y[:50] = 1
    split = paper_split(X, Y, random_state=0)
    parts = split.Y_train, split.Y_validation, split.Y_test
    assert [len(part) for part in parts] == [56, 14, 30]
    assert [part.sum() for part in parts] == [28, 7, 15]
    rows = split.train_rows
    expected = (split.test_rows - rows.mean()) / rows.std()
    assert_allclose(split.X_test[:, 0], expected)


def test_parts_are_those_of_their_rows(data):
    X, Y = data
    split = paper_split(X, Y, random_state=0)
    rows = [getattr(split, f"{part}_rows") for part in PARTS]
    assert_array_equal(np.sort(np.concatenate(rows)), np.arange(200))
    for part, numbers in zip(PARTS, rows, strict=True):
        assert_array_equal(numbers, np.sort(numbers))
        assert_array_equal(getattr(split, f"Y_{part}"), Y[numbers])
        scaled = getattr(split, f"X_{part}")
        assert_allclose(split.scaler.inverse_transform(scaled), X[numbers])


def test_scaler_knows_the_training_rows_alone(data):
    X, Y = data
    split = paper_split(X, Y, random_state=0)
    assert_allclose(split.scaler.mean_, X[split.train_rows].mean(axis=0))
    changed = X.copy()
    changed[split.test_rows] = 1e6
    changed[split.validation_rows] = -1e6
    again = paper_split(changed, Y, random_state=0)
    assert_array_equal(again.train_rows, split.train_rows)
    assert_array_equal(again.X_train, split.X_train)


def test_features_are_standardised_and_constant_columns_safe(data):
    split = paper_split(*data, random_state=0)
    assert_allclose(split.X_train.mean(axis=0), 0, atol=1e-12)
    assert_allclose(split.X_train.std(axis=0), [1, 1, 0, 1])
    for part in PARTS:
        assert_array_equal(getattr(split, f"X_{part}")[:, 2], 0)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.coo_array])
def test_sparse_features_are_scaled_and_not_centred(data, container):
    X, Y = data
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.3, X, 0.0)
    split = paper_split(container(X), container(Y), random_state=0)
    scale = X[split.train_rows].std(axis=0)
    for part in PARTS:
        found = getattr(split, f"X_{part}")
        rows = getattr(split, f"{part}_rows")
        assert found.format == "csr"
        assert found.nnz == np.count_nonzero(X[rows])
        assert_allclose(found.toarray(), X[rows] / scale)
        assert_array_equal(getattr(split, f"Y_{part}").toarray(), Y[rows])


def test_frames(data):
    pd = pytest.importorskip("pandas")
    X, Y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = pd.DataFrame(Y, columns=list("vwxyz"))
    split, expected = (paper_split(*d, random_state=0) for d in ((frame, labels), data))
    assert_allclose(split.X_test, expected.X_test)
    assert list(split.scaler.feature_names_in_) == list("abcd")
    pd.testing.assert_frame_equal(split.Y_test, labels.iloc[split.test_rows])


def test_test_rows_are_those_of_the_stratified_split(data):
    X, Y = data
    for order in (1, 2):
        split = paper_split(X, Y, order=order, random_state=3)
        _, test = iterative_split_indices(Y, order=order, random_state=3)
        assert_array_equal(split.test_rows, test)


def test_seeds(data):
    first, again, other = (
        paper_split(*data, random_state=seed).validation_rows for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(*(paper_split(*data).test_rows for _ in range(2)))


def test_input_is_not_modified(data):
    X, Y = data
    copies = X.copy(), Y.copy()
    X.flags.writeable = Y.flags.writeable = False
    paper_split(X, Y, random_state=0)
    assert_array_equal(X, copies[0])
    assert_array_equal(Y, copies[1])


def test_three_rows_are_enough():
    split = paper_split([[1], [2], [3]], [[0], [1], [1]], random_state=0)
    assert repr(split) == "PaperSplit(train_rows=1, validation_rows=1, test_rows=1)"


@pytest.mark.parametrize(
    "X, Y, message",
    [
        ([[1], [2]], [[0], [1]], r"Y must have at least 3 rows, .* got 2 row"),
        ([[1]] * 4, [[0], [1], [1]], "same number of rows; got 4 in X and 3 in Y"),
        ([[1]] * 3, [[0], [1], [2]], "Y must be a binary indicator"),
    ],
)
def test_bad_data(X, Y, message):
    with pytest.raises(ValueError, match=message):
        paper_split(X, Y)

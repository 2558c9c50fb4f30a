import numpy as np
import pytest

from clml._learners.kept_folds import _read_folds, _read_learners

ROWS = np.arange(4)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([[ROWS[:2], ROWS[2:]], [ROWS[1:], ROWS[:2]]], "train on what they test"),
        ([[ROWS[:2], ROWS[2:]], [ROWS[3:], ROWS[:1]]], "every row once"),
        (
            [[ROWS[:2], ROWS[2:]], [ROWS[2:], ROWS[:2] - 1]],
            "folds must be pairs of row numbers",
        ),
        ([[ROWS[:2], ROWS[2:]]], "folds must be pairs of row numbers"),
    ],
)
def test_folds_of_a_state_are_honest(folds, message):
    with pytest.raises(ValueError, match=message):
        _read_folds(folds, 4, 2)


def test_folds_come_back():
    folds = [[ROWS[:2], ROWS[2:]], [ROWS[2:], ROWS[:2]]]
    for (train, test), fold in zip(_read_folds(folds, 4, 2), folds, strict=True):
        np.testing.assert_array_equal(train, fold[0])
        np.testing.assert_array_equal(test, fold[1])


@pytest.mark.parametrize("learners", ["01", [], [1, 0], [0, 0], [-1], [0.0], [True]])
def test_learners_of_a_state_are_numbers_in_order(learners):
    with pytest.raises(ValueError, match="learners must be numbers of learners"):
        _read_learners(learners)
    assert _read_learners([0, 2]) == [0, 2]
    assert _read_learners(None) is None

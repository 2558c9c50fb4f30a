import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from clml._support.indicator import check_indicator

LABELS = [[1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    "given",
    [
        LABELS,
        np.array(LABELS, dtype=np.int64),
        np.array(LABELS, dtype=bool),
        np.array(LABELS, dtype=np.float32),
        np.array(LABELS, dtype=object),
        np.asfortranarray(LABELS),
        pd.DataFrame(LABELS, columns=["a", "b", "c"]),
        sp.csr_matrix(LABELS),
        sp.coo_array(LABELS),
        sp.csc_array(np.array(LABELS, dtype=bool)),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form_becomes_a_dense_uint8_indicator(given):
    found = check_indicator(given)
    assert found.dtype == np.uint8
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, LABELS)


def test_read_only_labels_are_accepted_and_kept():
    labels = np.array(LABELS, dtype=np.uint8)
    labels.flags.writeable = False
    np.testing.assert_array_equal(check_indicator(labels), LABELS)
    np.testing.assert_array_equal(labels, LABELS)


def test_no_rows_is_an_indicator():
    assert check_indicator(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0, 2], [1, 0]], r"0 and 1 only, got the values \[0, 1, 2\]"),
        ([[-1, 1]], r"got the values \[-1, 1\]"),
        ([[0.5, 1.0]], r"got the values \[0\.5, 1\.0\]"),
        ([[np.nan, 1.0]], r"got the values \[1\.0, nan\]"),
        ([["a", "b"]], r"got the values \['a', 'b'\]"),
        ([[None, 1]], r"got the values \[1, None\]"),
        (sp.csr_matrix([[0, 3]]), r"got the values \[0, 3\]"),
        (np.arange(9)[None], r"got the values \[0, .*, 7, \.\.\.\] \(9 distinct\)"),
        ([0, 1, 1], r"shape \(rows, labels\).*got shape \(3,\)"),
        (1, r"got shape \(\)"),
        (None, r"got shape \(\)"),
        ([[[0, 1]]], r"got shape \(1, 1, 2\)"),
        (np.zeros((3, 0)), r"at least one label, got shape \(3, 0\)"),
    ],
)
def test_anything_else_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_indicator(given)


@pytest.mark.parametrize("given", [[[0, 2]], [0, 1]])
def test_errors_name_the_argument(given):
    with pytest.raises(ValueError, match=r"^y_val must be"):
        check_indicator(given, "y_val")

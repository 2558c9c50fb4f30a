import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import sparse

from clml.datasets.bunch import label_figures, make_bunch


def test_worked_example():
    Y = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]])
    data = make_bunch(np.zeros((4, 2)), Y)
    assert (data.n_instances, data.n_features, data.n_labels) == (4, 2, 3)
    assert data.feature_names == ["x0", "x1"]
    assert data.label_names == ["y0", "y1", "y2"]
    assert data.cardinality == 5 / 4
    assert data.density == 5 / 12
    assert data.n_label_sets == 3
    assert_array_equal(data.imbalance_ratios, [1, 1.5, np.inf])
    assert data.mean_imbalance_ratio == 1.25
    assert data.Y.dtype == np.int64


@given(
    hnp.arrays(
        np.int64,
        st.tuples(st.integers(1, 12), st.integers(1, 20)),
        elements=st.integers(0, 1),
    )
)
def test_figures_by_definition_dense_and_sparse(Y):
    found = label_figures(Y)
    counts = Y.sum(axis=0)
    assert np.isclose(found["cardinality"], Y.sum(axis=1).mean())
    assert np.isclose(found["density"], Y.mean())
    assert found["n_label_sets"] == len({tuple(row) for row in Y})
    ratios = [counts.max() / count for count in counts if count]
    expected = np.mean(ratios) if ratios else np.nan
    assert_array_equal(found["mean_imbalance_ratio"], expected)
    same = make_bunch(np.zeros((len(Y), 1)), sparse.csc_array(Y))
    for name, value in found.items():
        assert_array_equal(same[name], value)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("values", [[[0.5, 1]], [[-0.3, 1]], [[1.9, 0]], [[2, 0]]])
def test_only_zero_and_one_are_labels(make, values):
    with pytest.raises(ValueError, match=r"only 0 and 1|0 and 1 only"):
        make_bunch(np.zeros((1, 1)), make(values))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feature_names": ["a"]}, "feature_names must name each of the 2 columns"),
        ({"label_names": ["a", "b"]}, "label_names must name each of the 1 columns"),
    ],
)
def test_bad_names(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_bunch(np.zeros((3, 2)), np.ones((3, 1)), **arguments)


def test_rows_must_agree():
    with pytest.raises(ValueError, match="3 in X and 2 in Y"):
        make_bunch(np.zeros((3, 2)), np.ones((2, 1)))

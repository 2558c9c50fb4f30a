import numpy as np
import pytest
import scipy.sparse as sp

from clml.network.wide_kernels import _TOGETHER, multiply_rows


@pytest.mark.parametrize("columns", [1, _TOGETHER - 1, _TOGETHER, 2 * _TOGETHER + 5])
def test_products_of_some_sparse_rows(columns):
    generator = np.random.default_rng(0)
    dense = generator.normal(size=(40, 30)) * (generator.random((40, 30)) < 0.2)
    dense[3] = 0
    X = sp.csr_array(dense.astype(np.float32))
    matrix = generator.normal(size=(30, columns)).astype(np.float32)
    rows = np.array([7, 3, 7, 39, 0])
    out = np.full((len(rows), columns), np.nan, np.float32)
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    multiply_rows(X.data, indices, indptr, rows, matrix, out)
    np.testing.assert_allclose(out, dense[rows] @ matrix, atol=1e-5)
    np.testing.assert_array_equal(out[0], out[2])
    np.testing.assert_array_equal(out[1], 0)

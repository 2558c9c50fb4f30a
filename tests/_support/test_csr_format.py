import numpy as np
import pytest
import scipy.sparse as sp

from clml._support.csr_format import check_csr_parts


def parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr, matrix.shape


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (7, 5)], ids=str)
def test_arrays_of_scipy_are_sound(shape):
    check_csr_parts(*parts(sp.random_array(shape, density=0.4, format="csr", rng=0)))


def test_what_is_beyond_the_last_row_does_not_matter():
    indptr = np.array([0, 1, 1])
    check_csr_parts(np.ones(3), np.array([4, 99, -1]), indptr, (2, 5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": [0, 1, -(2**31)]}, "follow each other"),
        # Differences of 32 bits overflow twice: none of them is negative.
        ({"indptr": [0, 2**31 - 1, -2, 2], "shape": (3, 5)}, "follow each other"),
        ({"indptr": [0, -1, 2]}, "follow each other"),
        ({"indptr": [1, 1, 2]}, "follow each other"),
        ({"indptr": [0, 1, 3]}, "an index for each"),
        ({"indptr": [0, 2]}, "of 2 rows"),
        ({"indptr": [[0, 1, 2]]}, "one axis"),
        ({"indptr": np.array([0.0, 1.0, 2.0])}, "integer"),
        ({"indices": [0, 5]}, "below 5"),
        ({"indices": [-1, 0]}, "below 5"),
        ({"indices": [0]}, "an index for each"),
        ({"data": [1.0]}, "an index for each"),
        ({"shape": (2, -5)}, "of 2 rows"),
        ({"shape": (2**40, 5)}, "of 1099511627776 rows"),
    ],
    ids=str,
)
def test_unsound_parts(changes, message):
    given = {"data": [1.0, 2.0], "indices": [0, 4], "indptr": [0, 1, 2]} | changes
    shape = given.pop("shape", (2, 5))
    arrays = [np.asarray(value) for value in given.values()]
    arrays = [a.astype(np.int32) if a.dtype == np.int64 else a for a in arrays]
    with pytest.raises(ValueError, match=message):
        check_csr_parts(*arrays, shape)


def test_why_the_check_of_scipy_is_not_enough():
    """If this fails SciPy has learnt it, and the module may go."""
    indptr = np.array([0, 2**31 - 1, -2, 2], dtype=np.int32)
    matrix = sp.csr_array((3, 5))
    matrix.data, matrix.indices = np.ones(2), np.zeros(2, dtype=np.int32)
    matrix.indptr = indptr
    matrix.check_format(full_check=True)

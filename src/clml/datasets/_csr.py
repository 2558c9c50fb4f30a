"""CSR arrays as learners want them: sorted, with indices of 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

LARGEST_INDEX = 2**31 - 1


def csr_of(data: NDArray, indices: Any, ends: Any, n_columns: int) -> sparse.csr_array:
    """Return the sorted CSR array of entries by rows.

    Many learners refuse indices of 64 bits, so these are of 32 where they fit.

    Parameters
    ----------
    data : array (n_entries,)
        Not copied; sorted in place.
    indices : integer array (n_entries,)
    ends : integer array (n_rows + 1,)
    n_columns : int

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets._csr import csr_of
    >>> matrix = csr_of(np.array([2.0, 1.0]), np.array([5, 3]), np.array([0, 2]), 6)
    >>> matrix.indices
    array([3, 5], dtype=int32)
    """
    if len(data) <= LARGEST_INDEX and n_columns <= LARGEST_INDEX:
        indices = np.array(indices, dtype=np.int32)
        ends = np.array(ends, dtype=np.int32)
    matrix = sparse.csr_array((data, indices, ends), shape=(len(ends) - 1, n_columns))
    matrix.sort_indices()
    return matrix

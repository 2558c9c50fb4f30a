"""Label indicators: the one check that a matrix of labels holds 0 and 1 only."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def check_indicator(labels: Any, argument: str = "Y") -> NDArray[np.uint8]:
    """Return a label matrix as a dense uint8 indicator, or say what it holds.

    Parameters
    ----------
    labels : array-like or sparse matrix of shape (n, K), K at least 1
    argument : str
        What to call it in an error.
    """
    values = labels.toarray() if sp.issparse(labels) else np.asarray(labels)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"{argument} must be an indicator of shape (rows, labels) with at least "
            f"one label, got shape {values.shape}."
        )
    if not _is_binary(values):
        raise ValueError(
            f"{argument} must be a binary indicator that holds 0 and 1 only, "
            f"got the values {_distinct(values)}."
        )
    return np.ascontiguousarray(values, dtype=np.uint8)


def check_sparse_indicator(labels: Any, argument: str = "Y") -> sp.csr_array:
    """Return a sparse label matrix as the CSR array of its ones, or say what it holds.

    Parameters
    ----------
    labels : sparse matrix of shape (n, K), K at least 1
        Not changed. Entries that stand twice are added, stored zeros left out.
    argument : str
        What to call it in an error.
    """
    if len(labels.shape) != 2 or labels.shape[1] == 0:
        raise ValueError(
            f"{argument} must be a label indicator of shape (n_samples, n_labels) with "
            f"at least one label; got shape {labels.shape}."
        )
    # A copy, because the clean-up below works in place.
    positives = sp.csr_array(labels, copy=True)
    positives.sum_duplicates()
    positives.eliminate_zeros()
    bad = np.flatnonzero(positives.data != 1)
    if bad.size:
        row = np.searchsorted(positives.indptr, bad[0], side="right") - 1
        raise ValueError(
            f"{argument} must contain only 0 and 1; got {positives.data[bad[0]]} at "
            f"row {row}, column {positives.indices[bad[0]]}."
        )
    return positives


def _is_binary(values: NDArray) -> bool:
    if values.dtype == object:  # frames of nullable or mixed columns
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            return False
    return bool(((values == 0) | (values == 1)).all())


def _distinct(values: NDArray, most: int = 8) -> str:
    if values.dtype == object:
        seen = sorted({repr(value) for value in values.ravel()})
    else:
        seen = [repr(value.item()) for value in np.unique(values)]
    shown = ", ".join(seen[:most])
    more = f", ...] ({len(seen)} distinct)" if len(seen) > most else "]"
    return f"[{shown}{more}"

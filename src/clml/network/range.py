"""Which features a network can compute with, and which it cannot tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._scaling import Scaling

# Scaled features up to this size leave room for weights, sums and the squares that the
# activation takes of these: the largest float32 is 3e38, the largest float64 2e308.
LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e100}
# Rows that differ by a smaller share of their entries are one row in float32, of which
# the sums keep some six digits.
_LEAST_CONTRAST = 1e-6
# Numbers that are scaled together: what is in memory beside the features is small.
_TOGETHER = 1 << 18


def scaled_features(
    X: NDArray, scaling: Scaling, dtype: Any, n_more: int = 0
) -> NDArray:
    """Return dense features, scaled, in a precision that holds what is made of them.

    Parameters
    ----------
    X : array (n, D)
    scaling : Scaling
    dtype : numpy dtype
        Float32 or float64.
    n_more : int, default=0
        Columns at the end that are left for the caller to fill.

    Returns
    -------
    array (n, D + n_more)

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import Scaling, scaled_features
    >>> X = np.array([[1.0], [3.0]])
    >>> scaled_features(X, Scaling.fit(X), np.float32)
    array([[-1.],
           [ 1.]], dtype=float32)
    """
    n, d = X.shape
    scaled: NDArray = np.empty((n, d + n_more), dtype=dtype)
    step = max(_TOGETHER // max(d, 1), 1)
    for start in range(0, n if d else 0, step):
        some = slice(start, start + step)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            piece = scaling.apply(X[some])
        low, high = piece.min(), piece.max()
        largest = LARGEST[np.dtype(dtype)]
        if not (-largest <= low and high <= largest):
            raise _out_of_range(X, dtype)
        scaled[some, :d] = piece
    return scaled


def check_sparse_range(X: Any, scaling: Scaling, dtype: Any) -> None:
    """Refuse sparse features that a precision cannot hold once they are scaled.

    Parameters
    ----------
    X : CSR matrix (n, D)
    scaling : Scaling
    dtype : numpy dtype
        Float32 or float64.
    """
    largest = LARGEST[np.dtype(dtype)]
    mean, scale = scaling.mean, scaling.scale
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.abs(X.data).max(initial=0.0) + np.abs(mean).max(initial=0.0)
        if reach / scale.min(initial=np.inf) <= largest:
            return  # so is every entry
        entries = np.abs((X.data - mean[X.indices]) / scale[X.indices])
        # Entries of 0 are not stored; the products that they enter are float64.
        zeros = np.abs(mean / scale).max(initial=0.0)
    double = LARGEST[np.dtype(np.float64)]
    if not (entries.max(initial=0.0) <= largest and zeros <= double):
        raise _out_of_range(X, dtype)


def _out_of_range(X: Any, dtype: Any) -> ValueError:
    data = X.data if sp.issparse(X) else X
    size = max(abs(float(data.min(initial=0.0))), abs(float(data.max(initial=0.0))))
    return ValueError(
        "X must stay finite when scaled, weighted and squared in "
        f"{np.dtype(dtype).name}, got values up to {size:.3g}. At most "
        f"{LARGEST[np.dtype(dtype)]:.0e} is possible once they are scaled, which "
        "standardize=True does as the rows that train say."
    )


def describe_contrast(X: Any, scaling: Scaling) -> str | None:
    """Say why a network could not tell rows apart, if it could not.

    Weights and biases are of size 1 and their sums are float32: where rows differ by
    less than that precision, whatever is learnt predicts the same for all of them.

    Parameters
    ----------
    X : array or sparse matrix (n, D)
        The rows that train.
    scaling : Scaling

    Returns
    -------
    str or None

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import Scaling, describe_contrast
    >>> X = np.array([[1e-9, 0.0], [0.0, 2e-9]])
    >>> describe_contrast(X, Scaling.fit(X)) is None
    True
    >>> print(describe_contrast(X, Scaling.identity(2)))
    The rows of X differ by 2e-09 at most, beside numbers of size 1, which float32 \
cannot tell apart: all predictions will be the same. Set standardize=True, or scale X.
    """
    if X.shape[0] < 2 or X.shape[1] == 0:
        return None
    if sp.issparse(X):
        low, high = (m.toarray().ravel() for m in (X.min(axis=0), X.max(axis=0)))
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float((high / scaling.scale - low / scaling.scale).max())
        ends = np.stack([scaling.apply(low), scaling.apply(high)])
        size = max(1.0, float(np.abs(ends).max()))
    if (high == low).all():
        return (
            "No column of X varies between the rows that train: all predictions will "
            "be the same."
        )
    if spread > _LEAST_CONTRAST * size:
        return None
    return (
        f"The rows of X differ by {spread:.3g} at most, beside numbers of size "
        f"{size:.3g}, which float32 cannot tell apart: all predictions will be the "
        "same. Set standardize=True, or scale X."
    )

"""Splits of multi-label rows that keep every label's share in every part."""

from math import ceil
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .first_order import Integers
from .stratify import (
    RandomSource,
    check_order,
    check_refine,
    positive_entries,
    random_source,
    stratified_parts,
)


def _n_test_rows(n_samples: int, test_size: float) -> int:
    if isinstance(test_size, bool) or not isinstance(test_size, Real):
        raise TypeError(
            f"test_size must be a number in (0, 1); got {test_size!r} of type "
            f"{type(test_size).__name__}."
        )
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must lie in (0, 1); got {test_size!r}.")
    if n_samples < 2:
        raise ValueError(
            f"Y must have at least 2 rows to be split; got {n_samples} row(s)."
        )
    return min(max(ceil(test_size * n_samples), 1), n_samples - 1)


def iterative_split_indices(
    Y: Any,
    *,
    test_size: float = 0.3,
    order: int = 1,
    refine: bool = True,
    random_state: RandomSource = None,
) -> tuple[Integers, Integers]:
    """Split row numbers in two so that each label keeps its share in both.

    Iterative stratification. First order [1]_: the label with the fewest rows
    left is dealt with first, each of its rows going to the part that still
    wants that label most; rows without labels fill up what is left. Second order
    [2]_: the same with pairs of labels that occur together, then with single labels
    for the rows that carry just one.

    Parameters
    ----------
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Label indicator with values 0 and 1.
    test_size : float, default=0.3
        Share of the rows in the test part, in (0, 1). The part has exactly
        ``ceil(test_size * n_samples)`` rows, as in scikit-learn, but at least
        one and at most ``n_samples - 1``.
    order : {1, 2}, default=1
        1 looks at single labels, 2 at pairs of labels first.
    refine : bool, default=True
        Exchange rows after dealing them, where that is more even.
    random_state : int, RandomState, Generator or None, default=None
        Decides the order of rows and all ties. An int gives the same split at
        every call; None draws fresh entropy. NumPy's global random state is
        neither read nor changed.

    Returns
    -------
    train, test : ndarray of int64
        Row numbers of the two parts, ascending; together every row once.

    Notes
    -----
    The original lets part sizes drift; here a part that has reached its size
    takes no more rows, and the sizes are exact. They come first: for given labels a
    part of another size may divide them more evenly.

    Ties between equally rare labels are broken at random, as are those between
    parts that want a label equally and have equally many rows to receive. A
    label that is never positive does not influence the split.

    With ``refine`` what is dealt is then mended, which the original does not do: rows
    that carry different labels change places wherever that brings the labels (and with
    ``order=2`` the pairs) nearer to their shares. Single labels are most even with
    ``order=1``.

    Rows are not all equally likely to be tested: the only row of a label goes to the
    larger part, whatever the seed. With ``order=2`` rows of rare pairs are tested less
    often than others.

    References
    ----------
    .. [1] K. Sechidis, G. Tsoumakas, I. Vlahavas, "On the Stratification of
       Multi-Label Data", ECML PKDD 2011.
    .. [2] P. Szymański, T. Kajdanowicz, "A Network Perspective on Stratification of
       Multi-Label Data", LIDTA 2017, PMLR 74.

    Examples
    --------
    Both labels are divided evenly, and so are the rows without any:

    >>> import numpy as np
    >>> from clml.datasets import iterative_split_indices
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]])
    >>> train, test = iterative_split_indices(Y, test_size=0.5, random_state=0)
    >>> Y[train].sum(axis=0), Y[test].sum(axis=0)
    (array([1, 1]), array([1, 1]))
    """
    order, refine = check_order(order), check_refine(refine)
    positives = positive_entries(Y)
    n_samples = positives.shape[0]
    n_test = _n_test_rows(n_samples, test_size)
    capacities = np.array([n_samples - n_test, n_test], dtype=np.int64)
    generator = random_source(random_state)
    parts = stratified_parts(positives, capacities, generator, order, refine)
    return (
        np.flatnonzero(parts == 0).astype(np.int64, copy=False),
        np.flatnonzero(parts == 1).astype(np.int64, copy=False),
    )


def rows_of(data: Any, indices: Integers) -> Any:
    """Return a copy of these rows of an array, a sparse matrix or a frame."""
    # Not every sparse format can be indexed by rows.
    return _safe_indexing(data.tocsr() if sparse.issparse(data) else data, indices)


def iterative_train_test_split(
    X: Any,
    Y: Any,
    *,
    test_size: float = 0.3,
    order: int = 1,
    refine: bool = True,
    random_state: RandomSource = None,
) -> tuple[Any, Any, Any, Any]:
    """Split data in two so that each label keeps its share in both parts.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Features; only their rows are looked at.
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Label indicator with values 0 and 1.
    test_size : float, default=0.3
        Share of the rows in the test part, in (0, 1). The part has exactly
        ``ceil(test_size * n_samples)`` rows, as in scikit-learn, but at least
        one and at most ``n_samples - 1``.
    order : {1, 2}, default=1
        1 looks at single labels, 2 at pairs of labels first.
    refine : bool, default=True
        Exchange rows after dealing them, where that is more even.
    random_state : int, RandomState, Generator or None, default=None
        Decides the order of rows and all ties. An int gives the same split at
        every call; None draws fresh entropy. NumPy's global random state is
        neither read nor changed.

    Returns
    -------
    X_train, X_test, Y_train, Y_test : same types as X and Y
        Copies, their rows in the original order. Sparse parts are CSR.

    See Also
    --------
    iterative_split_indices : The row numbers of the same split, and the method.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets import iterative_train_test_split
    >>> X = np.arange(12).reshape(6, 2)
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1]])
    >>> X_train, X_test, Y_train, Y_test = iterative_train_test_split(
    ...     X, Y, test_size=0.5, random_state=0
    ... )
    >>> X_train.shape, X_test.shape
    ((3, 2), (3, 2))
    >>> Y_train.sum(axis=0), Y_test.sum(axis=0)
    (array([2, 2]), array([2, 2]))
    """
    n_samples, n_indicators = _num_samples(X), _num_samples(Y)
    if n_samples != n_indicators:
        raise ValueError(
            "X and Y must have the same number of rows; got "
            f"{n_samples} in X and {n_indicators} in Y."
        )
    train, test = iterative_split_indices(
        Y,
        test_size=test_size,
        order=order,
        refine=refine,
        random_state=random_state,
    )
    return rows_of(X, train), rows_of(X, test), rows_of(Y, train), rows_of(Y, test)

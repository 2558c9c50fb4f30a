"""Splits of multi-label rows that keep every label's share in every part."""

from math import ceil
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from .._compiled import compiled
from .._indicator import check_indicator

Integers = npt.NDArray[np.int64]
RandomSource = None | int | np.random.RandomState | np.random.Generator


def _random_source(
    random_state: RandomSource,
) -> np.random.RandomState | np.random.Generator:
    if random_state is None:
        # check_random_state(None) would read, and advance, numpy's global state.
        return np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def _sparse_positives(Y: Any) -> sparse.csr_array:
    if len(Y.shape) != 2 or Y.shape[1] == 0:
        raise ValueError(
            "Y must be a label indicator of shape (n_samples, n_labels) with at "
            f"least one label; got shape {Y.shape}."
        )
    # A copy, because the clean-up below works in place.
    positives = sparse.csr_array(Y, copy=True)
    positives.sum_duplicates()
    positives.eliminate_zeros()
    bad = np.flatnonzero(positives.data != 1)
    if bad.size:
        row = np.searchsorted(positives.indptr, bad[0], side="right") - 1
        raise ValueError(
            f"Y must contain only 0 and 1; got {positives.data[bad[0]]} at row {row}, "
            f"column {positives.indices[bad[0]]}."
        )
    return positives


def _positives(Y: Any) -> sparse.csr_array:
    """Return the positive entries of a label indicator, checked, in row order."""
    if sparse.issparse(Y):
        return _sparse_positives(Y)
    return sparse.csr_array(check_indicator(Y).astype(bool))


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


@compiled
def _choose_part(desire: Integers, room: Integers, tie_break: float) -> int:
    best = -1
    n_tied = 0
    for part in range(room.shape[0]):
        if room[part] == 0:
            continue
        if (
            best < 0
            or desire[part] > desire[best]
            or (desire[part] == desire[best] and room[part] > room[best])
        ):
            best = part
            n_tied = 1
        elif desire[part] == desire[best] and room[part] == room[best]:
            n_tied += 1
    if n_tied > 1:
        skip = int(tie_break * n_tied)
        for part in range(best, room.shape[0]):
            if desire[part] == desire[best] and room[part] == room[best]:
                if skip == 0:
                    return part
                skip -= 1
    return best


@compiled
def _hand_out(
    row_pointers: Integers,
    row_labels: Integers,
    label_pointers: Integers,
    label_rows: Integers,
    capacities: Integers,
    label_priority: Integers,
    tie_breaks: npt.NDArray[np.float64],
) -> Integers:
    """Give every row to one part.

    The indicator comes by rows (CSR: ``row_pointers``, ``row_labels``) and by
    labels (CSC: ``label_pointers``, ``label_rows``). ``capacities`` (one per
    part) sum to the number of rows. ``label_priority`` orders labels that are
    equally rare, ``tie_breaks`` (one per row, in [0, 1)) chooses among parts
    that are equally keen.
    """
    n_rows = row_pointers.shape[0] - 1
    n_labels = label_pointers.shape[0] - 1
    n_parts = capacities.shape[0]
    parts = np.full(n_rows, -1, dtype=np.int64)
    room = capacities.copy()
    remaining = np.empty(n_labels, dtype=np.int64)
    # A part's desire for a label is (capacity / n_rows) * positives - received.
    # Kept times n_rows it is an integer, and rounding decides no tie.
    desire = np.empty((n_labels, n_parts), dtype=np.int64)
    for label in range(n_labels):
        remaining[label] = label_pointers[label + 1] - label_pointers[label]
        for part in range(n_parts):
            desire[label, part] = capacities[part] * remaining[label]

    # Each pass uses one label up, so there are at most n_labels of them.
    for _ in range(n_labels):
        rarest = -1
        for label in range(n_labels):
            if remaining[label] == 0:
                continue
            if (
                rarest < 0
                or remaining[label] < remaining[rarest]
                or (
                    remaining[label] == remaining[rarest]
                    and label_priority[label] < label_priority[rarest]
                )
            ):
                rarest = label
        if rarest < 0:
            break
        for position in range(label_pointers[rarest], label_pointers[rarest + 1]):
            row = label_rows[position]
            if parts[row] >= 0:
                continue
            part = _choose_part(desire[rarest], room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
            for entry in range(row_pointers[row], row_pointers[row + 1]):
                remaining[row_labels[entry]] -= 1
                desire[row_labels[entry], part] -= n_rows

    for row in range(n_rows):
        if parts[row] < 0:
            part = _choose_part(room, room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
    return parts


def _stratified_parts(
    positives: sparse.csr_array,
    capacities: Integers,
    generator: np.random.RandomState | np.random.Generator,
) -> Integers:
    """Return the part of each row, shape (n_samples,).

    ``positives`` holds the positive entries of the indicator and nothing else;
    ``capacities``, shape (n_parts,), sum to the number of rows.
    """
    n_samples, n_labels = positives.shape
    # Rows of one label are interchangeable to the method; taking them in random
    # order keeps the file's order out of the split.
    shuffled_rows = generator.permutation(n_samples)
    label_priority = generator.permutation(n_labels)
    tie_breaks = generator.random(n_samples)
    by_row = positives[shuffled_rows]
    by_label = by_row.tocsc()
    shuffled_parts = _hand_out(
        by_row.indptr.astype(np.int64),
        by_row.indices.astype(np.int64),
        by_label.indptr.astype(np.int64),
        by_label.indices.astype(np.int64),
        capacities,
        label_priority.astype(np.int64),
        tie_breaks,
    )
    parts = np.empty(n_samples, dtype=np.int64)
    parts[shuffled_rows] = shuffled_parts
    return parts


def iterative_split_indices(
    Y: Any, *, test_size: float = 0.3, random_state: RandomSource = None
) -> tuple[Integers, Integers]:
    """Split row numbers in two so that each label keeps its share in both.

    First-order iterative stratification [1]_: the label with the fewest rows
    left is dealt with first, each of its rows going to the part that still
    wants that label most; rows without labels fill up what is left.

    Parameters
    ----------
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Label indicator with values 0 and 1.
    test_size : float, default=0.3
        Share of the rows in the test part, in (0, 1). The part has exactly
        ``ceil(test_size * n_samples)`` rows, as in scikit-learn, but at least
        one and at most ``n_samples - 1``.
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
    takes no more rows, and the sizes are exact.

    Ties between equally rare labels are broken at random, as are those between
    parts that want a label equally and have equally many rows to receive. A
    label that is never positive does not influence the split.

    References
    ----------
    .. [1] K. Sechidis, G. Tsoumakas, I. Vlahavas, "On the Stratification of
       Multi-Label Data", ECML PKDD 2011.

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
    positives = _positives(Y)
    n_samples = positives.shape[0]
    n_test = _n_test_rows(n_samples, test_size)
    capacities = np.array([n_samples - n_test, n_test], dtype=np.int64)
    parts = _stratified_parts(positives, capacities, _random_source(random_state))
    return (
        np.flatnonzero(parts == 0).astype(np.int64, copy=False),
        np.flatnonzero(parts == 1).astype(np.int64, copy=False),
    )


def _rows(data: Any, indices: Integers) -> Any:
    # Not every sparse format can be indexed by rows.
    return _safe_indexing(data.tocsr() if sparse.issparse(data) else data, indices)


def iterative_train_test_split(
    X: Any, Y: Any, *, test_size: float = 0.3, random_state: RandomSource = None
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
        Y, test_size=test_size, random_state=random_state
    )
    return _rows(X, train), _rows(X, test), _rows(Y, train), _rows(Y, test)

"""Cross-validation folds that keep every label's share."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
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


def _check_n_splits(n_splits: Any) -> int:
    if isinstance(n_splits, bool) or not isinstance(n_splits, Integral):
        raise TypeError(
            f"n_splits must be an integer of at least 2; got {n_splits!r} of type "
            f"{type(n_splits).__name__}."
        )
    if n_splits < 2:
        raise ValueError(f"n_splits must be at least 2; got {n_splits}.")
    return int(n_splits)


class IterativeStratifiedKFold(BaseCrossValidator):
    """Folds of multi-label rows in which every label keeps its share.

    A scikit-learn splitter: ``cv=IterativeStratifiedKFold()`` works wherever
    scikit-learn takes a ``cv``. Fold sizes differ by at most one row.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    order : {1, 2}, default=1
        1 looks at single labels, 2 at pairs of labels first; see
        :func:`iterative_split_indices` for the method.
    refine : bool, default=True
        Exchange rows after dealing them, where that is more even.
    shuffle : bool, default=True
        Take rows, and break ties, in random order. If False the folds follow from
        the labels and the order of the rows alone.
    random_state : int, RandomState, Generator or None, default=None
        An int gives the same folds at every call of ``split``; None draws fresh
        entropy each time. NumPy's global random state is neither read nor changed.
        Must be None if ``shuffle`` is False.

    See Also
    --------
    iterative_train_test_split : One division into two parts.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets import IterativeStratifiedKFold
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]])
    >>> folds = IterativeStratifiedKFold(n_splits=2, random_state=0)
    >>> for train, test in folds.split(Y, Y):
    ...     print(Y[test].sum(axis=0), len(test))
    [1 1] 3
    [1 1] 3

    In cross-validation:

    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> folds = IterativeStratifiedKFold(n_splits=3, random_state=0)
    >>> cross_val_score(KNeighborsClassifier(), X, Y, cv=folds).shape
    (3,)
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        order: int = 1,
        refine: bool = True,
        shuffle: bool = True,
        random_state: RandomSource = None,
    ) -> None:
        # Checked here and not in split, as scikit-learn's splitters do.
        self.n_splits = _check_n_splits(n_splits)
        self.order = check_order(order)
        self.refine = check_refine(refine)
        if not isinstance(shuffle, bool):
            raise TypeError(f"shuffle must be True or False; got {shuffle!r}.")
        if not shuffle and random_state is not None:
            raise ValueError(
                "random_state must be None if shuffle is False, because nothing is "
                f"random then; got random_state={random_state!r}."
            )
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are ignored.

        Parameters
        ----------
        X, y, groups : object, default=None
            For compatibility.

        Returns
        -------
        n_splits : int
        """
        return self.n_splits

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[Integers, Integers]]:
        """Yield the row numbers of the training and the test part of each fold.

        Parameters
        ----------
        X : array-like of length n_samples
            Only its number of rows is looked at.
        y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
            Label indicator with values 0 and 1.
        groups : object, default=None
            Ignored, for compatibility.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers, ascending; every row is in one test part.
        """
        parts = self._parts(X, y)
        for fold in range(self.n_splits):
            test = parts == fold
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def _parts(self, X: Any, y: Any) -> Integers:
        if y is None:
            raise ValueError(
                "y must be a label indicator of shape (n_samples, n_labels); got None."
            )
        positives = positive_entries(y, "y")
        n_samples = positives.shape[0]
        if _num_samples(X) != n_samples:
            raise ValueError(
                "X and y must have the same number of rows; got "
                f"{_num_samples(X)} in X and {n_samples} in y."
            )
        if self.n_splits > n_samples:
            raise ValueError(
                f"n_splits={self.n_splits} must not be greater than the number of "
                f"rows; got {n_samples}."
            )
        capacities = np.full(self.n_splits, n_samples // self.n_splits, dtype=np.int64)
        capacities[: n_samples % self.n_splits] += 1
        generator = random_source(self.random_state) if self.shuffle else None
        return stratified_parts(
            positives, capacities, generator, self.order, self.refine
        )

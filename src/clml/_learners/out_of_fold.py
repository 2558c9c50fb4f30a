"""Scores of rows from learners that did not see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from .._base.twins import told_of_twins
from ..splits import IterativeStratifiedKFold
from .bare_models import bare_models
from .scores import label_logits

#: Row numbers of the training and of the test part.
Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


def _tell_nobody(fold: int, scores: NDArray[np.float64], seconds: float) -> None:
    pass


@dataclass(frozen=True)
class FoldScores:
    """Scores of test parts that are known from before, and who is told of others.

    Attributes
    ----------
    known : mapping of a fold's number to a float64 array (rows, K)
    tell : callable
        Called with the number, the scores and the seconds of each other fold.
    seconds : mapping of a fold's number to float
        That the known ones took.
    """

    known: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)
    tell: Callable[[int, NDArray[np.float64], float], None] = _tell_nobody
    seconds: Mapping[int, float] = field(default_factory=dict)


def folds(cv: Any, X: Any, Y: NDArray, random_state: int | None = None) -> list[Fold]:
    """Return the folds of a fit: every row is tested once, by what did not see it.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test), or None
        A number of stratified folds, None for 5; or how to make them.
    X : features of n rows
        Only a splitter looks at more than their number.
    Y : array (n, K)
    random_state : int, default=None
        Of stratified folds. They depend on this and Y alone.

    Returns
    -------
    list of pairs of int64 arrays

    Examples
    --------
    >>> import numpy as np
    >>> from clml._learners.out_of_fold import folds
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> [test.tolist() for _, test in folds(2, Y, Y, random_state=0)]
    [[0, 3], [1, 2]]
    """
    cv = 5 if cv is None else cv
    n = len(Y)
    if isinstance(cv, Integral):
        if n < int(cv):
            raise ValueError(
                f"cv={cv} needs at least {cv} rows of positive weight, "
                f"got n_samples={n}."
            )
        cv = IterativeStratifiedKFold(int(cv), random_state=random_state)
    pairs = cv
    if hasattr(cv, "split"):
        # A splitter of scikit-learn takes one label as an ordinary target.
        flat = Y.shape[1] == 1 and not isinstance(cv, IterativeStratifiedKFold)
        pairs = cv.split(X, Y[:, 0] if flat else Y)
    made = [(_row_numbers(a, n), _row_numbers(b, n)) for a, b in pairs]
    _check_partition(made, n)
    return made


def fold_of_rows(made: Sequence[Fold]) -> NDArray[np.int64]:
    """Return for each row the number of the fold that tests it."""
    tests = [test for _, test in made]
    found = np.empty(sum(map(len, tests)), dtype=np.int64)
    for number, test in enumerate(tests):
        found[test] = number
    return found


def _row_numbers(rows: Any, n: int) -> NDArray[np.int64]:
    """Return rows that were given as numbers or as a mask; refuse what is neither."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (n,):
        return np.flatnonzero(given)
    if not given.size:
        return np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"cv must give rows as numbers from 0 to {n - 1}, or as a mask of {n}; got "
            f"an array of the shape {given.shape} and the type {given.dtype}."
        )
    if given.min() < 0 or given.max() >= n:
        wrong = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"cv must give rows from 0 to {n - 1}, got row {wrong}.")
    return given.astype(np.int64)


def _check_partition(made: Sequence[Fold], n: int) -> None:
    for number, (train, test) in enumerate(made):
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(
                "cv must not train on rows that it tests: what is scored then has been "
                f"seen. Got row {both[0]} in both parts of fold {number}, and "
                f"{len(both) - 1} more."
            )
    tests = [test for _, test in made]
    counts = np.bincount(np.concatenate([*tests, np.empty(0, int)]), minlength=n)
    odd = np.flatnonzero(counts != 1)
    if len(odd):
        raise ValueError(
            "cv must put every row into exactly one test part, "
            f"got row {odd[0]} in {counts[odd[0]]} of {len(made)}."
        )


def check_takes_weight(estimator: Any, weight: Any) -> None:
    """Refuse weights that the fit of an estimator has no use for."""
    _weight_arguments(estimator, weight)


def _weight_arguments(
    estimator: Any, weight: NDArray[np.float64] | None
) -> dict[str, Any]:
    if weight is None or isinstance(estimator, FrozenEstimator):
        return {}
    routed = get_config().get("enable_metadata_routing", False)
    if routed or has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weight}
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = _weight_arguments(last, weight)
        return {f"{name}__{key}": value for key, value in inner.items()}
    if type(estimator).__name__ == "OneVsRestClassifier":  # only where they are routed
        raise ValueError(
            "sample_weight was given, but the fit of OneVsRestClassifier, which copies "
            f"{type(estimator.estimator).__name__} for each label, takes none. "
            "sklearn.multioutput.MultiOutputClassifier does."
        )
    if any(
        p.kind is p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values()
    ):
        return {"sample_weight": weight}
    raise ValueError(
        f"sample_weight was given, but the fit of {type(estimator).__name__} takes "
        "none."
    )


def fit_learner(
    estimator: Any, X: Any, y: NDArray, weight: NDArray[np.float64] | None = None
) -> Any:
    """Return a clone, fitted; a frozen estimator stays as it is."""
    with told_of_twins():
        return clone(estimator).fit(X, y, **_weight_arguments(estimator, weight))


def fold_logits(
    estimator: Any,
    X: Any,
    y: NDArray,
    fold: Fold,
    weight: NDArray[np.float64] | None,
    n_labels: int,
) -> NDArray[np.float64]:
    """Return logits (rows, K) of the rows that a fold tests, from a fitted clone.

    Parameters
    ----------
    estimator : estimator of scikit-learn
    X : features of n rows, of whatever kind the estimator takes
    y : int array (n, K), or (n,) for one label
    fold : (train, test)
    weight : float64 array (n,) or None
    n_labels : int
    """
    train, test = fold
    # It knows of kernels between rows, of which it takes rows and columns.
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, None, test, train)
    given = None if weight is None else weight[train]
    with bare_models() if _is_clml(estimator) else nullcontext():
        fitted = fit_learner(estimator, X_train, y_train, given)
    # A forest's threads add up their trees in the order that they come, and round so.
    with parallel_config(backend="sequential"):
        return label_logits(fitted, X_test, n_labels)


def _is_clml(estimator: Any) -> bool:
    """Tell whether a learner is a CLMLClassifier, and not one that makes use of it."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return type(estimator).__module__ == "clml._classifier"


def finite_scores(
    logits: NDArray[np.float64], estimator: Any, rows: NDArray | None = None
) -> NDArray[np.float64]:
    """Return scores as they are; refuse those that are not finite.

    Parameters
    ----------
    logits : float64 array (n, K)
    estimator : estimator
        Whose scores they are, for the message.
    rows : int array (n,), default=None
        Their numbers, for the message; None for all rows.
    """
    bad = np.argwhere(~np.isfinite(logits))
    if len(bad):
        row, label = bad[0].tolist()
        raise ValueError(
            f"The scores of {type(estimator).__name__} must be finite, "
            f"got {logits[row, label]} for row {row if rows is None else rows[row]}, "
            f"label {label}."
        )
    return logits

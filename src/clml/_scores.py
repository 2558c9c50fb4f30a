"""One matrix of scores from any fitted multi-label estimator of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def label_scores(estimator: Any, X: Any, n_labels: int) -> NDArray[np.float64]:
    """Return scores (n, K) that rank labels and are positive for likely ones.

    Estimators answer in several forms: one array (n, K) of decisions or
    probabilities, or a list of K arrays (n, classes) in which a label that never
    varied has one column. Decisions are taken before probabilities, which saturate.

    Parameters
    ----------
    estimator : fitted estimator
        With ``decision_function`` or ``predict_proba``, fitted on an indicator.
    X : features that it takes
    n_labels : int
        K, the number of columns that it was fitted on.

    Returns
    -------
    float64 array of shape (n, K)
        Decisions, or probabilities less 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml._scores import label_scores
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[0, 1], [1, 1]])
    >>> label_scores(KNeighborsClassifier(1).fit(X, Y), X, n_labels=2)
    array([[-0.5,  0.5],
           [ 0.5,  0.5]])
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if n_labels == 1 and scores.ndim == 1:
            scores = scores[:, None]
    elif hasattr(estimator, "predict_proba"):
        scores = _probabilities(estimator, X, n_labels) - 0.5
    else:
        raise TypeError(
            f"{type(estimator).__name__} has neither decision_function nor "
            "predict_proba, so it has no scores."
        )
    if scores.ndim != 2 or scores.shape[1] != n_labels:
        raise ValueError(
            f"The scores of {type(estimator).__name__} must be of shape (rows, "
            f"{n_labels}), got {scores.shape}. It may have been fitted on another y."
        )
    return scores


def _probabilities(estimator: Any, X: Any, n_labels: int) -> NDArray[np.float64]:
    given, classes = estimator.predict_proba(X), estimator.classes_
    if not isinstance(given, list):
        if n_labels > 1:
            return np.asarray(given, dtype=np.float64)
        # A single label is an ordinary target to most estimators, with a column for
        # each class that occurred.
        given, classes = [given], [classes] if np.ndim(classes[0]) == 0 else classes
    return np.column_stack(
        [_probability_of_one(p, c) for p, c in zip(given, classes, strict=True)]
    )


def _probability_of_one(columns: NDArray, classes: NDArray) -> NDArray:
    """Return the column of class 1; zeros where the label was never positive."""
    if columns.shape[1] != len(classes):  # that of an indicator's only column
        return columns[:, 0]
    (place,) = np.nonzero(np.asarray(classes) == 1)
    return columns[:, place[0]] if len(place) else np.zeros(len(columns))

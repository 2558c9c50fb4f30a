"""One matrix of scores from any fitted multi-label estimator of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def label_scores(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return scores (n, K) that rank labels and are positive for likely ones.

    Estimators answer in several forms: one array (n, K) of decisions or
    probabilities, or a list of K arrays (n, classes) in which a label that never
    varied has one column. Decisions are taken before probabilities, which saturate.

    Parameters
    ----------
    estimator : fitted estimator
        With ``decision_function`` or ``predict_proba``, fitted on an indicator.
    X : features that it takes

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
    >>> label_scores(KNeighborsClassifier(1).fit(X, Y), X)
    array([[-0.5,  0.5],
           [ 0.5,  0.5]])
    """
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
    else:
        probability = estimator.predict_proba(X)
        if isinstance(probability, list):
            probability = np.column_stack(
                [
                    _probability_of_one(columns, classes)
                    for columns, classes in zip(
                        probability, estimator.classes_, strict=True
                    )
                ]
            )
        scores = probability - 0.5
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError(
            f"The scores of {type(estimator).__name__} must be of shape (rows, "
            f"labels), got {scores.shape}. It may have been fitted on a 1-D y."
        )
    return scores


def _probability_of_one(columns: NDArray, classes: NDArray) -> NDArray:
    """Return the column of class 1; zeros where the label was never positive."""
    (place,) = np.nonzero(np.asarray(classes) == 1)
    return columns[:, place[0]] if len(place) else np.zeros(len(columns))

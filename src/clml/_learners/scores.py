"""One matrix of scores from any fitted multi-label estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from .._support.names import label_names_of, match_names, shown

#: What counts as the smallest probability: half a vote of 300.
LEAST_PROBABILITY = 0.5 / 300


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
    >>> from clml._learners.scores import label_scores
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[0, 1], [1, 1]])
    >>> label_scores(KNeighborsClassifier(1).fit(X, Y), X, n_labels=2)
    array([[-0.5,  0.5],
           [ 0.5,  0.5]])
    """
    scores, are_probabilities = _answers(estimator, X, n_labels)
    return scores - 0.5 if are_probabilities else scores


def label_logits(estimator: Any, X: Any, n_labels: int) -> NDArray[np.float64]:
    """Return logits (n, K): decisions as they are, or those of the probabilities.

    A probability of 0 or 1 is what few votes say of a row, not certainty: the
    nearest that counts is half a vote of 300.

    Parameters
    ----------
    estimator, X, n_labels : as in ``label_scores``

    Returns
    -------
    float64 array of shape (n, K)
        Positive where ``label_scores`` is.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml._learners.scores import label_logits
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[0, 1], [1, 1]])
    >>> label_logits(KNeighborsClassifier(2).fit(X, Y), X, n_labels=2).round(3)
    array([[0.   , 6.395],
           [0.   , 6.395]])
    """
    scores, are_probabilities = _answers(estimator, X, n_labels)
    if not are_probabilities:
        return scores
    return logit(np.clip(scores, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))


def uncalibrated_logits(estimator: Any, X: Any, n_labels: int) -> NDArray[np.float64]:
    """Return logits (n, K) as they were before a temperature divided them.

    Those of an estimator without ``temperature_`` are those of ``label_logits``.

    Parameters
    ----------
    estimator, X, n_labels : as in ``label_scores``

    Returns
    -------
    float64 array of shape (n, K)
    """
    logits = label_logits(estimator, X, n_labels)
    return logits * float(getattr(estimator, "temperature_", 1.0))


def check_same_labels(
    estimator: Any, X: Any, classes: Any, names: Sequence[str]
) -> None:
    """Refuse a fitted estimator that does not predict these labels in this order.

    Parameters
    ----------
    estimator : fitted estimator
    X : features that it takes
    classes : list of K arrays, or array of shape (2,)
        Of an indicator, or of a 1-D y.
    names : sequence of str
        Of the labels. An estimator of this library knows those that it was fitted
        on; others know their number and classes only.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml._learners.scores import check_same_labels
    >>> X, y = np.array([[0.0], [1.0]]), np.array(["no", "yes"])
    >>> near = KNeighborsClassifier(1).fit(X, y)
    >>> check_same_labels(near, X, np.array(["no", "yes"]), ["label0"])
    >>> check_same_labels(near, X, np.array([0, 1]), ["label0"])
    Traceback (most recent call last):
    ...
    ValueError: KNeighborsClassifier was fitted on the classes ['no', 'yes'], and the \
classes of y are [0, 1].
    """
    is_frozen = isinstance(estimator, FrozenEstimator)
    kind = type(estimator.estimator if is_frozen else estimator).__name__
    known = label_names_of(estimator)
    if match_names(known, names, "y", f"the {kind} that was fitted before") is not None:
        raise ValueError(
            f"y must have its labels in the order that {kind} was fitted on, "
            f"{shown(known or [])}, got {shown(list(names))}."
        )
    found = getattr(estimator, "classes_", None)
    if found is None:  # which classifiers of scikit-learn all have
        return
    of_labels = list(found) if isinstance(found, list | tuple) else None
    if isinstance(classes, list) and len(classes) > 1:
        if of_labels is None and np.ndim(estimator.predict(_safe_indexing(X, [0]))) < 2:
            raise ValueError(
                f"{kind} was fitted on one column of the classes "
                f"{np.asarray(found).tolist()}, and y has {len(classes)} labels."
            )
        n_labels = len(found)
        if n_labels != len(classes):
            raise ValueError(
                f"{kind} was fitted on {n_labels} labels, and y has {len(classes)}."
            )
        for name, values in zip(names, of_labels or [], strict=False):
            _check_zero_one(kind, f"the label {name!r}", values)
        return
    if of_labels is not None and len(of_labels) != 1:
        raise ValueError(f"{kind} was fitted on {len(of_labels)} labels, and y has 1.")
    values = np.asarray(found if of_labels is None else of_labels[0])
    if isinstance(classes, list):
        _check_zero_one(kind, f"the label {names[0]!r}", values)
    elif values.tolist() != classes.tolist():
        raise ValueError(
            f"{kind} was fitted on the classes {values.tolist()}, and the classes of "
            f"y are {classes.tolist()}."
        )


def _check_zero_one(kind: str, label: str, values: Any) -> None:
    """Refuse classes of an indicator's column that are not 0 and 1."""
    values = np.asarray(values).tolist()
    if any(value not in (0, 1) for value in values):
        raise ValueError(
            f"{kind} was fitted on the classes {values} of {label}, and y is an "
            "indicator of 0 and 1."
        )


def _answers(estimator: Any, X: Any, n_labels: int) -> tuple[NDArray[np.float64], bool]:
    """Return what an estimator says (n, K), and whether these are probabilities."""
    are_probabilities = not has_decisions(estimator)
    if not are_probabilities:
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if n_labels == 1 and scores.ndim == 1:
            scores = scores[:, None]
        scores = _with_constant_labels(estimator, scores)
    elif hasattr(estimator, "predict_proba"):
        scores = _probabilities(estimator, X, n_labels)
    elif all(hasattr(e, "decision_function") for e in _estimators(estimator)):
        # As scikit-learn's MultiOutputClassifier has them, without decisions itself.
        columns = [e.decision_function(X) for e in _estimators(estimator)]
        scores, are_probabilities = np.column_stack(columns), False
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
    return scores, are_probabilities


def has_decisions(estimator: Any) -> bool:
    """Tell whether an estimator decides for all labels.

    ``OneVsRestClassifier`` goes by its first label: one that never varied decides,
    whatever those that were learnt have.

    Parameters
    ----------
    estimator : fitted estimator

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from clml._learners.scores import has_decisions
    >>> X, Y = [[0.0], [1.0], [2.0]], [[1, 0], [1, 1], [0, 1]]
    >>> learners = LogisticRegression(), GaussianNB()
    >>> [has_decisions(OneVsRestClassifier(each).fit(X, Y)) for each in learners]
    [True, False]
    """
    if not hasattr(estimator, "decision_function"):
        return False
    # Imported here: it takes as long as all of this library.
    from sklearn.multiclass import OneVsRestClassifier

    inner = that_decides(estimator)
    if not isinstance(inner, OneVsRestClassifier):
        return True
    return all(hasattr(e, "decision_function") for e in inner.estimators_)


def _estimators(estimator: Any) -> list[Any]:
    """Return the fitted estimators of single labels; one that has nothing if none."""
    return list(getattr(estimator, "estimators_", ())) or [None]


def _with_constant_labels(
    estimator: Any, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return decisions in which labels that never varied are certain.

    ``OneVsRestClassifier`` decides 0 for a label that was never positive, which ranks
    it above all that are merely unlikely, and 1 for one that always was. Here they are
    as certain as the most certain label of the row, whatever rows are beside it.
    """
    # Imported here: it takes as long as all of this library.
    from sklearn.multiclass import OneVsRestClassifier, _ConstantPredictor

    estimator = that_decides(estimator)
    if not isinstance(estimator, OneVsRestClassifier):
        return scores
    certain = np.abs(scores).max(axis=1, initial=logit(1.0 - LEAST_PROBABILITY))
    scores = scores.copy()
    for k, model in enumerate(estimator.estimators_[: scores.shape[1]]):
        if isinstance(model, _ConstantPredictor):
            scores[:, k] = certain if np.any(model.y_) else -certain
    return scores


def that_decides(estimator: Any) -> Any:
    """Return the fitted estimator that a pipeline, a search or a frozen one asks."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            return estimator


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
    if len(classes) == 2:  # of whatever names: the second is the positive one
        return columns[:, 1]
    (place,) = np.nonzero(np.asarray(classes) == 1)
    return columns[:, place[0]] if len(place) else np.zeros(len(columns))

"""Scores of learners on disk: what one method has fitted the next one reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from clml._learners.scores import label_scores
from clml._support.atomic import atomic_path
from clml.datasets import iterative_train_test_split

# What the scores that were read since the last clear took to make.
recalled_seconds: list[float] = []


def content_hash(data: Any) -> str:
    """Return a hash of the values, whatever their layout in memory."""
    if not sp.issparse(data):
        return joblib.hash(np.ascontiguousarray(data))
    rows = sp.csr_array(data, copy=True)
    rows.sum_duplicates()
    places = (rows.indices.astype(np.int64), rows.indptr.astype(np.int64))
    return joblib.hash((rows.shape, rows.data, *places))


@dataclass(frozen=True)
class FoldSample:
    """Takes a stratified sample of a fold's rows, but all rows of the whole.

    Parameters
    ----------
    n_whole : int
        Number of rows of the whole training part, of which every fold has fewer.
    n_rows : int
        Size of the sample; a fold that is no larger is taken as it is.
    random_state : int
    """

    n_whole: int
    n_rows: int
    random_state: int

    def __call__(self, X: Any, y: Any) -> tuple[Any, Any]:
        if not self.n_rows < len(y) < self.n_whole:
            return X, y
        _, X_sample, _, y_sample = iterative_train_test_split(
            X,
            y,
            test_size=self.n_rows / len(y),
            refine=False,
            random_state=self.random_state,
        )
        return X_sample, y_sample


def _has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.estimator, method)


def _answers_in_probabilities(self: Any) -> bool:
    return not _has("decision_function")(self) and _has("predict_proba")(self)


class CachedScores(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A multi-label classifier whose scores are computed once and kept on disk.

    ``fit`` only notes what is to be fitted. Scores are read if the same estimator,
    fitted on the same rows, was asked for the same rows before, by any process;
    otherwise the estimator is fitted now and its scores are stored, in double
    precision: in single precision saturated scores tie, and ties count as errors.

    The name of a file follows from class, parameters and data: after a change to a
    learner's code, begin another folder.

    Parameters
    ----------
    estimator : classifier
        Its random state must be an int, or it has no scores worth keeping.
    folder : path
        Made if it is not there.
    training_rows : callable or None, default=None
        Takes ``(X, y)`` as they were given and returns those rows of both to fit on.
        None: all. It must be picklable, since it is part of the name.

    Attributes
    ----------
    key_ : str
        Of estimator and training data.
    classes_ : list of array
    n_features_in_ : int

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from _cached import CachedScores
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forest = CachedScores(RandomForestClassifier(random_state=0), folder)
    ...     forest.fit(X, Y).predict_proba(X).shape
    (100, 5)
    """

    def __init__(
        self,
        estimator: Any,
        folder: Any,
        training_rows: Callable[[Any, Any], tuple[Any, Any]] | None = None,
    ):
        self.estimator = estimator
        self.folder = folder
        self.training_rows = training_rows

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    def fit(self, X: Any, y: Any) -> CachedScores:
        """Note estimator and data; nothing is fitted yet."""
        self._training_data = (X, y)
        self.n_features_in_ = X.shape[1]
        self.classes_ = [np.arange(2)] * y.shape[1]
        self.key_ = joblib.hash(
            (
                clone(self.estimator),
                self.training_rows,
                content_hash(X),
                content_hash(np.asarray(y, dtype=np.uint8)),
            )
        )
        self._fitted: Any = None
        return self

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the estimator's decisions, shape (n, K)."""
        return self._recall(X)

    @available_if(_answers_in_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every label, shape (n, K)."""
        return self._recall(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the labels whose scores speak for them, as an indicator (n, K)."""
        threshold = 0.5 if _answers_in_probabilities(self) else 0.0
        return (self._recall(X) > threshold).astype(np.int64)

    def _recall(self, X: Any) -> NDArray[np.float64]:
        path = Path(self.folder) / f"{self.key_}-{content_hash(X)}.npy"
        if path.exists():
            made = json.loads(path.with_suffix(".json").read_text())
            recalled_seconds.append(made["seconds"])
        else:
            self._store(path, X)
        return np.load(path)

    def _store(self, path: Path, X: Any) -> None:
        began = time.perf_counter()
        scores = self._compute(X)
        made = {"seconds": time.perf_counter() - began}
        path.parent.mkdir(parents=True, exist_ok=True)
        # The scores come last: where they are, the seconds are too.
        with atomic_path(path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(made))
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, scores)

    def _compute(self, X: Any) -> NDArray[np.float64]:
        if self._fitted is None:
            rows = self._training_data
            if self.training_rows is not None:
                rows = self.training_rows(*rows)
            self._fitted = clone(self.estimator).fit(*rows)
        scores = label_scores(self._fitted, X, len(self.classes_))
        return scores + 0.5 if _answers_in_probabilities(self) else scores

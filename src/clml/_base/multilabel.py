"""What every multi-label estimator here shares: targets in, shapes out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from .._support.csr_format import check_csr_parts
from .._support.indicator import check_indicator
from .._support.names import column_names, match_names, refuse_twice
from .._support.paths import PathLike
from .._support.sklearn_compat import warn_user
from .._support.transaction import params_kept_on_error, snapshot
from .._support.value import Value
from .missing import checked_rows
from .rows import Part, drop_weightless


class LabelClasses(list[NDArray]):
    """The classes of each label: a list that can tell its shape.

    ``cross_val_predict`` compares that shape with the columns of what one array of
    probabilities or scores holds.
    """

    @property
    def shape(self) -> tuple[int]:
        """Return (K,)."""
        return (len(self),)


class MultiLabelMixin(ClassifierMixin):
    """Turns targets into an indicator and logits into the shapes of scikit-learn.

    A 2-D indicator y has ``classes_`` as a list of K arrays [0, 1] and every result
    is (n, K). A 1-D y with two classes is the problem of one label, with the shapes
    of a plain binary classifier. An estimator defines ``_logits(X)``, (n, K), and
    ``_probabilities(X)`` if these are not what the logits say.

    Attributes
    ----------
    classes_ : list of arrays, or array of shape (2,)
    label_names_ : array of str, shape (K,)
    n_labels_ : int
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._fits_missing
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    def _fit_targets(self, y: Any, names: Any = None) -> NDArray[np.uint8]:
        """Learn classes and label names from y; return the indicator (n, K)."""
        if getattr(y, "ndim", 1) == 2:
            Y = check_indicator(y, "y")
            if names is None:
                names = [f"label{k}" for k in range(Y.shape[1])]
            self.classes_: Any = LabelClasses(
                np.array([0, 1]) for _ in range(Y.shape[1])
            )
        else:
            y = column_or_1d(y)
            check_classification_targets(y)
            classes = np.unique(y)
            if len(classes) > 2:
                raise ValueError(
                    "Only binary classification is supported. The type of the target "
                    f"is {type_of_target(y)}: got a 1-D y with {len(classes)} classes. "
                    "Several labels a row need an indicator y of shape (n, labels)."
                )
            if len(classes) < 2:
                raise ValueError(
                    "A 1-D y needs two classes, got one class: "
                    f"{classes.tolist()} in {len(y)} rows of positive weight."
                )
            self.classes_ = classes
            Y = (y == classes[1]).astype(np.uint8)[:, None]
            names = ["label0"] if names is None else names
        refuse_twice(list(names), "y")
        self.label_names_ = np.asarray(names, dtype=object)
        self.n_labels_ = Y.shape[1]
        return Y

    def _encode_targets(
        self, y: Any, argument: str, names: list[str] | None
    ) -> NDArray[np.uint8]:
        """Return further targets, of the form that was fitted, as an indicator.

        Its labels are in the order that was fitted; ``names`` are those of y, if any.
        """
        fitted = [str(name) for name in self.label_names_]
        order = match_names(fitted, names, argument, "the y that was fitted")
        if isinstance(self.classes_, list):
            Y = check_indicator(y, argument)
            if Y.shape[1] != self.n_labels_:
                raise ValueError(
                    f"{argument} must have the {self.n_labels_} labels that were "
                    f"fitted, got {Y.shape[1]}."
                )
            return Y if order is None else np.ascontiguousarray(Y[:, order])
        y = column_or_1d(y)
        known = self.classes_.tolist()
        unknown = [one for one in np.unique(y).tolist() if one not in known]
        if unknown:
            raise ValueError(
                f"{argument} must hold the classes {known} of y, got also {unknown}."
            )
        return (y == self.classes_[1]).astype(np.uint8)[:, None]

    def _training_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Part:
        """Check the arguments of a fit, learn the labels; leave weightless rows out."""
        names = column_names(y)
        X, y = self._check_X_y(X, y, reset=True)
        X, y, weight = drop_weightless(X, y, sample_weight)
        return Part(X, self._fit_targets(y, names), weight)

    def _check_validation_rows(self, X_val: Any, y_val: Any) -> Part:
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val go together, but {missing} is None.")
        names = column_names(y_val)
        X_val, y_val = self._check_X_y(X_val, y_val, reset=False, name="X_val")
        return Part(X_val, self._encode_targets(y_val, "y_val", names))

    @property
    def _fits_missing(self) -> bool:
        """Whether rows that are fitted may hold NaN."""
        return False

    @property
    def _predicts_missing(self) -> bool:
        """Whether rows that are predicted may hold NaN."""
        return False

    def _check_X_y(
        self, X: Any, y: Any, *, reset: bool, name: str = "X"
    ) -> tuple[Any, Any]:
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 0:
            # scikit-learn would speak of features.
            raise ValueError(f"y must have at least one label, got shape {y.shape}.")
        refuse_ragged(y)
        X, y = checked_rows(
            self,
            X,
            y,
            missing=self._fits_missing,
            name=name,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            reset=reset,
        )
        return _check_entries(X), y

    def _warn_constant(self, Y: NDArray[np.uint8]) -> None:
        self._warn_constant_labels(Y.mean(axis=0))

    def _warn_constant_labels(self, share: NDArray[np.float64]) -> None:
        """Warn of labels that none or all of the training rows have."""
        constant = self.label_names_[(share == 0) | (share == 1)]
        if len(constant):
            shown = ", ".join(constant[:10]) + (", ..." if len(constant) > 10 else "")
            warn_user(
                f"{len(constant)} of {self.n_labels_} labels are constant in the "
                f"training rows and cannot be learnt: {shown}."
            )

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        refuse_partitions(X)
        rows = checked_rows(
            self,
            X,
            missing=self._predicts_missing,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=False,
        )
        return _check_entries(rows)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Logits: positive for labels that are predicted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        array of shape (n, K), or (n,) for a 1-D y
        """
        model = snapshot(self)
        logits = model._logits(model._check_rows(X))
        return logits if isinstance(model.classes_, list) else logits[:, 0]

    def predict(self, X: Any) -> NDArray:
        """Labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        array of shape (n, K) of 0 and 1, or (n,) of classes for a 1-D y
        """
        model = snapshot(self)
        decisions = (model.decision_function(X) > 0).astype(np.int64)
        if isinstance(model.classes_, list):
            return decisions
        return model.classes_[decisions]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        array of shape (n, K): the probability of each label; for a 1-D y (n, 2): the
        probability of each class
        """
        model = snapshot(self)
        p = model._probabilities(model._check_rows(X))
        return p if isinstance(model.classes_, list) else np.hstack([1 - p, p])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose labels are all predicted as they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            As in ``fit``. Columns with names may be in any order.
        sample_weight : array-like of shape (n,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        model = snapshot(self)
        Y = model._encode_targets(y, "y", column_names(y))
        known = Y if isinstance(model.classes_, list) else model.classes_[Y[:, 0]]
        found = super(MultiLabelMixin, model).score(X, known, sample_weight)
        return float(found)

    def save(self, path: PathLike) -> None:
        """Write the estimator to a file, without pickle.

        Parameters
        ----------
        path : str or path
            The file, of any suffix. One that exists is replaced, and is as it was
            after an error.

        See Also
        --------
        clml.persistence.load : Read it again.
        clml.persistence.save : What is saved, and what not.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from clml.baselines import GaussianNBRelevance
        >>> from clml.persistence import load
        >>> clf = GaussianNBRelevance().fit([[0.0], [1.0], [2.0]], [[0], [0], [1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.save(pathlib.Path(folder, "model.clml"))
        ...     load(pathlib.Path(folder, "model.clml")).predict([[2.0]])
        array([[1]])
        """
        from ..persistence import save  # which imports this module

        save(self, path)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of estimators inside, such as ``estimator__C``.

        Parameters
        ----------
        **params : dict
            All of them are set, or, where one is not known, none.

        Returns
        -------
        self
        """
        with params_kept_on_error(self):
            for name in {key.partition("__")[0] for key in params if "__" in key}:
                held = self._within(name, params.get(name, getattr(self, name, None)))
                if isinstance(held, Value):  # it may be another estimator's, too
                    params = {**params, name: clone(held)}
            super().set_params(**params)
        return self

    def _within(self, name: str, held: Any) -> Any:
        """Return what a parameter stands for, of which a parameter is to be set."""
        return held

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        """Return (n, K), of checked rows; what logits say unless overridden."""
        return expit(self._logits(X))

    def _logits(self, X: Any) -> NDArray[np.float64]:
        raise TypeError(f"{type(self).__name__} must define _logits().")


def _check_entries(X: Any) -> Any:
    """Refuse sparse rows whose indices are out of range: kernels trust them."""
    if issparse(X):
        try:
            check_csr_parts(X.data, X.indices, X.indptr, X.shape)
        except ValueError as error:
            raise ValueError(f"X is no sound sparse matrix: {error}") from None
    return X


def _is_ragged(y: Any) -> bool:
    """Whether y holds lists of different lengths, as lists of labels do."""
    if not isinstance(y, list | tuple):
        return False
    return (
        len({len(row) if isinstance(row, list | tuple | set) else -1 for row in y}) > 1
    )


def refuse_ragged(y: Any) -> None:
    """Refuse lists of labels, which are no indicator."""
    if _is_ragged(y):
        raise ValueError(
            "y must be an indicator of shape (rows, labels) that holds 0 and 1, "
            "got lists of different lengths. sklearn.preprocessing."
            "MultiLabelBinarizer turns lists of labels into one."
        )


def refuse_partitions(X: Any) -> None:
    """Refuse rows that would be gathered here from wherever they are."""
    kind = type(X)
    if kind.__module__.partition(".")[0] in ("dask", "dask_expr"):
        raise TypeError(
            f"X is {kind.__name__} of dask, whose rows would all come here. "
            "clml.dask_predict(estimator, X) predicts where they are; X.compute() "
            "gathers them."
        )
    if kind.__name__ == "RowPartitions":
        raise TypeError(
            "X is RowPartitions: predict them one by one, such as "
            "predict(X.load(i)[0]) for i in range(len(X))."
        )

"""LLSF: sparse regression of the labels, in which similar labels share features."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from threadpoolctl import threadpool_limits

from .._base.multilabel import MultiLabelMixin
from .._base.rows import Part
from .._support.sklearn_compat import fit_context, warn_user
from .._support.transaction import all_or_nothing
from ._gaussian_labels import VARIES, constant_values
from ._label_specific_lasso import LabelSpecificLasso, label_distances, solve_lasso
from ._presets import PresetsMixin

# What is predicted above this; the authors' threshold.
_THRESHOLD = 0.5
# Of logits: around the threshold a probability then changes as the regression does.
_SLOPE = 4.0

# The authors' settings: log2 of alpha, log2 of beta, gamma.
_PUBLISHED = {
    "arts": (10, 6, 1.0),
    "bibtex": (10, 5, 0.1),
    "bookmarks": (8, 3, 1.0),
    "cal500": (10, 8, 1.0),
    "corel16k001": (10, 5, 0.1),
    "corel5k": (10, 4, 0.1),
    "education": (10, 6, 0.1),
    "genbase": (-5, -3, 0.1),
    "imdb": (20, 15, 10.0),
    "languagelog": (10, 6, 1.0),
    "medical": (-3, -3, 0.1),
    "nuswide": (20, 14, 0.1),
    "rcv1subset1": (8, 4, 0.1),
    "recreation": (10, 6, 1.0),
    "science": (10, 6, 0.1),
    "slashdot": (10, 6, 1.0),
}


def _weigh(X: Any, weight: NDArray | None) -> Any:
    """Return rows times their weights."""
    if weight is None:
        return X
    return sp.diags_array(weight) @ X if sp.issparse(X) else X * weight[:, None]


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


class LLSFClassifier(PresetsMixin, MultiLabelMixin, BaseEstimator):
    """Learning label-specific features (LLSF).

    A linear regression of the labels, 0 and 1, on the features, with few weights that
    are not 0: the features that are specific to a label. Labels that come together
    are asked to have similar weights. A label is predicted where the regression says
    more than 0.5.

    Parameters
    ----------
    alpha : float, default=1.0
        What the similarity of labels counts: R, one minus the cosine of two labels,
        times the product of their weights.
    beta : float, default=4.0
        What the absolute values of the weights count.
    gamma : float, default=0.1
        Of the ridge regression that the search begins with.
    fit_intercept : bool, default=True
        Whether each label has an intercept, which costs nothing. The authors' program
        has none; features with a mean of 0 need one.
    max_iter : int, default=100
        Steps at most.
    tol : float, default=1e-3
        Stop when a step lessens the objective by no more.

    Attributes
    ----------
    coef_ : float64 array (D, K)
    intercept_ : float64 array (K,)
    objective_ : float64 array (n_iter_ + 1,)
        The objective at the start and after each step.
    n_iter_ : int
        Steps taken; ``max_iter`` where it did not stop before.
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Notes
    -----
    The objective is ½ ‖XW − Y‖² + ``alpha``/2 tr(R WᵀW) + ``beta`` ‖W‖₁. The diagonal
    of R is 0, so R has a negative eigenvalue: with a large ``alpha`` and features that
    depend on each other the objective is not convex, and may have no least value. As
    the authors' program does, the search ends where it becomes negative, here with a
    warning.

    How much ``alpha`` and ``beta`` count depends on the scale of the features and on
    the number of rows. The authors chose both for each dataset by cross-validation;
    ``PRESETS`` has what they chose, which goes with rows of length 1 (a Normalizer
    before it in a Pipeline). The defaults did well with standardised
    features, on validation rows of emotions, yeast, CAL500 and enron.

    ``decision_function`` is four times what the regression says above 0.5. Its logistic
    function, ``predict_proba``, is a score and no calibrated probability.

    Labels that were constant in training have weights of 0 and that constant as
    intercept, and no say in the weights of others.

    The products of all pairs of features are held, D × D numbers.

    References
    ----------
    .. [1] J. Huang, G. Li, Q. Huang and X. Wu, "Learning label specific features for
       multi-label classification", IEEE International Conference on Data Mining, 2015.
    .. [2] J. Huang, G. Li, Q. Huang and X. Wu, "Learning label-specific features and
       class-dependent labels for multi-label classification", IEEE Transactions on
       Knowledge and Data Engineering 28 (12), 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml.baselines import LLSFClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = LLSFClassifier(beta=50).fit(X, Y)
    >>> clf.predict(X[:3]).shape
    (3, 5)
    >>> (clf.coef_ == 0).mean() > 0.1
    np.True_
    """

    PRESETS: ClassVar = {
        name: {
            "alpha": 2.0**alpha,
            "beta": 2.0**beta,
            "gamma": gamma,
            "fit_intercept": False,
        }
        for name, (alpha, beta, gamma) in _PUBLISHED.items()
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, 1e100, closed="left")],
        "beta": [Interval(Real, 0, 1e100, closed="left")],
        "gamma": [Interval(Real, 0, 1e100, closed="neither")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        beta: float = 4.0,
        gamma: float = 0.1,
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 1e-3,
    ):
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    @all_or_nothing
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights of all labels together.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.
        sample_weight : array-like of shape (n,), default=None
            Row weights; a weight of 2 is the same as two rows.

        Returns
        -------
        self
        """
        part = self._training_rows(X, y, sample_weight)
        self._warn_constant(part.Y)
        constant = constant_values(part.Y)
        varies = constant == VARIES
        self.coef_ = np.zeros((part.X.shape[1], self.n_labels_))
        self.intercept_ = np.where(varies, 0.0, constant)
        self.objective_ = np.zeros(1)
        if varies.any():
            # Sums in one thread are rounded alike on any machine.
            with threadpool_limits(1):
                self._solve(part, varies)
        self.n_iter_ = max(1, len(self.objective_) - 1)
        return self

    def _solve(self, part: Part, varies: NDArray[np.bool_]) -> None:
        Y = part.Y[:, varies].astype(np.float64)
        problem, mean_x, mean_y = self._problem(part, Y)
        start = problem.ridge(float(self.gamma))
        W, objectives = solve_lasso(problem, start, int(self.max_iter), float(self.tol))
        if objectives[-1] < 0:
            warn_user(
                "The objective became negative and may have no least value: alpha="
                f"{self.alpha} is large for these features. Set it smaller, or beta "
                "larger."
            )
        self.coef_[:, varies] = W
        self.intercept_[varies] = mean_y - mean_x @ W
        self.objective_ = np.array(objectives)

    def _problem(
        self, part: Part, Y: NDArray[np.float64]
    ) -> tuple[LabelSpecificLasso, NDArray, NDArray]:
        """Return the problem, and the means that features and labels have in it."""
        X = part.X.astype(np.float64)
        weighted_X, weighted_Y = _weigh(X, part.weight), _weigh(Y, part.weight)
        total = len(Y) if part.weight is None else part.weight.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            gram, cross = _dense(X.T @ weighted_X), _dense(X.T @ weighted_Y)
            products = Y.T @ weighted_Y
            target = np.trace(products)
            mean_x, mean_y = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
            if self.fit_intercept:
                mean_x = np.asarray(weighted_X.sum(axis=0)).ravel() / total
                mean_y = weighted_Y.sum(axis=0) / total
                gram = gram - total * np.outer(mean_x, mean_x)
                cross = cross - total * np.outer(mean_x, mean_y)
                target = target - total * (mean_y @ mean_y)
        if not (np.isfinite(gram).all() and np.isfinite(cross).all()):
            raise ValueError(
                "X must have values whose squares can be summed, got values too large. "
                "Scale X first."
            )
        problem = LabelSpecificLasso(
            gram,
            cross,
            float(target),
            label_distances(products),
            float(self.alpha),
            float(self.beta),
        )
        return problem, mean_x, mean_y

    def _logits(self, X: Any) -> NDArray[np.float64]:
        return _SLOPE * (X @ self.coef_ + self.intercept_ - _THRESHOLD)

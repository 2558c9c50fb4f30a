"""Features of a Gaussian kernel whose width follows the spread of the columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.utils.validation import check_is_fitted, validate_data


class GaussianKernelFeatures(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Nyström's features of exp(−γ‖x − x'‖²), with γ = 1 / (D · variance of X).

    That is the width support vector machines use by default. The kernel approximation
    of scikit-learn takes 1 / D, which suits standardised columns, but makes sparse
    indicators, whose variance is small, all but linear.

    Parameters
    ----------
    n_components : int, default=500
        Landmarks, drawn from the rows; all rows if there are fewer.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : sklearn.kernel_approximation.Nystroem
    n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from _kernel_features import GaussianKernelFeatures
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> features = GaussianKernelFeatures(random_state=0).fit_transform(X)
    >>> bool(np.allclose((features**2).sum(axis=1), 1))
    True
    """

    def __init__(self, n_components: int = 500, random_state: Any = None):
        self.n_components = n_components
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.kernel_.components_)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the landmarks.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : object, default=None
            Ignored.

        Returns
        -------
        self
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        # Constant columns only: any width does.
        variance = _variance(X) or 1.0
        self.kernel_ = Nystroem(
            gamma=1 / (X.shape[1] * variance),
            n_components=min(self.n_components, X.shape[0]),
            random_state=self.random_state,
        ).fit(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        array (n, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self.kernel_.transform(X)


def _variance(X: Any) -> float:
    """Return the variance of all entries, of those that a sparse matrix omits too."""
    if not sp.issparse(X):
        return float(X.var())
    mean = X.sum() / np.prod(X.shape)
    return float((X.data**2).sum() / np.prod(X.shape) - mean**2)

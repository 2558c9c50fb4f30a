"""A known distribution of dependent labels given features."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import check_array

from ..splits.stratify import RandomSource, random_source
from ._bayes_risk import Floats, all_label_sets

# Added to the standard deviation of a row, as in the network of the method.
_TINY = 1e-10


def hidden_units(X: Floats, weights: Floats, bias: Floats) -> Floats:
    """One layer: sigmoid of the product, standardised over each row."""
    units = X @ weights + bias
    units -= units.mean(axis=1, keepdims=True)
    units /= units.std(axis=1, keepdims=True) + _TINY
    return expit(units)


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """Dependent labels whose log-odds are a network of standard normal features.

    The log-odds are the logits of a small network of the shape that
    ``CLMLClassifier`` trains. With probability ``dependence`` one uniform draw u
    decides all labels of a row, label j by u < p_j, or by 1 − u < p_j where it is
    ``opposed``: labels of one side come together, labels of different sides exclude
    each other. Otherwise every label has a draw of its own. Either way label j has the
    probability p_j, so ``dependence`` changes the joint distribution and no marginal.

    Attributes
    ----------
    first : float64 array (D + 1, units)
        First layer, its bias last.
    second : float64 array (units + 1, units)
    last : float64 array (units + 1, K)
    opposed : bool array (K,)
    dependence : float
        In [0, 1]; 0 makes labels independent given the features.
    """

    first: Floats
    second: Floats
    last: Floats
    opposed: NDArray[np.bool_]
    dependence: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.setflags(write=False)
                object.__setattr__(self, field.name, value)

    @property
    def n_features(self) -> int:
        """Number of features D."""
        return len(self.first) - 1

    @property
    def n_labels(self) -> int:
        """Number of labels K."""
        return len(self.opposed)

    @property
    def label_sets(self) -> NDArray[np.uint8]:
        """Every label set, (2^K, K), in the order of :meth:`joint`.

        Row i holds the binary digits of i, label 0 the lowest.
        """
        return all_label_sets(self.n_labels)

    def theta(self, embedding_dim: int = 20) -> Floats:
        """Weights of the network of that width whose logits are the log-odds.

        Each unit stands ``embedding_dim / units`` times, which leaves the
        standardisation of rows as it is. The order is that of
        :class:`clml.network.Layout` with one hidden layer.

        Parameters
        ----------
        embedding_dim : int, default=20
            A multiple of the number of units.

        Examples
        --------
        The Bayes decisions for Hamming loss are those of a network:

        >>> from clml.datasets import make_bayes_multilabel
        >>> from clml.network import Layout, forward
        >>> data = make_bayes_multilabel(n_labels=3, random_state=0)
        >>> logits = forward(data.truth.theta(), data.X, Layout(10, 3))
        >>> bool(((logits > 0) == (data.truth.marginals(data.X) > 0.5)).all())
        True
        """
        units = self.second.shape[1]
        copies, rest = divmod(embedding_dim, units)
        if copies < 1 or rest:
            raise ValueError(
                f"embedding_dim must be a multiple of the {units} units of this "
                f"network, got {embedding_dim!r}."
            )
        wide = [np.tile(self.first, (1, copies))]
        for matrix, across in ((self.second, copies), (self.last, 1)):
            # Copies of a unit share its weight.
            shared = np.tile(matrix[:-1] / copies, (copies, across))
            wide.append(np.vstack([shared, np.tile(matrix[-1:], (1, across))]))
        return np.concatenate([matrix.ravel() for matrix in wide])

    def log_odds(self, X: Any) -> Floats:
        """Log-odds of each label, (n, K)."""
        hidden = self._check_rows(X)
        for matrix in (self.first, self.second):
            hidden = hidden_units(hidden, matrix[:-1], matrix[-1])
        return hidden @ self.last[:-1] + self.last[-1]

    def marginals(self, X: Any) -> Floats:
        """Probability of each label given the features, (n, K)."""
        return expit(self.log_odds(X))

    def joint(self, X: Any) -> Floats:
        """Probability of each label set given the features, (n, 2^K).

        Columns are in the order of :attr:`label_sets`. The array has n·2^K entries;
        the losses below never hold it whole.
        """
        return self._joint(self.marginals(X))

    def sample(
        self, n_samples: int, random_state: RandomSource = None
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Draw fresh rows.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        X : float64 array (n_samples, D)
        Y : int64 array (n_samples, K)
        """
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples!r}.")
        generator = random_source(random_state)
        X = generator.normal(size=(n_samples, self.n_features))
        return X, self.sample_labels(X, generator)

    def sample_labels(
        self, X: Any, random_state: RandomSource = None
    ) -> NDArray[np.int64]:
        """Draw labels (n, K) for given rows."""
        generator = random_source(random_state)
        p = self.marginals(X)
        together = generator.uniform(size=(len(p), 1)) < self.dependence
        shared = generator.uniform(size=(len(p), 1))
        own = generator.uniform(size=p.shape)
        u = np.where(together, np.where(self.opposed, 1 - shared, shared), own)
        return (u < p).astype(np.int64)

    def _joint(self, p: Floats) -> Floats:
        n, n_labels = p.shape
        joint = np.full((n, 1), 1 - self.dependence)
        for j in range(n_labels):
            joint = np.hstack([joint * (1 - p[:, [j]]), joint * p[:, [j]]])
        # One draw for all: between neighbouring points where a label turns, the label
        # set is constant, and its probability is the distance between them.
        turns = np.sort(np.where(self.opposed, 1 - p, p), axis=1)
        edges = np.hstack([np.zeros((n, 1)), turns, np.ones((n, 1))])
        u = ((edges[:, 1:] + edges[:, :-1]) / 2)[:, :, None]
        present = np.where(self.opposed, 1 - u, u) < p[:, None, :]
        number = present @ (1 << np.arange(n_labels))
        mass = self.dependence * np.diff(edges, axis=1)
        np.add.at(joint, (np.arange(n)[:, None], number), mass)
        return joint

    def _check_rows(self, X: Any) -> Floats:
        X = check_array(X, dtype=np.float64, input_name="X")
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have {self.n_features} features, got {X.shape[1]}."
            )
        return X

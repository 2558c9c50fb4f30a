"""The paper's division of a dataset: training, validation and test rows, scaled."""

from dataclasses import dataclass
from typing import Any

from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples

from ..splits.first_order import Integers
from ..splits.splitting import iterative_split_indices, rows_of
from ..splits.stratify import RandomSource, random_source

TEST_SIZE = 0.3
VALIDATION_SIZE = 0.2  # of the rows that are not for the test


@dataclass(frozen=True, eq=False)
class PaperSplit:
    """The three parts of a dataset.

    Attributes
    ----------
    X_train, X_validation, X_test : float arrays, or CSR if X was sparse
        Standardised features.
    Y_train, Y_validation, Y_test : same type as Y
        Label indicators.
    train_rows, validation_rows, test_rows : int64 arrays
        The row numbers of each part in the data, ascending.
    scaler : StandardScaler
        What standardised the features, fitted on the training rows.
    """

    X_train: Any
    X_validation: Any
    X_test: Any
    Y_train: Any
    Y_validation: Any
    Y_test: Any
    train_rows: Integers
    validation_rows: Integers
    test_rows: Integers
    scaler: StandardScaler

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name}={len(getattr(self, name))}"
            for name in ("train_rows", "validation_rows", "test_rows")
        )
        return f"PaperSplit({sizes})"


def paper_split(
    X: Any,
    Y: Any,
    *,
    order: int = 1,
    refine: bool = False,
    random_state: RandomSource = None,
) -> PaperSplit:
    """Divide and standardise a dataset as in the paper's experiments.

    30 % of the rows are for the test; of the others 20 % are for validation: 56, 14
    and 30 % of the data. Both divisions are stratified iteratively. Features are
    standardised with the mean and the standard deviation of the training rows.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Numerical features.
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Label indicator with values 0 and 1, at least 3 rows.
    order : {1, 2}, default=1
        Order of the stratification; see :func:`iterative_split_indices`.
    refine : bool, default=False
        Exchange rows after dealing them, where that is more even. The method that the
        paper cites only deals.
    random_state : int, RandomState, Generator or None, default=None
        Decides the division. An int gives the same one at every call; None draws
        fresh entropy. NumPy's global random state is neither read nor changed.

    Returns
    -------
    split : PaperSplit
        Features, labels and row numbers of the three parts, and the scaler.

    Notes
    -----
    The paper speaks of normalisation and does not say which, nor how it chose the
    validation rows; standardisation and stratification are our reading.

    Sparse features are divided by the standard deviation and not centred: centred,
    they would no longer be sparse. Columns that are constant in the training rows are
    not divided. Every column of X is standardised, coded nominals included.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml.datasets import paper_split
    >>> X, Y = make_multilabel_classification(n_samples=100, random_state=0)
    >>> split = paper_split(X, Y, random_state=0)
    >>> split
    PaperSplit(train_rows=56, validation_rows=14, test_rows=30)
    >>> bool(abs(split.X_train.mean(axis=0)).max() < 1e-12)
    True
    """
    n_samples, n_indicators = _num_samples(X), _num_samples(Y)
    if n_samples != n_indicators:
        raise ValueError(
            "X and Y must have the same number of rows; got "
            f"{n_samples} in X and {n_indicators} in Y."
        )
    if n_samples < 3:
        raise ValueError(
            f"Y must have at least 3 rows, one for each part; got {n_samples} row(s)."
        )
    generator = random_source(random_state)
    rest, test = iterative_split_indices(
        Y,
        test_size=TEST_SIZE,
        order=order,
        refine=refine,
        random_state=generator,
    )
    kept, chosen = iterative_split_indices(
        rows_of(Y, rest),
        test_size=VALIDATION_SIZE,
        order=order,
        refine=refine,
        random_state=generator,
    )
    train, validation = rest[kept], rest[chosen]
    # Centred, sparse features would no longer be sparse.
    scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(rows_of(X, train))
    return PaperSplit(
        X_train=scaler.transform(rows_of(X, train)),
        X_validation=scaler.transform(rows_of(X, validation)),
        X_test=scaler.transform(rows_of(X, test)),
        Y_train=rows_of(Y, train),
        Y_validation=rows_of(Y, validation),
        Y_test=rows_of(Y, test),
        train_rows=train,
        validation_rows=validation,
        test_rows=test,
        scaler=scaler,
    )

"""The paper's kind of network, as a value that is given to an estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from .._support.value import Value
from ._layout import Layout

#: Its width in the paper.
PAPER_WIDTH = 20


class PaperNetwork(Value):
    """The paper's network: D inputs → C units → hidden layers of C × C → K labels.

    Parameters
    ----------
    embedding_dim : int, default=None
        Width C, at least 2; None for 20, the paper's, and for 64 from 10,000 rows on,
        unless these are in partitions.
    n_layers : int, default=1
        Number of hidden layers of C × C weights.
    dropout : float, default=0.0
        Fraction of the hidden units that each step of gradients leaves out, in [0, 1).
    standardize : bool, default=True
        Whether features are standardised by the training rows' mean and deviation.
        Sparse data stays sparse.

    Examples
    --------
    >>> from clml.network import PaperNetwork
    >>> PaperNetwork(embedding_dim=8).build(n_inputs=3, n_labels=2).size
    122
    """

    def __init__(
        self,
        embedding_dim: int | None = None,
        n_layers: int = 1,
        dropout: float = 0.0,
        standardize: bool = True,
    ):
        self.embedding_dim = embedding_dim
        self.n_layers = n_layers
        self.dropout = dropout
        self.standardize = standardize

    def check(self) -> None:
        """Refuse parameters that mean nothing.

        Raises
        ------
        ValueError
            It names the parameter, what is expected and what it is.
        """
        if self.embedding_dim is not None:
            _check_count("embedding_dim", self.embedding_dim, 2)
        _check_count("n_layers", self.n_layers, 1)
        is_number = isinstance(self.dropout, Real) and not isinstance(
            self.dropout, bool
        )
        if not is_number or not 0 <= self.dropout < 1:
            raise ValueError(
                f"dropout of PaperNetwork must be in [0, 1), got {self.dropout!r}."
            )
        if not isinstance(self.standardize, bool | np.bool_):
            raise ValueError(
                f"standardize of PaperNetwork must be a bool, got {self.standardize!r}."
            )

    def build(
        self, n_inputs: int, n_labels: int, default_width: int = PAPER_WIDTH
    ) -> Layout:
        """Return the network for so many inputs and labels.

        Parameters
        ----------
        n_inputs, n_labels : int
        default_width : int, default=20
            Where ``embedding_dim`` is None.

        Raises
        ------
        ValueError
            If a parameter is none.
        """
        self.check()
        width = default_width if self.embedding_dim is None else self.embedding_dim
        return Layout(int(n_inputs), int(n_labels), int(width), int(self.n_layers))


def _check_count(name: str, value: Any, least: int) -> None:
    is_count = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_count or value < least:
        raise ValueError(
            f"{name} of PaperNetwork must be an integer of at least {least}, "
            f"got {value!r}."
        )

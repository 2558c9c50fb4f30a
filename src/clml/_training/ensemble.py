"""Networks that are averaged, each with an encoding of its own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..encoding import (
    Bins,
    Encoding,
    FittedEncoding,
    FittedKernel,
    GaussianKernel,
    LaplaceKernel,
    Quantiles,
    Robust,
)
from ..network import NetworkLayout, WideLayout, WideNetwork
from .predictor import Part, Predictor, wide_part
from .recipe import MANY_ROWS
from .training_rows import OwnRows, WideRows

# Landmarks of kernels: all rows if they are few. From many thousand rows on features of
# so many would take gigabytes.
_LANDMARKS, _LANDMARKS_OF_MANY = 1024, 512


def _mixed(n_landmarks: int) -> tuple[Encoding, ...]:
    return (
        Robust(),
        Bins(),
        GaussianKernel(Robust(), n_landmarks, width=0.5),
        GaussianKernel(Quantiles(), n_landmarks, width=2.0),
    )


#: Encodings of members where none is asked for. No single one is best on all data, and
#: members that see columns differently err differently.
MIXED = _mixed(_LANDMARKS)
MIXED_MANY = _mixed(_LANDMARKS_OF_MANY)
#: One more for a few rows of numbers: absolute differences from landmarks have to be
#: computed column by column. Between rows of 0 and 1 they are the squared ones.
MIXED_NUMBERS: tuple[Encoding, ...] = (
    *MIXED,
    LaplaceKernel(Quantiles(), _LANDMARKS, width=2.0),
)
#: One less where all columns are 0 and 1, of which bins say the same.
MIXED_INDICATORS: tuple[Encoding, ...] = tuple(
    one for one in MIXED if not isinstance(one, Bins)
)


def default_encodings(X: Any) -> tuple[Encoding, ...]:
    """Return the encodings of members on some training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._training.ensemble import default_encodings
    >>> len(default_encodings(np.eye(5))), len(default_encodings(np.eye(5) / 2))
    (3, 5)
    """
    if X.shape[0] >= MANY_ROWS:
        return MIXED_MANY
    values = X.data if sp.issparse(X) else X
    if ((values == 0) | (values == 1)).all():
        return MIXED_INDICATORS
    return MIXED if sp.issparse(X) else MIXED_NUMBERS


#: An encoding that has learnt its columns, of one kind or the other.
Fitted = FittedEncoding | FittedKernel

# Where an ensemble keeps what predicts: made of its weights, and no part of its state.
_MADE = "_made"


class Network(Protocol):
    """A description of a network: :class:`clml.network.WideNetwork`, or one's own."""

    def build(self, n_inputs: int, n_labels: int) -> NetworkLayout:
        """Return the network for so many inputs and labels."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What members read and compute; their weights are kept apart.

    Attributes
    ----------
    n_labels : int
    encodings : tuple of FittedEncoding or FittedKernel
    layouts : tuple of NetworkLayout
        The network on each of the encodings.
    chosen : tuple of int
        Which of these each member has.
    """

    n_labels: int
    encodings: tuple[Fitted, ...]
    layouts: tuple[NetworkLayout, ...]
    chosen: tuple[int, ...]

    @classmethod
    def fit(
        cls,
        X: Any,
        weight: NDArray[np.float64] | None,
        n_labels: int,
        network: Network,
        encodings: Sequence[Encoding],
        chosen: Sequence[int],
    ) -> Ensemble:
        """Learn the encodings of training rows.

        Raises
        ------
        ValueError
            If no column of X differs from row to row.
        """
        # Encodings of data without numbers to encode are all the same.
        fitted: list[Fitted] = []
        networks: list[Network] = []
        place = {}
        for i in dict.fromkeys(chosen):
            found = encodings[i].fit(X, weight)
            same = [j for j, other in enumerate(fitted) if _are_same(found, other)]
            if not same:
                fitted.append(found)
                networks.append(_fitting(network, encodings[i]))
            place[i] = same[0] if same else len(fitted) - 1
        if not fitted[0].n_columns:
            raise ValueError(
                "X must have a column that differs from row to row, got "
                f"{X.shape[1]} that are constant in the {X.shape[0]} training rows."
            )
        layouts = [
            own.build(one.n_columns, n_labels)
            for own, one in zip(networks, fitted, strict=True)
        ]
        members = tuple(place[i] for i in chosen)
        return cls(n_labels, tuple(fitted), tuple(layouts), members)

    def rows(self, X: Any, train: bool = False) -> list[WideRows | OwnRows]:
        """Return rows as each member reads them; those of one encoding share them.

        Parameters
        ----------
        X : array or sparse matrix (n, D)
        train : bool, default=False
            Whether they train, and may be landmarks of a kernel.
        """
        if sp.issparse(X) and any(one.centred for one in self.encodings):
            X = X.toarray()  # as the rows that they were fitted to
        encoded = [
            self._rows_of(X, one, layout, train)
            for one, layout in zip(self.encodings, self.layouts, strict=True)
        ]
        return [encoded[i] for i in self.chosen]

    def _rows_of(
        self, X: Any, encoding: Fitted, layout: NetworkLayout, train: bool
    ) -> WideRows | OwnRows:
        encoded = encoding.apply(X)
        if type(layout) is not WideLayout:
            return OwnRows(encoded, layout, self.n_labels)
        if train and isinstance(encoding, FittedKernel):
            return WideRows(encoded, layout, encoding.of_strangers(X, encoded))
        return WideRows(encoded, layout)

    def logits(
        self,
        networks: Sequence[NDArray[np.float32]],
        scale: NDArray[np.float64],
        X: Any,
        executor: Executor | None = None,
    ) -> NDArray[np.float64]:
        """Return the average logits (n, K) of the members, each times its scale.

        Each row is on its own: the result is the same for any threads. Weights are laid
        out for that at the first call, and kept, as many bytes again.
        """
        made = self.__dict__.get(_MADE)
        if made is None or made[0] is not networks or made[1] is not scale:
            made = networks, scale, self._predictor(networks, scale / len(networks))
            self.__dict__[_MADE] = made
        return made[2].logits(X, executor)

    def _predictor(
        self, networks: Sequence[NDArray[np.float32]], scale: NDArray[np.float64]
    ) -> Predictor:
        parts = []
        kinds = zip(self.encodings, self.layouts, strict=True)
        for i, (encoding, layout) in enumerate(kinds):
            members = [
                m for m, kind in enumerate(self.chosen) if kind == i and scale[m] > 0
            ]
            if not members:
                continue
            own, shares = [networks[m] for m in members], scale[members]
            if type(layout) is WideLayout:
                parts.append(wide_part(encoding, layout, own, shares))
            else:
                parts.append((None, self._own_part(encoding, layout, own, shares)))
        centred = any(one.centred for one in self.encodings)
        return Predictor(parts, self.n_labels, centred)

    def _own_part(
        self,
        encoding: Fitted,
        layout: NetworkLayout,
        networks: Sequence[NDArray[np.float32]],
        scale: NDArray[np.float64],
    ) -> Part:
        """Return networks of a user's own as they predict."""

        def logits(X: Any) -> NDArray[np.float64]:
            rows = OwnRows(encoding.apply(X), layout, self.n_labels)
            total = np.zeros((X.shape[0], self.n_labels))
            for network, factor in zip(networks, scale, strict=True):
                total += factor * rows.logits(network)
            return total

        return logits

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != _MADE}


def _fitting(network: Network, encoding: Encoding) -> Network:
    """Return the network that reads an encoding, which may have a say in its width."""
    units = encoding.hidden_units
    if type(network) is not WideNetwork or units is None:
        return network
    if units == 0:
        return WideNetwork(hidden=())
    if network.hidden is not None:
        return network
    return copy.copy(network).set_params(hidden=(units,))


def _are_same(one: Fitted, other: Fitted) -> bool:
    if isinstance(one, FittedKernel) or isinstance(other, FittedKernel):
        return False
    return one.encodes_as(other)

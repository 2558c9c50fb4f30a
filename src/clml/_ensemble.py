"""Wide networks that are averaged, each with an encoding of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._ascent import WideRows
from .encoding import Bins, Encoding, FittedEncoding, Quantiles, Robust
from .network import WideLayout, WideNetwork

#: Encodings that members take in turn where none is asked for. No single one is best on
#: all data, and members that see columns differently err differently.
MIXED: tuple[Encoding, ...] = (Robust(), Bins(), Quantiles())

# Rows that are encoded at a time.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class WideEnsemble:
    """What members read and compute; their weights are kept apart.

    Attributes
    ----------
    encodings : tuple of FittedEncoding
    layouts : tuple of WideLayout
        The network on each of the encodings.
    chosen : tuple of int
        Which of these each member has.
    """

    encodings: tuple[FittedEncoding, ...]
    layouts: tuple[WideLayout, ...]
    chosen: tuple[int, ...]

    @classmethod
    def fit(
        cls,
        X: Any,
        weight: NDArray[np.float64] | None,
        n_labels: int,
        network: WideNetwork,
        encodings: Sequence[Encoding],
        chosen: Sequence[int],
    ) -> WideEnsemble:
        """Learn the encodings of training rows.

        Raises
        ------
        ValueError
            If no column of X differs from row to row.
        """
        # Encodings of data without numbers to encode are all the same.
        fitted: list[FittedEncoding] = []
        place = {}
        for i in dict.fromkeys(chosen):
            found = encodings[i].fit(X, weight)
            same = [j for j, other in enumerate(fitted) if _equal(found, other)]
            if not same:
                fitted.append(found)
            place[i] = same[0] if same else len(fitted) - 1
        if not fitted[0].n_columns:
            raise ValueError(
                "X must have a column that differs from row to row, got "
                f"{X.shape[1]} constant ones."
            )
        layouts = [network.build(one.n_columns, n_labels) for one in fitted]
        return cls(tuple(fitted), tuple(layouts), tuple(place[i] for i in chosen))

    def rows(self, X: Any) -> list[WideRows]:
        """Return rows as each member reads them; those of one encoding share them."""
        encoded = [
            WideRows(one.apply(X), layout)
            for one, layout in zip(self.encodings, self.layouts, strict=True)
        ]
        return [encoded[i] for i in self.chosen]

    def mapped(
        self, networks: Sequence[NDArray[np.float32]], theta: NDArray[np.floating]
    ) -> tuple[NDArray[np.float32], ...]:
        """Return the members with their outputs mapped, by scales and then biases."""
        scale, bias = np.split(np.asarray(theta), 2)
        return tuple(
            self.layouts[i].mapped(network, scale, bias)
            for i, network in zip(self.chosen, networks, strict=True)
        )

    def logits(
        self, networks: Sequence[NDArray[np.float32]], X: Any
    ) -> NDArray[np.float64]:
        """Return the average logits (n, K) of the members."""
        total = np.zeros((X.shape[0], self.layouts[0].n_labels))
        for start in range(0, X.shape[0], _BLOCK):
            some = X[start : start + _BLOCK]
            if sp.issparse(some) and any(one.centred for one in self.encodings):
                some = some.toarray()  # it was fitted to dense rows
            for rows, network in zip(self.rows(some), networks, strict=True):
                total[start : start + _BLOCK] += rows.logits(network)
        return total / len(networks)


def _equal(one: FittedEncoding, other: FittedEncoding) -> bool:
    mine, others = one.state(), other.state()
    # The limit of clipped numbers says nothing where there are none.
    return all(np.array_equal(mine[n], others[n]) for n in mine if n != "limit")

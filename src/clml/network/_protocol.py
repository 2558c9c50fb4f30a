"""What a network must be able to do to be trained as a member."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class NetworkLayout(Protocol):
    """A network for some inputs and labels; its weights are one flat vector.

    :class:`~clml.network.WideLayout` is one. A network of your own is a class with a
    method ``build(n_inputs, n_labels)`` that returns an object of this kind, and is
    given to ``CLMLClassifier(network=...)``.

    Attributes
    ----------
    size : int
        Number of weights.
    """

    @property
    def size(self) -> int:
        """Number of weights."""

    def start(self, generator: np.random.Generator) -> NDArray[np.float32]:
        """Draw the weights (size,) to begin with."""

    def forward(
        self,
        theta: NDArray[np.float32],
        X: Any,
        generator: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], Any]:
        """Return the logits of a batch of rows, and what ``backward`` needs of them.

        Parameters
        ----------
        theta : float32 array (size,)
        X : float32 array or CSR matrix (m, n_inputs)
            Encoded rows; CSR if the training rows were sparse.
        generator : Generator, default=None
            In a training step, for what is left to chance, such as dropout.

        Returns
        -------
        logits : float32 array (m, n_labels)
        memory : object
        """

    def backward(self, slope: NDArray[np.float32], memory: Any) -> NDArray[np.float32]:
        """Return the derivative (size,) of the sum of slope · logits in theta."""

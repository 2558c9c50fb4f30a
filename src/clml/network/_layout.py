"""Where each weight of the network stands in the flat vector theta."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Layout:
    """Named views into theta, for one network or for a population of them.

    The order is E, b_E, then L and b_L of each hidden layer, then Dec, b_D: each
    matrix is followed by its bias, so that matrix and bias together are one matrix
    with an extra row, which multiplies an input with an extra column of ones.

    Parameters
    ----------
    n_features : int
        D.
    n_labels : int
        K.
    embedding_dim : int, default=20
        C, at least 2: rows are standardised over it.
    n_layers : int, default=1
        Number of hidden C × C layers.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.network import Layout
    >>> layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    >>> layout.size
    46
    >>> theta = np.zeros(layout.size)
    >>> layout.views(theta)["b_D"][:] = 1.0
    >>> theta[-2:]
    array([1., 1.])
    """

    n_features: int
    n_labels: int
    embedding_dim: int = 20
    n_layers: int = 1

    def __post_init__(self) -> None:
        least = {"n_features": 1, "n_labels": 1, "embedding_dim": 2, "n_layers": 1}
        for name, smallest in least.items():
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < smallest:
                raise ValueError(
                    f"{name} must be an integer of at least {smallest}, got {value!r}."
                )

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of the matrices with their bias row: first, hidden ones, last."""
        c = self.embedding_dim
        hidden = ((c + 1, c),) * self.n_layers
        return ((self.n_features + 1, c), *hidden, (c + 1, self.n_labels))

    @cached_property
    def size(self) -> int:
        """Length n of theta: D·C + C + n_layers·(C² + C) + C·K + K."""
        return sum(rows * columns for rows, columns in self.shapes)

    def matrices(self, thetas: NDArray) -> list[NDArray]:
        """Return each layer's matrix with its bias as the last row, as views.

        Parameters
        ----------
        thetas : array (n,) or (population, n)

        Returns
        -------
        list of arrays (..., inputs + 1, outputs)
        """
        if thetas.shape[-1] != self.size:
            raise ValueError(
                f"theta must have {self.size} entries for {self}, "
                f"got shape {thetas.shape}."
            )
        found = []
        start = 0
        for rows, columns in self.shapes:
            part = thetas[..., start : start + rows * columns]
            found.append(part.reshape(*thetas.shape[:-1], rows, columns))
            start += rows * columns
        return found

    def start(self, generator: np.random.Generator) -> NDArray[np.float32]:
        """Draw weights of deviation 1/√(3·inputs), as uniform ones have."""
        theta = np.empty(self.size, dtype=np.float32)
        for matrix in self.matrices(theta):
            bound = matrix.shape[0] ** -0.5
            matrix[:] = generator.uniform(-bound, bound, size=matrix.shape)
        return theta

    def mapped(
        self,
        theta: NDArray[np.float32],
        scale: float | NDArray[np.floating],
        bias: NDArray[np.floating] | None = None,
    ) -> NDArray[np.float32]:
        """Return networks whose logits are scale · logits + bias, label by label."""
        changed = theta.copy()
        last = self.matrices(changed)[-1]
        last *= np.asarray(scale, dtype=np.float32)
        if bias is not None:
            last[..., -1, :] += np.asarray(bias, dtype=np.float32)
        return changed

    def views(self, thetas: NDArray) -> dict[str, NDArray]:
        """Return the weights by name, as views that share memory with ``thetas``.

        Names: ``E``, ``b_E``; ``L1``, ``b_L1``, ... one pair a hidden layer; ``Dec``,
        ``b_D``.
        """
        hidden = [f"L{i + 1}" for i in range(self.n_layers)]
        biases = ["b_E", *(f"b_{name}" for name in hidden), "b_D"]
        named: dict[str, NDArray] = {}
        for name, bias, matrix in zip(
            ["E", *hidden, "Dec"], biases, self.matrices(thetas), strict=True
        ):
            named[name] = matrix[..., :-1, :]
            named[bias] = matrix[..., -1, :]
        return named

"""Adam over one flat vector of weights, in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled


@compiled
def step(  # type: ignore[no-untyped-def]
    theta, gradient, first, second, average, numbers
):
    """Change theta, both averages of the gradient and that of theta, in place.

    Parameters
    ----------
    theta, gradient, first, second : float arrays (n,)
    average : float array (n,), or of no entries: none is kept
    numbers : float64 array (7,)
        Of ``Adam.next_steps``.
    """
    beta1, beta2, rate, correction = numbers[0], numbers[1], numbers[2], numbers[3]
    eps, decay, keep = numbers[4], numbers[5], numbers[6]
    kind = first.dtype.type
    keep1, keep2 = kind(beta1), kind(beta2)
    take1, take2 = kind(1 - beta1), kind(1 - beta2)
    rate, correction, eps, decay = kind(rate), kind(correction), kind(eps), kind(decay)
    for i in range(theta.shape[0]):
        g = gradient[i]
        first[i] = keep1 * first[i] + take1 * g
        second[i] = keep2 * second[i] + take2 * g * g
        change = rate * first[i] / (np.sqrt(second[i]) * correction + eps)
        theta[i] -= change + decay * theta[i]
    keep, take = kind(keep), kind(1 - keep)
    for i in range(average.shape[0]):
        average[i] = keep * average[i] + take * theta[i]


class Adam:
    """Steps of a size that does not depend on the size of the gradient.

    Parameters
    ----------
    n : int
        Number of weights.
    learning_rate : float, default=0.001
        The size of a step in each weight, roughly.
    beta1, beta2 : float, default=0.9 and 0.999
        How much of the averages of the gradient and of its square a step keeps.
    eps : float, default=1e-8
        Added to the root of the average square.
    maximize : bool, default=False
        Whether steps go up the gradient instead of down.

    Attributes
    ----------
    first, second : float32 arrays (n,)
        The averages.
    n_steps : int
        Steps taken.

    References
    ----------
    D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.
    I. Loshchilov and F. Hutter, Decoupled weight decay regularization, ICLR 2019.

    Examples
    --------
    The first step has the size of the learning rate, whatever the gradient:

    >>> import numpy as np
    >>> from clml._training.adam import Adam
    >>> theta = np.zeros(2, dtype=np.float32)
    >>> adam = Adam(2, learning_rate=0.5)
    >>> adam.step(theta, np.array([1e-3, -20.0], dtype=np.float32))
    >>> theta.round(3)
    array([-0.5,  0.5], dtype=float32)
    """

    def __init__(
        self,
        n: int,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        for name, beta in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= beta < 1:
                raise ValueError(f"{name} must be in [0, 1), got {beta}.")
        if not eps > 0:
            raise ValueError(f"eps must be positive, got {eps}.")
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.eps = eps
        self.maximize = maximize
        self.first = np.zeros(n, dtype=np.float32)
        self.second = np.zeros(n, dtype=np.float32)
        self.n_steps = 0

    def __copy__(self) -> Adam:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)  # a quarter of what copy does otherwise
        return twin

    def step(
        self,
        theta: NDArray[np.float32],
        gradient: NDArray[np.float32],
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
    ) -> None:
        """Change theta in place.

        Parameters
        ----------
        theta, gradient : float32 arrays (n,)
        learning_rate : float, default=None
            Of this step; the one given at the start by default.
        weight_decay : float, default=0.0
            Share of each weight that is taken away, in units of the learning rate and
            apart from the gradient (AdamW).
        """
        for name, array in (("theta", theta), ("gradient", gradient)):
            if array.shape != self.first.shape or array.dtype != np.float32:
                raise ValueError(
                    f"{name} must be float32 of shape {self.first.shape}, "
                    f"got {array.dtype} of shape {array.shape}."
                )
        rate = self.learning_rate if learning_rate is None else learning_rate
        (numbers,) = self.next_steps([rate], weight_decay, 0.0)
        step(theta, gradient, self.first, self.second, theta[:0], numbers)

    def next_steps(
        self, learning_rates: Sequence[float], weight_decay: float, most_kept: float
    ) -> NDArray[np.float64]:
        """Count steps, and return what the kernel takes for each.

        Parameters
        ----------
        learning_rates : sequence of float
            Of each step.
        weight_decay : float
        most_kept : float
            How much of an average of theta a step keeps at most. The first steps keep
            less: the average reaches back a share of the steps so far.

        Returns
        -------
        float64 array (steps, 7)
            Both betas, the rate, what the root is multiplied by, eps, the decay, and
            what is kept.
        """
        sign = -1.0 if self.maximize else 1.0
        first = self.n_steps + 1
        self.n_steps += len(learning_rates)
        return np.array(
            [
                (
                    self.beta1,
                    self.beta2,
                    sign * rate / (1 - self.beta1**t),
                    (1 - self.beta2**t) ** -0.5,
                    self.eps,
                    rate * weight_decay,
                    min(most_kept, t / (t + 10)),
                )
                for t, rate in enumerate(learning_rates, first)
            ]
        ).reshape(-1, 7)

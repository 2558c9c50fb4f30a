"""The one loop that trains every network here: batches, validation, the best epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._base.rows import Part
from .._support.torch import Arrays, Weights, as_arrays, import_torch
from ._batches import Batch, Features, TrainingRows
from ._layers import Shapes

if TYPE_CHECKING:
    from torch import Generator, Tensor

_EVALUATION_BYTES = 64 * 2**20  # of activations at a time
_TOLERANCE = 1e-5  # criteria nearer than this are equal, as DELA's authors have it


class Network(Protocol):
    """What a method is to the loop: where it starts, what it minimises, what it says.

    Its weights are tensors by name; those that require a gradient are trained. All
    functions work in any floating type.
    """

    @property
    def activations(self) -> int:
        """How many numbers a row needs at most when logits are computed."""
        ...

    @property
    def shapes(self) -> Shapes:
        """The shapes of the weights, known without making any."""
        ...

    def initial(self, y: Tensor, weight: Tensor, generator: Generator) -> Weights:
        """Return random weights, given labels and weights of the training rows."""
        ...

    def loss(self, weights: Weights, batch: Batch, generator: Generator) -> Tensor:
        """Return the loss of a batch, as it is in training."""
        ...

    def logits(self, weights: Weights, x: Tensor) -> Tensor:
        """Return (B, K) logits of features (B, D), as they are in prediction."""
        ...


class Optimiser(Protocol):
    """What the loop needs of an optimiser; those of PyTorch have it."""

    param_groups: list[dict[str, Any]]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        ...

    def step(self) -> Any:
        """Move the weights."""
        ...


#: Values of an epoch on validation rows, smaller is better, the most important first.
Criteria = dict[str, float]


@dataclass(frozen=True, eq=False)
class Plan:
    """How to train.

    Attributes
    ----------
    batch_size : int
    optimiser : callable
        Makes the optimiser of some weights.
    judge : callable
        From logits (n, K), indicator and row weights or None to criteria.
    rate : callable
        From the number of epochs done, with its fraction, to what multiplies the
        learning rates of the optimiser.
    equal_batches : bool
        Whether the last batch of an epoch is topped up.
    """

    batch_size: int
    optimiser: Callable[[Weights], Optimiser]
    judge: Callable[[NDArray, NDArray, NDArray | None], Criteria]
    rate: Callable[[float], float] = lambda epochs: 1.0
    equal_batches: bool = False


def better(new: Mapping[str, float], old: Mapping[str, float] | None) -> bool:
    """Whether criteria are smaller: by the first that differs.

    Examples
    --------
    >>> from clml.baselines._training import better
    >>> better({"lrap": 0.2, "hamming": 0.1}, {"lrap": 0.2, "hamming": 0.3})
    True
    >>> better({"lrap": float("nan")}, None), better({"lrap": 0.2}, None)
    (False, True)
    """
    if not np.isfinite(list(new.values())).all():
        return False
    if old is None:
        return True
    for name, value in new.items():
        if abs(value - old[name]) > _TOLERANCE:
            return value < old[name]
    return False


@dataclass(frozen=True, eq=False)
class Best:
    """The best epoch so far: its number from 1 (0 is the start), weights, criteria."""

    epoch: int
    weights: Arrays
    criteria: Criteria | None = None


class Training:
    """A run of the loop, an epoch at a time.

    Parameters
    ----------
    network : Network
    plan : Plan
    train : Part
    validation : Part or None
        Rows to judge epochs on. Without them the last epoch is the best.
    seed : list of int
    device : torch.device

    Attributes
    ----------
    best : Best
    diverged : bool
        Whether a loss or a weight of the last epoch was not finite.
    history : list of dict
        One record an epoch.
    """

    def __init__(
        self,
        network: Network,
        plan: Plan,
        train: Part,
        validation: Part | None,
        seed: list[int],
        device: Any,
    ):
        torch = import_torch()
        start, noise = (
            int(np.random.SeedSequence([*seed, part]).generate_state(1, np.uint64)[0])
            for part in (1, 2)
        )
        self._network, self._plan = network, plan
        self._rows = TrainingRows(train, device)
        self._validation = validation
        if validation is not None:
            self._features = Features(validation.X, device, torch.float32)
        self._order = np.random.default_rng([*seed, 3])
        self._noise = torch.Generator(device).manual_seed(start ^ noise)
        # Drawn on the CPU, so that every device starts from the same weights.
        y, weight = self._rows.y.cpu(), self._rows.weight.cpu()
        weights = network.initial(y, weight, torch.Generator().manual_seed(start))
        self._weights = {
            name: w.detach().to(device).requires_grad_(w.requires_grad)
            for name, w in weights.items()
        }
        self._optimiser = plan.optimiser(self._weights)
        for group in self._optimiser.param_groups:
            group["initial_lr"] = group["lr"]
        self.best = Best(0, as_arrays(self._weights))
        self.diverged = False
        self.history: list[dict[str, float]] = []

    def epoch(self) -> dict[str, float]:
        """Pass over the training rows once and judge what came of it.

        Returns
        -------
        dict
            "train_loss", the criteria on validation rows, and "seconds".
        """
        began = time.perf_counter()
        record = {"train_loss": self._pass()}
        criteria = self._judge()
        record |= {f"validation_{name}": v for name, v in (criteria or {}).items()}
        self.diverged = not (
            np.isfinite(list(record.values())).all() and self._finite()
        )
        record["seconds"] = time.perf_counter() - began
        self.history.append(record)
        if not self.diverged and (
            criteria is None or better(criteria, self.best.criteria)
        ):
            # One assignment, so that an interrupt leaves the old or the new best.
            self.best = Best(len(self.history), as_arrays(self._weights), criteria)
        return record

    def _judge(self) -> Criteria | None:
        """Return the criteria of the present weights, if there are validation rows."""
        if self._validation is None:
            return None
        logits = network_logits(self._network, self._weights, self._features)
        return self._plan.judge(logits, self._validation.Y, self._validation.weight)

    def _finite(self) -> bool:
        return all(bool(w.isfinite().all()) for w in self._weights.values())

    def _pass(self) -> float:
        """Train on every batch; return the mean loss."""
        torch = import_torch()
        plan, done = self._plan, len(self.history)
        rows, size = len(self._rows), min(plan.batch_size, len(self._rows))
        n_batches = -(-rows // size)
        # Summed on the device: reading a loss would wait for it.
        total = torch.zeros((), dtype=torch.float32, device=self._rows.y.device)
        batches = self._rows.batches(size, self._order, equal=plan.equal_batches)
        for i, batch in enumerate(batches):
            rate = plan.rate(done + i / n_batches)
            for group in self._optimiser.param_groups:
                group["lr"] = group["initial_lr"] * rate
            self._optimiser.zero_grad()
            with torch.enable_grad():  # whatever the caller has switched off
                loss = self._network.loss(self._weights, batch, self._noise)
                loss.backward()
            self._optimiser.step()
            total += loss.detach()
        return float(total) / n_batches


def network_logits(
    network: Network, weights: Weights, features: Features
) -> NDArray[np.float64]:
    """Compute the logits of all rows, some at a time."""
    torch = import_torch()
    size = max(1, _EVALUATION_BYTES // (8 * network.activations))
    with torch.inference_mode():
        blocks = [network.logits(weights, x).double() for x in features.blocks(size)]
        return torch.cat(blocks).cpu().numpy()

"""MLPRelevanceClassifier: a plain network trained on cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils._param_validation import Interval

from .._support.torch import Weights, import_torch
from ._batches import Batch
from ._criteria import cross_entropy
from ._deep import DeepClassifier
from ._layers import (
    Layers,
    Shapes,
    dropout,
    label_cross_entropy,
    linear,
    linear_shapes,
    new_linear,
    row_mean,
)
from ._training import Plan

if TYPE_CHECKING:
    from torch import Generator, Tensor


@dataclass(frozen=True)
class MLPNetwork:
    """Layers of ReLU units with dropout, then one output a label."""

    n_features: int
    n_labels: int
    n_units: int
    n_layers: int
    dropout: float

    @property
    def activations(self) -> int:
        """How many numbers a row needs at most when logits are computed."""
        return self.n_features + 2 * self.n_units + self.n_labels

    @property
    def shapes(self) -> Shapes:
        """The shapes of the weights."""
        return linear_shapes(self._layers)

    @property
    def _layers(self) -> Layers:
        sizes = [self.n_features, *[self.n_units] * self.n_layers, self.n_labels]
        names = [*(f"hidden{layer}" for layer in range(self.n_layers)), "output"]
        return {
            name: (n_in, n_out)
            for name, n_in, n_out in zip(names, sizes, sizes[1:], strict=False)
        }

    def initial(self, y: Tensor, weight: Tensor, generator: Generator) -> Weights:
        """Return random weights, as PyTorch draws them."""
        weights: Weights = {}
        for name, (n_in, n_out) in self._layers.items():
            weights |= new_linear(name, n_in, n_out, generator)
        return weights

    def loss(self, weights: Weights, batch: Batch, generator: Generator) -> Tensor:
        """Mean cross-entropy over rows and labels, with units left out at random."""
        logits = self._forward(weights, batch.x, generator)
        rows = label_cross_entropy(logits, batch.y).mean(dim=1)
        return row_mean(rows, batch.weight)

    def logits(self, weights: Weights, x: Tensor) -> Tensor:
        """Return (B, K) logits of features (B, D)."""
        return self._forward(weights, x, None)

    def _forward(
        self, weights: Weights, x: Tensor, generator: Generator | None
    ) -> Tensor:
        for layer in range(self.n_layers):
            x = linear(weights, f"hidden{layer}", x).relu()
            if generator is not None:
                x = dropout(x, self.dropout, generator)
        return linear(weights, "output", x)


class MLPRelevanceClassifier(DeepClassifier):
    """Plain network: ReLU layers, dropout, binary cross-entropy, AdamW.

    What a practitioner would try first with a network, and hard to beat on wide data.
    Labels share the layers and have an output each. The best epoch is the one with the
    smallest cross-entropy on validation rows. Features should be scaled, for instance
    by a StandardScaler before it in a Pipeline.

    Parameters
    ----------
    n_units : int, default=512
        Units of a layer.
    n_layers : int, default=2
        Layers before that of the outputs.
    dropout : float in [0, 1), default=0.5
        Share of the units that are left out in a step.
    {training_parameters}

    Attributes
    ----------
    {fitted_attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from clml.baselines import MLPRelevanceClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> mlp = MLPRelevanceClassifier(max_epochs=5, random_state=0)
    >>> make_pipeline(StandardScaler(), mlp).fit(X, Y).predict(X).shape
    (100, 5)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepClassifier._parameter_constraints,
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        *,
        n_units: int = 512,
        n_layers: int = 2,
        dropout: float = 0.5,
        max_epochs: int = 200,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        validation_fraction: float = 0.2,
        patience: int | None = 20,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_units = n_units
        self.n_layers = n_layers
        self.dropout = dropout
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _network(self) -> MLPNetwork:
        return MLPNetwork(
            self.n_features_in_,
            self.n_labels_,
            int(self.n_units),
            int(self.n_layers),
            float(self.dropout),
        )

    def _plan(self, n_rows: int) -> Plan:
        torch = import_torch()
        return Plan(
            batch_size=self.batch_size,
            optimiser=lambda weights: torch.optim.AdamW(
                weights.values(),
                lr=self.learning_rate,
                weight_decay=self.weight_decay,
            ),
            judge=cross_entropy,
        )

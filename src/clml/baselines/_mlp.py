"""MLPRelevanceClassifier: a plain network trained on cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils._param_validation import Interval

from ._batches import Batch
from ._criteria import cross_entropy
from ._deep import DeepClassifier
from ._layers import dropout, label_cross_entropy, linear, new_linear, row_mean
from ._torch import Weights, import_torch
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

    def initial(self, y: Tensor, weight: Tensor, generator: Generator) -> Weights:
        """Return random weights, as PyTorch draws them."""
        weights: Weights = {}
        n_in = self.n_features
        for layer in range(self.n_layers):
            weights |= new_linear(f"hidden{layer}", n_in, self.n_units, generator)
            n_in = self.n_units
        return weights | new_linear("output", n_in, self.n_labels, generator)

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
    Labels share the layers and have an output each.

    Parameters
    ----------
    n_units : int, default=512
        Units of a layer.
    n_layers : int, default=2
    dropout : float in [0, 1), default=0.5
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

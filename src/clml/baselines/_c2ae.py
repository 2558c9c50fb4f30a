"""C2AEClassifier: the canonical-correlated autoencoder."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ._c2ae_network import C2AENetwork
from ._criteria import f1_sum
from ._deep import DeepClassifier
from ._normalised_momentum import NormalisedMomentum
from ._training import Plan

_STRETCHES = 50  # of a constant learning rate: the authors' epochs
# What the authors have on their smallest data, about.
_FEWEST_STEPS = 1000
_FEWEST_EPOCHS = 200


class C2AEClassifier(DeepClassifier):
    """Canonical-correlated autoencoder of Yeh et al.: C2AE.

    Labels are encoded into a latent space with orthonormal dimensions and decoded
    again, by a loss that puts positive labels above negative ones; features are mapped
    to where their labels are. Prediction goes from features to the latent space and
    on to labels. Features should be scaled, for instance by a StandardScaler before
    it in a Pipeline.

    Parameters
    ----------
    latent_ratio : float, default=0.8
        Dimensions of the latent space as a share of the number of labels. A batch
        needs as many rows for them to become orthonormal.
    alpha : float, default=0.5
        Weight of the pair loss.
    n_units : int, default=512
        Units of a hidden layer.
    rate_decay : float in (0, 1], default=0.98
        The run is cut into 50 stretches, as many as the authors have epochs. After
        each the learning rate is multiplied by this.
    {training_parameters}

    Attributes
    ----------
    {fitted_attributes}

    Notes
    -----
    The loss is a sum over a batch, and the latent scale depends on its size, about
    1 / sqrt(``batch_size``). So every batch has the same number of rows: the last one
    of an epoch is topped up.

    The authors train for 50 epochs of some 20 steps and multiply the learning rate by
    0.98 after each. A few hundred rows are one batch, so an epoch is one step, and that
    schedule would end before anything is learnt. So by default there are as many epochs
    as make 1,000 steps, at least 200, and the schedule stretches over all of them.

    Rows without labels, and rows with all of them, have no pair to compare. They still
    count in the latent space, where features learn what such rows look like.

    The pair loss orders the labels of a row and does not tell probabilities: those of
    ``predict_proba`` are scores, whose 0.5 is only as good as the best epoch, chosen
    by micro-F1 plus macro-F1 on validation rows.

    A single label is treated as two, itself and its complement, and its logit is the
    difference of theirs.

    References
    ----------
    C.-K. Yeh, W.-C. Wu, W.-J. Ko, Y.-C. F. Wang, "Learning Deep Latent Spaces for
    Multi-Label Classification", AAAI 2017. As in the authors' code, the exponent of
    the pair loss has a factor of 5, and the optimiser is momentum on gradients divided
    by their root mean square.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from clml.baselines import C2AEClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> c2ae = C2AEClassifier(n_units=64, max_epochs=20, random_state=0)
    >>> make_pipeline(StandardScaler(), c2ae).fit(X, Y).predict(X).shape
    (100, 5)
    """

    #: Of the authors' demonstration.
    PRESETS: ClassVar = {
        "mirflickr": {
            "alpha": 0.5,
            "batch_size": 500,
            "max_epochs": 50,
            "validation_fraction": 1 / 6,
        }
    }

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepClassifier._parameter_constraints,
        "latent_ratio": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "rate_decay": [Interval(Real, 0, 1, closed="right")],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        latent_ratio: float = 0.8,
        alpha: float = 0.5,
        n_units: int = 512,
        rate_decay: float = 0.98,
        max_epochs: int | None = None,
        batch_size: int = 500,
        learning_rate: float = 1e-4,
        weight_decay: float = 1e-3,
        validation_fraction: float = 0.2,
        patience: int | None = None,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.latent_ratio = latent_ratio
        self.alpha = alpha
        self.n_units = n_units
        self.rate_decay = rate_decay
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

    def _network(self) -> C2AENetwork:
        return C2AENetwork(
            self.n_features_in_,
            self.n_labels_,
            float(self.latent_ratio),
            int(self.n_units),
            float(self.alpha),
            float(self.weight_decay),
        )

    def _n_epochs(self, n_rows: int) -> int:
        if self.max_epochs is not None:
            return int(self.max_epochs)
        steps = math.ceil(n_rows / self.batch_size)
        return max(_FEWEST_EPOCHS, math.ceil(_FEWEST_STEPS / steps))

    def _plan(self, n_rows: int) -> Plan:
        n_epochs = self._n_epochs(n_rows)
        return Plan(
            batch_size=self.batch_size,
            optimiser=lambda weights: NormalisedMomentum(
                weights.values(), float(self.learning_rate)
            ),
            judge=f1_sum,
            rate=lambda epochs: self.rate_decay ** int(_STRETCHES * epochs / n_epochs),
            equal_batches=True,
        )

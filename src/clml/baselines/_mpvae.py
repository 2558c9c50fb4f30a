"""MPVAEClassifier: a variational autoencoder with a multivariate probit of labels."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from .._support.torch import import_torch
from ._criteria import macro_f1_at_best
from ._deep import DeepClassifier
from ._mpvae_network import MPVAENetwork
from ._training import Plan

# The authors' settings: learning_rate, max_epochs, likelihood_weight, ranking_weight,
# rate_decay, n_samples.
_PUBLISHED = {
    "bibtex": (2.5e-4, 200, 10.0, 0.1, 0.8, 100),
    "delicious": (5e-4, 200, 10.0, 0.1, 0.8, 5),
    "mirflickr": (7.5e-4, 300, 0.1, 200.0, 0.5, 100),
    "nuswide": (5e-4, 50, 0.1, 20.0, 0.8, 100),
    "scene": (2e-3, 400, 0.1, 40.0, 0.8, 100),
    "yeast": (6e-4, 800, 0.1, 20.0, 0.8, 100),
}


class MPVAEClassifier(DeepClassifier):
    """Multivariate probit variational autoencoder of Bai et al.: MPVAE.

    Features alone, and features with labels, are each encoded as a normal distribution
    in a latent space; the two are drawn together, and a sample of either is decoded to
    the means of a multivariate probit model, in which labels covary in the same way for
    all rows. Features should be scaled, for instance by a StandardScaler before it in a
    Pipeline.

    Parameters
    ----------
    latent_dim : int, default=50
        Dimensions of the latent space.
    rank : int, default=None
        Dimensions of the noise that labels share, the rank of their covariance beside
        the identity. None is the number of labels.
    likelihood_weight : float, default=10.0
        What the logarithm of the likelihood counts, of either branch.
    ranking_weight : float, default=0.1
        What it counts that labels of a row are above the others, in either branch. The
        defaults of both weights are the authors' settings for bibtex and delicious.
        Elsewhere they have 0.1, and 20 to 200: what comes of that ranks labels, but
        its probabilities need another threshold than 0.5.
    divergence_weight : float, default=1.1
        What the divergence of the two distributions in the latent space counts.
    dropout : float in [0, 1), default=0.5
        Share of the encoders' units that are left out in a step.
    n_samples : int, default=100
        Samples of the shared noise in a step. Prediction needs none.
    rate_decay : float in (0, 1], default=0.5
        What the learning rate is multiplied by after each stretch.
    n_stretches : int, default=3
        How many stretches of a constant learning rate a run has.
    threshold : float in (0, 1), default=0.5
        The probability above which a label is predicted: ``decision_function`` is the
        log-odds less those of the threshold. Probabilities are not touched.
    {training_parameters}

    Attributes
    ----------
    {fitted_attributes}

    Notes
    -----
    The probability of a label is its mean over all noise, which has a closed form, at
    the mean of the latent distribution; the authors' program draws 10,000 samples of
    the one and one of the other. So predictions do not depend on chance.

    As in the authors' program the encoder of labels and the decoder also read the
    features, and the best epoch is that with the largest macro-F1 on validation rows,
    where for each epoch the best of 27 thresholds counts. Their figures take the best
    threshold on test rows, too, for every measure; the threshold here is a parameter.

    References
    ----------
    J. Bai, S. Kong, C. Gomes, "Disentangled Variational Autoencoder based Multi-Label
    Classification with Covariance-Aware Multivariate Probit Model", IJCAI 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from clml.baselines import MPVAEClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> mpvae = MPVAEClassifier(max_epochs=5, random_state=0)
    >>> make_pipeline(StandardScaler(), mpvae).fit(X, Y).predict(X).shape
    (100, 5)
    """

    #: Of the authors' scripts.
    PRESETS: ClassVar = {
        name: {
            "learning_rate": learning_rate,
            "max_epochs": max_epochs,
            "likelihood_weight": likelihood_weight,
            "ranking_weight": ranking_weight,
            "rate_decay": rate_decay,
            "n_stretches": 4,
            "n_samples": n_samples,
        }
        for name, (
            learning_rate,
            max_epochs,
            likelihood_weight,
            ranking_weight,
            rate_decay,
            n_samples,
        ) in _PUBLISHED.items()
    }

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DeepClassifier._parameter_constraints,
        "latent_dim": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "likelihood_weight": [Interval(Real, 0, None, closed="left")],
        "ranking_weight": [Interval(Real, 0, None, closed="left")],
        "divergence_weight": [Interval(Real, 0, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "rate_decay": [Interval(Real, 0, 1, closed="right")],
        "n_stretches": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        *,
        latent_dim: int = 50,
        rank: int | None = None,
        likelihood_weight: float = 10.0,
        ranking_weight: float = 0.1,
        divergence_weight: float = 1.1,
        dropout: float = 0.5,
        n_samples: int = 100,
        rate_decay: float = 0.5,
        n_stretches: int = 3,
        threshold: float = 0.5,
        max_epochs: int = 200,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        validation_fraction: float = 0.2,
        patience: int | None = None,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.latent_dim = latent_dim
        self.rank = rank
        self.likelihood_weight = likelihood_weight
        self.ranking_weight = ranking_weight
        self.divergence_weight = divergence_weight
        self.dropout = dropout
        self.n_samples = n_samples
        self.rate_decay = rate_decay
        self.n_stretches = n_stretches
        self.threshold = threshold
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

    def _network(self) -> MPVAENetwork:
        return MPVAENetwork(
            self.n_features_in_,
            self.n_labels_,
            int(self.latent_dim),
            self.n_labels_ if self.rank is None else int(self.rank),
            float(self.likelihood_weight),
            float(self.ranking_weight),
            float(self.divergence_weight),
            float(self.weight_decay),
            float(self.dropout),
            int(self.n_samples),
        )

    def _plan(self, n_rows: int) -> Plan:
        torch = import_torch()
        n_epochs, n_stretches = int(self.max_epochs), int(self.n_stretches)
        return Plan(
            batch_size=self.batch_size,
            optimiser=lambda weights: torch.optim.Adam(
                weights.values(), lr=self.learning_rate
            ),
            judge=macro_f1_at_best,
            rate=lambda epochs: self.rate_decay ** int(n_stretches * epochs / n_epochs),
        )

    def _logits(self, X: Any) -> NDArray[np.float64]:
        self._validate_params()  # the threshold may have changed since fit
        odds = math.log(self.threshold / (1 - self.threshold))
        return super()._logits(X) - odds

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        # Those of the network: the threshold moves decisions alone.
        return expit(super()._logits(X))

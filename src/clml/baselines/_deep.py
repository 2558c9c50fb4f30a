"""What the networks trained by gradients share as estimators."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._base.multilabel import MultiLabelMixin
from .._base.rows import FitRows
from .._support.sklearn_compat import (
    CallbackSupportMixin,
    EpochCallbacks,
    fit_context,
    warn_user,
    with_callbacks,
)
from .._support.torch import as_tensors, cpu_threads, find_device, import_torch
from .._support.transaction import all_or_nothing
from ._batches import Features
from ._presets import PresetsMixin
from ._training import Network, Plan, Training, network_logits

# Standardised, normalised and indicator columns have a deviation of at most 1.
_WIDEST = 10.0

_SHARED_PARAMETERS = """
    max_epochs : int, default={max_epochs}
        Passes over the training rows. The weights of the best one are kept.
    batch_size : int, default={batch_size}
        Rows of a step; all of them if there are fewer.
    learning_rate : float, default={learning_rate}
        Of the optimiser.
    weight_decay : float, default={weight_decay}
        How strongly weights are drawn to 0.
    validation_fraction : float in [0, 1), default=0.2
        Share of the rows, stratified, that epochs are judged on and that do not train.
        With 0 all rows train and the last epoch is kept. Not used if ``fit`` is given
        ``X_val`` and ``y_val``.
    patience : int, default={patience}
        Stop after so many epochs without a better one. None never stops early.
    keep_on_interrupt : bool, default=False
        What Ctrl-C during ``fit`` does after the best weights so far are in place:
        end the fit normally, or raise KeyboardInterrupt.
    device : str, default="cpu"
        "cpu", "cuda", "cuda:1" and so on, or "auto": a GPU where there is one. It may
        be changed after fitting.
    n_jobs : int, default=None
        Threads on the CPU. None is one thread, -1 all cores.
    random_state : int, RandomState instance or None, default=None
        Decides validation rows, first weights, batches and noise. On a CPU the same
        number, with the same ``n_jobs``, gives the same model.
    verbose : int, default=0
        1 prints a line an epoch, with losses: smaller is better."""

_SHARED_ATTRIBUTES = """
    weights_ : dict of str to float32 array
        The weights of the best epoch.
    best_epoch_ : int
        Its number, from 1; 0 after an interrupt before any was complete.
    n_epochs_ : int
        How many there were.
    history_ : dict of str to array
        Per epoch: "train_loss"; "validation_..." for the losses on validation rows that
        decide which epoch is best, the first that differs; "seconds". Smaller is
        better throughout: "lrap" is 1 - LRAP.
    network_ : dataclass
        The sizes of the network and the settings that are part of it.
    interrupted_ : bool
    classes_ : list of arrays, or array of shape (2,)
    label_names_ : array of str, shape (K,)
    n_labels_ : int
    n_features_in_ : int
    feature_names_in_ : array of str, if X was a data frame"""

_FIT_DOC = """Train the network.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Scaled features: this estimator does not scale them.
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.
        sample_weight : array-like of shape (n,), default=None
            Row weights in the loss and in what judges epochs; rows of weight 0 are
            left out.
        X_val, y_val : like X and y, default=None
            Validation rows; ``validation_fraction`` is then not used. Labels of a
            frame are found by their names, in any order. A Pipeline does not scale
            rows, unless it is told to: ``transform_input=["X_val"]``.

        Returns
        -------
        self
        """


class DeepClassifier(
    CallbackSupportMixin, PresetsMixin, MultiLabelMixin, BaseEstimator
):
    """A network and a plan to train it, as an estimator.

    A subclass has the shared parameters of ``_parameter_constraints``, defines
    ``_network()`` and ``_plan(n_rows)``, and may hold published settings as
    ``PRESETS``. ``{training_parameters}`` and ``{fitted_attributes}`` in its docstring
    are replaced by the text on what is shared.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1e30, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "keep_on_interrupt": ["boolean"],
        "device": [str],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__doc__:
            defaults = {
                name: value
                for name, value in (cls.__init__.__kwdefaults__ or {}).items()
                if name in DeepClassifier._parameter_constraints
            }
            cls.__doc__ = cls.__doc__.replace(
                "{training_parameters}", _SHARED_PARAMETERS.strip().format(**defaults)
            ).replace("{fitted_attributes}", _SHARED_ATTRIBUTES.strip())

    def _network(self) -> Network:
        raise TypeError(f"{type(self).__name__} must define _network().")

    def _n_epochs(self, n_rows: int) -> int:
        """Return how many epochs to train at most, with so many training rows."""
        return int(self.max_epochs)

    def _plan(self, n_rows: int) -> Plan:
        raise TypeError(f"{type(self).__name__} must define _plan().")

    @all_or_nothing
    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        device = find_device(self.device)
        rows, seed = self._check_rows_to_fit(X, y, sample_weight, X_val, y_val)
        network = self._network()
        n_rows = len(rows.train.Y)
        n_epochs = self._n_epochs(n_rows)
        with cpu_threads(self.n_jobs):
            training = Training(
                network,
                self._plan(n_rows),
                rows.train,
                rows.validation,
                seed,
                device,
            )
            callbacks = EpochCallbacks(
                self,
                X,
                y,
                {} if sample_weight is None else {"sample_weight": sample_weight},
                n_epochs,
                lambda: _fitted_attributes(network, training),
            )
            interrupt = callbacks.run_epochs(n_epochs, lambda: self._epoch(training))
        self.__dict__.update(_fitted_attributes(network, training))
        self.interrupted_ = interrupt is not None
        if interrupt is not None and not self.keep_on_interrupt:
            raise interrupt
        if not training.best.epoch:
            warn_user(
                "The fit was interrupted before its first epoch was complete: the "
                "weights are random."
            )
        callbacks.end_fit()
        return self

    fit.__doc__ = _FIT_DOC

    def _check_rows_to_fit(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> tuple[FitRows, list[int]]:
        """Check the data and part the validation rows; return them and a seed."""
        train, validation = self._training_rows(X, y, sample_weight), None
        random = check_random_state(self.random_state)
        seed = random.randint(2**31 - 1, size=4).tolist()
        if X_val is not None or y_val is not None:
            validation = self._check_validation_rows(X_val, y_val)
        elif self.validation_fraction > 0:
            generator = np.random.default_rng([*seed, 0])
            train, validation = train.split(float(self.validation_fraction), generator)
        self._warn_constant(train.Y)
        _warn_unscaled(train.X)
        return FitRows(train, validation), seed

    def _epoch(self, training: Training) -> bool:
        """Train for an epoch; return whether it is to be the last."""
        record = training.epoch()
        done = len(training.history)
        if self.verbose:
            print(_epoch_line(done, record, training.best.epoch), flush=True)
        if training.diverged:
            problem = (
                f"Training diverged in epoch {done}: a loss or a weight was not finite"
            )
            if not training.best.epoch:
                raise ValueError(
                    f"{problem}. X may be out of range (scale it), or learning_rate "
                    f"({self.learning_rate}) too large."
                )
            warn_user(
                f"{problem}. The weights are those of the best epoch before, "
                f"{training.best.epoch}. A smaller learning_rate may help."
            )
            return True
        waited = done - training.best.epoch
        return self.patience is not None and waited >= self.patience

    def _logits(self, X: Any) -> NDArray[np.float64]:
        # In double precision, so that a row's result does not depend on those beside
        # it.
        torch = import_torch()
        device = find_device(self.device)
        with cpu_threads(self.n_jobs):
            weights = as_tensors(self.weights_, device, torch.float64)
            features = Features(X, device, torch.float64)
            return network_logits(self.network_, weights, features)


def _warn_unscaled(X: Any) -> None:
    """Warn of features whose spread shows that nobody scaled them."""
    if sp.issparse(X):
        variance = mean_variance_axis(X, axis=0)[1]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = X.var(axis=0, dtype=np.float64)
    widest = int(np.argmax(variance))
    deviation = float(np.sqrt(variance[widest]))
    if deviation > _WIDEST:
        warn_user(
            f"X is not scaled: column {widest} has a standard deviation of "
            f"{deviation:.3g}. This network does not scale by itself and learns little "
            "from such features; put a StandardScaler before it, in a Pipeline."
        )


def _fitted_attributes(network: Network, training: Training) -> dict[str, Any]:
    history = training.history
    return {
        "network_": network,
        "weights_": training.best.weights,
        "best_epoch_": training.best.epoch,
        "n_epochs_": len(history),
        "history_": {
            name: np.array([record[name] for record in history])
            for name in (history[0] if history else {})
        },
    }


def _epoch_line(epoch: int, record: Mapping[str, float], best: int) -> str:
    values = "  ".join(
        f"{name.replace('_', ' ')} {value:.4f}"
        for name, value in record.items()
        if name != "seconds"
    )
    return f"epoch {epoch:4d}  {values}  best {best}  {record['seconds'] * 1e3:.0f} ms"

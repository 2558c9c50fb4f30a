"""What estimators share whose models come out of a Lebesgue search."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ._calibration import fit_temperatures
from ._front import RULES, ParetoFront
from ._multilabel import MultiLabelMixin
from ._rows import FitRows, Part
from ._search import Search
from ._sklearn_compat import CallbackSupportMixin, EpochCallbacks
from .losses import Loss, get_losses


class LebesgueEstimator(CallbackSupportMixin, MultiLabelMixin, BaseEstimator):
    """Evolves theta, keeps the front, and predicts with a member of it.

    A subclass has the parameters ``losses, incumbent, calibrate, max_epochs,
    patience, max_seconds, n_jobs, verbose``, builds the search and says what the
    logits of a theta are.
    """

    def select(
        self,
        which: str | int | None = None,
        *,
        weights: Mapping[str, float] | None = None,
    ) -> Self:
        """Return a fitted copy that predicts with another model of the run.

        Parameters
        ----------
        which : str or int, default=None
            What :meth:`ParetoFront.select` takes: the name of a loss, "knee",
            "geometric_mean" or the index of a member of the front; or "final" or
            "mean", see ``incumbent``.
        weights : mapping of str to float, default=None
            Instead of ``which``: weights of the losses.

        Returns
        -------
        CLMLClassifier
            It shares the front and the history; nothing is fitted again. A warm
            start continues from this estimator, not from the copy.
        """
        check_is_fitted(self)
        chosen = copy.copy(self)
        # One search cannot go on in two estimators.
        chosen.__dict__.pop("_search", None)
        chosen.__dict__.update(_chosen(self.front_, self._alternatives, which, weights))
        return chosen

    def _check_losses(self) -> tuple[Loss, ...]:
        losses = get_losses(self.losses)
        for loss in losses:
            if loss.role != "objective":
                raise ValueError(
                    f"losses holds {loss.name!r}, a loss for {loss.role} use: it is "
                    "not bounded by 1 or not a loss of decisions and rankings, and "
                    "cannot be optimised by its Lebesgue measure."
                )
        known = ("final", "mean", *RULES, *(loss.name for loss in losses))
        if self.incumbent not in known:
            raise ValueError(
                f"incumbent must be one of {known}, got {self.incumbent!r}."
            )
        return losses

    def _check_validation_rows(self, X_val: Any, y_val: Any) -> Part:
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise ValueError(f"X_val and y_val go together, but {missing} is None.")
        X_val, y_val = self._check_X_y(X_val, y_val, reset=False)
        return Part(X_val, self._encode_targets(y_val, "y_val"))

    def _check_X_y(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 0:
            # scikit-learn would speak of features.
            raise ValueError(f"y must have at least one label, got shape {y.shape}.")
        return validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            reset=reset,
        )

    def _warn_constant(self, Y: NDArray[np.uint8]) -> None:
        share = Y.mean(axis=0)
        constant = self.label_names_[(share == 0) | (share == 1)]
        if len(constant):
            shown = ", ".join(constant[:10]) + (", ..." if len(constant) > 10 else "")
            warnings.warn(
                f"{len(constant)} of {self.n_labels_} labels are constant in the "
                f"training rows and cannot be learnt: {shown}.",
                UserWarning,
                stacklevel=5,
            )

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor | None]:
        n_threads = effective_n_jobs(self.n_jobs)
        if n_threads == 1:
            yield None
            return
        with ThreadPoolExecutor(n_threads, thread_name_prefix="clml") as executor:
            yield executor

    def _evolve(
        self, search: Search, callbacks: EpochCallbacks
    ) -> KeyboardInterrupt | None:
        """Run epochs until one of the reasons to stop; return an interrupt, if any."""
        began = time.perf_counter()
        best_measure, best_epoch = search.archive.measure, search.n_epochs
        last_epoch = search.n_epochs + self.max_epochs
        try:
            while search.n_epochs < last_epoch:
                context = callbacks.begin_epoch()
                record = search.epoch()
                if self.verbose:
                    print(_epoch_line(search, record), flush=True)
                if record["archive_measure"] > best_measure:
                    best_measure = record["archive_measure"]
                    best_epoch = search.n_epochs
                waited = search.n_epochs - best_epoch
                elapsed = time.perf_counter() - began
                if (
                    callbacks.end_epoch(context)
                    or (self.patience is not None and waited >= self.patience)
                    or (self.max_seconds is not None and elapsed >= self.max_seconds)
                ):
                    break
        except KeyboardInterrupt as interrupt:
            return interrupt
        return None

    def _fitted_attributes(self, search: Search, rows: FitRows) -> dict[str, Any]:
        """Return everything a fitted estimator holds, from the epochs so far."""
        mean = search.strategy.mean.astype(np.float32)
        if not search.n_epochs:  # interrupted before the first epoch was complete
            search.archive.update(search.rows.losses(mean[None]), mean[None])
        losses, thetas = search.archive.front()
        final = mean if search.incumbent is None else search.incumbent
        temperature = self._temperatures(
            np.concatenate([thetas, final[None], mean[None]]), search, rows
        )
        front = ParetoFront(
            losses=losses,
            loss_names=tuple(loss.name for loss in get_losses(self.losses)),
            theta=thetas,
            temperature=temperature[:-2],
        )
        alternatives = {
            "final": (final, float(temperature[-2])),
            "mean": (mean, float(temperature[-1])),
        }
        which = "mean" if rows.validation is None else self.incumbent
        archived = search.archived_losses or [losses.astype(np.float32)]
        return {
            "front_": front,
            "history_": search.history_arrays(),
            "archive_losses_": np.concatenate(archived),
            "n_epochs_": search.n_epochs,
            "population_size_": search.strategy.population_size,
            "interrupted_": False,
            "_alternatives": alternatives,
            **_chosen(front, alternatives, which, None),
        }

    def _temperatures(
        self, thetas: NDArray[np.float32], search: Search, rows: FitRows
    ) -> NDArray[np.float64]:
        if not self.calibrate:
            return np.ones(len(thetas))
        some_at_a_time = np.array_split(thetas, -(-len(thetas) // 8))
        return np.concatenate(
            [
                fit_temperatures(search.rows.scores(some), rows.judge.targets)
                for some in some_at_a_time
            ]
        )


def _chosen(
    front: ParetoFront,
    alternatives: Mapping[str, tuple[NDArray[np.float32], float]],
    which: str | int | None,
    weights: Mapping[str, float] | None,
) -> dict[str, Any]:
    """Return the attributes of the model that predicts."""
    if isinstance(which, str) and which in alternatives and weights is None:
        theta, temperature = alternatives[which]
        return {"incumbent_": which, "theta_": theta, "temperature_": temperature}
    member = front.select(which, weights=weights)
    return {
        "incumbent_": member,
        "theta_": front.theta[member],
        "temperature_": float(front.temperature[member]),
    }


def _epoch_line(search: Search, record: Mapping[str, Any]) -> str:
    rows = "validation" if "incumbent_validation" in record else "train"
    losses = " ".join(f"{value:.4f}" for value in record[f"incumbent_{rows}"])
    return (
        f"epoch {search.n_epochs:5d}  incumbent {losses} ({rows})  "
        f"measure {record['measure']:.5f}  archive {record['archive_measure']:.5f}  "
        f"sigma {record['sigma']:.3g}  {record['seconds'] * 1e3:.1f} ms"
    )

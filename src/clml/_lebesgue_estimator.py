"""What estimators share whose models come out of a Lebesgue search."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._archive import covered
from ._calibration import fit_temperatures
from ._compiled import tell_of_compilation
from ._front import RULES, ParetoFront
from ._multilabel import MultiLabelMixin
from ._paths import PathLike
from ._rows import FitRows
from ._search import Search, history_arrays
from ._sklearn_compat import CallbackSupportMixin, EpochCallbacks, warn_user
from .losses import Loss, get_losses, list_losses


class Run(Protocol):
    """Something that runs epoch by epoch: a search, or members that are trained.

    Its progress has an ``epoch``, a ``measure`` of what was found so far, and the
    losses of each epoch, ``archived_losses``.
    """

    @property
    def progress(self) -> Any:
        """What was found so far."""

    def epoch(self) -> dict[str, Any]:
        """Run one more epoch; return its record."""


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
            It shares the front and the history; nothing is fitted again. Its
            parameters are those of this estimator: fitted anew, it predicts with
            ``incumbent``. A warm start continues from this estimator, not from the
            copy.
        """
        check_is_fitted(self)
        chosen = copy.copy(self)
        model = choose_model(self.front_, self._alternatives, which, weights)
        chosen.__dict__.update(self._predicting(model))
        return chosen

    def report(self, path: PathLike, X: Any = None, y: Any = None) -> Path:
        """Write a page about the run: its front to choose from, its trajectory.

        Needs the extra ``report``.

        Parameters
        ----------
        path : str or path
            Where the HTML file goes. It needs no other file and no network.
        X, y : array-like or sparse matrix, default=None
            Rows that were not trained on, and their labels: the page then shows the
            losses of every member of the front on them, and how well it finds each
            label.

        Returns
        -------
        Path
            Where it is.
        """
        check_is_fitted(self)
        from .report import report_of

        return report_of(self, path, X, y)

    def _predicting(self, model: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes that predict, from those of a chosen model."""
        return model

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        # One search cannot go on in two estimators.
        twin.__dict__.pop("_search", None)
        return twin

    def _check_losses(self) -> tuple[Loss, ...]:
        losses = get_losses(self.losses)
        for loss in losses:
            if loss.role != "objective":
                reason = (
                    "has no upper bound"
                    if loss.role == "tracked"
                    else "ranks rows against each other, which is for evaluation alone"
                )
                raise ValueError(
                    f"losses holds {loss.name!r}, which {reason}: it cannot be "
                    f"optimised. These can: {list_losses(role='objective')}."
                )
        names = tuple(loss.name for loss in losses)
        reserved = ("final", "mean", *RULES)
        taken = [name for name in names if name in reserved]
        if taken:
            raise ValueError(
                f"losses holds a loss named {taken[0]!r}, which is also a rule of "
                "select. Give it another name."
            )
        if self.max_front <= len(losses):
            raise ValueError(
                f"max_front must be greater than the number of losses, {len(losses)}: "
                f"the best of each is always kept. Got {self.max_front}."
            )
        known = (*reserved, *names)
        if self.incumbent not in known:
            raise ValueError(
                f"incumbent must be one of {known}, got {self.incumbent!r}."
            )
        return losses

    def _check_n_jobs(self) -> None:
        if self.n_jobs == 0:
            raise ValueError("n_jobs must be a number of threads, -1 or None, got 0.")

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor | None]:
        self._check_n_jobs()
        n_threads = effective_n_jobs(self.n_jobs)
        if n_threads == 1:
            yield None
            return
        # The caller's thread is one of them.
        with ThreadPoolExecutor(n_threads - 1, thread_name_prefix="clml") as executor:
            yield executor

    def _evolve(
        self, search: Run, callbacks: EpochCallbacks, n_epochs: int
    ) -> KeyboardInterrupt | None:
        """Run epochs until one of the reasons to stop; return an interrupt, if any."""
        tell_of_compilation(covered)  # every fit comes to that kernel
        began = time.perf_counter()
        best_measure = search.progress.measure
        best_epoch = search.progress.epoch

        def epoch() -> bool:
            nonlocal best_measure, best_epoch
            record = search.epoch()
            done = search.progress.epoch
            if done == 1:
                self._check_first_losses(search.progress.archived_losses[0])
            if self.verbose:
                print(_epoch_line(done, record), flush=True)
            if record["archive_measure"] > best_measure:
                best_measure, best_epoch = record["archive_measure"], done
            waited = done - best_epoch
            elapsed = time.perf_counter() - began
            return (self.patience is not None and waited >= self.patience) or (
                self.max_seconds is not None and elapsed >= self.max_seconds
            )

        return callbacks.run_epochs(n_epochs, epoch)

    def _check_first_losses(self, losses: NDArray[np.floating]) -> None:
        """Refuse losses that are never defined; warn of those outside [0, 1]."""
        if not np.isfinite(losses).all(axis=1).any():
            raise ValueError(
                "No candidate of the first epoch had defined losses. The features may "
                "be out of range (standardize them), or a loss function may return NaN."
            )
        for loss, values in zip(get_losses(self.losses), losses.T, strict=True):
            values = values[np.isfinite(values)]
            if len(values) and (values.min() < -1e-6 or values.max() > 1 + 1e-6):
                warn_user(
                    f"The loss {loss.name!r} takes values from {values.min():.3g} to "
                    f"{values.max():.3g}. The search measures what lies between a loss "
                    "and 1, so losses should be in [0, 1]."
                )

    def _run_search(
        self,
        search: Search,
        rows: FitRows,
        X: Any,
        y: Any,
        sample_weight: Any,
        n_epochs: int | None = None,
    ) -> KeyboardInterrupt | None:
        """Evolve and store the fitted attributes; return an interrupt, if any."""
        n_epochs = self.max_epochs if n_epochs is None else n_epochs
        callbacks = EpochCallbacks(
            self,
            X,
            y,
            {} if sample_weight is None else {"sample_weight": sample_weight},
            n_epochs,
            lambda: self._fitted_attributes(search, rows, calibrated="chosen"),
        )
        interrupt = self._evolve(search, callbacks, n_epochs)
        # First a model that holds whatever comes, then the temperatures, which take
        # their time: an impatient second Ctrl-C must not lose the first one's model.
        self.__dict__.update(self._fitted_attributes(search, rows, calibrated="none"))
        try:
            if self.calibrate:
                self.__dict__.update(self._fitted_attributes(search, rows))
            if interrupt is None or self.keep_on_interrupt:
                callbacks.end_fit()
        except KeyboardInterrupt as late:
            interrupt = interrupt or late
        self.interrupted_ = interrupt is not None
        return interrupt

    def _fitted_attributes(
        self,
        search: Search,
        rows: FitRows,
        calibrated: Literal["all", "chosen", "none"] = "all",
    ) -> dict[str, Any]:
        """Return everything a fitted estimator holds, from the epochs so far."""
        progress = search.progress
        mean = search.mean
        archive = progress.archive
        if not progress.epoch:  # interrupted before the first epoch was complete
            archive = archive.updated(search.rows.losses(mean[None]), mean[None])
        losses, thetas = archive.front()
        final = mean if progress.incumbent is None else progress.incumbent
        front = ParetoFront(
            losses=losses,
            loss_names=tuple(loss.name for loss in get_losses(self.losses)),
            theta=thetas,
        )
        which = "mean" if rows.validation is None else self.incumbent
        alternatives = {"final": (final, 1.0), "mean": (mean, 1.0)}
        models = [*thetas, final, mean]
        temperature = np.ones(len(models))
        if self.calibrate and calibrated != "none":
            chosen = choose_model(front, alternatives, which, None)["incumbent_"]
            place = {"final": len(thetas), "mean": len(thetas) + 1}.get(chosen, chosen)
            wanted = range(len(models)) if calibrated == "all" else [place]
            for i in wanted:
                scores = search.rows.scores(models[i][None])
                (temperature[i],) = fit_temperatures(scores, rows.judge.targets)
            front = replace(front, temperature=temperature[:-2])
            alternatives = {
                "final": (final, float(temperature[-2])),
                "mean": (mean, float(temperature[-1])),
            }
        archived = progress.archived_losses or (losses.astype(np.float32),)
        return {
            "front_": front,
            "history_": history_arrays(progress.history),
            "archive_losses_": np.concatenate(archived),
            "n_epochs_": progress.epoch,
            "population_size_": search.strategy.population_size,
            "interrupted_": False,
            "_alternatives": alternatives,
            **choose_model(front, alternatives, which, None),
        }


def choose_model(
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


def _epoch_line(epoch: int, record: Mapping[str, Any]) -> str:
    rows = "validation" if "incumbent_validation" in record else "train"
    losses = " ".join(f"{value:.4f}" for value in record[f"incumbent_{rows}"])
    return (
        f"epoch {epoch:5d}  incumbent {losses} ({rows})  "
        f"measure {record['measure']:.5f}  archive {record['archive_measure']:.5f}  "
        f"sigma {record['sigma']:.3g}  {record['seconds'] * 1e3:.1f} ms"
    )

"""What estimators share whose models come out of a Lebesgue search."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ._base.multilabel import MultiLabelMixin
from ._base.rows import FitRows
from ._maps.calibration import fit_temperatures
from ._maps.front import RULES, ParetoFront
from ._maps.row_rules import shifted_rows
from ._support.compiled import tell_of_compilation
from ._support.fingerprint import Describer, data_digest
from ._support.paths import PathLike
from ._support.sklearn_compat import CallbackSupportMixin, EpochCallbacks, warn_user
from ._support.threads import started_pool
from ._support.transaction import snapshot
from ._training.run_checkpoint import RunCheckpoint, Stopping
from ._training.run_state import damaged, search_state
from ._training.search import Search, history_arrays
from .losses import AbsentLoss, Loss, get_losses, list_losses, own_loss

# Parameters that a run may change when it goes on: its results do not depend on them.
_FREE_OF_RUN = (
    "checkpoint",
    "checkpoint_every",
    "client",
    "distil",
    "keep_on_interrupt",
    "memory_mb",
    "n_jobs",
    "verbose",
)


class Run(Protocol):
    """Something that runs epoch by epoch: a search, or members that are trained.

    Its progress has an ``epoch``, a ``measure`` of what was found so far, a
    ``history`` and the losses of each epoch, ``archived_losses``.

    Attributes
    ----------
    kernel : compiled function
        One that every such run comes to. Others are on disk where it is.
    """

    kernel: Any

    @property
    def between_epochs(self) -> bool:
        """Whether an epoch has been completed, and none begun since."""

    @property
    def progress(self) -> Any:
        """What was found so far."""

    def epoch(self) -> dict[str, Any]:
        """Run one more epoch; return its record."""


class LebesgueEstimator(CallbackSupportMixin, MultiLabelMixin, BaseEstimator):
    """Evolves theta, keeps the front, and predicts with a member of it.

    A subclass has the parameters ``losses, incumbent, calibrate, max_epochs,
    patience, max_seconds, n_jobs, verbose``, builds the search and says what the
    logits of a theta are, ``_mapped_logits(X)``, before its temperature and its rule.
    """

    _checkpoint_constraints: ClassVar[dict[str, list[Any]]] = {
        "checkpoint": [str, os.PathLike, None],
        "checkpoint_every": [Interval(Real, 0, None, closed="left")],
    }

    def select(
        self,
        which: str | int | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
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
        at_most : mapping of str to float, default=None
            Limits that the model's losses keep to, such as ``{"hamming": 0.2}``; with
            the name of a loss, a rule of the front, or weights; or alone.

        Returns
        -------
        CLMLClassifier
            The default, with a warning, where no model is clearly better: see
            :meth:`ParetoFront.select`. It shares the front and the history; nothing
            is fitted again. Its parameters are those of this estimator: fitted anew,
            it predicts with ``incumbent``. A warm start continues from this estimator,
            not from the copy.
        """
        check_is_fitted(self)
        chosen = copy.copy(self)
        model: str | int
        by_name = isinstance(which, str) and which in chosen._alternatives
        if by_name and weights is None:
            if at_most is not None:
                raise ValueError(
                    "at_most goes with a loss, a rule of the front or weights, "
                    f"got which={which!r}."
                )
            model = str(which)
        else:
            model = chosen.front_.select(which, weights=weights, at_most=at_most)
        found = choose_model(chosen.front_, chosen._alternatives, model)
        chosen.__dict__.update(chosen._predicting(found))
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
            label. Labels of a frame are found by their names, in any order.

        Returns
        -------
        Path
            Where it is.
        """
        check_is_fitted(self)
        from .report import report_of

        return report_of(snapshot(self), path, X, y)

    @property
    def rule_(self) -> str | None:
        """What decides a row beside ``theta_``, as ``front_.rules`` has it."""
        check_is_fitted(self)
        chosen = self.incumbent_
        return None if isinstance(chosen, str) else self.front_.rules[chosen]

    def _logits(self, X: Any) -> NDArray[np.float64]:
        # Last of all, so that the sign of what is returned is what the rule says.
        logits = self._mapped_logits(X) / self.temperature_
        return shifted_rows(self.rule_, logits, self.temperature_)

    def _mapped_logits(self, X: Any) -> NDArray[np.float64]:
        raise TypeError(f"{type(self).__name__} must define _mapped_logits().")

    def _predicting(self, model: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes that predict, from those of a chosen model."""
        return model

    def __copy__(self) -> Self:
        twin = snapshot(self)
        # One search cannot go on in two estimators.
        twin.__dict__.pop("_search", None)
        return twin

    def _check_losses(self) -> tuple[Loss, ...]:
        losses = get_losses(self.losses)
        for loss in losses:
            if isinstance(loss, AbsentLoss):
                raise ValueError(loss.request)
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
    def _threads(self) -> Iterator[Executor | None]:
        self._check_n_jobs()
        n_threads = effective_n_jobs(self.n_jobs)
        if n_threads == 1:
            yield None
            return
        # The caller's thread is one of them.
        with started_pool(n_threads - 1) as executor:
            yield executor

    def _keeper(self, data: Mapping[str, Any]) -> RunCheckpoint:
        """Return what keeps the state of a fit on these data.

        Parameters
        ----------
        data : mapping of str to data or None
        """
        if self.checkpoint is None:
            return RunCheckpoint()
        if getattr(self, "warm_start", False):
            raise ValueError(
                "checkpoint keeps a run from its first epoch on, and warm_start=True "
                "goes on with one in memory: use one of the two."
            )
        from .persistence.checkpoint import Checkpoint

        given = {name: value for name, value in data.items() if value is not None}
        describer = Describer()
        identity = {
            "settings": {
                "class": describer.of(type(self)),
                **self._settings_of_run(describer),
            },
            "data": {name: data_digest(value) for name, value in given.items()},
            "packages": describer.packages,
        }
        checkpoint = Checkpoint(self.checkpoint, float(self.checkpoint_every), identity)
        return RunCheckpoint(checkpoint)

    def _draw_seed(self, keeper: RunCheckpoint) -> list[int]:
        """Draw four integers, or go on with those of the run that was kept."""
        random = check_random_state(self.random_state)
        drawn = random.randint(2**31 - 1, size=4).tolist()
        seed = keeper.saved.get("seed", drawn)
        with keeper.reading():
            if not isinstance(seed, list) or not all(
                type(number) is int and 0 <= number < 2**31 for number in seed
            ):
                raise damaged("seed must be four integers below 2**31")
        keeper.settle(seed=seed)
        return seed

    def _settings_of_run(self, describer: Describer) -> dict[str, Any]:
        """Return the parameters that a run depends on, as JSON has them."""
        params = self.get_params(deep=False)
        losses = [own_loss(loss) for loss in params["losses"]]
        cloned = not getattr(self, "prefit", False)
        return {
            name: describer.of(value, cloned)
            for name, value in (params | {"losses": losses}).items()
            if name not in _FREE_OF_RUN
        }

    def _evolve(
        self,
        run: Run,
        callbacks: EpochCallbacks,
        n_epochs: int,
        keeper: RunCheckpoint,
        state: Callable[[], dict[str, Any]],
    ) -> KeyboardInterrupt | None:
        """Run epochs until one of the reasons to stop; return an interrupt, if any."""
        tell_of_compilation(run.kernel)
        with keeper.reading():
            stopping = Stopping(
                self.patience, self.max_seconds, keeper.saved.get("stop"), keeper.clock
            )
        if "run" in keeper.saved:
            done = run.progress.epoch
            stopping.begin(0.0, [r["archive_measure"] for r in run.progress.history])
            n_epochs = 0 if stopping.done else n_epochs - done
            if self.verbose:
                print(f"epoch {done:5d}  goes on from {self.checkpoint}", flush=True)
        else:
            stopping.begin(run.progress.measure)

        def epoch() -> bool:
            record = run.epoch()
            done = run.progress.epoch
            if done == 1:
                # On either rows: a function may be undefined at times.
                first = run.progress.archived_losses[0], record["incumbent_train"][None]
                self._check_first_losses(np.concatenate(first))
            if self.verbose:
                print(_epoch_line(done, record), flush=True)
            return stopping.after(record["archive_measure"])

        def keep(is_last: bool, now: bool) -> None:
            stopping.finished = is_last
            keeper.offer(lambda: {"run": state(), "stop": stopping.state()}, now)

        interrupt = callbacks.run_epochs(
            n_epochs, epoch, lambda is_last: keep(is_last, now=is_last)
        )
        if interrupt is not None and run.between_epochs:
            with suppress(KeyboardInterrupt):  # an impatient second one
                keep(stopping.finished, now=True)
        return interrupt

    def _after_fit(self) -> None:
        """Warn, once a fit, of candidates whose losses were not finite."""
        counts = self.history_.get("undefined", np.empty((0, 0)))
        for name, of_epochs in zip(self.front_.loss_names, counts.T, strict=False):
            if of_epochs.any():
                warn_user(
                    f"The loss {name!r} was NaN or infinite for {of_epochs.sum()} "
                    f"candidates in {np.count_nonzero(of_epochs)} of {len(counts)} "
                    "epochs. They were ranked last."
                )

    def _check_first_losses(self, losses: NDArray[np.floating]) -> None:
        """Refuse losses that are never defined; warn of those outside [0, 1]."""
        defined = np.isfinite(losses)
        if not defined.all(axis=1).any():
            names = [loss.name for loss in get_losses(self.losses)]
            never = [
                n for n, some in zip(names, defined.T, strict=True) if not any(some)
            ]
            raise ValueError(
                "No candidate of the first epoch had defined losses. The features may "
                "be out of range (standardize them), or a loss function may return "
                f"NaN, where a number is expected always. Undefined: {never or names}."
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
        given: tuple[Any, Any, Any],
        n_epochs: int,
        keeper: RunCheckpoint,
    ) -> KeyboardInterrupt | None:
        """Evolve and store the fitted attributes; return an interrupt, if any."""
        X, y, sample_weight = given
        final: dict[str, Any] = {}
        callbacks = EpochCallbacks(
            self,
            X,
            y,
            {} if sample_weight is None else {"sample_weight": sample_weight},
            n_epochs,
            lambda: final or self._fitted_attributes(search, rows, calibrated="chosen"),
        )
        interrupt = self._evolve(
            search, callbacks, n_epochs, keeper, lambda: search_state(search)
        )
        # First a model that holds whatever comes, then what takes time, the front and
        # the temperatures: an impatient second Ctrl-C must not lose the first's model.
        self.__dict__.update(self._fitted_attributes(search, rows, calibrated="none"))
        try:
            final = self._fitted_attributes(search, rows)
            self.__dict__.update(final)
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
            chosen = choose_model(front, alternatives, which)["incumbent_"]
            place = {"final": len(thetas), "mean": len(thetas) + 1}.get(chosen, chosen)
            wanted = range(len(models)) if calibrated == "all" else [place]
            for i in wanted:
                scores = search.rows.sample.scores(models[i][None])
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
            **choose_model(front, alternatives, which),
        }


def choose_model(
    front: ParetoFront,
    alternatives: Mapping[str, tuple[NDArray[np.float32], float]],
    which: str | int,
) -> dict[str, Any]:
    """Return the attributes of the model that predicts."""
    if isinstance(which, str) and which in alternatives:
        theta, temperature = alternatives[which]
        return {"incumbent_": which, "theta_": theta, "temperature_": temperature}
    member, _ = front.choice(which)
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

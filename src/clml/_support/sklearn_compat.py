"""The one module that knows about scikit-learn versions and its newer protocols.

Callbacks exist from scikit-learn 1.9 on. Before that estimators fit as ever, and
``set_callbacks`` is simply not there.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.base import _clone_parametrized
from sklearn.base import _fit_context as fit_context

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this library and scikit-learn that led here."""
    frame = inspect.currentframe()
    level = 0
    while frame is not None:
        level += 1
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ("clml", "sklearn"):
            break
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def clone_sharing(estimator: Any, parameter: str) -> Any:
    """Return an unfitted copy that shares a parameter which cannot be copied."""
    shared = getattr(estimator, parameter)
    bare = copy.copy(estimator)
    setattr(bare, parameter, None)
    twin = _clone_parametrized(bare)
    setattr(twin, parameter, shared)
    return twin


class EpochCallbacks:
    """Runs the callbacks of a fit: one task for the fit, one below it an epoch.

    Parameters
    ----------
    estimator : estimator
        The one being fitted.
    X, y : the training data, as the callbacks are to see them
    metadata : dict
    max_epochs : int
    fitted_attributes : callable
        Returns the attributes that make a fitted estimator of the current state;
        called only for callbacks that ask for one.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        max_epochs: int,
        fitted_attributes: Callable[[], dict[str, Any]],
    ):
        self._estimator = estimator
        self._arguments = {"X": X, "y": y, "metadata": metadata}
        self._fitted_attributes = fitted_attributes
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=max_epochs)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._arguments)
        # Without callbacks an epoch should not pay for contexts.
        self._active = bool(getattr(estimator, "_skl_callbacks", None))

    def begin_epoch(self) -> Any:
        """Open the context of an epoch."""
        if not self._active or self._context is None:
            return None
        context = self._context.subcontext(task_name="epoch")
        context.call_on_fit_task_begin(estimator=self._estimator, **self._arguments)
        return context

    def end_epoch(self, context: Any) -> bool:
        """Close it; return whether a callback asks to stop."""
        if context is None:
            return False
        return bool(
            context.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=self._fitted_attributes,
                **self._arguments,
            )
        )

    def run_epochs(
        self,
        n_epochs: int,
        epoch: Callable[[], bool],
        ended: Callable[[bool], None] = lambda is_last: None,
    ) -> KeyboardInterrupt | None:
        """Run epochs until one says stop, or a callback; return an interrupt, if any.

        Parameters
        ----------
        n_epochs : int
            At most so many.
        epoch : callable
            Runs one; returns whether it is to be the last.
        ended : callable, default=nothing
            Called after each, with whether it was the last one.
        """
        try:
            for number in range(n_epochs):
                context = self.begin_epoch()
                is_last = epoch() or number == n_epochs - 1
                is_last = self.end_epoch(context) or is_last
                ended(is_last)
                if is_last:
                    break
        except KeyboardInterrupt as interrupt:
            return interrupt
        return None

    def end_fit(self) -> None:
        """Close the context of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=self._fitted_attributes,
                **self._arguments,
            )


__all__ = [
    "CallbackSupportMixin",
    "EpochCallbacks",
    "clone_sharing",
    "fit_context",
    "warn_user",
    "with_callbacks",
]

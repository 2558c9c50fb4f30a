"""Estimators that change as a whole or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

Fit = TypeVar("Fit", bound=Callable[..., Any])
Estimator = TypeVar("Estimator")


def snapshot(estimator: Estimator) -> Estimator:
    """Return an estimator with the attributes of this moment.

    A fit in another thread replaces all attributes between two reads. Whoever needs
    several of them reads them from a snapshot, which no fit changes.
    """
    twin: Estimator = type(estimator).__new__(type(estimator))
    twin.__dict__ = vars(estimator).copy()
    return twin


def all_or_nothing(fit: Fit) -> Fit:
    """Decorate a ``fit``: its attributes appear all at once, when it has ended.

    A twin is fitted, and its attributes replace those of the estimator in one
    assignment. Until then, and for ever after an error, the estimator is what it was.

    An interrupt counts as an end if the twin has ``interrupted_``, which estimators
    set together with a model of the epochs so far. What an estimator has to say of a
    fit that has ended, its method ``_after_fit()`` says: where warnings are errors,
    one at the end of a long fit must not cost the model.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from clml._support.transaction import all_or_nothing
    >>> class Mean(BaseEstimator):
    ...     @all_or_nothing
    ...     def fit(self, X):
    ...         self.n_ = len(X)
    ...         self.mean_ = sum(X) / self.n_
    ...         return self
    >>> mean = Mean().fit([1, 2])
    >>> mean.fit([])
    Traceback (most recent call last):
    ...
    ZeroDivisionError: division by zero
    >>> mean.n_, mean.mean_
    (2, 1.5)
    """

    @functools.wraps(fit)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = snapshot(self)
        vars(twin).pop("interrupted_", None)
        try:
            fit(twin, *args, **kwargs)
        except KeyboardInterrupt:
            if hasattr(twin, "interrupted_"):
                twin.interrupted_ = True
                _replace_attributes(self, twin)
            raise
        _replace_attributes(self, twin)
        if hasattr(self, "_after_fit"):
            self._after_fit()
        return self

    return wrapper  # type: ignore[return-value]


def _replace_attributes(estimator: Any, fitted: Any) -> None:
    # Parameters are not a fit's to change: they may have been set meanwhile.
    names = estimator._get_param_names()
    params = {name: vars(estimator)[name] for name in names if name in vars(estimator)}
    estimator.__dict__ = vars(fitted) | params


@contextmanager
def params_kept_on_error(estimator: Any) -> Iterator[None]:
    """Take back what a failed ``set_params`` has set, in estimators inside too.

    scikit-learn sets parameters one after another, up to the first that is not known.
    """
    nested = estimator.get_params(deep=True).values()
    within = [value for value in nested if isinstance(value, BaseEstimator)]
    before = [(each, vars(each).copy()) for each in (estimator, *within)]
    try:
        yield
    except BaseException:
        for each, attributes in before:
            each.__dict__ = attributes
        raise

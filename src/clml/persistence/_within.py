"""What a loaded object holds, however deep: checked, and made one of this machine.

A file says which attributes an object has, and skops sets them all. Estimators among
them could name folders and clusters, ask for more threads than a process may have, or
hide their own methods.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from numbers import Integral
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Options, make_constraint

from .._base.multilabel import MultiLabelMixin
from .._support.csr_format import check_csr_parts
from .._support.machine import PLACES, names_place
from ._checks import check_finite, check_positive
from ._fitted import check_fitted
from ._random import check_position
from ._registry import DATACLASSES, ESTIMATORS, VALUES, is_registered

#: What scikit-learn keeps of callbacks, which are programs.
CALLBACKS = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)
# Texts that these parameters may have beside the words that their classes list. All
# other texts could name a place, or be a program as `pre_dispatch` is one.
_FREE_TEXTS = {
    "constant",
    "device",
    "dtype",
    "encoding",
    "fill_value",
    "importance_getter",
    "incumbent",
    "losses",
    "metric",
    "outlier_label",
    "pos_label",
    "refit",
    "resource",
    "scoring",
    "separator",
    "threshold",
    "token_pattern",
    "verbose_feature_names_out",
}
# How often a level of nested estimators is shown at most, and all of them together.
_TIMES_SHOWN, _MOST_SHOWN = 6, 30_000
# Attributes that say how many threads or processes there are to be.
_THREADS = ("n_jobs", "n_threads", "_n_threads")
# Parameters that hold names of other parameters, and values for them.
_GRIDS = ("param_grid", "param_distributions")
_RANDOM = (np.random.RandomState, np.random.Generator, np.random.BitGenerator)
# Classes of this library that learners are made of, beside those of the registry.
_HELPERS = ("LabelClasses", "ScaleNonIndicators")


def settle(estimator: Any) -> None:
    """Make an estimator from a file one of this machine.

    Parameters that name a place become what they are by default, and so do texts that
    the class does not list. There are at most as many threads as this machine has.

    Parameters
    ----------
    estimator : estimator
        Changed in place. What it holds is to be given on its own.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from clml import CLMLClassifier
    >>> from clml.persistence._within import settle
    >>> pipeline = make_pipeline(CLMLClassifier(), memory="/somewhere")
    >>> settle(pipeline)
    >>> pipeline.memory is None
    True
    """
    kind = type(estimator)
    parameters = vars(estimator)
    names = kind._get_param_names()
    for name in names:
        if name in PLACES or not _may_be(kind, name, parameters.get(name)):
            parameters[name] = _default(kind, name)
    for name in set(PLACES) - set(names):
        parameters.pop(name, None)
    _limit_threads(parameters)


def check_nesting(estimator: Any) -> None:
    """Refuse estimators that are nested so deep that to show them would not end.

    scikit-learn writes an inner one several times to see whether it is the default,
    and does that on every level.

    Parameters
    ----------
    estimator : estimator

    Raises
    ------
    ValueError
    """
    costs: dict[int, float] = {}

    def cost(value: Any) -> float:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list | tuple):
            return sum(map(cost, value))
        if not isinstance(value, BaseEstimator):
            return 0
        if id(value) not in costs:
            costs[id(value)] = math.inf  # of what holds itself
            inner = [vars(value).get(name) for name in type(value)._get_param_names()]
            costs[id(value)] = 1 + _TIMES_SHOWN * sum(map(cost, inner))
        return costs[id(value)]

    if cost(estimator) > _MOST_SHOWN:
        raise ValueError("its estimators are nested too deep")


def check_estimator(estimator: Any) -> None:
    """Refuse an estimator that would do other things than its class does.

    Parameters
    ----------
    estimator : estimator
        What it holds is to be given on its own.

    Raises
    ------
    ValueError
        If it would open files by the names in its rows, set parameters that name a
        place when it is fitted again, or hides a method.
    """
    kind = type(estimator)
    names = kind._get_param_names()
    for name, value in vars(estimator).items():
        if name not in names:
            _check_not_hidden(kind, name)
        elif name == "input" and value in ("file", "filename"):
            raise ValueError(
                f"{kind.__name__} has input={value!r}: it would open whatever files "
                "its rows name"
            )
        elif name in _GRIDS:
            _check_grid(kind, value)


def _may_be(kind: type, name: str, value: Any) -> bool:
    """Tell whether a parameter may have a value: any but texts that no class lists.

    Of classes that the user has named nothing is known.
    """
    is_text = isinstance(value, str | bytes | os.PathLike)
    if not is_text or name in _FREE_TEXTS or not _is_known(kind):
        return True
    listed = getattr(kind, "_parameter_constraints", {}).get(name, ())
    if isinstance(listed, str):  # "no_validation"
        return False
    found = (make_constraint(each) for each in listed)
    return any(isinstance(c, Options) and c.is_satisfied_by(value) for c in found)


def _is_known(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("clml", "sklearn")


def _default(kind: type, name: str) -> Any:
    default = inspect.signature(kind).parameters[name].default
    return None if default is inspect.Parameter.empty else default


def _check_grid(kind: type, grid: Any) -> None:
    for each in grid if isinstance(grid, list | tuple) else [grid]:
        for name in each if isinstance(each, Mapping) else ():
            if names_place(str(name)):
                raise ValueError(f"{kind.__name__} would set {str(name)!r}")


def objects_within(value: Any) -> Iterator[Any]:
    """Yield an object and all that it holds, each once.

    What has been taken from an object by the time that the next one is asked for is
    passed over.
    """
    # With the objects themselves: the id of one that is gone is used again.
    seen: dict[int, Any] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node, type):
            continue
        seen[id(node)] = node
        yield node
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list | tuple | set | frozenset):
            stack.extend(node)
        elif isinstance(node, np.ndarray) and node.dtype == object:
            stack.extend(node.flat)
        if hasattr(node, "__dict__"):
            stack.extend(vars(node).values())


def check_within(value: Any) -> None:
    """Check what an object that skops built holds, and make it one of this machine.

    Parameters
    ----------
    value : any object

    Raises
    ------
    ValueError
        If something in it would harm, or does not fit together.
    """
    # Imported here: it takes as long as all of this library.
    from ._trees import check_trees

    nodes = []
    for node in objects_within(value):
        nodes.append(node)
        if hasattr(node, "__dict__"):
            _check_object(node)
        if isinstance(node, BaseEstimator):
            settle(node)
            check_estimator(node)
            check_nesting(node)
    # Afterwards: what is checked here goes by what others hold.
    for node in nodes:
        if isinstance(node, sp.csr_array | sp.csr_matrix):
            check_csr_parts(node.data, node.indices, node.indptr, node.shape)
        elif isinstance(node, _RANDOM):
            check_position(node)
        elif isinstance(node, BaseEstimator):
            _check_own(node)
        check_trees(node)


def _limit_threads(attributes: dict[str, Any]) -> None:
    """Leave no attribute that asks for more threads than this machine has."""
    for name in _THREADS:
        if name not in attributes or attributes[name] is None:
            continue
        value = attributes[name]
        if not isinstance(value, Integral) or isinstance(value, bool):
            attributes[name] = None
        elif value > joblib.cpu_count():
            attributes[name] = joblib.cpu_count()
        elif name != "n_jobs" and value < 1:
            attributes[name] = 1


def _check_object(node: Any) -> None:
    """Refuse what is no part of models; take from others what is not a model's."""
    kind = type(node)
    if kind.__module__.startswith("clml.") and not _is_of_models(kind):
        raise ValueError(
            f"an object of {kind.__module__}.{kind.__name__} is no part of a model"
        )
    # What is computed when it is first asked for is computed here.
    cached = [name for name in vars(node) if _is_cached(kind, name)]
    for name in (*CALLBACKS, *getattr(kind, "_not_saved", ()), *cached):
        vars(node).pop(name, None)
    _limit_threads(vars(node))
    if not isinstance(node, BaseEstimator):
        for name in vars(node):
            _check_not_hidden(kind, name)


def _is_of_models(kind: type) -> bool:
    """Tell whether a class of this library is one that models are made of."""
    return (
        kind.__name__ in _HELPERS
        or is_registered(ESTIMATORS, kind)
        or is_registered(DATACLASSES, kind)
        or is_registered(VALUES, kind)
        or kind.__module__.startswith("clml.losses.")
    )


def _check_not_hidden(kind: type, name: str) -> None:
    """Refuse an attribute that hides what a class does; its defaults one may."""
    found = inspect.getattr_static(kind, name, None)
    if found is None or not _is_known(kind) or _is_cached(kind, name):
        return
    if callable(found) or hasattr(found, "__get__") or name.startswith("_"):
        raise ValueError(f"{kind.__name__} cannot have the attribute {name!r}")


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), cached_property)


def _check_own(estimator: Any) -> None:
    """Check what was fitted of an estimator of this library."""
    if type(estimator).__name__ == "ScaleNonIndicators" and hasattr(estimator, "mean_"):
        check_finite("mean_", estimator.mean_)
        check_positive("scale_", estimator.scale_)
    if not isinstance(estimator, MultiLabelMixin) or not hasattr(
        estimator, "n_labels_"
    ):
        return
    check_fitted(estimator)
    estimator._validate_params()
    if hasattr(estimator, "_restore"):
        # What is no array is built anew: its own arrays are not checked.
        estimator._restore()

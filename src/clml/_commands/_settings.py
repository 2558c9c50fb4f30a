"""What options say, as settings of estimators: --set, --losses, --select."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import click

LEARNERS = ("random_forest", "extra_trees", "logistic_regression")
# Settings that have an option of their own.
_OWN_OPTION = {
    "losses": "--losses",
    "max_epochs": "--epochs",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "device": "--device",
    "estimator": "--estimator",
}
# Settings that are values with parameters of their own, which depend on the value.
_WITH_PARAMETERS = ("search", "network", "encoding")
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def parse_value(text: str) -> Any:
    """Return the number, truth value, None or list that a text is, else the text.

    Examples
    --------
    >>> from clml._commands._settings import parse_value
    >>> [parse_value(text) for text in ("3", "0.5", "true", "none", "auto")]
    [3, 0.5, True, None, 'auto']
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def parse_settings(given: Iterable[str], known: Iterable[str]) -> dict[str, Any]:
    """Return the settings that --set names, refused where they are unknown.

    Examples
    --------
    >>> from clml._commands._settings import parse_settings
    >>> parse_settings(["n_members=4", "search=cma"], ["n_members", "search"])
    {'n_members': 4, 'search': 'cma'}

    One of a value that is a setting, with a dot or two underscores:

    >>> parse_settings(["search.sigma0=0.5"], ["n_members", "search"])
    {'search__sigma0': 0.5}
    """
    from .._training.idle_settings import say_where

    known = sorted(known)
    values = [name for name in _WITH_PARAMETERS if name in known]
    settings: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace(".", "__")
        problem = ""
        if not equals or not name:
            problem = f"expected NAME=VALUE, got {text!r}."
        elif name in _OWN_OPTION:
            problem = f"{name!r} has an option of its own, {_OWN_OPTION[name]}."
        elif name not in known and name.partition("__")[0] not in values:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if values:
                where = say_where(name)
                hint = f" {where}." if where else hint
            plain = ", ".join(
                n for n in known if "__" not in n and n not in _OWN_OPTION
            )
            problem = f"there is no setting {name!r}.{hint} There are: {plain}."
        elif name in settings:
            problem = f"{name!r} is set twice."
        if problem:
            raise click.BadParameter(problem, param_hint="--set")
        settings[name] = _with_values_read(name, parse_value(value.strip()))
    return settings


def _with_values_read(name: str, value: Any) -> Any:
    """Return a setting; tables such as {'kind': 'bins'} become what they stand for."""
    if not isinstance(value, dict | list):
        return value
    from .._training.written_values import with_values_read

    try:
        return with_values_read(value)
    except ValueError as error:
        raise click.BadParameter(f"{name}: {error}", param_hint="--set") from None


def parse_losses(text: str) -> tuple[str, ...]:
    """Return the names of losses, refused where there is no such loss."""
    from ..losses import get_losses

    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        return tuple(loss.name for loss in get_losses(names))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--losses") from None


def parse_select(text: str) -> dict[str, Any]:
    """Return the arguments of ``select`` that --select says.

    Examples
    --------
    >>> from clml._commands._settings import parse_select
    >>> parse_select("knee"), parse_select("3")
    ({'which': 'knee'}, {'which': 3})
    >>> parse_select("hamming=1, micro_f1=2")
    {'weights': {'hamming': 1.0, 'micro_f1': 2.0}}
    """
    text = text.strip()
    if "=" not in text:
        return {"which": int(text) if text.lstrip("-").isdecimal() else text}
    weights: dict[str, float] = {}
    for pair in text.split(","):
        name, _, weight = (part.strip() for part in pair.partition("="))
        try:
            weights[name] = float(weight)
        except ValueError:
            raise click.BadParameter(
                f"weights are written as 'hamming=1,micro_f1=2', got {text!r}.",
                param_hint="--select",
            ) from None
    return {"weights": weights}


def selected(model: Any, select: str | None) -> Any:
    """Return a model that predicts with the member that --select asks for."""
    if select is None:
        return model
    if not hasattr(model, "front_"):
        raise click.BadParameter(
            f"a {type(model).__name__} has no front to select from.",
            param_hint="--select",
        )
    try:
        return model.select(**parse_select(select))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--select") from None


# --- learners to tune ------------------------------------------------------------


def find_learner(name: str, seed: int) -> Any:
    """Return the estimator that --estimator names; its random states are the seed.

    Parameters
    ----------
    name : str
        One of LEARNERS, or ``package.module:Class``.
    seed : int
    """
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    known = {
        "random_forest": lambda: RandomForestClassifier(300),
        "extra_trees": lambda: ExtraTreesClassifier(300),
        "logistic_regression": lambda: LogisticRegression(max_iter=2000),
    }
    learner = known[name]() if name in known else _imported_learner(name)
    random = [
        key
        for key in learner.get_params()
        if key == "random_state" or key.endswith("__random_state")
    ]
    return learner.set_params(**dict.fromkeys(random, seed))


def for_labels(learner: Any) -> Any:
    """Return a learner of several labels: one copy a label where it has but one.

    Linear models see standardised columns.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from .._learners import learner_tags as _learner_tags
    from .._learners.scale_columns import ScaleNonIndicators

    several = _learner_tags.for_labels(learner)
    if several is not learner and isinstance(learner, LogisticRegression):
        return make_pipeline(ScaleNonIndicators(), several)
    return several


def _imported_learner(name: str) -> Any:
    module, colon, attribute = name.partition(":")
    if not colon:
        near = difflib.get_close_matches(name, LEARNERS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.BadParameter(
            f"{name!r} is neither one of {', '.join(LEARNERS)}, nor "
            f"package.module:Class.{hint}",
            param_hint="--estimator",
        )
    try:
        kind = getattr(import_module(module), attribute)
        learner = kind() if isinstance(kind, type) else None
    except (ImportError, AttributeError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--estimator") from None
    except TypeError as error:
        raise click.BadParameter(
            f"{name} cannot be made without arguments: {error}.",
            param_hint="--estimator",
        ) from None
    if not all(hasattr(learner, method) for method in ("fit", "predict", "get_params")):
        raise click.BadParameter(
            f"{name} is no estimator of scikit-learn's kind.", param_hint="--estimator"
        )
    return learner

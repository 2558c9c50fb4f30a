"""Estimators and dataclasses as named values, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from .._base.multilabel import MultiLabelMixin
from .._support.machine import PLACES
from ..losses import saved_loss
from ._fitted import check_fitted
from ._registry import DATACLASSES, ESTIMATORS, VALUES, find_class
from ._within import CALLBACKS, check_nesting, settle

# What scikit-learn keeps on an estimator for the next fit; it is code, not results.
_OF_SCIKIT_LEARN = (*CALLBACKS, "_metadata_request")


def _left_out(kind: type) -> tuple[str, ...]:
    """Return the attributes that are not saved.

    An estimator names its own in ``_not_saved``. Those that it needs its method
    ``_restore()`` computes from the others.
    """
    return (*_OF_SCIKIT_LEARN, *getattr(kind, "_not_saved", ()))


def _check_attribute_name(kind: type, name: str) -> None:
    """Refuse names that would hide a method or a setting of the class."""
    if not name.isidentifier() or name in _left_out(kind) or hasattr(kind, name):
        raise ValueError(f"{kind.__name__} has no fitted attribute {name!r}")


def estimator_parts(estimator: Any) -> dict[str, dict[str, Any]]:
    """Return the parameters and fitted attributes of an estimator, once checked."""
    kind = type(estimator)
    parameters = estimator.get_params(deep=False)
    attributes = {
        name: value
        for name, value in vars(estimator).items()
        if name not in parameters and name not in _left_out(kind)
    }
    for name in PLACES:
        parameters.pop(name, None)
    for name in attributes:
        _check_attribute_name(kind, name)
    check_nesting(estimator)
    _check(estimator, attributes)
    if isinstance(parameters.get("losses"), list | tuple):
        losses = parameters["losses"]
        parameters["losses"] = type(losses)([saved_loss(loss) for loss in losses])
    return {"parameters": parameters, "attributes": attributes}


def build_estimator(
    name: Any, parameters: dict[str, Any], attributes: dict[str, Any]
) -> Any:
    """Return the estimator; ValueError if it cannot be one that was saved."""
    kind = find_class(ESTIMATORS, name)
    known = kind._get_param_names()
    for parameter in parameters:
        if parameter not in known or parameter in PLACES:
            raise ValueError(f"{name} has no parameter {parameter!r}")
    for attribute in attributes:
        if attribute in known:
            raise ValueError(f"{attribute!r} is a parameter of {name}")
        _check_attribute_name(kind, attribute)
    estimator = _guard(name, kind, **parameters)
    check_nesting(estimator)
    _guard(name, estimator._validate_params)
    settle(estimator)
    vars(estimator).update(attributes)
    if attributes and hasattr(kind, "_restore"):
        _guard(name, estimator._restore)
    _guard(name, _check, estimator, attributes)
    return estimator


def _check(estimator: Any, attributes: dict[str, Any]) -> None:
    """Check parameters, and what was fitted if anything was.

    An estimator may know more of itself: its method ``_check_state()`` raises
    ValueError.
    """
    estimator._validate_params()
    if attributes and isinstance(estimator, MultiLabelMixin):
        check_fitted(estimator)
        if hasattr(estimator, "_check_state"):
            estimator._check_state()


def dataclass_parts(value: Any) -> dict[str, dict[str, Any]]:
    """Return the fields of a dataclass."""
    return {"fields": {name: getattr(value, name) for name in _saved_fields(value)}}


def _saved_fields(kind: Any) -> list[str]:
    """Return the fields that files hold: all but those that say they are not saved."""
    return [
        field.name
        for field in dataclasses.fields(kind)
        if field.init and field.metadata.get("saved", True)
    ]


def build_dataclass(name: Any, fields: dict[str, Any]) -> Any:
    """Return the dataclass; ValueError if it cannot have these fields."""
    kind = find_class(DATACLASSES, name)
    known = _saved_fields(kind)
    for field in fields:
        if field not in known:
            raise ValueError(f"{name} has no field {field!r}")
    return _guard(name, kind, **fields)


def build_value(name: Any, parameters: dict[str, Any]) -> Any:
    """Return the description; its parameters are checked where it is used."""
    return _guard(name, find_class(VALUES, name), **parameters)


def _guard(name: str, build: Any, *arguments: Any, **keywords: Any) -> Any:
    """Call what was written for values of the right types with those of a file."""
    try:
        return build(*arguments, **keywords)
    except (ImportError, MemoryError, ValueError):
        raise
    except Exception as error:
        raise ValueError(
            f"{name} cannot be made of these values: {type(error).__name__}: {error}"
        ) from error

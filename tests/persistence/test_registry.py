"""The classes that files may name."""

import dataclasses
from importlib import import_module, util

import pytest
from sklearn.base import BaseEstimator

import clml
from clml import baselines
from clml.persistence._registry import (
    DATACLASSES,
    ESTIMATORS,
    find_class,
    is_registered,
)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimators_exist(name):
    kind = find_class(ESTIMATORS, name)
    assert issubclass(kind, BaseEstimator)
    assert is_registered(ESTIMATORS, kind)


@pytest.mark.parametrize("name", sorted(DATACLASSES))
def test_dataclasses_exist(name):
    kind = find_class(DATACLASSES, name)
    assert dataclasses.is_dataclass(kind)
    assert is_registered(DATACLASSES, kind)


def test_every_public_estimator_is_registered():
    public = [name for name in clml.__all__ if hasattr(getattr(clml, name), "fit")]
    assert {*public, *baselines.__all__} <= set(ESTIMATORS)


def test_subclasses_and_namesakes_are_others():
    kind = find_class(DATACLASSES, "Layout")
    assert not is_registered(DATACLASSES, type("Sub", (kind,), {}))
    assert not is_registered(DATACLASSES, type("Layout", (), {}))


@pytest.mark.parametrize(
    "name", ["Popen", "os.system", "clml.cli", "", None, 3, ["Layout"], "GaussianNB"]
)
def test_unknown_names(name):
    with pytest.raises(ValueError, match="is not one that a file may hold"):
        find_class(DATACLASSES, name)


def test_classes_that_are_gone():
    assert util.find_spec("clml.no_such_module") is None
    for table in ({"Layout": "clml.no_such_module"}, {"Gone": "clml.network"}):
        with pytest.raises(ValueError, match="is not available here"):
            find_class(table, next(iter(table)))
    assert import_module("clml.network")

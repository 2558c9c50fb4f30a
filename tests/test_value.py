"""Values: equal, shown, cloned, set."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid

from clml._value import Value


class Inner(Value):
    def __init__(self, rate=0.1):
        self.rate = rate


class Outer(Value):
    def __init__(self, size, *, inner=None, table=None):
        self.size = size
        self.inner = inner
        self.table = table


class Nothing(Value):
    pass


class Loose(Value):
    def __init__(self, **anything):
        pass


class Estimator(BaseEstimator):
    def __init__(self, value=None):
        self.value = value


def test_text_makes_the_value():
    for value in (Outer(3), Outer(3, inner=Inner(0.5)), Inner(), Nothing()):
        assert eval(repr(value)) == value
    assert repr(Outer(3, inner=Inner(0.5))) == "Outer(size=3, inner=Inner(rate=0.5))"
    assert repr(Inner(0.1)) == "Inner()"


def test_equality():
    assert Inner(1) == Inner(1.0)
    assert Inner(1) != Inner(2)
    assert Inner() != Nothing()
    assert Inner() != "Inner()"
    assert Outer(1, table=np.arange(3)) == Outer(1, table=np.arange(3))
    assert Outer(1, table=np.arange(3)) != Outer(1, table=None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Inner())


def test_parameters():
    outer = Outer(3, inner=Inner(0.5))
    assert list(outer.get_params(deep=False)) == ["size", "inner", "table"]
    assert outer.get_params()["inner__rate"] == 0.5
    assert outer.set_params(inner__rate=2, size=4) is outer
    assert outer == Outer(4, inner=Inner(2))
    outer.set_params(inner=Inner(7), inner__rate=8)
    assert outer.inner.rate == 8
    assert "rate" not in Outer(3, inner=Inner).get_params()


def test_refusals_change_nothing():
    outer = Outer(3)
    with pytest.raises(ValueError, match=r"no parameter 'width'.*size, inner, table"):
        outer.set_params(size=4, width=1)
    with pytest.raises(ValueError, match="'size' of Outer has no parameters"):
        outer.set_params(table=4, size__rate=1)
    with pytest.raises(ValueError, match="It has none"):
        Nothing().set_params(a=1)
    assert outer == Outer(3)
    with pytest.raises(TypeError, match="must name its parameters"):
        Loose().get_params()


def test_clone_and_grids():
    estimator = Estimator(Outer(3, inner=Inner(0.5)))
    copy = clone(estimator)
    assert copy.value == estimator.value
    assert copy.value.inner is not estimator.value.inner
    for point in ParameterGrid({"value__inner__rate": [1, 2]}):
        assert copy.set_params(**point).value.inner.rate in (1, 2)
    assert estimator.value.inner.rate == 0.5
    assert repr(Estimator(Inner(2))) == "Estimator(value=Inner(rate=2))"

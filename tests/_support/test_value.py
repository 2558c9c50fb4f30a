import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from clml._support.value import Value


class Inner(Value):
    def __init__(self, a=1, b=(1, 2)):
        self.a = a
        self.b = b


class Outer(Value):
    def __init__(self, inner=None, *, name="x"):
        self.inner = inner
        self.name = name


class Holder(BaseEstimator):
    def __init__(self, value=None):
        self.value = value


def test_clones_are_equal_and_apart():
    value = Outer(Inner(a=3))
    twin = clone(value)
    assert twin == value
    assert twin is not value
    assert twin.inner is not value.inner


def test_parameters_of_values_within():
    value = Outer(Inner(a=3))
    assert value.get_params(deep=False) == {"inner": Inner(3), "name": "x"}
    assert value.get_params()["inner__a"] == 3
    holder = Holder(value).set_params(value__inner__a=5, value__name="y")
    assert holder.value == Outer(Inner(5), name="y")


def test_setting_within_leaves_what_others_hold():
    shared = Inner()
    value = Outer(shared).set_params(inner__a=9)
    assert value.inner == Inner(9)
    assert shared == Inner()


@pytest.mark.parametrize(
    "params, message",
    [
        ({"none": 1}, "Outer has no parameter 'none'; it has"),
        ({"name": "z", "inner__none": 1}, "Inner has no parameter 'none'"),
        ({"name__a": 1}, "name of Outer has no parameters, got 'x'"),
    ],
)
def test_parameters_are_set_all_or_none(params, message):
    value = Outer(Inner())
    with pytest.raises(ValueError, match=message):
        value.set_params(**params)
    assert value == Outer(Inner())


def test_a_value_and_its_parameters_at_once():
    value = Outer().set_params(inner=Inner(), inner__a=4)
    assert value.inner == Inner(4)


@pytest.mark.parametrize(
    "one, other",
    [
        (Inner(), Outer()),
        (Inner(1), Inner(1.0)),
        (Inner(1), Inner(True)),
        (Inner(b=np.arange(2)), Inner(b=np.arange(3))),
        (Inner(), 1),
    ],
)
def test_others_are_not_equal(one, other):
    assert one != other


def test_arrays_are_compared_as_a_whole():
    assert Inner(b=np.arange(3)) == Inner(b=np.arange(3))


def test_what_differs_from_the_default_is_shown():
    assert repr(Outer(Inner(a=2))) == "Outer(inner=Inner(a=2))"
    assert repr(Inner()) == "Inner()"


def test_values_are_no_keys():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Inner())


def test_values_without_parameters():
    class Nothing(Value):
        pass

    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


def test_parameters_must_have_names():
    class Loose(Value):
        def __init__(self, **anything):
            pass

    with pytest.raises(TypeError, match="must name its parameters"):
        Loose().get_params()

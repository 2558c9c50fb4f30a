import numba.core.caching
import numpy as np
import pytest

from clml._compiled import compiled


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


@pytest.mark.parametrize("decorate", [compiled, compiled(reorder=True)])
def test_compiles(decorate):
    assert decorate(total)(np.array([1.0, 2.0])) == 3.0


def test_division_by_zero_is_ieee():
    assert compiled(lambda a, b: a / b)(1.0, 0.0) == float("inf")


def test_works_where_no_cache_can_be_written(monkeypatch):
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    assert compiled(total)(np.array([1.0, 2.0])) == 3.0

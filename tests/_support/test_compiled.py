import subprocess
import sys

import numba.core.caching
import numpy as np
import pytest

from clml._support import compiled as _compiled
from clml._support.compiled import compiled, tell_of_compilation


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


def test_compilation_is_announced_once(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(_compiled, "_told", False)
    kernel = compiled(total)
    monkeypatch.setattr(kernel._cache, "_cache_path", str(tmp_path))
    tell_of_compilation(kernel)
    tell_of_compilation(kernel)
    assert len(caplog.records) == 1
    assert "Compiling kernels" in caplog.text


def test_what_is_on_disk_is_not_announced(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(_compiled, "_told", False)
    kernel = compiled(total)
    monkeypatch.setattr(kernel._cache, "_cache_path", str(tmp_path))
    (tmp_path / f"{kernel._cache._impl.filename_base}.nbi").touch()
    tell_of_compilation(kernel)
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    tell_of_compilation(compiled(total))  # where none can be written: no news
    assert not caplog.records


@pytest.mark.parametrize("settings", ["{}", "PAPER_SETTINGS"])
def test_a_fit_comes_to_the_kernel_that_announces_it(settings):
    """Otherwise every process would say again that it compiles."""
    code = f"""
import numpy as np
from clml import PAPER_SETTINGS, CLMLClassifier, _lebesgue_estimator

kernels = []
_lebesgue_estimator.tell_of_compilation = kernels.append
X = np.random.default_rng(0).normal(size=(20, 3))
CLMLClassifier(**{{**{settings}, "max_epochs": 1}}).fit(X, (X[:, :2] > 0).astype(int))
assert kernels and all(kernel.signatures for kernel in kernels)
"""
    subprocess.run([sys.executable, "-c", code], check=True)

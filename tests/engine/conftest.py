import pytest

from clml.engine import _numpy


@pytest.fixture(autouse=True)
def threads_even_for_small_work(monkeypatch):
    """Tiny data would otherwise never reach a second thread."""
    monkeypatch.setattr(_numpy, "_SMALL_WORK", 0)

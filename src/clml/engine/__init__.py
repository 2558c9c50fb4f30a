"""How a population is evaluated."""

from ._numpy import NumpyEngine, single_threaded_blas
from ._protocol import Engine

__all__ = ["Engine", "NumpyEngine", "single_threaded_blas"]

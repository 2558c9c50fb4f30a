"""How a population is evaluated."""

from ._blas import single_threaded_blas
from ._numpy import NumpyEngine
from ._protocol import Engine

__all__ = ["Engine", "NumpyEngine", "single_threaded_blas"]

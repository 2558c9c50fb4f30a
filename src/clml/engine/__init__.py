"""How a population is evaluated."""

from ._blas import single_threaded_blas
from ._numpy import NumpyEngine
from ._protocol import Engine
from ._torch import TorchEngine

__all__ = ["Engine", "NumpyEngine", "TorchEngine", "single_threaded_blas"]

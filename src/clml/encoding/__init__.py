"""How columns of X enter a network: values that are fitted to training rows."""

from ._base import Encoding
from ._bins import Bins
from ._fitted import FittedEncoding
from ._hats import Hats
from ._landmark_kernel import FittedKernel, GaussianKernel, LaplaceKernel
from ._quantiles import Quantiles
from ._robust import Robust
from ._standardized import Standardized
from ._summary import MOST_VALUES, ColumnSummary
from .kinds import Code, ColumnKind

__all__ = [
    "MOST_VALUES",
    "Bins",
    "Code",
    "ColumnKind",
    "ColumnSummary",
    "Encoding",
    "FittedEncoding",
    "FittedKernel",
    "GaussianKernel",
    "Hats",
    "LaplaceKernel",
    "Quantiles",
    "Robust",
    "Standardized",
]

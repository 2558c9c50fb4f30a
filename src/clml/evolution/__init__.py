"""Ask/tell evolution strategies whose whole state is a value.

Each strategy proposes a population (`ask`), is told the order of its members
(`tell`), and can be written down at any moment (`state`) and continued elsewhere
(`from_state`) with bit-identical results.
"""

from ._cma_package import CMAPackage
from ._constants import default_population_size
from ._full import FullCMA
from ._printed import PrintedCMA
from ._protocol import Strategy
from ._rank_gradient import RankGradient
from ._rank_one import RankOneCMA
from ._ranking import rank_by_fitness
from ._restore import strategy_from_state
from ._separable import SeparableCMA

__all__ = [
    "CMAPackage",
    "FullCMA",
    "PrintedCMA",
    "RankGradient",
    "RankOneCMA",
    "SeparableCMA",
    "Strategy",
    "default_population_size",
    "rank_by_fitness",
    "strategy_from_state",
]

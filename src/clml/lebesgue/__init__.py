"""Dominance, the Lebesgue measure, contributions to it, and the fitness order.

Every function takes loss vectors as the rows of an array of shape (m, o); losses
are minimised.
"""

from ._contributions import Method, lebesgue_contributions
from ._dominance import dominance_depth, dominates, nondominated
from ._measure import lebesgue_measure
from ._order import Ties, fitness_order

__all__ = [
    "Method",
    "Ties",
    "dominance_depth",
    "dominates",
    "fitness_order",
    "lebesgue_contributions",
    "lebesgue_measure",
    "nondominated",
]

"""From a state to the strategy it belongs to."""

from collections.abc import Mapping
from typing import Any

from ._cma_package import CMAPackage
from ._full import FullCMA
from ._printed import PrintedCMA
from ._protocol import Strategy
from ._rank_gradient import RankGradient
from ._rank_one import RankOneCMA
from ._separable import SeparableCMA
from ._validation import read_kind

__all__ = ["STRATEGIES", "strategy_from_state"]

STRATEGIES: dict[
    str,
    type[CMAPackage | FullCMA | PrintedCMA | RankGradient | RankOneCMA | SeparableCMA],
] = {
    strategy.kind: strategy
    for strategy in (
        CMAPackage,
        FullCMA,
        PrintedCMA,
        RankGradient,
        RankOneCMA,
        SeparableCMA,
    )
}


def strategy_from_state(state: Mapping[str, Any]) -> Strategy:
    """Continue from a state, whichever strategy it belongs to.

    Parameters
    ----------
    state : dict
        What a strategy's ``state`` returned, possibly written to a file and read
        again. ValueError if it is damaged or of an unknown kind.

    Returns
    -------
    Strategy
        Its populations are bit for bit those of the strategy that was saved.

    Examples
    --------
    >>> from clml.evolution import SeparableCMA, strategy_from_state
    >>> strategy_from_state(SeparableCMA([0.0, 1.0], 0.3, seed=0).state())
    SeparableCMA(n_parameters=2, population_size=6, epoch=0, sigma=0.3)

    >>> strategy_from_state({"kind": "annealing", "version": 1})
    Traceback (most recent call last):
        ...
    ValueError: Expected a state of kind 'cma_package', 'full_cma', ...
    """
    kind = read_kind(state)
    if kind not in STRATEGIES:
        known = ", ".join(repr(name) for name in STRATEGIES)
        raise ValueError(f"Expected a state of kind {known}. Got {kind!r}.")
    return STRATEGIES[kind].from_state(state)

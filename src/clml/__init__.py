"""Multi-label classification that improves several losses at once, directly.

The losses themselves are optimised, without surrogates, by their Lebesgue measure.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._classifier import PAPER_SETTINGS, CLMLClassifier
    from ._distributed.dask_predict import dask_predict
    from ._maps.front import ParetoFront
    from ._stacking import LebesgueStackingClassifier
    from ._training.searches import CMA, Ascent, RankGradient
    from ._tuned import LebesgueTunedClassifier

# Imported when they are first asked for: `clml --help` need not wait for them.
_HOMES = {
    "Ascent": "._training.searches",
    "CMA": "._training.searches",
    "PAPER_SETTINGS": "._classifier",
    "CLMLClassifier": "._classifier",
    "LebesgueStackingClassifier": "._stacking",
    "LebesgueTunedClassifier": "._tuned",
    "ParetoFront": "._maps.front",
    "RankGradient": "._training.searches",
    "dask_predict": "._distributed.dask_predict",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "CMA",
    "PAPER_SETTINGS",
    "Ascent",
    "CLMLClassifier",
    "LebesgueStackingClassifier",
    "LebesgueTunedClassifier",
    "ParetoFront",
    "RankGradient",
    "__version__",
    "dask_predict",
]

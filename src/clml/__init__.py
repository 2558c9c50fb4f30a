"""Multi-label classification that improves several losses at once, directly.

The losses themselves are optimised, without surrogates, by their Lebesgue measure.
"""

from ._classifier import PAPER_SETTINGS, CLMLClassifier
from ._front import ParetoFront
from ._stacking import LebesgueStackingClassifier
from ._tuned import LebesgueTunedClassifier
from ._version import __version__

__all__ = [
    "PAPER_SETTINGS",
    "CLMLClassifier",
    "LebesgueStackingClassifier",
    "LebesgueTunedClassifier",
    "ParetoFront",
    "__version__",
]

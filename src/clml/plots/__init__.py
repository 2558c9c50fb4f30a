"""Displays: computed numbers in, axes out.

Every display is built from numbers, or by a ``from_...`` method that computes them;
``plot`` draws and keeps ``ax_`` and ``figure_``. Matplotlib is needed to draw only.
"""

from ._ablation import AblationDisplay
from ._all import Figures, write_figures
from ._calibration import CalibrationCurvesDisplay
from ._consistency import ConsistencyDisplay
from ._critical_difference import CriticalDifferenceDisplay
from ._front import FrontDisplay
from ._probabilities import LabelProbabilityDisplay
from ._style import save_figure
from ._surrogate import SurrogateDisplay
from ._trajectory import TrajectoryDisplay
from ._volume import ContributionsDisplay, MeasureDisplay

__all__ = [
    "AblationDisplay",
    "CalibrationCurvesDisplay",
    "ConsistencyDisplay",
    "ContributionsDisplay",
    "CriticalDifferenceDisplay",
    "Figures",
    "FrontDisplay",
    "LabelProbabilityDisplay",
    "MeasureDisplay",
    "SurrogateDisplay",
    "TrajectoryDisplay",
    "save_figure",
    "write_figures",
]

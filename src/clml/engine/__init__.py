"""How populations are evaluated, and members trained on a device."""

from ._blas import single_threaded_blas
from ._member_rows import MemberLabels, MemberRows
from ._numpy import NumpyEngine
from ._protocol import Engine
from ._torch import TorchEngine
from ._wide_trainer import (
    EpochSteps,
    WideGroup,
    WideState,
    WideTrainer,
    wide_logits,
)

__all__ = [
    "Engine",
    "EpochSteps",
    "MemberLabels",
    "MemberRows",
    "NumpyEngine",
    "TorchEngine",
    "WideGroup",
    "WideState",
    "WideTrainer",
    "single_threaded_blas",
    "wide_logits",
]

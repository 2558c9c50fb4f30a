"""The representation: parameter layout and forward pass for a whole population."""

from ._backward import ForwardCache, backward_pass, forward_pass
from ._forward import Rows, Weights, block_logits, forward
from ._layout import Layout
from ._predict import Predictor, predictor_of
from ._scaling import Scaling

__all__ = [
    "ForwardCache",
    "Layout",
    "Predictor",
    "Rows",
    "Scaling",
    "Weights",
    "backward_pass",
    "block_logits",
    "forward",
    "forward_pass",
    "predictor_of",
]

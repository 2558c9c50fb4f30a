"""The representation: parameter layout and forward pass for a whole population."""

from ._backward import ForwardCache, backward_pass, forward_pass
from ._forward import Rows, Weights, block_logits, forward
from ._layout import Layout
from ._moments import Moments
from ._paper import PAPER_WIDTH, PaperNetwork
from ._predict import Predictor, predictor_of
from ._protocol import NetworkLayout
from ._scaling import Scaling
from .range import check_sparse_range, describe_contrast, scaled_features
from .wide import WideLayout, WideNetwork, WidePass

__all__ = [
    "PAPER_WIDTH",
    "ForwardCache",
    "Layout",
    "Moments",
    "NetworkLayout",
    "PaperNetwork",
    "Predictor",
    "Rows",
    "Scaling",
    "Weights",
    "WideLayout",
    "WideNetwork",
    "WidePass",
    "backward_pass",
    "block_logits",
    "check_sparse_range",
    "describe_contrast",
    "forward",
    "forward_pass",
    "predictor_of",
    "scaled_features",
]

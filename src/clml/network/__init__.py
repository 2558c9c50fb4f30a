"""The representation: parameter layout and forward pass for a whole population."""

from ._forward import Rows, Weights, block_logits, forward
from ._layout import Layout
from ._scaling import Scaling

__all__ = ["Layout", "Rows", "Scaling", "Weights", "block_logits", "forward"]

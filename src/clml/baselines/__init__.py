"""The methods that CLML is compared with, as estimators of their own."""

from ._c2ae import C2AEClassifier
from ._clif import CLIFClassifier
from ._dela import DELAClassifier
from ._lift import LIFTClassifier
from ._llsf import LLSFClassifier
from ._mlknn import MLkNNClassifier
from ._mlp import MLPRelevanceClassifier
from ._mpvae import MPVAEClassifier
from ._naive_bayes import GaussianNBChain, GaussianNBRelevance

__all__ = [
    "C2AEClassifier",
    "CLIFClassifier",
    "DELAClassifier",
    "GaussianNBChain",
    "GaussianNBRelevance",
    "LIFTClassifier",
    "LLSFClassifier",
    "MLPRelevanceClassifier",
    "MLkNNClassifier",
    "MPVAEClassifier",
]

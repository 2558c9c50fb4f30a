"""The methods that CLML is compared with, as estimators of their own."""

from ._mlknn import MLkNNClassifier
from ._mlp import MLPRelevanceClassifier
from ._naive_bayes import GaussianNBChain, GaussianNBRelevance

__all__ = [
    "GaussianNBChain",
    "GaussianNBRelevance",
    "MLPRelevanceClassifier",
    "MLkNNClassifier",
]

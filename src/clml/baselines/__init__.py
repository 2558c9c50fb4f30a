"""The methods that CLML is compared with, as estimators of their own."""

from ._mlp import MLPRelevanceClassifier

__all__ = ["MLPRelevanceClassifier"]

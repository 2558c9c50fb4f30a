"""Stratified splits and folds of multi-label rows."""

from .kfold import IterativeStratifiedKFold
from .splitting import iterative_split_indices, iterative_train_test_split

__all__ = [
    "IterativeStratifiedKFold",
    "iterative_split_indices",
    "iterative_train_test_split",
]

"""Multi-label data: stratified splits."""

from ._splits import iterative_split_indices, iterative_train_test_split

__all__ = ["iterative_split_indices", "iterative_train_test_split"]

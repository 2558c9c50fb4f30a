"""Multi-label data: readers, stratified splits."""

from ._arff import read_arff
from ._splits import iterative_split_indices, iterative_train_test_split

__all__ = ["iterative_split_indices", "iterative_train_test_split", "read_arff"]

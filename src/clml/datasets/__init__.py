"""Multi-label data: readers, a registry, stratified splits, data with known truth."""

from ..splits.kfold import IterativeStratifiedKFold
from ..splits.splitting import iterative_split_indices, iterative_train_test_split
from ._arff import read_arff
from ._bayes import make_bayes_multilabel
from ._bayes_truth import BayesTruth
from ._frames import as_dataset
from ._load import load_dataset
from ._partitions import RowPartitions, as_partitions, read_partitions
from ._protocol import PaperSplit, paper_split
from ._svmlight import read_svmlight, read_xc
from ._write import write_arff, write_csv
from .csv import read_csv
from .parquet import read_parquet
from .registry import PAPER_DATASETS, list_datasets

__all__ = [
    "PAPER_DATASETS",
    "BayesTruth",
    "IterativeStratifiedKFold",
    "PaperSplit",
    "RowPartitions",
    "as_dataset",
    "as_partitions",
    "iterative_split_indices",
    "iterative_train_test_split",
    "list_datasets",
    "load_dataset",
    "make_bayes_multilabel",
    "paper_split",
    "read_arff",
    "read_csv",
    "read_parquet",
    "read_partitions",
    "read_svmlight",
    "read_xc",
    "write_arff",
    "write_csv",
]

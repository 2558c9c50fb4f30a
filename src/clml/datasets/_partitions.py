"""Rows that are read a partition at a time: from files, arrays and mapped arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ._array_rows import ArrayRows, piece_of
from ._csr import LARGEST_INDEX
from ._file_rows import SvmlightRows, open_npz
from ._parquet_rows import open_parquet
from ._partition_paths import find_files
from .columns import check_names
from .files import PathLike
from .plain_rows import Rows, check_frame_numbers, is_pandas, plain_weight


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@dataclass(frozen=True, eq=False, repr=False)
class RowPartitions:
    """Rows that are read a partition at a time.

    They are more than fit into memory, or lie where other machines read them.
    :func:`read_partitions` and :func:`as_partitions` make them.

    Parameters
    ----------
    loaders : sequence of callable
        Each returns a partition: features (n, D), an indicator (n, K), and weights
        (n,) or None. Features are a float array or a CSR matrix, labels an array of
        uint8. A partition may have no rows. Loaders are called many times over and
        sent to other processes, so they must be small when pickled.
    feature_names, label_names : sequences of str or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets import as_partitions
    >>> rows = as_partitions(np.eye(5, 2), np.eye(5, 3), rows=2)
    >>> rows
    RowPartitions(3 partitions)
    >>> X, Y, weight = rows.load(2)
    >>> X, Y, weight
    (array([[0., 0.]]), array([[0, 0, 0]], dtype=uint8), None)
    """

    loaders: tuple[Callable[[], Rows], ...]
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        loaders = tuple(self.loaders)
        if not loaders:
            raise ValueError("loaders must hold at least one partition, got none.")
        wrong = [loader for loader in loaders if not callable(loader)]
        if wrong:
            raise TypeError(f"loaders must be callable, got {type(wrong[0]).__name__}.")
        object.__setattr__(self, "loaders", loaders)
        for field in ("feature_names", "label_names"):
            names = getattr(self, field)
            if names is not None:
                check_names(field, [str(name) for name in names])
                object.__setattr__(self, field, tuple(str(name) for name in names))

    def __len__(self) -> int:
        return len(self.loaders)

    def __repr__(self) -> str:
        parts = [_counted(len(self), "partition")]
        if self.feature_names is not None:
            parts.append(_counted(len(self.feature_names), "named feature"))
        if self.label_names is not None:
            parts.append(_counted(len(self.label_names), "named label"))
        return f"RowPartitions({', '.join(parts)})"

    def load(self, number: int) -> Rows:
        """Read one partition.

        Parameters
        ----------
        number : int
            From 0 on.

        Returns
        -------
        X : float array or CSR matrix of shape (n, D)
        Y : uint8 array of shape (n, K)
        weight : float64 array of shape (n,), or None
        """
        return self.loaders[number]()


def read_partitions(
    paths: PathLike | Sequence[PathLike],
    labels: str | Sequence[str] | None = None,
    *,
    weight: str | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool = False,
) -> RowPartitions:
    r"""Open files whose rows are read a partition at a time.

    Nothing but their metadata is read before a partition is wanted. Where other
    machines read the partitions, the files must have the same paths there.

    Parameters
    ----------
    paths : path or sequence of paths
        One file, a pattern such as ``"data/part-*.parquet"``, a folder, or the files
        themselves. Files of a pattern or a folder are sorted by their names,
        ``part-9`` before ``part-10``; in a folder all must have one of the suffixes
        below, others and hidden ones do not count.

        ``.parquet`` (needs pyarrow, ``pip install clml[datasets]``): each row group is
        a partition. Every column that is neither a label nor the weight is a feature,
        of numbers or booleans; the row names of a frame are left out, missing values
        are NaN. All files have the same columns in the same order.

        ``.npz``: each file is a partition, with the arrays ``X`` (n, D) and ``Y``
        (n, K), and maybe ``weight`` (n,). Sparse features are the parts of a CSR
        matrix instead of ``X``: ``X_data``, ``X_indices``, ``X_indptr`` and
        ``X_shape``. Files of ``numpy.savez`` are read faster than those of
        ``numpy.savez_compressed``.

        ``.svm``, ``.svmlight``, ``.libsvm`` and ``.txt``, maybe followed by ``.xz``,
        ``.bz2``, ``.gz`` or ``.zip``: each file is a partition, as
        :func:`read_svmlight` reads it, with labels from 0 to ``n_labels - 1``.
    labels : str, sequence of str, or None
        Of Parquet files the columns that are labels, in the order of Y. Of the others
        the names of all labels, or None.
    weight : str or None, default=None
        Of Parquet files the column of row weights.
    n_features, n_labels : int or None, default=None
        Needed of svmlight files: no single one must show the last feature. The others
        are checked.
    zero_based : bool, default=False
        Whether indices of features in svmlight files begin at 0 rather than at 1. It
        cannot be told from a file on its own.

    Returns
    -------
    RowPartitions

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        For files that are damaged or do not fit each other, with their names. What is
        wrong inside of a partition is found when it is read.

    See Also
    --------
    as_partitions : Partitions of arrays and mapped arrays.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from clml.datasets import read_partitions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(11):
    ...         X, Y = np.full((2, 3), number, dtype=np.float32), np.eye(2)
    ...         np.savez(pathlib.Path(folder, f"part-{number}.npz"), X=X, Y=Y)
    ...     rows = read_partitions(folder, ["rain", "wind"])
    ...     X, Y, weight = rows.load(10)
    >>> rows
    RowPartitions(11 partitions, 2 named labels)
    >>> X
    array([[10., 10., 10.],
           [10., 10., 10.]], dtype=float32)
    """
    _check_count("n_features", n_features)
    _check_count("n_labels", n_labels)
    if not isinstance(zero_based, bool):
        raise TypeError(f"zero_based must be a bool, got {zero_based!r}.")
    kind, files = find_files(paths)
    if kind == "parquet":
        groups, features, names = open_parquet(files, labels, weight)
        _check_names_count("n_features", n_features, features)
        _check_names_count("n_labels", n_labels, names)
        return RowPartitions(tuple(groups), tuple(features), tuple(names))
    if weight is not None:
        raise ValueError(
            f"weight must be None for {kind} files (it names a column of Parquet "
            f"files), got {weight!r}."
        )
    loaders: Sequence[Callable[[], Rows]]
    if kind == "npz":
        arrays = open_npz(files, n_features, n_labels)
        loaders, n_labels = arrays, arrays[0].n_labels
    else:
        if n_features is None or n_labels is None:
            missing = "n_features" if n_features is None else "n_labels"
            raise ValueError(
                f"{missing} must be given for svmlight files: no single one must show "
                "the last of them. Got None."
            )
        loaders = [
            SvmlightRows(path, int(n_features), int(n_labels), zero_based)
            for path in files
        ]
    return RowPartitions(tuple(loaders), None, _label_names(labels, n_labels))


def as_partitions(
    X: Any, Y: Any, sample_weight: Any = None, *, rows: int = 65_536
) -> RowPartitions:
    """Cut arrays into partitions of so many rows, without a copy.

    Parameters
    ----------
    X : array-like, sparse matrix, frame of pandas or memory map of shape (n, D)
        A sparse matrix that is not CSR is copied into one. Of a memory map (of
        ``numpy.memmap``, or ``numpy.load`` with ``mmap_mode="r"``), and of a view of
        one, a partition reads its own rows from the file whenever it is wanted;
        elsewhere, too, where the file has the same path. Other partitions are sent to
        other processes as they are.
    Y : array-like, sparse matrix, frame of pandas or memory map of shape (n, K)
        Indicator.
    sample_weight : array-like of shape (n,), or None, default=None
    rows : int, default=65_536
        Rows of a partition; the last one may have fewer.

    Returns
    -------
    RowPartitions
        With the names of columns of frames.

    See Also
    --------
    read_partitions : Partitions of files.

    Examples
    --------
    >>> import pandas as pd
    >>> from clml.datasets import as_partitions
    >>> X = pd.DataFrame({"size": [1.5, 2.0, 0.5], "windy": [True, False, True]})
    >>> partitions = as_partitions(X, [[1], [0], [1]], [1, 2, 1], rows=2)
    >>> partitions
    RowPartitions(2 partitions, 2 named features)
    >>> partitions.load(0)
    (array([[1.5, 1. ],
           [2. , 0. ]]), array([[1],
           [0]], dtype=uint8), array([1., 2.]))
    """
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise ValueError(f"rows must be an integer of at least 1, got {rows!r}.")
    X, feature_names = _table(X, "X")
    Y, label_names = _table(Y, "Y")
    n_rows = X.shape[0]
    if Y.shape[0] != n_rows:
        raise ValueError(
            f"X and Y must have as many rows, got {n_rows} and {Y.shape[0]}."
        )
    if not n_rows:
        raise ValueError("X must have at least one row, got none.")
    weight = sample_weight
    if not isinstance(weight, np.ndarray):  # such as a map, which is not read here
        weight = plain_weight(sample_weight, "sample_weight")
    if weight is not None and weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have the shape ({n_rows},), got {weight.shape}."
        )
    starts = range(0, n_rows, int(rows))
    ends = [*starts[1:], n_rows]
    loaders = [
        ArrayRows(
            piece_of(X, begin, end),
            piece_of(Y, begin, end),
            None if weight is None else piece_of(weight, begin, end),
            number,
        )
        for number, (begin, end) in enumerate(zip(starts, ends, strict=True))
    ]
    return RowPartitions(tuple(loaders), feature_names, label_names)


def _table(data: Any, argument: str) -> tuple[Any, tuple[str, ...] | None]:
    """Return data that can be cut into rows, and the names of their columns."""
    if is_pandas(data):
        check_frame_numbers(data, argument)
        names = tuple(str(name) for name in data.columns)
        check_names(argument, names)
        return data, names
    data = data.tocsr() if sparse.issparse(data) else np.asarray(data)
    if data.ndim != 2 or data.shape[1] == 0:
        raise ValueError(
            f"{argument} must have two axes and at least one column, got the shape "
            f"{data.shape}."
        )
    if data.dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold numbers, got the type {data.dtype}.")
    return data, None


def _check_count(argument: str, value: Any) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value <= LARGEST_INDEX):
        raise ValueError(
            f"{argument} must be None or an integer from 1 to {LARGEST_INDEX}, got "
            f"{value!r}."
        )


def _check_names_count(argument: str, count: Any, names: Sequence[str]) -> None:
    if count is not None and count != len(names):
        raise ValueError(
            f"{argument}={count}, but the columns of the files are {len(names)}."
        )


def _label_names(labels: Any, n_labels: Any) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str):
        raise TypeError(f"labels must be a sequence of names or None, got {labels!r}.")
    names = tuple(str(name) for name in labels)
    check_names("labels", names)
    if len(names) != n_labels:
        raise ValueError(
            f"labels must name each of the {n_labels} labels, got {len(names)} names."
        )
    return names

"""Text of sparse rows: svmlight with several labels, and extreme classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ._csr import LARGEST_INDEX
from ._pair_rows import (
    check_labels_below,
    check_names_fit,
    features_of,
    indicator_of,
    most_columns,
    row_of,
    scan_rows,
)
from .bunch import make_bunch
from .columns import check_names
from .files import PathLike, fail, read_file

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _check_count(name: str, value: Any) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value <= LARGEST_INDEX):
        raise ValueError(
            f"{name} must be None or an integer from 1 to {LARGEST_INDEX}, got "
            f"{value!r}."
        )


def _check_shared(sparse_labels: Any, label_names: Any) -> None:
    if not isinstance(sparse_labels, bool):
        raise TypeError(f"sparse_labels must be a bool, got {sparse_labels!r}.")
    if label_names is not None:
        check_names("label_names", [str(name) for name in label_names])


def read_svmlight(
    path: PathLike,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool | str = "auto",
    sparse_labels: bool = False,
    label_names: Sequence[Any] | None = None,
    max_bytes: int | None = None,
) -> Bunch:
    r"""Read an svmlight (libsvm) file whose rows may have several labels.

    A row is ``3,7 1:0.5 9:2 # comment``: labels, which are integers, then features.
    Without labels it begins with a space or with its first feature. Query numbers
    (``qid:5``) are skipped; so are empty lines and lines with nothing but a comment.
    A line of spaces is a row without labels and features.

    Parameters
    ----------
    path : str or path
        Plain, or compressed with xz, bzip2, gzip or zip.
    n_features : int or None, default=None
        Number of columns of X. None: as many as the largest index tells; an index
        above both a million and the number of bytes of the file is then refused.
    n_labels : int or None, default=None
        Number of columns of Y, for the labels 0 to ``n_labels - 1``. None: a column
        for each label that occurs, ascending.
    zero_based : bool or "auto", default="auto"
        Whether indices begin at 0 or at 1. "auto": at 1 if there is no 0 in the file.
    sparse_labels : bool, default=False
        Whether Y is a CSR array rather than a dense one.
    label_names : sequence of str or None, default=None
        One for each column of Y. None: the labels as they are written.
    max_bytes : int or None, default=None
        The most that a compressed file may hold. None: 500 times its size, and
        64 MiB for small ones.

    Returns
    -------
    Bunch
        ``X`` : CSR array of float64, its indices sorted, without stored zeros.
        ``Y`` : int64 array or CSR array of 0 and 1. The other entries are those of
        :func:`read_arff`.

    Raises
    ------
    ValueError
        For a file that is damaged or not in the format, with its line, and for a
        dense Y of more than 256 MiB and 64 times the size of the text.

    See Also
    --------
    read_xc : The same rows after a line of three counts.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.datasets import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.svm")
    ...     _ = path.write_text("3,7 1:0.5 3:2 # two labels\n 2:1.5\n7 1:4\n")
    ...     data = read_svmlight(path)
    >>> data.X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1.5, 0. ],
           [4. , 0. , 0. ]])
    >>> data.label_names, data.Y.tolist()
    (['3', '7'], [[1, 1], [0, 0], [0, 1]])
    """
    _check_count("n_features", n_features)
    _check_count("n_labels", n_labels)
    _check_shared(sparse_labels, label_names)
    if zero_based != "auto" and not isinstance(zero_based, bool):
        raise ValueError(
            f"zero_based must be True, False or 'auto', got {zero_based!r}."
        )
    text = read_file(path, ".svm", max_bytes).removeprefix(_BYTE_ORDER_MARK)
    most = most_columns(len(text)) if n_features is None else int(n_features)
    # Until it is known where indices begin, one more is allowed.
    largest_index = most - 1 if zero_based is True else most
    rows = scan_rows(path, text, 0, True, min(largest_index, LARGEST_INDEX - 1))
    if not rows.n_rows:
        raise fail(path, "there are no rows in it.")
    smallest = rows.columns.min(initial=LARGEST_INDEX)
    shift = 0 if zero_based is True or (zero_based == "auto" and smallest == 0) else 1
    if shift and smallest == 0:
        row = row_of(rows.value_ends, int(rows.columns.argmin()))
        raise rows.fail("indices begin at 1 (zero_based=False), got 0.", row)
    found = int(rows.columns.max(initial=-1 + shift)) + 1 - shift
    if found > most:
        row = row_of(rows.value_ends, int(rows.columns.argmax()))
        raise rows.fail(
            f"the index {found - 1} is not below {most:,}, the number of features.",
            row,
        )
    if n_features is None:
        check_names_fit(path, text, found)
    X = features_of(rows, found if n_features is None else most, shift)
    if n_labels is None:
        different, numbers = np.unique(rows.labels, return_inverse=True)
    else:
        check_labels_below(rows, n_labels)
        different, numbers = np.arange(n_labels), rows.labels
    Y = indicator_of(rows, numbers, different, sparse_labels)
    return make_bunch(
        X,
        Y,
        label_names=different.tolist() if label_names is None else label_names,
        source=str(path),
        dropped={},
        label_parents=None,
        sample_weight=None,
    )


def _counts(path: PathLike, text: bytes) -> tuple[list[int], int]:
    """Return the three counts of the first line and where the next one begins."""
    end = text.find(b"\n")
    end = len(text) if end < 0 else end
    words = text[: min(end, 200)].split()
    if end > 200 or len(words) != 3 or not all(word.isdigit() for word in words):
        shown = text[: min(end, 40)].decode("utf-8", "replace")
        raise fail(
            path,
            f"expected the numbers of samples, features and labels, got {shown!r}.",
            1,
        )
    counts = [int(word) for word in words]
    most = most_columns(len(text))
    for name, count in zip(("features", "labels"), counts[1:], strict=True):
        if not 1 <= count <= most:
            raise fail(
                path,
                f"the number of {name} must lie between 1 and {most:,} in a file of "
                f"this size, got {count:,}.",
                1,
            )
    check_names_fit(path, text, sum(counts[1:]))
    return counts, end + 1


def read_xc(
    path: PathLike,
    *,
    sparse_labels: bool = False,
    label_names: Sequence[Any] | None = None,
    max_bytes: int | None = None,
) -> Bunch:
    r"""Read a file in the format of the extreme classification repository.

    The first line has the numbers of samples, features and labels. Each further line
    is a row, ``3,7 0:0.5 8:2``: labels, then features, both counted from 0. Without
    labels it begins with a space or with its first feature.

    Parameters
    ----------
    path : str or path
        Plain, or compressed with xz, bzip2, gzip or zip.
    sparse_labels : bool, default=False
        Whether Y is a CSR array rather than a dense one.
    label_names : sequence of str or None, default=None
        One for each label. None: their numbers.
    max_bytes : int or None, default=None
        The most that a compressed file may hold. None: 500 times its size, and
        64 MiB for small ones.

    Returns
    -------
    Bunch
        As :func:`read_svmlight` returns it.

    Raises
    ------
    ValueError
        For a file that is damaged, not in the format or not as its first line says,
        with its line, and for a dense Y of more than 256 MiB and 64 times the size of
        the text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.datasets import read_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.txt")
    ...     _ = path.write_text("2 4 3\n0,2 0:0.5 3:2\n 1:1.5\n")
    ...     data = read_xc(path)
    >>> data.X.toarray()
    array([[0.5, 0. , 0. , 2. ],
           [0. , 1.5, 0. , 0. ]])
    >>> data.Y
    array([[1, 0, 1],
           [0, 0, 0]])
    """
    _check_shared(sparse_labels, label_names)
    text = read_file(path, ".txt", max_bytes).removeprefix(_BYTE_ORDER_MARK)
    (n_samples, n_features, n_labels), position = _counts(path, text)
    rows = scan_rows(path, text, position, False, n_features - 1)
    # Empty lines at the end are no rows unless the first line counts them.
    n_rows = rows.n_rows
    blank = (np.diff(rows.label_ends) == 0) & (np.diff(rows.value_ends) == 0)
    while n_rows > n_samples and blank[n_rows - 1]:
        n_rows -= 1
    if n_rows != n_samples or not n_rows:
        raise fail(
            path, f"the first line says {n_samples:,} samples, got {n_rows:,} rows."
        )
    rows.label_ends = rows.label_ends[: n_rows + 1]
    rows.value_ends = rows.value_ends[: n_rows + 1]
    rows.row_starts = rows.row_starts[: n_rows + 1]
    check_labels_below(rows, n_labels)
    return make_bunch(
        features_of(rows, n_features, 0),
        indicator_of(rows, rows.labels, np.arange(n_labels), sparse_labels),
        label_names=range(n_labels) if label_names is None else label_names,
        source=str(path),
        dropped={},
        label_parents=None,
        sample_weight=None,
    )

"""Writers of ARFF and CSV files: X, Y and the names come back exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from .._support.atomic import COMPRESSED, atomic_texts
from ._arff import stem
from ._frames import as_dataset
from ._spelling import arff_word, csv_word, dense_lines, labels_xml, sparse_lines
from .arff_header import meka_label_count
from .columns import check_names
from .csv import check_delimiter
from .files import PathLike

_FORMATS = ("mulan", "meka")
# Rows that are turned to text at once.
_BLOCK = 1024


@dataclass
class _Data:
    """What is written, checked; arrays are copies."""

    X: Any
    Y: Any
    feature_names: list[str]
    label_names: list[str]
    binary: NDArray[np.bool_]
    label_parents: Mapping[str, str | None]
    sample_weight: NDArray[np.float64] | None


def _check_words(argument: str, names: Sequence[str]) -> None:
    for name in names:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"{argument} must be text that can be encoded, got {name!r}."
            ) from None


def _binary_columns(X: Any, categorical: Any) -> NDArray[np.bool_]:
    """Return which categorical columns hold 0, 1 and missing values only."""
    binary = np.array(categorical, dtype=bool)
    if sparse.issparse(X):
        other = ~((X.data == 1) | (X.data == 0) | np.isnan(X.data))
        binary[X.indices[other]] = False
    else:
        binary &= ((X == 0) | (X == 1) | np.isnan(X)).all(axis=0)
    return binary


def _weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"sample_weight must hold {n_rows} numbers, finite and not below 0, got "
            f"shape {weights.shape} with values from {weights.min(initial=np.inf):g}."
        )
    return weights


def _prepared(
    X: Any,
    Y: Any,
    feature_names: Any,
    label_names: Any,
    label_parents: Any = None,
    sample_weight: Any = None,
) -> _Data:
    """Return the data of arrays or frames, or of a Bunch in the place of X."""
    categorical = None
    if isinstance(X, Bunch):
        bunch = X
        if Y is not None:
            raise ValueError("Y must be None where X is a Bunch, which holds its own.")
        if "X" not in bunch or "Y" not in bunch:
            raise ValueError(f"X must be a Bunch with X and Y, got {list(bunch)}.")
        X, Y = bunch.X, bunch.Y
        if feature_names is None:
            feature_names = bunch.get("feature_names")
        if label_names is None:
            label_names = bunch.get("label_names")
        if label_parents is None:
            label_parents = bunch.get("label_parents")
        if sample_weight is None:
            sample_weight = bunch.get("sample_weight")
        categorical = bunch.get("categorical")
    elif Y is None:
        raise ValueError("Y must be given unless X is a Bunch, got None.")
    data = as_dataset(
        X,
        Y,
        feature_names=feature_names,
        label_names=label_names,
        drop_identifiers=False,
    )
    names = data.feature_names + data.label_names
    check_names("feature_names and label_names", names)
    _check_words("feature_names and label_names", names)
    return _Data(
        X=data.X,
        Y=data.Y,
        feature_names=data.feature_names,
        label_names=data.label_names,
        binary=_binary_columns(
            data.X, data.categorical if categorical is None else categorical
        ),
        label_parents=label_parents or {},
        sample_weight=_weights(sample_weight, data.n_instances),
    )


def _dense_rows(data: _Data, labels_first: bool) -> Iterator[NDArray[np.float64]]:
    for begin in range(0, data.X.shape[0], _BLOCK):
        parts = [
            part.toarray() if sparse.issparse(part) else part
            for part in (
                data.X[begin : begin + _BLOCK],
                data.Y[begin : begin + _BLOCK],
            )
        ]
        yield np.hstack(parts[::-1] if labels_first else parts, dtype=np.float64)


def _arff_lines(data: _Data, labels_first: bool) -> Iterator[str]:
    if sparse.issparse(data.X):
        parts = [data.X, sparse.csr_array(data.Y, dtype=np.float64)]
        rows = sparse.hstack(parts[::-1] if labels_first else parts, format="csr")
        rows.eliminate_zeros()
        rows.sort_indices()
        return sparse_lines(rows)
    # A declared value is 0, never -0.
    data.X[:, data.binary] += 0.0
    blocks = _dense_rows(data, labels_first)
    return (line for block in blocks for line in dense_lines(block, ",", "?"))


def _attributes(data: _Data, labels_first: bool) -> Iterator[str]:
    features = [
        f"@attribute {arff_word(name)} {'{0,1}' if binary else 'numeric'}"
        for name, binary in zip(data.feature_names, data.binary, strict=True)
    ]
    labels = [f"@attribute {arff_word(name)} {{0,1}}" for name in data.label_names]
    yield from labels + features if labels_first else features + labels


def _arff_name(path: PathLike) -> Path:
    path = Path(path)
    plain = path.name
    for suffix in COMPRESSED:
        plain = plain.removesuffix(suffix)
    if not plain.endswith(".arff") or plain == ".arff":
        raise ValueError(
            "path must end in .arff, or in .arff and one of "
            f"{list(COMPRESSED)}, got {path.name!r}."
        )
    return path


def write_arff(
    path: PathLike,
    X: Any,
    Y: Any = None,
    *,
    feature_names: Sequence[Any] | None = None,
    label_names: Sequence[Any] | None = None,
    label_parents: Mapping[str, str | None] | None = None,
    sample_weight: Any = None,
    relation: str | None = None,
    format: str = "mulan",
) -> None:
    """Write an ARFF file of MULAN or MEKA.

    :func:`read_arff` gives X, Y and the names back exactly.

    The files appear when they are complete; after an error there are none.

    Parameters
    ----------
    path : str or path
        Its name ends in .arff, or in .arff.xz, .arff.bz2 or .arff.gz and is then
        compressed. For MULAN an XML file of the same stem is written beside it.
    X : array-like, sparse matrix, data frame or Bunch
        Features, NaN where there is none; sparse ones are written as sparse rows. Or
        all of it, names, hierarchy and weights included, as a reader returned it.
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Indicator of the labels; None where X is a Bunch.
    feature_names, label_names : sequences of str or None, default=None
        None: those of the Bunch or frame, else ``x0``, ... and ``y0``, ...
    label_parents : dict of str to str or None, default=None
        The parent of each label that has one. MEKA's files do not hold it.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows.
    relation : str or None, default=None
        The name of the data. None: that of the file.
    format : {"mulan", "meka"}, default="mulan"
        Whether the labels are the last attributes and named in an XML file, or the
        first and counted in the relation's name.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.datasets import read_arff, write_arff
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.arff")
    ...     write_arff(path, [[1020.5], [float("nan")]], [[0, 1], [1, 1]],
    ...                label_names=["rain", "much wind"], format="meka")
    ...     print(path.read_text())
    ...     read_arff(path).label_names
    @relation 'weather: -C 2'
    <BLANKLINE>
    @attribute rain {0,1}
    @attribute 'much wind' {0,1}
    @attribute x0 numeric
    <BLANKLINE>
    @data
    0,1,1020.5
    1,1,?
    <BLANKLINE>
    ['rain', 'much wind']
    """
    if format not in _FORMATS:
        raise ValueError(f"format must be one of {list(_FORMATS)}, got {format!r}.")
    path = _arff_name(path)
    data = _prepared(X, Y, feature_names, label_names, label_parents, sample_weight)
    if relation is not None:
        relation = str(relation)
        _check_words("relation", [relation])
    else:
        relation = stem(path)
    if meka_label_count(relation) is not None:
        raise ValueError(
            f"relation must not count labels as MEKA does (-C k), got {relation!r}."
        )
    meka = format == "meka"
    if meka:
        relation = f"{relation}: -C {len(data.label_names)}"
    paths = [path] if meka else [path.with_name(f"{stem(path)}.xml"), path]
    with atomic_texts(*paths) as files:
        if not meka:
            files[0].write(labels_xml(data.label_names, data.label_parents) + "\n")
        file = files[-1]
        file.write(f"@relation {arff_word(relation)}\n\n")
        file.writelines(f"{line}\n" for line in _attributes(data, meka))
        file.write("\n@data\n")
        lines = _arff_lines(data, meka)
        if data.sample_weight is not None:
            weights = data.sample_weight.tolist()
            weighted = zip(lines, weights, strict=True)
            lines = (f"{line},{{{weight!r}}}" for line, weight in weighted)
        file.writelines(f"{line}\n" for line in lines)


def write_csv(
    path: PathLike,
    X: Any,
    Y: Any = None,
    *,
    feature_names: Sequence[Any] | None = None,
    label_names: Sequence[Any] | None = None,
    delimiter: str = ",",
) -> None:
    r"""Write a CSV file.

    :func:`read_csv` gives X, Y and the names back exactly; which columns are
    categorical is not written.

    The first line names the columns: features, then labels. Numbers are written with
    the digits they need, NaN as an empty field, sparse rows in full. The file appears
    when it is complete; after an error there is none.

    Names are written as they are, also those that a spreadsheet would take for a
    formula, such as ``=1+1``: look at names from strangers before you open the file in
    one.

    Parameters
    ----------
    path : str or path
        Compressed if it ends in .xz, .bz2 or .gz.
    X : array-like, sparse matrix, data frame or Bunch
        Features, or all of it as a reader returned it; of a Bunch, hierarchy and
        weights are not written.
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Indicator of the labels; None where X is a Bunch.
    feature_names, label_names : sequences of str or None, default=None
        None: those of the Bunch or frame, else ``x0``, ... and ``y0``, ...
    delimiter : {",", ";", "\\t", "|", ":"}, default=","
        What parts the fields.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.datasets import read_csv, write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.csv")
    ...     write_csv(path, [[1020.5], [float("nan")]], [[0, 1], [1, 1]],
    ...               label_names=["rain", "much wind"])
    ...     print(path.read_text())
    ...     read_csv(path, ["rain", "much wind"]).Y
    x0,rain,"much wind"
    1020.5,0,1
    ,1,1
    <BLANKLINE>
    array([[0, 1],
           [1, 1]])
    """
    check_delimiter(delimiter)
    data = _prepared(X, Y, feature_names, label_names)
    names = data.feature_names + data.label_names
    for name in names:
        if not name or "\0" in name:
            raise ValueError(
                "feature_names and label_names of a CSV file must not be empty or hold "
                f"zero bytes, got {name!r}."
            )
    with atomic_texts(path) as [file]:
        file.write(delimiter.join(map(csv_word, names)) + "\n")
        for block in _dense_rows(data, labels_first=False):
            lines = dense_lines(block, delimiter, "")
            file.writelines(f"{line}\n" for line in lines)

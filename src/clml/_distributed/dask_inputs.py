"""Rows that are dask collections, as one delayed partition each.

Nothing is computed here. Blocks and partitions are taken as they are where they fit
each other, so that what is persisted stays where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._base.partitions import dask_kind, is_delayed
from .._support.names import column_names, match_names, shown
from ..datasets.columns import check_names
from ..datasets.plain_rows import Rows, check_frame_numbers, plain_rows

# Where the classes of collections are; a value can be of one only if it is imported.
_SPOKEN = {
    "array": "dask array",
    "frame": "dask DataFrame",
    "series": "dask Series",
    "delayed": "list of Delayed",
}


@dataclass(frozen=True, eq=False)
class DelayedPartitions:
    """Partitions of rows that dask computes where they are wanted.

    Attributes
    ----------
    delayed : tuple of Delayed
        Each gives features (float array or CSR), an indicator of uint8, weights of
        float64 or None, and, where it came as frames, the names of both.
    feature_names, label_names : tuples of str, or None
    """

    delayed: tuple[Any, ...]
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.delayed)


def delayed_partitions(X: Any, y: Any, sample_weight: Any = None) -> DelayedPartitions:
    """Return the partitions of dask collections.

    Parameters
    ----------
    X : dask array (n, D), dask DataFrame, or list of Delayed
        Blocks of an array may be CSR matrices. Delayed values are features, or, where
        y is None, tuples (X, Y) or (X, Y, weight).
    y : dask array (n, K), dask DataFrame, list of names, list of Delayed, or None
        Of the kind of X; for a frame also the names of its columns that are labels.
    sample_weight : dask array (n,), dask Series, name, list of Delayed, or None
        Of the kind of X; for a frame also the name of its column of weights.

    Examples
    --------
    >>> import dask.array as da
    >>> from clml._distributed.dask_inputs import delayed_partitions
    >>> X, y = da.ones((4, 2), chunks=(3, 1)), da.ones((4, 1), dtype="u1")
    >>> rows = delayed_partitions(X, y)
    >>> len(rows)
    2
    >>> rows.delayed[1].compute(scheduler="synchronous")
    (array([[1., 1.]]), array([[1]], dtype=uint8), None)
    """
    kind = dask_kind(X)
    if kind == "array":
        return _of_arrays(X, y, sample_weight)
    if kind == "frame":
        return _of_frames(X, y, sample_weight)
    if kind == "delayed":
        return _of_delayed(X, y, sample_weight)
    raise TypeError(
        "X must be a dask array, a dask DataFrame or a list of Delayed where y or "
        f"sample_weight is one, got {_spoken(X)}."
    )


def _spoken(value: Any) -> str:
    return _SPOKEN.get(dask_kind(value) or "", type(value).__name__)


def _check_kind(value: Any, argument: str, kind: str, partner: str, more: str) -> None:
    if value is None:
        raise ValueError(f"{argument} must be {more} for a {partner} X, got None.")
    if dask_kind(value) != kind:
        raise TypeError(
            f"{argument} must be {more} for a {partner} X, got {_spoken(value)}."
        )


def _delayed_rows(parts: Sequence[Any], **known: Any) -> tuple[Any, ...]:
    """Return one Delayed for each tuple of features, labels and weights."""
    from dask import delayed

    task = delayed(_named_rows, pure=False, traverse=False)
    return tuple(
        task(X, Y, weight, where=f"partition {number}", **known)
        for number, (X, Y, weight) in enumerate(parts)
    )


# --- arrays


def _of_arrays(X: Any, y: Any, sample_weight: Any) -> DelayedPartitions:
    _check_kind(y, "y", "array", "dask array", "a dask array")
    _check_axes(X, "X", 2)
    _check_axes(y, "y", 2)
    X = _one_block_a_row(X, X)
    parts = [X, _one_block_a_row(y, X, "y")]
    if sample_weight is not None:
        _check_kind(
            sample_weight, "sample_weight", "array", "dask array", "a dask array"
        )
        _check_axes(sample_weight, "sample_weight", 1)
        parts.append(_one_block_a_row(sample_weight, X, "sample_weight"))
    blocks = [list(part.to_delayed().ravel()) for part in parts]
    if sample_weight is None:
        blocks.append([None] * len(blocks[0]))
    together = list(zip(*blocks, strict=True))
    return DelayedPartitions(
        _delayed_rows(together, n_features=X.shape[1], n_labels=y.shape[1])
    )


def _check_axes(array: Any, argument: str, ndim: int) -> None:
    if array.ndim != ndim:
        axes = "(rows,)" if ndim == 1 else "(rows, columns)"
        raise ValueError(
            f"{argument} must have the shape {axes}, got {array.ndim} axes: "
            f"{array.shape}."
        )
    if ndim == 2 and (math.isnan(array.shape[1]) or array.shape[1] == 0):
        raise ValueError(
            f"{argument} must have a known number of columns, at least one, got the "
            f"shape {array.shape}."
        )


def _one_block_a_row(array: Any, X: Any, argument: str = "X") -> Any:
    """Return an array whose blocks hold whole rows, the rows of the blocks of X."""
    wanted: dict[int, Any] = {}
    if array.ndim == 2 and array.numblocks[1] > 1:
        wanted[1] = -1
    rows, expected = array.chunks[0], X.chunks[0]
    if any(math.isnan(size) for size in (*rows, *expected)):
        # Whether the blocks have as many rows is seen when they are computed.
        if len(rows) != len(expected):
            raise ValueError(
                f"{argument} must have as many blocks of rows as X where the sizes of "
                f"blocks are not known, got {len(rows)} and {len(expected)}. "
                "compute_chunk_sizes() finds them."
            )
    elif array.shape[0] != X.shape[0]:
        raise ValueError(
            f"{argument} must have as many rows as X, got {array.shape[0]} and "
            f"{X.shape[0]}."
        )
    elif rows != expected:
        wanted[0] = expected
    return array.rechunk(wanted) if wanted else array


# --- frames


def _of_frames(X: Any, y: Any, sample_weight: Any) -> DelayedPartitions:
    columns = list(X.columns)
    check_names("X", [str(name) for name in columns])
    labels, weight = _label_columns(X, y), _weight_column(X, sample_weight)
    if weight is not None and weight in labels:
        raise ValueError(f"sample_weight={weight!r} is among the labels, too.")
    taken = [*labels, *([] if weight is None else [weight])]
    features = [name for name in columns if name not in taken]
    if not features:
        raise ValueError("X must have at least one column of features, got none.")
    check_frame_numbers(X._meta, "X")
    label_names = labels
    if not labels:
        check_frame_numbers(y._meta, "y")
        label_names = list(y.columns)
        check_names("y", [str(name) for name in label_names])
    if not label_names:
        raise ValueError("y must have at least one label, got none.")
    n_partitions = X.npartitions
    nothing = [None] * n_partitions
    y_parts = nothing if labels else list(y.to_delayed())
    weights = nothing
    if sample_weight is not None and weight is None:
        weights = list(sample_weight.to_delayed())
    from dask import delayed

    task = delayed(_rows_of_frames, pure=False, traverse=False)
    # Names of many columns stand in the graph once, not in every task of it.
    roles = delayed((columns, features, labels, label_names, weight), traverse=False)
    return DelayedPartitions(
        tuple(
            task(*parts, roles, f"partition {number}")
            for number, parts in enumerate(
                zip(X.to_delayed(), y_parts, weights, strict=True)
            )
        ),
        # As scikit-learn has it: numbers are no names.
        tuple(features) if all(isinstance(name, str) for name in features) else None,
        tuple(str(name) for name in label_names),
    )


def _rows_of_frames(frame: Any, y: Any, weight: Any, roles: Any, where: str) -> Rows:
    """Return a partition of frames; runs where the frames are.

    What dask knows of columns was told to it, and a partition may have others.
    """
    columns, features, labels, label_names, weight_name = roles
    frame = _with_columns(frame, columns, f"{where}: X")
    y = frame[labels] if labels else _with_columns(y, label_names, f"{where}: y")
    if weight_name is not None:
        weight = frame[weight_name]
    X = frame if len(features) == len(columns) else frame[features]
    return plain_rows(X, y, weight, where, len(features), len(label_names))


def _with_columns(frame: Any, columns: list[Any], argument: str) -> Any:
    """Return a partition's columns in the order that dask knows, or refuse others."""
    wanted, given = ([str(name) for name in c] for c in (columns, frame.columns))
    order = match_names(wanted, given, argument, "the collection")
    if len(given) != len(wanted):
        raise ValueError(
            f"{argument} must have {len(wanted)} columns, got {len(given)}."
        )
    if order is not None:
        frame = frame.iloc[:, order]
    return frame if wanted == given else frame.set_axis(columns, axis=1)


def _label_columns(X: Any, y: Any) -> list[Any]:
    """Return the columns of X that are labels; none where y is a frame of its own."""
    if isinstance(y, str):
        y = [y]
    elif dask_kind(y) is None and getattr(y, "ndim", 0) == 1:  # an index, or an array
        y = y.tolist()
    if dask_kind(y) is None and isinstance(y, (list, tuple)):
        missing = [name for name in y if name not in list(X.columns)]
        if missing or not y:
            raise ValueError(
                "y must name columns of X, got "
                f"{shown([str(name) for name in missing])}, and the columns are "
                f"{shown([str(name) for name in X.columns])}."
            )
        if len(set(y)) < len(y):
            raise ValueError(f"y must name each column once, got {list(y)!r}.")
        return list(y)
    if dask_kind(y) == "series":
        raise ValueError(
            "y must be a dask DataFrame of labels or a list of columns of X, got a "
            "dask Series, which has one axis."
        )
    more = "a dask DataFrame or a list of columns of X"
    _check_kind(y, "y", "frame", "dask DataFrame", more)
    _check_partitions(y, X, "y")
    return []


def _weight_column(X: Any, sample_weight: Any) -> Any:
    """Return the column of X that holds weights, None if there is none."""
    if sample_weight is None:
        return None
    if dask_kind(sample_weight) is None and isinstance(sample_weight, (str, int)):
        if sample_weight not in list(X.columns):
            raise ValueError(
                f"sample_weight={sample_weight!r} is no column of X; the columns are "
                f"{shown([str(name) for name in X.columns])}."
            )
        return sample_weight
    more = "a dask Series or a column of X"
    _check_kind(sample_weight, "sample_weight", "series", "dask DataFrame", more)
    _check_partitions(sample_weight, X, "sample_weight")
    return None


def _check_partitions(part: Any, X: Any, argument: str) -> None:
    if part.npartitions != X.npartitions:
        raise ValueError(
            f"{argument} must have as many partitions as X, got {part.npartitions} "
            f"and {X.npartitions}."
        )
    if part.known_divisions and X.known_divisions and part.divisions != X.divisions:
        raise ValueError(
            f"{argument} must be divided as X is; {argument}.repartition(divisions="
            f"X.divisions) does so. Got {part.divisions} and {X.divisions}."
        )


# --- delayed values


def _of_delayed(X: Any, y: Any, sample_weight: Any) -> DelayedPartitions:
    features = _list_of_delayed(X, "X")
    if y is None:
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be None where y is: Delayed values then give "
                f"(X, Y, weight). Got {_spoken(sample_weight)}."
            )
        from dask import delayed

        task = delayed(_rows_of_tuple, pure=False, traverse=False)
        return DelayedPartitions(
            tuple(
                task(part, f"partition {number}")
                for number, part in enumerate(features)
            )
        )
    labels = _list_of_delayed(y, "y")
    weights: list[Any] = [None] * len(features)
    if sample_weight is not None:
        weights = _list_of_delayed(sample_weight, "sample_weight")
    for argument, found in (("y", labels), ("sample_weight", weights)):
        if len(found) != len(features):
            raise ValueError(
                f"{argument} must have as many Delayed as X, got {len(found)} and "
                f"{len(features)}."
            )
    return DelayedPartitions(
        _delayed_rows(list(zip(features, labels, weights, strict=True)))
    )


def _list_of_delayed(value: Any, argument: str) -> list[Any]:
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    wrong = [part for part in parts if not is_delayed(part)]
    if wrong:
        raise TypeError(
            f"{argument} must be a list of Delayed as X is, got "
            f"{type(wrong[0]).__name__} among {len(parts)}."
        )
    return parts


def _named_rows(X: Any, Y: Any, weight: Any, where: str, **known: Any) -> Any:
    """Return a partition and the names of its columns, for others to be compared."""
    rows = plain_rows(X, Y, weight, where, **known)
    names = (column_names(X), column_names(Y))
    return rows if names == (None, None) else (*rows, names)


def _rows_of_tuple(part: Any, where: str) -> Any:
    if not isinstance(part, (tuple, list)) or len(part) not in (2, 3):
        raise ValueError(
            f"{where}: expected (X, Y) or (X, Y, weight) where y is None, got "
            f"{type(part).__name__}."
        )
    X, Y, weight = (*part, None)[:3]
    return _named_rows(X, Y, weight, where)

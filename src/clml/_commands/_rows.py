"""Rows that a model can take: its columns, its labels, one side of a division."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._support.names import shown
from ..datasets.columns import there_are
from ..splits import iterative_split_indices
from ._data import Data, Source

# The share of the rows that --part test stands for, as in the paper.
_TEST_SIZE = 0.3


class _NamedColumns(np.ndarray):
    """An array that knows its columns' names, as a frame does; pandas is optional."""

    columns: list[str]


def named_labels(data: Data) -> Any:
    """Return the labels as an estimator reads their names from them."""
    Y = np.asarray(data.Y).view(_NamedColumns)
    Y.columns = data.label_names
    return Y


def take_part(data: Data, part: str, seed: int) -> Data:
    """Return all rows, or those of one side of a seeded stratified division."""
    if part == "all":
        return data
    train, test = iterative_split_indices(
        data.Y, test_size=_TEST_SIZE, random_state=seed
    )
    rows = train if part == "train" else test
    weight = data.sample_weight
    return replace(
        data,
        X=data.X[rows],
        Y=data.Y[rows],
        sample_weight=None if weight is None else weight[rows],
    )


def fingerprint(data: Data) -> str:
    """Return what tells rows apart from others."""
    content = hashlib.sha256(repr(data.X.shape).encode())
    parts: tuple[Any, ...] = (data.X,)
    if not isinstance(data.X, np.ndarray):
        parts = (data.X.data, data.X.indices, data.X.indptr)
    for array in (*parts, data.Y):
        content.update(np.ascontiguousarray(array).data)
    return content.hexdigest()


def refuse_missing(source: Source, data: Data, allowed: bool) -> None:
    """Refuse values that are missing where the learner cannot take them."""
    if allowed:
        return
    if isinstance(data.X, np.ndarray):
        gone = np.isnan(data.X).sum(axis=0)
    else:
        where = data.X.indices[np.isnan(data.X.data)]
        gone = np.bincount(where, minlength=data.X.shape[1])
    if gone.any():
        columns = np.flatnonzero(gone)
        names = [str(n) for n in columns]
        if data.feature_names is not None:
            names = [data.feature_names[n] for n in columns]
        raise ValueError(
            f"{source.given}: values are missing ({int(gone.sum()):,}, in the columns "
            f"{shown(names)}), and the learner needs all. Fill them in first, train "
            "with --set network=wide, or tune a learner that does without."
        )


def match_features(
    source: Source,
    data: Data,
    wanted: Sequence[str] | None,
    n_features: int,
    labels: Sequence[str] = (),
) -> Data:
    """Return the columns that a model was trained on, in its order.

    By name where both have names; else by their place, the columns named like labels
    left out.
    """
    names = data.feature_names
    if wanted is not None and names is not None:
        if list(wanted) == names:
            return data
        place = {name: number for number, name in enumerate(names)}
        absent = [name for name in wanted if name not in place]
        if absent:
            raise ValueError(
                f"{source.given}: there are no columns for the features "
                f"{shown(absent)} of the model; {there_are(names)}"
            )
        numbers = [place[name] for name in wanted]
    else:
        numbers = list(range(data.X.shape[1]))
        if names is not None:
            numbers = [n for n in numbers if names[n] not in set(labels)]
        if len(numbers) != n_features:
            raise ValueError(
                f"{source.given}: the model takes {n_features} features, got "
                f"{len(numbers)}."
            )
    kept = None if names is None else [names[number] for number in numbers]
    X = data.X[:, numbers]
    if hasattr(X, "sort_indices"):
        X.sort_indices()
    return replace(data, X=X, feature_names=kept)


def match_labels(source: Source, data: Data, wanted: Sequence[str]) -> Data:
    """Return the labels that a model predicts, in its order.

    A label of sparse rows that never occurs in a file is absent from all its rows.
    """
    names = data.label_names
    # A model that was trained on arrays knows no names; but a file may have these.
    generic = list(wanted) == [f"label{k}" for k in range(len(names))]
    if list(wanted) == names or (generic and set(wanted) != set(names)):
        return replace(data, label_names=list(wanted))
    extra = [name for name in names if name not in set(wanted)]
    absent = [name for name in wanted if name not in set(names)]
    if extra or (absent and not data.reading.get("numbered")):
        raise ValueError(
            f"{source.given}: the model predicts the labels {shown(list(wanted))}, got "
            f"{shown(names)}."
        )
    Y = np.zeros((len(data.Y), len(wanted)), dtype=np.int64)
    for column, name in enumerate(wanted):
        if name in names:
            Y[:, column] = data.Y[:, names.index(name)]
    return replace(data, Y=Y, label_names=list(wanted))

"""Names of columns: tables that have them are matched by name, never by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Names that an error shows of many.
_MOST_SHOWN = 8


def column_names(data: Any) -> list[str] | None:
    """Return the column names of a data frame or the name of a series, if any.

    Examples
    --------
    >>> import pandas as pd
    >>> from clml._support.names import column_names
    >>> column_names(pd.DataFrame({"rain": [1], 7: [0]}))
    ['rain', '7']
    >>> column_names([[1, 0]]) is None
    True
    """
    columns = getattr(data, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    name = getattr(data, "name", None)
    # Arrays of files have the names of their places there.
    is_name = isinstance(name, str) and name != "" and getattr(data, "ndim", 0) == 1
    return [str(name)] if is_name else None


def row_names(data: Any) -> list[str] | None:
    """Return the names of the rows of a series or data frame, if any."""
    index = getattr(data, "index", None)  # that of a list is a method
    return None if index is None or callable(index) else [str(name) for name in index]


def label_names_of(estimator: Any) -> list[str] | None:
    """Return the names of the labels that a fitted estimator predicts, if it has any.

    Those of a pipeline or a search are those of what predicts in it.
    """
    while True:
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    names = getattr(estimator, "label_names_", None)
    return None if names is None else [str(name) for name in names]


def refuse_twice(names: Sequence[str], argument: str) -> None:
    """Refuse names of which one stands for two columns."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"{argument} must name each column once, got {shown(twice)} more than once."
        )


def match_names(
    wanted: Sequence[str] | None, given: Sequence[str] | None, argument: str, of: str
) -> list[int] | None:
    """Return where the wanted columns are among the given ones; None if in place.

    Columns without names are in place: those of arrays, and those that are merely
    numbered, as by this library or by pandas.

    Parameters
    ----------
    wanted, given : sequence of str, or None
    argument : str
        What was given.
    of : str
        Whose columns are wanted; both are for the error.

    Raises
    ------
    ValueError
        Where both have names, and not the same.

    Examples
    --------
    >>> from clml._support.names import match_names
    >>> match_names(["rain", "wind"], ["wind", "rain"], "y_val", "y")
    [1, 0]
    >>> match_names(["rain", "wind"], ["0", "1"], "y_val", "y") is None
    True
    >>> match_names(["rain", "wind"], ["wind", "snow"], "y_val", "y")
    Traceback (most recent call last):
    ...
    ValueError: y_val must have the same names as y, in any order; it lacks ['rain'], \
and ['snow'] are unknown. Tables without names are matched by place.
    """
    if wanted is None or given is None or list(wanted) == list(given):
        return None
    refuse_twice(given, argument)
    place = {name: number for number, name in enumerate(given)}
    absent = [name for name in wanted if name not in place]
    known = set(wanted)
    strange = [name for name in given if name not in known]
    if not absent and not strange:
        return [place[name] for name in wanted]
    if is_numbering(wanted) or is_numbering(given):
        return None
    problems = [f"it lacks {shown(absent)}"] if absent else []
    problems += [f"{shown(strange)} are unknown"] if strange else []
    raise ValueError(
        f"{argument} must have the same names as {of}, in any order; "
        f"{', and '.join(problems)}. Tables without names are matched by place."
    )


def in_order(data: Any, wanted: Sequence[str] | None, argument: str, of: str) -> Any:
    """Return a table with its columns in the wanted order, as ``match_names`` finds it.

    Examples
    --------
    >>> import pandas as pd
    >>> from clml._support.names import in_order
    >>> in_order(pd.DataFrame({"wind": [0], "rain": [1]}), ["rain", "wind"], "Y", "X")
    array([[1, 0]])
    """
    order = match_names(wanted, column_names(data), argument, of)
    return data if order is None else np.asarray(data)[:, order]


def is_numbering(names: Sequence[str]) -> bool:
    """Whether names are numbers from 0 on, as columns without names get them."""
    return any(
        list(names) == [f"{prefix}{k}" for k in range(len(names))]
        for prefix in ("", "label")
    )


def shown(words: Sequence[str]) -> str:
    """Return words as an error shows them: in brackets, the first few of many."""
    more = len(words) - _MOST_SHOWN
    first = ", ".join(repr(word[:80]) for word in words[:_MOST_SHOWN])
    return f"[{first}, and {more:,} more]" if more > 0 else f"[{first}]"

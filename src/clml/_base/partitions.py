"""What rows in partitions are, told without a library that they would come from."""

from __future__ import annotations

import sys
from typing import Any

_DASK = {
    "array": ("dask.array", "Array"),
    "frame": ("dask.dataframe", "DataFrame"),
    "series": ("dask.dataframe", "Series"),
    "delayed": ("dask.delayed", "Delayed"),
}
_ROW_PARTITIONS = ("clml.datasets", "RowPartitions")


def dask_kind(value: Any) -> str | None:
    """Return "array", "frame", "series" or "delayed" (a list of them), else None."""
    if isinstance(value, (list, tuple)):
        return "delayed" if value and is_delayed(value[0]) else None
    return next((kind for kind, home in _DASK.items() if _is_a(value, home)), None)


def is_delayed(value: Any) -> bool:
    """Tell whether a value is a Delayed of dask."""
    return _is_a(value, _DASK["delayed"])


def is_dask(value: Any) -> bool:
    """Whether a value is a dask array, frame, series, Delayed, or a list of Delayed.

    Examples
    --------
    >>> import dask.array as da
    >>> from clml._base.partitions import is_dask
    >>> is_dask(da.ones((4, 2))), is_dask([[1.0, 2.0]])
    (True, False)
    """
    return dask_kind(value) is not None


def in_partitions(*arguments: Any) -> bool:
    """Tell whether any of the arguments of a fit are in partitions."""
    return any(is_dask(one) or _is_a(one, _ROW_PARTITIONS) for one in arguments)


def _is_a(value: Any, home: tuple[str, str]) -> bool:
    """Tell whether a value is of a class, which it is not if nobody imported that."""
    module, name = home
    found = getattr(sys.modules.get(module), name, None)
    return found is not None and isinstance(value, found)

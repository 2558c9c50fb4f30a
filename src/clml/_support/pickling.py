"""What is sent to other processes, and has to be pickled for it.

Those who send things show them when they cannot: dask prints an object that it cannot
pickle, rows and labels with it, in its error and in its log. So what users have written
is tried before any rows are with it, and refused in words of our own.
"""

from __future__ import annotations

import importlib
import pickle
import re
from contextlib import suppress
from typing import Any

# What Python says of an object that has no pickle names its type alone. Whatever else
# is said may quote the object.
_NAMES_A_TYPE = re.compile(r"cannot pickle '[\w.]+' object")


def cloudpickle() -> Any:
    """Return cloudpickle, which also takes functions and classes of a notebook."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:  # joblib before 1.6 brings its own
        return importlib.import_module("joblib.externals.cloudpickle")


def refuse_unpicklable(value: Any, name: str) -> None:
    """Refuse what cannot be sent to other processes, without showing it.

    Parameters
    ----------
    value : object
        Its arrays are not copied.
    name : str
        What the user calls it.

    Raises
    ------
    TypeError
        With no cause: those of picklers may quote the object.

    Examples
    --------
    >>> import threading
    >>> from clml._support.pickling import refuse_unpicklable
    >>> refuse_unpicklable(abs, "losses")
    >>> refuse_unpicklable({"lock": threading.Lock()}, "losses")
    Traceback (most recent call last):
    ...
    TypeError: losses cannot be sent to other processes (cannot pickle '_thread.lock'...
    """
    reason = _reason_against(value)
    if reason is not None:
        raise TypeError(
            f"{name} cannot be sent to other processes ({reason}). Whatever is sent "
            "must be picklable: functions and classes that can be imported, without a "
            "lock, an open file, a connection or a generator in them."
        )


def can_travel(value: Any) -> bool:
    """Tell whether a value can be sent to other processes; its arrays are not copied.

    Examples
    --------
    >>> import threading
    >>> from clml._support.pickling import can_travel
    >>> can_travel([1, 2]), can_travel(threading.Lock())
    (True, False)
    """
    return _reason_against(value) is None


def _reason_against(value: Any) -> str | None:
    """Return why a value cannot be pickled, in words that quote nothing of it."""
    # Not by dask's own function, which prints a value that it cannot pickle in its log.
    given: dict[str, Any] = {"protocol": 5, "buffer_callback": _leave_out}
    try:
        cloudpickle().dumps(value, **given)
        return None
    except Exception as error:
        said = _NAMES_A_TYPE.match(str(error))
        reason = said[0] if said else type(error).__name__
    with suppress(Exception):
        # What is known by its name alone does not reach others out of a script.
        if b"__main__" not in pickle.dumps(value, **given):
            return None
    return reason


def _leave_out(buffer: pickle.PickleBuffer) -> None:
    """Leave an array out of the pickle: it can be sent whatever is in it."""

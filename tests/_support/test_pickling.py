"""What cannot be pickled is refused, and nothing of it is shown."""

import functools
import threading
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from clml._support import pickling as _pickling
from clml._support.pickling import refuse_unpicklable


@dataclass
class Holds:
    rows: Any
    lock: Any = None


class Rude:
    """Quotes what it holds in its error."""

    def __reduce__(self):
        raise ValueError("my rows are 4711")


def test_what_can_be_pickled_passes():
    own = 3
    for value in (abs, np.eye(3), Holds(np.eye(3)), lambda: own, print):
        refuse_unpicklable(value, "losses")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Holds(np.full(3, 4711), threading.Lock()), r"cannot pickle '_thread\.lock' o"),
        (functools.partial(print, [4711], threading.Lock()), r"cannot pickle '_thread"),
        ((row for row in [4711]), "cannot pickle 'generator' object"),
        ([4711, Rude()], "ValueError"),
    ],
)
def test_what_cannot_is_not_shown(value, reason):
    with pytest.raises(TypeError, match=rf"^losses cannot be sent.*\({reason}") as told:
        refuse_unpicklable(value, "losses")
    assert "4711" not in "".join(traceback.format_exception_only(told.value))
    assert told.value.__cause__ is None and told.value.__context__ is None


def test_a_script_has_nothing_that_others_import(monkeypatch):
    """Its functions are sent as a whole, with all that they use."""
    import __main__

    lock = threading.Lock()

    def locked():
        return lock

    locked.__module__, locked.__qualname__ = "__main__", "locked"
    monkeypatch.setattr(__main__, "locked", locked, raising=False)
    with pytest.raises(TypeError, match="losses cannot be sent"):
        refuse_unpicklable(locked, "losses")


def test_arrays_are_not_copied(monkeypatch):
    """However many rows there are."""
    seen = []
    monkeypatch.setattr(_pickling, "_leave_out", lambda b: seen.append(len(b.raw())))
    refuse_unpicklable(Holds(np.zeros(1000)), "losses")
    assert seen == [8000]

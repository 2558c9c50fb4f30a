"""Models that score the rows of a fold and are forgotten: nobody chooses from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_bare: ContextVar[bool] = ContextVar("_bare", default=False)


@contextmanager
def bare_models() -> Iterator[None]:
    """Let fits inside leave out what only a choice of models is for: the front.

    What predicts is the same, to the last bit.

    Examples
    --------
    >>> from clml._learners.bare_models import are_bare, bare_models
    >>> with bare_models():
    ...     are_bare()
    True
    >>> are_bare()
    False
    """
    token = _bare.set(True)
    try:
        yield
    finally:
        _bare.reset(token)


def are_bare() -> bool:
    """Return whether nobody will choose from the front of a model that is fitted."""
    return _bare.get()

"""Whether this process was forked: the threads and workers of its parent are not here.

Threads of OpenMP (in scikit-learn and PyTorch) and workers of joblib that the parent
had are waited for in the child, for ever. Code that would use them asks here first.
"""

from __future__ import annotations

import os

_forked = False


def _note() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)


def was_forked() -> bool:
    """Return whether this process was forked after the library had been imported.

    Examples
    --------
    >>> from clml._support.forks import was_forked
    >>> was_forked()
    False
    """
    return _forked

"""Who leaves what out: which rows each member is not trained on, and so can judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..splits import IterativeStratifiedKFold

# From so many rows on one part that is left out is enough to judge by.
_MANY_ROWS = 10_000
# Of members of which several leave out the same rows.
_FOLDS = 5
# Parts of few rows: a member that is quickly trained leaves out one of them, others
# two, so that these are as many as folds.
_PARTS, _FEW_ROWS = 2 * _FOLDS, 1000


def left_out(Y: NDArray[np.uint8], n_members: int, seed: int) -> NDArray[np.bool_]:
    """Tell which rows each member leaves out, (members, n).

    The rows are dealt into as many stratified parts as there are members; each leaves
    out two neighbouring ones, so that two members judge every row. One part is enough
    with fewer than four members or many rows. With fewer rows than members nobody
    leaves any out.
    """
    n = len(Y)
    if n_members == 1 or n < max(3, n_members):
        return np.zeros((n_members, n), dtype=bool)
    part = np.empty(n, dtype=np.int64)
    folds = IterativeStratifiedKFold(n_members, shuffle=True, random_state=seed)
    for i, (_, rows) in enumerate(folds.split(np.empty((n, 1)), Y)):
        part[rows] = i
    n_left = 2 if n_members >= 4 and n < _MANY_ROWS else 1
    distance = (part - np.arange(n_members)[:, None]) % n_members
    return distance < n_left


def folds_left_out(
    Y: NDArray[np.uint8], n_members: int, seed: int
) -> NDArray[np.bool_]:
    """Tell which rows each member leaves out, (members, n): one of five folds in turn.

    With several members a fold, what judges a row is an average like the one that
    predicts. With fewer members, or rows, there are fewer folds; with less than three
    rows, or one member, nobody leaves any out.
    """
    n = len(Y)
    n_folds = min(_FOLDS, n_members, n)
    if n_folds < 2 or n < 3:
        return np.zeros((n_members, n), dtype=bool)
    folds = IterativeStratifiedKFold(n_folds, shuffle=True, random_state=seed)
    out = np.zeros((n_members, n), dtype=bool)
    for i, (_, rows) in enumerate(folds.split(np.empty((n, 1)), Y)):
        out[i::n_folds, rows] = True
    return out


def encodings_in_turn(n_members: int, n_encodings: int) -> list[int]:
    """Return which encoding each member has: others in a fold, others among folds."""
    n_folds = min(_FOLDS, n_members)
    return [(i % n_folds + i // n_folds) % n_encodings for i in range(n_members)]


def members_of_kinds(are_quick: Sequence[bool], n_rows: int) -> list[int]:
    """Return the kind of each member where each kind judges all rows.

    There are five of a kind, and ten that each see more rows if they are quickly
    trained and rows are few: a tenth of these is worth more than its time.

    Parameters
    ----------
    are_quick : sequence of bool
        Of each kind.
    n_rows : int

    Examples
    --------
    >>> from clml._training.left_out import members_of_kinds
    >>> members_of_kinds([False, True], 2000)
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    >>> len(members_of_kinds([False, True], 200))
    15
    """
    few = n_rows < _FEW_ROWS
    return [
        kind
        for kind, is_quick in enumerate(are_quick)
        for _ in range(_PARTS if is_quick and few else _FOLDS)
    ]


def kinds_left_out(
    Y: NDArray[np.uint8], kinds: Sequence[int], seed: int
) -> NDArray[np.bool_]:
    """Tell which rows each member leaves out, (members, n): each kind all of them.

    The rows are dealt into as many stratified parts as the largest kind has members,
    and each kind shares them evenly among its own. With fewer rows than that there are
    as many parts as the smallest kind has members, or as rows; with less than three
    rows nobody leaves any out.

    Parameters
    ----------
    Y : uint8 array (n, K)
    kinds : sequence of int
        Of each member; the size of each kind divides that of the largest.
    seed : int
    """
    n, sizes = len(Y), np.bincount(kinds)
    out = np.zeros((len(kinds), n), dtype=bool)
    if n < 3:
        return out
    n_parts = int(sizes.max() if n >= sizes.max() else min(sizes.min(), n))
    folds = IterativeStratifiedKFold(n_parts, shuffle=True, random_state=seed)
    parts = [rows for _, rows in folds.split(np.empty((n, 1)), Y)]
    place = np.zeros(len(sizes), dtype=np.intp)
    for member, kind in enumerate(kinds):
        each = max(1, n_parts // int(sizes[kind]))
        for part in range(place[kind], place[kind] + each):
            out[member, parts[part % n_parts]] = True
        place[kind] += each
    return out

"""How much memory a file may take: what it holds is bounded by its size."""

from __future__ import annotations

from .files import PathLike, fail

_FREE_BYTES = 256 * 2**20
_BYTES_PER_BYTE = 64
# What one entry of a dense indicator and the name of a column take while they are made.
LABEL_BYTES, NAME_BYTES = 20, 100


def check_size(
    path: PathLike, n_bytes: int, needed: int, what: str, remedy: str
) -> None:
    """Refuse what would take more than 256 MiB and 64 times the text of a file.

    Parameters
    ----------
    path : str or path
        Named in the error.
    n_bytes : int
        Size of the uncompressed text.
    needed : int
        Bytes that something would take in memory.
    what, remedy : str
        What that is, and what to do instead.
    """
    most = _FREE_BYTES + _BYTES_PER_BYTE * n_bytes
    if needed > most:
        raise fail(
            path,
            f"{what} would take {needed:,} bytes, more than the {most:,} that a file "
            f"of this size may take. {remedy}",
        )

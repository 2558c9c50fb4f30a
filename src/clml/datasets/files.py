"""Files as bytes: decompressed whatever their name says, and never without bound."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

from .._support.paths import PathLike, fail, open_regular

# A compressed file may grow to the larger of the two. Data files of the field
# shrink up to 250 times (genbase), bombs much more.
SMALLEST_LIMIT = 64 * 2**20
LARGEST_RATIO = 500
# Decoders of well-formed .xz files need at most 64 MiB at the usual presets.
_XZ_MEMORY = 2**28
# Compressed data are fed in pieces, at first small: a file may have many members.
_FIRST_PIECE, _LARGEST_PIECE = 2**12, 2**20


def _xz() -> Any:
    return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)


def _gzip() -> Any:
    return zlib.decompressobj(wbits=31)


_DECODERS: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\xfd7zXZ\x00": ("xz", _xz),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\x1f\x8b": ("gzip", _gzip),
}
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGED = (lzma.LZMAError, zlib.error, OSError, EOFError, ValueError)


def _too_large(path: PathLike, limit: int) -> ValueError:
    return fail(
        path,
        f"the decompressed content is larger than {limit:,} bytes, the most that is "
        "accepted; pass a larger max_bytes if the file is genuine.",
    )


def _member(
    decoder: Callable[[], Any], data: bytes, position: int, most: int
) -> tuple[bytes, int, bool]:
    """Return the content of one member, where the next begins, and if it was whole.

    What comes out is not much longer than ``most`` bytes.
    """
    member = decoder()
    pieces: list[bytes] = []
    total, size = 0, _FIRST_PIECE
    while not member.eof and total <= most and position < len(data):
        given = data[position : position + size]
        position += len(given)
        pieces.append(member.decompress(given, max_length=most - total + 1))
        total += len(pieces[-1])
        size = min(2 * size, _LARGEST_PIECE)
    if member.eof:
        position -= len(member.unused_data)
    return b"".join(pieces), position, member.eof


def _after_padding(data: bytes, position: int) -> int:
    """Return the next position without a zero: some tools pad the end with them."""
    while position < len(data):
        piece = data[position : position + _LARGEST_PIECE]
        kept = len(piece.lstrip(b"\0"))
        if kept:
            return position + len(piece) - kept
        position += len(piece)
    return position


def _decompress(path: PathLike, data: bytes, limit: int) -> bytes:
    """Return the content of a stream of one or several compressed members."""
    kind, decoder = next(d for magic, d in _DECODERS.items() if data.startswith(magic))
    contents: list[bytes] = []
    total = position = 0
    while position < len(data):
        try:
            content, position, whole = _member(decoder, data, position, limit - total)
        except _DAMAGED as error:
            raise fail(path, f"the {kind} data are damaged ({error}).") from None
        total += len(content)
        if total > limit:
            raise _too_large(path, limit)
        if not whole:
            raise fail(path, f"the {kind} data end too early: the file is truncated.")
        contents.append(content)
        position = _after_padding(data, position)
    return contents[0] if len(contents) == 1 else b"".join(contents)


def _choose_member(path: PathLike, archive: zipfile.ZipFile, suffix: str) -> Any:
    """Return the member with the suffix, the archive's own name first, or the only."""
    files = [
        item
        for item in archive.infolist()
        if item.filename
        and not item.is_dir()
        # What macOS adds to every file.
        and not item.filename.startswith("__MACOSX/")
        and not item.filename.rpartition("/")[2].startswith("._")
    ]
    fitting = [f for f in files if f.filename.lower().endswith(suffix)] or files
    stem = Path(path).name.partition(".")[0].lower()
    own = [
        f for f in fitting if f.filename.rpartition("/")[2].lower() == f"{stem}{suffix}"
    ]
    chosen = own if len(own) == 1 else fitting
    if len(chosen) != 1:
        names = ", ".join(repr(item.filename) for item in chosen[:8])
        raise fail(path, f"expected one {suffix} file in the archive, got [{names}].")
    if chosen[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Python's reader of the others takes whatever memory the data ask for.
        raise fail(path, "members of a zip archive must be stored or deflated.")
    return chosen[0]


def _unzip(path: PathLike, data: bytes, suffix: str, limit: int) -> bytes:
    """Return the content of one member of a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            chosen = _choose_member(path, archive, suffix)
            if chosen.file_size > limit:
                raise _too_large(path, limit)
            with archive.open(chosen) as member:
                content = member.read(limit + 1)
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        IndexError,
        *_DAMAGED,
    ) as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise fail(path, f"the zip data are damaged ({error}).") from None
    if len(content) > limit:
        raise _too_large(path, limit)
    return content


def read_raw(path: PathLike) -> bytes:
    """Return the bytes of a regular file as they are stored."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"No such file: {path}")
    if path.is_dir():
        raise fail(path, "expected a regular file, got a folder.")
    with open_regular(path) as file:
        return file.read()


def decompressed(
    path: PathLike, data: bytes, suffix: str = ".arff", max_bytes: int | None = None
) -> bytes:
    """Return the content of file bytes, decompressed if they are compressed.

    Parameters
    ----------
    path : str or path
        Named in errors.
    data : bytes
        Plain, or in the format of xz, bzip2, gzip or zip: told by the first bytes,
        not by the name of the file.
    suffix : str
        Which member of a zip archive is meant.
    max_bytes : int or None
        The most that may come out of compressed data. None: 500 times their size,
        and 64 MiB for small ones.
    """
    if max_bytes is None:
        max_bytes = max(SMALLEST_LIMIT, LARGEST_RATIO * len(data))
    elif not isinstance(max_bytes, Integral) or max_bytes < 1:
        raise ValueError(
            f"max_bytes must be None or an integer of at least 1, got {max_bytes!r}."
        )
    if data.startswith(_ZIP):
        return _unzip(path, data, suffix, max_bytes)
    if data.startswith(tuple(_DECODERS)):
        return _decompress(path, data, max_bytes)
    return data


def read_file(
    path: PathLike, suffix: str = ".arff", max_bytes: int | None = None
) -> bytes:
    """Return the content of a file, decompressed: see :func:`decompressed`."""
    return decompressed(path, read_raw(path), suffix, max_bytes)

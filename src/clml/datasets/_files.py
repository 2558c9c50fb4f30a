"""Files as bytes: decompressed whatever their name says, and never without bound."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A compressed file may grow to the larger of the two. Data files of the field
# shrink up to 250 times (genbase), bombs much more.
SMALLEST_LIMIT = 64 * 2**20
LARGEST_RATIO = 500
# Decoders of well-formed .xz files need at most 64 MiB at the usual presets.
_XZ_MEMORY = 2**28

PathLike = str | os.PathLike[str]


def fail(path: PathLike, message: str, line: int | None = None) -> ValueError:
    """Return the error of a file that cannot be read, with the place."""
    where = f"{path}, line {line}" if line is not None else f"{path}"
    return ValueError(f"{where}: {message}")


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
        "accepted from a file of this size; decompress it by hand if it is genuine.",
    )


def _decompress(path: PathLike, data: bytes, limit: int) -> bytes:
    """Return the content of a stream of one or several compressed members."""
    kind, decoder = next(d for magic, d in _DECODERS.items() if data.startswith(magic))
    pieces: list[bytes] = []
    total = 0
    while data:
        try:
            member = decoder()
            piece = member.decompress(data, max_length=limit - total + 1)
        except _DAMAGED as error:
            raise fail(path, f"the {kind} data are damaged ({error}).") from None
        total += len(piece)
        if total > limit:
            raise _too_large(path, limit)
        if not member.eof:
            raise fail(path, f"the {kind} data end too early: the file is truncated.")
        pieces.append(piece)
        # Some tools pad the end with zeros.
        data = member.unused_data.lstrip(b"\0")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unzip(path: PathLike, data: bytes, suffix: str, limit: int) -> bytes:
    """Return the one member of a zip archive that has the suffix, or the only one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = [item for item in archive.infolist() if not item.is_dir()]
            fitting = [f for f in files if f.filename.lower().endswith(suffix)]
            chosen = fitting if fitting else files
            if len(chosen) != 1:
                names = ", ".join(repr(item.filename) for item in chosen[:8])
                raise fail(
                    path, f"expected one {suffix} file in the archive, got [{names}]."
                )
            if chosen[0].file_size > limit:
                raise _too_large(path, limit)
            with archive.open(chosen[0]) as member:
                content = member.read(limit + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *_DAMAGED) as error:
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
    if not path.is_file():
        raise ValueError(f"{path} must be a regular file.")
    return path.read_bytes()


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

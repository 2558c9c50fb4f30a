"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from ._paths import PathLike

COMPRESSED = (".xz", ".bz2", ".gz")
# What a write leaves behind that was killed.
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.part")


def _compressor(suffix: str, file: Any) -> Any:
    """Return what writes to a file in the compression that a name's suffix asks for."""
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb")
    if suffix == ".bz2":
        return bz2.BZ2File(file, "wb")
    if suffix == ".gz":
        # Neither time nor name: the same content gives the same bytes.
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
    return nullcontext(file)


@contextmanager
def _synchronised(path: Path, suffix: str) -> Iterator[IO[str]]:
    # "x" gives the permissions of any new file and never follows a link.
    with open(path, "xb") as file:
        # Leaving completes what is compressed, before all of it goes to the disk.
        with _compressor(suffix, file) as compressed:
            text = io.TextIOWrapper(compressed, encoding="utf-8", newline="\n")
            yield text
            text.flush()
            text.detach()
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a rename last; systems that cannot open folders need no such thing."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a free path beside a file, which takes its name after the block.

    After an error, Ctrl-C included, nothing is left.
    """
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def sweep_unfinished(folder: Path, older_than: float = 0.0) -> None:
    """Remove what writes that were killed have left in a folder of the library's own.

    Parameters
    ----------
    folder : Path
    older_than : float, default=0
        Seconds: younger ones may be another process's, which is still writing.
    """
    for name in os.listdir(folder):
        if _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                age = time.time() - (folder / name).stat().st_mtime
                # No age counts for an owner: clocks may be set back.
                if older_than == 0 or age >= older_than:
                    (folder / name).unlink()


def check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"No such folder: {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected the path of a file.")


@contextmanager
def atomic_texts(*paths: PathLike) -> Iterator[list[IO[str]]]:
    r"""Open text files for writing that take their names when all are on the disk.

    They are written under other names in the same folder (UTF-8, lines end in ``\n``,
    compressed if the name ends in .xz, .bz2 or .gz), synchronised, then renamed in the
    order given. After an error nothing is left, and what had the names before is as
    it was.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml._atomic import atomic_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.txt")
    ...     with atomic_texts(path) as [file]:
    ...         _ = file.write("one")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('one', 1)
    """
    places = [Path(path) for path in paths]
    for place in places:
        check_place(place)
    temporary = [place.parent / f".{secrets.token_hex(8)}.tmp" for place in places]
    pairs = list(zip(temporary, places, strict=True))
    try:
        with ExitStack() as files:
            yield [
                files.enter_context(_synchronised(path, place.suffix))
                for path, place in pairs
            ]
        for path, place in pairs:
            os.replace(path, place)
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)
    for folder in {place.parent for place in places}:
        sync_folder(folder)

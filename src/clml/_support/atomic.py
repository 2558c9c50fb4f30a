"""Files that appear under their name only when they are complete.

Everything that the library writes goes through here, so that one set of rules holds:

- what exists under the name must be a file, or a link to one; anything else is refused;
- a file that is replaced hands its permissions on, and its owner where possible;
- a link is replaced itself, and what it points to stays as it was;
- after an error, Ctrl-C included, everything is as it was before.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from .paths import PathLike

COMPRESSED = (".xz", ".bz2", ".gz")
#: Seconds after which nobody is still writing a file.
ABANDONED = 3600.0
# What a write leaves behind that was killed.
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.part")
_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


def check_place(path: Path) -> None:
    """Refuse a path where no file can be: renaming would replace whatever is there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"No such folder: {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected the path of a file.")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(
                f"{path} is a link to nothing, expected the path of a file."
            ) from None
        return
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise OSError(f"{path} is {kind}, expected the path of a file.")


def _earlier(target: Path) -> os.stat_result | None:
    """Return what is known of the file that has a name; None of links and nothing."""
    with suppress(FileNotFoundError):
        found = os.lstat(target)
        if stat.S_ISREG(found.st_mode):
            return found
    return None


def _hand_on(earlier: os.stat_result, path: Path) -> None:
    """Give a file the owner, where possible, and the permissions of another."""
    mode = stat.S_IMODE(earlier.st_mode) & 0o777
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(path, -1, earlier.st_gid)
        with suppress(OSError):
            os.chown(path, earlier.st_uid, -1)
        if path.stat().st_gid != earlier.st_gid:
            # What was for that group is not for this one.
            mode &= ~0o070 | (mode & 0o007) << 3
    os.chmod(path, mode)


def _publish(temporary: Path, target: Path, replace: bool) -> None:
    """Give a complete file its name."""
    check_place(target)  # it may be some time since
    if replace:
        earlier = _earlier(target)
        if earlier is not None:
            _hand_on(earlier, temporary)
        os.replace(temporary, target)
        return
    try:
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except (OSError, AttributeError):  # there are no links on this disk
            with open(target, "xb"):
                pass
            try:
                os.replace(temporary, target)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise _exists(target) from None


def _exists(target: Path) -> FileExistsError:
    return FileExistsError(f"{target} exists, and is not to be replaced.")


@contextmanager
def atomic_path(target: Path, replace: bool = True) -> Iterator[Path]:
    """Yield the path of an empty file, which takes its name after the block.

    Parameters
    ----------
    target : Path
    replace : bool, default=True
        Whether a file that has the name already gives way. If not, FileExistsError is
        raised, also where it appeared during the block.
    """
    check_place(target)
    if not replace and os.path.lexists(target):
        raise _exists(target)
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    # Nobody may read what is to replace a private file, not even for a moment.
    mode = 0o666 if _earlier(target) is None else 0o600
    try:
        # O_EXCL never follows a link.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        try:
            yield temporary
            _publish(temporary, target, replace)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.filename in (temporary, str(temporary)):  # which nobody has heard of
            error.filename, error.filename2 = str(target), None
        raise
    sync_folder(target.parent)


@contextmanager
def atomic_file(target: Path, replace: bool = True) -> Iterator[IO[bytes]]:
    """Yield a file open for writing, which has its name when all is on the disk.

    The parameters are those of `atomic_path`.
    """
    with atomic_path(target, replace) as temporary, open(temporary, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


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
    with open(path, "wb") as file:
        # Leaving completes what is compressed, before all of it goes to the disk.
        with _compressor(suffix, file) as compressed:
            # Names may hold halves of characters, which no encoding has: they are
            # written as Python shows them.
            text = io.TextIOWrapper(
                compressed, encoding="utf-8", errors="backslashreplace", newline="\n"
            )
            yield text
            text.flush()
            text.detach()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def atomic_texts(*paths: PathLike, replace: bool = True) -> Iterator[list[IO[str]]]:
    r"""Open text files for writing that take their names when all are on the disk.

    They are written under other names in the same folder (UTF-8, lines end in ``\n``,
    compressed if the name ends in .xz, .bz2 or .gz), synchronised, then renamed in the
    order given.

    Parameters
    ----------
    *paths : str or path
    replace : bool, default=True
        As for `atomic_path`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml._support.atomic import atomic_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.txt")
    ...     with atomic_texts(path) as [file]:
    ...         _ = file.write("one")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('one', 1)
    """
    places = [Path(path) for path in paths]
    with ExitStack() as renamed:  # the last one that is entered is the first to leave
        temporary = [
            renamed.enter_context(atomic_path(place, replace))
            for place in reversed(places)
        ]
        with ExitStack() as files:
            yield [
                files.enter_context(_synchronised(path, place.suffix))
                for path, place in zip(reversed(temporary), places, strict=True)
            ]


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


def sweep_unfinished(folder: Path, older_than: float = 0.0) -> None:
    """Remove what writes that were killed have left in a folder of the library's own.

    Parameters
    ----------
    folder : Path
        One that is missing, or may not be read, is left alone.
    older_than : float, default=0
        Seconds: younger ones may be another process's, which is still writing.
    """
    names = []
    with suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        if _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                age = time.time() - (folder / name).stat().st_mtime
                # No age counts for an owner: clocks may be set back.
                if older_than == 0 or age >= older_than:
                    (folder / name).unlink()

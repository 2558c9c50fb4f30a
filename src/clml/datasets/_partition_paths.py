"""Which files a path, a pattern, a folder or a list means, and their format."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._support.names import shown
from .files import PathLike

FORMATS = {
    ".parquet": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
}
# What the reader of svmlight unpacks.
_PACKED = (".xz", ".bz2", ".gz", ".zip")


def known_suffix(path: PathLike) -> str | None:
    """Return the suffix by which a file is read, None if it is not.

    Examples
    --------
    >>> from clml.datasets._partition_paths import known_suffix
    >>> known_suffix("day.1.parquet"), known_suffix("rows.SVM.xz"), known_suffix("a.md")
    ('.parquet', '.svm', None)
    """
    name = Path(path)
    packed = name.suffix.lower() in _PACKED
    suffix = (Path(name.stem) if packed else name).suffix.lower()
    found = FORMATS.get(suffix)
    return None if found is None or (packed and found != "svmlight") else suffix


def natural_order(path: str) -> tuple[list[str | int], str]:
    """Return a key that sorts 9 before 10.

    Examples
    --------
    >>> from clml.datasets._partition_paths import natural_order
    >>> sorted(["part-10.npz", "part-9.npz"], key=natural_order)
    ['part-9.npz', 'part-10.npz']
    """
    # Texts and numbers take turns, so that like is compared with like.
    words: list[str | int] = [*re.split("([0-9]+)", path)]
    words[1::2] = map(int, words[1::2])
    return words, path


def _files_of_folder(folder: str) -> list[str]:
    """Return the files of the one known suffix, without those that tools hide."""
    names = [name for name in os.listdir(folder) if not name.startswith((".", "_"))]
    found: dict[str, list[str]] = {}
    for name in names:
        suffix = known_suffix(name)
        if suffix is not None and os.path.isfile(os.path.join(folder, name)):
            found.setdefault(suffix, []).append(os.path.join(folder, name))
    if len(found) != 1:
        got = " and ".join(sorted(found)) or "none"
        raise ValueError(
            f"{folder}: expected files of one of the suffixes {', '.join(FORMATS)} in "
            f"the folder, got {got}. A pattern such as 'folder/*.npz' tells which."
        )
    (files,) = found.values()
    return files


def _files_of_name(path: str) -> list[str]:
    if os.path.isdir(path):
        files = _files_of_folder(path)
    elif os.path.exists(path) or not glob.has_magic(path):
        return [path]
    else:
        files = [
            name for name in glob.glob(path, recursive=True) if os.path.isfile(name)
        ]
    if not files:
        raise FileNotFoundError(f"No file has a name like {path}")
    return sorted(files, key=natural_order)


def find_files(paths: PathLike | Sequence[PathLike]) -> tuple[str, list[str]]:
    """Return the format of files and where they are, in the order of partitions.

    Parameters
    ----------
    paths : path, pattern, folder, or sequence of paths
        As :func:`~clml.datasets.read_partitions` takes them.
    """
    if isinstance(paths, (str, os.PathLike)):
        files = _files_of_name(os.fspath(paths))
    else:
        files = _files_of_sequence(paths)
    formats: dict[str, str] = {}
    for path in files:
        if not os.path.exists(path):
            raise FileNotFoundError(f"No such file: {path}")
        if not os.path.isfile(path):
            raise ValueError(f"{path} must be a regular file.")
        suffix = known_suffix(path)
        if suffix is None:
            raise ValueError(
                f"{path}: its suffix must be one of {', '.join(FORMATS)} (text may be "
                f"packed: {', '.join(_PACKED)})."
            )
        formats.setdefault(FORMATS[suffix], path)
    if len(formats) > 1:
        raise ValueError(
            f"paths must name files of one format, got {shown(list(formats.values()))}."
        )
    # Whoever reads them may work in another folder.
    return next(iter(formats)), [os.path.abspath(path) for path in files]


def _files_of_sequence(paths: Any) -> list[str]:
    try:
        files = [os.fspath(path) for path in paths]
    except TypeError:
        raise TypeError(
            f"paths must be a path or a sequence of paths, got {paths!r}."
        ) from None
    if not files:
        raise ValueError("paths must name at least one file, got none.")
    return files

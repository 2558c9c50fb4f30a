"""Where data files lie: the folders that are searched, and where downloads go."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .files import PathLike

SUFFIXES = ("", ".xz", ".bz2", ".gz")


def user_cache() -> Path:
    """Return the folder of this library among the user's caches.

    ``CLML_CACHE`` if it is set, else what the platform prescribes. The folder need
    not exist.
    """
    chosen = os.environ.get("CLML_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base or Path.home() / "AppData" / "Local") / "clml"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "clml"
    base = os.environ.get("XDG_CACHE_HOME")
    # The specification says that a relative path is to be ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "clml"
    return Path.home() / ".cache" / "clml"


def data_homes(data_home: PathLike | None = None) -> list[Path]:
    """Return the folders that are searched for data, in order.

    Parameters
    ----------
    data_home : str, path or None
        The only folder, if given. None: that of ``CLML_DATA`` if it is set, then
        ``datasets`` in the user's cache.
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    homes = [user_cache() / "datasets"]
    chosen = os.environ.get("CLML_DATA")
    if chosen:
        homes.insert(0, Path(chosen).expanduser())
    return homes


def file_name(name: str, kind: str) -> str:
    """Return what a dataset's file is called, without the suffix of a compression.

    Examples
    --------
    >>> from clml.datasets.data_dirs import file_name
    >>> [file_name("yeast", kind) for kind in ("all", "train", "labels")]
    ['yeast.arff', 'yeast-train.arff', 'yeast.xml']
    """
    if kind == "labels":
        return f"{name}.xml"
    return f"{name}.arff" if kind == "all" else f"{name}-{kind}.arff"


def find_file(homes: list[Path], name: str, kind: str) -> Path | None:
    """Return the first such file of a dataset, compressed or not, or None."""
    for home in homes:
        for suffix in SUFFIXES:
            path = home / name / (file_name(name, kind) + suffix)
            if path.is_file():
                return path
    return None

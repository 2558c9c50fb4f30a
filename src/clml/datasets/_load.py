"""Public datasets by name: found or downloaded, checked by their hash, and read."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from ._arff import read_checked_arff
from ._download import DownloadError, by_hand
from ._download import download as download_file
from .arff_header import meka_label_count, parse_header
from .bunch import make_bunch
from .data_dirs import data_homes, file_name, find_file, user_cache
from .files import PathLike, read_file
from .registry import SUBSETS, DatasetEntry, get_entry

_SPLITS = {
    "mulan": "the official division that came with the data",
    "boomer": "the division of the Boomer-Datasets collection",
}


def _is_writable(path: Path) -> bool:
    """Whether a file can be made there, its missing folders included."""
    existing = next(folder for folder in path.parents if folder.exists())
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


class _Files:
    """The files of one dataset: found or downloaded, and checked.

    Parameters
    ----------
    entry : DatasetEntry
    homes : list of Path
        Folders to search.
    download : bool
        Whether missing files may be downloaded.
    kinds : tuple of str
        All files that will be wanted.

    Attributes
    ----------
    notices : list of str
        What the user has to be told.
    """

    def __init__(
        self,
        entry: DatasetEntry,
        homes: list[Path],
        download: bool,
        kinds: tuple[str, ...],
    ) -> None:
        self.entry = entry
        self.homes = homes
        self.download = download
        self.kinds = kinds
        self.notices: list[str] = []

    def read(self, kind: str, **options: Any) -> Bunch:
        """Return the content of one ARFF file."""
        path = self._obtain(kind)
        accepted = False

        def check(found: str) -> None:
            nonlocal accepted
            self._check(kind, path, found)
            accepted = True

        try:
            labels = self._labels(path, check)
            return read_checked_arff(path, labels, check=check, **options)
        except ValueError as error:
            if accepted or "sha256" in str(error):
                raise
            # It could not even be decompressed.
            raise ValueError(
                f"{error} Delete the file to have it downloaded."
            ) from None

    def _labels(self, path: Path, check: Callable[[str], None]) -> Path | None:
        """Return the XML file; None where the ARFF file itself tells the labels."""
        xml = find_file(self.homes, self.entry.name, "labels")
        if xml is None:
            content = read_file(path)
            check(hashlib.sha256(content).hexdigest())
            told = meka_label_count(parse_header(path, content).relation) is not None
            if told or not self.entry.variants("labels"):
                return None
            xml = self._obtain("labels")
        content = read_file(xml, ".xml")
        self._check("labels", xml, hashlib.sha256(content).hexdigest())
        return xml

    def _targets(self, kind: str) -> list[Path]:
        name = file_name(self.entry.name, kind)
        return [home / self.entry.name / name for home in self.homes]

    def _by_hand(self, kind: str) -> str:
        """Say how to put this file in its place, and those that go with it."""
        absent = [
            other
            for other in (kind, *self.kinds)
            if find_file(self.homes, self.entry.name, other) is None
        ]
        lines = ["To do it by hand, save"]
        for other in dict.fromkeys(absent):
            targets = self._targets(other)
            target = next(filter(_is_writable, targets), targets[0])
            lines.append(by_hand(self.entry.variants(other), target))
        return "\n".join(line for line in lines if line)

    def _obtain(self, kind: str) -> Path:
        """Return where a file is, after downloading it if need be."""
        entry = self.entry
        path = find_file(self.homes, entry.name, kind)
        if path is not None:
            return path
        targets = self._targets(kind)
        missing = f"There is no {' or '.join(map(str, targets))}, and"
        variants = entry.variants(kind)
        if not variants:
            known = [s for s in SUBSETS if all(map(entry.variants, entry.parts(s)))]
            raise FileNotFoundError(
                f"{missing} no public copy with a verified hash is known to download. "
                f"Subsets of {entry.name!r} that can be downloaded: {known}. Put the "
                "file there by hand."
            )
        if entry.made_of:
            raise FileNotFoundError(
                f"{missing} no public copy is known to download: its rows are "
                f"{entry.made_of}. Put the file there by hand, with the sha256 "
                f"{' or '.join(variant.sha256 for variant in variants)}."
            )
        if not self.download:
            raise FileNotFoundError(f"{missing} download=False. {self._by_hand(kind)}")
        target = next(filter(_is_writable, targets), None)
        if target is None:
            raise PermissionError(
                f"{missing} none of these folders can be written. Set CLML_CACHE to "
                f"one that can. {self._by_hand(kind)}"
            )
        if target != targets[0]:
            self.notices.append(
                f"{self.homes[0]} cannot be written: {target.name} is stored as "
                f"{target}."
            )
        try:
            return download_file(variants, target)
        except DownloadError as error:
            raise OSError(f"{error} {self._by_hand(kind)}") from None

    def _check(self, kind: str, path: Path, found: str) -> None:
        """Refuse a file whose content is not one of those that are known."""
        expected = [variant.sha256 for variant in self.entry.variants(kind)]
        name = file_name(self.entry.name, kind)
        if not expected:
            self.notices.append(
                f"No verified hash of {name} is known: {path} was read without a check."
            )
        elif found not in expected:
            raise ValueError(
                f"{path} is not the known {name}: expected sha256 "
                f"{' or '.join(expected)} of the uncompressed content, got {found}. "
                "Delete it to have it downloaded, or read it with read_arff if it is "
                "another version of the data."
            )


def _join(first: Bunch, second: Bunch) -> Bunch:
    """Return the rows of two files of the same attributes, one below the other."""
    for names in ("feature_names", "label_names"):
        if first[names] != second[names]:
            raise ValueError(
                f"{first.source} and {second.source} must have the same {names}."
            )
    stack = sparse.vstack if sparse.issparse(first.X) else np.vstack
    weights = [
        np.ones(part.n_instances) if part.sample_weight is None else part.sample_weight
        for part in (first, second)
    ]
    weighted = any(part.sample_weight is not None for part in (first, second))
    return make_bunch(
        stack([first.X, second.X]),
        np.vstack([first.Y, second.Y]),
        feature_names=first.feature_names,
        label_names=first.label_names,
        categorical=first.categorical,
        n_features=first.n_features,
        source=f"{first.source} + {second.source}",
        notes=list(dict.fromkeys([*first.notes, *second.notes])),
        dropped={
            name: np.concatenate([first.dropped[name], second.dropped[name]])
            for name in first.dropped
        },
        label_parents=first.label_parents,
        sample_weight=np.concatenate(weights) if weighted else None,
        relation=first.relation,
        sha256=f"{first.sha256} + {second.sha256}",
    )


def _describe(entry: DatasetEntry, subset: str, data: Bunch) -> str:
    rows = "all rows" if subset == "all" else f"the {subset} rows"
    if subset != "all" and entry.split is not None:
        rows += f" of {_SPLITS[entry.split]}"
    lines = [
        f"{entry.name}: {entry.title} ({rows}).",
        f"{data.n_instances} rows, {data.n_features} features ({data.X.shape[1]} "
        f"columns of X), {data.n_labels} labels, {data.cardinality:.3f} labels a row.",
        *data.notes,
    ]
    if entry.citation:
        lines.append(f"Please cite: {entry.citation}")
    return "\n".join(lines)


def load_dataset(
    name: str,
    *,
    data_home: PathLike | None = None,
    subset: str = "all",
    download: bool = True,
    cache: bool = True,
    nominals: str = "onehot",
    drop_identifiers: bool = True,
    missing_labels: str = "error",
) -> Bunch:
    """Load a public multi-label dataset by name.

    Files that are present are used without any network; what is missing is
    downloaded from a public repository. Either way the content must have the sha256
    that is known of it.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, in upper or lower case.
    data_home : str, path or None, default=None
        Folder with the files ``<name>/<name>.arff``, perhaps compressed (``.xz``,
        ``.bz2``, ``.gz``), and ``<name>/<name>.xml``. None: the folder that the
        environment variable ``CLML_DATA`` names, then the user's cache
        (``CLML_CACHE``, else that of the platform), which also takes the downloads
        if the former cannot be written.
    subset : {"all", "train", "test"}, default="all"
        All rows, or those of a public division into two, where there is one:
        ``<name>/<name>-train.arff`` and ``-test.arff``. DESCR says whose it is.
    download : bool, default=True
        Whether missing files may be downloaded.
    cache : bool, default=True
        Keep a parsed copy in the user's cache, which makes the next loading faster.
        The file itself is read and hashed all the same. A copy that is not of this
        content, or does not have the checksum that it was written with, is made anew.
    nominals, drop_identifiers, missing_labels
        As in :func:`read_arff`.

    Returns
    -------
    Bunch
        As from :func:`read_arff`, with ``name``, ``subset``, ``citation``, ``DESCR``
        and, as ``source``, the path of the file.

    Raises
    ------
    ValueError
        For an unknown name, or a file whose content is not the known one.
    FileNotFoundError
        If a file is missing and cannot, or must not, be downloaded.
    OSError
        If a download fails; the message tells how to do it by hand.

    Warns
    -----
    UserWarning
        If no hash is known to check a file by, or if a download is stored elsewhere
        because the first folder cannot be written.

    Examples
    --------
    >>> from clml.datasets import load_dataset
    >>> data = load_dataset("yeast")                              # doctest: +SKIP
    >>> data.X.shape, data.Y.shape, data.label_names[:2]          # doctest: +SKIP
    ((2417, 103), (2417, 14), ['Class1', 'Class2'])
    """
    entry = get_entry(name)
    if subset not in SUBSETS:
        raise ValueError(f"subset must be one of {list(SUBSETS)}, got {subset!r}.")
    for argument, value in (("download", download), ("cache", cache)):
        if not isinstance(value, bool):
            raise TypeError(f"{argument} must be a bool, got {value!r}.")
    options: dict[str, Any] = {
        "nominals": nominals,
        "drop_identifiers": drop_identifiers,
        "missing_labels": missing_labels,
        "cache": user_cache() / "parsed" if cache else None,
    }
    kinds = entry.parts(subset)
    files = _Files(entry, data_homes(data_home), download, (*kinds, "labels"))
    parts = [files.read(kind, **options) for kind in kinds]
    for notice in dict.fromkeys(files.notices):
        warnings.warn(notice, UserWarning, stacklevel=2)
    data = parts[0] if len(parts) == 1 else _join(*parts)
    data.update(name=entry.name, subset=subset, citation=entry.citation)
    data.DESCR = _describe(entry, subset, data)
    return data

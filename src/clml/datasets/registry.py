"""What is known of public multi-label datasets: files, hashes, figures, citations."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

PAPER_DATASETS = (
    "flags",
    "cal500",
    "emotions",
    "genbase",
    "enron",
    "yeast",
    "tmc2007-500",
    "mediamill",
    "imdb-f",
)
SUBSETS = ("all", "train", "test")


@dataclass(frozen=True)
class Variant:
    """One content that a file may have.

    Attributes
    ----------
    sha256 : str
        Of the content, uncompressed.
    n_bytes : int
        Its size, uncompressed.
    urls : tuple of str
        Where it can be had, perhaps compressed; best first.
    """

    sha256: str
    n_bytes: int
    urls: tuple[str, ...]


@dataclass(frozen=True)
class DatasetEntry:
    """What is known of one dataset.

    Attributes
    ----------
    name, title, citation : str
        The citation is empty where none is known.
    n_instances, n_features, n_labels : int or None
    cardinality : float or None
        Mean number of labels of a row.
    figures_from : {"file", "publication"} or None
        Whether the figures were counted in the file or taken from a publication.
    files : mapping of str to tuple of Variant
        Of "all", "train", "test" (ARFF) and "labels" (XML): the contents that are
        accepted, the first preferred. What is absent has no known content.
    split : str or None
        Who divided the rows into train and test: "mulan" for the official division
        that came with the data, "boomer" for that of the Boomer-Datasets collection.
    joined : bool
        Whether "all" is the train file followed by the test file.
    made_of : str
        What the files were made of, if nobody serves them as they are.
    """

    name: str
    title: str
    citation: str
    n_instances: int | None
    n_features: int | None
    n_labels: int | None
    cardinality: float | None
    figures_from: str | None
    files: Mapping[str, tuple[Variant, ...]]
    split: str | None = None
    joined: bool = False
    made_of: str = ""

    def variants(self, kind: str) -> tuple[Variant, ...]:
        """Return the accepted contents of a file, none where no hash is known."""
        return self.files.get(kind, ())

    def parts(self, subset: str) -> tuple[str, ...]:
        """Return the files whose rows make up a subset, in order."""
        return ("train", "test") if subset == "all" and self.joined else (subset,)

    @property
    def verified(self) -> bool:
        """Whether the whole dataset can be checked by its hash."""
        return all(self.variants(part) for part in self.parts("all"))


def _variant(bases: Mapping[str, str], record: Mapping[str, Any]) -> Variant:
    urls = []
    for source in record["sources"]:
        base, _, path = source.partition(":")
        urls.append(bases[base] + path)
    return Variant(record["sha256"], record["bytes"], tuple(urls))


@cache
def registry() -> dict[str, DatasetEntry]:
    """Return the entries by name, in alphabetical order."""
    text = files(__package__).joinpath("registry.json").read_text(encoding="utf-8")
    content = json.loads(text)
    bases = content["repositories"]
    entries = {}
    for name, record in content["datasets"].items():
        variants = {
            kind: tuple(_variant(bases, one) for one in found)
            for kind, found in record.pop("files").items()
        }
        entries[name] = DatasetEntry(name=name, files=variants, **record)
    return entries


def list_datasets() -> list[str]:
    """Names of the datasets that :func:`load_dataset` knows, sorted.

    The command ``clml datasets`` prints them with their figures, and where they are.

    Examples
    --------
    >>> from clml.datasets import list_datasets
    >>> list_datasets()[:4]
    ['20ng', 'bibtex', 'birds', 'bookmarks']
    """
    return sorted(registry())


def get_entry(name: Any) -> DatasetEntry:
    """Return what is known of a dataset; upper and lower case are the same.

    Examples
    --------
    >>> from clml.datasets.registry import get_entry
    >>> get_entry("CAL500").n_labels
    174
    """
    if not isinstance(name, str):
        raise TypeError(
            f"name must be the name of a dataset, a str; got {name!r} of type "
            f"{type(name).__name__}."
        )
    entry = registry().get(name.strip().lower())
    if entry is None:
        close = difflib.get_close_matches(name.strip().lower(), registry(), n=3)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            f"name must be one of list_datasets(); got {name!r}.{hint} Other files "
            "are read by read_arff."
        )
    return entry

import csv
import os
import re
from pathlib import Path

import pytest

from clml.datasets import registry as _registry
from clml.datasets._limits import LABEL_BYTES, check_size
from clml.datasets.registry import (
    PAPER_DATASETS,
    SUBSETS,
    get_entry,
    list_datasets,
    registry,
)

ENTRIES = sorted(registry())
VARIANTS = [
    (name, kind, variant)
    for name in ENTRIES
    for kind, variants in registry()[name].files.items()
    for variant in variants
]


def test_worked_example():
    entry = get_entry("flags")
    assert (entry.n_instances, entry.n_features, entry.n_labels) == (194, 19, 7)
    (variant,) = entry.variants("all")
    assert variant.n_bytes == 11281
    assert variant.sha256.startswith("d3ed8b56")
    assert variant.urls[0].endswith("/data/multi-label/flags/flags.arff")
    assert variant.urls[0].startswith("https://raw.githubusercontent.com/tsoumakas/")
    # The copy in Git LFS is served from another host.
    assert variant.urls[1].startswith("https://media.githubusercontent.com/media/")
    assert entry.verified
    assert entry.split == "mulan"


def test_names_are_listed_sorted_and_the_paper_s_are_among_them():
    names = list_datasets()
    assert names == sorted(set(names))
    assert set(PAPER_DATASETS) | {"mediamill-reduced"} <= set(names)
    assert len(PAPER_DATASETS) == 9
    assert all(get_entry(name).verified for name in PAPER_DATASETS)


def test_list_is_the_caller_s_own():
    list_datasets().clear()
    assert list_datasets()


@pytest.mark.parametrize("name", ["yeast", "YEAST", " Yeast "])
def test_case_does_not_matter(name):
    assert get_entry(name).name == "yeast"


@pytest.mark.parametrize(
    "name, exception, message",
    [
        ("yaest", ValueError, r"got 'yaest'\. Did you mean 'yeast'\?"),
        ("imdb", ValueError, r"got 'imdb'\. Did you mean 'imdb-f'"),
        ("tmc2007_500", ValueError, "Did you mean 'tmc2007-500'"),
        ("qqqqqqqq", ValueError, r"got 'qqqqqqqq'\. Other files are read by read_arff"),
        (3, TypeError, "name must be the name of a dataset, a str; got 3 of type int"),
        (None, TypeError, "got None of type NoneType"),
    ],
)
def test_bad_names(name, exception, message):
    with pytest.raises(exception, match=message):
        get_entry(name)


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_is_sound(name):
    entry = registry()[name]
    assert name == name.lower() == entry.name
    assert entry.title
    assert set(entry.files) <= {*SUBSETS, "labels"}
    assert all(entry.files.values())
    for figure in (entry.n_instances, entry.n_features, entry.n_labels):
        assert figure is None or (isinstance(figure, int) and figure > 0)
    if entry.cardinality is not None:
        assert 0 < entry.cardinality < entry.n_labels
    assert entry.figures_from in ("file", "publication", None)
    # A division is one only if both of its parts are known.
    assert (entry.split is not None) == (
        {"train", "test"} <= set(entry.files) and not entry.joined
    )


@pytest.mark.parametrize(
    "name, kind, variant",
    VARIANTS,
    ids=[f"{name}-{kind}" for name, kind, _ in VARIANTS],
)
def test_variant_is_sound(name, kind, variant):
    assert re.fullmatch("[0-9a-f]{64}", variant.sha256)
    assert variant.n_bytes > 0
    assert bool(variant.urls) != bool(registry()[name].made_of)
    for url in variant.urls:
        # A commit, not a branch: the content cannot change.
        assert re.match(
            r"https://(raw|media)\.githubusercontent\.com/.+/[0-9a-f]{40}/", url
        )
        assert re.search(r"\.(xml|arff|arff\.bz2)$", url)
        assert url.endswith(".xml") == (kind == "labels")


def test_no_content_stands_for_two_files():
    hashes = [variant.sha256 for _, kind, variant in VARIANTS if kind != "labels"]
    assert len(set(hashes)) == len(hashes)


def test_sets_without_a_hash_are_listed():
    for name in ("corel16k001", "rcv1subset5"):
        assert not get_entry(name).verified
    assert get_entry("corel16k001").variants("test")
    assert get_entry("corel16k001").variants("train") == ()


def test_joined_set():
    entry = get_entry("mediamill-reduced")
    assert entry.parts("all") == ("train", "test")
    assert entry.parts("test") == ("test",)
    assert entry.verified
    assert get_entry("yeast").parts("all") == ("all",)


def test_registry_is_read_once():
    assert _registry.registry() is _registry.registry()


SOURCES = Path(os.environ.get("CLML_DATA", "/nonexistent")) / "sources.csv"


@pytest.mark.skipif(not SOURCES.is_file(), reason="CLML_DATA has no sources.csv")
def test_hashes_are_those_that_were_verified():
    with SOURCES.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    verified = {row["sha256"]: int(row["bytes"]) for row in rows}
    # Not served as such: the content of a compressed file, and the reduced set.
    own = {get_entry("imdb-f").variants("all")[0].sha256}
    # Nor are sets that were made of others.
    for entry in registry().values():
        if entry.made_of or entry.name == "mediamill-reduced":
            for variants in entry.files.values():
                own |= {variant.sha256 for variant in variants}
    for _, _, variant in VARIANTS:
        if variant.sha256 not in own:
            assert verified[variant.sha256] == variant.n_bytes


def test_the_indicators_of_all_known_sets_fit_into_memory_by_the_rule():
    for name in list_datasets():
        entry = get_entry(name)
        for kind in ("all", "train"):
            if None in (entry.n_instances, entry.n_labels) or not entry.variants(kind):
                continue
            needed = LABEL_BYTES * entry.n_instances * entry.n_labels
            n_bytes = min(variant.n_bytes for variant in entry.variants(kind))
            check_size(name, n_bytes, needed, "The indicator", "")

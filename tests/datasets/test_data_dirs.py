import sys
from pathlib import Path

import pytest

from clml.datasets.data_dirs import data_homes, find_file, user_cache


@pytest.fixture(autouse=True)
def no_variables(monkeypatch, tmp_path):
    for name in ("CLML_DATA", "CLML_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)


@pytest.mark.parametrize(
    "platform, variables, expected",
    [
        ("linux", {}, ".cache/clml"),
        ("linux", {"XDG_CACHE_HOME": "{home}/xdg"}, "xdg/clml"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/clml"),
        ("darwin", {}, "Library/Caches/clml"),
        ("win32", {}, "AppData/Local/clml"),
        ("win32", {"LOCALAPPDATA": "{home}/local"}, "local/clml"),
        ("darwin", {"CLML_CACHE": "{home}/own"}, "own"),
    ],
)
def test_user_cache(monkeypatch, tmp_path, platform, variables, expected):
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    assert user_cache() == tmp_path / expected


def test_order_of_the_folders(monkeypatch, tmp_path):
    cache = tmp_path / ".cache" / "clml" / "datasets"
    assert data_homes() == [cache]
    monkeypatch.setenv("CLML_DATA", str(tmp_path / "data"))
    assert data_homes() == [tmp_path / "data", cache]
    # An argument stands alone: nothing is taken from elsewhere unasked.
    assert data_homes(tmp_path / "mine") == [tmp_path / "mine"]
    monkeypatch.setenv("CLML_DATA", "")
    assert data_homes() == [cache]


def test_files_are_found_by_folder_then_by_suffix(tmp_path):
    homes = [tmp_path / "a", tmp_path / "b"]
    assert find_file(homes, "toy", "all") is None
    for path in ("b/toy/toy.arff", "b/toy/toy.arff.gz", "b/toy/toy-test.arff.bz2"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert find_file(homes, "toy", "all") == tmp_path / "b/toy/toy.arff"
    assert find_file(homes, "toy", "test") == tmp_path / "b/toy/toy-test.arff.bz2"
    assert find_file(homes, "toy", "train") is None
    assert find_file(homes, "toy", "labels") is None
    (tmp_path / "a/toy").mkdir(parents=True)
    (tmp_path / "a/toy/toy.arff.xz").touch()
    assert find_file(homes, "toy", "all") == tmp_path / "a/toy/toy.arff.xz"

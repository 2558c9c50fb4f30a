"""The packages that are installed with the library: named, licensed, bounded."""

import ast
import importlib.util
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import clml

ROOT = Path(__file__).parents[2]
SOURCE = Path(clml.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
# Packages whose import has another name.
IMPORTED_AS = {"scikit-learn": "sklearn", "mlflow-skinny": "mlflow"}
# Imported without being named: each comes with a package that is, or is done without.
COMES_WITH = {"llvmlite": "numba", "triton": "torch"}


def load_script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script():
    return load_script(ROOT / ".ci" / "oldest.py")


def direct_dependencies():
    """Return the packages for users, each with its extra; None is the library."""
    named = dict.fromkeys(PROJECT["dependencies"])
    for extra, requirements in PROJECT["optional-dependencies"].items():
        if extra not in ("all", "dev"):
            named |= dict.fromkeys(requirements, extra)
    return {re.match(r"[\w-]+", r)[0]: extra for r, extra in named.items()}


def test_every_package_that_is_imported_is_named():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    found -= {*sys.stdlib_module_names, "clml"}
    named = {IMPORTED_AS.get(name, name) for name in direct_dependencies()}
    assert {"numpy", "sklearn", "torch"} < found  # the search found something
    assert found - named == set(COMES_WITH)
    needed = {re.match(r"[\w-]+", r)[0] for r in metadata.requires("numba")}
    assert "llvmlite" in needed


# The oldest releases.


def test_oldest_of_a_project(script):
    project = {
        "dependencies": ["numpy>=2.0,<3", "Click >= 8.1"],
        "optional-dependencies": {
            "torch": ["torch>=2.4"],
            "dask": ["dask[array]>=2024.8; python_version > '3'"],
            "all": ["clml[torch]"],
            "dev": ["torch==2.13.0", "pandas>=2.2", "ruff>=0.9"],
        },
    }
    expected = ["click==8.1", "dask==2024.8", "numpy==2.0", "pandas==2.2"]
    assert script.constraints(project) == sorted([*expected, *script.OF_THEIR_TIME])


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy==2.0", ">=2"])
def test_a_package_without_a_lower_bound_is_refused(script, requirement):
    with pytest.raises(ValueError, match="must"):
        script.oldest(requirement)


def test_every_direct_dependency_has_an_oldest_release(script):
    lines = sorted(set(script.constraints(PROJECT)) - set(script.OF_THEIR_TIME))
    names = {line.partition("==")[0] for line in lines}
    expected = {*direct_dependencies(), *script.OF_TESTS} - {*script.LEFT_OUT}
    assert names == expected
    assert len(names) == len(lines)  # an extra may not have another bound


def test_integration_tests_the_oldest_first_and_stops_where_it_fails():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert "set -euo pipefail" in lines
    assert lines[-2:] == ["make test-oldest", "make test"]


# Licences.


def listed_licences():
    """Return package, what it is for and licence of each row of the page."""
    text = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {name: (use, licence) for name, use, licence in rows if name != "package"}


def test_the_page_lists_the_direct_dependencies():
    expected = {
        name: "the library" if extra is None else f"`{extra}`"
        for name, extra in direct_dependencies().items()
    }
    assert {name: use for name, (use, _) in listed_licences().items()} == expected


# What metadata say for a licence, by a word of it.
WORDS = {
    "Apache-2.0": "Apache",
    "BSD-2-Clause": "BSD",
    "BSD-3-Clause": "BSD",
    "LGPL-2.1-or-later": "LGPL",
    "MIT": "MIT",
    "PSF-2.0": "Python Software Foundation",
}


def stated_licence(name):
    """Return what a package says of its licence; its files where it says nothing."""
    about = metadata.metadata(name)
    fields = ("License-Expression", "License", "Classifier", "License-File")
    stated = [text for field in fields for text in about.get_all(field, [])]
    texts = [
        path.read_text(encoding="utf-8")
        for path in metadata.files(name) or ()
        if path.name.upper().startswith("LICENSE")
    ]
    return "\n".join(stated + texts)


@pytest.mark.parametrize("name", listed_licences())
def test_the_page_says_what_the_package_says(name):
    try:
        stated = stated_licence(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert WORDS[listed_licences()[name][1]] in stated


def test_the_license_of_the_library():
    assert PROJECT["license"] == "BSD-3-Clause"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Redistribution and use in source and binary forms" in text

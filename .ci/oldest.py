"""The oldest releases that pyproject.toml allows, as constraints for pip.

Run by ``make test-oldest``: every lower bound of the library and of its extras becomes
the one version allowed. There is no second list, so the two cannot drift apart.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Extras that hold others, or tools.
NOT_OF_USERS = ("all", "dev")
# Of the tests: frames come from users too, and the checks that scikit-learn brings
# need a pytest of their time.
OF_TESTS = ("pandas", "pytest")
# Newer ones warn of how the oldest matplotlib calls them, and warnings are errors.
OF_THEIR_TIME = ("pyparsing<3.3",)
# Its old releases bring gigabytes for GPUs with them: the pin of the tests stays.
LEFT_OUT = ("torch",)
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)")


def parts_of(requirement: str) -> tuple[str, str]:
    """Return the name and the versions of a requirement.

    Examples
    --------
    >>> parts_of("dask[array]>=2024.8; python_version > '3'")
    ('dask', '>=2024.8')
    """
    match = _REQUIREMENT.match(requirement)
    if match is None:
        raise ValueError(f"A requirement must begin with a name, got {requirement!r}.")
    return match[1].lower().replace("_", "-"), match[2].strip()


def oldest(requirement: str) -> str:
    """Return the one version that a requirement's lower bound names.

    Examples
    --------
    >>> oldest("numpy>=2.0,<3")
    'numpy==2.0'
    """
    name, versions = parts_of(requirement)
    bounds = [v.strip()[2:] for v in versions.split(",") if v.strip()[:2] == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{name} must have one lower bound, got {requirement!r}.")
    return f"{name}=={bounds[0].strip()}"


def constraints(project: Mapping[str, Any]) -> list[str]:
    """Return a line for every direct dependency, of the library and of its extras."""
    extras = project["optional-dependencies"]
    named = list(project["dependencies"])
    for extra, requirements in extras.items():
        if extra not in NOT_OF_USERS:
            named += requirements
    named += [r for r in extras["dev"] if parts_of(r)[0] in OF_TESTS]
    pinned = {oldest(r) for r in named if parts_of(r)[0] not in LEFT_OUT}
    return sorted({*pinned, *OF_THEIR_TIME})


if __name__ == "__main__":
    with PYPROJECT.open("rb") as file:
        print(*constraints(tomllib.load(file)["project"]), sep="\n")

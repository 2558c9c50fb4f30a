"""Methods that are finished, and whose packages have gone since."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..datasets.npz import arrays_digest
from ._cell_data import data_arrays
from ._methods import check_packages
from ._schedule import cells_of
from ._store import PLAN, RECORDS, read_lines
from .plan import Plan
from .results import _read_plan


def kept_methods(
    plan: Plan, folder: Path, retry_failed: bool, download: bool
) -> dict[str, dict[str, Any]]:
    """Return how finished methods were described when their packages were here.

    The key of a job has the versions of the packages. Of one that is absent only the
    plan in the folder knows the version. Nothing is written to the folder.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Of the results; need not exist.
    retry_failed : bool
        Whether what has failed counts as not finished.
    download : bool
        Whether the files of datasets that are missing may be downloaded.

    Returns
    -------
    dict
        Entries of a resolved plan by the names of the methods, of those alone that
        lack a package.

    Raises
    ------
    ImportError
        If such a method has a job to run still.
    """
    lacking = {method.name: method.lacking() for method in plan.methods}
    if not any(lacking.values()):
        return {}
    resolved = plan.as_dict()
    before = _methods_before(folder / PLAN)
    kept = {}
    for entry in resolved["methods"]:
        name = entry["name"]
        old = before.get(name)
        if lacking[name] and old is not None:
            if _text(old, lacking[name]) == _text(entry, lacking[name]):
                own = {key: entry[key] for key in ("datasets", "group")}
                kept[name] = {**old, **own}
    check_packages(m for m in plan.methods if lacking[m.name] and m.name not in kept)
    resolved["methods"] = list(kept.values())
    resolved["datasets"] = [
        {
            "name": spec.name,
            "data_hash": arrays_digest(data_arrays(spec.load(download))),
        }
        for spec in plan.datasets
        if any(
            m["datasets"] is None or spec.name in m["datasets"] for m in kept.values()
        )
    ]
    records, _ = read_lines(folder / RECORDS)
    status = {record["key"]: record["status"] for record in records}
    finished = ("done",) if retry_failed else ("done", "failed")
    left = {c.method for c in cells_of(resolved) if status.get(c.key) not in finished}
    check_packages(m for m in plan.methods if m.name in left)
    return kept


def _methods_before(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the methods of the plan in a folder; none if it cannot be read."""
    try:
        entries = _read_plan(path).get("methods") or ()
    except (OSError, ValueError):
        return {}
    return {entry["name"]: entry for entry in entries if isinstance(entry, Mapping)}


def _text(entry: Mapping[str, Any], packages: Collection[str]) -> str:
    """Return what decides the results of a method, whether packages are here or not.

    A class that cannot be found is told under ``code``, see `MethodSpec.description`.
    """
    told = {k: v for k, v in entry.items() if k not in ("datasets", "group")}
    for part in ("code", "packages"):
        value = told.pop(part, None) or {}
        if isinstance(value, Mapping):
            value = {
                name: v
                for name, v in value.items()
                if re.split("[.:]", name)[0] not in packages
            }
        told[part] = value
    return json.dumps(told, sort_keys=True)

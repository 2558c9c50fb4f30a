"""What is checked of a results folder: it may come from anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._support.paths import fail
from ._schedule import _cell

_MOST_JOBS = 10**6


def no_constant(name: str) -> Any:
    """Refuse what Python's reader takes for a number of JSON."""
    raise ValueError(f"{name} is no number of JSON")


def check_plan(path: Path, plan: Mapping[str, Any]) -> None:
    """Refuse a plan whose entries are not what the tables take them for."""
    n_jobs = 1
    for key in ("datasets", "methods"):
        names = [_name_of(path, key, entry) for entry in _listed(path, plan, key)]
        if len(set(names)) < len(names):
            raise fail(path, f"the names of {key} must be distinct, got {names}")
        n_jobs *= max(len(names), 1)
    for key, kind in (("losses", str), ("seeds", int), ("notes", str)):
        for value in _listed(path, plan, key):
            if not isinstance(value, kind) or isinstance(value, bool):
                raise fail(path, f"{key} must hold {kind.__name__}, got {value!r}")
    splits = plan.get("splits", 1)
    if isinstance(splits, bool) or not isinstance(splits, int) or splits < 1:
        raise fail(path, f"splits must be an integer of at least 1, got {splits!r}")
    n_jobs *= splits * max(len(plan.get("seeds") or ()), 1)
    if n_jobs > _MOST_JOBS:
        raise fail(path, f"a plan has at most {_MOST_JOBS:,} jobs, got {n_jobs:,}")
    _check_ablation(path, plan.get("ablation"))


def _listed(path: Path, entries: Mapping[str, Any], key: str) -> list[Any]:
    found = entries.get(key)
    if found is not None and not isinstance(found, list):
        raise fail(path, f"{key} must be a list, got {found!r}")
    return found or []


def _name_of(path: Path, key: str, entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else entry
    if not isinstance(name, str):
        raise fail(path, f"{key} must hold names or tables with a name, got {entry!r}")
    if isinstance(entry, Mapping):
        _listed(path, entry, "datasets")
    return name


def _check_ablation(path: Path, ablation: Any) -> None:
    if ablation is None:
        return
    if not isinstance(ablation, Mapping):
        raise fail(path, f"ablation must be a table, got {ablation!r}")
    names = _listed(path, ablation, "names")
    if len(names) != len(_listed(path, ablation, "values")):
        raise fail(path, "ablation must have as many names as values")
    for name in (*names, *_listed(path, ablation, "datasets")):
        if not isinstance(name, str):
            raise fail(path, f"ablation must hold names, got {name!r}")


def planned(
    plan: Mapping[str, Any], records: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the records of jobs that a plan has; all if it does not tell them.

    Keys are made for the records that there are, not for all jobs of the plan.
    """
    records = list(records)
    try:
        datasets = {entry["name"]: entry for entry in plan["datasets"]}
        methods = {entry["name"]: entry for entry in plan["methods"]}
        seeds, splits = set(plan["seeds"]), range(plan["splits"])
        kept = []
        for record in records:
            dataset = datasets.get(record["dataset"])
            method = methods.get(record["method"])
            if dataset is None or method is None:
                continue
            chosen = method["datasets"]
            if chosen is not None and dataset["name"] not in chosen:
                continue
            if record["split"] in splits and record["seed"] in seeds:
                place = (record["split"], record["seed"])
                if _cell(plan, dataset, method, *place).key == record["key"]:
                    kept.append(record)
    except (KeyError, TypeError):
        return records
    return kept


def check_record(path: Path, record: Mapping[str, Any]) -> None:
    """Refuse a record whose numbers are none, or whose versions are no text."""
    where = f"the record {str(record['key'])[:64]!r}"
    versions = record.get("versions")
    if versions is not None and not (
        isinstance(versions, Mapping)
        and all(isinstance(version, str | None) for version in versions.values())
    ):
        raise fail(path, f"versions of {where} must be a table, got {versions!r}")
    losses = record.get("losses")
    if losses is not None and not isinstance(losses, Mapping):
        raise fail(path, f"losses of {where} must be a table, got {losses!r}")
    groups = {f"losses.{part}": values for part, values in (losses or {}).items()}
    groups["seconds"] = record.get("seconds")
    groups["memory"] = {"peak_memory_mb": record.get("peak_memory_mb")}
    for name, values in groups.items():
        if values is None:
            continue
        if not isinstance(values, Mapping):
            raise fail(path, f"{name} of {where} must be a table, got {values!r}")
        for key, value in values.items():
            if value is not None and not _is_number(value):
                raise fail(
                    path, f"{name}.{key} of {where} must be a number, got {value!r}"
                )


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False

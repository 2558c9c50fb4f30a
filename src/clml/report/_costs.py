"""What an experiment took, where it failed, and how it was made."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ._sections import group, matrix_table, table, text_cell

_LONGEST_REASON = 300
# Costs of a cell: id, title and digits of their table.
_COSTS = (
    ("fit", "Training, seconds", 2),
    ("predict", "Prediction, seconds", 3),
    ("memory", "Largest memory, MB", 0),
)


def _cost(record: dict[str, Any], name: str) -> float | None:
    if not is_done(record):
        return None
    if name == "memory":
        return record.get("peak_memory_mb")
    return (record.get("seconds") or {}).get(name)


def costs_group(results: Any) -> dict[str, Any] | None:
    """Return the section of times and memory; None if no record has any."""
    from ..experiments.measures import collect, mean_and_spread

    tables = []
    for name, title, digits in _COSTS:
        cells = collect(results, partial(_cost, name=name))
        mean, spread = mean_and_spread(results, cells)
        if not np.isnan(mean).all():
            tables.append(
                matrix_table(
                    f"cost-{name}",
                    title,
                    results.datasets,
                    results.methods,
                    mean,
                    spread,
                    digits=digits,
                    mark=False,
                )
            )
    if not tables:
        return None
    text = ["Mean and standard deviation over splits and seeds."]
    return group("costs", "Time and memory", text=text, tables=tables, late=True)


def is_done(record: dict[str, Any]) -> bool:
    """Tell whether a record has losses."""
    return bool(record["status"] == "done")


def failures_group(results: Any) -> dict[str, Any]:
    """Return the section of cells that failed, with their reasons."""
    rows = [
        [
            text_cell(record["dataset"]),
            text_cell(record["method"]),
            text_cell(record["split"]),
            text_cell(record["seed"]),
            text_cell(str(record.get("reason") or "no reason given")[:_LONGEST_REASON]),
        ]
        for record in results.failed
    ]
    if not rows:
        return group("failures", "Failures", text=["No cell failed."], late=True)
    columns = ["dataset", "method", "split", "seed", "reason"]
    failed = table("failed", "Cells that failed", columns, rows, words=len(columns))
    return group("failures", "Failures", tables=[failed], late=True)


def origin_group(results: Any, done: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the section of the protocol and of versions."""
    plan = results.plan
    facts = {
        "splits": plan.get("splits"),
        "seeds": ", ".join(str(seed) for seed in listed(plan.get("seeds"))),
        "last cell finished": max(
            (str(r.get("finished") or "") for r in done), default=""
        ),
    }
    versions = {
        f"{name} {version}"
        for record in done
        for name, version in (record.get("versions") or {}).items()
    }
    facts["versions"] = ", ".join(sorted(versions))
    facts["plan"] = ", ".join(
        sorted({str(r.get("plan_hash") or "")[:12] for r in done})
    )
    known = {name: str(value) for name, value in facts.items() if value}
    return group("origin", "How it was made", facts=known, late=True)


def listed(value: Any) -> Iterable[Any]:
    """Return the values of a plan's entry: none, one, or a list of them."""
    if value is None:
        return []
    return value if isinstance(value, list | tuple) else [value]

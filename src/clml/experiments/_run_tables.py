"""What the run itself was like: its costs and its failures."""

from __future__ import annotations

from typing import Any

from ._table import SPREAD_NOTE, Cell, Table, marked_best, text_cells
from .measures import ResultsLike, collect, mean_and_spread


def cost_table(results: ResultsLike, what: str) -> Table:
    """Return what the methods cost: "fit" or "predict" seconds, or "memory" in MB."""
    titles = {
        "fit": "Seconds of fitting",
        "predict": "Seconds of predicting the test rows",
        "memory": "Peak memory of the process in MB",
    }
    if what not in titles:
        raise ValueError(f"what must be one of {list(titles)}, got {what!r}.")

    def number_of(record: Any) -> float | None:
        if record.get("status") != "done":
            return None
        if what == "memory":
            return record.get("peak_memory_mb")
        return (record.get("seconds") or {}).get(what)

    mean, spread = mean_and_spread(results, collect(results, number_of))
    names = list(results.methods)
    spec = ".0f" if what == "memory" else ".2f"
    rows = []
    for i, dataset in enumerate(results.datasets):
        cells = [
            Cell(float(mean[i, j]), spread=float(spread[i, j]), spec=spec)
            for j in (list(results.methods).index(name) for name in names)
        ]
        rows.append((Cell(dataset), *marked_best(cells)))
    name = "peak_memory" if what == "memory" else f"seconds_{what}"
    return Table(name, titles[what], ("dataset", *names), tuple(rows), (SPREAD_NOTE,))


def failed_table(results: ResultsLike) -> Table:
    """Return the cells that did not finish, each with its reason."""
    rows = [
        text_cells(
            (
                record["dataset"],
                record["method"],
                record["split"],
                record["seed"],
                record.get("reason") or "no reason given",
            )
        )
        for record in results.failed
    ]
    return Table(
        "failed",
        "Failed cells",
        ("dataset", "method", "split", "seed", "reason"),
        tuple(rows),
        () if rows else ("None failed.",),
    )

"""How the losses change with one setting, beside the paper's ablation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._support.fingerprint import canonical
from ._paper import PAPER_RESULTS, AblationRow, PaperResults
from ._paper_comparison import plan_notes
from ._table import PRINTED_NOTE, SPREAD_NOTE, Cell, Table
from .measures import AnyResults, ResultsLike, collect, part_losses


def ablation_table(results: AnyResults) -> Table:
    """Return the losses for each embedding dimension, beside the paper's.

    As in the paper, losses on the validation rows where the records have them, on
    the test rows otherwise; the notes say which. An ablation of another setting has
    no numbers of the paper beside it.
    """
    losses = ("hamming", "micro_f1", "lrap", "row_log_loss")
    title = "Losses by embedding dimension"
    if isinstance(results, PaperResults):
        rows = tuple(
            (
                Cell(row.dataset),
                Cell(row.embedding_dim, spec="d"),
                *(Cell(float(getattr(row, loss))) for loss in losses),
            )
            for row in results.ablation
        )
        return Table("ablation", title, ("dataset", "embedding_dim", *losses), rows)
    plan = (results.plan or {}).get("ablation") or {}
    setting = str(plan.get("setting", "embedding_dim")).rpartition("__")[2]
    names, values = (plan.get(key) or [] for key in ("names", "values"))
    variants = list(zip(names, map(_shown, values), strict=False))
    part = _ablation_part(results, [name for name, _ in variants])
    printed = {
        (row.dataset.lower(), row.embedding_dim): row
        for row in PAPER_RESULTS.ablation
        if setting == "embedding_dim"
    }
    body = []
    for dataset in plan.get("datasets") or []:
        for name, value in variants:
            row = printed.get((dataset.lower(), value))
            cells = [
                _ablation_cell(results, (dataset, name), loss, part, row)
                for loss in losses
            ]
            spec = "d" if isinstance(value, int) else "g"
            body.append((Cell(dataset), Cell(value, spec=spec), *cells))
    notes = [f"Losses on the {part} rows. {SPREAD_NOTE}"]
    if setting == "embedding_dim":
        notes.append(f"{PRINTED_NOTE} Its numbers are on validation rows.")
    return Table(
        "ablation",
        title if setting == "embedding_dim" else f"Losses by {setting}",
        ("dataset", setting, *losses),
        tuple(body),
        (*notes, *plan_notes(results)),
    )


def _shown(value: Any) -> Any:
    """Return a value such that a cell can hold it: lists and tables as text."""
    return canonical(value) if isinstance(value, list | Mapping) else value


def _ablation_part(results: ResultsLike, names: list[str]) -> str:
    """Return the part of the rows that all finished variants have losses on."""
    done = [
        record
        for record in results.records
        if record["method"] in names and record.get("status") == "done"
    ]
    complete = all(part_losses(record, "validation") for record in done)
    return "validation" if done and complete else "test"


def _ablation_cell(
    results: ResultsLike,
    place: tuple[str, str],
    loss: str,
    part: str,
    row: AblationRow | None,
) -> Cell:
    cells = collect(results, lambda record: part_losses(record, part).get(loss))
    values = cells.get(place, [])
    return Cell(
        float(np.mean(values)) if values else None,
        spread=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        printed=None if row is None else float(getattr(row, loss)),
    )

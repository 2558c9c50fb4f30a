"""The known datasets as a table: their figures, and where their files are."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from .data_dirs import data_homes, find_file
from .files import PathLike
from .registry import registry


def _number(value: float | None, form: str = ",") -> str:
    return "" if value is None else format(value, form)


def _place(homes: list[Path], name: str, parts: tuple[str, ...]) -> str:
    """Return the number, from 1, of the folder that has a dataset, or nothing."""
    found = [find_file(homes, name, part) for part in parts]
    if not found[0] or not all(found):
        return ""
    return str(homes.index(found[0].parent.parent) + 1)


def dataset_table(data_home: PathLike | None = None) -> Table:
    """Return the known datasets as a table for the terminal.

    Parameters
    ----------
    data_home : str, path or None
        Where to look for their files; see :func:`load_dataset`.
    """
    homes = data_homes(data_home)
    table = Table(box=None, pad_edge=False, caption_justify="left")
    table.add_column("name", no_wrap=True)
    for figure in ("rows", "features", "labels", "cardinality"):
        table.add_column(figure, justify="right", no_wrap=True)
    table.add_column("hash", no_wrap=True)
    table.add_column("in folder", no_wrap=True)
    for name, entry in registry().items():
        table.add_row(
            name,
            _number(entry.n_instances),
            _number(entry.n_features),
            _number(entry.n_labels),
            _number(entry.cardinality, ".3f"),
            "known" if entry.verified else "none",
            _place(homes, name, entry.parts("all")),
        )
    return table


def dataset_legend(data_home: PathLike | None = None) -> str:
    """Return what the table's columns mean, and which folders were searched."""
    homes = data_homes(data_home)
    lines = [
        "hash known: the file is checked, and downloaded where it is absent.",
        "hash none: no verified hash; read, unchecked, from a file put there by hand.",
    ]
    # A path may have brackets.
    lines += [f"folder {n}: {escape(str(home))}" for n, home in enumerate(homes, 1)]
    return "\n".join(lines)

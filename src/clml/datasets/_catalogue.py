"""The known datasets as a table: their figures, and where their files are."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from ._files import PathLike
from ._home import data_homes, find_file
from ._registry import registry


def _number(value: float | None, form: str = ",") -> str:
    return "" if value is None else format(value, form)


def dataset_table(data_home: PathLike | None = None) -> Table:
    """Return the known datasets as a table for the terminal.

    Parameters
    ----------
    data_home : str, path or None
        Where to look for their files; see :func:`load_dataset`.
    """
    homes = data_homes(data_home)
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for figure in ("rows", "features", "labels", "cardinality"):
        table.add_column(figure, justify="right", no_wrap=True)
    table.add_column("hash", no_wrap=True)
    table.add_column("present in", overflow="fold")
    for name, entry in registry().items():
        found = [find_file(homes, name, part) for part in entry.parts("all")]
        place = str(found[0].parent.parent) if found[0] and all(found) else ""
        table.add_row(
            name,
            _number(entry.n_instances),
            _number(entry.n_features),
            _number(entry.n_labels),
            _number(entry.cardinality, ".3f"),
            "known" if entry.verified else "none",
            escape(place),  # a path may have brackets
        )
    return table

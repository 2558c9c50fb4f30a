"""A table as a value: numbers with the way to show them, nothing of any format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

Value = float | int | str | None

MISSING = "\N{EN DASH}"
PRINTED_NOTE = "In parentheses: what the paper printed."
SPREAD_NOTE = "Mean ± standard deviation over splits and seeds."


def _is_missing(value: Value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def show_number(value: Value, spec: str) -> str:
    """Return a value as text; a dash if there is none.

    Examples
    --------
    >>> from clml.experiments._table import show_number
    >>> show_number(0.12345, ".3f"), show_number(float("nan"), ".3f")
    ('0.123', '–')
    """
    if _is_missing(value):
        return MISSING
    if isinstance(value, str):
        return value
    if spec.endswith("d"):
        return format(round(float(value or 0)), spec)
    return format(value, spec)


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes
    ----------
    value : float, int, str or None
        None and NaN are shown as a dash.
    spread : float or None
        Standard deviation over splits and seeds.
    printed : float or None
        What the paper printed in this place.
    spec : str
        How numbers are shown, as in :func:`format`.
    best : bool
        Whether it is the best of its row (or column).
    mark : str
        Signs behind the number that the notes of the table explain.

    Examples
    --------
    >>> from clml.experiments import Cell
    >>> Cell(0.2146, spread=0.0121, printed=0.205).text
    '0.215 ± 0.012 (0.205)'
    >>> Cell(None, printed=0.205).text, Cell("flags").text
    ('– (0.205)', 'flags')
    """

    value: Value
    spread: float | None = None
    printed: float | None = None
    spec: str = ".3f"
    best: bool = False
    mark: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the cell holds, or could hold, a number."""
        return not isinstance(self.value, str)

    @property
    def number(self) -> str:
        """The value alone as text, with its marks."""
        return show_number(self.value, self.spec) + self.mark

    @property
    def parts(self) -> tuple[str, str, str]:
        """Value, deviation and the paper's value as texts; empty where there is none.

        Formats put the signs of their own between them.
        """
        return (
            self.number,
            "" if _is_missing(self.spread) else show_number(self.spread, self.spec),
            "" if _is_missing(self.printed) else show_number(self.printed, self.spec),
        )

    @property
    def text(self) -> str:
        """The whole cell as plain text."""
        number, spread, printed = self.parts
        return (
            number
            + (f" ± {spread}" if spread else "")
            + (f" ({printed})" if printed else "")
        )


@dataclass(frozen=True)
class Table:
    """A table of cells under headings.

    Attributes
    ----------
    name : str
        A file's stem: small letters, digits and underscores.
    title : str
    columns : tuple of str
        Headings, as many as each row has cells.
    rows : tuple of tuples of Cell
    notes : tuple of str
        Sentences below the table.

    Examples
    --------
    >>> from clml.experiments import Cell, Table
    >>> table = Table("t", "A title", ("dataset", "A"), ((Cell("x"), Cell(0.5)),))
    >>> [cell.text for cell in table.rows[0]]
    ['x', '0.500']
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = sorted({len(row) for row in self.rows} - {len(self.columns)})
        if lengths:
            raise ValueError(
                f"rows must have {len(self.columns)} cells each, one for each column; "
                f"got rows with {lengths}."
            )

    def has_number_column(self, column: int) -> bool:
        """Return whether a column holds numbers, to be aligned to the right."""
        cells = [row[column] for row in self.rows]
        return column > 0 and any(cell.is_number for cell in cells)


def marked_best(
    cells: Sequence[Cell],
    largest: bool = False,
    eligible: Sequence[bool] | None = None,
) -> tuple[Cell, ...]:
    """Return cells with the best marked, and all that look the same as it.

    Parameters
    ----------
    cells : sequence of Cell
    largest : bool
        Whether the largest is the best; then 0 is none.
    eligible : sequence of bool or None
        Which may be marked at all; None: all.
    """
    may = [True] * len(cells) if eligible is None else eligible
    numbers = [
        float(cell.value)
        for cell, chosen in zip(cells, may, strict=True)
        if chosen and isinstance(cell.value, int | float) and not math.isnan(cell.value)
    ]
    if not numbers or (largest and max(numbers) <= 0):
        return tuple(cells)
    best = max(numbers) if largest else min(numbers)
    return tuple(
        replace(cell, best=bool(chosen) and cell.number == _like(cell, best))
        for cell, chosen in zip(cells, may, strict=True)
    )


def _like(cell: Cell, value: float) -> str:
    return show_number(value, cell.spec) + cell.mark


def text_cells(values: Iterable[object]) -> tuple[Cell, ...]:
    """Return cells of plain text."""
    return tuple(Cell(str(value)) for value in values)

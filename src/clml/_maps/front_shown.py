"""A front as text, and as a small page with its picture, for consoles and notebooks."""

from __future__ import annotations

from html import escape
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# Lines of a table at most; the rest is counted.
_MOST_LINES = 20
# Plots of two losses each at most, their width and height, and the room for numbers.
_MOST_PLOTS = 3
_SIDE, _ROOM = 220.0, 44.0


class Shown(Protocol):
    """What is shown of a front."""

    @property
    def losses(self) -> NDArray[np.float64]:
        """Of each model, (m, o)."""

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Of the losses."""

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Of each model's losses, (m, o), NaN where unknown."""

    @property
    def default(self) -> int | None:
        """The model that predicts if nothing else is chosen."""

    @property
    def rules(self) -> tuple[str | None, ...]:
        """What decides the rows of each model, None for its numbers alone."""


def front_text(front: Shown) -> str:
    """Return a front as a table in plain text."""
    shown = [(f"{number} {mark}", *cells) for number, mark, *cells in _cells(front)]
    lines = [("", *_heads(front)), *shown]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = [
        "  ".join(
            [number.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]
        ).rstrip()
        for number, *cells in lines
    ]
    return "\n".join([_title(front), *table, *_rest(front)])


def front_html(front: Shown) -> str:
    """Return a front as HTML: a plot of its losses beside a table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *_heads(front)))
    body = "".join(
        f"<tr><th>{number}{mark}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for number, mark, *cells in _cells(front)
    )
    pairs = list(combinations(range(len(front.loss_names)), 2))[:_MOST_PLOTS]
    plots = "".join(_plot(front, x, y) for x, y in pairs)
    rest = "".join(f"<p>{escape(line)}</p>" for line in _rest(front))
    return (
        f"<div><p>{escape(_title(front))}</p>{plots}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}</div>"
    )


def _title(front: Shown) -> str:
    n = len(front.losses)
    told = []
    if np.isfinite(front.standard_error).any():
        told.append("losses ± standard errors")
    if front.default is not None:
        told.append("* predicts by default")
    words = f"ParetoFront of {n} model{'s' if n != 1 else ''}"
    return f"{words} ({'; '.join(told)})" if told else words


def _rest(front: Shown) -> list[str]:
    hidden = len(front.losses) - _MOST_LINES
    return [f"... and {hidden} more"] if hidden > 0 else []


def _heads(front: Shown) -> tuple[str, ...]:
    return (*front.loss_names, "rule") if any(front.rules) else front.loss_names


def _cells(front: Shown) -> list[list[str]]:
    """Return number, mark and losses of each model that is shown, and rules if any."""
    rules = [[rule or ""] if any(front.rules) else [] for rule in front.rules]
    marks = ["*" if i == front.default else "" for i in range(len(rules))]
    return [
        [str(i), marks[i], *_with_errors(losses, errors), *rules[i]]
        for i, (losses, errors) in enumerate(
            zip(front.losses, front.standard_error, strict=True)
        )
        if i < _MOST_LINES
    ]


def _with_errors(losses: NDArray[np.float64], errors: NDArray[np.float64]) -> list[str]:
    return [
        f"{loss:.3f} ± {error:.3f}" if np.isfinite(error) else f"{loss:.3f}"
        for loss, error in zip(losses, errors, strict=True)
    ]


def _plot(front: Shown, x: int, y: int) -> str:
    """Return a plot of two losses as SVG, with bars of one standard error."""
    names = front.loss_names[x], front.loss_names[y]
    bounds = []
    for i in (x, y):
        errors = np.nan_to_num(front.standard_error[:, i])
        low = float((front.losses[:, i] - errors).min())
        high = float((front.losses[:, i] + errors).max())
        room = 0.05 * (high - low) or 0.01
        bounds.append((low - room, high + room))

    def across(value: float) -> float:
        low, high = bounds[0]
        return _ROOM + (_SIDE - _ROOM) * (value - low) / (high - low)

    def up(value: float) -> float:
        low, high = bounds[1]
        return (_SIDE - _ROOM) * (high - value) / (high - low)

    marks = []
    for i, (losses, errors) in enumerate(
        zip(front.losses, np.nan_to_num(front.standard_error), strict=True)
    ):
        a, b = losses[x], losses[y]
        ends = (
            (across(a - errors[x]), up(b), across(a + errors[x]), up(b)),
            (across(a), up(b - errors[y]), across(a), up(b + errors[y])),
        )
        for x1, y1, x2, y2 in ends:
            marks.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                'stroke="currentColor" stroke-opacity="0.25"/>'
            )
        filled = "currentColor" if i == front.default else "none"
        marks.append(
            f'<circle cx="{across(a):.1f}" cy="{up(b):.1f}" r="4" fill="{filled}" '
            'stroke="currentColor"><title>'
            f"{i}: {escape(names[0])} {a:.4f}, {escape(names[1])} {b:.4f}"
            f"{_beside(front.rules[i])}</title></circle>"
        )
    left, bottom = _ROOM, _SIDE - _ROOM
    numbers = [
        _text(left, bottom + 14, f"{bounds[0][0]:.3f}", "start"),
        _text(_SIDE, bottom + 14, f"{bounds[0][1]:.3f}", "end"),
        _text(left - 4, bottom, f"{bounds[1][0]:.3f}", "end"),
        _text(left - 4, 10, f"{bounds[1][1]:.3f}", "end"),
        _text((left + _SIDE) / 2, bottom + 30, names[0], "middle"),
        _text(left + 4, 10, names[1], "start"),
    ]
    frame = (
        f'<path d="M{left} 0V{bottom}H{_SIDE}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.5"/>'
    )
    return (
        f'<svg width="{_SIDE + 8:.0f}" height="{_SIDE:.0f}" role="img" '
        f'aria-label="{escape(names[1])} over {escape(names[0])}" '
        'font-size="11" font-family="sans-serif">'
        f"{frame}{''.join(marks)}{''.join(numbers)}</svg>"
    )


def _beside(rule: str | None) -> str:
    return "" if rule is None else f", {escape(rule)}"


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">'
        f"{escape(words)}</text>"
    )

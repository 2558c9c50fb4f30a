"""Critical-difference diagrams as inline SVG, drawn by hand.

The scale runs from rank 1 on the left to the last on the right. Methods hang below it,
the better half on the left. Colours come from the page's style.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

WIDTH = 640
# Room for the names at both sides, and the height of a line of them.
MARGIN, LINE = 150, 22
LONGEST_NAME = 20


def critical_difference_svg(
    names: Sequence[str],
    mean_ranks: Sequence[float],
    critical_difference: float,
    *,
    groups: Sequence[Sequence[int]] = (),
    control: int | None = None,
) -> str:
    """Draw mean ranks, and what the critical difference does not tell apart.

    Parameters
    ----------
    names : sequence of str
    mean_ranks : sequence of float
        One a method; smaller is better.
    critical_difference : float
    groups : sequence of sequences of int, default=()
        Methods that are not told apart, joined by a bar (Nemenyi).
    control : int, default=None
        A band around this method holds those not told apart from it (Bonferroni-Dunn).

    Returns
    -------
    str
        An ``<svg>`` element; names in it are escaped.

    Examples
    --------
    >>> from clml.report._diagram import critical_difference_svg
    >>> picture = critical_difference_svg(["a", "<b>"], [1.2, 1.8], 0.9)
    >>> picture[:4], "<b>" in picture
    ('<svg', False)
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    k = len(ranks)
    order = np.argsort(ranks, kind="stable")
    half = (k + 1) // 2
    bars = [(ranks[list(group)].min(), ranks[list(group)].max()) for group in groups]
    top = 62
    first_line = top + 18 + 9 * len(bars)
    height = first_line + LINE * half + 6

    def x(rank: float) -> float:
        share = (rank - 1) / max(k - 1, 1)
        return MARGIN + share * (WIDTH - 2 * MARGIN)

    parts = [_scale(k, top, x)]
    if control is not None:
        left = x(max(1.0, ranks[control] - critical_difference))
        right = x(min(float(k), ranks[control] + critical_difference))
        parts.append(
            f'<rect class="band" x="{left:.1f}" y="{top - 6}" '
            f'width="{right - left:.1f}" height="12"/>'
        )
    end = min(x(1 + critical_difference), WIDTH - 8)
    parts.append(_span(x(1), end, 18, "difference"))
    parts.append(
        f'<text x="{(x(1) + end) / 2:.1f}" y="12" text-anchor="middle">'
        f"CD {critical_difference:.3f}</text>"
    )
    for place, method in enumerate(order):
        left_side = place < half
        line = place if left_side else k - 1 - place
        y = first_line + LINE * line + 10
        parts.append(
            _method(names[method], ranks[method], x(ranks[method]), top, y, left_side)
        )
    for i, (low, high) in enumerate(bars):
        y = top + 12 + 9 * i
        parts.append(
            f'<line class="group" x1="{x(low) - 4:.1f}" x2="{x(high) + 4:.1f}" '
            f'y1="{y}" y2="{y}"/>'
        )
    described = ", ".join(f"{names[i]} {ranks[i]:.2f}" for i in order)
    return (
        f'<svg class="ranks" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Mean ranks: {escape(described, quote=True)}; critical '
        f'difference {critical_difference:.3f}">{"".join(parts)}</svg>'
    )


def _scale(k: int, y: float, x: Callable[[float], float]) -> str:
    ticks = "".join(
        f'<line class="axis" x1="{x(r):.1f}" x2="{x(r):.1f}" y1="{y - 6}" y2="{y}"/>'
        f'<text class="tick" x="{x(r):.1f}" y="{y - 11}" text-anchor="middle">{r}'
        "</text>"
        for r in range(1, k + 1)
    )
    line = f'<line class="axis" x1="{x(1):.1f}" x2="{x(k):.1f}" y1="{y}" y2="{y}"/>'
    return line + ticks


def _span(left: float, right: float, y: float, css: str) -> str:
    ends = "".join(
        f'<line class="{css}" x1="{e:.1f}" x2="{e:.1f}" y1="{y - 4}" y2="{y + 4}"/>'
        for e in (left, right)
    )
    line = f'<line class="{css}" x1="{left:.1f}" x2="{right:.1f}" y1="{y}" y2="{y}"/>'
    return line + ends


def _method(
    name: str, rank: float, x: float, top: float, y: float, left_side: bool
) -> str:
    """Draw the line from a rank down and out to the method's name."""
    edge = MARGIN - 12 if left_side else WIDTH - MARGIN + 12
    anchor = "end" if left_side else "start"
    gap = -5 if left_side else 5
    shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "\u2026"
    return (
        f'<polyline class="stem" points="{x:.1f},{top} {x:.1f},{y} {edge},{y}"/>'
        f'<circle class="stem" cx="{x:.1f}" cy="{top}" r="3"/>'
        f'<text x="{edge + gap}" y="{y + 4}" text-anchor="{anchor}">'
        f"<title>{escape(name)}: mean rank {rank:.3f}</title>{escape(shown)} "
        f'<tspan class="tick">{rank:.2f}</tspan></text>'
    )

"""Charts of the demonstration's page as inline SVG, drawn by hand.

All are 360 units wide, about a phone's width, so that their text keeps its size;
colours come from the classes of the page's style, for light and dark alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH = 360


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between low and high."""
    raw = (high - low) / most
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = int(np.ceil(low / step)), int(np.floor(high / step + 1e-9))
    return [float(n * step) for n in range(first, last + 1)]


def _scale(low: float, high: float, start: float, stop: float) -> Callable:
    return lambda value: start + (stop - start) * (value - low) / (high - low)


def _range(*values: Floats, margin: float = 0.06) -> tuple[float, float]:
    """Return ends that leave room around the values, whatever they are."""
    every = np.concatenate([np.ravel(v) for v in values])
    low, high = float(every.min()), float(every.max())
    room = margin * (high - low) if high > low else 0.01
    return low - room, high + room


def _text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">'
        f"{escape(words)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'
    )


def _dot(x: float, y: float, radius: float, css: str, words: str = "") -> str:
    title = f"<title>{escape(words)}</title>" if words else ""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{css}">{title}</circle>'
    )


def _svg(height: float, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(description, quote=True)}">{"".join(parts)}</svg>'
    )


def dot_plot(
    title: str,
    names: Sequence[str],
    kinds: Sequence[str],
    expected: Floats,
    drawn: Floats,
    bayes: float,
) -> str:
    """Draw one loss of every method, with the Bayes value as a line.

    Parameters
    ----------
    title : str
    names, kinds : sequences of str
        A kind is the class of the method's dots.
    expected, drawn : arrays (methods,)
        Full and hollow dots.
    bayes : float
    """
    left, right, top, row = 150, WIDTH - 14, 34, 22
    bottom = top + row * len(names)
    low, high = _range(expected, drawn, np.array([bayes]))
    x = _scale(low, high, left, right)
    parts = [_text(0, 14, title, "title")]
    for tick in _ticks(low, high):
        parts.append(_line(x(tick), top - 8, x(tick), bottom, "grid"))
        parts.append(_text(x(tick), bottom + 15, f"{tick:.4g}", "tick", "middle"))
    parts.append(_line(x(bayes), top - 8, x(bayes), bottom, "bayes"))
    parts.append(_text(x(bayes), top - 12, f"Bayes {bayes:.4f}", "tick", "middle"))
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        y = top + row * (i + 0.5)
        said = f"{name}: expected {expected[i]:.4f}, on drawn labels {drawn[i]:.4f}"
        parts.append(_text(left - 12, y + 4, name, "name", "end"))
        parts.append(_line(x(expected[i]), y, x(drawn[i]), y, "link"))
        parts.append(_dot(x(drawn[i]), y, 3, f"hollow {kind}", said))
        parts.append(_dot(x(expected[i]), y, 5, kind, said))
    return _svg(bottom + 22, f"{title} of each method", parts)


def front_plot(
    front: Floats,
    others: Sequence[tuple[str, str, Floats]],
    bayes: Floats,
    axes: tuple[str, str],
) -> str:
    """Draw the members of a front by two losses, among other methods.

    Parameters
    ----------
    front : array (m, 2)
    others : sequence of (name, kind, losses (2,))
    bayes : array (2,)
    axes : pair of str
    """
    left, right, top, bottom = 46, WIDTH - 14, 24, 262
    points = np.vstack([front, *(losses for _, _, losses in others), bayes])
    (x_low, x_high), (y_low, y_high) = _range(points[:, 0]), _range(points[:, 1])
    x = _scale(x_low, x_high, left, right)
    y = _scale(y_low, y_high, bottom, top)
    parts = []
    for tick in _ticks(x_low, x_high):
        parts.append(_line(x(tick), top, x(tick), bottom, "grid"))
        parts.append(_text(x(tick), bottom + 15, f"{tick:.4g}", "tick", "middle"))
    for tick in _ticks(y_low, y_high):
        parts.append(_line(left, y(tick), right, y(tick), "grid"))
        parts.append(_text(left - 6, y(tick) + 4, f"{tick:.4g}", "tick", "end"))
    parts.append(_line(x(bayes[0]), top, x(bayes[0]), bottom, "bayes"))
    parts.append(_line(left, y(bayes[1]), right, y(bayes[1]), "bayes"))
    parts.append(_text(right, bottom + 32, axes[0], "tick", "end"))
    parts.append(_text(0, 12, axes[1], "tick"))
    parts += [_dot(x(a), y(b), 2.5, "clml faint") for a, b in front]
    heights = _apart([float(y(losses[1])) for _, _, losses in others], 13)
    for (name, kind, (a, b)), height in zip(others, heights, strict=True):
        parts.append(_dot(x(a), y(b), 5, kind, f"{name}: {a:.4f}, {b:.4f}"))
        # Towards the middle, so that no name leaves the picture.
        side = (8, "start") if x(a) < (left + right) / 2 else (-8, "end")
        parts.append(_text(x(a) + side[0], height + 4, name, "name", side[1]))
    return _svg(bottom + 40, f"The front by {axes[0]} and {axes[1]}", parts)


def curve_plot(curve: Floats, names: Sequence[str]) -> str:
    """Draw losses epoch by epoch, each line named at its end.

    Parameters
    ----------
    curve : array (epochs, o)
    names : sequence of o str
    """
    left, right, top, bottom = 40, WIDTH - 92, 12, 232
    low, high = _range(curve)
    epochs = len(curve)
    x, y = _scale(0, max(epochs - 1, 1), left, right), _scale(low, high, bottom, top)
    parts = []
    for tick in _ticks(low, high):
        parts.append(_line(left, y(tick), right, y(tick), "grid"))
        parts.append(_text(left - 6, y(tick) + 4, f"{tick:.4g}", "tick", "end"))
    # A screen shows no more points than this.
    shown = np.unique(np.linspace(0, epochs - 1, min(epochs, 400)).astype(int))
    ends = _apart([float(y(value)) for value in curve[-1]], 14)
    for i, name in enumerate(names):
        line = " ".join(f"{x(e):.1f},{y(curve[e, i]):.1f}" for e in shown)
        parts.append(f'<polyline points="{line}" fill="none" class="curve"/>')
        parts.append(_text(right + 6, ends[i] + 4, name, "name"))
    parts.append(_text(left, bottom + 16, "epoch 1", "tick"))
    parts.append(_text(right, bottom + 16, str(epochs), "tick", "end"))
    return _svg(bottom + 24, "Validation losses epoch by epoch", parts)


def _apart(places: list[float], gap: float) -> list[float]:
    """Move places down until no two are nearer than the gap."""
    order = np.argsort(places)
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    return moved

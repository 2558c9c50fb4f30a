"""What all displays share: where matplotlib comes in, colours, names, files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.atomic import atomic_file, check_place
from .._support.paths import PathLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Colours that stay apart for colour-blind readers, and as greys (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Marks that tell the same series apart without any colour.
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY = "0.45"
#: From dark to light evenly, also in print.
COLOUR_MAP = "viridis"

_STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# Without names of the moment: the same numbers give the same bytes.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
FORMATS = tuple(_METADATA)

_LOSS_LABELS = {
    "hamming": "Hamming loss",
    "lrap": "1 - LRAP",
    "micro_f1": "1 - micro-F1",
    "macro_f1": "1 - macro-F1",
    "binary_cross_entropy": "binary cross-entropy",
    "row_log_loss": "log-loss of rows",
    "geometric_mean": "geometric mean of the losses",
    "contribution": "Lebesgue contribution",
}

_windows: ContextVar[bool] = ContextVar("windows", default=True)


def import_matplotlib() -> ModuleType:
    """Return matplotlib, or say how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib. Install it with: pip install 'clml[plots]'"
        ) from error
    return matplotlib


def plain_label(name: str) -> str:
    r"""Return a name such that matplotlib shows it as it is, whatever it holds.

    Dollars would begin a formula. Halves of characters, which no font has, are shown
    as Python shows them.

    Examples
    --------
    >>> from clml.plots._style import plain_label
    >>> print(plain_label("a"), plain_label("$x$"), plain_label("\ud800"))
    a \$x\$ \ud800
    """
    shown = str(name).encode("utf-8", "backslashreplace").decode("utf-8")
    return shown.replace("$", r"\$")


def loss_label(name: str) -> str:
    """Return how an axis names a loss.

    Examples
    --------
    >>> from clml.plots._style import loss_label
    >>> loss_label("micro_f1"), loss_label("one_error")
    ('1 - micro-F1', 'one error')
    """
    return _LOSS_LABELS.get(name, plain_label(name.replace("_", " ")))


@contextmanager
def without_windows() -> Iterator[None]:
    """Make new figures that no window and no notebook shows, for files alone."""
    token = _windows.set(False)
    try:
        yield
    finally:
        _windows.reset(token)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, whose parts make room for each other."""
    if _windows.get():
        import_matplotlib()
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def styled(plot: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Draw in the style of this folder, and leave the user's own as it was."""

    @wraps(plot)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with import_matplotlib().rc_context(_STYLE):
            return plot(*args, **kwargs)

    return drawn


def panel_array(ax: Any, n_panels: int) -> NDArray[np.object_]:
    """Return the axes that a user gave for several panels as an array (n_panels,)."""
    panels = np.asarray(ax, dtype=object).ravel()
    if len(panels) != n_panels:
        raise ValueError(
            f"ax must be None or {n_panels} axes, one for each panel, "
            f"got {len(panels)}."
        )
    return panels


def check_numbers(name: str, values: ArrayLike, *shape: int | None) -> Floats:
    """Return values as an array of a shape, None being any length.

    Examples
    --------
    >>> from clml.plots._style import check_numbers
    >>> check_numbers("losses", [[1, 2, 3]], None, 2)
    Traceback (most recent call last):
        ...
    ValueError: losses must have the shape (any, 2), got (1, 3).
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from error
    fits = len(shape) == array.ndim and all(
        wanted in (None, got) for wanted, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        comma = "," if len(shape) == 1 else ""
        raise ValueError(
            f"{name} must have the shape ({wanted}{comma}), got {array.shape}."
        )
    return array


def take(artifact: Mapping[str, NDArray], *names: str) -> list[NDArray]:
    """Return entries of an artifact, or say which are missing.

    An artifact is what a run left in its ``artifacts`` folder, by name.
    """
    if not isinstance(artifact, Mapping):
        raise TypeError(
            "artifact must be a mapping of names to arrays, "
            f"got {type(artifact).__name__}."
        )
    missing = [name for name in names if name not in artifact]
    if missing:
        raise ValueError(f"artifact must hold {', '.join(missing)}, which it does not.")
    return [np.asarray(artifact[name]) for name in names]


def history_of(artifact: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return the history in an artifact, its names as in ``history_``."""
    take(artifact)
    start = "history/"
    return {
        name.removeprefix(start): np.asarray(values)
        for name, values in artifact.items()
        if name.startswith(start)
    }


def save_figure(figure: Figure, path: PathLike, dpi: float = 150) -> Path:
    """Write a figure to a file whose bytes depend on nothing but what is drawn.

    Parameters
    ----------
    figure : matplotlib Figure
    path : str or path
        Ends in .svg, .png or .pdf. The folder must exist. The file appears under its
        name when it is complete.
    dpi : float, default=150
        Dots per inch of a png.

    Returns
    -------
    Path
    """
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise ValueError(f"path must end in one of {endings}, got {target.name!r}.")
    check_place(target)
    content = io.BytesIO()
    # Letters as outlines: no reader's font can make labels overlap.
    settings = {"svg.hashsalt": "clml", "svg.fonttype": "path"}
    with import_matplotlib().rc_context(settings):
        figure.savefig(content, format=kind, dpi=dpi, metadata=_METADATA[kind])
    with atomic_file(target) as file:
        file.write(content.getbuffer())
    return target

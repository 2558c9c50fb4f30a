"""From data to the text of one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._support.atomic import atomic_texts
from .._support.paths import PathLike
from .._version import __version__
from ._diagram import critical_difference_svg
from ._run_tables import with_tables

#: No page is larger than this.
MOST_BYTES = 8_000_000
# Beyond this much of it, runs lose their counts of labels, or are left out.
_RUNS_BUDGET = 6_000_000
_SCRIPTS = (
    "tables.js",
    "plot.js",
    "frames.js",
    "trajectory.js",
    "explorer.js",
    "start.js",
)


def build_page(data: Mapping[str, Any]) -> str:
    """Return the page of a report as text.

    Parameters
    ----------
    data : mapping
        What :func:`clml.report.experiment_data` and
        :func:`clml.report.estimator_data` return: ``title`` and ``subtitle``,
        ``groups`` (sections of sentences, tables, diagrams and facts), ``runs``
        (trajectories and fronts) and ``notes``. All text in it is escaped.

    Returns
    -------
    str
        HTML with style, script and data inside: it asks nothing of a network.

    Examples
    --------
    >>> from clml.report import build_page
    >>> page = build_page({"title": "Results of <today>", "groups": [], "runs": []})
    >>> "Results of &lt;today&gt;" in page
    True
    """
    if not isinstance(data, Mapping) or "title" not in data:
        raise ValueError(
            "data must be a mapping with a title, groups and runs, as "
            f"experiment_data returns it, got {type(data).__name__}."
        )
    runs, left_out = _within_budget(list(data.get("runs", ())))
    script = _script()
    page = _template().render(
        title=data["title"],
        subtitle=data.get("subtitle", ""),
        groups=[_drawn(group) for group in data.get("groups", ())],
        runs=[with_tables(run, place) for place, run in enumerate(runs)],
        notes=[*data.get("notes", ()), *left_out],
        style=_asset("page.css"),
        script=script,
        script_hash=_hash(script),
        data=json_for_script({"runs": runs}),
        version=__version__,
    )
    # Names may hold halves of characters, which no file can: they are shown as Python
    # shows them.
    encoded = page.encode("utf-8", "backslashreplace")
    if len(encoded) > MOST_BYTES:
        raise ValueError(
            f"The page would have {len(encoded)} bytes, at most {MOST_BYTES} are "
            "allowed: give fewer datasets or methods."
        )
    return encoded.decode("utf-8")


def write_page(path: PathLike, text: str, replace: bool = True) -> Path:
    """Write a page whole or not at all, and return where it is."""
    place = Path(path).absolute()
    with atomic_texts(place, replace=replace) as [file]:
        file.write(text)
    return place


def json_for_script(data: object) -> str:
    r"""Return JSON that can stand in a script element, whatever its strings hold.

    Examples
    --------
    >>> from clml.report.page import json_for_script
    >>> json_for_script("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _within_budget(
    runs: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the runs that a page can hold, and sentences about the others.

    The largest lose their counts of labels first, as many as need be; if that is not
    enough, the largest are left out.
    """
    weights = [_weight(run) for run in runs]
    kept: list[dict[str, Any] | None] = list(runs)
    said = {}
    for shrink, words in (
        (_without_labels, "too large for label counts on this page"),
        (lambda run: None, "too large for this page"),
    ):
        for i in sorted(range(len(runs)), key=lambda i: -weights[i]):
            if sum(weights) <= _RUNS_BUDGET:
                break
            smaller = shrink(kept[i])
            weight = 0 if smaller is None else _weight(smaller)
            if weight == weights[i]:  # it had no counts to lose
                continue
            kept[i], weights[i] = smaller, weight
            said[i] = f"{runs[i]['name']}: {words}."
    return [run for run in kept if run is not None], [said[i] for i in sorted(said)]


def _without_labels(run: Any) -> dict[str, Any]:
    if run["front"] is None:
        return dict(run)
    nothing = dict.fromkeys(("labels", "relevant", "hits", "predicted"))
    default = {**run["front"]["default"], "hits": None, "predicted": None}
    return {**run, "front": {**run["front"], **nothing, "default": default}}


def _weight(run: Mapping[str, Any]) -> int:
    """Return about how many bytes a run takes, its tables included."""
    front = run["front"]
    cells = 0
    if front is not None:
        parts = 2 if front["test"] is not None else 1
        cells = len(front["validation"]) * (1 + parts * len(front["loss_names"]))
        cells += 7 * len(front["labels"] or ())
    return len(json_for_script(run)) + 70 * cells


def _drawn(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section with its diagrams drawn."""
    drawn = [
        {
            **diagram,
            "svg": critical_difference_svg(
                diagram["names"],
                diagram["mean_ranks"],
                diagram["critical_difference"],
                groups=diagram.get("groups", ()),
                control=diagram.get("control"),
            ),
        }
        for diagram in group.get("diagrams", ())
    ]
    return {**group, "diagrams": drawn}


def _asset(name: str) -> str:
    return (files("clml.report") / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    parts = "\n".join(_asset(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();'


def _hash(script: str) -> str:
    """Return what the page's own policy knows its one script by."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return base64.b64encode(digest).decode("ascii")


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "A report needs the package jinja2. Install it with "
            "pip install 'clml[report]'."
        ) from error
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(_asset("page.html.j2"))

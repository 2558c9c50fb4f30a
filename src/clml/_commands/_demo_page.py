"""The demonstration's page: one HTML file that needs nothing else."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._support.atomic import atomic_texts
from ._demo_charts import curve_plot, dot_plot, front_plot

if TYPE_CHECKING:
    from .demo import DemoResult

# Names of the losses for readers, in the order of the results.
TITLES = ("Hamming loss", "1 \u2212 LRAP", "1 \u2212 micro-F1")

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>clml: how near to the best possible?</title>
<style>
:root {
  --paper: #fcfcfa; --card: #ffffff; --ink: #1d2230; --soft: #5d6475;
  --rule: #dfe2e8; --clml: #1f5fd0; --network: #b8480c; --baseline: #757d8c;
  --bayes: #177245;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171d; --card: #1b1f27; --ink: #e6e9ef; --soft: #a3abba;
    --rule: #323845; --clml: #7db0ff; --network: #ff9d66; --baseline: #929bab;
    --bayes: #5fd39a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem;
  background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p, li { max-width: 44rem; }
p.soft, dt { color: var(--soft); }
.cards { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
figure { margin: 0; padding: .9rem; background: var(--card);
  border: 1px solid var(--rule); border-radius: 10px; }
figcaption { font-size: .85rem; color: var(--soft); margin-top: .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums;
  font-size: .92rem; min-width: 100%; }
th, td { padding: .35rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; }
td small { color: var(--soft); }
td.best { font-weight: 700; }
tr.bayes td { color: var(--bayes); border-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem;
  font-size: .92rem; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 30rem) {
  dl { grid-template-columns: 1fr; } dd { margin: 0 0 .5rem; }
}
svg { display: block; width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .title { font-size: 13px; font-weight: 600; }
svg .tick { fill: var(--soft); font-size: 10px; }
svg .grid { stroke: var(--rule); }
svg .bayes { stroke: var(--bayes); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg .link { stroke: var(--soft); opacity: .6; }
svg circle.clml { fill: var(--clml); stroke: var(--clml); }
svg circle.network { fill: var(--network); stroke: var(--network); }
svg circle.baseline { fill: var(--baseline); stroke: var(--baseline); }
svg circle.hollow { fill: var(--card); }
svg circle.faint { opacity: .35; stroke: none; }
svg .curve { fill: none; stroke: var(--clml); stroke-width: 1.6; }
</style>
</head>
<body>
<h1>How near to the best possible?</h1>
<p>These labels were drawn from a known distribution, so the smallest value that any
model can expect of each loss, its Bayes value, is known too. Their log-odds are a
network of the shape that CLML and the cross-entropy network train, which the two
baselines cannot represent. Every method learned from the same $training_rows rows; the
$test_rows test rows decided nothing.</p>
<ul>
$verdict
</ul>
<h2>Each loss, each method</h2>
<div class="cards">
$dot_plots
</div>
<p class="soft">Full dots: expected losses on the test rows, exact, free of the labels'
noise. Hollow dots: on the labels drawn once for these rows, where luck may take a model
below the Bayes value. Dashed: the Bayes value. Smaller is better.</p>
<h2>The numbers</h2>
<div class="scroll">
<table>
<thead><tr><th>model</th>$heads</tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>
<p class="soft">Expected loss, then in small the loss on the drawn labels. Bold: the
smallest expected loss of a column. Expected micro-F1 is the ratio of expectations over
all test rows. Each Bayes value is that of a predictor of its own (in small: that
predictor on the drawn labels); no single model need reach all of them.</p>
<h2>One run of CLML</h2>
<div class="cards">
<figure>
$front
<figcaption>Expected losses on the test rows of the $n_members models of the front,
found on training rows that networks left out. Dashed: the Bayes values, each reached by
a predictor of its own.</figcaption>
</figure>
<figure>
$curve
<figcaption>Losses on the training rows, each judged by the networks that left it out:
of their average.</figcaption>
</figure>
</div>
<h2>Settings</h2>
<dl>
$settings
</dl>
</body>
</html>
""")


def render_page(result: DemoResult) -> str:
    """Return the page as text."""
    from .demo import verdict

    methods = result.methods
    names = [_short(m.name) for m in methods]
    kinds = [m.kind for m in methods]
    dots = [
        dot_plot(
            title,
            names,
            kinds,
            np.array([m.expected[i] for m in methods]),
            np.array([m.drawn[i] for m in methods]),
            float(result.bayes[i]),
        )
        for i, title in enumerate(TITLES)
    ]
    plain = [m for m in methods if m.select is None]
    front = front_plot(
        result.front[:, :2],
        [(m.name, m.kind, m.expected[:2]) for m in plain],
        result.bayes[:2],
        (TITLES[0], TITLES[1]),
    )
    settings = result.settings | {
        "Python": f"{platform.python_version()}, NumPy {np.__version__}"
    }
    return _PAGE.substitute(
        training_rows=escape(result.settings["training rows"].partition(",")[0]),
        test_rows=escape(result.settings["test rows"]),
        verdict="\n".join(f"<li>{escape(s)}</li>" for s in verdict(result)),
        dot_plots="\n".join(f"<figure>{dot}</figure>" for dot in dots),
        heads="".join(f"<th>{escape(t)}</th>" for t in (*TITLES, "geometric mean")),
        rows=_table_rows(result),
        front=front,
        n_members=len(result.front),
        curve=curve_plot(result.curve, TITLES),
        settings="\n".join(
            f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>"
            for key, value in settings.items()
        ),
    )


def write_page(path: Path | str, text: str) -> Path:
    """Write the page whole or not at all, and return where it is."""
    path = Path(path).absolute()
    with atomic_texts(path) as [file]:
        file.write(text)
    return path


def _short(name: str) -> str:
    return name.removeprefix("CLML.")


def _table_rows(result: DemoResult) -> str:
    expected = _with_mean([m.expected for m in result.methods])
    drawn = _with_mean([m.drawn for m in result.methods])
    best = expected == expected.min(axis=0)
    rows = [
        f"<tr><td>{escape(m.name)}</td>{_cells(expected[i], drawn[i], best[i])}</tr>"
        for i, m in enumerate(result.methods)
    ]
    bayes = _with_mean([result.bayes, result.bayes_drawn])
    none = np.zeros(bayes.shape[1], dtype=bool)
    cells = _cells(bayes[0], bayes[1], none)
    rows.append(f'<tr class="bayes"><td>Bayes value</td>{cells}</tr>')
    return "\n".join(rows)


def _with_mean(losses: Sequence[NDArray]) -> NDArray[np.float64]:
    from .demo import geometric_mean

    return np.array([[*row, geometric_mean(row)] for row in losses])


def _cells(expected: NDArray, drawn: NDArray, best: NDArray) -> str:
    return "".join(
        f'<td class="{"best" if b else ""}">{e:.4f} <small>{d:.4f}</small></td>'
        for e, d, b in zip(expected, drawn, best, strict=True)
    )

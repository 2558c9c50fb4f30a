r"""Tables as Markdown, LaTeX, CSV and HTML.

Names and reasons come from files and users: every format escapes what would be taken
for its own signs.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterable

from .._support.csv_cells import write_cells
from ._table import Cell, Table, Value

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": r"$-$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "≥": r"$\geq$",
}
_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)|(?<=[`!?])(?=`)")
# Characters that no font has and TeX refuses, halves of characters among them.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _one_line(text: str) -> str:
    """Return text in one line, what cannot be seen as Python shows it."""
    return _UNSEEN.sub(lambda sign: repr(sign[0])[1:-1], " ".join(text.split()))


def escape_latex(text: str) -> str:
    r"""Return text as LaTeX shows it.

    Examples
    --------
    >>> from clml.experiments._table_formats import escape_latex
    >>> print(escape_latex("100 % of a_b"))
    100 \% of a\_b
    """
    # What TeX would draw as one sign is parted: two hyphens, two quotes.
    parted = _LIGATURES.split(_one_line(text))
    return "{}".join(
        "".join(_LATEX.get(sign, sign) for sign in part) for part in parted
    )


def escape_markdown(text: str) -> str:
    r"""Return text as Markdown shows it, in one line.

    Examples
    --------
    >>> from clml.experiments._table_formats import escape_markdown
    >>> print(escape_markdown("a|b *c*"))
    a\|b \*c\*
    """
    # A backslash inside a word is shown by some readers: lone underscores within
    # names need none. An ampersand is a sign in &amp; and the like, a hash beside a
    # space.
    signs = r"[\\`*|<>\[\]~$]|&(?=#?\w+;)|(?<!\S)#|#(?!\S)"
    escaped = re.sub(signs, r"\\\g<0>", _one_line(text))
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", escaped)


def _markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    return f"**{text}**" if cell.best else text


def to_markdown(table: Table) -> str:
    """Return a table as GitHub's Markdown; the best cells are bold.

    Examples
    --------
    >>> from clml.experiments import Cell, Table, to_markdown
    >>> rows = ((Cell("x"), Cell(0.5, best=True)),)
    >>> print(to_markdown(Table("t", "A title", ("dataset", "A"), rows)))
    ### A title
    <BLANKLINE>
    | dataset | A |
    |---|--:|
    | x | **0.500** |
    <BLANKLINE>
    """
    rules = [
        "--:" if table.has_number_column(i) else "---"
        for i in range(len(table.columns))
    ]
    lines = [
        f"### {escape_markdown(table.title)}",
        "",
        "| " + " | ".join(map(escape_markdown, table.columns)) + " |",
        "|" + "|".join(rules) + "|",
    ]
    lines += ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in table.rows]
    for note in table.notes:
        lines += ["", escape_markdown(note)]
    return "\n".join(lines) + "\n"


def _latex_number(text: str) -> str:
    """Return a number as LaTeX; 1.2e-05 becomes a power of ten."""
    power = re.fullmatch(r"(-?[\d.]+)e([+-]\d+)(.*)", text)
    if power:
        mantissa, exponent, mark = power.groups()
        return rf"${mantissa} \times 10^{{{int(exponent)}}}$" + escape_latex(mark)
    if re.match(r"-[\d.]", text):
        return "$-$" + escape_latex(text[1:])
    return escape_latex(text)


def _latex_cell(cell: Cell) -> str:
    number, spread, printed = map(_latex_number, cell.parts)
    text = rf"\textbf{{{number}}}" if cell.best else number
    if spread:
        text += rf" $\pm$ {spread}"
    return f"{text} ({printed})" if printed else text


def _latex_row(cells: Iterable[str]) -> str:
    row = " & ".join(cells)
    # To the end or the rule of the row before, these would be a star or an option.
    start = "{}" if row.startswith(("[", "*")) else ""
    return rf"    {start}{row} \\"


def to_latex(table: Table) -> str:
    r"""Return a table as a LaTeX float in the manner of the package booktabs.

    Examples
    --------
    >>> from clml.experiments import Cell, Table, to_latex
    >>> rows = ((Cell("a_b"), Cell(0.5, best=True)),)
    >>> print(to_latex(Table("t", "A title", ("dataset", "A"), rows)))
    \begin{table}
      \centering
      \caption{A title}
      \label{tab:t}
      \begin{tabular}{lr}
        \toprule
        dataset & A \\
        \midrule
        a\_b & \textbf{0.500} \\
        \bottomrule
      \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    aligned = "".join(
        "r" if table.has_number_column(i) else "l" for i in range(len(table.columns))
    )
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escape_latex(table.title)}}}",
        rf"  \label{{tab:{re.sub('[^0-9A-Za-z-]', '-', table.name)}}}",
        rf"  \begin{{tabular}}{{{aligned}}}",
        r"    \toprule",
        _latex_row(map(escape_latex, table.columns)),
        r"    \midrule",
    ]
    lines += [_latex_row(map(_latex_cell, row)) for row in table.rows]
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    # An empty line, so that each note is a paragraph of its own.
    for note in table.notes:
        lines += ["", rf"  {{\footnotesize {escape_latex(note)}\par}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _csv_value(value: Value) -> str:
    if value is None or value != value:
        return ""
    # repr: as many digits as the number has.
    return value if isinstance(value, str) else repr(float(value)).removesuffix(".0")


def to_csv(table: Table) -> str:
    """Return the numbers of a table in full, one column each.

    Deviations and the paper's numbers have columns of their own, named after the
    column they belong to. Notes and marks are left out. Text that a spreadsheet would
    take for a formula has an apostrophe before it.

    Examples
    --------
    >>> from clml.experiments import Cell, Table, to_csv
    >>> rows = ((Cell("x"), Cell(0.5, spread=0.25, printed=0.4)),)
    >>> print(to_csv(Table("t", "A title", ("dataset", "A"), rows)))
    dataset,A,A (sd),A (printed)
    x,0.5,0.25,0.4
    <BLANKLINE>
    """
    extra = {"spread": "sd", "printed": "printed"}
    kept: list[tuple[int, str]] = []
    heading: list[str] = []
    for i, column in enumerate(table.columns):
        kept.append((i, "value"))
        heading.append(column)
        for field, suffix in extra.items():
            if any(_csv_value(getattr(row[i], field)) for row in table.rows):
                kept.append((i, field))
                heading.append(f"{column} ({suffix})")
    file = io.StringIO()
    write_cells(file, [heading])
    for row in table.rows:
        write_cells(file, [[_csv_value(getattr(row[i], field)) for i, field in kept]])
    return file.getvalue()


def _html_cell(cell: Cell, tag: str) -> str:
    text = html.escape(cell.text)
    if cell.best:
        text = f"<strong>{text}</strong>"
    if tag == "th":
        return f'<th scope="row">{text}</th>'
    if cell.is_number:
        return f'<td class="number" data-value="{_csv_value(cell.value)}">{text}</td>'
    return f"<td>{text}</td>"


def to_html(table: Table) -> str:
    """Return a table as a fragment of HTML; numbers carry their full ``data-value``.

    Examples
    --------
    >>> from clml.experiments import Cell, Table, to_html
    >>> rows = ((Cell("<"), Cell(0.5)),)
    >>> print(to_html(Table("t", "A title", ("dataset", "A"), rows)))
    <table id="table-t" class="clml-table">
    <caption>A title</caption>
    <thead><tr><th scope="col">dataset</th><th scope="col">A</th></tr></thead>
    <tbody>
    <tr><th scope="row">&lt;</th><td class="number" data-value="0.5">0.500</td></tr>
    </tbody>
    </table>
    <BLANKLINE>
    """
    heads = "".join(
        f'<th scope="col">{html.escape(name)}</th>' for name in table.columns
    )
    lines = [
        f'<table id="table-{html.escape(table.name)}" class="clml-table">',
        f"<caption>{html.escape(table.title)}</caption>",
        f"<thead><tr>{heads}</tr></thead>",
        "<tbody>",
    ]
    for row in table.rows:
        cells = [_html_cell(cell, "td" if i else "th") for i, cell in enumerate(row)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines += ["</tbody>", "</table>"]
    lines += [f'<p class="note">{html.escape(note)}</p>' for note in table.notes]
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": to_markdown,
    "tex": to_latex,
    "csv": to_csv,
    "html": to_html,
}

"""The command that writes the page of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .support import check_output, force_option, json_option, print_json, say


@click.command()
@click.argument(
    "results", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Where the HTML page goes; by default report.html in RESULTS.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Tables and figures, too, in the folders tables and figures of RESULTS.",
)
@force_option
@json_option
def report(
    results: Path, output: Path | None, everything: bool, force: bool, as_json: bool
) -> None:
    """Write one HTML page about the experiment in the folder RESULTS.

    The page needs no other file and no network: tables to sort, critical differences,
    trajectories, and the fronts to choose from. RESULTS is what `clml bench` and
    `clml reproduce` write to, finished or not.

    \b
    Examples:
      clml report results
      clml report results -o page.html
      clml report results --all
    """  # noqa: D301  (click reads the character)
    output = results / "report.html" if output is None else output
    check_output(output, force)
    from ..report.data import experiment_data
    from ..report.page import build_page, write_page

    if everything:
        from ..experiments import Results

        for line in write_tables_and_figures(Results.read(results), results):
            say(line)
    page = build_page(experiment_data(results))
    path = write_page(output, page, replace=force)
    if as_json:
        print_json({"page": path, "bytes": path.stat().st_size})
    else:
        click.echo(f"The page: {path}")


def write_tables_and_figures(results: Any, folder: Path) -> list[str]:
    """Write them into folders of a folder; return what was written, and what not."""
    from ..experiments import write_tables

    write_tables(results, folder / "tables")
    lines = [f"Tables are in {folder / 'tables'}."]
    try:
        from ..plots import write_figures

        _, skipped = write_figures(results, folder / "figures")
        return [*lines, f"Figures are in {folder / 'figures'}.", *skipped]
    except ImportError as error:
        return [*lines, f"No figures: {error}"]


def write_everything(results: Any, folder: Path) -> list[str]:
    """Write tables, figures and the page; return what was written, and what not."""
    lines = write_tables_and_figures(results, folder)
    try:
        from ..report import write_report

        write_report(results, folder / "report.html")
        return [*lines, f"The page is {folder / 'report.html'}."]
    except ImportError as error:
        return [*lines, f"No page: {error}"]

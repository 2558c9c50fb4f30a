"""The command that writes the page of an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from ._support import check_output, force_option, json_option, print_json


@click.command()
@click.argument(
    "results", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="report.html",
    show_default=True,
    help="Where the HTML page goes.",
)
@force_option
@json_option
def report(results: Path, output: Path, force: bool, as_json: bool) -> None:
    """Write one HTML page about the experiment in the folder RESULTS.

    The page needs no other file and no network: tables to sort, critical differences,
    trajectories, and the fronts to choose from. RESULTS is what `clml bench` and
    `clml reproduce` write to, finished or not.

    \b
    Examples:
      clml report results
      clml report results -o page.html
    """  # noqa: D301  (click reads the character)
    check_output(output, force)
    from ..report import write_report

    path = write_report(results, output)
    if as_json:
        print_json({"page": path, "bytes": path.stat().st_size})
    else:
        click.echo(f"The page: {path}")

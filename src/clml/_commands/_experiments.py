"""The commands that run experiments."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def _folder(default: str | None) -> Callable[..., Any]:
    # None would be a default of its own, and the option not required.
    chosen: dict[str, Any] = {"default": default, "show_default": True}
    return click.option(
        "-o",
        "--output",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        **({"required": True} if default is None else chosen),
        help="Folder of the results; a run goes on where the last one ended.",
    )


def _shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            default=None,
            help="Processes at a time. [default: one for each core]",
        ),
        click.option("--dask", help="Address of a dask scheduler to run the jobs on."),
        click.option("--retry-failed", is_flag=True, help="Run again what has failed."),
        click.option(
            "--download",
            is_flag=True,
            help="Fetch the files of known datasets that are missing.",
        ),
        click.option(
            "--json", "as_json", is_flag=True, help="Print a summary as JSON."
        ),
        click.option("--quiet", is_flag=True, help="Show no progress."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_folder(None)
@_shared_options
def bench(plan: Path, folder: Path, **options: Any) -> None:
    """Run the experiment of a plan, a TOML file.

    Every job runs in a process of its own; a crash or a time-out ends that job alone.
    What is in the folder already is not run again. A plan may name any class that can
    be imported: run only those whose methods you trust. The exit code is 1 if a job
    failed.

    \b
    A plan, in TOML (docs/command-line.md has more):
      datasets = ["flags", {name = "mine", path = "mine.csv", labels = ["a", "b"]}]
      splits = 5
      [methods]
      CLML = {}
      MLkNN = {settings = {n_neighbors = 20}}
      trees = {estimator = "sklearn.ensemble:ExtraTreesClassifier"}
    """  # noqa: D301  (click reads the character)
    from ..experiments.plan import read_plan

    try:
        found = read_plan(plan)
    except (TypeError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    results = _run(found, folder, **options)
    if not options["quiet"]:
        told = f"`clml report {folder} --all` makes tables, figures, a page."
        click.echo(told, err=True)
    sys.exit(_exit_code(results))


@click.command()
@_folder("clml-results")
@click.option("--quick", is_flag=True, help="A shortened run, of some minutes.")
@click.option(
    "--datasets",
    multiple=True,
    metavar="NAME",
    help="Only this dataset; may be given several times, or names with commas.",
)
@click.option(
    "--methods",
    multiple=True,
    metavar="NAME",
    help="Only this method; may be given several times, or names with commas.",
)
@click.option("--splits", type=click.IntRange(min=1), help="How many.")
@_shared_options
def reproduce(
    folder: Path,
    quick: bool,
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    splits: int | None,
    **options: Any,
) -> None:
    """Run the paper's comparison; write its tables, figures and a page.

    Datasets whose files are not on this machine are left out.
    """
    from ..experiments.builtin import reproduce_plan

    try:
        plan, messages = reproduce_plan(
            quick=quick,
            datasets=_listed(datasets),
            methods=_listed(methods),
            splits=splits,
            download=options["download"],
        )
    except (TypeError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for message in messages:
        click.echo(message, err=True)
    results = _run(plan, folder, **options)
    for line in _write_everything(results, folder, quick):
        click.echo(line, err=True)
    sys.exit(_exit_code(results))


def _listed(names: tuple[str, ...]) -> list[str] | None:
    found = [part.strip() for name in names for part in name.split(",")]
    return [name for name in found if name] or None


def _run(
    plan: Any,
    folder: Path,
    *,
    jobs: int | None,
    dask: str | None,
    retry_failed: bool,
    download: bool,
    as_json: bool,
    quiet: bool,
) -> Any:
    from joblib import cpu_count

    from ..experiments.runner import run_experiment

    try:
        results = run_experiment(
            plan,
            folder,
            jobs=jobs or (1 if dask else cpu_count()),
            dask=dask,
            progress=not quiet,
            retry_failed=retry_failed,
            download=download,
        )
    except KeyboardInterrupt:
        click.echo(
            f"Interrupted. What is finished is kept in {folder}: run the same command "
            "again to go on.",
            err=True,
        )
        sys.exit(130)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(_as_json(results) if as_json else _summary(results, folder))
    return results


def _as_json(results: Any) -> str:
    means = {
        loss: {
            dataset: {
                method: None if value != value else float(value)
                for method, value in zip(results.methods, row, strict=True)
            }
            for dataset, row in zip(results.datasets, results.table(loss), strict=True)
        }
        for loss in results.losses
    }
    return json.dumps(
        {
            "done": len(results.done),
            "failed": [
                {k: r[k] for k in ("dataset", "method", "split", "seed", "reason")}
                for r in results.failed
            ],
            "means": means,
        },
        indent=1,
    )


def _summary(results: Any, folder: Path) -> str:
    """Return the means of the first losses, and what failed, as text."""
    lines = []
    width = max(map(len, results.methods))
    for loss in results.losses[:3]:
        lines.append(f"{loss}, mean over the splits, smaller is better")
        lines.append(
            " " * width + "".join(f"  {d[:12]:>12s}" for d in results.datasets)
        )
        for method, row in zip(results.methods, results.table(loss).T, strict=True):
            cells = ["" if value != value else f"{value:.4f}" for value in row]
            lines.append(f"{method:{width}s}" + "".join(f"  {c:>12s}" for c in cells))
        lines.append("")
    for record in results.failed:
        lines.append(
            f"failed: {record['dataset']}, {record['method']}, split "
            f"{record['split']}: {record['reason']}"
        )
    lines.append(f"{len(results.done)} done, {len(results.failed)} failed: {folder}")
    return "\n".join(lines)


def _write_everything(results: Any, folder: Path, quick: bool) -> list[str]:
    """Write all that the paper has; return what was written, and what not."""
    from ..experiments import consistency_study
    from ._report import write_everything

    click.echo("Learners against the Bayes values of known data ...", err=True)
    consistency_study(path=folder / "consistency.csv", quick=quick)
    return write_everything(results, folder)


def _exit_code(results: Any) -> int:
    """Return 1 where a job failed, so that scripts notice."""
    return 1 if results.failed else 0

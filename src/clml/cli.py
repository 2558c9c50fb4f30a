"""The command line: parses, calls the library, prints."""

from __future__ import annotations

from pathlib import Path

import click

from ._commands.support import (
    CommandGroup,
    LazyCommand,
    check_output,
    debug_option,
    json_option,
    print_json,
)
from ._version import __version__

# Their modules are imported when they are called.
_LAZY = {
    "bench": LazyCommand("._experiments", "bench", "Run the experiments of a plan."),
    "evaluate": LazyCommand(
        "._models", "evaluate", "Print the losses of a model on data with labels."
    ),
    "front": LazyCommand("._models", "front", "List the models that training found."),
    "predict": LazyCommand(
        "._models", "predict", "Predict the labels of data with a model."
    ),
    "report": LazyCommand(
        "._report", "report", "Write a page about results of experiments."
    ),
    "reproduce": LazyCommand(
        "._experiments", "reproduce", "Run the experiments of the paper."
    ),
    "train": LazyCommand(
        "._train", "train", "Train CLML on a known dataset or a file."
    ),
    "tune": LazyCommand(
        "._train", "tune", "Tune any classifier for several losses at once."
    ),
}


@click.group(
    cls=CommandGroup,
    lazy=_LAZY,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="clml")
@debug_option
def main() -> None:
    """Multi-label classification by the Lebesgue measure of several losses.

    \b
    A first model, and what it is worth:
      clml train emotions --part train -o emotions.clml
      clml evaluate emotions.clml emotions --part test
      clml front emotions.clml
      clml predict emotions.clml new.csv -o labels.csv

    Exit codes: 0 done, 1 something is wrong with data or model, 2 wrong usage, 130
    interrupted.
    """  # noqa: D301  (click reads the character)


@main.command()
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Epochs of CLML.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of data and training.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default="clml-demo.html",
    show_default=True,
    help="Where the HTML page goes.",
)
@debug_option
def demo(epochs: int, seed: int, page: Path) -> None:
    """Train on data with known Bayes risks, print the losses, write a page."""
    check_output(page, force=True, hint="--page")
    from ._commands.demo import run_demo

    run_demo(max_epochs=epochs, seed=seed, page=page)


@main.command()
@json_option
def losses(as_json: bool) -> None:
    """List the losses and what each may be used for."""
    from .losses import get_loss, list_losses

    found = []
    for name in list_losses():
        loss = get_loss(name)
        summary = (type(loss).__doc__ or "").strip().splitlines()[0]
        found.append({"name": name, "role": loss.role, "summary": summary})
    if as_json:
        print_json(found)
        return
    for row in found:
        click.echo(f"{row['name']:26s} {row['role']:11s} {row['summary']}")


@main.command()
@click.option(
    "--data-home",
    type=click.Path(file_okay=False),
    default=None,
    help="Where the files are. By default CLML_DATA, then the user's cache.",
)
@json_option
def datasets(data_home: str | None, as_json: bool) -> None:
    """List the known datasets, their figures, and where their files are."""
    if as_json:
        print_json(_dataset_records(data_home))
        return
    from rich.console import Console

    from .datasets.catalogue import dataset_legend, dataset_table

    console = Console(highlight=False)
    console.print(dataset_table(data_home))
    console.print()
    console.print(dataset_legend(data_home), soft_wrap=True)


def _dataset_records(data_home: str | None) -> list[dict[str, object]]:
    """Return what the table of datasets shows, and the paths of their files."""
    from .datasets.data_dirs import data_homes, find_file
    from .datasets.registry import registry

    homes = data_homes(data_home)
    records: list[dict[str, object]] = []
    for name, entry in registry().items():
        paths = [find_file(homes, name, part) for part in entry.parts("all")]
        records.append(
            {
                "name": name,
                "title": entry.title,
                "rows": entry.n_instances,
                "features": entry.n_features,
                "labels": entry.n_labels,
                "cardinality": entry.cardinality,
                "verified": entry.verified,
                "files": [str(path) for path in paths if path] if all(paths) else [],
            }
        )
    return records

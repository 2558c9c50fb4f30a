"""The command line: parses, calls the library, prints."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ._version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="clml")
def main() -> None:
    """Multi-label classification by the Lebesgue measure of several losses."""


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
def demo(epochs: int, seed: int, page: Path) -> None:
    """Train on data with known Bayes risks, print the losses, write a page."""
    folder = page.absolute().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        # Said before the training, not after it.
        raise click.BadParameter(
            f"{page} must be in an existing folder that can be written.",
            param_hint="--page",
        )
    from ._demo import run_demo

    run_demo(max_epochs=epochs, seed=seed, page=page)


@main.command()
def losses() -> None:
    """List the losses and what each may be used for."""
    from .losses import get_loss, list_losses

    for name in list_losses():
        loss = get_loss(name)
        summary = (type(loss).__doc__ or "").strip().splitlines()[0]
        click.echo(f"{name:26s} {loss.role:11s} {summary}")


@main.command()
@click.option(
    "--data-home",
    type=click.Path(file_okay=False),
    default=None,
    help="Where the files are. By default CLML_DATA, then the user's cache.",
)
def datasets(data_home: str | None) -> None:
    """List the known datasets, their figures, and where their files are."""
    from rich.console import Console

    from .datasets._catalogue import dataset_legend, dataset_table

    console = Console(highlight=False)
    console.print(dataset_table(data_home))
    console.print()
    console.print(dataset_legend(data_home), soft_wrap=True)

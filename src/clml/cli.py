"""The command line: parses, calls the library, prints."""

from __future__ import annotations

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
    default=1000,
    show_default=True,
    help="Generations.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of data and search.",
)
def demo(epochs: int, seed: int) -> None:
    """Train on generated data and print the losses of what came out."""
    from ._demo import run_demo

    run_demo(max_epochs=epochs, seed=seed)


@main.command()
def losses() -> None:
    """List the losses and what each may be used for."""
    from .losses import get_loss, list_losses

    for name in list_losses():
        loss = get_loss(name)
        summary = (type(loss).__doc__ or "").strip().splitlines()[0]
        click.echo(f"{name:26s} {loss.role:11s} {summary}")

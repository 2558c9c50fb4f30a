"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ._data import DELIMITERS, FORMATS

_Command = TypeVar("_Command", bound=Callable[..., Any])
DEFAULT_LOSSES = "hamming,lrap,micro_f1"


def _options(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return one decorator of several, the first of which is shown first."""

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


data_argument = click.argument("data", metavar="DATA")
model_argument = click.argument(
    "model", type=click.Path(dir_okay=False, path_type=Path), metavar="MODEL"
)
format_options = _options(
    click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        help="Format of DATA, if its suffix does not tell.",
    ),
    click.option(
        "--delimiter",
        type=click.Choice(tuple(DELIMITERS)),
        help="What parts the fields of a CSV file.  [default: comma, tab in .tsv]",
    ),
)
labels_option = click.option(
    "--labels",
    metavar="XML|NAMES|COUNT",
    help="Which columns are labels: an XML file of MULAN, a .txt file with a name a "
    "line, names with commas between them, a prefix such as 'topic_*', or how many "
    "(2: the first two, -2: the last two).",
)
part_options = _options(
    click.option(
        "--part",
        type=click.Choice(("all", "train", "test")),
        default="all",
        show_default=True,
        help="All rows, or the 70 % or 30 % of a stratified division.",
    ),
    click.option(
        "--split-seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Which division; the same seed gives the same rows.",
    ),
)
fit_options = _options(
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        required=True,
        metavar="MODEL",
        help="The file that the model goes to.",
    ),
    click.option(
        "--losses",
        default=DEFAULT_LOSSES,
        show_default=True,
        help="What to minimise; `clml losses` lists what there is.",
    ),
    labels_option,
    click.option("--epochs", type=click.IntRange(min=1), help="Epochs of the search."),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="The same seed gives the same model.",
    ),
    click.option(
        "--jobs",
        type=int,
        default=1,
        show_default=True,
        help="Threads; -1 for all cores.",
    ),
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other setting of the estimator; may be repeated.",
)
unknown_option = click.option(
    "--unknown",
    type=click.Choice(("error", "ignore")),
    default="error",
    show_default=True,
    help="Whether words in a column that training did not see are refused or left out.",
)
use_options = _options(
    click.option(
        "--select",
        metavar="RULE",
        help="Which model of the front: a loss, knee, geometric_mean, mean, final, a "
        "number, or weights such as 'hamming=1,micro_f1=2'.  [default: the one that "
        "training chose]",
    ),
    click.option(
        "--trust",
        multiple=True,
        metavar="TYPE",
        help="Accept a type from outside clml, scikit-learn, NumPy and SciPy in a "
        "tuned model; may be repeated. Such a type can run any code.",
    ),
)

"""The commands train and tune."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from ._data import Data, Source, find_source, parse_labels, read_data
from ._options import (
    data_argument,
    fit_options,
    format_options,
    part_options,
    set_option,
)
from ._settings import (
    LEARNERS,
    find_learner,
    for_labels,
    parse_losses,
    parse_settings,
)
from .support import (
    INTERRUPTED,
    EpochBar,
    check_output,
    force_option,
    json_option,
    keep_model,
    print_json,
    say,
    working,
)

# What settings of the classifier that is tuned begin with.
_OF_LEARNER = "estimator__"


def _training_data(
    source: Source, labels: str | None, part: str, split_seed: int
) -> Data:
    from ._rows import fingerprint, take_part

    data = read_data(source, parse_labels(labels))
    data.reading["rows"] = {
        "sha256": fingerprint(data),
        "part": part,
        "split_seed": split_seed,
    }
    return take_part(data, part, split_seed)


def _fit(model: Any, source: Source, data: Data) -> float:
    """Fit a model that then knows the names of the data; return the seconds."""
    import numpy as np
    from sklearn.utils import get_tags

    from ._rows import named_labels, refuse_missing

    refuse_missing(source, data, get_tags(model).input_tags.allow_nan)
    more = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
    began = time.perf_counter()
    model.fit(data.X, named_labels(data), **more)
    if data.feature_names is not None:
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    # How a second file is to be read, so that its columns are these columns.
    model.data_reading_ = data.reading
    return time.perf_counter() - began


def _judges(model: Any) -> str:
    """Return which rows the losses of the front are those of."""
    if getattr(model, "validation_fraction", 1) == 0 and not hasattr(
        model, "networks_"
    ):
        return "the training rows"
    return "rows that were held out"


def _report_fit(
    model: Any,
    wanted: Path,
    path: Path,
    data: Data,
    seconds: float,
    as_json: bool,
    **more: Any,
) -> None:
    front = model.front_
    best = dict(zip(front.loss_names, front.losses.min(axis=0).tolist(), strict=True))
    result = {
        "model": path,
        "estimator": type(model).__name__,
        "rows": data.X.shape[0],
        "features": data.X.shape[1],
        "labels": data.label_names,
        "epochs": model.n_epochs_,
        "seconds": round(seconds, 3),
        "front": len(front),
        "best": best,
        "interrupted": model.interrupted_,
        **more,
    }
    if as_json:
        print_json(result)
    else:
        click.echo(
            f"{result['rows']:,} rows, {result['features']:,} features, "
            f"{len(data.label_names)} labels; {model.n_epochs_} epochs in "
            f"{seconds:.1f} s."
        )
        models = "one model" if len(front) == 1 else f"{len(front)} models"
        values = ", ".join(f"{name} {value:.4f}" for name, value in best.items())
        click.echo(
            f"A front of {models}. The best of each loss, on {_judges(model)}: "
            f"{values}."
        )
        click.echo(f"The model: {path}")
    if model.interrupted_:
        say("Interrupted: the model is that of the epochs so far.")
        click.get_current_context().exit(INTERRUPTED)
    if path != wanted:
        say(f"Error: {wanted} appeared during the training: the model is in {path}.")
        click.get_current_context().exit(1)


@click.command()
@data_argument
@fit_options
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or auto.")
@click.option("--paper", is_flag=True, help="The settings of the paper.")
@set_option
@part_options
@format_options
@force_option
@json_option
def train(
    data: str,
    output: Path,
    losses: str,
    labels: str | None,
    epochs: int | None,
    seed: int,
    jobs: int,
    device: str,
    paper: bool,
    settings: tuple[str, ...],
    part: str,
    split_seed: int,
    form: str | None,
    delimiter: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Train CLML on DATA: a known dataset, or an ARFF, CSV, Parquet or svmlight file.

    \b
    Examples:
      clml train emotions -o emotions.clml
      clml train emotions --part train -o emotions.clml
      clml train songs.csv --labels 'mood_*' -o songs.clml --jobs -1
      clml train songs.arff --labels songs.xml --losses hamming,macro_f1 -o songs.clml
      clml train yeast -o yeast.clml --epochs 50 --set n_members=4
      clml train yeast -o yeast.clml --set search=cma --set search.sigma0=0.5
    """  # noqa: D301  (click reads the character)
    check_output(output, force)
    from .._classifier import PAPER_SETTINGS, CLMLClassifier

    model = CLMLClassifier(**PAPER_SETTINGS if paper else {})
    chosen = parse_settings(settings, model.get_params())
    if epochs is not None:
        chosen["max_epochs"] = epochs
    model.set_params(
        losses=parse_losses(losses), random_state=seed, n_jobs=jobs, device=device
    )
    try:
        model.set_params(**chosen)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    source = find_source(data, form, delimiter)
    rows = _training_data(source, labels, part, split_seed)
    if hasattr(model, "set_callbacks"):  # scikit-learn 1.9 or newer
        model.set_callbacks(EpochBar())
    with working(f"Training on {rows.X.shape[0]:,} rows ...", spins=False):
        seconds = _fit(model, source, rows)
    path = keep_model(model, output, force)
    _report_fit(model, output, path, rows, seconds, as_json)


@click.command()
@data_argument
@click.option(
    "--estimator",
    default="random_forest",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(LEARNERS)}, or package.module:Class.",
)
@fit_options
@set_option
@part_options
@format_options
@force_option
@json_option
def tune(
    data: str,
    estimator: str,
    output: Path,
    losses: str,
    labels: str | None,
    epochs: int | None,
    seed: int,
    jobs: int,
    settings: tuple[str, ...],
    part: str,
    split_seed: int,
    form: str | None,
    delimiter: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Tune the scores of any scikit-learn classifier for several losses at once.

    The classifier in the model is written by skops (pip install 'clml[persist]'). Its
    settings begin with "estimator__".

    \b
    Examples:
      clml tune emotions --estimator random_forest -o forest.clml
      clml tune emotions -o forest.clml --set estimator__n_estimators=50 --set cv=3
      clml tune yeast --estimator sklearn.neighbors:KNeighborsClassifier -o knn.clml
    """  # noqa: D301  (click reads the character)
    check_output(output, force)
    from .._tuned import LebesgueTunedClassifier
    from ._store import import_skops, strangers_in

    import_skops()  # said before the training, not after it
    learner = find_learner(estimator, seed)
    known = {_OF_LEARNER + name for name in learner.get_params()}
    known |= set(LebesgueTunedClassifier._get_param_names())
    chosen = parse_settings(settings, known)
    for name in [name for name in chosen if name.startswith(_OF_LEARNER)]:
        learner.set_params(**{name.removeprefix(_OF_LEARNER): chosen.pop(name)})
    if epochs is not None:
        chosen["max_epochs"] = epochs
    model = LebesgueTunedClassifier(
        for_labels(learner),
        losses=parse_losses(losses),
        random_state=seed,
        n_jobs=jobs,
        **chosen,
    )
    source = find_source(data, form, delimiter)
    rows = _training_data(source, labels, part, split_seed)
    with working(f"Tuning {estimator} on {rows.X.shape[0]:,} rows ..."):
        seconds = _fit(model, source, rows)
    path = keep_model(model, output, force)
    strangers = strangers_in(path)
    if strangers:
        options = " ".join(f"--trust {name}" for name in strangers)
        say(f"Its types are not all of scikit-learn: to use the model, add {options}")
    _report_fit(model, output, path, rows, seconds, as_json, trust=strangers)

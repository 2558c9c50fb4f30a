"""The commands that use a model: predict, evaluate and front."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import IO, Any

import click

from .._support.csv_cells import write_cells
from ._data import (
    Data,
    LabelChoice,
    Source,
    find_source,
    parse_labels,
    read_data,
    read_rows,
)
from ._options import (
    DEFAULT_LOSSES,
    data_argument,
    format_options,
    labels_option,
    model_argument,
    part_options,
    unknown_option,
    use_options,
)
from ._settings import parse_losses, selected
from .support import check_output, force_option, json_option, print_json, say


def _reading_of(model: Any) -> dict[str, Any]:
    """Return how the training data were read; it has been in a file meanwhile."""
    reading = getattr(model, "data_reading_", None)
    return reading if isinstance(reading, dict) else {}


def _open(model: Path, trust: tuple[str, ...], select: str | None) -> tuple[Any, Any]:
    """Return a model, and the names of its features if it has them.

    Columns are matched here by their names. Without them the model takes arrays and
    does not warn that these have none.
    """
    from ._store import load_model

    found = selected(load_model(model, trust), select)
    names = vars(found).pop("feature_names_in_", None)
    return found, None if names is None else [str(name) for name in names]


def _write_csv(file: IO[str], names: list[str], values: Any) -> None:
    write_cells(file, [names])
    write_cells(file, values.tolist())


def _column_shape(values: Any) -> Any:
    """Return (n, K) of what a model of one label gives as (n,)."""
    return values[:, None] if values.ndim == 1 else values


@click.command()
@model_argument
@data_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    default="-",
    help="The CSV file that predictions go to.  [default: stdout]",
)
@click.option(
    "--proba", "what", flag_value="predict_proba", help="Probabilities, not labels."
)
@click.option(
    "--scores",
    "what",
    flag_value="decision_function",
    help="Logits: positive where a label is predicted.",
)
@use_options
@unknown_option
@format_options
@force_option
@json_option
def predict(
    model: Path,
    data: str,
    output: Path,
    what: str | None,
    select: str | None,
    trust: tuple[str, ...],
    unknown: str,
    form: str | None,
    delimiter: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the labels of DATA with MODEL: a CSV file with a column for each label.

    DATA needs no labels. Its columns are found by their names, in any order; columns
    that the model does not know are left out. Names and classes that a spreadsheet
    would take for formulas have an apostrophe before them; --json has them as they are.

    \b
    Examples:
      clml predict songs.clml new.csv -o labels.csv
      clml predict songs.clml new.csv --proba --select micro_f1 -o probabilities.csv
      clml predict songs.clml new.csv --select 'hamming=1,micro_f1=2'
    """  # noqa: D301  (click reads the character)
    to_file = str(output) != "-"
    if to_file:
        check_output(output, force)
    from sklearn.utils import get_tags

    from ._rows import match_features, refuse_missing

    clf, wanted = _open(model, trust, select)
    source = find_source(data, form, delimiter)
    names = [str(name) for name in clf.label_names_]
    rows = read_rows(source, _reading_of(clf), clf.n_features_in_, unknown)
    rows = match_features(source, rows, wanted, clf.n_features_in_, names)
    refuse_missing(source, rows, get_tags(clf).input_tags.allow_nan)
    values = getattr(clf, what or "predict")(rows.X)
    if what == "predict_proba" and not isinstance(clf.classes_, list):
        values = values[:, 1]  # of two classes the second is the label
    values = _column_shape(values)
    if to_file:
        from .._support.atomic import atomic_texts

        with atomic_texts(output, replace=force) as [file]:
            _write_csv(file, names, values)
    elif not as_json:
        _write_csv(sys.stdout, names, values)
    if as_json:
        kind = {"predict_proba": "probabilities", "decision_function": "scores"}
        result: dict[str, Any] = {"rows": len(values), "labels": names}
        result["kind"] = kind.get(what or "", "labels")
        result |= {"output": output} if to_file else {"values": values}
        print_json(result)
    elif to_file:
        say(f"{len(values):,} rows, {len(names)} labels: {output}")


def _evaluation_labels(clf: Any, source: Source, labels: str | None) -> LabelChoice:
    """Return which columns hold the labels of a model: those of its names."""
    names = tuple(str(name) for name in clf.label_names_)
    numbered = _reading_of(clf).get("numbered", False)
    generic = names == tuple(f"label{k}" for k in range(len(names)))
    if labels is not None or source.path is None or numbered or generic:
        return parse_labels(labels)
    return LabelChoice(names=names)


def _warn_of_trained_rows(clf: Any, data: Data, part: str, split_seed: int) -> None:
    from ._rows import fingerprint

    trained = _reading_of(clf).get("rows")
    if not isinstance(trained, dict) or trained.get("sha256") != fingerprint(data):
        return
    apart = {trained.get("part"), part} == {"train", "test"}
    if not (apart and trained.get("split_seed") == split_seed):
        say(
            "Warning: the model was trained on these rows or some of them, and its "
            "losses on others will be larger. Train with --part train and evaluate "
            "with --part test, of the same --split-seed."
        )


def _known_losses(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the losses that are known by name; those of somebody's own are not."""
    from ..losses import get_loss

    known, others = [], []
    for name in names:
        try:
            known.append(get_loss(name).name)
        except ValueError:
            others.append(name)
    if others:
        left_out = ", ".join(others)
        say(f"Left out: {left_out}, which the model was given as code.")
    return tuple(known)


@click.command()
@model_argument
@data_argument
@click.option(
    "--losses",
    help="Which losses, with commas between them.  [default: those it was trained on]",
)
@use_options
@unknown_option
@labels_option
@part_options
@format_options
@json_option
def evaluate(
    model: Path,
    data: str,
    losses: str | None,
    select: str | None,
    trust: tuple[str, ...],
    unknown: str,
    labels: str | None,
    part: str,
    split_seed: int,
    form: str | None,
    delimiter: str | None,
    as_json: bool,
) -> None:
    """Print the losses of MODEL on DATA, which has labels; smaller is better.

    \b
    Examples:
      clml evaluate emotions.clml emotions --part test
      clml evaluate songs.clml test.csv --losses hamming,macro_f1,ranking_loss
      clml evaluate songs.clml test.csv --select knee --json
    """  # noqa: D301  (click reads the character)
    from sklearn.utils import get_tags

    from ..losses import loss_values
    from ._rows import match_features, match_labels, refuse_missing, take_part

    clf, wanted = _open(model, trust, select)
    names = parse_losses(losses or DEFAULT_LOSSES)
    if losses is None and hasattr(clf, "front_"):
        names = _known_losses(clf.front_.loss_names) or names
    source = find_source(data, form, delimiter)
    choice = _evaluation_labels(clf, source, labels)
    rows = read_data(source, choice, _reading_of(clf), clf.n_features_in_, unknown)
    rows = match_features(source, rows, wanted, clf.n_features_in_)
    rows = match_labels(source, rows, [str(name) for name in clf.label_names_])
    refuse_missing(source, rows, get_tags(clf).input_tags.allow_nan)
    _warn_of_trained_rows(clf, rows, part, split_seed)
    rows = take_part(rows, part, split_seed)
    scores = _column_shape(clf.decision_function(rows.X))
    values = loss_values(rows.Y, scores, names, rows.sample_weight)
    found = dict(zip(names, values.tolist(), strict=True))
    if as_json:
        print_json({"rows": len(scores), "labels": rows.label_names, "losses": found})
        return
    click.echo(f"{len(scores):,} rows, {len(rows.label_names)} labels")
    width = max(map(len, found))
    for name, value in found.items():
        click.echo(f"{name:{width}s}  {value:.6f}")


def _members(front: Any) -> list[dict[str, Any]]:
    """Return the members of a front, and what each of them is best for."""
    from .._maps.front import RULES

    best: dict[int, list[str]] = {}
    for rule in (*front.loss_names, *RULES):
        best.setdefault(front.choice(rule)[0], []).append(rule)

    def named(values: Any) -> dict[str, float | None]:
        numbers = [v if math.isfinite(v) else None for v in values.tolist()]
        return dict(zip(front.loss_names, numbers, strict=True))

    return [
        {
            "member": number,
            "losses": named(losses),
            "standard_errors": named(errors),
            "rule": rule,
            "best_for": best.get(number, []),
        }
        for number, (losses, errors, rule) in enumerate(
            zip(front.losses, front.standard_error, front.rules, strict=True)
        )
    ]


def _loss_cell(loss: float, error: float | None, name: str) -> str:
    cell = f"{loss:.4f}" if error is None else f"{loss:.4f} ±{error:.4f}"
    return f"{cell:>{max(10, len(name), len(cell))}}"


@click.command()
@model_argument
@use_options
@json_option
def front(
    model: Path, select: str | None, trust: tuple[str, ...], as_json: bool
) -> None:
    """List the models that training found, of which none is better in every loss.

    Their losses are what to expect on new rows, give or take a standard error. Without
    errors, as of the paper's settings, they are those on rows that training chose by:
    with few rows too good, and evaluate on others tells. --select marks the one that a
    rule prefers; predict and evaluate take the same rules. Some models decide whole
    rows: by at least one label, the k highest, or the best prefix of a row's ranking.

    \b
    Examples:
      clml front emotions.clml
      clml front emotions.clml --select 'hamming=1,micro_f1=2'
    """  # noqa: D301  (click reads the character)
    clf, _ = _open(model, trust, select)
    if not hasattr(clf, "front_"):
        raise ValueError(f"{model}: a {type(clf).__name__} has no front.")
    members = _members(clf.front_)
    chosen = clf.incumbent_
    if chosen == "mean" and clf.front_.default is not None:
        chosen = clf.front_.default
    if as_json:
        print_json(
            {"losses": clf.front_.loss_names, "predicts": chosen, "members": members}
        )
        return
    names = clf.front_.loss_names
    lines = [
        [
            _loss_cell(member["losses"][name], member["standard_errors"][name], name)
            for name in names
        ]
        for member in members
    ]
    heads = [f"{n:>{len(cell)}s}" for n, cell in zip(names, lines[0], strict=True)]
    if any(clf.front_.rules):
        heads.append(f"{'rows by':12s}")
        for member, cells in zip(members, lines, strict=True):
            cells.append(f"{member['rule'] or '':12s}")
    click.echo("  ".join(["member", *heads, "best for"]))
    for member, cells in zip(members, lines, strict=True):
        number = member["member"]
        mark = "*" if number == chosen else " "
        line = "  ".join([f"{mark}{number:5d}", *cells, ", ".join(member["best_for"])])
        click.echo(line.rstrip())
    rule = "select" if select is not None else "the model that training chose"
    if isinstance(chosen, str):
        click.echo(f"Predicts: {chosen!r}, {rule}, which is no member of the front.")
    else:
        click.echo(f"Predicts: member {chosen}, marked with * ({rule}).")

"""The DATA of a command: a known dataset or a file, with labels or without."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from .._support.paths import open_regular
from .support import say

# Everything else of the library is imported where it is used: `clml --help` imports
# this module, and should not wait for NumPy.

FORMATS = ("arff", "csv", "parquet", "svmlight", "xc")
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "colon": ":"}
_SUFFIXES = {
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_COMPRESSED = (".xz", ".bz2", ".gz", ".zip")
_THREE_COUNTS = re.compile(rb"\s*\d+[ \t]+\d+[ \t]+\d+\s*")
_COUNT = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class Source:
    """Where data come from.

    Attributes
    ----------
    given : str
        As the user wrote it.
    path : Path or None
        The file; None for a known dataset.
    kind : str
        One of FORMATS, or "dataset".
    delimiter : str
        Of a CSV file.
    """

    given: str
    path: Path | None
    kind: str
    delimiter: str = ","


@dataclass(frozen=True)
class LabelChoice:
    """What --labels says; at most one of these is not None."""

    names: tuple[str, ...] | None = None
    prefix: str | None = None
    count: int | None = None
    xml: Path | None = None


@dataclass(frozen=True, eq=False)
class Data:
    """Rows as a learner takes them.

    Attributes
    ----------
    X : array or csr_array (n, D)
    Y : integer array (n, K)
        Of no columns where labels were not read.
    feature_names : list of str or None
        None where columns have numbers only.
    label_names : list of str
    sample_weight : array (n,) or None
    reading : dict
        How the file was read, so that others can be read alike: see ``read_data``.
    """

    X: Any
    Y: Any
    feature_names: list[str] | None
    label_names: list[str]
    sample_weight: Any = None
    reading: dict[str, Any] = field(default_factory=dict)


# --- what the user wrote ---------------------------------------------------------


def _kind_of(path: Path, delimiter: str | None) -> tuple[str | None, str]:
    """Return the format that a name tells, if it does, and the delimiter."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    parts = DELIMITERS.get(delimiter or "", "\t" if suffix == ".tsv" else ",")
    if suffix == ".txt":
        from ..datasets.files import read_file

        first_line = read_file(path, ".txt")[:200].partition(b"\n")[0]
        return "xc" if _THREE_COUNTS.fullmatch(first_line) else "svmlight", parts
    return _SUFFIXES.get(suffix), parts


def find_source(
    given: str, form: str | None = None, delimiter: str | None = None
) -> Source:
    """Return the file or the known dataset that DATA stands for.

    Parameters
    ----------
    given : str
        A file, or else the name of a dataset.
    form : str or None
        One of FORMATS; None: told by the suffix.
    delimiter : str or None
        One of DELIMITERS; None: told by the suffix.
    """
    path = Path(given)
    if path.exists():
        kind, parts = _kind_of(path, delimiter)
        kind = form or kind
        if kind is None:
            raise click.BadParameter(
                f"the suffix of {path.name!r} does not tell its format. Say it with "
                f"--format, one of {', '.join(FORMATS)}.",
                param_hint="DATA",
            )
        return Source(given, path, kind, parts)
    from ..datasets import list_datasets

    known = list_datasets()
    if given.lower() in known:
        return Source(given.lower(), None, "dataset")
    near = difflib.get_close_matches(given.lower(), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise click.BadParameter(
        f"there is no file {given!r}, and no known dataset of that name.{hint} "
        "`clml datasets` lists those.",
        param_hint="DATA",
    )


def parse_labels(text: str | None) -> LabelChoice:
    """Return what --labels says.

    Examples
    --------
    >>> from clml._commands._data import parse_labels
    >>> parse_labels("rain, wind").names
    ('rain', 'wind')
    >>> parse_labels("-6").count, parse_labels("topic_*").prefix
    (-6, 'topic_')
    """
    if text is None:
        return LabelChoice()
    text = text.strip()
    path = Path(text)
    if text.lower().endswith(".xml"):
        return LabelChoice(xml=path)
    if text.lower().endswith(".txt") and path.is_file():
        try:
            with open_regular(path) as file:
                lines = file.read().decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise click.BadParameter(
                f"{path}: this is no UTF-8 text ({error}).", param_hint="--labels"
            ) from None
        return LabelChoice(names=tuple(line.strip() for line in lines if line.strip()))
    if _COUNT.fullmatch(text):
        if int(text) == 0:
            raise click.BadParameter(
                "there must be labels, got 0.", param_hint="--labels"
            )
        return LabelChoice(count=int(text))
    if text.endswith("*") and "," not in text:
        return LabelChoice(prefix=text[:-1])
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise click.BadParameter(f"it names no label: {text!r}.", param_hint="--labels")
    return LabelChoice(names=names)


# --- reading ---------------------------------------------------------------------


def _header(source: Source) -> list[str]:
    """Return the names of all columns of a file that has names."""
    from ._columns import column_names_of

    assert source.path is not None
    return column_names_of(source.path, source.kind, source.delimiter)


def _named(source: Source, choice: LabelChoice) -> list[str] | None:
    """Return the names of the labels that were chosen; None if nothing was."""
    if choice.xml is not None:
        from ..datasets.files import read_file
        from ..datasets.labels_xml import parse_labels_xml

        return list(parse_labels_xml(choice.xml, read_file(choice.xml, ".xml")))
    if choice.names is not None:
        return list(choice.names)
    if choice.prefix is None and choice.count is None:
        return None
    columns = _header(source)
    if choice.prefix is not None:
        found = [name for name in columns if name.startswith(choice.prefix)]
    else:
        count = choice.count or 0
        if abs(count) >= len(columns):
            raise click.BadParameter(
                f"{source.given} has {len(columns)} columns, which cannot hold "
                f"{abs(count)} labels and a feature.",
                param_hint="--labels",
            )
        found = columns[:count] if count > 0 else columns[count:]
    if not found:
        raise click.BadParameter(
            f"no column of {source.given} begins with {choice.prefix!r}.",
            param_hint="--labels",
        )
    return found


def _read_pairs(
    source: Source, choice: LabelChoice, reading: dict[str, Any], n_features: int | None
) -> tuple[Any, dict[str, Any]]:
    """Read a file of sparse rows, whose columns have numbers and no names."""
    from ..datasets import read_svmlight, read_xc

    assert source.path is not None
    if choice.prefix is not None:
        raise click.BadParameter(
            "labels of sparse rows are numbers: expected how many there are, or a name "
            "for each.",
            param_hint="--labels",
        )
    names = _named(source, replace(choice, count=None))
    count = abs(choice.count) if choice.count is not None else None
    count = len(names) if names is not None else count
    if source.kind == "xc":
        return read_xc(source.path, label_names=names), {"numbered": names is None}
    options: dict[str, Any] = {"n_labels": count, "label_names": names}
    options["n_features"] = n_features
    zero_based = reading.get("zero_based")
    if zero_based is None:
        # Which of the two it is must be kept: indices begin at 1 unless there is a 0,
        # and a second file may happen to have none.
        try:
            bunch = read_svmlight(source.path, zero_based=False, **options)
            zero_based = False
        except ValueError:
            bunch = read_svmlight(source.path, zero_based=True, **options)
            zero_based = True
    else:
        bunch = read_svmlight(source.path, zero_based=bool(zero_based), **options)
    return bunch, {"zero_based": zero_based, "numbered": count is None}


def read_data(
    source: Source,
    choice: LabelChoice,
    reading: dict[str, Any] | None = None,
    n_features: int | None = None,
    unknown: str = "error",
) -> Data:
    """Read rows and their labels.

    Parameters
    ----------
    source : Source
    choice : LabelChoice
    reading : dict or None
        How earlier data were read: ``columns``, the schema of a CSV or Parquet file;
        ``zero_based``, where indices of an svmlight file begin; ``numbered``, whether
        its labels have no names but their numbers.
    n_features : int or None
        Number of columns, of an svmlight file.
    unknown : {"error", "ignore"}
        Whether values that ``columns`` does not have are refused or left out.

    Returns
    -------
    Data
    """
    from .. import datasets

    earlier = reading or {}
    like = earlier.get("columns")
    told: dict[str, Any] = {}
    has_names = source.kind not in ("svmlight", "xc")
    if source.path is None:
        if choice != LabelChoice():
            raise click.BadParameter(
                f"the labels of the dataset {source.given!r} are known.",
                param_hint="--labels",
            )
        bunch = datasets.load_dataset(source.given)
    elif source.kind == "arff":
        by_file = choice.xml if choice.xml is not None else _named(source, choice)
        bunch = datasets.read_arff(source.path, by_file)
    elif has_names:
        labels = _named(source, choice)
        if labels is None and like is None:
            from ..datasets.columns import there_are

            raise click.BadParameter(
                "it must say which columns are labels, as names, as a prefix such as "
                "'topic_*', or as how many (2: the first two, -2: the last two). In "
                f"{source.given} {there_are(_header(source))}",
                param_hint="--labels",
            )
        if source.kind == "csv":
            bunch = datasets.read_csv(
                source.path,
                labels,
                like=like,
                unknown=unknown,
                delimiter=source.delimiter,
            )
        else:
            bunch = datasets.read_parquet(
                source.path, labels, like=like, unknown=unknown
            )
        told = {"columns": bunch.schema}
    else:
        bunch, told = _read_pairs(source, choice, earlier, n_features)
    if not earlier:  # what the reader did with columns that a model will not have
        for note in getattr(bunch, "notes", ()):
            say(f"{source.given}: {note}")
    return Data(
        X=bunch.X,
        Y=bunch.Y,
        feature_names=list(bunch.feature_names) if has_names else None,
        label_names=list(bunch.label_names),
        sample_weight=bunch.sample_weight,
        reading=told,
    )


def read_rows(
    source: Source,
    reading: dict[str, Any],
    n_features: int | None = None,
    unknown: str = "error",
) -> Data:
    """Read rows without labels; columns that hold labels are columns like others."""
    if source.path is None or source.kind in ("svmlight", "xc"):
        data = read_data(source, LabelChoice(), reading, n_features)
        return replace(data, Y=data.Y[:, :0], label_names=[])
    from ._columns import read_columns

    X, names = read_columns(
        source.path, source.kind, source.delimiter, reading.get("columns"), unknown
    )
    return Data(X, X[:, :0], names, [])

"""ARFF files of MULAN (labels in an XML file) and of MEKA (labels in the relation)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from ._cache import cache_key, recall, store
from ._options import check_options
from .arff_header import Header, meka_label_count, parse_header, unescape
from .bunch import make_bunch
from .coding import code_table
from .files import PathLike, decompressed, fail, read_file, read_raw
from .labels_xml import parse_labels_xml
from .table import arff_table

_SUFFIXES = re.compile(r"(?:\.arff)?(?:\.(?:xz|bz2|gz|zip))?$", re.IGNORECASE)
# MULAN calls parts x-train, x-test, xTrain-1, x-train-sparse; others x_tra, x_training.
_PART = re.compile(
    r"[-_]?(?:training|train|tra|test|tst)(?:[-_]?\d+)?(?:[-_]sparse)?$", re.IGNORECASE
)


def stem(path: PathLike) -> str:
    """Return the name of a file without .arff and the suffix of its compression.

    Examples
    --------
    >>> from clml.datasets._arff import stem
    >>> stem("data/tmc2007-500.arff.xz")
    'tmc2007-500'
    """
    return _SUFFIXES.sub("", Path(path).name, count=1)


def _xml_beside(path: PathLike) -> Path | None:
    """Return the XML file of the same stem, or of the stem without -train or -test."""
    name = stem(path)
    for candidate in (name, _PART.sub("", name)):
        for suffix in (".xml", ".XML"):
            xml = Path(path).with_name(candidate + suffix)
            if xml.is_file():
                return xml
    return None


def _plain(name: str) -> str:
    """Return a label's name as both files would write it without their quotes."""
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] and name[0] in "'\"":
        name = name[1:-1]
    return unescape(name).strip()


def _columns_of(path: PathLike, header: Header, names: Sequence[str]) -> list[int]:
    """Return the attributes of the labels' names, in the order of the names."""
    exact = {a.name: n for n, a in enumerate(header.attributes)}
    plain: dict[str, list[int]] = {}
    columns = []
    for name in names:
        column = exact.get(name)
        if column is None:
            if not plain:
                for known, number in exact.items():
                    plain.setdefault(_plain(known), []).append(number)
            close = plain.get(_plain(name), [])
            column = close[0] if len(close) == 1 else None
        if column is None:
            raise fail(path, f"there is no attribute for the label {name!r}.")
        columns.append(column)
    if len(set(columns)) != len(columns):
        raise fail(path, f"labels must name each attribute once, got {list(names)}.")
    return columns


def _meka_columns(path: PathLike, header: Header, count: int) -> list[int]:
    total = len(header.attributes)
    if not 1 <= abs(count) <= total:
        raise fail(
            path,
            f"the relation says -C {count}, but there are {total} attributes.",
        )
    return list(range(count) if count > 0 else range(total + count, total))


def _names_other_labels(header: Header, columns: list[int], xml: Path) -> bool:
    """Tell whether the file beside names labels of this file, but not the columns."""
    try:
        named = parse_labels_xml(xml, read_file(xml, ".xml"))
    except (ValueError, OSError):
        return False
    all_names = [_plain(attribute.name) for attribute in header.attributes]
    labels = {_plain(name) for name in named}
    return labels <= set(all_names) and labels != {all_names[c] for c in columns}


def _find_labels(
    path: PathLike, header: Header, data: bytes, labels: Any
) -> tuple[list[int], dict[str, str | None] | None, list[str]]:
    """Return the attributes that are labels, their parents in an XML file, notes."""
    notes: list[str] = []
    if labels is None:
        count = meka_label_count(header.relation)
        xml = _xml_beside(path)
        # Without a colon it may be a filter's option and none of MEKA's.
        if count is not None and (xml is None or ":" in header.relation):
            columns = _meka_columns(path, header, count)
            if xml is None or not _names_other_labels(header, columns, xml):
                return columns, None, []
            # A count outlives filters that move or remove attributes; names do not.
            notes = [
                f"The labels are those that {xml.name} beside the file names; the "
                f"relation {header.relation[:80]!r} counts others."
            ]
        labels = xml
        if labels is None and data.startswith(b"PK"):
            labels = path  # MULAN's archives hold both files
        if labels is None:
            raise fail(
                path,
                "the labels are not known: labels is None, the relation has no "
                f"-C of MEKA, and there is no {stem(path)}.xml beside the file.",
            )
    if isinstance(labels, (str, os.PathLike)):
        if not Path(labels).exists():
            raise FileNotFoundError(
                "labels must be the path of an XML file or a list of names; there is "
                f"no file {str(labels)!r}."
            )
        parents = parse_labels_xml(labels, read_file(labels, ".xml"))
        columns = _columns_of(path, header, list(parents))
        names = dict(zip(parents, columns, strict=True))
        by_column = {c: header.attributes[c].name for c in columns}
        hierarchy = {
            by_column[names[label]]: None
            if parent is None
            else by_column[names[parent]]
            for label, parent in parents.items()
        }
        return sorted(columns), hierarchy, notes
    if not labels:
        raise ValueError("labels must name at least one attribute, got none.")
    return _columns_of(path, header, labels), None, []


def read_arff(
    path: PathLike,
    labels: PathLike | Sequence[str] | None = None,
    *,
    nominals: str = "onehot",
    drop_identifiers: bool = True,
    missing_labels: str = "error",
    max_bytes: int | None = None,
    cache: PathLike | None = None,
) -> Bunch:
    """Read a multi-label ARFF file, dense or sparse, of MULAN or MEKA.

    Parameters
    ----------
    path : str or path
        Plain, or compressed with xz, bzip2, gzip or zip.
    labels : path of an XML file, sequence of str, or None
        Which attributes are labels: those an XML file of MULAN names, those of a
        list, or (None) those that MEKA's ``-C k`` in the relation's name counts or
        the XML file of the same stem beside the file names; where the two differ, the
        names count, and ``notes`` says so. Labels are found by name. Columns of Y are
        in the order of the attributes, or of the list.
    nominals : {"onehot", "codes"}, default="onehot"
        With "onehot" a nominal feature of two values is one column of 0 and 1: by
        their meaning (YES, true, 1 against NO, false, 0) whichever is declared first,
        else 1 for the second. One of more values has a column for each. With "codes"
        every nominal is one column, the place of the value in its declaration.
    drop_identifiers : bool, default=True
        Leave out nominal features with another value in every row (of 11 rows or
        more: fewer tell nothing), and text. They are in ``dropped``, and ``notes``
        names them. With False they are coded as other
        nominals are.
    missing_labels : {"error", "negative"}, default="error"
        Whether a label without a value is refused or taken as absent.
    max_bytes : int or None, default=None
        The most that a compressed file may hold. None: 500 times its size, and
        64 MiB for small ones.
    cache : path of a folder, or None, default=None
        Where to keep a parsed copy (plain arrays, no pickle), which serves the next
        reading of the same content with the same options; None keeps none. Its
        checksum tells damage and mistakes, not what somebody puts there on purpose:
        use a folder that others cannot write to.

    Returns
    -------
    Bunch
        ``X`` : float64 array, or CSR array where the rows of the file are sparse.
        Missing numbers are NaN, and so are missing values of a nominal that is one
        column; where it has a column for each value, all of them are 0.
        ``Y`` : int64 array (n_instances, n_labels) of 0 and 1.
        ``feature_names`` and ``categorical`` (whether it codes a nominal) of each
        column of X, ``label_names``. ``n_instances``, ``n_features`` (attributes of
        the file that are no labels), ``n_labels``, ``cardinality``, ``density``,
        ``n_label_sets``, ``imbalance_ratios``, ``mean_imbalance_ratio``. ``dropped``
        (dict of name to values), ``notes``, ``label_parents`` (dict, of an XML file
        with a hierarchy, else None), ``sample_weight`` (array, where rows have
        weights, else None), ``relation``, ``sha256`` of the uncompressed file,
        ``source``.

    Raises
    ------
    ValueError
        For a file that is damaged or not in the format, with its line. A file may
        take 256 MiB and 64 times its uncompressed size in memory, not more.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.datasets import read_arff
    >>> text = '''@relation 'weather: -C 2'
    ... @attribute rain {0,1}
    ... @attribute wind {0,1}
    ... @attribute pressure numeric
    ... @attribute sky {clear, grey, black}
    ... @data
    ... 0,1,1020.5,clear
    ... 1,1,987,black
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.arff")
    ...     _ = path.write_text(text)
    ...     data = read_arff(path)
    >>> data.label_names, data.feature_names
    (['rain', 'wind'], ['pressure', 'sky=clear', 'sky=grey', 'sky=black'])
    >>> data.X
    array([[1.0205e+03, 1.0000e+00, 0.0000e+00, 0.0000e+00],
           [9.8700e+02, 0.0000e+00, 0.0000e+00, 1.0000e+00]])
    >>> data.n_features, data.cardinality
    (2, 1.5)
    """
    return read_checked_arff(
        path,
        labels,
        nominals=nominals,
        drop_identifiers=drop_identifiers,
        missing_labels=missing_labels,
        max_bytes=max_bytes,
        cache=cache,
    )


def read_checked_arff(
    path: PathLike,
    labels: PathLike | Sequence[str] | None = None,
    *,
    check: Callable[[str], None] | None = None,
    max_bytes: int | None = None,
    cache: PathLike | None = None,
    **options: Any,
) -> Bunch:
    """Read a file as :func:`read_arff` does, once ``check`` has accepted its sha256.

    It is called with the hash of the uncompressed content before that is parsed, or
    with the hash that a parsed copy of the same file was stored with.
    """
    check_options(**options)
    if not (labels is None or isinstance(labels, (str, os.PathLike))):
        if not isinstance(labels, Iterable):
            raise TypeError(
                "labels must be the path of an XML file, a list of names or None, got "
                f"{labels!r}."
            )
        labels = [str(name) for name in labels]
    stored = read_raw(path)
    key = ""
    if cache is not None:
        key = cache_key(stored, _labels_for_key(path, labels), options)
        bunch = recall(Path(cache), key, str(path))
        if bunch is not None:
            if check is not None:
                check(bunch.sha256)
            return bunch
    text = decompressed(path, stored, ".arff", max_bytes)
    sha256 = hashlib.sha256(text).hexdigest()
    if check is not None:
        check(sha256)
    bunch = _parse(path, stored, text, labels, options)
    bunch.sha256 = sha256
    if cache is not None:
        store(Path(cache), key, bunch)
    return bunch


def _labels_for_key(path: PathLike, labels: Any) -> Any:
    """Return what the labels of a parsed copy depend on, beside the file itself."""
    if labels is None:
        xml = _xml_beside(path)
        return None if xml is None else read_raw(xml)
    if isinstance(labels, (str, os.PathLike)):
        return read_raw(labels)
    return labels


def _parse(
    path: PathLike, stored: bytes, text: bytes, labels: Any, options: dict[str, Any]
) -> Bunch:
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    header = parse_header(path, text)
    columns, parents, notes = _find_labels(path, header, stored, labels)
    table = arff_table(
        path, text, header.data_start, header.attributes, header.encoding
    )
    coded = code_table(table, columns, **options)
    hierarchy = parents is not None and any(parents.values())
    weighted = (table.weights != 1).any()
    return make_bunch(
        coded.X,
        coded.Y,
        feature_names=coded.feature_names,
        label_names=[header.attributes[column].name for column in columns],
        categorical=coded.categorical,
        n_features=len(header.attributes) - len(columns),
        source=str(path),
        notes=notes + coded.notes,
        dropped=coded.dropped,
        label_parents=parents if hierarchy else None,
        sample_weight=table.weights.copy() if weighted else None,
        relation=header.relation,
    )

"""Read the benchmark data sets, with liac-arff, into arrays.

A plain reader for the benchmarks alone: slow on the large files, trusting, and
independent of the library it helps to measure.
"""

import bz2
import lzma
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

import arff
import numpy as np
from scipy import sparse

# Values of a two-valued nominal that mean absent and present, whichever of the
# two the file declares first (genbase declares YES first).
_TWO_VALUED = ({"0": 0.0, "1": 1.0}, {"NO": 0.0, "YES": 1.0})

# One value per row: an identifier, no feature.
_IDENTIFIERS = {"genbase": {"protein"}}

_OPENERS = {".xz": lzma.open, ".bz2": bz2.open}


def _data_folder(name: str) -> Path:
    home = os.environ.get("CLML_DATA")
    if home is None:
        raise ValueError(
            "The environment variable CLML_DATA must name the folder of the data "
            "sets; it is not set."
        )
    folder = Path(home) / name
    if not folder.is_dir():
        raise ValueError(f"name must be a data set in $CLML_DATA; got {name!r}.")
    return folder


def _data_files(folder: Path) -> list[Path]:
    """Return the files of a data set: one, or its training and its test part."""
    for stems in ([folder.name], [f"{folder.name}-train", f"{folder.name}-test"]):
        found = [
            path
            for stem in stems
            for suffix in _OPENERS
            if (path := folder / f"{stem}.arff{suffix}").is_file()
        ]
        if len(found) == len(stems):
            return found
    raise ValueError(f"No .arff.xz or .arff.bz2 file of {folder.name!r} was found.")


def _label_names(path: Path) -> set[str]:
    return {
        element.attrib["name"]
        for element in ElementTree.parse(path).iter()
        if element.tag.rpartition("}")[2] == "label"
    }


def _is_sparse(path: Path) -> bool:
    with _OPENERS[path.suffix](path, "rt", encoding="utf-8") as stream:
        lines = (line.strip() for line in stream)
        for line in lines:
            if line.lower().startswith("@data"):
                break
        return next((line for line in lines if line), "").startswith("{")


def _two_valued(values: object) -> dict[str, float] | None:
    """Return the meaning of a nominal's values, None if it has other values."""
    if not isinstance(values, list):
        return None
    return next((m for m in _TWO_VALUED if set(values) == set(m)), None)


def _coded(column: Iterable[object], values: object) -> np.ndarray:
    """Return the columns, shape (n_samples, n_columns), that code one attribute."""
    meaning = _two_valued(values)
    if meaning is not None:
        return np.array([[meaning[str(value)]] for value in column])
    if isinstance(values, list):
        cells = np.array([str(value) for value in column])
        return (cells[:, None] == np.array(values)[None, :]).astype(np.float64)
    return np.array(column, dtype=np.float64)[:, None]


def _read_dense(
    stream: TextIO, labels: set[str], ignored: set[str]
) -> tuple[np.ndarray, np.ndarray]:
    content = arff.load(stream)
    attributes = content["attributes"]
    features, indicators = [], []
    columns = zip(*content["data"], strict=True)
    for (attribute, values), column in zip(attributes, columns, strict=True):
        if attribute in labels:
            indicators.append(_coded(column, values))
        elif attribute not in ignored:
            features.append(_coded(column, values))
    return np.hstack(features), np.hstack(indicators).astype(np.int64)


def _sparse_cells(
    rows: Iterator[dict[int, object]], attributes: list[tuple[str, object]]
) -> sparse.csr_array:
    meanings = [_two_valued(values) for _, values in attributes]
    for (attribute, values), meaning in zip(attributes, meanings, strict=True):
        # An omitted cell is the first declared value, which must therefore be 0.
        if isinstance(values, list) and (meaning is None or meaning[values[0]] != 0):
            raise ValueError(f"Attribute {attribute!r} cannot be stored sparse.")
    data, indices, pointers = [], [], [0]
    for row in rows:
        for index, value in sorted(row.items()):
            meaning = meanings[index]
            indices.append(index)
            data.append(meaning[str(value)] if meaning else float(value))
        pointers.append(len(indices))
    cells = sparse.csr_array(
        (np.array(data), np.array(indices), np.array(pointers)),
        shape=(len(pointers) - 1, len(attributes)),
    )
    cells.eliminate_zeros()
    return cells


def _read_sparse(
    stream: TextIO, labels: set[str], ignored: set[str]
) -> tuple[sparse.csr_array, np.ndarray]:
    content = arff.load(stream, return_type=arff.LOD_GEN)
    attributes = content["attributes"]
    cells = _sparse_cells(content["data"], attributes).tocsc()
    is_label = np.array([attribute in labels for attribute, _ in attributes])
    is_ignored = np.array([attribute in ignored for attribute, _ in attributes])
    X = cells[:, np.flatnonzero(~is_label & ~is_ignored)].tocsr()
    return X, cells[:, np.flatnonzero(is_label)].toarray().astype(np.int64)


def load(name: str) -> tuple[np.ndarray | sparse.csr_array, np.ndarray]:
    """Read one data set from the folder that CLML_DATA names.

    Parameters
    ----------
    name : str
        Name of the data set, which is also that of its folder and files.

    Returns
    -------
    X : ndarray or csr_array of float64, shape (n_samples, n_columns)
        Features; sparse where the file is. Two-valued nominals are one column
        of 0 and 1, other nominals one column for each value.
    Y : ndarray of int64, shape (n_samples, n_labels)
        Label indicator, its columns in the order of the file.
    """
    folder = _data_folder(name)
    labels = _label_names(folder / f"{name}.xml")
    ignored = _IDENTIFIERS.get(name, set())
    parts = []
    for path in _data_files(folder):
        read = _read_sparse if _is_sparse(path) else _read_dense
        with _OPENERS[path.suffix](path, "rt", encoding="utf-8") as stream:
            X, Y = read(stream, labels, ignored)
        if Y.shape[1] != len(labels):
            raise ValueError(
                f"{path.name} must have the {len(labels)} labels of its XML file; "
                f"got {Y.shape[1]} of them."
            )
        parts.append((X, Y))
    if len(parts) == 1:
        return parts[0]
    stack = sparse.vstack if sparse.issparse(parts[0][0]) else np.vstack
    return stack([X for X, _ in parts]), np.vstack([Y for _, Y in parts])

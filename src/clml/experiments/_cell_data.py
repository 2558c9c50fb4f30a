"""The data of a plan: where they come from, and as a file that every job reads."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..datasets import (
    as_dataset,
    load_dataset,
    make_bayes_multilabel,
    read_arff,
    read_csv,
    read_parquet,
    read_svmlight,
)
from ..datasets.npz import read_arrays
from ._methods import as_json

SYNTHETIC = {"n_samples": 600, "random_state": 0}
_COMPRESSED = (".xz", ".bz2", ".gz", ".zip")
_LARGEST = 2**34
_KEYS = ("path", "labels", "synthetic")


@dataclass(frozen=True, eq=False)
class DatasetSpec:
    """A dataset of a plan.

    Attributes
    ----------
    name : str
    path : Path or None
        A file: ARFF, CSV, Parquet or svmlight, by its name.
    labels : str, list of str or None
        The XML file, or the names of the columns, of the labels.
    synthetic : dict or None
        Arguments of :func:`clml.datasets.make_bayes_multilabel`.
    arrays : tuple or None
        X and Y.
    """

    name: str
    path: Path | None = None
    labels: Any = None
    synthetic: dict[str, Any] | None = None
    arrays: tuple[Any, Any] | None = None

    @classmethod
    def of(cls, name: str, value: Any = None) -> DatasetSpec:
        """Return the dataset that an entry of a plan stands for."""
        if isinstance(value, DatasetSpec):
            return value
        if not isinstance(name, str) or not name:
            raise TypeError(f"datasets must have names, got {name!r}.")
        if value is None:
            return cls(name, synthetic=dict(SYNTHETIC) if _is_synthetic(name) else None)
        if isinstance(value, tuple) and len(value) == 2:
            return cls(name, arrays=value)
        if isinstance(value, Mapping) and {"X", "Y"} <= set(value):
            return cls(name, arrays=(value["X"], value["Y"]))
        if not isinstance(value, Mapping) or not value or set(value) - set(_KEYS):
            raise ValueError(
                f"datasets.{name} must be a pair (X, Y) or a table with some of the "
                f"entries {list(_KEYS)}, got {value!r}."
            )
        synthetic, path = value.get("synthetic"), value.get("path")
        if (synthetic is None) == (path is None):
            raise ValueError(f"datasets.{name} needs either path or synthetic.")
        if synthetic is not None and not isinstance(synthetic, Mapping):
            raise TypeError(
                f"datasets.{name}.synthetic must be a table, got {synthetic!r}."
            )
        return cls(
            name,
            path=None if path is None else Path(path),
            labels=value.get("labels"),
            synthetic=None if synthetic is None else {**SYNTHETIC, **synthetic},
        )

    def relative_to(self, folder: Path) -> DatasetSpec:
        """Return it with the paths of a plan in that folder."""
        if self.path is None:
            return self
        labels = self.labels
        if isinstance(labels, str) and labels.lower().endswith(".xml"):
            labels = str(folder / labels)
        return replace(self, path=folder / self.path, labels=labels)

    def description(self) -> dict[str, Any]:
        """Return where the data come from, as JSON has it."""
        found: dict[str, Any] = {"name": self.name}
        if self.arrays is not None:
            # Not the data of that name which everybody can load.
            found["arrays"] = True
        if self.path is not None:
            # Not the whole path: results must not depend on where they were made.
            found |= {"path": self.path.name, "labels": as_json(self.labels)}
        if self.synthetic is not None:
            found["synthetic"] = as_json(self.synthetic)
        return found

    def load(self, download: bool = False) -> Any:
        """Return the data as a Bunch.

        Parameters
        ----------
        download : bool
            Whether the files of a named dataset may be downloaded.
        """
        if self.arrays is not None:
            X, Y = self.arrays
            if hasattr(X, "columns") or hasattr(Y, "columns"):
                return as_dataset(X, Y)
            return as_dataset(X if sp.issparse(X) else np.asarray(X), Y)
        if self.synthetic is not None:
            return make_bayes_multilabel(**self.synthetic)
        if self.path is not None:
            return _read(self.path, self.labels)
        return load_dataset(self.name, download=download)


def _is_synthetic(name: str) -> bool:
    return name == "synthetic"


def _read(path: Path, labels: Any) -> Any:
    plain = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    kind = plain.suffix.lower()
    if kind == ".arff":
        return read_arff(path, labels)
    if kind in (".csv", ".tsv"):
        return read_csv(path, labels, delimiter="," if kind == ".csv" else "\t")
    if kind in (".parquet", ".pq"):
        return read_parquet(path, labels)
    if kind in (".svm", ".svmlight", ".libsvm", ".txt"):
        return read_svmlight(path)
    raise ValueError(
        f"datasets: {path.name!r} must end in .arff, .csv, .tsv, .parquet, .svmlight "
        "or .libsvm, perhaps compressed."
    )


def data_arrays(bunch: Any) -> dict[str, np.ndarray]:
    """Return features, labels and names as plain arrays."""
    arrays: dict[str, np.ndarray] = {}
    if sp.issparse(bunch.X):
        X = sp.csr_array(bunch.X)
        X.sort_indices()
        arrays |= {
            "X_data": X.data,
            "X_indices": X.indices.astype(np.int64),
            "X_indptr": X.indptr.astype(np.int64),
            "X_shape": np.asarray(X.shape, dtype=np.int64),
        }
    else:
        arrays["X"] = np.ascontiguousarray(bunch.X)
    Y = bunch.Y.toarray() if sp.issparse(bunch.Y) else np.asarray(bunch.Y)
    arrays["Y"] = np.ascontiguousarray(Y, dtype=np.int8)
    arrays["label_names"] = np.asarray(bunch.label_names, dtype=str)
    return arrays


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of an npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpacked(source: Any, largest: int = _LARGEST) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file; objects and bombs are refused.

    Parameters
    ----------
    source : path or binary file
    largest : int
        Bytes of all arrays together, at most.
    """
    return read_arrays(source, largest)


def features_and_labels(
    arrays: Mapping[str, np.ndarray],
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X, Y and the names of the labels."""
    if "X" in arrays:
        X: Any = arrays["X"]
    else:
        # The narrowest that holds them: some estimators take no wider ones.
        kind = sp.get_index_dtype(maxval=max(len(arrays["X_data"]), *arrays["X_shape"]))
        where = [arrays[name].astype(kind) for name in ("X_indices", "X_indptr")]
        X = sp.csr_array((arrays["X_data"], *where), shape=tuple(arrays["X_shape"]))
    return X, arrays["Y"].astype(np.int64), arrays["label_names"]

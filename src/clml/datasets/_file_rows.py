"""Files that are a partition each: arrays (.npz), and text of sparse rows."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._support.csr_format import check_csr_parts
from ._svmlight import read_svmlight
from .files import LARGEST_RATIO, SMALLEST_LIMIT, fail
from .npz import open_archive, read_arrays
from .plain_rows import Rows, float_type, plain_rows

_CSR_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")


@dataclass(frozen=True)
class NpzRows:
    """A file of arrays; called, it reads them."""

    path: str
    n_features: int
    n_labels: int
    weighted: bool
    dtype: str

    def __call__(self) -> Rows:
        """Return features, labels and weights."""
        largest = max(SMALLEST_LIMIT, LARGEST_RATIO * os.path.getsize(self.path))
        try:
            arrays = read_arrays(self.path, largest)
            X = _features(arrays)
        except KeyError as error:
            raise fail(self.path, f"there is no array {error}.") from None
        except ValueError as error:
            raise fail(self.path, f"{error}.") from None
        for name in ("Y", *(["weight"] if self.weighted else [])):
            if name not in arrays:
                raise fail(self.path, f"there is no array {name!r}.")
        X, Y, weight = plain_rows(
            X,
            arrays["Y"],
            arrays["weight"] if self.weighted else None,
            self.path,
            self.n_features,
            self.n_labels,
        )
        return X.astype(self.dtype, copy=False), Y, weight


@dataclass(frozen=True)
class SvmlightRows:
    """A file of text; called, it reads it."""

    path: str
    n_features: int
    n_labels: int
    zero_based: bool

    def __call__(self) -> Rows:
        """Return features, labels and None."""
        if not os.path.getsize(self.path):
            X = sparse.csr_array((0, self.n_features), dtype=np.float64)
            return X, np.empty((0, self.n_labels), dtype=np.uint8), None
        data = read_svmlight(
            self.path,
            n_features=self.n_features,
            n_labels=self.n_labels,
            zero_based=self.zero_based,
        )
        return data.X, data.Y.astype(np.uint8), None


def open_npz(
    paths: Sequence[str], n_features: int | None, n_labels: int | None
) -> list[NpzRows]:
    """Return files of arrays as partitions; none but the headers is read.

    Parameters
    ----------
    paths : sequence of str
    n_features, n_labels : int or None
        Of every file; None: as many as the first one has.
    """
    heads = [_head(path) for path in paths]
    features = heads[0].n_features if n_features is None else n_features
    labels = heads[0].n_labels if n_labels is None else n_labels
    weighted = heads[0].weighted
    dtype = float_type(*(head.dtype for head in heads)).__name__
    for path, head in zip(paths, heads, strict=True):
        for what, found, wanted in (
            ("features", head.n_features, features),
            ("labels", head.n_labels, labels),
        ):
            if found != wanted:
                raise fail(path, f"expected {wanted} {what}, got {found}.")
        if head.weighted != weighted:
            with_, without = (path, paths[0]) if head.weighted else (paths[0], path)
            raise ValueError(
                f"{with_} has an array 'weight', and {without} has none: expected it "
                "in every file or in none."
            )
    return [NpzRows(path, features, labels, weighted, dtype) for path in paths]


@dataclass(frozen=True)
class _Head:
    """What the headers of a file of arrays tell."""

    n_features: int
    n_labels: int
    weighted: bool
    dtype: np.dtype[Any]


def _head(path: str) -> _Head:
    try:
        with open_archive(path) as archive:
            members = {
                member.filename.removesuffix(".npy"): member
                for member in archive.infolist()
            }
            _, n_labels = _header(archive, members, "Y", 2)[0]
            if "X" in members:
                (_, n_features), dtype = _header(archive, members, "X", 2)
            else:
                dtype = _header(archive, members, "X_data", 1)[1]
                n_features = _stored_shape(archive, members)[1]
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except KeyError as error:
        raise fail(
            path,
            f"there is no array {error}; expected X or {', '.join(_CSR_PARTS)}, and Y, "
            "and maybe weight.",
        ) from None
    except Exception as error:  # zipfile, zlib and numpy raise whatever they run into
        raise fail(path, f"this is no file of arrays ({error}).") from None
    return _Head(int(n_features), int(n_labels), "weight" in members, dtype)


def _header(
    archive: zipfile.ZipFile, members: dict[str, Any], name: str, ndim: int
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(members[name]) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"{name!r} is of version {version} of .npy")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if len(shape) != ndim or dtype.kind not in "biuf":
        raise ValueError(
            f"{name!r} must be numbers of {ndim} axes, got the shape {shape} and the "
            f"type {dtype}"
        )
    return shape, dtype


def _stored_shape(archive: zipfile.ZipFile, members: dict[str, Any]) -> tuple[int, ...]:
    shape, _ = _header(archive, members, "X_shape", 1)
    if shape != (2,):  # before memory is taken on its word
        raise ValueError("'X_shape' must be two integers")
    with archive.open(members["X_shape"]) as file:
        return _two_integers(np.lib.format.read_array(file, allow_pickle=False))


def _two_integers(shape: NDArray[Any]) -> tuple[int, ...]:
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError("'X_shape' must be two integers")
    return tuple(shape.tolist())


def _features(arrays: dict[str, NDArray[Any]]) -> Any:
    if "X" in arrays:
        return arrays["X"]
    data, indices, indptr, shape = (arrays[name] for name in _CSR_PARTS)
    lengths = _two_integers(shape)
    check_csr_parts(data, indices, indptr, lengths)
    return sparse.csr_array((data, indices, indptr), shape=lengths)

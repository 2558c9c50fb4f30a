"""Parsed copies of files: arrays and JSON in one .npz, found by the file's hash.

A copy holds a checksum of its name and of everything in it: what a failing disk, or
whoever mistakes the file for another, made of it is no copy.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from .._support.atomic import ABANDONED, atomic_file, sweep_unfinished
from .._support.csr_format import check_csr_parts
from .._support.paths import open_regular
from .bunch import make_bunch
from .npz import arrays_digest, read_arrays

# Changes whenever a reader would read the same file into something else.
_VERSION = 2
_TEXTS = (
    "feature_names",
    "label_names",
    "notes",
    "relation",
    "label_parents",
    "sha256",
)


def cache_key(*parts: Any) -> str:
    """Return one name for everything a parsed copy depends on.

    Bytes count by their content, anything else as JSON.
    """
    digest = hashlib.sha256(f"clml parsed copy {_VERSION}".encode())
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()


def _as_arrays(bunch: Bunch) -> dict[str, NDArray]:
    arrays = {
        "Y": np.packbits(bunch.Y.astype(bool), axis=1),
        "Y_shape": np.array(bunch.Y.shape),
        "categorical": bunch.categorical,
        "n_features": np.array(bunch.n_features),
    }
    if bunch.sample_weight is not None:
        arrays["sample_weight"] = bunch.sample_weight
    if sparse.issparse(bunch.X):
        arrays["X_shape"] = np.array(bunch.X.shape)
        for name in ("data", "indices", "indptr"):
            arrays[f"X_{name}"] = getattr(bunch.X, name)
    else:
        arrays["X"] = bunch.X
    texts = {name: bunch[name] for name in _TEXTS}
    texts["dropped"] = {name: list(words) for name, words in bunch.dropped.items()}
    encoded = json.dumps(texts).encode()
    arrays["texts"] = np.frombuffer(encoded, dtype=np.uint8)
    return arrays


def _features(arrays: dict[str, NDArray]) -> Any:
    if "X" in arrays:
        X = _checked(arrays, "X", "f", 2)
    else:
        data, indices, indptr, shape = (
            _checked(arrays, f"X_{name}", kinds, 1)
            for name, kinds in (
                ("data", "f"),
                ("indices", "i"),
                ("indptr", "i"),
                ("shape", "i"),
            )
        )
        check_csr_parts(data, indices, indptr, shape.tolist())
        X = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    return X


def _checked(arrays: dict[str, NDArray], name: str, kinds: str, ndim: int) -> NDArray:
    array = arrays[name]
    if array.dtype.kind not in kinds or array.ndim != ndim:
        raise ValueError(f"{name} is not an array of kind {kinds} with {ndim} axes")
    return array


def _texts(arrays: dict[str, NDArray]) -> dict[str, Any]:
    texts = json.loads(_checked(arrays, "texts", "u", 1).tobytes())
    lists = ("feature_names", "label_names", "notes")
    if (
        set(texts) != {*_TEXTS, "dropped"}
        or not all(isinstance(texts[name], list) for name in lists)
        or not all(isinstance(words, list) for words in texts["dropped"].values())
    ):
        raise ValueError("the texts are not those of a copy")
    return texts


def _from_arrays(arrays: dict[str, NDArray], source: str) -> Bunch:
    texts = _texts(arrays)
    X = _features(arrays)
    n_rows, n_labels = (int(size) for size in _checked(arrays, "Y_shape", "i", 1))
    packed = _checked(arrays, "Y", "u", 2)
    categorical = _checked(arrays, "categorical", "b", 1)
    weight = arrays.get("sample_weight")
    if (
        packed.shape != (n_rows, -(-n_labels // 8))
        or len(categorical) != X.shape[1]
        or (weight is not None and (weight.shape != (n_rows,)))
        or (weight is not None and weight.dtype.kind != "f")
    ):
        raise ValueError("the arrays do not fit each other")
    dropped = {
        name: np.array(words, dtype=object)
        for name, words in texts.pop("dropped").items()
    }
    return make_bunch(
        X,
        np.unpackbits(packed, axis=1, count=n_labels),
        categorical=categorical,
        n_features=int(_checked(arrays, "n_features", "iu", 0)),
        source=source,
        dropped=dropped,
        sample_weight=weight,
        **texts,
    )


def _sealed(arrays: dict[str, NDArray], key: str) -> dict[str, NDArray]:
    """Return arrays with the checksum of a copy of that name."""
    digest = hashlib.sha256(f"{key} {arrays_digest(arrays)}".encode()).digest()
    return {**arrays, "checksum": np.frombuffer(digest, dtype=np.uint8)}


def _opened(found: dict[str, NDArray], key: str) -> dict[str, NDArray]:
    """Return the arrays that a checksum is right of."""
    arrays = {name: array for name, array in found.items() if name != "checksum"}
    if not np.array_equal(_sealed(arrays, key)["checksum"], found["checksum"]):
        raise ValueError("the checksum is not that of the arrays")
    return arrays


def recall(folder: Path, key: str, source: str) -> Bunch | None:
    """Return a stored copy, or None where there is none or it was changed."""
    try:
        with open_regular(folder / f"{key}.npz") as stream:
            # Copies are not compressed: nothing comes out that is not in the file.
            largest = os.fstat(stream.fileno()).st_size
            arrays = _opened(read_arrays(stream, largest), key)
            return _from_arrays(arrays, source)
    except (OSError, RecursionError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def store(folder: Path, key: str, bunch: Bunch) -> None:
    """Store a copy whole or not at all; a folder that cannot be written is no error."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        sweep_unfinished(folder, ABANDONED)
        with atomic_file(folder / f"{key}.npz") as stream:
            np.savez(stream, **_sealed(_as_arrays(bunch), key))  # type: ignore[arg-type]

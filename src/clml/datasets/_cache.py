"""Parsed copies of files: arrays and JSON in one .npz, found by the file's hash."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from .._atomic import atomic_path
from ._bunch import make_bunch

# Changes whenever a reader would read the same file into something else.
_VERSION = 1
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


def _from_arrays(arrays: Any, source: str) -> Bunch:
    texts = json.loads(arrays["texts"].tobytes())
    n_rows, n_labels = (int(size) for size in arrays["Y_shape"])
    Y = np.unpackbits(arrays["Y"], axis=1, count=n_labels)
    if "X" in arrays:
        X = arrays["X"]
    else:
        parts = tuple(arrays[f"X_{name}"] for name in ("data", "indices", "indptr"))
        X = sparse.csr_array(parts, shape=tuple(arrays["X_shape"]))
        X.check_format(full_check=True)
    if len(Y) != n_rows or len(arrays["categorical"]) != X.shape[1]:
        raise ValueError("the arrays do not fit each other")
    dropped = {
        name: np.array(words, dtype=object)
        for name, words in texts.pop("dropped").items()
    }
    return make_bunch(
        X,
        Y,
        categorical=arrays["categorical"],
        n_features=int(arrays["n_features"]),
        source=source,
        dropped=dropped,
        sample_weight=arrays["sample_weight"] if "sample_weight" in arrays else None,
        **texts,
    )


def recall(folder: Path, key: str, source: str) -> Bunch | None:
    """Return a stored copy, or None where there is none or it is damaged."""
    try:
        with (
            open(folder / f"{key}.npz", "rb") as stream,
            np.load(stream, allow_pickle=False) as arrays,
        ):
            return _from_arrays(arrays, source)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def store(folder: Path, key: str, bunch: Bunch) -> None:
    """Store a copy whole or not at all; a folder that cannot be written is no error."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with (
            atomic_path(folder / f"{key}.npz") as temporary,
            open(temporary, "xb") as stream,
        ):
            np.savez(stream, **_as_arrays(bunch))  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())

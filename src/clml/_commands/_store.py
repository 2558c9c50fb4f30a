"""Models as files: one kind for all of them, and those that skops wrote earlier."""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from .._base.multilabel import MultiLabelMixin
from .._support.paths import fail, open_regular
from ..persistence import load
from ..persistence.file import untrusted_types
from ..persistence.models import MODEL_FILE
from ..persistence.skops import UntrustedTypesError, import_skops, load_foreign

__all__ = ["import_skops", "load_model", "strangers_in"]


def strangers_in(path: Path) -> list[str]:
    """Return the types that loading a model must be told of."""
    return untrusted_types(path, MODEL_FILE)


def load_model(path: Path, trust: Collection[str] = ()) -> Any:
    """Read a model; the file is not trusted.

    Parameters
    ----------
    path : Path
    trust : collection of str
        Further types that its learners may be made of, by their full names. Those of
        this library, scikit-learn, NumPy and SciPy are accepted.
    """
    if not path.exists():
        raise FileNotFoundError(f"No such model: {path}")
    try:
        return _load_skops(path, trust) if _is_skops(path) else load(path, trust)
    except ValueError as error:
        refused = error.__cause__
        if not isinstance(refused, UntrustedTypesError):
            raise
        options = " ".join(f"--trust {name}" for name in refused.names)
        raise fail(
            path,
            f"it holds the types {refused.names}, which could run any code. If you "
            f"know where the file comes from, accept them: {options}",
        ) from error


def _is_skops(path: Path) -> bool:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return "schema.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _load_skops(path: Path, trust: Collection[str]) -> Any:
    """Read a file that is all of skops, as tuned models once were."""
    try:
        with open_regular(path) as file:
            content = file.read()
        model = load_foreign(content, trust)
    except ValueError as error:
        raise fail(path, f"no model could be read: {error}.") from error
    if not isinstance(model, MultiLabelMixin):
        raise fail(path, f"it holds no model of clml but a {type(model).__name__}.")
    return model

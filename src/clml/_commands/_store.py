"""Models as files: the library's own format, and skops for other learners."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

from .._atomic import atomic_path, sync_folder
from .._multilabel import MultiLabelMixin
from .._paths import fail
from ..persistence import load

# Packages whose classes a skops file may hold.
_PACKAGES = ("clml", "numpy", "scipy", "sklearn")
# Parts of these packages that are tools of developers, not models.
_TOOLS = {"conftest", "distutils", "f2py", "testing", "tests"}
# A compressed archive may grow to the larger of the two.
_SMALLEST_LIMIT = 64 * 2**20
_LARGEST_RATIO = 500


def import_skops() -> Any:
    """Return skops.io; ImportError that says what to install."""
    try:
        return import_module("skops.io")
    except ImportError:
        raise ImportError(
            "Tuned models are kept by skops, which is not installed: "
            "pip install 'clml[persist]'"
        ) from None


def save_tuned(model: Any, path: Path) -> list[str]:
    """Write a tuned model by skops; return the types that loading must be told of."""
    skops = import_skops()
    content = skops.dumps(model)
    with atomic_path(path) as temporary, open(temporary, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.absolute().parent)
    return _strangers(skops.get_untrusted_types(data=content))


def load_model(path: Path, trust: Collection[str] = ()) -> Any:
    """Read a model of either kind; the file is not trusted.

    Parameters
    ----------
    path : Path
    trust : collection of str
        Further types that a skops file may hold, by their full names. Those of this
        library, scikit-learn, NumPy and SciPy are accepted.
    """
    if not path.exists():
        raise FileNotFoundError(f"No such model: {path}")
    if _is_skops(path):
        return _load_skops(path, trust)
    return load(path)


def _is_skops(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "schema.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _load_skops(path: Path, trust: Collection[str]) -> Any:
    skops = import_skops()
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    limit = max(_SMALLEST_LIMIT, _LARGEST_RATIO * len(content))
    if size > limit:
        raise fail(path, f"it would take {size:,} bytes, more than {limit:,}.")
    try:
        types = skops.get_untrusted_types(data=content)
    except Exception as error:  # whatever a damaged file leads to
        raise _damaged(path, error) from error
    refused = [name for name in _strangers(types) if name not in trust]
    if refused:
        options = " ".join(f"--trust {name}" for name in refused)
        raise fail(
            path,
            f"it holds the types {refused}, which are not of {', '.join(_PACKAGES)} "
            "and could run any code. If you know where the file comes from, accept "
            f"them: {options}",
        )
    try:
        model = skops.loads(content, trusted=types)
    except Exception as error:
        raise _damaged(path, error) from error
    if not isinstance(model, MultiLabelMixin):
        raise fail(path, f"it holds no model of clml but a {type(model).__name__}.")
    return model


def _damaged(path: Path, error: Exception) -> ValueError:
    return fail(path, f"no model could be read: {type(error).__name__}: {error}")


def _strangers(types: Collection[str]) -> list[str]:
    """Return the types that are not classes of the packages that are accepted."""
    return [name for name in types if not _is_acceptable(name)]


def _is_acceptable(name: str) -> bool:
    """Tell whether a name is that of a class in one of the packages.

    Functions are not: a file could put any of them where a model calls one.

    Examples
    --------
    >>> from clml._commands._store import _is_acceptable
    >>> _is_acceptable("sklearn.tree._tree.Tree"), _is_acceptable("os.system")
    (True, False)
    >>> _is_acceptable("numpy.testing.rundocs")
    False
    """
    module, _, attribute = name.rpartition(".")
    parts = module.split(".")
    if parts[0] not in _PACKAGES or _TOOLS & set(parts):
        return False
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    # A module of these packages may have imported a class from elsewhere.
    home = getattr(found, "__module__", "") or ""
    return isinstance(found, type) and home.partition(".")[0] in _PACKAGES

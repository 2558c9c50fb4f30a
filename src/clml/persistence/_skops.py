"""Objects of other libraries, such as learners, as bytes that skops writes.

The bytes are not trusted. They say by name which types they are made of: classes of
a few packages are accepted, any other only if it was named. What they would take in
memory is counted before anything is read. Estimators of this library and decision
trees are checked, wherever they are. But other code of these packages trusts its
arrays too: a learner that was made to harm can still end the process.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Collection, Iterator
from importlib import import_module
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from .._csr_format import check_csr_parts
from .._multilabel import MultiLabelMixin
from ._fitted import check_fitted

#: Packages whose classes are accepted.
PACKAGES = ("clml", "numpy", "scipy", "sklearn")
# Parts of these packages that are programs and tools of developers, not models.
_TOOLS = {"main", "conftest", "distutils", "f2py", "testing", "tests"}
# Of NumPy and SciPy only what models are made of: some of their other classes open,
# write or remove files, even when they are thrown away.
_OF_MODELS = (
    "numpy.dtypes.",
    "numpy.random.",
    "scipy.interpolate.",
    "scipy.sparse.",
)
# What compressed members become is at most the larger of the two.
_SMALLEST_LIMIT = 64 * 2**20
_LARGEST_RATIO = 500
# Parsed JSON takes some 25 times its text.
_LONGEST_SCHEMA = 64 * 2**20
_SCHEMA = "schema.json"
# numpy refuses longer headers of arrays.
_LONGEST_HEADER = 10_000 + 12


class UntrustedTypesError(ValueError):
    """Types that are not accepted unless they are named.

    Attributes
    ----------
    names : list of str
    """

    def __init__(self, names: list[str]):
        self.names = names
        super().__init__(
            f"it holds the types {names}, which are not of {', '.join(PACKAGES)} and "
            "could run any code. If you know where the file comes from, accept them: "
            f"trusted={names}"
        )


def import_skops() -> Any:
    """Return skops.io; ImportError that says what to install."""
    try:
        return import_module("skops.io")
    except ImportError:
        raise ImportError(
            "Learners of other libraries are kept by skops, which is not installed: "
            "pip install 'clml[persist]'"
        ) from None


def is_foreign(value: Any) -> bool:
    """Tell whether skops is to write a value: an estimator, or what splits rows.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from clml.persistence._skops import is_foreign
    >>> is_foreign(LogisticRegression()), is_foreign(LogisticRegression), is_foreign(3)
    (True, False, False)
    """
    wanted = (("fit", "get_params"), ("split", "get_n_splits"))
    return not isinstance(value, type) and any(
        all(callable(getattr(value, name, None)) for name in names) for names in wanted
    )


def dump_foreign(value: Any) -> bytes:
    """Return an object as bytes; TypeError for what skops cannot write."""
    skops = import_skops()
    try:
        return skops.dumps(value)
    except Exception as error:  # of whatever class skops chose
        kind = type(value)
        raise TypeError(
            f"an object of {kind.__module__}.{kind.__qualname__} cannot be saved by "
            f"skops: {type(error).__name__}: {error}"
        ) from error


def load_foreign(content: bytes, trusted: Collection[str] = ()) -> Any:
    """Return the object; ValueError if it cannot be one that was saved."""
    types = _types_within(content)
    refused = [name for name in strangers(types) if name not in trusted]
    if refused:
        raise UntrustedTypesError(refused)
    try:
        value = import_skops().loads(content, trusted=types)
    except Exception as error:  # whatever damaged bytes lead to
        raise _damaged(error) from error
    _check_within(value)
    return value


def strangers_within(content: bytes) -> list[str]:
    """Return the types that ``load_foreign`` must be told of."""
    return strangers(_types_within(content))


def _types_within(content: bytes) -> list[str]:
    skops = import_skops()
    try:
        _check_sizes(content)
        return skops.get_untrusted_types(data=content)
    except Exception as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> ValueError:
    reason = f"{error}" if type(error) is ValueError else f"{error!r}"
    return ValueError(f"what skops wrote is damaged: {reason}")


def strangers(types: Collection[str]) -> list[str]:
    """Return the types that are not classes of the packages that are accepted."""
    return [name for name in types if not is_acceptable(name)]


def is_acceptable(name: str) -> bool:
    """Tell whether a name is that of a class in one of the packages, for models.

    Functions are not: a file could put any of them where a model calls one. Nor are
    classes that hold something open and let go of it, such as files.

    Examples
    --------
    >>> from clml.persistence._skops import is_acceptable
    >>> is_acceptable("sklearn.tree._tree.Tree"), is_acceptable("os.system")
    (True, False)
    >>> is_acceptable("numpy.testing.rundocs"), is_acceptable("numpy.lib.npyio.NpzFile")
    (False, False)
    """
    module, _, attribute = name.rpartition(".")
    parts = module.split(".")
    if parts[0] not in PACKAGES or _TOOLS & {part.strip("_") for part in parts}:
        return False
    try:
        found = getattr(import_module(module), attribute, None)
    except Exception:  # no such module, or whatever an absurd name leads to
        return False
    # A module of these packages may have imported a class from elsewhere.
    home = getattr(found, "__module__", "") or ""
    if not isinstance(found, type) or home.partition(".")[0] not in PACKAGES:
        return False
    if any(hasattr(found, name) for name in ("__del__", "__enter__", "__exit__")):
        return False
    if parts[0] in ("clml", "sklearn"):
        return home.partition(".")[0] in ("clml", "sklearn")
    plain = issubclass(found, np.generic) or found in (np.ndarray, np.dtype)
    return plain or f"{home}.".startswith(_OF_MODELS)


def _check_sizes(content: bytes) -> None:
    """Refuse an archive that would take much more memory than its bytes."""
    limit = max(_SMALLEST_LIMIT, _LARGEST_RATIO * len(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if sizes.get(_SCHEMA, 0) > _LONGEST_SCHEMA:
            raise ValueError(f"{_SCHEMA} has more than {_LONGEST_SCHEMA:,} bytes")
        _check_limit(sum(sizes.values()), limit)
        total = sum(_unpacked(archive, info, limit) for info in archive.infolist())
        _check_limit(total, limit)
        # Every mention of a member is read anew.
        schema = json.loads(archive.read(_SCHEMA))
        _check_limit(sum(sizes.get(name, 0) for name in _files_in(schema)), limit)


def _check_limit(size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(f"it would take {size:,} bytes, more than {limit:,}")


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> int:
    """Return what a member takes, unpacked once more if it is an archive itself."""
    with archive.open(info) as member:
        start = member.read(_LONGEST_HEADER)
        if start.startswith(np.lib.format.MAGIC_PREFIX):
            _check_array_size(start, info.file_size)
        if not start.startswith(b"PK"):
            return info.file_size
        inner = zipfile.ZipFile(io.BytesIO(start + member.read()))
    with inner:
        total = sum(each.file_size for each in inner.infolist())
        _check_limit(total, limit)
        for each in inner.infolist():
            with inner.open(each) as member:
                _check_array_size(member.read(_LONGEST_HEADER), each.file_size)
    return info.file_size + total


def _check_array_size(start: bytes, n_bytes: int) -> None:
    """Refuse a .npy member that is not as long as its header says."""
    file: IO[bytes] = io.BytesIO(start)
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read(file)
    n_expected = math.prod(shape) * dtype.itemsize + file.tell()
    # scikit-learn's trees take the nodes of a tree to have one axis.
    is_table = dtype.names is not None and len(shape) != 1
    if dtype.hasobject or is_table or n_bytes != n_expected:
        raise ValueError(
            f"an array of shape {shape} and type {dtype} does not take the "
            f"{n_bytes - file.tell()} bytes that there are"
        )


def _files_in(schema: Any) -> Iterator[str]:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("file"), str):
                yield node["file"]
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _check_within(value: Any) -> None:
    """Check what trusts its arrays, wherever it is: our estimators, and trees."""
    # Imported here: it takes as long as all of this library.
    from ._trees import check_trees

    for node in _objects_within(value):
        if isinstance(node, MultiLabelMixin) and hasattr(node, "checkpoint"):
            node.checkpoint = None  # a file must not name a folder that is written to
        if isinstance(node, MultiLabelMixin) and hasattr(node, "n_labels_"):
            check_fitted(node)
            if hasattr(node, "_restore"):
                # What is no array is built anew: its own arrays are not checked.
                _restore(node)
        if isinstance(node, sp.csr_array | sp.csr_matrix):
            check_csr_parts(node.data, node.indices, node.indptr, node.shape)
        check_trees(node)


def _restore(estimator: Any) -> None:
    try:
        estimator._validate_params()
        estimator._restore()
    except Exception as error:
        raise _damaged(error) from error


def _objects_within(value: Any) -> Iterator[Any]:
    # With the objects themselves: the id of one that is gone is used again.
    seen: dict[int, Any] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node, type):
            continue
        seen[id(node)] = node
        yield node
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list | tuple):
            stack.extend(node)
        elif isinstance(node, np.ndarray) and node.dtype == object:
            stack.extend(node.flat)
        elif hasattr(node, "__dict__"):
            stack.extend(vars(node).values())

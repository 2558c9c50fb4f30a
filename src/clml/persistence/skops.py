"""Objects of other libraries, such as learners, as bytes that skops writes.

The bytes are not trusted. They say by name which types they are made of: classes of
a few packages are accepted, any other only if it was named. What they would take in
memory is counted before anything is read, and so is how often each object is held.
What comes out is checked by ``_within``. But code of these packages trusts its arrays:
a learner that was made to harm can still end the process.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from importlib import import_module
from typing import IO, Any

import numpy as np
from sklearn.base import BaseEstimator

from .._support.json_text import check_json_size
from ._within import (
    check_estimator,
    check_nesting,
    check_within,
    objects_within,
)

#: Packages whose classes are accepted.
PACKAGES = ("clml", "numpy", "scipy", "sklearn")
# Parts of these packages that are programs and tools of developers, not models.
_TOOLS = {
    *("main", "conftest", "datasets", "distutils", "externals", "f2py"),
    *("testing", "tests"),
}
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
# A forest takes 22 kB a tree.
_LONGEST_SCHEMA = 2**27
# Every node of skops lists all of them.
_MOST_TYPES = 200
# In how many ways all objects of a file may be reached: a learner of a stack is held by
# its name, too, and stacks may hold others.
_WAYS, _WAYS_PER_OBJECT = 1000, 32
# What skops builds by calling a class, and what such a class must be.
_CONTAINERS: dict[str, type | tuple[type, ...]] = {
    "DictNode": dict,
    "ListNode": list,
    "SetNode": (set, frozenset),
    "TupleNode": tuple,
}
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
    >>> from clml.persistence.skops import is_foreign
    >>> is_foreign(LogisticRegression()), is_foreign(LogisticRegression), is_foreign(3)
    (True, False, False)
    """
    wanted = (("fit", "get_params"), ("split", "get_n_splits"))
    return not isinstance(value, type) and any(
        all(callable(getattr(value, name, None)) for name in names) for names in wanted
    )


def dump_foreign(value: Any) -> bytes:
    """Return an object as bytes.

    TypeError for what skops cannot write, ValueError for what could not be read again.
    """
    skops = import_skops()
    try:
        content = skops.dumps(value)
    except Exception as error:  # of whatever class skops chose
        kind = type(value)
        raise TypeError(
            f"an object of {kind.__module__}.{kind.__qualname__} cannot be saved by "
            f"skops: {type(error).__name__}: {error}"
        ) from error
    _check_schema(_checked_schema(content))
    for node in objects_within(value):
        if isinstance(node, BaseEstimator):
            check_estimator(node)
            check_nesting(node)
    return content


def load_foreign(content: bytes, trusted: Collection[str] = ()) -> Any:
    """Return the object; ValueError if it cannot be one that was saved."""
    return read_foreign(content, trusted)[0]


def read_foreign(
    content: bytes, trusted: Collection[str] = ()
) -> tuple[Any, tuple[int, int]]:
    """Return the object, and what ``count_ways`` tells of it."""
    types, unknown, counted = _opened(content)
    refused = [name for name in unknown if name not in trusted]
    if refused:
        raise UntrustedTypesError(refused)
    try:
        value = import_skops().loads(content, trusted=types)
        check_within(value)
    except Exception as error:  # whatever damaged bytes lead to
        raise _damaged(error) from error
    return value, counted


def strangers_within(content: bytes) -> list[str]:
    """Return the types that ``load_foreign`` must be told of."""
    return _opened(content)[1]


def _opened(content: bytes) -> tuple[list[str], list[str], tuple[int, int]]:
    """Return all types that skops must be told of, those not accepted, and counts."""
    skops = import_skops()
    try:
        schema = _checked_schema(content)
        counted = _check_schema(schema)
        types = skops.get_untrusted_types(data=content)
        if len(types) > _MOST_TYPES:
            raise ValueError(f"it is made of {len(types)} types")
        unknown = dict.fromkeys([*strangers(types), *_called(schema)])
        return types, list(unknown), counted
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
    >>> from clml.persistence.skops import is_acceptable
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


def _checked_schema(content: bytes) -> Any:
    """Return the schema of an archive that takes not much more memory than its bytes.

    Others are refused.
    """
    limit = max(_SMALLEST_LIMIT, _LARGEST_RATIO * len(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if sizes.get(_SCHEMA, 0) > _LONGEST_SCHEMA:
            raise ValueError(f"{_SCHEMA} has more than {_LONGEST_SCHEMA:,} bytes")
        _check_limit(sum(sizes.values()), limit)
        total = sum(_unpacked(archive, info, limit) for info in archive.infolist())
        _check_limit(total, limit)
        # Every mention of a member is read anew.
        text = archive.read(_SCHEMA)
        check_json_size(text, len(content))
        schema = json.loads(text)
        _check_limit(sum(sizes.get(name, 0) for name in _files_in(schema)), limit)
        return schema


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


def _dicts_in(schema: Any) -> Iterator[dict[str, Any]]:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _files_in(schema: Any) -> Iterator[str]:
    for node in _dicts_in(schema):
        if isinstance(node.get("file"), str):
            yield node["file"]


def _called(schema: Any) -> Iterator[str]:
    """Yield the classes that skops would call, with whatever a file says.

    Other objects are made without a call, and then get their attributes.
    """
    for node in _dicts_in(schema):
        loader = node.get("__loader__")
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if loader == "ConstructorFromReduceNode":
            yield name
        elif loader in _CONTAINERS and is_acceptable(name):
            module, _, attribute = name.rpartition(".")
            found = getattr(import_module(module), attribute)
            if not issubclass(found, _CONTAINERS[loader]):
                yield name


def _check_schema(schema: Any) -> tuple[int, int]:
    """Return what ``count_ways`` tells; refuse what is held too often."""
    n_objects, n_ways = count_ways(schema)
    check_ways(n_objects, n_ways)
    return n_objects, n_ways


def check_ways(n_objects: int, n_ways: int) -> None:
    """Refuse so few objects that are reached in so many ways.

    What predicts follows every way to a learner: a small file that holds one eight
    times, on many levels, would keep it busy for ever.
    """
    if n_ways > _WAYS + _WAYS_PER_OBJECT * n_objects:
        raise ValueError(f"its {n_objects:,} objects are held {n_ways:,} times")


def count_ways(schema: Any) -> tuple[int, int]:
    """Return how many objects there are, and in how many ways they are reached.

    An object that is held twice is written once more, or by its ``__id__`` alone.
    """
    mentions = defaultdict(list)
    n_objects = 0
    for node in _dicts_in(schema):
        n_objects += "__loader__" in node
        if node.get("__id__"):
            mentions[node["__id__"]].append(node)
    ways: dict[Any, int] = {}

    def ways_to(node: Any) -> int:
        if isinstance(node, list):
            return sum(map(ways_to, node))
        if not isinstance(node, dict):
            return 0
        key = node.get("__id__")
        if not key:
            return ways_within(node)
        if key not in ways:
            ways[key] = 1  # within itself; skops finds no end of that
            ways[key] = max(map(ways_within, mentions[key]))
        return ways[key]

    def ways_within(node: dict[str, Any]) -> int:
        return 1 + sum(map(ways_to, node.values()))

    return n_objects, ways_to(schema)

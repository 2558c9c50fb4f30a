"""Files of a kind, in a version: what every reader and writer of them shares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._support.paths import fail, open_regular
from .._version import __version__
from ._container import Container, write_container
from ._decode import Decoder
from ._encode import Encoder
from .skops import strangers_within


@dataclass(frozen=True)
class FileKind:
    """What files hold, and how that changed.

    Parameters
    ----------
    name : str
        Such as "clml model".
    version : int
        The newest, which is the one written. It is raised when files change such that
        older code would misread them.
    migrations : mapping of int to callable, default={}
        By version v: turns the content of such a file, as JSON, into that of v + 1.
    first_with_checksums : int, default=1
        Files of versions before it had none.
    holds_objects : bool, default=True
        Whether there may be estimators in it; else plain values alone.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from clml.persistence.file import FileKind, read_file, write_file
    >>> old = FileKind("example", version=1)
    >>> new = FileKind("example", version=2, migrations={1: lambda node: [node]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "file")
    ...     write_file(path, old, (1, 2))
    ...     read_file(path, old), read_file(path, new)
    ((1, 2), [(1, 2)])
    """

    name: str
    version: int
    migrations: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict)
    first_with_checksums: int = 1
    holds_objects: bool = True

    @property
    def noun(self) -> str:
        """What a message calls it."""
        return self.name.removeprefix("clml ")


def write_file(path: Path, kind: FileKind, content: Any) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : Path
        One that exists is replaced: see `clml._support.atomic`.
    kind : FileKind
    content : whatever an Encoder takes

    Raises
    ------
    TypeError, ValueError
        For content that cannot be saved; what had the name is then as it was.
    OSError
        If the file cannot be written.
    """
    encoder = Encoder()
    try:
        node = encoder.encode(content)
    except (TypeError, ValueError) as error:
        # An invalid parameter is both for scikit-learn.
        error_type = ValueError if isinstance(error, ValueError) else TypeError
        reason = str(error).removesuffix(".")
        raise error_type(f"The {kind.noun} cannot be saved: {reason}.") from error
    state = {
        "format": kind.name,
        "version": kind.version,
        "clml": __version__,
        "content": node,
    }
    try:
        write_container(Path(path), state, encoder.arrays)
    except OSError as error:
        if error.errno is None:  # ours, which name the path
            raise
        # It would name the file under which the content was to be written first.
        reason = f"The {kind.noun} could not be written: {error.strerror}"
        raise OSError(error.errno, reason, str(path)) from error


def read_file(path: Path, kind: FileKind, trusted: Collection[str] = ()) -> Any:
    """Return the content of a file, which is not trusted.

    Parameters
    ----------
    path : Path
    kind : FileKind
    trusted : collection of str, default=()
        Types that objects of other libraries may be made of, by their full names.
        Those of this library, scikit-learn, NumPy and SciPy are accepted.

    Raises
    ------
    ValueError
        If the file is damaged, of another kind or of a newer version, or what it holds
        does not fit together.
    OSError
        If the file cannot be opened.
    """
    if isinstance(trusted, str):
        raise TypeError(f"trusted must be a list of names, got the str {trusted!r}.")
    with _opened(path, kind) as container:
        node = _content_node(container, kind)
        content = Decoder(container.take, trusted, kind.holds_objects).decode(node)
        container.check_all_taken()
    return content


def untrusted_types(path: Path, kind: FileKind) -> list[str]:
    """Return the types that ``read_file`` must be told of; nothing is built.

    Parameters
    ----------
    path : Path
    kind : FileKind

    Returns
    -------
    list of str
        In the order in which the file names them, each once.
    """
    names: dict[str, None] = {}
    with _opened(path, kind) as container:
        for index in _foreign_in(_content_node(container, kind)):
            content = container.take(index).tobytes()
            names |= dict.fromkeys(strangers_within(content))
    return list(names)


def _foreign_in(node: Any) -> Iterator[Any]:
    """Yield the numbers of the arrays that skops wrote."""
    if isinstance(node, dict):
        if node.get("type") == "skops":
            yield node.get("value")
        node = list(node.values())
    for item in node if isinstance(node, list) else ():
        yield from _foreign_in(item)


@contextmanager
def _opened(path: Path, kind: FileKind) -> Iterator[Container]:
    """Open a file; whatever is wrong with it is said of its path."""
    with open_regular(path) as file:
        try:
            yield Container(file)
        except (ValueError, *Container.DAMAGE) as error:
            reason = str(error).removesuffix(".")
            raise fail(path, f"no {kind.noun} could be read: {reason}.") from error


def _content_node(container: Container, kind: FileKind) -> Any:
    """Return the JSON of the content, as the newest version has it."""
    state = container.state()
    found = state.get("format") if isinstance(state, dict) else None
    if found != kind.name:
        raise ValueError(f"its format is not {kind.name!r} but {found!r}")
    version = _check_version(state, kind)
    if container.has_checksums != (version >= kind.first_with_checksums):
        verb = "has" if container.has_checksums else "lacks"
        raise ValueError(f"it {verb} checksums, which version {version} does not")
    # The first version knew of models alone.
    key = "content" if container.has_checksums else "model"
    if set(state) != {"format", "version", "clml", key}:
        raise ValueError(f"it has other entries than a {kind.noun} has")
    return _migrated(state[key], version, kind)


def _check_version(state: Mapping[str, Any], kind: FileKind) -> int:
    version = state.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}, not a number from 1 on")
    if version > kind.version:
        raise ValueError(
            f"it was written by clml {state.get('clml')!r} in version {version} of "
            f"the format, and this clml {__version__} reads up to {kind.version}"
        )
    return version


def _migrated(node: Any, version: int, kind: FileKind) -> Any:
    for old in range(version, kind.version):
        if old not in kind.migrations:
            raise ValueError(f"version {old} of the format is no longer read")
        try:
            node = kind.migrations[old](node)
        except Exception as error:  # written for what was saved, given anything
            raise ValueError(
                f"its content is not one of version {old}: "
                f"{type(error).__name__}: {error}"
            ) from error
    return node

"""Downloads that are checked, bounded, and leave nothing half-written behind."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .._support.atomic import ABANDONED, atomic_path, sweep_unfinished
from .data_dirs import SUFFIXES
from .files import read_file
from .registry import Variant

TIMEOUT = 30.0
SCHEMES = ("https",)
_CHUNK = 2**16
_AGENT = "clml (multi-label datasets)"


class _SourceFailure(Exception):
    """A source did not deliver: the next is tried. A full disk, say, is no such."""


@contextmanager
def _source(url: str) -> Iterator[None]:
    """Take whatever goes wrong in here for a failure of the source."""
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _SourceFailure(f"{url}: {error}") from None


def _check_scheme(url: str) -> None:
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in SCHEMES:
        raise ValueError(f"only {', '.join(SCHEMES)} is allowed, got {url!r}")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirection only where the first address would have been allowed."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str) -> Any:
    _check_scheme(url)
    request = urllib.request.Request(
        url, headers={"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    )
    return urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT)


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while at a terminal; yield what is to be told the bytes."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=total)
        yield lambda n_bytes: bar.advance(task, n_bytes)


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Have a folder; what had to be made for nothing is gone after a failure."""
    made = [path, *path.parents]
    made = made[: next(i for i, p in enumerate(made) if p.exists())]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):  # not empty: somebody else uses it
                folder.rmdir()
        raise


def _copy(url: str, stream: Any, limit: int, title: str) -> None:
    with _source(url):
        response = _open(url)
    n_bytes = 0
    with response:
        # What is served compressed is smaller than its content.
        total = getattr(response, "length", None) or limit
        with _progress(title, total) as advance:
            while True:
                with _source(url):
                    chunk = response.read(_CHUNK)
                if not chunk:
                    return
                n_bytes += len(chunk)
                if n_bytes > limit:
                    raise _SourceFailure(
                        f"{url}: more than the {limit:,} bytes expected came"
                    )
                stream.write(chunk)
                advance(len(chunk))


def _check(path: Path, variant: Variant) -> None:
    content = read_file(path, max_bytes=variant.n_bytes)
    found = hashlib.sha256(content).hexdigest()
    if found != variant.sha256:
        raise ValueError(
            f"{len(content):,} bytes with sha256 {found} came, expected "
            f"{variant.n_bytes:,} bytes with sha256 {variant.sha256}"
        )


def _fetch(url: str, variant: Variant, target: Path) -> None:
    """Bring one address to its place, whole and checked, or not at all."""
    with atomic_path(target) as temporary:
        with open(temporary, "wb") as stream:
            _copy(url, stream, variant.n_bytes, target.name)
            stream.flush()
            os.fsync(stream.fileno())
        with _source(url):
            _check(temporary, variant)


def _suffix(url: str) -> str:
    path = urllib.parse.urlsplit(url).path
    return next((s for s in SUFFIXES if s and path.endswith(s)), "")


def by_hand(variants: tuple[Variant, ...], target: Path) -> str:
    """Return the lines that say which addresses to save as what."""
    return "\n  or\n".join(
        "\n  or\n".join(
            f"  {url}\n    as {target}{_suffix(url)}" for url in variant.urls
        )
        + f"\n    (sha256 of the uncompressed content: {variant.sha256})"
        for variant in variants
    )


class DownloadError(OSError):
    """No source delivered what was expected."""


def download(variants: tuple[Variant, ...], target: Path) -> Path:
    """Bring a file to its place from the first source that delivers it.

    Parameters
    ----------
    variants : tuple of Variant
        The accepted contents, tried in turn, and the sources of each in turn.
    target : Path
        Where to put it; the suffix of the compression is added. Missing folders are
        made.

    Returns
    -------
    path : Path
        Of the file, stored as it was served.

    Raises
    ------
    DownloadError
        If no source delivered the expected content. Nothing is left behind then.
    """
    failures = []
    with _folder(target.parent):
        sweep_unfinished(target.parent, ABANDONED)
        for variant in variants:
            for url in variant.urls:
                path = target.with_name(target.name + _suffix(url))
                try:
                    _fetch(url, variant, path)
                except _SourceFailure as failure:
                    failures.append(str(failure))
                else:
                    return path
        raise DownloadError(
            f"{target.name} could not be downloaded. {'; '.join(failures)}."
        )

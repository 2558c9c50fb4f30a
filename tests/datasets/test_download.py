import bz2
import hashlib
import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from clml.datasets import _download
from clml.datasets._download import by_hand, download
from clml.datasets.registry import Variant

CONTENT = b"@relation toy\n" * 20_000


@pytest.fixture
def server(monkeypatch):
    """Pages by path: a body, or (status, headers, body). No other host is reached."""
    pages = {}
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            page = pages.get(self.path, (404, {}, b""))
            status, headers, body = page if isinstance(page, tuple) else (200, {}, page)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except ConnectionError:
                pass  # the client has had enough

        def log_message(self, *arguments):
            pass

    monkeypatch.setattr(_download, "SCHEMES", ("http",))
    for variable in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        running.pages, running.requests = pages, requests
        running.url = f"http://127.0.0.1:{running.server_port}"
        yield running
        running.shutdown()
        thread.join()


def variant_of(server, *paths, content=CONTENT):
    return Variant(
        hashlib.sha256(content).hexdigest(),
        len(content),
        tuple(server.url + path for path in paths),
    )


def test_file_is_put_in_its_place(server, tmp_path):
    server.pages["/toy.arff"] = CONTENT
    target = tmp_path / "home" / "toy" / "toy.arff"
    path = download((variant_of(server, "/toy.arff"),), target)
    assert path == target
    assert path.read_bytes() == CONTENT
    assert [p.name for p in target.parent.iterdir()] == ["toy.arff"]


def test_compressed_file_is_stored_as_served(server, tmp_path):
    server.pages["/Toy.arff.bz2"] = bz2.compress(CONTENT)
    path = download((variant_of(server, "/Toy.arff.bz2"),), tmp_path / "toy.arff")
    assert path == tmp_path / "toy.arff.bz2"
    assert bz2.decompress(path.read_bytes()) == CONTENT


def test_sources_are_tried_in_turn(server, tmp_path):
    server.pages["/bad.arff"] = b"something else"
    server.pages["/good.arff"] = CONTENT
    variant = variant_of(server, "/missing.arff", "/bad.arff", "/good.arff", "/last")
    download((variant,), tmp_path / "toy.arff")
    assert server.requests == ["/missing.arff", "/bad.arff", "/good.arff"]


def test_variants_are_tried_in_turn(server, tmp_path):
    server.pages["/second.arff"] = b"second"
    variants = (
        variant_of(server, "/first.arff"),
        variant_of(server, "/second.arff", content=b"second"),
    )
    assert download(variants, tmp_path / "toy.arff").read_bytes() == b"second"


def test_redirection_is_followed(server, tmp_path):
    server.pages["/old"] = (302, {"Location": "/new"}, b"")
    server.pages["/new"] = CONTENT
    path = download((variant_of(server, "/old"),), tmp_path / "toy.arff")
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    "page, message",
    [
        ((404, {}, b""), "404"),
        ((500, {}, b""), "500"),
        (CONTENT[:-1] + b"x", "279,999|280,000 bytes with sha256 .* expected"),
        (CONTENT[:100], "100 bytes with sha256 .* expected 280,000 bytes"),
        (CONTENT + b"x", "more than the 280,000 bytes expected came"),
        (b"", "0 bytes with sha256 .* expected"),
        ((200, {"Content-Length": "280000"}, CONTENT[:9]), "9 bytes|IncompleteRead"),
        (bz2.compress(CONTENT + b"x"), "larger than 280,000 bytes"),
        (bz2.compress(CONTENT)[:-5], "truncated"),
        ((302, {"Location": "ftp://127.0.0.1/x"}, b""), "only http is allowed"),
        ((302, {"Location": "file:///etc/hosts"}, b""), "is not allowed"),
    ],
    ids=[
        "missing",
        "broken",
        "changed",
        "short",
        "long",
        "empty",
        "cut off",
        "bomb",
        "damaged",
        "ftp",
        "file",
    ],
)
def test_failure_leaves_nothing_and_tells_what_to_do(server, tmp_path, page, message):
    server.pages["/toy.arff"] = page
    variant = variant_of(server, "/toy.arff")
    target = tmp_path / "home" / "toy" / "toy.arff"
    with pytest.raises(OSError, match=message) as caught:
        download((variant,), target)
    assert list(tmp_path.iterdir()) == []
    text = str(caught.value)
    assert text.startswith("toy.arff could not be downloaded.")
    assert variant.urls[0] in text


def test_older_file_survives_a_failure(server, tmp_path):
    target = tmp_path / "toy.arff"
    target.write_bytes(b"older")
    with pytest.raises(OSError, match="404"):
        download((variant_of(server, "/toy.arff"),), target)
    assert target.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/x", "file:///etc/hosts", "ftp://127.0.0.1/x", "x"]
)
def test_only_https_is_opened(url, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr("urllib.request.OpenerDirector.open", refuse)
    with pytest.raises(OSError, match="only https is allowed"):
        download((Variant("0" * 64, 1, (url,)),), tmp_path / "toy.arff")


class Broken:
    """A response that delivers a little, then fails."""

    def __init__(self, error):
        self.error = error
        self.pieces = [b"a little"]

    def __enter__(self):
        return self

    def __exit__(self, *arguments):
        return False

    def read(self, size):
        if self.pieces:
            return self.pieces.pop()
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_interruption_leaves_nothing_and_passes_on(error, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "_open", lambda url: Broken(error))
    variant = Variant("0" * 64, 1000, ("https://a.example/x", "https://b.example/x"))
    with pytest.raises(type(error)) as caught:
        download((variant,), tmp_path / "home" / "toy" / "toy.arff")
    assert caught.value is error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionResetError()])
def test_next_source_after_a_broken_connection(error, tmp_path, monkeypatch):
    opened = []

    def open_url(url):
        opened.append(url)
        return Broken(error)

    monkeypatch.setattr(_download, "_open", open_url)
    variant = Variant("0" * 64, 1000, ("https://a.example/x", "https://b.example/x"))
    with pytest.raises(OSError, match="could not be downloaded"):
        download((variant,), tmp_path / "toy.arff")
    assert opened == list(variant.urls)


def test_folder_in_use_is_not_removed(tmp_path, monkeypatch):
    def open_url(url):
        (tmp_path / "toy" / "other.arff").write_bytes(b"")
        raise TimeoutError

    monkeypatch.setattr(_download, "_open", open_url)
    with pytest.raises(OSError, match="could not be downloaded"):
        download(
            (Variant("0" * 64, 9, ("https://a.example/x",)),),
            tmp_path / "toy" / "toy.arff",
        )
    assert (tmp_path / "toy" / "other.arff").exists()


def test_by_hand_names_every_source_with_its_suffix(tmp_path):
    variant = Variant(
        "ab" * 32, 9, ("https://a.example/X.arff.bz2", "https://b/x.arff")
    )
    text = by_hand((variant,), tmp_path / "x.arff")
    assert f"https://a.example/X.arff.bz2\n    as {tmp_path / 'x.arff.bz2'}\n" in text
    assert f"https://b/x.arff\n    as {tmp_path / 'x.arff'}\n" in text
    assert text.count("ab" * 32) == 1


def test_a_full_disk_is_no_failure_of_the_source(tmp_path, monkeypatch):
    full = OSError(28, "No space left on device")

    def fsync(descriptor):
        raise full

    monkeypatch.setattr(_download, "_open", lambda url: io.BytesIO(b"content"))
    monkeypatch.setattr(_download.os, "fsync", fsync)
    variant = Variant("0" * 64, 1000, ("https://a.example/x", "https://b.example/x"))
    with pytest.raises(OSError, match="No space left") as caught:
        download((variant,), tmp_path / "toy" / "toy.arff")
    assert caught.value is full
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [OSError(113, "No route to host"), PermissionError("denied")], ids=repr
)
def test_any_error_of_the_network_sends_to_the_next_source(
    tmp_path, monkeypatch, error
):
    content = b"content"
    opened = []

    def open_(url):
        opened.append(url)
        if len(opened) == 1:
            raise error
        return io.BytesIO(content)

    monkeypatch.setattr(_download, "_open", open_)
    sha256 = hashlib.sha256(content).hexdigest()
    variant = Variant(sha256, 1000, ("https://a.example/x", "https://b.example/x"))
    path = download((variant,), tmp_path / "toy.arff")
    assert path.read_bytes() == content
    assert len(opened) == 2

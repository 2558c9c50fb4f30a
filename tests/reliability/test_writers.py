"""All that the library writes: what may be in the place, and what becomes of it."""

import ast
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import clml
from clml import CLMLClassifier
from clml._commands._demo_page import write_page as write_demo_page
from clml._support import atomic as _atomic
from clml.cli import main
from clml.datasets import write_arff, write_csv
from clml.experiments import Cell, Table, write_tables
from clml.experiments._store import Store
from clml.experiments.consistency import ConsistencyRecord, write_consistency
from clml.persistence import save
from clml.plots._style import new_figure, save_figure, without_windows
from clml.report.page import write_page

X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.5], [0.5, 0.5]] * 4)
Y = (X > 0.4).astype(int)
RECORD = {"key": "a", "dataset": "d", "method": "m", "split": 0, "seed": 0}
needs_posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX")


@pytest.fixture(scope="module")
def model():
    return CLMLClassifier(search="cma", n_members=1, max_epochs=1, random_state=0).fit(
        X, Y
    )


@pytest.fixture(scope="module")
def model_file(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save(model, folder / "m.clml")
    write_csv(folder / "rows.csv", X, Y)
    (folder / "new.csv").write_text("x0,x1\n0.5,1\n")
    return folder / "m.clml"


@dataclass(frozen=True)
class Writer:
    """How something is written, and under which name in its folder."""

    name: str
    write: Callable[[Path, "pytest.FixtureRequest"], object]


def _command(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    if result.exit_code:
        raise OSError(result.stderr)


def _predict(path, request):
    model = request.getfixturevalue("model_file")
    _command("predict", model, model.with_name("new.csv"), "-o", path, "--force")


def _train(path, request):
    rows = request.getfixturevalue("model_file").with_name("rows.csv")
    quick = ["--epochs", 1, "--set", "search=cma", "--set", "n_members=1", "--force"]
    _command("train", rows, "--labels", "y*", "-o", path, *quick)


def _figure(path, request):
    with without_windows():
        save_figure(new_figure(1, 1), path)


def _onnx(path, request):
    pytest.importorskip("onnx")
    request.getfixturevalue("model").to_onnx(path)


def _tables(path, request):
    # The names of the files are the tables'.
    from unittest.mock import patch

    table = Table("a", "A title", ("dataset", "A"), ((Cell("x"), Cell(0.5)),))
    with patch("clml.experiments._tables.all_tables", return_value=[table]):
        write_tables(None, path.parent)


def _artifact(path, request):
    store = Store(path.parent.parent)
    losses = {"test": {"hamming": 0.5}}
    store.finish({**RECORD, "status": "done", "losses": losses}, b"numbers")


def _consistency(path, request):
    write_consistency([ConsistencyRecord("CLML", 1, 1, 0, "hamming", 0.5, 0.1)], path)


WRITERS = {
    "model": Writer("m.clml", lambda p, r: r.getfixturevalue("model").save(p)),
    "onnx": Writer("m.onnx", _onnx),
    "arff": Writer("d.arff", lambda p, r: write_arff(p, X, Y)),
    "labels of arff": Writer(
        "d.xml", lambda p, r: write_arff(p.with_suffix(".arff"), X, Y)
    ),
    "csv": Writer("d.csv", lambda p, r: write_csv(p, X, Y)),
    "compressed csv": Writer("d.csv.gz", lambda p, r: write_csv(p, X, Y)),
    "page": Writer("p.html", lambda p, r: write_page(p, "page")),
    "page of the demo": Writer("p.html", lambda p, r: write_demo_page(p, "page")),
    "table": Writer("a.tex", _tables),
    "figure": Writer("f.svg", _figure),
    "study": Writer("s.csv", _consistency),
    "plan of results": Writer(
        "plan.json", lambda p, r: Store(p.parent).write_plan({"name": "x"})
    ),
    "artifact of results": Writer("artifacts/a.npz", _artifact),
    "predictions of a command": Writer("out.csv", _predict),
    "model of a command": Writer("m.clml", _train),
}


@pytest.fixture(params=WRITERS)
def place(request, tmp_path, model, model_file):
    """A path and what writes there; the models are there before anything is patched."""
    writer = WRITERS[request.param]
    path = tmp_path / "folder" / writer.name
    path.parent.mkdir(parents=True)
    return path, lambda: writer.write(path, request)


def a_pipe(path):
    os.mkfifo(path)


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        # Names of sockets are short.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
        except OSError:
            pytest.skip("no socket can be made here")
        finally:
            os.close(folder)


def a_device(path):
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        pytest.skip("this process may not make devices")


KINDS = {
    "a named pipe": a_pipe,
    "a socket": a_socket,
    "a device": a_device,
    "a folder": Path.mkdir,
    "a link to a device": lambda path: path.symlink_to(os.devnull),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
}


@needs_posix
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_and_stays(kind, place):
    path, write = place
    KINDS[kind](path)
    before = os.lstat(path)
    expected = {"a link to a device": "a device"}.get(kind, kind)
    with pytest.raises(OSError, match=f"is {expected}"):
        write()
    after = os.lstat(path)
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert not list(path.parent.glob(".*.part"))


@needs_posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_permissions_of_a_file_that_is_replaced_stay(mode, place):
    path, write = place
    path.touch()
    path.chmod(mode)
    write()
    assert path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == mode


@needs_posix
def test_a_new_file_has_the_permissions_of_others(place):
    path, write = place
    (path.parent / "plain").touch()
    write()
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode


@needs_posix
def test_a_link_is_replaced_and_its_target_stays(place):
    path, write = place
    path.with_name("other").write_text("precious")
    path.with_name("other").chmod(0o600)
    path.symlink_to("other")
    write()
    assert not path.is_symlink()
    assert path.with_name("other").read_text() == "precious"


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_changes_nothing(moment, error, place, monkeypatch):
    path, write = place
    path.write_bytes(b"as it was")
    path.chmod(0o600)

    def interrupted(*arguments):
        raise error(28, "No space left on device")

    monkeypatch.setattr(_atomic.os, moment, interrupted)
    with pytest.raises((error, OSError), match=r"No space|Interrupted"):
        write()
    assert path.read_bytes() == b"as it was"
    assert stat.S_IMODE(path.stat().st_mode) & 0o700 == 0o600
    assert not list(path.parent.glob(".*.part"))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="of root alone"
)
def test_the_owner_of_a_file_that_is_replaced_stays(tmp_path, model):
    path = tmp_path / "m.clml"
    path.touch(0o640)
    os.chown(path, 1234, 2345)
    model.save(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (1234, 2345)
    assert stat.S_IMODE(found.st_mode) == 0o640


@needs_posix
def test_a_group_that_cannot_be_kept_gives_nothing_to_another(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.touch()
    path.chmod(0o664)

    def refused(*arguments):
        raise PermissionError

    real = os.lstat

    def of_another_group(name):
        found = list(real(name))
        found[5] += 1
        return os.stat_result(found)

    monkeypatch.setattr(_atomic.os, "chown", refused)
    monkeypatch.setattr(_atomic.os, "lstat", of_another_group)
    write_page(path, "page")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


# --- names that are not to be replaced ----------------------------------------------


def no_links(*arguments):
    raise OSError(95, "Operation not supported")


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_a_file_that_appears_meanwhile_stays(links, early, tmp_path, monkeypatch):
    if not links:
        monkeypatch.setattr(_atomic.os, "link", no_links)
    path = tmp_path / "a"
    if early:
        path.write_text("theirs")
    with (
        pytest.raises(FileExistsError, match="a exists, and is not to be replaced"),
        _atomic.atomic_file(path, replace=False) as file,
    ):
        assert not early
        file.write(b"ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_free_is_taken(links, tmp_path, monkeypatch):
    if not links:
        monkeypatch.setattr(_atomic.os, "link", no_links)
    with _atomic.atomic_file(tmp_path / "a", replace=False) as file:
        file.write(b"ours")
    assert (tmp_path / "a").read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["a"]


def test_a_disk_that_fails_after_all_leaves_the_name_free(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic.os, "link", no_links)
    monkeypatch.setattr(_atomic.os, "replace", no_links)
    with (
        pytest.raises(OSError, match="not supported") as found,
        _atomic.atomic_file(tmp_path / "a", replace=False) as file,
    ):
        file.write(b"ours")
    assert found.value.errno == 95
    assert os.listdir(tmp_path) == []


def test_errors_name_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def fails(source, target):
        raise OSError(5, "Input/output error", str(source), None, str(target))

    monkeypatch.setattr(_atomic.os, "replace", fails)
    with pytest.raises(OSError) as found:
        write_page(tmp_path / "p.html", "page")
    assert found.value.filename == str(tmp_path / "p.html")
    assert ".part" not in str(found.value)


# --- nothing is written elsewhere ---------------------------------------------------

SOURCE = Path(clml.__file__).parent
# Those that may, and what they write.
OPENERS = {
    "_support/atomic.py": {"open", "os.open", "os.replace", "os.link"},
    # To read, or to append to what is there.
    "_support/paths.py": {"os.open"},
    # Records are lines, claims and locks are files of their own kind.
    "experiments/_store.py": {"path.open"},
    # In the folder of a job, which is temporary.
    "experiments/_cell.py": {"unfinished.write_bytes", "os.replace"},
    "experiments/_limits.py": {"path.write_bytes", "(folder / 'output').open"},
    # Within an archive.
    "persistence/_container.py": {"archive.open"},
    # Its file is made by `atomic_path`.
    "datasets/_download.py": {"open"},
}
_NAMES = ("write_text", "write_bytes", "os.replace", "os.rename", "os.link", "os.open")


def _writes(node):
    """Whether a call opens a file to write, or moves one."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    if name.endswith(_NAMES):
        return True
    if not name.endswith("open") or name == "os.open":
        return False
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "mode")]
    modes = [a.value for a in given if isinstance(a, ast.Constant)]
    return any(isinstance(m, str) and set(m) & set("wxa+") for m in modes)


def test_all_files_are_written_in_one_place():
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {ast.unparse(n.func) for n in ast.walk(tree) if _writes(n)}
        if names:
            found[path.relative_to(SOURCE).as_posix()] = names
    assert found == OPENERS


KILLED = """
import os, signal, sys
from pathlib import Path
from clml._support.atomic import atomic_texts

os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
with atomic_texts(Path(sys.argv[1])) as [file]:
    file.write("half")
"""


@needs_posix
def test_a_killed_write_leaves_what_is_swept(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "plan.json"], check=False)
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    Store(tmp_path)
    assert not left.exists()

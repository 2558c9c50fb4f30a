"""What the library does that nobody asked for: nothing."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import clml
from clml._support import atomic as _atomic

SOURCE = Path(clml.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# Python itself tells a hook of what is about to happen, whoever asked for it.
GUARD = """
import sys

REFUSED = (
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto",
    "subprocess.Popen", "os.system", "os.fork", "os.exec", "os.posix_spawn",
)

def guard(event, arguments):
    # Older joblib counts cores, older threadpoolctl looks for the C library so.
    if event == "subprocess.Popen" and arguments[0] in ("lscpu", "/sbin/ldconfig"):
        return
    if event in REFUSED:
        raise RuntimeError(f"refused: {event} {arguments!r}")

sys.addaudithook(guard)
"""
IMPORTS = """
import threading
import clml, clml.cli
from clml import CLMLClassifier, LebesgueStackingClassifier, LebesgueTunedClassifier
import clml.baselines, clml.datasets, clml.experiments, clml.persistence
import clml.plots, clml.report

assert threading.active_count() == 1, threading.enumerate()
"""
WORK = """
import numpy as np
from clml.persistence import load, save

X = np.random.default_rng(0).normal(size=(40, 4))
Y = (X[:, :3] > 0).astype(int)
for clf in (
    CLMLClassifier(n_members=2, max_epochs=2, n_jobs=2, random_state=0),
    clml.baselines.MLkNNClassifier(),
):
    clf.fit(X, Y).predict_proba(X)
    save(clf, "model.clml")
    assert (load("model.clml").predict(X) == clf.predict(X)).all()
"""


def run(code, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", GUARD + code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("import urllib.request as r; r.urlopen('http://127.0.0.1:9')", "socket."),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("import os; os.system('true')", "os.system"),
    ],
)
def test_the_guard_refuses(code, event, tmp_path):
    assert f"refused: {event}" in run(code, tmp_path).stderr


def test_no_network_process_or_thread_unasked(tmp_path):
    result = run(IMPORTS + WORK, tmp_path)
    assert result.returncode == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.clml"]


@cache
def nodes_of(path):
    """Return the imports and calls of a file, wherever they stand."""
    wanted = (ast.Import, ast.ImportFrom, ast.Call)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, wanted)]


def imports_of(path):
    """Return the modules that a file imports."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module)
    return found


def importers(*modules):
    """Return the files of the library that import one of the modules."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        for name in imports_of(path)
        if any(name == m or name.startswith(f"{m}.") for m in modules)
    }


def test_one_module_uses_the_network():
    network = ("urllib.request", "http", "ftplib", "requests", "ssl", "asyncio")
    assert importers(*network) == {"datasets/_download.py"}
    # The name of the machine, for the lock of a run; a cluster, if one is given.
    assert importers("socket") == {"experiments/_store.py"}
    text = (SOURCE / "experiments" / "_store.py").read_text(encoding="utf-8")
    assert set(re.findall(r"\bsocket\.(\w+)", text)) == {"gethostname"}
    # Where a user has named a cluster.
    assert importers("distributed") == {
        "_distributed/partition_sources.py",
        "_support/cluster.py",
        "engine/dask.py",
    }


def test_experiments_alone_start_processes():
    assert importers("subprocess", "multiprocessing", "pty") == {
        "experiments/_limits.py"
    }


# Calls that run what a file says, and what may stand for them here.
UNSAFE = {
    "pickle.load": set(),
    # What a fit has sent to a worker over dask, which unpickles all that it is sent.
    "pickle.loads": {"_distributed/partition_sources.py"},
    "pickle.Unpickler": set(),
    "joblib.load": set(),
    "torch.load": set(),
    "shelve.open": set(),
    "marshal.loads": set(),
    "eval": set(),
    "exec": set(),
    "compile": set(),
    # An order from a process to the job that it has started, through a pipe.
    "cloudpickle.loads": {"experiments/_methods.py"},
}


@cache
def calls_of(path):
    """Return the calls of a file: the name, as written, and the node."""
    return [
        (ast.unparse(node.func).replace("()", ""), node)
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
    ]


@pytest.mark.parametrize("name", UNSAFE)
def test_nothing_that_was_read_is_executed(name):
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        for called, _ in calls_of(path)
        if called == name
    }
    assert found == UNSAFE[name]


def test_arrays_are_never_unpickled():
    for path in FILES:
        for name, node in calls_of(path):
            given = {k.arg: ast.unparse(k.value) for k in node.keywords}
            assert given.get("allow_pickle", "False") == "False", (path.name, name)


# Names that someone else on the machine could foresee.
FORESEEN = {
    r"\bmktemp\(": "a name that is taken later",
    r"gettempdir|['\"]/(var/)?tmp\b|\$TMPDIR": "a fixed place for all users",
    r"(getpid|time|gethostname)\(\)[^\n]*\.(tmp|part)\b": "a name that can be foreseen",
    r"\.(tmp|part)\b[^\n]*(getpid|time|gethostname)\(\)": "a name that can be foreseen",
}


@pytest.mark.parametrize("pattern", FORESEEN, ids=FORESEEN.values())
def test_no_temporary_file_has_a_name_that_can_be_foreseen(pattern):
    found = [p.name for p in FILES if re.search(pattern, p.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "tempfile.mktemp('.x')",
        f"open('/{'tmp'}/clml.txt', 'w')",
        "name = f'{os.getpid()}.tmp'",
        "name = f'model.tmp.{os.getpid()}'",
    ],
)
def test_such_names_would_be_found(line):
    assert any(re.search(pattern, line) for pattern in FORESEEN)


def test_names_of_unfinished_files_are_random(tmp_path):
    names = set()
    for _ in range(50):
        with _atomic.atomic_path(tmp_path / "model") as path:
            path.touch()
            names.add(path.name)
        with _atomic.atomic_texts(tmp_path / "text"):
            (found,) = tmp_path.glob(".*")
            names.add(found.name)
    assert len(names) == 100
    assert all(re.fullmatch(r"\.[0-9a-f]{16}\.part", name) for name in names)


def test_a_link_under_the_name_of_an_unfinished_file_is_not_followed(
    tmp_path, monkeypatch
):
    """Even one who foresees the name cannot have us write elsewhere."""
    from sklearn.datasets import make_multilabel_classification

    from clml.baselines import GaussianNBRelevance
    from clml.persistence import save

    X, Y = make_multilabel_classification(n_samples=20, n_classes=2, random_state=0)
    model = GaussianNBRelevance().fit(X, Y)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(_atomic.secrets, "token_hex", lambda n: "0" * (2 * n))

    def write_text(path):
        with _atomic.atomic_texts(path) as [file]:
            file.write("ours")

    (tmp_path / ".0000000000000000.part").symlink_to(victim)
    for write in (write_text, lambda path: save(model, path)):
        with pytest.raises(FileExistsError):
            write(tmp_path / "target")
        assert victim.read_text() == "precious"
        assert not (tmp_path / "target").exists()

"""Fits where a loop of asyncio runs: notebooks and servers."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from clml import CLMLClassifier

SHORT = {"n_members": 2, "max_epochs": 2, "shrinkage": 0.5, "random_state": 0}
CELLS = (
    """
import numpy as np
from clml import CLMLClassifier

X = np.random.default_rng(0).normal(size=(40, 4))
Y = (X[:, :3] > 0).astype(int)
clf = CLMLClassifier(n_members=2, max_epochs=3, n_jobs=2, random_state=0, verbose=1)
clf.fit(X, Y)
""",
    """
import asyncio

assert asyncio.get_running_loop().is_running()
print((await asyncio.to_thread(clf.set_params(verbose=0).fit, X, Y)).predict(X).shape)
""",
)
# Starts a kernel as Jupyter does, and prints what the cells give.
NOTEBOOK = f"""
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3")
try:
    for cell in {CELLS!r}:
        def show(message):
            content = message["content"]
            if message["msg_type"] == "execute_result":
                print(content["data"]["text/plain"])
                print("html" if "text/html" in content["data"] else "plain")
            elif message["msg_type"] == "stream":
                print(content["text"])
        reply = client.execute_interactive(cell, timeout=60, output_hook=show)
        assert reply["content"]["status"] == "ok", reply["content"]
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


def test_a_fit_inside_a_running_loop(small_data):
    X, Y = small_data
    expected = CLMLClassifier(**SHORT).fit(X, Y).decision_function(X)

    async def cell():
        return CLMLClassifier(**SHORT, n_jobs=2).fit(X, Y).decision_function(X)

    assert (asyncio.run(cell()) == expected).all()


def test_a_server_answers_while_it_fits(small_data):
    """A fit in a thread of the loop leaves the loop its turns."""
    X, Y = small_data

    async def serve():
        fit = asyncio.to_thread(CLMLClassifier(**SHORT).fit, X, Y)
        task, turns = asyncio.create_task(fit), 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0.001)
        return turns, (await task).predict(X).shape

    turns, shape = asyncio.run(serve())
    assert turns > 3 and shape == Y.shape


def test_a_notebook(tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    # The kernel of this environment, not one that a user has installed elsewhere.
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix) / "share" / "jupyter"))
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    result = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "epoch     3" in result.stdout  # a line an epoch, as in a terminal
    assert "CLMLClassifier(" in result.stdout and "html" in result.stdout
    assert "(40, 3)" in result.stdout

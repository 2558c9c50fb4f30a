"""What the documentation shows must run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clml.losses import list_losses

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


# What select says of small data is no fault of an example.
WARNINGS = ("-W", "error", "-W", "ignore:No model of the front is clearly better")


def run(*arguments, cwd):
    result = subprocess.run(
        [sys.executable, *WARNINGS, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "MPLBACKEND": "agg", "MPLCONFIGDIR": str(cwd)},
    )
    assert result.returncode == 0, result.stderr


def test_readme_example(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    run("-c", code, cwd=tmp_path)


def test_encodings_example(tmp_path):
    text = (ROOT / "docs" / "encodings.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    run("-c", code, cwd=tmp_path)


def test_learning_examples(tmp_path):
    text = (ROOT / "docs" / "learning.md").read_text(encoding="utf-8")
    *_, code = blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "class Linear" in code
    fit = """
from sklearn.datasets import make_multilabel_classification

X, Y = make_multilabel_classification(60, random_state=0)
clf.set_params(max_epochs=2, n_members=2).fit(X, Y)
assert clf.predict(X).shape == Y.shape
"""
    run("-c", "\n".join([*blocks, fit]), cwd=tmp_path)


def test_readme_links():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    run(str(path), str(tmp_path / "picture.png"), cwd=tmp_path)
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_readme_counts_the_losses():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    n, tracked, evaluation = (
        len(list_losses(role=role)) for role in ("objective", "tracked", "evaluation")
    )
    expected = (
        f"{n} losses to optimise, {tracked} to follow and {evaluation} for evaluation"
    )
    assert expected in text

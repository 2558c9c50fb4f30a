"""The command that writes the page of an experiment."""

import json

import pytest
from click.testing import CliRunner

from clml._commands._report import report


@pytest.fixture
def folder(tmp_path):
    plan = {"datasets": ["d"], "methods": ["a"], "losses": ["hamming"]}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (tmp_path / "records.jsonl").write_text("", encoding="utf-8")
    return tmp_path


def test_writes_a_page(folder):
    page = folder / "page.html"
    result = CliRunner().invoke(report, [str(folder), "-o", str(page)])
    assert result.exit_code == 0, result.output
    assert "Nothing has finished yet." in page.read_text(encoding="utf-8")
    assert str(page) in result.output
    result = CliRunner().invoke(
        report, [str(folder), "-o", str(page), "--force", "--json"]
    )
    assert json.loads(result.output) == {
        "page": str(page),
        "bytes": page.stat().st_size,
    }


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("plan.json", "--force replaces it"),
        ("nowhere/page.html", "existing folder"),
        (".", "is a folder"),
    ],
)
def test_bad_places_are_refused(folder, output, message):
    before = sorted(p.name for p in folder.iterdir())
    result = CliRunner().invoke(report, [str(folder), "-o", str(folder / output)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert sorted(p.name for p in folder.iterdir()) == before

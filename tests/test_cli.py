import subprocess
import sys

from click.testing import CliRunner

from clml import __version__
from clml.cli import main
from clml.datasets._registry import list_datasets
from clml.losses import list_losses


def test_version():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_losses_are_listed():
    result = CliRunner().invoke(main, ["losses"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list_losses()


def test_demo_prints_a_table(tmp_path):
    page = str(tmp_path / "page.html")
    result = CliRunner().invoke(main, ["demo", "--epochs", "3", "--page", page])
    assert result.exit_code == 0, result.output
    for word in ("hamming", "logistic regression", "select('lrap')", "a front of"):
        assert word in result.output


def test_datasets_are_listed(tmp_path):
    home = tmp_path / "my[red]data"
    (home / "flags").mkdir(parents=True)
    (home / "flags" / "flags.arff.xz").touch()
    result = CliRunner().invoke(
        main, ["datasets", "--data-home", str(home)], env={"COLUMNS": "400"}
    )
    assert result.exit_code == 0, result.output
    table, _, legend = result.output.partition("\n\n")
    assert f"folder 1: {home}" in legend
    header, *rows = table.splitlines()
    assert header.split()[:4] == ["name", "rows", "features", "labels"]
    assert [row.split()[0] for row in rows] == list_datasets()
    table = {row.split()[0]: row.split()[1:] for row in rows}
    assert table["flags"] == ["194", "19", "7", "3.392", "known", "1"]
    assert table["mediamill"] == ["43,907", "120", "101", "4.376", "known"]
    assert table["rcv1subset1"][-1] == "none"


def test_datasets_in_a_narrow_terminal_keep_their_names(tmp_path):
    environment = {"COLUMNS": "80", "CLML_CACHE": str(tmp_path), "CLML_DATA": ""}
    result = CliRunner().invoke(main, ["datasets"], env=environment)
    assert result.exit_code == 0
    assert "nus-wide-cvladplus" in result.output


def test_demo_refuses_a_folder_that_cannot_be_written(tmp_path):
    page = str(tmp_path / "absent" / "page.html")
    result = CliRunner().invoke(main, ["demo", "--page", page])
    assert result.exit_code == 2
    assert "existing folder that can be written" in result.output


def test_the_package_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "clml", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("clml, version")

from click.testing import CliRunner

from clml import __version__
from clml.cli import main
from clml.losses import list_losses


def test_version():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_losses_are_listed():
    result = CliRunner().invoke(main, ["losses"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list_losses()


def test_demo_prints_a_table():
    result = CliRunner().invoke(main, ["demo", "--epochs", "3"])
    assert result.exit_code == 0, result.output
    for word in ("hamming", "logistic regression", "select('lrap')", "a front of"):
        assert word in result.output

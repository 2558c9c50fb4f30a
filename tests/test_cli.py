import json
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import clml
from clml import __version__
from clml._commands.support import CommandGroup, LazyCommand, debug_option, print_json
from clml.cli import main
from clml.datasets.registry import list_datasets
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


def test_losses_as_json():
    found = json.loads(CliRunner().invoke(main, ["losses", "--json"]).stdout)
    assert [row["name"] for row in found] == list_losses()
    assert set(found[0]) == {"name", "role", "summary"}


def test_datasets_as_json(tmp_path):
    (tmp_path / "flags").mkdir()
    (tmp_path / "flags" / "flags.arff.xz").touch()
    arguments = ["datasets", "--json", "--data-home", str(tmp_path)]
    found = json.loads(CliRunner().invoke(main, arguments).stdout)
    found = {row["name"]: row for row in found}
    assert sorted(found) == list_datasets()
    assert found["flags"]["files"] == [str(tmp_path / "flags" / "flags.arff.xz")]
    assert (found["flags"]["rows"], found["yeast"]["files"]) == (194, [])


# --- start-up --------------------------------------------------------------------

# The package itself is left out: what is measured is the command line.
WITHOUT_PACKAGE = """
import sys, types
package = types.ModuleType("clml")
package.__path__ = [{folder!r}]
sys.modules["clml"] = package
from clml.cli import main
main({arguments!r}, prog_name="clml", standalone_mode=False)
heavy = {{"numpy", "scipy", "sklearn", "numba", "rich", "torch"}} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    folder = str(Path(clml.__file__).parent)
    code = WITHOUT_PACKAGE.format(folder=folder, arguments=arguments)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "Usage: clml" in result.stdout


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_every_command_has_help(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "--debug" in result.output or name in ("bench", "reproduce", "report")


@pytest.mark.parametrize("name", ["train", "tune", "predict", "evaluate", "front"])
def test_help_shows_examples(name):
    assert f"  clml {name} " in CliRunner().invoke(main, [name, "--help"]).output


def test_a_command_whose_module_is_absent_is_not_listed():
    lazy = {
        "absent": LazyCommand("._absent", "absent", "Not there."),
        "front": LazyCommand("._models", "front", "There."),
    }
    group = CommandGroup(name="group", lazy=lazy)
    output = CliRunner().invoke(group, ["--help"]).output
    assert "There." in output
    assert "absent" not in output
    assert CliRunner().invoke(group, ["absent"]).exit_code == 2


def test_a_command_that_is_misspelt():
    result = CliRunner().invoke(main, ["traine"])
    assert result.exit_code == 2
    assert "Did you mean 'train'" in result.stderr


# --- errors ----------------------------------------------------------------------


def failing(error):
    @click.group(cls=CommandGroup)
    @debug_option
    def group():
        pass

    @group.command()
    @debug_option
    def fail():
        if isinstance(error, Warning):
            for _ in range(2):
                warnings.warn(error, stacklevel=1)
            return
        raise error

    return group


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("n must be 1, got 2."), 1, "Error: n must be 1, got 2.\n"),
        (
            FileNotFoundError(2, "No such file", "a.csv"),
            1,
            "Error: No such file: a.csv",
        ),
        (ImportError("pip install x"), 1, "Error: pip install x"),
        (MemoryError(), 1, "not enough memory"),
        (KeyError("x"), 1, "KeyError: 'x'\nThis is a fault of clml; --debug shows"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (click.UsageError("what?"), 2, "what?"),
    ],
)
def test_errors_are_a_line_and_a_code(error, code, message):
    result = CliRunner().invoke(failing(error), ["fail"])
    assert result.exit_code == code
    assert message in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--debug", "fail"], {}),
        (["fail", "--debug"], {}),
        (["fail"], {"CLML_DEBUG": "1"}),
    ],
)
def test_debug_shows_the_error_itself(arguments, environment):
    error = ValueError("x")
    result = CliRunner().invoke(failing(error), arguments, env=environment)
    assert result.exception is error


@pytest.mark.filterwarnings("always")
def test_a_warning_is_one_line():
    result = CliRunner().invoke(failing(UserWarning("mind this")), ["fail"])
    assert result.exit_code == 0
    assert result.stderr == "Warning: mind this\n"


def printing(command):
    @click.group(cls=CommandGroup)
    def group():
        pass

    group.command(name="show")(command)
    return group


@pytest.mark.parametrize(("charset", "shown"), [("utf-8", "ł"), ("cp1252", r"\u0142")])
def test_anything_can_be_printed(charset, shown):
    group = printing(lambda: click.echo("é ł \ud800"))
    result = CliRunner(charset=charset).invoke(group, ["show"])
    assert result.exit_code == 0, result.exception
    assert result.stdout == f"é {shown} \\ud800\n"


@pytest.mark.parametrize("charset", ["utf-8", "cp1252", "ascii"])
@pytest.mark.parametrize("text", ["é", "é ł \ud800"])
def test_any_text_comes_back_from_json(charset, text):
    group = printing(lambda: print_json({text: text}))
    result = CliRunner(charset=charset).invoke(group, ["show"])
    assert result.exit_code == 0, result.exception
    assert json.loads(result.stdout) == {text: text}


def test_stdout_is_left_as_it_was(capsys):
    before = sys.stdout.errors
    printing(lambda: click.echo("\ud800"))(["show"], standalone_mode=False)
    assert sys.stdout.errors == before
    assert capsys.readouterr().out == "\\ud800\n"


def test_json_has_no_numbers_that_json_has_not(capsys):
    print_json({"a": [float("nan"), 1.0], "where": Path("x"), "b": (True, None)})
    expected = {"a": [None, 1.0], "where": "x", "b": [True, None]}
    assert json.loads(capsys.readouterr().out) == expected

"""What the commands share: errors without tracebacks, JSON, places to write to."""

from __future__ import annotations

import difflib
import errno
import itertools
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

from .._support.atomic import atomic_path, check_place

_Command = TypeVar("_Command", bound=Callable[..., Any])

DEBUG_VARIABLE = "CLML_DEBUG"
INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C ended
_DEBUG = "clml.debug"
# What is wrong with data, models and settings; anything else is our own fault.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is, and what the list of commands says of it.

    ``clml --help`` imports none of them: some need packages that take seconds.
    """

    module: str
    attribute: str
    short_help: str

    def load(self) -> click.Command:
        """Return the command itself."""
        command = getattr(import_module(self.module, __package__), self.attribute)
        assert isinstance(command, click.Command)
        return command

    def exists(self) -> bool:
        """Tell whether its module is there, without importing it."""
        return find_spec(self.module, __package__) is not None


class CommandGroup(click.Group):
    """A group that imports its commands on demand and reports errors in a line.

    Parameters
    ----------
    lazy : mapping of str to LazyCommand
        Commands by name.
    **settings
        Of ``click.Group``.
    """

    def __init__(self, *, lazy: Mapping[str, LazyCommand] | None = None, **settings):  # type: ignore[no-untyped-def]
        super().__init__(**settings)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        there = [name for name, command in self.lazy.items() if command.exists()]
        return sorted({*super().list_commands(ctx), *there})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported if need be; None if there is none."""
        lazy = self.lazy.get(cmd_name)
        if lazy is not None and lazy.exists():
            return lazy.load()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed, or say which one was meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near or "Did you mean" in error.message:
                raise
            hint = f"{error.message} Did you mean {near[0]!r}?"
            raise click.UsageError(hint, ctx) from None

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands."""
        rows = []
        for name in self.list_commands(ctx):
            lazy = self.lazy.get(name)
            command = None if lazy is not None else self.get_command(ctx, name)
            short = lazy.short_help if lazy is not None else ""
            if command is not None:
                short = command.get_short_help_str(limit=80)
            rows.append((name, short))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn errors into a line and an exit code."""
        with _plain_warnings(), _any_text():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                click.echo("Interrupted.", err=True)
                ctx.exit(INTERRUPTED)
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except Exception as error:
                closed = isinstance(error, OSError) and error.errno == errno.EPIPE
                if closed or is_debugging(ctx):
                    raise
                click.echo(f"Error: {error_message(error)}", err=True)
                ctx.exit(1)


def error_message(error: Exception) -> str:
    """Return what the user is told of an error.

    Examples
    --------
    >>> from clml._commands.support import error_message
    >>> error_message(ValueError("epochs must be positive, got -1."))
    'epochs must be positive, got -1.'
    >>> error_message(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'No such file or directory: a.csv'
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    if isinstance(error, MemoryError) and not str(error):
        return "There is not enough memory."
    if isinstance(error, _EXPECTED):
        return str(error) or type(error).__name__
    return (
        f"{type(error).__name__}: {error}\nThis is a fault of clml; --debug shows "
        "where it happened."
    )


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings as lines of their own, each once, without our source."""
    seen = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        if text not in seen:
            seen.add(text)
            click.echo(f"Warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _any_text() -> Iterator[None]:
    """Print what stdout's encoding lacks as Python shows it; stderr does so anyway.

    Names of files and labels may hold halves of characters, which no encoding has.
    """
    stdout = sys.stdout
    before = getattr(stdout, "errors", None)
    if before is None or not hasattr(stdout, "reconfigure"):
        yield
        return
    stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        if not stdout.closed:
            stdout.reconfigure(errors=before)


# --- options ---------------------------------------------------------------------


def is_debugging(ctx: click.Context) -> bool:
    """Tell whether tracebacks are wanted: --debug, or CLML_DEBUG=1."""
    wanted = os.environ.get(DEBUG_VARIABLE, "").lower() not in ("", "0", "false", "no")
    return wanted or bool(ctx.find_root().meta.get(_DEBUG))


def _start_debugging(ctx: click.Context, parameter: click.Parameter, value: bool):  # type: ignore[no-untyped-def]
    if value:
        ctx.find_root().meta[_DEBUG] = True


def debug_option(command: _Command) -> _Command:
    """Add --debug, which works before and after the name of a command."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_start_debugging,
        help="Show where an error happened (or set CLML_DEBUG=1).",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add --json, and --debug after it."""
    add = click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the result as JSON; everything else goes to stderr.",
    )
    return add(debug_option(command))


def force_option(command: _Command) -> _Command:
    """Add --force."""
    return click.option(
        "--force", is_flag=True, help="Replace the output if it exists."
    )(command)


def check_output(path: Path, force: bool, hint: str = "-o") -> None:
    """Refuse a place that cannot be written, before the work and not after it."""
    folder = path.absolute().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        problem = f"{path} must be in an existing folder that can be written."
    else:
        try:
            check_place(path)
        except OSError as error:
            problem = str(error)
        else:
            if force or not path.exists():
                return
            problem = f"{path} exists; --force replaces it."
    raise click.BadParameter(problem, param_hint=hint)


def keep_model(model: Any, path: Path, force: bool) -> Path:
    """Save a model; return where it is.

    Unless it may be replaced, a file that has appeared since ``check_output`` stays as
    it is, and the model, which took its time, goes beside it under another name.
    """
    from ..persistence import save

    place = path
    for number in itertools.count(2):
        try:
            with atomic_path(place, replace=force) as temporary:
                save(model, temporary)
            break
        except FileExistsError:
            place = path.with_stem(f"{path.stem}-{number}")
    return place


# --- what is printed -------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it; NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    plain = _plain(value)
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # as escapes of JSON, which everything has
        text = json.dumps(plain, indent=2)
    click.echo(text)


def say(message: str) -> None:
    """Print what is no result, on stderr."""
    click.echo(message, err=True)


@contextmanager
def working(message: str, spins: bool = True) -> Iterator[None]:
    """Show on stderr that something takes its time; in a terminal, that it moves.

    What the library prints meanwhile goes to stderr, too: stdout is for results.
    ``spins`` is False where something else moves, such as a bar.
    """
    from contextlib import redirect_stdout

    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with redirect_stdout(sys.stderr):
        if console.is_terminal and spins:
            with console.status(message, spinner="line"):
                yield
        else:
            say(message)
            yield


class EpochBar:
    """A callback of scikit-learn that shows the epochs of a fit on stderr.

    Nothing is shown where stderr is no terminal.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Show the bar."""
        self._bar.start()

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take it away."""
        self._bar.stop()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Learn how many epochs there are."""
        if self._task is None:
            self._task = self._bar.add_task("fit", total=context.max_subtasks)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Count an epoch; never ask to stop."""
        if context.task_name == "epoch":
            self._bar.advance(self._task)
        return False

import sys

import numpy as np
import pytest

from clml.plots import CriticalDifferenceDisplay, save_figure
from clml.plots._style import (
    check_numbers,
    import_matplotlib,
    loss_label,
    without_windows,
)


def drawn():
    return CriticalDifferenceDisplay([1, 2.5, 2], list("abc"), 0.6).plot().figure_


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_same_numbers_give_the_same_bytes(kind, tmp_path):
    paths = [save_figure(drawn(), tmp_path / f"{i}.{kind}") for i in range(2)]
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert len(first) > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"0.{kind}",
        f"1.{kind}",
    ]


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
@pytest.mark.parametrize("name", [r"$\frac$", "a\ud800", r"\$x$y$"])
def test_names_are_no_formulas_and_may_hold_anything(kind, name, tmp_path):
    display = CriticalDifferenceDisplay([1, 2, 3], [name, "b", loss_label(name)], 1.0)
    with without_windows():
        display.plot()
    assert save_figure(display.figure_, tmp_path / f"f.{kind}").stat().st_size > 0


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_text("old")
    figure = drawn()
    monkeypatch.setattr(figure, "savefig", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_figure(figure, path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("a.gif", ValueError, "path must end in one of .svg, .png, .pdf, got 'a.gif'"),
        ("a", ValueError, "path must end in"),
        ("absent/a.svg", FileNotFoundError, "No such folder"),
    ],
)
def test_bad_paths(name, error, message, tmp_path):
    with pytest.raises(error, match=message):
        save_figure(drawn(), tmp_path / name)


def test_without_windows_no_figure_is_kept_open():
    from matplotlib import pyplot

    with without_windows():
        drawn()
    assert pyplot.get_fignums() == []
    drawn()
    assert len(pyplot.get_fignums()) == 1


def test_missing_matplotlib_says_which_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'clml\[plots\]'"):
        import_matplotlib()
    display = CriticalDifferenceDisplay([1, 2], ["a", "b"], 0.5)
    with pytest.raises(ImportError, match=r"clml\[plots\]"):
        display.plot()


@pytest.mark.parametrize(
    ("values", "error"), [(["a"], TypeError), ([[1], [1, 2]], TypeError)]
)
def test_values_that_are_no_numbers(values, error):
    with pytest.raises(error, match="losses must be an array of numbers"):
        check_numbers("losses", values, None)


def test_numbers_are_copied():
    values = np.ones(3)
    assert not np.shares_memory(check_numbers("x", values, 3), values)

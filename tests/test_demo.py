import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal
from rich.console import Console

from clml import CLMLClassifier, __version__
from clml._commands import demo as _demo
from clml._commands._demo_charts import _apart, _ticks, curve_plot, dot_plot, front_plot
from clml._commands._demo_page import render_page, write_page
from clml._commands.demo import (
    LOSSES,
    DemoResult,
    Method,
    compare,
    geometric_mean,
    verdict,
)
from clml.cli import main

VOID = {"meta"}


def method(name, kind, losses, select=None):
    losses = np.array(losses, dtype=float)
    return Method(name, kind, losses, losses + 0.01, select)


@pytest.fixture
def made_up():
    return DemoResult(
        methods=(
            method("plain", "baseline", [0.30, 0.30, 0.30]),
            method("rival", "network", [0.20, 0.25, 0.20]),
            method("CLML", "clml", [0.25, 0.20, 0.25]),
            # Best of all at Hamming loss, but selected for another loss.
            method("CLML.select('lrap')", "clml", [0.10, 0.22, 0.26], "lrap"),
        ),
        bayes=np.array([0.1, 0.1, 0.1]),
        bayes_drawn=np.array([0.11, 0.11, 0.11]),
        sorted_marginals=0.125,
        front=np.array([[0.25, 0.2, 0.25], [0.1, 0.22, 0.26]]),
        curve=np.array([[0.5, 0.4, 0.6], [0.3, 0.2, 0.25]]),
        settings={"clml": "1", "seed": "3", "training rows": "70", "test rows": "30"},
    )


@pytest.fixture(scope="module")
def trained():
    """Return a short run, and the training rows that each method was given."""
    given = []

    def spy(function, first):
        def called(*arguments, **keywords):
            given.append(arguments[first : first + 2])
            return function(*arguments, **keywords)

        return called

    with pytest.MonkeyPatch.context() as patch:
        for owner, name, first in (
            (_demo, "fit_cross_entropy", 0),
            (_demo.MultiOutputClassifier, "fit", 1),
            (CLMLClassifier, "fit", 1),
        ):
            patch.setattr(owner, name, spy(getattr(owner, name), first))
        result = compare(3, 0, Console(file=io.StringIO()))
    return result, given


def test_verdict_names_the_winners(made_up):
    text = verdict(made_up)
    assert text[0] == (
        "hamming: rival comes nearest to the Bayes value 0.1000 with 0.2000; "
        "CLML has 0.2500."
    )
    assert text[1].startswith("lrap: CLML comes nearest")
    assert "rival has 0.2500" in text[1]
    assert text[2].startswith("micro_f1: rival comes nearest")
    assert "is nearest on 1 of 3 losses" in text[3]
    assert text[3].index("rival 0.2154") < text[3].index("CLML 0.2321")
    assert "0.1250, 25.0% above the best" in text[4]
    assert "a threshold of 0.45" in text[5]


def test_verdict_follows_the_numbers(made_up):
    better = method("rival", "network", [0.11, 0.11, 0.11])
    methods = (made_up.methods[0], better, *made_up.methods[2:])
    text = verdict(replace(made_up, methods=methods))
    assert all("rival comes nearest" in sentence for sentence in text[:3])
    assert "is nearest on 0 of 3 losses" in text[3]


def test_geometric_mean():
    assert geometric_mean(np.array([0.1, 0.2, 0.4])) == pytest.approx(0.2)
    assert geometric_mean(np.array([0.0, 0.2, 0.4])) == 0


def test_every_method_gets_the_same_rows(trained):
    _, given = trained
    assert len(given) == 4
    for X, Y in given:
        assert_array_equal(X, given[0][0])
        assert_array_equal(Y, given[0][1])
    assert len(given[0][0]) == 1050


def test_nothing_is_below_the_bayes_values(trained):
    result, _ = trained
    for found in (*(m.expected for m in result.methods), *result.front):
        assert (found >= result.bayes - 1e-12).all()
    assert result.sorted_marginals >= result.bayes[1]
    selected = [m.select for m in result.methods if m.select and m.kind == "clml"]
    assert selected == list(LOSSES)
    assert [m.select for m in result.methods if m.select and m.kind == "network"] == [
        "micro_f1"
    ]
    assert result.curve.shape == (3, 3)


class Balance(HTMLParser):
    """Checks that every tag is closed, in order, and collects what is linked."""

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_needs_nothing_else(trained):
    text = render_page(trained[0])
    parser = Balance()
    parser.feed(text)
    assert parser.open == [] and parser.links == []
    assert "http" not in text and "url(" not in text and "<script" not in text
    assert "prefers-color-scheme: dark" in text and "width=device-width" in text
    for sentence in verdict(trained[0]):
        assert sentence.split(":")[0] in text
    for word in (__version__, "random_state=0", "3 epochs of 16 members"):
        assert word in text
    for m in trained[0].methods:
        for value in m.expected:
            assert f"{value:.4f}" in text


def test_page_escapes_names(made_up):
    evil = method("<script>&", "baseline", [0.3, 0.3, 0.3])
    text = render_page(replace(made_up, methods=(evil, *made_up.methods[1:])))
    assert "<script" not in text
    assert "&lt;script&gt;&amp;" in text


def test_pictures_hold_what_they_draw(trained):
    pictures = re.findall(r"<svg.*?</svg>", render_page(trained[0]), re.DOTALL)
    assert len(pictures) == 5
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        _, _, width, height = map(float, root.get("viewBox").split())
        for dot in root.iter("circle"):
            assert 0 < float(dot.get("cx")) < width
            assert 0 < float(dot.get("cy")) < height
        for words in root.iter("text"):
            assert 0 <= float(words.get("x")) <= width
            assert 0 < float(words.get("y")) < height


def test_pictures_of_constant_values():
    same = np.full(2, 0.25)
    for picture in (
        dot_plot("loss", ["a", "b"], ["clml", "baseline"], same, same, 0.25),
        front_plot(same[None], [("a", "clml", same)], same, ("one", "two")),
        curve_plot(np.full((1, 2), 0.25), ("one", "two")),
    ):
        assert "nan" not in picture
        ElementTree.fromstring(picture)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.163, 0.207, [0.17, 0.18, 0.19, 0.2]),
        (-0.1, 0.31, [-0.1, 0.0, 0.1, 0.2, 0.3]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert _ticks(low, high) == pytest.approx(expected)


def test_apart():
    assert _apart([10.0, 50.0, 12.0], 14) == [10, 50, 24]
    assert _apart([40.0, 30.0, 35.0], 10) == [50, 30, 40]


def test_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    assert write_page(path, "first") == path
    with pytest.raises(TypeError):
        write_page(path, b"second")
    assert path.read_text() == "first"
    write_page(path, "third")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "third"


def test_command_prints_and_writes(tmp_path):
    page = tmp_path / "page.html"
    result = CliRunner().invoke(
        main, ["demo", "--epochs", "2", "--seed", "1", "--page", str(page)]
    )
    assert result.exit_code == 0, result.output
    for word in ("Bayes value", "cross-entropy network", "comes nearest", page.name):
        assert word in result.output
    assert "random_state=1" in page.read_text(encoding="utf-8")


def test_the_pages_path_is_no_markup(made_up, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_demo, "compare", lambda *arguments: made_up)
    _demo.run_demo(page=tmp_path / "[bold].html")
    assert "[bold].html" in capsys.readouterr().out


def test_command_needs_a_folder_that_exists(tmp_path):
    page = tmp_path / "missing" / "page.html"
    result = CliRunner().invoke(main, ["demo", "--epochs", "1", "--page", str(page)])
    assert result.exit_code == 2
    assert "--page" in result.output and "existing folder" in result.output

"""From data to one HTML file."""

import builtins
import json
import re
from html.parser import HTMLParser

import pytest

from clml.report import build_page
from clml.report._runs import front_of
from clml.report._sections import group, table, text_cell
from clml.report.page import MOST_BYTES, json_for_script, write_page

# Names as somebody might choose them who wants a page to run a script.
NASTY = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) '\"",
    "{{ 7 * 7 }}",
    "]]><!--",
]


class Reader(HTMLParser):
    """Collects the elements of a page, its text and its scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text, self.scripts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.lasttag == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def page_of(name, n_labels=1):
    """Return a page that has a name in every place where one can stand."""
    shown = table(
        "t", name, [name, name], [[text_cell(name), text_cell(name)]], note=name
    )
    diagram = {"title": name, "note": name, "names": [name, "b"], "control": 0}
    diagram |= {"mean_ranks": [1.0, 2.0], "critical_difference": 1.0}
    section = group("g", name, text=[name], tables=[shown], diagrams=[diagram])
    section["facts"] = [[name, name]]
    front = front_of(
        [[0.1, 0.2], [0.2, 0.1]],
        [name, "lrap"],
        default={"name": name, "index": 0},
        labels=[name] * n_labels,
        relevant=[1] * n_labels,
        hits=[[1] * n_labels] * 2,
        predicted=[[1] * n_labels] * 2,
    )
    runs = [{"name": name, "front": front, "trajectory": None}] * 2
    data = {"title": name, "subtitle": name, "groups": [section], "runs": runs}
    return build_page(data | {"notes": [name]})


@pytest.mark.parametrize("name", NASTY)
def test_text_stays_text(name):
    plain, nasty = read(page_of("plain")), read(page_of(name))
    assert nasty.tags == plain.tags
    assert [(tag, key) for tag, key, _ in nasty.attributes] == [
        (tag, key) for tag, key, _ in plain.attributes
    ]
    assert len(nasty.scripts) == 2
    assert sum(name in text for text in nasty.text) > 10
    data = json.loads(nasty.scripts[0])
    assert data["runs"][0]["front"]["labels"] == [name]
    assert nasty.scripts[1] == plain.scripts[1]


@pytest.mark.parametrize("value", [*NASTY, "\u2028", {"a": [1, None, 0.5]}])
def test_json_comes_back(value):
    text = json_for_script(value)
    assert not set("<>&") & set(text)
    assert json.loads(text) == value


def test_halves_of_characters_are_shown_as_python_shows_them(tmp_path):
    page = page_of("a\ud800")
    path = write_page(tmp_path / "page.html", page)
    assert path.read_text(encoding="utf-8") == page
    found = read(page)
    assert sum(r"a\ud800" in text for text in found.text) > 10
    labels = json.loads(found.scripts[0])["runs"][0]["front"]["labels"]
    assert labels == ["a\ud800"]


def test_page_asks_nothing_of_a_network():
    page = page_of("plain")
    found = re.findall(r"(?:https?:)?//[a-z0-9.]+", page)
    assert set(found) <= {"http://www.w3.org"}  # the name space of SVG
    assert "default-src 'none'" in page
    for tag, name, value in read(page).attributes:
        if name in ("src", "href"):
            assert value.startswith(("#", "data:")), (tag, value)


def test_ids_are_unique_and_links_arrive():
    attributes = read(page_of("plain")).attributes
    ids = [value for _, name, value in attributes if name == "id"]
    # The same section, twice, would need other ids; here everything is there once.
    assert len(ids) == len(set(ids))
    links = [value[1:] for _, name, value in attributes if name == "href"]
    assert {link for link in links if link != "ata:,"} <= set(ids)


def test_same_data_same_page():
    assert page_of("plain") == page_of("plain")


def test_large_runs_lose_counts_then_their_place(monkeypatch):
    monkeypatch.setattr("clml.report.page._RUNS_BUDGET", 8_000)
    page = page_of("plain", n_labels=60)
    assert "plain: too large for label counts on this page." in page
    monkeypatch.setattr("clml.report.page._RUNS_BUDGET", 100)
    reader = read(page_of("plain"))
    assert "plain: too large for this page." in reader.text
    assert json.loads(reader.scripts[0]) == {"runs": []}


def test_pages_are_not_huge():
    words = [text_cell("x" * 1000)]
    long = group("g", "g", tables=[table("t", "t", ["a"], [words] * 9000)])
    with pytest.raises(ValueError, match=f"at most {MOST_BYTES}"):
        build_page({"title": "t", "groups": [long], "runs": []})


@pytest.mark.parametrize("data", [None, [], {}, {"runs": []}])
def test_bad_data_is_refused(data):
    with pytest.raises(ValueError, match="data must be a mapping with a title"):
        build_page(data)


def test_missing_jinja_is_explained(monkeypatch):
    real = builtins.__import__

    def without_jinja(name, *arguments, **keywords):
        if name == "jinja2":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_jinja)
    with pytest.raises(ImportError, match=r"pip install 'clml\[report\]'"):
        build_page({"title": "t"})

"""The page in a browser: what a reader does with mouse, keys, fingers."""

import functools
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from clml import ParetoFront
from clml.report import build_page, experiment_data, write_report
from clml.report._runs import front_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium: apt-get install chromium, or the like"
)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def file(results, tmp_path_factory):
    return write_report(results, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def visit(browser):
    """Return what opens a page; at the end nothing may have gone wrong in it."""
    contexts, troubles = [], []

    def visit(address, width=1200, height=900, **settings):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            reduced_motion="reduce",
            **settings,
        )
        context.set_default_timeout(5_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.on("response", lambda r: r.ok or r.status == 0 or troubles.append(r.url))
        page.goto(address if "://" in str(address) else address.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not troubles


def column(page, table, place):
    return page.locator(f"#{table} tbody tr > :nth-child({place})").all_inner_texts()


def chosen(page, run="run0"):
    return int(page.locator(f"#{run}").get_attribute("data-chosen"))


def chosen_by(page, table):
    """Return the member that each row of weights chooses, set on the sliders."""
    return page.evaluate(
        """(table) => table.map((weights) => {
            const run = document.getElementById("run0");
            const sliders = run.querySelectorAll("input[type=range]");
            sliders.forEach((slider, i) => { slider.value = weights[i]; });
            sliders[0].dispatchEvent(new Event("input"));
            return Number(run.dataset.chosen);
        })""",
        np.asarray(table).tolist(),
    )


def test_loads_from_a_server_with_one_request(visit, file):
    requests = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    handler = functools.partial(Quiet, directory=str(file.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = visit(f"http://127.0.0.1:{server.server_port}/{file.name}")
        assert page.title() == "Results of an experiment"
        assert page.locator("#run0 svg .point").count() == 40
        server.shutdown()
    assert requests == [f"/{file.name}"]


def test_sorting_by_mouse_and_keys(visit, file):
    page = visit(file)
    assert column(page, "loss-0", 1) == ["emotions", "flags", "yeast", "scene"]
    head = page.locator("#loss-0 thead th").nth(1)
    head.get_by_role("button").click()
    values = [float(text.split()[0]) for text in column(page, "loss-0", 2)]
    assert values == sorted(values)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").press("Enter")
    values = [float(text.split()[0]) for text in column(page, "loss-0", 2)]
    assert values == sorted(values, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    page.locator("#loss-0 thead button").first.press("Space")
    assert column(page, "loss-0", 1) == ["emotions", "flags", "scene", "yeast"]
    assert head.get_attribute("aria-sort") is None


@pytest.mark.parametrize("n_losses", [2, 3, 5])
def test_weights_choose_as_the_front_does(visit, tmp_path, made_up_front, n_losses):
    losses = made_up_front(members=60, seed=n_losses, n_losses=n_losses)
    losses = losses["front/validation"]
    # Members of equal weighted sums, exactly: what decides is the tie rule.
    losses[0, :2], losses[1, :2] = (0.375, 0.3125), (0.3125, 0.375)
    losses[:2, 2:] = 0.5
    names = tuple("abcde"[:n_losses])
    front = front_of(losses, names, default={"name": "none", "index": None})
    run = {"name": "r", "front": front, "trajectory": None}
    file = tmp_path / "page.html"
    file.write_text(build_page({"title": "t", "runs": [run]}), encoding="utf-8")
    page = visit(file)
    twin = ParetoFront(losses, names, np.zeros((len(losses), 1), dtype=np.float32))
    rng = np.random.default_rng(0)
    drawn = rng.integers(1, 101, size=(200, n_losses)) / 100
    table = np.vstack([np.eye(n_losses), np.full(n_losses, 0.5), drawn])
    expected = [
        twin.select(weights=dict(zip(names, weights, strict=True)))
        for weights in table.tolist()
    ]
    assert chosen_by(page, table) == expected
    assert len(set(expected)) > 5
    assert chosen_by(page, np.zeros((1, n_losses))) == expected[-1:]
    assert "All weights are 0" in page.locator("#run0 .status").inner_text()


def test_arrow_keys_move_sliders_and_everything_follows(visit, file, results):
    page = visit(file)
    assert chosen(page) == 3  # the default
    for slider in page.locator("#run0 input[type=range]").all()[1:]:
        slider.press("Home")
    artifact = results.artifact("emotions", "CLML")
    member = int(artifact["front/validation"][:, 0].argmin())
    assert chosen(page) == member
    page.locator("#run0 input[type=range]").first.press("ArrowRight")
    assert page.locator("#run0 .weight output").first.inner_text() == "0.51"
    rows = {
        row[0]: row[1:]
        for row in (
            r.split("\t")
            for r in page.locator("#run0-comparison tbody").inner_text().splitlines()
        )
    }
    for part in ("validation", "test"):
        mine = artifact[f"front/{part}"][member, 0]
        default = artifact[f"front/{part}"][3, 0]
        change = f"{mine - default:+.4f}".replace("-", "\u2212")
        shown = rows[f"Hamming loss, {part}"]
        assert shown == [f"{mine:.4f}", f"{default:.4f}", change]
    counts = [artifact[f"front/{name}"] for name in ("hits", "predicted", "relevant")]
    hits, predicted, relevant = (c[..., 0] for c in counts)
    f1 = 2 * hits / (predicted + relevant)
    cells = page.locator("#run0-labels tbody tr").first.locator("td").all_inner_texts()
    assert cells == [
        f"{relevant}",
        f"{predicted[member]}",
        f"{hits[member] / predicted[member]:.3f}",
        f"{hits[member] / relevant:.3f}",
        f"{f1[member]:.3f}",
        f"{f1[member] - f1[3]:+.3f}".replace("-", "\u2212"),
    ]


def test_presets_table_and_points_choose(visit, file):
    page = visit(file)
    for button in page.locator("#run0 .presets button").all():
        button.click()
        assert chosen(page) == int(button.get_attribute("data-member"))
        assert button.get_attribute("aria-pressed") == "true"
    page.locator("#run0 summary").click()
    page.get_by_label("Choose member 7").click()
    assert chosen(page) == 7
    assert page.locator("#run0 tr.chosen").get_attribute("data-member") == "7"
    assert page.locator("#run0 .point.chosen").get_attribute("data-member") == "7"


def test_points_tell_their_losses_and_are_clicked(visit, file):
    page = visit(file)
    point = page.locator("#run0 .point[data-member='12']")
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*place)
    tip = page.locator("#run0 [data-plot=front] .tip")
    assert tip.is_visible() and "Hamming loss 0." in tip.inner_text()
    told = int(tip.inner_text().split()[1])
    page.mouse.click(*place)
    assert chosen(page) == told
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_plots_turn_zoom_and_step_by_keys(visit, file):
    page = visit(file)
    plot = page.locator("#run0 [data-plot=front] svg")
    place = page.locator("#run0 .point").first

    def at():
        return place.get_attribute("cx"), place.get_attribute("cy")

    seen = [at()]
    for key in ("Shift+ArrowLeft", "Shift+ArrowUp", "+"):
        plot.press(key)
        assert at() not in seen
        seen.append(at())
    plot.press("0")
    assert at() == seen[0]
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 180, box["y"] + 80)
    page.mouse.up()
    assert at() not in seen
    plot.press("ArrowRight")
    tip = page.locator("#run0 [data-plot=front] .tip")
    first = tip.inner_text()
    plot.press("ArrowDown")
    assert tip.inner_text() != first
    plot.press("Enter")
    assert tip.inner_text().startswith(f"member {chosen(page)}\n")


def test_trajectory(visit, file):
    page = visit(file)
    plot = page.locator("#run0 [data-plot=trajectory]")
    assert plot.locator(".track").count() == 59
    plot.locator("svg").press("ArrowRight")
    assert plot.locator(".tip").inner_text().startswith("epoch 1\n")
    plot.get_by_label("Losses of the").select_option("incumbent, validation rows")
    plot.get_by_label("Show").select_option("last half")
    assert plot.locator(".track").count() == 29


def test_other_runs_are_drawn_when_chosen(visit, file):
    page = visit(file)
    assert page.locator("article.run:visible").count() == 1
    page.locator("#run-choice").select_option("flags, CLML, split 0")
    assert page.locator("article.run:visible").get_attribute("id") == "run1"
    assert page.locator("#run1 .point").count() == 40


def test_everything_is_reached_by_tab_and_seen(visit, file):
    page = visit(file)
    outlines = page.evaluate(
        """() => Array.from(
            document.querySelectorAll(
                "a[href], button, input, select, summary, svg[tabindex]")
        ).filter((e) => e.checkVisibility()).map((e) => {
            e.focus({ focusVisible: true });
            return [e === document.activeElement, getComputedStyle(e).outlineStyle];
        })"""
    )
    assert len(outlines) > 50
    assert all(focused and outline != "none" for focused, outline in outlines)


@pytest.mark.parametrize("width", [320, 380, 768])
def test_narrow_screens_do_not_scroll_sideways(visit, file, width):
    page = visit(file, width=width, has_touch=True)
    page.locator("#run0 summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.locator(".scroll").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth).length"
    )
    assert wide > 0  # tables scroll inside


def test_dark_and_light(visit, file):
    def colours(scheme):
        page = visit(file, color_scheme=scheme)
        style = "getComputedStyle(document.body)"
        return [
            sum(int(part) for part in page.evaluate(f"{style}.{name}")[4:-1].split(","))
            for name in ("backgroundColor", "color")
        ]

    (light, ink), (dark, chalk) = colours("light"), colours("dark")
    assert light > 700 and ink < 150
    assert dark < 100 and chalk > 600


def test_without_javascript_the_tables_are_there(visit, file, results):
    page = visit(file, java_script_enabled=False)
    assert page.locator("noscript p").is_visible()
    assert page.locator("#loss-0 tbody tr:visible").count() == 4
    assert page.locator("svg.ranks:visible").count() == 10
    assert page.locator("article.run:visible").count() == len(results.datasets)
    assert page.locator("#run1-labels tbody tr:visible").count() == 6
    assert page.locator("input:visible, .presets:visible").count() == 0


def test_names_run_no_script(visit, tmp_path, write_results, made_up_front):
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    labels = {"labels": np.array([attack] * 6)}
    folder = write_results(
        tmp_path / "results",
        datasets=[attack, "b"],
        methods=[attack, "c"],
        artifacts=made_up_front() | labels,
    )
    file = tmp_path / "page.html"
    file.write_text(build_page(experiment_data(folder)), encoding="utf-8")
    page = visit(file)
    dialogs = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.dismiss()))
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.locator("#run0-labels tbody th").first.inner_text() == attack
    page.locator("#run0 .presets button").first.click()
    assert not dialogs

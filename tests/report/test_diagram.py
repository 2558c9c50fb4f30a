"""Critical-difference diagrams as SVG."""

from xml.etree import ElementTree

import numpy as np
import pytest

from clml.report._diagram import MARGIN, WIDTH, critical_difference_svg

NAMES = ["a", "b", "c"]


def elements(svg, css):
    return [e for e in ElementTree.fromstring(svg).iter() if e.get("class") == css]


def test_bars_join_the_groups():
    svg = critical_difference_svg(NAMES, [1.0, 1.5, 3.0], 0.8, groups=[(0, 1)])
    (bar,) = elements(svg, "group")
    # Rank 1 stands at the left margin, rank 3 at the right one.
    width = WIDTH - 2 * MARGIN
    assert float(bar.get("x1")) == pytest.approx(MARGIN - 4)
    assert float(bar.get("x2")) == pytest.approx(MARGIN + width / 4 + 4)
    assert not elements(svg, "band")


def test_band_around_the_control_stays_on_the_scale():
    svg = critical_difference_svg(NAMES, [1.0, 2.0, 3.0], 0.5, control=0)
    (band,) = elements(svg, "band")
    assert float(band.get("x")) == MARGIN
    assert float(band.get("width")) == pytest.approx((WIDTH - 2 * MARGIN) / 4)


@pytest.mark.parametrize("k", [2, 3, 7, 20])
def test_every_method_is_named_inside_the_picture(k):
    ranks = np.linspace(1, k, k)
    svg = critical_difference_svg([f"m{i}" for i in range(k)], ranks, 2.0)
    root = ElementTree.fromstring(svg)
    height = float(root.get("viewBox").split()[3])
    texts = "".join(root.itertext())
    assert all(f"m{i}: mean rank" in texts for i in range(k))
    heights = [float(e.get("y")) for e in root.iter() if e.tag == "text"]
    assert 0 < min(heights) and max(heights) < height


def test_names_are_escaped_and_shortened():
    svg = critical_difference_svg(['<script>"', "x" * 50], [1.0, 2.0], 1.0)
    root = ElementTree.fromstring(svg)
    assert not [e for e in root.iter() if "script" in e.tag]
    assert "x" * 50 + ": mean rank" in "".join(root.itertext())  # in the tooltip
    assert "x" * 19 + "\u2026" in "".join(root.itertext())

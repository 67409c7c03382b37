"""The pages of the documentation site in a real browser: nothing is cut off, broken or hard to read."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Visit

NARROW, WIDE = 390, 1440
LEGIBLE = 4.5  # of WCAG, level AA

MEASURE = """() => {
  const broken = [];
  const texts = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const name of texts.currentNode.data.matchAll(/CLADE_[A-Z_]+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, name.index);
      range.setEnd(texts.currentNode, name.index + name[0].length);
      if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) broken.push(name[0]);
    }
  }
  return { broken, sideways: document.documentElement.scrollWidth - innerWidth };
}"""

CONTRASTS = """() => {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const luminance = colors => {
    for (const color of colors) { pixel.fillStyle = color; pixel.fillRect(0, 0, 1, 1); }
    const parts = [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).map(part => part / 255);
    const [red, green, blue] = parts.map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, text = texts.currentNode.data.trim();
    if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const behind = ["white"];
    for (let one = element; one; one = one.parentElement) behind.splice(1, 0, getComputedStyle(one).backgroundColor);
    const ink = getComputedStyle(element).color;
    const [dark, light] = [luminance(behind), luminance([...behind, ink])].sort((one, other) => one - other);
    found.push([(light + 0.05) / (dark + 0.05), text, element.className]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def measured(browser: Browser, site: Path, address: str) -> dict[tuple[str, int], dict[str, Any]]:
    """What was measured at each page on a phone, and on a wide screen where a table names a setting."""
    visit, found = Visit(browser), {}
    page = visit.page()
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).as_posix()
        page.set_viewport_size({"width": NARROW, "height": 844})
        page.goto(f"{address}/{name}")
        found[name, NARROW] = page.evaluate(MEASURE)
        if re.search("<td>.*CLADE_", file.read_text("utf-8")):
            page.set_viewport_size({"width": WIDE, "height": 844})
            found[name, WIDE] = page.evaluate(MEASURE)
    visit.close()
    assert visit.asked_elsewhere(address) == []
    assert len(found) > 64
    return found


@pytest.mark.thorough
def test_no_page_scrolls_sideways(measured: dict[tuple[str, int], dict[str, Any]]) -> None:
    assert {at: one["sideways"] for at, one in measured.items() if one["sideways"] > 0} == {}


@pytest.mark.thorough
def test_no_setting_is_broken_over_lines(measured: dict[tuple[str, int], dict[str, Any]]) -> None:
    assert {at: one["broken"] for at, one in measured.items() if one["broken"]} == {}


def test_the_first_page_shows_a_picture(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    page = visit.page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/index.html")
    picture = page.locator("article img").first
    expect(picture).to_be_in_viewport()
    assert picture.evaluate("img => img.naturalWidth") > 0
    visit.close()
    assert visit.asked_elsewhere(address) == []
    assert visit.complaints == []


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_every_text_has_enough_contrast(scheme: str, browser: Browser, address: str) -> None:
    visit = Visit(browser)
    page = visit.page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    for name in ("querying", "reference/settings"):
        page.goto(f"{address}/{name}.html")
        found = page.evaluate(CONTRASTS)
        assert len(found) > 50
        assert sorted(one for one in found if one[0] < LEGIBLE) == [], name
    visit.close()

"""The documentation site: no broken link, nothing loaded from other hosts, no page missing."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.readme import README

ROOT = README.parent
LOADS = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """The links, anchors and loaded files of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag in LOADS and LOADS[tag] in values and values.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.add(values[LOADS[tag]])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {file.relative_to(site).as_posix(): Page(file) for file in site.rglob("*.html") if file.name != "404.html"}


def test_every_page_is_in_the_site(pages: dict[str, Page]) -> None:
    written = {
        file.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for file in (ROOT / "docs").rglob("*.md")
    }
    assert pages.keys() == written | {"contributing.html"}


def test_every_page_is_linked_from_the_first_one_or_its_links(pages: dict[str, Page]) -> None:
    reached, waiting = set(), ["index.html"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [target for target, _ in targets(name, pages[name].links) if target in pages]
    assert reached == pages.keys()


def test_every_link_leads_to_an_existing_file_and_anchor(site: Path, pages: dict[str, Page]) -> None:
    broken = [
        (name, target, anchor)
        for name, page in pages.items()
        for target, anchor in targets(name, page.links)
        if not (site / target).exists() or (target in pages and anchor not in pages[target].anchors)
    ]
    assert broken == []


def test_no_page_loads_anything_from_other_hosts(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for loaded in page.loaded:
            assert not urlsplit(loaded).scheme or loaded.startswith("data:"), f"{name} loads {loaded}"
            assert loaded.startswith("data:") or (site / urljoin(name, unquote(loaded)).partition("?")[0]).exists()
    styles = "".join(file.read_text("utf-8") for file in site.rglob("*.css"))
    assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", styles)


def targets(name: str, links: set[str]) -> list[tuple[str, str]]:
    """The files and anchors within the site that the links of a page lead to."""
    inside = [link for link in links if not urlsplit(link).scheme and not link.startswith("//")]
    found = [urljoin(name, unquote(link)).partition("#") for link in inside]
    return [(target or name, anchor) for target, _, anchor in found]

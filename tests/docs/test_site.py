"""The documentation site: complete, without broken links, of its own host; what is searched is found and shown."""

import html
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Visit
from tests.readme import DOCS, ROOT
from tests.serving import handling

BUILD_SECONDS = 120
LOADS = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}
LEGIBLE = 4.5  # of WCAG, level AA
FIRST = 3
TASKS = {
    "paginate": ("lists.html", "children(first: 3)"),
    "sort by population": ("lists.html", "orderBy: [{field: POPULATION, direction: DESC}"),
    "filter": ("lists.html", "where: {"),
    "deploy on AWS": ("deploy.html", "aws cloudformation deploy"),
    "lambda": ("deploy.html", "deploy/lambda/template.yaml"),
    "terraform": ("dynamodb.html", "clade table template --format terraform"),
    "back up": ("backup.html", "clade backup backup.db"),
    "translate names": ("languages.html", 'names: [{ language: "de"'),
    "import csv": ("importing.html", "clade import location stores.csv"),
    "from my table": ("from-your-table.html", "--describe"),
    "rename a level": ("changing-a-hierarchy.html", 'was="Town"'),
    "move a subtree": ("writing.html", "renameLocation("),
    "who may see what": ("rights.html", "clade key create"),
    "api key": ("rights.html", "clade key create"),
    "cache": ("caching.html", "CLADE_MAX_AGE_SECONDS=60 clade serve"),
    "federation": ("federation.html", "clade schema --federation"),
    "type-ahead": ("type-ahead.html", "searchLocations("),
    "near me": ("find-nodes.html", "locationsNear("),
    "subscribe to changes": ("following-changes.html", "subscription {"),
    "BUDGET_EXCEEDED": ("querying.html", "first: 100"),
    "codegen": ("frontends.html", "typescript-operations"),
    "draft": ("publishing.html", "moveCategoryNode("),
    "i18n": ("languages.html", "name(languages:"),
    "hasura": ("compare.html", "PostGraphile"),
}
"""What is typed: the page that has to be among the first hits, and what it shows."""


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
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the checkout, in the environment of the tests."""
    if not (Path(sys.prefix) / "bin" / "zensical").exists():
        pytest.skip("zensical is missing: pip install -e '.[docs]'")
    checkout = tmp_path_factory.mktemp("checkout")
    for name in ("docs", "examples", "scripts", "graph/explorer/assets"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CONTRIBUTING.md", "pyproject.toml", "zensical.toml"):
        shutil.copy(ROOT / name, checkout / name)
    # Nothing is installed: the script uses the environment of the tests.
    (checkout / "scripts" / "venv.sh").write_text("install() { :; }\n")
    (checkout / ".venv").symlink_to(sys.prefix)
    built = subprocess.run(["sh", checkout / "scripts" / "docs"], capture_output=True, text=True, timeout=BUILD_SECONDS)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return checkout / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {file.relative_to(site).as_posix(): Page(file) for file in site.rglob("*.html") if file.name != "404.html"}


def targets(name: str, links: set[str]) -> list[tuple[str, str]]:
    """The files and anchors within the site that the links of a page lead to."""
    inside = [link for link in links if not urlsplit(link).scheme and not link.startswith("//")]
    found = [urljoin(name, unquote(link)).partition("#") for link in inside]
    return [(target or name, anchor) for target, _, anchor in found]


def test_every_page_is_in_the_site_and_linked_from_the_first_one_or_its_links(pages: dict[str, Page]) -> None:
    written = {file.relative_to(DOCS).with_suffix(".html").as_posix() for file in DOCS.rglob("*.md")}
    assert pages.keys() == written | {"contributing.html"}
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


def test_a_task_is_searched_in_a_browser_and_its_page_shows_how_it_is_done(browser: Browser, site: Path) -> None:
    visit = Visit(browser)
    page = visit.page(viewport={"width": 1440, "height": 900})
    with handling(SimpleHTTPRequestHandler, directory=str(site)) as address:
        page.goto(f"{address}/index.html")
        picture = page.locator("article img").first
        expect(picture).to_be_in_viewport()
        assert picture.evaluate("img => img.naturalWidth") > 0
        page.locator(".md-search__button").click()
        box, options = page.get_by_role("combobox", name="Search"), page.get_by_role("option")
        for typed, (name, shown) in TASKS.items():
            box.fill("")
            expect(options).to_have_count(0)  # those of the text before
            box.fill(typed)
            options.first.wait_for()
            hits = [str(link.get_attribute("href")) for link in options.all()[:FIRST]]
            assert name in [re.sub(r"^.*?//[^/]*/|[?#].*$", "", link) for link in hits], typed
            text = re.sub(r"<[^>]+>", "", (site / name).read_text("utf-8"))
            assert shown in html.unescape(text)
        page.set_viewport_size({"width": 390, "height": 844})
        for name in ("index", "querying", "reference/settings"):
            page.goto(f"{address}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{name} scrolls sideways"
    visit.close()
    assert all(url.startswith((address, "data:", "blob:")) for url in visit.asked)
    assert visit.complaints == []


def test_texts_and_links_have_enough_contrast_in_both_schemes() -> None:
    schemes = re.findall(r"scheme=\"\w+\"\] \{\n(.*?)\n\}", (DOCS / "site.css").read_text())
    assert len(schemes) == 2
    for scheme in schemes:
        colours = {name: luminance(value) for name, value in re.findall(r"--(\w+): #(\w{6});", scheme)}
        for ink in ("ink", "muted", "accent"):
            for ground in ("paper", "wash", "soft"):
                dark, light = sorted((colours[ink], colours[ground]))
                assert (light + 0.05) / (dark + 0.05) >= LEGIBLE, (ink, ground)


def luminance(colour: str) -> float:
    parts = [part / 255 for part in bytes.fromhex(colour)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

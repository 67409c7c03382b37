"""The documentation site: complete, without broken links, of its own host, and legible."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.readme import DOCS, ROOT

BUILD_SECONDS = 120
LOADS = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}
LEGIBLE = 4.5  # of WCAG, level AA


class Page(HTMLParser):
    """The links and loaded files of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
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
    assert "No issues found" in built.stdout + built.stderr, "a link leads to no file, or to no anchor in it"
    return checkout / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {file.relative_to(site).as_posix(): Page(file) for file in site.rglob("*.html") if file.name != "404.html"}


def targets(name: str, links: set[str]) -> list[str]:
    """The files within the site that the links of a page lead to."""
    inside = [link for link in links if not urlsplit(link).scheme and not link.startswith("//")]
    return [urljoin(name, unquote(link)).partition("#")[0] or name for link in inside]


def test_every_page_is_in_the_site_and_linked_from_the_first_one_or_its_links(pages: dict[str, Page]) -> None:
    written = {file.relative_to(DOCS).with_suffix(".html").as_posix() for file in DOCS.rglob("*.md")}
    assert pages.keys() == written | {"contributing.html"}
    reached, waiting = set(), ["index.html"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [target for target in targets(name, pages[name].links) if target in pages]
    assert reached == pages.keys()


def test_no_page_loads_anything_from_other_hosts(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for loaded in page.loaded:
            assert not urlsplit(loaded).scheme or loaded.startswith("data:"), f"{name} loads {loaded}"
            assert loaded.startswith("data:") or (site / urljoin(name, unquote(loaded)).partition("?")[0]).exists()
    styles = "".join(file.read_text("utf-8") for file in site.rglob("*.css"))
    assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", styles)


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

"""The recipes of docs/frontends.md: they run with Node against `clade serve`, and show nodes with any name."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from graph.hierarchies.categories import CategoryNode
from store.connect import open_store
from store.engine.usage import ReadUsage
from store.model.items import Put
from tests.clients.programs import needs_node, run
from tests.commands.serving.test_stop import served
from tests.engines import free_port
from tests.readme import DOCS, section
from tests.systems.asking import Client

PART = section("Recipes", DOCS / "frontends.md")
FILES = dict(re.findall(r"`(\w+\.mjs)`(?:(?!```).)*?```js\n(.*?)^```$", PART, re.MULTILINE | re.DOTALL))
ADDRESS = "http://127.0.0.1:8000"
PORT = "const PORT = 8080;"
TAGS = set("nav ol ul li a bdi small p title h1".split())
START_SECONDS = 20
COST = re.compile(
    r"(?P<trees>\d+) trees with (?P<nodes>\d+) categories, this takes (?P<requests>\d+) requests to DynamoDB "
    r"in (?P<rounds>\d+) rounds, (?P<units>\d+) read units"
).search(PART.replace("\n", " "))

pytestmark = needs_node

MARKUP = "<b>&\"'</b> <script>alert(1)</script> &amp; ${name}"
RIGHT_TO_LEFT = "\u202eשלום (1) مرحبا <i>"
KEY = "A/B?c=1#d&\"'<i>%2F שלום"
SEGMENT = KEY.replace("%", "%25").replace("/", "%2F")
NOWHERE = (-48.8767, -123.3933)  # the point of the ocean that is the farthest from all land

CREATE = """
mutation Create($key: String!, $name: String!, $city: CityAttributes!) {
  root: createCategoryNode(input: {key: $key, name: $name, level: CATEGORY}) { node { id } }
  place: createLocation(
    input: {parent: {path: "US/NE"}, key: $key, name: $name, attributes: { city: $city }}
  ) { node { id } }
}
"""
CREATE_BELOW = """
mutation CreateBelow($parent: CategoryNodeBy, $key: String!, $name: String!) {
  createCategoryNode(input: {parent: $parent, key: $key, name: $name, level: CATEGORY}) { node { id } }
}
"""
RENAME = """mutation Rename($path: Path!, $key: String!) {
  moveCategoryNode(input: {node: {path: $path}, key: $key}) { node { path } } }"""


class Page(HTMLParser):
    """The texts of `<bdi>`, the addresses of links with the depth of their lists, and all tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[tuple[int, str]] = []
        self.tags: set[str] = set()
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        if tag == "bdi":
            self.names.append("")
        if tag == "a":
            self.links.append((self._open.count("ul"), dict(attrs)["href"] or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "bdi" in self._open:
            self.names[-1] += data


def ask(url: str, query: str, **variables: object) -> dict:
    """The data of an operation without errors."""
    body = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}, timeout=30).json()
    assert "errors" not in body
    return body["data"]


def files(folder: Path, url: str) -> Path:
    """A folder with the files of the page, for the server at this address."""
    assert FILES["clade.mjs"].count(ADDRESS) == 1
    for name, text in FILES.items():
        (folder / name).write_text(text.replace(ADDRESS, url))
    return folder


@contextmanager
def pages(folder: Path) -> Iterator[str]:
    """The address of the server that `page.mjs` is, on a free port, until the block ends."""
    port = free_port()
    assert FILES["page.mjs"].count(PORT) == 1
    (folder / "page.mjs").write_text((folder / "page.mjs").read_text().replace(PORT, f"const PORT = {port};"))
    with (folder / "said.txt").open("w") as output:
        process = subprocess.Popen(["node", "page.mjs"], cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
        while not is_listening(url):
            assert process.poll() is None, (folder / "said.txt").read_text()
            assert time.monotonic() < end, "The server does not start."
            time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait(START_SECONDS)


def is_listening(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 404
    except httpx.ConnectError:
        return False


@pytest.fixture(scope="module")
def clade(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> Iterator[str]:
    """The address of `clade serve` with the demo data, a place and categories with extreme names, and former paths."""
    folder = tmp_path_factory.mktemp("recipes")
    store = f"sqlite:///{shutil.copy(demo_file, folder / 'clade.db')}"
    with served(folder, store, CLADE_WRITES="on") as (url, _):
        ask(url, CREATE, key=KEY, name=MARKUP, city=dict(zip(("latitude", "longitude"), NOWHERE, strict=True)))
        ask(url, CREATE_BELOW, parent={"path": SEGMENT}, key="below", name=RIGHT_TO_LEFT)
        ask(url, CREATE_BELOW, key="first", name="Renamed")
        ask(url, CREATE_BELOW, parent={"path": "first"}, key="leaf", name=RIGHT_TO_LEFT)
        ask(url, RENAME, path="first", key="second")
        ask(url, RENAME, path="second", key=f"third {KEY}")
        yield url


@pytest.fixture(scope="module")
def project(clade: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files(tmp_path_factory.mktemp("project"), clade)


@pytest.fixture(scope="module")
def shop(project: Path) -> Iterator[httpx.Client]:
    """A client of the server of the recipe, which does not follow redirects."""
    with pages(project) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def test_the_section_shows_these_files():
    assert list(FILES) == ["clade.mjs", "breadcrumb.mjs", "breadcrumbs.mjs", "locator.mjs", "page.mjs", "menu.mjs"]


# -- Breadcrumbs -------------------------------------------------------------------------------------------------------


def test_one_breadcrumb_shows_nodes_of_both_hierarchies(project):
    shown = run("node", "breadcrumbs.mjs", "US/NE/Omaha", "Electronics/Televisions/OLED", cwd=project).splitlines()
    place, category = map(Page, shown)
    assert place.names == ["United States", "Nebraska", "Omaha", "Omaha"]
    assert [href for _, href in place.links] == ["/places/US", "/places/US/NE", "/places/US/NE/Omaha"]
    assert category.names == ["Electronics", "Televisions", "OLED", "OLED"]
    assert [href for _, href in category.links][1:] == [
        "/shop/Electronics/Televisions",
        "/shop/Electronics/Televisions/OLED",
    ]
    assert ("<small>CITY " in shown[0], "<small>CATEGORY " in shown[1]) == (True, True)


def test_a_breadcrumb_shows_any_name_as_text(project):
    shown = run("node", "breadcrumbs.mjs", f"US/NE/{SEGMENT}", f"{SEGMENT}/below", cwd=project).splitlines()
    place, category = map(Page, shown)
    assert place.names == ["United States", "Nebraska", MARKUP, KEY]
    assert category.names == [MARKUP, RIGHT_TO_LEFT, "below"]
    assert place.tags | category.tags == {"nav", "ol", "li", "a", "bdi", "small"}
    assert unquote(category.links[1][1]) == f"/shop/{SEGMENT}/below"
    assert all(re.fullmatch(r"[\w/%.~!*()'-]+", href, re.ASCII) for _, href in place.links + category.links)


def test_a_breadcrumb_of_nothing_says_so(project):
    shown = run("node", "breadcrumbs.mjs", "US/none", "none", cwd=project)
    assert shown == "There is no such place.\nThere is no such category.\n"


# -- Store locator -----------------------------------------------------------------------------------------------------


def test_the_locator_shows_the_nearest_places_first(project, clade):
    shown = run("node", "locator.mjs", "near", "41.2587", "-95.9379", cwd=project)
    point = "latitude: 41.2587, longitude: -95.9379"
    query = f"{{ locationsNear({point}, kilometers: 100, level: CITY, first: 5) {{ nodes {{ path }} }} }}"
    paths = [node["path"] for node in ask(clade, query)["locationsNear"]["nodes"]]
    assert paths[0] == "US/NE/Omaha"
    assert [unquote(href) for _, href in Page(shown).links][2::3] == [f"/places/{path}" for path in paths]
    distances = [float(one) for one in re.findall(r"</nav> ([\d.]+) km", shown)]
    assert len(distances) == 5
    assert distances == sorted(distances)


def test_the_locator_shows_any_name_as_text(project):
    shown = Page(run("node", "locator.mjs", "near", *map(str, NOWHERE), cwd=project))
    assert shown.names == ["United States", "Nebraska", MARKUP, KEY]
    assert shown.tags <= TAGS


def test_the_locator_pages_through_all_places_below_a_region(project, clade):
    (total,) = ask(clade, '{ state(path: "US/NE") { descendantCount(level: CITY) } }')["state"].values()
    names, words = [], ["US/NE"]
    while words:
        shown = Page(run("node", "locator.mjs", "below", *words, cwd=project))
        names += shown.names[2::4]
        after = [href.removeprefix("?after=") for _, href in shown.links if href.startswith("?")]
        words = ["US/NE", unquote(after[0])] if after else []
    assert len(names) == len(set(names)) == total > 10
    assert {"Omaha", "Lincoln", MARKUP} <= set(names)
    assert "no such region" in run("node", "locator.mjs", "below", "US/none", cwd=project)


# -- A page for each path ----------------------------------------------------------------------------------------------


def test_a_page_is_at_the_current_path(shop):
    response = shop.get("/shop/Electronics/Televisions")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    shown = Page(response.text.removeprefix("<!doctype html>"))
    assert [href for _, href in shown.links] == [
        "/shop/Electronics",
        "/shop/Electronics/Televisions",
        "/shop/Electronics/Televisions/OLED",
        "/shop/Electronics/Televisions/Projectors",
    ]


def test_every_former_path_redirects_once_to_the_current_one(shop):
    for former in ("/shop/first/leaf", "/shop/second/leaf"):
        moved = shop.get(f"{former}?from=mail&x=%20")
        assert (moved.status_code, moved.headers["cache-control"]) == (301, "max-age=3600")
        location = moved.headers["location"]
        assert location.endswith("/leaf?from=mail&x=%20")
        assert unquote(location.partition("?")[0]) == f"/shop/third {SEGMENT}/leaf"
        current = shop.get(location)
        assert current.status_code == 200
        assert RIGHT_TO_LEFT in Page(current.text).names


def test_a_page_shows_any_name_as_text(shop):
    links = [href for _, href in Page(shop.get("/shop/first", follow_redirects=True).text).links]
    for href in links:
        response = shop.get(href)
        assert response.status_code == 200
        shown = Page(response.text)
        assert shown.tags <= TAGS
        assert RIGHT_TO_LEFT in shown.names
    assert len(links) == 2


@pytest.mark.parametrize(
    "path",
    ["/", "/shop", "/shop/", "/shop/none", "/shop/Electronics/", "/shop//Electronics", "/shop/%", "/shop/%FF",
     "/shop/100%25", "/shop/%00", f"/shop/{'a' * 5000}", "/shop//evil.example"],
    ids=lambda path: path[:20],
)  # fmt: skip
def test_a_path_without_a_node_is_not_found(shop, path):
    response = shop.get(path)
    assert (response.status_code, response.headers.get("location")) == (404, None)


def test_a_new_node_at_a_former_path_has_its_page(shop, clade):
    ask(clade, CREATE_BELOW, key="used again", name="Before")
    ask(clade, RENAME, path="used again", key="elsewhere")
    assert shop.get("/shop/used%20again").headers["location"] == "/shop/elsewhere"
    ask(clade, CREATE_BELOW, key="used again", name="After")
    assert Page(shop.get("/shop/used%20again").text).names[0] == "After"


def test_a_page_without_clade_is_a_bad_gateway(tmp_path):
    with pages(files(tmp_path, f"http://127.0.0.1:{free_port()}")) as url:
        assert httpx.get(f"{url}/shop/Electronics").status_code == 502
        assert httpx.get(f"{url}/elsewhere").status_code == 404


# -- Menu --------------------------------------------------------------------------------------------------------------


def test_the_menu_shows_three_levels_of_categories_as_nested_lists(project, clade):
    below = "descendants(level: CATEGORY, maxDepth: 2) { nodes { path } }"
    roots = ask(clade, f"{{ categories(level: CATEGORY) {{ nodes {{ path {below} }} }} }}")["categories"]["nodes"]
    paths = {root["path"] for root in roots} | {node["path"] for root in roots for node in root["descendants"]["nodes"]}
    shown = Page(run("node", "menu.mjs", cwd=project))
    assert sorted((depth, unquote(href)) for depth, href in shown.links) == sorted(
        (path.count("/") + 1, f"/shop/{path}") for path in paths
    )
    assert {depth for depth, _ in shown.links} == {1, 2, 3}
    assert {MARKUP, RIGHT_TO_LEFT, "Televisions"} <= set(shown.names)
    assert shown.tags == {"nav", "ul", "li", "a", "bdi"}


@pytest.mark.both_stores
async def test_the_menu_costs_what_the_page_says(store_url: str, demo_store: str) -> None:
    query = re.search(r"const MENU = `(.*?)`", FILES["menu.mjs"], re.DOTALL)[1]
    assert COST
    async with open_store(demo_store) as demo, open_store(store_url) as store:
        await store.create()
        async for page in demo.scan(ReadUsage()):
            items = [item for item in page if str(item["pk"]).startswith("category")]
            for start in range(0, len(items), 100):
                await store.commit([Put(item) for item in items[start : start + 100]])
        reply = await Client(store, CategoryNode).ask(query)
    roots = reply.data["categories"]
    rounds = reply.rounds if store_url.startswith("dynamodb:") else int(COST["rounds"])  # SQLite has others
    version = not store_url.startswith("dynamodb:")  # of the roots, which SQLite does not read
    *told, units = (float(number) for number in COST.groups())
    assert (len(roots["nodes"]), count(roots), reply.requests + version, rounds) == tuple(told)
    assert reply.units + version == pytest.approx(units, abs=1.0 if version else 0.0)  # SQLite's are an estimate


def count(listed: dict) -> int:
    """The number of nodes in nested lists."""
    return sum(1 + count(node.get("children", {"nodes": []})) for node in listed["nodes"])

"""The recipes of docs/frontends.md: they run with Node against a server, and show nodes with any name."""

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlencode

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from tests.clients.programs import needs_node, run
from tests.ports import free_port
from tests.processes import Process
from tests.readme import DOCS, section
from tests.serving import serving
from tests.user_errors import take_user_errors, with_user_errors

FILES = dict(
    re.findall(
        r"`(\w+\.mjs)`(?:(?!```).)*?```js\n(.*?)^```$",
        section("Recipes", DOCS / "frontends.md"),
        re.MULTILINE | re.DOTALL,
    )
)
ADDRESS = "http://127.0.0.1:8000"
PORT = "const PORT = 8080;"
TAGS = set("nav ol ul li a bdi small p title h1".split())

pytestmark = needs_node

MARKUP = "<b>&\"'</b> <script>alert(1)</script> &amp; ${name}"
RIGHT_TO_LEFT = "\u202eשלום (1) مرحبا <i>"
KEY = "A/B?c=1#d&\"'<i>%2F שלום"
SEGMENT = KEY.replace("%", "%25").replace("/", "%2F")
NOWHERE = (-48.8767, -123.3933)  # the point of the ocean that is the farthest from all land

CREATE_PLACE = """
mutation CreatePlace($key: String!, $name: String!, $latitude: Float!, $longitude: Float!) {
  createLocation(input: {parent: {path: "US/NE"}, key: $key, name: $name, attributes: { city: { latitude:
    $latitude, longitude: $longitude } }}) { node { id } }
}
"""
CREATE = """
mutation Create($parent: CategoryNodeBy, $key: String!, $name: String!) {
  createCategoryNode(input: {parent: $parent, key: $key, name: $name, attributes: { category: {} }}) {
    node { id } }
}
"""
RENAME = (
    "mutation Rename($path: Path!, $key: String!) { moveCategoryNode(input: {node: {path: "
    "$path}, key: $key}) { node { path } } }"
)


class Page:
    """The texts of `<bdi>`, the addresses of links with the depth of their lists, and all tags of a page."""

    def __init__(self, text: str) -> None:
        self.names = [html.unescape(name) for name in re.findall(r"<bdi>([^<]*)</bdi>", text)]
        self.links = [html.unescape(address) for address in re.findall(r'<a href="([^"]*)">', text)]
        self.tags = set(re.findall(r"<(\w+)", text))
        before = [text[: found.start()] for found in re.finditer("<a ", text)]
        self.depths = [part.count("<ul>") - part.count("</ul>") for part in before]


def ask(url: str, query: str, **variables: object) -> dict:
    """The data of an operation without errors."""
    body = httpx.post(f"{url}/graphql", json={"query": with_user_errors(query), "variables": variables}).json()
    assert "errors" not in body
    assert take_user_errors(body["data"]) == []
    return body["data"]


@pytest.fixture(scope="module")
def clade(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> Iterator[str]:
    """The address of a server with the demo data, a place and categories with extreme names, and former paths."""
    store = f"sqlite:///{shutil.copy(demo_file, tmp_path_factory.mktemp('recipes') / 'clade.db')}"
    with serving(create_app(Settings(store=store, writes="on"))) as url:
        ask(url, CREATE_PLACE, key=KEY, name=MARKUP, latitude=NOWHERE[0], longitude=NOWHERE[1])
        ask(url, CREATE, key=KEY, name=MARKUP)
        ask(url, CREATE, parent={"path": SEGMENT}, key="below", name=RIGHT_TO_LEFT)
        ask(url, CREATE, key="first", name="Renamed")
        ask(url, CREATE, parent={"path": "first"}, key="leaf", name=RIGHT_TO_LEFT)
        ask(url, RENAME, path="first", key="second")
        ask(url, RENAME, path="second", key=f"third {KEY}")
        yield url


@pytest.fixture(scope="module")
def project(clade: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page, for this server."""
    folder = tmp_path_factory.mktemp("project")
    assert FILES["clade.mjs"].count(ADDRESS) == FILES["page.mjs"].count(PORT) == 1
    for name, text in FILES.items():
        (folder / name).write_text(text.replace(ADDRESS, clade))
    return folder


@pytest.fixture(scope="module")
def shop(project: Path) -> Iterator[httpx.Client]:
    """A client of the server of the recipe, which does not follow redirects."""
    port = free_port()
    (project / "page.mjs").write_text(FILES["page.mjs"].replace(PORT, f"const PORT = {port};"))
    server = Process("node", "page.mjs", url=f"http://127.0.0.1:{port}", ready="/shop/Electronics", folder=project)
    with server, httpx.Client(base_url=server.url) as client:
        yield client


@pytest.mark.thorough
def test_one_breadcrumb_shows_nodes_of_both_hierarchies_and_any_name_as_text(project):
    shown = run("node", "breadcrumbs.mjs", "US/NE/Omaha", "Electronics/Televisions/OLED", cwd=project).splitlines()
    place, category = map(Page, shown)
    assert place.names == ["United States", "Nebraska", "Omaha", "Omaha"]
    assert place.links == ["/places/US", "/places/US/NE", "/places/US/NE/Omaha"]
    assert category.names == ["Electronics", "Televisions", "OLED", "OLED"]
    assert category.links[1:] == ["/shop/Electronics/Televisions", "/shop/Electronics/Televisions/OLED"]
    assert ("<small>CITY " in shown[0], "<small>CATEGORY " in shown[1]) == (True, True)

    shown = run("node", "breadcrumbs.mjs", f"US/NE/{SEGMENT}", f"{SEGMENT}/below", cwd=project).splitlines()
    place, category = map(Page, shown)
    assert place.names == ["United States", "Nebraska", MARKUP, KEY]
    assert category.names == [MARKUP, RIGHT_TO_LEFT, "below"]
    assert place.tags | category.tags == {"nav", "ol", "li", "a", "bdi", "small"}
    assert unquote(category.links[1]) == f"/shop/{SEGMENT}/below"
    assert all(re.fullmatch(r"[\w/%.~!*()'-]+", href, re.ASCII) for href in place.links + category.links)

    shown = run("node", "breadcrumbs.mjs", "US/none", "none", cwd=project).splitlines()
    assert shown == ["There is no such place.", "There is no such category."]


def test_a_category_page_filters_sorts_counts_and_pages_all_products_below(project, clade):
    def page(**asked: object) -> tuple[str, list[str], dict[str, int]]:
        shown = run("node", "category.mjs", "Electronics", urlencode(asked, doseq=True), cwd=project)
        brands = re.findall(r"<bdi>([^<]*)</bdi> \((\d+)\)</label>", shown)
        prices = re.findall(r"</a> ([\d.]+)</li>", shown)
        return shown, prices, {name: int(count) for name, count in brands}

    shown, prices, brands = page(max=500, sort="cheapest")
    assert prices == ["34.90", "39.90", "89.00", "119.50"]
    assert "<p>11 products</p>" in shown
    assert (brands["Aria"], brands["Fjell"], sum(brands.values())) == (3, 1, 11)
    assert "34.90 to 1299.00" in shown  # of all products of the brands, whatever they may cost
    after = re.findall(r"after=([\w%-]+)", shown)[0]
    assert page(max=500, sort="cheapest", after=unquote(after))[1] == ["179.00", "229.00", "289.00", "329.00"]
    shown, prices, fewer = page(max=500, sort="dearest", brand=["Aria", "Fjell"])
    assert (prices, fewer) == (["399.00", "349.00", "229.00", "179.00"], brands)
    assert [shown.count(part) for part in (" checked>", ">More<", "/shop/Electronics/Audio")] == [2, 0, 4]
    assert page(words="aria", color="Walnut", sort="cheapest")[1:] == (["229.00", "399.00"], {"Aria": 2})
    assert "<p>0 products</p>" in page(brand=MARKUP)[0]
    assert MARKUP not in page(brand=MARKUP, max=1)[0]
    assert "no such category" in run("node", "category.mjs", "none", cwd=project)


def test_the_locator_shows_the_nearest_places_first(project, clade):
    shown = run("node", "locator.mjs", "near", "41.2587", "-95.9379", cwd=project)
    point = "latitude: 41.2587, longitude: -95.9379"
    near = f"where: {{near: {{{point}, kilometers: 100}}}}, orderBy: {{field: DISTANCE}}"
    query = f"{{ locations(level: CITY, first: 5, {near}) {{ nodes {{ path }} }} }}"
    paths = [node["path"] for node in ask(clade, query)["locations"]["nodes"]]
    assert paths[0] == "US/NE/Omaha"
    assert [unquote(href) for href in Page(shown).links][2::3] == [f"/places/{path}" for path in paths]
    distances = [float(one) for one in re.findall(r"</nav> ([\d.]+) km", shown)]
    assert len(distances) == 5
    assert distances == sorted(distances)
    far = Page(run("node", "locator.mjs", "near", *map(str, NOWHERE), cwd=project))
    assert far.names == ["United States", "Nebraska", MARKUP, KEY]
    assert far.tags <= TAGS


@pytest.mark.thorough
def test_the_locator_pages_through_all_places_below_a_region(project, clade):
    (total,) = ask(clade, '{ state(path: "US/NE") { descendantCount(level: CITY) } }')["state"].values()
    names, words = [], ["US/NE"]
    while words:
        shown = Page(run("node", "locator.mjs", "below", *words, cwd=project))
        names += shown.names[2::4]
        after = [href.removeprefix("?after=") for href in shown.links if href.startswith("?")]
        words = ["US/NE", unquote(after[0])] if after else []
    assert len(names) == len(set(names)) == total > 10
    assert {"Omaha", "Lincoln", MARKUP} <= set(names)
    assert "no such region" in run("node", "locator.mjs", "below", "US/none", cwd=project)


def test_a_page_is_at_the_current_path_to_which_every_former_one_redirects_once(shop, clade):
    response = shop.get("/shop/Electronics/Televisions")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    paths = ["", "/Televisions", "/Televisions/OLED", "/Televisions/Projectors"]
    assert Page(response.text).links == [f"/shop/Electronics{path}" for path in paths]
    for former in ("/shop/first/leaf", "/shop/second/leaf"):
        moved = shop.get(f"{former}?from=mail&x=%20")
        assert (moved.status_code, moved.headers["cache-control"]) == (301, "max-age=3600")
        location = moved.headers["location"]
        assert location.endswith("/leaf?from=mail&x=%20")
        assert unquote(location.partition("?")[0]) == f"/shop/third {SEGMENT}/leaf"
        current = shop.get(location)
        assert current.status_code == 200
        assert RIGHT_TO_LEFT in Page(current.text).names
        assert Page(current.text).tags <= TAGS
    ask(clade, CREATE, key="first", name="A new node at a former path")
    assert Page(shop.get("/shop/first").text).names[0] == "A new node at a former path"


def test_a_path_without_a_node_is_not_found(shop):
    strange = ["%", "%FF", "100%25", "%00", "a" * 5000, "/evil.example", "none", "Electronics/", "/Electronics", ""]
    for path in ["/", "/shop", *(f"/shop/{one}" for one in strange)]:
        response = shop.get(path)
        assert (response.status_code, response.headers.get("location")) == (404, None), path


def test_the_menu_shows_three_levels_of_categories_as_nested_lists(project, clade):
    below = "descendants(level: CATEGORY, maxDepth: 2) { nodes { path } }"
    roots = ask(clade, f"{{ categories(level: CATEGORY) {{ nodes {{ path {below} }} }} }}")["categories"]["nodes"]
    paths = {root["path"] for root in roots} | {node["path"] for root in roots for node in root["descendants"]["nodes"]}
    shown = Page(run("node", "menu.mjs", cwd=project))
    listed = zip(shown.depths, map(unquote, shown.links), strict=True)
    assert sorted(listed) == sorted((path.count("/") + 1, f"/shop/{path}") for path in paths)
    assert set(shown.depths) == {1, 2, 3}
    assert {MARKUP, RIGHT_TO_LEFT, "Televisions"} <= set(shown.names)
    assert shown.tags == {"nav", "ul", "li", "a", "bdi"}


def test_the_form_shows_every_fault_beside_its_field_and_makes_what_has_none(project, clade):
    def form(*language: str, **values: str) -> str:
        asked = urlencode({"parent": "Electronics/Televisions", **values})
        return run("node", "form.mjs", asked, *language, cwd=project)

    rows = form(key=" ", name="", price="12,50", brand=MARKUP).splitlines()
    assert [("Number" in rows[0], rows[0].count('role="alert"'))] == [(True, 1)]
    assert [row.count('role="alert"') for row in rows] == [1, 1, 0, 1]
    assert "12,50" in rows[3]
    assert "is not a number" in rows[3]
    assert MARKUP not in "".join(rows)
    rows = form("de", key=" ", name="", price="12,50", brand="b" * 17_000).splitlines()
    said = ["Bitte ausfüllen.", "Bitte ausfüllen.", "Höchstens 16384 Zeichen.", "Das ist hier kein gültiger Wert."]
    assert [re.findall(r'alert">([^<]*)', row) for row in rows] == [[one] for one in said]
    rows = form(parent="none", key="OLED", name="x").splitlines()
    assert rows[0].startswith('<form><p role="alert">There is no node at none')
    assert form(key="P-1", name=MARKUP, price="12.50") == "Made Electronics/Televisions/P-1.\n"
    assert "Schon vergeben." in form("de", key="P-1", name=MARKUP).splitlines()[0]
    assert ask(clade, '{ product(path: "Electronics/Televisions/P-1") { name price } }')["product"]["price"] == "12.50"
